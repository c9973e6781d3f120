//! Probes for a native symbol that nothing uses, beside a symbol that something does.

use std::collections::{BTreeMap, BTreeSet};

use crate::findings::{Finding, Related};
use crate::names::GlobalScope;
use crate::profile::{PathClass, Role};
use crate::rules::dataflow::{Names, modules_with};
use crate::rules::{Context, rule};
use crate::syntax::{Literal, OpKind};

pub(super) fn check(context: &Context<'_>, names: &Names<'_>, findings: &mut Vec<Finding>) {
    let program = context.program;
    let mut asked: Vec<(GlobalScope, u32, String, String)> = Vec::new();
    for module in modules_with(program, &["hasattr"]) {
        let home = program.module(module);
        if context.sources[home.source].role != Role::Kernel || (context.class_of)(module) != PathClass::Production {
            continue;
        }
        let count = u32::try_from(home.facts.scopes.len()).unwrap_or(u32::MAX);
        for scope in (0..count).map(|scope| program.global_scope(module, scope)) {
            for (at, op) in program.scope(scope).ops.iter().enumerate() {
                let OpKind::Call { func, args, .. } = &op.kind else { continue };
                let [(_, owner), (_, symbol)] = &args[..] else { continue };
                if !names.is_one_of(scope, *func, &["hasattr"]) {
                    continue;
                }
                let Some(symbol) = names.text(scope, *symbol) else { continue };
                let at = u32::try_from(at).unwrap_or(u32::MAX);
                let native = names.of(scope, *owner).into_iter().find(|name| is_native(context, name));
                asked.extend(native.map(|owner| (scope, at, owner, symbol.to_owned())));
            }
        }
    }
    if asked.is_empty() {
        return;
    }
    let used = used(context, names, &asked.iter().map(|(_, _, owner, _)| owner.as_str()).collect());
    for (scope, at, owner, symbol) in asked {
        let Some(symbols) = used.get(&owner) else { continue };
        if symbols.contains_key(&symbol) {
            continue;
        }
        let similar = symbols
            .iter()
            .filter(|(_, (.., read))| *read)
            .find(|(other, _)| other.ends_with(&format!("_{symbol}")) || other.starts_with(&format!("{symbol}_")));
        let Some((other, (user, op, _))) = similar else { continue };
        let function = program.qualified(scope);
        let arguments = vec![function.clone(), format!("{owner}.{symbol}"), format!("{owner}.{other}")];
        let mut finding = Finding::new(rule("silent-fallback"), "symbol", arguments, context.span(scope, at), function);
        finding.related.push(Related { span: context.span(*user, *op), message: "this symbol is used".to_owned() });
        findings.push(finding);
    }
}

/// Whether a dotted name is an extension module inside a package of the sources.
fn is_native(context: &Context<'_>, name: &str) -> bool {
    let program = context.program;
    let Some((package, _)) = name.rsplit_once('.') else { return false };
    let is_module = |name: &str| program.strings.find(name).is_some_and(|sym| program.find(sym, 0).is_some());
    is_module(package) && !is_module(name) && program.find_scope(name).is_none()
}

/// Symbols by owner, each with a place and whether it is read there as an attribute or stands there as text.
type Used = BTreeMap<String, BTreeMap<String, (GlobalScope, u32, bool)>>;

/// Symbols of the owners that code uses: attributes that are read, and names that are given as text.
fn used(context: &Context<'_>, names: &Names<'_>, owners: &BTreeSet<&str>) -> Used {
    let program = context.program;
    let mut out: Used = BTreeMap::new();
    let last: Vec<&str> = owners.iter().filter_map(|owner| owner.rsplit('.').next()).collect();
    for module in modules_with(program, &last) {
        let home = program.module(module);
        if context.sources[home.source].role != Role::Kernel || (context.class_of)(module) != PathClass::Production {
            continue;
        }
        let count = u32::try_from(home.facts.scopes.len()).unwrap_or(u32::MAX);
        for scope in (0..count).map(|scope| program.global_scope(module, scope)) {
            let ops = &program.scope(scope).ops;
            let probed: BTreeSet<u32> = ops
                .iter()
                .filter_map(|op| match &op.kind {
                    OpKind::Call { func, args, .. } if args.len() == 2 && names.is_one_of(scope, *func, &["hasattr"]) => Some(args[1].1),
                    _ => None,
                })
                .collect();
            for (at, op) in ops.iter().enumerate() {
                let at = u32::try_from(at).unwrap_or(u32::MAX);
                match &op.kind {
                    OpKind::LoadAttr { obj, name, .. } => {
                        for owner in names.of(scope, *obj).into_iter().filter(|name| owners.contains(name.as_str())) {
                            out.entry(owner).or_default().insert(home.facts.name(*name).to_owned(), (scope, at, true));
                        }
                    }
                    // A name in a table or for `getattr` may be looked up anywhere.
                    OpKind::Literal(dst, Literal::Str(text)) if !probed.contains(dst) => {
                        for owner in owners {
                            out.entry((*owner).to_owned())
                                .or_default()
                                .entry(home.facts.name(*text).to_owned())
                                .or_insert((scope, at, false));
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    out
}
