//! Arguments with a form of their own.
//!
//! In: one argument. Out: its parts. Refused: rules that do not exist (the nearest is suggested), places and assignments that are malformed.

use std::path::PathBuf;
use std::str::FromStr;

use crate::catalog::{RULES, RuleMeta, rule};

/// `ID=PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePath {
    /// Id of a source of the profile.
    pub id: String,
    /// Where it lies.
    pub path: PathBuf,
}

impl FromStr for SourcePath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((id, path)) if !id.is_empty() && !path.is_empty() => Ok(Self { id: id.to_owned(), path: PathBuf::from(path) }),
            _ => Err("expected ID=PATH, as in `vllm=../vllm`".to_owned()),
        }
    }
}

/// A rule of the catalog.
#[derive(Clone, Copy, Debug)]
pub struct RuleRef(pub &'static RuleMeta);

impl FromStr for RuleRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        rule(text).map(Self).ok_or_else(|| unknown(text))
    }
}

/// A rule's id or name, or the beginning of ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector(String);

impl Selector {
    /// Whether the rule is meant.
    #[must_use]
    pub fn matches(&self, rule: &RuleMeta) -> bool {
        rule.id.starts_with(&self.0) || rule.slug == self.0
    }
}

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(rule) = rule(text) {
            return Ok(Self(rule.id.clone()));
        }
        let prefix = text.to_ascii_uppercase();
        // The whole family may be meant, so `RLK` will do, but not `R` or nothing.
        let is_prefix =
            prefix.strip_prefix("RLK").is_some_and(|digits| digits.len() < 3 && digits.bytes().all(|byte| byte.is_ascii_digit()));
        if is_prefix && RULES.iter().any(|rule| rule.id.starts_with(&prefix)) { Ok(Self(prefix)) } else { Err(unknown(text)) }
    }
}

fn unknown(text: &str) -> String {
    let folded = text.to_lowercase();
    let near = RULES
        .iter()
        .flat_map(|rule| [rule.id.as_str(), rule.slug])
        .map(|word| (strsim::osa_distance(&folded, &word.to_lowercase()), word))
        .filter(|(distance, word)| folded.len() < 200 && *distance <= 1 + word.len() / 4)
        .min_by_key(|(distance, _)| *distance);
    match near {
        Some((_, near)) => format!("no such rule; did you mean `{near}`?"),
        None => "no such rule; `rlk-lint rules` lists every rule".to_owned(),
    }
}

/// What to trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceTarget {
    /// A qualified name.
    Symbol(String),
    /// A line of a file.
    Line {
        /// Id of the source; `None` for the main one, or the only one that has the path.
        source: Option<String>,
        /// Path within the source.
        path: String,
        /// Line, from 1.
        line: u32,
    },
}

impl FromStr for TraceTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((place, line)) = text.rsplit_once(':') {
            let line = line.parse().ok().filter(|line| *line > 0);
            let line = line.ok_or_else(|| "what follows the last colon is not a line number; expected PATH:LINE".to_owned())?;
            let (source, path) = match place.split_once(':') {
                Some((source, path)) => (Some(source.to_owned()), path),
                None => (None, place),
            };
            let path = path.strip_prefix("./").unwrap_or(path).to_owned();
            if path.is_empty() || source.as_deref() == Some("") {
                return Err("expected PATH:LINE or SOURCE:PATH:LINE".to_owned());
            }
            return Ok(Self::Line { source, path, line });
        }
        let named = |part: &str| {
            let mut characters = part.chars();
            characters.next().is_some_and(|c| c == '_' || c.is_alphabetic()) && characters.all(|c| c == '_' || c.is_alphanumeric())
        };
        if text.split('.').all(named) && !text.ends_with(".py") {
            return Ok(Self::Symbol(text.to_owned()));
        }
        Err("expected a qualified name, as in `package.module.function`, or PATH:LINE".to_owned())
    }
}
