//! RLK312: the module of a contract's kernels is another one than in the base revision, and the contract's id is the same.

use std::collections::{BTreeMap, BTreeSet};

use super::dataflow::Names;
use super::{Context, rule};
use crate::findings::{Finding, Related};
use crate::names::ModuleId;
use crate::profile::PathClass;
use crate::syntax::{OpKind, ScopeKind};
use crate::text::Span;

/// Definitions that a message names.
const NAMED: usize = 6;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let Some(before) = context.before else { return };
    for ((contract, module), parts) in &parts(context) {
        // A new id, or a module that the id did not have, claims nothing about the base.
        let Some(old) = before.parts.get(&(contract.clone(), module.clone())) else { continue };
        let differs = |part: &&Part| old.get(&part.name).is_none_or(|old| old.text != part.text);
        let mut changed: Vec<&Part> = parts.values().filter(differs).collect();
        changed.sort_by_key(|part| part.span);
        let gone = old.keys().filter(|name| !parts.contains_key(*name));
        let names: Vec<&str> = changed.iter().map(|part| part.name.as_str()).chain(gone.map(String::as_str)).collect();
        let first = changed.first().copied().or_else(|| parts.values().min_by_key(|part| part.span));
        let Some(place) = first.filter(|_| !names.is_empty()).map(|part| part.span) else { continue };
        let more = names.len().saturating_sub(NAMED);
        let mut said = names.into_iter().take(NAMED).collect::<Vec<_>>().join("', '");
        if more > 0 {
            said.push_str(&format!("' and '{more} more"));
        }
        let mut finding = Finding::new(rule("changed-under-contract"), "default", vec![contract.clone(), said], place, module.clone());
        let rest = changed.iter().skip(1).map(|part| Related { span: part.span, message: "this has changed, too".to_owned() });
        finding.related.extend(rest);
        findings.push(finding);
    }
}

/// A definition in a module that a contract speaks for.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its name in the module.
    pub name: String,
    /// Its text without comments, docstrings and white space that means nothing.
    pub text: String,
    /// Its first line.
    pub span: Span,
}

/// Definitions by name, by contract id and module.
pub type Parts = BTreeMap<(String, String), BTreeMap<String, Part>>;

/// What stands at module level in the modules of kernels with a contract id: functions, classes, and names that are assigned once.
pub(super) fn parts(context: &Context<'_>) -> Parts {
    let mut out = Parts::new();
    for routes in context.routes {
        let kernels = routes.reach.sinks.iter().map(|sink| context.shown(*sink));
        let pairs: BTreeSet<(String, String)> = kernels
            .filter_map(|kernel| Some((routes.reach.contract(&kernel)?.to_owned(), kernel.rsplit_once('.')?.0.to_owned())))
            .collect();
        for (contract, module) in pairs {
            let sym = context.program.strings.find(&module);
            let found = sym.and_then(|sym| context.program.module_ids().find(|id| context.program.module(*id).name == sym));
            if let Some(id) = found.filter(|id| (context.class_of)(*id) == PathClass::Production) {
                let definitions = definitions(context, id).into_iter().map(|part| (part.name.clone(), part));
                out.insert((contract, module), definitions.collect());
            }
        }
    }
    out
}

fn definitions(context: &Context<'_>, module: ModuleId) -> Vec<Part> {
    let program = context.program;
    let facts = &program.module(module).facts;
    let names = Names::new(program);
    let body = program.global_scope(module, 0);
    let mut out = Vec::new();
    for (at, scope) in facts.scopes.iter().enumerate().skip(1) {
        let named = scope.parent == 0 && !facts.name(scope.name).starts_with('<');
        if named && matches!(scope.kind, ScopeKind::Function | ScopeKind::Class) {
            let span = program.span(program.global_scope(module, u32::try_from(at).unwrap_or(u32::MAX)), scope.range);
            let (name, text) = (facts.name(scope.name).to_owned(), bare(context.files.slice(span)));
            out.push(Part { name, text, span: context.first_line(span) });
        }
    }
    let ops = &program.scope(body).ops;
    for op in ops {
        let OpKind::StoreGlobal(name, src) = op.kind else { continue };
        if names.stored(module, name) != [src] || out.iter().any(|part| part.name == facts.name(name)) {
            continue;
        }
        let made = names.origin(body, src).filter(|(scope, _)| *scope == body).map(|(_, at)| &ops[at as usize]);
        let Some(made) = made.filter(|made| !matches!(made.kind, OpKind::Import { .. } | OpKind::ImportFrom { .. })) else { continue };
        let span = program.span(body, made.range);
        let (name, text) = (facts.name(name).to_owned(), bare(context.files.slice(span)));
        out.push(Part { name, text, span: context.first_line(span) });
    }
    out
}

/// A text without comments, strings that are statements, and white space that means nothing.
fn bare(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    let mut depth = 0i32;
    let mut fresh = true;
    while let Some(c) = rest.chars().next() {
        if c == '#' {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
            continue;
        }
        if c == '"' || c == '\'' {
            let end = string(rest);
            if !(fresh && depth == 0) {
                out.push_str(&rest[..end]);
            }
            fresh = false;
            rest = &rest[end..];
            continue;
        }
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if c == '\n' && depth <= 0 {
            fresh = true;
            out.push('\n');
        } else if c.is_whitespace() {
            // Indentation means something; more than one space within a line does not.
            if (fresh && depth <= 0) || !out.ends_with([' ', '\n']) {
                out.push(' ');
            }
        } else {
            fresh = false;
            out.push(c);
        }
        rest = &rest[c.len_utf8()..];
    }
    out.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Length of the string literal that a text begins with.
fn string(text: &str) -> usize {
    let quote = &text[..1];
    let triple = quote.repeat(3);
    let mark = if text.starts_with(&triple) { triple } else { quote.to_owned() };
    let width = |at: usize| text[at..].chars().next().map_or(1, char::len_utf8);
    let mut at = mark.len();
    while at < text.len() {
        if text[at..].starts_with(&mark) {
            return at + mark.len();
        }
        let escaped = text[at..].starts_with('\\') && at + 1 < text.len();
        at += if escaped { 1 + width(at + 1) } else { width(at) };
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::bare;

    #[test]
    fn comments_docstrings_and_white_space_are_no_change() {
        let old = "def f(a):\n    \"\"\"Doc.\"\"\"\n    return g(a, 'x # y')\n";
        let new = "def f(a):  # note\n    '''Another\n\n    text.'''\n\n    # why\n    return g(a,   'x # y')\n";
        assert_eq!(bare(old), bare(new));
        assert_eq!(bare("T = (\n    1,\n    2,\n)"), bare("T = ( 1, 2, )"));
    }

    #[test]
    fn numbers_strings_and_indentation_are_one() {
        assert_ne!(bare("T = (16, 32)"), bare("T = (16, 64)"));
        assert_ne!(bare("f('a')"), bare("f('b')"));
        assert_ne!(bare("if a:\n    b()\n    c()"), bare("if a:\n    b()\nc()"));
        for open in ["f('it", "f(\"it\\", "'''", "\\", "f('é\\é"] {
            assert_eq!(bare(open).is_empty(), open == "'''", "{open}");
        }
    }
}
