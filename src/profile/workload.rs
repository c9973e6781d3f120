//! `[workload]`, `[[region]]` and `[decision]`: model, topology, phases, what is evaluated, and what a decision weighs.
//!
//! In: the tables. Out: [`Workload`]. Refused: sizes that cannot be (zero, negative, not divisible by the ranks that share them), phases and regions that are
//! declared twice or never, and numbers that contradict each other, with both places.

use super::error::Mistake;
use super::family::{is_dotted, is_pattern, span_of};
use super::reader::{Notes, Placed, Section, suggest};
use crate::text::{FileId, Span};

/// A declared number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Value, at least 1.
    pub value: i64,
    /// Where it is declared.
    pub span: Span,
}

/// What a linear layer computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gemm {
    /// `x @ w.T`
    Forward,
    /// `grad @ w`
    InputGradient,
    /// `grad.T @ x`
    WeightGradient,
}

impl Gemm {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Forward, Self::InputGradient, Self::WeightGradient];

    /// The word used in profiles and reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::InputGradient => "input-gradient",
            Self::WeightGradient => "weight-gradient",
        }
    }
}

/// Which linear layer of the model a region is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Query, key and value, packed; columns are shared over ranks.
    Qkv,
    /// Output of attention; rows are shared.
    AttentionOutput,
    /// Gate and up; columns are shared.
    GateUp,
    /// Down; rows are shared.
    Down,
    /// The language model's head; columns are shared.
    LmHead,
}

impl Layer {
    const ALL: &'static [(&'static str, Self)] = &[
        ("qkv", Self::Qkv),
        ("attention-output", Self::AttentionOutput),
        ("gate-up", Self::GateUp),
        ("down", Self::Down),
        ("lm-head", Self::LmHead),
    ];
}

/// One of the two frameworks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

const SIDES: &[&str] = &["rollout", "training"];

/// Sizes of the model.
#[derive(Clone, Debug)]
pub struct Model {
    /// Name.
    pub name: String,
    /// Operand type, as `torch` names it.
    pub dtype: String,
    /// Sizes by name, in the order of [`SIZES`].
    pub sizes: Vec<(&'static str, Size)>,
    /// The table.
    pub span: Span,
}

impl Model {
    /// A size by name; the profile was refused if it is missing.
    #[must_use]
    pub fn size(&self, name: &str) -> Option<Size> {
        self.sizes.iter().find(|(own, _)| *own == name).map(|(_, size)| *size)
    }

    /// `(out, in)` of a layer's weight on one rank, and the names of the sizes that it follows from.
    #[must_use]
    pub fn local_weight(&self, layer: Layer, ranks: Topology) -> Option<(i64, i64, Vec<&'static str>)> {
        let size = |name: &str| self.size(name).map(|size| size.value);
        let shared = |value: i64| value.checked_div(ranks.tp.value);
        let vocabulary = if self.size("padded-vocabulary").is_some() { "padded-vocabulary" } else { "vocabulary" };
        Some(match layer {
            Layer::Qkv => {
                let heads = size("heads")?.checked_add(size("kv-heads")?.checked_mul(2)?)?;
                (shared(heads.checked_mul(size("head-dim")?)?)?, size("hidden")?, vec!["heads", "kv-heads", "head-dim", "hidden"])
            }
            Layer::AttentionOutput => {
                (size("hidden")?, shared(size("heads")?.checked_mul(size("head-dim")?)?)?, vec!["hidden", "heads", "head-dim"])
            }
            Layer::GateUp => (shared(size("intermediate")?.checked_mul(2)?)?, size("hidden")?, vec!["intermediate", "hidden"]),
            Layer::Down => (size("hidden")?, shared(size("intermediate")?)?, vec!["hidden", "intermediate"]),
            Layer::LmHead => (shared(size(vocabulary)?)?, size("hidden")?, vec![vocabulary, "hidden"]),
        })
    }
}

/// Names of the sizes. All but the last two are needed.
pub const SIZES: &[&str] =
    &["hidden", "layers", "heads", "kv-heads", "head-dim", "intermediate", "vocabulary", "padded-vocabulary", "vocabulary-multiple"];

/// Ranks of one side.
#[derive(Clone, Copy, Debug)]
pub struct Topology {
    /// Tensor parallel ranks.
    pub tp: Size,
    /// Context parallel ranks.
    pub cp: Size,
}

/// A phase.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Id.
    pub id: String,
    /// Side.
    pub side: Side,
    /// Which GEMM of a layer runs; `None` for phases without one.
    pub gemm: Option<Gemm>,
    /// Fewest rows.
    pub from: i64,
    /// Most rows; `None` if nothing bounds them.
    pub to: Option<i64>,
    /// Callables that only this phase reaches.
    pub through: Vec<String>,
    /// The table.
    pub span: Span,
}

