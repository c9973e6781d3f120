//! Lookups and parameters whose default is another implementation.

use std::collections::BTreeSet;

use crate::findings::{Finding, Related};
use crate::names::GlobalScope;
use crate::rules::dataflow::{Names, method};
use crate::rules::{Context, rule};
use crate::syntax::{OpKind, Passing, Reg};
use crate::values::{Object, Target};

pub(super) fn check(context: &Context<'_>, names: &Names<'_>, findings: &mut Vec<Finding>) {
    for scope in context.scopes() {
        for (at, op) in context.program.scope(scope).ops.iter().enumerate() {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            match &op.kind {
                OpKind::Call { func, args, decorator: false, .. } => lookup(context, names, scope, at, *func, args, findings),
                OpKind::Function { scope: inner, defaults, .. } => {
                    let inner = context.program.global_scope(context.program.module_of(scope), *inner);
                    for (param, value) in defaults {
                        parameter(context, names, scope, inner, *param, *value, findings);
                    }
                }
                _ => {}
            }
        }
    }
}

/// `table.get(key, other)` and `getattr(owner, name, other)` where the family is looked up.
fn lookup(
    context: &Context<'_>,
    names: &Names<'_>,
    scope: GlobalScope,
    at: u32,
    func: Reg,
    args: &[(Passing, Reg)],
    findings: &mut Vec<Finding>,
) {
    let (wanted, default) = match method(names, scope, func) {
        Some((table, "get" | "pop")) if args.len() == 2 => (in_table(context, names, scope, table), args[1].1),
        _ if args.len() == 3 && names.is_one_of(scope, func, &["getattr"]) => {
            (members(context, names, scope, args[0].1, args[1].1), args[2].1)
        }
        _ => return,
    };
    if wanted.is_empty() {
        return;
    }
    let others: BTreeSet<String> = implementations(context, names, scope, default).difference(&wanted).cloned().collect();
    if others.is_empty() {
        return;
    }
    let symbol = context.program.qualified(scope);
    let arguments = vec![symbol.clone(), words(&wanted), words(&others)];
    findings.push(Finding::new(rule("silent-fallback"), "default", arguments, context.span(scope, at), symbol));
}

fn words(names: &BTreeSet<String>) -> String {
    names.iter().cloned().collect::<Vec<_>>().join("', '")
}

/// Family members, or the family's key, that a table is asked for.
fn in_table(context: &Context<'_>, names: &Names<'_>, scope: GlobalScope, table: Reg) -> BTreeSet<String> {
    let mut made: BTreeSet<(GlobalScope, u32)> = names.origin(scope, table).into_iter().collect();
    for object in context.glance(scope, table) {
        if let Object::Dict(inst, op) = context.engine.get(object) {
            made.insert((context.engine.scope_of(inst), op));
        }
    }
    let mut out = BTreeSet::new();
    for (home, op) in made {
        let Some(OpKind::Dict { items, .. }) = context.program.scope(home).ops.get(op as usize).map(|op| &op.kind) else { continue };
        for (key, value) in items {
            out.extend(context.glance(home, *value).into_iter().filter_map(|object| context.family_object(object)));
            let Some(key) = names.text(home, *key) else { continue };
            let keys = context.profile.families.iter().flat_map(|family| &family.keys);
            if keys.into_iter().any(|wanted| key == wanted || key.ends_with(&format!(".{wanted}"))) {
                out.insert(key.to_owned());
            }
        }
    }
    out
}

/// Family members under a literal name of an owner.
fn members(context: &Context<'_>, names: &Names<'_>, scope: GlobalScope, owner: Reg, name: Reg) -> BTreeSet<String> {
    let Some(name) = names.text(scope, name) else { return BTreeSet::new() };
    let program = context.program;
    let mut out = BTreeSet::new();
    for object in context.glance(scope, owner) {
        match context.engine.get(object) {
            Object::Module(module) => {
                if let Some(sym) = program.strings.find(name) {
                    out.extend(context.engine.global_objects(module, sym).into_iter().filter_map(|object| context.family_object(object)));
                }
            }
            Object::Class(class, _) => {
                let full = format!("{}.{name}", program.qualified(class));
                if program.find_scope(&full).is_some_and(|scope| context.reaches(Target::Scope(scope))) {
                    out.insert(full);
                }
            }
            _ => {}
        }
    }
    out
}

