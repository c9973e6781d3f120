//! `probe`: from compiled code to a report.

use std::io::{self, IsTerminal as _, Read as _, Write};
use std::path::{Path, PathBuf};

use super::commands::{json, request, write_text};
use super::error::RunError;
use super::lint::{self, Request};
use super::reports::colour;
use super::{observe, runner};
use crate::catalog::Level;
use crate::cli::{Cli, ProbeArgs, ProbeCacheArgs, ProbeCommand, ProbeCompileArgs, ProbeDeviceArgs, ProbeFormat, ProbeReportOptions};
use crate::findings::order::Levels;
use crate::findings::{Finding, Gap, Verdict, counts, finish, verdict};
use crate::probe::compile::{CompileError, Task, compile, replay};
use crate::probe::record::{MAX_BYTES, Record};
use crate::probe::workshop::{SourceFile, Workshop};
use crate::probe::{cache, checks, report};
use crate::profile::{Profile, RuleLevels};
use crate::render::{self, Document, RunInfo, SourceInfo, output};
use crate::sources::{FileKind, load_source};
use crate::text::{FileId, Files, Span};

/// Runs a verb of `probe`.
pub(super) fn probe(cli: &Cli, args: &ProbeArgs) -> Result<u8, RunError> {
    match &args.command {
        None => runner::device(&ProbeDeviceArgs::default()),
        Some(ProbeCommand::Cache(args)) => probe_cache(cli, args),
        Some(ProbeCommand::Compile(args)) => probe_compile(cli, args),
        Some(ProbeCommand::Device(args)) => runner::device(args),
        Some(ProbeCommand::Judge(args)) => runner::judge(args),
        Some(ProbeCommand::Run(args)) => observe::run(cli.global.quiet, args),
    }
}

fn probe_cache(cli: &Cli, args: &ProbeCacheArgs) -> Result<u8, RunError> {
    let opened = match &args.profile {
        Some(profile) => Some(lint::open(&Request { profile: Some(profile.clone()), ..Request::default() })?),
        None => None,
    };
    let record = args.record.as_deref().map(read_record).transpose()?;
    let cache = cache::read(&args.folder).map_err(|cause| RunError::Cache { path: args.folder.clone(), cause })?;
    let (profile, label, mut files) = match opened {
        Some(opened) => (Some(opened.profile), opened.label, opened.files),
        None => (None, String::new(), Files::default()),
    };
    let places = checks::Places::new(&cache, &mut files);
    let mut findings = checks::contradictions(&cache, &|folder| places.of(folder));
    let mut gaps = checks::unread(&cache);
    if let Some(profile) = &profile {
        let contract = profile.probe.as_ref().and_then(|probe| probe.contract.as_ref());
        let Some(contract) = contract else {
            let message = "the profile has no [probe.contract] to compare the code with".to_owned();
            return Err(RunError::Usage { message, help: "add one, or leave `--profile` out to check only the cache itself".to_owned() });
        };
        let (more, unseen) = checks::judge_cache(&cache, contract, &profile.arch, record.as_ref(), &places);
        findings.extend(more);
        gaps.extend(unseen);
    }
    let outcome = Outcome {
        schema: "rlk-lint/probe-cache/v1",
        table: report::table(&cache),
        data: serde_json::json!({ "kernels": report::rows(&cache), "other_folders": cache.others }),
        findings,
        gaps,
        seen: cache.entries.len(),
        files,
        profile: profile.as_ref(),
        label,
        sources: Vec::new(),
    };
    outcome.write(cli, &args.report)
}

fn read_record(path: &Path) -> Result<Record, RunError> {
    let refused = |what: String| RunError::Usage {
        message: format!("the record {} {what}", path.display()),
        help: "name a file that `rlk-lint probe compile --record FILE` wrote".to_owned(),
    };
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text));
    read.map_err(|cause| refused(format!("cannot be read: {cause}")))?;
    Record::read(&text).map_err(refused)
}

