//! The validated profile: what is linted, at which revisions, under which assumptions.
//!
//! In: the text of `rlk-lint.toml` and of the `sources.json` files it names. Out: [`Profile`], or diagnostics that show the line and what
//! would be valid. Refused: unknown keys, abbreviated commits, ids that are declared twice or never, contradictions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::catalog::Level;
use crate::text::{FileId, Span};

mod classes;
mod error;
mod evidence;
mod family;
pub mod init;
mod levels;
mod parse;
mod pins;
mod platform;
mod probe;
mod reader;
mod source;
#[cfg(test)]
mod tests;
pub mod workload;

pub use classes::{PathClasses, RuleLevels};
pub use error::{Document, Label, Mistake, Place, ProfileErrors};
pub use probe::{CodeContract, ContractValue, Exercise, Probe, ShapeClass};

/// Value of `schema` in every profile that this version reads.
pub const SCHEMA: &str = "rlk-lint/profile/v1";

/// Largest file that is read if the profile does not say, in bytes.
pub const DEFAULT_MAX_FILE_BYTES: u64 = 4 << 20;

/// The text of a profile, and what was given beside it.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The profile in the run's file table; spans of the validated profile lie in it.
    pub file: FileId,
    /// Name of the profile in messages.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
    /// Paths from `--source ID=PATH`; they replace those that the profile declares.
    pub paths: &'a [(String, PathBuf)],
}

/// A `sources.json` that a `[[pins]]` names.
#[derive(Clone, Debug)]
pub struct PinsRef {
    /// Path relative to the profile's folder, or to the root of `source`.
    pub path: String,
    /// The source in whose pinned tree the file lies, as the profile declares it; `None` for a file beside the profile. Its commit may still
    /// be open.
    pub source: Option<Source>,
}

/// Supplies the text of a `sources.json`, or says as one clause why it cannot be had.
pub type ReadPins<'a> = dyn FnMut(&PinsRef) -> Result<String, String> + 'a;

/// What a source contributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Kernels and facades (RL-Kernel).
    Kernel,
    /// Starts and connects both sides (VIME).
    Orchestrator,
    /// The rollout engine (vLLM).
    Rollout,
    /// The training framework (Megatron-LM).
    Training,
}

impl Role {
    /// Every role.
    pub const ALL: &'static [Self] = &[Self::Kernel, Self::Orchestrator, Self::Rollout, Self::Training];

    /// The word used in profiles and reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Orchestrator => "orchestrator",
            Self::Rollout => "rollout",
            Self::Training => "training",
        }
    }
}

/// What a path is good for. Only production callsites count as routes; the others are listed and labelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PathClass {
    /// Runs in a real job.
    Production,
    /// Reference implementation, loaded only for comparison.
    Reference,
    /// Test.
    Test,
    /// Benchmark.
    Benchmark,
    /// Example.
    Example,
    /// Documentation.
    Documentation,
}

impl PathClass {
    /// Every class.
    pub const ALL: &'static [Self] = &[Self::Production, Self::Reference, Self::Test, Self::Benchmark, Self::Example, Self::Documentation];

    /// The word used in profiles and reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Production => "production",
            Self::Reference => "reference",
            Self::Test => "test",
            Self::Benchmark => "benchmark",
            Self::Example => "example",
            Self::Documentation => "documentation",
        }
    }
}

/// A value that the profile declares for a name which the sources read.
#[derive(Clone, Debug, PartialEq)]
pub enum Known {
    /// Python `None`, or an environment variable that is not set.
    None,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A string.
    Str(String),
    /// Set, and not `None`; nothing more is known.
    Present,
}

/// A companion patch on top of the pinned commit.
#[derive(Clone, Debug, PartialEq)]
pub struct PatchPin {
    /// Where the patch file lies, relative to the profile, or inside another source (`source` set).
    pub path: String,
    /// Source id whose pinned tree holds the patch; `None` for a file beside the profile.
    pub source: Option<String>,
    /// SHA-256 of the patch's bytes, lower-case hex.
    pub sha256: Option<String>,
    /// Id of the tree that results, lower-case hex.
    pub tree: Option<String>,
}

