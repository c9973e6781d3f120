//! One compiled kernel against the contract of the profile.
//!
//! In: a kernel from a cache, what it was specialised for, the contract. Out: what is not as the contract says, by rule, and what could not be seen. Refused:
//! to take an option for its effect: options, dialect and machine code are each compared on their own.

use serde_json::Value;

use super::assembly::counted;
use super::cache::Entry;
use super::record::{Launch, Record, constants};
use crate::profile::{CodeContract, ContractValue};

/// Variables that are recorded in metadata and change nothing but debug information.
const HARMLESS: [&str; 2] = ["TRITON_DISABLE_LINE_INFO", "USE_IR_LOC"];
/// Options that change the arithmetic when they are on.
const FORBIDDEN: [&str; 2] = ["allow_flush_denorm", "debug"];

/// What is wrong with one kernel or launch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Complaint {
    /// Id of the rule.
    pub rule: &'static str,
    /// What is wrong, as one clause.
    pub what: String,
}

/// The result for one kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    /// What is not as the contract says.
    pub complaints: Vec<Complaint>,
    /// What could not be seen, as clauses.
    pub unseen: Vec<String>,
}

/// What a kernel does under a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Multiplies.
    Dot,
    /// Adds what other kernels multiplied.
    Reduce,
}

/// The part of a kernel; `None` if the contract does not speak of it.
#[must_use]
pub fn part(contract: &CodeContract, kernel: &str) -> Option<Part> {
    let is = |name: &Option<String>| name.as_deref() == Some(kernel);
    if is(&contract.reduce) {
        return Some(Part::Reduce);
    }
    let nothing_named = contract.monolithic.is_none() && contract.partial.is_none();
    (nothing_named || is(&contract.monolithic) || is(&contract.partial)).then_some(Part::Dot)
}

/// Examines a kernel. `specialisation` is what Triton says of its constants; a cache alone does not hold it.
#[must_use]
pub fn examine(contract: &CodeContract, arch: &str, entry: &Entry, part: Part, specialisation: Option<&str>) -> Examined {
    let mut examined = Examined::default();
    let processor = entry.code.processor.name();
    if processor != arch {
        examined.complain("RLK601", format!("the code is for {processor}"));
    }
    match part {
        Part::Dot => {
            matrix(contract, entry, &mut examined);
            layout(contract, entry, &mut examined);
            options(contract, entry, &mut examined);
            pinned(contract, entry, specialisation, &mut examined);
        }
        Part::Reduce if !entry.code.matrix.is_empty() => {
            examined.complain("RLK602", format!("the kernel that adds chunks has matrix instructions: {}", counted(&entry.code.matrix)));
        }
        Part::Reduce => {}
    }
    resources(contract, entry, &mut examined);
    settings(entry, &mut examined);
    examined
}

impl Examined {
    fn complain(&mut self, rule: &'static str, what: String) {
        self.complaints.push(Complaint { rule, what });
    }
}

/// The set counts and never the number: compilers peel loops differently.
fn matrix(contract: &CodeContract, entry: &Entry, examined: &mut Examined) {
    if contract.instructions.is_empty() {
        return;
    }
    let found: Vec<&str> = entry.code.matrix.keys().map(String::as_str).collect();
    let mut wanted: Vec<&str> = contract.instructions.iter().map(String::as_str).collect();
    wanted.sort_unstable();
    wanted.dedup();
    if found != wanted {
        let found = if found.is_empty() { "no matrix instruction".to_owned() } else { found.join(", ") };
        examined.complain("RLK602", format!("the code has {found} and not {}", wanted.join(", ")));
    }
}

fn layout(contract: &CodeContract, entry: &Entry, examined: &mut Examined) {
    let Some(dots) = &entry.dots else {
        if !contract.instr_shape.is_empty() || contract.options.contains_key("kpack") {
            examined.unseen.push("there is no ttgir, and kpack shows nowhere else".to_owned());
        }
        return;
    };
    if dots.count == 0 || dots.unclear > 0 {
        examined.unseen.push(format!("the ttgir has {} dot products of which {} cannot be understood", dots.count, dots.unclear));
    }
    if dots.without_matrix > 0 {
        let what = format!("{} of {} dot products have operands in no layout for matrix instructions", dots.without_matrix, dots.count);
        examined.complain("RLK603", what);
    }
    if !contract.instr_shape.is_empty() {
        for shape in dots.instructions.iter().filter(|shape| **shape != contract.instr_shape) {
            examined.complain("RLK603", format!("the layout is for instructions of shape {shape:?} and not {:?}", contract.instr_shape));
        }
    }
    if let Some(ContractValue::Number(kpack)) = contract.options.get("kpack") {
        let wanted = kpack.saturating_mul(4);
        for width in dots.k_widths.iter().filter(|width| **width != wanted) {
            examined.complain("RLK603", format!("operands have kWidth {width} and not {wanted}, which is 4 × kpack"));
        }
    }
}

fn options(contract: &CodeContract, entry: &Entry, examined: &mut Examined) {
    for (name, wanted) in &contract.options {
        let found = match wanted {
            ContractValue::Number(_) => entry.metadata.numbers.get(name).copied().map(ContractValue::Number),
            ContractValue::Switch(_) => entry.metadata.switches.get(name).copied().map(ContractValue::Switch),
        };
        match found {
            Some(found) if found == *wanted => {}
            Some(found) => examined.complain("RLK604", format!("option {name} is {found} and not {wanted}")),
            None => examined.unseen.push(format!("the metadata has no option {name}")),
        }
    }
}

