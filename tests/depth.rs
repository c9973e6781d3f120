//! Input that is deep or wide ends, and soon.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use rlk_lint::routes::callgraph::{CallGraph, of_paths};

use crate::support::write_tree;

fn graph(files: &BTreeMap<String, String>) -> CallGraph {
    let folder = write_tree(files);
    let start = Instant::now();
    let graph = of_paths(&[folder.path().to_path_buf()], 1).unwrap();
    assert!(start.elapsed() < Duration::from_secs(20), "took {:?}", start.elapsed());
    graph
}

fn one(text: String) -> CallGraph {
    graph(&BTreeMap::from([("deep.py".to_owned(), text)]))
}

#[test]
fn nested_calls_end() {
    let text = format!("def f(x=None):\n    return x\n\n\nf({}{})\n", "f(".repeat(5_000), ")".repeat(5_000));
    one(text);
}

#[test]
fn chained_attributes_end() {
    let text = format!("def f(x):\n    return x{}\n\n\nf(f)\n", ".a".repeat(3_000));
    let graph = one(text);
    assert!(graph["deep"].contains("deep.f"), "{graph:?}");
}

#[test]
fn many_bases_end() {
    let mut text = String::new();
    for at in 0..2_000 {
        write!(text, "class B{at}:\n    pass\n\n\n").unwrap();
    }
    let bases: Vec<String> = (0..2_000).map(|at| format!("B{at}")).collect();
    write!(text, "class C({}):\n    def m(self):\n        return 1\n\n\nC().m()\n", bases.join(", ")).unwrap();
    let graph = one(text);
    assert!(graph["deep"].contains("deep.C.m"), "{:?}", graph["deep"]);
}

#[test]
fn import_cycles_end() {
    let mut files = BTreeMap::new();
    for at in 0..500 {
        let next = (at + 1) % 500;
        files.insert(format!("m{at}.py"), format!("import m{next}\n\n\ndef f():\n    return m{next}.f()\n\n\nif m{next}:\n    f()\n"));
    }
    let graph = graph(&files);
    for at in 0..500 {
        let next = (at + 1) % 500;
        let callees = &graph[&format!("m{at}.f")];
        assert!(callees.contains(&format!("m{next}.f")), "m{at}.f: {callees:?}");
    }
}
