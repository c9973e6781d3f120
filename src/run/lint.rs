//! `check` and `demo`: from a profile to a report.

use std::path::{Path, PathBuf};

use super::error::RunError;
use super::{Loaded, analyse, assumptions, counts, snippets, tabulate};
use crate::catalog::Level;
use crate::findings::order::Levels;
use crate::findings::suppress::Suppression;
use crate::findings::{Report, counts as names, finish, verdict};
use crate::profile::{Input, PinsRef, Profile, RuleLevels};
use crate::render::{RunInfo, SourceInfo};
use crate::routes::Status;
use crate::rules::{self, Context};
use crate::sources::{self, LoadOptions, SourceError};
use crate::text::{Files, Span, TextFile};

/// Where the profile and the sources are.
#[derive(Debug, Default)]
pub struct Request {
    /// The profile; `None` looks for it.
    pub profile: Option<PathBuf>,
    /// Paths of sources, by id.
    pub sources: Vec<(String, PathBuf)>,
    /// Whether sources that are absent are left out with a gap.
    pub allow_missing: bool,
    /// Threads; 0 for one per processor.
    pub threads: usize,
}

/// A profile with what was read for it.
pub struct Opened {
    /// The profile.
    pub profile: Profile,
    /// Its name in reports.
    pub label: String,
    /// How its sources are found.
    pub options: LoadOptions,
    /// Texts; the profile is the first.
    pub files: Files,
}

/// Finds and reads the profile.
///
/// # Errors
/// If there is none, or it has mistakes.
pub fn open(request: &Request) -> Result<Opened, RunError> {
    let path = match &request.profile {
        Some(path) => path.clone(),
        None => find_profile()?,
    };
    let text = std::fs::read_to_string(&path).map_err(|cause| RunError::UnreadableProfile { path: path.display().to_string(), cause })?;
    // Reports hold no absolute path: a profile that is named by one is called by its file name.
    let plain = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    let named = if plain { Some(path.as_os_str()) } else { path.file_name() };
    let label = named.map_or_else(|| "rlk-lint.toml".to_owned(), |name| name.to_string_lossy().replace('\\', "/"));
    let base = path.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    open_text(&text, &label, base, request)
}

fn find_profile() -> Result<PathBuf, RunError> {
    let start = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let mut at = Some(start.as_path());
    while let Some(folder) = at {
        let candidate = folder.join("rlk-lint.toml");
        if candidate.is_file() {
            return Ok(candidate);
        }
        at = folder.parent();
    }
    Err(RunError::NoProfile { folder: "the current folder".to_owned() })
}

/// Reads a profile from its text; relative paths in it count from `base`.
///
/// # Errors
/// If it has mistakes.
pub fn open_text(text: &str, label: &str, base: PathBuf, request: &Request) -> Result<Opened, RunError> {
    let mut files = Files::default();
    let file = files.add(TextFile::new("", label, text));
    let mut options = LoadOptions { allow_missing: request.allow_missing, base: base.clone(), ..LoadOptions::default() };
    options.paths.extend(request.sources.iter().cloned());
    let input = Input { file, name: label, text, paths: &request.sources };
    let mut read_pins = |pins: &PinsRef| read_pins(pins, &base, &options);
    let profile = Profile::parse(&input, &mut read_pins)?;
    if let Some((id, _)) = request.sources.iter().find(|(id, _)| !profile.sources.iter().any(|source| source.id == *id)) {
        let declared: Vec<&str> = profile.sources.iter().map(|source| source.id.as_str()).collect();
        return Err(RunError::Usage {
            message: format!("the profile declares no source `{id}`"),
            help: format!("it declares {}", declared.join(", ")),
        });
    }
    Ok(Opened { profile, label: label.to_owned(), options, files })
}

fn read_pins(pins: &PinsRef, base: &Path, options: &LoadOptions) -> Result<String, String> {
    let Some(source) = &pins.source else {
        return std::fs::read_to_string(base.join(&pins.path)).map_err(|cause| cause.to_string());
    };
    let repository = options.path_of(source).map_err(|error| error.to_string())?;
    let Some(commit) = &source.commit else {
        return std::fs::read_to_string(repository.join(&pins.path)).map_err(|cause| cause.to_string());
    };
    sources::read_text(&source.id, &repository, commit, &pins.path, crate::profile::DEFAULT_MAX_FILE_BYTES)
        .map_err(|error| error.to_string())
}

/// A report and what is needed to write it.
pub struct Linted {
    /// The report.
    pub report: Report,
    /// Texts.
    pub files: Files,
    /// About the run.
    pub info: RunInfo,
}

