//! Entries of a commit that are no plain text: links, submodules, pointers, encodings, large and absent blobs.

use super::*;
use crate::sources::FileKind;

fn bytes(content: &[u8]) -> CommitEntry {
    CommitEntry::File(content.to_vec())
}

fn link(target: &str) -> CommitEntry {
    CommitEntry::Link(target.as_bytes().to_vec())
}

/// Loads a tree of these entries.
fn loaded(files: &[(&str, CommitEntry)]) -> (LoadedSource, Files) {
    let tree = files.iter().map(|(path, entry)| ((*path).to_owned(), entry.clone())).collect();
    let (_folder, at, ids) = repository(&tree);
    load_one(source("m", &at, Some(&ids.commit)))
}

#[test]
fn links_are_followed_inside_the_tree_only() {
    let (loaded, files) = loaded(&[
        ("real/a.py", bytes(b"a = 1\n")),
        ("real/deep/b.py", link("../a.py")),
        ("chain.py", link("real/deep/b.py")),
        ("folder", link("real")),
        ("through.py", link("folder/deep/../a.py")),
        ("dangling.py", link("none.py")),
        ("out.py", link("../../etc/passwd")),
        ("absolute.py", link("/etc/passwd")),
        ("loop1.py", link("loop2.py")),
        ("loop2.py", link("loop1.py")),
        ("under.py", link("real/a.py/x")),
    ]);
    assert_eq!(paths(&loaded, &files), ["chain.py", "real/a.py", "real/deep/b.py", "through.py"]);
    assert_eq!(text(&loaded, &files, "through.py"), "a = 1\n");
    assert_eq!(loaded.files[0].link_target.as_deref(), Some("real/a.py"));
    assert_eq!(loaded.files[0].blob, loaded.files[1].blob);
    let expected = ["absolute.py", "dangling.py", "folder", "loop1.py", "loop2.py", "out.py", "under.py"];
    assert_eq!(gaps(&loaded), expected.map(|path| (GapKind::Symlink, path)));
    let cause = |path: &str| loaded.gaps.iter().find(|gap| gap.path == path).map(|gap| gap.cause.as_str()).unwrap();
    assert_eq!(cause("out.py"), "The symbolic link leads out of the tree.");
    assert_eq!(cause("loop1.py"), "The symbolic link loops.");
    assert!(cause("dangling.py").contains("no `none.py`"));
}

#[test]
fn submodules_and_pointers_are_gaps() {
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";
    let (loaded, files) = loaded(&[
        ("third_party/sub", CommitEntry::Submodule("0123456789abcdef0123456789abcdef01234567".to_owned())),
        ("data.json", bytes(pointer)),
        ("weights.bin", bytes(pointer)),
    ]);
    assert_eq!(gaps(&loaded), [(GapKind::Submodule, "third_party/sub"), (GapKind::LfsPointer, "data.json")]);
    assert!(loaded.gaps[0].cause.contains("0123456789abcdef0123456789abcdef01234567"));
    assert_eq!((paths(&loaded, &files).len(), loaded.other_files), (0, 1));
}

