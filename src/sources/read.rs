//! From a snapshot to texts.
//!
//! In: a snapshot and the object database it came from. Out: the text of every file of interest, in path order, and gaps for the rest. Refused:
//! files above the size limit, whose blobs are not read at all; only their headers are.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use git2::{ErrorCode, Odb, Oid, Repository};
use rayon::prelude::*;

use super::decode::{decode, kind_by_first_line, kind_by_name, may_be_script};
use super::git::{file_gap, gap};
use super::snapshot::{EXECUTABLE, Entry, LINK, SUBMODULE, Snapshot};
use super::{FileKind, KnownTexts, SourceError};
use crate::findings::{Gap, GapKind};
use crate::text::TextFile;

/// Longest target of a symbolic link, as on Linux.
const MAX_TARGET: usize = 4096;
/// Most bytes of one source.
const MAX_TOTAL: u64 = 1 << 30;
/// From this number on, absent blobs share one gap.
const MANY: usize = 20;

/// A text that was read.
#[derive(Debug)]
pub(super) struct Text {
    pub file: TextFile,
    pub kind: FileKind,
    pub blob: String,
    pub patched: bool,
    pub added: BTreeSet<u32>,
    pub link_target: Option<String>,
}

/// What a snapshot gave.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub texts: Vec<Text>,
    pub other_files: u64,
    pub gaps: Vec<Gap>,
}

/// A file that is to be read.
struct Wanted<'s> {
    path: &'s [u8],
    target: Option<Vec<u8>>,
    entry: &'s Entry,
    /// `None` if the first line decides.
    kind: Option<FileKind>,
}

/// Result of reading one file.
enum Outcome {
    Text(Text),
    Other,
    Absent(Oid),
    Gap(Gap),
}

/// Reads every file of interest. `objects` is the git folder to which `odb` belongs; `max_bytes` is the size limit of one file. What is in `known`
/// is not read again.
pub(super) fn read_snapshot(id: &str, snapshot: &Snapshot, objects: &Path, odb: &Odb<'_>, max_bytes: u64, known: &KnownTexts) -> Texts {
    let source: Arc<str> = id.into();
    let mut out = Texts::default();
    let mut absent: Vec<(&[u8], Oid)> = Vec::new();
    let mut wanted = Vec::new();
    for (path, entry) in &snapshot.entries {
        let (candidate, resolved) = match resolve(id, snapshot, odb, path, entry) {
            Ok(found) => found,
            Err(gap) => {
                out.gaps.push(gap);
                continue;
            }
        };
        let kind = kind_by_name(path);
        let script = kind.is_none() && candidate.mode == EXECUTABLE && may_be_script(path);
        if kind.is_none() && !script {
            out.other_files += 1;
            continue;
        }
        wanted.push(Wanted { path, target: resolved, entry: candidate, kind });
    }
    let share = wanted.len().div_ceil(rayon::current_num_threads().max(1)).max(64);
    let outcomes: Vec<Vec<(u64, Outcome)>> = wanted
        .par_chunks(share)
        .map(|files| {
            // A handle for each thread: one handle unpacks one object at a time.
            let own = Repository::open_bare(objects).ok();
            let own = own.as_ref().and_then(|repo| repo.odb().ok());
            let odb = own.as_ref().unwrap_or(odb);
            let mut budget = MAX_TOTAL;
            files
                .iter()
                .map(|file| match known_text(&source, known, file, max_bytes) {
                    Some(text) => (text.file.text.len() as u64, Outcome::Text(text)),
                    None => read_within(&source, odb, file, max_bytes, &mut budget),
                })
                .collect()
        })
        .collect();
    let mut total = 0_u64;
    for (file, (size, outcome)) in wanted.iter().zip(outcomes.into_iter().flatten()) {
        total += size;
        if total > MAX_TOTAL {
            let bound = SourceError::Bound { id: id.to_owned(), what: format!("its files have more than {MAX_TOTAL} bytes together") };
            out.gaps.push(gap(id, &String::from_utf8_lossy(file.path), &bound));
            break;
        }
        match outcome {
            Outcome::Text(text) => out.texts.push(text),
            Outcome::Other => out.other_files += 1,
            Outcome::Absent(object) => absent.push((file.path, object)),
            Outcome::Gap(gap) => out.gaps.push(gap),
        }
    }
    absent.sort_unstable();
    push_absent(id, &absent, &mut out.gaps);
    out.gaps.sort();
    out
}

