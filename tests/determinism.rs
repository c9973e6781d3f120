//! The same input gives the same bytes, whatever the folder and the number of threads.

use rlk_lint::catalog::Level;
use rlk_lint::render::{Document, json, sarif};
use rlk_lint::routes::callgraph::of_paths;
use rlk_lint::run::lint::{self, Judging, Request};
use rlk_lint::sources::embedded;

/// JSON and SARIF of the companions, read from a folder whose name begins with `prefix`.
fn reports(prefix: &str, threads: usize) -> [String; 2] {
    let folder = tempfile::Builder::new().prefix(prefix).tempdir().unwrap();
    embedded::materialise(folder.path()).unwrap();
    let request = Request { threads, ..Request::default() };
    let profile = embedded::profile_text().unwrap();
    let opened = lint::open_text(profile, "rlk-lint.toml", folder.path().to_path_buf(), &request).unwrap_or_else(|_| panic!("profile"));
    let judging = Judging { fail_on: Some(Level::Warning), wanted: &|_| true, category: None };
    let linted = lint::lint(opened, &judging, threads).unwrap();
    let document = Document { report: &linted.report, files: &linted.files, info: &linted.info };
    let (mut one, mut two) = (Vec::new(), Vec::new());
    json::write(document, &mut one).unwrap();
    sarif::write(document, sarif::Options { show_suppressed: true, note: None }, &mut two).unwrap();
    let reports = [one, two].map(|bytes| String::from_utf8(bytes).unwrap());
    for report in &reports {
        assert!(report.len() > 1_000, "{report}");
        let place = folder.path().to_str().unwrap();
        assert!(!report.contains(place) && !report.contains(prefix), "the report holds the folder it was read from");
    }
    reports
}

#[test]
fn reports_depend_on_neither_threads_nor_folder() {
    let first = reports("first-place", 1);
    assert!(first == reports("second place", 2), "reports differ");
    for report in &first {
        let value: serde_json::Value = serde_json::from_str(report).unwrap();
        no_absolute_path(&value);
    }
}

fn no_absolute_path(value: &serde_json::Value) {
    match value {
        serde_json::Value::String(text) => {
            let local = ["/tmp", "/home", "/root", "/Users", "file:///", env!("CARGO_MANIFEST_DIR")];
            assert!(!local.iter().any(|start| text.contains(start)), "{text}");
            assert!(!text.starts_with('/') || text.starts_with("//"), "{text}");
        }
        serde_json::Value::Array(items) => items.iter().for_each(no_absolute_path),
        serde_json::Value::Object(fields) => fields.values().for_each(no_absolute_path),
        _ => {}
    }
}

#[test]
fn a_graph_does_not_depend_on_the_order_of_its_files() {
    let folder = crate::support::root().join("fixtures/companions/rl-kernel");
    let names = crate::support::tree(&folder).into_keys().filter(|path| path.ends_with(".py"));
    let mut paths: Vec<std::path::PathBuf> = names.map(|path| folder.join(path)).collect();
    assert!(paths.len() > 40, "{} files only", paths.len());
    let forwards = of_paths(&paths, 1).unwrap();
    paths.reverse();
    assert_eq!(of_paths(&paths, 2).unwrap(), forwards);
    paths.rotate_left(17);
    assert_eq!(of_paths(&paths, 1).unwrap(), forwards);
    assert!(forwards.values().map(std::collections::BTreeSet::len).sum::<usize>() > 300);
}
