//! RLK202: a route that only documentation asks for.

use std::collections::BTreeSet;

use super::{Context, rule};
use crate::findings::Finding;
use crate::profile::PathClass;
use crate::syntax::{Literal, ModuleFacts, OpKind, Range};
use crate::text::Span;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let keys: BTreeSet<&str> = context.profile.families.iter().flat_map(|family| family.keys.iter().map(String::as_str)).collect();
    let mut asked: BTreeSet<String> = BTreeSet::new();
    for module in context.program.module_ids() {
        if matches!((context.class_of)(module), PathClass::Production | PathClass::Reference) {
            let facts = &context.program.module(module).facts;
            if facts.names.iter().any(|name| keys.contains(name.as_str())) {
                asked.extend(requests(facts, &keys).into_iter().map(|(key, _)| key));
            }
        }
    }
    for snippet in context.snippets {
        for (key, range) in requests(&snippet.facts, &keys) {
            if asked.contains(&key) {
                continue;
            }
            let place = Span::new(snippet.file, snippet.start + range.0, snippet.start + range.1);
            let page = context.files.get(snippet.file).path.to_string();
            findings.push(Finding::new(rule("documentation-only"), "default", vec![key.clone(), page], context.first_line(place), key));
        }
    }
}

/// Calls that are given a key of a family as a literal argument.
fn requests(facts: &ModuleFacts, keys: &BTreeSet<&str>) -> Vec<(String, Range)> {
    let mut out = Vec::new();
    for scope in &facts.scopes {
        for op in &scope.ops {
            let OpKind::Call { args, .. } = &op.kind else { continue };
            for (_, reg) in args {
                let literal = scope.ops.iter().find_map(|other| match other.kind {
                    OpKind::Literal(dst, Literal::Str(text)) if dst == *reg => Some(facts.name(text)),
                    _ => None,
                });
                if let Some(key) = literal.filter(|text| keys.contains(text)) {
                    out.push((key.to_owned(), op.range));
                }
            }
        }
    }
    out
}
