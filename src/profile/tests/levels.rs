//! Mistakes in `[paths]`, `[rules]` and `[[rules-for]]`.

use super::*;

const GLOB: &str = "(write a path relative to the source's root with `*`, `**`, `?`, `[ab]` or `{a,b}`, as in `tests/**`)";

#[test]
fn classes_are_those_that_exist() {
    assert_eq!(mistakes_after("[paths]\ntests = [\"tests/**\"]"), ["11: unknown path class `tests` (did you mean `test`?)"]);
    assert_eq!(
        mistakes_after("[paths]\nother = []"),
        ["11: unknown path class `other` (valid classes: `production`, `reference`, `test`, `benchmark`, `example`, `documentation`)"]
    );
    assert_eq!(mistakes_after("[paths]\ntest = \"tests/**\""), ["11: `test` is a string (for example `test = [\"...\"]`)"]);
}

#[test]
fn globs_parse_and_stay_inside() {
    for bad in ["[", "{a", "/abs/**", "../x", "./x", "a\\\\b", "k:"] {
        let shown = bad.replace("\\\\", "\\");
        assert_eq!(mistakes_after(&format!("[paths]\ntest = [\"{bad}\"]")), [format!("11: `{shown}` is not a glob {GLOB}")], "{bad}");
    }
    assert_eq!(mistakes_after("[paths]\ntest = [\"kk:tests/**\"]"), ["11: unknown source `kk` in a glob (did you mean `k`?)"]);
}

#[test]
fn a_glob_has_one_class() {
    assert_eq!(
        mistakes_after("[paths]\ntest = [\"a/**\"]\nexample = [\"a/**\"]"),
        ["12 & 11: `a/**` has two classes (the first glob that matches decides, so the second would never count: keep one)"]
    );
}

#[test]
fn rules_and_levels_are_those_that_exist() {
    assert_eq!(mistakes_after("[rules]\nRLK10l = \"error\""), ["11: unknown rule `RLK10l` (did you mean `RLK101`?)"]);
    assert_eq!(mistakes_after("[rules]\nsomething = \"error\""), ["11: unknown rule `something` (`rlk-lint rules` lists every rule)"]);
    assert_eq!(
        mistakes_after("[rules]\nRLK101 = \"warn\""),
        ["11: unknown level `warn` (valid levels: `off`, `note`, `warning`, `error`)"]
    );
    assert_eq!(mistakes_after("[rules]\nRLK101 = \"eror\""), ["11: unknown level `eror` (did you mean `error`?)"]);
    assert_eq!(mistakes_after("[rules]\nRLK101 = 2"), ["11: `RLK101` is an integer (valid levels: `off`, `note`, `warning`, `error`)"]);
}

#[test]
fn a_rule_is_set_once() {
    let rule = crate::catalog::rule("RLK101").unwrap();
    assert_eq!(
        mistakes_after(&format!("[rules]\nRLK101 = \"error\"\n{} = \"off\"", rule.slug)),
        [format!("12 & 11: rule RLK101 is set twice (`RLK101` and `{}` are the same rule: keep one)", rule.slug)]
    );
}

#[test]
fn options_are_those_of_the_rule() {
    let told = mistakes_after("[rules]\nRLK101 = { level = \"off\", leve = 1 }");
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("11: rule RLK101 has no option `leve` (did you mean `level`?"), "{told:?}");
    let profile = parse(&format!("{LEAST}[rules.RLK101]\nlevel = \"note\"")).unwrap();
    assert_eq!(profile.levels.get("RLK101"), Some(&Level::Note));
}

#[test]
fn rules_for_needs_paths_and_a_rule() {
    assert_eq!(mistakes_after("[[rules-for]]\nRLK101 = \"off\""), ["10: [[rules-for]] has no `paths` (add `paths = [\"tests/**\"]`)"]);
    assert_eq!(
        mistakes_after("[[rules-for]]\npaths = [\"a/**\"]"),
        ["10: [[rules-for]] sets no rule (add a rule id and a level, as in `RLK301 = \"off\"`)"]
    );
    assert_eq!(
        mistakes_after("[[rules-for]]\npath = [\"a/**\"]\npaths = [\"[\"]\nRLK101 = \"of\""),
        [
            "11: unknown rule `path` (did you mean `paths`?)".to_owned(),
            format!("12: `[` is not a glob {GLOB}"),
            "13: unknown level `of` (did you mean `off`?)".to_owned(),
        ]
    );
}
