//! What ran, against what was requested.
//!
//! In: an evidence directory. Out: a chain of ten links, each checked on its own, and one verdict. Refused: a missing link as anything but incomplete.
//!
//! | link | file | compares |
//! | --- | --- | --- |
//! | L0 device | `super::device` | kernel, HSA and HIP with each other and with the request |
//! | L1 request, L2 environment | `request` | the request with the contract; what processes were started with |
//! | L3 candidates, L4 code, L5 reproduction, L6 loaded | `code` | cache, binaries, a second compilation, loads |
//! | L7 executed | `executed` | traces (`trace`) with recordings (`recording`) and layouts (`geometry`) |
//! | L8 claims | `claims` | what the software says with the request and with what ran |
//! | L9 numbers | `numbers` | bytes of candidates with the static baseline |
//!
//! `evidence` opens the directory, `documents` reads request and baseline, `run_directory` reads what an RL-Kernel run leaves, `link` joins all.

pub mod claims;
pub mod code;
pub mod documents;
pub mod evidence;
pub mod executed;
pub mod geometry;
pub mod json_stream;
pub mod link;
pub mod numbers;
pub mod recording;
pub mod report;
pub mod request;
pub mod run_directory;
pub mod trace;

use std::path::Path;

use super::device::DeviceReport;
use documents::{Baseline, Label, Request};
use evidence::{Evidence, EvidenceError, Role};
use executed::Observed;
use link::{Chain, Findings, Link, State};

/// An evidence directory, judged.
#[derive(Debug)]
pub struct Judgement {
    /// Runner or rehearsal.
    pub label: Label,
    /// Contract that was requested; empty if that is not known.
    pub contract: String,
    /// The links.
    pub chain: Chain,
    /// What was executed.
    pub observed: Observed,
}

/// Judges a directory.
///
/// # Errors
/// If it is no evidence at all.
pub fn judge(root: &Path) -> Result<Judgement, EvidenceError> {
    let mut found = Findings::default();
    let evidence = match Evidence::open(root, &mut found) {
        Err(EvidenceError::NoManifest(_)) if run_directory::is_one(root) => run_directory::open(root, &mut found)?,
        other => other?,
    };
    let request = match run_directory::request(&evidence, &mut found) {
        Some(request) => Some(request),
        None => documents::request(&evidence, &mut found),
    };
    let baseline = documents::baseline(&evidence, &mut found);
    let recordings = recording::read_all(&evidence, &mut found);
    let observed = match &request {
        Some(request) => links(&evidence, request, baseline.as_ref(), &recordings, &mut found),
        None => Observed::default(),
    };
    numbers::judge(&evidence, &recordings, baseline.as_ref(), &mut found);
    let label = request.as_ref().map(|request| request.label).unwrap_or_default();
    let contract = request.map(|request| request.contract).unwrap_or_default();
    Ok(Judgement { label, contract, chain: link::chain(found), observed })
}

/// The links that need the request.
fn links(
    evidence: &Evidence,
    request: &Request,
    baseline: Option<&Baseline>,
    recordings: &[recording::Recording],
    found: &mut Findings,
) -> Observed {
    judge_device(evidence, &request.arch, found);
    request::judge_request(request, found);
    request::judge_environment(recordings, request, found);
    let mut observed = Observed::default();
    if let Some(baseline) = baseline {
        if baseline.contract != request.contract || baseline.arch != request.arch {
            let what = format!(
                "it is of contract {} for {}, and the request of {} for {}",
                baseline.contract, baseline.arch, request.contract, request.arch
            );
            found.problem(Link::L4, State::Mismatch, "baseline-of-other-contract", "", what);
        }
        let identities = code::judge_cache(evidence, baseline, request, found);
        code::judge_reproduction(evidence, baseline, recordings, &identities, found);
        code::judge_loaded(evidence, baseline, request, recordings, &identities, found);
        let traces = trace::read_all(evidence, found);
        observed = executed::judge(&traces, recordings, baseline, request, found);
    }
    claims::judge(evidence, request, &observed, found);
    observed
}

/// L0.
fn judge_device(evidence: &Evidence, arch: &str, found: &mut Findings) {
    let mut any = false;
    for entry in evidence.of(Role::Device) {
        any = true;
        match evidence.bytes(entry).and_then(|bytes| serde_json::from_slice::<DeviceReport>(&bytes).map_err(|error| error.to_string())) {
            Ok(report) if report.schema == super::device::SCHEMA => match report.agreed(arch) {
                Ok(what) => found.fact(Link::L0, what),
                Err((reason, what)) => found.problem(Link::L0, State::Unsupported, reason, &entry.path, what),
            },
            Ok(report) => {
                let what = format!("its schema is '{}', and this version reads '{}'", report.schema, super::device::SCHEMA);
                found.problem(Link::L0, State::Incomplete, "document-unreadable", &entry.path, what);
            }
            Err(what) => found.problem(Link::L0, State::Incomplete, "document-unreadable", &entry.path, what),
        }
    }
    if !any {
        found.problem(Link::L0, State::Incomplete, "no-device-report", "", "nothing says on which device it ran");
    }
}
