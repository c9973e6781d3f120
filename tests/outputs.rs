//! Reports go where they are asked to go.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

fn demo(folder: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rlk-lint"));
    command.env_clear().envs(variables.iter().copied()).current_dir(folder).arg("demo").args(arguments).stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))).unwrap()
}

#[test]
fn several_reports_of_one_run_agree() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let summary = at("summary.md");
    std::fs::write(&summary, "# Another step\n").unwrap();
    let arguments = [
        "--format",
        "github",
        "--output-sarif",
        "1.sarif",
        "--output-sarif",
        "2.sarif",
        "--output-json",
        "r.json",
        "--output-gitlab",
        "g.json",
        "--output-junit",
        "j.xml",
        "--output-human",
        "h.txt",
        "--sarif-per-source",
        "logs/each",
    ];
    let (code, out, err) = demo(folder.path(), &[("GITHUB_STEP_SUMMARY", summary.to_str().unwrap())], &arguments);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(std::fs::read(at("1.sarif")).unwrap(), std::fs::read(at("2.sarif")).unwrap());
    let report = json(&at("r.json"));
    let findings = report["findings"].as_array().unwrap().len();
    assert!(findings > 0);
    assert_eq!(json(&at("1.sarif"))["runs"][0]["results"].as_array().unwrap().len(), findings);
    assert_eq!(json(&at("g.json")).as_array().unwrap().len(), findings);
    let lines = out.lines().count();
    assert!(lines > 0 && lines <= 30 && out.lines().all(|line| line.starts_with("::")), "{out}");
    // The summary is added to what other steps wrote.
    let text = std::fs::read_to_string(&summary).unwrap();
    assert!(text.starts_with("# Another step\n## rlk-lint\n"), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains("| [RLK")).count(), findings.min(100), "{text}");
    // Without annotations there is no summary.
    demo(folder.path(), &[("GITHUB_STEP_SUMMARY", summary.to_str().unwrap())], &["--output-json", "r2.json"]);
    assert_eq!(std::fs::read_to_string(&summary).unwrap(), text);
    // One log for each source, which together have what is not in a patched file.
    let mut shown = 0;
    for source in report["sources"].as_array().unwrap() {
        let id = source["id"].as_str().unwrap();
        let log = json(&at("logs/each").join(format!("{id}.sarif")));
        for result in log["runs"][0]["results"].as_array().unwrap() {
            let place = &result["locations"][0]["physicalLocation"]["artifactLocation"];
            assert_eq!(place["uriBaseId"], "%SRCROOT%");
            assert!(!place["uri"].as_str().unwrap().starts_with("github.com/"), "{id}: {place}");
            shown += 1;
        }
    }
    assert!(shown > 0 && shown <= findings);
}

#[test]
fn an_unwritable_summary_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, err) = demo(folder.path(), &[("GITHUB_STEP_SUMMARY", "no/such/folder")], &["--format", "github"]);
    assert!(code == Some(4) && err.contains("no/such/folder"), "{code:?} {err}");
}

#[test]
fn quiet_leaves_the_summary_out_and_verbose_adds_the_sources() {
    let folder = tempfile::tempdir().unwrap();
    let plain = demo(folder.path(), &[], &[]).1;
    let quiet = demo(folder.path(), &[], &["-q"]).1;
    let verbose = demo(folder.path(), &[], &["-v"]).1;
    assert!(plain.contains("\nverdict: ") && !quiet.contains("\nverdict: "));
    assert!(!plain.contains("\nsource rl-kernel: at ") && verbose.contains("\nsource rl-kernel: at "), "{verbose}");
    assert!(!plain.contains('\x1b'));
    assert!(demo(folder.path(), &[("CLICOLOR_FORCE", "1")], &[]).1.contains('\x1b'));
    assert!(!demo(folder.path(), &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], &[]).1.contains('\x1b'));
}

#[test]
fn columns_of_a_log_are_those_of_an_editor() {
    // What stands before the comment, in UTF-16 units: `a = 'é'  ` 9, after a mark that counts for nothing; a tab, `b = '` 5, 😀 2, `'  ` 3; `c = '` 5,
    // e with its accent 2, `'  ` 3; a form feed, `d = 1  ` 7. The comment itself has 18.
    let text = "\u{FEFF}a = 'é'  # rlk-lint: ignore\r\nif a:\r\n\tb = '😀'  # rlk-lint: ignore\nc = 'e\u{301}'  # rlk-lint: ignore\n\u{C}d = 1  # rlk-lint: ignore\n";
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("src/odd.py"), text).unwrap();
    std::fs::write(folder.path().join("rlk-lint.toml"), format!("{}{}", crate::support::HEAD, crate::support::SOURCE)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rlk-lint"));
    command.env_clear().current_dir(folder.path()).args(["check", "--select", "RLK191", "--output-sarif", "log.sarif"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let log = json(&folder.path().join("log.sarif"));
    let results = log["runs"][0]["results"].as_array().unwrap();
    let places: Vec<_> = results
        .iter()
        .map(|result| {
            let region = &result["locations"][0]["physicalLocation"]["region"];
            ["startLine", "startColumn", "endColumn"].map(|name| region[name].as_u64().unwrap())
        })
        .collect();
    assert_eq!(places, [[1, 10, 28], [3, 12, 30], [4, 11, 29], [5, 9, 27]], "{}", String::from_utf8_lossy(&output.stderr));
}
