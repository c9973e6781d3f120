//! What stops a command before it has a report.

use std::path::PathBuf;

use miette::Diagnostic;

use crate::probe::compile::CompileError;
use crate::probe::judge::evidence::EvidenceError;
use crate::profile::ProfileErrors;
use crate::render::output::OutputError;
use crate::routes::callgraph::CallGraphError;
use crate::sources::SourceError;

/// Why a command could not do its work. Each kind has its exit code.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum RunError {
    /// No profile where one was looked for.
    #[error("no rlk-lint.toml in {folder} or any folder above it")]
    #[diagnostic(help("write one with `rlk-lint init`, or name one with `--profile FILE`"))]
    NoProfile {
        /// Where the search began, as it was given.
        folder: String,
    },
    /// The profile cannot be read.
    #[error("the profile {path} cannot be read: {cause}")]
    #[diagnostic(help("check the path that `--profile` gives"))]
    UnreadableProfile {
        /// Path as it was given.
        path: String,
        /// What the system said.
        cause: std::io::Error,
    },
    /// Mistakes in the profile.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Profile(#[from] ProfileErrors),
    /// Mistakes on the command line that only the profile shows.
    #[error("{message}")]
    #[diagnostic(help("{help}"))]
    Usage {
        /// What is wrong.
        message: String,
        /// What would be right.
        help: String,
    },
    /// The demo's sources could not be written.
    #[error("the demo's sources could not be written to a temporary folder: {0}")]
    Demo(SourceError),
    /// A report could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// No call graph.
    #[error(transparent)]
    CallGraph(#[from] CallGraphError),
    /// A folder of compiled code cannot be read.
    #[error("the cache {} cannot be read: {cause}", path.display())]
    #[diagnostic(help("name the folder that `TRITON_CACHE_DIR` names, or `~/.triton/cache`"))]
    Cache {
        /// The folder as it was given.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// Nothing could be compiled.
    #[error(transparent)]
    #[diagnostic(help("{}", .0.next_step()))]
    Compile(#[from] CompileError),
    /// A file is there already.
    #[error("{} exists already", path.display())]
    #[diagnostic(help("replace it with `--force`, or name another file with `--output FILE`"))]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// What a comparison needs could not be seen.
    #[error("{message}")]
    #[diagnostic(help("{help}"))]
    Base {
        /// What is wrong.
        message: String,
        /// What to do.
        help: String,
    },
    /// A workload could not be observed.
    #[error("{what}: {cause}")]
    #[diagnostic(help("{help}"))]
    Observe {
        /// What was being done.
        what: String,
        /// What the system said.
        cause: std::io::Error,
        /// What to do.
        help: &'static str,
    },
    /// There is nothing to judge.
    #[error(transparent)]
    #[diagnostic(help("name a folder that `rlk-lint probe run` made, or one that an RL-Kernel run left"))]
    Evidence(EvidenceError),
    /// A source could not be read where nothing works without it.
    #[error("{0}")]
    #[diagnostic(help("{}", .0.next_step()))]
    Source(SourceError),
}

impl RunError {
    /// Process exit code.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Evidence(EvidenceError::NoManifest(_)) => 2,
            Self::Compile(CompileError::Profile(..)) => 2,
            Self::Compile(_)
            | Self::Evidence(_)
            | Self::Demo(_)
            | Self::Output(_)
            | Self::CallGraph(_)
            | Self::Source(_)
            | Self::Cache { .. }
            | Self::Observe { .. }
            | Self::Base { .. } => 4,
            _ => 2,
        }
    }
}
