//! Tests of the readers against repositories that they build themselves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::commit::{CommitEntry, CommitIds, bare_repository};
use super::{LoadOptions, LoadedSource, load};
use crate::findings::GapKind;
use crate::profile::{Profile, Role, Source};
use crate::text::{FileId, Files, Span};

mod directory;
mod embedded;
mod git;
mod objects;
mod patch;
mod patch_refused;

/// A source at `path`, pinned if `commit` is given.
fn source(id: &str, path: &Path, commit: Option<&str>) -> Source {
    Source {
        id: id.to_owned(),
        path: Some(path.to_owned()),
        repository: None,
        commit: commit.map(str::to_owned),
        tree: None,
        patch: None,
        roots: vec![".".to_owned()],
        role: Role::Training,
        main: false,
        span: Span::new(FileId(0), 0, 0),
    }
}

/// A profile with these sources and a limit of 1 MiB.
fn profile(sources: Vec<Source>) -> Profile {
    Profile {
        backend: "rocm".to_owned(),
        arch: "gfx942".to_owned(),
        environment: BTreeMap::new(),
        known: BTreeMap::new(),
        sources,
        families: Vec::new(),
        entries: Vec::new(),
        paths: Vec::new(),
        levels: BTreeMap::new(),
        path_levels: Vec::new(),
        max_file_bytes: 1 << 20,
        ..Profile::default()
    }
}

/// Loads one source.
fn load_one(source: Source) -> (LoadedSource, Files) {
    let mut files = Files::default();
    let mut loaded = load(&profile(vec![source]), &LoadOptions::default(), &mut files).unwrap();
    (loaded.remove(0), files)
}

/// Paths of a loaded source.
fn paths(loaded: &LoadedSource, files: &Files) -> Vec<String> {
    loaded.files.iter().map(|file| files.get(file.file).path.to_string()).collect()
}

/// Text of one file.
fn text<'f>(loaded: &LoadedSource, files: &'f Files, path: &str) -> &'f str {
    loaded.files.iter().map(|file| files.get(file.file)).find(|file| &*file.path == path).map_or("(absent)", |file| &file.text)
}

/// Kinds and paths of the gaps.
fn gaps(loaded: &LoadedSource) -> Vec<(GapKind, &str)> {
    loaded.gaps.iter().map(|gap| (gap.kind, gap.path.as_str())).collect()
}

/// Entries of a tree from paths and texts.
fn entries(files: &[(&str, &str)]) -> BTreeMap<String, CommitEntry> {
    files.iter().map(|(path, text)| ((*path).to_owned(), CommitEntry::File(text.as_bytes().to_vec()))).collect()
}

/// A bare repository in a new temporary folder.
fn repository(files: &BTreeMap<String, CommitEntry>) -> (tempfile::TempDir, PathBuf, CommitIds) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("repo.git");
    let ids = bare_repository(&at, files, "base\n").unwrap();
    (folder, at, ids)
}

/// Adds a commit with exactly these files on top of the repository's `main`.
fn commit_on_top(at: &Path, files: &BTreeMap<String, CommitEntry>) -> CommitIds {
    let repo = git2::Repository::open_bare(at).unwrap();
    let parent = repo.find_reference("refs/heads/main").unwrap().peel_to_commit().unwrap().id();
    super::commit::add_commit(&repo, files, "next\n", &[parent]).unwrap()
}

/// Runs git on a repository that the test made, without any configuration of the user, and gives its output.
fn git_output(at: &Path, arguments: &[&str]) -> Vec<u8> {
    let home = at.parent().unwrap();
    let output = std::process::Command::new("git")
        .arg("-C")
        .arg(at)
        .args(arguments)
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env_remove("GIT_DIR")
        .env_remove("GIT_INDEX_FILE")
        .env_remove("GIT_WORK_TREE")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
