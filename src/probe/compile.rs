//! Every candidate at every shape, compiled through Triton's launch path in processes of their own.
//!
//! In: the profile's `[probe]`, the sources as text, an interpreter, a private folder. Out: a [`Record`] and the cache that it speaks of. Refused: another
//! Triton than the pinned one, and a launch that did not come back; it is listed with its reason, and the others go on.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::cache::{self, Cache};
use super::child::{ChildError, Compiler, DRIVER, Rooms};
use super::hex;
use super::record::{Compiled, Launch, Record, SCHEMA};
use super::report::LABEL;
use super::workshop::{SourceFile, Workshop, digest};
use crate::profile::Probe;
use crate::text::sanitize;

/// Seconds that an interpreter may take to start and to import Triton and the kernel module.
const SECONDS_TO_START: u64 = 120;

/// Why nothing was compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The profile lacks something.
    #[error("[probe] has no `{0}`, which says {1}")]
    Profile(&'static str, &'static str),
    /// The kernel module is not among the sources.
    #[error("source `{source_id}` has no module `{module}`")]
    Module {
        /// The source.
        source_id: String,
        /// The module.
        module: String,
    },
    /// No process.
    #[error("Python at '{python}' is of no use: {cause}")]
    Python {
        /// As the profile or the command line names it.
        python: String,
        /// Why.
        cause: ChildError,
    },
    /// Something is not installed.
    #[error("{needed} needs the Python module `{module}`, which the interpreter does not have")]
    Import {
        /// Who needs it.
        needed: String,
        /// The module.
        module: String,
    },
    /// The module does not load.
    #[error("kernel module `{module}` does not load: {error}: {message}{at}")]
    Load {
        /// The module.
        module: String,
        /// Name of the Python exception.
        error: String,
        /// Its text.
        message: String,
        /// Where, as a clause; may be empty.
        at: String,
    },
    /// Another Triton.
    #[error("the interpreter has Triton {found}, the profile pins {pinned}")]
    Version {
        /// What is there.
        found: String,
        /// What should be.
        pinned: String,
    },
    /// No candidates.
    #[error("`{module}` holds no instance of `{config}` at module level, so there is no candidate to compile")]
    NoCandidates {
        /// The module.
        module: String,
        /// The class.
        config: String,
    },
    /// The private folder.
    #[error("the folder for compiling cannot be used: {0}")]
    Folder(#[from] io::Error),
}

impl CompileError {
    /// What to do next.
    #[must_use]
    pub fn next_step(&self) -> String {
        match self {
            Self::Profile(key, _) => format!("write `{key}` under [probe] in the profile"),
            Self::Module { .. } => "check `source` and `module` under [probe], and the source's `roots`".to_owned(),
            Self::Python { .. } => "name an interpreter with Triton: `python` under [probe], or `--python FILE`".to_owned(),
            Self::Import { module, .. } if module == "triton" => {
                "install the pinned Triton for this interpreter: `pip install triton==VERSION`".to_owned()
            }
            Self::Import { module, .. } => format!("install `{module}` for this interpreter, or name a kernel module that does without it"),
            Self::Load { .. } => {
                "torch is a stand-in here, and nothing else of a GPU stack is; a kernel module has to load without a device".to_owned()
            }
            Self::Version { pinned, .. } => format!("install Triton {pinned}, or pin the other one; code is comparable for one build only"),
            Self::NoCandidates { .. } => "check `config` under [probe]".to_owned(),
            Self::Folder(_) => "name an empty folder that can be written to with `--work DIR`".to_owned(),
        }
    }
}

/// What to compile.
pub struct Task<'a> {
    /// The profile's `[probe]`.
    pub probe: &'a Probe,
    /// Instruction set.
    pub arch: &'a str,
    /// Python files of the source, in order.
    pub files: &'a [SourceFile<'a>],
    /// Folders on the import path, within the source.
    pub roots: &'a [String],
    /// The interpreter.
    pub python: &'a Path,
    /// Processes at a time.
    pub jobs: usize,
    /// Is told how many launches are done, of how many.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

/// What came out.
pub struct Compilation {
    /// What was compiled.
    pub record: Record,
    /// The cache that holds it.
    pub cache: Cache,
    /// Whether an earlier run's result was used.
    pub reused: bool,
}

