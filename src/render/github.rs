//! GitHub workflow commands, which become annotations, and the summary of a job.
//!
//! In: a document. Out: `::error file=...::message` lines, at most ten per level, since GitHub drops what comes after; and Markdown for the
//! job summary, which has no such limit. Refused: text that could end a command or start another one.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::catalog::Level;
use crate::findings::{Finding, Gap};
use crate::text::{ColumnUnit, sanitize};

use super::places::Places;
use super::tally::plural;
use super::{Document, human, rule_page};

/// Annotations of one level that GitHub shows for one step.
pub const MAX_PER_LEVEL: usize = 10;
/// Findings listed in the job summary.
const MAX_LISTED: usize = 100;

/// Writes the annotations: errors first, each level in the report's order, gaps after the findings of their level.
///
/// # Errors
/// If the writer fails.
pub fn write(document: Document<'_>, out: &mut dyn Write) -> io::Result<()> {
    let places = Places::new(&document);
    let gap_level = |gap: &Gap| if gap.kind.is_fatal() && !gap.allowed { Level::Error } else { Level::Warning };
    for level in [Level::Error, Level::Warning, Level::Note] {
        let findings = document.report.findings.iter().filter(|finding| finding.level == level);
        let gaps = document.report.gaps.iter().filter(|gap| gap_level(gap) == level);
        let lines: Vec<String> =
            findings.map(|finding| command(finding, &document, &places)).chain(gaps.map(|gap| gap_command(gap, level, &places))).collect();
        let room = if lines.len() > MAX_PER_LEVEL { MAX_PER_LEVEL - 1 } else { MAX_PER_LEVEL };
        for line in lines.iter().take(room) {
            writeln!(out, "{line}")?;
        }
        if let Some(more) = lines.len().checked_sub(room).filter(|more| *more > 0) {
            let text = format!("{} more at level {}; see the job summary or the full report.", more, level.word());
            writeln!(out, "::{} title={}::{}", kind(level), property(super::TOOL_NAME), data(&text))?;
        }
    }
    Ok(())
}

/// Markdown for the job summary (`$GITHUB_STEP_SUMMARY`).
///
/// # Errors
/// If the writer fails.
pub fn write_summary(document: Document<'_>, out: &mut dyn Write) -> io::Result<()> {
    let places = Places::new(&document);
    writeln!(out, "## {}\n", super::TOOL_NAME)?;
    for line in human::summary(&document) {
        writeln!(out, "- {}", markdown(&line))?;
    }
    let mut findings: Vec<&Finding> = document.report.findings.iter().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    if !findings.is_empty() {
        writeln!(out, "\n| Level | Rule | Place | Finding |\n| --- | --- | --- | --- |")?;
    }
    for finding in findings.iter().take(MAX_LISTED) {
        let line = document.files.get(finding.primary.file).line_of(finding.primary.start);
        writeln!(
            out,
            "| {} | [{}]({}) | {}:{line} | {} |",
            finding.level.word(),
            finding.rule.id,
            rule_page(finding.rule.slug),
            markdown(places.address(finding.primary.file).path()),
            markdown(&finding.text())
        )?;
    }
    if let Some(more) = findings.len().checked_sub(MAX_LISTED).filter(|more| *more > 0) {
        writeln!(out, "\n{} not listed.", plural(more, "more finding"))?;
    }
    let mut kinds: BTreeMap<&str, Vec<&Gap>> = BTreeMap::new();
    for gap in &document.report.gaps {
        kinds.entry(gap.kind.word()).or_default().push(gap);
    }
    if !kinds.is_empty() {
        writeln!(out, "\n### Not seen\n")?;
    }
    for (kind, gaps) in kinds {
        let first = gaps.first().map_or("", |gap| gap.cause.as_str());
        let count = if gaps.len() > 1 { format!(" (and {} more)", gaps.len() - 1) } else { String::new() };
        writeln!(out, "- {kind}: {}{count}", markdown(first))?;
    }
    Ok(())
}

