//! `probe`: from compiled code to a report.

use std::io::{self, Write};

use super::commands::{json, write_text};
use super::error::RunError;
use super::reports::colour;
use super::runner;
use crate::catalog::Level;
use crate::cli::{Cli, ProbeArgs, ProbeCacheArgs, ProbeCommand, ProbeDeviceArgs, ProbeFormat, ProbeReportOptions};
use crate::findings::order::Levels;
use crate::findings::{Finding, Gap, Verdict, counts, finish, verdict};
use crate::probe::{cache, checks, report};
use crate::render::{self, Document, RunInfo, output};
use crate::text::Files;

/// Runs a verb of `probe`.
pub(super) fn probe(cli: &Cli, args: &ProbeArgs) -> Result<u8, RunError> {
    match &args.command {
        None => runner::device(&ProbeDeviceArgs::default()),
        Some(ProbeCommand::Cache(args)) => probe_cache(cli, args),
        Some(ProbeCommand::Device(args)) => runner::device(args),
        Some(ProbeCommand::Judge(args)) => runner::judge(args),
    }
}

fn probe_cache(cli: &Cli, args: &ProbeCacheArgs) -> Result<u8, RunError> {
    let cache = cache::read(&args.folder).map_err(|cause| RunError::Cache { path: args.folder.clone(), cause })?;
    let mut files = Files::default();
    let places = checks::Places::new(&cache, &mut files);
    let outcome = Outcome {
        schema: "rlk-lint/probe-cache/v1",
        table: report::table(&cache),
        data: serde_json::json!({ "kernels": report::rows(&cache), "other_folders": cache.others }),
        findings: checks::contradictions(&cache, &places),
        gaps: checks::unread(&cache),
        seen: cache.entries.len(),
        files,
    };
    outcome.write(cli, &args.report)
}

/// What a probe saw, ready to be judged and written.
struct Outcome {
    /// Schema of the JSON.
    schema: &'static str,
    /// For people.
    table: String,
    /// For machines.
    data: serde_json::Value,
    findings: Vec<Finding>,
    gaps: Vec<Gap>,
    /// Compiled kernels that were looked at; without any there was nothing to judge.
    seen: usize,
    files: Files,
}

impl Outcome {
    fn write(self, cli: &Cli, options: &ProbeReportOptions) -> Result<u8, RunError> {
        let own = |_: &crate::catalog::RuleMeta, _: &crate::text::TextFile| None;
        let mut report = finish(self.findings, self.gaps, &[], Levels { of: &own }, &self.files);
        report.counts.insert(counts::FILES_READ.to_owned(), u64::try_from(self.seen).unwrap_or(u64::MAX));
        let fail_on = options.fail_on.level().unwrap_or(Level::Off);
        let info = RunInfo {
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            profile: String::new(),
            sources: Vec::new(),
            home: None,
            category: None,
            fail_on,
            verdict: verdict(&report, fail_on, self.seen > 0),
        };
        let document = Document { report: &report, files: &self.files, info: &info };
        match options.format {
            ProbeFormat::Human => {
                let to_file = options.output.is_some();
                let mut buffer =
                    if !to_file && colour(cli.global.color) { termcolor::Buffer::ansi() } else { termcolor::Buffer::no_color() };
                // Writing to memory does not fail.
                let _ = buffer.write_all(self.table.as_bytes());
                let _ = render::human::write(document, render::human::Options::default(), &mut buffer);
                write_text(options.output.as_deref(), &String::from_utf8_lossy(buffer.as_slice()))?;
            }
            ProbeFormat::Json => {
                let mut bytes = Vec::new();
                let _ = render::json::write(document, &mut bytes);
                let report: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
                let whole = serde_json::json!({ "schema": self.schema, "label": report::LABEL, "probe": self.data, "report": report });
                write_text(options.output.as_deref(), &json(&whole))?;
            }
            // A log of a run that could not look at everything would close alerts.
            ProbeFormat::Sarif if matches!(info.verdict, Verdict::Incomplete | Verdict::Nothing) => {
                for gap in &report.gaps {
                    let _ = writeln!(io::stderr(), "{}: {} {}", gap.path, gap.cause, gap.next);
                }
                let _ = writeln!(io::stderr(), "no SARIF was written: the run is {}", info.verdict.word());
            }
            ProbeFormat::Sarif => {
                let sarif = |out: &mut dyn Write| render::sarif::write(document, render::sarif::Options::default(), out);
                match &options.output {
                    Some(path) => output::to_file(path, sarif)?,
                    None => output::to_stream(&mut io::stdout().lock(), sarif)?,
                }
            }
        }
        Ok(info.verdict.exit_code())
    }
}
