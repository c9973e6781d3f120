//! Plain directories and working trees.

use super::*;

fn write(root: &Path, path: &str, bytes: &[u8]) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_plain_directory_is_read_in_byte_order_whatever_its_ignore_files_say() {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in [("b/z.py", "z\n"), ("b-a.py", "1\n"), ("b.py", "2\n"), (".hidden/h.py", "h\n"), ("é x.py", "3\n"), ("x.bin", "")]
    {
        write(folder.path(), path, text.as_bytes());
    }
    write(folder.path(), ".gitignore", b"*.py\n");
    write(folder.path(), ".ignore", b"*.py\n");
    let (loaded, files) = load_one(source("d", folder.path(), None));
    assert_eq!(paths(&loaded, &files), [".hidden/h.py", "b-a.py", "b.py", "b/z.py", "é x.py"]);
    assert!(loaded.from_directory && loaded.commit.is_none() && loaded.work_tree.is_none() && loaded.gaps.is_empty());
    assert_eq!(&*loaded.files[2].blob, crate::sources::tree::blob_id(b"2\n").to_string());
}

#[test]
fn a_work_tree_respects_gitignore_and_leaves_nested_repositories_out() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("w");
    std::fs::create_dir(&root).unwrap();
    git_output(&root, &["init", "--quiet"]);
    git_output(&root, &["init", "--quiet", "vendor/sub"]);
    write(&root, "vendor/sub/s.py", b"s\n");
    write(&root, "build/out.py", b"o\n");
    write(&root, ".gitignore", b"build/\n");
    write(&root, "a.py", b"a\n");
    let (loaded, files) = load_one(source("d", &root, None));
    assert_eq!(paths(&loaded, &files), ["a.py"]);
    assert_eq!(gaps(&loaded), [(GapKind::Submodule, "vendor/sub")]);
    assert_eq!(loaded.work_tree.map(|tree| tree.head), Some(None));
}

#[cfg(unix)]
#[test]
fn links_large_files_and_pipes_in_a_directory() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("d");
    write(&root, "pkg/a.py", b"a\n");
    write(&root, "big.json", &vec![b' '; (1 << 20) + 1]);
    write(folder.path(), "outside.py", b"secret\n");
    for (target, path) in [
        ("pkg/a.py", "link.py"),
        ("../outside.py", "out.py"),
        ("none.py", "gone.py"),
        ("l2.py", "l1.py"),
        ("l1.py", "l2.py"),
        ("pkg", "p"),
        ("/etc/passwd", "abs.py"),
    ] {
        symlink(target, root.join(path)).unwrap();
    }
    let pipe = std::process::Command::new("mkfifo").arg(root.join("pipe.py")).status().unwrap();
    assert!(pipe.success());
    let (loaded, files) = load_one(source("d", &root, None));
    assert_eq!(paths(&loaded, &files), ["link.py", "pkg/a.py"]);
    assert_eq!(loaded.files[0].link_target.as_deref(), Some("pkg/a.py"));
    let links = ["abs.py", "gone.py", "l1.py", "l2.py", "out.py", "p"].map(|path| (GapKind::Symlink, path));
    assert_eq!(gaps(&loaded), [&links[..], &[(GapKind::Oversize, "big.json")]].concat());
}

#[test]
fn no_message_holds_an_absolute_path() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().to_string_lossy().into_owned();
    write(folder.path(), "file.py", b"x\n");
    write(folder.path(), "broken/.git/HEAD", b"nonsense\n");
    write(folder.path(), "conf/.git/config", b"[core\n");
    write(folder.path(), "conf/.git/HEAD", b"ref: refs/heads/main\n");
    std::fs::create_dir_all(folder.path().join("conf/.git/objects")).unwrap();
    std::fs::create_dir_all(folder.path().join("conf/.git/refs")).unwrap();
    let commit = "0123456789abcdef0123456789abcdef01234567";
    for path in ["file.py", "broken", "conf", "none"] {
        for pin in [None, Some(commit)] {
            let (loaded, _) = load_one(source("d", &folder.path().join(path), pin));
            for gap in &loaded.gaps {
                assert!(!gap.cause.contains(&inside) && !gap.next.contains(&inside), "{gap:?}");
            }
        }
    }
}
