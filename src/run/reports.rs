//! Where reports go: standard output, files, the summary of a GitHub job, the terminal.
//!
//! In: a linted run and the options. Out: every report that was asked for, whole or not at all. Refused: SARIF of an incomplete run, an upload of which
//! would close alerts that the run did not look at.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Instant;

use super::error::RunError;
use super::lint::{Linted, Opened, RULE_STAGE};
use crate::cli::{self, Cli, Color, Format};
use crate::findings::Verdict;
use crate::render::human::{Links, termcolor};
use crate::render::output::OutputError;
use crate::render::{self, Document, output};

/// Writes every report.
///
/// # Errors
/// If one cannot be written; those before it are there.
pub(super) fn write(cli: &Cli, linted: &Linted, options: &cli::ReportOptions) -> Result<(), RunError> {
    let document = Document { report: &linted.report, files: &linted.files, info: &linted.info };
    let unfinished = matches!(linted.info.verdict, Verdict::Incomplete | Verdict::Nothing);
    let sarif_wanted = options.sarif_per_source.is_some() || options.outputs().iter().any(|(format, _)| *format == Format::Sarif);
    if unfinished && sarif_wanted {
        for gap in &linted.report.gaps {
            let _ = writeln!(io::stderr(), "{}: {} {}", gap.source, gap.cause, gap.next);
        }
        let word = linted.info.verdict.word();
        let _ = writeln!(io::stderr(), "no SARIF was written: the run is {word}, and a log of it could close alerts");
    }
    for (format, path) in options.outputs().into_iter().filter(|(format, _)| !(unfinished && *format == Format::Sarif)) {
        match path {
            Some(path) => output::to_file(path, |out| write_one(document, format, cli, options, out))?,
            None if format == Format::Human => on_screen(cli, linted, document, options)?,
            None => output::to_stream(&mut io::stdout().lock(), |out| write_one(document, format, cli, options, out))?,
        }
    }
    if let Some(folder) = options.sarif_per_source.as_deref().filter(|_| !unfinished) {
        per_source(document, options, folder)?;
    }
    if options.outputs().iter().any(|(format, _)| *format == Format::Github)
        && let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty())
    {
        append_summary(document, Path::new(&path))?;
    }
    Ok(())
}

fn write_one(document: Document<'_>, format: Format, cli: &Cli, options: &cli::ReportOptions, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Human => render::human::write(document, human_options(cli, options), &mut termcolor::NoColor::new(out)),
        Format::Json => render::json::write(document, out),
        Format::Sarif => render::sarif::write(document, sarif_options(options), out),
        Format::Github => render::github::write(document, out),
        Format::Gitlab => render::gitlab::write(document, out),
        Format::Junit => render::junit::write(document, out),
    }
}

fn sarif_options(options: &cli::ReportOptions) -> render::sarif::Options<'static> {
    render::sarif::Options { show_suppressed: options.show_suppressed, note: None }
}

/// One log for each source of which something was read; a log of one that was left out would close its alerts.
fn per_source(document: Document<'_>, options: &cli::ReportOptions, folder: &Path) -> Result<(), RunError> {
    std::fs::create_dir_all(folder).map_err(|cause| OutputError::File { path: folder.to_owned(), cause })?;
    for source in document.info.sources.iter().filter(|source| source.read) {
        let path = folder.join(format!("{}.sarif", source.id));
        output::to_file(&path, |out| render::sarif::write_for(document, &source.id, sarif_options(options), out))?;
    }
    Ok(())
}

/// Adds to the job's summary, to which other steps add as well.
fn append_summary(document: Document<'_>, path: &Path) -> Result<(), RunError> {
    let mut text = Vec::new();
    let written = render::github::write_summary(document, &mut text)
        .and_then(|()| std::fs::OpenOptions::new().create(true).append(true).open(path))
        .and_then(|mut file| file.write_all(&text));
    Ok(written.map_err(|cause| OutputError::File { path: path.to_owned(), cause })?)
}

fn human_options(cli: &Cli, options: &cli::ReportOptions) -> render::human::Options<'static> {
    render::human::Options {
        show_suppressed: options.show_suppressed,
        quiet: cli.global.quiet,
        verbose: cli.global.verbose,
        ..render::human::Options::default()
    }
}

/// The report for people on the standard output, in colour and with links where that is wanted.
fn on_screen(cli: &Cli, linted: &Linted, document: Document<'_>, options: &cli::ReportOptions) -> Result<(), RunError> {
    let mut buffer = if colour(cli.global.color) { termcolor::Buffer::ansi() } else { termcolor::Buffer::no_color() };
    let links = has_links(&Environment::of_process()).then(|| Links::new(document.info, &linted.roots));
    let options = render::human::Options { links: links.as_ref(), ..human_options(cli, options) };
    // Writing to memory does not fail.
    let _ = render::human::write(document, options, &mut buffer);
    output::to_stream(&mut io::stdout().lock(), |out| out.write_all(buffer.as_slice()))?;
    Ok(())
}

/// What decides about colours and links.
pub(super) struct Environment<'e> {
    terminal: bool,
    variable: &'e dyn Fn(&str) -> Option<OsString>,
}

