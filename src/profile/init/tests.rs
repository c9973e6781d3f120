//! Profiles for checkouts of every kind parse, and say what the facts say.

use super::super::{PatchPin, PathClass, PathClasses, PinsRef, ProfileErrors};
use super::*;

fn parse(facts: &CheckoutFacts, text: &str) -> Result<Profile, ProfileErrors> {
    let input = Input { file: FileId(0), name: "rlk-lint.toml", text, paths: &[] };
    Profile::parse(&input, &mut |pins: &PinsRef| {
        facts.pins.iter().find(|(path, _)| *path == pins.path).map(|(_, text)| text.clone()).ok_or_else(|| "absent".to_owned())
    })
}

fn profile(facts: &CheckoutFacts) -> (String, Profile) {
    let text = profile_text(facts);
    let profile = parse(facts, &text).unwrap_or_else(|errors| panic!("{:?}\n{text}", errors.mistakes));
    (text, profile)
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn rl_kernel() -> CheckoutFacts {
    CheckoutFacts {
        name: "RL-Kernel".to_owned(),
        head: Some("a".repeat(40)),
        tree: Some("b".repeat(40)),
        remote: Some("git@github.com:RL-Align/RL-Kernel.git".to_owned()),
        folders: strings(&["rl_engine", "tests", "perf"]),
        packages: vec![("rl_engine".to_owned(), ".".to_owned())],
        gemm_modules: strings(&[
            "rl_engine/backends/rocm/gemm/det_gemm.py",
            "rl_engine/backends/rocm/gemm/mfma_gemm.py",
            "rl_engine/backends/shared/triton/gemm/det_gemm.py",
            "rl_engine/kernels/ops/pytorch/matmul/det_gemm.py",
        ]),
        pins: Vec::new(),
    }
}

#[test]
fn a_kernel_checkout_is_described() {
    let (text, profile) = profile(&rl_kernel());
    let [source] = profile.sources.as_slice() else { panic!("one source") };
    assert_eq!((source.id.as_str(), source.role, source.main), ("rl-kernel", Role::Kernel, true));
    assert_eq!(source.repository.as_deref(), Some("https://github.com/RL-Align/RL-Kernel"));
    // A profile cannot name the commit that holds it: the checkout is read as it stands.
    assert_eq!((source.commit.clone(), source.tree.clone()), (None, None));
    assert!(text.contains(&format!("# commit = \"{}\"", "a".repeat(40))));
    let family = &profile.families[0];
    assert!(family.sinks.contains(&"rl_engine.backends.rocm.gemm.mfma_gemm._mfma_gemm_*".to_owned()));
    assert!(family.sinks.contains(&"rl_engine._C.det_gemm_*".to_owned()));
    assert!(family.facades.contains(&"rl_engine.backends.rocm.gemm.det_gemm.DetGemmOp".to_owned()));
    assert!(family.lookalikes.contains(&"rl_engine.kernels.ops.pytorch.matmul.det_gemm.NativeGemmOp".to_owned()));
    assert_eq!(family.contracts[0].1, "rlkernel.det_gemm.triton_mfma_rocm.v1");
    let classes = PathClasses::new(&profile);
    assert_eq!(classes.class("rl-kernel", "perf/run.py"), PathClass::Benchmark);
    assert_eq!(classes.class("rl-kernel", "rl_engine/a.py"), PathClass::Production);
}

#[test]
fn pins_bring_their_companions() {
    let pin = |tree: &str| format!("{{\"base\": \"{}\", \"tree\": \"{tree}\", \"patch_sha256\": \"{}\"}}", "c".repeat(40), "d".repeat(64));
    let tree = "e".repeat(40);
    let pins = format!("{{\"megatron\": {0}, \"vllm\": {0}, \"my-fork\": {0}, \"Not An Id\": {0}, \"rl-kernel\": {0}}}", pin(&tree));
    let facts = CheckoutFacts {
        pins: vec![
            ("patches/dense/sources.json".to_owned(), "{}".to_owned()),
            ("patches/rocm_attention/sources.json".to_owned(), pins.replace("\"rl-kernel\"", "\"other\"")),
        ],
        ..rl_kernel()
    };
    let (text, profile) = profile(&facts);
    let sources: Vec<_> = profile.sources.iter().map(|source| (source.id.as_str(), source.role)).collect();
    assert_eq!(
        sources,
        [
            ("rl-kernel", Role::Kernel),
            ("megatron", Role::Training),
            ("vllm", Role::Rollout),
            ("my-fork", Role::Orchestrator),
            ("other", Role::Orchestrator),
        ]
    );
    let patch = PatchPin {
        path: "patches/rocm_attention/vllm.patch".to_owned(),
        source: Some("rl-kernel".to_owned()),
        sha256: Some("d".repeat(64)),
        tree: Some(tree),
    };
    assert_eq!(profile.sources[2].patch, Some(patch));
    assert!(text.contains("# path = \"patches/dense/sources.json\""), "the other pins are offered:\n{text}");
}

#[test]
fn pins_that_do_not_parse_are_left_as_a_comment() {
    for bad in ["../../sources.json", "{", "{\"vllm\": {\"base\": \"abc\"}}", "[]", "{\"vllm\": 1}"] {
        let facts = CheckoutFacts { pins: vec![("p/sources.json".to_owned(), bad.to_owned())], ..rl_kernel() };
        let (text, profile) = profile(&facts);
        assert_eq!(profile.sources.len(), 1, "{bad}");
        assert!(text.contains("# path = \"p/sources.json\""), "{bad}");
    }
}

#[test]
fn every_kind_of_checkout_parses() {
    for (package, id, role) in KNOWN_PACKAGES {
        let facts = CheckoutFacts { packages: vec![((*package).to_owned(), "python".to_owned())], ..CheckoutFacts::default() };
        let (_, profile) = profile(&facts);
        assert_eq!((profile.sources[0].id.as_str(), profile.sources[0].role), (*id, *role));
        assert_eq!(profile.sources[0].roots, ["python"]);
    }
    for name in ["", "..", "My Repo", "répo", "\"quoted\"\n[x]", "\u{202E}", "-x"] {
        let facts = CheckoutFacts {
            name: name.to_owned(),
            head: Some("not an id".to_owned()),
            remote: Some(format!("https://example.org/{name}")),
            folders: vec![name.to_owned()],
            packages: vec![("rl_engine".to_owned(), format!("../{name}")), (name.to_owned(), name.to_owned())],
            gemm_modules: vec![format!("{name}/det_gemm.py"), "a-b/mfma_gemm.py".to_owned()],
            pins: vec![(name.to_owned(), format!("{{{:?}: {{}}}}", "x"))],
            ..CheckoutFacts::default()
        };
        profile(&facts);
    }
}

#[test]
fn what_is_commented_out_is_valid_too() {
    let (text, _) = profile(&CheckoutFacts { name: "x".to_owned(), ..CheckoutFacts::default() });
    let live: Vec<_> = text
        .lines()
        .map(|line| {
            let assignment = line.strip_prefix("# ").filter(|rest| {
                let key = rest.split_once(" = ").map_or("", |(key, _)| key);
                rest.starts_with('[') || (!key.is_empty() && !key.contains([' ', '`']))
            });
            assignment.unwrap_or(line).replace("\"...\" # the full id", &format!("\"{}\" # the full id", "1".repeat(40)))
        })
        .collect();
    let live = live.join("\n").replace("reference = [\"...\"]", "reference = [\"ref/**\"]");
    let facts = CheckoutFacts::default();
    let profile = parse(&facts, &live).unwrap_or_else(|errors| panic!("{:?}\n{live}", errors.mistakes));
    assert_eq!(profile.sources.len(), 4);
    assert_eq!(profile.families.len(), 1);
}

#[test]
fn addresses_lose_their_credentials() {
    for (remote, address) in [
        ("https://user:secret@github.com/o/r.git", Some("https://github.com/o/r")),
        ("ssh://git@github.com:22/o/r.git", Some("https://github.com/o/r")),
        ("git@github.com:o/r", Some("https://github.com/o/r")),
        ("https://github.com/o/r/?token=secret", Some("https://github.com/o/r")),
        ("/home/me/r", None),
        ("../r", None),
        ("file:///home/me/r", None),
        ("C:\\r", None),
        ("https://github.com", None),
    ] {
        assert_eq!(public_address(remote).as_deref(), address, "{remote}");
    }
}
