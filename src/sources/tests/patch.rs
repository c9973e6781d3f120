//! The applier against git: what `git diff` writes must lead from one tree to the other, for many shapes of change.

use super::*;
use crate::profile::PatchPin;
use crate::sources::SourceError;
use crate::sources::apply::apply;
use crate::sources::embedded::hex;
use crate::sources::git::Git;
use crate::sources::patch::parse;

type Tree = BTreeMap<String, CommitEntry>;

/// Applies `patch` to the tree of `base` and gives the resulting tree id.
fn applied(at: &Path, base: &CommitIds, patch: &[u8]) -> Result<String, SourceError> {
    let git = Git::open("m", at).unwrap();
    let listing = git.list(git.resolve(&base.commit).unwrap().tree).unwrap();
    let odb = git.odb().unwrap();
    let mut read = |_: &[u8], entry: &crate::sources::snapshot::Entry| Ok(odb.read(entry.id).unwrap().data().to_vec());
    apply("m", &parse("m", patch)?, &listing.snapshot, &mut read).map(|applied| applied.tree.to_string())
}

fn file(text: &str) -> CommitEntry {
    CommitEntry::File(text.as_bytes().to_vec())
}

fn lines(range: std::ops::Range<u32>) -> String {
    range.map(|line| format!("line {line}\n")).collect()
}

/// A tree with every kind of entry.
fn base() -> Tree {
    let mut tree = entries(&[
        ("long.py", &lines(0..120)),
        ("a b/sp ace.py", &lines(0..12)),
        ("é/ü.py", &lines(0..12)),
        ("tab\there.py", "x\n"),
        ("quote\"d.py", "x\n"),
        ("no_end.py", "one\ntwo"),
        ("empty.py", ""),
        ("crlf.py", "a\r\nb\r\nc\r\n"),
        ("pkg/a.py", &lines(0..30)),
        ("pkg-x.py", "1\n"),
        ("pkg.py", "2\n"),
        ("only/one.py", "3\n"),
    ]);
    tree.insert("run.sh".to_owned(), CommitEntry::Executable(lines(0..8).into_bytes()));
    tree.insert("link.py".to_owned(), CommitEntry::Link(b"long.py".to_vec()));
    tree
}

