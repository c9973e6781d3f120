//! The report for people.
//!
//! In: a document and a writer that may know colours. Out: each finding with its source lines and the chain from entry to kernel, file by
//! file; then gaps, and a summary: findings, routes traced, routes untraced and why, gaps, verdict. Refused: control and bidirectional
//! characters from sources, which could steer the terminal; they are shown as something harmless.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

use codespan_reporting::diagnostic::{Diagnostic, Label, LabelStyle, Severity};
use codespan_reporting::files as codespan;
use codespan_reporting::term::{self, Config, DisplayStyle};

pub use codespan_reporting::term::termcolor;

use crate::catalog::Level;
use crate::findings::compare::Change;
use crate::findings::{Against, Finding, Gap, Report, Verdict, counts};
use crate::text::{FileId, Files, Span, sanitize};

use super::places::{Places, host_path, percent_encode};
use super::tally::{Tally, plural, routes};
use super::{Document, RunInfo, rule_page};

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
pub struct Options<'l> {
    /// How much is shown of each finding.
    pub style: Style,
    /// Whether suppressed findings are shown too, with their reasons.
    pub show_suppressed: bool,
    /// Whether the summary is left out.
    pub quiet: bool,
    /// From 1 on each source with its revision, from 2 on every file too.
    pub verbose: u8,
    /// Links behind the names of files, for a terminal that has them.
    pub links: Option<&'l Links>,
}

/// Beginnings of addresses, by source.
#[derive(Clone, Debug, Default)]
pub struct Links {
    beginnings: BTreeMap<String, String>,
}

impl Links {
    /// Files that were read from a folder are linked where they lie, others to the web page of their commit.
    #[must_use]
    pub fn new(info: &RunInfo, roots: &BTreeMap<String, PathBuf>) -> Self {
        let on_disk = |path: &PathBuf| Some(format!("file://{}/", percent_encode(path.canonicalize().ok()?.to_str()?)));
        let mut beginnings: BTreeMap<String, String> = roots.iter().filter_map(|(id, path)| Some((id.clone(), on_disk(path)?))).collect();
        for source in info.sources.iter().filter(|source| source.patched_tree.is_none()) {
            let place = source.repository.as_deref().and_then(host_path).filter(|place| place.starts_with("github.com/"));
            if let (Some(place), Some(commit)) = (place, &source.commit) {
                beginnings.entry(source.id.clone()).or_insert_with(|| format!("https://{}/blob/{commit}/", percent_encode(&place)));
            }
        }
        Self { beginnings }
    }
}

