//! The command line.
//!
//! In: the process's arguments. Out: [`Cli`], plain data. Refused: what clap refuses, and rule ids, selectors and places that cannot be right;
//! nothing is opened and nothing is decided here.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

mod probe;
mod runner;
mod values;

pub use probe::{ProbeArgs, ProbeCacheArgs, ProbeCommand, ProbeCompileArgs, ProbeFormat, ProbeReportOptions};
pub use runner::{DeviceRuntime, ProbeDeviceArgs, ProbeJudgeArgs, ProbeRunArgs};
pub use values::{RuleRef, Selector, SourcePath, TraceTarget};

use crate::catalog::Level;

const LONG_ABOUT: &str = "\
Says which GEMM kernel really runs.

Reads RL-Kernel, the orchestrator, the rollout engine and the training framework at the revisions that a profile pins, resolves every route \
from a production callsite to a kernel (registries, dynamic imports, autograd, patch installation, environment switches), and checks the \
consistency contract on the way. Nothing of what is read is imported or run.";

const EXIT_CODES: &str = "\
Exit codes:
  0  clean: everything was looked at, and nothing at or above --fail-on was found
  1  findings at or above --fail-on
  2  wrong usage, or a mistake in the profile
  3  there was nothing to lint
  4  incomplete: a source, pin or patch could not be seen as declared";

const ANALYSIS: &str = "Analysis";
const REPORT: &str = "Report";
const RULES: &str = "Rules";
const VERDICT: &str = "Verdict";
const EVERYWHERE: &str = "Everywhere";

/// Says which GEMM kernel really runs.
#[derive(Clone, Debug, Parser)]
#[command(name = "rlk-lint", version, about, long_about = LONG_ABOUT, after_help = EXIT_CODES, max_term_width = 120)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Options of every command.
    #[command(flatten)]
    pub global: GlobalOptions,
}

/// Options of every command.
#[derive(Args, Clone, Debug)]
pub struct GlobalOptions {
    /// Say less: findings and gaps only, without the summary.
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = EVERYWHERE)]
    pub quiet: bool,
    /// Say more: every source with its revision, and what each stage took. Twice: every file and every rule too.
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = EVERYWHERE)]
    pub verbose: u8,
    /// When to colour what is written to a terminal.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN", help_heading = EVERYWHERE)]
    pub color: Color,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Lint the sources of a profile.
    Check(CheckArgs),
    /// Excuse the findings that are there already: write the list, or lint against it.
    #[command(subcommand)]
    Baseline(BaselineCommand),
    /// Lint the small sources that are built into this program, to see what a report looks like.
    Demo(DemoArgs),
    /// List every callsite, binding and route, as the inventory that RFC #581 asks for.
    Inventory(InventoryArgs),
    /// List the sources of a profile: which are there, and at which commit of which repository the others are to be had.
    Sources(SourcesArgs),
    /// Show the chains from entry points to a function, or from a line on to kernels.
    Trace(TraceArgs),
    /// Compare the routes of two revisions of one source.
    Diff(DiffArgs),
    /// Write the call graph of Python files or packages, without a profile.
    Callgraph(CallgraphArgs),
    /// Look at compiled code, without a device.
    Probe(ProbeArgs),
    /// Write a commented profile for a checkout.
    Init(InitArgs),
    /// Show the page of a rule: what it finds, why that matters, what it cannot see.
    Explain(ExplainArgs),
    /// List the rules.
    Rules(RulesArgs),
    /// Write a completion script for a shell.
    Completions(CompletionsArgs),
    /// Write the manual page.
    Man(ManArgs),
}

