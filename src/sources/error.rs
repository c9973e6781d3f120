//! What can be wrong with a source, its pin or its patch.
//!
//! In: facts from the git, patch and directory readers. Out: one typed error with a cause and a next step, neither of which names an absolute
//! path. "Could not verify" and "does not match" are different variants: [`SourceError::contradicts`] tells them apart.

use thiserror::Error;

use crate::findings::GapKind;

/// Why a source, its pin or its patch is not what the profile declares, or could not be looked at.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SourceError {
    /// `--source` names an id that the profile does not declare.
    #[error("the profile declares no source `{id}`; it declares {declared}")]
    UnknownSource {
        /// The id that was given.
        id: String,
        /// The ids that exist, comma-separated.
        declared: String,
    },
    /// Neither the profile nor the command line says where the source lies.
    #[error("no path is given for source `{id}`")]
    NoPath {
        /// Source id.
        id: String,
    },
    /// There is nothing at the path.
    #[error("there is nothing at the path given for source `{id}`")]
    Missing {
        /// Source id.
        id: String,
    },
    /// A commit is pinned, but the path is no git repository.
    #[error("the path given for source `{id}` is not a git repository, but a commit is pinned")]
    NotARepository {
        /// Source id.
        id: String,
    },
    /// A bare repository has no files of its own.
    #[error("source `{id}` is a bare repository and no commit is pinned, so there is nothing to read")]
    BareWithoutCommit {
        /// Source id.
        id: String,
    },
    /// The repository belongs to another user.
    #[error("the repository of source `{id}` is owned by another user, so it was not opened")]
    OtherOwner {
        /// Source id.
        id: String,
    },
    /// The repository uses a format that is not read.
    #[error("the repository of source `{id}` uses {format}, which is not supported")]
    UnsupportedFormat {
        /// Source id.
        id: String,
        /// The format, by name.
        format: String,
    },
    /// Opening took too long.
    #[error("opening the repository of source `{id}` took longer than {seconds} s")]
    OpenTimeout {
        /// Source id.
        id: String,
        /// The limit.
        seconds: u64,
    },
    /// Any other failure of reading a repository or a directory.
    #[error("source `{id}` could not be read: {cause}")]
    Unreadable {
        /// Source id.
        id: String,
        /// What failed.
        cause: String,
    },
    /// The pin is not a full commit id.
    #[error("source `{id}` pins `{given}`, which is not a full commit id of 40 lower-case hexadecimal digits{}", would_be(.full.as_deref()))]
    NotAFullCommit {
        /// Source id.
        id: String,
        /// What the profile says.
        given: String,
        /// The full id that it stands for in this repository, if it stands for exactly one.
        full: Option<String>,
    },
    /// The commit is not in the repository.
    #[error("commit {commit} is not in the repository of source `{id}`{}", if *.shallow { ", which is a shallow clone" } else { "" })]
    UnknownCommit {
        /// Source id.
        id: String,
        /// The commit.
        commit: String,
        /// Whether the clone is shallow.
        shallow: bool,
    },
    /// The pinned id names an object of another kind.
    #[error("{commit} names a {kind} in the repository of source `{id}`, not a commit")]
    NotACommit {
        /// Source id.
        id: String,
        /// The id.
        commit: String,
        /// Kind of object it names.
        kind: String,
        /// The commit that a tag leads to.
        peeled: Option<String>,
    },
    /// The commit has another tree than the profile says.
    #[error("commit {commit} of source `{id}` has tree {computed}, but the profile records {recorded}")]
    TreeMismatch {
        /// Source id.
        id: String,
        /// The commit.
        commit: String,
        /// Tree id in the profile.
        recorded: String,
        /// Tree id of the commit.
        computed: String,
    },
    /// An object that the clone lacks.
    #[error("object {object} ({what}) is not in the repository of source `{id}`")]
    ObjectMissing {
        /// Source id.
        id: String,
        /// Object id.
        object: String,
        /// What it is, with its path.
        what: String,
    },
    /// An object whose content does not have the id under which it is stored.
    #[error("object {object} ({what}) in the repository of source `{id}` is damaged: {cause}")]
    ObjectDamaged {
        /// Source id.
        id: String,
        /// Object id.
        object: String,
        /// What it is, with its path.
        what: String,
        /// What the object database says.
        cause: String,
    },
    /// A bound of the reader.
    #[error("source `{id}` exceeds a limit of this tool: {what}")]
    Bound {
        /// Source id.
        id: String,
        /// Which bound.
        what: String,
    },
    /// The patch file is not there, or cannot be read.
    #[error("the patch of source `{id}` could not be verified: {cause}")]
    PatchUnavailable {
        /// Source id.
        id: String,
        /// What is missing.
        cause: String,
    },
    /// The patch is of a form that the applier refuses.
    #[error("the patch of source `{id}` could not be verified: {}{reason}", place(.file, *.hunk))]
    PatchRefused {
        /// Source id.
        id: String,
        /// File, as the patch names it; empty if no section is concerned.
        file: String,
        /// Number of the hunk in that file, from 1; 0 if no hunk is concerned.
        hunk: u32,
        /// What is refused.
        reason: String,
    },
    /// A hunk's old lines are not those of the base.
    #[error(
        "the patch of source `{id}` does not match its base: {}line {line} should be {expected}, but is {found}",
        place(.file, *.hunk)
    )]
    PatchDoesNotApply {
        /// Source id.
        id: String,
        /// File in the base.
        file: String,
        /// Number of the hunk in that file, from 1.
        hunk: u32,
        /// Line of the base, from 1.
        line: u32,
        /// Line that the patch expects, quoted.
        expected: String,
        /// Line that the base has, quoted, or the words `the end of the file`.
        found: String,
    },
    /// A section does not fit the base in another way: mode, object id, presence.
    #[error("the patch of source `{id}` does not match its base: {}{what}", place(.file, 0))]
    PatchHeaderMismatch {
        /// Source id.
        id: String,
        /// File.
        file: String,
        /// What differs, with both values.
        what: String,
    },
    /// The patch is another one than the profile says.
    #[error("the patch of source `{id}` has sha256 {computed}, but the profile records {recorded}")]
    PatchDigestMismatch {
        /// Source id.
        id: String,
        /// Digest in the profile.
        recorded: String,
        /// Digest of the patch.
        computed: String,
    },
    /// The patched tree is another one than the profile says.
    #[error("the patch of source `{id}` gives tree {computed}, but the profile records {recorded}")]
    PatchTreeMismatch {
        /// Source id.
        id: String,
        /// Tree id in the profile.
        recorded: String,
        /// Tree id that the patch gives.
        computed: String,
    },
    /// A repository or file could not be written (only where writing was asked for).
    #[error("could not write {what}: {cause}")]
    Write {
        /// What was to be written, relative to the folder that was asked for.
        what: String,
        /// What failed.
        cause: String,
    },
}

