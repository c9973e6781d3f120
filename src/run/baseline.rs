//! Baselines: findings that are excused, so that the tool can be adopted before everything is fixed.
//!
//! In: a JSON file of entries, each with a rule, a symbol and a fingerprint, and a report. Out: the report with excused findings set apart and a finding
//! (RLK193) for each entry that meets none; or the text of a new file. Refused: files of another schema; entries never name a line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::RunError;
use crate::catalog::{self, Level, RuleMeta};
use crate::findings::compare::{Change, Seen, compare};
use crate::findings::fingerprint::Prints;
use crate::findings::{Against, Finding, Report, order};
use crate::text::{FileId, Files, Span};

/// Value of `schema` in every baseline that this version reads.
pub const SCHEMA: &str = "rlk-lint/baseline/v1";
/// Larger files are refused, in bytes.
pub const MAX_BYTES: u64 = 64 << 20;

/// One excused finding. Equal findings have equal entries, one each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    rule: String,
    symbol: String,
    fingerprint: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    schema: String,
    entries: Vec<Entry>,
}

/// A baseline that was read.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// Its name in reports.
    pub name: String,
    /// Its text in the run's file table.
    pub file: FileId,
    /// Its entries, in the order of the file.
    pub entries: Vec<Entry>,
}

/// Entries of a baseline's text.
///
/// # Errors
/// With the file's name, what is wrong and what to do.
pub fn parse(name: &str, text: &str) -> Result<Vec<Entry>, RunError> {
    let refused = |message: String| RunError::Usage {
        message: format!("the baseline {name} cannot be read: {message}"),
        help: format!("write it with `rlk-lint baseline create {name}`, which replaces it with `--force`"),
    };
    let document: Document = serde_json::from_str(text).map_err(|error| refused(error.to_string()))?;
    if document.schema != SCHEMA {
        return Err(refused(format!("its schema is `{}`, and this version reads `{SCHEMA}`", document.schema)));
    }
    Ok(document.entries)
}

/// Entries for findings, in order.
#[must_use]
pub fn entries(findings: &[Finding], files: &Files, main: Option<&str>) -> Vec<Entry> {
    let mut prints = Prints::new(files, main);
    let entry =
        |finding: &Finding| Entry { rule: finding.rule.id.clone(), symbol: finding.symbol.clone(), fingerprint: prints.of(finding) };
    let mut entries: Vec<Entry> = findings.iter().map(entry).collect();
    entries.sort();
    entries
}

/// Text of a baseline: one line for each entry, so that changes to it can be read and merged.
#[must_use]
pub fn text(entries: &[Entry]) -> String {
    let lines: Vec<String> = entries.iter().map(|entry| format!("    {}", serde_json::to_string(entry).unwrap_or_default())).collect();
    let body = if lines.is_empty() { String::new() } else { format!("\n{}\n  ", lines.join(",\n")) };
    format!("{{\n  \"schema\": \"{SCHEMA}\",\n  \"entries\": [{body}]\n}}\n")
}

/// Entries of `one` that `other` lacks; equal ones count once each.
#[must_use]
pub fn beyond<'e>(one: &'e [Entry], other: &[Entry]) -> Vec<&'e Entry> {
    let mut left: BTreeMap<Entry, usize> = BTreeMap::new();
    for entry in other {
        *left.entry(entry.clone()).or_default() += 1;
    }
    let met = |entry: &&Entry| match left.get_mut(*entry) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    one.iter().filter(met).collect()
}

impl std::fmt::Display for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.rule, self.symbol, self.fingerprint)
    }
}