/// A name that identifies a region.
#[derive(Clone, Debug)]
pub struct RegionSymbol {
    /// Dotted name or pattern.
    pub name: String,
    /// Side.
    pub side: Side,
    /// Phases.
    pub phases: Vec<String>,
    /// The table.
    pub span: Span,
}

/// A semantic region.
#[derive(Clone, Debug)]
pub struct Region {
    /// Id.
    pub id: String,
    /// The layer, for regions with a GEMM of the family.
    pub layer: Option<Layer>,
    /// Words by which constants are named after it.
    pub words: Vec<String>,
    /// Sides that hold a copy of the weight with the inner dimension first.
    pub prepared: Vec<Side>,
    /// Whether its input gradient is computed for each half of the packed weight.
    pub halves: bool,
    /// Whether its weight gradient gathers tokens over context ranks and shares the weight's rows among them.
    pub gathered: bool,
    /// Names.
    pub symbols: Vec<RegionSymbol>,
    /// The table.
    pub span: Span,
}

/// Which functions are evaluated.
#[derive(Clone, Debug)]
pub struct Evaluated {
    /// Contract of the candidates.
    pub contract: String,
    /// Function that picks a configuration for M, N and K.
    pub selector: String,
    /// Function that launches the product of two matrices.
    pub launcher: Option<String>,
    /// Function that compiles ahead.
    pub warmup: Option<String>,
    /// Environment variable that asks for an implementation.
    pub switch: Option<String>,
    /// Functions that report what ran.
    pub provenance: Vec<String>,
    /// Constants that no candidate changes.
    pub pinned: Vec<String>,
    /// Fields and arguments that candidates may change.
    pub may_vary: Vec<String>,
    /// The table.
    pub span: Span,
}

/// Names by which sources call a size.
#[derive(Clone, Debug)]
pub struct Mention {
    /// The size.
    pub size: String,
    /// Names.
    pub names: Vec<String>,
}

/// What a decision weighs.
#[derive(Clone, Debug, Default)]
pub struct DecisionInput {
    /// Bytes that workspaces may take; `None` fails closed.
    pub memory_budget: Option<Size>,
    /// Bytes of LDS of one workgroup.
    pub lds: Option<Size>,
    /// Weights by criterion.
    pub weights: Vec<(String, Size)>,
    /// Certificates, relative to the profile.
    pub certificates: Vec<(String, Span)>,
}

/// Everything that the Stage 0 record needs of a profile.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// Sizes; `None` if the profile declares no workload.
    pub model: Option<Model>,
    /// Ranks of training.
    pub training: Option<Topology>,
    /// Ranks of rollout.
    pub rollout: Option<Topology>,
    /// Phases in declared order.
    pub phases: Vec<Phase>,
    /// Regions in declared order.
    pub regions: Vec<Region>,
    /// What is evaluated.
    pub evaluated: Option<Evaluated>,
    /// Names of sizes in sources.
    pub mentions: Vec<Mention>,
    /// Input of the decision.
    pub decision: DecisionInput,
}

impl Workload {
    /// Ranks of a side.
    #[must_use]
    pub const fn topology(&self, side: Side) -> Option<Topology> {
        match side {
            Side::Rollout => self.rollout,
            Side::Training => self.training,
        }
    }
}

const PHASES: &[&str] = &[
    "prefill",
    "decode",
    "forward",
    "recompute",
    "logprob-forward",
    "input-gradient",
    "weight-gradient",
    "weight-update",
    "warmup",
    "diagnostic",
];

/// Criteria of the decision.
pub const CRITERIA: &[&str] = &["boundary", "evidence", "certainty", "candidates", "workspace"];

