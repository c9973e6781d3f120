//! Reports for people and for machines.
//!
//! In: a finished [`Report`], the files it points into, and a [`RunInfo`]. Out: one document per format, written to any writer. Refused:
//! nothing; a place outside its file is clamped, so that a report can always be written. No clock, no absolute path, no hash order: the same
//! report gives the same bytes.

pub mod dot;
pub mod github;
pub mod gitlab;
pub mod human;
pub mod json;
pub mod junit;
pub mod output;
mod places;
pub mod sarif;
mod tally;
#[cfg(test)]
mod testing;

use std::collections::BTreeSet;

use crate::catalog::Level;
use crate::findings::fingerprint::Prints;
use crate::findings::{Report, Verdict};
use crate::text::{Files, Span};

/// Name of the tool in every report. Part of the identity of GitHub's alerts: never changed, never given a version.
pub const TOOL_NAME: &str = "rlk-lint";

/// Home of the tool, for links.
pub const TOOL_HOME: &str = env!("CARGO_PKG_REPOSITORY");

/// What reports say about the run besides its findings.
#[derive(Clone, Debug)]
pub struct RunInfo {
    /// Version of the tool.
    pub tool_version: String,
    /// Path of the profile relative to the main repository, with forward slashes.
    pub profile: String,
    /// Sources in the order of the profile.
    pub sources: Vec<SourceInfo>,
    /// Source whose repository holds the profile; `None` if that is the main one.
    pub home: Option<String>,
    /// SARIF category; `None` leaves it to the upload.
    pub category: Option<String>,
    /// Lowest level that fails the run.
    pub fail_on: Level,
    /// How the run ended.
    pub verdict: Verdict,
}

/// What reports say about one source.
#[derive(Clone, Debug)]
pub struct SourceInfo {
    /// Id in the profile.
    pub id: String,
    /// Public address of the repository.
    pub repository: Option<String>,
    /// Full id of the commit that was read; `None` for a plain directory.
    pub commit: Option<String>,
    /// Whether this is the checked-out repository that results are reported against.
    pub is_main: bool,
    /// Tree after the companion patch, if one was applied.
    pub patched_tree: Option<String>,
    /// The source's entry in the profile.
    pub pin: Span,
    /// Paths of files that the companion patch touches: their lines are not those of the commit.
    pub patched_files: BTreeSet<String>,
    /// Whether anything of it was read.
    pub read: bool,
}

/// One report with all that is needed to write it.
#[derive(Clone, Copy)]
pub struct Document<'a> {
    /// What was found and what was not seen.
    pub report: &'a Report,
    /// Files that the report's places lie in.
    pub files: &'a Files,
    /// About the run.
    pub info: &'a RunInfo,
}

impl<'a> Document<'a> {
    /// Fingerprints of this report's findings.
    #[must_use]
    pub fn prints(&self) -> Prints<'a> {
        let main = self.info.sources.iter().find(|source| source.is_main);
        Prints::new(self.files, main.map(|source| source.id.as_str()))
    }
}

/// Address of a rule's page.
#[must_use]
pub fn rule_page(slug: &str) -> String {
    format!("{TOOL_HOME}/blob/main/rules/{slug}/README.md")
}
