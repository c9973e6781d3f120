//! RLK201: a call that may reach the family and whose callee stays unknown.

use std::collections::{BTreeMap, BTreeSet};

use super::{Context, rule};
use crate::findings::Finding;
use crate::names::GlobalScope;
use crate::profile::PathClass;
use crate::syntax::{OpKind, Reg, ScopeKind};
use crate::values::{Object, Reason, Target};

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let names = family_names(context);
    let mut unknown: BTreeMap<(GlobalScope, u32), Reason> = BTreeMap::new();
    for unresolved in context.engine.unresolved.iter().copied().chain(context.engine.calls_of_nothing()) {
        let scope = context.engine.scope_of(unresolved.caller);
        if matches!((context.class_of)(context.program.module_of(scope)), PathClass::Production | PathClass::Reference) {
            unknown.entry((scope, unresolved.op)).or_insert(unresolved.reason);
        }
    }
    for ((scope, op), reason) in unknown {
        let OpKind::Call { func, .. } = context.program.scope(scope).ops[op as usize].kind else { continue };
        let traced = !context.family_calls(scope, op).is_empty();
        if traced || !may_be_family(context, scope, func, &names) {
            continue;
        }
        let caller = context.program.qualified(scope);
        let arguments = vec![caller.clone(), reason.words().to_owned()];
        findings.push(Finding::new(rule("untraced-callsite"), "default", arguments, context.span(scope, op), caller));
    }
}

/// Names under which the family is asked for: keys, fronts, and module-level functions that reach it.
fn family_names(context: &Context<'_>) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for family in &context.profile.families {
        names.extend(family.keys.iter().cloned());
        names.extend(family.facades.iter().filter_map(|name| name.rsplit('.').next()).map(|name| name.trim_end_matches('*').to_owned()));
    }
    for routes in context.routes {
        // A set: the order of the map does not matter.
        names.extend(routes.reach.towards.keys().filter_map(|scope| {
            let facts = context.program.scope(*scope);
            let module = context.program.module_of(*scope);
            let top_level = facts.kind == ScopeKind::Function && facts.parent == 0;
            top_level.then(|| context.program.module(module).facts.name(facts.name).to_owned())
        }));
    }
    // Methods whose name no function outside the family has.
    let holds = |scope: GlobalScope| context.routes.iter().any(|routes| routes.reach.holds(scope));
    let mut methods: BTreeMap<&str, bool> = BTreeMap::new();
    for scope in (0..u32::try_from(context.program.scope_count()).unwrap_or(0)).map(GlobalScope) {
        let (module, facts) = (context.program.module_of(scope), context.program.scope(scope));
        if facts.kind == ScopeKind::Function {
            let parent = context.program.scope(context.program.global_scope(module, facts.parent));
            let method = parent.kind == ScopeKind::Class && holds(scope);
            let name = context.program.module(module).facts.name(facts.name);
            methods.entry(name).and_modify(|all| *all &= method).or_insert(method);
        }
    }
    names.extend(methods.into_iter().filter(|(name, all)| *all && !name.starts_with('_')).map(|(name, _)| name.to_owned()));
    names.retain(|name| name.len() > 3);
    names
}

/// Whether an unknown callee is an attribute or parameter with a name of the family, or a computed attribute of something that holds some.
fn may_be_family(context: &Context<'_>, scope: GlobalScope, func: Reg, names: &BTreeSet<String>) -> bool {
    let program = context.program;
    let module = program.module(program.module_of(scope));
    let facts = program.scope(scope);
    let mut open = vec![func];
    let mut seen = BTreeSet::new();
    while let Some(reg) = open.pop() {
        if !seen.insert(reg) {
            continue;
        }
        if facts.params.iter().any(|param| param.reg == reg && names.contains(module.facts.name(param.name))) {
            return true;
        }
        for (at, op) in facts.ops.iter().enumerate() {
            match &op.kind {
                OpKind::Move(dst, src) | OpKind::Filter(dst, src, _) if *dst == reg => open.push(*src),
                OpKind::Phi(dst, inputs) if *dst == reg => open.extend(inputs.iter().map(|(src, _)| *src)),
                OpKind::LoadAttr { dst, name, .. } if *dst == reg && names.contains(module.facts.name(*name)) => return true,
                OpKind::Call { dst, args, .. } if *dst == reg => {
                    let at = u32::try_from(at).unwrap_or(u32::MAX);
                    let fetches = context.calls.get(&(scope, at)).is_some_and(|targets| {
                        targets.iter().any(|target| matches!(target, Target::Builtin(name) if context.engine.text(*name) == "getattr"))
                    });
                    if fetches && args.first().is_some_and(|(_, owner)| holds_family(context, scope, *owner)) {
                        return true;
                    }
                }
                _ => {}
            }
        }
    }
    false
}

fn holds_family(context: &Context<'_>, scope: GlobalScope, owner: Reg) -> bool {
    context.glance(scope, owner).into_iter().any(|object| match context.engine.get(object) {
        Object::Module(module) => {
            let mut names = context.program.module(module).bound.iter();
            names.any(|name| context.engine.global_objects(module, *name).into_iter().any(|object| context.family_object(object).is_some()))
        }
        Object::Class(class, _) => context.reaches(Target::Class(class)),
        Object::Instance(class, _) => context.family_object(class).is_some(),
        _ => false,
    })
}
