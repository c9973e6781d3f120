//! `check` and `demo`: from a profile to a report.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::baseline::Baseline;
use super::changes::{self, RouteRow};
use super::error::RunError;
use super::record::{evaluate, place};
use super::renames::Renames;
use super::{KnownFacts, Loaded, analyse, assumptions, base, counts, snippets, tabulate};
use crate::catalog::Level;
use crate::findings::compare::{Seen, compare};
use crate::findings::fingerprint::Prints;
use crate::findings::order::Levels;
use crate::findings::suppress::Suppression;
use crate::findings::{Against, Report, counts as names, finish, verdict};
use crate::profile::{Input, PinsRef, Profile, RuleLevels, Source};
use crate::render::{RunInfo, SourceInfo};
use crate::routes::Status;
use crate::rules::{self, Context, Remembered};
use crate::sources::{self, KnownTexts, LoadOptions, LoadedSource, Past, SourceError};
use crate::stage0::{evidence, shapes};
use crate::text::{FileId, Files, Span, TextFile};

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
    /// Revision of the checked-out source to compare with.
    pub diff_base: Option<String>,
}

/// A profile with what was read for it.
pub struct Opened {
    /// The profile.
    pub profile: Profile,
    /// Its name in reports.
    pub label: String,
    /// Where it lies; `None` if it is no file.
    pub path: Option<PathBuf>,
    /// How its sources are found.
    pub options: LoadOptions,
    /// Texts; the profile is the first.
    pub files: Files,
    /// Is told what is being done next; an empty text is the end.
    pub stage: Option<Stage>,
}

/// Is told what is being done next.
pub type Stage = Box<dyn Fn(&str)>;
/// What the name of a stage begins with that is one rule; the rule's folder follows.
pub const RULE_STAGE: &str = "rule ";

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
    let label = label_of(&path);
    let base = path.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    let opened = open_text(&text, &label, base, request)?;
    Ok(Opened { path: Some(path), ..opened })
}

/// Name of a file in reports. They hold no absolute path: a file that is named by one is called by its file name.
#[must_use]
pub fn label_of(path: &Path) -> String {
    let plain = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    let named = if plain { Some(path.as_os_str()) } else { path.file_name() };
    named.map_or_else(|| "rlk-lint.toml".to_owned(), |name| name.to_string_lossy().replace('\\', "/"))
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
    open_past(text, label, base, request, None)
}

/// As [`open_text`], for the profile of a past revision: what lies beside it is looked up there.
///
/// # Errors
/// If it has mistakes.
pub(super) fn open_past(text: &str, label: &str, base: PathBuf, request: &Request, past: Option<Past>) -> Result<Opened, RunError> {
    let mut files = Files::default();
    let file = files.add(TextFile::new("", label, text));
    let mut paths = request.sources.clone();
    if request.diff_base.is_some() {
        // Each of the two revisions may have a source that the other one lacks.
        let declared = declared_ids(text);
        paths.retain(|(id, _)| declared.contains(id));
    }
    let mut options = LoadOptions { allow_missing: request.allow_missing, base: base.clone(), past, ..LoadOptions::default() };
    options.paths.extend(paths.iter().cloned());
    let input = Input { file, name: label, text, paths: &paths };
    let mut read_pins = |pins: &PinsRef| read_pins(pins, &base, &options);
    let profile = Profile::parse(&input, &mut read_pins)?;
    Ok(Opened { profile, label: label.to_owned(), path: None, options, files, stage: None })
}

/// Ids of the sources that a profile declares, as far as it is TOML.
fn declared_ids(text: &str) -> Vec<String> {
    let table: toml::Table = text.parse().unwrap_or_default();
    let sources = table.get("source").and_then(toml::Value::as_array).into_iter().flatten();
    sources.filter_map(|source| Some(source.get("id")?.as_str()?.to_owned())).collect()
}

fn read_pins(pins: &PinsRef, base: &Path, options: &LoadOptions) -> Result<String, String> {
    let limit = crate::profile::DEFAULT_MAX_FILE_BYTES;
    let Some(source) = &pins.source else {
        return match options.past.as_ref().and_then(|past| Some((past, past.beside_profile(&pins.path)?))) {
            Some((past, path)) => {
                sources::read_text(&past.source, &past.repository, &past.commit, &path, limit).map_err(|error| error.to_string())
            }
            None => std::fs::read_to_string(base.join(&pins.path)).map_err(|cause| cause.to_string()),
        };
    };
    let repository = options.path_of(source).map_err(|error| error.to_string())?;
    let past = options.past.as_ref().filter(|past| past.source == source.id).map(|past| &past.commit);
    let Some(commit) = source.commit.as_ref().or(past) else {
        return std::fs::read_to_string(repository.join(&pins.path)).map_err(|cause| cause.to_string());
    };
    sources::read_text(&source.id, &repository, commit, &pins.path, limit).map_err(|error| error.to_string())
}

