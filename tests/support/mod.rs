//! Trees of fixtures, expectation markers, and analyses of small trees.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rlk_lint::run::Loaded;
use rlk_lint::run::lint::{self, Judging, Linted, Request};
use rlk_lint::values::{EdgeKind, Engine, Target};

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Files below a folder, by path relative to it.
pub fn tree(folder: &Path) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(&at).unwrap_or_else(|error| panic!("{}: {error}", at.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                let inside = path.strip_prefix(folder).unwrap().to_string_lossy().replace('\\', "/");
                out.insert(inside, text);
            }
        }
    }
    out
}

/// `path:line -> directives` of every `#!` marker.
pub fn markers(files: &BTreeMap<String, String>) -> BTreeMap<(String, u32), Vec<String>> {
    let mut out: BTreeMap<(String, u32), Vec<String>> = BTreeMap::new();
    for (path, text) in files {
        for (at, line) in text.lines().enumerate() {
            if let Some((_, marker)) = line.rsplit_once("#! ") {
                let directives = marker.split(';').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect();
                out.insert((path.clone(), u32::try_from(at + 1).unwrap()), directives);
            }
        }
    }
    out
}

pub const HEAD: &str = r#"schema = "rlk-lint/profile/v1"

[platform]
backend = "rocm"
arch = "gfx942"

[platform.known]
"torch.version.hip" = { present = true }
"#;

/// A folder on disk with some files.
pub fn write_tree(files: &BTreeMap<String, String>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let full = folder.path().join(path);
        std::fs::create_dir_all(full.parent().unwrap()).unwrap();
        std::fs::write(full, text).unwrap();
    }
    folder
}

/// Lints a tree as one plain folder under a profile text with one source `tree` at `src`.
pub fn lint_tree(files: &BTreeMap<String, String>, profile: &str) -> Linted {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let full = folder.path().join("src").join(path);
        std::fs::create_dir_all(full.parent().unwrap()).unwrap();
        std::fs::write(full, text).unwrap();
    }
    std::fs::create_dir_all(folder.path().join("src")).unwrap();
    let opened = lint::open_text(profile, "rlk-lint.toml", folder.path().to_path_buf(), &Request::default());
    let opened = opened.unwrap_or_else(|error| panic!("{:?}", miette::Report::new(error)));
    let judging = Judging { fail_on: None, wanted: &|_| true, category: None };
    lint::lint(opened, &judging, 1).unwrap()
}

/// Makes a folder a repository whose first commit holds everything in it; gives the ids of the commit and of its tree.
pub fn commit(folder: &Path) -> (String, String) {
    let repository = git2::Repository::init(folder).unwrap();
    let mut index = repository.index().unwrap();
    index.add_all(["*"], git2::IndexAddOption::DEFAULT, None).unwrap();
    index.write().unwrap();
    let tree = repository.find_tree(index.write_tree().unwrap()).unwrap();
    let author = git2::Signature::new("x", "x@example.invalid", &git2::Time::new(0, 0)).unwrap();
    let id = repository.commit(Some("HEAD"), &author, &author, "base", &tree, &[]).unwrap();
    (id.to_string(), tree.id().to_string())
}

/// Lints a tree, with its profile in it, against another tree that was committed before.
pub fn lint_against(before: &BTreeMap<String, String>, old: &str, now: &BTreeMap<String, String>, profile: &str) -> Linted {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("src");
    let write = |files: &BTreeMap<String, String>, profile: &str| {
        for (path, text) in files {
            let full = at.join(path);
            std::fs::create_dir_all(full.parent().unwrap()).unwrap();
            std::fs::write(full, text).unwrap();
        }
        std::fs::write(at.join("rlk-lint.toml"), profile.replace("path = \"src\"", "path = \".\"")).unwrap();
    };
    write(before, old);
    commit(&at);
    write(now, profile);
    let request = Request { profile: Some(at.join("rlk-lint.toml")), diff_base: Some("HEAD".to_owned()), ..Request::default() };
    let opened = lint::open(&request).unwrap_or_else(|error| panic!("{:?}", miette::Report::new(error)));
    let judging = Judging { fail_on: None, wanted: &|_| true, category: None };
    lint::lint_against(opened, &request, "HEAD", &judging).unwrap_or_else(|error| panic!("{:?}", miette::Report::new(error)))
}

/// `(rule, path, line)` of every finding.
pub fn findings(linted: &Linted) -> BTreeSet<(String, String, u32)> {
    let rows = linted.report.findings.iter().map(|finding| {
        let file = linted.files.get(finding.primary.file);
        (finding.rule.id.clone(), file.path.to_string(), file.line_of(finding.primary.start))
    });
    rows.collect()
}

pub const SOURCE: &str = "\n[[source]]\nid = \"tree\"\npath = \"src\"\nroots = [\".\"]\nrole = \"kernel\"\nmain = true\n";

/// What the calls that start on each line reach inside the program: `path:line -> names`, and backward owners.
pub struct Calls {
    pub targets: BTreeMap<(String, u32), BTreeSet<String>>,
    pub backward: BTreeMap<(String, u32), BTreeSet<String>>,
    pub runs: BTreeMap<(String, u32), bool>,
    /// Why calls stay unresolved.
    pub untraced: BTreeMap<(String, u32), BTreeSet<&'static str>>,
}