/// A text with a link behind it (OSC 8).
fn linked(address: &str, text: &str) -> String {
    format!("\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\")
}

/// Writes the report.
///
/// # Errors
/// If the writer fails.
pub fn write(document: Document<'_>, options: Options<'_>, out: &mut dyn termcolor::WriteColor) -> io::Result<()> {
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
    if options.verbose > 0 {
        sources(&document, options.verbose, out)?;
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

/// Each source with its revision; from `verbose` 2 on every file too.
fn sources(document: &Document<'_>, verbose: u8, out: &mut dyn termcolor::WriteColor) -> io::Result<()> {
    for source in &document.info.sources {
        let files = || document.files.iter().filter(|(_, file)| *file.source == source.id);
        let at = source.commit.as_deref().map_or_else(|| "as it stands".to_owned(), |commit| format!("at {commit}"));
        let patched = source.patched_tree.as_deref().map_or_else(String::new, |tree| format!(", patched to tree {tree}"));
        writeln!(out, "source {}: {at}{patched}, {}", source.id, plural(files().count(), "file"))?;
        for (_, file) in files().filter(|_| verbose > 1) {
            writeln!(out, "  {}", sanitize(&file.path))?;
        }
    }
    Ok(())
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
struct Page<'a, 'l> {
    places: Places<'a>,
    shown: Shown<'a, 'l>,
    config: Config,
}

impl<'a, 'l> Page<'a, 'l> {
    fn new(document: &Document<'a>, options: Options<'l>) -> Self {
        let display_style = if options.style == Style::Concise { DisplayStyle::Short } else { DisplayStyle::Rich };
        let config = Config { display_style, ..Config::default() };
        Self { places: Places::new(document), shown: Shown { files: document.files, texts: BTreeMap::new(), links: options.links }, config }
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
        let code = match self.shown.links {
            Some(_) => linked(&rule_page(finding.rule.slug), &finding.rule.id),
            None => finding.rule.id.clone(),
        };
        self.emit(severity, &code, message, drawn, out)
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
struct Shown<'a, 'l> {
    files: &'a Files,
    texts: BTreeMap<FileId, Cow<'a, str>>,
    links: Option<&'l Links>,
}

impl Shown<'_, '_> {
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

impl<'a> codespan::Files<'a> for Shown<'_, '_> {
    type FileId = FileId;
    type Name = String;
    type Source = &'a str;

    fn name(&'a self, id: FileId) -> Result<String, codespan::Error> {
        let file = self.files.get(id);
        let name = if file.source.is_empty() { file.path.to_string() } else { format!("{}:{}", file.source, file.path) };
        let name = sanitize(&name).into_owned();
        Ok(match self.links.and_then(|links| links.beginnings.get(&*file.source)) {
            Some(beginning) => linked(&format!("{beginning}{}", percent_encode(&file.path)), &name),
            None => name,
        })
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

    fn shown(sample: &Sample, options: Options<'_>) -> String {
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
            let text = shown(&sample, Options { style, show_suppressed: true, ..Options::default() });
            assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || matches!(c, '\u{202A}'..='\u{202E}' | '\u{FEFF}')), "{text:?}");
        }
        assert_eq!(harmless("a\u{1b}[0m\u{85}\u{202E}\n").len(), "a\u{1b}[0m\u{85}\u{202E}\n".len());
    }

    #[test]
    fn concise_is_one_line_for_each_finding_and_gap() {
        let text = shown(&sample(), Options { style: Style::Concise, ..Options::default() });
        assert_eq!(text.lines().count(), 3 + 2 + 4, "{text}");
        let quiet = shown(&sample(), Options { style: Style::Concise, show_suppressed: true, quiet: true, ..Options::default() });
        assert_eq!(quiet.lines().count(), 3 + 1 + 2, "{quiet}");
        assert!(text.lines().next().unwrap().contains("main:train.py:3:5: warning[RLK192]"), "{text}");
    }

    #[test]
    fn links_are_behind_names_only_where_they_are_wanted() {
        let sample = sample();
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("a b");
        std::fs::create_dir(&at).unwrap();
        let links = Links::new(&sample.info, &BTreeMap::from([("main".to_owned(), at.clone())]));
        let text = shown(&sample, Options { links: Some(&links), ..Options::default() });
        let page = "https://github.com/rl-align/rl-kernel/blob/1111111111111111111111111111111111111111/rl_engine/gemm.py";
        assert!(text.contains(&format!("\x1b]8;;{page}\x1b\\kernel:rl_engine/gemm.py\x1b]8;;\x1b\\:2:5")), "{text:?}");
        let real = at.canonicalize().unwrap().display().to_string().replace(' ', "%20");
        assert!(text.contains(&format!("\x1b]8;;file://{real}/train.py\x1b\\main:train.py\x1b]8;;")), "{text:?}");
        assert!(text.contains("rules/unpinned-source/README.md\x1b\\RLK101\x1b]8;;"), "{text:?}");
        assert!(!shown(&sample, Options::default()).contains('\x1b'));
    }

    #[test]
    fn verbose_names_the_sources_and_then_the_files() {
        let sample = sample();
        let text = shown(&sample, Options { verbose: 1, ..Options::default() });
        assert!(text.contains("source kernel: at 1111111111111111111111111111111111111111, 1 file\n"), "{text}");
        assert!(!text.contains("\n  rl_engine/gemm.py\n"), "{text}");
        let text = shown(&sample, Options { verbose: 2, ..Options::default() });
        assert!(text.contains("\n  rl_engine/gemm.py\n"), "{text}");
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
