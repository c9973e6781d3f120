//! The rules: their pages are run as tests, and so are their trees.

use std::collections::{BTreeMap, BTreeSet};

use rlk_lint::catalog::{RULES, RuleMeta, SLUGS};
use rlk_lint::profile::{Input, PinsRef, Profile};
use rlk_lint::rules::CHECKS;
use rlk_lint::text::FileId;

use crate::page::{self, Content, Found, Page, Role};
use crate::support::{HEAD, SOURCE, findings, lint_against, lint_tree, markers, root, tree};

/// Sections of every page, in this order.
const SECTIONS: [&str; 6] = ["What it does", "Why it matters", "Flagged", "Clean", "What it cannot see", "How to fix"];

/// The family of all examples: kernels and their fronts in `kernels.py`, which every tree has.
const FAMILY: &str =
    "\n[[family]]\nid = \"det_gemm\"\nkeys = [\"det_gemm\"]\nsinks = [\"kernels.gemm_kernel\", \"kernels.tree_kernel\"]\nfacades = []\n";

/// Lints a tree to which `kernels.py` was added. Files below `base` make the base revision, with the others as they are; only what is new is given then.
fn lint_with_kernels(mut files: BTreeMap<String, String>, tables: &str) -> BTreeSet<Found> {
    let kernels = std::fs::read_to_string(root().join("fixtures/rules/kernels.py")).unwrap();
    files.entry("kernels.py".to_owned()).or_insert(kernels);
    let base: BTreeMap<String, String> =
        files.iter().filter_map(|(path, text)| Some((path.strip_prefix("base/")?.to_owned(), text.clone()))).collect();
    files.retain(|path, _| !path.starts_with("base/"));
    let profile = |tables: &str| format!("{HEAD}{SOURCE}{FAMILY}{tables}");
    if base.is_empty() {
        return findings(&lint_tree(&files, &profile(tables)));
    }
    let mut before = files.clone();
    before.extend(base);
    let old = before.remove("profile.toml").map_or_else(|| profile(tables), |own| profile(&own));
    findings(&lint_against(&before, &old, &files, &profile(tables)))
}

/// A `sources.json` for the examples that name one: the revision of Megatron-LM, unmodified.
const PINS: &str = r#"{"megatron": {"tested_commit": "1dcf0dafa884ad52ffb243625717a3471643e087", "modified": false}}"#;

fn pages() -> Vec<(&'static RuleMeta, Page)> {
    let parse =
        |rule: &'static RuleMeta| (rule, page::parse(rule.page).unwrap_or_else(|error| panic!("rules/{}/README.md: {error}", rule.slug)));
    RULES.iter().map(parse).collect()
}

