//! Findings about compiled code.
//!
//! In: what was read, the contract, and where in a report each thing is shown. Out: findings and gaps. Refused: silence about anything that could not be read.
//!
//! Rules: RLK601 to RLK606 on one kernel and RLK607 on one launch come from `contract`; RLK608 is about a cache, RLK609 about two compilations.

use std::collections::BTreeMap;

use crate::catalog;
use crate::findings::{Finding, Gap, GapKind};
use crate::profile::CodeContract;
use crate::text::{FileId, Files, Span, TextFile, sanitize};

use super::cache::{Cache, Entry, Problem};
use super::compile::Replayed;
use super::contract::{Part, examine, part, schedule};
use super::record::Record;

/// Id under which files of a cache stand in reports.
pub const CACHE: &str = "cache";
/// Rules whose findings are made here and in `contract`.
pub const RULES: [&str; 9] = ["RLK601", "RLK602", "RLK603", "RLK604", "RLK605", "RLK606", "RLK607", "RLK608", "RLK609"];

/// Where in reports the entries of a cache are: the metadata of each kernel is a file.
pub struct Places {
    folders: BTreeMap<String, FileId>,
    whole: FileId,
}

impl Places {
    /// Adds the files of a cache.
    pub fn new(cache: &Cache, files: &mut Files) -> Self {
        let whole = files.add(TextFile::new(CACHE, ".", ""));
        let mut folders = BTreeMap::new();
        for entry in &cache.entries {
            folders.entry(entry.folder.clone()).or_insert_with(|| files.add(TextFile::new(CACHE, entry.path(), entry.text.as_str())));
        }
        Self { folders, whole }
    }

    /// The metadata of a folder, or the cache as a whole.
    #[must_use]
    pub fn of(&self, folder: &str) -> Span {
        Span::new(self.folders.get(folder).copied().unwrap_or(self.whole), 0, 0)
    }
}

/// Clauses on one subject, each with where it holds.
type Clauses = BTreeMap<String, Vec<String>>;

/// Complaints of many kernels or launches, collected so that one subject gets one finding per rule.
#[derive(Default)]
struct Collected {
    by_subject: BTreeMap<(&'static str, String), (Span, Clauses)>,
}

impl Collected {
    fn add(&mut self, rule: &'static str, subject: &str, place: Span, what: String, at: String) {
        let (_, clauses) = self.by_subject.entry((rule, subject.to_owned())).or_insert_with(|| (place, BTreeMap::new()));
        clauses.entry(what).or_default().push(at);
    }

