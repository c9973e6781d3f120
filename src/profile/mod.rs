//! The validated profile: what is linted, at which revisions, under which assumptions.
//!
//! In: the text of `rlk-lint.toml` and of the `sources.json` files it names. Out: [`Profile`], or diagnostics that show the line and what
//! would be valid. Refused: unknown keys, abbreviated commits, ids that are declared twice or never, contradictions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::catalog::Level;
use crate::text::Span;

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

/// The validated profile.
#[derive(Clone, Debug)]
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
    /// Path classes in order; the first glob that matches decides, production if none does. (glob, class)
    pub paths: Vec<(String, PathClass)>,
    /// Level overrides by rule id.
    pub levels: BTreeMap<String, Level>,
    /// Level overrides by path glob and rule id.
    pub path_levels: Vec<(String, String, Level)>,
    /// Largest file that is read, in bytes.
    pub max_file_bytes: u64,
}
