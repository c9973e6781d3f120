//! The commands: arguments in, output and exit code out.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser};

use super::baseline::{self, Baseline};
use super::changes::{self, RouteChange};
use super::error::RunError;
use super::inventory::inventory;
use super::lint::{self, Judging, Linted, Request};
use super::{analyse, analyse_all, assumptions, snippets};
use super::{reports, setup};
use crate::catalog::{RULES, RuleMeta};
use crate::cli::{self, Cli, Command, GraphFormat, InventoryFormat, ListFormat, TraceTarget};
use crate::findings::Verdict;
use crate::render::{dot, output};
use crate::routes::callgraph;
use crate::routes::{Callsite, Hop};
use crate::sources::embedded;
use crate::sources::git::Git;
use crate::text::{TextFile, sanitize};

/// Runs the program; its exit code.
#[must_use]
pub fn main() -> u8 {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() { 2 } else { 0 };
            // A closed pipe while help is printed is nobody's problem.
            let _ = error.print();
            return code;
        }
    };
    let wanted = cli.global.color;
    // A second hook is refused, which leaves the first one in place.
    let _ = miette::set_hook(Box::new(move |_| {
        let colour = reports::Environment::of_errors().colour(wanted);
        Box::new(miette::MietteHandlerOpts::new().color(colour).terminal_links(false).build())
    }));
    match run(&cli) {
        Ok(code) => code,
        Err(error) => {
            let code = error.exit_code();
            let report = miette::Report::new(error);
            let _ = writeln!(io::stderr(), "{report:?}");
            code
        }
    }
}

fn run(cli: &Cli) -> Result<u8, RunError> {
    match &cli.command {
        Command::Check(args) => {
            let request = Request { diff_base: args.diff_base.clone(), ..request(&args.analysis) };
            let mut opened = lint::open(&request)?;
            reports::follow(&mut opened, cli);
            let linted = judge(opened, &args.report, &request)?;
            reports::write(cli, &linted, &args.report)?;
            Ok(exit_code(linted.info.verdict, args.report.exit_zero))
        }
        Command::Baseline(command) => baseline_command(cli, command),
        Command::Demo(args) => demo(cli, args),
        Command::Inventory(args) => {
            let opened = lint::open(&request(&args.analysis))?;
            let threads = threads(args.analysis.threads);
            let (profile, _, loaded) = lint::load(opened, threads)?;
            let assumptions = assumptions(&profile, &loaded);
            let analysis = analyse_all(&profile, &loaded, &assumptions);
            let keys: Vec<&str> = profile.families.iter().flat_map(|family| family.keys.iter().map(String::as_str)).collect();
            let snippets = snippets::of(&loaded.files, &loaded.sources, &keys, threads);
            let document = inventory(&profile, &loaded, &analysis, &snippets);
            let text = match args.format {
                InventoryFormat::Md => document.markdown(),
                InventoryFormat::Json => json(&document),
                InventoryFormat::Dot => dot::dot(&document),
            };
            write_text(args.output.as_deref(), &text)?;
            let incomplete = loaded.gaps.iter().any(|gap| gap.kind.is_fatal() && !gap.allowed);
            let files: usize = loaded.sources.iter().map(|source| source.files.len()).sum();
            Ok(if incomplete {
                4
            } else if files == 0 {
                3
            } else {
                0
            })
        }
        Command::Sources(args) => setup::sources(args),
        Command::Trace(args) => trace(args),
        Command::Diff(args) => diff(args),
        Command::Callgraph(args) => {
            let graph = callgraph::of_paths(&args.paths, threads(args.threads))?;
            let text = match args.format {
                GraphFormat::Pycg | GraphFormat::Json => json(&graph),
            };
            write_text(args.output.as_deref(), &text)?;
            Ok(0)
        }
        Command::Probe(args) => super::probe::probe(cli, args),
        Command::Init(args) => setup::init(args),
        Command::Explain(args) => {
            write_text(None, args.rule.0.page)?;
            Ok(0)
        }
        Command::Rules(args) => {
            write_text(None, &rules(args.format))?;
            Ok(0)
        }
        Command::Completions(args) => {
            let mut bytes = Vec::new();
            clap_complete::generate(args.shell, &mut Cli::command(), "rlk-lint", &mut bytes);
            write_text(None, &String::from_utf8_lossy(&bytes))?;
            Ok(0)
        }
        Command::Man(args) => man(args.output.as_deref()),
    }
}

fn threads(given: Option<std::num::NonZeroUsize>) -> usize {
    given.map_or(0, std::num::NonZeroUsize::get)
}