    fn findings(self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for ((id, subject), (place, clauses)) in self.by_subject {
            // Every id of this module is in the catalog, which a test verifies.
            let Some(rule) = catalog::rule(id) else { continue };
            let said: Vec<String> = clauses
                .into_iter()
                .map(|(what, at)| match at.as_slice() {
                    [] => what,
                    [only] if only.is_empty() => what,
                    [only] => format!("{what} ({only})"),
                    [first, rest @ ..] => format!("{what} ({first}, and {} more)", rest.len()),
                })
                .collect();
            let subject = sanitize(&subject).into_owned();
            findings.push(Finding::new(rule, "default", vec![subject.clone(), said.join("; ")], place, subject));
        }
        findings
    }
}

/// What does not fit together in a cache, one finding per kernel.
#[must_use]
pub fn contradictions(cache: &Cache, place: &dyn Fn(&str) -> Span) -> Vec<Finding> {
    let mut collected = Collected::default();
    for problem in &cache.contradictions {
        collected.add("RLK608", &subject(problem), place(&problem.folder), problem.what.clone(), String::new());
    }
    collected.findings()
}

fn subject(problem: &Problem) -> String {
    let kernel = if problem.kernel.is_empty() { "*" } else { problem.kernel.as_str() };
    format!("{}/{kernel}", problem.folder)
}

/// What could not be read in a cache.
#[must_use]
pub fn unread(cache: &Cache) -> Vec<Gap> {
    let next = "Remove the folder and compile again, in a cache of its own.";
    cache
        .unread
        .iter()
        .map(|problem| gap(&problem.folder, format!("Kernel '{}': {}.", sanitize(&problem.kernel), problem.what), next))
        .collect()
}

/// A gap about compiled code.
#[must_use]
pub fn gap(path: &str, cause: String, next: &str) -> Gap {
    let path = sanitize(path).into_owned();
    Gap { kind: GapKind::Unobserved, source: CACHE.to_owned(), path, span: None, cause, next: next.to_owned(), allowed: false }
}

/// A cache against the contract, and against a record where there is one.
#[must_use]
pub fn judge_cache(
    cache: &Cache,
    contract: &CodeContract,
    arch: &str,
    record: Option<&Record>,
    places: &Places,
) -> (Vec<Finding>, Vec<Gap>) {
    let mut collected = Collected::default();
    let mut gaps = Vec::new();
    let mut parts = Vec::new();
    for entry in &cache.entries {
        let Some(part) = part(contract, &entry.metadata.name) else { continue };
        parts.push(entry.metadata.name.as_str());
        let recorded = record.and_then(|record| record.kernel(&entry.metadata.hash));
        let specialisation = recorded.map(|kernel| kernel.specialisation.as_str());
        let subject = format!("{}/{}", entry.folder, entry.metadata.name);
        let place = places.of(&entry.folder);
        let examined = examine(contract, arch, entry, part, specialisation);
        for complaint in examined.complaints {
            collected.add(complaint.rule, &subject, place, complaint.what, String::new());
        }
        for what in examined.unseen {
            gaps.push(gap(
                &entry.path(),
                format!("Kernel '{}': {what}.", sanitize(&entry.metadata.name)),
                "Compile it with `rlk-lint probe compile`.",
            ));
        }
        match (record, recorded) {
            (Some(_), Some(recorded)) if recorded.code_id != entry.code.code_id => {
                collected.add("RLK609", &subject, place, differs(&recorded.code_id, &entry.code.code_id), String::new());
            }
            (Some(_), None) => {
                let cause = format!("Kernel '{}' has a key that the record does not know.", sanitize(&entry.metadata.name));
                gaps.push(gap(&entry.path(), cause, "Compile with the same sources, options and Triton, or make a new record."));
            }
            _ => {}
        }
    }
    if let (Some(partial), Some(reduce)) = (&contract.partial, &contract.reduce) {
        for (present, absent) in [(partial, reduce), (reduce, partial)] {
            if parts.contains(&present.as_str()) && !parts.contains(&absent.as_str()) {
                collected.add("RLK607", present, places.of(""), format!("the cache holds it and no {absent}"), String::new());
            }
        }
    }
    if parts.is_empty() {
        gaps.push(gap(
            ".",
            "The cache holds no kernel of the contract.".to_owned(),
            "Name the cache of the workload, or the kernels of the contract.",
        ));
    }
    (collected.findings(), gaps)
}

fn differs(recorded: &str, found: &str) -> String {
    let short = |id: &str| sanitize(id).chars().take(16).collect::<String>();
    format!("the code is {}, and {} was recorded for the same key", short(found), short(recorded))
}

/// A compilation against the contract. `place` is where a configuration stands in the kernel module.
#[must_use]
pub fn judge_record(
    record: &Record,
    cache: &Cache,
    contract: &CodeContract,
    arch: &str,
    place: &dyn Fn(&str) -> Span,
) -> (Vec<Finding>, Vec<Gap>) {
    let mut collected = Collected::default();
    let mut gaps = Vec::new();
    let by_key: BTreeMap<&str, &Entry> = cache.entries.iter().map(|entry| (entry.metadata.hash.as_str(), entry)).collect();
    let mut examined = BTreeMap::new();
    for kernel in &record.kernels {
        let Some(entry) = by_key.get(kernel.key.as_str()) else { continue };
        let part = part(contract, &kernel.kernel).unwrap_or(Part::Dot);
        examined.insert(kernel.key.as_str(), examine(contract, arch, entry, part, Some(&kernel.specialisation)));
    }
    for launch in &record.launches {
        let label = launch.label();
        if let Some(why) = &launch.failure {
            let cause = format!("Candidate '{}', {}: {}.", sanitize(&launch.config), sanitize(&label), sanitize(why));
            gaps.push(gap(&record.module, cause, "Nothing is known of what this launch would run."));
            continue;
        }
        if let Some(complaint) = schedule(contract, launch, record) {
            collected.add(complaint.rule, &launch.config, place(&launch.config), complaint.what, label.clone());
        }
        for key in &launch.kernels {
            let Some(examined) = examined.get(key.as_str()) else {
                gaps.push(gap(
                    &record.module,
                    format!("Kernel {} of candidate '{}' was not examined.", sanitize(key), sanitize(&launch.config)),
                    "",
                ));
                continue;
            };
            for complaint in &examined.complaints {
                collected.add(complaint.rule, &launch.config, place(&launch.config), complaint.what.clone(), label.clone());
            }
            for what in &examined.unseen {
                gaps.push(gap(&record.module, format!("Candidate '{}', {label}: {what}.", sanitize(&launch.config)), ""));
            }
        }
    }
    gaps.sort();
    gaps.dedup();
    (collected.findings(), gaps)
}

/// What another compilation made of a record.
#[must_use]
pub fn judge_replay(record: &Record, replayed: &[Replayed], place: Span) -> (Vec<Finding>, Vec<Gap>) {
    let mut collected = Collected::default();
    let mut gaps = Vec::new();
    for kernel in replayed {
        let Replayed { recorded, code_id } = kernel;
        match code_id {
            Ok(code_id) if *code_id == recorded.code_id => {}
            Ok(code_id) => {
                let used = record.launches.iter().find(|launch| launch.kernels.contains(&recorded.key));
                let at = used.map(|launch| format!("{}, {}", launch.config, launch.label())).unwrap_or_default();
                collected.add("RLK609", &recorded.kernel, place, differs(&recorded.code_id, code_id), at);
            }
            Err(why) => {
                let cause = format!("Kernel '{}' could not be compiled again: {}.", sanitize(&recorded.kernel), sanitize(why));
                gaps.push(gap(&record.module, cause, "Use the Triton and the sources that the record names."));
            }
        }
    }
    gaps.sort();
    gaps.dedup();
    (collected.findings(), gaps)
}