fn would_be(full: Option<&str>) -> String {
    full.map(|full| format!("; in this repository it is {full}")).unwrap_or_default()
}

fn place(file: &str, hunk: u32) -> String {
    match (file.is_empty(), hunk) {
        (true, _) => String::new(),
        (false, 0) => format!("{file}: "),
        (false, hunk) => format!("{file}, hunk {hunk}: "),
    }
}

impl SourceError {
    /// Whether something was verified and found to differ from what is declared; `false` if it could not be verified at all.
    #[must_use]
    pub const fn contradicts(&self) -> bool {
        matches!(
            self,
            Self::TreeMismatch { .. }
                | Self::ObjectDamaged { .. }
                | Self::PatchDoesNotApply { .. }
                | Self::PatchHeaderMismatch { .. }
                | Self::PatchDigestMismatch { .. }
                | Self::PatchTreeMismatch { .. }
        )
    }

    /// The kind of gap that this error leaves.
    #[must_use]
    pub const fn gap_kind(&self) -> GapKind {
        match self {
            Self::UnknownSource { .. } | Self::NoPath { .. } | Self::Missing { .. } => GapKind::SourceMissing,
            Self::NotARepository { .. }
            | Self::OtherOwner { .. }
            | Self::UnsupportedFormat { .. }
            | Self::OpenTimeout { .. }
            | Self::Unreadable { .. }
            | Self::Bound { .. }
            | Self::ObjectDamaged { .. }
            | Self::Write { .. } => GapKind::SourceUnreadable,
            Self::BareWithoutCommit { .. }
            | Self::NotAFullCommit { .. }
            | Self::UnknownCommit { .. }
            | Self::NotACommit { .. }
            | Self::TreeMismatch { .. } => GapKind::PinUnsatisfied,
            Self::ObjectMissing { .. } => GapKind::ObjectMissing,
            Self::PatchUnavailable { .. }
            | Self::PatchRefused { .. }
            | Self::PatchDoesNotApply { .. }
            | Self::PatchHeaderMismatch { .. }
            | Self::PatchDigestMismatch { .. }
            | Self::PatchTreeMismatch { .. } => GapKind::PatchUnverified,
        }
    }

