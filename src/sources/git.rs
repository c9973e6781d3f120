//! Git repositories, read-only.
//!
//! In: a path, and a full commit id. Out: the commit's tree as a [`Snapshot`], and blobs on request. Refused: repositories of other users,
//! SHA-256 and reftable repositories, abbreviated ids. Nothing is fetched, written or run; objects are hashed as they are read.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use git2::{ErrorCode, ObjectType, Odb, Oid, Repository};

use super::SourceError;
use super::snapshot::{Entry, Snapshot};
use crate::findings::{Gap, GapKind};

/// Longest time that opening may take; a named pipe among the configuration files would otherwise block for ever.
const OPEN_SECONDS: u64 = 10;
/// Most entries of one tree.
const MAX_ENTRIES: usize = 500_000;
/// Deepest nesting of folders.
const MAX_DEPTH: usize = 128;

/// An opened repository.
pub struct Git {
    /// Source id, for errors.
    id: String,
    repo: Repository,
}

/// A commit and its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// Commit id.
    pub commit: Oid,
    /// Tree id.
    pub tree: Oid,
}

/// A tree that was walked.
#[derive(Debug)]
pub struct Listing {
    /// What it holds.
    pub snapshot: Snapshot,
    /// Folders that a partial clone lacks. If there is one, the snapshot is incomplete and has no tree id of its own.
    pub gaps: Vec<Gap>,
}

impl std::fmt::Debug for Git {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Git").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Git {
    /// Opens the repository at `path` (a work tree, a linked work tree, or a bare repository) for source `id`.
    ///
    /// # Errors
    /// [`SourceError::Missing`], [`SourceError::NotARepository`], [`SourceError::OtherOwner`], [`SourceError::UnsupportedFormat`],
    /// [`SourceError::OpenTimeout`] or [`SourceError::Unreadable`].
    pub fn open(id: &str, path: &Path) -> Result<Self, SourceError> {
        Self::open_within(id, path, Duration::from_secs(OPEN_SECONDS))
    }

    /// As [`Git::open`], with another time limit.
    pub(super) fn open_within(id: &str, path: &Path, limit: Duration) -> Result<Self, SourceError> {
        let id = id.to_owned();
        if !path.exists() {
            return Err(SourceError::Missing { id });
        }
        let (send, receive) = mpsc::channel();
        let owned: PathBuf = path.to_owned();
        std::thread::spawn(move || {
            // The receiver may have given up; then nobody wants the result.
            let _ = send.send(open_now(&owned));
        });
        match receive.recv_timeout(limit) {
            Ok(Ok(repo)) => Ok(Self { id, repo }),
            Ok(Err(error)) => Err(open_error(id, path, &error)),
            Err(_) => Err(SourceError::OpenTimeout { id, seconds: limit.as_secs() }),
        }
    }

    /// The repository itself, for reading history.
    pub(super) const fn repository(&self) -> &Repository {
        &self.repo
    }

    /// Source id, for errors.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The work tree's root; `None` for a bare repository.
    #[must_use]
    pub fn work_tree(&self) -> Option<&Path> {
        self.repo.workdir()
    }

    /// Address of the remote `origin`, or of the only remote.
    #[must_use]
    pub fn remote(&self) -> Option<String> {
        let remote = self.repo.find_remote("origin").ok()?;
        remote.url().ok().map(str::to_owned)
    }

    /// Full id of the commit that a revision (branch, tag, abbreviation) names.
    ///
    /// # Errors
    /// If it names none.
    pub fn expand(&self, revision: &str) -> Result<String, SourceError> {
        let found = self.repo.revparse_single(revision).and_then(|object| object.peel_to_commit());
        found.map(|commit| commit.id().to_string()).map_err(|_| SourceError::UnknownCommit {
            id: self.id.clone(),
            commit: revision.to_owned(),
            shallow: self.repo.is_shallow(),
        })
    }

    /// The commit that `HEAD` names, if it names one.
    #[must_use]
    pub fn head(&self) -> Option<Oid> {
        self.repo.head().ok()?.peel_to_commit().ok().map(|commit| commit.id())
    }

    /// Whether the clone lacks history.
    #[must_use]
    pub fn is_shallow(&self) -> bool {
        self.repo.is_shallow()
    }