impl Baseline {
    /// Sets excused findings apart and reports entries that meet none. `judged` says which rules the run reported, `level` at which level.
    pub fn set_apart(
        &self,
        report: &mut Report,
        files: &Files,
        main: Option<&str>,
        judged: &dyn Fn(&RuleMeta) -> bool,
        level: &dyn Fn(&RuleMeta) -> Level,
    ) {
        let mut prints = Prints::new(files, main);
        let now: Vec<Seen> = report.findings.iter().map(|finding| Seen::of(finding, files, &mut prints)).collect();
        let seen: Vec<Seen> = self
            .entries
            .iter()
            .map(|entry| Seen {
                rule: entry.rule.clone(),
                symbol: entry.symbol.clone(),
                print: entry.fingerprint.clone(),
                line: None,
                said: None,
                level: Level::Error,
            })
            .collect();
        let compared = compare(std::mem::take(&mut report.findings), &now, &seen);
        report.findings = compared.news;
        report.known = compared.known;
        let gone = |at: &&usize| catalog::rule(&self.entries[**at].rule).is_none_or(judged);
        // What an incomplete run did not find may still be there.
        let complete = !report.gaps.iter().any(|gap| gap.kind.is_fatal());
        let gone: Vec<usize> = compared.gone.iter().filter(gone).filter(|_| complete).copied().collect();
        if let Some(rule) = catalog::rule("RLK193").filter(|rule| judged(rule)) {
            let spans = self.spans(files);
            for at in &gone {
                let entry = &self.entries[*at];
                let mut finding =
                    Finding::new(rule, "default", vec![entry.rule.clone(), entry.symbol.clone()], spans[*at], entry.to_string());
                finding.level = level(rule);
                finding.change = Some(Change::New);
                if finding.level != Level::Off {
                    report.findings.push(finding);
                }
            }
        }
        order::sort(&mut report.findings);
        let gone = gone.iter().map(|at| (self.entries[*at].rule.clone(), self.entries[*at].symbol.clone())).collect();
        report.against = Some(Against { name: self.name.clone(), commit: None, notes: Vec::new(), gone });
    }

    /// Place of each entry's fingerprint in the file. Entries stand there in the same order.
    fn spans(&self, files: &Files) -> Vec<Span> {
        let text = &files.get(self.file).text;
        let mut at = 0;
        let mut spans = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            let quoted = format!("\"{}\"", entry.fingerprint);
            let found = text.get(at..).and_then(|rest| rest.find(&quoted)).map(|found| at + found);
            let start = found.unwrap_or(0);
            at = found.map_or(at, |found| found + quoted.len());
            let number = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
            spans.push(Span::new(self.file, number(start), number(start + if found.is_some() { quoted.len() } else { 0 })));
        }
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(rule: &str, symbol: &str, fingerprint: &str) -> Entry {
        Entry { rule: rule.into(), symbol: symbol.into(), fingerprint: fingerprint.into() }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let entries = [entry("RLK301", "a.\"b\"", "1:1"), entry("RLK301", "é", "2:1")];
        let written = text(&entries);
        assert_eq!(written.lines().count(), 7, "{written}");
        assert_eq!(parse("b.json", &written).unwrap(), entries);
        assert_eq!(parse("b.json", &text(&[])).unwrap(), []);
    }

    #[test]
    fn other_files_are_refused_by_name() {
        for (text, words) in [
            ("", "EOF"),
            ("{\"schema\": \"rlk-lint/baseline/v2\", \"entries\": []}", "v2"),
            ("{\"schema\": \"rlk-lint/baseline/v1\", \"entries\": [{\"rule\": \"RLK301\", \"line\": 3}]}", "line"),
        ] {
            let error = parse("b.json", text).unwrap_err().to_string();
            assert!(error.contains("b.json") && error.contains(words), "{error}");
        }
    }

    #[test]
    fn equal_entries_count_once_each() {
        let (a, b) = (entry("RLK301", "a", "1:1"), entry("RLK301", "b", "1:1"));
        assert_eq!(beyond(&[a.clone(), a.clone(), b.clone()], std::slice::from_ref(&a)), [&a, &b]);
        assert!(beyond(std::slice::from_ref(&a), &[b, a.clone()]).is_empty());
    }
}
