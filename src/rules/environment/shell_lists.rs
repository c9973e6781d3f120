//! Lists of environment variables in launch scripts.
//!
//! In: a shell script that speaks of `env_vars`. Out: what it hands on to workers: keys of a JSON object that is written in the script, and lists in Python
//! here-documents. A JSON text with more than strings left out cannot be read; then nothing is said about it.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Context;
use super::lists::{List, Purpose, Unit, in_unit};
use crate::syntax::{extract_all, json, shell};
use crate::text::{FileId, Span};

pub(super) fn collect(context: &Context<'_>, file: FileId, text: &str, out: &mut Vec<List>) {
    let script = shell::read(text);
    let values = script.assignments.iter().flat_map(|assignment| assignment.value.iter().chain(&assignment.elements));
    let words = values.chain(script.commands.iter().flat_map(|command| &command.words));
    for word in words.filter(|word| word.text.contains("\"env_vars\"")) {
        // `--runtime-env-json={...}`: the document starts at its brace.
        let Some(start) = word.text.find('{') else { continue };
        let mut lists: BTreeMap<String, List> = BTreeMap::new();
        for string in json::strings(&word.text[start..]).unwrap_or_default() {
            if string.is_key && string.path.rsplit('/').next() == Some("env_vars") {
                let place = |offset: u32| word.place(start + offset as usize);
                let place = Span::new(file, place(string.range.0), place(string.range.1));
                let list = List { purpose: Purpose::Launch, names: BTreeSet::new(), place, open: false, module: None };
                lists.entry(string.path).or_insert(list).names.insert(string.text);
            }
        }
        out.extend(lists.into_values());
    }
    for command in script.commands.iter().filter(|command| command.program().is_some_and(|name| name.starts_with("python"))) {
        for heredoc in command.heredocs.iter().filter_map(|at| script.heredocs.get(*at)) {
            let (start, end) = heredoc.range;
            let Some(body) = text.get(start as usize..end as usize).filter(|body| body.contains("env_vars")) else { continue };
            for facts in extract_all(&[body], 1) {
                in_unit(context, Unit { facts: &facts, file, start, module: None }, out);
            }
        }
    }
}
