//! L9: whether the bytes are the same.
//!
//! In: compared samples, and the exerciser's comparisons of eager calls with replays. Out: problems. Refused: samples that leave out a kind of
//! input at which an order of additions shows.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::documents::Baseline;
use super::evidence::{Evidence, Role};
use super::link::{Findings, Link, State};
use super::recording::Recording;

/// Schema of the document.
pub const SCHEMA: &str = "rlk-lint/numbers/v1";
/// Kinds of inputs that have to be there.
pub const KINDS: [&str; 4] = ["normal", "signed zeros", "subnormals", "cancellation"];

/// One comparison.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Rows.
    pub m: u64,
    /// Columns.
    pub n: u64,
    /// Length of the sum.
    pub k: u64,
    /// Kind of input.
    pub sample: String,
    /// Candidate.
    pub candidate: String,
    /// Whether the chunks were computed apart.
    pub split: bool,
    /// Bytes of the output.
    pub bytes: u64,
    /// Digest of the static baseline's output.
    pub reference: String,
    /// Digest of the candidate's output.
    pub found: String,
    /// Bytes that differ.
    pub different_bytes: u64,
}

/// All comparisons.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Numbers {
    /// [`SCHEMA`].
    pub schema: String,
    /// Comparisons.
    pub samples: Vec<Sample>,
}

/// L9.
pub fn judge(evidence: &Evidence, recordings: &[Recording], baseline: Option<&Baseline>, found: &mut Findings) {
    for recording in recordings {
        for route in &recording.replays_differ {
            let what = format!("in process {} the replay of route {route} gave other bytes than the eager call", recording.pid);
            found.problem_about(Link::L9, State::Mismatch, "replay-differs", &recording.file, what, route);
        }
    }
    let mut samples: Vec<(String, Sample)> = Vec::new();
    for entry in evidence.of(Role::Numbers) {
        match evidence.bytes(entry).and_then(|bytes| serde_json::from_slice::<Numbers>(&bytes).map_err(|error| error.to_string())) {
            Ok(numbers) if numbers.schema == SCHEMA => {
                samples.extend(numbers.samples.into_iter().map(|sample| (entry.path.clone(), sample)));
            }
            Ok(numbers) => {
                let what = format!("its schema is '{}', and this version reads '{SCHEMA}'", numbers.schema);
                found.problem(Link::L9, State::Incomplete, "document-unreadable", &entry.path, what);
            }
            Err(what) => found.problem(Link::L9, State::Incomplete, "document-unreadable", &entry.path, what),
        }
    }
    if samples.is_empty() {
        found.problem(Link::L9, State::Incomplete, "no-numbers", "", "no candidate was compared with the static baseline byte by byte");
        return;
    }
    for (file, sample) in &samples {
        let Sample { m, n, k, candidate, sample: kind, .. } = sample;
        if sample.different_bytes != 0 || sample.reference != sample.found {
            let different = sample.different_bytes;
            let what = format!("{different} of {} bytes differ for candidate {candidate} at {m}x{n}x{k} with {kind} inputs", sample.bytes);
            found.problem_about(Link::L9, State::Mismatch, "candidate-bits-differ", file, what, candidate);
        }
        if sample.bytes == 0 || sample.bytes != m.saturating_mul(*n).saturating_mul(2) {
            let what = format!("{} bytes were compared for {m}x{n}, which has {}", sample.bytes, m.saturating_mul(*n).saturating_mul(2));
            found.problem(Link::L9, State::Incomplete, "sample-incomplete", file, what);
        }
    }
    let kinds: BTreeSet<&str> = samples.iter().map(|(_, sample)| sample.sample.as_str()).collect();
    let missing: Vec<&str> = KINDS.into_iter().filter(|kind| !kinds.contains(kind)).collect();
    if !missing.is_empty() {
        let what = format!("no sample has inputs of the kind {}", missing.join(", "));
        found.problem(Link::L9, State::Incomplete, "samples-missing", "", what);
    }
    let chunk = baseline.map_or(1024, |baseline| baseline.chunk_k);
    if !samples.iter().any(|(_, sample)| sample.k % chunk != 0) {
        let what = format!("no sample has a sum whose length is no multiple of {chunk}");
        found.problem(Link::L9, State::Incomplete, "samples-missing", "", what);
    }
    let candidates: BTreeSet<&str> = samples.iter().map(|(_, sample)| sample.candidate.as_str()).collect();
    let replays: u64 = recordings.iter().map(|recording| recording.replays_same).sum();
    found
        .fact(Link::L9, format!("{} samples of {} candidates, {replays} replays equal to the eager call", samples.len(), candidates.len()));
}
