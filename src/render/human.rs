//! The report for people.
//!
//! In: a document and a writer that may know colours. Out: each finding with its source lines and the chain from entry to kernel, file by
//! file; then gaps, and a summary: findings, routes traced, routes untraced and why, gaps, verdict. Refused: control and bidirectional
//! characters from sources, which could steer the terminal; they are shown as something harmless.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use codespan_reporting::diagnostic::{Diagnostic, Label, LabelStyle, Severity};
use codespan_reporting::files as codespan;
use codespan_reporting::term::{self, Config, DisplayStyle};

pub use codespan_reporting::term::termcolor;

use crate::catalog::Level;
use crate::findings::compare::Change;
use crate::findings::{Against, Finding, Gap, Report, Verdict, counts};
use crate::text::{FileId, Files, Span, sanitize};

use super::Document;
use super::places::Places;
use super::tally::{Tally, plural, routes};

/// Bytes of the longest source line that is shown; a longer one is only named.
const LONGEST_LINE: usize = 400;

/// How much is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Source lines and chains.
    #[default]
    Full,
    /// One line per finding.
    Concise,
}

/// What is shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// How much is shown of each finding.
    pub style: Style,
    /// Whether suppressed findings are shown too, with their reasons.
    pub show_suppressed: bool,
    /// Whether the summary is left out.
    pub quiet: bool,
}

