//! Data flow within one module, read off its facts alone: for tests, launchers and framework code that the analysis does not run.
//!
//! In: the module table. Out: [`Names`], the dotted names that a register may stand for, and [`Flow`], the registers that something flows
//! into. Refused: nothing; what is not followed has no name and carries nothing, so that a rule which needs both stays silent.

mod comparisons;
mod family;
mod flow;
mod names;
mod scores;

pub(crate) use comparisons::Comparison;
pub(super) use comparisons::{Sides, Strictness, collect as comparisons};
pub(super) use family::{Operators, short_names};
pub(super) use flow::{FORM, Flow, Spread, method};
pub(super) use names::Names;
pub(super) use scores::{Side, score_seeds, score_side};

use crate::names::{ModuleId, Program};
use crate::syntax::{CondKind, OpKind, Reg, Scope};

/// The register that an operation defines.
pub(super) fn destination(kind: &OpKind) -> Option<Reg> {
    Some(match kind {
        OpKind::Literal(dst, _)
        | OpKind::LoadGlobal(dst, _)
        | OpKind::LoadFree(dst, ..)
        | OpKind::Move(dst, _)
        | OpKind::Phi(dst, _)
        | OpKind::Filter(dst, ..)
        | OpKind::Import { dst, .. }
        | OpKind::ImportFrom { dst, .. }
        | OpKind::LoadAttr { dst, .. }
        | OpKind::LoadItem { dst, .. }
        | OpKind::LoadSlice { dst, .. }
        | OpKind::Sequence { dst, .. }
        | OpKind::Dict { dst, .. }
        | OpKind::Unpack { dst, .. }
        | OpKind::UnpackRest { dst, .. }
        | OpKind::Function { dst, .. }
        | OpKind::Class { dst, .. }
        | OpKind::Call { dst, .. }
        | OpKind::Iterate { dst, .. }
        | OpKind::Enter { dst, .. }
        | OpKind::Await { dst, .. }
        | OpKind::Yield { dst, .. }
        | OpKind::YieldFrom { dst, .. }
        | OpKind::Not { dst, .. }
        | OpKind::Binary { dst, .. }
        | OpKind::Format { dst, .. } => *dst,
        _ => return None,
    })
}

/// Whether an operation or a test of a scope takes a register.
pub(super) fn is_used(scope: &Scope, reg: Reg) -> bool {
    let tested = scope.conds.iter().any(|cond| matches!(cond.kind, CondKind::Test(of, _) if of == reg));
    tested
        || scope.ops.iter().any(|op| match &op.kind {
            OpKind::StoreGlobal(_, src)
            | OpKind::StoreFree(_, _, src)
            | OpKind::StoreClass(_, src)
            | OpKind::Move(_, src)
            | OpKind::Filter(_, src, _)
            | OpKind::Return(src)
            | OpKind::Raise(src)
            | OpKind::Not { src, .. }
            | OpKind::Unpack { src, .. }
            | OpKind::UnpackRest { src, .. }
            | OpKind::Iterate { src, .. }
            | OpKind::Enter { src, .. }
            | OpKind::Await { src, .. }
            | OpKind::Yield { src, .. }
            | OpKind::YieldFrom { src, .. }
            | OpKind::StoreAttr { src, .. } => *src == reg,
            OpKind::StoreItem { key, src, .. } => *key == reg || *src == reg,
            OpKind::LoadAttr { obj, .. } | OpKind::LoadSlice { obj, .. } => *obj == reg,
            OpKind::LoadItem { obj, key, .. } => *obj == reg || *key == reg,
            OpKind::Call { func, args, .. } => *func == reg || args.iter().any(|(_, arg)| *arg == reg),
            OpKind::Binary { left, right, .. } => *left == reg || *right == reg,
            OpKind::Sequence { items, .. } => items.iter().any(|(item, _)| *item == reg),
            OpKind::Dict { items, .. } => items.iter().any(|(key, value)| *key == reg || *value == reg),
            OpKind::Format { parts, .. } => parts.contains(&reg),
            OpKind::Phi(_, inputs) => inputs.iter().any(|(src, _)| *src == reg),
            _ => false,
        })
}

/// Modules that use one of some words as a name or string, in order. Words that no module has cost nothing.
pub(super) fn modules_with(program: &Program, words: &[&str]) -> Vec<ModuleId> {
    let wanted: Vec<_> = words.iter().filter_map(|word| program.strings.find(word)).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    program.module_ids().filter(|module| program.module(*module).syms().iter().any(|sym| wanted.contains(sym))).collect()
}
