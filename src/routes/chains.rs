//! Chains: from an entry down to a callsite, and from a callsite down to its kernels.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::FxHashMap;

use super::callsites::Callsite;
use super::family::{Reach, target_name};
use super::op_span;
use crate::names::GlobalScope;
use crate::syntax::ScopeKind;
use crate::text::Span;
use crate::values::{CallEdge, Engine, Target};

/// One step of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The call.
    pub span: Span,
    /// Dotted name of the function it stands in.
    pub from: String,
    /// Dotted name of what it reaches.
    pub to: String,
    /// Word for the kind of the edge.
    pub kind: &'static str,
}

fn hop(engine: &Engine<'_>, edge: &CallEdge) -> Hop {
    let program = engine.program;
    let scope = engine.scope_of(edge.caller);
    Hop {
        span: op_span(program, scope, edge.op),
        from: program.qualified(super::callgraph::owner(program, scope)),
        to: target_name(engine, edge.target),
        kind: edge.kind.word(),
    }
}

/// Fills the chains of all callsites.
pub(super) fn attach(engine: &Engine<'_>, reach: &Reach, callsites: &mut [Callsite]) {
    let program = engine.program;
    let mut edges = engine.edges.clone();
    edges.sort_by_key(|edge| (engine.scope_of(edge.caller), edge.op, edge.target, edge.kind, edge.caller));
    let mut outgoing: FxHashMap<GlobalScope, Vec<CallEdge>> = FxHashMap::default();
    let mut incoming: FxHashMap<GlobalScope, Vec<CallEdge>> = FxHashMap::default();
    for edge in &edges {
        let caller = super::callgraph::owner(program, engine.scope_of(edge.caller));
        let held = match edge.target {
            Target::Scope(scope) => reach.holds(scope),
            target => reach.sinks.contains(&target),
        };
        if held {
            outgoing.entry(caller).or_default().push(*edge);
        }
        if let Target::Scope(scope) = edge.target {
            incoming.entry(scope).or_default().push(*edge);
        }
    }
    for callsite in callsites {
        let starts: Vec<CallEdge> = edges
            .iter()
            .filter(|edge| engine.scope_of(edge.caller) == callsite.caller && edge.op == callsite.op)
            .filter(|edge| match edge.target {
                Target::Scope(scope) => reach.holds(scope),
                target => reach.sinks.contains(&target),
            })
            .copied()
            .collect();
        let (down, kernels) = descend(engine, reach, &outgoing, &starts);
        callsite.contracts =
            kernels.iter().filter_map(|kernel| reach.contract(kernel)).map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect();
        callsite.down = down;
        callsite.kernels = kernels.into_iter().collect();
        callsite.up = climb(engine, &incoming, callsite.caller);
    }
}

/// Every kernel below some edges, and a shortest chain to the first of them.
fn descend(
    engine: &Engine<'_>,
    reach: &Reach,
    outgoing: &FxHashMap<GlobalScope, Vec<CallEdge>>,
    starts: &[CallEdge],
) -> (Vec<Hop>, BTreeSet<String>) {
    let mut kernels = BTreeSet::new();
    let mut first: Option<CallEdge> = None;
    let mut before: BTreeMap<CallEdge, CallEdge> = BTreeMap::new();
    let mut seen: BTreeSet<Target> = BTreeSet::new();
    let mut queue: VecDeque<CallEdge> = starts.iter().copied().collect();
    while let Some(edge) = queue.pop_front() {
        if !seen.insert(edge.target) {
            continue;
        }
        if reach.sinks.contains(&edge.target) {
            kernels.insert(target_name(engine, edge.target));
            first.get_or_insert(edge);
            continue;
        }
        if let Target::Scope(scope) = edge.target {
            for next in outgoing.get(&scope).into_iter().flatten() {
                before.entry(*next).or_insert(edge);
                queue.push_back(*next);
            }
        }
    }
    let mut chain = Vec::new();
    let mut at = first;
    while let Some(edge) = at {
        chain.push(hop(engine, &edge));
        if chain.len() > 64 || starts.contains(&edge) {
            break;
        }
        at = before.get(&edge).copied();
    }
    chain.reverse();
    (chain, kernels)
}

/// A shortest chain from something that nothing in the sources calls, or a module body, down to a function.
fn climb(engine: &Engine<'_>, incoming: &FxHashMap<GlobalScope, Vec<CallEdge>>, function: GlobalScope) -> Vec<Hop> {
    let program = engine.program;
    let mut after: BTreeMap<GlobalScope, CallEdge> = BTreeMap::new();
    let mut seen: BTreeSet<GlobalScope> = BTreeSet::from([function]);
    let mut queue = VecDeque::from([function]);
    let mut top = function;
    while let Some(scope) = queue.pop_front() {
        top = scope;
        let callers = incoming.get(&scope).map_or(&[] as &[CallEdge], Vec::as_slice);
        let mut any = false;
        for edge in callers {
            let caller = super::callgraph::owner(program, engine.scope_of(edge.caller));
            if program.scope(caller).kind == ScopeKind::Module && edge.kind == crate::values::EdgeKind::Decorator {
                continue;
            }
            any = true;
            if seen.insert(caller) {
                after.insert(caller, *edge);
                queue.push_back(caller);
            }
        }
        if !any {
            break;
        }
    }
    let mut chain = Vec::new();
    let mut at = top;
    while at != function {
        let Some(edge) = after.get(&at) else { break };
        chain.push(hop(engine, edge));
        let Target::Scope(next) = edge.target else { break };
        at = next;
    }
    chain
}
