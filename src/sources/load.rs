//! Loads the profile's sources.
//!
//! In: the profile, paths given on the command line, the folder that relative paths start from. Out: every source in the profile's order, with its
//! texts added to the run's file table. Refused: nothing as a whole, except `--source` with an unknown id; a source that cannot be read is a gap, and
//! the others still load. A source with a pinned commit is read from the object store at that commit, never from the checkout.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use git2::Oid;
use sha2::{Digest as _, Sha256};

use super::apply::apply;
use super::directory::{io_cause, read_directory};
use super::embedded::hex;
use super::git::{Git, Listing, gap};
use super::patch::parse;
use super::read::{Texts, read_snapshot};
use super::snapshot::Snapshot;
use super::{KnownTexts, LoadedFile, LoadedSource, Past, SourceError, WorkTree};
use crate::profile::{PatchPin, Profile, Source};
use crate::text::Files;

/// Largest patch, and largest file that a patch may edit, in bytes.
const MAX_PATCH: u64 = 64 << 20;

/// What the command line says about sources.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// `--source ID=PATH`: takes precedence over the profile's path. A relative path starts from the current directory.
    pub paths: BTreeMap<String, PathBuf>,
    /// `--allow-missing`: gaps are marked as allowed.
    pub allow_missing: bool,
    /// Folder of the profile, from which its relative paths start.
    pub base: PathBuf,
    /// Texts that need not be read again.
    pub known: KnownTexts,
    /// Revision of the checked-out source that is read in place of the checkout.
    pub past: Option<Past>,
}

impl LoadOptions {
    /// Where a source lies.
    ///
    /// # Errors
    /// [`SourceError::NoPath`].
    pub fn path_of(&self, source: &Source) -> Result<PathBuf, SourceError> {
        if let Some(path) = self.paths.get(&source.id) {
            return Ok(path.clone());
        }
        let path = source.path.as_deref().ok_or_else(|| SourceError::NoPath { id: source.id.clone() })?;
        Ok(self.base.join(path))
    }
}

/// Loads every source of the profile, in its order.
///
/// # Errors
/// [`SourceError::UnknownSource`] if a path is given for an id that the profile does not declare. Everything else is a gap of its source.
pub fn load(profile: &Profile, options: &LoadOptions, files: &mut Files) -> Result<Vec<LoadedSource>, SourceError> {
    if let Some(id) = options.paths.keys().find(|id| profile.sources.iter().all(|source| source.id != **id)) {
        let declared = profile.sources.iter().map(|source| source.id.as_str()).collect::<Vec<_>>().join(", ");
        return Err(SourceError::UnknownSource { id: id.clone(), declared });
    }
    Ok(profile.sources.iter().map(|source| load_source(profile, source, options, files)).collect())
}

/// Loads one source, which may be a copy of one of the profile's with another commit. What could not be read is in its gaps.
pub fn load_source(profile: &Profile, source: &Source, options: &LoadOptions, files: &mut Files) -> LoadedSource {
    let mut loaded = LoadedSource::unread(source);
    match read(profile, source, options, &mut loaded) {
        Ok(texts) => {
            loaded.gaps.extend(texts.gaps);
            loaded.other_files = texts.other_files;
            for text in texts.texts {
                let file = files.add(text.file);
                loaded.files.push(LoadedFile {
                    file,
                    kind: text.kind,
                    blob: text.blob.into(),
                    patched: text.patched,
                    patched_lines: text.added,
                    link_target: text.link_target.map(Into::into),
                });
            }
        }
        Err(error) => loaded.problems.push(error),
    }
    loaded.gaps.extend(loaded.problems.iter().map(|problem| gap(&source.id, "", problem)));
    loaded.gaps.sort();
    for gap in &mut loaded.gaps {
        gap.allowed = options.allow_missing;
    }
    loaded
}

