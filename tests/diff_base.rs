//! `check --diff-base`: only what a change did, whatever it was that changed.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

const KERNELS: &str = "\
import triton


@triton.jit
def gemm_kernel(a, b):
    pass


@triton.jit
def tree_kernel(a, b):
    pass


def det_gemm(a, b):
    gemm_kernel[(1,)](a, b)
    return a


def tree_gemm(a, b):
    tree_kernel[(1,)](a, b)
    return a
";

/// One silent fallback (RLK301), in `first`.
const SERVE: &str = "\
import os

from kernels import det_gemm, tree_gemm


def first(a, b):
    try:
        return det_gemm(a, b)
    except Exception:
        return tree_gemm(a, b)


def second(a, b):
    if os.environ.get(\"GEMM\") == \"tree\":
        return tree_gemm(a, b)
    return det_gemm(a, b)


def unrelated():
    return 1


first(1, 2)
second(1, 2)
";

const SECOND_FALLBACK: &str = "

def third(a, b):
    try:
        return det_gemm(a, b)
    except RuntimeError:
        return tree_gemm(a, b)


third(1, 2)
";

fn profile(environment: &str, more: &str) -> String {
    format!(
        "schema = \"rlk-lint/profile/v1\"\n\n[platform]\nbackend = \"rocm\"\narch = \"gfx942\"\n\n[platform.environment]\n{environment}\n\
         [platform.known]\n\"torch.version.hip\" = {{ present = true }}\n\n[[source]]\nid = \"tree\"\npath = \".\"\nroots = [\".\"]\n\
         role = \"kernel\"\nmain = true\n\n{more}\n[[family]]\nid = \"det_gemm\"\nkeys = [\"det_gemm\"]\n\
         sinks = [\"kernels.gemm_kernel\", \"kernels.tree_kernel\"]\n"
    )
}

/// Runs git, with nothing of this environment but the search path.
fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.env_clear().current_dir(folder).stdin(Stdio::null());
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    for (key, value) in
        [("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"), ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z"), ("HOME", "/nonexistent")]
    {
        command.env(key, value);
    }
    for (key, value) in [("NAME", "x"), ("EMAIL", "x@example.invalid")] {
        command.env(format!("GIT_AUTHOR_{key}"), value).env(format!("GIT_COMMITTER_{key}"), value);
    }
    let output = command.args(["-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"]).args(arguments).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

struct Checkout {
    folder: tempfile::TempDir,
}

impl Checkout {
    /// A repository at `tree` with one commit.
    fn new(files: &[(&str, &str)]) -> Self {
        let checkout = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(checkout.at()).unwrap();
        git(&checkout.at(), &["init", "-q"]);
        checkout.commit(files);
        checkout
    }

    fn usual() -> Self {
        Self::new(&[("kernels.py", KERNELS), ("serve.py", SERVE), ("rlk-lint.toml", &profile("GEMM = \"det\"", ""))])
    }

    fn at(&self) -> std::path::PathBuf {
        self.folder.path().join("tree")
    }

    fn write(&self, path: &str, text: &str) {
        let full = self.at().join(path);
        std::fs::create_dir_all(full.parent().unwrap()).unwrap();
        std::fs::write(full, text).unwrap();
    }

    fn commit(&self, files: &[(&str, &str)]) -> String {
        for (path, text) in files {
            self.write(path, text);
        }
        git(&self.at(), &["add", "-A"]);
        git(&self.at(), &["commit", "-q", "--allow-empty", "-m", "commit"]);
        git(&self.at(), &["rev-parse", "HEAD"])
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        run_in(&self.at(), arguments)
    }

    /// The report of `check --diff-base`, and the exit code.
    fn against(&self, base: &str) -> (Option<i32>, Value) {
        // RLK205 lists what the platform rules out, which is another matter.
        let (code, out, err) = self.run(&["check", "--diff-base", base, "--format", "json", "--ignore", "RLK205"]);
        (code, serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}")))
    }
}

fn run_in(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_rlk-lint")).env_clear().current_dir(folder).args(arguments).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(!err.contains("panicked"), "{err}");
    (output.status.code(), out, err)
}

/// `rule symbol change` of findings.
fn told(report: &Value, list: &str) -> Vec<String> {
    let word = |finding: &Value, key: &str| finding[key].as_str().unwrap_or("-").to_owned();
    let rows = report[list].as_array().unwrap().iter();
    rows.map(|finding| format!("{} {} {}", word(finding, "rule"), word(finding, "symbol"), word(finding, "change"))).collect()
}

fn notes(report: &Value) -> String {
    report["against"]["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_was_there_is_not_reported_again_wherever_it_moved() {
    let checkout = Checkout::usual();
    let base = git(&checkout.at(), &["rev-parse", "HEAD"]);
    assert_eq!(checkout.run(&["check"]).0, Some(1), "the fallback is there");
    // Fifty lines above, another indentation below, an unrelated function renamed.
    let moved = format!(
        "{}{}",
        "# a line\n".repeat(50),
        SERVE.replace("    except Exception:\n        return", "    except Exception:\n            return")
    );
    checkout.commit(&[("serve.py", &moved.replace("unrelated", "renamed"))]);
    let (code, report) = checkout.against(&base);
    assert_eq!(told(&report, "known"), ["RLK301 serve.first unchanged"]);
    assert_eq!(told(&report, "findings"), Vec::<String>::new());
    assert_eq!((code, report["verdict"].as_str()), (Some(0), Some("clean")));
    assert_eq!(report["against"]["commit"], base.as_str());
    assert_eq!(report["against"]["gone"], serde_json::json!([]));
}

#[test]
fn a_seeded_regression_fails_and_its_revert_passes() {
    let checkout = Checkout::usual();
    checkout.commit(&[("serve.py", &format!("{SERVE}{SECOND_FALLBACK}"))]);
    let (code, report) = checkout.against("HEAD~1");
    assert_eq!(code, Some(1));
    assert!(told(&report, "findings").contains(&"RLK301 serve.third new".to_owned()), "{:?}", told(&report, "findings"));
    assert!(told(&report, "findings").iter().any(|line| line == "RLK206 serve.third new"));
    assert_eq!(told(&report, "known"), ["RLK301 serve.first unchanged"]);
    checkout.commit(&[("serve.py", SERVE)]);
    let (code, report) = checkout.against("HEAD~2");
    assert_eq!((code, told(&report, "findings")), (Some(0), vec![]));
    let (_, report) = checkout.against("HEAD~1");
    assert!(report["against"]["gone"].as_array().unwrap().contains(&serde_json::json!({"rule": "RLK301", "symbol": "serve.third"})));
}

#[test]
fn what_is_not_committed_counts_too() {
    let checkout = Checkout::usual();
    checkout.write("serve.py", &format!("{SERVE}{SECOND_FALLBACK}"));
    let (code, report) = checkout.against("HEAD");
    assert_eq!(code, Some(1));
    assert!(told(&report, "findings").contains(&"RLK301 serve.third new".to_owned()));
}

#[test]
fn sarif_keeps_what_the_base_has_and_marks_it() {
    let checkout = Checkout::usual();
    checkout.commit(&[("serve.py", &format!("{SERVE}{SECOND_FALLBACK}"))]);
    let (_, out, err) = checkout.run(&["check", "--diff-base", "HEAD~1", "--format", "sarif", "--select", "RLK301"]);
    let log: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {err}"));
    let states: Vec<&str> =
        log["runs"][0]["results"].as_array().unwrap().iter().map(|result| result["baselineState"].as_str().unwrap()).collect();
    assert_eq!(states, ["new", "unchanged"]);
}

#[test]
fn a_profile_that_changes_a_route_is_seen_without_any_python() {
    let checkout = Checkout::usual();
    checkout.commit(&[("rlk-lint.toml", &profile("GEMM = \"tree\"", ""))]);
    let (code, report) = checkout.against("HEAD~1");
    let symbols = told(&report, "findings");
    assert!(symbols.contains(&"RLK206 serve.second new".to_owned()), "{symbols:?}");
    assert!(symbols.iter().all(|line| line.starts_with("RLK206 serve")), "{symbols:?}");
    assert!(report["findings"].to_string().contains("kernels.gemm_kernel -> kernels.tree_kernel"), "{symbols:?}");
    assert_eq!(code, Some(0), "a changed route is a note");
    let strict = profile("GEMM = \"tree\"", "[rules]\nRLK206 = \"error\"\n");
    checkout.commit(&[("rlk-lint.toml", &strict)]);
    assert_eq!(checkout.against("HEAD~2").0, Some(1), "unless the profile says that it fails");
}

/// A checkout with a companion `lib` that holds the kernels, at two commits; the second one's `det_gemm` ends in the other kernel.
fn with_companion() -> (Checkout, [String; 2]) {
    let checkout = Checkout::new(&[("serve.py", SERVE)]);
    let lib = checkout.folder.path().join("lib");
    std::fs::create_dir(&lib).unwrap();
    git(&lib, &["init", "-q"]);
    let mut commits = [String::new(), String::new()];
    let texts = [KERNELS.to_owned(), KERNELS.replacen("    gemm_kernel[(1,)]", "    tree_kernel[(1,)]", 1)];
    for (commit, text) in commits.iter_mut().zip(texts) {
        std::fs::write(lib.join("kernels.py"), text).unwrap();
        git(&lib, &["add", "-A"]);
        git(&lib, &["commit", "-q", "-m", "lib"]);
        *commit = git(&lib, &["rev-parse", "HEAD"]);
    }
    (checkout, commits)
}

fn companion(commit: &str, patch: &str) -> String {
    profile("", &format!("[[source]]\nid = \"lib\"\npath = \"../lib\"\nroots = [\".\"]\nrole = \"kernel\"\ncommit = \"{commit}\"\n{patch}"))
}

#[test]
fn a_moved_pin_is_seen_without_any_python() {
    let (checkout, [first, second]) = with_companion();
    // The companion's checkout stands at its second commit; that is about the machine and not about a revision.
    let ignore = ["--ignore", "RLK103"];
    checkout.commit(&[("rlk-lint.toml", &companion(&first, ""))]);
    checkout.commit(&[("rlk-lint.toml", &companion(&second, ""))]);
    let (code, out, err) = checkout.run(&[&["check", "--diff-base", "HEAD~1", "--format", "json"], &ignore[..]].concat());
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {err}"));
    let said = report["findings"].to_string();
    assert!(told(&report, "findings").iter().any(|line| line.starts_with("RLK206 kernels.det_gemm")), "{said}");
    assert!(said.contains("kernels.gemm_kernel -> kernels.tree_kernel"), "{said}");
    assert!(told(&report, "findings").iter().all(|line| line.starts_with("RLK206")), "{said}");
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_patch_that_was_made_again_is_seen_without_any_python() {
    let (checkout, [first, _]) = with_companion();
    let patch = |line: &str| {
        format!(
            "diff --git a/kernels.py b/kernels.py\n--- a/kernels.py\n+++ b/kernels.py\n@@ -14,3 +14,3 @@\n def det_gemm(a, b):\n-    gemm_kernel[(1,)](a, b)\n+    {line}\n     return a\n"
        )
    };
    let with_patch = companion(&first, "\n[source.patch]\npath = \"lib.patch\"\n");
    checkout.commit(&[("rlk-lint.toml", &with_patch), ("lib.patch", &patch("gemm_kernel[(2,)](a, b)"))]);
    checkout.commit(&[("lib.patch", &patch("tree_kernel[(2,)](a, b)"))]);
    let (_, out, err) = checkout.run(&["check", "--diff-base", "HEAD~1", "--format", "json", "--select", "RLK206"]);
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {err}"));
    assert!(report["findings"].to_string().contains("kernels.gemm_kernel -> kernels.tree_kernel"), "{out}");
}

#[test]
fn a_base_pin_that_the_clone_lacks_is_named() {
    let (checkout, [_, second]) = with_companion();
    let absent = "12".repeat(20);
    checkout.commit(&[("rlk-lint.toml", &companion(&absent, ""))]);
    checkout.commit(&[("rlk-lint.toml", &companion(&second, ""))]);
    let (code, _, err) = checkout.run(&["check", "--diff-base", "HEAD~1"]);
    let err = err.split_whitespace().collect::<Vec<_>>().join(" ").replace("│ ", "");
    assert_eq!(code, Some(4), "{err}");
    assert!(err.contains(&absent) && err.contains("lib"), "{err}");
}

#[test]
fn files_that_moved_are_followed() {
    let checkout = Checkout::usual();
    git(&checkout.at(), &["mv", "serve.py", "serving.py"]);
    checkout.commit(&[]);
    let (code, report) = checkout.against("HEAD~1");
    assert_eq!(told(&report, "known"), ["RLK301 serving.first unchanged"]);
    assert_eq!((code, told(&report, "findings")), (Some(0), vec![]));
    assert!(notes(&report).contains("tree:serve.py is now serving.py"), "{}", notes(&report));
}

#[test]
fn a_base_without_a_profile_uses_the_one_of_now() {
    let checkout = Checkout::new(&[("kernels.py", KERNELS), ("serve.py", SERVE)]);
    checkout.commit(&[("rlk-lint.toml", &profile("GEMM = \"det\"", ""))]);
    let (code, report) = checkout.against("HEAD~1");
    assert_eq!((code, told(&report, "findings")), (Some(0), vec![]));
    assert_eq!(told(&report, "known"), ["RLK301 serve.first unchanged"]);
    assert!(notes(&report).contains("The base has no profile, so the profile of now is used for both."), "{}", notes(&report));
}

#[test]
fn a_base_whose_profile_has_mistakes_uses_the_one_of_now() {
    let checkout = Checkout::new(&[("kernels.py", KERNELS), ("serve.py", SERVE), ("rlk-lint.toml", "schema = 1\n")]);
    checkout.commit(&[("rlk-lint.toml", &profile("GEMM = \"det\"", ""))]);
    let (code, report) = checkout.against("HEAD~1");
    assert_eq!((code, told(&report, "findings")), (Some(0), vec![]));
    assert!(notes(&report).contains("has mistakes"), "{}", notes(&report));
}

#[test]
fn merge_commits_and_detached_heads_are_ordinary() {
    let checkout = Checkout::usual();
    let at = checkout.at();
    git(&at, &["checkout", "-q", "-b", "side"]);
    checkout.commit(&[("notes.md", "side\n")]);
    git(&at, &["checkout", "-q", "main"]);
    checkout.commit(&[("other.md", "main\n")]);
    git(&at, &["merge", "-q", "--no-ff", "-m", "merge", "side"]);
    let merge = git(&at, &["rev-parse", "HEAD"]);
    checkout.commit(&[("serve.py", &format!("{SERVE}{SECOND_FALLBACK}"))]);
    git(&at, &["checkout", "-q", "--detach"]);
    let (code, report) = checkout.against(&merge);
    assert_eq!(code, Some(1));
    assert_eq!((report["against"]["commit"].as_str(), notes(&report)), (Some(merge.as_str()), String::new()));
    assert!(told(&report, "findings").contains(&"RLK301 serve.third new".to_owned()));
}

#[test]
fn a_base_that_went_on_is_compared_where_the_two_part() {
    let checkout = Checkout::new(&[
        ("kernels.py", KERNELS),
        ("serve.py", &format!("{SERVE}{SECOND_FALLBACK}")),
        ("rlk-lint.toml", &profile("GEMM = \"det\"", "")),
    ]);
    let at = checkout.at();
    let fork = git(&at, &["rev-parse", "HEAD"]);
    git(&at, &["checkout", "-q", "-b", "change"]);
    checkout.commit(&[("notes.md", "change\n")]);
    git(&at, &["checkout", "-q", "main"]);
    checkout.commit(&[("serve.py", SERVE)]);
    git(&at, &["checkout", "-q", "change"]);
    let (code, report) = checkout.against("main");
    assert_eq!((code, told(&report, "findings")), (Some(0), vec![]), "that main fixed one since is not this change's doing");
    assert_eq!(report["against"]["commit"], fork.as_str());
    assert!(notes(&report).contains(&format!("compared with {fork}")), "{}", notes(&report));
}

#[test]
fn a_shallow_clone_says_which_commit_is_missing_and_how_to_fetch_it() {
    let checkout = Checkout::usual();
    let first = git(&checkout.at(), &["rev-parse", "HEAD"]);
    checkout.commit(&[("serve.py", &format!("{SERVE}{SECOND_FALLBACK}"))]);
    let url = format!("file://{}", checkout.at().display());
    git(checkout.folder.path(), &["clone", "-q", "--depth", "1", &url, "shallow"]);
    let shallow = checkout.folder.path().join("shallow");
    let (code, _, err) = run_in(&shallow, &["check", "--diff-base", "HEAD~1"]);
    let err = err.split_whitespace().collect::<Vec<_>>().join(" ").replace("│ ", "");
    assert_eq!(code, Some(4), "{err}");
    assert!(err.contains(&format!("git fetch --depth 1 origin {first}")), "{err}");
    // As it says: after the fetch the comparison works.
    git(&shallow, &["fetch", "-q", "--depth", "1", "origin", &first]);
    let (code, out, err) = run_in(&shallow, &["check", "--diff-base", &first, "--format", "json"]);
    assert_eq!(code, Some(1), "{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert!(told(&report, "findings").contains(&"RLK301 serve.third new".to_owned()));
    let (code, _, err) = run_in(&shallow, &["check", "--diff-base", "no-such-branch"]);
    assert!(code == Some(4) && err.contains("no-such-branch"), "{err}");
}

#[test]
fn without_a_checked_out_source_there_is_no_base() {
    let checkout = Checkout::usual();
    checkout.write("rlk-lint.toml", &profile("", "").replace("main = true\n", ""));
    let (code, _, err) = checkout.run(&["check", "--diff-base", "HEAD"]);
    assert!(code == Some(2) && err.contains("main = true"), "{err}");
}

#[test]
fn a_source_that_only_one_revision_declares_may_be_given() {
    let (checkout, [first, _]) = with_companion();
    checkout.commit(&[("rlk-lint.toml", &companion(&first, "")), ("kernels.py", KERNELS)]);
    checkout.commit(&[("rlk-lint.toml", &profile("", ""))]);
    let (code, out, err) = checkout.run(&["check", "--diff-base", "HEAD~1", "--source", "lib=../lib", "--fail-on", "error"]);
    assert!(matches!(code, Some(0 | 1)), "{out}{err}");
    let (code, _, err) = checkout.run(&["check", "--diff-base", "HEAD~1", "--source", "lbi=../lib"]);
    assert!(code == Some(2) && err.contains("`lbi`"), "{err}");
}

#[test]
fn the_report_does_not_depend_on_the_number_of_threads() {
    let checkout = Checkout::usual();
    checkout.commit(&[("serve.py", &format!("{SERVE}{SECOND_FALLBACK}"))]);
    let report = |threads: &str| checkout.run(&["check", "--diff-base", "HEAD~1", "--format", "json", "--threads", threads]).1;
    assert_eq!(report("1"), report("3"));
}

#[test]
fn a_baseline_excuses_what_is_there_and_reports_what_is_gone() {
    let checkout = Checkout::usual();
    let quiet = ["--ignore", "RLK205"];
    let check = |file: &str| {
        let (code, out, err) = checkout.run(&[&["baseline", "check", file, "--format", "json"], &quiet[..]].concat());
        let report: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {err}"));
        (code, report)
    };
    let (code, _, err) = checkout.run(&["baseline", "create", "baseline.json"]);
    assert_eq!(code, Some(0), "{err}");
    let text = std::fs::read_to_string(checkout.at().join("baseline.json")).unwrap();
    assert!(text.contains("\"symbol\":\"serve.first\"") && !text.contains("\"line\""), "{text}");
    assert_eq!(checkout.run(&["baseline", "create", "baseline.json"]).0, Some(2), "it is there already");
    let (code, report) = check("baseline.json");
    assert_eq!((code, told(&report, "findings")), (Some(0), vec![]));
    assert_eq!(told(&report, "known"), ["RLK301 serve.first unchanged"]);
    // A new one fails; lines that moved do not.
    checkout.write("serve.py", &format!("# a line\n\n{SERVE}{SECOND_FALLBACK}"));
    let (code, report) = check("baseline.json");
    assert_eq!(
        (code, told(&report, "findings")),
        (Some(1), vec!["RLK301 serve.third new".to_owned(), "RLK103 tree new".to_owned()].into_iter().rev().collect())
    );
    // A fixed one leaves its entry behind, which is a note on the entry's line.
    checkout.write("serve.py", &SERVE.replace("except Exception:\n        return tree_gemm(a, b)", "except ValueError:\n        raise"));
    let (_, report) = check("baseline.json");
    let stale: Vec<&Value> = report["findings"].as_array().unwrap().iter().filter(|finding| finding["rule"] == "RLK193").collect();
    assert_eq!(stale.len(), 1, "{report}");
    assert_eq!((stale[0]["level"].as_str(), stale[0]["place"]["path"].as_str()), (Some("note"), Some("baseline.json")));
    let line = text.lines().position(|line| line.contains("RLK301")).unwrap() + 1;
    assert_eq!(stale[0]["place"]["start"]["line"], line);
    assert!(stale[0]["message"].as_str().unwrap().contains("'RLK301' in 'serve.first'"));
    let (code, out, err) = checkout.run(&["baseline", "update", "baseline.json"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.lines().any(|line| line.starts_with("- RLK301 serve.first ")), "{out}");
    let (code, report) = check("baseline.json");
    assert_eq!((code, told(&report, "findings")), (Some(0), vec![]));
    // Entries of rules that are not reported are not judged.
    std::fs::write(checkout.at().join("old.json"), &text).unwrap();
    let (_, out, _) = checkout.run(&["baseline", "check", "old.json", "--select", "RLK2,RLK193", "--format", "json"]);
    assert!(!out.contains("RLK301"), "{out}");
}

#[test]
fn a_baseline_that_is_not_one_is_refused_by_name_and_an_incomplete_run_writes_none() {
    let checkout = Checkout::usual();
    let (code, _, err) = checkout.run(&["baseline", "check", "absent.json"]);
    assert!(code == Some(2) && err.contains("absent.json") && err.contains("baseline create"), "{err}");
    checkout.write("odd.json", "[]");
    let (code, _, err) = checkout.run(&["baseline", "check", "odd.json"]);
    assert!(code == Some(2) && err.contains("odd.json"), "{err}");
    let absent = companion(&"12".repeat(20), "");
    checkout.write("rlk-lint.toml", &absent);
    let (code, _, err) = checkout.run(&["baseline", "create", "new.json"]);
    assert!(code == Some(4) && err.contains("incomplete"), "{err}");
    assert!(!checkout.at().join("new.json").exists());
}
