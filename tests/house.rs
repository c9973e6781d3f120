//! The house: what lies where, and who may depend on whom.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rlk_lint::catalog::{RULES, SLUGS};

/// Modules in order; each uses only those before it.
const ORDER: [&str; 12] =
    ["text", "catalog", "findings", "profile", "sources", "syntax", "names", "values", "routes", "stage0", "rules", "run"];

/// Modules beside the order, with all that they may use.
const BESIDE: [(&str, &[&str]); 3] = [
    ("render", &["text", "catalog", "findings", "stage0"]),
    ("cli", &["catalog"]),
    ("probe", &["text", "catalog", "findings", "profile", "stage0"]),
];

/// The composer also uses what stands beside the order.
const COMPOSER: &str = "run";

/// Rules whose findings arise in a module of the order instead of in a check, with the file that makes them.
const MADE_ELSEWHERE: &[(&str, &str)] = &[
    ("suppression-without-reason", "src/findings/suppress.rs"),
    ("unused-suppression", "src/findings/suppress.rs"),
    ("stale-baseline-entry", "src/run/baseline.rs"),
    ("changed-route", "src/run/changes.rs"),
    ("foreign-processor", "src/probe/checks.rs"),
    ("matrix-instruction", "src/probe/checks.rs"),
    ("operand-layout", "src/probe/checks.rs"),
    ("pinned-constant", "src/probe/checks.rs"),
    ("resource-budget", "src/probe/checks.rs"),
    ("compile-setting", "src/probe/checks.rs"),
    ("incomplete-schedule", "src/probe/checks.rs"),
    ("cache-contradiction", "src/probe/checks.rs"),
    ("code-differs", "src/probe/checks.rs"),
];

