//! The code shapes of `fixtures/shapes`, each resolved alone: the right target, and not the wrong one.

use rlk_lint::profile::PathClass;
use rlk_lint::run::lint::{self, Request};
use rlk_lint::run::{assumptions, counts, settle};

use crate::support::{HEAD, SOURCE, calls, compare, markers, only_listed, root, tree};

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

fn shape(name: &str) -> (usize, Vec<String>) {
    let folder = root().join("fixtures/shapes").join(name);
    let files = tree(&folder);
    let profile = profile_of(files.get("profile.toml"));
    let request = Request { sources: vec![("tree".to_owned(), folder)], ..Request::default() };
    let opened = lint::open_text(&profile, "rlk-lint.toml", root(), &request);
    let opened = opened.unwrap_or_else(|error| panic!("{name}: {:?}", miette::Report::new(error)));
    let (profile, _, loaded) = lint::load(opened, 1).unwrap();
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
    let (checked, wrong) = compare(&markers(&files), &found);
    (checked, wrong.into_iter().map(|line| format!("{name}/{line}")).collect())
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
