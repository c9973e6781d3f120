//! L3 to L6: the compiled candidates, their machine code, whether it comes out again, and whether it is what was loaded.
//!
//! In: the Triton cache, the static baseline, code compiled again from the recorded specialization data, and the recordings with the binaries that
//! they kept. Out: problems. Refused: metadata and text as evidence about a binary; identities across versions of Triton.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::super::cache::{self, Entry};
use super::super::code_object::CodeObject;
use super::documents::{Baseline, Code, Request};
use super::evidence::{Evidence, Role};
use super::geometry::Part;
use super::link::{Findings, Link, State};
use super::recording::Recording;
use super::request::FORBIDDEN;

/// Schema of what was compiled again.
pub const REPRODUCTION: &str = "rlk-lint/reproduction/v1";
/// Folder of the cache in the evidence.
pub const CACHE: &str = "cache";

/// Code compiled again, in a fresh cache, from the recorded specialization data.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reproduction {
    /// [`REPRODUCTION`].
    pub schema: String,
    /// Version of Triton.
    pub triton: String,
    /// What came out.
    pub code: Vec<Code>,
}

/// Identities of the family's code by where they were seen.
#[derive(Clone, Debug, Default)]
pub struct Identities {
    /// In the cache, by kernel.
    pub cached: BTreeMap<String, BTreeSet<String>>,
}

/// L3 and L4.
pub fn judge_cache(evidence: &Evidence, baseline: &Baseline, request: &Request, found: &mut Findings) -> Identities {
    let mut identities = Identities::default();
    if evidence.of(Role::Cache).next().is_none() {
        found.problem(Link::L3, State::Incomplete, "no-cache", "", "the evidence holds no Triton cache");
        return identities;
    }
    let read = match cache::read(&evidence.folder(CACHE)) {
        Ok(read) => read,
        Err(cause) => {
            found.problem(Link::L3, State::Incomplete, "cache-unreadable", CACHE, format!("it cannot be read: {cause}"));
            return identities;
        }
    };
    let file = |folder: &str, kernel: &str| format!("{CACHE}/{folder}/{kernel}").trim_end_matches('/').to_owned();
    // Evidence is carried to where it is judged; that its cache was, too, says nothing about the run.
    for problem in read.contradictions.iter().filter(|problem| !problem.what.ends_with(cache::COPIED)) {
        let at = file(&problem.folder, &problem.kernel);
        found.problem(Link::L3, State::Mismatch, "cache-contradiction", &at, problem.what.clone());
    }
    for problem in &read.unread {
        let at = file(&problem.folder, &problem.kernel);
        found.problem(Link::L3, State::Incomplete, "cache-unread", &at, problem.what.clone());
    }
    let family: Vec<(&Entry, Part)> = read.entries.iter().filter_map(|entry| Some((entry, baseline.part(&entry.metadata.name)?))).collect();
    if family.is_empty() {
        found.problem(Link::L3, State::Incomplete, "no-candidate", CACHE, "the cache holds no kernel of the family");
        return identities;
    }
    if family.iter().any(|(_, part)| *part == Part::Partial) && !family.iter().any(|(_, part)| *part == Part::Reduce) {
        let what = "the split schedule was compiled without the kernel that adds its chunks";
        found.problem(Link::L3, State::Mismatch, "candidate-missing", CACHE, what);
    }
    for (entry, part) in &family {
        let at = format!("{CACHE}/{}", entry.path());
        for (name, value) in &entry.metadata.environment {
            let set = !matches!(value.as_str(), "" | "0" | "null" | "false");
            if set && FORBIDDEN.contains(&name.as_str()) {
                let what = format!("it was compiled with {name} set");
                found.problem(Link::L3, State::Mismatch, "forbidden-variable-in-cache", &at, what);
            }
        }
        code(entry, *part, &at, baseline, request, found);
        identities.cached.entry(entry.metadata.name.clone()).or_default().insert(entry.code.code_id.clone());
    }
    found.fact(Link::L3, format!("{} kernels of the family in the cache, each in a folder of its own key", family.len()));
    found.fact(Link::L4, format!("machine code of {} kernels for {}", family.len(), request.arch));
    identities
}

