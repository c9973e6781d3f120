//! Findings, gaps and the report that carries them.
//!
//! In: what rules push. Out: a report in one total order, with a verdict. Refused: a finding of a rule that the catalog does not know
//! (a bug, caught by a test), a gap that is not counted.

pub mod compare;
pub mod fingerprint;
pub mod order;
pub mod suppress;
mod verdict;

pub use verdict::verdict;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::catalog::{Level, RuleMeta};
use crate::text::Span;

/// One step of a chain that explains a finding or describes a route, from framework entry point to kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// Where the step is taken: the call, import, assignment or definition.
    pub span: Span,
    /// What happens there, as one clause without a final period.
    pub message: String,
}

/// A second place that a finding refers to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Related {
    /// The place.
    pub span: Span,
    /// What it has to do with the finding, as one clause without a final period.
    pub message: String,
}

/// What a rule found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule.
    pub rule: &'static RuleMeta,
    /// Level after the profile's overrides; rules leave the rule's own level here.
    pub level: Level,
    /// Key of the rule's message (`messages` in its `rule.toml`).
    pub message: &'static str,
    /// Arguments for the message's `{0}`, `{1}` and so on.
    pub arguments: Vec<String>,
    /// Primary place: short, on one line where possible.
    pub primary: Span,
    /// Qualified name of the definition or route that the finding is about; part of the baseline key, never a line number.
    pub symbol: String,
    /// Second places, in the order in which the message refers to them.
    pub related: Vec<Related>,
    /// Chain from entry to kernel, in order; may be empty. Where it does not end on the primary place, SARIF adds that as its last step.
    pub flow: Vec<Step>,
    /// Whether the primary line was added by a companion patch.
    pub from_patch: bool,
    /// What became of it since an earlier run; `None` if there was none to compare with.
    pub change: Option<compare::Change>,
}

impl Finding {
    /// A finding at its rule's default level, with neither related places nor a chain.
    #[must_use]
    pub fn new(rule: &'static RuleMeta, message: &'static str, arguments: Vec<String>, primary: Span, symbol: impl Into<String>) -> Self {
        Self {
            rule,
            level: rule.level,
            message,
            arguments,
            primary,
            symbol: symbol.into(),
            related: Vec::new(),
            flow: Vec::new(),
            from_patch: false,
            change: None,
        }
    }

    /// The message with its arguments in place.
    #[must_use]
    pub fn text(&self) -> String {
        self.rule.format(self.message, &self.arguments)
    }
}

/// Why something could not be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GapKind {
    /// A source of the profile is absent, or its path was not given.
    SourceMissing,
    /// A source is there but could not be read.
    SourceUnreadable,
    /// The pinned revision is not in the repository, or is not what the pin says.
    PinUnsatisfied,
    /// The companion patch is absent, does not apply or does not give the recorded tree.
    PatchUnverified,
    /// A submodule: its files are not part of the tree.
    Submodule,
    /// A Git LFS pointer instead of content.
    LfsPointer,
    /// A symbolic link that leaves the tree, dangles or loops.
    Symlink,
    /// A file larger than the limit.
    Oversize,
    /// Bytes that are not text in the declared encoding.
    Encoding,
    /// An object that a partial or shallow clone lacks.
    ObjectMissing,
    /// Python that does not parse; what could still be read was kept.
    Syntax,
    /// Input too deep or too large for a bound of the analysis.
    Bound,
    /// Something the probe could not observe.
    Unobserved,
}

impl GapKind {
    /// Every kind, in order.
    pub const ALL: [Self; 13] = [
        Self::SourceMissing,
        Self::SourceUnreadable,
        Self::PinUnsatisfied,
        Self::PatchUnverified,
        Self::Submodule,
        Self::LfsPointer,
        Self::Symlink,
        Self::Oversize,
        Self::Encoding,
        Self::ObjectMissing,
        Self::Syntax,
        Self::Bound,
        Self::Unobserved,
    ];

