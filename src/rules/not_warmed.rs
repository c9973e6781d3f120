//! RLK408: a configuration that a captured graph can need, and that warmup does not compile.

use std::collections::BTreeSet;

use super::{Context, rule};
use crate::findings::{Finding, Related};
use crate::profile::workload::{Gemm, Side};
use crate::stage0::{NotEvaluated, ServedRows};
use crate::text::Span;

/// Shapes that a message names.
const NAMED: usize = 3;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let Some((baseline, evaluated)) = context.baseline.zip(context.profile.workload.evaluated.as_ref()) else { return };
    let captured = captured(context);
    let during = |served: &&ServedRows| captured.contains(served.shape.as_str());
    let warmup = evaluated.warmup.as_deref().unwrap_or("no function");
    if let Some(NotEvaluated { construct, at }) = &baseline.warmup_not_evaluated {
        let needed = baseline.constants.iter().any(|constant| constant.serves.iter().any(|served| during(&served)));
        let place = at.as_ref().and_then(|at| context.line_at(at)).unwrap_or(evaluated.span);
        if needed {
            let arguments = vec![warmup.to_owned(), construct.clone()];
            findings.push(Finding::new(rule("not-warmed"), "unknown", arguments, context.first_line(place), warmup.to_owned()));
        }
        return;
    }
    for constant in baseline.constants.iter().filter(|constant| constant.warmed_by.as_ref().is_some_and(Vec::is_empty)) {
        let serves: Vec<&ServedRows> = constant.serves.iter().filter(during).collect();
        let Some(place) = context.line_at(&constant.at).filter(|_| !serves.is_empty()) else { continue };
        let mut shown: Vec<String> = serves.iter().take(NAMED).map(|served| rows(served)).collect();
        if serves.len() > NAMED {
            shown.push(format!("{} more", serves.len() - NAMED));
        }
        let arguments = vec![constant.name.clone(), shown.join("', '"), warmup.to_owned()];
        let mut finding = Finding::new(rule("not-warmed"), "default", arguments, trimmed(context, place), constant.name.clone());
        if let Some(function) = evaluated.warmup.as_deref().and_then(|name| context.program.find_scope(name)) {
            let span = context.first_line(context.program.span(function, context.program.scope(function).name_range));
            finding.related.push(Related { span, message: "warmup compiles other configurations".to_owned() });
        }
        findings.push(finding);
    }
}

/// Ids of shapes of phases that can be captured: those of the rollout whose rows have a bound.
fn captured<'a>(context: &'a Context<'_>) -> BTreeSet<&'a str> {
    let workload = &context.profile.workload;
    let phases =
        workload.phases.iter().filter(|phase| phase.side == Side::Rollout && phase.gemm == Some(Gemm::Forward) && phase.to.is_some());
    let phases: BTreeSet<&str> = phases.map(|phase| phase.id.as_str()).collect();
    let rollout = crate::stage0::shapes::side(Side::Rollout);
    let shapes = context.shapes.iter().filter(|shape| shape.side == rollout && phases.contains(shape.phase.as_str()));
    shapes.map(|shape| shape.id.as_str()).collect()
}

fn rows(served: &ServedRows) -> String {
    match served.rows.to {
        Some(to) if to == served.rows.from => format!("{} with {to} rows", served.shape),
        Some(to) => format!("{} with {} to {to} rows", served.shape, served.rows.from),
        None => format!("{} with {} rows and more", served.shape, served.rows.from),
    }
}

/// A line without the white space around it.
fn trimmed(context: &Context<'_>, line: Span) -> Span {
    let text = context.files.slice(line);
    let start = line.start + u32::try_from(text.len() - text.trim_start().len()).unwrap_or(0);
    let code = text.split('#').next().unwrap_or(text).trim();
    Span::new(line.file, start, start + u32::try_from(code.len()).unwrap_or(0))
}
