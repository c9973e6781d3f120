//! Mistakes in `[[source]]`, `[source.patch]`, `[[family]]` and `[[entry]]`.

use super::*;

#[test]
fn a_source_is_needed() {
    let help = "(add [[source]] with `id = \"rl-kernel\"`, `path = \".\"`, `role = \"kernel\"` and `commit`)";
    let head = &LEAST[..LEAST.find("[[source]]").unwrap()];
    assert_eq!(mistakes(head), [format!("1: the profile has no [[source]] {help}")]);
    assert_eq!(
        mistakes(&LEAST.replace("[[source]]", "[source]")),
        ["5: `source` is a table (write [[source]], with two brackets, before each one)"]
    );
}

#[test]
fn id_and_role_are_needed() {
    assert_eq!(mistakes_with("id = \"k\"\n", ""), ["5: [[source]] has no `id` (add `id = \"rl-kernel\"`)"]);
    assert_eq!(mistakes_with("role = \"kernel\"\n", ""), ["5: [[source]] has no `role` (add `role = \"kernel\"`)"]);
    assert_eq!(
        mistakes_with("\"k\"", "\"K/..\""),
        ["6: `K/..` is not an id (use lower-case letters, digits, `-`, `_` and `.`, beginning with a letter or digit)"]
    );
    assert_eq!(
        mistakes_with("\"kernel\"", "\"judge\""),
        ["8: unknown role `judge` (valid roles: `kernel`, `orchestrator`, `rollout`, `training`)"]
    );
    assert_eq!(mistakes_with("\"kernel\"", "true"), ["8: `role` is a boolean"]);
}

#[test]
fn an_id_is_declared_once() {
    assert_eq!(
        mistakes_after("[[source]]\nrole = \"kernel\"\nid = \"k\"\n"),
        ["12 & 6: source `k` is declared twice (give one of them another id)"]
    );
    assert_eq!(
        mistakes_after("main = true\n[[source]]\nrole = \"kernel\"\nid = \"l\"\nmain = true\n"),
        ["14 & 10: two sources have `main = true` (results are reported against one checkout: keep one)"]
    );
    assert_eq!(mistakes_after("main = \"yes\""), ["10: `main` is a string"]);
}

#[test]
fn commits_are_written_in_full() {
    let full = "write all 40 lower-case hexadecimal digits; `git rev-parse <revision>^{commit}` prints it";
    for bad in ["1111111", "main", "v1.0", &"1".repeat(39), &"1".repeat(41), &"g".repeat(40)] {
        assert_eq!(mistakes_with(COMMIT, bad), [format!("9: `commit` is not a full commit id ({full})")], "{bad}");
    }
    let upper = "A".repeat(40);
    assert_eq!(mistakes_with(COMMIT, &upper), [format!("9: `commit` is not a full commit id (write `{}`)", "a".repeat(40))]);
    assert!(parse(&LEAST.replace(COMMIT, &"a".repeat(64))).is_ok(), "a SHA-256 repository");
}

#[test]
fn trees_and_digests_are_written_in_full() {
    let tree = "write all 40 lower-case hexadecimal digits; `git rev-parse <revision>^{tree}` prints it";
    let digest = "write all 64 lower-case hexadecimal digits; `sha256sum <file>` prints it";
    assert_eq!(mistakes_after("tree = \"22\""), [format!("10: `tree` is not a full tree id ({tree})")]);
    assert_eq!(
        mistakes_after(&format!("[source.patch]\npath = \"x.patch\"\nsha256 = \"{TREE}\"\ntree = \"2\"")),
        [format!("12: `sha256` is not a SHA-256 digest ({digest})"), format!("13: `tree` is not a full tree id ({tree})")]
    );
}

#[test]
fn a_tree_or_patch_needs_a_commit() {
    let open = LEAST.replace(&format!("commit = \"{COMMIT}\"\n"), "");
    assert_eq!(mistakes(&format!("{open}tree = \"{TREE}\"")), ["9: source `k` has a tree but no commit (add `commit`, or remove `tree`)"]);
    assert_eq!(
        mistakes(&format!("{open}patch.path = \"x\"")),
        ["9: source `k` has a patch but no commit to apply it to (add `commit` to the [[source]])"]
    );
}

#[test]
fn roots_stay_inside() {
    let help = "(write a path relative to the source's root, with forward slashes, or `.`)";
    assert_eq!(
        mistakes_after("roots = [\"/x\", \"../y\", \"a\\\\b\", \"C:/z\", \"a\", \"./a/\"]"),
        [
            format!("10: root `/x` is not inside the source {help}"),
            format!("10: root `../y` is not inside the source {help}"),
            format!("10: root `a\\b` is not inside the source {help}"),
            format!("10: root `C:/z` is not inside the source {help}"),
            "10: root `a` is listed twice (remove one of the two)".to_owned(),
        ]
    );
    assert_eq!(
        mistakes_after("roots = []"),
        ["10: `roots` names no folder (leave the key out for the source's own root, or write `roots = [\".\"]`)"]
    );
    assert_eq!(mistakes_after("roots = \".\""), ["10: `roots` is a string (for example `roots = [\"...\"]`)"]);
    assert_eq!(mistakes_after("roots = [1, \"\"]"), ["10: `roots` is an integer", "10: `roots` holds an empty string"]);
}