/// A report and what is needed to write it.
pub struct Linted {
    /// The report.
    pub report: Report,
    /// Texts.
    pub files: Files,
    /// About the run.
    pub info: RunInfo,
    /// Folders that sources were read from, by id; the profile's is under the empty id. Never part of a report.
    pub roots: BTreeMap<String, PathBuf>,
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
    load_knowing(opened, &KnownFacts::new(), threads)
}

fn load_knowing(opened: Opened, known: &KnownFacts, threads: usize) -> Result<(Profile, String, Loaded), RunError> {
    let Opened { profile, label, options, mut files, .. } = opened;
    let loaded = sources::load(&profile, &options, &mut files).map_err(|error| match error {
        SourceError::UnknownSource { .. } => RunError::Usage { message: error.to_string(), help: error.next_step() },
        other => RunError::Source(other),
    })?;
    let loaded = tabulate(&profile, files, loaded, known, threads);
    Ok((profile, label, loaded))
}

/// Lints an opened profile.
///
/// # Errors
/// As [`load`].
pub fn lint(opened: Opened, judging: &Judging<'_>, threads: usize) -> Result<Linted, RunError> {
    Ok(Now::read(opened, threads)?.judged(Earlier::Nothing, judging, threads).0)
}

/// Lints an opened profile; findings that the baseline excuses are set apart.
///
/// # Errors
/// As [`load`].
pub fn lint_excusing(opened: Opened, baseline: &Baseline, judging: &Judging<'_>, threads: usize) -> Result<Linted, RunError> {
    Ok(Now::read(opened, threads)?.judged(Earlier::Baseline(baseline), judging, threads).0)
}

/// Lints an opened profile, and the base revision that the request names; findings that the base has too are set apart, and routes that it does not have
/// become findings.
///
/// # Errors
/// As [`load`]; if the base cannot be seen.
pub fn lint_against(opened: Opened, request: &Request, revision: &str, judging: &Judging<'_>) -> Result<Linted, RunError> {
    let threads = request.threads;
    // Paths are needed to open the base, and reading consumes what was opened.
    let again = Opened {
        profile: opened.profile.clone(),
        label: opened.label.clone(),
        path: opened.path.clone(),
        options: opened.options.clone(),
        files: opened.files.clone(),
        stage: None,
    };
    let now = Now::read(opened, threads)?;
    now.tell("reading the base");
    let known = KnownTexts::of(&now.loaded.sources, &now.loaded.files);
    let base::Base { opened, against } = base::open(&again, revision, request, known)?;
    let declared = |id: &str| now.profile.sources.iter().chain(&opened.profile.sources).any(|source| source.id == id);
    if let Some((id, _)) = request.sources.iter().find(|(id, _)| !declared(id)) {
        return Err(RunError::Usage {
            message: format!("neither the profile nor that of the base declares a source `{id}`"),
            help: "give `--source` for ids that one of them declares".to_owned(),
        });
    }
    let past = Now::read_knowing(opened, &now.loaded.known_facts(), threads)?;
    if let Some(gap) = past.loaded.gaps.iter().find(|gap| gap.kind.is_fatal() && !gap.allowed) {
        let source = if gap.source.is_empty() { String::new() } else { format!("source `{}` of the base: ", gap.source) };
        let message = format!("the base cannot be seen: {source}{}", gap.cause.trim_end_matches('.'));
        return Err(RunError::Base { message, help: gap.next.clone() });
    }
    now.tell("resolving the routes of the base");
    let renames = Renames::between(&past.loaded, &now.loaded);
    let main = main_id(&past.profile).map(str::to_owned);
    let (past, Kept { mut routes, remembered }) = past.judged(Earlier::Itself, judging, threads);
    changes::rename(&mut routes, &renames);
    let remembered = remembered.renamed(&|name| renames.now(name));
    let mut prints = Prints::new(&past.files, main.as_deref());
    let mut seen: Vec<Seen> = past.report.findings.iter().map(|finding| Seen::of(finding, &past.files, &mut prints)).collect();
    for seen in &mut seen {
        seen.symbol = renames.now(&seen.symbol);
        // Names stand in quotes in a message.
        seen.said = seen.said.take().map(|said| said.split('\'').map(|part| renames.now(part)).collect::<Vec<_>>().join("'"));
    }
    Ok(now.judged(Earlier::Base(Box::new(Before { seen, routes, remembered, renames, against })), judging, threads).0)
}

/// What a run is compared with.
enum Earlier<'a> {
    Nothing,
    /// This is the base: what it has is kept.
    Itself,
    Base(Box<Before>),
    Baseline(&'a Baseline),
}

