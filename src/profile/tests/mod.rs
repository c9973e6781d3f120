//! Profiles that are right, and every mistake that is refused: its message, its line and the help.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use super::*;

mod evidence;
mod levels;
mod pins;
mod platform;
mod sources;
mod whole;

const COMMIT: &str = "1111111111111111111111111111111111111111";
const TREE: &str = "2222222222222222222222222222222222222222";

/// Lines 1 to 9: the least that is valid.
const LEAST: &str = r#"schema = "rlk-lint/profile/v1"
[platform]
backend = "rocm"
arch = "gfx942"
[[source]]
id = "k"
path = "."
role = "kernel"
commit = "1111111111111111111111111111111111111111"
"#;

fn parse_with(text: &str, files: &[(&str, &str)], paths: &[(&str, &str)]) -> Result<Profile, ProfileErrors> {
    let paths: Vec<_> = paths.iter().map(|(id, path)| ((*id).to_owned(), PathBuf::from(path))).collect();
    let input = Input { file: FileId(0), name: "rlk-lint.toml", text, paths: &paths };
    Profile::parse(&input, &mut |pins| {
        let name = match &pins.source {
            Some(source) => format!("{}:{}", source.id, pins.path),
            None => pins.path.clone(),
        };
        files.iter().find(|(path, _)| *path == name).map(|(_, text)| (*text).to_owned()).ok_or_else(|| "no such file".to_owned())
    })
}

fn parse(text: &str) -> Result<Profile, ProfileErrors> {
    parse_with(text, &[], &[])
}

/// One line per mistake: `line: message (help)`, with `name:line` for other documents, and other places after `&`.
fn told(errors: &ProfileErrors) -> Vec<String> {
    errors
        .mistakes
        .iter()
        .map(|mistake| {
            let place = |label: &Label| {
                let line = label.place.line();
                if label.place.name() == "rlk-lint.toml" { line.to_string() } else { format!("{}:{line}", label.place.name()) }
            };
            let mut out = mistake.labels.first().map_or_else(|| "-".to_owned(), place);
            for other in mistake.labels.iter().skip(1) {
                let _ = write!(out, " & {}", place(other));
            }
            let _ = write!(out, ": {}", mistake.message);
            if let Some(help) = &mistake.help {
                let _ = write!(out, " ({help})");
            }
            out
        })
        .collect()
}

/// The mistakes of a profile that is refused.
fn mistakes(text: &str) -> Vec<String> {
    told(&parse(text).expect_err("the profile is refused"))
}

/// The mistakes of the least profile with `more` after it; `more` begins on line 10.
fn mistakes_after(more: &str) -> Vec<String> {
    mistakes(&format!("{LEAST}{more}"))
}

/// The mistakes of the least profile with `from` replaced by `to`.
fn mistakes_with(from: &str, to: &str) -> Vec<String> {
    assert!(LEAST.contains(from), "{from}");
    mistakes(&LEAST.replacen(from, to, 1))
}
