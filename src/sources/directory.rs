//! Plain directories and working trees.
//!
//! In: the path of a directory. Out: the text of every file of interest, in byte order of paths. In a git work tree `.gitignore` files are
//! respected; elsewhere nothing is left out. Refused: links out of the directory, nested repositories, anything that is not a regular file.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ignore::WalkBuilder;
use rayon::prelude::*;

use super::decode::{kind_by_first_line, kind_by_name, may_be_script};
use super::git::file_gap;
use super::read::{Text, Texts, text};
use super::tree::blob_id;
use super::{FileKind, SourceError};
use crate::findings::{Gap, GapKind};

/// A file that is to be read.
struct Wanted {
    path: String,
    real: PathBuf,
    link_target: Option<String>,
    kind: Option<FileKind>,
}

/// What became of one entry of the walk.
enum Found {
    Wanted(Wanted),
    Other,
    Folder,
    Gap(Gap),
}

/// Reads the directory `root` of source `id`. `max_bytes` is the size limit of one file.
///
/// # Errors
/// [`SourceError::Missing`] or [`SourceError::Unreadable`] for the root itself.
pub(super) fn read_directory(id: &str, root: &Path, max_bytes: u64) -> Result<Texts, SourceError> {
    if !root.exists() {
        return Err(SourceError::Missing { id: id.to_owned() });
    }
    let unreadable = |cause: String| SourceError::Unreadable { id: id.to_owned(), cause };
    if !root.is_dir() {
        return Err(unreadable("its path is not a directory".to_owned()));
    }
    let root = root.canonicalize().map_err(|error| unreadable(io_cause(&error)))?;
    std::fs::read_dir(&root).map_err(|error| unreadable(io_cause(&error)))?;
    let nested = Arc::new(Mutex::new(Vec::new()));
    let mut walk = WalkBuilder::new(&root);
    walk.standard_filters(false).git_ignore(true).require_git(true).parents(true).follow_links(false);
    let seen = Arc::clone(&nested);
    walk.filter_entry(move |entry| {
        let repository = entry.depth() > 0 && entry.file_type().is_some_and(|kind| kind.is_dir()) && entry.path().join(".git").exists();
        if repository && let Ok(mut seen) = seen.lock() {
            seen.push(entry.path().to_path_buf());
        }
        !repository && entry.file_name() != ".git"
    });
    let mut out = Texts::default();
    let mut wanted = Vec::new();
    for step in walk.build() {
        let found = match step {
            Ok(entry) => classify(id, &root, &entry, max_bytes),
            Err(error) => Found::Gap(walk_gap(id, &root, &error)),
        };
        match found {
            Found::Wanted(file) => wanted.push(file),
            Found::Other => out.other_files += 1,
            Found::Gap(gap) => out.gaps.push(gap),
            Found::Folder => {}
        }
    }
    for path in nested.lock().map(|paths| paths.clone()).unwrap_or_default() {
        let cause = "it is a submodule or a repository of its own, whose files are not part of this one";
        let next = "Declare it as a source of its own if its code matters.";
        out.gaps.push(file_gap(GapKind::Submodule, id, &relative(&root, &path), cause, next));
    }
    wanted.sort_unstable_by(|a, b| a.path.as_bytes().cmp(b.path.as_bytes()));
    let source: Arc<str> = id.into();
    let read: Vec<Result<Option<Text>, Gap>> =
        wanted.into_par_iter().with_min_len(16).map(|file| read_file(&source, file, max_bytes)).collect();
    for outcome in read {
        match outcome {
            Ok(Some(text)) => out.texts.push(text),
            Ok(None) => out.other_files += 1,
            Err(gap) => out.gaps.push(gap),
        }
    }
    out.gaps.sort();
    Ok(out)
}

/// Reads and decodes one file; `None` if its first line says that it is of no interest.
fn read_file(source: &Arc<str>, file: Wanted, max_bytes: u64) -> Result<Option<Text>, Gap> {
    let path = file.path.as_bytes();
    let bytes = contents(&file.real, max_bytes)
        .map_err(|cause| file_gap(GapKind::SourceUnreadable, source, path, &cause, "Check its permissions."))?;
    let Some(kind) = file.kind.or_else(|| kind_by_first_line(&bytes)) else { return Ok(None) };
    let text = text(source, path, kind, &bytes, blob_id(&bytes))?;
    Ok(Some(Text { link_target: file.link_target, ..text }))
}