/// Reads the tables.
pub(super) fn read(notes: &mut Notes, root: &Section<'_, '_>, file: FileId) -> Workload {
    let mut out = Workload::default();
    let keys = &["model", "dtype", "sizes", "training", "rollout", "phase", "evaluated", "mention"];
    if let Some(section) = root.table(notes, "workload", "[workload]", keys) {
        section.check_keys(notes);
        let name = section.required(notes, "model", "\"Qwen3-8B Dense\"");
        let dtype = section.required(notes, "dtype", "\"bfloat16\"");
        let sizes = read_sizes(notes, &section, file);
        for (side, name) in [(Side::Training, "[workload.training]"), (Side::Rollout, "[workload.rollout]")] {
            let topology = topology(notes, &section, side.word(), name, file);
            match side {
                Side::Training => out.training = topology,
                Side::Rollout => out.rollout = topology,
            }
        }
        if let (Some(name), Some(dtype)) = (name, dtype) {
            out.model = Some(Model { name: name.value, dtype: dtype.value, sizes, span: span_of(file, &section.place) });
        }
        out.phases = read_phases(notes, &section, file);
        out.evaluated = read_evaluated(notes, &section, file);
        for mention in section.tables(notes, "mention", "[[workload.mention]]", &["size", "names"]) {
            mention.check_keys(notes);
            let size = mention.required(notes, "size", "\"layers\"");
            let names = mention.strings(notes, "names").unwrap_or_default();
            let Some(size) = size else { continue };
            if SIZES.contains(&size.value.as_str()) {
                out.mentions.push(Mention { size: size.value, names: names.into_iter().map(|name| name.value).collect() });
            } else {
                let mistake = Mistake::new(format!("unknown size `{}`", size.value), size.place, "not a size of the workload");
                notes.note(mistake.help(suggest(&size.value, SIZES.iter().copied(), "sizes")));
            }
        }
        check_shards(notes, &out);
    }
    out.regions = read_regions(notes, root, file, &out.phases);
    check_gathered(notes, &out);
    out.decision = read_decision(notes, root, file);
    out
}

/// An integer of at least one.
fn size(notes: &mut Notes, section: &Section<'_, '_>, key: &str, file: FileId) -> Option<Size> {
    let number = section.integer(notes, key)?;
    let place = number.place.clone();
    let span = span_of(file, &place);
    if number.value < 1 {
        let mistake = Mistake::new(format!("`{key}` is {}", number.value), place, "has to be at least 1");
        notes.note(mistake.help("write the size itself; a layer that is absent is left out"));
        return None;
    }
    // Products of a few sizes stay far below 128 bits.
    if number.value > 1 << 40 {
        notes.note(
            Mistake::new(format!("`{key}` is {}", number.value), place, "larger than any size of a model").help("write at most 2^40"),
        );
        return None;
    }
    Some(Size { value: number.value, span })
}

fn read_sizes(notes: &mut Notes, section: &Section<'_, '_>, file: FileId) -> Vec<(&'static str, Size)> {
    let Some(table) = section.table(notes, "sizes", "[workload.sizes]", SIZES) else {
        if !section.table.contains_key("sizes") {
            section.missing(notes, "sizes", "{ hidden = 4096 }");
        }
        return Vec::new();
    };
    table.check_keys(notes);
    let mut out = Vec::new();
    for name in SIZES {
        let optional = matches!(*name, "padded-vocabulary" | "vocabulary-multiple");
        if !optional && !table.table.contains_key(*name) {
            table.missing(notes, name, "4096");
        }
        out.extend(size(notes, &table, name, file).map(|value| (*name, value)));
    }
    let find = |name: &str| out.iter().find(|(own, _)| *own == name).map(|(_, size)| *size);
    let mut contradict = |message: String, first: &str, second: &str, help: &str| {
        if let (Some(first), Some(second)) = (find(first), find(second)) {
            let place = |notes: &Notes, size: Size| notes.place(size.span.start as usize..size.span.end as usize);
            let mistake = Mistake::new(message, place(notes, first), "declared here");
            let other = place(notes, second);
            notes.note(mistake.and(other, "and here").help(help));
        }
    };
    if let (Some(heads), Some(groups)) = (find("heads"), find("kv-heads"))
        && heads.value % groups.value != 0
    {
        contradict(
            format!("{} heads cannot share {} key-value heads evenly", heads.value, groups.value),
            "heads",
            "kv-heads",
            "the number of heads is a multiple of the number of key-value heads",
        );
    }
    if let (Some(real), Some(padded)) = (find("vocabulary"), find("padded-vocabulary"))
        && padded.value < real.value
    {
        contradict(
            format!("the padded vocabulary {} is smaller than the vocabulary {}", padded.value, real.value),
            "padded-vocabulary",
            "vocabulary",
            "padding only adds entries",
        );
    }
    if let (Some(padded), Some(multiple)) = (find("padded-vocabulary"), find("vocabulary-multiple"))
        && padded.value % multiple.value != 0
    {
        contradict(
            format!("the padded vocabulary {} is no multiple of {}", padded.value, multiple.value),
            "padded-vocabulary",
            "vocabulary-multiple",
            "round the vocabulary up to the next multiple",
        );
    }
    out
}

