//! What sets a checkout up: a first profile, pipelines, and which sources a profile needs.
//!
//! In: a checkout, or a profile. Out: files that were not there, or a list. Refused: to replace a file unasked.

use std::io::{self, Write};
use std::path::Path;

use super::commands::{json, request, write_text};
use super::error::RunError;
use super::lint;
use crate::cli::{self, ListFormat};
use crate::profile::init::{CheckoutFacts, KNOWN_PACKAGES, github_workflow, gitlab_job, profile_text};
use crate::render::output;
use crate::sources::SourceError;
use crate::sources::git::Git;
use crate::text::sanitize;

/// Writes a first profile, and pipelines if they are asked for.
///
/// # Errors
/// If a file is there already, or cannot be written.
pub(super) fn init(args: &cli::InitArgs) -> Result<u8, RunError> {
    let output = args.output.clone().unwrap_or_else(|| args.folder.join("rlk-lint.toml"));
    let profile = || profile_text(&checkout_facts(&args.folder));
    if output == Path::new("-") {
        write_text(None, &profile())?;
        return Ok(0);
    }
    let mut files = Vec::new();
    for (path, text) in [args.github.then(github_workflow), args.gitlab.then(gitlab_job)].into_iter().flatten() {
        files.push((args.folder.join(path), text));
    }
    let kept = !files.is_empty() && output.exists() && !args.force;
    if !kept {
        files.insert(0, (output, profile()));
    }
    if let Some((path, _)) = files.iter().find(|(path, _)| path.exists() && !args.force) {
        return Err(RunError::Exists { path: path.clone() });
    }
    for (path, text) in &files {
        if let Some(folder) = path.parent().filter(|folder| args.folder.is_dir() && folder.starts_with(&args.folder)) {
            std::fs::create_dir_all(folder).map_err(|cause| output::OutputError::File { path: path.clone(), cause })?;
        }
        write_text(Some(path), text)?;
        let _ = writeln!(io::stderr(), "wrote {}", path.display());
    }
    let next = if kept { "the profile that is there was kept" } else { "read the comments of the profile, then run `rlk-lint check`" };
    let _ = writeln!(io::stderr(), "{next}");
    if args.gitlab {
        let _ = writeln!(io::stderr(), "add `include: .gitlab/rlk-lint.yml` to .gitlab-ci.yml");
    }
    Ok(0)
}

/// Lists the sources of a profile, and whether each is where it is looked for.
///
/// # Errors
/// If the profile cannot be read.
pub(super) fn sources(args: &cli::SourcesArgs) -> Result<u8, RunError> {
    let opened = lint::open(&request(&args.analysis))?;
    if let Some(unknown) = args.analysis.sources.iter().find(|given| opened.profile.sources.iter().all(|source| source.id != given.id)) {
        let declared: Vec<_> = opened.profile.sources.iter().map(|source| source.id.clone()).collect();
        let error = SourceError::UnknownSource { id: unknown.id.clone(), declared: declared.join(", ") };
        return Err(RunError::Usage { message: error.to_string(), help: error.next_step() });
    }
    let mut text = String::new();
    let mut rows = Vec::new();
    for source in &opened.profile.sources {
        let there = opened.options.path_of(source).is_ok_and(|path| match &source.commit {
            Some(commit) => Git::open(&source.id, &path).is_ok_and(|git| git.resolve(commit).is_ok()),
            None => path.is_dir(),
        });
        let state = if there { "there" } else { "missing" };
        let shown = |value: &Option<String>| value.as_deref().map_or_else(|| "-".to_owned(), |value| sanitize(value).into_owned());
        text.push_str(&format!("{}\t{state}\t{}\t{}\n", source.id, shown(&source.commit), shown(&source.repository)));
        rows.push(serde_json::json!({
            "id": source.id, "state": state, "commit": source.commit, "repository": source.repository, "main": source.main,
        }));
    }
    match args.format {
        ListFormat::Human => write_text(None, &text)?,
        ListFormat::Json => write_text(None, &json(&rows))?,
    }
    Ok(0)
}

fn checkout_facts(folder: &Path) -> CheckoutFacts {
    let mut facts = CheckoutFacts::default();
    let full = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    facts.name = full.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if let Ok(git) = Git::open("checkout", folder) {
        facts.head = git.head().map(|head| head.to_string());
        facts.tree = facts.head.as_ref().and_then(|head| git.resolve(head).ok()).map(|pinned| pinned.tree.to_string());
        facts.remote = git.remote();
    }
    let mut walk = ignore::WalkBuilder::new(folder);
    walk.hidden(true).sort_by_file_name(Ord::cmp).max_depth(Some(12));
    for entry in walk.build().flatten() {
        let inside = entry.path().strip_prefix(folder).unwrap_or(entry.path()).to_string_lossy().replace('\\', "/");
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().is_some_and(|kind| kind.is_dir()) {
            if entry.depth() == 1 {
                facts.folders.push(name.clone());
            }
            if KNOWN_PACKAGES.iter().any(|(package, ..)| *package == name) && entry.path().join("__init__.py").is_file() {
                let parent = inside.rsplit_once('/').map_or(".", |(parent, _)| parent);
                facts.packages.push((name, parent.to_owned()));
            }
        } else if matches!(name.as_str(), "det_gemm.py" | "mfma_gemm.py") {
            facts.gemm_modules.push(inside);
        } else if name == "sources.json"
            && let Ok(text) = std::fs::read_to_string(entry.path())
        {
            facts.pins.push((inside, text));
        }
    }
    facts
}
