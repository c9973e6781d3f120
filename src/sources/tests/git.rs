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

/// The one problem of a source that could not be read.
fn problem(source: Source) -> SourceError {
    let (loaded, _) = load_one(source);
    assert_eq!(loaded.problems.len(), 1, "{:?}", loaded.problems);
    assert!(loaded.files.is_empty() && loaded.gaps.len() == 1);
    assert!(loaded.gaps[0].kind.is_fatal() && !loaded.gaps[0].next.is_empty());
    loaded.problems.into_iter().next().unwrap()
}

#[test]
fn an_abbreviated_commit_or_a_branch_is_refused_with_the_full_id() {
    let (_folder, at, ids) = repository(&entries(&[("a.py", "x = 1\n")]));
    for given in [&ids.commit[..8], "main", "refs/heads/main", &ids.commit.to_uppercase()] {
        let error = problem(source("m", &at, Some(given)));
        assert_eq!(error, SourceError::NotAFullCommit { id: "m".to_owned(), given: given.to_owned(), full: Some(ids.commit.clone()) });
        assert!(error.to_string().contains(&ids.commit) && error.next_step().contains(&ids.commit));
    }
    for given in ["", "nobody", ":/base", "HEAD^{/b}", "0123456"] {
        assert!(matches!(problem(source("m", &at, Some(given))), SourceError::NotAFullCommit { full: None, .. }));
    }
    let long = "a".repeat(64);
    assert!(matches!(problem(source("m", &at, Some(&long))), SourceError::UnsupportedFormat { .. }));
}

#[test]
fn an_unknown_commit_is_named_together_with_how_to_fetch_it() {
    let (_folder, at, ids) = repository(&entries(&[("a.py", "x = 1\n")]));
    let unknown = "0123456789abcdef0123456789abcdef01234567";
    let error = problem(source("m", &at, Some(unknown)));
    assert_eq!(error, SourceError::UnknownCommit { id: "m".to_owned(), commit: unknown.to_owned(), shallow: false });
    assert!(error.next_step().contains(&format!("git fetch origin {unknown}")));
    let error = problem(source("m", &at, Some(&ids.tree)));
    assert!(matches!(error, SourceError::NotACommit { kind, .. } if kind == "tree"));
    let (loaded, _) = load_one(Source { tree: Some("1".repeat(40)), ..source("m", &at, Some(&ids.commit)) });
    assert!(matches!(&loaded.problems[..], [error @ SourceError::TreeMismatch { .. }] if error.contradicts()));
    assert_eq!((gaps(&loaded), loaded.files.len()), (vec![(GapKind::PinUnsatisfied, "")], 1));
}

#[test]
fn a_tag_is_refused_with_the_commit_that_it_leads_to() {
    let (_folder, at, ids) = repository(&entries(&[("a.py", "x = 1\n")]));
    let repo = git2::Repository::open_bare(&at).unwrap();
    let object = repo.revparse_single("main").unwrap();
    let who = git2::Signature::new("t", "t@example.invalid", &git2::Time::new(0, 0)).unwrap();
    let tag = repo.tag("v1", &object, &who, "one", false).unwrap();
    let error = problem(source("m", &at, Some(&tag.to_string())));
    assert!(
        matches!(&error, SourceError::NotACommit { kind, peeled: Some(commit), .. } if kind == "tag" && *commit == ids.commit),
        "{error}"
    );
}

#[test]
fn a_shallow_clone_reads_what_it_has_and_names_what_it_lacks() {
    let (folder, at, ids) = repository(&entries(&[("a.py", "x = 1\n")]));
    let next = commit_on_top(&at, &entries(&[("a.py", "x = 2\n")]));
    let url = format!("file://{}", at.display());
    git_output(&at, &["clone", "--quiet", "--depth", "1", &url, "../shallow"]);
    let shallow = folder.path().join("shallow");
    let (loaded, files) = load_one(source("m", &shallow, Some(&next.commit)));
    assert_eq!(text(&loaded, &files, "a.py"), "x = 2\n");
    let error = problem(source("m", &shallow, Some(&ids.commit)));
    assert!(matches!(error, SourceError::UnknownCommit { shallow: true, .. }));
    assert!(error.next_step().contains("--depth 1"));
}

#[test]
fn unsupported_formats_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("x");
    std::fs::create_dir(&root).unwrap();
    git_output(&root, &["init", "--quiet", "--object-format=sha256", "sha"]);
    git_output(&root, &["init", "--quiet", "--ref-format=reftable", "ref"]);
    let commit = "0123456789abcdef0123456789abcdef01234567";
    for (name, says) in [("sha", "SHA-256"), ("ref", "reftable")] {
        let error = problem(source("m", &root.join(name), Some(commit)));
        assert!(matches!(&error, SourceError::UnsupportedFormat { format, .. } if format.contains(says)), "{error:?}");
    }
}

#[test]
fn plain_directories_and_bare_repositories_need_the_right_pin() {
    let (folder, at, ids) = repository(&entries(&[("a.py", "x = 1\n")]));
    assert!(matches!(problem(source("m", folder.path(), Some(&ids.commit))), SourceError::NotARepository { .. }));
    assert!(matches!(problem(source("m", &at, None)), SourceError::BareWithoutCommit { .. }));
    assert!(matches!(problem(Source { path: None, ..source("m", &at, None) }), SourceError::NoPath { .. }));
    // A bare repository without a configuration file, as some mirrors have it.
    std::fs::remove_file(at.join("config")).unwrap();
    let (loaded, files) = load_one(source("m", &at, Some(&ids.commit)));
    assert_eq!((paths(&loaded, &files), loaded.work_tree), (vec!["a.py".to_owned()], None));
}

