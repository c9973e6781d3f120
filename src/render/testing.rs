//! A small report that has something of everything.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{self, Level};
use crate::findings::{Finding, Gap, GapKind, Related, Report, Step, Verdict};
use crate::text::{FileId, Files, Span, TextFile};

use super::{Document, RunInfo, SourceInfo};

pub(super) const KERNEL_COMMIT: &str = "1111111111111111111111111111111111111111";
pub(super) const MAIN_COMMIT: &str = "2222222222222222222222222222222222222222";

/// A report with its files.
pub(super) struct Sample {
    pub(super) files: Files,
    pub(super) report: Report,
    pub(super) info: RunInfo,
}

impl Sample {
    pub(super) fn document(&self) -> Document<'_> {
        Document { report: &self.report, files: &self.files, info: &self.info }
    }
}

pub(super) fn span_of(files: &Files, file: FileId, text: &str) -> Span {
    let start = u32::try_from(files.get(file).text.find(text).unwrap()).unwrap();
    Span::new(file, start, start + u32::try_from(text.len()).unwrap())
}

pub(super) const PROFILE: FileId = FileId(0);
pub(super) const TRAIN: FileId = FileId(1);
pub(super) const KERNEL: FileId = FileId(2);

/// Profile, one file of the main repository and one of a companion; findings: one in main, one in the companion with a chain through main,
/// one in the companion without; one suppressed; a fatal gap and another.
pub(super) fn sample() -> Sample {
    let mut files = Files::default();
    files.add(TextFile::new("", "rlk-lint.toml", "[profile]\n\n[sources.kernel]\npath = \"x\"\n"));
    files.add(TextFile::new(
        "main",
        "train.py",
        "\u{FEFF}import gemm\n# é😀\nx = \"é😀\"; gemm.run() # rlk-lint: ignore[RLK101] a\ny = 1 # \u{202E}\u{1b}[31m\n",
    ));
    files.add(TextFile::new("kernel", "rl_engine/gemm.py", "def run():\n    launch[grid](a)\n    tune[k](7)\n"));
    let rule = |id: &str| catalog::rule(id).unwrap();
    let arguments = |first: &str, second: &str| vec![first.to_owned(), second.to_owned()];
    let mut in_main = Finding::new(rule("RLK192"), "default", arguments("RLK101", "3"), span_of(&files, TRAIN, "x = "), "train");
    in_main.primary.start += 4;
    in_main.primary.end += 6;
    in_main.related.push(Related { span: span_of(&files, TRAIN, "\u{202E}"), message: "steers[0](7)".into() });
    let launch = span_of(&files, KERNEL, "launch[grid](a)");
    let mut chained =
        Finding::new(rule("RLK101"), "default", arguments("kernel", "launch[grid](7) \u{202E}"), launch, "rl_engine.gemm.run");
    chained.flow = vec![
        Step { span: span_of(&files, TRAIN, "import gemm"), message: "the trainer starts".into() },
        Step { span: span_of(&files, TRAIN, "gemm.run()"), message: "the facade is called".into() },
        Step { span: launch, message: "the kernel is launched".into() },
    ];
    let tune = span_of(&files, KERNEL, "tune[k](7)");
    let mut alone = Finding::new(rule("RLK101"), "default", arguments("kernel", "tune"), tune, "rl_engine.gemm.run");
    alone.from_patch = true;
    let silenced = Finding::new(rule("RLK101"), "default", arguments("a", "b"), span_of(&files, TRAIN, "y = 1"), "train");
    let gap = |kind, source: &str, path: &str, span| Gap {
        kind,
        source: source.into(),
        path: path.into(),
        span,
        cause: "It was not there.".into(),
        next: "Give its path.".into(),
        allowed: false,
    };
    let report = Report {
        findings: vec![in_main, chained, alone],
        suppressed: vec![(silenced, "it is only\u{1b} a test".to_owned())],
        known: Vec::new(),
        against: None,
        gaps: vec![
            gap(GapKind::SourceMissing, "vllm", "", None),
            gap(GapKind::Syntax, "kernel", "rl_engine/gemm.py", Some(span_of(&files, KERNEL, "tune"))),
        ],
        counts: BTreeMap::from([
            ("files.read".to_owned(), 3),
            ("routes.traced".to_owned(), 12),
            ("routes.untraced.dynamic dispatch".to_owned(), 2),
            ("routes.untraced.no owner".to_owned(), 1),
        ]),
    };
    let pin = span_of(&files, PROFILE, "[sources.kernel]");
    let source = |id: &str, repository: &str, commit: &str, is_main| SourceInfo {
        id: id.into(),
        repository: Some(repository.into()),
        commit: Some(commit.into()),
        is_main,
        patched_tree: None,
        pin,
        patched_files: BTreeSet::new(),
        read: true,
    };
    let info = RunInfo {
        tool_version: "0.1.0".into(),
        profile: "rlk-lint.toml".into(),
        sources: vec![
            source("kernel", "https://token:x@github.com/rl-align/rl-kernel.git", KERNEL_COMMIT, false),
            source("main", "git@github.com:rl-align/main.git", MAIN_COMMIT, true),
        ],
        home: None,
        category: None,
        fail_on: Level::Warning,
        verdict: Verdict::Incomplete,
    };
    Sample { files, report, info }
}