#[test]
fn a_patch_lies_somewhere() {
    assert_eq!(mistakes_after("[source.patch]"), ["10: the patch of source `k` has no `path` (add `path = \"patches/name.patch\"`)"]);
    assert_eq!(
        mistakes_after("[source.patch]\npath = \"x\"\nsource = \"k\""),
        ["12: source `k` cannot hold the patch that is applied to it (name another source, or leave `source` out)"]
    );
    let second = "[[source]]\nid = \"vllm\"\nrole = \"rollout\"\n";
    assert_eq!(
        mistakes_after(&format!("patch = {{ path = \"x\", source = \"vlm\" }}\n{second}")),
        ["10: no source has the id `vlm` (did you mean `vllm`?)"]
    );
    assert_eq!(
        mistakes_after(&format!("patch = {{ path = \"../x\", source = \"vllm\", sha = \"\" }}\n{second}")),
        [
            "10: `path` is not inside the source that holds the patch (write a path relative to that source's root, with forward slashes)",
            "10: unknown key `sha` in [source.patch] (valid keys: `path`, `source`, `sha256`, `tree`)",
        ]
    );
}

#[test]
fn paths_on_the_command_line_replace_those_declared() {
    let profile = parse_with(LEAST, &[], &[("k", "/else/where")]).unwrap();
    assert_eq!(profile.sources[0].path, Some(PathBuf::from("/else/where")));
    let errors = parse_with(LEAST, &[], &[("kk", "x")]).unwrap_err();
    assert_eq!(told(&errors), ["-: `--source kk=x` names a source that the profile does not declare (did you mean `k`?)"]);
    let errors = parse_with(LEAST, &[], &[("k", "x"), ("k", "y")]).unwrap_err();
    assert_eq!(told(&errors), ["-: `--source` gives `k` two different paths (give each source one path)"]);
}

#[test]
fn families_name_python_objects() {
    let help = "(write `package.module.name`; a `*` may stand at the very end only, as in `rl_engine._C.det_gemm_*`)";
    assert_eq!(
        mistakes_after("[[family]]\nid = \"f\"\nsinks = [\"a-b\", \"a.*.c\", \"a..b\", \"*\", \"a.*\"]"),
        [
            format!("12: `a-b` is not a qualified Python name {help}"),
            format!("12: `a.*.c` is not a qualified Python name {help}"),
            format!("12: `a..b` is not a qualified Python name {help}"),
            format!("12: `*` is not a qualified Python name {help}"),
        ]
    );
    assert_eq!(
        mistakes_after("[[family]]\n"),
        [
            "10: [[family]] has no `id` (add `id = \"det_gemm\"`)",
            "10: a family without sinks has no kernels to reach (add `sinks = [\"package.module.kernel\"]`)",
        ]
    );
}

#[test]
fn a_name_has_one_meaning_in_a_family() {
    let help = "(a name is a kernel, a front of one, or neither: keep one of the two)";
    assert_eq!(
        mistakes_after(
            "[[family]]\nid = \"f\"\nsinks = [\"a.k\", \"a.k\"]\nfacades = [\n  \"a.k\",\n  \"a.f\",\n]\nlookalikes = [\"a.f\"]"
        ),
        [
            "12 & 12: `a.k` stands in `sinks` twice (remove one of the two)".to_owned(),
            format!("14 & 12: `a.k` stands in both `sinks` and `facades` {help}"),
            format!("17 & 15: `a.f` stands in both `facades` and `lookalikes` {help}"),
        ]
    );
    assert_eq!(
        mistakes_after("[[family]]\nid = \"f\"\nsinks = [\"a.k\"]\n[[family]]\nid = \"f\"\nsinks = [\"a.k\"]\n"),
        ["14 & 11: family `f` is declared twice (merge the two, or give one of them another id)"]
    );
}

#[test]
fn contracts_map_names_to_ids() {
    let help = "write the qualified name in quotes and a contract id: `\"package.module.name\" = \"rlkernel.det_gemm.v1\"`";
    assert_eq!(
        mistakes_after("[[family]]\nid = \"f\"\nsinks = [\"a.k\"]\n[family.contracts]\na.k = \"x\"\n\"b.k\" = \"\"\n\"c-\" = \"x\""),
        [
            format!("14: `a` is a table ({help})"),
            "15: the contract of `b.k` is empty".to_owned(),
            "16: `c-` is not a qualified Python name (write `package.module.name`; a `*` may stand at the very end only, as in `rl_engine._C.det_gemm_*`)"
                .to_owned(),
        ]
    );
}

#[test]
fn entries_are_qualified_names() {
    let help = "(write `package.module.function` or `package.module.Class.method`)";
    assert_eq!(
        mistakes_after(
            "[[entry]]\nsymbol = \"a:main\"\n[[entry]]\nsymbol = \"a.b\"\n[[entry]]\nsymbol = \"a.b\"\n[[entry]]\nsymbl = \"x\"\n"
        ),
        [
            format!("11: `a:main` is not a qualified Python name {help}"),
            "15 & 13: `a.b` stands in the [[entry]] tables twice (remove one of the two)".to_owned(),
            "16: [[entry]] has no `symbol` (add `symbol = \"package.module.function\"`)".to_owned(),
            "17: unknown key `symbl` in [[entry]] (did you mean `symbol`?)".to_owned(),
        ]
    );
}