    /// Full id of the commit where two commits part: the first one itself if the second one contains it. `None` if the history does not say.
    #[must_use]
    pub fn merge_base(&self, one: &str, two: &str) -> Option<String> {
        let (one, two) = (Oid::from_str(one).ok()?, Oid::from_str(two).ok()?);
        if one == two || self.parents(two).contains(&one) {
            return Some(one.to_string());
        }
        self.repo.merge_base(one, two).ok().map(|base| base.to_string())
    }

    /// Parents of a commit as it names them, also where a shallow clone ends.
    fn parents(&self, commit: Oid) -> Vec<Oid> {
        let Ok(object) = self.repo.odb().and_then(|odb| odb.read(commit).map(|object| object.data().to_vec())) else { return Vec::new() };
        let text = String::from_utf8_lossy(&object);
        let header = text.lines().take_while(|line| !line.is_empty());
        header.filter_map(|line| Oid::from_str(line.strip_prefix("parent ")?).ok()).collect()
    }

    /// The parent at which a revision such as `HEAD^2` or `main~3` leaves a shallow clone.
    #[must_use]
    pub fn missing_parent(&self, revision: &str) -> Option<String> {
        let (start, mut steps) = revision.split_at(revision.find(['~', '^'])?);
        let mut at = self.repo.revparse_single(start).ok()?.peel_to_commit().ok()?.id();
        while let Some(mark) = steps.chars().next().filter(|mark| matches!(mark, '~' | '^')) {
            let digits: String = steps[1..].chars().take_while(char::is_ascii_digit).collect();
            steps = &steps[1 + digits.len()..];
            let number: usize = if digits.is_empty() { 1 } else { digits.parse().ok()? };
            let (turns, which) = if mark == '~' { (number, 1) } else { (usize::from(number > 0), number) };
            for _ in 0..turns {
                let parent = *self.parents(at).get(which.checked_sub(1)?)?;
                if self.repo.find_commit(parent).is_err() {
                    return Some(parent.to_string());
                }
                at = parent;
            }
        }
        None
    }