fn read(profile: &Profile, source: &Source, options: &LoadOptions, loaded: &mut LoadedSource) -> Result<Texts, SourceError> {
    let id = source.id.as_str();
    let path = options.path_of(source)?;
    let Some(commit) = source.commit.as_deref() else { return read_unpinned(source, &path, profile.max_file_bytes, loaded) };
    let git = Git::open(id, &path)?;
    let pinned = git.resolve(commit)?;
    loaded.commit = Some(pinned.commit.to_string());
    loaded.repository = Some(path.clone());
    loaded.tree = Some(pinned.tree.to_string());
    if let Some(recorded) = source.tree.as_deref().filter(|recorded| *recorded != pinned.tree.to_string()) {
        let (id, commit, recorded, computed) = (id.to_owned(), commit.to_owned(), recorded.to_owned(), pinned.tree.to_string());
        loaded.problems.push(SourceError::TreeMismatch { id, commit, recorded, computed });
    }
    // What is checked out now says nothing about a past revision.
    if options.past.as_ref().is_none_or(|past| past.source != id) {
        note_work_tree(&git, Some(pinned.tree), loaded);
    }
    let listing = git.list(pinned.tree)?;
    loaded.gaps.extend(listing.gaps.iter().cloned());
    let snapshot = match &source.patch {
        Some(pin) => patched(profile, source, pin, options, &git, listing, loaded),
        None => listing.snapshot,
    };
    let odb = git.odb()?;
    Ok(read_snapshot(id, &snapshot, git.common_folder(), &odb, profile.max_file_bytes, &options.known))
}

/// The tree after the companion patch. If the patch cannot be applied, that is a problem of the source, and its files are read without the patch.
fn patched(
    profile: &Profile,
    source: &Source,
    pin: &PatchPin,
    options: &LoadOptions,
    git: &Git,
    listing: Listing,
    loaded: &mut LoadedSource,
) -> Snapshot {
    let id = source.id.as_str();
    let result = patch_bytes(profile, source, pin, options).and_then(|bytes| {
        let computed = hex(&Sha256::digest(&bytes));
        if let Some(recorded) = pin.sha256.as_ref().filter(|recorded| **recorded != computed) {
            let (id, recorded, computed) = (id.to_owned(), recorded.clone(), computed.clone());
            loaded.problems.push(SourceError::PatchDigestMismatch { id, recorded, computed });
        }
        if !listing.gaps.is_empty() {
            let cause = "the clone lacks folders of the base, so that the resulting tree cannot be computed".to_owned();
            return Err(SourceError::PatchUnavailable { id: id.to_owned(), cause });
        }
        let sections = parse(id, &bytes)?;
        let odb = git.odb()?;
        let applied = apply(id, &sections, &listing.snapshot, &mut |path, entry| {
            let what = format!("blob of {}", String::from_utf8_lossy(path));
            let (size, _) = odb.read_header(entry.id).map_err(|error| git.object_error(entry.id, &what, &error))?;
            if size as u64 > MAX_PATCH {
                return Err(SourceError::Bound { id: id.to_owned(), what: format!("{what} has {size} bytes, too many to patch") });
            }
            Ok(odb.read(entry.id).map_err(|error| git.object_error(entry.id, &what, &error))?.data().to_vec())
        })?;
        Ok((applied, computed))
    });
    match result {
        Ok((applied, sha256)) => {
            let computed = applied.tree.to_string();
            if let Some(recorded) = pin.tree.as_ref().filter(|recorded| **recorded != computed) {
                let (id, recorded, computed) = (id.to_owned(), recorded.clone(), computed.clone());
                loaded.problems.push(SourceError::PatchTreeMismatch { id, recorded, computed });
            }
            loaded.patched_tree = Some(computed);
            loaded.patch_sha256 = Some(sha256);
            applied.snapshot
        }
        Err(error) => {
            loaded.problems.push(error);
            listing.snapshot
        }
    }
}

/// The patch's bytes: from a file beside the profile, or from another source's pinned tree.
fn patch_bytes(profile: &Profile, source: &Source, pin: &PatchPin, options: &LoadOptions) -> Result<Vec<u8>, SourceError> {
    let unavailable = |cause: String| SourceError::PatchUnavailable { id: source.id.clone(), cause };
    let on_disk = |path: &Path| {
        let metadata = std::fs::metadata(path).map_err(|error| unavailable(format!("`{}`: {}", pin.path, io_cause(&error))))?;
        if !metadata.is_file() {
            return Err(unavailable(format!("`{}` is not a file", pin.path)));
        }
        if metadata.len() > MAX_PATCH {
            return Err(unavailable(format!("`{}` has {} bytes, more than the limit of {MAX_PATCH}", pin.path, metadata.len())));
        }
        std::fs::read(path).map_err(|error| unavailable(format!("`{}`: {}", pin.path, io_cause(&error))))
    };
    let Some(holder) = &pin.source else {
        return match options.past.as_ref().and_then(|past| Some((past, past.beside_profile(&pin.path)?))) {
            Some((past, path)) => {
                read_bytes(&past.source, &past.repository, &past.commit, &path, MAX_PATCH).map_err(|error| unavailable(error.to_string()))
            }
            None => on_disk(&options.base.join(&pin.path)),
        };
    };
    let other = profile.sources.iter().find(|other| other.id == *holder);
    let other = other.ok_or_else(|| unavailable(format!("the profile declares no source `{holder}`, which should hold `{}`", pin.path)))?;
    let path = options.path_of(other).map_err(|error| unavailable(error.to_string()))?;
    // The checkout that results are reported against cannot pin itself; digest and tree still say which patch is meant.
    let Some(commit) = other.commit.as_deref() else {
        return if other.main {
            on_disk(&path.join(&pin.path))
        } else {
            Err(unavailable(format!("source `{holder}`, which holds `{}`, pins no commit", pin.path)))
        };
    };
    read_bytes(holder, &path, commit, &pin.path, MAX_PATCH).map_err(|error| unavailable(error.to_string()))
}

