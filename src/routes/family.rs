//! What belongs to a family and what reaches it.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::names::{GlobalScope, Sym};
use crate::profile::Family;
use crate::syntax::ScopeKind;
use crate::values::{CallEdge, EdgeKind, Engine, Target};

/// Which scopes and external names are of a family or lead to it.
#[derive(Debug, Default)]
pub struct Reach {
    /// Kernels and native symbols.
    pub sinks: FxHashSet<Target>,
    /// Declared fronts.
    pub facades: FxHashSet<GlobalScope>,
    /// Functions from which a sink is reached, with the edge that leads a step nearer (the first in order of place).
    pub towards: FxHashMap<GlobalScope, CallEdge>,
    /// Classes one of whose methods reaches a sink.
    pub classes: FxHashSet<GlobalScope>,
    /// Contract id by dotted-name pattern.
    pub contracts: Vec<(String, String)>,
    /// Strings by which the family is asked for.
    pub keys: Vec<String>,
}

/// Whether a dotted name fits a pattern; `*` stands for any text within one part of the name.
#[must_use]
pub fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => {
            name.len() >= head.len() + tail.len()
                && name.starts_with(head)
                && name.ends_with(tail)
                && !name[head.len()..name.len() - tail.len()].contains('.')
        }
    }
}

impl Reach {
    /// Whether a scope leads to the family or is declared as its front.
    #[must_use]
    pub fn holds(&self, scope: GlobalScope) -> bool {
        self.towards.contains_key(&scope) || self.facades.contains(&scope) || self.sinks.contains(&Target::Scope(scope))
    }

    /// Contract id of a dotted name, if the profile declares one.
    #[must_use]
    pub fn contract(&self, name: &str) -> Option<&str> {
        self.contracts.iter().find(|(pattern, _)| fits(pattern, name)).map(|(_, contract)| contract.as_str())
    }
}

/// Dotted name of a target.
#[must_use]
pub fn target_name(engine: &Engine<'_>, target: Target) -> String {
    match target {
        Target::Scope(scope) | Target::Class(scope) => engine.program.qualified(scope),
        Target::External(name) | Target::Builtin(name) | Target::BuiltinMethod(_, name) => engine.text(name).to_owned(),
    }
}

/// Computes what reaches a family over the engine's edges.
pub(super) fn reach(engine: &Engine<'_>, family: &Family) -> Reach {
    let program = engine.program;
    let mut reach = Reach { contracts: family.contracts.clone(), keys: family.keys.clone(), ..Reach::default() };
    let mut external: FxHashMap<Sym, bool> = FxHashMap::default();
    for at in 0..u32::try_from(program.scope_count()).unwrap_or(0) {
        let scope = GlobalScope(at);
        if program.scope(scope).kind == ScopeKind::Module {
            continue;
        }
        let name = program.qualified(scope);
        if family.lookalikes.iter().any(|pattern| fits(pattern, &name)) {
            continue;
        }
        if family.sinks.iter().any(|pattern| fits(pattern, &name)) {
            reach.sinks.insert(Target::Scope(scope));
        }
        if family.facades.iter().any(|pattern| fits(pattern, &name)) {
            reach.facades.insert(scope);
        }
    }
    // Backwards over the edges, nearest first, so that `towards` leads along a shortest chain.
    let mut callers: BTreeMap<Target, Vec<CallEdge>> = BTreeMap::new();
    for edge in &engine.edges {
        if let Target::External(name) = edge.target {
            let sink = *external.entry(name).or_insert_with(|| family.sinks.iter().any(|pattern| fits(pattern, engine.text(name))));
            if sink {
                reach.sinks.insert(edge.target);
            }
        }
        callers.entry(edge.target).or_default().push(*edge);
    }
    let mut level: Vec<Target> = reach.sinks.iter().copied().collect();
    level.sort_unstable();
    while !level.is_empty() {
        let mut next: Vec<(GlobalScope, CallEdge)> = Vec::new();
        for target in level {
            for edge in callers.get(&target).into_iter().flatten() {
                // A module body that runs something once is not part of a route.
                let caller = super::callgraph::owner(program, engine.scope_of(edge.caller));
                if program.scope(caller).kind != ScopeKind::Module && edge.kind != EdgeKind::Decorator {
                    next.push((caller, *edge));
                }
            }
        }
        next.sort_by_key(|(caller, edge)| (*caller, edge.op, edge.target));
        let mut following = Vec::new();
        for (caller, edge) in next {
            if !reach.towards.contains_key(&caller) && !reach.sinks.contains(&Target::Scope(caller)) {
                reach.towards.insert(caller, edge);
                following.push(Target::Scope(caller));
            }
        }
        level = following;
    }
    let mut classes = FxHashSet::default();
    for scope in reach.towards.keys().copied().collect::<std::collections::BTreeSet<_>>() {
        let parent = program.global_scope(program.module_of(scope), program.scope(scope).parent);
        if program.scope(parent).kind == ScopeKind::Class {
            classes.insert(parent);
        }
    }
    reach.classes = classes;
    reach
}
