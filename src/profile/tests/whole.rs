//! The profile as a whole: what is read, what is shown, and that nothing panics.

use super::*;

#[test]
fn the_least_profile_is_read() {
    let profile = parse(LEAST).unwrap();
    assert_eq!((profile.backend.as_str(), profile.arch.as_str()), ("rocm", "gfx942"));
    assert_eq!(profile.max_file_bytes, DEFAULT_MAX_FILE_BYTES);
    let [source] = profile.sources.as_slice() else { panic!("one source") };
    assert_eq!((source.id.as_str(), source.role, source.main), ("k", Role::Kernel, false));
    assert_eq!(source.roots, ["."]);
    assert_eq!(source.commit.as_deref(), Some(COMMIT));
    assert_eq!(&LEAST[source.span.start as usize..source.span.end as usize], "[[source]]");
}

#[test]
fn everything_is_read() {
    let text = format!(
        r#"{LEAST}roots = ["src/", "./lib"]
main = true
[source.patch]
path = "p/x.patch"
sha256 = "{}"
tree = "{TREE}"
[[family]]
id = "det_gemm"
sinks = ["a.b._kernel", "a._C.det_gemm_*"]
facades = ["a.b.Op"]
keys = ["det_gemm"]
lookalikes = ["a.b.Native"]
[family.contracts]
"a.b.*" = "rlkernel.det_gemm.v1"
[[entry]]
symbol = "a.main"
[paths]
test = ["tests/**", "k:x/*_test.py"]
production = ["tests/real/**"]
[rules]
RLK101 = "error"
[[rules-for]]
paths = ["old/**"]
unpinned-source = "off"
"#,
        "3".repeat(64)
    );
    let profile = parse(&format!("max-file-bytes = 5\n{text}")).unwrap();
    assert_eq!(profile.max_file_bytes, 5);
    let source = &profile.sources[0];
    assert_eq!(source.roots, ["src", "lib"]);
    assert!(source.main);
    let patch = source.patch.as_ref().unwrap();
    assert_eq!((patch.path.as_str(), patch.source.as_deref(), patch.tree.as_deref()), ("p/x.patch", None, Some(TREE)));
    let family = &profile.families[0];
    assert_eq!(family.sinks, ["a.b._kernel", "a._C.det_gemm_*"]);
    assert_eq!(family.contracts, [("a.b.*".to_owned(), "rlkernel.det_gemm.v1".to_owned())]);
    assert_eq!(profile.entries[0].symbol, "a.main");
    let classes = PathClasses::new(&profile);
    assert_eq!(classes.class("k", "tests/real/a.py"), PathClass::Test, "the first glob that matches decides");
    assert_eq!(classes.class("k", "x/a_test.py"), PathClass::Test);
    assert_eq!(classes.class("other", "x/a_test.py"), PathClass::Production, "a glob for one source");
    assert_eq!(classes.class("k", "x/y/a_test.py"), PathClass::Production, "`*` stops at a slash");
    let levels = RuleLevels::new(&profile);
    assert_eq!(levels.level("RLK101", "k", "new/a.py"), Some(Level::Error));
    assert_eq!(levels.level("RLK101", "k", "old/a.py"), Some(Level::Off));
    assert_eq!(levels.level("RLK999", "k", "old/a.py"), None);
}

#[test]
fn the_public_profile_is_read() {
    let text = include_str!("../../../fixtures/profiles/public-2026-08.toml");
    let profile = parse(text).unwrap();
    let ids: Vec<_> = profile.sources.iter().map(|source| source.id.as_str()).collect();
    assert_eq!(ids, ["rl-kernel", "megatron", "vllm", "vime-parent"]);
    assert!(profile.sources.iter().all(|source| source.path.is_none() && source.commit.is_some() && source.tree.is_some()));
    let classes = PathClasses::new(&profile);
    for (source, path, class) in [
        ("rl-kernel", "rl_engine/kernels/registry.py", PathClass::Production),
        ("rl-kernel", "rl_engine/testing/reference_ops.py", PathClass::Production),
        ("rl-kernel", "rl_engine/kernels/gtest/operator_specs.py", PathClass::Test),
        ("rl-kernel", "rl_engine/tests/test_dispatch.py", PathClass::Test),
        ("rl-kernel", "benchmarks/benchmark_det_gemm.py", PathClass::Benchmark),
        ("rl-kernel", "rl_engine/kernels/ops/pytorch/matmul/det_gemm.py", PathClass::Reference),
        ("rl-kernel", "docs/operators/det-gemm.md", PathClass::Documentation),
        ("megatron", "megatron/legacy/mpu/tests/test_data.py", PathClass::Test),
        ("vllm", "vllm/benchmarks/serve.py", PathClass::Benchmark),
        ("vllm", "examples/others/x.py", PathClass::Example),
        ("vime-parent", "train.py", PathClass::Production),
    ] {
        assert_eq!(classes.class(source, path), class, "{source}:{path}");
    }
}

#[test]
fn keys_and_sections_that_do_not_exist_suggest_the_nearest() {
    assert_eq!(mistakes(&format!("shema = 1\n{LEAST}")), ["1: unknown key `shema` in the profile (did you mean `schema`?)"]);
    assert_eq!(mistakes_after("[[rule-for]]\npaths = []"), ["10: unknown key `rule-for` in the profile (did you mean `rules-for`?)"]);
    assert_eq!(mistakes_after("comit = \"x\""), ["10: unknown key `comit` in [[source]] (did you mean `commit`?)"]);
    assert_eq!(
        mistakes_after("xyzzy = \"x\""),
        [
            "10: unknown key `xyzzy` in [[source]] (valid keys: `id`, `path`, `repository`, `commit`, `tree`, `roots`, `role`, `main`, `patch`)"
        ]
    );
}

