//! `[probe]`: what is compiled, and what the compiled code has to be.
//!
//! In: the table. Out: [`Probe`]. Refused: numbers that cannot be, sources that are not declared, a contract without instructions.

use std::collections::BTreeMap;

use toml::de::DeValue;

use super::error::Mistake;
use super::family::is_dotted;
use super::reader::{Notes, Placed, Section, integer, wrong_type};

/// Seconds that one variant may take if the profile does not say.
const DEFAULT_SECONDS: u64 = 120;

/// A number or a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContractValue {
    /// A number.
    Number(u64),
    /// A switch.
    Switch(bool),
}

impl std::fmt::Display for ContractValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Switch(switch) => switch.fmt(f),
        }
    }
}

/// What the compiled code of a contract has to be. An absent field is not checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeContract {
    /// Exact set of matrix instructions of kernels with dot products.
    pub instructions: Vec<String>,
    /// Shape of the matrix instruction as the compiler names it (M, N, K).
    pub instr_shape: Vec<u64>,
    /// Compiler options that kernels with dot products have to be compiled with, by name.
    pub options: BTreeMap<String, ContractValue>,
    /// Values that constants of these kernels have, by the parameter's name.
    pub constants: BTreeMap<String, ContractValue>,
    /// Most rows for which the split schedule runs.
    pub split_rows: Option<u64>,
    /// Most local memory, in bytes.
    pub lds_bytes: Option<u64>,
    /// Most vector and accumulation registers together.
    pub vgprs: Option<u64>,
    /// Most vector registers that may be spilled.
    pub vgpr_spills: Option<u64>,
    /// Most scratch memory per lane, in bytes.
    pub scratch_bytes: Option<u64>,
    /// Kernel that does all chunks.
    pub monolithic: Option<String>,
    /// Kernel that does one chunk, and needs `reduce`.
    pub partial: Option<String>,
    /// Kernel that adds chunks; it has no dot product.
    pub reduce: Option<String>,
}

/// One class of shapes for which every candidate is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeClass {
    /// Name, such as the region.
    pub name: String,
    /// Rows.
    pub m: Vec<u64>,
    /// Columns.
    pub n: u64,
    /// Depth.
    pub k: u64,
    /// Whether the second operand lies as `[N, K]`, as weights do, and not as `[K, N]`.
    pub transposed: bool,
}

/// The front of the operator family, which the built-in exerciser drives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exercise {
    /// Qualified name of the module.
    pub module: String,
    /// Its function of an activation `[M, K]` and a weight `[N, K]`.
    pub linear: String,
    /// Its function of operands `[M, K]` and `[K, N]`.
    pub plain: String,
}

/// What is compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// Source that holds the kernel module.
    pub source: Option<String>,
    /// Qualified name of the kernel module.
    pub module: Option<String>,
    /// Function of the module that launches the kernels: takes two operands and `config`.
    pub launch: Option<String>,
    /// Class of the module whose instances are the candidates.
    pub config: Option<String>,
    /// Keyword of `launch` that forces the schedule; both values are compiled.
    pub force_split: Option<String>,
    /// Python interpreter with Triton, relative to the profile.
    pub python: Option<String>,
    /// Version of Triton.
    pub triton: Option<String>,
    /// Seconds that one variant may take.
    pub seconds: u64,
    /// Shapes.
    pub shapes: Vec<ShapeClass>,
    /// What the code has to be.
    pub contract: Option<CodeContract>,
    /// What a run on a device drives.
    pub exercise: Option<Exercise>,
}

const KEYS: &[&str] =
    &["source", "module", "launch", "config", "force-split", "python", "triton", "seconds", "shape", "contract", "exercise"];
const CONTRACT: &[&str] = &[
    "instructions",
    "instr-shape",
    "options",
    "constants",
    "split-rows",
    "lds-bytes",
    "vgprs",
    "vgpr-spills",
    "scratch-bytes",
    "monolithic",
    "partial",
    "reduce",
];

