//! Arguments of the verbs of `probe` that look at a device, or at what ran on one.
//!
//! In: the process's arguments. Out: plain data. Refused: what clap refuses.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::{ANALYSIS, AnalysisOptions, ListFormat, REPORT};

/// Exit codes of these verbs.
const CHAIN_CODES: &str = "\
Exit codes:
  0  every link passed
  1  a mismatch is proven
  2  wrong usage
  3  unsupported: no device that the contract is for, or a rehearsal on another
  4  incomplete: a link could not be checked; absence of evidence is never a pass";

const JUDGE_ABOUT: &str = "\
Judge an evidence directory: is what ran what was requested?

The directory is what `probe run` made, or what an RL-Kernel run left (matrix-plan.json, frozen-inputs.*.json, arms/*/launch.json, launcher logs, \
readbacks). Ten links are checked, each on its own: L0 device, L1 request, L2 environment, L3 candidates, L4 code, L5 reproduction, L6 loaded, \
L7 executed, L8 claims, L9 numbers. A link without evidence is incomplete. Nothing in the directory is run or unpickled, and no device is needed.";

/// Arguments of `probe device`.
#[derive(Args, Clone, Debug)]
#[command(after_help = CHAIN_CODES)]
pub struct ProbeDeviceArgs {
    /// Architecture that every visible device has to have.
    #[arg(long, default_value = "gfx942", value_name = "ARCH")]
    pub arch: String,
    /// Where sysfs is mounted.
    #[arg(long, default_value = "/sys", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub sysfs: PathBuf,
    /// Format of the answer.
    #[arg(long, value_enum, default_value_t = ListFormat::Human, help_heading = REPORT)]
    pub format: ListFormat,
    /// File for the answer, instead of standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = REPORT)]
    pub output: Option<PathBuf>,
    /// Ask one runtime in this process and write its answer as JSON; how the others are asked.
    #[arg(long, value_enum, hide = true)]
    pub ask: Option<DeviceRuntime>,
}

impl Default for ProbeDeviceArgs {
    fn default() -> Self {
        Self { arch: "gfx942".to_owned(), sysfs: PathBuf::from("/sys"), format: ListFormat::Human, output: None, ask: None }
    }
}

/// A runtime that knows devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeviceRuntime {
    /// The HSA runtime.
    Hsa,
    /// The HIP runtime.
    Hip,
}

/// Arguments of `probe judge`.
#[derive(Args, Clone, Debug)]
#[command(long_about = JUDGE_ABOUT, after_help = CHAIN_CODES)]
pub struct ProbeJudgeArgs {
    /// The evidence directory.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// Format of the judgement.
    #[arg(long, value_enum, default_value_t = ListFormat::Human, help_heading = REPORT)]
    pub format: ListFormat,
    /// File for the judgement, instead of standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = REPORT)]
    pub output: Option<PathBuf>,
}

const RUN_ABOUT: &str = "\
Run a workload on the runner, record what it compiles, loads and launches, and judge what ran.

Without a command the built-in exerciser drives the front that [probe.exercise] names, with every [[probe.shape]], eager and by graph replay. With one, \
each source has to be a checkout of its pinned commit without changes. The environment of [platform.environment] is set for the workload. Nothing is started \
if it does not select the contract, if a source is dirty, or if a variable is set that replaces compiled code.

rocprofv3 observes the device if it is on the search path, and torch.profiler otherwise. A known number of launches, the canary, shows what the \
observation lost. Everything goes to one folder with a manifest of digests, which `probe judge` judges again anywhere.";

/// Arguments of `probe run`.
#[derive(Args, Clone, Debug)]
#[command(long_about = RUN_ABOUT, after_help = CHAIN_CODES)]
pub struct ProbeRunArgs {
    /// Folder for the evidence: absent or empty.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// What is read.
    #[command(flatten)]
    pub analysis: AnalysisOptions,
    /// Allow that code from the pinned source is run. It runs as you, with your rights and your environment.
    #[arg(long, help_heading = ANALYSIS)]
    pub execute_sources: bool,
    /// Python interpreter with torch and the pinned Triton, instead of the profile's.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = ANALYSIS)]
    pub python: Option<PathBuf>,
    /// Compare every candidate byte for byte with the static baseline, on sampled inputs.
    #[arg(long)]
    pub verify_bits: bool,
    /// Processes that launch kernels of the family: one per rank.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub processes: u64,
    /// Replays of each captured graph.
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub replays: u64,
    /// Seconds that the workload may take.
    #[arg(long, default_value_t = 3600, value_name = "N")]
    pub seconds: u64,
    /// Run on a device that the contract is not for, to exercise the machinery. It can never pass: the exit code is 3 at best.
    #[arg(long)]
    pub rehearsal: bool,
    /// Format of the judgement.
    #[arg(long, value_enum, default_value_t = ListFormat::Human, help_heading = REPORT)]
    pub format: ListFormat,
    /// The workload, after `--`. Its Python processes are recorded.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