/// What is read, and under which assumptions.
#[derive(Args, Clone, Debug)]
pub struct AnalysisOptions {
    /// The profile. By default `rlk-lint.toml` in the current folder or the nearest folder above it that has one.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = ANALYSIS)]
    pub profile: Option<PathBuf>,
    /// Where a source of the profile lies: a git repository (bare is fine) or a folder. May be repeated.
    #[arg(long = "source", value_name = "ID=PATH", help_heading = ANALYSIS)]
    pub sources: Vec<SourcePath>,
    /// Go on without sources that have no path or are not there. Each stays in the report as a gap.
    #[arg(long, help_heading = ANALYSIS)]
    pub allow_missing: bool,
    /// Number of threads. By default one per processor. The report does not depend on it.
    #[arg(long, value_name = "N", help_heading = ANALYSIS)]
    pub threads: Option<NonZeroUsize>,
}

/// How findings are written, and where.
#[derive(Args, Clone, Debug)]
pub struct ReportOptions {
    /// Format of the report that goes to standard output, or to --output.
    #[arg(long, value_enum, default_value_t = Format::Human, help_heading = REPORT)]
    pub format: Format,
    /// File for the report, instead of standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = REPORT)]
    pub output: Option<PathBuf>,
    /// Write a JSON report to this file as well. May be repeated, like the options below.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = REPORT)]
    pub output_json: Vec<PathBuf>,
    /// Write SARIF 2.1.0 to this file as well, for GitHub code scanning.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = REPORT)]
    pub output_sarif: Vec<PathBuf>,
    /// Write GitHub workflow commands to this file as well.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = REPORT)]
    pub output_github: Vec<PathBuf>,
    /// Write a GitLab code quality report to this file as well.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = REPORT)]
    pub output_gitlab: Vec<PathBuf>,
    /// Write JUnit XML to this file as well.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = REPORT)]
    pub output_junit: Vec<PathBuf>,
    /// Write the report for people to this file as well, without colour.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = REPORT)]
    pub output_human: Vec<PathBuf>,
    /// Write one SARIF log per source into this folder, as ID.sarif, for an upload to each repository itself.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = REPORT)]
    pub sarif_per_source: Option<PathBuf>,
    /// Category of the SARIF run: keeps several runs on one commit apart.
    #[arg(long, value_name = "NAME", help_heading = REPORT)]
    pub sarif_category: Option<String>,
    /// Report what inline comments and the profile silenced as well, marked as such, with the reason.
    #[arg(long, help_heading = REPORT)]
    pub show_suppressed: bool,
    /// Report only these rules: ids (`RLK301`), beginnings of ids (`RLK3`) or names (`unpinned-source`), separated by commas.
    #[arg(long, value_name = "RULES", value_delimiter = ',', help_heading = RULES)]
    pub select: Vec<Selector>,
    /// Do not report these rules. Outranks --select.
    #[arg(long, value_name = "RULES", value_delimiter = ',', help_heading = RULES)]
    pub ignore: Vec<Selector>,
    /// Lowest level at which findings make the exit code 1.
    #[arg(long, value_enum, default_value_t = FailOn::Warning, value_name = "LEVEL", help_heading = VERDICT)]
    pub fail_on: FailOn,
    /// Exit with 0 even with findings. Wrong usage (2), nothing to lint (3) and an incomplete run (4) keep their codes.
    #[arg(long, help_heading = VERDICT)]
    pub exit_zero: bool,
}

impl ReportOptions {
    /// Every report that is asked for: the main one, then the others by format and in the order given. `None` is standard output.
    #[must_use]
    pub fn outputs(&self) -> Vec<(Format, Option<&PathBuf>)> {
        let mut outputs = vec![(self.format, self.output.as_ref())];
        for (format, files) in [
            (Format::Human, &self.output_human),
            (Format::Json, &self.output_json),
            (Format::Sarif, &self.output_sarif),
            (Format::Github, &self.output_github),
            (Format::Gitlab, &self.output_gitlab),
            (Format::Junit, &self.output_junit),
        ] {
            outputs.extend(files.iter().map(|file| (format, Some(file))));
        }
        outputs
    }
}

