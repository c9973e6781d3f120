//! How a run ended.
//!
//! In: a finished report, the level that fails a run, and whether anything was linted. Out: a [`Verdict`]. Refused: a clean verdict about
//! something that was not seen.

use crate::catalog::Level;

use super::{Report, Verdict};

/// The verdict on `report`. `fail_on` is the lowest level that fails the run ([`Level::Off`]: none does); `linted` says whether there was
/// anything to lint.
///
/// A fatal gap that the user did not allow makes the run incomplete, whatever else was found; other gaps are reported and leave it as it is.
#[must_use]
pub fn verdict(report: &Report, fail_on: Level, linted: bool) -> Verdict {
    if report.gaps.iter().any(|gap| gap.kind.is_fatal() && !gap.allowed) {
        Verdict::Incomplete
    } else if !linted {
        Verdict::Nothing
    } else if fail_on != Level::Off && report.findings.iter().any(|finding| finding.level >= fail_on) {
        Verdict::Findings
    } else {
        Verdict::Clean
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;
    use crate::findings::{Finding, Gap, GapKind};
    use crate::text::{FileId, Span};

    fn finding(level: Level) -> Finding {
        let rule = catalog::rule("RLK101").unwrap();
        Finding { level, ..Finding::new(rule, "default", vec![], Span::new(FileId(0), 0, 0), "s") }
    }

    fn gap(kind: GapKind, allowed: bool) -> Gap {
        Gap { kind, source: "vllm".into(), path: String::new(), span: None, cause: "Absent.".into(), next: String::new(), allowed }
    }

    #[test]
    fn only_findings_at_or_above_the_failing_level_fail() {
        let report = Report { findings: vec![finding(Level::Note), finding(Level::Warning)], ..Report::default() };
        assert_eq!(verdict(&report, Level::Note, true), Verdict::Findings);
        assert_eq!(verdict(&report, Level::Warning, true), Verdict::Findings);
        assert_eq!(verdict(&report, Level::Error, true), Verdict::Clean);
        assert_eq!(verdict(&report, Level::Off, true), Verdict::Clean);
    }

    #[test]
    fn a_fatal_gap_outranks_findings_unless_it_was_allowed() {
        let mut report = Report { findings: vec![finding(Level::Error)], ..Report::default() };
        report.gaps = vec![gap(GapKind::SourceMissing, false)];
        assert_eq!(verdict(&report, Level::Warning, true), Verdict::Incomplete);
        assert_eq!(verdict(&report, Level::Warning, false), Verdict::Incomplete);
        report.gaps = vec![gap(GapKind::SourceMissing, true)];
        assert_eq!(verdict(&report, Level::Warning, true), Verdict::Findings);
        report.gaps = vec![gap(GapKind::Syntax, false)];
        assert_eq!(verdict(&report, Level::Warning, true), Verdict::Findings);
    }

    #[test]
    fn nothing_to_lint_is_not_clean() {
        assert_eq!(verdict(&Report::default(), Level::Warning, false), Verdict::Nothing);
        assert_eq!(verdict(&Report::default(), Level::Warning, true), Verdict::Clean);
    }

    #[test]
    fn every_fatal_kind_makes_the_run_incomplete() {
        for kind in
            [GapKind::SourceMissing, GapKind::SourceUnreadable, GapKind::PinUnsatisfied, GapKind::PatchUnverified, GapKind::ObjectMissing]
        {
            let report = Report { gaps: vec![gap(kind, false)], ..Report::default() };
            assert_eq!(verdict(&report, Level::Error, true), Verdict::Incomplete, "{kind:?}");
        }
    }
}
