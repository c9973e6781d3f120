//! The documents that say what was requested and what has to come out.
//!
//! In: `request.json` and the static baseline. Out: plain data. Refused: unknown keys, another schema, a second document of the same kind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::evidence::{Evidence, Role};
use super::link::{Findings, Link, State};

/// Schema of the request.
pub const REQUEST: &str = "rlk-lint/request/v1";
/// Schema of the static baseline.
pub const BASELINE: &str = "rlk-lint/baseline/v1";

/// What a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Label {
    /// On the runner that the contract is for.
    #[default]
    Runner,
    /// On another machine, to exercise the machinery; can never pass.
    Rehearsal,
}

/// One source as it was when the run began or ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceState {
    /// Id in the profile.
    pub id: String,
    /// Commit that was checked out.
    pub commit: String,
    /// Whether tracked files differed from it.
    pub dirty: bool,
    /// Digest of the tracked files' bytes.
    pub sha256: String,
}

/// What was requested, and in what state the machine was.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// [`REQUEST`].
    pub schema: String,
    /// Runner or rehearsal.
    pub label: Label,
    /// Contract that has to hold.
    pub contract: String,
    /// Processor that it is for.
    pub arch: String,
    /// Processes that launch kernels of the family: one per rank.
    pub processes: u64,
    /// Environment of the workload, as far as it decides a route.
    pub environment: BTreeMap<String, String>,
    /// Sources before the run.
    #[serde(default)]
    pub sources: Vec<SourceState>,
    /// Sources after the run.
    #[serde(default)]
    pub sources_after: Vec<SourceState>,
    /// Digests of the libraries that decide what runs, by file name.
    #[serde(default)]
    pub libraries: BTreeMap<String, String>,
    /// Kernels that may run beside the family although their name is a forbidden one, as patterns with `*` at the end.
    #[serde(default)]
    pub allowed: Vec<String>,
}

/// Names of the family's kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernels {
    /// All chunks in one kernel.
    pub mono: String,
    /// One chunk.
    pub partial: String,
    /// Sum of the chunks.
    pub reduce: String,
}

/// Layout of the reduce kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reduce {
    /// Elements of a workgroup.
    pub block: u64,
    /// Threads of a workgroup.
    pub threads: u32,
}

/// The tile of a route for a range of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tile {
    /// Route.
    pub route: String,
    /// Columns.
    pub n: u64,
    /// Length of the sum.
    pub k: u64,
    /// Rows, from and to.
    pub m: (u64, u64),
    /// Rows of a tile.
    pub block_m: u64,
    /// Columns of a tile.
    pub block_n: u64,
    /// Waves of a workgroup.
    pub num_warps: u32,
}

/// What the machine code of kernels with dot products has to be. Zero and empty are not checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CodeRules {
    /// Exact set of matrix instructions.
    pub instructions: Vec<String>,
    /// Shape of the matrix instruction.
    pub instr_shape: Vec<u64>,
    /// Elements of an operand that one lane holds: four times kpack.
    pub k_width: u64,
    /// Depth of a tile.
    pub block_k: u64,
    /// Most vector registers that may be spilled.
    pub vgpr_spills: u64,
}

/// Code that was checked, by kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// Kernel.
    pub kernel: String,
    /// Identity of its code.
    pub code_id: String,
}

/// The static baseline: what the compiled candidates are, and how a shape is laid out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// [`BASELINE`].
    pub schema: String,
    /// Contract.
    pub contract: String,
    /// Processor.
    pub arch: String,
    /// Version of Triton that compiled it; identities hold for this one only.
    #[serde(default)]
    pub triton: String,
    /// Lanes of a wave.
    pub wavefront: u32,
    /// Elements of the sum that one chunk covers.
    pub chunk_k: u64,
    /// Most rows of the split schedule.
    pub split_max_rows: u64,
    /// Kernel names.
    pub kernels: Kernels,
    /// Layout of the reduce kernel.
    pub reduce: Reduce,
    /// Kernels that must not run in a window of the family, as patterns with `*` at the end.
    pub forbidden: Vec<String>,
    /// Tiles.
    pub tiles: Vec<Tile>,
    /// What the machine code has to be.
    #[serde(default)]
    pub rules: CodeRules,
    /// Identities of checked code.
    pub code: Vec<Code>,
}

/// Whether `name` is `pattern`, or begins with it up to a `*` at its end.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |stem| name.starts_with(stem))
}

/// The one document of a role; a missing one, a second one, and one that cannot be understood are told.
fn single<T: serde::de::DeserializeOwned>(
    evidence: &Evidence,
    found: &mut Findings,
    role: Role,
    link: Link,
    missing: &'static str,
    schema_of: impl Fn(&T) -> &str,
    schema: &str,
) -> Option<T> {
    let mut entries = evidence.of(role);
    let Some(entry) = entries.next() else {
        found.problem(link, State::Incomplete, missing, "", format!("the evidence holds no {}", missing.trim_start_matches("no-")));
        return None;
    };
    if let Some(second) = entries.next() {
        found.problem(link, State::Incomplete, "document-twice", &second.path, format!("'{}' is such a document already", entry.path));
        return None;
    }
    let document = evidence.bytes(entry).and_then(|bytes| serde_json::from_slice::<T>(&bytes).map_err(|error| error.to_string()));
    match document {
        Ok(document) if schema_of(&document) == schema => Some(document),
        Ok(document) => {
            let what = format!("its schema is '{}', and this version reads '{schema}'", schema_of(&document));
            found.problem(link, State::Incomplete, "document-unreadable", &entry.path, what);
            None
        }
        Err(what) => {
            found.problem(link, State::Incomplete, "document-unreadable", &entry.path, what);
            None
        }
    }
}

/// Reads the request.
pub fn request(evidence: &Evidence, found: &mut Findings) -> Option<Request> {
    single(evidence, found, Role::Request, Link::L1, "no-request", |request: &Request| &request.schema, REQUEST)
}

/// Reads the baseline and refuses one whose numbers cannot be a layout.
pub fn baseline(evidence: &Evidence, found: &mut Findings) -> Option<Baseline> {
    let baseline = single(evidence, found, Role::Baseline, Link::L4, "no-baseline", |baseline: &Baseline| &baseline.schema, BASELINE)?;
    let sound = baseline.chunk_k > 0
        && baseline.wavefront > 0
        && baseline.reduce.block > 0
        && !baseline.tiles.is_empty()
        && baseline.tiles.iter().all(|tile| {
            let small = |number: u64| (1..=1 << 30).contains(&number);
            small(tile.n)
                && small(tile.k)
                && small(tile.m.1)
                && small(tile.m.0)
                && tile.m.0 <= tile.m.1
                && small(tile.block_m)
                && small(tile.block_n)
                && tile.num_warps > 0
        });
    if !sound {
        let what = "a size in it is zero, reversed or beyond reason, or it has no tiles, so no layout follows from it";
        found.problem(Link::L4, State::Incomplete, "baseline-unsound", "", what);
        return None;
    }
    Some(baseline)
}
