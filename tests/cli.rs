//! The program as it is run: exit codes, what it says, what it writes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rlk_lint::sources::commit::{CommitEntry, CommitIds, bare_repository};

const KERNELS: &str = "import triton\n\n\n@triton.jit\ndef gemm_kernel(a, b):\n    pass\n\n\ndef det_gemm(a, b):\n    gemm_kernel[(1,)](a, b)\n    return a\n";
const SERVE: &str = "from kernels import det_gemm\n\n\ndef linear(a, b):\n    return det_gemm(a, b)\n\n\nlinear(1, 2)\n";

/// Runs the program in a folder, with nothing of this environment.
fn start(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rlk-lint"));
    command.env_clear().current_dir(folder).args(arguments).stdin(Stdio::null());
    command
}

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

fn ran(output: &Output) -> Ran {
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!err.contains("panicked") && !out.contains("panicked"), "{err}");
    Ran { code: output.status.code(), out, err }
}

fn run(folder: &Path, arguments: &[&str]) -> Ran {
    ran(&start(folder, arguments).output().unwrap())
}

fn repository(folder: &Path, name: &str, files: &[(&str, &str)]) -> CommitIds {
    let files: BTreeMap<String, CommitEntry> =
        files.iter().map(|(path, text)| ((*path).to_owned(), CommitEntry::File(text.as_bytes().to_vec()))).collect();
    bare_repository(&folder.join(name), &files, "fixture\n").unwrap()
}

fn profile(source: &str) -> String {
    format!(
        "schema = \"rlk-lint/profile/v1\"\n\n[platform]\nbackend = \"rocm\"\narch = \"gfx942\"\n\n[platform.known]\n\
         \"torch.version.hip\" = {{ present = true }}\n\n[[source]]\nid = \"tree\"\nroots = [\".\"]\nrole = \"kernel\"\nmain = true\n{source}\n\
         \n[[family]]\nid = \"det_gemm\"\nkeys = [\"det_gemm\"]\nsinks = [\"kernels.gemm_kernel\"]\n"
    )
}

/// A folder with a bare repository and a profile that pins it.
fn pinned(files: &[(&str, &str)]) -> (tempfile::TempDir, CommitIds) {
    let folder = tempfile::tempdir().unwrap();
    let ids = repository(folder.path(), "tree.git", files);
    write(&folder, &format!("path = \"tree.git\"\ncommit = \"{}\"", ids.commit));
    (folder, ids)
}

fn write(folder: &tempfile::TempDir, source: &str) {
    std::fs::write(folder.path().join("rlk-lint.toml"), profile(source)).unwrap();
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn demo_succeeds_and_says_what_check_would_have_done() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["demo"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("`check` would have exited with 1 (findings)"), "{}", ran.err);
    assert!(ran.out.contains("RLK301"), "{}", ran.out);
    assert!(names(folder.path()).is_empty(), "the demo leaves nothing behind");
}