fn probe_compile(cli: &Cli, args: &ProbeCompileArgs) -> Result<u8, RunError> {
    if !args.execute_sources {
        return Err(RunError::Usage {
            message: "compiling imports the kernel module, which runs code from the pinned source".to_owned(),
            help: "read that code, then say so with `--execute-sources`; it runs with your rights".to_owned(),
        });
    }
    let recorded = args.replay.as_deref().map(read_record).transpose()?;
    let opened = lint::open(&request(&args.analysis))?;
    let base = opened.options.base.clone();
    let profile = opened.profile;
    let missing = |key, what| RunError::Compile(CompileError::Profile(key, what));
    let probe = profile.probe.as_ref().ok_or_else(|| missing("source", "which source holds the kernels"))?;
    let contract = probe.contract.as_ref().ok_or_else(|| missing("contract", "what the code has to be"))?;
    let source = profile.sources.iter().find(|source| Some(&source.id) == probe.source.as_ref());
    let source = source.ok_or_else(|| missing("source", "which source holds the kernels"))?;
    let mut files = opened.files;
    let loaded = load_source(&profile, source, &opened.options, &mut files);
    let sources = vec![lint::about(source, &loaded, &files)];
    let pinned_amiss = loaded.gaps.iter().any(|gap| gap.kind.is_fatal());
    let mut outcome = Outcome {
        schema: "rlk-lint/probe-compile/v1",
        table: String::new(),
        data: serde_json::Value::Null,
        findings: Vec::new(),
        gaps: loaded.gaps,
        seen: 0,
        files: Files::default(),
        profile: Some(&profile),
        label: opened.label,
        sources,
    };
    // What is not as pinned is not run.
    if pinned_amiss {
        outcome.files = files;
        return outcome.write(cli, &args.report);
    }
    let python = loaded.files.iter().filter(|file| file.kind == FileKind::Python).map(|file| file.file);
    let python: Vec<FileId> = python.collect();
    let texts: Vec<SourceFile<'_>> =
        python.iter().map(|file| files.get(*file)).map(|file| SourceFile { path: &file.path, text: &file.text }).collect();
    let interpreter = interpreter(args.python.as_deref(), probe.python.as_deref(), &base)?;
    let folder = match &args.work {
        Some(_) => None,
        None => Some(tempfile::Builder::new().prefix("rlk-lint-probe").tempdir().map_err(CompileError::Folder)?),
    };
    let work = args.work.as_deref().or(folder.as_ref().map(tempfile::TempDir::path)).unwrap_or(Path::new("."));
    let workshop = Workshop::open(work).map_err(CompileError::Folder)?;
    let quiet = cli.global.quiet;
    let progress = |done: usize, of: usize| show_progress(quiet, done, of);
    let jobs = args.analysis.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let task = Task { probe, arch: &profile.arch, files: &texts, roots: &source.roots, python: &interpreter, jobs, progress: &progress };
    let module = probe.module.as_deref().unwrap_or("").replace('.', "/");
    let module_file =
        python.iter().copied().find(|file| files.get(*file).path.strip_suffix(".py").is_some_and(|path| path.ends_with(&module)));
    let place = |config: &str| module_file.map_or(Span::new(FileId(0), 0, 0), |file| config_place(&files, file, config));
    if let Some(record) = &recorded {
        let (replayed, cache) = replay(&task, &workshop, record)?;
        let (findings, gaps) = checks::judge_replay(record, &replayed, place(""));
        outcome.findings = findings;
        outcome.gaps.extend(gaps);
        outcome.gaps.extend(checks::unread(&cache));
        outcome.seen = replayed.len();
        let same = replayed.iter().filter(|kernel| kernel.code_id.as_ref() == Ok(&kernel.recorded.code_id)).count();
        outcome.table =
            format!("{same} of {} recorded kernels have the same code when they are compiled again\n{}\n", replayed.len(), report::LABEL);
        outcome.data = serde_json::json!({ "recorded": replayed.len(), "same": same, "triton": record.triton });
    } else {
        let compilation = compile(&task, &workshop)?;
        let (findings, gaps) = checks::judge_record(&compilation.record, &compilation.cache, contract, &profile.arch, &place);
        outcome.findings = findings;
        outcome.findings.extend(checks::contradictions(&compilation.cache, &|_| place("")));
        outcome.gaps.extend(gaps);
        outcome.gaps.extend(checks::unread(&compilation.cache));
        outcome.seen = compilation.record.kernels.len();
        outcome.table = report::candidates(&compilation.record, &compilation.cache);
        outcome.data = serde_json::json!({ "record": compilation.record, "kernels": report::rows(&compilation.cache) });
        if let Some(path) = &args.record {
            write_text(Some(path), &compilation.record.text())?;
        }
        if compilation.reused && !quiet {
            let _ = writeln!(io::stderr(), "nothing changed since the last run in this folder: its code is used");
        }
    }
    outcome.files = files;
    outcome.write(cli, &args.report)
}

