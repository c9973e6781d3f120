//! Arguments of the verbs of `probe` that look at a device, or at what ran on one.
//!
//! In: the process's arguments. Out: plain data. Refused: what clap refuses.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::{ListFormat, REPORT};

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
