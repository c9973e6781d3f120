//! Levels, merging and the total order of findings.
//!
//! In: findings as the rules pushed them, in any order. Out: findings at the levels that the profile asks for, at most one per rule and
//! line, in an order that depends on nothing but their content. Refused: nothing.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::catalog::{Level, RuleMeta};
use crate::text::{Files, TextFile};

use super::{Finding, Gap, Related};

/// Level overrides.
#[derive(Clone, Copy)]
pub struct Levels<'a> {
    /// Level of a rule at a file, where something other than the rule's own level is asked for.
    pub of: &'a dyn Fn(&RuleMeta, &TextFile) -> Option<Level>,
}

impl Levels<'_> {
    /// Level of `rule` for a finding in `file`.
    #[must_use]
    pub fn level(&self, rule: &RuleMeta, file: &TextFile) -> Level {
        (self.of)(rule, file).unwrap_or(rule.level)
    }
}

/// Sets levels, drops what is off, merges findings of one rule on one line, and sorts.
#[must_use]
pub fn arrange(mut findings: Vec<Finding>, files: &Files, levels: Levels<'_>) -> Vec<Finding> {
    for finding in &mut findings {
        finding.level = levels.level(finding.rule, files.get(finding.primary.file));
    }
    findings.retain(|finding| finding.level != Level::Off);
    sort(&mut findings);
    merge_lines(findings, files)
}

/// Sets levels of silenced findings, drops what is off, and sorts.
#[must_use]
pub fn arrange_silenced(mut silenced: Vec<(Finding, String)>, files: &Files, levels: Levels<'_>) -> Vec<(Finding, String)> {
    for (finding, _) in &mut silenced {
        finding.level = levels.level(finding.rule, files.get(finding.primary.file));
    }
    silenced.retain(|(finding, _)| finding.level != Level::Off);
    silenced.sort_by(|(a, reason_a), (b, reason_b)| compare(a, b).then_with(|| reason_a.cmp(reason_b)));
    silenced
}

/// Sorts by source and path (the order in which files were added), span, rule, message, and then by everything else.
pub fn sort(findings: &mut [Finding]) {
    findings.sort_by(compare);
}

/// The total order: two findings are equal only if no report could tell them apart.
fn compare(a: &Finding, b: &Finding) -> Ordering {
    a.primary
        .cmp(&b.primary)
        .then_with(|| a.rule.id.cmp(&b.rule.id))
        .then_with(|| a.message.cmp(b.message))
        .then_with(|| a.arguments.cmp(&b.arguments))
        .then_with(|| a.symbol.cmp(&b.symbol))
        .then_with(|| a.related.cmp(&b.related))
        .then_with(|| a.flow.cmp(&b.flow))
        .then_with(|| b.level.cmp(&a.level))
        .then_with(|| a.from_patch.cmp(&b.from_patch))
}

/// Sorts gaps by source, path and place, and drops repeated ones.
pub fn sort_gaps(gaps: &mut Vec<Gap>) {
    gaps.sort_by(|a, b| {
        (&a.source, &a.path, a.span, a.kind, &a.cause, &a.next, a.allowed)
            .cmp(&(&b.source, &b.path, b.span, b.kind, &b.cause, &b.next, b.allowed))
    });
    gaps.dedup();
}

/// Keeps one finding per rule, file and line: the first in order. What the others said becomes a second place of the one that stays, since
/// GitHub takes same-rule same-line results for one alert.
fn merge_lines(sorted: Vec<Finding>, files: &Files) -> Vec<Finding> {
    let mut kept: Vec<Finding> = Vec::with_capacity(sorted.len());
    let mut by_line: BTreeMap<(u32, u32, &str), usize> = BTreeMap::new();
    for finding in sorted {
        let line = files.get(finding.primary.file).line_of(finding.primary.start);
        let key = (finding.primary.file.0, line, finding.rule.id.as_str());
        match by_line.get(&key) {
            Some(at) => absorb(&mut kept[*at], finding),
            None => {
                by_line.insert(key, kept.len());
                kept.push(finding);
            }
        }
    }
    kept
}

