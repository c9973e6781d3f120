//! RLK301: after an exception a route of the family reaches another implementation, or none, and nothing raises.

use std::collections::BTreeSet;

use super::{Context, rule};
use crate::findings::{Finding, Related};
use crate::names::GlobalScope;
use crate::syntax::{CondId, CondKind, Handler, Literal, OpKind, Reg, Try};
use crate::values::Target;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    for scope in context.scopes() {
        let facts = context.program.scope(scope);
        for (number, attempt) in facts.tries.iter().enumerate() {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            let called = in_range(context, scope, attempt.body);
            let imported = imported_in(context, scope, attempt.body);
            for (place, handler) in attempt.handlers.iter().enumerate() {
                if handler.raises {
                    continue;
                }
                let place = u32::try_from(place).unwrap_or(u32::MAX);
                let cond = facts.conds.iter().position(|cond| cond.kind == CondKind::Handler(number, place));
                let Some(cond) = cond.and_then(|at| CondId::try_from(at).ok()) else { continue };
                if !called.is_empty() {
                    calls(context, findings, scope, attempt, handler, cond, &called);
                } else if !imported.is_empty() {
                    import(context, findings, scope, handler, cond, &imported);
                } else if swallows(handler) {
                    probe(context, findings, scope, handler, cond);
                }
            }
        }
    }
}

/// Family members called by a range of operations.
fn in_range(context: &Context<'_>, scope: GlobalScope, range: (u32, u32)) -> BTreeSet<String> {
    (range.0..range.1).flat_map(|op| context.family_calls(scope, op)).collect()
}

/// Family members imported by a range of operations.
fn imported_in(context: &Context<'_>, scope: GlobalScope, range: (u32, u32)) -> BTreeSet<String> {
    let ops = &context.program.scope(scope).ops[range.0 as usize..range.1 as usize];
    let imports = ops.iter().filter_map(|op| match op.kind {
        OpKind::ImportFrom { dst, .. } => Some(dst),
        _ => None,
    });
    imports.flat_map(|dst| context.glance(scope, dst)).filter_map(|object| context.family_object(object)).collect()
}

/// Family members that are reached once a handler has been taken, in its body or behind it.
fn behind(context: &Context<'_>, scope: GlobalScope, cond: CondId) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, op) in context.program.scope(scope).ops.iter().enumerate() {
        if !context.below(scope, op.cond, cond) {
            continue;
        }
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        names.extend(context.family_calls(scope, at));
        if let OpKind::Call { func, .. } = op.kind {
            names.extend(context.glance(scope, func).into_iter().filter_map(|object| context.family_object(object)));
        }
        if let OpKind::ImportFrom { dst, .. } = op.kind {
            names.extend(context.glance(scope, dst).into_iter().filter_map(|object| context.family_object(object)));
        }
    }
    names
}

fn report(
    context: &Context<'_>,
    findings: &mut Vec<Finding>,
    scope: GlobalScope,
    handler: &Handler,
    key: &'static str,
    arguments: Vec<String>,
    related: Vec<Related>,
) {
    let place = context.first_line(context.program.span(scope, handler.head));
    let mut finding = Finding::new(rule("silent-fallback"), key, arguments, place, context.program.qualified(scope));
    finding.related = related;
    findings.push(finding);
}

fn words(names: &BTreeSet<String>) -> String {
    if names.is_empty() { "none".to_owned() } else { names.iter().cloned().collect::<Vec<_>>().join("', '") }
}

fn types(handler: &Handler) -> String {
    if handler.types.is_empty() { "every exception".to_owned() } else { handler.types.join("', '") }
}

/// A handler around a call of the family.
fn calls(
    context: &Context<'_>,
    findings: &mut Vec<Finding>,
    scope: GlobalScope,
    attempt: &Try,
    handler: &Handler,
    cond: CondId,
    called: &BTreeSet<String>,
) {
    let function = context.program.qualified(scope);
    let related: Vec<Related> = (attempt.body.0..attempt.body.1)
        .filter(|op| !context.family_calls(scope, *op).is_empty())
        .map(|op| Related { span: context.span(scope, op), message: "this implementation is lost".to_owned() })
        .collect();
    if attempt.in_loop {
        return report(context, findings, scope, handler, "loop", vec![function, words(called)], related);
    }
    let reached: BTreeSet<String> = behind(context, scope, cond).difference(called).cloned().collect();
    report(context, findings, scope, handler, "handler", vec![function, words(called), words(&reached), types(handler)], related);
}

