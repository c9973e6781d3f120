//! The base revision of `--diff-base`: what the checked-out source was before the change.
//!
//! In: the opened profile of now and a revision. Out: the profile of that revision with the checked-out source at it, ready to be read from the object
//! store; nothing is checked out. Refused: a profile without `main = true`, a revision that the repository does not have; the message says how to
//! fetch it.

use std::path::{Path, PathBuf};

use super::error::RunError;
use super::lint::{self, Opened, Request};
use crate::findings::Against;
use crate::profile::{Profile, Source};
use crate::sources::git::Git;
use crate::sources::{KnownTexts, Past};

/// A base that was opened.
pub struct Base {
    /// Its profile and sources.
    pub opened: Opened,
    /// What reports say about it.
    pub against: Against,
}

/// The checked-out source, its repository, and the commit that is linted.
pub struct Main<'p> {
    /// The source.
    pub source: &'p Source,
    /// Where it lies.
    pub repository: PathBuf,
    /// Opened.
    pub git: Git,
}

/// Opens the source with `main = true`.
///
/// # Errors
/// If there is none, or its repository cannot be opened.
pub fn main_source<'p>(profile: &'p Profile, options: &crate::sources::LoadOptions) -> Result<Main<'p>, RunError> {
    let source = profile.sources.iter().find(|source| source.main).ok_or_else(|| RunError::Usage {
        message: "no source of the profile has `main = true`, so the base has no source".to_owned(),
        help: "write `main = true` in the [[source]] of the repository that is checked out".to_owned(),
    })?;
    let repository = options.path_of(source).map_err(RunError::Source)?;
    let git = Git::open(&source.id, &repository).map_err(RunError::Source)?;
    Ok(Main { source, repository, git })
}

/// Opens the base `revision` of what is linted now.
///
/// # Errors
/// As [`main_source`]; if the revision is not there.
pub fn open(now: &Opened, revision: &str, request: &Request, known: KnownTexts) -> Result<Base, RunError> {
    let Main { source, repository, git } = main_source(&now.profile, &now.options)?;
    let mut notes = Vec::new();
    let commit = commit(&git, source, revision, &mut notes)?;
    let limit = now.profile.max_file_bytes;
    let mut past = Past { source: source.id.clone(), repository: repository.clone(), commit: commit.clone(), folder: None };
    let mut opened = None;
    let path = now.path.as_deref().and_then(|path| inside(&git, path));
    let text = match &path {
        Some(path) => git.text_at(&commit, path, limit).map_err(RunError::Source)?,
        None => None,
    };
    match (text, &path) {
        (Some(text), Some(path)) => {
            past.folder = Some(path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned());
            match lint::open_past(&text, &now.label, now.options.base.clone(), request, Some(past.clone())) {
                Ok(base) => opened = Some(base),
                Err(_) => {
                    past.folder = None;
                    notes.push("The base's profile has mistakes, so the profile of now is used for both.".to_owned());
                }
            }
        }
        (_, Some(_)) => notes.push("The base has no profile, so the profile of now is used for both.".to_owned()),
        (_, None) => notes.push("The profile is not part of the repository, so the profile of now is used for both.".to_owned()),
    }
    let own = opened.is_some();
    let mut opened = match opened {
        Some(opened) => opened,
        None => {
            let text = now.files.iter().next().map(|(_, file)| file.text.to_string()).unwrap_or_default();
            lint::open_past(&text, &now.label, now.options.base.clone(), request, Some(past.clone()))?
        }
    };
    for main in opened.profile.sources.iter_mut().filter(|other| other.id == source.id) {
        // A profile that pins its own repository says what `check` would have read at that revision.
        if !own || main.commit.is_none() {
            main.commit = Some(commit.clone());
            main.tree = None;
        }
    }
    opened.options.past = Some(past);
    opened.options.known = known;
    let against = Against { name: revision.to_owned(), commit: Some(commit), notes, gone: Vec::new() };
    Ok(Base { opened, against })
}

/// Full id of the commit to compare with: where the revision and what is linted part.
fn commit(git: &Git, source: &Source, revision: &str, notes: &mut Vec<String>) -> Result<String, RunError> {
    let named = git.expand(revision).map_err(|error| RunError::Base {
        message: format!("there is no base to compare with: {error}"),
        help: match git.missing_parent(revision) {
            Some(parent) => format!(
                "the clone is shallow, and commit {parent}, which `{revision}` needs, is not in it. In the repository of `{}`, run \
                 `git fetch --depth 1 origin {parent}` and give that id, or `git fetch --unshallow`",
                source.id
            ),
            None => error.next_step(),
        },
    })?;
    let head = match &source.commit {
        Some(commit) => Some(commit.clone()),
        None => git.head().map(|head| head.to_string()),
    };
    let Some(head) = head else {
        notes.push("Nothing is committed yet, so the checkout as it stands is compared with the base.".to_owned());
        return Ok(named);
    };
    match git.merge_base(&named, &head) {
        Some(base) if base == named => {}
        Some(base) => {
            notes.push(format!(
                "'{revision}' has commits that are not in what is linted, so it is compared with {base}, where the two part."
            ));
            return Ok(base);
        }
        None => {
            let why = if git.is_shallow() { "the clone is shallow and does not show" } else { "the history does not say" };
            notes.push(format!("'{revision}' itself is the base: {why} where it and what is linted part."));
        }
    }
    Ok(named)
}

/// Path of a file within the work tree of a repository, with forward slashes.
fn inside(git: &Git, path: &Path) -> Option<String> {
    let root = git.work_tree()?.canonicalize().ok()?;
    let path = path.canonicalize().ok()?;
    let parts: Vec<_> = path.strip_prefix(root).ok()?.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    Some(parts.join("/"))
}
