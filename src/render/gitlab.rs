//! GitLab code quality report.
//!
//! In: a document. Out: a JSON list of issues, each on a line of the main repository, with a fingerprint that is unique in the report and
//! survives moved lines. Refused: nothing; gaps have no place in this format and stay with the other reports and the exit code.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::catalog::Level;
use crate::findings::Finding;
use crate::findings::fingerprint::LineHashes;
use crate::text::{FileId, sanitize};

use super::Document;
use super::places::Places;

#[derive(Serialize)]
struct Issue<'a> {
    description: String,
    check_name: &'a str,
    fingerprint: String,
    severity: &'static str,
    location: Location,
}

#[derive(Serialize)]
struct Location {
    path: String,
    lines: Lines,
}

#[derive(Serialize)]
struct Lines {
    begin: u32,
}

/// Writes the list.
///
/// # Errors
/// If the writer fails.
pub fn write(document: Document<'_>, out: &mut dyn Write) -> io::Result<()> {
    let places = Places::new(&document);
    let mut hashes: BTreeMap<FileId, LineHashes> = BTreeMap::new();
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut issues = Vec::with_capacity(document.report.findings.len());
    // GitLab compares reports itself: one without what the base has too would show that as resolved.
    for finding in document.report.findings.iter().chain(&document.report.known) {
        let file = document.files.get(finding.primary.file);
        let lines = hashes.entry(finding.primary.file).or_insert_with(|| LineHashes::of(&file.text));
        let line = lines.line(file.line_of(finding.primary.start)).unwrap_or_default();
        let key = [&finding.rule.id, places.address(finding.primary.file).path(), &finding.symbol, &line].join("\0");
        let count = seen.entry(key.clone()).or_insert(0);
        *count += 1;
        issues.push(issue(finding, fingerprint(&key, *count), &document, &places));
    }
    serde_json::to_writer_pretty(&mut *out, &issues)?;
    out.write_all(b"\n")
}

fn fingerprint(key: &str, count: u32) -> String {
    let digest = Sha256::digest(format!("{key}\0{count}"));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn issue<'a>(finding: &'a Finding, fingerprint: String, document: &Document<'_>, places: &Places<'_>) -> Issue<'a> {
    let anchor = places.anchor(finding);
    let (path, begin) = match anchor.shown {
        Some(span) => (places.address(span.file), document.files.get(span.file).line_of(span.start)),
        None => (places.profile(), 1),
    };
    let mut description = sanitize(&finding.text()).into_owned();
    if let Some(span) = anchor.companion {
        description.push_str(&format!(" See {}.", sanitize(&places.on_the_web(span, finding.from_patch))));
    }
    Issue {
        description,
        check_name: &finding.rule.id,
        fingerprint,
        severity: match finding.level {
            Level::Error => "critical",
            Level::Warning => "major",
            Level::Note | Level::Off => "info",
        },
        location: Location { path: path.path().to_owned(), lines: Lines { begin } },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::sample;

    #[test]
    fn every_issue_has_its_own_fingerprint_and_a_place_in_the_main_repository() {
        let mut sample = sample();
        let repeated = sample.report.findings[1].clone();
        sample.report.findings.push(repeated);
        let mut out = Vec::new();
        write(sample.document(), &mut out).unwrap();
        let issues: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let issues = issues.as_array().unwrap();
        let place =
            |at: usize| (issues[at]["location"]["path"].as_str().unwrap(), issues[at]["location"]["lines"]["begin"].as_u64().unwrap());
        assert_eq!([place(0), place(1), place(2)], [("train.py", 3), ("train.py", 3), ("rlk-lint.toml", 3)]);
        let severities: Vec<&str> = issues.iter().map(|issue| issue["severity"].as_str().unwrap()).collect();
        assert_eq!(severities, ["major", "critical", "critical", "critical"]);
        let prints: std::collections::BTreeSet<&str> = issues.iter().map(|issue| issue["fingerprint"].as_str().unwrap()).collect();
        assert_eq!(prints.len(), 4);
    }

    #[test]
    fn a_clean_run_is_an_empty_list() {
        let mut sample = sample();
        sample.report = crate::findings::Report::default();
        let mut out = Vec::new();
        write(sample.document(), &mut out).unwrap();
        assert_eq!(out, b"[]\n");
    }
}
