//! The Stage 0 record: what is called where, for which shapes, under which tile, and what follows from that.
//!
//! In: routes of every family, the pinned sources, the workload and regions of the profile. Out: [`Record`], plain data in which every derived
//! cell names the places it comes from. Refused: nothing; what could not be evaluated or assigned is in the record as such, with the place that
//! stopped it.

use serde::{Deserialize, Serialize};

pub mod baseline;
pub mod candidates;
pub mod eval;
pub mod evidence;
pub mod inventory;
pub mod regions;
pub mod shapes;

pub use inventory::Inventory;

/// Schema id of the JSON form.
pub const SCHEMA: &str = "rlk-lint/stage0/v1";

/// A line of a source; the profile has an empty source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// Id of the source; empty for the profile.
    pub source: String,
    /// Path within it.
    pub path: String,
    /// Line, from 1.
    pub line: u32,
}

/// A derived value with the places that it follows from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cited<T> {
    /// The value.
    pub value: T,
    /// Where it comes from, in reading order.
    pub at: Vec<Place>,
}

/// The whole record.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: String,
    /// Name of the profile, as it was given.
    pub profile: String,
    /// Sources, callsites, bindings, requests and gaps.
    pub inventory: Inventory,
    /// Semantic regions in declared order.
    pub regions: Vec<RegionRow>,
    /// Callsites by region, side and phase.
    pub assignments: Vec<Assignment>,
    /// Callsites that belong to no region, with the reason.
    pub unassigned: Vec<Unassigned>,
    /// What the profile declares about model and topology.
    pub workload: Workload,
    /// Local GEMM shapes, by region and phase.
    pub shapes: Vec<ShapeRow>,
    /// What the pinned selection function answers for those shapes.
    pub baseline: Baseline,
    /// Launch and tile configurations that could be compared; `None` if no launch function or no class of configurations was found.
    pub candidates: Option<Candidates>,
    /// The one region that was selected, or why none was; `None` as long as nothing looks for it, as in the two below.
    pub decision: Option<Decision>,
    /// Values on which profile and sources disagree.
    pub contradictions: Option<Vec<Contradiction>>,
    /// What the sources reject, do not claim, or leave open.
    pub unsupported: Option<Vec<UnsupportedRow>>,
    /// Reports, tests and result files.
    pub evidence: Vec<EvidenceRow>,
}

/// Which framework runs a callsite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The rollout engine.
    Rollout,
    /// The training framework.
    Training,
}

impl Side {
    /// The word used in profiles and reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Rollout => "rollout",
            Self::Training => "training",
        }
    }
}

/// A semantic region.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RegionRow {
    /// Id (`qkv_proj`).
    pub id: String,
    /// Whether it is only listed because routes touch it, and no GEMM of the family stands for it (selected logp, warmup).
    pub neighbour: bool,
    /// Symbols that identify it.
    pub symbols: Vec<RegionSymbol>,
    /// One row per side and phase.
    pub routes: Vec<RegionRoute>,
    /// Where the profile declares it.
    pub at: Place,
}

/// A name that identifies a region on one side.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RegionSymbol {
    /// Dotted name or pattern.
    pub name: String,
    /// Side.
    pub side: Side,
    /// Phases in which it runs.
    pub phases: Vec<String>,
    /// Definitions that it names; empty if the pinned sources have none.
    pub found: Vec<Place>,
    /// Where the profile declares it.
    pub at: Place,
}

/// Who runs a region in one phase of one side.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RegionRoute {
    /// Side.
    pub side: Side,
    /// Phase.
    pub phase: String,
    /// Production callsites.
    pub callsites: Vec<Place>,
    /// What is asked for: the profile's switches that the chain reads.
    pub requested: Vec<Cited<String>>,
    /// Kernels that the chain ends in.
    pub observed: Vec<String>,
    /// Contract ids of those.
    pub contracts: Vec<String>,
    /// Function nearest to the kernel that is not part of the family.
    pub forward_owner: Vec<Cited<String>>,
    /// Owner of the backward pass.
    pub backward_owner: Vec<Cited<String>>,
    /// Custom operators on the chain: what a compiled graph sees.
    pub graph_boundary: Vec<Cited<String>>,
    /// Functions that report what ran.
    pub provenance: Vec<Cited<String>>,
}