impl Calls {
    /// Takes over the lines of some files from another run.
    pub fn extend(&mut self, other: Self, paths: &[String]) {
        let ours = |key: &(String, u32)| paths.contains(&key.0);
        self.targets.extend(other.targets.into_iter().filter(|(key, _)| ours(key)));
        self.backward.extend(other.backward.into_iter().filter(|(key, _)| ours(key)));
        self.runs.extend(other.runs.into_iter().filter(|(key, _)| ours(key)));
        self.untraced.extend(other.untraced.into_iter().filter(|(key, _)| ours(key)));
    }
}

pub fn calls(loaded: &Loaded, engine: &Engine<'_>, native: &str) -> Calls {
    let program = &loaded.program;
    let mut out = Calls { targets: BTreeMap::new(), backward: BTreeMap::new(), runs: BTreeMap::new(), untraced: BTreeMap::new() };
    for edge in &engine.edges {
        let scope = engine.scope_of(edge.caller);
        let span = program.span(scope, program.scope(scope).ops[edge.op as usize].range);
        let file = loaded.files.get(span.file);
        let key = (file.path.to_string(), file.line_of(span.start));
        let name = match edge.target {
            Target::Scope(scope) | Target::Class(scope) => program.qualified(scope),
            Target::External(name) if engine.text(name).starts_with(native) && !native.is_empty() => engine.text(name).to_owned(),
            _ => continue,
        };
        // What runs without being written as a call is not listed.
        if matches!(edge.kind, EdgeKind::LazyExport | EdgeKind::Property) {
            continue;
        }
        if edge.kind == EdgeKind::AutogradBackward {
            out.backward.entry(key).or_default().insert(name);
        } else {
            out.targets.entry(key).or_default().insert(name);
        }
    }
    for unresolved in &engine.unresolved {
        let scope = engine.scope_of(unresolved.caller);
        let span = program.span(scope, program.scope(scope).ops[unresolved.op as usize].range);
        let file = loaded.files.get(span.file);
        out.untraced.entry((file.path.to_string(), file.line_of(span.start))).or_default().insert(unresolved.reason.key());
    }
    for scope in engine.entered_scopes() {
        for (at, op) in program.scope(scope).ops.iter().enumerate() {
            if matches!(op.kind, rlk_lint::syntax::OpKind::Call { .. }) {
                let span = program.span(scope, op.range);
                let file = loaded.files.get(span.file);
                let key = (file.path.to_string(), file.line_of(span.start));
                let runs = engine.copies_of(scope).iter().any(|inst| engine.runs(*inst, u32::try_from(at).unwrap()));
                *out.runs.entry(key).or_default() |= runs;
            }
        }
    }
    out
}

/// What is wrong with the calls of a tree, given its markers.
pub fn compare(markers: &BTreeMap<(String, u32), Vec<String>>, calls: &Calls) -> (usize, Vec<String>) {
    let mut checked = 0;
    let mut wrong = Vec::new();
    let none = BTreeSet::new();
    let names = |text: &str| -> BTreeSet<String> { text.split('|').map(|name| name.trim().to_owned()).collect() };
    for (key, directives) in markers {
        let place = format!("{}:{}", key.0, key.1);
        let got = calls.targets.get(key).unwrap_or(&none);
        for directive in directives {
            let (word, rest) = directive.split_once(' ').unwrap_or((directive, ""));
            checked += 1;
            match word {
                "calls" => {
                    let want = names(rest);
                    if *got != want {
                        wrong.push(format!("{place}: calls {got:?}, expected {want:?}"));
                    }
                }
                "never" => {
                    for name in names(rest) {
                        if got.contains(&name) {
                            wrong.push(format!("{place}: calls {name}, which is the wrong answer"));
                        }
                    }
                }
                "backward" => {
                    let got = calls.backward.get(key).unwrap_or(&none);
                    let want = names(rest);
                    if *got != want {
                        wrong.push(format!("{place}: backward {got:?}, expected {want:?}"));
                    }
                }
                "dead" => {
                    if calls.runs.get(key).copied().unwrap_or(false) {
                        wrong.push(format!("{place}: runs, expected dead"));
                    }
                }
                "untraced" => {
                    let other = directives.iter().any(|directive| directive.starts_with("calls "));
                    let reasons = calls.untraced.get(key).cloned().unwrap_or_default();
                    if (!got.is_empty() && !other) || !reasons.contains(rest) {
                        wrong.push(format!("{place}: calls {got:?}, untraced {reasons:?}, expected untraced {rest}"));
                    }
                }
                _ => checked -= 1,
            }
        }
    }
    (checked, wrong)
}

/// Expectations that do not hold yet are listed, so that no other can fail unseen; one that comes right must leave the list.
/// With `RLK_WRITE_OPEN` set the list is written instead.
pub fn only_listed(wrong: &[String], list: &str) {
    if std::env::var_os("RLK_WRITE_OPEN").is_some() {
        let text = std::fs::read_to_string(root().join(list)).unwrap();
        let head = text.lines().next().unwrap_or_default();
        let lines: Vec<&str> = std::iter::once(head).chain(wrong.iter().map(String::as_str)).collect();
        return std::fs::write(root().join(list), lines.join("\n") + "\n").unwrap();
    }
    let text = std::fs::read_to_string(root().join(list)).unwrap();
    let open: Vec<&str> = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    let news: Vec<&String> = wrong.iter().filter(|line| !open.contains(&line.as_str())).collect();
    let right: Vec<&&str> = open.iter().filter(|line| !wrong.iter().any(|known| known == **line)).collect();
    assert!(news.is_empty() && right.is_empty(), "newly wrong:\n{news:#?}\nnow right, remove from {list}:\n{right:#?}");
}