/// Reads `[probe]`; `sources` are the declared ids.
pub(super) fn read(notes: &mut Notes, root: &Section<'_, '_>, sources: &[String]) -> Option<Probe> {
    let section = root.table(notes, "probe", "[probe]", KEYS)?;
    section.check_keys(notes);
    let source = section.string(notes, "source").and_then(|source| {
        let known = sources.contains(&source.value);
        if !known {
            let mistake = Mistake::new(format!("no source `{}` is declared", source.value), source.place.clone(), "not a source");
            notes.note(mistake.help(format!("the profile declares {}", sources.join(", "))));
        }
        known.then_some(source.value)
    });
    let mut name = |key: &str| {
        let name = section.string(notes, key)?;
        let valid = is_dotted(&name.value);
        if !valid {
            notes.note(Mistake::new(format!("`{}` is not a Python name", name.value), name.place, "not a name"));
        }
        valid.then_some(name.value)
    };
    let (module, launch, config, force_split) = (name("module"), name("launch"), name("config"), name("force-split"));
    let python = section.string(notes, "python").map(|python| python.value);
    let triton = section.string(notes, "triton").map(|triton| triton.value);
    let seconds = positive(notes, &section, "seconds").unwrap_or(DEFAULT_SECONDS);
    let contract = section.table(notes, "contract", "[probe.contract]", CONTRACT).map(|section| read_contract(notes, &section));
    let shapes = read_shapes(notes, &section);
    let exercise = section.table(notes, "exercise", "[probe.exercise]", &["module", "linear", "plain"]);
    let exercise = exercise.and_then(|section| read_exercise(notes, &section));
    Some(Probe { source, module, launch, config, force_split, python, triton, seconds, shapes, contract, exercise })
}

fn read_exercise(notes: &mut Notes, section: &Section<'_, '_>) -> Option<Exercise> {
    section.check_keys(notes);
    let mut name = |key: &str, example: &'static str| {
        let name = section.required(notes, key, example)?;
        let valid = is_dotted(&name.value);
        if !valid {
            notes.note(Mistake::new(format!("`{}` is not a Python name", name.value), name.place, "not a name"));
        }
        valid.then_some(name.value)
    };
    let module = name("module", "\"package.gemm\"");
    let (linear, plain) = (name("linear", "\"linear\""), name("plain", "\"matmul\""));
    Some(Exercise { module: module?, linear: linear?, plain: plain? })
}

fn read_contract(notes: &mut Notes, section: &Section<'_, '_>) -> CodeContract {
    section.check_keys(notes);
    let instructions = section.strings(notes, "instructions").unwrap_or_default();
    let instr_shape = numbers(notes, section, "instr-shape").unwrap_or_default();
    if !matches!(instr_shape.len(), 0 | 3) {
        let mistake = Mistake::new("`instr-shape` has to be three numbers", section.place.clone(), "in this table");
        notes.note(mistake.help("for example `instr-shape = [16, 16, 16]`"));
    }
    let mut name = |key: &str| section.string(notes, key).map(|name| name.value);
    let (monolithic, partial, reduce) = (name("monolithic"), name("partial"), name("reduce"));
    if partial.is_some() != reduce.is_some() {
        let mistake = Mistake::new("`partial` and `reduce` belong together", section.place.clone(), "one of them is missing here");
        notes.note(mistake.help("name the kernel of one chunk and the kernel that adds the chunks"));
    }
    let options = values(notes, section, "options", "[probe.contract.options]");
    let constants = values(notes, section, "constants", "[probe.contract.constants]");
    let mut limit = |key: &str| natural(notes, section, key);
    CodeContract {
        split_rows: limit("split-rows"),
        lds_bytes: limit("lds-bytes"),
        vgprs: limit("vgprs"),
        vgpr_spills: limit("vgpr-spills"),
        scratch_bytes: limit("scratch-bytes"),
        instructions: instructions.into_iter().map(|item| item.value).collect(),
        instr_shape,
        options,
        constants,
        monolithic,
        partial,
        reduce,
    }
}

