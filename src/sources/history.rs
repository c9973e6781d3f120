//! What the history of a repository says about one file.
//!
//! In: a repository, commits, paths. Out: blob ids at commits, the last change of a path, ancestry. Refused: nothing; what the clone does not
//! hold is an error with its cause, never an answer.

use std::path::Path;

use git2::{Oid, Repository};

use super::SourceError;
use super::git::Git;

/// Commits that are walked back at most.
const MAX_COMMITS: usize = 200_000;

/// The history of one repository.
pub struct History {
    git: Git,
}

impl History {
    /// Opens the repository of source `id`.
    ///
    /// # Errors
    /// As [`Git::open`].
    pub fn open(id: &str, repository: &Path) -> Result<Self, SourceError> {
        Ok(Self { git: Git::open(id, repository)? })
    }

    /// Full id of the commit that `revision`, a hexadecimal id or its beginning, names.
    ///
    /// # Errors
    /// If there is none, or more than one.
    pub fn commit(&self, revision: &str) -> Result<String, SourceError> {
        self.git.expand(revision)
    }

    /// Blob id of `path` at a commit; `None` if there is no such file.
    ///
    /// # Errors
    /// If the commit or its trees are not there.
    pub fn blob_at(&self, commit: &str, path: &str) -> Result<Option<String>, SourceError> {
        let repo = self.git.repository();
        let oid = self.oid(commit)?;
        Ok(entry(repo, oid, path).map_err(|error| self.failed(&error))?.map(|id| id.to_string()))
    }

    /// Whether `older` is a proper ancestor of `newer`.
    ///
    /// # Errors
    /// If one of them is not there.
    pub fn precedes(&self, older: &str, newer: &str) -> Result<bool, SourceError> {
        let (older, newer) = (self.oid(older)?, self.oid(newer)?);
        self.git.repository().graph_descendant_of(newer, older).map_err(|error| self.failed(&error))
    }

    /// The commit, at or before `commit`, that gave `path` its content there: all parents had another content, or none. `None` if that
    /// cannot be told, because the history ends (a shallow clone, the first commit of an import) before the content does.
    ///
    /// # Errors
    /// If an object is not there.
    pub fn last_change(&self, commit: &str, path: &str) -> Result<Option<String>, SourceError> {
        let repo = self.git.repository();
        let start = self.oid(commit)?;
        let read = |at: Oid| entry(repo, at, path);
        let walk = || -> Result<Option<Oid>, git2::Error> {
            let Some(wanted) = read(start)? else { return Ok(None) };
            let mut at = start;
            for _ in 0..MAX_COMMITS {
                let parents: Vec<Oid> = repo.find_commit(at)?.parent_ids().collect();
                let mut same = None;
                for parent in &parents {
                    match read(*parent) {
                        Ok(found) if found == Some(wanted) => {
                            same = Some(*parent);
                            break;
                        }
                        Ok(_) => {}
                        // A shallow clone names parents that it does not hold.
                        Err(error) if error.code() == git2::ErrorCode::NotFound => return Ok(None),
                        Err(error) => return Err(error),
                    }
                }
                match same {
                    Some(parent) => at = parent,
                    None if parents.is_empty() => return Ok(None),
                    None => return Ok(Some(at)),
                }
            }
            Ok(None)
        };
        Ok(walk().map_err(|error| self.failed(&error))?.map(|id| id.to_string()))
    }

    fn oid(&self, commit: &str) -> Result<Oid, SourceError> {
        Oid::from_str(commit).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &git2::Error) -> SourceError {
        SourceError::Unreadable { id: self.git.id().to_owned(), cause: error.message().to_owned() }
    }
}

/// Object of `path` in a commit's tree.
fn entry(repo: &Repository, commit: Oid, path: &str) -> Result<Option<Oid>, git2::Error> {
    match repo.find_commit(commit)?.tree()?.get_path(Path::new(path)) {
        Ok(entry) => Ok(Some(entry.id())),
        Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