/// A callsite with its region.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Assignment {
    /// The call.
    pub at: Place,
    /// Function it stands in.
    pub caller: String,
    /// Regions, sides and phases; several where functions are shared.
    pub serves: Vec<Serves>,
    /// Status of the callsite in the inventory.
    pub status: String,
}

/// One region, side and phase of a callsite.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Serves {
    /// Region.
    pub region: String,
    /// Side.
    pub side: Side,
    /// Phase.
    pub phase: String,
    /// The symbol of the profile that says so.
    pub by: String,
}

/// A callsite without a region.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Unassigned {
    /// The call.
    pub at: Place,
    /// Function it stands in.
    pub caller: String,
    /// Class of its path.
    pub class: String,
    /// Why no region has it.
    pub reason: String,
}

/// Model and topology.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Workload {
    /// Name of the model; empty if the profile declares no workload.
    pub model: String,
    /// Declared and derived numbers by name (`hidden`, `padded-vocabulary`).
    pub facts: Vec<Fact>,
    /// Operand type.
    pub dtype: String,
    /// Phases with their ranges of rows.
    pub phases: Vec<PhaseRow>,
}

/// A named number.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Fact {
    /// Name.
    pub name: String,
    /// Value.
    pub value: i64,
    /// Where it is declared.
    pub at: Place,
}

/// A phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PhaseRow {
    /// Id (`decode`).
    pub id: String,
    /// Side.
    pub side: Side,
    /// Which GEMM of a linear layer it runs; empty for phases without one.
    pub gemm: String,
    /// Rows per call.
    pub rows: Rows,
    /// Where it is declared.
    pub at: Place,
}

/// A range of rows (tokens).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Rows {
    /// Fewest.
    pub from: i64,
    /// Most; `None` if nothing bounds them.
    pub to: Option<i64>,
}

/// A dimension of a GEMM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dim {
    /// A number.
    Fixed(i64),
    /// This many times the rows of the phase.
    Rows(i64),
}

/// An operand as the GEMM sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Operand {
    /// What it is (`activation`, `weight`, `output gradient`).
    pub role: String,
    /// Sizes.
    pub size: [Dim; 2],
    /// Strides in elements; the formula of a dimension where they depend on rows.
    pub strides: [Dim; 2],
    /// `row-major` or `column-major`.
    pub layout: String,
}

/// The local GEMM of a region in some phases of one side.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ShapeRow {
    /// Id, unique: `qkv_proj/rollout/decode`.
    pub id: String,
    /// Region.
    pub region: String,
    /// Side.
    pub side: Side,
    /// Phase.
    pub phase: String,
    /// `forward`, `input-gradient` or `weight-gradient`.
    pub gemm: String,
    /// How many such GEMMs the region runs.
    pub count: u32,
    /// Rows of the result.
    pub m: Dim,
    /// Columns of the result.
    pub n: Dim,
    /// Inner dimension.
    pub k: Dim,
    /// What varies, and how far.
    pub rows: Rows,
    /// Operands in order: left, right, result.
    pub operands: Vec<Operand>,
    /// What it follows from.
    pub at: Vec<Place>,
}

/// What a pure function was asked and could not answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NotEvaluated {
    /// The construct that stopped the evaluation.
    pub construct: String,
    /// Its place; `None` if the function itself is missing.
    pub at: Option<Place>,
}

/// The static baseline.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Baseline {
    /// Selection function, if it was found.
    pub selector: Option<Cited<String>>,
    /// Launch function, if it was found.
    pub launcher: Option<Cited<String>>,
    /// One row per shape.
    pub rows: Vec<BaselineRow>,
    /// Configurations that the selection function's module defines.
    pub constants: Vec<ConstantRow>,
    /// Kernels with the options that make them another binary.
    pub specializations: Vec<Specialization>,
    /// What stopped the evaluation of warmup, if anything did.
    pub warmup_not_evaluated: Option<NotEvaluated>,
    /// Pinned constants of the contract.
    pub pinned: Vec<PinnedRow>,
    /// What evaluation had to take for granted.
    pub assumed: Vec<Cited<String>>,
}

