//! The demo's companions: what is found in them, and what their calls reach, is what their markers say.

use std::collections::{BTreeMap, BTreeSet};

use rlk_lint::run::lint::{self, Judging, Opened, Request};
use rlk_lint::run::{assumptions, counts, settle};
use rlk_lint::sources::embedded;
use rlk_lint::text::Files;

use crate::support::{calls, compare, findings, markers, only_listed};

/// Rules that the markers stand for.
const MARKED: [&str; 27] = [
    "RLK201", "RLK202", "RLK203", "RLK204", "RLK205", "RLK301", "RLK302", "RLK303", "RLK304", "RLK305", "RLK306", "RLK307", "RLK308",
    "RLK309", "RLK310", "RLK401", "RLK402", "RLK403", "RLK404", "RLK405", "RLK406", "RLK407", "RLK408", "RLK409", "RLK505", "RLK506",
    "RLK507",
];

/// Beginning of the native symbols that markers name.
const NATIVE: &str = "rl_engine._C.";

fn opened(folder: &std::path::Path) -> Opened {
    embedded::materialise(folder).unwrap();
    let profile = embedded::profile_text().unwrap();
    lint::open_text(profile, "rlk-lint.toml", folder.to_path_buf(), &Request::default())
        .unwrap_or_else(|error| panic!("{:?}", miette::Report::new(error)))
}

/// Texts as they were read, with the patches applied. Files with markers have different paths in all sources.
fn texts(files: &Files) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    for file in files.iter().map(|(_, file)| file).filter(|file| file.text.contains("#! ")) {
        let old = out.insert(file.path.to_string(), file.text.to_string());
        assert!(old.is_none(), "{}: two files with markers have this path", file.path);
    }
    out
}

fn wrong_findings() -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let judging = Judging { fail_on: None, wanted: &|_| true, category: None };
    let linted = lint::lint(opened(folder.path()), &judging, 1).unwrap();
    assert!(linted.report.gaps.is_empty(), "{:#?}", linted.report.gaps);
    let mut want = BTreeSet::new();
    for ((path, line), directives) in markers(&texts(&linted.files)) {
        for id in directives.into_iter().filter(|word| word.starts_with("RLK")) {
            assert!(MARKED.contains(&id.as_str()), "{path}:{line}: {id} is not marked in the companions");
            want.insert((id, path.clone(), line));
        }
    }
    assert!(want.len() >= 20, "{} markers only", want.len());
    let got: BTreeSet<_> = findings(&linted).into_iter().filter(|(id, ..)| MARKED.contains(&id.as_str())).collect();
    let missing = want.difference(&got).map(|(id, path, line)| format!("{path}:{line}: no {id}"));
    let extra = got.difference(&want).map(|(id, path, line)| format!("{path}:{line}: {id} on a line without it"));
    missing.chain(extra).collect()
}

fn wrong_calls() -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let (profile, _, loaded) = lint::load(opened(folder.path()), 1).unwrap();
    let assumptions = assumptions(&profile, &loaded);
    let (production, rest): (Vec<_>, Vec<_>) = loaded.program.module_ids().partition(|id| counts(loaded.class_of(*id)));
    // As `analyse` does: functions that nothing calls run too.
    let mut engine =
        settle(&profile, &loaded, &assumptions, &production, |engine| engine.run_uncalled(|module| production.contains(&module)));
    let mut found = calls(&loaded, &engine, NATIVE);
    // Tests and benchmarks run on top; what they add counts on their own lines only.
    engine.run_modules(&rest);
    engine.run_uncalled(|module| rest.contains(&module));
    let outside: Vec<String> = rest.iter().map(|id| loaded.program.module(*id).path.clone()).collect();
    found.extend(calls(&loaded, &engine, NATIVE), &outside);
    let (checked, wrong) = compare(&markers(&texts(&loaded.files)), &found);
    assert!(checked >= 100, "{checked} markers only");
    wrong
}

#[test]
fn companions_are_as_their_markers_say() {
    let mut wrong = wrong_findings();
    wrong.extend(wrong_calls());
    // What does not hold yet is listed. The list may only shrink: a line that comes right must leave it.
    only_listed(&wrong, "tests/data/companions-open.txt");
}