/// What one binary has to be.
fn code(entry: &Entry, part: Part, at: &str, baseline: &Baseline, request: &Request, found: &mut Findings) {
    let rules = &baseline.rules;
    let name = &entry.metadata.name;
    let mut tell = |reason, what: String| found.problem_about(Link::L4, State::Mismatch, reason, at, what, name);
    let processor = entry.code.processor.name();
    if processor != request.arch {
        tell("code-for-other-processor", format!("the binary is for {processor}, and the request is for {}", request.arch));
    }
    let spills = entry.code.kernels.iter().map(|kernel| kernel.vgpr_spills).max().unwrap_or(0);
    if spills > rules.vgpr_spills {
        tell("code-spills", format!("{spills} vector registers are spilled, more than {}", rules.vgpr_spills));
    }
    if part == Part::Reduce {
        // It has no dot product, so there is nothing to ask of matrix instructions.
        return;
    }
    let mnemonics: Vec<&String> = entry.code.matrix.keys().collect();
    let wanted: Vec<&String> = rules.instructions.iter().collect();
    if !rules.instructions.is_empty() && mnemonics.iter().copied().collect::<BTreeSet<_>>() != wanted.iter().copied().collect() {
        let found = if mnemonics.is_empty() {
            "none".to_owned()
        } else {
            mnemonics.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")
        };
        tell(
            "matrix-instruction-differs",
            format!("its matrix instructions are {found}, and the contract wants {}", rules.instructions.join(", ")),
        );
    }
    let Some(dots) = &entry.dots else {
        let what = "there is no ttgir beside the binary, so that its kWidth cannot be seen";
        found.problem_about(Link::L4, State::Incomplete, "ttgir-absent", at, what, name);
        return;
    };
    if dots.unclear > 0 || dots.count == 0 {
        let what = format!("{} of {} dot products in its ttgir could not be understood", dots.unclear, dots.count);
        found.problem_about(Link::L4, State::Incomplete, "ttgir-unclear", at, what, name);
    }
    let mut tell = |reason, what: String| found.problem_about(Link::L4, State::Mismatch, reason, at, what, name);
    if dots.without_matrix > 0 {
        tell("dot-without-matrix-layout", format!("{} dot products are not laid out for matrix instructions", dots.without_matrix));
    }
    if rules.k_width > 0 && dots.k_widths.iter().any(|width| *width != rules.k_width) {
        tell("kwidth-differs", format!("kWidth is {:?}, and the contract wants {}", dots.k_widths, rules.k_width));
    }
    if !rules.instr_shape.is_empty() && dots.instructions.iter().any(|shape| *shape != rules.instr_shape) {
        tell("instr-shape-differs", format!("instrShape is {:?}, and the contract wants {:?}", dots.instructions, rules.instr_shape));
    }
    if rules.block_k > 0 && dots.tiles.iter().any(|(_, _, depth)| *depth != rules.block_k) {
        tell("block-k-differs", format!("the tiles are {:?}, and the contract wants a depth of {}", dots.tiles, rules.block_k));
    }
}

