//! `[[evidence]]`.

use super::*;

const ITEM: &str = "[[evidence]]\nid = \"e\"\nsource = \"k\"\npath = \"r.md\"\n";

#[test]
fn evidence_is_read_in_order() {
    let more = "supports = \"a.py\"\n[[evidence]]\nid = \"f\"\nsource = \"k\"\npath = \"t.py\"\nrun = \"t.txt\"\n";
    let profile = parse(&format!("{LEAST}{ITEM}{more}")).unwrap();
    let told: Vec<_> = profile
        .evidence
        .iter()
        .map(|item| (item.id.as_str(), item.source.as_str(), item.path.as_str(), item.supports.as_deref(), item.run.as_deref()))
        .collect();
    assert_eq!(told, [("e", "k", "r.md", Some("a.py"), None), ("f", "k", "t.py", None, Some("t.txt"))]);
}

#[test]
fn mistakes_in_evidence_are_shown_in_place() {
    assert_eq!(
        mistakes_after("[[evidence]]\nid = \"e\"\nsource = \"x\"\npath = \"../r.md\"\nblob = \"1\"\n"),
        [
            "12: no source is called `x` (did you mean `k`?)",
            "13: `../r.md` leaves its source (write a path from the root of the source, with forward slashes and without `..`)",
            "14: unknown key `blob` in [[evidence]] (valid keys: `id`, `source`, `path`, `supports`, `run`)",
        ]
    );
    assert_eq!(
        mistakes_after(&format!("{ITEM}{ITEM}")),
        [
            "15 & 11: evidence `e` is declared twice (give one of them another id)",
            "17 & 13: evidence `r.md` is named twice (remove one of the two)"
        ]
    );
}
