//! Arguments of `probe`, which looks at compiled code.
//!
//! In: the process's arguments. Out: plain data. Refused: what clap refuses.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::{ANALYSIS, AnalysisOptions, EXIT_CODES, FailOn, ProbeDeviceArgs, ProbeJudgeArgs, ProbeRunArgs, REPORT, VERDICT};

/// Arguments of `probe`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
pub struct ProbeArgs {
    /// What to look at. By default the device, as `probe device` does.
    #[command(subcommand)]
    pub command: Option<ProbeCommand>,
}

/// What to look at.
#[derive(Clone, Debug, Subcommand)]
pub enum ProbeCommand {
    /// Read a Triton cache: is each binary what its neighbours say, and what the contract asks for?
    Cache(ProbeCacheArgs),
    /// Compile every candidate of the profile at every shape, without a device, and compare the code with the contract.
    ///
    /// A Python process imports the kernel module of the pinned source, with torch replaced by a stand-in, and compiles what a launch of it would compile.
    /// That runs code from the source, and therefore needs --execute-sources. Nothing is run on a device, and nothing that comes out is called validated.
    Compile(ProbeCompileArgs),
    /// Say which device is here: kernel, HSA and HIP have to agree.
    Device(ProbeDeviceArgs),
    /// Judge an evidence directory: is what ran what was requested?
    Judge(ProbeJudgeArgs),
    /// Run a workload on the runner, record it, and judge what ran.
    Run(Box<ProbeRunArgs>),
}

/// Arguments of `probe cache`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
pub struct ProbeCacheArgs {
    /// The cache: what `TRITON_CACHE_DIR` names, or `~/.triton/cache`.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// The profile whose [probe.contract] the code is compared with. Without one, only the cache itself is checked.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = ANALYSIS)]
    pub profile: Option<PathBuf>,
    /// A record that `probe compile --record` wrote: the code has to be the same for the same key.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "profile", help_heading = ANALYSIS)]
    pub record: Option<PathBuf>,
    /// How the result is written.
    #[command(flatten)]
    pub report: ProbeReportOptions,
}

/// Arguments of `probe compile`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
pub struct ProbeCompileArgs {
    /// What is read. Of the sources, only the one that [probe] names.
    #[command(flatten)]
    pub analysis: AnalysisOptions,
    /// Allow that code from the pinned source is run: importing a kernel module does that. It runs as you, with your rights, in a process with an empty
    /// environment.
    #[arg(long, help_heading = ANALYSIS)]
    pub execute_sources: bool,
    /// Python interpreter with the pinned Triton, instead of the profile's.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = ANALYSIS)]
    pub python: Option<PathBuf>,
    /// Folder to compile in: absent, empty, or from an earlier run, whose result is used again if nothing changed. By default a temporary one.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = ANALYSIS)]
    pub work: Option<PathBuf>,
    /// Write what was compiled, and what it was specialised for, so that it can be compiled again elsewhere.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "replay", help_heading = REPORT)]
    pub record: Option<PathBuf>,
    /// Compile what this record says, in a fresh cache, and compare the code.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = ANALYSIS)]
    pub replay: Option<PathBuf>,
    /// How the result is written.
    #[command(flatten)]
    pub report: ProbeReportOptions,
}

/// How a probe's result is written, and how it is judged.
#[derive(Args, Clone, Debug)]
pub struct ProbeReportOptions {
    /// Format of the report.
    #[arg(long, value_enum, default_value_t = ProbeFormat::Human, help_heading = REPORT)]
    pub format: ProbeFormat,
    /// File for the report, instead of standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = REPORT)]
    pub output: Option<PathBuf>,
    /// Lowest level at which findings make the exit code 1.
    #[arg(long, value_enum, default_value_t = FailOn::Warning, value_name = "LEVEL", help_heading = VERDICT)]
    pub fail_on: FailOn,
}

/// Format of a probe's report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProbeFormat {
    /// For people: a table, then findings.
    Human,
    /// JSON with everything that was read.
    Json,
    /// SARIF 2.1.0: the findings.
    Sarif,
}
