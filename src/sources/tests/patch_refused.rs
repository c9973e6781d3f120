//! What the applier refuses, with file and hunk named.

use crate::sources::SourceError;
use crate::sources::apply::apply;
use crate::sources::patch::parse;
use crate::sources::snapshot::{EXECUTABLE, Entry, LINK, REGULAR, SUBMODULE, Snapshot};
use crate::sources::tree::blob_id;

/// A base with `a.py` (`1` to `5` on a line each), `run.sh`, `link`, `dir/x.py`, a submodule `sub` and an empty file `void.py`.
fn base() -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut add = |path: &str, mode: u32, bytes: &[u8]| {
        let entry = Entry { content: Some(bytes.into()), ..Entry::stored(mode, blob_id(bytes)) };
        snapshot.entries.insert(path.as_bytes().to_vec(), entry);
    };
    add("a.py", REGULAR, b"1\n2\n3\n4\n5\n");
    add("run.sh", EXECUTABLE, b"echo\n");
    add("link", LINK, b"a.py");
    add("dir/x.py", REGULAR, b"x\n");
    add("sub", SUBMODULE, b"");
    add("void.py", REGULAR, b"");
    snapshot
}

fn run(patch: &[u8]) -> Result<Snapshot, SourceError> {
    let mut read = |_: &[u8], entry: &Entry| Ok(entry.content.as_deref().unwrap_or_default().to_vec());
    apply("m", &parse("m", patch)?, &base(), &mut read).map(|applied| applied.snapshot)
}

const EDIT: &str = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -2,3 +2,3 @@\n 2\n-3\n+three\n 4\n";

#[test]
fn an_edit_without_index_line_keeps_the_mode() {
    let edited = run(b"diff --git a/run.sh b/run.sh\n--- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n-echo\n+true\n").unwrap();
    assert_eq!(edited.entries[&b"run.sh"[..]].mode, EXECUTABLE);
    let edited = run(EDIT.as_bytes()).unwrap();
    assert_eq!(edited.entries[&b"a.py"[..]].content.as_deref(), Some(&b"1\n2\nthree\n4\n5\n"[..]));
}

