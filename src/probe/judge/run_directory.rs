//! What an RL-Kernel run leaves: a plan, frozen inputs, launches, logs and readbacks.
//!
//! In: a folder with `matrix-plan.json`, or the same files as run documents of an evidence directory. Out: files by role, and the request that they
//! amount to. Refused: frozen inputs that differ before and after, fingerprints that do not come out again, and their own validations as authority.
//! No device, cache, recording or trace is among these files, so that such a folder alone can show a contradiction and never a pass.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::super::hex;
use super::documents::{Label, Request, SourceState};
use super::evidence::{Entry, Evidence, EvidenceError, Role};
use super::link::{Findings, Link, State};
use super::request::{forbidden, not_pinned};

/// The file that makes a folder such a run.
const PLAN: &str = "matrix-plan.json";
/// The contract that a run of the matrix is about.
const CONTRACT: &str = "rlkernel.det_gemm.triton_mfma_rocm.v1";
/// The processor that it is for.
const ARCH: &str = "gfx942";

/// Whether a folder is such a run.
#[must_use]
pub fn is_one(root: &Path) -> bool {
    std::fs::symlink_metadata(root.join(PLAN)).is_ok_and(|meta| meta.is_file())
}

/// Role of a file by its place; what is only hashed elsewhere or judges itself is kept as a note.
fn role_of(path: &str) -> Role {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name {
        PLAN | "launch.json" | "frozen-inputs.before.json" | "frozen-inputs.after.json" => Role::RunDocument,
        "launcher.log" => Role::Log,
        _ if path.contains("readbacks/") && name.ends_with(".json") => Role::Readback,
        _ => Role::Note,
    }
}

/// Opens a folder without a manifest.
///
/// # Errors
/// If it cannot be listed.
pub fn open(root: &Path, found: &mut Findings) -> Result<Evidence, EvidenceError> {
    let files = Evidence::list(root, found)?;
    let entry = |path: String| Entry { role: role_of(&path), path, bytes: 0, sha256: String::new() };
    let what = "the run was not sealed: no manifest vouches for its files, so that nothing in it can be shown to be unchanged";
    found.problem(Link::L1, State::Incomplete, "not-sealed", "", what);
    Ok(Evidence::of_files(root, files.into_iter().map(entry).collect()))
}

/// Digest of a document without one of its fields, as Python's compact, sorted and ASCII-only JSON.
fn fingerprint(document: &Value, without: &str) -> Option<String> {
    let mut fields: BTreeMap<&str, &Value> = document.as_object()?.iter().map(|(name, value)| (name.as_str(), value)).collect();
    fields.remove(without);
    let mut text = String::from("{");
    for (index, (name, value)) in fields.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&ascii(&Value::String(name.to_owned()).to_string()));
        text.push(':');
        write_value(value, &mut text);
    }
    text.push('}');
    Some(hex(&Sha256::digest(text.as_bytes())))
}

/// Writes a value as Python does. Depth is that of a parsed document, which the parser bounds.
fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let ordered: BTreeMap<&String, &Value> = fields.iter().collect();
            out.push('{');
            for (index, (name, value)) in ordered.into_iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.push_str(&ascii(&Value::String(name.clone()).to_string()));
                out.push(':');
                write_value(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, value) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write_value(value, out);
            }
            out.push(']');
        }
        Value::Number(number) if number.is_f64() => out.push_str(&python_float(number.as_f64().unwrap_or(0.0))),
        other => out.push_str(&ascii(&other.to_string())),
    }
}

/// A number with a fraction as Python writes it: shortest digits, an exponent of two digits below 1e-4 and from 1e16 on.
fn python_float(number: f64) -> String {
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        exponent @ -4..16 => {
            let plain = format!("{number}");
            if exponent >= 0 && !plain.contains('.') { format!("{plain}.0") } else { plain }
        }
        exponent => format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs()),
    }
}

/// Text with every character beyond ASCII as an escape of JSON.
fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

/// Sources of a frozen-inputs document.
fn sources(document: &Value) -> Vec<SourceState> {
    let table = document.get("sources").and_then(Value::as_object);
    let state = |(id, source): (&String, &Value)| SourceState {
        id: id.clone(),
        commit: text(source, "/revision").to_owned(),
        dirty: source.get("tracked_dirty").and_then(Value::as_bool).unwrap_or(true),
        sha256: text(source, "/tracked_diff_sha256").to_owned(),
    };
    table.into_iter().flatten().map(state).collect()
}