const fn kind(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note | Level::Off => "notice",
    }
}

fn command(finding: &Finding, document: &Document<'_>, places: &Places<'_>) -> String {
    let anchor = places.anchor(finding);
    let mut properties = String::new();
    match anchor.shown {
        Some(span) => {
            let file = document.files.get(span.file);
            let span = places.one_line(span);
            let (start, end) = (file.position(span.start, ColumnUnit::Utf16), file.position(span.end, ColumnUnit::Utf16));
            let last = end.column.saturating_sub(1).max(start.column);
            properties.push_str(&format!("file={},", property(places.address(span.file).path())));
            properties.push_str(&format!("line={},endLine={},col={},endColumn={last},", start.line, start.line, start.column));
        }
        None => properties.push_str(&format!("file={},line=1,", property(places.profile().path()))),
    }
    let title = format!("{} {}", finding.rule.id, finding.rule.slug);
    let mut text = finding.text();
    if let Some(span) = anchor.companion {
        text.push_str(&format!(" See {}.", places.on_the_web(span, finding.from_patch)));
    }
    format!("::{} {properties}title={}::{}", kind(finding.level), property(&title), data(&text))
}

fn gap_command(gap: &Gap, level: Level, places: &Places<'_>) -> String {
    let title = property(&format!("{} gap: {}", super::TOOL_NAME, gap.kind.word()));
    let mut place = String::new();
    if !gap.source.is_empty() {
        place = format!("{}: ", places.address_in(&gap.source, &gap.path).path().trim_end_matches('/'));
    }
    format!("::{} title={title}::{}", kind(level), data(format!("{place}{} {}", gap.cause, gap.next).trim_end()))
}

/// Escapes the text of a command.
fn data(text: &str) -> String {
    sanitize(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a command's property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Escapes text for a Markdown table.
fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in sanitize(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::{Sample, sample};

    fn written(sample: &Sample) -> String {
        let mut out = Vec::new();
        write(sample.document(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn annotations_lie_on_lines_of_the_main_repository() {
        let text = written(&sample());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert!(
            lines[0].starts_with("::error file=train.py,line=3,endLine=3,col=12,endColumn=21,title=RLK101 unpinned-source::"),
            "{text}"
        );
        assert!(lines[1].starts_with("::error file=rlk-lint.toml,line=3,"), "{text}");
        assert!(lines[2].starts_with("::error title=rlk-lint gap%3A source-missing::vllm: It was not there."), "{text}");
        assert!(lines[3].starts_with("::warning file=train.py,line=3,"), "{text}");
    }

    #[test]
    fn ten_per_level_and_the_tenth_counts_the_rest() {
        let mut sample = sample();
        let one = sample.report.findings[1].clone();
        sample.report.findings = vec![one; 30];
        sample.report.gaps.clear();
        let text = written(&sample);
        assert_eq!(text.lines().count(), MAX_PER_LEVEL);
        assert!(text.ends_with("::21 more at level error; see the job summary or the full report.\n"), "{text}");
    }

    #[test]
    fn no_text_ends_a_command() {
        let mut sample = sample();
        sample.report.findings[0].arguments[0] = "a\n::error::b%0A".into();
        sample.report.gaps[0].cause = "x\r\n::set-output::y".into();
        let text = written(&sample);
        assert_eq!(text.lines().count(), 5, "{text}");
        assert!(text.contains("b%250A"), "{text}");
        assert_eq!(property("a:b,c%"), "a%3Ab%2Cc%25");
    }

    #[test]
    fn the_summary_is_inert_markdown() {
        let mut sample = sample();
        sample.report.findings[0].arguments[0] = "<img src=x> | [a](http://b)".into();
        let mut out = Vec::new();
        write_summary(sample.document(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("&lt;img src=x&gt; \\| \\[a\\](http://b)"), "{text}");
        assert!(text.contains("- routes: 12 traced, 3 untraced (dynamic dispatch 2, no owner 1)"), "{text}");
        assert!(text.contains("- source-missing: It was not there."), "{text}");
    }
}
