//! Sources: pinned revisions to files, read-only.
//!
//! In: the profile's sources and the paths given for them. Out: for each, the revision's identity and its files as bytes-turned-text, in
//! path order. Refused: everything that would write to a source repository or run something from it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::findings::Gap;
use crate::profile::Role;
use crate::text::FileId;

/// What a file is, decided by its name (and its first line for scripts).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// Python source (`.py`).
    Python,
    /// Shell script.
    Shell,
    /// JSON.
    Json,
    /// TOML.
    Toml,
    /// Markdown, reStructuredText, plain text.
    Document,
}

/// One file of a source.
#[derive(Clone, Debug)]
pub struct LoadedFile {
    /// Its text in the run's file table.
    pub file: FileId,
    /// What it is.
    pub kind: FileKind,
    /// Git blob id of the content, lower-case hex; cache key.
    pub blob: Arc<str>,
    /// Lines (from 1) that the companion patch added or changed; empty without a patch.
    pub patched_lines: BTreeSet<u32>,
}

/// One source as it was read.
#[derive(Clone, Debug)]
pub struct LoadedSource {
    /// Id in the profile.
    pub id: String,
    /// Role in the profile.
    pub role: Role,
    /// Commit that was read; `None` for a plain directory.
    pub commit: Option<String>,
    /// Tree of that commit before the patch.
    pub tree: Option<String>,
    /// Tree after the patch, computed.
    pub patched_tree: Option<String>,
    /// SHA-256 of the patch that was applied.
    pub patch_sha256: Option<String>,
    /// Whether it was read from a working tree or a plain directory instead of a commit.
    pub from_directory: bool,
    /// Package roots.
    pub roots: Vec<String>,
    /// Files in path order.
    pub files: Vec<LoadedFile>,
    /// What could not be read.
    pub gaps: Vec<Gap>,
}