    /// What to do next, as one sentence.
    #[must_use]
    pub fn next_step(&self) -> String {
        match self {
            Self::UnknownSource { .. } => "Use one of the declared ids with `--source ID=PATH`.".to_owned(),
            Self::NoPath { id } | Self::Missing { id } | Self::NotARepository { id } => {
                format!("Clone the repository and give its path with `--source {id}=PATH`.")
            }
            Self::BareWithoutCommit { id } => format!("Pin a full `commit` for `{id}` in the profile."),
            Self::OtherOwner { id } => {
                format!(
                    "If you trust it, run `git config --global --add safe.directory PATH` with the path of `{id}`, or read a clone of your own."
                )
            }
            Self::UnsupportedFormat { .. } => "Use a clone with SHA-1 object ids and the `files` reference format.".to_owned(),
            Self::OpenTimeout { .. } => "Look for a named pipe or an unreachable include in the repository's configuration.".to_owned(),
            Self::Unreadable { .. } => "Check the path and its permissions.".to_owned(),
            Self::NotAFullCommit { full: Some(full), .. } => format!("Write `commit = \"{full}\"` in the profile."),
            Self::NotAFullCommit { full: None, .. } => "Write the 40 digits that `git rev-parse REVISION` prints.".to_owned(),
            Self::UnknownCommit { id, commit, shallow: true } => {
                format!("In the repository of `{id}`, run `git fetch --depth 1 origin {commit}`, or `git fetch --unshallow`.")
            }
            Self::UnknownCommit { id, commit, .. } => format!("In the repository of `{id}`, run `git fetch origin {commit}`."),
            Self::NotACommit { peeled: Some(commit), .. } => format!("Write `commit = \"{commit}\"` in the profile."),
            Self::NotACommit { .. } => "Write the id of a commit.".to_owned(),
            Self::TreeMismatch { .. } => "Correct the commit or the tree in the profile; one of them is wrong.".to_owned(),
            Self::ObjectMissing { id, .. } => {
                format!(
                    "Complete the partial clone of `{id}`, for instance with `git fetch --refetch --no-filter origin`; nothing is fetched from here."
                )
            }
            Self::ObjectDamaged { id, .. } => format!("Run `git fsck` in the repository of `{id}` and clone it anew."),
            Self::Bound { .. } => "Lint a smaller tree, or report this limit.".to_owned(),
            Self::PatchUnavailable { .. } => "Check the patch's path in the profile.".to_owned(),
            Self::PatchRefused { .. } => "Write the patch anew with `git diff --no-renames --full-index BASE RESULT`.".to_owned(),
            Self::PatchDoesNotApply { .. } | Self::PatchHeaderMismatch { .. } => {
                "Rebase the patch onto the pinned commit, or pin the commit that it was made for.".to_owned()
            }
            Self::PatchDigestMismatch { .. } | Self::PatchTreeMismatch { .. } => {
                "Find out which of the two is current, then correct the patch or its record.".to_owned()
            }
            Self::Write { .. } => "Give an empty folder that may be written to.".to_owned(),
        }
    }
}