fn topology(notes: &mut Notes, section: &Section<'_, '_>, key: &str, name: &'static str, file: FileId) -> Option<Topology> {
    let Some(table) = section.table(notes, key, name, &["tp", "cp"]) else {
        if !section.table.contains_key(key) {
            section.missing(notes, key, "{ tp = 4, cp = 1 }");
        }
        return None;
    };
    table.check_keys(notes);
    for key in ["tp", "cp"] {
        if !table.table.contains_key(key) {
            table.missing(notes, key, "1");
        }
    }
    let (tp, cp) = (size(notes, &table, "tp", file), size(notes, &table, "cp", file));
    Some(Topology { tp: tp?, cp: cp? })
}

/// Every dimension that ranks share has to divide.
fn check_shards(notes: &mut Notes, workload: &Workload) {
    let Some(model) = &workload.model else { return };
    for side in [Side::Training, Side::Rollout] {
        let Some(ranks) = workload.topology(side) else { continue };
        let padded = if model.size("padded-vocabulary").is_some() { "padded-vocabulary" } else { "vocabulary" };
        for name in ["heads", "kv-heads", "intermediate", padded] {
            let Some(size) = model.size(name) else { continue };
            if size.value % ranks.tp.value != 0 {
                let place = |span: Span| notes.place(span.start as usize..span.end as usize);
                let message = format!("`{name}` = {} cannot be shared by {} ranks of {}", size.value, ranks.tp.value, side.word());
                let mistake = Mistake::new(message, place(size.span), "declared here").and(place(ranks.tp.span), "shared by this many");
                notes.note(mistake.help("pad the size, or declare the topology that really runs"));
            }
        }
    }
}

/// Context ranks that share the rows of a weight have to divide them.
fn check_gathered(notes: &mut Notes, workload: &Workload) {
    let (Some(model), Some(ranks)) = (&workload.model, workload.training) else { return };
    for region in workload.regions.iter().filter(|region| region.gathered || region.halves) {
        let Some((rows, _, _)) = region.layer.and_then(|layer| model.local_weight(layer, ranks)) else { continue };
        let parts = if region.gathered { ranks.cp.value } else { 2 };
        if rows % parts != 0 {
            let place = |span: Span| notes.place(span.start as usize..span.end as usize);
            let message = format!("the {rows} rows of `{}` on one rank cannot be shared by {parts}", region.id);
            let mistake = Mistake::new(message, place(region.span), "declared here").and(place(ranks.cp.span), "context ranks of training");
            notes.note(mistake.help("declare the topology that really runs, or leave out `gathered` and `halves`"));
        }
    }
}

fn side(notes: &mut Notes, section: &Section<'_, '_>) -> Option<Side> {
    let written = section.required(notes, "side", "\"rollout\"")?;
    side_of(notes, written)
}

fn side_of(notes: &mut Notes, written: Placed<String>) -> Option<Side> {
    match written.value.as_str() {
        "rollout" => Some(Side::Rollout),
        "training" => Some(Side::Training),
        other => {
            let help = suggest(other, SIDES.iter().copied(), "sides");
            notes.note(Mistake::new(format!("unknown side `{other}`"), written.place, "not a side").help(help));
            None
        }
    }
}