/// Arguments of `check`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
pub struct CheckArgs {
    /// What is read.
    #[command(flatten)]
    pub analysis: AnalysisOptions,
    /// Report only findings and routes that are new or changed since this revision of the checked-out source. Pins, patches, profile and scripts are those of
    /// that revision.
    #[arg(long, value_name = "REV", help_heading = ANALYSIS)]
    pub diff_base: Option<String>,
    /// How findings are written.
    #[command(flatten)]
    pub report: ReportOptions,
}

/// What to do with a baseline.
#[derive(Clone, Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "one value per run")]
pub enum BaselineCommand {
    /// Write a baseline with every finding that there is.
    Create(BaselineWriteArgs),
    /// Write a baseline again: entries that meet no finding go, new findings come; both are listed.
    Update(BaselineWriteArgs),
    /// Lint, and report only what the baseline does not excuse, and its entries that meet no finding (RLK193).
    Check(BaselineCheckArgs),
}

/// Arguments of `baseline create` and `baseline update`.
#[derive(Args, Clone, Debug)]
pub struct BaselineWriteArgs {
    /// The baseline.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Replace a file that is there (`create`).
    #[arg(long)]
    pub force: bool,
    /// What is read.
    #[command(flatten)]
    pub analysis: AnalysisOptions,
}

/// Arguments of `baseline check`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
pub struct BaselineCheckArgs {
    /// The baseline.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// What is read.
    #[command(flatten)]
    pub analysis: AnalysisOptions,
    /// How findings are written.
    #[command(flatten)]
    pub report: ReportOptions,
}

/// Arguments of `demo`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
pub struct DemoArgs {
    /// Write the Stage 0 record of the built-in sources instead of their findings.
    #[arg(long)]
    pub stage0: bool,
    /// Write the sources, as git repositories, and their profile into this folder and leave them there, so that every command can be tried on them.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = ANALYSIS)]
    pub keep: Option<PathBuf>,
    /// How findings are written.
    #[command(flatten)]
    pub report: ReportOptions,
}

/// Arguments of `inventory`.
#[derive(Args, Clone, Debug)]
pub struct InventoryArgs {
    /// What is read.
    #[command(flatten)]
    pub analysis: AnalysisOptions,
    /// Format of the inventory.
    #[arg(long, value_enum, default_value_t = InventoryFormat::Md, help_heading = REPORT)]
    pub format: InventoryFormat,
    /// File for the inventory, instead of standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = REPORT)]
    pub output: Option<PathBuf>,
}

/// Arguments of `sources`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "One line per source, with tabs between: id, `there` or `missing`, commit, repository. `-` stands for what the profile does not say."
)]
pub struct SourcesArgs {
    /// Format of the list.
    #[arg(long, value_enum, default_value_t = ListFormat::Human, help_heading = REPORT)]
    pub format: ListFormat,
    /// What is read.
    #[command(flatten)]
    pub analysis: AnalysisOptions,
}

/// Arguments of `trace`.
#[derive(Args, Clone, Debug)]
pub struct TraceArgs {
    /// A qualified name (`rl_engine.kernels.registry.KernelRegistry.get_op`), or a line (`PATH:LINE`, `SOURCE:PATH:LINE`).
    #[arg(value_name = "SYMBOL|PATH:LINE")]
    pub target: TraceTarget,
    /// Chains from entry points to the target only.
    #[arg(long, conflicts_with = "down")]
    pub up: bool,
    /// Chains from the target to kernels only.
    #[arg(long)]
    pub down: bool,
    /// Format of the chains.
    #[arg(long, value_enum, default_value_t = ListFormat::Human, help_heading = REPORT)]
    pub format: ListFormat,
    /// What is read.
    #[command(flatten)]
    pub analysis: AnalysisOptions,
}

