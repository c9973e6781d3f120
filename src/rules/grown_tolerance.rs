//! RLK311: a tolerance that lets more through than in the base revision.

use super::dataflow::Strictness;
use super::{Context, rule};
use crate::findings::Finding;
use crate::text::Span;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let Some(before) = context.before else { return };
    for (old, new) in grown(&before.tolerances, &tolerances(context)) {
        let said = |tolerance: &Tolerance| format!("rtol={}, atol={}", tolerance.rtol, tolerance.atol);
        let arguments = vec![new.callee.clone(), said(&new), said(&old)];
        findings.push(Finding::new(rule("grown-tolerance"), "default", arguments, new.span, new.symbol));
    }
}

/// One tolerance of a comparison with a result of the family, as it is compared between revisions.
#[derive(Clone, Debug)]
pub struct Tolerance {
    /// Path of the file within its source.
    pub path: String,
    /// Qualified name of the function.
    pub symbol: String,
    /// What compares.
    pub callee: String,
    /// Which of the comparisons by this callee in the function, from 0.
    pub place: usize,
    /// Relative tolerance as it is written.
    pub rtol: String,
    /// Absolute tolerance as it is written.
    pub atol: String,
    /// The comparison.
    pub span: Span,
}

/// Every tolerance by which a result of a family is judged, accuracy checks included, in order of place.
pub(super) fn tolerances(context: &Context<'_>) -> Vec<Tolerance> {
    let mut out: Vec<Tolerance> = Vec::new();
    for found in context.comparisons().iter().filter(|found| found.strictness == Strictness::Tolerant) {
        let path = context.program.module(context.program.module_of(found.scope)).path.clone();
        let symbol = context.program.qualified(found.scope);
        let same = |other: &&Tolerance| other.path == path && other.symbol == symbol && other.callee == found.callee;
        let place = out.iter().filter(same).count();
        let span = context.span(found.scope, found.op);
        out.push(Tolerance { path, symbol, callee: found.callee.clone(), place, rtol: found.rtol.clone(), atol: found.atol.clone(), span });
    }
    out
}

/// Pairs of an old and a new tolerance of the same comparison of which the new one lets more through. One that is not a number on both
/// sides counts if its text changed.
fn grown(old: &[Tolerance], new: &[Tolerance]) -> Vec<(Tolerance, Tolerance)> {
    let larger = |old: &str, new: &str| match (old.parse::<f64>(), new.parse::<f64>()) {
        (Ok(old), Ok(new)) => new > old,
        _ => old != new,
    };
    let mut out = Vec::new();
    for now in new {
        let same = |other: &&Tolerance| {
            other.path == now.path && other.symbol == now.symbol && other.callee == now.callee && other.place == now.place
        };
        if let Some(before) = old.iter().find(same)
            && (larger(&before.rtol, &now.rtol) || larger(&before.atol, &now.atol))
        {
            out.push((before.clone(), now.clone()));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::FileId;

    fn tolerance(place: usize, rtol: &str, atol: &str) -> Tolerance {
        Tolerance {
            path: "tests/t.py".into(),
            symbol: "t.f".into(),
            callee: "torch.allclose".into(),
            place,
            rtol: rtol.into(),
            atol: atol.into(),
            span: Span::new(FileId(0), 0, 0),
        }
    }

    #[test]
    fn only_what_lets_more_through_has_grown() {
        let old = [tolerance(0, "1e-5", "8e-3"), tolerance(1, "1e-3", "0.0"), tolerance(2, "default", "limits['atol']")];
        let new = [tolerance(0, "1e-5", "2e-2"), tolerance(1, "1e-4", "0.0"), tolerance(2, "default", "limits['atol'] * 4")];
        let grown: Vec<usize> = grown(&old, &new).into_iter().map(|(_, now)| now.place).collect();
        assert_eq!(grown, [0, 2]);
        assert!(super::grown(&old, &old).is_empty());
        assert!(super::grown(&[], &new).is_empty(), "a comparison that is new has nothing to grow from");
    }
}