#[cfg(unix)]
#[test]
fn the_repository_of_another_user_is_not_opened() {
    let (_folder, at, ids) = repository(&entries(&[("a.py", "x = 1\n")]));
    // Only root may give a folder away; others cannot make the situation.
    if std::os::unix::fs::chown(&at, Some(12_345), Some(12_345)).is_ok() {
        let error = problem(source("m", &at, Some(&ids.commit)));
        assert_eq!(error, SourceError::OtherOwner { id: "m".to_owned() });
        assert!(error.next_step().contains("safe.directory"));
    }
}

#[test]
fn a_pinned_source_is_read_from_its_commit_and_a_dirty_checkout_is_seen() {
    let (folder, at, ids) = repository(&entries(&[("a.py", "x = 1\n"), ("b.py", "b\n")]));
    git_output(&at, &["clone", "--quiet", ".", "../tree"]);
    let tree = folder.path().join("tree");
    let (loaded, _) = load_one(source("m", &tree, Some(&ids.commit)));
    assert!(!loaded.dirty());
    std::fs::write(tree.join("a.py"), "x = 'changed'\n").unwrap();
    std::fs::write(tree.join("untracked.py"), "").unwrap();
    git_output(&tree, &["rm", "--quiet", "b.py"]);
    let (loaded, files) = load_one(source("m", &tree, Some(&ids.commit)));
    assert_eq!((text(&loaded, &files, "a.py"), paths(&loaded, &files).len()), ("x = 1\n", 2));
    let work_tree = loaded.work_tree.unwrap();
    assert_eq!((work_tree.head, work_tree.changed), (Some(ids.commit.clone()), vec!["a.py".to_owned(), "b.py".to_owned()]));
    // Without a pin the checkout itself is read, and compared with its own commit.
    let (loaded, files) = load_one(source("m", &tree, None));
    assert_eq!(paths(&loaded, &files), ["a.py", "untracked.py"]);
    assert_eq!((text(&loaded, &files, "a.py"), loaded.dirty(), loaded.commit.is_none()), ("x = 'changed'\n", true, true));
}

#[test]
fn linked_work_trees_are_read_and_a_lost_main_repository_is_said() {
    let (folder, at, ids) = repository(&entries(&[("a.py", "x = 1\n")]));
    git_output(&at, &["worktree", "add", "--quiet", "../linked", "main"]);
    let linked = folder.path().join("linked");
    let (loaded, files) = load_one(source("m", &linked, Some(&ids.commit)));
    assert_eq!(paths(&loaded, &files), ["a.py"]);
    assert!(loaded.work_tree.is_some());
    std::fs::rename(&at, folder.path().join("moved.git")).unwrap();
    assert!(matches!(problem(source("m", &linked, Some(&ids.commit))), SourceError::Unreadable { cause, .. } if cause.contains("linked")));
}

#[test]
fn nothing_in_the_source_repository_changes_not_even_a_time_stamp() {
    fn state(at: &Path, into: &mut Vec<(PathBuf, std::time::SystemTime, u64)>) {
        let metadata = std::fs::symlink_metadata(at).unwrap();
        into.push((at.to_owned(), metadata.modified().unwrap(), metadata.len()));
        if metadata.is_dir() {
            for entry in std::fs::read_dir(at).unwrap() {
                state(&entry.unwrap().path(), into);
            }
        }
        into.sort();
    }
    let (folder, at, ids) = repository(&entries(&[("a.py", "x = 1\n"), ("b.py", "b\n")]));
    git_output(&at, &["gc", "--quiet"]);
    git_output(&at, &["clone", "--quiet", ".", "../tree"]);
    let patch = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n";
    std::fs::write(folder.path().join("the.patch"), patch).unwrap();
    // Older than now, so that the index's own times do not look racy; any write would move them.
    let (mut before, mut after) = (Vec::new(), Vec::new());
    state(folder.path(), &mut before);
    for path in [at, folder.path().join("tree")] {
        let mut pinned = source("m", &path, Some(&ids.commit));
        let pin = folder.path().join("the.patch").to_string_lossy().into_owned();
        pinned.patch = Some(crate::profile::PatchPin { path: pin, source: None, sha256: None, tree: None });
        let (loaded, files) = load_one(pinned);
        assert_eq!((text(&loaded, &files, "a.py"), loaded.problems), ("x = 2\n", vec![]));
    }
    load_one(source("m", &folder.path().join("tree"), None));
    state(folder.path(), &mut after);
    assert_eq!(before, after);
}

#[cfg(unix)]
#[test]
fn a_pipe_as_configuration_does_not_block() {
    let (_folder, at, _) = repository(&entries(&[("a.py", "x = 1\n")]));
    std::fs::remove_file(at.join("config")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(at.join("config")).status().unwrap().success());
    let opened = crate::sources::git::Git::open_within("m", &at, std::time::Duration::from_millis(200));
    assert!(matches!(opened, Err(SourceError::OpenTimeout { .. } | SourceError::Unreadable { .. })), "{opened:?}");
}

#[test]
fn one_text_can_be_read_at_any_commit() {
    let (_folder, at, ids) = repository(&entries(&[("a b.py", "x = 1\n")]));
    let next = commit_on_top(&at, &entries(&[("a b.py", "x = 2\n")]));
    let read = |commit: &str, path: &str, limit| crate::sources::read_text("m", &at, commit, path, limit);
    assert_eq!(read(&ids.commit, "a b.py", 100).unwrap(), "x = 1\n");
    assert_eq!(read(&next.commit, "a b.py", 100).unwrap(), "x = 2\n");
    assert!(read(&next.commit, "a b.py", 2).is_err() && read(&next.commit, "none.py", 100).is_err());
}