pub(super) fn request(options: &cli::AnalysisOptions) -> Request {
    Request {
        profile: options.profile.clone(),
        sources: options.sources.iter().map(|source| (source.id.clone(), source.path.clone())).collect(),
        allow_missing: options.allow_missing,
        threads: threads(options.threads),
        diff_base: None,
    }
}

fn baseline_command(cli: &Cli, command: &cli::BaselineCommand) -> Result<u8, RunError> {
    let (args, again) = match command {
        cli::BaselineCommand::Check(args) => {
            let request = request(&args.analysis);
            let mut opened = lint::open(&request)?;
            let name = lint::label_of(&args.file);
            let text = read_baseline(&args.file)?;
            let entries = baseline::parse(&name, &text)?;
            let file = opened.files.add(TextFile::new("", name.as_str(), text));
            let baseline = Baseline { name, file, entries };
            let linted = with_judging(&args.report, |judging| lint::lint_excusing(opened, &baseline, judging, request.threads))?;
            reports::write(cli, &linted, &args.report)?;
            return Ok(exit_code(linted.info.verdict, args.report.exit_zero));
        }
        cli::BaselineCommand::Create(args) => (args, false),
        cli::BaselineCommand::Update(args) => (args, true),
    };
    if !again && args.file.exists() && !args.force {
        return Err(RunError::Exists { path: args.file.clone() });
    }
    let before = if again { baseline::parse(&lint::label_of(&args.file), &read_baseline(&args.file)?)? } else { Vec::new() };
    let opened = lint::open(&request(&args.analysis))?;
    let main = lint::main_id(&opened.profile).map(str::to_owned);
    let judging = Judging { fail_on: None, wanted: &|_| true, category: None };
    let linted = lint::lint(opened, &judging, threads(args.analysis.threads))?;
    // What was not looked at would look fixed.
    if let Some(gap) = linted.report.gaps.iter().find(|gap| gap.kind.is_fatal()) {
        return Err(RunError::Base {
            message: format!("no baseline was written, since the run is incomplete. {}", gap.cause),
            help: gap.next.clone(),
        });
    }
    if linted.info.verdict == Verdict::Nothing {
        return Ok(Verdict::Nothing.exit_code());
    }
    let entries = baseline::entries(&linted.report.findings, &linted.files, main.as_deref());
    write_text(Some(&args.file), &baseline::text(&entries))?;
    let (come, gone) = (baseline::beyond(&entries, &before), baseline::beyond(&before, &entries));
    if again {
        for (mark, list) in [("-", &gone), ("+", &come)] {
            for entry in list {
                write_text(None, &format!("{mark} {}\n", sanitize(&entry.to_string())))?;
            }
        }
        let _ = writeln!(io::stderr(), "{}: {} entries, {} dropped, {} added", args.file.display(), entries.len(), gone.len(), come.len());
    } else {
        let _ = writeln!(io::stderr(), "{}: {} entries", args.file.display(), entries.len());
    }
    Ok(0)
}

fn read_baseline(path: &Path) -> Result<String, RunError> {
    let unreadable = |cause: String| RunError::Usage {
        message: format!("the baseline {} cannot be read: {cause}", path.display()),
        help: "check its path, or write it with `rlk-lint baseline create FILE`".to_owned(),
    };
    let size = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?.len();
    if size > baseline::MAX_BYTES {
        return Err(unreadable(format!("it has {size} bytes, more than the limit of {}", baseline::MAX_BYTES)));
    }
    std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))
}

fn judge(opened: lint::Opened, options: &cli::ReportOptions, request: &Request) -> Result<Linted, RunError> {
    with_judging(options, |judging| match &request.diff_base {
        Some(revision) => lint::lint_against(opened, request, revision, judging),
        None => lint::lint(opened, judging, request.threads),
    })
}

