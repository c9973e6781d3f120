//! The Stage 0 record of an analysis.

use std::collections::BTreeMap;

use super::inventory::inventory;
use super::{Analysis, Loaded, counts};
use crate::names::ModuleId;
use crate::profile::Profile;
use crate::rules::Snippet;
use crate::stage0::baseline::{self, Modules};
use crate::stage0::candidates;
use crate::stage0::eval::{Evaluator, Facts, with_stack};
use crate::stage0::evidence::{self, Item};
use crate::stage0::regions::{self, Assigned};
use crate::stage0::{Baseline, Candidates, Fact, PhaseRow, Place, Record, Rows, SCHEMA, ShapeRow, Workload, shapes};
use crate::text::Span;
use crate::values::{Engine, Object};

/// Line of a span.
pub(super) fn place(loaded: &Loaded, span: Span) -> Place {
    let file = loaded.files.get(span.file);
    Place { source: file.source.to_string(), path: file.path.to_string(), line: file.line_of(span.start) }
}

/// Names of modules that production code replaces in other modules.
fn replaced(loaded: &Loaded, engine: &Engine<'_>) -> BTreeMap<(ModuleId, String), Span> {
    let mut out = BTreeMap::new();
    for install in &engine.installs {
        let Object::Module(module) = engine.get(install.owner) else { continue };
        let scope = engine.scope_of(install.installer);
        let from = loaded.program.module_of(scope);
        if from == module || !counts(loaded.class_of(from)) {
            continue;
        }
        let range = loaded.program.scope(scope).ops[install.op as usize].range;
        out.entry((module, engine.text(install.name).to_owned())).or_insert_with(|| loaded.program.span(scope, range));
    }
    out
}

fn workload(profile: &Profile, place: &dyn Fn(Span) -> Place) -> Workload {
    let declared = &profile.workload;
    let mut facts = Vec::new();
    let mut add = |name: &str, size: crate::profile::workload::Size| {
        facts.push(Fact { name: name.to_owned(), value: size.value, at: place(size.span) });
    };
    for (name, size) in declared.model.iter().flat_map(|model| &model.sizes) {
        add(name, *size);
    }
    for (side, ranks) in [("training", declared.training), ("rollout", declared.rollout)] {
        if let Some(ranks) = ranks {
            add(&format!("{side}-tp"), ranks.tp);
            add(&format!("{side}-cp"), ranks.cp);
        }
    }
    let phases = declared.phases.iter().map(|phase| PhaseRow {
        id: phase.id.clone(),
        side: shapes::side(phase.side),
        gemm: phase.gemm.map(|gemm| gemm.word().to_owned()).unwrap_or_default(),
        rows: Rows { from: phase.from, to: phase.to },
        at: place(phase.span),
    });
    Workload {
        model: declared.model.as_ref().map(|model| model.name.clone()).unwrap_or_default(),
        dtype: declared.model.as_ref().map(|model| model.dtype.clone()).unwrap_or_default(),
        facts,
        phases: phases.collect(),
    }
}

/// Runs the evaluation on a thread with the stack that it needs; candidates are looked for if there is `evidence` to judge them by.
pub(super) fn evaluate(
    profile: &Profile,
    loaded: &Loaded,
    analysis: &Analysis<'_>,
    shapes: &[ShapeRow],
    evidence: Option<&[Item]>,
) -> (Baseline, Option<Candidates>) {
    let replaced = replaced(loaded, &analysis.engine);
    let place = |span: Span| place(loaded, span);
    let declared = &profile.workload;
    let Some(evaluated) = &declared.evaluated else {
        return (baseline::nothing(shapes, "the profile has no [workload.evaluated]"), None);
    };
    let excluded =
        candidates::excluded(&profile.families, &analysis.routes, &loaded.program, &evaluated.contract, &profile.backend, &place);
    let work = || {
        let dtype = declared.model.as_ref().map_or("bfloat16", |model| model.dtype.as_str());
        let main = profile.sources.iter().position(|source| source.main).unwrap_or(0);
        let program = &loaded.program;
        let find = |name: &str| program.strings.find(name).and_then(|sym| program.find(sym, main));
        let names = |module: ModuleId| {
            let mut names: Vec<String> = program.module(module).bound.iter().map(|sym| program.strings.text(*sym).to_owned()).collect();
            names.sort();
            names
        };
        let naming = |class: &str| -> Vec<(ModuleId, bool)> {
            let named = program.module_ids().filter(|id| program.module(*id).facts.names.iter().any(|name| **name == *class));
            named.map(|id| (id, !counts(loaded.class_of(id)))).collect()
        };
        let name_of = |module: ModuleId| program.strings.text(program.module(module).name).to_owned();
        let place = |span: Span| self::place(loaded, span);
        let facts = Facts { program, files: &loaded.files, known: &profile.known, environment: &profile.environment, replaced: &replaced };
        let mut evaluator = Evaluator::new(facts);
        let modules = Modules { find: &find, names: &names, place: &place };
        let evaluation = baseline::evaluate(&mut evaluator, evaluated, dtype, shapes, &declared.regions, &modules);
        let Some(evidence) = evidence else { return (evaluation.baseline, None) };
        let input = candidates::Input {
            declared: evaluated,
            evaluation: &evaluation,
            dtype,
            shapes,
            evidence,
            decision: &declared.decision,
            naming: &naming,
            name_of: &name_of,
            excluded: excluded.clone(),
        };
        let candidates = candidates::list(&mut evaluator, &input, &modules);
        (evaluation.baseline, candidates)
    };
    // No thread, or a panic in it: nothing was evaluated, and every cell says so.
    with_stack(work).unwrap_or_else(|| (baseline::nothing(shapes, "the evaluator did not end"), None))
}

/// Writes the record of an analysis.
#[must_use]
pub fn record(profile: &Profile, label: &str, loaded: &Loaded, analysis: &Analysis<'_>, snippets: &[Snippet]) -> Record {
    let place = |span: Span| place(loaded, span);
    let class_of = |module| loaded.class_of(module);
    let input = regions::Input { engine: &analysis.engine, routes: &analysis.routes, profile, class_of: &class_of, place: &place };
    let Assigned { regions, assignments, unassigned } = regions::assign(&input);
    let shapes = shapes::derive(&profile.workload, &place);
    let evidence = evidence::read(&evidence::Ground {
        profile,
        sources: &loaded.sources,
        files: &loaded.files,
        program: &loaded.program,
        shapes: &shapes,
    });
    let (baseline, candidates) = evaluate(profile, loaded, analysis, &shapes, Some(&evidence));
    Record {
        schema: SCHEMA.to_owned(),
        profile: label.to_owned(),
        inventory: inventory(profile, loaded, analysis, snippets),
        regions,
        assignments,
        unassigned,
        workload: workload(profile, &place),
        shapes,
        baseline,
        candidates,
        // Not looked for yet: an empty list would read as a result.
        decision: None,
        contradictions: None,
        unsupported: None,
        evidence: evidence.iter().map(|item| evidence::row(item, &loaded.files)).collect(),
    }
}