fn read_shapes(notes: &mut Notes, probe: &Section<'_, '_>) -> Vec<ShapeClass> {
    let mut shapes: Vec<ShapeClass> = Vec::new();
    for section in probe.tables(notes, "shape", "[[probe.shape]]", &["name", "m", "n", "k", "layout"]) {
        section.check_keys(notes);
        let name = section.required(notes, "name", "\"qkv_proj\"");
        let layout = section.string(notes, "layout");
        if let Some(layout) = layout.as_ref().filter(|layout| !matches!(layout.value.as_str(), "nk" | "kn")) {
            let mistake = Mistake::new(format!("unknown layout `{}`", layout.value), layout.place.clone(), "not a layout");
            notes.note(mistake.help("write \"nk\" for weights as `[N, K]`, or \"kn\""));
        }
        for key in ["m", "n", "k"] {
            if !section.table.contains_key(key) {
                section.missing(notes, key, if key == "m" { "[1, 8, 4096]" } else { "4096" });
            }
        }
        let m = numbers(notes, &section, "m");
        let n = positive(notes, &section, "n");
        let k = positive(notes, &section, "k");
        let (Some(name), Some(m), Some(n), Some(k)) = (name, m, n, k) else { continue };
        if shapes.iter().any(|shape| shape.name == name.value) {
            notes.note(Mistake::new(format!("shape `{}` is declared twice", name.value), name.place, "again here"));
            continue;
        }
        shapes.push(ShapeClass { name: name.value, m, n, k, transposed: layout.is_none_or(|layout| layout.value == "nk") });
    }
    shapes
}

/// Numbers and switches under names that the user chooses.
fn values(notes: &mut Notes, section: &Section<'_, '_>, key: &str, name: &'static str) -> BTreeMap<String, ContractValue> {
    let mut found = BTreeMap::new();
    let Some(table) = section.table(notes, key, name, &[]) else { return found };
    for (key, value) in table.table {
        let read = match value.get_ref() {
            DeValue::Boolean(switch) => Some(ContractValue::Switch(*switch)),
            DeValue::Integer(number) => integer(number).and_then(|number| u64::try_from(number).ok()).map(ContractValue::Number),
            _ => None,
        };
        match read {
            Some(read) => {
                found.insert(key.get_ref().clone().into_owned(), read);
            }
            None => notes.note(wrong_type(key.get_ref(), notes.place(value.span()), value.get_ref(), "a number, or true or false")),
        }
    }
    found
}

/// A number that is not negative.
fn natural(notes: &mut Notes, section: &Section<'_, '_>, key: &str) -> Option<u64> {
    let Placed { value, place } = section.integer(notes, key)?;
    let number = u64::try_from(value).ok();
    if number.is_none() {
        notes.note(Mistake::new(format!("`{key}` is {value}"), place, "cannot be negative"));
    }
    number
}

fn positive(notes: &mut Notes, section: &Section<'_, '_>, key: &str) -> Option<u64> {
    let Placed { value, place } = section.integer(notes, key)?;
    let number = u64::try_from(value).ok().filter(|number| *number > 0);
    if number.is_none() {
        notes.note(Mistake::new(format!("`{key}` is {value}"), place, "has to be at least 1"));
    }
    number
}

/// The numbers of an array, each at least 1.
fn numbers(notes: &mut Notes, section: &Section<'_, '_>, key: &str) -> Option<Vec<u64>> {
    let numbers = section.integers(notes, key)?;
    let mut found = Vec::with_capacity(numbers.len());
    for Placed { value, place } in numbers {
        match u64::try_from(value).ok().filter(|number| *number > 0) {
            Some(number) => found.push(number),
            None => notes.note(Mistake::new(format!("`{key}` holds {value}"), place, "has to be at least 1")),
        }
    }
    Some(found)
}