/// Compiles, or uses what an earlier run in the same folder left.
///
/// # Errors
/// If nothing can be compiled at all.
pub fn compile(task: &Task<'_>, workshop: &Workshop) -> Result<Compilation, CompileError> {
    let names = Names::of(task)?;
    let inputs = inputs(task);
    if let Some(text) = workshop.earlier(&inputs, task.python)
        && let Ok(record) = Record::read(&text)
    {
        let cache = cache::read(&workshop.cache())?;
        // A cache that was touched since is compiled again; nothing is lost.
        if record.kernels.iter().all(|kernel| code_of(&cache, &kernel.key) == Some(kernel.code_id.as_str())) {
            return Ok(Compilation { record, cache, reused: true });
        }
    }
    workshop.prepare(task.files)?;
    let (mut first, started) = start(task, &names, workshop, &workshop.cache(), 0)?;
    let native = PathBuf::from(started.get("native").and_then(Value::as_str).unwrap_or(""));
    let triton = started.get("triton").and_then(Value::as_str).unwrap_or("").to_owned();
    let configs = started.get("configs").and_then(Value::as_array).cloned().unwrap_or_default();
    if configs.is_empty() {
        return Err(CompileError::NoCandidates { module: names.module.to_owned(), config: names.config.to_owned() });
    }
    let plan = plan(task, &configs);
    let restart = |number: usize| start(task, &names, workshop, &workshop.cache(), number).map(|(compiler, _)| compiler);
    let orders: Vec<Vec<(usize, Value)>> = groups(&plan);
    let answers = run_all(orders, plan.len(), task, &restart, &mut first);
    drop(first);
    let cache = cache::read(&workshop.cache())?;
    let record = collect(task, &names, triton, plan, &answers, &cache);
    workshop.keep(&record.text(), &inputs, task.python, &native)?;
    Ok(Compilation { record, cache, reused: false })
}

/// What another process made of a recorded kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The recorded kernel.
    pub recorded: Compiled,
    /// Identity of the code that came out now, or why none did.
    pub code_id: Result<String, String>,
}

/// Compiles every kernel of a record again, in a fresh cache, from what it was specialised for.
///
/// # Errors
/// As [`compile`].
pub fn replay(task: &Task<'_>, workshop: &Workshop, record: &Record) -> Result<(Vec<Replayed>, Cache), CompileError> {
    let names = Names::of(task)?;
    workshop.prepare(task.files)?;
    let room = workshop.root().join("replay");
    let (mut first, _) = start(task, &names, workshop, &room, 0)?;
    let restart = |number: usize| start(task, &names, workshop, &room, number).map(|(compiler, _)| compiler);
    let order = |kernel: &Compiled| json!({"do": "replay", "kernel": kernel.kernel, "specialisation": kernel.specialisation});
    let orders = record.kernels.iter().enumerate().map(|(at, kernel)| vec![(at, order(kernel))]).collect();
    let answers = run_all(orders, record.kernels.len(), task, &restart, &mut first);
    drop(first);
    let cache = cache::read(&room)?;
    let replayed = record.kernels.iter().zip(answers).map(|(recorded, answer)| {
        let key =
            answer.and_then(|kernels| kernels.first().map(|(_, key, _)| key.clone()).ok_or_else(|| "nothing was compiled".to_owned()));
        let code_id = key.and_then(|key| code_of(&cache, &key).map(str::to_owned).ok_or_else(|| "its binary cannot be read".to_owned()));
        Replayed { recorded: recorded.clone(), code_id }
    });
    Ok((replayed.collect(), cache))
}

fn code_of<'c>(cache: &'c Cache, key: &str) -> Option<&'c str> {
    cache.entries.iter().find(|entry| entry.metadata.hash == key).map(|entry| entry.code.code_id.as_str())
}

/// The names that the profile has to give.
struct Names<'a> {
    module: &'a str,
    launch: &'a str,
    config: &'a str,
}

impl<'a> Names<'a> {
    fn of(task: &Task<'a>) -> Result<Self, CompileError> {
        let probe = task.probe;
        let named = |value: &'a Option<String>, key, what| value.as_deref().ok_or(CompileError::Profile(key, what));
        let names = Self {
            module: named(&probe.module, "module", "which module holds the kernels")?,
            launch: named(&probe.launch, "launch", "which function launches them")?,
            config: named(&probe.config, "config", "of which class the candidates are")?,
        };
        if probe.shapes.is_empty() {
            return Err(CompileError::Profile("shape", "for which shapes to compile, one [[probe.shape]] each"));
        }
        let inside = names.module.replace('.', "/");
        let held = |path: &str| task.files.iter().any(|file| file.path == path);
        let at = |root: &String| if root == "." { format!("{inside}.py") } else { format!("{root}/{inside}.py") };
        if !task.roots.iter().any(|root| held(&at(root))) {
            return Err(CompileError::Module { source_id: probe.source.clone().unwrap_or_default(), module: names.module.to_owned() });
        }
        Ok(names)
    }
}