fn read_phases(notes: &mut Notes, section: &Section<'_, '_>, file: FileId) -> Vec<Phase> {
    let keys = &["id", "side", "gemm", "rows-from", "rows-to", "through"];
    let mut out: Vec<Phase> = Vec::new();
    for table in section.tables(notes, "phase", "[[workload.phase]]", keys) {
        table.check_keys(notes);
        let id = table.required(notes, "id", "\"decode\"");
        let side = side(notes, &table);
        let gemm = table.string(notes, "gemm").and_then(|written| {
            let found = Gemm::ALL.iter().copied().find(|gemm| gemm.word() == written.value);
            if found.is_none() {
                let help = suggest(&written.value, Gemm::ALL.iter().map(|gemm| gemm.word()), "GEMMs");
                notes.note(Mistake::new(format!("unknown GEMM `{}`", written.value), written.place, "not a GEMM of a layer").help(help));
            }
            found
        });
        let from = size(notes, &table, "rows-from", file);
        let to = size(notes, &table, "rows-to", file);
        if let (Some(from), Some(to)) = (from, to)
            && from.value > to.value
        {
            let place = |span: Span| notes.place(span.start as usize..span.end as usize);
            let mistake =
                Mistake::new(format!("no number of rows is from {} to {}", from.value, to.value), place(from.span), "begins here");
            notes.note(mistake.and(place(to.span), "and ends before that").help("`rows-from` is the smaller one"));
        }
        let through = patterns(notes, &table, "through");
        let (Some(id), Some(side)) = (id, side) else { continue };
        if !PHASES.contains(&id.value.as_str()) {
            let help = suggest(&id.value, PHASES.iter().copied(), "phases");
            notes.note(Mistake::new(format!("unknown phase `{}`", id.value), id.place, "not a phase").help(help));
            continue;
        }
        let span = span_of(file, &table.place);
        if let Some(first) = out.iter().find(|phase| phase.id == id.value && phase.side == side) {
            let place = notes.place(first.span.start as usize..first.span.end as usize);
            let mistake = Mistake::new(format!("phase `{}` of {} is declared twice", id.value, side.word()), id.place, "again here");
            notes.note(mistake.and(place, "first here").help("keep one of the two"));
            continue;
        }
        out.push(Phase { id: id.value, side, gemm, from: from.map_or(1, |size| size.value), to: to.map(|size| size.value), through, span });
    }
    out
}

fn patterns(notes: &mut Notes, section: &Section<'_, '_>, key: &str) -> Vec<String> {
    let mut out = Vec::new();
    for name in section.strings(notes, key).unwrap_or_default() {
        if is_pattern(&name.value) {
            out.push(name.value);
        } else {
            let mistake = Mistake::new(format!("`{}` is not a qualified Python name", name.value), name.place, "not a name");
            notes.note(mistake.help("write `package.module.name`; a `*` may stand at the very end only"));
        }
    }
    out
}

fn read_evaluated(notes: &mut Notes, section: &Section<'_, '_>, file: FileId) -> Option<Evaluated> {
    let keys = &["contract", "selector", "launcher", "warmup", "switch", "provenance", "pinned", "may-vary"];
    let table = section.table(notes, "evaluated", "[workload.evaluated]", keys)?;
    table.check_keys(notes);
    let dotted = |notes: &mut Notes, name: Option<Placed<String>>| {
        let name = name?;
        if is_dotted(&name.value) {
            return Some(name.value);
        }
        let mistake = Mistake::new(format!("`{}` is not a qualified Python name", name.value), name.place, "not a name");
        notes.note(mistake.help("write `package.module.function`"));
        None
    };
    let contract = table.required(notes, "contract", "\"rlkernel.det_gemm.triton_mfma_rocm.v1\"");
    let selector = table.required(notes, "selector", "\"package.module.select_config\"");
    let selector = dotted(notes, selector);
    let launcher = table.string(notes, "launcher");
    let launcher = dotted(notes, launcher);
    let warmup = table.string(notes, "warmup");
    let warmup = dotted(notes, warmup);
    let switch = table.string(notes, "switch").map(|name| name.value);
    let provenance = patterns(notes, &table, "provenance");
    let pinned = patterns(notes, &table, "pinned");
    let may_vary = table.strings(notes, "may-vary").unwrap_or_default().into_iter().map(|name| name.value).collect();
    let span = span_of(file, &table.place);
    Some(Evaluated { contract: contract?.value, selector: selector?, launcher, warmup, switch, provenance, pinned, may_vary, span })
}

