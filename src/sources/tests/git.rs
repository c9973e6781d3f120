//! Pinned sources: what is read, and what is said when it cannot be.

use super::*;
use crate::sources::{FileKind, SourceError};

#[test]
fn files_of_interest_come_in_byte_order() {
    let (_folder, at, ids) = repository(&entries(&[
        ("b.py", "x = 1\n"),
        ("a/z.py", "y = 2\n"),
        ("a-b.py", ""),
        ("a b/é ü.py", "z = 3\n"),
        ("run.sh", "echo\n"),
        ("picture.png", "\u{0}"),
        ("pyproject.toml", "[project]\n"),
    ]));
    let (loaded, files) = load_one(source("m", &at, Some(&ids.commit)));
    assert_eq!(paths(&loaded, &files), ["a b/é ü.py", "a-b.py", "a/z.py", "b.py", "pyproject.toml", "run.sh"]);
    assert_eq!(text(&loaded, &files, "a b/é ü.py"), "z = 3\n");
    assert_eq!(loaded.commit.as_deref(), Some(ids.commit.as_str()));
    assert_eq!(loaded.tree.as_deref(), Some(ids.tree.as_str()));
    assert_eq!(loaded.other_files, 1);
    assert!(loaded.gaps.is_empty() && !loaded.from_directory && !loaded.dirty());
    // Computed with `git hash-object` for `x = 1\n`.
    let b = loaded.files.iter().find(|file| &*files.get(file.file).path == "b.py").unwrap();
    assert_eq!((&*b.blob, b.kind), ("7d4290a117a4ddcc11daae7ea675841033830c8f", FileKind::Python));
}

#[test]
fn ids_of_a_written_repository_are_always_the_same() {
    let (_one, _, first) = repository(&entries(&[("a.py", "x = 1\n")]));
    let (_two, _, second) = repository(&entries(&[("a.py", "x = 1\n")]));
    assert_eq!(first, second);
}

#[test]
fn a_missing_repository_is_a_gap_and_the_others_load() {
    let (_folder, at, ids) = repository(&entries(&[("a.py", "x = 1\n")]));
    let mut files = Files::default();
    let absent = source("gone", Path::new("/nonexistent/somewhere"), Some(&ids.commit));
    let options = LoadOptions { allow_missing: true, ..LoadOptions::default() };
    let loaded = load(&profile(vec![absent, source("m", &at, Some(&ids.commit))]), &options, &mut files).unwrap();
    assert_eq!(gaps(&loaded[0]), [(GapKind::SourceMissing, "")]);
    assert!(loaded[0].gaps[0].allowed && !loaded[0].gaps[0].cause.contains("nonexistent"));
    assert!(loaded[0].gaps[0].next.contains("--source gone=PATH"));
    assert_eq!(paths(&loaded[1], &files), ["a.py"]);
    let options = LoadOptions { paths: [("typo".to_owned(), at)].into(), ..LoadOptions::default() };
    assert!(matches!(load(&profile(vec![]), &options, &mut files), Err(SourceError::UnknownSource { .. })));
}
