//! `probe run`: a workload on the runner, under observation, judged.
//!
//! In: the profile, a device, a command or the built-in exerciser. Out: an evidence directory and its judgement. Refused, before anything is started: a
//! request that leaves the choice to the software, sources that are not as pinned, variables that replace compiled code, a device that the contract is
//! not for unless the run is called a rehearsal.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::commands::{json, request, write_text};
use super::error::RunError;
use super::{Loaded, analyse_all, assumptions, exercise, lint, probe, runner};
use crate::cli::{ListFormat, ProbeDeviceArgs, ProbeRunArgs};
use crate::probe::compile::{CompileError, Task, compile, replay};
use crate::probe::judge::code::{REPRODUCTION, Reproduction};
use crate::probe::judge::documents::{Baseline, Code, Label, REQUEST, Request, SourceState};
use crate::probe::judge::evidence::Evidence;
use crate::probe::judge::link::Findings;
use crate::probe::judge::request::{forbidden, not_pinned};
use crate::probe::judge::{judge, recording};
use crate::probe::record::{Compiled, Record};
use crate::probe::runner::{Ended, Room, on_path};
use crate::probe::workshop::{SourceFile, Workshop, digest};
use crate::profile::{Known, Profile};
use crate::sources::{FileKind, LoadOptions, LoadedSource, load_source};
use crate::text::{Files, sanitize};

/// Exit code of a machine without a device that the contract is for.
const UNSUPPORTED: u8 = 3;
/// The canary: launches, nodes of its graph, replays of the graph. 32 and 1 + 16 * 32 launches at each end.
const CANARY: &str = "32,16,32";
/// Seconds for what is run beside the workload.
const BESIDE: Duration = Duration::from_secs(900);

fn usage(message: impl Into<String>, help: &str) -> RunError {
    RunError::Usage { message: message.into(), help: help.to_owned() }
}

fn failed(what: &str, help: &'static str) -> impl Fn(io::Error) -> RunError {
    move |cause| RunError::Observe { what: what.to_owned(), cause, help }
}

fn unwritable(cause: io::Error) -> RunError {
    RunError::Observe {
        what: "the evidence cannot be written".to_owned(),
        cause,
        help: "name a folder that is absent or empty, on a disk with room",
    }
}

/// The environment that the profile assumes, as a process sees it.
fn environment(profile: &Profile) -> BTreeMap<String, String> {
    let value = |known: &Known| if let Known::Str(text) = known { Some(text.clone()) } else { None };
    profile.environment.iter().filter_map(|(name, known)| Some((name.clone(), value(known)?))).collect()
}

/// Refuses an environment under which no run is evidence.
fn check_environment(contract: &str, profile: &Profile, requested: &BTreeMap<String, String>) -> Result<(), RunError> {
    let unset = profile.environment.iter().filter(|(_, known)| **known == Known::None).map(|(name, _)| name);
    if let Some(name) = unset.into_iter().find(|name| std::env::var_os(name).is_some()) {
        return Err(usage(format!("{name} is set, and the profile says that it is not"), "unset it, or write its value in the profile"));
    }
    if let Some(why) = not_pinned(contract, requested) {
        return Err(usage(format!("the request is not pinned: {why}"), "set it under [platform.environment] in the profile"));
    }
    let mut whole: BTreeMap<String, String> =
        std::env::vars_os().map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())).collect();
    whole.extend(requested.clone());
    match forbidden(&whole).as_slice() {
        [] => Ok(()),
        set => Err(usage(
            format!("{} changes what is compiled or loaded", set.join(", ")),
            "unset it: code that it touches is not the code that was checked",
        )),
    }
}

fn text_of<'f>(loaded: &LoadedSource, files: &'f Files) -> Vec<SourceFile<'f>> {
    let python = loaded.files.iter().filter(|file| file.kind == FileKind::Python);
    python.map(|file| files.get(file.file)).map(|file| SourceFile { path: &file.path, text: &file.text }).collect()
}

fn state_of(source: &LoadedSource, files: &Files) -> SourceState {
    let commit = source.commit.clone().unwrap_or_default();
    let elsewhere = source.work_tree.as_ref().is_some_and(|tree| tree.head.as_ref() != Some(&commit));
    SourceState { id: source.id.clone(), commit, dirty: source.dirty() || elsewhere, sha256: digest(&text_of(source, files)) }
}

