//! RLK310: a checkpoint load that goes on without some of its tensors.

use std::collections::BTreeSet;

use super::dataflow::{is_used, modules_with};
use super::environment::{Code, definitions};
use super::{Context, rule};
use crate::findings::Finding;
use crate::names::GlobalScope;
use crate::syntax::{CondId, CondKind, Handler, Literal, OpKind, Passing, Reg, Try};

/// Exceptions that a missing key raises, or that a handler takes it with.
const MISSING: [&str; 4] = ["KeyError", "LookupError", "Exception", "BaseException"];
/// Names of functions that put tensors into a model.
const LOADS: [&str; 6] = ["copy_", "load", "load_checkpoint", "load_state_dict", "load_weights", "set_data"];

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let words = ["allow_partial_load", "load_state_dict", "KeyError"];
    for module in modules_with(context.program, &words) {
        let entry = context.program.module(module);
        for local in 0..u32::try_from(entry.facts.scopes.len()).unwrap_or(0) {
            let scope = context.program.global_scope(module, local);
            if !context.counts(scope) {
                break;
            }
            let facts = context.program.scope(scope);
            let made = definitions(facts);
            let code = Code { facts: &entry.facts, scope: facts, made: &made };
            options(context, findings, scope, code);
            for (number, attempt) in facts.tries.iter().enumerate().filter(|(_, attempt)| attempt.in_loop) {
                for (place, handler) in attempt.handlers.iter().enumerate() {
                    let number = CondKind::Handler(u32::try_from(number).unwrap_or(0), u32::try_from(place).unwrap_or(0));
                    skipped(context, findings, scope, code, attempt, handler, number);
                }
            }
        }
    }
}

/// Keyword arguments that allow what should not be.
fn options(context: &Context<'_>, findings: &mut Vec<Finding>, scope: GlobalScope, code: Code<'_>) {
    let function = context.program.qualified(scope);
    for (at, op) in code.scope.ops.iter().enumerate() {
        let OpKind::Call { dst, func, args, .. } = &op.kind else { continue };
        let given = |name: &str, value: bool| {
            args.iter().any(|(passing, reg)| {
                matches!(passing, Passing::Keyword(keyword) if code.facts.name(*keyword) == name)
                    && matches!(code.maker(code.origin(*reg)), Some(OpKind::Literal(_, Literal::Bool(found))) if *found == value)
            })
        };
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        let usual = |(passing, reg): &(Passing, Reg)| {
            matches!(passing, Passing::Keyword(keyword) if code.facts.name(*keyword) == "allow_partial_load")
                && usually(code, *reg, 8) == Some(true)
        };
        let message = if given("allow_partial_load", true) {
            "partial"
        } else if args.iter().any(usual) {
            "unset"
        } else if code.read_name(*func) == Some("load_state_dict")
            && given("strict", false)
            && !is_used(code.scope, *dst)
            && context.from_patch(context.span(scope, at))
        {
            "unchecked"
        } else {
            continue;
        };
        let span = context.span(scope, at);
        findings.push(Finding::new(rule("partial-checkpoint-load"), message, vec![function.clone()], span, function.clone()));
    }
}

/// The value of a flag where nothing is set: the default of the lookup that it comes from.
fn usually(code: Code<'_>, reg: Reg, depth: u32) -> Option<bool> {
    let deeper = depth.checked_sub(1)?;
    match code.maker(code.origin(reg))? {
        OpKind::Not { src, .. } => usually(code, *src, deeper).map(|value| !value),
        // A test of the flag parts it and joins it again.
        OpKind::Phi(_, inputs) => {
            let mut values = inputs.iter().map(|(src, _)| usually(code, *src, deeper));
            let first = values.next()??;
            values.all(|value| value == Some(first)).then_some(first)
        }
        OpKind::Call { func, args, .. } => {
            let default = match (code.read_name(*func)?, args.as_ref()) {
                ("getattr", [_, _, (Passing::Position, default)]) | ("get", [_, (Passing::Position, default)]) => *default,
                _ => return None,
            };
            match code.maker(code.origin(default))? {
                OpKind::Literal(_, Literal::Bool(value)) => Some(*value),
                _ => None,
            }
        }
        _ => None,
    }
}