/// Everything that the result depends on and this program knows.
fn inputs(task: &Task<'_>) -> String {
    let mut hasher = Sha256::new();
    let Probe { source, module, launch, config, force_split, triton, shapes, .. } = task.probe;
    let version = env!("CARGO_PKG_VERSION");
    hasher.update(format!(
        "{version}\n{source:?}{module:?}{launch:?}{config:?}{force_split:?}{triton:?}{shapes:?}\n{}\n{:?}\n",
        task.arch, task.roots
    ));
    hasher.update(DRIVER);
    hasher.update(digest(task.files));
    hex(&hasher.finalize())
}

/// Starts a process and has it import the kernel module.
fn start(task: &Task<'_>, names: &Names<'_>, workshop: &Workshop, cache: &Path, number: usize) -> Result<(Compiler, Value), CompileError> {
    let python = || task.python.display().to_string();
    let unusable = |cause| CompileError::Python { python: python(), cause };
    let mut compiler = Compiler::start(task.python, &Rooms { private: workshop.root(), cache }, number).map_err(unusable)?;
    // Waves of the processors for data centres have 64 lanes, those of the others 32.
    let wavefront = if task.arch.starts_with("gfx9") { 64 } else { 32 };
    let order = json!({
        "do": "start", "arch": task.arch, "wavefront": wavefront, "roots": workshop.roots(task.roots),
        "module": names.module, "launch": names.launch, "config": names.config,
    });
    let answer = compiler.ask(&order, SECONDS_TO_START).map_err(unusable)?;
    if let Some(error) = answer.get("error").and_then(Value::as_str) {
        let said = |key: &str| answer.get(key).and_then(Value::as_str).map(|text| sanitize(text).into_owned());
        if error == "ModuleNotFoundError"
            && let Some(module) = said("module")
        {
            let needed = if module == "triton" { "compiling".to_owned() } else { format!("kernel module `{}`", names.module) };
            return Err(CompileError::Import { needed, module });
        }
        let at = answer.get("at").and_then(|at| at.get(0)).and_then(Value::as_str).map(|at| format!(" (at {})", sanitize(at)));
        return Err(CompileError::Load {
            module: names.module.to_owned(),
            error: sanitize(error).into_owned(),
            message: said("message").unwrap_or_default(),
            at: at.unwrap_or_default(),
        });
    }
    let found = answer.get("triton").and_then(Value::as_str).unwrap_or("").to_owned();
    match &task.probe.triton {
        Some(pinned) if *pinned != found => Err(CompileError::Version { found, pinned: pinned.clone() }),
        _ => Ok((compiler, answer)),
    }
}

/// A launch with the order for it.
struct Planned {
    launch: Launch,
    order: Value,
    /// Launches of one group mostly need the same kernels, so one process does them all.
    group: (usize, Option<bool>),
}

fn plan(task: &Task<'_>, configs: &[Value]) -> Vec<Planned> {
    let mut plan = Vec::new();
    let splits: &[Option<bool>] = if task.probe.force_split.is_some() { &[Some(false), Some(true)] } else { &[None] };
    for shape in &task.probe.shapes {
        for m in &shape.m {
            for (at, config) in configs.iter().enumerate() {
                for split in splits {
                    let layout = if shape.transposed { "nk" } else { "kn" };
                    let mut arguments = serde_json::Map::new();
                    if let (Some(name), Some(split)) = (&task.probe.force_split, split) {
                        arguments.insert(name.clone(), json!(split));
                    }
                    let order = json!({"do": "launch", "m": m, "n": shape.n, "k": shape.k, "layout": layout, "config": config, "arguments": arguments});
                    let text = |key: &str| config.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
                    let launch = Launch {
                        shape: shape.name.clone(),
                        m: *m,
                        n: shape.n,
                        k: shape.k,
                        layout: layout.to_owned(),
                        config: text("name"),
                        values: text("text"),
                        split: *split,
                        kernels: Vec::new(),
                        failure: None,
                    };
                    plan.push(Planned { launch, order, group: (at, *split) });
                }
            }
        }
    }
    plan
}

/// Orders of one process, each with its place in the plan.
type Orders = Vec<(usize, Value)>;

fn groups(plan: &[Planned]) -> Vec<Orders> {
    let mut groups: BTreeMap<(usize, Option<bool>), Orders> = BTreeMap::new();
    for (at, planned) in plan.iter().enumerate() {
        groups.entry(planned.group).or_default().push((at, planned.order.clone()));
    }
    // Later configurations are larger as a rule; they come first, so that the last process does not end up with the longest work.
    groups.into_values().rev().collect()
}