/// One source.
#[derive(Clone, Debug)]
pub struct Source {
    /// Id, unique in the profile.
    pub id: String,
    /// Git repository or plain directory; `None` if it is to be given with `--source ID=PATH`.
    pub path: Option<PathBuf>,
    /// Public address, for links and provenance.
    pub repository: Option<String>,
    /// Full commit id.
    pub commit: Option<String>,
    /// Expected tree id of that commit, before any patch.
    pub tree: Option<String>,
    /// Patch on top.
    pub patch: Option<PatchPin>,
    /// Folders on the import path, relative to the source's root (`.` for the root itself).
    pub roots: Vec<String>,
    /// Role.
    pub role: Role,
    /// Whether this is the checked-out repository that results are reported against. Exactly one source at most.
    pub main: bool,
    /// The source's table in the profile: where findings about its pin are anchored.
    pub span: Span,
}

/// An operator family: what counts as a kernel and what counts as its front.
#[derive(Clone, Debug)]
pub struct Family {
    /// Id (`det_gemm`).
    pub id: String,
    /// Qualified names of kernels and native symbols; a trailing `*` matches the rest of one name (`rl_engine._C.det_gemm_*`).
    pub sinks: Vec<String>,
    /// Qualified names of the family's public callables and classes, with the same wildcard.
    pub facades: Vec<String>,
    /// Contract id per implementation: qualified-name pattern -> contract id.
    pub contracts: Vec<(String, String)>,
    /// Strings by which registries and documentation ask for the family (`det_gemm`).
    pub keys: Vec<String>,
    /// Qualified names that look like the family and are not (`NativeGemmOp`).
    pub lookalikes: Vec<String>,
    /// The table in the profile.
    pub span: Span,
}

/// A declared entry point, besides those found in `pyproject.toml`, scripts and configuration files.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Qualified name.
    pub symbol: String,
    /// Where it is declared.
    pub span: Span,
}

/// A file that is said to be evidence.
#[derive(Clone, Debug)]
pub struct EvidenceRef {
    /// Id, unique in the profile.
    pub id: String,
    /// Source that holds it.
    pub source: String,
    /// Path inside the source.
    pub path: String,
    /// File of the same source that it is said to support: the module with the table of configurations.
    pub supports: Option<String>,
    /// File of the same source that records a run of it; a test is no evidence without one.
    pub run: Option<String>,
    /// The table in the profile.
    pub span: Span,
}

/// The validated profile.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Backend (`rocm`, `cuda`).
    pub backend: String,
    /// Instruction set (`gfx942`).
    pub arch: String,
    /// Environment variables: value, or `Known::None` for "not set". A variable that is absent here is undecided.
    pub environment: BTreeMap<String, Known>,
    /// Values of dotted names (`torch.version.hip`).
    pub known: BTreeMap<String, Known>,
    /// Sources in declared order.
    pub sources: Vec<Source>,
    /// Families in declared order.
    pub families: Vec<Family>,
    /// Entries in declared order.
    pub entries: Vec<Entry>,
    /// Evidence in declared order.
    pub evidence: Vec<EvidenceRef>,
    /// Path classes in order; the first glob that matches decides, production if none does. (glob, class) Read with [`PathClasses`].
    pub paths: Vec<(String, PathClass)>,
    /// Level overrides by rule id.
    pub levels: BTreeMap<String, Level>,
    /// Level overrides by path glob and rule id, in order. Read with [`RuleLevels`].
    pub path_levels: Vec<(String, String, Level)>,
    /// Options by rule id; each is one that the rule has, of the type of its default.
    pub options: BTreeMap<String, BTreeMap<String, toml::Value>>,
    /// Model, regions, and what a decision weighs.
    pub workload: workload::Workload,
    /// Names that a `sources.json` pins and no source has, with the name of that file.
    pub unused_pins: Vec<(String, String)>,
    /// Largest file that is read, in bytes.
    pub max_file_bytes: u64,
    /// What is compiled, and what it has to be.
    pub probe: Option<Probe>,
}
