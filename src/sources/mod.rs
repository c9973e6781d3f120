//! Sources: pinned revisions to files, read-only.
//!
//! In: the profile's sources and the paths given for them. Out: for each, the revision's identity and its files as bytes-turned-text, in
//! path order. Refused: everything that would write to a source repository or run something from it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use crate::findings::Gap;
use crate::profile::{Role, Source};
use crate::text::FileId;

mod apply;
pub mod commit;
pub mod decode;
pub mod directory;
pub mod embedded;
mod error;
pub mod git;
pub mod history;
mod known;
mod load;
pub mod patch;
mod patch_names;
mod read;
pub mod snapshot;
#[cfg(test)]
mod tests;
pub mod tree;

pub use error::SourceError;
pub use known::{KnownTexts, Past};
pub use load::{LoadOptions, load, load_source, read_text};

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
    /// Whether the companion patch touches it.
    pub patched: bool,
    /// Lines (from 1) that the companion patch added or changed; empty without a patch.
    pub patched_lines: BTreeSet<u32>,
    /// Path of the file that a symbolic link leads to; `None` for a file that is no link.
    pub link_target: Option<Arc<str>>,
}

/// The checkout beside a pinned commit, or the checkout that was read. It is never what a pinned source is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkTree {
    /// Commit that is checked out; `None` before the first commit.
    pub head: Option<String>,
    /// Tracked paths that differ from the pinned commit (from `head` without a pin), in byte order.
    pub changed: Vec<String>,
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
    /// Repository that a commit was read from, to ask for its history. Never part of a report.
    pub repository: Option<PathBuf>,
    /// Tree of that commit before the patch.
    pub tree: Option<String>,
    /// Tree after the patch, computed.
    pub patched_tree: Option<String>,
    /// SHA-256 of the patch that was applied.
    pub patch_sha256: Option<String>,
    /// Whether it was read from a working tree or a plain directory instead of a commit.
    pub from_directory: bool,
    /// The checkout, if there is one at the path.
    pub work_tree: Option<WorkTree>,
    /// Package roots.
    pub roots: Vec<String>,
    /// Files in path order.
    pub files: Vec<LoadedFile>,
    /// Number of files that are of no interest and were not read.
    pub other_files: u64,
    /// What is wrong with the source, its pin or its patch. Each has its gap too.
    pub problems: Vec<SourceError>,
    /// What could not be read.
    pub gaps: Vec<Gap>,
}

impl LoadedSource {
    /// A source of which nothing has been read yet.
    #[must_use]
    pub fn unread(source: &Source) -> Self {
        Self {
            id: source.id.clone(),
            role: source.role,
            commit: None,
            repository: None,
            tree: None,
            patched_tree: None,
            patch_sha256: None,
            from_directory: false,
            work_tree: None,
            roots: source.roots.clone(),
            files: Vec::new(),
            other_files: 0,
            problems: Vec::new(),
            gaps: Vec::new(),
        }
    }

    /// Whether the checkout differs from what is pinned (from its own commit without a pin).
    #[must_use]
    pub fn dirty(&self) -> bool {
        self.work_tree.as_ref().is_some_and(|tree| !tree.changed.is_empty())
    }
}
