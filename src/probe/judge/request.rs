//! L1 and L2: what was requested, and what the processes were started with.
//!
//! In: the request and the recordings. Out: problems. Refused: a request that leaves the choice to the software, sources that are dirty or that
//! changed during the run, switches that make the compiled code something else, and libraries that nobody froze.

use std::collections::{BTreeMap, BTreeSet};

use super::documents::{Label, Request, SourceState};
use super::link::{Findings, Link, State};
use super::recording::Recording;

/// The variable that selects a contract, with the values that select it.
const SELECTORS: [(&str, &str, &[&str]); 1] =
    [("rlkernel.det_gemm.triton_mfma_rocm.v1", "RL_KERNEL_DET_GEMM_BACKEND", &["triton_mfma", "mfma"])];

/// Variables that replace or change compiled code; the workload must not have them.
pub const FORBIDDEN: [&str; 9] = [
    "TRITON_INTERPRET",
    "TRITON_KERNEL_OVERRIDE",
    "TRITON_OVERRIDE_DIR",
    "TRITON_OVERRIDE_ARCH",
    "TRITON_AMD_CODEGEN_PATH",
    "LLVM_PASS_PLUGIN_PATH",
    "DISABLE_LLVM_OPT",
    "TRITON_LIBHIP_PATH",
    "TRITON_STORE_BINARY_ONLY",
];

/// Why an environment does not pin a contract; `None` if it does.
#[must_use]
pub fn not_pinned(contract: &str, environment: &BTreeMap<String, String>) -> Option<String> {
    let Some((_, variable, values)) = SELECTORS.iter().find(|(of, ..)| *of == contract) else {
        return Some(format!("it is not known which variable selects contract '{contract}'"));
    };
    match environment.get(*variable).map(|value| value.trim().to_lowercase()) {
        None => Some(format!("{variable} is not set, so the software chooses; set it to {}", values[0])),
        Some(value) if value == "auto" => Some(format!("{variable} is 'auto', so the software chooses; set it to {}", values[0])),
        Some(value) if values.contains(&value.as_str()) => None,
        Some(value) => Some(format!("{variable} is '{value}', which selects another implementation than contract '{contract}'")),
    }
}

/// Forbidden variables that are set to something.
#[must_use]
pub fn forbidden(environment: &BTreeMap<String, String>) -> Vec<&'static str> {
    let set = |name: &str| environment.get(name).is_some_and(|value| !value.is_empty() && value != "0");
    FORBIDDEN.into_iter().filter(|name| set(name)).collect()
}

/// L1.
pub fn judge_request(request: &Request, found: &mut Findings) {
    let mut tell = |state, reason, what: String| found.problem(Link::L1, state, reason, "request.json", what);
    if let Some(why) = not_pinned(&request.contract, &request.environment) {
        tell(State::Mismatch, "request-not-pinned", why);
    }
    if request.processes == 0 {
        tell(State::Incomplete, "processes-not-declared", "it does not say how many processes launch kernels of the family".to_owned());
    }
    if request.sources.is_empty() {
        tell(State::Incomplete, "sources-not-recorded", "it does not say which sources ran".to_owned());
    }
    for source in &request.sources {
        if source.dirty {
            tell(
                State::Mismatch,
                "source-dirty",
                format!("source '{}' differed from its commit {} when the run began", source.id, source.commit),
            );
        }
        if source.commit.len() != 40 || !source.commit.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            tell(State::Incomplete, "source-unpinned", format!("source '{}' has no full commit id", source.id));
        }
    }
    let sorted = |sources: &[SourceState]| {
        let mut sorted = sources.to_vec();
        sorted.sort();
        sorted
    };
    if sorted(&request.sources) != sorted(&request.sources_after) {
        tell(State::Mismatch, "sources-changed", "the sources were not the same before and after the run".to_owned());
    }
    let sources = request.sources.len();
    found.fact(Link::L1, format!("contract {} for {}, pinned, {sources} sources before and after", request.contract, request.arch));
    if request.label == Label::Rehearsal {
        let what = "it is labelled a rehearsal: it exercises the machinery and is no evidence about the contract";
        found.problem(Link::L0, State::Unsupported, "rehearsal", "request.json", what);
    }
}

/// L2.
pub fn judge_environment(recordings: &[Recording], request: &Request, found: &mut Findings) {
    let mut versions: BTreeMap<&BTreeMap<String, String>, u64> = BTreeMap::new();
    for recording in recordings {
        let pid = recording.pid;
        let file = &recording.file;
        let last: BTreeMap<String, String> =
            recording.environment.iter().filter_map(|(name, values)| Some((name.clone(), values.last()?.clone()))).collect();
        for name in forbidden(&last) {
            let what = format!("process {pid} has {name} set, which changes what is compiled or loaded");
            found.problem(Link::L2, State::Mismatch, "forbidden-variable", file, what);
        }
        for (name, wanted) in &request.environment {
            match recording.environment.get(name).map(Vec::as_slice) {
                Some([value]) if value == wanted => {}
                Some([value]) => {
                    let what = format!("process {pid} has {name}={value}, and the request says {wanted}");
                    found.problem(Link::L2, State::Mismatch, "environment-differs", file, what);
                }
                Some(_) => {
                    let what = format!("process {pid} changed {name} while it ran");
                    found.problem(Link::L2, State::Mismatch, "environment-changed", file, what);
                }
                None => {
                    let what = format!("process {pid} has no {name}, and the request says {wanted}");
                    found.problem(Link::L2, State::Mismatch, "environment-differs", file, what);
                }
            }
        }
        if recording.ended {
            *versions.entry(&recording.versions).or_default() += 1;
        }
        libraries(recording, request, found);
    }
    if versions.len() > 1 {
        found.problem(Link::L2, State::Mismatch, "versions-disagree", "", "the processes ran different versions of torch, Triton or HIP");
    }
    if request.libraries.is_empty() {
        found.problem(
            Link::L2,
            State::Incomplete,
            "libraries-not-frozen",
            "request.json",
            "it names no library, so any could have been mapped",
        );
    }
    if !recordings.is_empty() {
        let mapped: BTreeSet<&String> =
            recordings.iter().filter_map(|recording| recording.libraries.as_ref()).flat_map(BTreeMap::keys).collect();
        found.fact(Link::L2, format!("{} processes, {} mapped libraries", recordings.len(), mapped.len()));
    }
}

fn libraries(recording: &Recording, request: &Request, found: &mut Findings) {
    let pid = recording.pid;
    let mut tell = |state, reason, what: String| found.problem(Link::L2, state, reason, &recording.file, what);
    if !recording.ended || request.libraries.is_empty() {
        return;
    }
    let Some(libraries) = &recording.libraries else {
        tell(State::Incomplete, "libraries-unknown", format!("process {pid} could not say which libraries it had mapped"));
        return;
    };
    for (path, digest) in libraries {
        let name = path.rsplit('/').next().unwrap_or(path);
        match (request.libraries.get(name), digest) {
            (_, None) => tell(State::Incomplete, "library-unreadable", format!("process {pid} mapped {name}, which could not be read")),
            (None, Some(_)) => {
                tell(
                    State::Mismatch,
                    "library-not-frozen",
                    format!("process {pid} mapped {name}, which is not one of the frozen libraries"),
                );
            }
            (Some(frozen), Some(digest)) if frozen != digest => {
                tell(State::Mismatch, "library-differs", format!("process {pid} mapped another {name} than the frozen one"));
            }
            _ => {}
        }
    }
}
