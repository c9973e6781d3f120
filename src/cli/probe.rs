//! Arguments of `probe`, which looks at compiled code.
//!
//! In: the process's arguments. Out: plain data. Refused: what clap refuses.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::{EXIT_CODES, FailOn, ProbeDeviceArgs, ProbeJudgeArgs, REPORT, VERDICT};

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
    /// Say which device is here: kernel, HSA and HIP have to agree.
    Device(ProbeDeviceArgs),
    /// Judge an evidence directory: is what ran what was requested?
    Judge(ProbeJudgeArgs),
}

/// Arguments of `probe cache`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
pub struct ProbeCacheArgs {
    /// The cache: what `TRITON_CACHE_DIR` names, or `~/.triton/cache`.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
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
