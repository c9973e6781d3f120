//! The command line: what is accepted, what is refused, and that everything is explained.

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::*;

fn parse(arguments: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("rlk-lint").chain(arguments.split(' ').filter(|part| !part.is_empty())))
}

fn refused(arguments: &str) -> String {
    let error = parse(arguments).expect_err(arguments);
    assert_eq!(error.exit_code(), 2, "{arguments}");
    error.to_string()
}

fn check(arguments: &str) -> CheckArgs {
    match parse(&format!("check {arguments}")).unwrap().command {
        Command::Check(check) => check,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_definition_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn everything_is_explained() {
    fn visit(command: &clap::Command, at: &str) {
        let name = format!("{at} {}", command.get_name());
        assert!(command.get_about().is_some(), "{name}");
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{name} {}", argument.get_id());
        }
        command.get_subcommands().for_each(|command| visit(command, &name));
    }
    visit(&Cli::command(), "");
}

#[test]
fn help_tells_the_exit_codes() {
    for arguments in ["--help", "-h", "check --help", "demo -h"] {
        let error = parse(arguments).unwrap_err();
        assert_eq!((error.kind(), error.exit_code()), (ErrorKind::DisplayHelp, 0));
        let help = error.to_string();
        for line in ["0  clean", "1  findings", "2  wrong usage", "3  there was nothing to lint", "4  incomplete"] {
            assert!(help.contains(line), "{line} in {help}");
        }
    }
}

#[test]
fn help_is_grouped() {
    let help = parse("check --help").unwrap_err().to_string();
    let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text} in {help}"));
    assert!(at("\nAnalysis:") < at("--profile") && at("--profile") < at("\nReport:"));
    assert!(at("\nReport:") < at("--output-sarif") && at("--output-sarif") < at("\nRules:"));
    assert!(at("\nRules:") < at("--select") && at("--select") < at("\nVerdict:"));
    assert!(at("\nVerdict:") < at("--fail-on") && at("\nEverywhere:") < at("--color"));
}

#[test]
fn check_has_defaults() {
    let check = check("");
    assert_eq!(check.analysis.profile, None);
    assert!(check.analysis.sources.is_empty() && check.analysis.threads.is_none() && !check.analysis.allow_missing);
    assert_eq!(check.report.fail_on, FailOn::Warning);
    assert_eq!(check.report.outputs(), [(Format::Human, None)]);
}

#[test]
fn check_takes_everything() {
    let check = check(
        "--profile p.toml --source a=../a --source b=x=y --allow-missing --threads 3 --format sarif -o r.sarif --output-json 1.json \
         --output-json 2.json --output-junit j.xml --output-github g --output-gitlab q.json --output-human h.txt --output-sarif s \
         --fail-on never --exit-zero --select rlk1,unpinned-source --ignore RLK101 --sarif-category nightly --show-suppressed -vv --color never",
    );
    assert_eq!(check.analysis.sources[1], SourcePath { id: "b".to_owned(), path: PathBuf::from("x=y") });
    assert_eq!(check.analysis.threads.map(NonZeroUsize::get), Some(3));
    let outputs = check.report.outputs();
    assert_eq!(outputs[0], (Format::Sarif, Some(&PathBuf::from("r.sarif"))));
    assert_eq!(outputs[1], (Format::Human, Some(&PathBuf::from("h.txt"))));
    assert_eq!(outputs[3], (Format::Json, Some(&PathBuf::from("2.json"))));
    assert_eq!(outputs.len(), 8);
    let rule = crate::catalog::rule("RLK101").unwrap();
    assert!(check.report.select.iter().all(|selector| selector.matches(rule)) && check.report.ignore[0].matches(rule));
    assert_eq!(check.report.fail_on.level(), None);
}

#[test]
fn what_cannot_be_right_is_refused() {
    assert!(refused("").contains("Usage"));
    assert!(refused("chek").contains("check"));
    assert!(refused("check --prfile x").contains("--profile"));
    assert!(refused("check --source vllm").contains("expected ID=PATH, as in `vllm=../vllm`"));
    assert!(refused("check --source =x").contains("expected ID=PATH"));
    assert!(refused("check --threads 0").contains("threads"));
    assert!(refused("check --format xml").contains("[possible values: human, json, sarif, github, gitlab, junit]"));
    assert!(refused("check --fail-on bad").contains("[possible values: note, warning, error, never]"));
    assert!(refused("check -q -v").contains("cannot be used with"));
    assert!(refused("trace a.b --up --down").contains("cannot be used with"));
    assert!(refused("callgraph").contains("PATH"));
    assert!(refused("diff one").contains("<NEW>"));
}

#[test]
fn rules_are_those_that_exist() {
    assert!(refused("explain RLK10l").contains("did you mean `RLK101`?"));
    assert!(refused("explain nothing-like-it-at-all").contains("`rlk-lint rules` lists every rule"));
    for bad in ["R", "RLK9999", "RLK99", "RLK1x", "x"] {
        assert!(refused(&format!("check --select {bad}")).contains("no such rule"), "{bad}");
    }
    for good in ["RLK", "rlk1", "RLK10", "RLK101", "unpinned-source"] {
        assert!(parse(&format!("check --select {good}")).is_ok(), "{good}");
    }
    let Command::Explain(explain) = parse("explain unpinned-source").unwrap().command else { panic!() };
    assert_eq!(explain.rule.0.id, "RLK101");
}

#[test]
fn targets_are_names_or_lines() {
    let line =
        |source: Option<&str>, path: &str, line| TraceTarget::Line { source: source.map(str::to_owned), path: path.to_owned(), line };
    assert_eq!("a.b._c".parse(), Ok(TraceTarget::Symbol("a.b._c".to_owned())));
    assert_eq!("a/b.py:12".parse(), Ok(line(None, "a/b.py", 12)));
    assert_eq!("./b.py:1".parse(), Ok(line(None, "b.py", 1)));
    assert_eq!("vllm:a/b.py:12".parse(), Ok(line(Some("vllm"), "a/b.py", 12)));
    for bad in ["", "a..b", "a/b.py", "b.py", "a.py:0", "a.py:x", ":3", ":a.py:3", "a b", "a.py:99999999999"] {
        assert!(bad.parse::<TraceTarget>().is_err(), "{bad}");
    }
}

#[test]
fn every_command_is_reachable() {
    for arguments in [
        "demo --format github",
        "inventory --format json -o x.json",
        "trace a.b --up",
        "diff v1 v2 --of rl-kernel --format json",
        "callgraph a.py b --format json",
        "init",
        "init ../x -o - --force",
        "rules --format json",
        "completions zsh",
        "man -o pages",
        "--color always check",
    ] {
        assert!(parse(arguments).is_ok(), "{arguments}: {:?}", parse(arguments).err().map(|error| error.to_string()));
    }
}