/// Constant arguments in specialization data: values by the name or place that the data gives them.
fn chunk_of(specialization: &str) -> Option<u64> {
    let data: serde_json::Value = serde_json::from_str(specialization).ok()?;
    let names = data.pointer("/key")?.as_str().map(str::to_owned).or_else(|| data.get("key").map(ToString::to_string))?;
    let at = names.find("CHUNK_K")?;
    let digits: String =
        names[at + "CHUNK_K".len()..].chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// L5: the same code comes out again.
pub fn judge_reproduction(
    evidence: &Evidence,
    baseline: &Baseline,
    recordings: &[Recording],
    identities: &Identities,
    found: &mut Findings,
) {
    for recording in recordings {
        for (name, specialization) in &recording.compiled {
            let short = name.rsplit('.').next().unwrap_or(name);
            if matches!(baseline.part(short), Some(Part::Mono | Part::Partial))
                && let Some(chunk) = chunk_of(specialization)
                && chunk != baseline.chunk_k
            {
                let what = format!("{short} was compiled with CHUNK_K {chunk}, and the contract wants {}", baseline.chunk_k);
                found.problem_about(Link::L4, State::Mismatch, "chunk-k-differs", &recording.file, what, short);
            }
        }
    }
    let mut code: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut any = false;
    for entry in evidence.of(Role::Reproduction) {
        match evidence.bytes(entry).and_then(|bytes| serde_json::from_slice::<Reproduction>(&bytes).map_err(|error| error.to_string())) {
            Ok(made) if made.schema == REPRODUCTION => {
                any = true;
                if !baseline.triton.is_empty() && made.triton != baseline.triton {
                    let what = format!("it was compiled by Triton {}, and the baseline by {}", made.triton, baseline.triton);
                    found.problem(Link::L5, State::Incomplete, "other-triton", &entry.path, what);
                }
                for Code { kernel, code_id } in made.code {
                    code.entry(kernel).or_default().insert(code_id);
                }
            }
            Ok(made) => {
                let what = format!("its schema is '{}', and this version reads '{REPRODUCTION}'", made.schema);
                found.problem(Link::L5, State::Incomplete, "document-unreadable", &entry.path, what);
            }
            Err(what) => found.problem(Link::L5, State::Incomplete, "document-unreadable", &entry.path, what),
        }
    }
    if !any {
        found.problem(
            Link::L5,
            State::Incomplete,
            "no-reproduction",
            "",
            "nothing was compiled again from the recorded specialization data",
        );
        return;
    }
    let mut same = 0u64;
    for (kernel, ids) in &identities.cached {
        for id in ids {
            if code.get(kernel).is_some_and(|made| made.contains(id)) {
                same += 1;
            } else {
                let what = format!("code {} of {kernel} did not come out when it was compiled again", short(id));
                found.problem_about(Link::L5, State::Mismatch, "code-not-reproduced", CACHE, what, kernel);
            }
        }
    }
    found.fact(Link::L5, format!("{same} code identities came out again"));
}

fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// L6: what each process loaded.
pub fn judge_loaded(
    evidence: &Evidence,
    baseline: &Baseline,
    request: &Request,
    recordings: &[Recording],
    identities: &Identities,
    found: &mut Findings,
) {
    let family = |recording: &&Recording| {
        let mut names = recording.loads.iter().map(|load| &load.name).chain(recording.launches.keys()).chain(recording.captured.keys());
        names.any(|name| baseline.part(name).is_some())
    };
    let launching: Vec<&Recording> = recordings.iter().filter(family).collect();
    let (expected, seen) = (request.processes, u64::try_from(launching.len()).unwrap_or(u64::MAX));
    if seen < expected {
        let what = format!("{seen} of {expected} processes that launch kernels of the family left a recording");
        found.problem(Link::L6, State::Incomplete, "rank-missing", "", what);
    } else if seen > expected {
        let what = format!("{seen} processes launch kernels of the family, and {expected} were declared");
        found.problem(Link::L6, State::Mismatch, "rank-unexpected", "", what);
    }
    let mut ranks: BTreeMap<u64, u64> = BTreeMap::new();
    for recording in &launching {
        if let Some((rank, world)) = recording.rank {
            *ranks.entry(rank).or_default() += 1;
            if world.is_some_and(|world| rank >= world) {
                let what = format!("process {} says that it is rank {rank} of {}", recording.pid, world.unwrap_or(0));
                found.problem(Link::L6, State::Incomplete, "rank-impossible", &recording.file, what);
            }
        }
    }
    // Engines beside each other number their ranks from zero; within one there must be no two.
    if ranks.len() > 1 && ranks.values().collect::<BTreeSet<_>>().len() > 1 {
        found.problem(Link::L6, State::Incomplete, "rank-missing", "", format!("the ranks are not each there equally often: {ranks:?}"));
    }
    let known: BTreeMap<&str, BTreeSet<&str>> = baseline.code.iter().fold(BTreeMap::new(), |mut known, code| {
        known.entry(code.kernel.as_str()).or_insert_with(BTreeSet::new).insert(code.code_id.as_str());
        known
    });
    if known.is_empty() {
        found.problem(Link::L6, State::Incomplete, "no-checked-code", "", "the static baseline names no code that was checked");
    }
    let mut loads = 0u64;
    for recording in &launching {
        let mut loaded: BTreeSet<&str> = BTreeSet::new();
        for load in recording.loads.iter().filter(|load| baseline.part(&load.name).is_some()) {
            let mut tell = |state, reason, what: String| found.problem_about(Link::L6, state, reason, &recording.file, what, &load.name);
            loads += 1;
            loaded.insert(&load.name);
            let object = match object(evidence, recording, load.object.as_deref()) {
                Ok(object) => object,
                Err(what) => {
                    tell(State::Incomplete, "binary-absent", format!("the binary of {} in process {}: {what}", load.name, recording.pid));
                    continue;
                }
            };
            let id = object.code_id.as_str();
            if !known.is_empty() && !known.get(load.name.as_str()).is_some_and(|ids| ids.contains(id)) {
                let what =
                    format!("process {} loaded code {} for {}, which is no code that was checked", recording.pid, short(id), load.name);
                tell(State::Mismatch, "code-not-checked", what);
            }
            let held = identities.cached.get(&load.name);
            if !identities.cached.is_empty() && !held.is_some_and(|ids| ids.contains(id)) {
                // A cache that holds nothing of the kernel may have lost it; one that holds another binary contradicts.
                let state = if held.is_some() { State::Mismatch } else { State::Incomplete };
                let what = format!("process {} loaded code {} for {}, which the cache does not hold", recording.pid, short(id), load.name);
                tell(state, "code-not-in-cache", what);
            }
        }
        let launched = recording.launches.keys().chain(recording.captured.keys());
        for name in launched.filter(|name| baseline.part(name).is_some() && !loaded.contains(name.as_str())) {
            let what = format!("process {} launched {name}, and no load of it was recorded", recording.pid);
            found.problem_about(Link::L6, State::Incomplete, "load-not-recorded", &recording.file, what, name);
        }
    }
    if !recordings.is_empty() {
        found.fact(Link::L6, format!("{loads} loads of kernels of the family in {seen} of {expected} processes"));
    }
}

fn object(evidence: &Evidence, recording: &Recording, name: Option<&str>) -> Result<CodeObject, String> {
    let name = name.ok_or("none was kept")?;
    let folder = recording.file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
    let entry = evidence.at(&path).filter(|entry| entry.role == Role::Object).ok_or_else(|| format!("'{path}' is not in the evidence"))?;
    let stated = path.rsplit('/').next().and_then(|file| file.split('.').next()).unwrap_or("");
    if stated != entry.sha256 {
        return Err(format!("'{path}' has another digest than its name"));
    }
    CodeObject::read(&evidence.bytes(entry)?).map_err(|error| error.to_string())
}
