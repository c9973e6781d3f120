//! RLK404: a record of a route that is taken at its first execution only.

use std::collections::BTreeSet;

use super::dataflow::is_used;
use super::environment::{Code, definitions};
use super::{Context, rule};
use crate::findings::{Finding, Related};
use crate::names::GlobalScope;
use crate::syntax::{CondKind, Literal, NameId, OpKind, Reg, ScopeKind};

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    for scope in context.scopes() {
        let facts = context.program.scope(scope);
        let stores = facts.ops.iter().any(|op| matches!(op.kind, OpKind::StoreGlobal(..) | OpKind::StoreAttr { .. }));
        if !stores || facts.kind == ScopeKind::Module || !context.on_route(scope) {
            continue;
        }
        let module = context.program.module(context.program.module_of(scope));
        let made = definitions(facts);
        let code = Code { facts: &module.facts, scope: facts, made: &made };
        for (at, op) in facts.ops.iter().enumerate() {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            let spent = match &op.kind {
                // An observer that is called and given up.
                OpKind::Call { dst, func, args, .. } if !args.is_empty() && !is_used(facts, *dst) => {
                    place_of(code, *func).and_then(|place| given_up(code, place, &[Literal::None]))
                }
                // A record that is kept under a latch.
                OpKind::StoreItem { src, .. } | OpKind::StoreAttr { src, .. } if is_record(code, *src) => latch(context, scope, code, at),
                _ => None,
            };
            let record = match &op.kind {
                OpKind::Call { func, args, .. } if spent.is_none() => {
                    let appends = matches!(code.maker(*func), Some(OpKind::LoadAttr { name, .. }) if module.facts.name(*name) == "append");
                    let holds = args.iter().any(|(_, reg)| is_record(code, *reg));
                    if appends && holds { latch(context, scope, code, at) } else { None }
                }
                _ => spent,
            };
            let Some(end) = record else { continue };
            let function = context.program.qualified(scope);
            let span = context.span(scope, at);
            let mut finding = Finding::new(rule("first-execution-record"), "default", vec![function.clone()], span, function);
            let span = context.span(scope, end);
            finding.related = vec![Related { span, message: "after this no execution is recorded".to_owned() }];
            findings.push(finding);
        }
    }
}

/// A name of the module, or an attribute of `self`, that a value is kept under.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Global(NameId),
    Attribute(Reg, NameId),
}

/// What a register was made of, seen through pairs that are taken apart at once.
fn origin(code: Code<'_>, reg: Reg) -> Reg {
    let mut at = code.origin(reg);
    for _ in 0..8 {
        let Some(OpKind::Unpack { src, index, from_end: false, .. }) = code.maker(at) else { break };
        let Some(OpKind::Sequence { items, .. }) = code.maker(code.origin(*src)) else { break };
        let Some((item, false)) = items.get(*index as usize) else { break };
        at = code.origin(*item);
    }
    at
}

fn place_of(code: Code<'_>, reg: Reg) -> Option<Place> {
    match code.maker(origin(code, reg)) {
        Some(OpKind::LoadGlobal(_, name)) => Some(Place::Global(*name)),
        Some(OpKind::LoadAttr { obj, name, .. }) => Some(Place::Attribute(*obj, *name)),
        _ => None,
    }
}

/// The operation of this scope that puts one of some literals under a place.
fn given_up(code: Code<'_>, place: Place, literals: &[Literal]) -> Option<u32> {
    let is_literal = |reg: Reg| match code.maker(origin(code, reg)) {
        Some(OpKind::Literal(_, literal)) => literals.contains(literal),
        _ => false,
    };
    let at = code.scope.ops.iter().position(|op| match (&op.kind, place) {
        (OpKind::StoreGlobal(name, src), Place::Global(wanted)) => *name == wanted && is_literal(*src),
        (OpKind::StoreAttr { obj, name, src }, Place::Attribute(owner, wanted)) => *obj == owner && *name == wanted && is_literal(*src),
        _ => false,
    })?;
    u32::try_from(at).ok()
}

/// A dict that is written in this scope, with a name for at least one of its values.
fn is_record(code: Code<'_>, reg: Reg) -> bool {
    matches!(code.maker(origin(code, reg)), Some(OpKind::Dict { items, .. }) if items.iter().any(|(key, _)| code.text(*key).is_some()))
}

/// The operation that turns a latch, if an operation runs only while the latch is not turned.
fn latch(context: &Context<'_>, scope: GlobalScope, code: Code<'_>, at: u32) -> Option<u32> {
    let facts = context.program.scope(scope);
    let mut above = facts.ops[at as usize].cond;
    let mut seen = BTreeSet::new();
    while above != 0 && seen.insert(above) {
        let cond = facts.conds[above as usize];
        if let CondKind::Test(reg, wanted) = cond.kind {
            let (reg, wanted) = match code.maker(code.origin(reg)) {
                Some(OpKind::Not { src, .. }) => (*src, !wanted),
                _ => (reg, wanted),
            };
            if let Some(place) = place_of(code, reg)
                && let Some(turned) = given_up(code, place, &[Literal::Bool(!wanted)])
            {
                return Some(turned);
            }
        }
        above = cond.parent;
    }
    None
}