/// The entry that is to be read for `path`, and the path of a link's target.
fn resolve<'s>(
    id: &str,
    snapshot: &'s Snapshot,
    odb: &Odb<'_>,
    path: &'s [u8],
    entry: &'s Entry,
) -> Result<(&'s Entry, Option<Vec<u8>>), Gap> {
    match entry.mode {
        SUBMODULE => {
            let cause = format!("it is a submodule at commit {}, whose files are not part of the tree", entry.id);
            Err(file_gap(GapKind::Submodule, id, path, &cause, "Declare it as a source of its own if its code matters."))
        }
        LINK => {
            let followed = snapshot.follow(path, &mut |link| link_target(odb, link));
            let found = followed.and_then(|target| match snapshot.entries.get(&target) {
                Some(entry) if entry.is_file() => Ok((entry, Some(target))),
                _ => Err("leads to no file".to_owned()),
            });
            found.map_err(|cause| file_gap(GapKind::Symlink, id, path, &format!("the symbolic link {cause}"), ""))
        }
        _ => Ok((entry, None)),
    }
}

/// Target of a link, bounded.
fn link_target(odb: &Odb<'_>, link: &Entry) -> Result<Vec<u8>, String> {
    if let Some(content) = &link.content {
        return if content.len() > MAX_TARGET { Err("has a target that is too long".to_owned()) } else { Ok(content.to_vec()) };
    }
    match odb.read_header(link.id) {
        Ok((size, _)) if size > MAX_TARGET => Err("has a target that is too long".to_owned()),
        Ok(_) => odb.read(link.id).map(|object| object.data().to_vec()).map_err(|error| format!("could not be read: {}", error.message())),
        Err(error) if error.code() == ErrorCode::NotFound => Err(format!("could not be read: object {} is absent", link.id)),
        Err(error) => Err(format!("could not be read: {}", error.message())),
    }
}

/// A file whose blob was read before.
fn known_text(source: &Arc<str>, known: &KnownTexts, file: &Wanted<'_>, max_bytes: u64) -> Option<Text> {
    let blob = file.entry.id.to_string();
    let kind = file.kind?;
    let path = std::str::from_utf8(file.path).ok()?;
    let text = known.get(&blob, kind).filter(|text| text.text.len() as u64 <= max_bytes)?.elsewhere(Arc::clone(source), path);
    let link_target = file.target.as_ref().map(|target| String::from_utf8_lossy(target).into_owned());
    Some(Text { file: text, kind, blob, patched: file.entry.content.is_some(), added: file.entry.added.clone(), link_target })
}

/// Reads one file, unless it has more than `max_bytes`, or more than is left of the source's `budget`, which it lowers. Gives the blob's size too.
fn read_within(source: &Arc<str>, odb: &Odb<'_>, file: &Wanted<'_>, max_bytes: u64, budget: &mut u64) -> (u64, Outcome) {
    let size = match &file.entry.content {
        Some(content) => content.len() as u64,
        None => match odb.read_header(file.entry.id) {
            Ok((size, _)) => size as u64,
            Err(error) if error.code() == ErrorCode::NotFound => return (0, Outcome::Absent(file.entry.id)),
            Err(error) => return (0, Outcome::Gap(damaged(source, file.path, file.entry.id, &error))),
        },
    };
    if size > max_bytes.min(u64::from(u32::MAX)) {
        if file.kind.is_none() {
            return (0, Outcome::Other);
        }
        let cause = format!("the file has {size} bytes, more than the limit of {max_bytes}");
        let next = "Raise `max_file_bytes` in the profile if the file matters.";
        return (0, Outcome::Gap(file_gap(GapKind::Oversize, source, file.path, &cause, next)));
    }
    // A share that exceeds the budget alone does so together with the others: the whole is cut at or before this file, on any number of threads.
    let outcome = if size > *budget { Outcome::Other } else { read_one(source, odb, file) };
    *budget = budget.saturating_sub(size);
    (size, outcome)
}

