//! Regions: which callsite serves which semantic region, on which side, in which phases.
//!
//! In: the engine at its fixpoint, the routes of every family, the regions of the profile. Out: rows per region, and every production callsite either
//! assigned or listed with the reason why not. From a callsite the callers are followed upwards; on each path the nearest function that a region names decides. Refused:
//! nothing. Functions that several regions share serve all of them: names cannot tell them apart.

use std::collections::{BTreeMap, BTreeSet};

use super::{Assignment, Cited, Place, RegionRoute, RegionRow, RegionSymbol, Serves, Unassigned};
use crate::names::{GlobalScope, ModuleId};
use crate::profile::workload::{Phase, Region, Side, Workload};
use crate::profile::{Family, Known, PathClass, Profile};
use crate::routes::{Callsite, CallsiteKind, Routes, fits};
use crate::syntax::{Literal, OpKind, ScopeKind};
use crate::text::Span;
use crate::values::{EdgeKind, Engine, Target};

/// What is read.
pub struct Input<'a> {
    /// The engine.
    pub engine: &'a Engine<'a>,
    /// Routes per family.
    pub routes: &'a [Routes],
    /// The profile.
    pub profile: &'a Profile,
    /// Class of a module.
    pub class_of: &'a dyn Fn(ModuleId) -> PathClass,
    /// Places.
    pub place: &'a dyn Fn(Span) -> Place,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Assigned {
    /// Regions in declared order.
    pub regions: Vec<RegionRow>,
    /// Assigned callsites in order of place.
    pub assignments: Vec<Assignment>,
    /// The others.
    pub unassigned: Vec<Unassigned>,
}

/// A region's symbol with its region.
#[derive(Clone, Copy)]
struct Named<'p> {
    region: &'p Region,
    at: usize,
}

struct Callers {
    /// Functions that call a function, by the edge's kind.
    up: BTreeMap<GlobalScope, BTreeSet<GlobalScope>>,
}

fn callers(engine: &Engine<'_>) -> Callers {
    let mut up: BTreeMap<GlobalScope, BTreeSet<GlobalScope>> = BTreeMap::new();
    for edge in &engine.edges {
        let Target::Scope(target) = edge.target else { continue };
        let caller = crate::routes::callgraph::owner(engine.program, engine.scope_of(edge.caller));
        if edge.kind == EdgeKind::Decorator || caller == target {
            continue;
        }
        up.entry(target).or_default().insert(caller);
    }
    Callers { up }
}

/// Symbols that fit a dotted name.
fn named<'p>(workload: &'p Workload, name: &str) -> Vec<Named<'p>> {
    let mut out = Vec::new();
    for region in &workload.regions {
        for (at, symbol) in region.symbols.iter().enumerate() {
            if fits(&symbol.name, name) || name.strip_prefix(symbol.name.as_str()).is_some_and(|rest| rest.starts_with('.')) {
                out.push(Named { region, at });
            }
        }
    }
    out
}

/// Nearest symbols above a callsite, on every path.
fn boundary<'p>(input: &'p Input<'_>, callers: &Callers, callsite: &Callsite) -> Vec<Named<'p>> {
    let workload = &input.profile.workload;
    let direct: Vec<Named<'_>> = callsite.targets.iter().flat_map(|target| named(workload, target)).collect();
    if !direct.is_empty() {
        return direct;
    }
    let program = input.engine.program;
    let mut out: Vec<Named<'_>> = Vec::new();
    let mut seen = BTreeSet::from([callsite.caller]);
    let mut open = vec![callsite.caller];
    while let Some(scope) = open.pop() {
        let found = named(workload, &program.qualified(scope));
        if !found.is_empty() {
            for entry in found {
                if !out.iter().any(|known| std::ptr::eq(known.region, entry.region) && known.at == entry.at) {
                    out.push(entry);
                }
            }
            continue;
        }
        for caller in callers.up.get(&scope).into_iter().flatten() {
            if seen.insert(*caller) {
                open.push(*caller);
            }
        }
    }
    let place = |entry: &Named<'_>| workload.regions.iter().position(|region| std::ptr::eq(region, entry.region)).unwrap_or(0);
    out.sort_by_key(|entry| (place(entry), entry.at));
    out
}

/// Phases of a symbol that a callsite runs in.
fn phases(workload: &Workload, callsite: &Callsite, caller: &str, entry: Named<'_>) -> Vec<String> {
    let symbol = &entry.region.symbols[entry.at];
    let declared: Vec<&Phase> =
        symbol.phases.iter().filter_map(|id| workload.phases.iter().find(|phase| phase.id == *id && phase.side == symbol.side)).collect();
    if callsite.kind == CallsiteKind::AutogradApply {
        return declared.iter().map(|phase| phase.id.clone()).collect();
    }
    let mut names: Vec<&str> = vec![caller];
    names.extend(callsite.targets.iter().map(String::as_str));
    names.extend(callsite.down.iter().flat_map(|hop| [hop.from.as_str(), hop.to.as_str()]));
    let through = |phase: &Phase| phase.through.iter().any(|pattern| names.iter().any(|name| fits(pattern, name)));
    let special: Vec<&&Phase> = declared.iter().filter(|phase| through(phase)).collect();
    if special.is_empty() {
        declared.iter().filter(|phase| phase.through.is_empty()).map(|phase| phase.id.clone()).collect()
    } else {
        special.iter().map(|phase| phase.id.clone()).collect()
    }
}