#[test]
fn the_schema_is_checked() {
    let help = "this version reads `schema = \"rlk-lint/profile/v1\"`";
    assert_eq!(mistakes_with("/v1", "/v2"), [format!("1: unknown schema `rlk-lint/profile/v2` ({help})")]);
    assert_eq!(mistakes_with("rlk-lint/profile/v1", "x"), [format!("1: unknown schema `x` ({help})")]);
    assert_eq!(
        mistakes_with("schema = \"rlk-lint/profile/v1\"", ""),
        ["1: the profile has no `schema` (add `schema = \"rlk-lint/profile/v1\"`)"]
    );
    assert_eq!(mistakes_with("schema = \"rlk-lint/profile/v1\"", "schema = 1"), ["1: `schema` is an integer"]);
}

#[test]
fn the_size_limit_is_checked() {
    let help = "(write a number of bytes from 1 to 1073741824)";
    assert_eq!(mistakes(&format!("max-file-bytes = 0\n{LEAST}")), [format!("1: `max-file-bytes` is 0 {help}")]);
    assert_eq!(mistakes(&format!("max-file-bytes = -1\n{LEAST}")), [format!("1: `max-file-bytes` is -1 {help}")]);
    assert_eq!(mistakes(&format!("max-file-bytes = \"4M\"\n{LEAST}")), ["1: `max-file-bytes` is a string"]);
    assert_eq!(mistakes(&format!("max-file-bytes = 99999999999999999999\n{LEAST}")), ["1: `max-file-bytes` does not fit into 64 bits"]);
}

#[test]
fn all_mistakes_are_told_in_order_of_place() {
    let text = LEAST.replace("rocm", "rocn").replace("\"kernel\"", "\"kernal\"").replace(COMMIT, "abc");
    assert_eq!(
        mistakes(&text),
        [
            "3: unknown backend `rocn` (did you mean `rocm`?)",
            "8: unknown role `kernal` (did you mean `kernel`?)",
            "9: `commit` is not a full commit id (write all 40 lower-case hexadecimal digits; `git rev-parse <revision>^{commit}` prints it)",
        ]
    );
}

#[test]
fn text_that_is_not_toml_is_told_with_every_place() {
    let told = mistakes(&format!("{LEAST}x = \n[y\n"));
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("10: not TOML: "), "{told:?}");
    assert!(told[1].starts_with("11: not TOML: "), "{told:?}");
    let told = mistakes(&format!("{LEAST}role = \"kernel\"\n"));
    assert_eq!(told, ["10: not TOML: duplicate key"]);
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_are_read() {
    assert!(parse(&format!("\u{FEFF}{LEAST}")).is_ok());
    assert!(parse(&LEAST.replace('\n', "\r\n")).is_ok());
}

#[test]
fn an_oversized_profile_is_refused_unread() {
    let told = mistakes(&"# x\n".repeat(1 << 19));
    assert_eq!(told, ["1: the profile is larger than 1 MiB"]);
}

#[test]
fn a_mistake_shows_its_line_and_what_would_be_valid() {
    let errors = parse(&LEAST.replace(COMMIT, "11ABC")).unwrap_err();
    let mut out = String::new();
    let handler = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::none()).with_width(200);
    handler.render_report(&mut out, &errors).unwrap();
    for part in
        ["rlk-lint.toml has a mistake", "rlk-lint.toml:9", "commit = \"11ABC\"", "abbreviated, with 5 of 40 digits", "git rev-parse"]
    {
        assert!(out.contains(part), "{part} in\n{out}");
    }
}

#[test]
fn what_could_steer_a_terminal_is_not_shown() {
    let errors = parse(&LEAST.replace("rocm", "ro\u{202E}cm").replace("[platform]", "[platform] # \u{009B}31m")).unwrap_err();
    let mut out = String::new();
    miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::none()).render_report(&mut out, &errors).unwrap();
    assert!(!out.contains('\u{202E}') && !out.contains('\u{009B}') && !out.contains('\x1b'), "{out}");
    assert!(errors.mistakes[0].message.contains("\\u{202e}"));
}

#[test]
fn nothing_panics_on_damaged_text() {
    let whole = include_str!("../../../fixtures/profiles/public-2026-08.toml");
    let text: String = whole.chars().take(1600).collect();
    let mut state = 7_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap_or(0) % below.max(1)
    };
    let pieces = ["", "\"", "[", "]]", "=", "{", "}", "\n", "é", "\u{202E}", "0x", "'''", "#", "[[source]]\n", "a.b.c = 1\n", "null", "-"];
    for _ in 0..3000 {
        let mut characters: Vec<char> = text.chars().collect();
        for _ in 0..=next(3) {
            let at = next(characters.len());
            let end = (at + next(12)).min(characters.len());
            characters.splice(at..end, pieces[next(pieces.len())].chars());
        }
        let damaged: String = characters.into_iter().collect();
        if let Err(errors) = parse(&damaged) {
            let mut out = String::new();
            miette::GraphicalReportHandler::new().render_report(&mut out, &errors).unwrap();
        }
    }
    for depth in [10, 1000, 100_000] {
        let _ = parse(&format!("{LEAST}x = {}", "[".repeat(depth)));
        let _ = parse(&format!("{LEAST}x = {}1", "{a=".repeat(depth)));
        let _ = parse(&format!("{LEAST}{}a = 1", "a.".repeat(depth)));
    }
}