/// What the base has.
struct Before {
    seen: Vec<Seen>,
    routes: Vec<RouteRow>,
    remembered: Remembered,
    renames: Renames,
    against: Against,
}

/// Renamed files that are named one by one.
const LISTED_RENAMES: usize = 5;

impl Before {
    /// Sets findings apart that the base has too.
    fn set_apart(mut self, report: &mut Report, files: &Files, main: Option<&str>) {
        let mut prints = Prints::new(files, main);
        let now: Vec<Seen> = report.findings.iter().map(|finding| Seen::of(finding, files, &mut prints)).collect();
        let compared = compare(std::mem::take(&mut report.findings), &now, &self.seen);
        report.findings = compared.news;
        report.known = compared.known;
        self.against.gone = compared.gone.iter().map(|at| (self.seen[*at].rule.clone(), self.seen[*at].symbol.clone())).collect();
        let moved = &self.renames.files;
        if !moved.is_empty() {
            let listed: Vec<String> =
                moved.iter().take(LISTED_RENAMES).map(|(source, old, new)| format!("{source}:{old} is now {new}")).collect();
            let more = moved.len().saturating_sub(LISTED_RENAMES);
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            self.against.notes.push(format!("Files that moved are followed: {}{more}.", listed.join(", ")));
        }
        report.against = Some(self.against);
    }
}

/// One revision of everything, as it was read.
struct Now {
    profile: Profile,
    label: String,
    loaded: Loaded,
    roots: BTreeMap<String, PathBuf>,
    stage: Option<Stage>,
}

impl Now {
    fn read(opened: Opened, threads: usize) -> Result<Self, RunError> {
        Self::read_knowing(opened, &KnownFacts::new(), threads)
    }

    fn read_knowing(mut opened: Opened, known: &KnownFacts, threads: usize) -> Result<Self, RunError> {
        let stage = opened.stage.take();
        if let Some(stage) = &stage {
            stage("reading and parsing the sources");
        }
        let unpinned = opened.profile.sources.iter().filter(|source| source.commit.is_none());
        let mut roots: BTreeMap<String, PathBuf> =
            unpinned.filter_map(|source| Some((source.id.clone(), opened.options.path_of(source).ok()?))).collect();
        roots.insert(String::new(), opened.options.base.clone());
        let (profile, label, loaded) = load_knowing(opened, known, threads)?;
        Ok(Self { profile, label, loaded, roots, stage })
    }

    fn tell(&self, stage: &str) {
        if let Some(tell) = &self.stage {
            tell(stage);
        }
    }

    /// The report, and what a later revision is compared with.
    fn judged(self, earlier: Earlier<'_>, judging: &Judging<'_>, threads: usize) -> (Linted, Kept) {
        self.tell("resolving the routes");
        let Self { profile, label, loaded, roots, stage } = self;
        let tell = |name: &str| {
            if let Some(stage) = &stage {
                stage(name);
            }
        };
        let (linted, kept) = judged(&profile, label, loaded, roots, earlier, judging, threads, &tell);
        if let Some(stage) = stage {
            stage("");
        }
        (linted, kept)
    }
}

/// What a later revision is compared with.
#[derive(Default)]
struct Kept {
    routes: Vec<RouteRow>,
    remembered: Remembered,
}

