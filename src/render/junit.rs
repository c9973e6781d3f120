//! JUnit XML.
//!
//! In: a document. Out: one suite with a test case per finding and per gap, all failed but notes and allowed gaps; a run without either has one
//! passed case, since many readers take an empty suite for an error. Refused: characters that XML 1.0 cannot hold.

use std::io::{self, Write};

use crate::catalog::Level;
use crate::findings::{Finding, Gap};
use crate::text::sanitize;

use super::places::Places;
use super::{Document, TOOL_NAME};

struct Case {
    group: String,
    name: String,
    /// Kind, message and text of the failure; `None` for a passed case.
    failure: Option<(&'static str, String, String)>,
    /// Text of a case that passed and still has something to say.
    remark: Option<String>,
}

/// Writes the document.
///
/// # Errors
/// If the writer fails.
pub fn write(document: Document<'_>, out: &mut dyn Write) -> io::Result<()> {
    let places = Places::new(&document);
    let findings = document.report.findings.iter().map(|finding| finding_case(finding, &document, &places));
    let gaps = document.report.gaps.iter().map(|gap| gap_case(gap, &places));
    let mut cases: Vec<Case> = findings.chain(gaps).collect();
    if cases.is_empty() {
        cases.push(Case { group: TOOL_NAME.into(), name: "no findings".into(), failure: None, remark: None });
    }
    let failures = cases.iter().filter(|case| case.failure.is_some()).count();
    let counts = format!("tests=\"{}\" failures=\"{failures}\" errors=\"0\"", cases.len());
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites name=\"{TOOL_NAME}\" {counts}>")?;
    writeln!(out, "  <testsuite name=\"{TOOL_NAME}\" {counts} skipped=\"0\">")?;
    for case in &cases {
        write!(out, "    <testcase classname=\"{}\" name=\"{}\"", escape(&case.group), escape(&case.name))?;
        match (&case.failure, &case.remark) {
            (Some((kind, message, text)), _) => {
                writeln!(out, ">")?;
                let (message, text) = (escape(message), escape(text));
                writeln!(out, "      <failure type=\"{kind}\" message=\"{message}\">{text}</failure>")?;
                writeln!(out, "    </testcase>")?;
            }
            (None, Some(remark)) => writeln!(out, "><system-out>{}</system-out></testcase>", escape(remark))?,
            (None, None) => writeln!(out, "/>")?,
        }
    }
    writeln!(out, "  </testsuite>\n</testsuites>")
}

fn finding_case(finding: &Finding, document: &Document<'_>, places: &Places<'_>) -> Case {
    let message = finding.text();
    let place =
        |span: crate::text::Span| format!("{}:{}", places.address(span.file).path(), document.files.get(span.file).line_of(span.start));
    let mut text = format!("{}: {message}", place(finding.primary));
    for step in &finding.flow {
        text.push_str(&format!(" > {}: {}", place(step.span), step.message));
    }
    let group = format!("{} {}", finding.rule.id, finding.rule.slug);
    let name = format!("{} {}", place(finding.primary), finding.symbol);
    match finding.level {
        Level::Error => Case { group, name, failure: Some(("error", message, text)), remark: None },
        Level::Warning => Case { group, name, failure: Some(("warning", message, text)), remark: None },
        Level::Note | Level::Off => Case { group, name, failure: None, remark: Some(text) },
    }
}

fn gap_case(gap: &Gap, places: &Places<'_>) -> Case {
    let place = places.address_in(&gap.source, &gap.path);
    let place = place.path().trim_end_matches('/');
    let text = format!("{} {}", gap.cause, gap.next).trim_end().to_owned();
    let group = format!("gap {}", gap.kind.word());
    let name = if place.is_empty() { gap.cause.clone() } else { place.to_owned() };
    if gap.allowed {
        Case { group, name, failure: None, remark: Some(text) }
    } else {
        Case { group, name, failure: Some(("gap", gap.cause.clone(), text)), remark: None }
    }
}

/// Escapes text for attributes and content; noncharacters, which XML cannot hold, become visible.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in sanitize(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\t' => out.push(' '),
            '\u{FFFE}' | '\u{FFFF}' => out.extend(c.escape_unicode()),
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
    fn findings_and_gaps_fail_and_notes_do_not() {
        let mut sample = sample();
        sample.report.findings[0].level = Level::Note;
        sample.report.gaps[0].allowed = true;
        let text = written(&sample);
        assert!(text.contains("<testsuite name=\"rlk-lint\" tests=\"5\" failures=\"3\" errors=\"0\" skipped=\"0\">"), "{text}");
        assert_eq!(text.matches("<failure ").count(), 3);
        assert_eq!(text.matches("<system-out>").count(), 2);
        assert_eq!(text.matches("<testcase ").count(), 5);
    }

    #[test]
    fn text_from_sources_is_escaped() {
        let mut sample = sample();
        sample.report.findings[0].arguments[0] = "<b a=\"'&\u{0}\u{FFFF}>".into();
        let text = written(&sample);
        assert!(text.contains("&lt;b a=&quot;&apos;&amp;\\u{0}\\u{ffff}&gt;"), "{text}");
    }

    #[test]
    fn a_clean_run_has_one_passed_case() {
        let mut sample = sample();
        sample.report = crate::findings::Report::default();
        assert!(written(&sample).contains("<testcase classname=\"rlk-lint\" name=\"no findings\"/>"));
    }
}