/// Whether a function is part of the family: its front, or code that carries a contract.
fn inside(family: &Family, name: &str) -> bool {
    let prefix =
        |pattern: &str| pattern.strip_suffix(".*").is_some_and(|head| name.strip_prefix(head).is_some_and(|rest| rest.starts_with('.')));
    family
        .facades
        .iter()
        .any(|pattern| fits(pattern, name) || name.strip_prefix(pattern.as_str()).is_some_and(|rest| rest.starts_with('.')))
        || family.contracts.iter().any(|(pattern, _)| fits(pattern, name) || prefix(pattern))
}

/// Assigns every callsite of every family.
#[must_use]
pub fn assign(input: &Input<'_>) -> Assigned {
    let program = input.engine.program;
    let workload = &input.profile.workload;
    let callers = callers(input.engine);
    let shared = Shared { reports: reports(input), requested: requested(input) };
    let mut out = Assigned::default();
    let mut rows: Vec<RegionRow> = workload.regions.iter().map(|region| region_row(input, region)).collect();
    for (routes, family) in input.routes.iter().zip(&input.profile.families) {
        for callsite in &routes.callsites {
            let caller = program.qualified(callsite.caller);
            let at = (input.place)(callsite.span);
            if !matches!(callsite.class, PathClass::Production | PathClass::Reference) {
                let reason = format!("{} code does not run in a job", callsite.class.word());
                out.unassigned.push(Unassigned { at, caller, class: callsite.class.word().to_owned(), reason });
                continue;
            }
            let found = boundary(input, &callers, callsite);
            let mut serves: Vec<Serves> = Vec::new();
            for entry in &found {
                let symbol = &entry.region.symbols[entry.at];
                for phase in phases(workload, callsite, &caller, *entry) {
                    let side = super::shapes::side(symbol.side);
                    serves.push(Serves { region: entry.region.id.clone(), side, phase, by: symbol.name.clone() });
                }
            }
            serves.sort();
            serves.dedup_by(|a, b| (&a.region, a.side, &a.phase) == (&b.region, b.side, &b.phase));
            if serves.is_empty() {
                let reason = reason(input, callsite, &caller, found.is_empty());
                out.unassigned.push(Unassigned { at, caller, class: callsite.class.word().to_owned(), reason });
                continue;
            }
            for served in &serves {
                if let Some(row) = rows.iter_mut().find(|row| row.id == served.region) {
                    route(input, row, served, callsite, &caller, family, &shared);
                }
            }
            out.assignments.push(Assignment { at, caller, serves, status: callsite.status.word().to_owned() });
        }
    }
    for row in &mut rows {
        let order = |phase: &str, side: super::Side| {
            workload.phases.iter().position(|known| known.id == phase && super::shapes::side(known.side) == side).unwrap_or(usize::MAX)
        };
        row.routes.sort_by_key(|route| (route.side, order(&route.phase, route.side)));
    }
    out.regions = rows;
    out
}

fn reason(input: &Input<'_>, callsite: &Callsite, caller: &str, nameless: bool) -> String {
    if !nameless {
        return "a region names its caller, in phases that this call does not run in".to_owned();
    }
    let family = input.profile.families.iter().any(|family| inside(family, caller));
    let called = callsite.up.iter().any(|hop| hop.to == caller) || !callsite.up.is_empty();
    match (family, called) {
        (true, _) => "it is inside the family, and no path from a region leads to it".to_owned(),
        (false, true) => "no region names a function on a path to it".to_owned(),
        (false, false) => "nothing in the sources calls its function, and no region names it".to_owned(),
    }
}

fn region_row(input: &Input<'_>, region: &Region) -> RegionRow {
    let program = input.engine.program;
    let symbols = region.symbols.iter().map(|symbol| {
        let mut found: Vec<Place> = Vec::new();
        if symbol.name.contains('*') {
            for at in 0..u32::try_from(program.scope_count()).unwrap_or(0) {
                let scope = GlobalScope(at);
                if program.scope(scope).kind != ScopeKind::Module && fits(&symbol.name, &program.qualified(scope)) {
                    found.push((input.place)(program.span(scope, program.scope(scope).name_range)));
                }
            }
        } else if let Some(scope) = program.find_scope(&symbol.name) {
            found.push((input.place)(program.span(scope, program.scope(scope).name_range)));
        }
        RegionSymbol {
            name: symbol.name.clone(),
            side: super::shapes::side(symbol.side),
            phases: symbol.phases.clone(),
            found,
            at: (input.place)(symbol.span),
        }
    });
    RegionRow {
        id: region.id.clone(),
        neighbour: region.layer.is_none(),
        symbols: symbols.collect(),
        routes: Vec::new(),
        at: (input.place)(region.span),
    }
}

