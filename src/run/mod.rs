//! The composer: profile and sources in, analysis out. The only module that knows all stages.

mod base;
pub mod baseline;
mod changes;
mod commands;
mod error;
mod exercise;
mod inventory;
pub mod lint;
mod observe;
mod probe;
pub mod record;
mod renames;
mod reports;
mod runner;
mod setup;
mod snippets;
mod surroundings;

pub use commands::main;
pub use error::RunError;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::findings::{Gap, GapKind};
use crate::names::{ModuleId, ModuleInput, Program};
use crate::profile::{Family, PathClass, PathClasses, Profile};
use crate::routes::Routes;
use crate::sources::{FileKind, LoadedFile, LoadedSource};
use crate::syntax::{ModuleFacts, extract_all, heredoc};
use crate::text::{FileId, Files, Span};
use crate::values::{Assumptions, Engine};

/// What was read, as the analysis needs it.
pub struct Loaded {
    /// Texts.
    pub files: Files,
    /// Sources in the profile's order.
    pub sources: Vec<LoadedSource>,
    /// Module table.
    pub program: Program,
    /// Classes of paths.
    pub classes: PathClasses,
    /// Gaps of sources and syntax, in order.
    pub gaps: Vec<Gap>,
}

impl Loaded {
    /// Class of a module.
    #[must_use]
    pub fn class_of(&self, module: ModuleId) -> PathClass {
        let module = self.program.module(module);
        self.classes.class(self.source_of(module.file), &module.path)
    }

    /// Facts of every Python file, for the analysis of another revision.
    #[must_use]
    pub fn known_facts(&self) -> KnownFacts {
        let blobs: BTreeMap<FileId, &Arc<str>> =
            self.sources.iter().flat_map(|source| &source.files).map(|file| (file.file, &file.blob)).collect();
        let modules = self.program.modules.iter();
        modules.filter_map(|module| Some((Arc::clone(blobs.get(&module.file)?), Arc::clone(&module.facts)))).collect()
    }

    /// Source id of a file.
    #[must_use]
    pub fn source_of(&self, file: FileId) -> &str {
        &self.files.get(file).source
    }
}

/// Facts of Python files by blob id.
pub type KnownFacts = BTreeMap<Arc<str>, Arc<ModuleFacts>>;

/// Parses every Python file whose facts are not `known` and builds the module table.
#[must_use]
pub fn tabulate(profile: &Profile, files: Files, sources: Vec<LoadedSource>, known: &KnownFacts, threads: usize) -> Loaded {
    let mut gaps: Vec<Gap> = sources.iter().flat_map(|source| source.gaps.iter().cloned()).collect();
    let mut wanted: Vec<(usize, &LoadedFile)> = Vec::new();
    for (at, source) in sources.iter().enumerate() {
        wanted.extend(source.files.iter().filter(|file| file.kind == FileKind::Python).map(|file| (at, file)));
    }
    let unknown: Vec<&LoadedFile> = wanted.iter().map(|(_, file)| *file).filter(|file| !known.contains_key(&file.blob)).collect();
    let texts: Vec<&str> = unknown.iter().map(|file| &*files.get(file.file).text).collect();
    let parsed = if texts.is_empty() { Vec::new() } else { extract_all(&texts, threads) };
    let mut parsed: BTreeMap<FileId, Arc<ModuleFacts>> =
        unknown.iter().map(|file| file.file).zip(parsed.into_iter().map(Arc::new)).collect();
    let modules = wanted.into_iter().filter_map(|(source, file)| {
        let facts = parsed.remove(&file.file).or_else(|| known.get(&file.blob).cloned());
        Some((source, file.file, facts?))
    });
    let mut modules: Vec<_> = modules.collect();
    for (at, source) in sources.iter().enumerate() {
        for file in source.files.iter().filter(|file| file.kind == FileKind::Shell) {
            let programs = heredoc::programs(&files.get(file.file).text);
            let texts: Vec<&str> = programs.iter().map(String::as_str).collect();
            modules.extend(extract_all(&texts, 1).into_iter().map(|facts| (at, file.file, Arc::new(facts))));
        }
    }
    let mut inputs = Vec::with_capacity(modules.len());
    for (source, file, facts) in modules {
        let text = files.get(file);
        if let Some(problem) = facts.problems.first() {
            gaps.push(Gap {
                kind: GapKind::Syntax,
                source: text.source.to_string(),
                path: text.path.to_string(),
                span: Some(Span::new(file, problem.range.0, problem.range.1)),
                cause: format!("Python does not parse here: {}.", problem.message.trim_end_matches('.')),
                next: "Fix the syntax, or exclude the path; what could still be parsed was used.".to_owned(),
                allowed: false,
            });
        }
        inputs.push(ModuleInput { source, path: text.path.to_string(), file, roots: sources[source].roots.clone(), facts });
    }
    gaps.sort();
    Loaded { files, sources, program: Program::new(inputs), classes: PathClasses::new(profile), gaps }
}

