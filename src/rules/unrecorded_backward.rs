//! RLK403: a backward pass of the family that takes no provenance record, where other routes of the family take one.

use std::collections::{BTreeMap, BTreeSet};

use super::environment::ruled_out;
use super::{Context, rule};
use crate::findings::{Finding, Related};
use crate::names::GlobalScope;
use crate::values::{EdgeKind, Target};

/// Words of a function's name that make it one that takes a record.
const RECORDS: [&str; 8] = ["observe", "observer", "provenance", "record", "recorded", "recorder", "report", "trace"];

/// Words of a function's name that make it a record of something else.
const OTHERS: [[&str; 2]; 6] =
    [["register", "set"], ["graph", "graphs"], ["stream", "event"], ["time", "timer"], ["memory", "loss"], ["metric", "metrics"]];

/// Whether the name of a function says that it takes a record.
pub(super) fn is_recorder(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    !OTHERS.iter().flatten().any(|word| last.split('_').any(|part| part == *word)) && last.split('_').any(|word| RECORDS.contains(&word))
}

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let program = context.program;
    let mut calls: BTreeMap<GlobalScope, BTreeSet<GlobalScope>> = BTreeMap::new();
    for ((caller, _), targets) in &context.calls {
        for target in targets {
            if let Target::Scope(callee) = target {
                calls.entry(*caller).or_default().insert(*callee);
            }
        }
    }
    // Recorders are called by what reaches the family, and do not reach it themselves.
    let mut recorded: Option<(GlobalScope, GlobalScope)> = None;
    for (caller, callees) in &calls {
        if !context.counts(*caller) || !context.reaches(Target::Scope(*caller)) {
            continue;
        }
        let found = callees.iter().find(|callee| is_recorder(&program.qualified(**callee)) && !context.reaches(Target::Scope(**callee)));
        if let Some(recorder) = found {
            recorded = recorded.or(Some((*caller, *recorder)));
        }
    }
    let Some((example, recorder)) = recorded else { return };
    let ruled_out = ruled_out(context);
    let mut owners: BTreeSet<GlobalScope> = BTreeSet::new();
    for edge in context.engine.edges.iter().filter(|edge| edge.kind == EdgeKind::AutogradBackward) {
        if let Target::Scope(backward) = edge.target
            && context.reaches(edge.target)
            && context.counts(backward)
            && !ruled_out.contains(&program.module_of(backward))
        {
            owners.insert(backward);
        }
    }
    for backward in owners {
        let mut open = vec![backward];
        let mut seen = BTreeSet::from([backward]);
        let mut records = false;
        while let Some(scope) = open.pop() {
            for callee in calls.get(&scope).into_iter().flatten() {
                records |= is_recorder(&program.qualified(*callee));
                if seen.insert(*callee) {
                    open.push(*callee);
                }
            }
        }
        if records {
            continue;
        }
        let facts = program.scope(backward);
        let name = program.qualified(backward);
        let arguments = vec![name.clone(), program.qualified(example), program.qualified(recorder)];
        let span = context.first_line(program.span(backward, facts.name_range));
        let mut finding = Finding::new(rule("unrecorded-backward"), "default", arguments, span, name);
        let span = context.first_line(program.span(recorder, program.scope(recorder).name_range));
        finding.related = vec![Related { span, message: "other routes of the family are recorded here".to_owned() }];
        findings.push(finding);
    }
}