/// A change by name.
fn shapes() -> Vec<(&'static str, Tree)> {
    let mut all: Vec<(&'static str, Tree)> = Vec::new();
    let mut shape = |name, change: &dyn Fn(&mut Tree)| {
        let mut tree = base();
        change(&mut tree);
        all.push((name, tree));
    };
    let set = |tree: &mut Tree, path: &str, text: &str| drop(tree.insert(path.to_owned(), file(text)));
    shape("edit at start, middle and end", &|tree| {
        let text = lines(0..120).replace("line 0\n", "first\n").replace("line 60\n", "").replace("line 119\n", "line 119\nlast\n");
        set(tree, "long.py", &text);
    });
    shape("edit beside blanks and letters", &|tree| {
        set(tree, "a b/sp ace.py", &lines(1..13));
        set(tree, "é/ü.py", &lines(2..12));
        set(tree, "tab\there.py", "y\n");
        set(tree, "quote\"d.py", "y\n");
    });
    shape("missing line ends", &|tree| {
        set(tree, "no_end.py", "one\ntwo\n");
        set(tree, "pkg.py", "2");
        set(tree, "long.py", &format!("{}end", lines(0..120)));
    });
    shape("last line without end edited", &|tree| set(tree, "no_end.py", "one\nthree"));
    shape("carriage returns", &|tree| set(tree, "crlf.py", "a\r\nB\r\nc\n"));
    shape("create in new and old folders", &|tree| {
        set(tree, "new/deep/er.py", "x\n");
        set(tree, "pkg/b.py", "y");
        set(tree, "pkg/empty.py", "");
        set(tree, "sp ace/é.py", "z\n");
    });
    shape("delete, also the last of a folder and an empty file", &|tree| {
        for path in ["only/one.py", "empty.py", "no_end.py", "a b/sp ace.py", "link.py"] {
            tree.remove(path);
        }
    });
    shape("fill an empty file, empty a full one", &|tree| {
        set(tree, "empty.py", "now\n");
        set(tree, "pkg/a.py", "");
    });
    shape("modes", &|tree| {
        tree.insert("run.sh".to_owned(), file(&lines(0..8)));
        tree.insert("pkg.py".to_owned(), CommitEntry::Executable(b"2\n".to_vec()));
        tree.insert("pkg/a.py".to_owned(), CommitEntry::Executable(lines(0..31).into_bytes()));
        tree.insert("a b/sp ace.py".to_owned(), CommitEntry::Executable(lines(0..12).into_bytes()));
    });
    shape("edit an executable and a link", &|tree| {
        tree.insert("run.sh".to_owned(), CommitEntry::Executable(lines(1..8).into_bytes()));
        tree.insert("link.py".to_owned(), CommitEntry::Link(b"pkg.py".to_vec()));
        tree.insert("other.py".to_owned(), CommitEntry::Link(b"pkg/a.py".to_vec()));
    });
    shape("renames", &|tree| {
        let (long, script) = (tree.remove("long.py").unwrap(), tree.remove("run.sh").unwrap());
        tree.insert("sp ace/long é.py".to_owned(), long);
        tree.insert("bin/run".to_owned(), script);
        tree.remove("pkg/a.py");
        set(tree, "pkg/moved.py", &lines(0..30).replace("line 7\n", "seven\n"));
        tree.remove("a b/sp ace.py");
        set(tree, "plain.py", &lines(0..12));
    });
    shape("a file becomes a folder", &|tree| {
        tree.remove("pkg.py");
        set(tree, "pkg.py/inside.py", "unlike\n");
    });
    shape("lines that look like headers", &|tree| {
        set(tree, "long.py", &lines(0..120).replace("line 50\n", "-- a/x\n++ b/x\n@@ -1 +1 @@\ndiff --git a/x b/x\n\\ x\n"));
        set(tree, "pkg.py", "- \n");
    });
    all
}

#[test]
fn what_git_writes_leads_to_the_tree_that_git_has() {
    let (_folder, at, base_ids) = repository(&base());
    for (name, tree) in shapes() {
        let next = commit_on_top(&at, &tree);
        for options in [&["--full-index"][..], &["-U0"], &["-U1", "--no-renames"], &["-M", "--abbrev=8"], &["-W", "--patience"]] {
            let quoting = if options.len() == 1 { "core.quotePath=false" } else { "core.quotePath=true" };
            let arguments = [&["-c", quoting, "diff"], options, &[&base_ids.commit, &next.commit]].concat();
            let patch = git_output(&at, &arguments);
            assert_eq!(
                applied(&at, &base_ids, &patch).as_deref(),
                Ok(next.tree.as_str()),
                "{name} {options:?}\n{}",
                String::from_utf8_lossy(&patch)
            );
        }
    }
}

#[test]
fn formatted_patches_apply_with_letter_and_signature() {
    let (_folder, at, base_ids) = repository(&base());
    let (_, tree) = shapes().remove(0);
    let next = commit_on_top(&at, &tree);
    let patch = git_output(&at, &["format-patch", "-1", "--stdout", &next.commit]);
    assert_eq!(applied(&at, &base_ids, &patch), Ok(next.tree));
}

#[test]
fn random_edits_lead_to_the_tree_that_git_has() {
    // A linear congruential generator, so that a failure repeats.
    let mut state = 20_260_101_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (_folder, at, base_ids) = repository(&base());
    for round in 0..40 {
        let mut tree = base();
        for path in ["long.py", "pkg/a.py", "é/ü.py", "no_end.py"] {
            let CommitEntry::File(bytes) = tree[path].clone() else { continue };
            let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            for _ in 0..random(8) {
                let place = usize::try_from(random(lines.len() as u64 + 1)).unwrap();
                match random(3) {
                    0 => lines.insert(place, format!("new {}\n", random(9)).into_bytes()),
                    1 if place < lines.len() => drop(lines.remove(place)),
                    _ => lines.insert(place.min(lines.len()), b"\n".to_vec()),
                }
            }
            let mut bytes = lines.concat();
            if random(3) == 0 {
                bytes.pop();
            }
            tree.insert(path.to_owned(), CommitEntry::File(bytes));
        }
        let next = commit_on_top(&at, &tree);
        let context = format!("-U{}", random(5));
        let patch = git_output(&at, &["diff", &context, &base_ids.commit, &next.commit]);
        if patch.is_empty() {
            continue;
        }
        assert_eq!(applied(&at, &base_ids, &patch).as_deref(), Ok(next.tree.as_str()), "round {round}");
        // No prefix of the patch may pass for the whole, unless it is cut between two sections, where nothing shows it.
        let boundary = |at: usize| patch[at..].starts_with(b"diff --git ");
        let cut = usize::try_from(random(patch.len() as u64 - 1)).unwrap() + 1;
        if !boundary(cut) {
            assert!(
                applied(&at, &base_ids, &patch[..cut]).is_err(),
                "round {round}, cut at {cut}:\n{}",
                String::from_utf8_lossy(&patch[..cut])
            );
        }
    }
}

/// A repository whose second commit is the patched state, and the patch.
fn patched_pair() -> (tempfile::TempDir, PathBuf, CommitIds, CommitIds, Vec<u8>) {
    let (folder, at, base_ids) = repository(&entries(&[("a.py", &lines(0..20)), ("b.py", "b\n")]));
    let text = lines(0..20).replace("line 3\n", "three\nand more\n").replace("line 12\n", "");
    let next = commit_on_top(&at, &entries(&[("a.py", &text), ("b.py", "b\n"), ("c.py", "c\nd\n")]));
    let patch = git_output(&at, &["diff", &base_ids.commit, &next.commit]);
    (folder, at, base_ids, next, patch)
}

/// The base as a source with this patch.
fn patched_source(folder: &Path, at: &Path, base: &CommitIds, patch: &[u8], sha256: Option<String>, tree: Option<String>) -> Source {
    let path = folder.join("the.patch");
    std::fs::write(&path, patch).unwrap();
    let mut source = source("m", at, Some(&base.commit));
    source.patch = Some(PatchPin { path: path.to_string_lossy().into_owned(), source: None, sha256, tree });
    source
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    hex(&sha2::Sha256::digest(bytes))
}

#[test]
fn a_patched_source_has_the_recorded_tree_and_its_new_lines_are_known() {
    let (folder, at, base_ids, next, patch) = patched_pair();
    let source = patched_source(folder.path(), &at, &base_ids, &patch, Some(sha256(&patch)), Some(next.tree.clone()));
    let (loaded, files) = load_one(source);
    assert_eq!(gaps(&loaded), []);
    assert_eq!(loaded.patched_tree, Some(next.tree));
    assert_eq!(loaded.tree, Some(base_ids.tree));
    assert_eq!(loaded.patch_sha256, Some(sha256(&patch)));
    assert_eq!(paths(&loaded, &files), ["a.py", "b.py", "c.py"]);
    let patched: Vec<Vec<u32>> = loaded.files.iter().map(|file| file.patched_lines.iter().copied().collect()).collect();
    assert_eq!(patched, [vec![4, 5], vec![], vec![1, 2]]);
    assert!(text(&loaded, &files, "a.py").contains("line 2\nthree\nand more\nline 4\n"));
}

#[test]
fn digest_and_tree_are_checked_independently() {
    let (folder, at, base_ids, next, patch) = patched_pair();
    // Only the digest differs: the blank of an empty context line has no say in the result.
    let wrong = "0".repeat(64);
    let (loaded, files) = load_one(patched_source(folder.path(), &at, &base_ids, &patch, Some(wrong.clone()), Some(next.tree.clone())));
    assert!(matches!(&loaded.problems[..], [SourceError::PatchDigestMismatch { .. }]));
    assert!(loaded.problems[0].contradicts());
    assert_eq!((loaded.patched_tree.clone(), paths(&loaded, &files).len()), (Some(next.tree), 3));
    // Only the tree differs.
    let (loaded, _) = load_one(patched_source(folder.path(), &at, &base_ids, &patch, Some(sha256(&patch)), Some(base_ids.tree.clone())));
    assert!(matches!(&loaded.problems[..], [SourceError::PatchTreeMismatch { .. }]));
    assert_eq!(gaps(&loaded), [(GapKind::PatchUnverified, "")]);
    // Both do.
    let (loaded, _) = load_one(patched_source(folder.path(), &at, &base_ids, &patch, Some(wrong), Some(base_ids.tree.clone())));
    assert_eq!(loaded.problems.len(), 2);
}

#[test]
fn the_first_line_that_differs_is_shown_and_the_base_is_still_read() {
    let (folder, at, base_ids, _, patch) = patched_pair();
    let patch = String::from_utf8(patch).unwrap().replace("-line 12\n", "-line twelve\n");
    let (loaded, files) = load_one(patched_source(folder.path(), &at, &base_ids, patch.as_bytes(), None, None));
    let message = loaded.problems[0].to_string();
    assert_eq!(
        message,
        "the patch of source `m` does not match its base: a.py, hunk 2: line 13 should be \"line twelve\", but is \"line 12\""
    );
    assert_eq!((loaded.patched_tree.clone(), loaded.patch_sha256.clone()), (None, None));
    assert_eq!(paths(&loaded, &files), ["a.py", "b.py"]);
}

#[test]
fn a_patch_may_lie_in_another_source_and_its_absence_is_said() {
    let (_folder, at, base_ids, next, patch) = patched_pair();
    let (_kernel, kernel_at, kernel_ids) = repository(&[("patches/m.patch".to_owned(), CommitEntry::File(patch))].into());
    let kernel = source("kernel", &kernel_at, Some(&kernel_ids.commit));
    let mut training = source("m", &at, Some(&base_ids.commit));
    let pin =
        PatchPin { path: "patches/m.patch".to_owned(), source: Some("kernel".to_owned()), sha256: None, tree: Some(next.tree.clone()) };
    training.patch = Some(pin.clone());
    let mut files = Files::default();
    let loaded = load(&profile(vec![training.clone(), kernel.clone()]), &LoadOptions::default(), &mut files).unwrap();
    assert_eq!((gaps(&loaded[0]), loaded[0].patched_tree.clone()), (vec![], Some(next.tree)));
    for wrong in [
        PatchPin { path: "patches/other.patch".to_owned(), ..pin.clone() },
        PatchPin { source: Some("nobody".to_owned()), ..pin.clone() },
        PatchPin { path: "no/such.patch".to_owned(), source: None, ..pin.clone() },
        PatchPin { path: ".".to_owned(), source: None, ..pin },
    ] {
        training.patch = Some(wrong);
        let loaded = load(&profile(vec![training.clone(), kernel.clone()]), &LoadOptions::default(), &mut files).unwrap();
        assert!(matches!(&loaded[0].problems[..], [error @ SourceError::PatchUnavailable { .. }] if !error.contradicts()));
        assert_eq!(gaps(&loaded[0]), [(GapKind::PatchUnverified, "")]);
    }
}
