//! RLK302: one callsite, two arithmetic contracts.

use std::collections::{BTreeMap, BTreeSet};

use super::dataflow::Names;
use super::{Context, rule};
use crate::findings::{Finding, Related};
use crate::names::GlobalScope;
use crate::profile::{PathClass, Role};
use crate::routes::{Callsite, Status};
use crate::syntax::{CondId, CondKind, Literal, OpKind, Reg};
use crate::text::Span;
use crate::values::Target;

/// How deep the environment behind a selector is looked for.
const DEPTH: usize = 4;

/// Places where one undecided test parts two contracts.
#[derive(Default)]
struct Switch {
    places: Vec<(Span, GlobalScope, Span, Span)>,
    contracts: BTreeSet<String>,
    variables: BTreeSet<String>,
}

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let names = Names::new(context.program);
    for routes in context.routes {
        let sites: Vec<&Callsite> = routes
            .callsites
            .iter()
            .filter(|site| matches!(site.class, PathClass::Production | PathClass::Reference) && !site.contracts.is_empty())
            .filter(|site| !matches!(site.status, Status::Dead | Status::Untraced))
            .collect();
        let mut by_caller: BTreeMap<GlobalScope, Vec<&Callsite>> = BTreeMap::new();
        for site in &sites {
            by_caller.entry(site.caller).or_default().push(site);
        }
        let mut switches: BTreeMap<String, Switch> = BTreeMap::new();
        for (scope, sites) in by_caller {
            several_targets(context, &sites, findings);
            branches(context, &names, scope, &sites, &mut switches);
        }
        for (selector, mut switch) in switches {
            switch.places.sort();
            let Some((test, scope, one, other)) = switch.places.first().copied() else { continue };
            let contracts = switch.contracts.into_iter().collect::<Vec<_>>().join("', '");
            let variables = if switch.variables.is_empty() {
                "no variable that was found".to_owned()
            } else {
                switch.variables.into_iter().collect::<Vec<_>>().join("', '")
            };
            let symbol = context.program.qualified(scope);
            let arguments = vec![symbol.clone(), contracts, selector, variables, switch.places.len().to_string()];
            let mut finding = Finding::new(rule("contract-switch"), "selector", arguments, context.first_line(test), symbol);
            finding.related.push(Related { span: one, message: "one contract is reached here".to_owned() });
            finding.related.push(Related { span: other, message: "the other is reached here".to_owned() });
            for (test, ..) in switch.places.iter().skip(1) {
                finding.related.push(Related { span: context.first_line(*test), message: "the same selector decides here".to_owned() });
            }
            findings.push(finding);
        }
        sides(context, &sites, findings);
    }
}

/// A call whose callees follow different contracts.
fn several_targets(context: &Context<'_>, sites: &[&Callsite], findings: &mut Vec<Finding>) {
    for site in sites.iter().filter(|site| site.targets.len() > 1 && site.contracts.len() > 1) {
        // Two callees that each may end in either are told apart below, where they part.
        let forwards = context.calls.get(&(site.caller, site.op)).map_or(0, BTreeSet::len);
        if forwards < 2 {
            continue;
        }
        let symbol = context.program.qualified(site.caller);
        let arguments = vec![symbol.clone(), site.contracts.join("', '"), site.targets.join("', '")];
        let mut finding = Finding::new(rule("contract-switch"), "callsite", arguments, context.first_line(site.span), symbol);
        for condition in &site.conditions {
            finding.related.push(Related { span: context.first_line(*condition), message: "nothing decides this condition".to_owned() });
        }
        finding.flow = context.flow(site);
        findings.push(finding);
    }
}

/// Pairs of calls under opposite outcomes of an undecided test that reach different contracts.
fn branches(context: &Context<'_>, names: &Names<'_>, scope: GlobalScope, sites: &[&Callsite], switches: &mut BTreeMap<String, Switch>) {
    let facts = context.program.scope(scope);
    let mut seen: BTreeSet<Reg> = BTreeSet::new();
    for (at, one) in sites.iter().enumerate() {
        for other in &sites[at + 1..] {
            let differ = one.contracts.iter().all(|contract| !other.contracts.contains(contract));
            let conds = (facts.ops[one.op as usize].cond, facts.ops[other.op as usize].cond);
            let Some((cond, reg)) = differ.then(|| parted(context, scope, conds)).flatten() else { continue };
            if !seen.insert(reg) {
                continue;
            }
            let (selector, variables) = selector(context, names, scope, reg);
            let test = context.program.span(scope, facts.conds[cond as usize].range);
            let switch = switches.entry(selector).or_default();
            switch.places.push((test, scope, context.first_line(one.span), context.first_line(other.span)));
            switch.contracts.extend(one.contracts.iter().chain(&other.contracts).cloned());
            switch.variables.extend(variables);
        }
    }
}

/// The undecided test that two conditions take on opposite sides.
fn parted(context: &Context<'_>, scope: GlobalScope, (one, other): (CondId, CondId)) -> Option<(CondId, Reg)> {
    let conds = &context.program.scope(scope).conds;
    let above = |mut at: CondId| {
        let mut out = Vec::new();
        while at != 0 {
            out.push(at);
            at = conds[at as usize].parent;
        }
        out
    };
    let others = above(other);
    for at in above(one) {
        let CondKind::Test(reg, wanted) = conds[at as usize].kind else { continue };
        let opposite = others.iter().any(|at| conds[*at as usize].kind == CondKind::Test(reg, !wanted));
        let copies = context.known_copies(scope);
        if opposite
            && copies.iter().any(|inst| context.engine.is_undecided(*inst, reg, wanted) && context.engine.is_undecided(*inst, reg, !wanted))
        {
            return Some((at, reg));
        }
    }
    None
}