/// Answers for one shape.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BaselineRow {
    /// Shape.
    pub shape: String,
    /// Exact intervals of rows, in order, without a hole; empty if nothing could be evaluated.
    pub intervals: Vec<Interval>,
    /// What stopped the evaluation, if anything did.
    pub not_evaluated: Option<NotEvaluated>,
}

/// Rows for which one answer holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Interval {
    /// The rows.
    pub rows: Rows,
    /// Name of the configuration: that of its constant, or its fields; `None` if it could not be evaluated.
    pub configuration: Option<String>,
    /// Fields in order.
    pub fields: Vec<Field>,
    /// `single` or `split`; `None` if the launch function could not be evaluated.
    pub schedule: Option<String>,
    /// Chunks of the inner dimension.
    pub chunks: Option<String>,
    /// Launches in order.
    pub launches: Vec<Launch>,
    /// Bytes that are allocated beside the result, as a formula over rows.
    pub workspace: Option<String>,
    /// Those bytes at the ends of the interval; the last is `None` where nothing bounds the rows.
    pub workspace_bytes: Option<(i64, Option<i64>)>,
    /// Why the configuration or the schedule is missing.
    pub not_evaluated: Option<NotEvaluated>,
    /// The configuration, and the comparisons that chose it.
    pub at: Vec<Place>,
}

/// A named value of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Field {
    /// Name.
    pub name: String,
    /// Value, as Python writes it.
    pub value: String,
}

/// A kernel launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Launch {
    /// Kernel.
    pub kernel: String,
    /// Grid, as formulas over rows.
    pub grid: Vec<String>,
    /// Grid at the first and last rows of the interval; the last is `None` where nothing bounds the rows.
    pub grid_at: (Vec<i64>, Option<Vec<i64>>),
    /// Keyword arguments.
    pub options: Vec<Field>,
    /// The launch.
    pub at: Place,
}

/// A configuration that the sources define.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ConstantRow {
    /// Name.
    pub name: String,
    /// Fields in order.
    pub fields: Vec<Field>,
    /// Regions that its name speaks of.
    pub named_after: Vec<String>,
    /// Shapes that it serves, with their rows.
    pub serves: Vec<ServedRows>,
    /// Of those, shapes of regions that its name does not speak of.
    pub others: Vec<String>,
    /// Whether some shape of this workload gets it; `None` if a shape could not be evaluated.
    pub reachable: Option<bool>,
    /// Warmup calls that compile it; `None` if warmup could not be evaluated.
    pub warmed_by: Option<Vec<Place>>,
    /// Definition.
    pub at: Place,
}

/// Rows of a shape.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ServedRows {
    /// Shape.
    pub shape: String,
    /// Rows.
    pub rows: Rows,
}

/// A kernel with its options.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Specialization {
    /// Kernel.
    pub kernel: String,
    /// Keyword arguments.
    pub options: Vec<Field>,
    /// Shapes that launch it, with their rows.
    pub serves: Vec<ServedRows>,
    /// Warmup calls that compile it; `None` if warmup could not be evaluated.
    pub warmed_by: Option<Vec<Place>>,
}

/// A constant that no candidate may change.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PinnedRow {
    /// Name.
    pub name: String,
    /// Value; `None` if it could not be evaluated.
    pub value: Option<String>,
    /// What stopped the evaluation, if anything did.
    pub not_evaluated: Option<NotEvaluated>,
    /// Definition; `None` if the sources have none.
    pub at: Option<Place>,
}

/// The family of configurations.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Candidates {
    /// Contract that all candidates follow.
    pub contract: String,
    /// Fields that may vary.
    pub may_vary: Vec<String>,
    /// Constants that may not.
    pub pinned: Vec<String>,
    /// Configurations.
    pub rows: Vec<CandidateRow>,
    /// What was found and is no candidate.
    pub excluded: Vec<Excluded>,
}

