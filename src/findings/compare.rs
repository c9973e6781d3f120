//! What is new: findings of a run against those that were there before.
//!
//! In: findings, and what an earlier run saw. Out: for each finding whether it is new, changed or as before, and what is gone. A place is not compared
//! by its line number: rule, symbol and fingerprint are. Refused: nothing; of equal findings each counts once.

use std::collections::{BTreeMap, VecDeque};

use super::Finding;
use super::fingerprint::Prints;
use crate::catalog::Level;
use crate::text::Files;

/// What became of a finding since an earlier run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// It was not there.
    New,
    /// It was there, and said something else or stood on other text.
    Changed,
    /// It was there.
    Unchanged,
}

impl Change {
    /// The word used in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
        }
    }
}

/// A finding of the earlier run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Rule id.
    pub rule: String,
    /// Symbol, under the name that it has now.
    pub symbol: String,
    /// Fingerprint.
    pub print: String,
    /// Its line without surrounding blanks; `None` if it is not known.
    pub line: Option<String>,
    /// Its message, numbers of lines apart; `None` if it is not known.
    pub said: Option<String>,
    /// Its level.
    pub level: Level,
}

impl Seen {
    /// What a finding is compared by.
    #[must_use]
    pub fn of(finding: &Finding, files: &Files, prints: &mut Prints<'_>) -> Self {
        let file = files.get(finding.primary.file);
        Self {
            rule: finding.rule.id.clone(),
            symbol: finding.symbol.clone(),
            print: prints.of(finding),
            line: Some(file.line_text(file.line_of(finding.primary.start)).trim().to_owned()),
            said: Some(without_line_numbers(&finding.text())),
            level: finding.level,
        }
    }
}

/// A message without the numbers of lines in it, which move: digits behind `line `, quoted or not, and behind a colon.
fn without_line_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let a_line = out.ends_with(':') || out.strip_suffix('\'').unwrap_or(&out).ends_with("line ");
        if c.is_ascii_digit() && a_line {
            while chars.next_if(char::is_ascii_digit).is_some() {}
            out.push('#');
        } else {
            out.push(c);
        }
    }
    out
}

/// Findings sorted by what became of them.
#[derive(Debug, Default)]
pub struct Compared {
    /// New and changed findings, marked as such, in their order.
    pub news: Vec<Finding>,
    /// Findings that were there before, in their order.
    pub known: Vec<Finding>,
    /// What was there before and is not found any more, by its index in what was given.
    pub gone: Vec<usize>,
}

/// One way of telling that two findings are the same: key of a finding, and what became of it if the key is met.
type Pass = (fn(&Seen) -> Option<Vec<&str>>, Change);

/// From certain to likely. The first two are the same finding; with the others something about it has changed.
const PASSES: [Pass; 4] = [
    (|seen| Some(vec![&seen.rule, &seen.symbol, &seen.print, seen.said.as_deref()?]), Change::Unchanged),
    // Only lines below it were edited, or equal lines above it came or went.
    (|seen| Some(vec![&seen.rule, &seen.symbol, seen.line.as_deref()?, seen.said.as_deref()?]), Change::Unchanged),
    (|seen| Some(vec![&seen.rule, &seen.symbol, &seen.print]), Change::Changed),
    (|seen| seen.said.as_ref().map(|_| vec![seen.rule.as_str(), &seen.symbol]), Change::Changed),
];