/// What decides a test: the function that is asked, or the test itself; with the undeclared environment variables behind it.
fn selector(context: &Context<'_>, names: &Names<'_>, scope: GlobalScope, reg: Reg) -> (String, BTreeSet<String>) {
    let facts = context.program.scope(scope);
    let mut open = vec![reg];
    let mut seen = BTreeSet::new();
    let mut asked: Vec<GlobalScope> = Vec::new();
    while let Some(reg) = open.pop() {
        if !seen.insert(reg) {
            continue;
        }
        for (at, op) in facts.ops.iter().enumerate() {
            match &op.kind {
                OpKind::Move(dst, src) | OpKind::Filter(dst, src, _) | OpKind::Not { dst, src } if *dst == reg => open.push(*src),
                OpKind::Binary { dst, left, right, .. } if *dst == reg => open.extend([*left, *right]),
                OpKind::Phi(dst, inputs) if *dst == reg => open.extend(inputs.iter().map(|(src, _)| *src)),
                OpKind::Call { dst, .. } if *dst == reg => {
                    let at = u32::try_from(at).unwrap_or(u32::MAX);
                    let targets = context.calls.get(&(scope, at)).into_iter().flatten();
                    asked.extend(targets.filter_map(|target| if let Target::Scope(scope) = target { Some(*scope) } else { None }));
                }
                _ => {}
            }
        }
    }
    let mut variables = BTreeSet::new();
    let mut modules = BTreeSet::new();
    let mut level: Vec<GlobalScope> = if asked.is_empty() { vec![scope] } else { asked.clone() };
    for _ in 0..DEPTH {
        let mut next = Vec::new();
        for scope in level {
            modules.insert(context.program.module_of(scope));
            let last = u32::try_from(context.program.scope(scope).ops.len()).unwrap_or(u32::MAX);
            for (_, targets) in context.calls.range((scope, 0)..(scope, last)) {
                next.extend(targets.iter().filter_map(|target| if let Target::Scope(scope) = target { Some(*scope) } else { None }));
            }
        }
        level = next;
    }
    if asked.is_empty() {
        variables.extend(read_variables(context, names, scope));
    } else {
        // A selector may be frozen when its module is imported.
        for module in modules {
            let count = u32::try_from(context.program.module(module).facts.scopes.len()).unwrap_or(u32::MAX);
            for scope in 0..count {
                variables.extend(read_variables(context, names, context.program.global_scope(module, scope)));
            }
        }
    }
    variables.retain(|name| !context.profile.environment.contains_key(name));
    let name = asked.first().map_or_else(|| context.program.qualified(scope), |scope| context.program.qualified(*scope));
    (name, variables)
}

/// Environment variables that a scope reads by a literal name.
fn read_variables(context: &Context<'_>, names: &Names<'_>, scope: GlobalScope) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for op in &context.program.scope(scope).ops {
        let key = match &op.kind {
            OpKind::Call { func, args, .. } if names.is_one_of(scope, *func, &["os.getenv", "os.environ.get"]) => {
                args.first().map(|(_, reg)| *reg)
            }
            OpKind::LoadItem { obj, key, .. } if names.is_one_of(scope, *obj, &["os.environ"]) => Some(*key),
            _ => None,
        };
        if let Some((module, Literal::Str(name))) = key.and_then(|key| names.literal(scope, key)) {
            out.insert(context.program.module(module).facts.name(name).to_owned());
        }
    }
    out
}

/// Rollout and training that end in different contracts.
fn sides(context: &Context<'_>, sites: &[&Callsite], findings: &mut Vec<Finding>) {
    let role_of = |span: Span| {
        let id = &context.files.get(span.file).source;
        context.sources.iter().find(|source| source.id == **id).map(|source| source.role)
    };
    let mut by_side: BTreeMap<Role, BTreeMap<String, &Callsite>> = BTreeMap::new();
    for site in sites {
        let chain = site.up.iter().map(|hop| hop.span).chain(std::iter::once(site.span));
        let roles: BTreeSet<Role> = chain.filter_map(role_of).filter(|role| matches!(role, Role::Rollout | Role::Training)).collect();
        // A chain through both says nothing about one of them.
        if let [role] = roles.into_iter().collect::<Vec<_>>().as_slice() {
            for contract in &site.contracts {
                by_side.entry(*role).or_default().entry(contract.clone()).or_insert(site);
            }
        }
    }
    let (Some(rollout), Some(training)) = (by_side.get(&Role::Rollout), by_side.get(&Role::Training)) else { return };
    let words = |side: &BTreeMap<String, &Callsite>| side.keys().cloned().collect::<Vec<_>>().join("', '");
    for (contract, site) in rollout.iter().filter(|(contract, _)| !training.contains_key(*contract)) {
        let symbol = context.program.qualified(site.caller);
        let arguments = vec![contract.clone(), words(training)];
        let mut finding = Finding::new(rule("contract-switch"), "sides", arguments, context.first_line(site.span), symbol);
        if let Some(other) = training.values().next() {
            finding.related.push(Related { span: context.first_line(other.span), message: "training calls the family here".to_owned() });
        }
        finding.flow = context.flow(site);
        findings.push(finding);
    }
}
