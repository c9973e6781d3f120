//! Applies a companion patch in memory.
//!
//! In: sections of a patch and the snapshot of the pinned tree. Out: the snapshot after the patch, with the lines that it added, and the id of the
//! resulting tree. Refused: everything that is not exact: other context, other line numbers, other modes or object ids than the patch names. Ids
//! are computed by hashing; nothing is written anywhere.

use std::collections::BTreeSet;

use git2::Oid;

use super::SourceError;
use super::patch::{Action, Index, LineKind, Section};
use super::snapshot::{EXECUTABLE, Entry, LINK, REGULAR, Snapshot};
use super::tree::{blob_id, tree_id};

/// Longest part of a line that is shown.
const SHOWN: usize = 160;

/// What a patch gave.
#[derive(Debug)]
pub struct Applied {
    /// The tree after the patch.
    pub snapshot: Snapshot,
    /// Its id.
    pub tree: Oid,
}

/// Reads the content of an entry of the base: path and entry in, bytes out.
pub type ReadBase<'r> = dyn FnMut(&[u8], &Entry) -> Result<Vec<u8>, SourceError> + 'r;

/// Applies `sections` to `base` for source `id`.
///
/// # Errors
/// [`SourceError::PatchDoesNotApply`] with the first line that differs, [`SourceError::PatchHeaderMismatch`] if a mode, an object id or the presence of a
/// file differs, [`SourceError::PatchRefused`] for what is ambiguous, and whatever `read` gives.
pub fn apply(id: &str, sections: &[Section<'_>], base: &Snapshot, read: &mut ReadBase<'_>) -> Result<Applied, SourceError> {
    let mut snapshot = base.clone();
    for section in sections {
        let step = Step { id, section, file: String::from_utf8_lossy(&section.new).into_owned() };
        step.run(base, &mut snapshot, read)?;
    }
    let tree = tree_id(&snapshot).map_err(|file| SourceError::PatchRefused {
        id: id.to_owned(),
        file,
        hunk: 0,
        reason: "the path would be both a file and a folder".to_owned(),
    })?;
    Ok(Applied { snapshot, tree })
}

/// One section that is being applied.
struct Step<'s, 'p> {
    id: &'s str,
    section: &'s Section<'p>,
    file: String,
}

impl Step<'_, '_> {
    fn refuse(&self, hunk: u32, reason: String) -> SourceError {
        SourceError::PatchRefused { id: self.id.to_owned(), file: self.file.clone(), hunk, reason }
    }

    fn mismatch(&self, what: String) -> SourceError {
        SourceError::PatchHeaderMismatch { id: self.id.to_owned(), file: self.file.clone(), what }
    }

    fn run(&self, base: &Snapshot, result: &mut Snapshot, read: &mut ReadBase<'_>) -> Result<(), SourceError> {
        let section = self.section;
        let old = self.base_entry(base)?;
        if matches!(section.action, Action::Create | Action::Rename)
            && (base.entries.contains_key(&section.new) || base.is_folder(&section.new))
        {
            return Err(self.mismatch("it is to be created, but the base has this path already".to_owned()));
        }
        self.check_old(old)?;
        let needed = !section.hunks.is_empty() || section.action == Action::Delete;
        let before = match old {
            Some(entry) if needed => read(&section.old, entry)?,
            _ => Vec::new(),
        };
        let (content, added) = self.edit(&before)?;
        if section.action == Action::Delete {
            if !content.is_empty() {
                return Err(self.mismatch("it is to be deleted, but the patch does not remove all of its lines".to_owned()));
            }
            if let Some(index) = &section.index {
                self.check_id("result", &index.new, None)?;
            }
            result.entries.remove(&section.old);
            return Ok(());
        }
        let mode = section.new_mode.or_else(|| old.map(|entry| entry.mode)).unwrap_or(REGULAR);
        if let Some(recorded) = section.index.as_ref().and_then(|index| index.mode).filter(|recorded| *recorded != mode) {
            return Err(self.mismatch(format!("its `index` line has mode {recorded:o}, but the result's mode is {mode:o}")));
        }
        if mode == LINK && section.new.rsplit(|byte| *byte == b'/').next() == Some(b".gitmodules") {
            return Err(self.refuse(0, "it makes `.gitmodules` a symbolic link".to_owned()));
        }
        let entry = match old {
            Some(old) if section.hunks.is_empty() => Entry { mode, ..old.clone() },
            _ => Entry { mode, id: blob_id(&content), content: Some(content.into()), added },
        };
        if let Some(Index { new, .. }) = &section.index {
            self.check_id("result", new, Some(entry.id))?;
        }
        if section.action == Action::Rename {
            result.entries.remove(&section.old);
        }
        result.entries.insert(section.new.clone(), entry);
        Ok(())
    }

    /// The entry that the section starts from; `None` if it creates one.
    fn base_entry<'b>(&self, base: &'b Snapshot) -> Result<Option<&'b Entry>, SourceError> {
        if self.section.action == Action::Create {
            return Ok(None);
        }
        let entry = base.entries.get(&self.section.old).ok_or_else(|| {
            self.mismatch(if self.section.old == self.section.new {
                "the base has no such file".to_owned()
            } else {
                format!("the base has no `{}` to rename", String::from_utf8_lossy(&self.section.old))
            })
        })?;
        if !matches!(entry.mode, REGULAR | EXECUTABLE | LINK) {
            return Err(self.refuse(0, format!("the base has mode {:o} there", entry.mode)));
        }
        Ok(Some(entry))
    }

    /// Compares the base's mode and object id with what the headers say about it.
    fn check_old(&self, old: Option<&Entry>) -> Result<(), SourceError> {
        if let Some(entry) = old {
            let kept = self.section.index.as_ref().and_then(|index| index.mode);
            if let Some(recorded) = [self.section.old_mode, kept].into_iter().flatten().find(|recorded| *recorded != entry.mode) {
                return Err(self.mismatch(format!("its headers have mode {recorded:o}, but the base's mode is {:o}", entry.mode)));
            }
            if entry.mode == LINK && self.section.new_mode.is_some() {
                return Err(self.refuse(0, "it turns a link into a file".to_owned()));
            }
        }
        match &self.section.index {
            Some(index) => self.check_id("base", &index.old, old.map(|entry| entry.id)),
            None => Ok(()),
        }
    }

    /// Compares a recorded id, possibly abbreviated, with the computed one; `None` stands for "no file", which is recorded as zeros.
    fn check_id(&self, side: &str, recorded: &str, computed: Option<Oid>) -> Result<(), SourceError> {
        let computed = computed.unwrap_or(Oid::ZERO_SHA1).to_string();
        if computed.starts_with(recorded) {
            return Ok(());
        }
        Err(self.mismatch(format!("its `index` line has {recorded} for the {side}, but the {side} has {computed}")))
    }

    /// The content after all hunks, and the lines that they added.
    fn edit(&self, before: &[u8]) -> Result<(Vec<u8>, BTreeSet<u32>), SourceError> {
        let base: Vec<&[u8]> = before.split_inclusive(|byte| *byte == b'\n').collect();
        let mut out = Output { bytes: Vec::with_capacity(before.len()), lines: 0 };
        let mut added = BTreeSet::new();
        let mut at = 0;
        for (number, hunk) in (1_u32..).zip(&self.section.hunks) {
            let start = if hunk.old_count == 0 { hunk.old_start } else { hunk.old_start - 1 } as usize;
            let Some(kept) = base.get(at..start.min(base.len())) else {
                return Err(self.refuse(number, "it overlaps the hunk before it or comes before it".to_owned()));
            };
            if start > base.len() {
                let first = hunk.lines.iter().find(|line| line.kind != LineKind::Added).map(|line| line.bytes);
                return Err(self.differs(number, start + 1, first, None));
            }
            for line in kept {
                out.push(line).map_err(|reason| self.refuse(number, reason))?;
            }
            at = start;
            let expected = out.lines + u32::from(hunk.new_count > 0);
            if hunk.new_start != expected {
                return Err(self.refuse(number, format!("its new lines start at {expected}, but its `@@` line says {}", hunk.new_start)));
            }
            for line in &hunk.lines {
                if line.kind != LineKind::Added {
                    let found = base.get(at).copied();
                    if found != Some(line.bytes) {
                        return Err(self.differs(number, at + 1, Some(line.bytes), found));
                    }
                    at += 1;
                }
                if line.kind != LineKind::Removed {
                    out.push(line.bytes).map_err(|reason| self.refuse(number, reason))?;
                }
                if line.kind == LineKind::Added {
                    added.insert(out.lines);
                }
            }
        }
        let last = u32::try_from(self.section.hunks.len()).unwrap_or(u32::MAX);
        for line in base.get(at..).unwrap_or_default() {
            out.push(line).map_err(|reason| self.refuse(last, reason))?;
        }
        Ok((out.bytes, added))
    }

    fn differs(&self, hunk: u32, line: usize, expected: Option<&[u8]>, found: Option<&[u8]>) -> SourceError {
        SourceError::PatchDoesNotApply {
            id: self.id.to_owned(),
            file: String::from_utf8_lossy(&self.section.old).into_owned(),
            hunk,
            line: u32::try_from(line).unwrap_or(u32::MAX),
            expected: expected.map_or_else(|| "a line".to_owned(), shown),
            found: found.map_or_else(|| "the end of the file".to_owned(), shown),
        }
    }
}

/// Lines of the result.
struct Output {
    bytes: Vec<u8>,
    lines: u32,
}

impl Output {
    fn push(&mut self, line: &[u8]) -> Result<(), String> {
        if self.lines > 0 && !self.bytes.ends_with(b"\n") {
            return Err(format!("line {} of the result has no line end, but is not the last", self.lines));
        }
        self.bytes.extend_from_slice(line);
        self.lines = self.lines.saturating_add(1);
        Ok(())
    }
}

/// A line in quotes, with escapes, shortened.
fn shown(line: &[u8]) -> String {
    let (body, note) = match line.strip_suffix(b"\n") {
        Some(body) => (body, ""),
        None => (line, " without a line end"),
    };
    let text = String::from_utf8_lossy(body);
    let short: String = text.chars().take(SHOWN).collect();
    let cut = if short.len() < text.len() { " (shortened)" } else { "" };
    format!("{short:?}{cut}{note}")
}
