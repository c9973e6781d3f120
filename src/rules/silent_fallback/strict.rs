//! Handlers that raise in strict mode, where strict mode is what runs.

use super::Taken;
use crate::sources::FileKind;
use crate::syntax::shell::{self, Word};
use crate::syntax::{CondKind, OpKind, Operator, Reg};

/// Whether nothing comes out of a handler but its exception: what decides otherwise is ruled out by the profile, or by what every launch
/// script passes for the option that is tested.
pub(super) fn refuses(taken: &Taken<'_>) -> bool {
    let facts = taken.context.program.scope(taken.scope);
    let text = taken.context.files.slice(taken.context.program.span(taken.scope, taken.handler.range));
    let raises = text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "raise");
    if !raises {
        return false;
    }
    let leaving: Vec<u32> =
        (taken.handler.ops.0..taken.handler.ops.1).filter(|at| matches!(facts.ops[*at as usize].kind, OpKind::Return(_))).collect();
    if leaving.is_empty() || !taken.handler.leaves {
        return false;
    }
    let copies = taken.context.known_copies(taken.scope);
    let decided = leaving.iter().all(|at| !copies.iter().any(|inst| taken.context.engine.runs(*inst, *at)));
    decided || leaving.iter().all(|at| pinned(taken, facts.ops[*at as usize].cond))
}

/// Whether a condition is the opposite of what all launch scripts pass.
fn pinned(taken: &Taken<'_>, cond: u32) -> bool {
    let facts = taken.context.program.scope(taken.scope);
    let mut at = cond;
    while at != 0 && at != taken.cond {
        let node = facts.conds[at as usize];
        if let CondKind::Test(reg, wanted) = node.kind
            && let Some((option, value, equal)) = option(taken, reg)
            && equal != wanted
            && launched_with(taken, &option, &value)
        {
            return true;
        }
        at = node.parent;
    }
    false
}

/// The option and the value that a test compares it with, and whether the test holds if they are equal.
fn option(taken: &Taken<'_>, reg: Reg) -> Option<(String, String, bool)> {
    let module = &taken.context.program.module(taken.context.program.module_of(taken.scope)).facts;
    for kind in taken.names.defined_by(taken.scope, reg) {
        let OpKind::Binary { left, op, right, .. } = kind else { continue };
        let equal = match op {
            Operator::Eq => true,
            Operator::NotEq => false,
            _ => continue,
        };
        for (tested, value) in [(*left, *right), (*right, *left)] {
            let attribute = taken.names.defined_by(taken.scope, tested).into_iter().find_map(|kind| match kind {
                OpKind::LoadAttr { name, .. } => Some(module.name(*name)),
                _ => None,
            });
            if let (Some(attribute), Some(value)) = (attribute, taken.names.text(taken.scope, value)) {
                return Some((format!("--{}", attribute.replace('_', "-")), value.to_owned(), equal));
            }
        }
    }
    None
}

/// Whether some launch script passes an option, and each that does passes this value.
fn launched_with(taken: &Taken<'_>, option: &str, value: &str) -> bool {
    let mut passed = false;
    for file in taken.context.sources.iter().flat_map(|source| &source.files).filter(|file| file.kind == FileKind::Shell) {
        let text = &taken.context.files.get(file.file).text;
        if !text.contains(option) {
            continue;
        }
        let script = shell::read(text);
        let lists = script.assignments.iter().map(|assignment| &assignment.elements);
        for words in lists.chain(script.commands.iter().map(|command| &command.words)) {
            for (at, word) in words.iter().enumerate() {
                let joined = word.literal().and_then(|text| text.strip_prefix(option)).and_then(|rest| rest.strip_prefix('='));
                let apart = (word.literal() == Some(option)).then(|| words.get(at + 1).and_then(Word::literal));
                match (joined, apart) {
                    (Some(given), _) | (None, Some(Some(given))) if given == value => passed = true,
                    (None, None) => {}
                    _ => return false,
                }
            }
        }
    }
    passed
}