#[test]
fn a_clean_pinned_tree_is_clean() {
    let (folder, _) = pinned(&[("kernels.py", KERNELS), ("serve.py", SERVE)]);
    let ran = run(folder.path(), &["check", "--output-sarif", "out.sarif"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let sarif: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(folder.path().join("out.sarif")).unwrap()).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
}

#[test]
fn mistakes_in_the_profile_are_shown_in_place() {
    let (folder, ids) = pinned(&[("kernels.py", KERNELS)]);
    write(&folder, &format!("path = \"tree.git\"\ncomit = \"{}\"", ids.commit));
    let ran = run(folder.path(), &["check"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("did you mean `commit`") || ran.err.contains("`commit`"), "{}", ran.err);
    let line = profile("path = \"tree.git\"\ncomit = ").lines().position(|line| line.starts_with("comit")).unwrap() + 1;
    assert!(ran.err.contains(&line.to_string()) && ran.err.contains("comit = "), "{}", ran.err);
}

#[test]
fn abbreviated_commits_are_refused_and_unknown_ones_are_gaps() {
    let (folder, ids) = pinned(&[("kernels.py", KERNELS)]);
    write(&folder, &format!("path = \"tree.git\"\ncommit = \"{}\"", &ids.commit[..12]));
    let ran = run(folder.path(), &["check"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains(&ids.commit[..12]) && ran.err.contains("rlk-lint.toml"), "{}", ran.err);
    write(&folder, &format!("path = \"tree.git\"\ncommit = \"{}\"", "12".repeat(20)));
    let ran = run(folder.path(), &["check"]);
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert!((ran.out + &ran.err).contains(&"12".repeat(20)));
}

#[test]
fn a_missing_repository_is_a_gap_and_writes_no_sarif() {
    let (folder, ids) = pinned(&[("kernels.py", KERNELS)]);
    write(&folder, &format!("path = \"absent.git\"\ncommit = \"{}\"", ids.commit));
    let ran = run(folder.path(), &["check", "--output-sarif", "out.sarif"]);
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert!(ran.out.contains("source-missing") && ran.out.contains("`tree`"), "{}", ran.out);
    assert!(!folder.path().join("out.sarif").exists());
    let allowed = run(folder.path(), &["check", "--allow-missing", "--output-sarif", "out.sarif"]);
    assert_eq!(allowed.code, Some(3), "{}{}", allowed.out, allowed.err);
    assert!(!folder.path().join("out.sarif").exists());
}

#[test]
fn a_patch_with_another_digest_is_reported() {
    let (folder, ids) = pinned(&[("kernels.py", KERNELS), ("serve.py", SERVE)]);
    let patch = "diff --git a/serve.py b/serve.py\n--- a/serve.py\n+++ b/serve.py\n@@ -8 +8 @@\n-linear(1, 2)\n+linear(2, 2)\n";
    std::fs::write(folder.path().join("tree.patch"), patch).unwrap();
    let source = format!(
        "path = \"tree.git\"\ncommit = \"{}\"\n\n[source.patch]\npath = \"tree.patch\"\nsha256 = \"{}\"\ntree = \"{}\"\n",
        ids.commit,
        "0".repeat(64),
        "1".repeat(40)
    );
    write(&folder, &source);
    let ran = run(folder.path(), &["check"]);
    assert!(matches!(ran.code, Some(1 | 4)), "{:?} {}{}", ran.code, ran.out, ran.err);
    assert!(ran.out.contains("RLK104"), "{}", ran.out);
}

#[test]
fn verbose_says_what_the_rules_took_and_twice_what_each_took() {
    let (folder, _) = pinned(&[("kernels.py", KERNELS), ("serve.py", SERVE)]);
    let told = |flag: &str| run(folder.path(), &["check", flag]).err;
    let (once, twice) = (told("-v"), told("-vv"));
    assert_eq!(once.matches("checking the rules: ").count(), 1, "{once}");
    assert!(
        !once.contains("silent-fallback") && twice.contains("rule silent-fallback: ") && twice.contains("rule pinned-field: "),
        "{twice}"
    );
}

#[test]
fn python_that_does_not_parse_is_reported() {
    let (folder, _) = pinned(&[("kernels.py", KERNELS), ("broken.py", "from kernels import det_gemm\ndef f(:\n    det_gemm(1, 2)\n")]);
    let ran = run(folder.path(), &["check"]);
    assert!(ran.out.contains("RLK105") && ran.out.contains("broken.py"), "{}", ran.out);
    assert!(matches!(ran.code, Some(1 | 4)), "{:?}", ran.code);
}

#[test]
fn odd_paths_and_large_files_are_no_obstacle() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("wörk spàce 数");
    std::fs::create_dir(&folder).unwrap();
    let ids = repository(&folder, "trée 1.git", &[("kernels.py", KERNELS), ("pàge ü/sérve 1.py", SERVE)]);
    std::fs::write(folder.join("rlk-lint.toml"), profile(&format!("path = \"trée 1.git\"\ncommit = \"{}\"", ids.commit))).unwrap();
    let ran = run(&folder, &["check", "--format", "json", "--output", "ré port.json"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(folder.join("ré port.json").is_file());
    let mut large = String::from("X = 1\n");
    large.push_str(&"#".repeat(50 * 1024 * 1024));
    let ids = repository(&folder, "large.git", &[("kernels.py", KERNELS), ("large.py", &large)]);
    std::fs::write(folder.join("rlk-lint.toml"), profile(&format!("path = \"large.git\"\ncommit = \"{}\"", ids.commit))).unwrap();
    let ran = run(&folder, &["check"]);
    assert!(matches!(ran.code, Some(0 | 4)), "{:?} {}", ran.code, ran.err);
    // Left out is said, not passed over.
    assert!(ran.code == Some(0) || ran.out.contains("large.py"), "{}", ran.out);
}

#[test]
fn output_that_cannot_be_written_leaves_nothing() {
    let (folder, _) = pinned(&[("kernels.py", KERNELS)]);
    std::fs::create_dir(folder.path().join("report.json")).unwrap();
    std::fs::write(folder.path().join("report.json/kept"), "kept").unwrap();
    let before = names(folder.path());
    let ran = run(folder.path(), &["check", "--format", "json", "--output", "report.json"]);
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert!(ran.err.contains("report.json"), "{}", ran.err);
    assert_eq!(names(folder.path()), before, "no file is left half-written");
    let ran = run(folder.path(), &["check", "--output-sarif", "absent/out.sarif"]);
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert_eq!(names(folder.path()), before);
}

#[test]
fn a_closed_pipe_is_quiet() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["demo", "--format", "json"][..], &["man"], &["explain", "RLK301"], &["--help"]] {
        let mut child = start(folder.path(), arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ran = ran(&child.wait_with_output().unwrap());
        assert!(!ran.err.contains("pipe") && !ran.err.contains("rror"), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn what_needs_no_profile_works_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, wanted) in [
        (&["explain", "RLK301"][..], "# RLK301 silent-fallback"),
        (&["explain", "silent-fallback"], "## How to fix"),
        (&["rules"], "RLK205  dead-on-platform"),
        (&["rules", "--format", "json"], "\"id\": \"RLK101\""),
        (&["completions", "bash"], "complete -F _rlk"),
        (&["man"], ".TH rlk-lint"),
        (&["--version"], env!("CARGO_PKG_VERSION")),
    ] {
        let ran = run(folder.path(), arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.err);
        assert!(ran.out.contains(wanted), "{arguments:?}: {}", ran.out);
    }
    let ran = run(folder.path(), &["explain", "RLK3011"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("did you mean `RLK301`") || ran.err.contains("did you mean"), "{}", ran.err);
    let ran = run(folder.path(), &["check"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("rlk-lint init"), "{}", ran.err);
}

/// A checkout with one commit, made from a bare repository.
fn checkout(folder: &Path) -> PathBuf {
    let mark = ("rl_engine/__init__.py", "");
    repository(folder, "origin.git", &[mark, ("rl_engine/ops/det_gemm.py", KERNELS)]);
    let bare = folder.join("origin.git");
    let checkout = folder.join("checkout");
    let mut builder = git2::build::RepoBuilder::new();
    builder.clone(bare.to_str().unwrap(), &checkout).unwrap();
    checkout
}

#[test]
fn init_writes_a_profile_that_check_takes() {
    let folder = tempfile::tempdir().unwrap();
    let checkout = checkout(folder.path());
    let ran = run(&checkout, &["init"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let again = run(&checkout, &["init"]);
    assert_eq!(again.code, Some(2), "it does not replace a profile unasked");
    let ran = run(&checkout, &["check"]);
    assert!(matches!(ran.code, Some(0 | 1)), "{:?} {}{}", ran.code, ran.out, ran.err);
}

#[test]
fn init_writes_pipelines_and_keeps_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let checkout = checkout(folder.path());
    std::fs::write(checkout.join("rlk-lint.toml"), "# mine\n").unwrap();
    let ran = run(&checkout, &["init", "--github", "--gitlab"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(checkout.join("rlk-lint.toml")).unwrap(), "# mine\n");
    let workflow = std::fs::read_to_string(checkout.join(".github/workflows/rlk-lint.yml")).unwrap();
    assert!(workflow.contains(concat!("uses: RL-Align/rlk-lint@v", env!("CARGO_PKG_VERSION"))), "{workflow}");
    let job = std::fs::read_to_string(checkout.join(".gitlab/rlk-lint.yml")).unwrap();
    assert!(job.contains(concat!("--tag v", env!("CARGO_PKG_VERSION"), " ")) && !job.contains("{{"), "{job}");
    assert!(ran.err.contains("kept") && ran.err.contains("include: .gitlab/rlk-lint.yml"), "{}", ran.err);

    // A workflow that is there is not replaced unasked, and then nothing else is written either.
    std::fs::write(checkout.join(".github/workflows/rlk-lint.yml"), "mine").unwrap();
    std::fs::remove_file(checkout.join("rlk-lint.toml")).unwrap();
    let again = run(&checkout, &["init", "--github"]);
    assert!(again.code == Some(2) && again.err.contains("rlk-lint.yml exists already"), "{}", again.err);
    assert!(!checkout.join("rlk-lint.toml").exists());
    let forced = run(&checkout, &["init", "--github", "--force"]);
    assert_eq!(forced.code, Some(0), "{}", forced.err);
    assert!(checkout.join("rlk-lint.toml").exists());

    let nowhere = run(&checkout, &["init", "no/such/folder", "--github"]);
    assert!(nowhere.code == Some(4) && nowhere.err.contains("no/such/folder") && !checkout.join("no").exists(), "{}", nowhere.err);
}

#[test]
fn sources_are_listed_with_what_is_missing() {
    let (folder, first) = pinned(&[("kernels.py", KERNELS)]);
    let lost = "0123456789012345678901234567890123456789";
    let text = std::fs::read_to_string(folder.path().join("rlk-lint.toml")).unwrap();
    let more =
        format!("\n[[source]]\nid = \"far\"\nrepository = \"https://example.invalid/far\"\ncommit = \"{lost}\"\nrole = \"rollout\"\n");
    let unknown = "\n[[source]]\nid = \"vague\"\nrole = \"training\"\n";
    std::fs::write(folder.path().join("rlk-lint.toml"), format!("{text}{more}{unknown}")).unwrap();
    let ran = run(folder.path(), &["sources"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[0].starts_with("tree\tthere\t") && lines[0].contains(&first.commit.to_string()), "{}", ran.out);
    assert_eq!(lines[1..], [format!("far\tmissing\t{lost}\thttps://example.invalid/far").as_str(), "vague\tmissing\t-\t-"]);
    // A repository that does not have the commit is not the source.
    let at = format!("far={}", folder.path().join("tree.git").display());
    assert!(run(folder.path(), &["sources", "--source", &at]).out.contains("far\tmissing"));
    let json: serde_json::Value = serde_json::from_str(&run(folder.path(), &["sources", "--format", "json"]).out).unwrap();
    assert_eq!((&json[1]["id"], &json[1]["state"], &json[2]["commit"]), (&"far".into(), &"missing".into(), &serde_json::Value::Null));
    let wrong = run(folder.path(), &["sources", "--source", "other=."]);
    assert!(wrong.code == Some(2) && wrong.err.contains("other"), "{}", wrong.err);
}

#[test]
fn routes_are_listed_traced_and_drawn() {
    let (folder, _) = pinned(&[("kernels.py", KERNELS), ("serve.py", SERVE)]);
    let ran = run(folder.path(), &["inventory", "--format", "md"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("tree:serve.py:5") && ran.out.contains("serve.linear"), "{}", ran.out);
    let ran = run(folder.path(), &["inventory", "--format", "dot"]);
    assert!(ran.out.starts_with("digraph routes {") && ran.out.contains(" -> "), "{}", ran.out);
    let ran = run(folder.path(), &["inventory", "--format", "json"]);
    let inventory: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(inventory["schema"], "rlk-lint/inventory/v1");
    assert!(inventory["families"][0]["callsites"].as_array().is_some_and(|rows| rows.len() >= 2));
    for target in ["kernels.det_gemm", "serve.py:5", "tree:serve.py:5"] {
        let ran = run(folder.path(), &["trace", target]);
        assert_eq!(ran.code, Some(0), "{target}: {}", ran.err);
        assert!(ran.out.contains("kernels.gemm_kernel") || ran.out.contains("kernels.det_gemm"), "{}", ran.out);
    }
    let ran = run(folder.path(), &["trace", "nobody.knows"]);
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    std::fs::write(folder.path().join("kernels.py"), KERNELS).unwrap();
    std::fs::write(folder.path().join("serve.py"), SERVE).unwrap();
    let ran = run(folder.path(), &["callgraph", "serve.py"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let graph: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(graph["serve.linear"], serde_json::json!(["kernels.det_gemm"]));
}

#[test]
fn diff_names_the_routes_that_changed() {
    let (folder, ids) = pinned(&[("kernels.py", KERNELS), ("serve.py", SERVE)]);
    let changed = SERVE.replace("linear(", "project(");
    let newer = second_commit(&folder.path().join("tree.git"), &ids, &changed);
    let ran = run(folder.path(), &["diff", &ids.commit, &newer]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let lines: Vec<&str> = ran.out.lines().map(|line| line.split("->").next().unwrap().trim()).collect();
    assert!(lines.contains(&"removed  serve.linear") && lines.contains(&"added    serve.project"), "{}", ran.out);
    let same = run(folder.path(), &["diff", &ids.commit, &ids.commit]);
    assert!(same.code == Some(0) && same.out.contains("no route was"), "{}{}", same.out, same.err);
    let ran = run(folder.path(), &["diff", &ids.commit, &"12".repeat(20)]);
    assert!(matches!(ran.code, Some(2 | 4)), "{:?}", ran.code);
}

/// Adds a commit in which `serve.py` has another text.
fn second_commit(at: &Path, first: &CommitIds, text: &str) -> String {
    let repository = git2::Repository::open(at).unwrap();
    let parent = repository.find_commit(git2::Oid::from_str(&first.commit).unwrap()).unwrap();
    let tree = parent.tree().unwrap();
    let mut builder = repository.treebuilder(Some(&tree)).unwrap();
    builder.insert("serve.py", repository.blob(text.as_bytes()).unwrap(), 0o100_644).unwrap();
    let tree = repository.find_tree(builder.write().unwrap()).unwrap();
    let author = parent.author();
    repository.commit(Some("refs/heads/main"), &author, &author, "second\n", &tree, &[&parent]).unwrap().to_string()
}

/// Issue 581: "Use [the report] and the gfx942 bitwise schedule tests as prior evidence, not as a replacement for the new exact measurements", and
/// "requested implementation": the record lists what each file is, and what the launch asks for.
#[test]
fn the_stage0_record_holds_prior_evidence_and_what_is_requested() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["demo", "--stage0"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let record: rlk_lint::stage0::Record = serde_json::from_str(&ran.out).unwrap();
    let row = |id: &str| record.evidence.iter().find(|row| row.id == id).unwrap();
    let ids: Vec<&str> = record.evidence.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids, ["pr396-report", "gfx942-schedules", "packed-ffn", "g10-g11", "h100-table"]);
    // No file of the companions was made on this device for the pinned table.
    assert!(record.evidence.iter().all(|row| !row.counts && !row.notes.is_empty() && row.blob.is_some()));
    let report = row("pr396-report");
    assert_eq!((report.kind.as_str(), report.platform.as_ref().unwrap().value.as_str()), ("report", "rocm"));
    // The report measures qkv at M=8 and M=4096; decode has at most 32 rows, the training forward 4096.
    for shape in ["qkv_proj/rollout/decode", "qkv_proj/training/forward"] {
        assert!(report.covers.iter().any(|covered| covered.value == shape), "{shape}: {:?}", report.covers);
    }
    // It measured lm_head with N=37984; the workload's is 38016.
    assert!(report.lacks.iter().any(|shape| shape == "lm_head/rollout/decode"));
    assert_eq!(row("h100-table").platform.as_ref().unwrap().value, "cuda");
    let requested: Vec<&str> = record
        .regions
        .iter()
        .flat_map(|region| &region.routes)
        .flat_map(|route| &route.requested)
        .map(|cited| cited.value.as_str())
        .collect();
    assert!(!requested.is_empty() && requested.iter().all(|value| *value == "RL_KERNEL_DET_GEMM_BACKEND=triton_mfma"), "{requested:?}");
}