/// A configuration that the frozen sources can load.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CandidateRow {
    /// Id: the constant's name, or place of a table's row.
    pub id: String,
    /// `constant`, `table` or `test-table`.
    pub origin: String,
    /// Whether only tests name it.
    pub test_only: bool,
    /// Fields in order.
    pub fields: Vec<Field>,
    /// One cell per shape.
    pub cells: Vec<CandidateCell>,
    /// Definition.
    pub at: Place,
}

/// A candidate for one shape.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CandidateCell {
    /// Shape.
    pub shape: String,
    /// Whether it may be compared.
    pub admissible: bool,
    /// Why, or why not.
    pub why: Vec<Cited<String>>,
    /// Whether the baseline picks it for some rows.
    pub baseline: bool,
    /// Bytes of workspace at the most rows, if they are bounded and could be evaluated.
    pub workspace_bytes: Option<i64>,
    /// Bytes of LDS that its tiles need at most.
    pub lds_bytes: Option<i64>,
    /// Ids of evidence that covers it.
    pub evidence: Vec<String>,
    /// What a certificate would still need.
    pub missing: Vec<String>,
}

/// Something that is no candidate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Excluded {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
    /// Where.
    pub at: Option<Place>,
}

/// The decision.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Decision {
    /// `selected` or `no-go`.
    pub outcome: String,
    /// The region, if one is selected.
    pub region: Option<String>,
    /// Bounded workload: shapes with rows.
    pub workload: Vec<ServedRows>,
    /// Candidates that can be compared for it.
    pub candidates: Vec<String>,
    /// Every region, best first.
    pub ranking: Vec<RankRow>,
    /// Criteria with their weights.
    pub criteria: Vec<Criterion>,
    /// What prevents a selection.
    pub blockers: Vec<Cited<String>>,
    /// The one follow-up of a no-go.
    pub follow_up: Option<String>,
}

/// A criterion.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Criterion {
    /// Id.
    pub id: String,
    /// What it reads.
    pub input: String,
    /// Weight; the profile may change it.
    pub weight: i64,
    /// Where the weight comes from; `None` for the default.
    pub at: Option<Place>,
}

/// A region's rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RankRow {
    /// Region.
    pub region: String,
    /// Whether it could be selected.
    pub eligible: bool,
    /// Sum of value times weight.
    pub score: i64,
    /// Value per criterion, with what it was read from.
    pub values: Vec<RankValue>,
    /// Why it is not eligible.
    pub blockers: Vec<String>,
}

/// One criterion of one region.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RankValue {
    /// Criterion.
    pub criterion: String,
    /// Value; larger is better.
    pub value: i64,
    /// What it was read from.
    pub input: Cited<String>,
}

/// Two places that disagree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Contradiction {
    /// Name of the value (`layers`).
    pub name: String,
    /// What the profile says.
    pub declared: Cited<String>,
    /// What a source says.
    pub found: Cited<String>,
}

/// Something that is not supported, or that nothing decides.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct UnsupportedRow {
    /// `shape`, `phase`, `layout`, `dtype` or `topology`.
    pub axis: String,
    /// What.
    pub what: String,
    /// `rejected`, `not-claimed` or `undecided`.
    pub status: String,
    /// `raise`, `validation`, `registry` or `documentation`; empty if undecided.
    pub by: String,
    /// The lines; empty if undecided.
    pub at: Vec<Place>,
}

/// A report, test or result file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct EvidenceRow {
    /// Id in the profile.
    pub id: String,
    /// `report`, `test` or `result`.
    pub kind: String,
    /// Where it is.
    pub at: Place,
    /// Id of its blob.
    pub blob: Option<String>,
    /// Platform that its text names.
    pub platform: Option<Cited<String>>,
    /// GPU that its text names.
    pub gpu: Option<Cited<String>>,
    /// Revision that it speaks of.
    pub revision: Option<Cited<String>>,
    /// Shapes and configurations that it covers.
    pub covers: Vec<Cited<String>>,
    /// What of the workload it does not cover.
    pub lacks: Vec<String>,
    /// `raw-bits`, `value-equal`, `tolerance`; empty if it compares nothing.
    pub comparison: String,
    /// Whether it counts for this platform.
    pub counts: bool,
    /// Why not, or with which reservation.
    pub notes: Vec<Cited<String>>,
}