fn with_judging(options: &cli::ReportOptions, lint: impl FnOnce(&Judging<'_>) -> Result<Linted, RunError>) -> Result<Linted, RunError> {
    let wanted = |rule: &RuleMeta| {
        let selected = options.select.is_empty() || options.select.iter().any(|selector| selector.matches(rule));
        selected && !options.ignore.iter().any(|selector| selector.matches(rule))
    };
    let judging = Judging { fail_on: options.fail_on.level(), wanted: &wanted, category: options.sarif_category.clone() };
    lint(&judging)
}

fn exit_code(verdict: Verdict, exit_zero: bool) -> u8 {
    if exit_zero && verdict == Verdict::Findings { 0 } else { verdict.exit_code() }
}

fn demo(cli: &Cli, args: &cli::DemoArgs) -> Result<u8, RunError> {
    let failed = |cause: io::Error| {
        RunError::Demo(crate::sources::SourceError::Write { what: "a temporary folder".to_owned(), cause: cause.to_string() })
    };
    let folder = tempfile::Builder::new().prefix("rlk-lint-demo").tempdir().map_err(failed)?;
    let at = args.keep.as_deref().unwrap_or(folder.path());
    embedded::materialise(at).map_err(RunError::Demo)?;
    let text = embedded::profile_text().unwrap_or_default();
    let opened = lint::open_text(text, "rlk-lint.toml", at.to_path_buf(), &Request::default())?;
    if args.stage0 {
        let (document, _) = stage0(opened, 0)?;
        write_text(args.report.output.as_deref(), &json(&document))?;
        return Ok(0);
    }
    let linted = judge(opened, &args.report, &Request::default())?;
    reports::write(cli, &linted, &args.report)?;
    let would = exit_code(linted.info.verdict, args.report.exit_zero);
    if !cli.global.quiet {
        let _ = writeln!(io::stderr(), "demo: `check` would have exited with {would} ({})", linted.info.verdict.word());
    }
    // The demo succeeds if it could look at everything, whatever it found.
    Ok(if matches!(linted.info.verdict, Verdict::Incomplete | Verdict::Nothing) { would } else { 0 })
}

/// The Stage 0 record of an opened profile, and whether everything could be seen as declared.
fn stage0(opened: lint::Opened, threads: usize) -> Result<(crate::stage0::Record, bool), RunError> {
    let (profile, label, loaded) = lint::load(opened, threads)?;
    let assumptions = assumptions(&profile, &loaded);
    let analysis = analyse_all(&profile, &loaded, &assumptions);
    let keys: Vec<&str> = profile.families.iter().flat_map(|family| family.keys.iter().map(String::as_str)).collect();
    let snippets = snippets::of(&loaded.files, &loaded.sources, &keys, threads);
    let complete = !loaded.gaps.iter().any(|gap| gap.kind.is_fatal() && !gap.allowed);
    Ok((super::record::record(&profile, &label, &loaded, &analysis, &snippets), complete))
}

pub(super) fn json(document: &impl serde::Serialize) -> String {
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}

pub(super) fn write_text(path: Option<&Path>, text: &str) -> Result<(), RunError> {
    match path {
        Some(path) => output::to_file(path, |out| out.write_all(text.as_bytes()))?,
        None => output::to_stream(&mut io::stdout().lock(), |out| out.write_all(text.as_bytes()))?,
    }
    Ok(())
}

fn rules(format: ListFormat) -> String {
    match format {
        ListFormat::Human => {
            let mut out = String::new();
            for rule in RULES.iter() {
                out.push_str(&format!("{}  {:<28} {:<8} {}\n", rule.id, rule.slug, rule.level.word(), rule.summary));
            }
            out
        }
        ListFormat::Json => {
            let rows: Vec<_> = RULES
                .iter()
                .map(|rule| {
                    serde_json::json!({
                        "id": rule.id, "slug": rule.slug, "name": rule.name, "level": rule.level,
                        "precision": rule.precision, "tags": rule.tags, "since": rule.since, "summary": rule.summary,
                    })
                })
                .collect();
            json(&rows)
        }
    }
}

fn man(folder: Option<&Path>) -> Result<u8, RunError> {
    let page = |command: clap::Command| {
        let mut bytes = Vec::new();
        // Writing to memory does not fail.
        let _ = clap_mangen::Man::new(command).render(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let Some(folder) = folder else {
        write_text(None, &page(Cli::command()))?;
        return Ok(0);
    };
    write_text(Some(&folder.join("rlk-lint.1")), &page(Cli::command()))?;
    for command in Cli::command().get_subcommands() {
        let name = format!("rlk-lint-{}", command.get_name());
        let full: &'static str = Box::leak(name.clone().into_boxed_str());
        write_text(Some(&folder.join(format!("{name}.1"))), &page(command.clone().name(full)))?;
    }
    Ok(0)
}

fn trace(args: &cli::TraceArgs) -> Result<u8, RunError> {
    let opened = lint::open(&request(&args.analysis))?;
    let (profile, _, loaded) = lint::load(opened, threads(args.analysis.threads))?;
    let assumptions = assumptions(&profile, &loaded);
    let analysis = analyse(&profile, &loaded, &assumptions);
    let wanted = |callsite: &Callsite| match &args.target {
        TraceTarget::Symbol(symbol) => {
            let symbol = symbol.replace(':', ".");
            let caller = loaded.program.qualified(callsite.caller);
            caller == symbol
                || callsite.targets.contains(&symbol)
                || callsite.kernels.contains(&symbol)
                || callsite.up.iter().chain(&callsite.down).any(|hop| hop.from == symbol || hop.to == symbol)
        }
        TraceTarget::Line { source, path, line } => {
            let on = |span: crate::text::Span| {
                let file = loaded.files.get(span.file);
                source.as_deref().is_none_or(|source| *file.source == *source) && *file.path == **path && file.line_of(span.start) == *line
            };
            on(callsite.span) || callsite.up.iter().chain(&callsite.down).any(|hop| on(hop.span))
        }
    };
    let found: Vec<&Callsite> = analysis.routes.iter().flat_map(|routes| &routes.callsites).filter(|callsite| wanted(callsite)).collect();
    if found.is_empty() {
        return Err(RunError::Usage {
            message: "no route of a declared family goes through the target".to_owned(),
            help: "`rlk-lint inventory` lists every callsite with its place and its qualified names".to_owned(),
        });
    }
    let hops = |hops: &[Hop], out: &mut String| {
        for hop in hops {
            out.push_str(&format!("  {:<60} {} -> {} ({})\n", loaded.files.place(hop.span), hop.from, hop.to, hop.kind));
        }
    };
    let mut text = String::new();
    let mut rows = Vec::new();
    for callsite in found {
        let place = loaded.files.place(callsite.span);
        text.push_str(&format!("{place}: {} ({}, {})\n", callsite.kind.word(), callsite.status.word(), callsite.certainty.word()));
        if !args.down {
            hops(&callsite.up, &mut text);
        }
        if !args.up {
            hops(&callsite.down, &mut text);
        }
        let row = |hops: &[Hop]| -> Vec<serde_json::Value> {
            let row = |hop: &Hop| serde_json::json!({"at": loaded.files.place(hop.span), "from": hop.from, "to": hop.to, "kind": hop.kind});
            hops.iter().map(row).collect()
        };
        rows.push(serde_json::json!({
            "at": place, "kind": callsite.kind.word(), "status": callsite.status.word(), "certainty": callsite.certainty.word(),
            "up": row(if args.down { &[] } else { &callsite.up }), "down": row(if args.up { &[] } else { &callsite.down }),
        }));
    }
    match args.format {
        ListFormat::Human => write_text(None, &text)?,
        ListFormat::Json => write_text(None, &json(&rows))?,
    }
    Ok(0)
}

fn diff(args: &cli::DiffArgs) -> Result<u8, RunError> {
    let mut sides = Vec::new();
    for revision in [&args.old, &args.new] {
        let mut opened = lint::open(&request(&args.analysis))?;
        let wanted = args.source_id.clone();
        let source = opened.profile.sources.iter_mut().find(|source| wanted.as_ref().map_or(source.main, |id| *id == source.id));
        let Some(source) = source else {
            return Err(RunError::Usage {
                message: "the source whose revision moves is not known".to_owned(),
                help: "name it with `--of ID`, or mark one source with `main = true` in the profile".to_owned(),
            });
        };
        let repository: PathBuf = opened.options.path_of(source).map_err(RunError::Source)?;
        let git = Git::open(&source.id, &repository).map_err(RunError::Source)?;
        source.commit = Some(git.expand(revision).map_err(RunError::Source)?);
        source.tree = None;
        let (profile, _, loaded) = lint::load(opened, threads(args.analysis.threads))?;
        if let Some(gap) = loaded.gaps.iter().find(|gap| gap.kind.is_fatal() && !gap.allowed) {
            return Err(RunError::Usage { message: gap.cause.clone(), help: gap.next.clone() });
        }
        let assumptions = assumptions(&profile, &loaded);
        let analysis = analyse(&profile, &loaded, &assumptions);
        sides.push(changes::rows(&loaded, &analysis));
    }
    let mut text = String::new();
    let mut rows = Vec::new();
    let (old, new) = (&sides[0], &sides[1]);
    for change in changes::compare(old, new) {
        let (word, row, detail) = match &change {
            RouteChange::Added(at) => ("added", &new[*at], new[*at].place.clone()),
            RouteChange::Removed(at) => ("removed", &old[*at], old[*at].place.clone()),
            RouteChange::Changed(_, at, what) => ("changed", &new[*at], format!("{}: {what}", new[*at].place)),
        };
        let targets = row.targets.join(", ");
        text.push_str(&format!("{word:<8} {} -> {targets} ({}) {detail}\n", row.caller, row.kind));
        rows.push(serde_json::json!({"change": word, "caller": row.caller, "kind": row.kind, "targets": targets, "detail": detail}));
    }
    if text.is_empty() {
        text.push_str("no route was added, removed or changed\n");
    }
    let text = match args.format {
        ListFormat::Human => text,
        ListFormat::Json => json(&rows),
    };
    write_text(args.output.as_deref(), &text)?;
    Ok(0)
}
