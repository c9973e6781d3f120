//! Pins: both forms of `sources.json`, and their mistakes.

use super::*;

const BASE: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const RESULT: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const DIGEST: &str = "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc";

/// Lines 10 to 14 declare the source `m`; `more` begins on line 13.
fn with_pins(more: &str, pins: &str, files: &[(&str, &str)]) -> Result<Profile, ProfileErrors> {
    parse_with(&format!("{LEAST}[[source]]\nid = \"m\"\nrole = \"training\"\n{more}{pins}"), files, &[])
}

const BESIDE: &str = "[[pins]]\npath = \"p/sources.json\"\n";

fn rocm_form() -> String {
    format!(
        "{{\n \"m\": {{\n  \"base\": \"{BASE}\",\n  \"commit\": \"{RESULT}\",\n  \"tree\": \"{TREE}\",\n  \"patch_sha256\": \"{DIGEST}\",\n  \"x\": true\n }}\n}}\n"
    )
}

fn refused(more: &str, json: &str) -> Vec<String> {
    told(&with_pins(more, BESIDE, &[("p/sources.json", json)]).unwrap_err())
}

#[test]
fn a_patch_on_a_base_is_filled_in() {
    let profile = with_pins("", BESIDE, &[("p/sources.json", &rocm_form())]).unwrap();
    let source = &profile.sources[1];
    assert_eq!((source.commit.as_deref(), source.tree.as_deref()), (Some(BASE), None));
    let expected = PatchPin { path: "p/m.patch".to_owned(), source: None, sha256: Some(DIGEST.to_owned()), tree: Some(TREE.to_owned()) };
    assert_eq!(source.patch, Some(expected));
}

#[test]
fn pins_inside_a_source_point_to_patches_inside_it() {
    let pins = "[[pins]]\nsource = \"k\"\npath = \"a/b/sources.json\"\n";
    let profile = with_pins("", pins, &[("k:a/b/sources.json", &rocm_form())]).unwrap();
    let patch = profile.sources[1].patch.as_ref().unwrap();
    assert_eq!((patch.path.as_str(), patch.source.as_deref()), ("a/b/m.patch", Some("k")));
}

#[test]
fn the_dense_form_pins_a_patch_or_an_unmodified_commit() {
    let json = format!(
        r#"{{"m": {{"repository": "https://example.org/m.git", "tested_commit": "{BASE}", "modified": false}},
"k": {{"base": "{COMMIT}", "tested_commit": "{RESULT}", "sha256": "{DIGEST}", "tree": "{TREE}"}},
"other": {{"base": "{COMMIT}"}}}}"#
    );
    let profile = with_pins("", BESIDE, &[("p/sources.json", &json)]).unwrap();
    assert_eq!(profile.sources[1].commit.as_deref(), Some(BASE));
    assert_eq!(profile.sources[1].repository.as_deref(), Some("https://example.org/m.git"));
    assert_eq!(profile.sources[1].patch, None);
    assert_eq!(profile.sources[0].commit.as_deref(), Some(COMMIT));
    assert_eq!(profile.sources[0].patch.as_ref().and_then(|patch| patch.sha256.as_deref()), Some(DIGEST));
    assert_eq!(profile.unused_pins, [("other".to_owned(), "p/sources.json".to_owned())]);
}