    /// The word used in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::SourceMissing => "source-missing",
            Self::SourceUnreadable => "source-unreadable",
            Self::PinUnsatisfied => "pin-unsatisfied",
            Self::PatchUnverified => "patch-unverified",
            Self::Submodule => "submodule",
            Self::LfsPointer => "lfs-pointer",
            Self::Symlink => "symlink",
            Self::Oversize => "oversize",
            Self::Encoding => "encoding",
            Self::ObjectMissing => "object-missing",
            Self::Syntax => "syntax",
            Self::Bound => "bound",
            Self::Unobserved => "unobserved",
        }
    }

    /// Whether a gap of this kind makes the whole run incomplete (exit 4): a source, pin or patch that was not seen as declared, or compiled
    /// code that the probe could not look at.
    #[must_use]
    pub const fn is_fatal(self) -> bool {
        matches!(
            self,
            Self::SourceMissing
                | Self::SourceUnreadable
                | Self::PinUnsatisfied
                | Self::PatchUnverified
                | Self::ObjectMissing
                | Self::Unobserved
        )
    }
}

/// Something that was not seen. Never silent: every gap is reported and counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gap {
    /// Why.
    pub kind: GapKind,
    /// Source id; empty if no source is concerned.
    pub source: String,
    /// Path within the source; empty if the whole source is concerned.
    pub path: String,
    /// Place, where there is one.
    pub span: Option<Span>,
    /// Cause, as one sentence.
    pub cause: String,
    /// What to do next, as one sentence; may be empty.
    pub next: String,
    /// Whether the user asked for the run to go on without it (`--allow-missing`).
    pub allowed: bool,
}

/// How a run ended. The order is that of precedence: unfinished work outranks findings, findings outrank clean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Everything was looked at and nothing at or above the failing level was found.
    Clean,
    /// Findings at or above the failing level.
    Findings,
    /// There was nothing to lint.
    Nothing,
    /// Something that had to be looked at could not be.
    Incomplete,
}

impl Verdict {
    /// The word used in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Findings => "findings",
            Self::Nothing => "nothing",
            Self::Incomplete => "incomplete",
        }
    }

    /// Process exit code.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Findings => 1,
            Self::Nothing => 3,
            Self::Incomplete => 4,
        }
    }
}

/// An earlier run that findings are compared with.
#[derive(Clone, Debug, Default)]
pub struct Against {
    /// What it is, as a few words: a revision, or a file.
    pub name: String,
    /// Full id of the commit; `None` for a file.
    pub commit: Option<String>,
    /// What a reader has to know about the comparison, as sentences.
    pub notes: Vec<String>,
    /// Findings that are gone: rule id and symbol.
    pub gone: Vec<(String, String)>,
}

/// What one run has to say.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Findings in total order.
    pub findings: Vec<Finding>,
    /// Findings that an inline comment or the profile silenced, with the reason given.
    pub suppressed: Vec<(Finding, String)>,
    /// Findings that were there in an earlier run, in total order: they are not judged.
    pub known: Vec<Finding>,
    /// What the findings are compared with, if with anything.
    pub against: Option<Against>,
    /// Gaps in total order.
    pub gaps: Vec<Gap>,
    /// Numbers for the summary line, by name: [`counts::ROUTES_TRACED`], [`counts::ROUTES_UNTRACED`] plus a reason, [`counts::FILES_READ`].
    pub counts: BTreeMap<String, u64>,
}

/// Names of the numbers in [`Report::counts`].
pub mod counts {
    /// Callsites whose route was traced down to a kernel.
    pub const ROUTES_TRACED: &str = "routes.traced";
    /// Prefix for callsites whose route was not traced; the reason follows, as a few words (`routes.untraced.dynamic dispatch`).
    pub const ROUTES_UNTRACED: &str = "routes.untraced.";
    /// Files that were read.
    pub const FILES_READ: &str = "files.read";
}

/// Turns what the rules pushed into a report: ignore comments first, then the profile's levels, merging and order.
#[must_use]
pub fn finish(
    findings: Vec<Finding>,
    mut gaps: Vec<Gap>,
    suppressions: &[suppress::Suppression],
    levels: order::Levels<'_>,
    files: &crate::text::Files,
) -> Report {
    let suppress::Suppressed { kept, silenced } = suppress::suppress(findings, suppressions, files);
    order::sort_gaps(&mut gaps);
    Report {
        findings: order::arrange(kept, files, levels),
        suppressed: order::arrange_silenced(silenced, files, levels),
        known: Vec::new(),
        against: None,
        gaps,
        counts: BTreeMap::new(),
    }
}