/// Name, key and specialisation of each kernel, or why there is none.
type Answer = Result<Vec<(String, String, String)>, String>;
type Restart<'a> = dyn Fn(usize) -> Result<Compiler, CompileError> + Sync + 'a;

/// Gives every order to one of several processes. A process that dies or hangs is replaced, and its order is answered with the reason.
fn run_all(orders: Vec<Orders>, count: usize, task: &Task<'_>, restart: &Restart<'_>, first: &mut Compiler) -> Vec<Answer> {
    let queue = Mutex::new(VecDeque::from(orders));
    let results: Mutex<(usize, Vec<Answer>)> = Mutex::new((0, vec![Err("it was not compiled".to_owned()); count]));
    let work = |number: usize, mut compiler: Option<Replaceable<'_>>| {
        loop {
            let Some(group) = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front() else { return };
            for (at, order) in group {
                let answer = answer(&mut compiler, &order, number, task.probe.seconds, restart);
                let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                results.0 += 1;
                results.1[at] = answer;
                (task.progress)(results.0, count);
            }
        }
    };
    std::thread::scope(|scope| {
        for number in 1..task.jobs.max(1) {
            let work = &work;
            scope.spawn(move || work(number, None));
        }
        work(0, Some(Replaceable::Lent(first)));
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner).1
}

/// The process that was started first belongs to the caller; those that follow do not.
enum Replaceable<'a> {
    Lent(&'a mut Compiler),
    Own(Compiler),
}

fn answer(compiler: &mut Option<Replaceable<'_>>, order: &Value, number: usize, seconds: u64, restart: &Restart<'_>) -> Answer {
    if compiler.is_none() {
        let started = restart(number).map_err(|cause| format!("no process could be started for it: {cause}"))?;
        *compiler = Some(Replaceable::Own(started));
    }
    let asked = match compiler {
        Some(Replaceable::Lent(compiler)) => compiler.ask(order, seconds),
        Some(Replaceable::Own(compiler)) => compiler.ask(order, seconds),
        None => return Err("no process could be started for it".to_owned()),
    };
    match asked {
        Ok(answer) => understood(&answer),
        Err(cause) => {
            *compiler = None;
            Err(cause.to_string())
        }
    }
}

fn understood(answer: &Value) -> Answer {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    if let Some(error) = text(answer, "error") {
        let message = text(answer, "message").unwrap_or_default();
        let first = message.lines().find(|line| !line.trim().is_empty()).unwrap_or("").trim();
        return Err(sanitize(&format!("{error}: {first}")).into_owned());
    }
    let kernels = answer.get("kernels").and_then(Value::as_array).ok_or("the answer lists no kernels")?;
    if kernels.is_empty() {
        return Err("it launched no kernel of Triton".to_owned());
    }
    let kernel = |value: &Value| {
        let fields = (text(value, "kernel"), text(value, "hash"), text(value, "specialisation"));
        let (Some(kernel), Some(key), Some(specialisation)) = fields else {
            return Err("a kernel came without its specialisation".to_owned());
        };
        Ok((kernel, key, specialisation))
    };
    kernels.iter().map(kernel).collect()
}

fn collect(task: &Task<'_>, names: &Names<'_>, triton: String, plan: Vec<Planned>, answers: &[Answer], cache: &Cache) -> Record {
    let mut kernels: BTreeMap<(String, String), Compiled> = BTreeMap::new();
    let mut launches = Vec::with_capacity(plan.len());
    for (planned, answer) in plan.into_iter().zip(answers) {
        let mut launch = planned.launch;
        match answer {
            Err(why) => launch.failure = Some(why.clone()),
            Ok(compiled) => {
                for (kernel, key, specialisation) in compiled {
                    launch.kernels.push(key.clone());
                    let Some(code_id) = code_of(cache, key) else {
                        launch.failure = Some(format!("the binary of '{kernel}' cannot be read"));
                        continue;
                    };
                    let (kernel, key, code_id, specialisation) = (kernel.clone(), key.clone(), code_id.to_owned(), specialisation.clone());
                    kernels.insert((kernel.clone(), key.clone()), Compiled { kernel, key, code_id, specialisation });
                }
            }
        }
        launches.push(launch);
    }
    Record {
        schema: SCHEMA.to_owned(),
        label: LABEL.to_owned(),
        triton,
        arch: task.arch.to_owned(),
        module: names.module.to_owned(),
        sources: digest(task.files),
        launches,
        kernels: kernels.into_values().collect(),
    }
}