/// The report on sources that were read, and what a later revision is compared with.
#[allow(clippy::too_many_arguments, reason = "one judgement is described by all of these")]
fn judged(
    profile: &Profile,
    label: String,
    loaded: Loaded,
    roots: BTreeMap<String, PathBuf>,
    earlier: Earlier<'_>,
    judging: &Judging<'_>,
    threads: usize,
    tell: &dyn Fn(&str),
) -> (Linted, Kept) {
    let assumptions = assumptions(profile, &loaded);
    let analysis = analyse(profile, &loaded, &assumptions);
    let keys: Vec<&str> = profile.families.iter().flat_map(|family| family.keys.iter().map(String::as_str)).collect();
    let snippets = snippets::of(&loaded.files, &loaded.sources, &keys, threads);
    let class_of = |module| loaded.class_of(module);
    let shapes = shapes::derive(&profile.workload, &|span| place(&loaded, span));
    let baseline = profile.workload.evaluated.is_some().then(|| evaluate(profile, &loaded, &analysis, &shapes, None).0);
    let evidence = evidence::read(&evidence::Ground {
        profile,
        sources: &loaded.sources,
        files: &loaded.files,
        program: &loaded.program,
        shapes: &shapes,
    });
    let context = Context {
        profile,
        files: &loaded.files,
        sources: &loaded.sources,
        program: &loaded.program,
        engine: &analysis.engine,
        routes: &analysis.routes,
        gaps: &loaded.gaps,
        snippets: &snippets,
        evidence: &evidence,
        shapes: &shapes,
        baseline: baseline.as_ref(),
        class_of: &class_of,
        calls: Context::calls_of(&analysis.engine),
        before: match &earlier {
            Earlier::Base(before) => Some(&before.remembered),
            _ => None,
        },
        on_route: std::cell::OnceCell::new(),
        comparisons: std::cell::OnceCell::new(),
        environment: std::cell::OnceCell::new(),
    };
    let mut findings = rules::run(&context, &|slug| tell(&format!("{RULE_STAGE}{slug}")));
    tell("judging the findings");
    let routes = changes::rows(&loaded, &analysis);
    let remembered = if matches!(earlier, Earlier::Itself) { Remembered::of(&context) } else { Remembered::default() };
    if let Earlier::Base(before) = &earlier {
        let callsites: Vec<_> = analysis.routes.iter().flat_map(|routes| &routes.callsites).collect();
        // What is gone has no place any more: it is shown at its family.
        let gone = |row: &RouteRow| {
            let family = profile.families.iter().find(|family| family.id == row.family).or(profile.families.first());
            context.first_line(family.map_or(Span::new(FileId(0), 0, 0), |family| family.span))
        };
        let flow = |at: usize| callsites.get(at).map(|callsite| context.flow(callsite)).unwrap_or_default();
        let mut changed = changes::findings(&before.routes, &routes, &gone, &flow);
        for finding in &mut changed {
            finding.primary = context.first_line(finding.primary);
        }
        findings.extend(changed);
    }
    for finding in &mut findings {
        finding.from_patch = context.from_patch(finding.primary);
    }
    findings.retain(|finding| (judging.wanted)(finding.rule));
    let suppressions = suppressions(&loaded);
    let declared = RuleLevels::new(profile);
    let level_of = |rule: &crate::catalog::RuleMeta, file: &TextFile| declared.level(&rule.id, &file.source, &file.path);
    let levels = Levels { of: &level_of };
    let mut report = finish(findings, loaded.gaps.clone(), &suppressions, levels, &loaded.files);
    report.findings.retain(|finding| (judging.wanted)(finding.rule));
    let main = main_id(profile);
    match earlier {
        Earlier::Nothing | Earlier::Itself => {}
        Earlier::Base(before) => before.set_apart(&mut report, &loaded.files, main),
        Earlier::Baseline(baseline) => {
            let reported = |rule: &crate::catalog::RuleMeta| (judging.wanted)(rule) && profile.levels.get(&rule.id) != Some(&Level::Off);
            let level = |rule: &crate::catalog::RuleMeta| levels.level(rule, loaded.files.get(baseline.file));
            baseline.set_apart(&mut report, &loaded.files, main, &reported, &level);
        }
    }
    let mut traced = 0;
    for callsite in analysis.routes.iter().flat_map(|routes| &routes.callsites) {
        if counts(callsite.class) && matches!(callsite.status, Status::Traced | Status::Uncalled) {
            traced += 1;
        }
    }
    report.counts.insert(names::ROUTES_TRACED.to_owned(), traced);
    for finding in report.findings.iter().chain(&report.known) {
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
        sources: profile.sources.iter().zip(&loaded.sources).map(|(source, read)| about(source, read, &loaded.files)).collect(),
        home: None,
        category: judging.category.clone(),
        fail_on,
        verdict,
    };
    (Linted { report, files: loaded.files, info, roots }, Kept { routes, remembered })
}

/// Paths of a source's files that its patch touches.
fn patched_files(read: &sources::LoadedSource, files: &Files) -> BTreeSet<String> {
    read.files.iter().filter(|file| file.patched).map(|file| files.get(file.file).path.to_string()).collect()
}

/// Id of the source that is checked out.
#[must_use]
pub fn main_id(profile: &Profile) -> Option<&str> {
    profile.sources.iter().find(|source| source.main).map(|source| source.id.as_str())
}

/// Commit of the checkout that results are reported against, if it is read as it was committed.
fn head_of_checkout(source: &Source, read: &LoadedSource) -> Option<String> {
    if source.main && !read.dirty() { read.work_tree.as_ref().and_then(|tree| tree.head.clone()) } else { None }
}

/// What reports say about a source.
pub(super) fn about(source: &Source, read: &LoadedSource, files: &Files) -> SourceInfo {
    SourceInfo {
        id: source.id.clone(),
        repository: source.repository.clone(),
        commit: read.commit.clone().or_else(|| head_of_checkout(source, read)),
        is_main: source.main,
        patched_tree: read.patched_tree.clone(),
        pin: source.span,
        patched_files: patched_files(read, files),
        read: !read.files.is_empty(),
    }
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
