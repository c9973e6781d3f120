//! The code shapes of `fixtures/shapes`, each resolved alone: the right target, and not the wrong one.

use std::collections::BTreeMap;
use std::path::Path;

use rlk_lint::profile::PathClass;
use rlk_lint::run::lint::{self, Request};
use rlk_lint::run::{Loaded, assumptions, counts, settle};

use crate::support::{HEAD, SOURCE, calls, commit, compare, markers, only_listed, root, tree, write_tree};

/// Directives by path and line.
type Marked = BTreeMap<(String, u32), Vec<String>>;

fn profile_of(fragment: Option<&String>) -> String {
    let mut text = HEAD.to_owned();
    text.push_str(SOURCE);
    let mut fragment = fragment.cloned().unwrap_or_default();
    // A fragment may add to `[platform.known]`, which the head has already.
    if let Some(rest) = fragment.strip_prefix("[platform.known]\n") {
        text = text.replace("{ present = true }\n", &format!("{{ present = true }}\n{rest}\n"));
        fragment.clear();
    }
    text.push('\n');
    text.push_str(&fragment);
    text
}

/// What is wrong with a tree of sources: the number of markers, and the lines that are not as theirs say.
fn resolve(name: &str, profile: &str, folder: &Path, request: &Request, marked: impl Fn(&Loaded) -> Marked) -> (usize, Vec<String>) {
    let opened = lint::open_text(profile, "rlk-lint.toml", folder.to_path_buf(), request);
    let opened = opened.unwrap_or_else(|error| panic!("{name}: {:?}", miette::Report::new(error)));
    let (profile, _, loaded) = lint::load(opened, 1).unwrap();
    assert!(loaded.gaps.is_empty(), "{name}: {:#?}", loaded.gaps);
    let assumptions = assumptions(&profile, &loaded);
    let (production, rest): (Vec<_>, Vec<_>) = loaded.program.module_ids().partition(|id| counts(loaded.class_of(*id)));
    let mut engine = settle(&profile, &loaded, &assumptions, &production, |_| {});
    let mut found = calls(&loaded, &engine, "");
    // Benchmarks run on top, then tests, which patch; what they do to other code is not taken.
    for class in [PathClass::Benchmark, PathClass::Example, PathClass::Documentation, PathClass::Test] {
        let modules: Vec<_> = rest.iter().copied().filter(|id| loaded.class_of(*id) == class).collect();
        if class == PathClass::Test {
            engine.contain_patches();
        }
        engine.run_modules(&modules);
        engine.run_uncalled(|module| modules.contains(&module));
        let own: Vec<String> = modules.iter().map(|id| loaded.program.module(*id).path.clone()).collect();
        found.extend(calls(&loaded, &engine, ""), &own);
    }
    let (checked, wrong) = compare(&marked(&loaded), &found);
    (checked, wrong.into_iter().map(|line| format!("{name}/{line}")).collect())
}

fn shape(name: &str) -> (usize, Vec<String>) {
    let folder = root().join("fixtures/shapes").join(name);
    let mut files = tree(&folder);
    let profile = profile_of(files.get("profile.toml"));
    // A patch is marked on the lines of the file that it makes.
    files.retain(|path, _| !path.ends_with(".patch"));
    let request = Request { sources: vec![("tree".to_owned(), folder.clone())], ..Request::default() };
    let (mut checked, mut wrong) = resolve(name, &profile, &folder, &request, |_| markers(&files));
    if let Some(sources) = files.get("sources.json") {
        let (count, lines) = patched(name, &folder, &files, sources);
        checked += count;
        wrong.extend(lines);
    }
    (checked, wrong)
}

/// The same tree with its companions as repositories at a commit, with the patches that `sources.json` pins.
fn patched(name: &str, folder: &Path, files: &BTreeMap<String, String>, sources: &str) -> (usize, Vec<String>) {
    let work = tempfile::tempdir().unwrap();
    let json: serde_json::Value = serde_json::from_str(sources).unwrap();
    let mut profile = profile_of(files.get("profile.toml"));
    let mut own = files.clone();
    for (id, source) in json["sources"].as_object().unwrap() {
        let text = |key: &str| source[key].as_str().unwrap();
        let inside = format!("{id}/");
        let theirs: BTreeMap<_, _> = own.extract_if(.., |path, _| path.starts_with(&inside)).collect();
        let repository = write_tree(&theirs);
        let (commit, tree) = commit(repository.path());
        assert_eq!(tree, text("base_tree"), "{name}: the tree that the patch is made for");
        std::fs::rename(repository.keep(), work.path().join(id)).unwrap();
        std::fs::copy(folder.join(text("patch")), work.path().join(text("patch"))).unwrap();
        profile.push_str(&format!(
            "\n[[source]]\nid = \"{id}\"\npath = \"{id}\"\ncommit = \"{commit}\"\nroots = [\".\"]\nrole = \"training\"\n\n\
             [source.patch]\npath = \"{}\"\nsha256 = \"{}\"\ntree = \"{}\"\n",
            text("patch"),
            text("patch_sha256"),
            text("tree")
        ));
    }
    own.retain(|path, _| path.ends_with(".py"));
    std::fs::rename(write_tree(&own).keep(), work.path().join("src")).unwrap();
    resolve(name, &profile, work.path(), &Request::default(), |loaded| {
        let texts = loaded.files.iter().map(|(_, file)| (file.path.to_string(), file.text.to_string()));
        markers(&texts.filter(|(path, _)| path.ends_with(".py")).collect())
    })
}

#[test]
fn every_shape_resolves_as_its_markers_say() {
    let mut names: Vec<String> =
        std::fs::read_dir(root().join("fixtures/shapes")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names.len(), 27, "every shape P01 to P27 has its folder");
    let mut checked = 0;
    let mut wrong = Vec::new();
    for name in names {
        let (count, lines) = shape(&name);
        checked += count;
        wrong.extend(lines);
    }
    assert!(checked > 200, "{checked} markers only");
    // What is still resolved wrongly is listed, so that no other line can go wrong unseen, and a line that comes right must leave the list.
    only_listed(&wrong, "tests/data/shapes-open.txt");
}
