//! Writes a small bare repository with reproducible ids.
//!
//! In: paths with their bytes and modes. Out: a bare repository with one commit by a fixed author at a fixed time, so that the same files give
//! the same commit id on every machine. Refused: a folder that is already there. Nothing of the user's git configuration is used.

use std::collections::BTreeMap;
use std::path::Path;

use git2::{IndexEntry, IndexTime, Oid, Repository, RepositoryInitOptions, Signature, Time};

use super::SourceError;

/// 2026-01-01T00:00:00Z in seconds since the epoch.
const COMMIT_TIME: i64 = 1_767_225_600;

/// One entry of the tree to be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitEntry {
    /// A regular file.
    File(Vec<u8>),
    /// A file with the executable bit.
    Executable(Vec<u8>),
    /// A symbolic link with its target.
    Link(Vec<u8>),
    /// A submodule at this commit, 40 hexadecimal digits.
    Submodule(String),
}

/// Ids of a commit that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitIds {
    /// Commit id, lower-case hex.
    pub commit: String,
    /// Tree id, lower-case hex.
    pub tree: String,
}

/// Creates a bare repository at `at` with one commit that holds `files`, and makes `main` point to it.
///
/// # Errors
/// [`SourceError::Write`] if `at` exists or cannot be written, or a path cannot be part of a tree.
pub fn bare_repository(at: &Path, files: &BTreeMap<String, CommitEntry>, message: &str) -> Result<CommitIds, SourceError> {
    let what = at.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let failed = |cause: String| SourceError::Write { what: what.clone(), cause };
    if at.exists() {
        return Err(failed("it is already there".to_owned()));
    }
    let mut options = RepositoryInitOptions::new();
    options.bare(true).no_reinit(true).mkpath(true).external_template(false).initial_head("main");
    let repo = Repository::init_opts(at, &options).map_err(|error| failed(error.message().to_owned()))?;
    add_commit(&repo, files, message, &[]).map_err(|error| failed(error.message().to_owned()))
}

/// Adds a commit with exactly `files` on top of `parents` (commit ids) and makes `main` point to it.
pub(super) fn add_commit(
    repo: &Repository,
    files: &BTreeMap<String, CommitEntry>,
    message: &str,
    parents: &[Oid],
) -> Result<CommitIds, git2::Error> {
    let mut index = repo.index()?;
    index.clear()?;
    for (path, entry) in files {
        let (mode, bytes) = match entry {
            CommitEntry::File(bytes) => (0o100_644, Some(bytes)),
            CommitEntry::Executable(bytes) => (0o100_755, Some(bytes)),
            CommitEntry::Link(target) => (0o120_000, Some(target)),
            CommitEntry::Submodule(_) => (0o160_000, None),
        };
        let id = match (bytes, entry) {
            (Some(bytes), _) => repo.blob(bytes)?,
            (None, CommitEntry::Submodule(id)) => Oid::from_str(id)?,
            (None, _) => Oid::ZERO_SHA1,
        };
        let time = IndexTime::new(0, 0);
        let path = path.as_bytes().to_vec();
        index.add(&IndexEntry {
            ctime: time,
            mtime: time,
            dev: 0,
            ino: 0,
            mode,
            uid: 0,
            gid: 0,
            file_size: 0,
            id,
            flags: 0,
            flags_extended: 0,
            path,
        })?;
    }
    let tree_id = index.write_tree()?;
    let tree = repo.find_tree(tree_id)?;
    let author = Signature::new("rlk-lint", "rlk-lint@example.invalid", &Time::new(COMMIT_TIME, 0))?;
    let parents = parents.iter().map(|id| repo.find_commit(*id)).collect::<Result<Vec<_>, _>>()?;
    let commit = repo.commit(Some("refs/heads/main"), &author, &author, message, &tree, &parents.iter().collect::<Vec<_>>())?;
    Ok(CommitIds { commit: commit.to_string(), tree: tree_id.to_string() })
}
