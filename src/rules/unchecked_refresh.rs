//! RLK314: a function that refreshes derived weights counts what it refreshed, and its caller drops the count.

use std::collections::BTreeSet;

use super::dataflow::{Names, destination, is_used};
use super::{Context, rule};
use crate::findings::{Finding, Related};
use crate::names::GlobalScope;
use crate::profile::Role;
use crate::syntax::{Literal, OpKind, Operator, Reg};
use crate::values::Target;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let names = Names::new(context.program);
    for ((caller, at), targets) in &context.calls {
        let source = context.program.module(context.program.module_of(*caller)).source;
        if context.sources[source].role != Role::Kernel || !context.counts(*caller) {
            continue;
        }
        let OpKind::Call { dst, decorator: false, .. } = context.program.scope(*caller).ops[*at as usize].kind else { continue };
        if is_used(context.program.scope(*caller), dst) {
            continue;
        }
        for target in targets {
            let Target::Scope(callee) = target else { continue };
            let Some(counted) = counts_refreshed(context, &names, *callee) else { continue };
            let symbol = context.program.qualified(*caller);
            let arguments = vec![symbol.clone(), context.program.qualified(*callee)];
            let mut finding = Finding::new(rule("unchecked-refresh"), "default", arguments, context.span(*caller, *at), symbol);
            finding
                .related
                .push(Related { span: context.span(*callee, counted), message: "what was refreshed is counted here".to_owned() });
            findings.push(finding);
            break;
        }
    }
}

/// The addition of one, if a function gives a number that it raises by one wherever it makes something of the family anew.
fn counts_refreshed(context: &Context<'_>, names: &Names<'_>, callee: GlobalScope) -> Option<u32> {
    let facts = context.program.scope(callee);
    let last = u32::try_from(facts.ops.len()).unwrap_or(u32::MAX);
    let touches = (0..last).any(|op| !context.family_calls(callee, op).is_empty())
        || context.calls.range((callee, 0)..=(callee, u32::MAX)).any(|(_, targets)| targets.iter().any(|target| context.reaches(*target)));
    if !touches {
        return None;
    }
    let mut given: BTreeSet<Reg> = BTreeSet::new();
    let mut open: Vec<Reg> = facts.ops.iter().filter_map(|op| if let OpKind::Return(src) = op.kind { Some(src) } else { None }).collect();
    let mut counted = None;
    let mut from_zero = false;
    while let Some(reg) = open.pop() {
        if !given.insert(reg) {
            continue;
        }
        for (at, op) in facts.ops.iter().enumerate().filter(|(_, op)| destination(&op.kind) == Some(reg)) {
            match &op.kind {
                OpKind::Move(_, src) | OpKind::Filter(_, src, _) => open.push(*src),
                OpKind::Phi(_, inputs) => open.extend(inputs.iter().map(|(src, _)| *src)),
                OpKind::Literal(_, Literal::Int(0)) => from_zero = true,
                OpKind::Binary { op: Operator::Add, left, right, .. } => {
                    let one = |reg: Reg| matches!(names.literal(callee, reg), Some((_, Literal::Int(1))));
                    if one(*right) {
                        counted = counted.or(u32::try_from(at).ok());
                        open.push(*left);
                    }
                }
                _ => {}
            }
        }
    }
    counted.filter(|_| from_zero)
}