/// The sources that will run, each as pinned.
fn sources(loaded: &Loaded, of: &[&LoadedSource], checkouts: bool) -> Result<Vec<SourceState>, RunError> {
    if let Some(gap) = loaded.gaps.iter().find(|gap| gap.kind.is_fatal()) {
        return Err(usage(
            format!("the sources are not as pinned: {}", sanitize(&gap.cause)),
            "run `rlk-lint check` and mend what it says first",
        ));
    }
    let mut states = Vec::new();
    for source in of {
        if source.commit.is_none() || source.from_directory {
            return Err(usage(format!("source `{}` has no pinned commit, so nobody can say what ran", source.id), "pin it in the profile"));
        }
        if checkouts && source.work_tree.is_none() {
            let help = "name its checkout with `--source ID=PATH`; a bare repository cannot be what a command imports";
            return Err(usage(format!("source `{}` is no checkout", source.id), help));
        }
        let state = state_of(source, &loaded.files);
        // The exerciser runs files from the object store, so the checkout beside it does not matter to it; a dirty one is refused all the same.
        if source.dirty() || checkouts && state.dirty {
            let message = format!("the checkout of source `{}` differs from commit {}", source.id, state.commit);
            return Err(usage(message, "commit the changes and pin that commit, or undo them"));
        }
        states.push(SourceState { dirty: false, ..state });
    }
    Ok(states)
}