/// Compares findings with what was `seen` before.
#[must_use]
pub fn compare(findings: Vec<Finding>, now: &[Seen], before: &[Seen]) -> Compared {
    let mut fates: Vec<Option<Change>> = vec![None; findings.len()];
    let mut open = vec![true; before.len()];
    for (key, change) in PASSES {
        let mut places: BTreeMap<Vec<&str>, VecDeque<usize>> = BTreeMap::new();
        for (at, seen) in before.iter().enumerate().filter(|(at, _)| open[*at]) {
            // An entry of which only rule, symbol and fingerprint are known has said what is said now.
            if let Some(key) = key(seen) {
                places.entry(key).or_default().push_back(at);
            }
        }
        for (fate, seen) in fates.iter_mut().zip(now).filter(|(fate, _)| fate.is_none()) {
            let Some(at) = key(seen).and_then(|key| places.get_mut(&key)).and_then(VecDeque::pop_front) else { continue };
            open[at] = false;
            let same = change == Change::Unchanged || before[at].said.is_none();
            *fate = Some(if same && seen.level <= before[at].level { Change::Unchanged } else { Change::Changed });
        }
    }
    let mut compared = Compared { gone: (0..before.len()).filter(|at| open[*at]).collect(), ..Compared::default() };
    for (mut finding, fate) in findings.into_iter().zip(fates) {
        let change = fate.unwrap_or(Change::New);
        finding.change = Some(change);
        if change == Change::Unchanged { compared.known.push(finding) } else { compared.news.push(finding) }
    }
    compared
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;
    use crate::text::{FileId, Span};

    fn seen(symbol: &str, print: &str, line: &str, said: &str) -> Seen {
        Seen {
            rule: "RLK101".into(),
            symbol: symbol.into(),
            print: print.into(),
            line: Some(line.into()),
            said: Some(said.into()),
            level: Level::Error,
        }
    }

    fn fates(now: &[Seen], before: &[Seen]) -> (Vec<Change>, Vec<usize>) {
        let rule = catalog::rule("RLK101").unwrap();
        let finding = |at: u32| Finding::new(rule, "default", vec![], Span::new(FileId(0), at, at), "s");
        let findings = (0..u32::try_from(now.len()).unwrap()).map(finding).collect();
        let compared = compare(findings, now, before);
        let mut all: Vec<(u32, Change)> =
            compared.news.iter().chain(&compared.known).map(|finding| (finding.primary.start, finding.change.unwrap())).collect();
        all.sort_unstable();
        (all.into_iter().map(|(_, change)| change).collect(), compared.gone)
    }

    #[test]
    fn equal_findings_count_once_each() {
        let one = seen("f", "a:1", "x", "m");
        let two = [one.clone(), one.clone()];
        assert_eq!(fates(&two, &two[..1]), (vec![Change::Unchanged, Change::New], vec![]));
        assert_eq!(fates(&two[..1], &two), (vec![Change::Unchanged], vec![1]));
        assert_eq!(fates(&[], &two[..1]), (vec![], vec![0]));
    }

    #[test]
    fn edits_below_keep_a_finding_and_edits_of_it_change_it() {
        let before = [seen("f", "a:1", "x", "m")];
        assert_eq!(fates(&[seen("f", "b:1", "x", "m")], &before).0, [Change::Unchanged]);
        assert_eq!(fates(&[seen("f", "a:1", "x", "other")], &before).0, [Change::Changed]);
        assert_eq!(fates(&[seen("f", "b:1", "y", "m")], &before).0, [Change::Changed]);
        assert_eq!(fates(&[seen("g", "a:1", "x", "m")], &before).0, [Change::New]);
    }

    #[test]
    fn the_best_match_wins_whatever_the_order() {
        let before = [seen("f", "a:1", "x", "m"), seen("f", "b:1", "y", "m")];
        let now = [seen("f", "c:1", "z", "m"), seen("f", "b:1", "y", "m"), seen("f", "a:1", "x", "m")];
        assert_eq!(fates(&now, &before), (vec![Change::New, Change::Unchanged, Change::Unchanged], vec![]));
    }

    #[test]
    fn a_raised_level_is_a_change_and_a_lowered_one_is_not() {
        let mut before = [seen("f", "a:1", "x", "m")];
        before[0].level = Level::Warning;
        let mut now = [seen("f", "a:1", "x", "m")];
        assert_eq!(fates(&now, &before).0, [Change::Changed]);
        now[0].level = Level::Note;
        assert_eq!(fates(&now, &before).0, [Change::Unchanged]);
    }

    #[test]
    fn what_has_no_message_is_met_by_rule_symbol_and_fingerprint_alone() {
        let mut entry = seen("f", "a:1", "", "");
        (entry.line, entry.said) = (None, None);
        assert_eq!(fates(&[seen("f", "a:1", "x", "m")], &[entry.clone()]).0, [Change::Unchanged]);
        assert_eq!(fates(&[seen("f", "b:1", "x", "m")], &[entry]), (vec![Change::New], vec![0]));
    }

    #[test]
    fn line_numbers_do_not_count() {
        let plain = without_line_numbers;
        assert_eq!(plain("nothing on line '31'."), plain("nothing on line '7'."));
        assert_eq!(plain("see a.py:12 and line 40"), plain("see a.py:9 and line 5"));
        assert_ne!(plain("'2' implementations"), plain("'3' implementations"));
        assert_eq!(plain("sha 12ab"), "sha 12ab");
    }
}