/// Modules that can be on a path to the family: those that name it, those that import one of them, and so on.
fn relevant(loaded: &Loaded, families: &[Family]) -> BTreeSet<ModuleId> {
    let program = &loaded.program;
    let mut needles: BTreeSet<&str> = BTreeSet::new();
    let mut folders: BTreeSet<String> = BTreeSet::new();
    for family in families {
        for pattern in family.sinks.iter().chain(&family.facades) {
            let last = pattern.rsplit('.').next().unwrap_or(pattern).trim_end_matches('*');
            if last.len() > 3 {
                needles.insert(last);
            }
            if let Some((module, _)) = pattern.rsplit_once('.') {
                folders.insert(module.to_owned());
            }
        }
        needles.extend(family.keys.iter().map(String::as_str));
    }
    let mut chosen: BTreeSet<ModuleId> = BTreeSet::new();
    for id in program.module_ids() {
        let module = program.module(id);
        let name = program.strings.text(module.name);
        if folders.contains(name) || module.facts.names.iter().any(|text| needles.iter().any(|needle| text.contains(needle))) {
            chosen.insert(id);
        }
    }
    // Importers, up to a fixpoint.
    let mut importers: BTreeMap<ModuleId, BTreeSet<ModuleId>> = BTreeMap::new();
    for id in program.module_ids() {
        for scope in 0..u32::try_from(program.module(id).facts.scopes.len()).unwrap_or(0) {
            for found in program.imported_by(program.global_scope(id, scope)) {
                importers.entry(found).or_default().insert(id);
            }
        }
    }
    let mut open: Vec<ModuleId> = chosen.iter().copied().collect();
    while let Some(id) = open.pop() {
        for importer in importers.get(&id).into_iter().flatten() {
            if chosen.insert(*importer) {
                open.push(*importer);
            }
        }
    }
    chosen
}

/// The analysis of one set of sources.
pub struct Analysis<'l> {
    /// Production code, at its fixpoint.
    pub engine: Engine<'l>,
    /// One per family.
    pub routes: Vec<Routes>,
    /// Modules that were followed.
    pub followed: usize,
}

/// The profile's assumptions, and what files that are not Python tell the program, as the engine takes them.
#[must_use]
pub fn assumptions(profile: &Profile, loaded: &Loaded) -> Assumptions {
    Assumptions {
        known: profile.known.clone(),
        environment: profile.environment.clone(),
        entry_points: surroundings::entry_points(loaded),
        arguments: surroundings::arguments(loaded, &profile.environment),
        documents: surroundings::documents(loaded),
    }
}

