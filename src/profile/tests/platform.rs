//! Mistakes in `[platform]`.

use super::*;

#[test]
fn environment_and_known_names_are_read() {
    let profile = parse(&LEAST.replace(
        "arch = \"gfx942\"\n",
        r#"arch = "gfx942"
[platform.environment]
RL_KERNEL_DET_GEMM_BACKEND = "triton_mfma"
VLLM_X = false
EMPTY = ""
[platform.known]
"torch.version.hip" = { present = true }
"torch.version.cuda" = { none = true }
"a.flag" = true
"a.count" = 0x10
"a.text" = "x"
"#,
    ))
    .unwrap();
    let environment: Vec<_> = profile.environment.into_iter().collect();
    assert_eq!(
        environment,
        [
            ("EMPTY".to_owned(), Known::Str(String::new())),
            ("RL_KERNEL_DET_GEMM_BACKEND".to_owned(), Known::Str("triton_mfma".to_owned())),
            ("VLLM_X".to_owned(), Known::None),
        ]
    );
    let expected = [
        ("a.count", Known::Int(16)),
        ("a.flag", Known::Bool(true)),
        ("a.text", Known::Str("x".to_owned())),
        ("torch.version.cuda", Known::None),
        ("torch.version.hip", Known::Present),
    ];
    assert_eq!(profile.known, expected.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<BTreeMap<_, _>>());
}

/// The mistakes with `more` written into `[platform]`, beginning on line 5.
fn platform(more: &str) -> Vec<String> {
    mistakes_with("arch = \"gfx942\"\n", &format!("arch = \"gfx942\"\n{more}\n"))
}

#[test]
fn a_platform_is_needed() {
    assert_eq!(
        mistakes_with("[platform]\nbackend = \"rocm\"\narch = \"gfx942\"\n", ""),
        ["1: the profile has no [platform] (add [platform] with `backend = \"rocm\"` and `arch = \"gfx942\"`)"]
    );
    assert_eq!(mistakes_with("backend = \"rocm\"\n", ""), ["2: [platform] has no `backend` (add `backend = \"rocm\"`)"]);
    assert_eq!(mistakes_with("arch = \"gfx942\"\n", ""), ["2: [platform] has no `arch` (add `arch = \"gfx942\"`)"]);
    assert_eq!(mistakes_with("arch = \"gfx942\"", "arch = \"\""), ["4: `arch` is empty (write a value, or leave the key out)"]);
}

#[test]
fn a_backend_and_an_instruction_set_have_to_fit() {
    assert_eq!(mistakes_with("\"rocm\"", "\"metal\""), ["3: unknown backend `metal` (valid backends: `rocm`, `cuda`, `cpu`)"]);
    assert_eq!(
        mistakes_with("gfx942", "sm_90"),
        ["4 & 3: `sm_90` is not an instruction set of backend `rocm` (for example `arch = \"gfx942\"`)"]
    );
    assert_eq!(
        mistakes_with("\"rocm\"", "\"cuda\""),
        ["4 & 3: `gfx942` is not an instruction set of backend `cuda` (for example `arch = \"sm_90\"`)"]
    );
}

#[test]
fn versions_cannot_contradict_the_backend() {
    assert_eq!(
        platform("known = { \"torch.version.hip\" = { none = true } }"),
        [
            "5 & 3: `torch.version.hip` contradicts backend `rocm` (write `\"torch.version.hip\" = { present = true }`, or its version as a string)"
        ]
    );
    assert_eq!(
        platform("known = { \"torch.version.cuda\" = \"12.8\" }"),
        ["5 & 3: `torch.version.cuda` contradicts backend `rocm` (write `\"torch.version.cuda\" = { none = true }`)"]
    );
}

#[test]
fn environment_values_are_strings_or_false() {
    let help = "(write a string for its value, or false for \"not set\")";
    assert_eq!(
        platform("[platform.environment]\nA = true\nB = 1\n\"C-D\" = \"x\"\n1E = \"x\""),
        [
            format!("6: `A` is true, which is no value {help}"),
            format!("7: `B` is an integer {help}"),
            "8: `C-D` is not the name of an environment variable (use letters, digits and underscores, and do not begin with a digit)"
                .to_owned(),
            "9: `1E` is not the name of an environment variable (use letters, digits and underscores, and do not begin with a digit)"
                .to_owned(),
        ]
    );
    assert_eq!(platform("environment = \"A=1\""), ["5: `environment` is a string"]);
}

#[test]
fn known_values_are_values() {
    let help = "(write a string, a boolean, an integer, `{ present = true }` or `{ none = true }`)";
    assert_eq!(
        platform("[platform.known]\n\"a.b\" = 1.5\n\"a.c\" = { present = false }\n\"a.d\" = { some = true }\n\"a-b\" = 1"),
        [
            format!("6: `a.b` has no value that can be known {help}"),
            format!("7: `a.c` has no value that can be known {help}"),
            format!("8: `a.d` has no value that can be known {help}"),
            "9: `a-b` is not a dotted Python name (write the whole name in quotes, for example `\"torch.version.hip\"`)".to_owned(),
        ]
    );
    assert_eq!(
        platform("[platform.known]\ntorch.version.hip = \"7.1\""),
        ["6: `torch` has no value that can be known (write a dotted name in quotes: `\"torch.version.hip\" = { present = true }`)"]
    );
}