/// Decides what to do with one entry of the walk.
fn classify(id: &str, root: &Path, entry: &ignore::DirEntry, max_bytes: u64) -> Found {
    let Some(file_type) = entry.file_type() else { return Found::Other };
    if file_type.is_dir() {
        return Found::Folder;
    }
    let path = relative(root, entry.path());
    let mut real = entry.path().to_path_buf();
    let mut link_target = None;
    if file_type.is_symlink() {
        match link(root, entry.path()) {
            Ok(target) => {
                link_target = Some(String::from_utf8_lossy(&relative(root, &target)).into_owned());
                real = target;
            }
            Err(cause) => return Found::Gap(file_gap(GapKind::Symlink, id, &path, &format!("the symbolic link {cause}"), "")),
        }
    }
    let metadata = match std::fs::metadata(&real) {
        Ok(metadata) => metadata,
        Err(error) => {
            return Found::Gap(file_gap(GapKind::SourceUnreadable, id, &path, &io_cause(&error), "Check its permissions."));
        }
    };
    let kind = kind_by_name(&path);
    let script = kind.is_none() && may_be_script(&path) && is_executable(&metadata);
    if !metadata.is_file() || (kind.is_none() && !script) {
        return Found::Other;
    }
    if metadata.len() > limit(max_bytes) {
        if script {
            return Found::Other;
        }
        let cause = format!("the file has {} bytes, more than the limit of {max_bytes}", metadata.len());
        return Found::Gap(file_gap(GapKind::Oversize, id, &path, &cause, "Raise `max_file_bytes` in the profile if the file matters."));
    }
    match String::from_utf8(path) {
        Ok(path) => Found::Wanted(Wanted { path, real, link_target, kind }),
        Err(error) => Found::Gap(file_gap(GapKind::Encoding, id, error.as_bytes(), "its path is not valid UTF-8", "Rename the file.")),
    }
}

/// Follows a link to a path inside `root`.
fn link(root: &Path, path: &Path) -> Result<PathBuf, String> {
    let target = std::fs::read_link(path).map_err(|error| format!("could not be read: {}", io_cause(&error)))?;
    if target.is_absolute() {
        return Err("leads out of the tree: its target is absolute".to_owned());
    }
    let real = path.canonicalize().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "dangles".to_owned(),
        std::io::ErrorKind::PermissionDenied => "could not be read: permission denied".to_owned(),
        _ => "loops".to_owned(),
    })?;
    let Ok(inside) = real.strip_prefix(root) else { return Err("leads out of the tree".to_owned()) };
    if inside.components().any(|part| part.as_os_str() == ".git") {
        return Err("leads into the `.git` folder".to_owned());
    }
    if real.is_dir() {
        return Err("leads to a folder; the files in it are read under their own paths".to_owned());
    }
    Ok(real)
}

/// Reads a file, refusing one that has grown beyond the limit since it was looked at.
fn contents(path: &Path, max_bytes: u64) -> Result<Vec<u8>, String> {
    let file = std::fs::File::open(path).map_err(|error| io_cause(&error))?;
    let mut bytes = Vec::new();
    file.take(limit(max_bytes).saturating_add(1)).read_to_end(&mut bytes).map_err(|error| io_cause(&error))?;
    if bytes.len() as u64 > limit(max_bytes) { Err("the file grew while it was read".to_owned()) } else { Ok(bytes) }
}

fn limit(max_bytes: u64) -> u64 {
    max_bytes.min(u64::from(u32::MAX))
}

/// Path relative to the root, with forward slashes.
fn relative(root: &Path, path: &Path) -> Vec<u8> {
    let parts: Vec<&[u8]> = path.strip_prefix(root).unwrap_or(path).components().map(|part| part.as_os_str().as_encoded_bytes()).collect();
    parts.join(&b'/')
}

/// What failed, without a path.
pub(super) fn io_cause(error: &std::io::Error) -> String {
    error.kind().to_string()
}

fn walk_gap(id: &str, root: &Path, error: &ignore::Error) -> Gap {
    let mut path = Vec::new();
    let mut inner = error;
    loop {
        inner = match inner {
            ignore::Error::WithPath { path: at, err } => {
                path = relative(root, at);
                err
            }
            ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => err,
            _ => break,
        };
    }
    let cause = error.io_error().map_or_else(|| "the walk failed here".to_owned(), io_cause);
    file_gap(GapKind::SourceUnreadable, id, &path, &cause, "Check its permissions.")
}

#[cfg(unix)]
fn is_executable(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_metadata: &std::fs::Metadata) -> bool {
    false
}