#[test]
fn every_page_has_its_title_its_sections_and_examples_of_both_kinds() {
    let mut complaints = Vec::new();
    for (rule, page) in pages() {
        let mut complain = |text: String| complaints.push(format!("rules/{}/README.md: {text}", rule.slug));
        if page.title != format!("{} {}", rule.id, rule.slug) {
            complain(format!("the title is {:?}", page.title));
        }
        if page.sections != SECTIONS {
            complain(format!("the sections are {:?}", page.sections));
        }
        for role in [Role::Flagged, Role::Clean] {
            if !page.examples.iter().any(|example| example.role == role) {
                complain(format!("there is no {role:?} example"));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_python_example_is_flagged_or_clean_as_its_page_says() {
    let mut complaints = Vec::new();
    let mut run = 0;
    for (rule, mut page) in pages() {
        page.examples.retain(|example| matches!(example.content, Content::Tree { .. }));
        complaints.extend(page::check(&rule.id, &page, &mut |content| {
            let Content::Tree { files, profile } = content else { return Err("it is no tree".to_owned()) };
            run += 1;
            Ok(lint_with_kernels(files.iter().cloned().collect(), profile).into_iter().collect())
        }));
    }
    assert!(run > 15, "only {run} examples were run");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Tables of a profile are examples whose sources the page describes in words, so here they only have to be valid.
#[test]
fn every_profile_example_is_a_valid_profile() {
    let mut complaints = Vec::new();
    for (rule, page) in pages() {
        for example in &page.examples {
            let Content::Profile(tables) = &example.content else { continue };
            let text = format!("{HEAD}\n{tables}{FAMILY}");
            let input = Input { file: FileId(0), name: "rlk-lint.toml", text: &text, paths: &[] };
            let mut pins = |_: &PinsRef| Ok(PINS.to_owned());
            if let Err(error) = Profile::parse(&input, &mut pins) {
                complaints.push(format!("rules/{}/README.md:{}: {:?}", rule.slug, example.line, miette::Report::new(error)));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_tree_is_flagged_on_its_marked_lines_and_on_no_other() {
    let mut complaints = Vec::new();
    let mut marked = 0;
    for rule in RULES.iter() {
        let folder = root().join("fixtures/rules").join(rule.slug);
        let Ok(cases) = std::fs::read_dir(&folder) else { continue };
        let mut cases: Vec<_> = cases.map(|case| case.unwrap().path()).collect();
        cases.sort();
        for case in cases {
            let mut files = tree(&case);
            let profile = files.remove("profile.toml").unwrap_or_default();
            let expected: BTreeSet<(String, u32)> =
                markers(&files).into_iter().filter(|(_, directives)| directives.contains(&rule.id)).map(|(place, _)| place).collect();
            marked += expected.len();
            let found = lint_with_kernels(files, &profile).into_iter().filter(|(id, _, _)| *id == rule.id);
            let found: BTreeSet<(String, u32)> = found.map(|(_, path, line)| (path, line)).collect();
            let name = case.strip_prefix(root()).unwrap().display().to_string();
            for (path, line) in expected.difference(&found) {
                complaints.push(format!("{name}/{path}:{line}: {} is not found", rule.id));
            }
            for (path, line) in found.difference(&expected) {
                complaints.push(format!("{name}/{path}:{line}: {} is found and not marked", rule.id));
            }
        }
    }
    assert!(marked > 20, "only {marked} lines are marked");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_rule_has_its_check_in_order_of_id() {
    // The findings of these come from ignore comments, from comparisons with an earlier run, or from compiled code.
    let elsewhere = [
        "suppression-without-reason",
        "unused-suppression",
        "stale-baseline-entry",
        "changed-route",
        "foreign-processor",
        "matrix-instruction",
        "operand-layout",
        "pinned-constant",
        "resource-budget",
        "compile-setting",
        "incomplete-schedule",
        "cache-contradiction",
        "code-differs",
    ];
    let checks: Vec<&str> = CHECKS.iter().map(|(slug, _)| *slug).collect();
    let wanted: Vec<&str> = SLUGS.iter().copied().filter(|slug| !elsewhere.contains(slug)).collect();
    assert_eq!(checks, wanted);
    assert_eq!(RULES.iter().map(|rule| rule.slug).collect::<Vec<_>>(), SLUGS);
}

/// Cases of `fixtures/rules/anti-patterns.md`: entry, what is expected, file.
fn cases() -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string(root().join("fixtures/rules/anti-patterns.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| ") && line.contains('`')).map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [entry, kind, _, expected, file] = cells[..] else { panic!("{line}") };
        assert_eq!(kind == "F", expected == "nothing" || expected.starts_with("not "), "{line}");
        (entry.to_owned(), expected.to_owned(), file.trim_matches('`').to_owned())
    });
    rows.collect()
}

#[test]
fn every_case_of_the_contract_is_flagged_by_its_rule_and_every_look_alike_by_none() {
    let mut complaints = Vec::new();
    let mut trees: BTreeMap<String, Vec<(String, String, String)>> = BTreeMap::new();
    let mut rows = BTreeSet::new();
    for (entry, expected, file) in cases() {
        assert!(rows.insert(entry.clone()), "{entry} stands twice in the table");
        let mut parts = file.splitn(3, '/');
        let (slug, case, path) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        trees.entry(format!("{slug}/{case}")).or_default().push((entry, expected, path.to_owned()));
    }
    assert!(rows.len() > 80, "only {} cases", rows.len());
    // A line that claims to be a case has a row.
    for rule in RULES.iter() {
        for (path, text) in tree_or_nothing(&root().join("fixtures/rules").join(rule.slug)) {
            for (_, directives) in markers(&BTreeMap::from([(path.clone(), text)])) {
                for entry in directives.iter().filter_map(|directive| directive.strip_prefix("entry ")) {
                    if !rows.contains(entry) {
                        complaints.push(format!("{}/{path}: {entry} has no row", rule.slug));
                    }
                }
            }
        }
    }
    for (case, entries) in trees {
        let mut files = tree(&root().join("fixtures/rules").join(&case));
        let profile = files.remove("profile.toml").unwrap_or_default();
        let lines = markers(&files);
        let found = lint_with_kernels(files, &profile);
        for (entry, expected, path) in entries {
            let directive = format!("entry {entry}");
            let places: Vec<u32> = lines
                .iter()
                .filter(|((of, _), directives)| *of == path && directives.contains(&directive))
                .map(|((_, line), _)| *line)
                .collect();
            let [line] = places[..] else {
                complaints.push(format!("{case}/{path}: {} lines are {entry}", places.len()));
                continue;
            };
            let here: BTreeSet<&str> = found
                .iter()
                .filter(|(id, of, at)| *of == path && *at == line && ["RLK3", "RLK4", "RLK5"].iter().any(|family| id.starts_with(family)))
                .map(|(id, _, _)| id.as_str())
                .collect();
            let right = match expected.strip_prefix("not ") {
                Some(rule) => !here.contains(rule),
                None if expected == "nothing" => here.is_empty(),
                None => here.contains(expected.as_str()),
            };
            if !right {
                complaints.push(format!("{case}/{path}:{line}: {entry} expects {expected}, and there is {here:?}"));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

fn tree_or_nothing(folder: &std::path::Path) -> BTreeMap<String, String> {
    if folder.is_dir() { tree(folder) } else { BTreeMap::new() }
}