/// A handler in a loop that lets the next name have its turn, where a load follows.
fn skipped(
    context: &Context<'_>,
    findings: &mut Vec<Finding>,
    scope: GlobalScope,
    code: Code<'_>,
    attempt: &Try,
    handler: &Handler,
    kind: CondKind,
) {
    let facts = code.scope;
    if handler.raises || !handler.types.iter().any(|name| MISSING.contains(&name.as_str())) {
        return;
    }
    let body = attempt.body.0 as usize..(attempt.body.1 as usize).min(facts.ops.len());
    let looked_up: BTreeSet<Reg> = facts.ops[body.clone()]
        .iter()
        .filter_map(|op| match op.kind {
            // A name that a loop gives, not a fixed one.
            OpKind::LoadItem { dst, key, .. } if code.text(key).is_none() => Some(dst),
            _ => None,
        })
        .collect();
    let Some(cond) = facts.conds.iter().position(|cond| cond.kind == kind).and_then(|at| CondId::try_from(at).ok()) else { return };
    let inside = |cond_of: CondId| context.below(scope, cond_of, cond);
    // A handler that does anything but say so (another source, a list of what is missing, a default) is looked at by other rules.
    let only_says = facts.ops.iter().filter(|op| inside(op.cond)).all(|op| match &op.kind {
        OpKind::Call { func, .. } => code.read_name(*func).is_some_and(|name| {
            matches!(
                name,
                "print"
                    | "debug"
                    | "info"
                    | "warning"
                    | "warn"
                    | "error"
                    | "log"
                    | "print_rank_0"
                    | "log_single_rank"
                    | "warning_once"
                    | "format"
            )
        }),
        OpKind::StoreItem { .. } | OpKind::StoreAttr { .. } | OpKind::Return(_) | OpKind::Raise(_) => false,
        _ => true,
    });
    if looked_up.is_empty() || !only_says {
        return;
    }
    let mut flows = looked_up;
    loop {
        let before = flows.len();
        for op in &facts.ops {
            match &op.kind {
                OpKind::Move(dst, src) | OpKind::Filter(dst, src, _) | OpKind::Unpack { dst, src, .. } if flows.contains(src) => {
                    flows.insert(*dst);
                }
                OpKind::Phi(dst, inputs) if inputs.iter().any(|(src, _)| flows.contains(src)) => {
                    flows.insert(*dst);
                }
                OpKind::LoadAttr { dst, obj, .. } | OpKind::LoadItem { dst, obj, .. } if flows.contains(obj) => {
                    flows.insert(*dst);
                }
                OpKind::Call { dst, func, args, .. } if flows.contains(func) || args.iter().any(|(_, reg)| flows.contains(reg)) => {
                    flows.insert(*dst);
                }
                OpKind::StoreItem { obj, src, .. } if flows.contains(src) => {
                    flows.insert(*obj);
                }
                _ => {}
            }
        }
        if flows.len() == before {
            break;
        }
    }
    let load = facts.ops.iter().enumerate().find_map(|(at, op)| match &op.kind {
        OpKind::Call { func, args, .. } if at >= body.start && args.iter().any(|(_, reg)| flows.contains(reg)) => {
            code.read_name(*func).filter(|name| LOADS.contains(name))
        }
        _ => None,
    });
    let Some(load) = load else { return };
    let function = context.program.qualified(scope);
    let arguments = vec![function.clone(), handler.types.join("', '"), load.to_owned()];
    let span = context.first_line(context.program.span(scope, handler.head));
    findings.push(Finding::new(rule("partial-checkpoint-load"), "skipped", arguments, span, function));
}
