//! Numbers for summaries.

use crate::catalog::Level;
use crate::findings::{Finding, Report, counts};

/// Findings per level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Errors.
    pub(super) errors: usize,
    /// Warnings.
    pub(super) warnings: usize,
    /// Notes.
    pub(super) notes: usize,
}

impl Tally {
    /// Counts findings.
    pub(super) fn of(findings: &[Finding]) -> Self {
        let mut tally = Self::default();
        for finding in findings {
            match finding.level {
                Level::Error => tally.errors += 1,
                Level::Warning => tally.warnings += 1,
                Level::Note => tally.notes += 1,
                Level::Off => {}
            }
        }
        tally
    }

    /// `2 errors, 1 warning, no notes` without the zero parts; `no findings` if all are zero.
    pub(super) fn words(self) -> String {
        let parts = [("error", self.errors), ("warning", self.warnings), ("note", self.notes)];
        let parts: Vec<String> = parts.iter().filter(|(_, n)| *n > 0).map(|(word, n)| plural(*n, word)).collect();
        if parts.is_empty() { "no findings".to_owned() } else { parts.join(", ") }
    }
}

/// `1 gap`, `2 gaps`.
pub(super) fn plural(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

/// One line about routes: how many were traced, how many not, and why. `None` if routes were not counted.
pub(super) fn routes(report: &Report) -> Option<String> {
    let traced = report.counts.get(counts::ROUTES_TRACED);
    let untraced: Vec<(&str, u64)> = report
        .counts
        .iter()
        .filter_map(|(name, count)| name.strip_prefix(counts::ROUTES_UNTRACED).map(|reason| (reason, *count)))
        .filter(|(_, count)| *count > 0)
        .collect();
    if traced.is_none() && untraced.is_empty() {
        return None;
    }
    let traced = traced.copied().unwrap_or(0);
    let total: u64 = untraced.iter().map(|(_, count)| *count).sum();
    let mut line = format!("{traced} traced, {total} untraced");
    if total > 0 {
        let reasons: Vec<String> = untraced.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        line.push_str(&format!(" ({})", reasons.join(", ")));
    }
    Some(line)
}