/// The interpreter: from the command line as it stands, from the profile relative to its folder. A plain name is looked up by the system.
pub(super) fn interpreter(given: Option<&Path>, declared: Option<&str>, base: &Path) -> Result<PathBuf, RunError> {
    let path = match (given, declared) {
        (Some(given), _) => given.to_path_buf(),
        (None, Some(declared)) if declared.contains('/') => base.join(declared),
        (None, Some(declared)) => PathBuf::from(declared),
        (None, None) => return Err(CompileError::Profile("python", "which interpreter has Triton").into()),
    };
    if path.components().count() > 1 {
        // The process starts in another folder, so a relative path would not be found from there. A link is kept: a virtual environment is one.
        return Ok(std::path::absolute(&path).unwrap_or(path));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::split_paths(&folders).map(|folder| folder.join(&path)).find(|candidate| candidate.is_file()).unwrap_or(path))
}

/// Where a configuration is assigned in the kernel module; the module's start if that is not seen.
fn config_place(files: &Files, file: FileId, config: &str) -> Span {
    let text = &files.get(file).text;
    let name = config.split('[').next().unwrap_or(config);
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let assigned = line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', ':', '=']) && rest.contains('='));
        if assigned && !name.is_empty() {
            let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
            return Span::new(file, number(at), number(at + line.trim_end().len()));
        }
        at += line.len();
    }
    Span::new(file, 0, 0)
}

/// Progress on a terminal in one line; elsewhere a line for every tenth.
pub(super) fn show_progress(quiet: bool, done: usize, of: usize) {
    if quiet {
        return;
    }
    let mut err = io::stderr().lock();
    let _ = if err.is_terminal() {
        write!(err, "\rcompiled {done} of {of} launches{}", if done == of { "\n" } else { "" })
    } else if done == of || done * 10 / of.max(1) != (done - 1) * 10 / of.max(1) {
        writeln!(err, "compiled {done} of {of} launches")
    } else {
        Ok(())
    };
}

/// What a probe saw, ready to be judged and written.
struct Outcome<'a> {
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
    /// Whose levels hold.
    profile: Option<&'a Profile>,
    /// Its name.
    label: String,
    sources: Vec<SourceInfo>,
}

impl Outcome<'_> {
    fn write(self, cli: &Cli, options: &ProbeReportOptions) -> Result<u8, RunError> {
        let declared = self.profile.map(RuleLevels::new);
        let level =
            |rule: &crate::catalog::RuleMeta, file: &crate::text::TextFile| declared.as_ref()?.level(&rule.id, &file.source, &file.path);
        let mut report = finish(self.findings, self.gaps, &[], Levels { of: &level }, &self.files);
        report.counts.insert(counts::FILES_READ.to_owned(), u64::try_from(self.seen).unwrap_or(u64::MAX));
        let fail_on = options.fail_on.level().unwrap_or(Level::Off);
        let info = RunInfo {
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            profile: self.label,
            sources: self.sources,
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
