//! RLK313: a cache on a route whose key is the address of a tensor that the entry does not hold.

use std::collections::BTreeSet;

use super::dataflow::{Flow, Names, Spread, method, modules_with};
use super::{Context, rule};
use crate::findings::{Finding, Related};
use crate::names::GlobalScope;
use crate::syntax::{OpKind, Passing, Reg};

/// Methods that give the address of a tensor's memory.
const ADDRESSES: [&str; 3] = ["data_ptr", "untyped_storage", "storage"];

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let names = Names::new(context.program);
    for module in modules_with(context.program, &["data_ptr"]) {
        let count = u32::try_from(context.program.module(module).facts.scopes.len()).unwrap_or(u32::MAX);
        for scope in (0..count).map(|scope| context.program.global_scope(module, scope)) {
            if context.counts(scope) && context.on_route(scope) {
                stores(context, &names, scope, findings);
            }
        }
    }
}

/// Stores of a scope under a key that an address is part of.
fn stores(context: &Context<'_>, names: &Names<'_>, scope: GlobalScope, findings: &mut Vec<Finding>) {
    let facts = context.program.scope(scope);
    let addresses = addresses(names, scope);
    if addresses.is_empty() {
        return;
    }
    for (at, op) in facts.ops.iter().enumerate() {
        let (table, key, value) = match &op.kind {
            OpKind::StoreItem { obj, key, src } => (*obj, *key, *src),
            OpKind::Call { func, args, .. } => match (method(names, scope, *func), args.as_ref()) {
                (Some((table, "setdefault")), [(Passing::Position, key), (Passing::Position, value), ..]) => (table, *key, *value),
                _ => continue,
            },
            _ => continue,
        };
        if !lasts(names, scope, table) {
            continue;
        }
        for (tensor, address) in &addresses {
            let keyed = Flow::from(names, scope, [*address], Spread::Computed, &|_| false).holds(key);
            let derived = Flow::from(names, scope, [*tensor], Spread::Computed, &|_| false).holds(value);
            if keyed && derived && !holds(names, scope, *tensor, value) {
                let symbol = context.program.qualified(scope);
                let at = u32::try_from(at).unwrap_or(u32::MAX);
                let mut finding =
                    Finding::new(rule("address-keyed-cache"), "default", vec![symbol.clone()], context.span(scope, at), symbol);
                let read = names.definitions(scope).get(address).and_then(|ops| ops.first()).copied();
                finding
                    .related
                    .extend(read.map(|op| Related { span: context.span(scope, op), message: "the address is taken here".to_owned() }));
                findings.push(finding);
                break;
            }
        }
    }
}

/// Tensors whose address a scope takes, with the register of the address.
fn addresses(names: &Names<'_>, scope: GlobalScope) -> BTreeSet<(Reg, Reg)> {
    let mut out = BTreeSet::new();
    for op in &names.program.scope(scope).ops {
        let OpKind::Call { dst, func, decorator: false, .. } = &op.kind else { continue };
        let Some((mut owner, "data_ptr")) = method(names, scope, *func) else { continue };
        // `tensor.untyped_storage().data_ptr()` is an address of the same tensor.
        for kind in names.defined_by(scope, owner) {
            if let OpKind::Call { func, .. } = kind
                && let Some((inner, name)) = method(names, scope, *func)
                && ADDRESSES.contains(&name)
            {
                owner = inner;
            }
        }
        out.insert((owner, *dst));
    }
    out
}

/// Whether a table outlives the call: a name of the module, or an attribute.
fn lasts(names: &Names<'_>, scope: GlobalScope, table: Reg) -> bool {
    let mut open = vec![table];
    let mut seen = BTreeSet::new();
    while let Some(reg) = open.pop() {
        if !seen.insert(reg) {
            continue;
        }
        for kind in names.defined_by(scope, reg) {
            match kind {
                OpKind::LoadGlobal(..) | OpKind::LoadAttr { .. } | OpKind::LoadFree(..) => return true,
                OpKind::Move(_, src) | OpKind::Filter(_, src, _) => open.push(*src),
                _ => {}
            }
        }
    }
    false
}

/// Whether a value keeps a tensor alive, or knows when it dies.
fn holds(names: &Names<'_>, scope: GlobalScope, tensor: Reg, value: Reg) -> bool {
    let mut seeds = vec![tensor];
    for op in &names.program.scope(scope).ops {
        if let OpKind::Call { dst, func, args, .. } = &op.kind
            && args.iter().any(|(_, reg)| *reg == tensor)
            && names.of(scope, *func).iter().any(|name| name.starts_with("weakref."))
        {
            seeds.push(*dst);
        }
    }
    // A copy that has other memory is no tensor with this address.
    let copies = |kind: &OpKind| matches!(kind, OpKind::Call { .. });
    Flow::from(names, scope, seeds, Spread::Alias, &copies).holds(value)
}