/// Runs modules and the profile's entries, then `more`; again with the installs that turn out to hold without a condition, until they are the
/// same ones.
pub fn settle<'l>(
    profile: &Profile,
    loaded: &'l Loaded,
    assumptions: &'l Assumptions,
    modules: &[ModuleId],
    more: impl Fn(&mut Engine<'l>),
) -> Engine<'l> {
    let declared = profile.entries.iter().map(|entry| &entry.symbol).chain(assumptions.entry_points.values().flatten());
    let entries: Vec<_> = declared.filter_map(|symbol| loaded.program.find_scope(&symbol.replace(':', "."))).collect();
    let mut overridden = BTreeSet::new();
    let mut rounds = 0;
    loop {
        let mut engine = Engine::new(&loaded.program, assumptions);
        engine.override_with(overridden.iter().cloned());
        engine.run_modules(modules);
        for entry in &entries {
            engine.enter(*entry);
        }
        engine.settle();
        more(&mut engine);
        let found = engine.certain_installs();
        rounds += 1;
        if found == overridden || rounds >= 3 {
            return engine;
        }
        overridden = found;
    }
}

/// Runs the analysis: production code, then again with the installs that hold without a condition.
#[must_use]
pub fn analyse<'l>(profile: &Profile, loaded: &'l Loaded, assumptions: &'l Assumptions) -> Analysis<'l> {
    let chosen = relevant(loaded, &profile.families);
    let production: Vec<ModuleId> = chosen.iter().copied().filter(|id| counts(loaded.class_of(*id))).collect();
    let within: BTreeSet<ModuleId> = production.iter().copied().collect();
    let mut engine = settle(profile, loaded, assumptions, &production, |engine| engine.run_uncalled(|module| within.contains(&module)));
    let class_of = |module: ModuleId| loaded.class_of(module);
    let mut routes: Vec<Routes> = profile.families.iter().map(|family| crate::routes::trace(&mut engine, family, &class_of)).collect();
    // What callers outside the sources could reach is added, and changes nothing that was found about known callers.
    engine.run_public(|module| within.contains(&module));
    for (routes, family) in routes.iter_mut().zip(&profile.families) {
        let more = crate::routes::trace(&mut engine, family, &class_of);
        let known: BTreeSet<_> = routes.callsites.iter().map(|row| (row.span, row.op)).collect();
        routes.callsites.extend(more.callsites.into_iter().filter(|row| row.public && !known.contains(&(row.span, row.op))));
        routes.callsites.sort_by_key(|row| (row.span, row.op));
        routes.bindings = more.bindings;
        routes.reach = more.reach;
    }
    Analysis { engine, routes, followed: production.len() }
}

/// Runs the analysis as [`analyse`] does, then lets tests, benchmarks and examples run on top of it. What those add is listed, under their
/// own class; it changes nothing that was found about production code.
#[must_use]
pub fn analyse_all<'l>(profile: &Profile, loaded: &'l Loaded, assumptions: &'l Assumptions) -> Analysis<'l> {
    let mut analysis = analyse(profile, loaded, assumptions);
    let chosen = relevant(loaded, &profile.families);
    let class_of = |module: ModuleId| loaded.class_of(module);
    // Tests come last: they patch, and what they patch must not show up in the others.
    for class in [PathClass::Documentation, PathClass::Example, PathClass::Benchmark, PathClass::Test] {
        let modules: Vec<ModuleId> = chosen.iter().copied().filter(|id| loaded.class_of(*id) == class).collect();
        if class == PathClass::Test {
            analysis.engine.contain_patches();
        }
        analysis.engine.run_modules(&modules);
        analysis.engine.run_uncalled(|module| modules.contains(&module));
        for (routes, family) in analysis.routes.iter_mut().zip(&profile.families) {
            let more = crate::routes::trace(&mut analysis.engine, family, &class_of);
            routes.callsites.extend(more.callsites.into_iter().filter(|row| row.class == class));
            routes.callsites.sort_by_key(|row| (row.span, row.op));
            routes.bindings.retain(|row| row.class != class);
            routes.bindings.extend(more.bindings.into_iter().filter(|row| row.class == class));
            routes.bindings.sort_by(|a, b| (a.span, a.kind, &a.targets).cmp(&(b.span, b.kind, &b.targets)));
        }
    }
    analysis
}

/// Whether code of a class runs in a real job.
#[must_use]
pub const fn counts(class: PathClass) -> bool {
    matches!(class, PathClass::Production | PathClass::Reference)
}