fn add(list: &mut Vec<Cited<String>>, value: &str, at: Place) {
    match list.iter_mut().find(|known| known.value == value) {
        Some(known) => {
            if !known.at.contains(&at) {
                known.at.push(at);
            }
        }
        None => list.push(Cited { value: value.to_owned(), at: vec![at] }),
    }
}

/// Adds a callsite to the row of one side and phase.
fn route(input: &Input<'_>, row: &mut RegionRow, served: &Serves, callsite: &Callsite, caller: &str, family: &Family, shared: &Shared) {
    let place = |span: Span| (input.place)(span);
    if !row.routes.iter().any(|route| route.side == served.side && route.phase == served.phase) {
        row.routes.push(RegionRoute {
            side: served.side,
            phase: served.phase.clone(),
            callsites: Vec::new(),
            requested: shared.requested.clone(),
            observed: Vec::new(),
            contracts: Vec::new(),
            forward_owner: Vec::new(),
            backward_owner: Vec::new(),
            graph_boundary: Vec::new(),
            provenance: Vec::new(),
        });
    }
    let Some(route) = row.routes.iter_mut().find(|route| route.side == served.side && route.phase == served.phase) else { return };
    for kernel in &callsite.kernels {
        if !route.observed.contains(kernel) {
            route.observed.push(kernel.clone());
            route.observed.sort();
        }
    }
    for contract in &callsite.contracts {
        if !route.contracts.contains(contract) {
            route.contracts.push(contract.clone());
            route.contracts.sort();
        }
    }
    let at = place(callsite.span);
    if let Some(backward) = &callsite.backward {
        add(&mut route.backward_owner, backward, at.clone());
    }
    for hop in callsite.up.iter().chain(&callsite.down).filter(|hop| hop.kind == EdgeKind::CustomOp.word()) {
        add(&mut route.graph_boundary, &hop.to, place(hop.span));
    }
    let mut names: BTreeSet<&str> = BTreeSet::from([caller]);
    names.extend(callsite.up.iter().chain(&callsite.down).flat_map(|hop| [hop.from.as_str(), hop.to.as_str()]));
    for (from, name, at) in &shared.reports {
        if names.contains(from.as_str()) {
            add(&mut route.provenance, name, at.clone());
        }
    }
    // The nearest function outside the family owns the call; calls inside the family are shared by all regions.
    if !inside(family, caller) && !callsite.kernels.is_empty() {
        if !route.callsites.contains(&at) {
            route.callsites.push(at.clone());
        }
        add(&mut route.forward_owner, caller, at);
    }
}

/// What does not depend on a callsite.
struct Shared {
    /// Caller, function that reports what ran, and the call.
    reports: BTreeSet<(String, String, Place)>,
    requested: Vec<Cited<String>>,
}

fn reports(input: &Input<'_>) -> BTreeSet<(String, String, Place)> {
    let mut out = BTreeSet::new();
    let Some(evaluated) = &input.profile.workload.evaluated else { return out };
    let engine = input.engine;
    let mut fit: BTreeMap<GlobalScope, Option<String>> = BTreeMap::new();
    for edge in &engine.edges {
        let Target::Scope(target) = edge.target else { continue };
        let name = fit.entry(target).or_insert_with(|| {
            let name = engine.program.qualified(target);
            evaluated.provenance.iter().any(|pattern| fits(pattern, &name)).then_some(name)
        });
        if let Some(name) = name {
            let scope = engine.scope_of(edge.caller);
            let from = engine.program.qualified(crate::routes::callgraph::owner(engine.program, scope));
            let range = engine.program.scope(scope).ops[edge.op as usize].range;
            out.insert((from, name.clone(), (input.place)(engine.program.span(scope, range))));
        }
    }
    out
}

/// The switch that asks for an implementation, with the lines that read it.
fn requested(input: &Input<'_>) -> Vec<Cited<String>> {
    let Some(variable) = input.profile.workload.evaluated.as_ref().and_then(|evaluated| evaluated.switch.as_ref()) else {
        return Vec::new();
    };
    let value = match input.profile.environment.get(variable) {
        Some(Known::Str(text)) => format!("{variable}={text}"),
        Some(Known::None) => format!("{variable} is not set"),
        _ => format!("{variable} is not declared"),
    };
    let program = input.engine.program;
    let mut at = Vec::new();
    for id in program.module_ids() {
        let module = program.module(id);
        if !matches!((input.class_of)(id), PathClass::Production) || !module.facts.names.iter().any(|name| name == variable) {
            continue;
        }
        for scope in &module.facts.scopes {
            for op in &scope.ops {
                if matches!(op.kind, OpKind::Literal(_, Literal::Str(text)) if module.facts.name(text) == variable) {
                    at.push((input.place)(Span::new(module.file, op.range.0, op.range.1)));
                }
            }
        }
    }
    at.sort();
    at.dedup();
    vec![Cited { value, at }]
}

/// Sides on which a region has a symbol.
#[must_use]
pub fn sides(region: &Region) -> Vec<Side> {
    let mut out: Vec<Side> = region.symbols.iter().map(|symbol| symbol.side).collect();
    out.sort_unstable();
    out.dedup();
    out
}
