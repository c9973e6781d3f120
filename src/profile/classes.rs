//! Globs over the paths of sources: path classes and levels by path.
//!
//! In: a validated profile. Out: the class of a path, and a rule's level at a path. Refused: nothing; globs were checked with the profile.
//!
//! A glob is matched against the path within its source, with forward slashes. `*` and `?` stop at a slash, `**` does not. `id:glob` is
//! for the source `id` alone.

use std::collections::BTreeMap;

use globset::{GlobBuilder, GlobMatcher};

use super::{PathClass, Profile};
use crate::catalog::Level;

/// A parsed glob.
#[derive(Debug)]
pub(super) struct Glob {
    /// Source id before the colon.
    pub source: Option<String>,
    matcher: GlobMatcher,
}

impl Glob {
    fn matches(&self, source: &str, path: &str) -> bool {
        self.source.as_ref().is_none_or(|id| id == source) && self.matcher.is_match(path)
    }
}

/// Parses `glob` or `id:glob`; the error says what is wrong with it.
pub(super) fn glob(written: &str) -> Result<Glob, String> {
    let (source, pattern) = match written.split_once(':') {
        Some((source, pattern)) => (Some(source.to_owned()), pattern),
        None => (None, written),
    };
    if pattern.is_empty() {
        return Err("nothing is left of it".to_owned());
    }
    if pattern.starts_with('/') || pattern.split('/').any(|part| part == ".." || part == ".") || pattern.contains('\\') {
        return Err("leaves the source, or is not a plain relative path".to_owned());
    }
    let glob = GlobBuilder::new(pattern).literal_separator(true).build().map_err(|error| error.kind().to_string())?;
    Ok(Glob { source, matcher: glob.compile_matcher() })
}

/// Says what class a path has.
#[derive(Debug)]
pub struct PathClasses(Vec<(Glob, PathClass)>);

impl PathClasses {
    /// The classes that a profile declares.
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        Self(profile.paths.iter().filter_map(|(written, class)| Some((glob(written).ok()?, *class))).collect())
    }

    /// Class of `path` in the source `source`: that of the first glob that matches, production if none does.
    #[must_use]
    pub fn class(&self, source: &str, path: &str) -> PathClass {
        self.0.iter().find(|(glob, _)| glob.matches(source, path)).map_or(PathClass::Production, |(_, class)| *class)
    }
}

/// Says at which level a rule is reported.
#[derive(Debug)]
pub struct RuleLevels {
    levels: BTreeMap<String, Level>,
    by_path: Vec<(Glob, String, Level)>,
}

impl RuleLevels {
    /// The levels that a profile declares.
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        let by_path = profile.path_levels.iter();
        Self {
            levels: profile.levels.clone(),
            by_path: by_path.filter_map(|(written, rule, level)| Some((glob(written).ok()?, rule.clone(), *level))).collect(),
        }
    }

    /// Level of the rule `rule` (its id) at `path` in `source`, if the profile sets one. The last `[[rules-for]]` that matches outranks
    /// those before it and `[rules]`.
    #[must_use]
    pub fn level(&self, rule: &str, source: &str, path: &str) -> Option<Level> {
        let by_path = self.by_path.iter().rev().find(|(glob, id, _)| id == rule && glob.matches(source, path));
        by_path.map(|(_, _, level)| *level).or_else(|| self.levels.get(rule).copied())
    }
}
