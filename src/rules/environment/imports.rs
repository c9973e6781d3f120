//! Which modules have been imported by the time something runs.
//!
//! In: import operations. Out: modules. An import that stands under a condition counts: the question is what may have run.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Context;
use crate::names::{GlobalScope, ModuleId};
use crate::syntax::{OpKind, ScopeKind};

/// Modules that may have been imported when an operation runs: those that its module imports, before the operation if that stands in the module's
/// body, those that its function imports before it, and what all of these import.
pub(in super::super) fn imported_before(context: &Context<'_>, scope: GlobalScope, op: u32) -> BTreeSet<ModuleId> {
    let home = context.program.module_of(scope);
    let facts = &context.program.module(home).facts;
    let in_body = context.program.scope(scope).kind == ScopeKind::Module;
    let mut open: Vec<ModuleId> = Vec::new();
    let mut take = |local: usize, until: usize| {
        for op in facts.scopes.get(local).into_iter().flat_map(|scope| &scope.ops).take(until) {
            open.extend(imports(context, home, &op.kind));
        }
    };
    take(0, if in_body { op as usize } else { usize::MAX });
    if !in_body {
        take((scope.0 - context.program.module(home).first_scope) as usize, op as usize);
    }
    closure(context, open, false)
}

/// Modules that the code of a module can use: itself, those that it imports anywhere, and so on.
pub(in super::super) fn usable_from(context: &Context<'_>, module: ModuleId) -> BTreeSet<ModuleId> {
    closure(context, vec![module], true)
}

/// Modules that only branches which the profile rules out import, directly or through modules of which that is true. A module that nothing imports is
/// not among them.
pub(in super::super) fn ruled_out(context: &Context<'_>) -> BTreeSet<ModuleId> {
    // For each imported module: modules that import it where the import runs.
    let mut importers: BTreeMap<ModuleId, BTreeSet<ModuleId>> = BTreeMap::new();
    for scope in context.scopes() {
        let home = context.program.module_of(scope);
        for (at, op) in context.program.scope(scope).ops.iter().enumerate() {
            if !matches!(op.kind, OpKind::Import { .. } | OpKind::ImportFrom { .. } | OpKind::ImportStar { .. }) {
                continue;
            }
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            let runs = context.engine.copies_of(scope).iter().any(|inst| context.engine.runs(*inst, at));
            for module in imports(context, home, &op.kind).into_iter().filter(|module| *module != home) {
                let known = importers.entry(module).or_default();
                if runs {
                    known.insert(home);
                }
            }
        }
    }
    let mut out = BTreeSet::new();
    loop {
        let before = out.len();
        for (module, importers) in &importers {
            if importers.iter().all(|importer| out.contains(importer)) {
                out.insert(*module);
            }
        }
        if out.len() == before {
            return out;
        }
    }
}

fn closure(context: &Context<'_>, mut open: Vec<ModuleId>, everywhere: bool) -> BTreeSet<ModuleId> {
    let mut seen = BTreeSet::new();
    while let Some(module) = open.pop() {
        if seen.insert(module) {
            let scopes = &context.program.module(module).facts.scopes;
            let scopes = if everywhere { scopes.as_slice() } else { &scopes[..scopes.len().min(1)] };
            open.extend(scopes.iter().flat_map(|scope| &scope.ops).flat_map(|op| imports(context, module, &op.kind)));
        }
    }
    seen
}

/// Modules that an operation imports.
fn imports(context: &Context<'_>, from: ModuleId, op: &OpKind) -> Vec<ModuleId> {
    let program = context.program;
    let entry = program.module(from);
    let (name, level, member) = match op {
        OpKind::Import { module, .. } => (*module, 0, None),
        OpKind::ImportFrom { module, level, name, .. } => (*module, *level, Some(*name)),
        OpKind::ImportStar { module, level } => (*module, *level, None),
        _ => return Vec::new(),
    };
    let Some(base) = program.absolute(from, entry.facts.name(name), level) else { return Vec::new() };
    let find = |name: &str| program.strings.find(name).and_then(|sym| program.find(sym, entry.source));
    let member = member.and_then(|member| find(&format!("{base}.{}", entry.facts.name(member))));
    find(&base).into_iter().chain(member).collect()
}
