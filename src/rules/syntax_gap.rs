//! RLK105: Python that does not parse.

use super::{Context, rule};
use crate::findings::{Finding, GapKind};
use crate::text::Span;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    for gap in context.gaps.iter().filter(|gap| gap.kind == GapKind::Syntax) {
        let Some(span) = gap.span else { continue };
        let file = context.files.get(span.file);
        let line = file.line_range(file.line_of(span.start)).unwrap_or((span.start, span.end));
        let place = Span::new(span.file, span.start.min(line.1), span.end.min(line.1).max(span.start.min(line.1)));
        let what = gap.cause.trim_start_matches("Python does not parse here: ").trim_end_matches('.').to_owned();
        findings.push(Finding::new(rule("syntax-gap"), "default", vec![gap.path.clone(), what], place, gap.path.clone()));
    }
}