/// Rules without a folder of trees: what they flag is a source's revision, patch or working tree, or compiled code, and not the text of a file, or a file that
/// no Python tool of the house could hold still. Each is tested where its facts arise.
const WITHOUT_TREES: &[&str] = &[
    "unpinned-source",
    "pin-mismatch",
    "dirty-tree",
    "patch-mismatch",
    "syntax-gap",
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

/// Lines of the longest file.
const LONGEST_FILE: usize = 700;

/// Entries of the top level that must be there.
const REQUIRED: [&str; 7] = ["Cargo.toml", "README.md", "fixtures", "rules", "sarif", "src", "tests"];

/// Entries that may be there besides; those that start with a dot are tool configurations.
const ALLOWED: [&str; 7] = ["Cargo.lock", "CHANGELOG.md", "CONTRIBUTING.md", "action.yml", "benches", "target", "LICENSE"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names in a folder, sorted; none if there is no such folder.
fn entries(folder: &Path) -> BTreeSet<String> {
    let Ok(read) = std::fs::read_dir(folder) else { return BTreeSet::new() };
    read.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Paths of all Rust files below a folder of the root, relative to the root.
fn rust_files(folder: &str) -> Vec<String> {
    let mut open = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(at) = open.pop() {
        for name in entries(&root().join(&at)) {
            let path = format!("{at}/{name}");
            if root().join(&path).is_dir() {
                open.push(path);
            } else if name.ends_with(".rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Rust text without comments, strings and characters, so that only code is left; line ends stay.
fn code_of(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let at = |index: usize| chars.get(index).copied().unwrap_or('\0');
    let mut out = String::with_capacity(text.len());
    let mut i = 0;
    while i < chars.len() {
        let start = i;
        match (at(i), at(i + 1)) {
            ('/', '/') => {
                while i < chars.len() && at(i) != '\n' {
                    i += 1;
                }
            }
            ('/', '*') => {
                i += 2;
                while i < chars.len() && (at(i), at(i + 1)) != ('*', '/') {
                    i += 1;
                }
                i += 2;
            }
            ('r', '"' | '#') if i == 0 || !(at(i - 1).is_alphanumeric() || at(i - 1) == '_') => {
                let hashes = (i + 1..).take_while(|index| at(*index) == '#').count();
                if at(i + 1 + hashes) == '"' {
                    i += 2 + hashes;
                    while i < chars.len() && !(at(i) == '"' && (1..=hashes).all(|n| at(i + n) == '#')) {
                        i += 1;
                    }
                    i += 1 + hashes;
                } else {
                    out.push('r');
                    i += 1;
                    continue;
                }
            }
            ('"', _) => {
                i += 1;
                while i < chars.len() && at(i) != '"' {
                    i += if at(i) == '\\' { 2 } else { 1 };
                }
                i += 1;
            }
            ('\'', '\\') => {
                i += 3;
                while i < chars.len() && at(i) != '\'' {
                    i += 1;
                }
                i += 1;
            }
            ('\'', _) if at(i + 2) == '\'' => i += 3,
            (other, _) => {
                out.push(other);
                i += 1;
                continue;
            }
        }
        out.extend(chars[start..i.min(chars.len())].iter().filter(|c| **c == '\n'));
        out.push(' ');
    }
    out
}

/// First names of the paths that follow `crate::` in code, with the line of each.
fn crate_paths(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, mark) in code.match_indices("crate::") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let line = code[..at].lines().count().max(1);
        let rest = code[at + mark.len()..].trim_start();
        let name = |text: &str| text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
        match rest.strip_prefix('{') {
            None => found.push((line, name(rest))),
            Some(group) => {
                let mut depth = 0;
                let mut item = true;
                for (index, c) in group.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => item = true,
                        _ if item && !c.is_whitespace() => {
                            found.push((line, name(&group[index..])));
                            item = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    found
}

/// Module of the top level that a file of `src` belongs to.
fn module_of(path: &str) -> String {
    let inside = path.strip_prefix("src/").unwrap_or(path);
    inside.split('/').next().unwrap_or("").trim_end_matches(".rs").to_owned()
}

/// Why `from` may not use `to`; `None` if it may.
fn refusal(from: &str, to: &str) -> Option<String> {
    let place = |name: &str| ORDER.iter().position(|module| *module == name);
    let beside = |name: &str| BESIDE.iter().find(|(module, _)| *module == name);
    if from == to || from == "main" || from == "lib" || (from == COMPOSER && beside(to).is_some()) {
        return None;
    }
    if place(to).is_none() && beside(to).is_none() {
        return Some(format!("{to} is not a module of the house"));
    }
    match (beside(from), place(from), place(to)) {
        (Some((_, may)), _, _) if may.contains(&to) => None,
        (Some((_, may)), _, _) => Some(format!("{from} sees only {}", may.join(", "))),
        (None, None, _) => Some(format!("{from} has no place in the house")),
        (None, Some(own), Some(other)) if other < own => None,
        (None, Some(_), Some(_)) => Some(format!("{to} does not stand before {from}")),
        (None, Some(_), None) => Some(format!("{to} stands beside the order, and only {COMPOSER} and main may use it")),
    }
}

#[test]
fn each_module_uses_only_those_before_it() {
    let mut complaints = Vec::new();
    let mut uses = 0;
    for path in rust_files("src") {
        for (line, to) in crate_paths(&code_of(&read(&root().join(&path)))) {
            uses += 1;
            if let Some(why) = refusal(&module_of(&path), &to) {
                complaints.push(format!("{path}:{line}: {why}"));
            }
        }
    }
    assert!(uses > 50, "only {uses} uses were seen: the test is broken");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_module_of_the_library_has_a_place() {
    let lib = code_of(&read(&root().join("src/lib.rs")));
    let declared = lib.lines().filter_map(|line| line.trim().trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'));
    let strangers: Vec<&str> =
        declared.filter(|module| !ORDER.contains(module) && !BESIDE.iter().any(|(beside, _)| beside == module)).collect();
    assert!(strangers.is_empty(), "no place in the house: {strangers:?}");
}

#[test]
fn the_reader_of_uses_is_not_fooled() {
    let code = code_of(concat!(
        "// crate::a\n/* crate::b */ use crate::{c::{x, y}, d,\n e as f};\n",
        "let s = \"crate::g\"; let r = r#\"crate::h \" \"#; let c = '\"'; crate::i::j();\n",
        "$crate::k; pub(crate) fn l() {} let m: &'a str = '\\''; mycrate::n; crate::o!();\n",
    ));
    let found: Vec<(usize, String)> = crate_paths(&code);
    let expected = [(1 + 1, "c"), (2, "d"), (2, "e"), (4, "i"), (5, "o")];
    assert_eq!(found, expected.map(|(line, name)| (line, name.to_owned())), "{code}");
    assert_eq!(refusal("values", "names"), None);
    assert_eq!(refusal("run", "render"), None);
    assert!(refusal("names", "values").is_some());
    assert!(refusal("render", "profile").is_some());
    assert!(refusal("rules", "render").is_some());
    assert!(refusal("probe", "routes").is_some());
    assert!(refusal("text", "utils").is_some());
}

#[test]
fn the_sets_of_rules_agree() {
    let slugs: BTreeSet<String> = SLUGS.iter().map(|slug| (*slug).to_owned()).collect();
    let mut complaints = Vec::new();
    let mut differ = |what: &str, expected: &BTreeSet<String>, found: &BTreeSet<String>| {
        for slug in expected.difference(found) {
            complaints.push(format!("{slug}: not in {what}"));
        }
        for slug in found.difference(expected) {
            complaints.push(format!("{slug}: in {what}, and not expected there"));
        }
    };
    let folders = entries(&root().join("rules"));
    differ("rules/", &slugs, &folders);
    let without = |list: &[&str]| slugs.iter().filter(|slug| !list.contains(&slug.as_str())).cloned().collect::<BTreeSet<_>>();
    let checks = entries(&root().join("src/rules"));
    let checks: BTreeSet<String> = checks
        .iter()
        .filter_map(|name| name.strip_suffix(".rs"))
        .filter(|name| !["mod", "tests"].contains(name))
        .map(|name| name.replace('_', "-"))
        .collect();
    differ("src/rules/*.rs", &without(&MADE_ELSEWHERE.iter().map(|(slug, _)| *slug).collect::<Vec<_>>()), &checks);
    let trees = entries(&root().join("fixtures/rules"));
    let trees: BTreeSet<String> = trees.into_iter().filter(|name| root().join("fixtures/rules").join(name).is_dir()).collect();
    differ("fixtures/rules/", &without(WITHOUT_TREES), &trees);
    for folder in &folders {
        let names = entries(&root().join("rules").join(folder));
        if names != BTreeSet::from(["README.md".to_owned(), "rule.toml".to_owned()]) {
            complaints.push(format!("rules/{folder}: holds {names:?}"));
        }
    }
    let by_slug: BTreeMap<&str, &str> = RULES.iter().map(|rule| (rule.slug, rule.id.as_str())).collect();
    for (slug, file) in MADE_ELSEWHERE {
        let id = by_slug.get(slug).copied().unwrap_or("no id");
        if !read(&root().join(file)).contains(&format!("\"{id}\"")) {
            complaints.push(format!("{slug}: {file} makes no finding of {id}"));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn the_top_level_holds_what_it_should() {
    let found = entries(&root());
    let known = |name: &str| {
        let bare = name.split(['-', '.']).next().unwrap_or("");
        name.starts_with('.') || REQUIRED.contains(&name) || ALLOWED.contains(&name) || bare == "LICENSE"
    };
    let strangers: Vec<&String> = found.iter().filter(|name| !known(name)).collect();
    let missing: Vec<&&str> = REQUIRED.iter().filter(|name| !found.contains(**name)).collect();
    assert!(strangers.is_empty() && missing.is_empty(), "not known: {strangers:?}; missing: {missing:?}");
}

#[test]
fn no_file_is_unfinished_or_too_long() {
    let mut complaints = Vec::new();
    for path in ["src", "tests", "benches"].into_iter().flat_map(rust_files) {
        let text = read(&root().join(&path));
        let lines = text.lines().count();
        if lines > LONGEST_FILE {
            complaints.push(format!("{path}: {lines} lines, more than {LONGEST_FILE}"));
        }
        let code = code_of(&text);
        for word in ["todo!", "unimplemented!", "dbg!"] {
            if code.contains(word) {
                complaints.push(format!("{path}: {word}"));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