/// Writes the report.
///
/// # Errors
/// If the writer fails.
pub fn write(document: Document<'_>, options: Options, out: &mut dyn termcolor::WriteColor) -> io::Result<()> {
    let mut page = Page::new(&document, options);
    for finding in &document.report.findings {
        page.finding(finding, None, out)?;
    }
    for (finding, reason) in document.report.suppressed.iter().filter(|_| options.show_suppressed) {
        page.finding(finding, Some(reason), out)?;
    }
    for gap in &document.report.gaps {
        page.gap(gap, out)?;
    }
    if !options.quiet {
        for line in summary(&document) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// The summary, line by line.
#[must_use]
pub fn summary(document: &Document<'_>) -> Vec<String> {
    let Document { report, info, .. } = document;
    let mut first = format!("{} {}: {}", super::TOOL_NAME, info.tool_version, Tally::of(&report.findings).words());
    if let Some(files) = report.counts.get(counts::FILES_READ) {
        first.push_str(&format!(" in {}", plural(usize::try_from(*files).unwrap_or(usize::MAX), "file")));
    }
    if !report.suppressed.is_empty() {
        first.push_str(&format!(", {} suppressed", report.suppressed.len()));
    }
    let mut lines = vec![first];
    if let Some(against) = &report.against {
        lines.extend(base_lines(against, report));
    }
    lines.extend(routes(report).map(|routes| format!("routes: {}", sanitize(&routes))));
    lines.push(format!("gaps: {}", gap_words(&report.gaps)));
    lines.push(format!(
        "verdict: {} (exit {}), {}",
        info.verdict.word(),
        info.verdict.exit_code(),
        verdict_words(info.verdict, info.fail_on)
    ));
    lines
}

/// What the comparison says, line by line.
fn base_lines(against: &Against, report: &Report) -> Vec<String> {
    let name = sanitize(&against.name);
    let at = match against.commit.as_deref().and_then(|commit| commit.get(..12)) {
        Some(commit) if !name.starts_with(commit) => format!("{name} ({commit})"),
        _ => name.into_owned(),
    };
    let count = |change: Change| report.findings.iter().filter(|finding| finding.change == Some(change)).count();
    let mut lines = vec![format!(
        "against {at}: {} new, {} changed, {} as before, {} gone",
        count(Change::New),
        count(Change::Changed),
        report.known.len(),
        against.gone.len()
    )];
    lines.extend(against.notes.iter().map(|note| format!("note: {}", sanitize(note))));
    lines
}

fn gap_words(gaps: &[Gap]) -> String {
    if gaps.is_empty() {
        return "none".to_owned();
    }
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for gap in gaps {
        *kinds.entry(gap.kind.word()).or_default() += 1;
    }
    let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    let fatal = gaps.iter().filter(|gap| gap.kind.is_fatal() && !gap.allowed).count();
    let tail = if fatal > 0 { format!("; {fatal} of them leave the run incomplete") } else { String::new() };
    format!("{} ({}){tail}", gaps.len(), kinds.join(", "))
}

fn verdict_words(verdict: Verdict, fail_on: Level) -> String {
    match verdict {
        Verdict::Clean if fail_on == Level::Off => "findings do not fail the run".to_owned(),
        Verdict::Clean => format!("nothing at level {} or above", fail_on.word()),
        Verdict::Findings => format!("findings at level {} or above", fail_on.word()),
        Verdict::Nothing => "there was nothing to lint".to_owned(),
        Verdict::Incomplete => "a source, pin or patch was not seen as the profile declares it".to_owned(),
    }
}

/// The writer's state: sources made harmless, once per file.
struct Page<'a> {
    places: Places<'a>,
    shown: Shown<'a>,
    config: Config,
}

impl<'a> Page<'a> {
    fn new(document: &Document<'a>, options: Options) -> Self {
        let display_style = if options.style == Style::Concise { DisplayStyle::Short } else { DisplayStyle::Rich };
        let config = Config { display_style, ..Config::default() };
        Self { places: Places::new(document), shown: Shown { files: document.files, texts: BTreeMap::new() }, config }
    }

    fn finding(&mut self, finding: &Finding, reason: Option<&str>, out: &mut dyn termcolor::WriteColor) -> io::Result<()> {
        let severity = match finding.level {
            Level::Error => Severity::Error,
            Level::Warning => Severity::Warning,
            Level::Note | Level::Off => Severity::Note,
        };
        let mut message = sanitize(&finding.text()).into_owned();
        if reason.is_some() {
            message = format!("suppressed: {message}");
        } else if finding.change == Some(Change::Changed) {
            message = format!("changed: {message}");
        }
        let mut drawn = Drawn::default();
        let steps = finding.flow.len();
        let numbered = |at: usize, text: &str| format!("({} of {steps}) {text}", at + 1);
        let on_primary = finding.flow.iter().position(|step| step.span == finding.primary);
        let primary_text = on_primary.map_or_else(String::new, |at| numbered(at, &finding.flow[at].message));
        self.label(LabelStyle::Primary, finding.primary, &primary_text, &mut drawn);
        for (at, step) in finding.flow.iter().enumerate().filter(|(at, _)| Some(*at) != on_primary) {
            self.label(LabelStyle::Secondary, step.span, &numbered(at, &step.message), &mut drawn);
        }
        for related in &finding.related {
            self.label(LabelStyle::Secondary, related.span, &related.message, &mut drawn);
        }
        if self.places.anchor(finding).companion.is_some() {
            drawn.notes.push(sanitize(&self.places.on_the_web(finding.primary, finding.from_patch)).into_owned());
        } else if finding.from_patch {
            drawn.notes.push("the companion patch adds this line".to_owned());
        }
        drawn.notes.extend(reason.map(|reason| format!("reason given: {}", sanitize(reason))));
        self.emit(severity, &finding.rule.id, message, drawn, out)
    }

    fn gap(&mut self, gap: &Gap, out: &mut dyn termcolor::WriteColor) -> io::Result<()> {
        let severity = if gap.kind.is_fatal() && !gap.allowed { Severity::Error } else { Severity::Warning };
        let place = match (gap.source.is_empty(), gap.path.is_empty()) {
            (true, true) => String::new(),
            (false, true) => format!("source '{}': ", sanitize(&gap.source)),
            (true, false) => format!("'{}': ", sanitize(&gap.path)),
            (false, false) => format!("'{}:{}': ", sanitize(&gap.source), sanitize(&gap.path)),
        };
        let mut drawn = Drawn::default();
        if let Some(span) = gap.span.filter(|span| (span.file.0 as usize) < self.shown.files.len()) {
            self.label(LabelStyle::Primary, span, "", &mut drawn);
        }
        if !gap.next.is_empty() {
            drawn.notes.push(sanitize(&gap.next).into_owned());
        }
        if gap.allowed {
            drawn.notes.push("allowed: the run went on without it".to_owned());
        }
        self.emit(severity, &format!("gap:{}", gap.kind.word()), format!("{place}{}", sanitize(&gap.cause)), drawn, out)
    }

    /// Draws a place as a label or, where the line is too long to show, as a note.
    fn label(&mut self, style: LabelStyle, span: Span, message: &str, drawn: &mut Drawn) {
        let file = self.shown.files.get(span.file);
        let span = self.places.one_line(span);
        let message = sanitize(message).into_owned();
        let line = file.line_of(span.start);
        if file.line_text(line).len() > LONGEST_LINE && self.config.display_style_is_rich() {
            let place = sanitize(&self.shown.files.place(span)).into_owned();
            drawn.notes.push(if message.is_empty() { place } else { format!("{place}: {message}") });
            return;
        }
        self.shown.prepare(span.file);
        let range = span.start as usize..span.end as usize;
        drawn.labels.push(Label::new(style, span.file, range).with_message(message));
    }

    fn emit(&self, severity: Severity, code: &str, message: String, drawn: Drawn, out: &mut dyn termcolor::WriteColor) -> io::Result<()> {
        let diagnostic = Diagnostic::new(severity).with_code(code).with_message(message).with_labels(drawn.labels).with_notes(drawn.notes);
        term::emit(out, &self.config, &self.shown, &diagnostic).map_err(|error| match error {
            codespan::Error::Io(error) => error,
            other => io::Error::other(other),
        })
    }
}

/// Whether source lines are shown.
trait RichStyle {
    fn display_style_is_rich(&self) -> bool;
}

impl RichStyle for Config {
    fn display_style_is_rich(&self) -> bool {
        matches!(self.display_style, DisplayStyle::Rich)
    }
}

/// Labels and notes of one diagnostic.
#[derive(Default)]
struct Drawn {
    labels: Vec<Label<FileId>>,
    notes: Vec<String>,
}

/// Files as they are shown: harmless, and of the same length in bytes, so that spans stay true.
struct Shown<'a> {
    files: &'a Files,
    texts: BTreeMap<FileId, Cow<'a, str>>,
}