#[test]
fn a_list_of_pins_is_read_alike() {
    let json = format!(r#"[{{"repo": "m", "base": "{BASE}", "tree": "{TREE}", "patch_sha256": "{DIGEST}"}}]"#);
    let profile = with_pins("", BESIDE, &[("p/sources.json", &json)]).unwrap();
    assert_eq!(profile.sources[1].commit.as_deref(), Some(BASE));
    assert_eq!(
        refused("", r#"[{"base": "x"}, 3, {"repo": "m", "modified": false}]"#),
        [
            "p/sources.json:1: a pin does not say of which source",
            "p/sources.json:1: a pin does not say of which source",
            "p/sources.json:1: `m` is pinned to no commit (expected `base` with the commit that is read)",
        ]
    );
}

#[test]
fn the_same_value_in_both_places_is_no_contradiction() {
    let more = format!(
        "commit = \"{BASE}\"\nrepository = \"https://example.org/M\"\npatch = {{ path = \"elsewhere.patch\", sha256 = \"{DIGEST}\" }}\n"
    );
    let json = rocm_form().replace("\"x\": true", "\"repository\": \"https://example.org/m.git\"");
    let profile = with_pins(&more, BESIDE, &[("p/sources.json", &json)]).unwrap();
    let patch = profile.sources[1].patch.as_ref().unwrap();
    assert_eq!((patch.path.as_str(), patch.tree.as_deref()), ("elsewhere.patch", Some(TREE)));
}

#[test]
fn contradictions_show_both_places() {
    let help = "(keep the right one: leave the key out of the profile, or correct the pins)";
    let more = format!("commit = \"{RESULT}\"\n[source.patch]\nsha256 = \"{}\"\ntree = \"{BASE}\"\n", "d".repeat(64));
    assert_eq!(
        refused(&more, &rocm_form()),
        [
            format!("13 & p/sources.json:3: `commit` of source `m` is given twice and differs {help}"),
            format!("15 & p/sources.json:6: `sha256` of source `m` is given twice and differs {help}"),
            format!("16 & p/sources.json:5: `patch.tree` of source `m` is given twice and differs {help}"),
        ]
    );
    let other = rocm_form().replace(BASE, RESULT);
    let errors = with_pins("", &format!("{BESIDE}[[pins]]\npath = \"q.json\"\n"), &[("p/sources.json", &rocm_form()), ("q.json", &other)]);
    let errors = errors.unwrap_err();
    assert_eq!(told(&errors), [format!("p/sources.json:3 & q.json:3: `commit` of source `m` is given twice and differs {help}")]);
    let mut out = String::new();
    let handler = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::none()).with_width(200);
    handler.render_report(&mut out, &errors).unwrap();
    for part in [BASE, RESULT, "q.json:3", "p/sources.json:3", "another value here"] {
        assert!(out.contains(part), "{part} in\n{out}");
    }
}

#[test]
fn a_patch_that_is_pinned_as_absent_is_refused() {
    let json = format!(r#"{{"m": {{"tested_commit": "{BASE}", "modified": false}}}}"#);
    assert_eq!(
        refused("patch = { path = \"x\" }\n", &json),
        ["13 & p/sources.json:1: the patch of source `m` is declared, but pinned as absent (remove [source.patch], or correct the pins)"]
    );
    assert_eq!(
        refused("", &json.replace("false", "true")),
        ["p/sources.json:1: `m` is modified, but from no `base` (expected `base` with the commit that the patch applies to)"]
    );
}

#[test]
fn ids_in_pins_are_written_in_full() {
    let told = refused("", &rocm_form().replace(BASE, "aaaaaaa").replace(DIGEST, "CC"));
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("p/sources.json:3: `base` is not a full commit id"), "{told:?}");
    assert!(told[1].starts_with("p/sources.json:6: `patch_sha256` is not a SHA-256 digest"), "{told:?}");
    let told = refused("", &rocm_form().replace(&format!("\"{BASE}\""), "7"));
    assert_eq!(told[0], "p/sources.json:3: `base` of `m` is not a string");
}

#[test]
fn pins_that_cannot_be_used_are_refused() {
    assert_eq!(refused("", "{\n \"m\": {,\n"), ["p/sources.json:2 & 14: p/sources.json is not JSON that pins sources"]);
    assert_eq!(
        refused("", "3"),
        [
            "p/sources.json:1: p/sources.json pins nothing (expected `{\"megatron\": {\"base\": ..., \"tree\": ..., \"patch_sha256\": ...}}`)"
        ]
    );
    assert_eq!(refused("", "{\"m\": 3}"), ["p/sources.json:1: a pin is not an object"]);
    assert_eq!(
        refused("", &format!("{{\"x\": {{\"base\": \"{BASE}\"}}}}")),
        ["14: p/sources.json pins no source of this profile (it pins `x`; the profile declares `k`, `m`)"]
    );
    let twice = format!("{{\"m\": {{\"base\": \"{BASE}\",\n\"base\": \"{RESULT}\"}},\n\"m\": {{}}}}");
    assert_eq!(
        refused("", &twice),
        [
            "p/sources.json:2 & p/sources.json:1: `base` stands in the object twice",
            "p/sources.json:3 & p/sources.json:1: `m` stands in the object twice"
        ]
    );
}

#[test]
fn pins_that_cannot_be_found_are_refused() {
    let told_of = |pins: &str| told(&with_pins("", pins, &[]).unwrap_err());
    assert_eq!(told_of(BESIDE), ["14: p/sources.json cannot be read"]);
    assert_eq!(told_of("[[pins]]\nsource = \"kk\"\npath = \"x\""), ["14: no source has the id `kk` (did you mean `k`?)"]);
    assert_eq!(
        told_of("[[pins]]\nsource = \"k\"\npath = \"../x\""),
        ["15: `path` is not inside the source that holds the pins (write a path relative to that source's root, with forward slashes)"]
    );
    assert_eq!(told_of("[[pins]]\n"), ["13: [[pins]] has no `path` (add `path = \"patches/sources.json\"`)"]);
}