/// Arguments of `diff`.
#[derive(Args, Clone, Debug)]
pub struct DiffArgs {
    /// Revision to compare from: a commit, branch or tag of the source.
    pub old: String,
    /// Revision to compare with.
    pub new: String,
    /// Source whose revision moves. By default the one with `main = true`. All others stay at their pins.
    #[arg(long = "of", value_name = "ID")]
    pub source_id: Option<String>,
    /// Format of the differences.
    #[arg(long, value_enum, default_value_t = ListFormat::Human, help_heading = REPORT)]
    pub format: ListFormat,
    /// File for the differences, instead of standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = REPORT)]
    pub output: Option<PathBuf>,
    /// What is read.
    #[command(flatten)]
    pub analysis: AnalysisOptions,
}

/// Arguments of `callgraph`.
#[derive(Args, Clone, Debug)]
pub struct CallgraphArgs {
    /// Python files, or folders of them. Their common folder is the root of the import path.
    #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Format of the graph: `pycg` and `json` both map each caller to its callees.
    #[arg(long, value_enum, default_value_t = GraphFormat::Pycg, help_heading = REPORT)]
    pub format: GraphFormat,
    /// File for the graph, instead of standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = REPORT)]
    pub output: Option<PathBuf>,
    /// Number of threads. By default one per processor. The graph does not depend on it.
    #[arg(long, value_name = "N", help_heading = ANALYSIS)]
    pub threads: Option<NonZeroUsize>,
}

/// Arguments of `init`.
#[derive(Args, Clone, Debug)]
pub struct InitArgs {
    /// The checkout that the profile is for.
    #[arg(default_value = ".", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// Where to write the profile; `-` is standard output. By default `rlk-lint.toml` in the checkout.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Replace files that are there.
    #[arg(long)]
    pub force: bool,
    /// Write a GitHub workflow for the checkout as well. A profile that is there stays.
    #[arg(long, conflicts_with = "output")]
    pub github: bool,
    /// Write a GitLab job for the checkout as well. A profile that is there stays.
    #[arg(long, conflicts_with = "output")]
    pub gitlab: bool,
}

/// Arguments of `explain`.
#[derive(Args, Clone, Debug)]
pub struct ExplainArgs {
    /// Id (`RLK101`) or name (`unpinned-source`) of the rule.
    pub rule: RuleRef,
}

/// Arguments of `rules`.
#[derive(Args, Clone, Debug)]
pub struct RulesArgs {
    /// Format of the list.
    #[arg(long, value_enum, default_value_t = ListFormat::Human)]
    pub format: ListFormat,
}

/// Arguments of `completions`.
#[derive(Args, Clone, Debug)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Args, Clone, Debug)]
pub struct ManArgs {
    /// Write one page per command into this folder, instead of the main page to standard output.
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// If it goes to a terminal, and `NO_COLOR` is not set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people: excerpts with their findings.
    Human,
    /// JSON with everything that the report holds.
    Json,
    /// SARIF 2.1.0.
    Sarif,
    /// GitHub workflow commands, which become annotations.
    Github,
    /// GitLab code quality.
    Gitlab,
    /// JUnit XML.
    Junit,
}

/// Format of an inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InventoryFormat {
    /// The route graph, for Graphviz.
    Dot,
    /// JSON.
    Json,
    /// Markdown.
    Md,
}

/// Format of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// For people.
    Human,
    /// JSON.
    Json,
}

/// Format of a call graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// As PyCG writes it: caller to callees.
    Pycg,
    /// The same adjacency, under the name that other commands use.
    Json,
}

/// Lowest level at which findings make a run fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Any finding.
    Note,
    /// Warnings and errors.
    Warning,
    /// Errors only.
    Error,
    /// No finding.
    Never,
}

impl FailOn {
    /// The level; `None` if findings never make a run fail.
    #[must_use]
    pub const fn level(self) -> Option<Level> {
        match self {
            Self::Note => Some(Level::Note),
            Self::Warning => Some(Level::Warning),
            Self::Error => Some(Level::Error),
            Self::Never => None,
        }
    }
}

#[cfg(test)]
mod tests;