/// Digest of the files that were written out, as they are now.
fn written(root: &Path, files: &[SourceFile<'_>]) -> String {
    let read = |file: &SourceFile<'_>| fs::read_to_string(root.join(file.path)).unwrap_or_default();
    let texts: Vec<String> = files.iter().map(read).collect();
    let now: Vec<SourceFile<'_>> = files.iter().zip(&texts).map(|(file, text)| SourceFile { path: file.path, text }).collect();
    digest(&now)
}

/// Compiles again what the recorders saw compiled, in a fresh cache.
fn reproduce(room: &Room, baseline: &Baseline, task: &Task<'_>, workshop: &Workshop) -> Result<Reproduction, RunError> {
    let mut found = Findings::default();
    let evidence = Evidence::open(&room.at(""), &mut found).map_err(RunError::Evidence)?;
    let recordings = recording::read_all(&evidence, &mut found);
    let mut kernels: Vec<Compiled> = Vec::new();
    for (name, specialisation) in recordings.iter().flat_map(|recording| &recording.compiled) {
        let kernel = name.rsplit('.').next().unwrap_or(name).to_owned();
        let compiled = Compiled { kernel, key: String::new(), code_id: String::new(), specialisation: specialisation.clone() };
        if baseline.part(&compiled.kernel).is_some() && !kernels.contains(&compiled) {
            kernels.push(compiled);
        }
    }
    let record = Record {
        schema: crate::probe::record::SCHEMA.to_owned(),
        label: String::new(),
        triton: baseline.triton.clone(),
        arch: baseline.arch.clone(),
        module: task.probe.module.clone().unwrap_or_default(),
        sources: String::new(),
        launches: Vec::new(),
        kernels,
    };
    let (replayed, _) = replay(task, workshop, &record)?;
    let code =
        replayed.into_iter().filter_map(|kernel| Some(Code { kernel: kernel.recorded.kernel, code_id: kernel.code_id.ok()? })).collect();
    Ok(Reproduction { schema: REPRODUCTION.to_owned(), triton: baseline.triton.clone(), code })
}

/// Runs a workload and judges it.
pub(super) fn run(quiet: bool, args: &ProbeRunArgs) -> Result<u8, RunError> {
    if !args.execute_sources {
        let help = "read that code, then say so with `--execute-sources`; it runs with your rights and your environment";
        return Err(usage("a run executes code from the pinned source", help));
    }
    let opened = lint::open(&request(&args.analysis))?;
    let options = opened.options.clone();
    let missing = |key, what| RunError::Compile(CompileError::Profile(key, what));
    let declared = opened.profile.probe.clone().ok_or_else(|| missing("source", "which source holds the kernels"))?;
    let contract = declared.contract.clone().ok_or_else(|| missing("contract", "what the code has to be"))?;
    let id = opened.profile.workload.evaluated.as_ref().map(|evaluated| evaluated.contract.clone()).unwrap_or_default();
    let arch = opened.profile.arch.clone();
    let requested = environment(&opened.profile);
    check_environment(&id, &opened.profile, &requested)?;
    let python = probe::interpreter(args.python.as_deref(), declared.python.as_deref(), &options.base)?;
    let device = runner::device_report(&ProbeDeviceArgs { arch: arch.clone(), ..ProbeDeviceArgs::default() });
    if let Err((_, what)) = device.agreed(&arch)
        && !args.rehearsal
    {
        write_text(None, &format!("unsupported: {}\n", sanitize(&what)))?;
        return Ok(UNSUPPORTED);
    }
    let tell = |what: &str| {
        if !quiet {
            let _ = writeln!(io::stderr(), "probe run: {what}");
        }
    };

    tell("reads the sources");
    let threads = args.analysis.threads.map_or(0, usize::from);
    let (profile, label, loaded) = lint::load(opened, threads)?;
    let kernel = loaded.sources.iter().find(|source| Some(&source.id) == declared.source.as_ref());
    let kernel = kernel.ok_or_else(|| missing("source", "which source holds the kernels"))?;
    let exercised = args.command.is_empty();
    let run: Vec<&LoadedSource> = if exercised { vec![kernel] } else { loaded.sources.iter().collect() };
    let before = sources(&loaded, &run, !exercised)?;
    let assumed = assumptions(&profile, &loaded);
    let stage0 = super::record::record(&profile, &label, &loaded, &analyse_all(&profile, &loaded, &assumed), &[]);

    let tools = tempfile::Builder::new().prefix("rlk-lint-run").tempdir().map_err(unwritable)?;
    let room = Room::make(&args.folder, tools.path()).map_err(unwritable)?;
    let workshop = |name: &str| Workshop::open(&tools.path().join(name)).map_err(CompileError::Folder);
    let (compiling, running) = (workshop("compile")?, workshop("run")?);
    let texts = text_of(kernel, &loaded.files);
    let progress = |done: usize, of: usize| probe::show_progress(quiet, done, of);
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let task = Task { probe: &declared, arch: &arch, files: &texts, roots: &kernel.roots, python: &python, jobs, progress: &progress };
    tell("compiles the candidates");
    let compilation = compile(&task, &compiling)?;
    let (baseline, without) = exercise::baseline(&declared, &contract, &profile.families, &id, &arch, &stage0, &compilation.record);
    for shape in &without {
        tell(&format!("shape `{shape}` is not driven: no tile follows from the sources for it"));
    }
    running.prepare(&texts).map_err(CompileError::Folder)?;

    let profiler = on_path("rocprofv3");
    let plan = match &declared.exercise {
        Some(front) => exercise::plan(&declared, front, &baseline, &stage0, args.replays, profiler.is_none()),
        None if exercised || args.verify_bits => return Err(missing("exercise", "which front the exerciser drives")),
        None => Value::Null,
    };
    for (name, document) in [("device.json", json(&device)), ("baseline.json", json(&baseline)), ("plan.json", json(&plan))] {
        fs::write(room.at(name), document).map_err(unwritable)?;
    }
    let mut runner =
        Runner { room: &room, python: &python, roots: running.roots(&kernel.roots), requested: &requested, profiler, limit: BESIDE };
    let libraries = runner.libraries()?;
    runner.limit = Duration::from_secs(args.seconds);
    tell("runs the workload");
    let ended = runner.workload(&args.command).map_err(failed("the workload cannot be started", "check the command after `--`"))?;
    if ended != Ended::Code(0) {
        tell(&format!("the workload did not end well ({ended:?}); what it said is in workload.log"));
    }
    if args.verify_bits {
        tell("compares the candidates byte for byte");
        runner.limit = BESIDE;
        let ended = runner.beside("verify", "verify.log")?;
        if ended != Ended::Code(0) {
            tell(&format!("the comparison did not end well ({ended:?}); what it said is in verify.log"));
        }
    }

    let after = if exercised {
        let sha256 = written(&running.root().join("sources"), &texts);
        before.iter().map(|state| SourceState { sha256: sha256.clone(), ..state.clone() }).collect()
    } else {
        sources_now(&profile, &run, &options)
    };
    let label = if args.rehearsal { Label::Rehearsal } else { Label::Runner };
    let request = Request {
        schema: REQUEST.to_owned(),
        label,
        contract: id,
        arch: arch.clone(),
        processes: args.processes,
        environment: requested.clone(),
        sources: before,
        sources_after: after,
        libraries,
        allowed: Vec::new(),
    };
    room.write("request.json", &request).map_err(unwritable)?;
    room.seal().map_err(unwritable)?;
    tell("compiles again what was recorded");
    let reproduced = reproduce(&room, &baseline, &task, &workshop("reproduce")?)?;
    room.write("reproduction.json", &reproduced).map_err(unwritable)?;
    let files = room.seal().map_err(unwritable)?;
    tell(&format!("sealed {files} files"));
    let judged = judge(&args.folder).map_err(RunError::Evidence)?;
    let text = match args.format {
        ListFormat::Human => judged.human(),
        ListFormat::Json => json(&judged.json()),
    };
    write_text(None, &text)?;
    let code = judged.chain.verdict.exit_code();
    // A workload that failed has shown nothing about what it would have run next.
    Ok(if code == 0 && ended != Ended::Code(0) { 4 } else { code })
}

fn sources_now(profile: &Profile, run: &[&LoadedSource], options: &LoadOptions) -> Vec<SourceState> {
    let now = profile.sources.iter().filter(|source| run.iter().any(|other| other.id == source.id)).map(|source| {
        let mut files = Files::default();
        let loaded = load_source(profile, source, options, &mut files);
        state_of(&loaded, &files)
    });
    now.collect()
}

/// What starts processes for a run.
struct Runner<'a> {
    room: &'a Room,
    python: &'a Path,
    roots: Vec<PathBuf>,
    requested: &'a BTreeMap<String, String>,
    profiler: Option<PathBuf>,
    limit: Duration,
}