fn read_regions(notes: &mut Notes, root: &Section<'_, '_>, file: FileId, phases: &[Phase]) -> Vec<Region> {
    let keys = &["id", "layer", "words", "prepared", "halves", "gathered", "symbol"];
    let mut out: Vec<Region> = Vec::new();
    for table in root.tables(notes, "region", "[[region]]", keys) {
        table.check_keys(notes);
        let id = table.required(notes, "id", "\"qkv_proj\"");
        let layer = table.string(notes, "layer").and_then(|written| {
            let found = Layer::ALL.iter().find(|(word, _)| *word == written.value).map(|(_, layer)| *layer);
            if found.is_none() {
                let help = suggest(&written.value, Layer::ALL.iter().map(|(word, _)| *word), "layers");
                notes
                    .note(Mistake::new(format!("unknown layer `{}`", written.value), written.place, "not a layer of the model").help(help));
            }
            found
        });
        let words = table.strings(notes, "words").unwrap_or_default();
        let prepared = table.strings(notes, "prepared").unwrap_or_default();
        let prepared = prepared.into_iter().filter_map(|written| side_of(notes, written)).collect();
        let halves = table.boolean(notes, "halves").is_some_and(|flag| flag.value);
        let gathered = table.boolean(notes, "gathered").is_some_and(|flag| flag.value);
        let symbols = read_symbols(notes, &table, file, phases);
        let Some(id) = id else { continue };
        let span = span_of(file, &table.place);
        if let Some(first) = out.iter().find(|region| region.id == id.value) {
            let place = notes.place(first.span.start as usize..first.span.end as usize);
            let mistake = Mistake::new(format!("region `{}` is declared twice", id.value), id.place, "again here");
            notes.note(mistake.and(place, "first here").help("merge the two, or give one of them another id"));
            continue;
        }
        let words = words.into_iter().map(|word| word.value).collect();
        out.push(Region { id: id.value, layer, words, prepared, halves, gathered, symbols, span });
    }
    out
}

fn read_symbols(notes: &mut Notes, region: &Section<'_, '_>, file: FileId, phases: &[Phase]) -> Vec<RegionSymbol> {
    let mut out = Vec::new();
    for table in region.tables(notes, "symbol", "[[region.symbol]]", &["name", "side", "phases"]) {
        table.check_keys(notes);
        let name = table.required(notes, "name", "\"package.module.function\"");
        let side = side(notes, &table);
        let listed = table.strings(notes, "phases").unwrap_or_default();
        let (Some(name), Some(side)) = (name, side) else { continue };
        if !is_pattern(&name.value) {
            let mistake = Mistake::new(format!("`{}` is not a qualified Python name", name.value), name.place, "not a name");
            notes.note(mistake.help("write `package.module.name`; a `*` may stand at the very end only"));
            continue;
        }
        let mut own = Vec::new();
        for phase in listed {
            if phases.iter().any(|known| known.id == phase.value && known.side == side) {
                own.push(phase.value);
            } else {
                let known = phases.iter().filter(|known| known.side == side).map(|known| known.id.as_str());
                let help = suggest(&phase.value, known, "phases of this side");
                let message = format!("no phase `{}` of {} is declared", phase.value, side.word());
                notes.note(Mistake::new(message, phase.place, "not declared").help(help));
            }
        }
        out.push(RegionSymbol { name: name.value, side, phases: own, span: span_of(file, &table.place) });
    }
    out
}

fn read_decision(notes: &mut Notes, root: &Section<'_, '_>, file: FileId) -> DecisionInput {
    let keys = &["memory-budget-bytes", "lds-bytes", "weights", "certificates"];
    let Some(section) = root.table(notes, "decision", "[decision]", keys) else { return DecisionInput::default() };
    section.check_keys(notes);
    let mut out = DecisionInput {
        memory_budget: size(notes, &section, "memory-budget-bytes", file),
        lds: size(notes, &section, "lds-bytes", file),
        ..DecisionInput::default()
    };
    for path in section.strings(notes, "certificates").unwrap_or_default() {
        out.certificates.push((path.value, span_of(file, &path.place)));
    }
    if let Some(weights) = section.table(notes, "weights", "[decision.weights]", CRITERIA) {
        weights.check_keys(notes);
        for criterion in CRITERIA {
            if let Some(weight) = weights.integer(notes, criterion) {
                // A weight of nothing is an opinion, too; one below nothing would prefer what is worse.
                if (0..=1_000_000).contains(&weight.value) {
                    let span = span_of(file, &weight.place);
                    out.weights.push(((*criterion).to_owned(), Size { value: weight.value, span }));
                } else {
                    let mistake = Mistake::new(format!("the weight `{criterion}` is {}", weight.value), weight.place, "out of range");
                    notes.note(mistake.help("write a number from 0 to 1000000"));
                }
            }
        }
    }
    out
}