/// A handler around an import of the family. One that only notes the absence is clean: the first use raises.
fn import(
    context: &Context<'_>,
    findings: &mut Vec<Finding>,
    scope: GlobalScope,
    handler: &Handler,
    cond: CondId,
    imported: &BTreeSet<String>,
) {
    let ops = &context.program.scope(scope).ops[handler.ops.0 as usize..handler.ops.1 as usize];
    let acts = ops.iter().any(|op| matches!(op.kind, OpKind::Import { .. } | OpKind::ImportFrom { .. } | OpKind::Return(_)));
    if !acts {
        return;
    }
    let reached: BTreeSet<String> = behind(context, scope, cond).difference(imported).cloned().collect();
    let arguments = vec![context.program.qualified(scope), words(imported), words(&reached), types(handler)];
    report(context, findings, scope, handler, "handler", arguments, Vec::new());
}

/// Whether a handler takes every exception.
fn swallows(handler: &Handler) -> bool {
    handler.types.is_empty() || handler.types.iter().any(|kind| matches!(kind.as_str(), "Exception" | "BaseException"))
}

/// A capability probe that answers every exception with "no", where that answer switches the implementation.
fn probe(context: &Context<'_>, findings: &mut Vec<Finding>, scope: GlobalScope, handler: &Handler, cond: CondId) {
    let facts = context.program.scope(scope);
    let answers_no = facts.ops.iter().filter(|op| context.below(scope, op.cond, cond)).any(|op| match op.kind {
        OpKind::Return(reg) => facts
            .ops
            .iter()
            .any(|other| matches!(other.kind, OpKind::Literal(dst, Literal::Bool(false) | Literal::None | Literal::Int(0)) if dst == reg)),
        _ => false,
    });
    if !answers_no {
        return;
    }
    for ((caller, op), targets) in &context.calls {
        if !targets.contains(&Target::Scope(scope)) {
            continue;
        }
        let OpKind::Call { dst, .. } = context.program.scope(*caller).ops[*op as usize].kind else { continue };
        for (yes, no) in switches(context, *caller, dst) {
            if yes.is_empty() || no.is_empty() || yes == no {
                continue;
            }
            let related =
                vec![Related { span: context.span(*caller, *op), message: "the answer switches the implementation here".to_owned() }];
            let function = context.program.qualified(scope);
            let arguments = vec![function, words(&yes), words(&no), types(handler)];
            report(context, findings, scope, handler, "handler", arguments, related);
            return;
        }
    }
}

/// For each test of a register, or of something made from it: the family members on its true and on its false side.
fn switches(context: &Context<'_>, scope: GlobalScope, reg: Reg) -> Vec<(BTreeSet<String>, BTreeSet<String>)> {
    let facts = context.program.scope(scope);
    let mut derived = BTreeSet::from([reg]);
    for op in &facts.ops {
        let (dst, from) = match &op.kind {
            OpKind::Move(dst, src) | OpKind::Filter(dst, src, _) | OpKind::Not { dst, src } => (*dst, derived.contains(src)),
            OpKind::Phi(dst, inputs) => (*dst, inputs.iter().any(|(src, _)| derived.contains(src))),
            OpKind::Binary { dst, left, right, .. } => (*dst, derived.contains(left) || derived.contains(right)),
            _ => continue,
        };
        if from {
            derived.insert(dst);
        }
    }
    let side = |wanted: bool, test: Reg| {
        let mut names = BTreeSet::new();
        for (at, cond) in facts.conds.iter().enumerate() {
            if cond.kind == CondKind::Test(test, wanted) {
                names.extend(behind(context, scope, CondId::try_from(at).unwrap_or(0)));
            }
        }
        names
    };
    derived.iter().map(|test| (side(true, *test), side(false, *test))).collect()
}