#[test]
fn ambiguous_or_damaged_patches_are_refused() {
    let edit = |from: &str, to: &str| {
        assert!(EDIT.contains(from));
        EDIT.replacen(from, to, 1)
    };
    let mode_only = "diff --git a/run.sh b/run.sh\nold mode 100755\nnew mode 100644\n";
    let cases: Vec<(&str, String, &str)> = vec![
        ("empty", String::new(), "no section"),
        ("text only", "hello\n".to_owned(), "no section"),
        ("NUL byte", edit("three", "th\0ree"), "NUL"),
        ("plain diff -u", edit("diff --git a/a.py b/a.py\n", ""), "without a `diff --git` header"),
        ("byte order mark", format!("\u{FEFF}{EDIT}"), "without a `diff --git` header"),
        ("damaged first header", edit("diff", "dif"), "without a `diff --git` header"),
        ("damaged second header", format!("{EDIT}{}", mode_only.replace("diff", "iff")), "belongs to no hunk"),
        ("damaged mode line", mode_only.replace("old mode", "old mod"), "no header line that is known"),
        ("one mode line", mode_only.replace("old mode 100755\n", ""), "mode lines is missing"),
        ("cut mode lines", mode_only.replace("new mode 100644\n", ""), "mode lines is missing"),
        ("cut after header", "diff --git a/a.py b/a.py\n".to_owned(), "no hunk and changes no mode"),
        ("cut after names", EDIT.lines().take(3).map(|line| format!("{line}\n")).collect(), "before the first hunk"),
        ("cut in hunk", EDIT.trim_end_matches(" 4\n").to_owned(), "ends inside this hunk"),
        ("cut in line", EDIT.trim_end_matches('\n').to_owned(), "middle of a line"),
        (
            "submodule",
            "diff --git a/sub b/sub\nindex 1111111..2222222 160000\n--- a/sub\n+++ b/sub\n@@ -1 +1 @@\n-x\n+y\n".to_owned(),
            "submodule",
        ),
        ("new submodule", "diff --git a/s b/s\nnew file mode 160000\nindex 0000000..2222222\n".to_owned(), "submodule"),
        ("submodule without modes", EDIT.replace("a.py", "sub"), "mode 160000"),
        ("copy", "diff --git a/a.py b/b.py\nsimilarity index 100%\ncopy from a.py\ncopy to b.py\n".to_owned(), "copy"),
        ("binary", "diff --git a/a.py b/a.py\nindex 1111111..2222222 100644\nGIT binary patch\nliteral 0\n".to_owned(), "binary"),
        ("one path twice", format!("{EDIT}{EDIT}"), "two sections"),
        ("absolute path", EDIT.replace("a/a.py b/a.py", "a//a.py b//a.py"), "absolute"),
        ("parent", EDIT.replace("a.py", "../a.py"), "leaves the tree"),
        ("git folder", EDIT.replace("a.py", ".Git/a.py"), "`.git` folder"),
        ("no prefixes", EDIT.replace("a/a.py b/a.py", "a.py a.py"), "do not start with"),
        ("other side", edit("+++ b/a.py", "+++ b/b.py"), "do not name"),
        ("rename half", "diff --git a/a.py b/b.py\nsimilarity index 100%\nrename from a.py\n".to_owned(), "names two paths"),
        (
            "rename without hunk",
            "diff --git a/a.py b/b.py\nsimilarity index 90%\nrename from a.py\nrename to b.py\n".to_owned(),
            "has no hunk",
        ),
        ("two names", EDIT.replace("diff --git a/a.py b/a.py", "diff --git a/a.py b/b.py"), "names two paths"),
        ("bad counts", edit("-2,3", "-2,2"), "more lines"),
        ("bad range", edit("-2,3", "-+2,3"), "malformed"),
        ("line zero", edit("-2,3", "-0,3"), "malformed"),
        ("huge line", edit("-2,3", "-99999999999,3"), "malformed"),
        ("wrong new start", edit("+2,3", "+3,3"), "start at 2"),
        ("no change", edit("-3\n+three\n", " 3\n"), "changes nothing"),
        ("unknown mode", mode_only.replace("100644", "100777"), "none that git writes"),
        ("link to file", "diff --git a/link b/link\nold mode 120000\nnew mode 100644\n".to_owned(), "link"),
        ("order of hunks", format!("{EDIT}@@ -1 +1 @@\n-1\n+one\n"), "overlaps"),
        ("mark in the wrong place", edit("@@\n 2", "@@\n\\ No newline at end of file\n 2"), "wrong place"),
        ("line without end in the middle", edit("+three\n", "+three\n\\ No newline at end of file\n"), "is not the last"),
        ("text after signature", format!("{EDIT}-- \n2.47\nmore\n"), "after the patch's signature"),
        ("summary", format!(" 2 files changed, 2 insertions(+)\n\n{EDIT}"), "announces 2 files"),
        (
            "link as .gitmodules",
            "diff --git a/.gitmodules b/.gitmodules\nnew file mode 120000\n--- /dev/null\n+++ b/.gitmodules\n@@ -0,0 +1 @@\n+x\n"
                .to_owned(),
            ".gitmodules",
        ),
        (
            "file below a file",
            "diff --git a/a.py/b b/a.py/b\nnew file mode 100644\n--- /dev/null\n+++ b/a.py/b\n@@ -0,0 +1 @@\n+x\n".to_owned(),
            "both a file and a folder",
        ),
    ];
    for (name, patch, reason) in cases {
        match run(patch.as_bytes()) {
            Err(error @ SourceError::PatchRefused { .. }) => {
                assert!(error.to_string().contains(reason), "{name}: {error}");
                assert!(!error.contradicts());
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn what_does_not_fit_the_base_is_a_mismatch() {
    let a = blob_id(b"1\n2\n3\n4\n5\n").to_string();
    let result = blob_id(b"1\n2\nthree\n4\n5\n").to_string();
    let indexed = |old: &str, new: &str, mode: &str| EDIT.replacen("\n---", &format!("\nindex {old}..{new} {mode}\n---"), 1);
    assert!(run(indexed(&a[..7], &result[..9], "100644").as_bytes()).is_ok());
    let create = "diff --git a/NAME b/NAME\nnew file mode 100644\nindex 0000000..587be6b\n--- /dev/null\n+++ b/NAME\n@@ -0,0 +1 @@\n+x\n";
    assert!(run(create.replace("NAME", "new.py").as_bytes()).is_ok());
    let delete = "diff --git a/a.py b/a.py\ndeleted file mode 100644\n--- a/a.py\n+++ /dev/null\n@@ -1,4 +0,0 @@\n-1\n-2\n-3\n-4\n";
    let rename = "diff --git a/a.py b/run.sh\nsimilarity index 100%\nrename from a.py\nrename to run.sh\n";
    let cases: Vec<(&str, String, &str)> = vec![
        ("base id", indexed(&"1".repeat(40), &result, "100644"), "for the base"),
        ("result id", indexed(&a, &"1".repeat(40), "100644"), "for the result"),
        ("zero id", indexed(&a, &"0".repeat(40), "100644"), "for the result"),
        ("index mode", indexed(&a, &result, "100755"), "mode 100755"),
        ("old mode", "diff --git a/a.py b/a.py\nold mode 100755\nnew mode 100644\n".to_owned(), "base's mode is 100644"),
        ("new file on a file", create.replace("NAME", "a.py"), "already"),
        ("new file on a folder", create.replace("NAME", "dir"), "already"),
        ("rename onto a file", rename.to_owned(), "already"),
        ("rename of nothing", rename.replace("a.py", "none.py"), "to rename"),
        ("edit of nothing", EDIT.replace("a.py", "none.py"), "no such file"),
        ("delete of a part", delete.to_owned(), "does not remove all"),
        (
            "new empty file with another id",
            "diff --git a/n b/n\nnew file mode 100644\nindex 0000000..587be6b\n".to_owned(),
            "for the result",
        ),
        (
            "delete without content",
            "diff --git a/a.py b/a.py\ndeleted file mode 100644\nindex 8a1218a..0000000\n".to_owned(),
            "does not remove all",
        ),
    ];
    for (name, patch, what) in cases {
        match run(patch.as_bytes()) {
            Err(error @ SourceError::PatchHeaderMismatch { .. }) => {
                assert!(error.to_string().contains(what), "{name}: {error}");
                assert!(error.contradicts());
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn context_must_be_exact_at_its_line() {
    for (name, patch) in [
        ("offset", EDIT.replace("@@ -2,3 +2,3 @@", "@@ -1,3 +1,3 @@")),
        ("blank at the end", EDIT.replace(" 4\n", " 4 \n")),
        ("carriage return", EDIT.replace(" 4\n", " 4\r\n")),
        ("beyond the end", EDIT.replace("@@ -2,3 +2,3 @@", "@@ -9,3 +9,3 @@")),
        ("missing line end", format!("{EDIT}\\ No newline at end of file\n")),
    ] {
        let error = run(patch.as_bytes()).unwrap_err();
        assert!(matches!(error, SourceError::PatchDoesNotApply { hunk: 1, .. }), "{name}: {error}");
    }
    let error = run(EDIT.replace(" 4\n", " 4\r\n").as_bytes()).unwrap_err();
    assert!(error.to_string().ends_with(r#"a.py, hunk 1: line 4 should be "4\r", but is "4""#), "{error}");
}

#[test]
fn damaged_bytes_never_panic() {
    let whole = format!(
        "{EDIT}diff --git \"a/\\303\\251\" \"b/\\303\\251\"\nnew file mode 100644\n--- /dev/null\n+++ \"b/\\303\\251\"\n@@ -0,0 +1 @@\n+x\n"
    );
    assert!(run(whole.as_bytes()).is_ok());
    for at in 0..whole.len() {
        for byte in [b'\n', b'-', b'+', b' ', b'9', b'"', b'\\', 0xFF] {
            let mut damaged = whole.clone().into_bytes();
            damaged[at] = byte;
            let _ = run(&damaged);
            damaged.remove(at);
            let _ = run(&damaged);
        }
        let _ = run(&whole.as_bytes()[at..]);
    }
}