#[test]
fn encodings_are_those_that_python_would_use() {
    let (loaded, files) = loaded(&[
        ("latin.py", bytes(b"# -*- coding: latin-1 -*-\nx = '\xE9\x80'\n")),
        ("second.py", bytes(b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nx = '\x80'\n")),
        ("koi.py", bytes(b"# coding: koi8_r\nx = '\xC1'\n")),
        ("sjis.py", bytes(b"# coding=shift_jis\r\nx = '\x82\xA0'\r\n")),
        ("bom.py", bytes(b"\xEF\xBB\xBF# coding: utf-8\nx = 1\n")),
        ("third.py", bytes(b"\n\n# coding: latin-1\nx = '\xC3\xA9'\n")),
        ("code.py", bytes(b"x = 1\n# coding: latin-1\ny = '\xC3\xA9'\n")),
        ("bad.py", bytes(b"x = '\xE9'\n")),
        ("ascii.py", bytes(b"# coding: ascii\nx = '\xC3\xA9'\n")),
        ("unknown.py", bytes(b"# coding: klingon\n")),
        ("clash.py", bytes(b"\xEF\xBB\xBF# coding: latin-1\n")),
        ("utf16.py", bytes(b"# coding: utf-16\n")),
        ("notes.md", bytes(b"# coding: latin-1\n\xE9\n")),
    ]);
    assert_eq!(text(&loaded, &files, "latin.py"), "# -*- coding: latin-1 -*-\nx = 'é\u{80}'\n");
    assert!(text(&loaded, &files, "second.py").ends_with("x = '€'\n"));
    assert!(text(&loaded, &files, "koi.py").ends_with("x = 'а'\n"));
    assert!(text(&loaded, &files, "sjis.py").ends_with("x = 'あ'\r\n"));
    assert!(text(&loaded, &files, "bom.py").starts_with("\u{FEFF}# coding"));
    assert!(text(&loaded, &files, "third.py").ends_with("x = 'é'\n"));
    assert!(text(&loaded, &files, "code.py").ends_with("y = 'é'\n"));
    let expected = ["ascii.py", "bad.py", "clash.py", "notes.md", "unknown.py", "utf16.py"];
    assert_eq!(gaps(&loaded), expected.map(|path| (GapKind::Encoding, path)));
}

#[test]
fn executables_without_extension_are_known_by_their_first_line() {
    let script = |line: &str| CommitEntry::Executable(format!("{line}\nx\n").into_bytes());
    let (loaded, files) = loaded(&[
        ("bin/launch", script("#!/usr/bin/env -S bash -e")),
        ("bin/tool", script("#! /usr/bin/python3.12")),
        ("bin/perl", script("#!/usr/bin/perl")),
        ("bin/elf", CommitEntry::Executable(b"\x7FELF\x00\xFF".to_vec())),
        ("plain", bytes(b"#!/bin/sh\n")),
    ]);
    assert_eq!(paths(&loaded, &files), ["bin/launch", "bin/tool"]);
    assert_eq!(loaded.files.iter().map(|file| file.kind).collect::<Vec<_>>(), [FileKind::Shell, FileKind::Python]);
    assert_eq!(loaded.other_files, 3);
}

#[test]
fn a_file_of_fifty_megabytes_is_a_gap_and_is_not_read() {
    let (folder, at, ids) = repository(&[("big.py".to_owned(), bytes(&vec![b'#'; 50 << 20])), ("a.py".to_owned(), bytes(b"x\n"))].into());
    // Damage the end of the stored blob: whoever read it would notice.
    let id = crate::sources::tree::blob_id(&vec![b'#'; 50 << 20]).to_string();
    let loose = folder.path().join("repo.git/objects").join(&id[..2]).join(&id[2..]);
    let mut stored = std::fs::read(&loose).unwrap();
    stored.truncate(stored.len() / 2);
    std::fs::remove_file(&loose).unwrap();
    std::fs::write(&loose, stored).unwrap();
    let (loaded, files) = load_one(source("m", &at, Some(&ids.commit)));
    assert_eq!((gaps(&loaded), paths(&loaded, &files)), (vec![(GapKind::Oversize, "big.py")], vec!["a.py".to_owned()]));
    assert!(loaded.gaps[0].cause.contains("52428800 bytes"));
}

#[test]
fn damaged_and_absent_blobs_are_told_apart() {
    let (folder, at, ids) = repository(&entries(&[("a.py", "x = 1\n"), ("b.py", "y = 2\n"), ("c/d.py", "z = 3\n")]));
    let loose = |text: &str| {
        let id = crate::sources::tree::blob_id(text.as_bytes()).to_string();
        folder.path().join("repo.git/objects").join(&id[..2]).join(&id[2..])
    };
    std::fs::remove_file(loose("x = 1\n")).unwrap();
    // Another blob's bytes under this id.
    let other = std::fs::read(loose("z = 3\n")).unwrap();
    std::fs::remove_file(loose("y = 2\n")).unwrap();
    std::fs::write(loose("y = 2\n"), other).unwrap();
    let (loaded, files) = load_one(source("m", &at, Some(&ids.commit)));
    assert_eq!(gaps(&loaded), [(GapKind::SourceUnreadable, "b.py"), (GapKind::ObjectMissing, "a.py")]);
    assert_eq!(paths(&loaded, &files), ["c/d.py"]);
}

#[test]
fn partial_clones_say_what_they_lack() {
    let many: Vec<(String, String)> = (0..30).map(|at| (format!("pkg/m{at}.py"), format!("x = {at}\n"))).collect();
    let files: Vec<(&str, &str)> = many.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let (folder, at, ids) = repository(&entries(&files));
    git_output(&at, &["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", at.display());
    git_output(&at, &["clone", "--quiet", "--bare", "--filter=blob:none", &url, "../blobless"]);
    git_output(&at, &["clone", "--quiet", "--bare", "--filter=tree:1", &url, "../treeless"]);
    let (loaded, _) = load_one(source("m", &folder.path().join("blobless"), Some(&ids.commit)));
    assert_eq!(gaps(&loaded), [(GapKind::ObjectMissing, "")]);
    assert!(loaded.gaps[0].cause.contains("and 29 more blobs"), "{}", loaded.gaps[0].cause);
    let (loaded, _) = load_one(source("m", &folder.path().join("treeless"), Some(&ids.commit)));
    assert_eq!(gaps(&loaded), [(GapKind::ObjectMissing, "pkg")]);
    // With a patch on top, neither can be verified.
    let patch = "diff --git a/pkg/m1.py b/pkg/m1.py\n--- a/pkg/m1.py\n+++ b/pkg/m1.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n";
    std::fs::write(folder.path().join("p"), patch).unwrap();
    for name in ["blobless", "treeless"] {
        let mut patched = source("m", &folder.path().join(name), Some(&ids.commit));
        let path = folder.path().join("p").to_string_lossy().into_owned();
        patched.patch = Some(crate::profile::PatchPin { path, source: None, sha256: None, tree: None });
        let (loaded, _) = load_one(patched);
        assert!(loaded.problems.len() == 1 && !loaded.problems[0].contradicts(), "{:?}", loaded.problems);
    }
}
