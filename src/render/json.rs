//! The report as one JSON document.
//!
//! In: a document. Out: JSON of the schema [`SCHEMA_ID`], published as `sarif/report-v1.schema.json`. Fields may be added within version 1;
//! a changed or removed one makes version 2. Lines and columns count from 1, columns in Unicode scalar values.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use crate::findings::compare::Change;
use crate::findings::fingerprint::Prints;
use crate::findings::{Against, Finding, Gap, GapKind, Verdict};
use crate::text::{ColumnUnit, Files, Span, sanitize};

use super::places::host_path;
use super::{Document, TOOL_NAME};

/// Identifies the schema and its version.
pub const SCHEMA_ID: &str = "rlk-lint/report/v1";

#[derive(Serialize)]
struct Output<'a> {
    schema: &'static str,
    tool: Tool<'a>,
    profile: &'a str,
    verdict: Verdict,
    fail_on: &'static str,
    column_unit: &'static str,
    sources: Vec<Source<'a>>,
    findings: Vec<Item<'a>>,
    known: Vec<Item<'a>>,
    against: Option<Base<'a>>,
    suppressed: Vec<Silenced<'a>>,
    gaps: Vec<GapItem<'a>>,
    counts: &'a BTreeMap<String, u64>,
}

#[derive(Serialize)]
struct Base<'a> {
    name: Cow<'a, str>,
    commit: Option<&'a str>,
    notes: Vec<Cow<'a, str>>,
    gone: Vec<Gone<'a>>,
}

#[derive(Serialize)]
struct Gone<'a> {
    rule: &'a str,
    symbol: Cow<'a, str>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'static str,
    version: &'a str,
}

#[derive(Serialize)]
struct Source<'a> {
    id: &'a str,
    repository: Option<String>,
    commit: Option<&'a str>,
    patched_tree: Option<&'a str>,
    main: bool,
}

#[derive(Serialize)]
struct Item<'a> {
    rule: &'a str,
    slug: &'a str,
    name: &'a str,
    level: &'static str,
    change: Option<&'static str>,
    precision: &'static str,
    message: Cow<'a, str>,
    message_id: &'a str,
    arguments: Vec<Cow<'a, str>>,
    symbol: Cow<'a, str>,
    from_patch: bool,
    fingerprint: String,
    place: Place<'a>,
    related: Vec<Note<'a>>,
    flow: Vec<Note<'a>>,
}

#[derive(Serialize)]
struct Silenced<'a> {
    reason: Cow<'a, str>,
    finding: Item<'a>,
}

#[derive(Serialize)]
struct Note<'a> {
    message: Cow<'a, str>,
    place: Place<'a>,
}

#[derive(Serialize)]
struct Place<'a> {
    source: &'a str,
    path: Cow<'a, str>,
    start: Point,
    end: Point,
}

#[derive(Serialize)]
struct Point {
    line: u32,
    column: u32,
}

#[derive(Serialize)]
struct GapItem<'a> {
    kind: GapKind,
    fatal: bool,
    allowed: bool,
    source: &'a str,
    path: Cow<'a, str>,
    place: Option<Place<'a>>,
    cause: Cow<'a, str>,
    next: Cow<'a, str>,
}

/// Writes the document.
///
/// # Errors
/// If the writer fails.
pub fn write(document: Document<'_>, out: &mut dyn Write) -> io::Result<()> {
    let Document { report, files, info } = document;
    let mut items = Items { files, prints: document.prints() };
    let output = Output {
        schema: SCHEMA_ID,
        tool: Tool { name: TOOL_NAME, version: &info.tool_version },
        profile: &info.profile,
        verdict: info.verdict,
        fail_on: info.fail_on.word(),
        column_unit: "unicode-scalar",
        sources: info.sources.iter().map(source).collect(),
        findings: report.findings.iter().map(|finding| items.item(finding)).collect(),
        known: report.known.iter().map(|finding| items.item(finding)).collect(),
        against: report.against.as_ref().map(base),
        suppressed: report
            .suppressed
            .iter()
            .map(|(finding, reason)| Silenced { reason: sanitize(reason), finding: items.item(finding) })
            .collect(),
        gaps: report.gaps.iter().map(|gap| gap_item(gap, files)).collect(),
        counts: &report.counts,
    };
    serde_json::to_writer_pretty(&mut *out, &output)?;
    out.write_all(b"\n")
}

fn source(source: &super::SourceInfo) -> Source<'_> {
    Source {
        id: &source.id,
        repository: source.repository.as_deref().and_then(host_path).map(|address| format!("https://{address}")),
        commit: source.commit.as_deref(),
        patched_tree: source.patched_tree.as_deref(),
        main: source.is_main,
    }
}