impl Runner<'_> {
    /// Variables of the workload; `own` are those of one process.
    fn variables(&self, folders: &[PathBuf], own: &[(&str, String)]) -> BTreeMap<String, String> {
        let mut variables = self.requested.clone();
        let path = std::env::join_paths(folders).map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        let before = std::env::var("PYTHONPATH").ok().filter(|path| !path.is_empty());
        variables.insert("PYTHONPATH".to_owned(), before.map_or(path.clone(), |before| format!("{path}:{before}")));
        variables.insert("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned());
        variables.insert("TRITON_CACHE_DIR".to_owned(), self.room.at("cache").display().to_string());
        variables.extend(own.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        variables
    }

    fn exercise(&self, what: &str) -> Vec<String> {
        let paths = [self.python.to_path_buf(), self.room.exerciser(), self.room.at("plan.json")];
        paths.iter().map(|path| path.display().to_string()).chain([what.to_owned()]).collect()
    }

    /// A command under the profiler, if there is one.
    fn observed(&self, command: Vec<String>, into: &str) -> Vec<String> {
        let Some(profiler) = &self.profiler else { return command };
        let into = self.room.at(into).display().to_string();
        let mut words = vec![profiler.display().to_string()];
        words.extend(["--kernel-trace", "--output-format", "json", "-d", &into, "--"].map(str::to_owned));
        words.extend(command);
        words
    }

    fn beside(&self, what: &str, log: &str) -> Result<Ended, RunError> {
        let mut folders = vec![self.room.shim()];
        folders.extend(self.roots.iter().cloned());
        let cache = self.room.shim().with_file_name(format!("cache-{what}")).display().to_string();
        let own = [("RLK_PROBE_FOLDER", self.room.at("").display().to_string()), ("TRITON_CACHE_DIR", cache)];
        let command = if what == "libraries" { self.observed(self.exercise(what), "warmup") } else { self.exercise(what) };
        self.room
            .run(&command, &self.variables(&folders, &own), log, self.limit)
            .map_err(failed("Python cannot be started", "name an interpreter with torch and Triton with `--python FILE`"))
    }

    /// The libraries that a process of this interpreter maps, before the workload.
    fn libraries(&self) -> Result<BTreeMap<String, String>, RunError> {
        let ended = self.beside("libraries", "libraries.log")?;
        let text = fs::read(self.room.at("libraries.json"));
        let read = text.and_then(|text| serde_json::from_slice(&text).map_err(io::Error::other));
        let said = fs::read_to_string(self.room.at("libraries.log")).unwrap_or_default();
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing").to_owned();
        read.map_err(|cause| RunError::Observe {
            what: format!("the libraries cannot be frozen ({ended:?}; Python said last: {})", sanitize(&last)),
            cause,
            help: "a Python process has to reach the device through torch and Triton: `--python FILE` names the interpreter",
        })
    }

    fn workload(&self, command: &[String]) -> io::Result<Ended> {
        let mut folders = vec![self.room.shim()];
        let words = if command.is_empty() {
            folders.extend(self.roots.iter().cloned());
            self.exercise("drive")
        } else {
            command.to_vec()
        };
        let own = [("RLK_PROBE_RECORD", self.room.at("recorder").display().to_string()), ("RLK_PROBE_CANARY", CANARY.to_owned())];
        self.room.run(&self.observed(words, "rocprof"), &self.variables(&folders, &own), "workload.log", self.limit)
    }
}