impl Environment<'_> {
    /// Of this process and its standard output.
    pub(super) fn of_process() -> Self {
        Self { terminal: io::stdout().is_terminal(), variable: &|name| std::env::var_os(name) }
    }

    /// Of this process and its standard error.
    pub(super) fn of_errors() -> Self {
        Self { terminal: io::stderr().is_terminal(), variable: &|name| std::env::var_os(name) }
    }

    fn set(&self, name: &str) -> bool {
        (self.variable)(name).is_some_and(|value| !value.is_empty())
    }

    /// Set to something else than an empty text or 0.
    fn on(&self, name: &str) -> bool {
        (self.variable)(name).is_some_and(|value| !value.is_empty() && value != "0")
    }

    /// `--color` first, then `NO_COLOR` with any value, then what forces colours, then whether there is a terminal that has them.
    pub(super) fn colour(&self, wanted: Color) -> bool {
        match wanted {
            Color::Always => true,
            Color::Never => false,
            Color::Auto if self.set("NO_COLOR") => false,
            Color::Auto if self.on("FORCE_COLOR") || self.on("CLICOLOR_FORCE") => true,
            Color::Auto => self.terminal && (self.variable)("TERM").is_none_or(|term| term != "dumb"),
        }
    }
}

/// Whether to colour the standard output.
pub(super) fn colour(wanted: Color) -> bool {
    Environment::of_process().colour(wanted)
}

/// Whether the terminal is known to have links (OSC 8); `FORCE_HYPERLINK` decides for one that is not known here.
fn has_links(environment: &Environment<'_>) -> bool {
    if environment.set("FORCE_HYPERLINK") {
        return environment.on("FORCE_HYPERLINK");
    }
    let is = |name: &str, values: &[&str]| (environment.variable)(name).is_some_and(|value| values.iter().any(|known| value == *known));
    let vte = (environment.variable)("VTE_VERSION").and_then(|version| version.to_str()?.parse::<u32>().ok());
    environment.terminal
        && !environment.set("CI")
        && (is("TERM_PROGRAM", &["vscode", "iTerm.app", "WezTerm", "Hyper", "ghostty", "rio"])
            || is("TERM", &["xterm-kitty", "alacritty", "foot", "xterm-ghostty", "contour"])
            || vte.is_some_and(|version| version >= 5_000)
            || environment.set("WT_SESSION")
            || environment.set("KONSOLE_VERSION")
            || environment.set("DOMTERM"))
}

/// Says on a terminal what is being done, and with `--verbose` how long each stage took, on the standard error.
pub(super) fn follow(opened: &mut Opened, cli: &Cli) {
    let verbose = cli.global.verbose > 0;
    let progress = !verbose && !cli.global.quiet && io::stderr().is_terminal();
    if !verbose && !progress {
        return;
    }
    let each_rule = cli.global.verbose > 1;
    let last: std::cell::RefCell<Option<(String, Instant)>> = std::cell::RefCell::new(None);
    opened.stage = Some(Box::new(move |stage| {
        let mut last = last.borrow_mut();
        let stage = if !each_rule && stage.starts_with(RULE_STAGE) { "checking the rules" } else { stage };
        if last.as_ref().is_some_and(|(name, _)| name == stage) {
            return;
        }
        if progress {
            // Back to the start of the line, and nothing of it is left at the end.
            let _ = write!(io::stderr(), "\r\x1b[K{stage}");
        } else if let Some((before, since)) = last.as_ref() {
            let _ = writeln!(io::stderr(), "{before}: {:.3} s", since.elapsed().as_secs_f64());
        }
        *last = (!stage.is_empty()).then(|| (stage.to_owned(), Instant::now()));
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(terminal: bool, variables: &[(&str, &str)], check: impl Fn(&Environment<'_>)) {
        let variable = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
        check(&Environment { terminal, variable: &variable });
    }

    #[test]
    fn colours_follow_the_conventions() {
        let colour = |terminal, variables: &[(&str, &str)], wanted| {
            let result = std::cell::Cell::new(false);
            environment(terminal, variables, |environment| result.set(environment.colour(wanted)));
            result.get()
        };
        assert!(colour(true, &[], Color::Auto));
        assert!(!colour(false, &[], Color::Auto));
        assert!(!colour(true, &[("TERM", "dumb")], Color::Auto));
        assert!(!colour(true, &[("NO_COLOR", "0")], Color::Auto), "any value but an empty one");
        assert!(colour(true, &[("NO_COLOR", "")], Color::Auto));
        assert!(colour(false, &[("FORCE_COLOR", "1")], Color::Auto));
        assert!(colour(false, &[("CLICOLOR_FORCE", "1")], Color::Auto));
        assert!(!colour(false, &[("CLICOLOR_FORCE", "0"), ("FORCE_COLOR", "0")], Color::Auto));
        assert!(!colour(false, &[("NO_COLOR", "1"), ("FORCE_COLOR", "1")], Color::Auto));
        assert!(colour(false, &[("NO_COLOR", "1")], Color::Always));
        assert!(!colour(true, &[("FORCE_COLOR", "1")], Color::Never));
    }

    #[test]
    fn links_are_for_terminals_that_have_them() {
        let links = |terminal, variables: &[(&str, &str)]| {
            let result = std::cell::Cell::new(false);
            environment(terminal, variables, |environment| result.set(has_links(environment)));
            result.get()
        };
        assert!(!links(true, &[]) && !links(false, &[("TERM_PROGRAM", "vscode")]));
        assert!(links(true, &[("TERM_PROGRAM", "vscode")]) && links(true, &[("VTE_VERSION", "7600")]));
        assert!(!links(true, &[("VTE_VERSION", "4800")]) && !links(true, &[("TERM_PROGRAM", "vscode"), ("CI", "true")]));
        assert!(links(false, &[("FORCE_HYPERLINK", "1")]) && !links(true, &[("FORCE_HYPERLINK", "0"), ("TERM_PROGRAM", "vscode")]));
    }
}