/// The request that a run's documents amount to; `None` if there are none.
pub fn request(evidence: &Evidence, found: &mut Findings) -> Option<Request> {
    let mut documents: Vec<(String, Value)> = Vec::new();
    for entry in evidence.of(Role::RunDocument) {
        match evidence.bytes(entry).and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string())) {
            Ok(document) => documents.push((entry.path.clone(), document)),
            Err(what) => found.problem(Link::L1, State::Incomplete, "document-unreadable", &entry.path, what),
        }
    }
    if documents.is_empty() || evidence.of(Role::Request).next().is_some() {
        // A request of our own outranks theirs; their documents are checked all the same.
        check(&documents, found);
        return None;
    }
    check(&documents, found);
    let frozen =
        |when: &str| documents.iter().find(|(path, _)| path.ends_with(when)).map(|(_, document)| sources(document)).unwrap_or_default();
    let mut environment: BTreeMap<String, String> = BTreeMap::new();
    for (_, launch) in documents.iter().filter(|(path, _)| path.ends_with("launch.json")) {
        for (name, value) in launch.get("environment").and_then(Value::as_object).into_iter().flatten() {
            environment.insert(name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
    }
    Some(Request {
        label: Label::Runner,
        contract: CONTRACT.to_owned(),
        arch: ARCH.to_owned(),
        environment,
        sources: frozen("frozen-inputs.before.json"),
        sources_after: frozen("frozen-inputs.after.json"),
        ..Request::default()
    })
}

/// What the documents say about each other.
fn check(documents: &[(String, Value)], found: &mut Findings) {
    let mut tell = |state, reason, file: &str, what: String| found.problem(Link::L1, state, reason, file, what);
    let named = |name: &str| documents.iter().find(|(path, _)| path.ends_with(name));
    for (path, document) in documents {
        let field = if path.ends_with(PLAN) { "plan_fingerprint" } else { "fingerprint" };
        let stated = text(document, &format!("/{field}"));
        if path.ends_with("launch.json") {
            continue;
        }
        match fingerprint(document, field) {
            _ if stated.is_empty() => tell(State::Incomplete, "fingerprint-absent", path, format!("it has no {field}")),
            Some(made) if made == stated => {}
            _ => tell(State::Mismatch, "fingerprint-differs", path, format!("its {field} is not that of its content")),
        }
    }
    let fingerprint_of = |name: &str| named(name).map(|(_, document)| text(document, "/fingerprint").to_owned());
    match (fingerprint_of("frozen-inputs.before.json"), fingerprint_of("frozen-inputs.after.json")) {
        (Some(before), Some(after)) if before == after => {}
        (Some(_), Some(_)) => {
            tell(State::Mismatch, "inputs-changed", "frozen-inputs.after.json", "the inputs were not the same before and after".to_owned());
        }
        _ if documents.is_empty() => {}
        _ => tell(State::Incomplete, "inputs-not-frozen", "", "the inputs were not frozen before and after".to_owned()),
    }
    let before = fingerprint_of("frozen-inputs.before.json").unwrap_or_default();
    for (path, launch) in documents.iter().filter(|(path, _)| path.ends_with("launch.json")) {
        let own = text(launch, "/frozen_input_fingerprint");
        if own != before {
            tell(
                State::Mismatch,
                "launch-of-other-inputs",
                path,
                "it was launched with other inputs than those that were frozen".to_owned(),
            );
        }
        let environment: BTreeMap<String, String> = launch
            .get("environment")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.as_str().unwrap_or("").to_owned()))
            .collect();
        // Only an arm with an RL-Kernel side asks for the contract.
        let asks = text(launch, "/case_id").contains(['R', 'r']);
        if asks && let Some(why) = not_pinned(CONTRACT, &environment) {
            tell(State::Mismatch, "request-not-pinned", path, why);
        }
        for name in forbidden(&environment) {
            tell(State::Mismatch, "forbidden-variable", path, format!("it was launched with {name} set"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_those_of_compact_sorted_ascii_json() {
        // Python: hashlib.sha256(json.dumps({"a": {"x": "é", "y": [1, 2.5, None, True]}, "b": "\U0001f600"}, sort_keys=True,
        // separators=(",", ":")).encode()).hexdigest()
        let document = serde_json::json!({"b": "\u{1f600}", "fingerprint": "f", "a": {"y": [1, 2.5, null, true], "x": "é"}});
        for (number, text) in
            [(1e-5, "1e-05"), (0.0001, "0.0001"), (1e16, "1e+16"), (1.5e300, "1.5e+300"), (2.0, "2.0"), (1e15, "1000000000000000.0")]
        {
            assert_eq!(python_float(number), text);
        }
        assert_eq!(
            fingerprint(&document, "fingerprint").as_deref(),
            Some("e83d13eb1c54e83b22265e08d7cadda3a5d690b8483db1287ab6ffb0ef7f4e67")
        );
    }
}
