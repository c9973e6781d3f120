//! A snapshot of RL-Kernel, read by hand, against the inventory.
//!
//! The truth is compared with the program where `RLK_TRUTH_REPOSITORY` names a clone that has the commit. Without one the truth is checked
//! against itself.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::support::root;

#[derive(serde::Deserialize)]
struct Row {
    path: String,
    line: u64,
    kind: String,
    caller: String,
    target: String,
    #[serde(default)]
    also: Vec<String>,
}

#[derive(serde::Deserialize)]
struct Page {
    path: String,
    line: u64,
    text: String,
    key: String,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Truth {
    commit: String,
    tree: String,
    totals: BTreeMap<String, usize>,
    callsite: Vec<Row>,
    binding: Vec<Row>,
    documentation_only: Vec<Page>,
}

fn truth() -> Truth {
    let text = std::fs::read_to_string(root().join("tests/data/rl-kernel-truth.toml")).unwrap();
    toml::from_str(&text).unwrap()
}

#[test]
fn the_truth_adds_up() {
    let truth = truth();
    let kinds = |rows: &[Row]| -> BTreeMap<String, usize> {
        let mut out = BTreeMap::new();
        for row in rows {
            *out.entry(row.kind.clone()).or_default() += 1;
        }
        out
    };
    let (callsites, bindings) = (kinds(&truth.callsite), kinds(&truth.binding));
    assert_eq!(truth.callsite.len(), 16);
    assert_eq!(truth.binding.len(), 13);
    let number = |kind: &str| callsites.get(kind).copied().unwrap_or(0);
    let order = ["direct-call", "kernel-launch", "autograd-apply", "native-call", "registry-instantiation"];
    assert_eq!(order.map(number), [3, 1, 6, 5, 1]);
    assert_eq!(truth.totals["callsites"], 16);
    assert_eq!(truth.totals["bindings"], 13);
    for (kind, count) in callsites.iter().chain(&bindings) {
        assert_eq!(truth.totals.get(kind), Some(count), "{kind}");
    }
    let places: BTreeSet<_> = truth.callsite.iter().map(|row| (&row.path, row.line, &row.target)).collect();
    assert_eq!(places.len(), 16, "no callsite stands there twice");
    let profile = std::fs::read_to_string(root().join("fixtures/profiles/public-2026-08.toml")).unwrap();
    assert!(profile.contains(&truth.commit) && profile.contains(&truth.tree), "the profile pins the commit that was read");
}

fn production(rows: &serde_json::Value) -> Vec<&serde_json::Value> {
    rows.as_array().unwrap().iter().filter(|row| row["class"] == "production").collect()
}

fn words(value: &serde_json::Value) -> BTreeSet<String> {
    value.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

/// `path:line kind` and targets of each production row; callsites are told apart by their caller, too.
fn found(rows: &serde_json::Value, callers: bool) -> Vec<(String, BTreeSet<String>)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let key = |row: &serde_json::Value| {
        let caller = if callers { text(&row["caller"]) } else { String::new() };
        format!("{}:{} {} {caller}", text(&row["at"]["path"]), row["at"]["line"], text(&row["kind"]))
    };
    production(rows).into_iter().map(|row| (key(row), words(&row["targets"]))).collect()
}

/// What differs. A target may be accompanied by those of `also`, which other backends have.
fn differences(what: &str, mut got: Vec<(String, BTreeSet<String>)>, want: &[Row], callers: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for row in want {
        let caller = if callers { row.caller.as_str() } else { "" };
        let key = format!("{}:{} {} {caller}", row.path, row.line, row.kind);
        let all: BTreeSet<String> = row.also.iter().cloned().chain([row.target.clone()]).collect();
        match got.iter().position(|(place, targets)| *place == key && targets.contains(&row.target) && targets.is_subset(&all)) {
            Some(at) => drop(got.remove(at)),
            None => wrong.push(format!("{what} missing: {key} -> {}", row.target)),
        }
    }
    wrong.extend(got.iter().map(|(key, targets)| format!("{what} not in the truth: {key} -> {targets:?}")));
    wrong
}

#[test]
fn the_inventory_of_the_snapshot_is_the_truth() {
    let Some(repository) = std::env::var_os("RLK_TRUTH_REPOSITORY") else {
        eprintln!("RLK_TRUTH_REPOSITORY is not set: the snapshot is not read");
        return;
    };
    let truth = truth();
    let mut source = std::ffi::OsString::from("rl-kernel=");
    source.push(&repository);
    let profile = root().join("fixtures/profiles/public-2026-08.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rlk-lint"));
    command.args(["inventory", "--format", "json", "--allow-missing", "--profile"]).arg(profile).arg("--source").arg(source);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let inventory: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let family = &inventory["families"][0];
    let mut wrong = differences("callsite", found(&family["callsites"], true), &truth.callsite, true);
    wrong.extend(differences("binding", found(&family["bindings"], false), &truth.binding, false));
    let requests = family["requests"].as_array().unwrap();
    for page in truth.documentation_only.iter().filter(|page| page.key == "det_gemm") {
        let there = |row: &&serde_json::Value| {
            row["at"]["path"] == page.path.as_str() && row["at"]["line"] == page.line && row["text"].as_str().unwrap().contains(&page.text)
        };
        if !requests.iter().any(|row| there(&row)) {
            wrong.push(format!("request missing: {}:{} {}", page.path, page.line, page.text));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