/// Reads a working tree or a plain directory.
fn read_unpinned(source: &Source, path: &Path, max_bytes: u64, loaded: &mut LoadedSource) -> Result<Texts, SourceError> {
    let id = source.id.as_str();
    loaded.from_directory = true;
    match Git::open(id, path) {
        Ok(git) if git.work_tree().is_none() => return Err(SourceError::BareWithoutCommit { id: id.to_owned() }),
        Ok(git) => note_work_tree(&git, None, loaded),
        Err(SourceError::NotARepository { .. }) => {}
        Err(error @ SourceError::Missing { .. }) => return Err(error),
        // The files can still be read; that their state is unknown is said.
        Err(error) => loaded.problems.push(error),
    }
    if source.patch.is_some() {
        let cause = "a patch needs a pinned commit as its base, and none is pinned".to_owned();
        loaded.problems.push(SourceError::PatchUnavailable { id: id.to_owned(), cause });
    }
    read_directory(id, path, max_bytes)
}

/// Compares the checkout, if there is one, with the pinned tree, or with its own commit.
fn note_work_tree(git: &Git, tree: Option<Oid>, loaded: &mut LoadedSource) {
    if git.work_tree().is_none() {
        return;
    }
    let head = git.head();
    let tree = tree.or_else(|| head.and_then(|head| git.resolve(&head.to_string()).ok()).map(|pinned| pinned.tree));
    let changed = match tree.map(|tree| git.changed_paths(tree)).transpose() {
        Ok(changed) => changed.unwrap_or_default(),
        Err(error) => {
            loaded.problems.push(error);
            Vec::new()
        }
    };
    loaded.work_tree = Some(WorkTree { head: head.map(|head| head.to_string()), changed });
}

/// Text of one file at a commit, for instance to compare two revisions. `id` is used in errors only; the largest file is `max_bytes`.
///
/// # Errors
/// Any error of opening the repository and resolving the commit; [`SourceError::Unreadable`] if there is no such text file.
pub fn read_text(id: &str, repository: &Path, commit: &str, path: &str, max_bytes: u64) -> Result<String, SourceError> {
    let unreadable = |cause: String| SourceError::Unreadable { id: id.to_owned(), cause };
    let bytes = read_bytes(id, repository, commit, path, max_bytes)?;
    let kind = super::decode::kind_by_name(path.as_bytes()).unwrap_or(super::FileKind::Document);
    super::decode::decode(kind, &bytes).map(Cow::into_owned).map_err(|(_, cause)| unreadable(format!("{path}: {cause}")))
}

/// Bytes of one regular file at a commit. Links are not followed.
pub(super) fn read_bytes(id: &str, repository: &Path, commit: &str, path: &str, max_bytes: u64) -> Result<Vec<u8>, SourceError> {
    let unreadable = |cause: String| SourceError::Unreadable { id: id.to_owned(), cause };
    let git = Git::open(id, repository)?;
    let pinned = git.resolve(commit)?;
    let listing = git.list(pinned.tree)?;
    let entry = listing.snapshot.entries.get(path.as_bytes());
    let entry = entry.ok_or_else(|| unreadable(format!("there is no file `{path}` at commit {commit}")))?;
    if !entry.is_file() {
        return Err(unreadable(format!("`{path}` at commit {commit} is a link or a submodule, not a file")));
    }
    let odb = git.odb()?;
    let what = format!("blob of {path}");
    let (size, _) = odb.read_header(entry.id).map_err(|error| git.object_error(entry.id, &what, &error))?;
    if size as u64 > max_bytes {
        return Err(unreadable(format!("`{path}` has {size} bytes, more than the limit of {max_bytes}")));
    }
    let object = odb.read(entry.id).map_err(|error| git.object_error(entry.id, &what, &error))?;
    Ok(object.data().to_vec())
}
