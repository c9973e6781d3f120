//! `probe run` before anything is started: what it refuses, and with which exit code.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(folder: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rlk-lint"));
    command.env_clear().envs(variables.iter().copied()).current_dir(folder).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Exit code and everything that was said.
fn told(output: &Output) -> (Option<i32>, String) {
    let text = [&output.stdout[..], &output.stderr[..]].map(|text| String::from_utf8_lossy(text).into_owned()).concat();
    assert!(!text.contains("panicked"), "{text}");
    (output.status.code(), text)
}

#[test]
fn a_run_that_could_prove_nothing_is_refused_before_it_begins() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    assert_eq!(run(at, &[], &["demo", "--keep", "demo", "--quiet", "-o", "report"]).status.code(), Some(0));
    let usual = ["probe", "run", "evidence", "--execute-sources", "--python", "/nonexistent/python", "--profile", "demo/rlk-lint.toml"];

    let (code, text) = told(&run(at, &[], &["probe", "run", "evidence", "--profile", "demo/rlk-lint.toml"]));
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("--execute-sources"), "{text}");

    let (code, text) = told(&run(at, &[("TRITON_INTERPRET", "1")], &usual));
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("TRITON_INTERPRET"), "{text}");

    let profile = std::fs::read_to_string(at.join("demo/rlk-lint.toml")).unwrap();
    let pinned = "RL_KERNEL_DET_GEMM_BACKEND = \"triton_mfma\"";
    assert!(profile.contains(pinned));
    for (name, value) in [("auto", "RL_KERNEL_DET_GEMM_BACKEND = \"auto\""), ("unset", "")] {
        let file = format!("demo/{name}.toml");
        std::fs::write(at.join(&file), profile.replace(pinned, value)).unwrap();
        let (code, text) = told(&run(at, &[], &[&usual[..7], &[file.as_str()]].concat()));
        assert_eq!(code, Some(2), "{name}: {text}");
        assert!(text.contains("not pinned"), "{name}: {text}");
    }

    // A machine with an AMD GPU goes on, and then lacks the interpreter.
    let (code, text) = told(&run(at, &[], &usual));
    if Path::new("/sys/class/kfd").exists() {
        assert_eq!(code, Some(4), "{text}");
    } else {
        assert_eq!(code, Some(3), "{text}");
        assert!(text.contains("unsupported: no AMD GPU"), "{text}");
    }
    assert!(!at.join("evidence").exists(), "nothing was begun");
}