/// Implementations that a default is: functions and classes of the sources, also in a list of candidates.
fn implementations(context: &Context<'_>, names: &Names<'_>, scope: GlobalScope, default: Reg) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    let mut open = vec![default];
    let mut seen = BTreeSet::new();
    while let Some(reg) = open.pop() {
        if !seen.insert(reg) {
            continue;
        }
        for kind in names.defined_by(scope, reg) {
            match kind {
                OpKind::Move(_, src) | OpKind::Filter(_, src, _) => open.push(*src),
                OpKind::Sequence { items, .. } => open.extend(items.iter().map(|(item, _)| *item)),
                _ => {}
            }
        }
        for object in context.glance(scope, reg) {
            match context.engine.get(object) {
                Object::Function(function, _) => {
                    out.insert(context.program.qualified(function));
                }
                Object::Class(class, _) => {
                    out.insert(context.program.qualified(class));
                }
                Object::Member(class, name) => {
                    out.insert(format!("{}.{}", context.engine.owner_name(class), context.engine.text(name)));
                }
                _ => {}
            }
        }
    }
    out
}

/// A parameter for an implementation that some callers give and others leave to its default.
fn parameter(
    context: &Context<'_>,
    names: &Names<'_>,
    scope: GlobalScope,
    function: GlobalScope,
    param: u32,
    default: Reg,
    findings: &mut Vec<Finding>,
) {
    let reached: BTreeSet<String> = context.glance(scope, default).into_iter().filter_map(|object| context.family_object(object)).collect();
    let facts = context.program.scope(function);
    let Some(own) = facts.params.get(param as usize).filter(|_| !reached.is_empty()) else { return };
    let name = context.program.module(context.program.module_of(function)).facts.name(own.name);
    let mut given: BTreeSet<String> = BTreeSet::new();
    let mut related = Vec::new();
    for ((caller, at), targets) in &context.calls {
        if !targets.contains(&Target::Scope(function)) {
            continue;
        }
        let OpKind::Call { args, .. } = &context.program.scope(*caller).ops[*at as usize].kind else { continue };
        let module = &context.program.module(context.program.module_of(*caller)).facts;
        let passed = args.iter().enumerate().find_map(|(place, (passing, reg))| match passing {
            Passing::Keyword(keyword) if module.name(*keyword) == name => Some(Some(*reg)),
            Passing::Position if place == param as usize => Some(Some(*reg)),
            // What an unpacked argument binds is not known.
            Passing::Star | Passing::DoubleStar => Some(None),
            _ => None,
        });
        match passed {
            None => related.push(Related { span: context.span(*caller, *at), message: "this call leaves it to the default".to_owned() }),
            Some(None) => {}
            Some(Some(reg)) => {
                given.extend(context.glance(*caller, reg).into_iter().filter_map(|object| context.family_object(object)));
            }
        }
    }
    let lost: BTreeSet<String> = given.difference(&reached).cloned().collect();
    if lost.is_empty() || related.is_empty() {
        return;
    }
    let place = names.definitions(scope).get(&default).and_then(|ops| ops.first()).copied();
    let inside = place.filter(|op| {
        let range = context.program.scope(scope).ops[*op as usize].range;
        range.0 >= facts.range.0 && range.1 <= facts.range.1
    });
    let span = match inside {
        Some(op) => context.span(scope, op),
        None => context.first_line(context.program.span(function, facts.name_range)),
    };
    let symbol = context.program.qualified(function);
    let arguments = vec![symbol.clone(), name.to_owned(), words(&reached), words(&lost)];
    let mut finding = Finding::new(rule("silent-fallback"), "parameter", arguments, span, symbol);
    finding.related = related;
    findings.push(finding);
}