/// Adds to `first` what `second`, of the same rule and line, says beyond it.
fn absorb(first: &mut Finding, second: Finding) {
    let text = second.text();
    first.level = first.level.max(second.level);
    if second.primary != first.primary || text != first.text() {
        let clause = text.strip_suffix('.').unwrap_or(&text);
        push_new(&mut first.related, Related { span: second.primary, message: format!("also on this line: {clause}") });
    }
    for related in second.related {
        push_new(&mut first.related, related);
    }
    if first.flow.is_empty() && second.primary == first.primary {
        first.flow = second.flow;
    }
}

fn push_new(related: &mut Vec<Related>, new: Related) {
    if !related.contains(&new) {
        related.push(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;
    use crate::text::{FileId, Span, TextFile};

    fn files() -> Files {
        let mut files = Files::default();
        files.add(TextFile::new("rl", "a/b.py", "one two\nthree\n"));
        files.add(TextFile::new("rl", "a/c.py", "one\n"));
        files
    }

    fn finding(id: &str, file: u32, start: u32, argument: &str) -> Finding {
        let rule = catalog::rule(id).unwrap();
        Finding::new(rule, "default", vec![argument.into(), "1".into()], Span::new(FileId(file), start, start + 1), "s")
    }

    fn arranged(findings: Vec<Finding>) -> Vec<Finding> {
        arrange(findings, &files(), Levels { of: &|_, _| None })
    }

    #[test]
    fn the_order_does_not_depend_on_the_input_order() {
        let all = || {
            vec![
                finding("RLK192", 0, 0, "a"),
                finding("RLK101", 1, 0, "b"),
                finding("RLK101", 0, 9, "c"),
                finding("RLK101", 0, 0, "d"),
                finding("RLK101", 0, 0, "e"),
            ]
        };
        let texts = |found: Vec<Finding>| found.iter().map(|f| format!("{f:?}")).collect::<Vec<_>>();
        let expected = texts(arranged(all()));
        let keys: Vec<_> = arranged(all()).iter().map(|f| (f.primary.file.0, f.primary.start, f.rule.id.clone())).collect();
        let key = |file, start, id: &str| (file, start, id.to_owned());
        assert_eq!(keys, [key(0, 0, "RLK101"), key(0, 0, "RLK192"), key(0, 9, "RLK101"), key(1, 0, "RLK101")]);
        for turn in 0..5 {
            let mut turned = all();
            turned.rotate_left(turn);
            assert_eq!(texts(arranged(turned)), expected);
        }
    }

    #[test]
    fn one_rule_on_one_line_is_one_finding_that_keeps_what_the_others_said() {
        let merged = arranged(vec![finding("RLK101", 0, 4, "y"), finding("RLK101", 0, 0, "x"), finding("RLK101", 0, 0, "x")]);
        assert_eq!(merged.len(), 1);
        assert_eq!(merged[0].arguments[0], "x");
        assert_eq!(merged[0].related.len(), 1);
        assert_eq!(merged[0].related[0].span.start, 4);
        assert!(merged[0].related[0].message.starts_with("also on this line: Source 'y'"));
        assert!(!merged[0].related[0].message.ends_with('.'));
    }

    #[test]
    fn levels_are_asked_for_by_rule_and_file() {
        let of = |rule: &RuleMeta, file: &TextFile| match (rule.id.as_str(), &*file.path) {
            (_, path) if path.ends_with("c.py") => Some(Level::Off),
            ("RLK101", _) => Some(Level::Note),
            _ => None,
        };
        let levels = Levels { of: &of };
        let found =
            arrange(vec![finding("RLK101", 0, 0, "a"), finding("RLK101", 1, 0, "b"), finding("RLK192", 0, 0, "c")], &files(), levels);
        let seen: Vec<_> = found.iter().map(|f| (f.rule.id.as_str(), f.primary.file.0, f.level)).collect();
        assert_eq!(seen, [("RLK101", 0, Level::Note), ("RLK192", 0, Level::Warning)]);
    }
}