fn base(against: &Against) -> Base<'_> {
    Base {
        name: sanitize(&against.name),
        commit: against.commit.as_deref(),
        notes: against.notes.iter().map(|note| sanitize(note)).collect(),
        gone: against.gone.iter().map(|(rule, symbol)| Gone { rule, symbol: sanitize(symbol) }).collect(),
    }
}

struct Items<'a> {
    files: &'a Files,
    prints: Prints<'a>,
}

impl<'a> Items<'a> {
    fn item(&mut self, finding: &'a Finding) -> Item<'a> {
        let fingerprint = self.prints.of(finding);
        let note = |span, message: &'a str| Note { message: sanitize(message), place: place(span, self.files) };
        Item {
            rule: &finding.rule.id,
            slug: finding.rule.slug,
            name: &finding.rule.name,
            level: finding.level.word(),
            change: finding.change.map(Change::word),
            precision: finding.rule.precision.word(),
            message: Cow::Owned(sanitize(&finding.text()).into_owned()),
            message_id: finding.message,
            arguments: finding.arguments.iter().map(|argument| sanitize(argument)).collect(),
            symbol: sanitize(&finding.symbol),
            from_patch: finding.from_patch,
            fingerprint,
            place: place(finding.primary, self.files),
            related: finding.related.iter().map(|related| note(related.span, &related.message)).collect(),
            flow: finding.flow.iter().map(|step| note(step.span, &step.message)).collect(),
        }
    }
}

fn place(span: Span, files: &Files) -> Place<'_> {
    let file = files.get(span.file);
    let point = |offset| {
        let position = file.position(offset, ColumnUnit::Scalar);
        Point { line: position.line, column: position.column }
    };
    Place { source: &file.source, path: sanitize(&file.path), start: point(span.start), end: point(span.end.max(span.start)) }
}

fn gap_item<'a>(gap: &'a Gap, files: &'a Files) -> GapItem<'a> {
    GapItem {
        kind: gap.kind,
        fatal: gap.kind.is_fatal(),
        allowed: gap.allowed,
        source: &gap.source,
        path: sanitize(&gap.path),
        place: gap.span.filter(|span| (span.file.0 as usize) < files.len()).map(|span| place(span, files)),
        cause: sanitize(&gap.cause),
        next: sanitize(&gap.next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::sample;
    use serde_json::Value;

    fn written() -> Value {
        let mut out = Vec::new();
        write(sample().document(), &mut out).unwrap();
        if let Some(folder) = std::env::var_os("RLK_KEEP_LOGS") {
            std::fs::write(std::path::Path::new(&folder).join("report.json"), &out).unwrap();
        }
        serde_json::from_slice(&out).unwrap()
    }

    /// Keys that the published schema requires at a place, and those that the report has there.
    fn keys(schema: &Value, report: &Value) -> (Vec<String>, Vec<String>) {
        let required = schema["required"].as_array().unwrap().iter().map(|key| key.as_str().unwrap().to_owned()).collect();
        (required, report.as_object().unwrap().keys().cloned().collect())
    }

    #[test]
    fn the_published_schema_names_exactly_what_is_written() {
        let schema: Value = serde_json::from_str(include_str!("../../sarif/report-v1.schema.json")).unwrap();
        let report = written();
        let pairs = [
            (&schema, &report),
            (&schema["$defs"]["finding"], &report["findings"][1]),
            (&schema["$defs"]["place"], &report["findings"][1]["place"]),
            (&schema["$defs"]["note"], &report["findings"][1]["flow"][0]),
            (&schema["$defs"]["gap"], &report["gaps"][1]),
            (&schema["$defs"]["source"], &report["sources"][0]),
        ];
        for (schema, report) in pairs {
            let (required, present) = keys(schema, report);
            assert_eq!(required, present);
            let described: Vec<String> = schema["properties"].as_object().unwrap().keys().cloned().collect();
            assert_eq!(described, present);
        }
        assert_eq!(schema["properties"]["schema"]["const"], SCHEMA_ID);
        let kinds: Vec<&str> = GapKind::ALL.iter().map(|kind| kind.word()).collect();
        assert_eq!(schema["$defs"]["gap"]["properties"]["kind"]["enum"], serde_json::json!(kinds));
        assert_eq!(serde_json::to_value(GapKind::ALL).unwrap(), serde_json::json!(kinds));
    }

    #[test]
    fn places_are_counted_in_scalars() {
        let report = written();
        let place = &report["findings"][0]["place"];
        assert_eq!((place["start"]["line"].as_u64(), place["start"]["column"].as_u64()), (Some(3), Some(5)));
        assert_eq!(report["findings"][1]["flow"][1]["place"]["start"]["column"], 11);
        assert_eq!(report["verdict"], "incomplete");
        assert_eq!(report["sources"][0]["repository"], "https://github.com/rl-align/rl-kernel");
        assert_eq!(report["suppressed"][0]["reason"], "it is only\\u{1b} a test");
    }
}