/// How findings are chosen and judged.
pub struct Judging<'a> {
    /// Lowest level that fails the run; `None` if none does.
    pub fail_on: Option<Level>,
    /// Which rules are reported.
    pub wanted: &'a dyn Fn(&crate::catalog::RuleMeta) -> bool,
    /// SARIF category.
    pub category: Option<String>,
}

/// Reads and parses the sources of a profile.
///
/// # Errors
/// If the command line names a source that the profile does not have.
pub fn load(opened: Opened, threads: usize) -> Result<(Profile, String, Loaded), RunError> {
    let Opened { profile, label, options, mut files } = opened;
    let loaded = sources::load(&profile, &options, &mut files).map_err(|error| match error {
        SourceError::UnknownSource { .. } => RunError::Usage { message: error.to_string(), help: error.next_step() },
        other => RunError::Source(other),
    })?;
    let loaded = tabulate(&profile, files, loaded, threads);
    Ok((profile, label, loaded))
}

/// Lints an opened profile.
///
/// # Errors
/// As [`load`].
pub fn lint(opened: Opened, judging: &Judging<'_>, threads: usize) -> Result<Linted, RunError> {
    let (profile, label, loaded) = load(opened, threads)?;
    let assumptions = assumptions(&profile);
    let analysis = analyse(&profile, &loaded, &assumptions);
    let keys: Vec<&str> = profile.families.iter().flat_map(|family| family.keys.iter().map(String::as_str)).collect();
    let snippets = snippets::of(&loaded.files, &loaded.sources, &keys, threads);
    let class_of = |module| loaded.class_of(module);
    let context = Context {
        profile: &profile,
        files: &loaded.files,
        sources: &loaded.sources,
        program: &loaded.program,
        engine: &analysis.engine,
        routes: &analysis.routes,
        gaps: &loaded.gaps,
        snippets: &snippets,
        class_of: &class_of,
        calls: Context::calls_of(&analysis.engine),
    };
    let mut findings = rules::run(&context);
    for finding in &mut findings {
        finding.from_patch = from_patch(&loaded, finding.primary);
    }
    findings.retain(|finding| (judging.wanted)(finding.rule));
    let suppressions = suppressions(&loaded);
    let declared = RuleLevels::new(&profile);
    let level_of = |rule: &crate::catalog::RuleMeta, file: &TextFile| declared.level(&rule.id, &file.source, &file.path);
    let levels = Levels { of: &level_of };
    let mut report = finish(findings, loaded.gaps.clone(), &suppressions, levels, &loaded.files);
    report.findings.retain(|finding| (judging.wanted)(finding.rule));
    let mut traced = 0;
    for callsite in analysis.routes.iter().flat_map(|routes| &routes.callsites) {
        if counts(callsite.class) && matches!(callsite.status, Status::Traced | Status::Uncalled) {
            traced += 1;
        }
    }
    report.counts.insert(names::ROUTES_TRACED.to_owned(), traced);
    for finding in &report.findings {
        if finding.rule.slug == "untraced-callsite"
            && let Some(reason) = finding.arguments.get(1)
        {
            *report.counts.entry(format!("{}{reason}", names::ROUTES_UNTRACED)).or_default() += 1;
        }
    }
    let read: usize = loaded.sources.iter().map(|source| source.files.len()).sum();
    report.counts.insert(names::FILES_READ.to_owned(), u64::try_from(read).unwrap_or(u64::MAX));
    let fail_on = judging.fail_on.unwrap_or(Level::Off);
    let verdict = verdict(&report, fail_on, read > 0);
    let info = RunInfo {
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        profile: label,
        sources: profile
            .sources
            .iter()
            .zip(&loaded.sources)
            .map(|(source, read)| SourceInfo {
                id: source.id.clone(),
                repository: source.repository.clone(),
                commit: read.commit.clone(),
                is_main: source.main,
                patched_tree: read.patched_tree.clone(),
                pin: source.span,
            })
            .collect(),
        category: judging.category.clone(),
        fail_on,
        verdict,
    };
    Ok(Linted { report, files: loaded.files, info })
}

/// Whether the companion patch added or changed the line of a place.
fn from_patch(loaded: &Loaded, span: Span) -> bool {
    let line = loaded.files.get(span.file).line_of(span.start);
    let files = loaded.sources.iter().flat_map(|source| &source.files);
    files.filter(|file| file.file == span.file).any(|file| file.patched_lines.contains(&line))
}

fn suppressions(loaded: &Loaded) -> Vec<Suppression> {
    let mut out = Vec::new();
    for id in loaded.program.module_ids() {
        let module = loaded.program.module(id);
        for directive in &module.facts.directives {
            let span = Span::new(module.file, directive.range.0, directive.range.1);
            out.extend(Suppression::parse(loaded.files.slice(span), span));
        }
    }
    out
}