/// Constants of the kernel, from the specialisation; the depth of a tile also from the dot products themselves.
fn pinned(contract: &CodeContract, entry: &Entry, specialisation: Option<&str>, examined: &mut Examined) {
    if let (Some(ContractValue::Number(depth)), Some(dots)) = (contract.constants.get("BLOCK_K"), &entry.dots) {
        // A scheduler may cut a tile into slices of whole packed instructions, which leaves the order of K as it was.
        let kpack = if let Some(ContractValue::Number(kpack)) = contract.options.get("kpack") { *kpack } else { 1 };
        let packed = contract.instr_shape.last().copied().unwrap_or(1).saturating_mul(kpack).max(1);
        let sliced = |found: u64| found > 0 && depth % found == 0 && found.is_multiple_of(packed);
        for (_, _, found) in dots.tiles.iter().filter(|(_, _, found)| !sliced(*found)) {
            examined.complain("RLK604", format!("dot products are {found} deep and BLOCK_K is {depth}"));
        }
    }
    if contract.constants.is_empty() {
        return;
    }
    let Some(values) = specialisation.and_then(constants) else {
        let names: Vec<&str> = contract.constants.keys().map(String::as_str).collect();
        examined.unseen.push(format!("{} stand in no file of a cache; a record of `probe compile` has them", names.join(", ")));
        return;
    };
    for (name, wanted) in &contract.constants {
        let as_wanted = match (wanted, values.get(name)) {
            (ContractValue::Number(wanted), Some(found)) => found.as_u64() == Some(*wanted),
            (ContractValue::Switch(wanted), Some(found)) => found.as_bool() == Some(*wanted),
            (_, None) => false,
        };
        if !as_wanted {
            let found = values.get(name).map_or_else(|| "absent".to_owned(), Value::to_string);
            examined.complain("RLK604", format!("constant {name} is {found} and not {wanted}"));
        }
    }
}

fn resources(contract: &CodeContract, entry: &Entry, examined: &mut Examined) {
    let Some(kernel) = entry.code.kernels.iter().find(|kernel| kernel.name == entry.metadata.name) else {
        examined.unseen.push("the binary does not hold the kernel, so its registers are not known".to_owned());
        return;
    };
    let limits = [
        (contract.lds_bytes, entry.metadata.lds_bytes, "bytes of local memory"),
        (contract.vgprs, kernel.vgprs, "vector registers"),
        (contract.vgpr_spills, kernel.vgpr_spills, "spilled vector registers"),
        (contract.scratch_bytes, kernel.scratch_bytes, "bytes of scratch memory"),
    ];
    for (limit, found, what) in limits {
        if let Some(limit) = limit.filter(|limit| found > *limit) {
            examined.complain("RLK605", format!("it has {found} {what}, and {limit} are allowed"));
        }
    }
}

fn settings(entry: &Entry, examined: &mut Examined) {
    for (name, value) in entry.metadata.environment.iter().filter(|(name, _)| !HARMLESS.contains(&name.as_str())) {
        examined.complain("RLK606", format!("it was compiled with {}={}", crate::text::sanitize(name), crate::text::sanitize(value)));
    }
    for name in FORBIDDEN.iter().filter(|name| entry.metadata.switches.get(**name) == Some(&true)) {
        examined.complain("RLK606", format!("it was compiled with {name}"));
    }
}

/// Whether a launch led to the kernels of its schedule: all chunks in one, or chunks and their sum.
#[must_use]
pub fn schedule(contract: &CodeContract, launch: &Launch, record: &Record) -> Option<Complaint> {
    let (Some(monolithic), Some(partial), Some(reduce)) = (&contract.monolithic, &contract.partial, &contract.reduce) else { return None };
    let names: Vec<&str> = launch.kernels.iter().filter_map(|key| record.kernel(key)).map(|kernel| kernel.kernel.as_str()).collect();
    let several = match contract.constants.get("CHUNK_K") {
        Some(ContractValue::Number(chunk)) => Some(launch.k > *chunk),
        _ => None,
    };
    let few = contract.split_rows.map(|rows| launch.m <= rows);
    // One chunk is never split; otherwise what is forced counts, and then the number of rows.
    let split = match (several, launch.split.or(few)) {
        (Some(false), _) => Some(false),
        (Some(true), Some(split)) => Some(split),
        _ => None,
    };
    let (whole, parts) = ([monolithic.as_str()], [partial.as_str(), reduce.as_str()]);
    let as_wanted = match split {
        Some(true) => names == parts,
        Some(false) => names == whole,
        None => names == parts || names == whole,
    };
    let wanted = match split {
        Some(true) => parts.join(" and "),
        Some(false) => whole.join(""),
        None => format!("{}, or {}", whole.join(""), parts.join(" and ")),
    };
    let found = if names.is_empty() { "nothing".to_owned() } else { names.join(" and ") };
    (!as_wanted).then(|| Complaint { rule: "RLK607", what: format!("it launches {found} and not {wanted}") })
}