fn read_one(source: &Arc<str>, odb: &Odb<'_>, file: &Wanted<'_>) -> Outcome {
    let stored;
    let bytes = match &file.entry.content {
        Some(content) => content,
        None => match odb.read(file.entry.id) {
            Ok(object) if object.kind() == git2::ObjectType::Blob => {
                stored = object;
                stored.data()
            }
            Ok(object) => {
                let error = git2::Error::from_str(&format!("it is a {}, not a blob", object.kind().str()));
                return Outcome::Gap(damaged(source, file.path, file.entry.id, &error));
            }
            Err(error) if error.code() == ErrorCode::NotFound => return Outcome::Absent(file.entry.id),
            Err(error) => return Outcome::Gap(damaged(source, file.path, file.entry.id, &error)),
        },
    };
    let Some(kind) = file.kind.or_else(|| kind_by_first_line(bytes)) else { return Outcome::Other };
    let link_target = file.target.as_ref().map(|target| String::from_utf8_lossy(target).into_owned());
    match text(source, file.path, kind, bytes, file.entry.id) {
        Ok(text) => Outcome::Text(Text { patched: file.entry.content.is_some(), added: file.entry.added.clone(), link_target, ..text }),
        Err(gap) => Outcome::Gap(gap),
    }
}

/// Decodes one file.
pub(super) fn text(source: &Arc<str>, path: &[u8], kind: FileKind, bytes: &[u8], blob: Oid) -> Result<Text, Gap> {
    let Ok(name) = std::str::from_utf8(path) else {
        return Err(file_gap(GapKind::Encoding, source, path, "its path is not valid UTF-8", "Rename the file."));
    };
    match decode(kind, bytes) {
        Ok(text) => {
            let file = TextFile::new(Arc::clone(source), name, &*text);
            Ok(Text { file, kind, blob: blob.to_string(), patched: false, added: BTreeSet::new(), link_target: None })
        }
        Err((kind, cause)) => {
            let next = if kind == GapKind::Encoding { "Declare the file's encoding as in PEP 263, or save it as UTF-8." } else { "" };
            Err(file_gap(kind, source, path, &cause, next))
        }
    }
}

fn damaged(id: &str, path: &[u8], object: Oid, error: &git2::Error) -> Gap {
    let path = String::from_utf8_lossy(path);
    let what = format!("blob of {path}");
    let error = SourceError::ObjectDamaged { id: id.to_owned(), object: object.to_string(), what, cause: error.message().to_owned() };
    gap(id, &path, &error)
}

/// One gap for each absent blob, or a single one with their number if there are many.
fn push_absent(id: &str, absent: &[(&[u8], Oid)], gaps: &mut Vec<Gap>) {
    let error = |object: &Oid, what: String| SourceError::ObjectMissing { id: id.to_owned(), object: object.to_string(), what };
    if let (Some((path, object)), true) = (absent.first(), absent.len() > MANY) {
        let what = format!("blob of {}, and {} more blobs", String::from_utf8_lossy(path), absent.len() - 1);
        gaps.push(gap(id, "", &error(object, what)));
        return;
    }
    for (path, object) in absent {
        let path = String::from_utf8_lossy(path);
        gaps.push(gap(id, &path, &error(object, format!("blob of {path}"))));
    }
}