    /// Text of a regular file at a commit; `None` if there is no such file.
    ///
    /// # Errors
    /// As [`Git::resolve`]; if the file is too large or no text.
    pub fn text_at(&self, commit: &str, path: &str, max_bytes: u64) -> Result<Option<String>, SourceError> {
        let unreadable = |cause: String| SourceError::Unreadable { id: self.id.clone(), cause: format!("{path}: {cause}") };
        let pinned = self.resolve(commit)?;
        let tree = self.repo.find_tree(pinned.tree).map_err(|error| self.object_error(pinned.tree, "root tree", &error))?;
        let entry = match tree.get_path(Path::new(path)) {
            Ok(entry) if entry.kind() == Some(ObjectType::Blob) && entry.filemode() != 0o120_000 => entry,
            Ok(_) => return Ok(None),
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error.message().to_owned())),
        };
        let odb = self.odb()?;
        let failed = |error: git2::Error| self.object_error(entry.id(), path, &error);
        let (size, _) = odb.read_header(entry.id()).map_err(failed)?;
        if size as u64 > max_bytes {
            return Err(unreadable(format!("it has {size} bytes, more than the limit of {max_bytes}")));
        }
        let object = odb.read(entry.id()).map_err(failed)?;
        String::from_utf8(object.data().to_vec()).map(Some).map_err(|_| unreadable("it is not UTF-8".to_owned()))
    }

    /// Resolves a full commit id.
    ///
    /// # Errors
    /// [`SourceError::NotAFullCommit`], [`SourceError::UnknownCommit`], [`SourceError::NotACommit`], [`SourceError::ObjectMissing`],
    /// [`SourceError::ObjectDamaged`], [`SourceError::UnsupportedFormat`].
    pub fn resolve(&self, pin: &str) -> Result<Pinned, SourceError> {
        let id = self.id.clone();
        let lower_hex = !pin.is_empty() && pin.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if lower_hex && pin.len() == 64 {
            return Err(SourceError::UnsupportedFormat { id, format: "SHA-256 object ids".to_owned() });
        }
        let (true, 40, Ok(oid)) = (lower_hex, pin.len(), Oid::from_str(pin)) else {
            return Err(SourceError::NotAFullCommit { id, given: pin.to_owned(), full: self.would_be(pin) });
        };
        let odb = self.odb()?;
        match odb.read_header(oid) {
            Ok((_, ObjectType::Commit)) => {}
            Ok((_, kind)) => {
                let peeled = self
                    .repo
                    .find_object(oid, None)
                    .ok()
                    .and_then(|object| object.peel_to_commit().ok())
                    .map(|commit| commit.id().to_string());
                return Err(SourceError::NotACommit { id, commit: pin.to_owned(), kind: kind.str().to_owned(), peeled });
            }
            Err(error) if error.code() == ErrorCode::NotFound => {
                return Err(SourceError::UnknownCommit { id, commit: pin.to_owned(), shallow: self.repo.is_shallow() });
            }
            Err(error) => return Err(self.object_error(oid, "commit", &error)),
        }
        let commit = self.repo.find_commit(oid).map_err(|error| self.object_error(oid, "commit", &error))?;
        Ok(Pinned { commit: oid, tree: commit.tree_id() })
    }

    /// The full id that an abbreviation, branch or tag stands for. Only plain names are looked up, no revision expressions.
    fn would_be(&self, given: &str) -> Option<String> {
        let plain = given.len() >= 4 && given.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/'));
        if !plain {
            return None;
        }
        Some(self.repo.revparse_single(given).ok()?.peel_to_commit().ok()?.id().to_string())
    }

    /// The object database, which may be read from several threads.
    ///
    /// # Errors
    /// [`SourceError::Unreadable`].
    pub fn odb(&self) -> Result<Odb<'_>, SourceError> {
        self.repo.odb().map_err(|error| SourceError::Unreadable { id: self.id.clone(), cause: error.message().to_owned() })
    }

    /// The git folder that holds the object database; for a linked work tree, that of the main repository.
    #[must_use]
    pub fn common_folder(&self) -> &Path {
        self.repo.commondir()
    }

    /// Turns a failed read of an object into an error; `what` names the object for people.
    #[must_use]
    pub fn object_error(&self, object: Oid, what: &str, error: &git2::Error) -> SourceError {
        let (id, object, what) = (self.id.clone(), object.to_string(), what.to_owned());
        if error.code() == ErrorCode::NotFound {
            SourceError::ObjectMissing { id, object, what }
        } else {
            SourceError::ObjectDamaged { id, object, what, cause: error.message().to_owned() }
        }
    }

    /// Walks a tree.
    ///
    /// # Errors
    /// [`SourceError::ObjectMissing`] if the root itself is absent, [`SourceError::ObjectDamaged`], [`SourceError::Bound`].
    pub fn list(&self, root: Oid) -> Result<Listing, SourceError> {
        let mut snapshot = Snapshot::default();
        let mut gaps = Vec::new();
        let mut todo = vec![(Vec::new(), root, 0_usize)];
        while let Some((prefix, id, depth)) = todo.pop() {
            let what = || if prefix.is_empty() { "root tree".to_owned() } else { format!("tree of {}", String::from_utf8_lossy(&prefix)) };
            let tree = match self.repo.find_tree(id) {
                Ok(tree) => tree,
                Err(error) => match self.object_error(id, &what(), &error) {
                    missing @ SourceError::ObjectMissing { .. } if depth > 0 => {
                        gaps.push(gap(&self.id, &String::from_utf8_lossy(&prefix), &missing));
                        continue;
                    }
                    other => return Err(other),
                },
            };
            for entry in &tree {
                let mut path = prefix.clone();
                if !path.is_empty() {
                    path.push(b'/');
                }
                path.extend_from_slice(entry.name_bytes());
                if entry.kind() == Some(ObjectType::Tree) {
                    if depth + 1 > MAX_DEPTH {
                        return Err(self.bound(format!("folders nest deeper than {MAX_DEPTH}")));
                    }
                    todo.push((path, entry.id(), depth + 1));
                    continue;
                }
                let mode = u32::try_from(entry.filemode_raw()).unwrap_or(0);
                if let Some(_twice) = snapshot.entries.insert(path, Entry::stored(mode, entry.id())) {
                    let cause = "the tree lists one path twice".to_owned();
                    return Err(SourceError::ObjectDamaged { id: self.id.clone(), object: id.to_string(), what: what(), cause });
                }
            }
            if snapshot.entries.len() + todo.len() > MAX_ENTRIES {
                return Err(self.bound(format!("the tree has more than {MAX_ENTRIES} entries")));
            }
        }
        gaps.sort();
        Ok(Listing { snapshot, gaps })
    }

    fn bound(&self, what: String) -> SourceError {
        SourceError::Bound { id: self.id.clone(), what }
    }

    /// Tracked paths whose content in the index or the work tree differs from `tree`, in byte order. Untracked files do not count.
    ///
    /// # Errors
    /// [`SourceError::Unreadable`].
    pub fn changed_paths(&self, tree: Oid) -> Result<Vec<String>, SourceError> {
        let unreadable = |error: git2::Error| SourceError::Unreadable { id: self.id.clone(), cause: error.message().to_owned() };
        let tree = self.repo.find_tree(tree).map_err(|error| self.object_error(tree, "root tree", &error))?;
        let mut options = git2::DiffOptions::new();
        options.ignore_submodules(true).update_index(false).skip_binary_check(true);
        let diff = self.repo.diff_tree_to_workdir_with_index(Some(&tree), Some(&mut options)).map_err(unreadable)?;
        let mut paths: Vec<String> = diff
            .deltas()
            .filter_map(|delta| delta.new_file().path_bytes().or_else(|| delta.old_file().path_bytes()))
            .map(|path| String::from_utf8_lossy(path).into_owned())
            .collect();
        paths.sort();
        paths.dedup();
        Ok(paths)
    }
}