impl Shown<'_> {
    fn prepare(&mut self, file: FileId) {
        let files = self.files;
        self.texts.entry(file).or_insert_with(|| harmless(&files.get(file).text));
    }
}

/// Replaces each character that could steer a terminal by one of the same length; line ends and tabs stay.
fn harmless(text: &str) -> Cow<'_, str> {
    let steers = |c: char| !matches!(c, '\n' | '\r' | '\t') && matches!(sanitize(c.encode_utf8(&mut [0; 4])), Cow::Owned(_));
    if !text.chars().any(steers) {
        return Cow::Borrowed(text);
    }
    let stand_in = |c: char| match c.len_utf8() {
        1 => '?',
        2 => '\u{BF}',
        3 => '\u{FFFD}',
        _ => '\u{1FBC4}',
    };
    Cow::Owned(text.chars().map(|c| if steers(c) { stand_in(c) } else { c }).collect())
}

impl<'a> codespan::Files<'a> for Shown<'_> {
    type FileId = FileId;
    type Name = String;
    type Source = &'a str;

    fn name(&'a self, id: FileId) -> Result<String, codespan::Error> {
        let file = self.files.get(id);
        let name = if file.source.is_empty() { file.path.to_string() } else { format!("{}:{}", file.source, file.path) };
        Ok(sanitize(&name).into_owned())
    }

    fn source(&'a self, id: FileId) -> Result<&'a str, codespan::Error> {
        self.texts.get(&id).map(|text| &**text).ok_or(codespan::Error::FileMissing)
    }

    fn line_index(&'a self, id: FileId, byte: usize) -> Result<usize, codespan::Error> {
        let file = self.files.get(id);
        let byte = u32::try_from(byte.min(file.text.len())).unwrap_or(u32::MAX);
        Ok(file.line_of(byte) as usize - 1)
    }

    fn line_range(&'a self, id: FileId, line: usize) -> Result<Range<usize>, codespan::Error> {
        let file = self.files.get(id);
        let number = u32::try_from(line + 1).unwrap_or(u32::MAX);
        let (start, end) = file
            .line_range(number)
            .ok_or(codespan::Error::LineTooLarge { given: line, max: (file.line_count() as usize).saturating_sub(1) })?;
        Ok(start as usize..end as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::{Sample, sample};

    fn shown(sample: &Sample, options: Options) -> String {
        let mut out = termcolor::NoColor::new(Vec::new());
        write(sample.document(), options, &mut out).unwrap();
        String::from_utf8(out.into_inner()).unwrap()
    }

    #[test]
    fn a_finding_is_shown_with_its_chain_in_each_file() {
        let text = shown(&sample(), Options::default());
        let step = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words:?} in\n{text}"));
        step("error[RLK101]: Source 'kernel' is not pinned");
        step("kernel:rl_engine/gemm.py:2:5");
        step("(3 of 3) the kernel is launched");
        assert!(step("(1 of 3) the trainer starts") < step("(2 of 3) the facade is called"));
        step("main:train.py");
        step("https://github.com/rl-align/rl-kernel/blob/1111111111111111111111111111111111111111/rl_engine/gemm.py#L2");
    }

    #[test]
    fn the_summary_says_what_was_traced_and_what_was_not() {
        let text = shown(&sample(), Options::default());
        for line in [
            "rlk-lint 0.1.0: 2 errors, 1 warning in 3 files, 1 suppressed\n",
            "routes: 12 traced, 3 untraced (dynamic dispatch 2, no owner 1)\n",
            "gaps: 2 (source-missing 1, syntax 1); 1 of them leave the run incomplete\n",
            "verdict: incomplete (exit 4), a source, pin or patch was not seen as the profile declares it\n",
        ] {
            assert!(text.contains(line), "{line:?} in\n{text}");
        }
    }

    #[test]
    fn nothing_from_a_source_steers_the_terminal() {
        let sample = sample();
        for style in [Style::Full, Style::Concise] {
            let text = shown(&sample, Options { style, show_suppressed: true, quiet: false });
            assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || matches!(c, '\u{202A}'..='\u{202E}' | '\u{FEFF}')), "{text:?}");
        }
        assert_eq!(harmless("a\u{1b}[0m\u{85}\u{202E}\n").len(), "a\u{1b}[0m\u{85}\u{202E}\n".len());
    }

    #[test]
    fn concise_is_one_line_for_each_finding_and_gap() {
        let text = shown(&sample(), Options { style: Style::Concise, ..Options::default() });
        assert_eq!(text.lines().count(), 3 + 2 + 4, "{text}");
        let quiet = shown(&sample(), Options { style: Style::Concise, show_suppressed: true, quiet: true });
        assert_eq!(quiet.lines().count(), 3 + 1 + 2, "{quiet}");
        assert!(text.lines().next().unwrap().contains("main:train.py:3:5: warning[RLK192]"), "{text}");
    }

    #[test]
    fn a_very_long_line_is_named_and_not_shown() {
        let mut sample = sample();
        let long = format!("x = '{}'\n", "y".repeat(10_000));
        let file = sample.files.add(crate::text::TextFile::new("main", "long.py", long));
        sample.report.findings[0].primary = Span::new(file, 4, 9_000);
        let text = shown(&sample, Options::default());
        assert!(text.contains("= main:long.py:1"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() < 500));
    }
}