/// A gap that an error leaves at `path` of source `id`.
pub(super) fn gap(id: &str, path: &str, error: &SourceError) -> Gap {
    Gap {
        kind: error.gap_kind(),
        source: id.to_owned(),
        path: path.to_owned(),
        span: None,
        cause: sentence(&error.to_string()),
        next: error.next_step(),
        allowed: false,
    }
}

/// A gap of `kind` for one file.
pub(super) fn file_gap(kind: GapKind, id: &str, path: &[u8], cause: &str, next: &str) -> Gap {
    Gap {
        kind,
        source: id.to_owned(),
        path: String::from_utf8_lossy(path).into_owned(),
        span: None,
        cause: sentence(cause),
        next: next.to_owned(),
        allowed: false,
    }
}

/// First letter in upper case, and a final period.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().map(|letter| letter.to_uppercase().collect()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}

fn open_now(path: &Path) -> Result<Repository, git2::Error> {
    let repo = Repository::open(path)?;
    // A bare repository without a configuration file is taken for the `.git` folder of its parent.
    let given = path.canonicalize().ok();
    let is_git_folder = given.is_some() && repo.path().canonicalize().ok() == given;
    let named_dot_git = given.as_deref().and_then(Path::file_name).is_some_and(|name| name == ".git");
    if !repo.is_bare() && is_git_folder && !named_dot_git { Repository::open_bare(path) } else { Ok(repo) }
}

fn open_error(id: String, path: &Path, error: &git2::Error) -> SourceError {
    let message = error.message();
    let lower = message.to_lowercase();
    if error.code() == ErrorCode::Owner {
        return SourceError::OtherOwner { id };
    }
    if error.code() == ErrorCode::NotFound {
        if path.join(".git").is_file() {
            let cause = "it is a linked work tree or submodule whose main repository is no longer where it was".to_owned();
            return SourceError::Unreadable { id, cause };
        }
        return SourceError::NotARepository { id };
    }
    let format = if lower.contains("objectformat") || lower.contains("object format") || lower.contains("sha256") {
        Some("SHA-256 object ids".to_owned())
    } else if lower.contains("refstorage") || lower.contains("reftable") {
        Some("the reftable reference format".to_owned())
    } else if lower.contains("extension") {
        Some(format!("a repository extension ({message})"))
    } else {
        None
    };
    match format {
        Some(format) => SourceError::UnsupportedFormat { id, format },
        None => SourceError::Unreadable { id, cause: message.replace(&*path.to_string_lossy(), "the repository") },
    }
}
