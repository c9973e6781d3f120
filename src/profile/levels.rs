//! `[paths]`, `[rules]` and `[[rules-for]]`: which places count for what, and how serious a rule is.
//!
//! In: the tables. Out: globs with classes in order, levels by rule, levels by glob and rule, rule options. Refused: globs that do not
//! parse, classes, rules, levels and options that do not exist, two levels for one rule, two classes for one glob.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::PathClass;
use super::classes::{Glob, glob};
use super::error::Mistake;
use super::reader::{Notes, Placed, Section, integer, strings, suggest, wrong_type};
use crate::catalog::{Level, RULES, RuleMeta, rule};

const LEVELS: &[Level] = &[Level::Off, Level::Note, Level::Warning, Level::Error];

/// Rule levels and options.
#[derive(Default)]
pub(super) struct Rules {
    pub levels: BTreeMap<String, Level>,
    pub options: BTreeMap<String, BTreeMap<String, toml::Value>>,
    pub path_levels: Vec<(String, String, Level)>,
}

fn check_glob(notes: &mut Notes, written: &Placed<String>, sources: &[String]) -> bool {
    match glob(&written.value) {
        Err(cause) => {
            let mistake = Mistake::new(format!("`{}` is not a glob", written.value), written.place.clone(), cause);
            notes.note(mistake.help("write a path relative to the source's root with `*`, `**`, `?`, `[ab]` or `{a,b}`, as in `tests/**`"));
            false
        }
        Ok(Glob { source: Some(source), .. }) if !sources.contains(&source) => {
            let mistake = Mistake::new(format!("unknown source `{source}` in a glob"), written.place.clone(), "no source has this id");
            notes.note(mistake.help(suggest(&source, sources.iter().map(String::as_str), "declared sources")));
            false
        }
        Ok(_) => true,
    }
}

/// Reads `[paths]`.
pub(super) fn read_paths(notes: &mut Notes, root: &Section<'_, '_>, sources: &[String]) -> Vec<(String, PathClass)> {
    let Some(section) = root.table(notes, "paths", "[paths]", &[]) else { return Vec::new() };
    let mut globs: Vec<(Placed<String>, PathClass)> = Vec::new();
    for (key, value) in section.table {
        let word: &str = key.get_ref();
        let Some(class) = PathClass::ALL.iter().copied().find(|class| class.word() == word) else {
            let mistake = Mistake::new(format!("unknown path class `{word}`"), notes.place(key.span()), "not a class");
            notes.note(mistake.help(suggest(word, PathClass::ALL.iter().map(|class| class.word()), "valid classes")));
            continue;
        };
        let place = notes.place(value.span());
        for written in strings(notes, word, value.get_ref(), place).unwrap_or_default() {
            if !check_glob(notes, &written, sources) {
                continue;
            }
            match globs.iter().find(|(other, _)| other.value == written.value) {
                Some((first, other)) => {
                    let message = format!("`{}` has two classes", written.value);
                    notes.note(
                        Mistake::new(message, written.place, format!("`{word}` here"))
                            .and(first.place.clone(), format!("`{}` here", other.word()))
                            .help("the first glob that matches decides, so the second would never count: keep one"),
                    );
                }
                None => globs.push((written, class)),
            }
        }
    }
    globs.into_iter().map(|(written, class)| (written.value, class)).collect()
}

/// Reads `[rules]` and every `[[rules-for]]`.
pub(super) fn read_rules(notes: &mut Notes, root: &Section<'_, '_>, sources: &[String]) -> Rules {
    let mut rules = Rules::default();
    if let Some(section) = root.table(notes, "rules", "[rules]", &[]) {
        let mut seen: BTreeMap<&str, super::error::Place> = BTreeMap::new();
        for (key, value) in section.table {
            let written = Placed::new(key.get_ref().clone().into_owned(), notes.place(key.span()));
            let Some(meta) = known_rule(notes, &written, &[]) else { continue };
            if !first_time(notes, &mut seen, meta, &written) {
                continue;
            }
            let place = notes.place(value.span());
            if let DeValue::Table(table) = value.get_ref() {
                read_options(notes, meta, table, &mut rules);
            } else if let Some(level) = level(notes, &written.value, value.get_ref(), place) {
                rules.levels.insert(meta.id.clone(), level);
            }
        }
    }
    for section in root.tables(notes, "rules-for", "[[rules-for]]", &["paths"]) {
        let paths = section.strings(notes, "paths");
        if section.lacks_elements("paths") {
            section.missing(notes, "paths", "[\"tests/**\"]");
        }
        let paths: Vec<_> = paths.unwrap_or_default().into_iter().filter(|path| check_glob(notes, path, sources)).collect();
        let mut seen = BTreeMap::new();
        let mut any = false;
        for (key, value) in section.table {
            if key.get_ref() == "paths" {
                continue;
            }
            any = true;
            let written = Placed::new(key.get_ref().clone().into_owned(), notes.place(key.span()));
            let Some(meta) = known_rule(notes, &written, &["paths"]) else { continue };
            let place = notes.place(value.span());
            let level = level(notes, &written.value, value.get_ref(), place);
            if first_time(notes, &mut seen, meta, &written)
                && let Some(level) = level
            {
                rules.path_levels.extend(paths.iter().map(|path| (path.value.clone(), meta.id.clone(), level)));
            }
        }
        if !any {
            notes.note(
                Mistake::new("[[rules-for]] sets no rule", section.place.clone(), "only paths here")
                    .help("add a rule id and a level, as in `RLK301 = \"off\"`"),
            );
        }
    }
    rules
}

fn known_rule(notes: &mut Notes, written: &Placed<String>, keys: &[&str]) -> Option<&'static RuleMeta> {
    let found = rule(&written.value);
    if found.is_none() {
        let mistake = Mistake::new(format!("unknown rule `{}`", written.value), written.place.clone(), "no rule has this id or name");
        let known = RULES.iter().flat_map(|rule| [rule.id.as_str(), rule.slug]).chain(keys.iter().copied());
        let help = match super::reader::nearest(&written.value, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`rlk-lint rules` lists every rule".to_owned(),
        };
        notes.note(mistake.help(help));
    }
    found
}

/// Whether the rule has no level in this table yet: an id and a folder name may stand for the same rule.
fn first_time(
    notes: &mut Notes,
    seen: &mut BTreeMap<&'static str, super::error::Place>,
    meta: &'static RuleMeta,
    written: &Placed<String>,
) -> bool {
    if let Some(first) = seen.get(meta.slug) {
        let message = format!("rule {} is set twice", meta.id);
        notes.note(
            Mistake::new(message, written.place.clone(), "again here")
                .and(first.clone(), "first here")
                .help(format!("`{}` and `{}` are the same rule: keep one", meta.id, meta.slug)),
        );
        return false;
    }
    seen.insert(meta.slug, written.place.clone());
    true
}

fn level(notes: &mut Notes, key: &str, value: &DeValue<'_>, place: super::error::Place) -> Option<Level> {
    let words = || LEVELS.iter().map(|level| level.word());
    let DeValue::String(text) = value else {
        notes.note(wrong_type(key, place, value, "a level").help(suggest("", words(), "valid levels")));
        return None;
    };
    let found = LEVELS.iter().copied().find(|level| level.word() == text);
    if found.is_none() {
        let mistake = Mistake::new(format!("unknown level `{text}`"), place, "not a level");
        notes.note(mistake.help(suggest(text, words(), "valid levels")));
    }
    found
}

/// `RLKnnn = { level = "...", option = ... }`.
fn read_options(notes: &mut Notes, meta: &'static RuleMeta, table: &DeTable<'_>, rules: &mut Rules) {
    for (key, value) in table {
        let name: &str = key.get_ref();
        let place = notes.place(value.span());
        if name == "level" {
            if let Some(level) = level(notes, name, value.get_ref(), place) {
                rules.levels.insert(meta.id.clone(), level);
            }
            continue;
        }
        let Some(default) = meta.options.get(name) else {
            let mistake = Mistake::new(format!("rule {} has no option `{name}`", meta.id), notes.place(key.span()), "not an option");
            let known = meta.options.keys().map(String::as_str).chain(["level"]);
            notes.note(mistake.help(suggest(name, known, "valid keys")));
            continue;
        };
        match plain(value.get_ref()) {
            Some(value) if value.same_type(default) => {
                rules.options.entry(meta.id.clone()).or_default().insert(name.to_owned(), value);
            }
            _ => {
                let expected = format!("expected {} like the default `{default}`", default.type_str());
                notes.note(Mistake::new(format!("option `{name}` of {} has the wrong type", meta.id), place, expected));
            }
        }
    }
}

/// A spanned value without its spans; `None` for an integer beyond 64 bits, and for dates.
fn plain(value: &DeValue<'_>) -> Option<toml::Value> {
    Some(match value {
        DeValue::String(text) => toml::Value::String(text.clone().into_owned()),
        DeValue::Integer(number) => toml::Value::Integer(integer(number)?),
        DeValue::Float(number) => toml::Value::Float(number.as_str().parse().ok()?),
        DeValue::Boolean(value) => toml::Value::Boolean(*value),
        DeValue::Datetime(_) => return None,
        DeValue::Array(array) => toml::Value::Array(array.iter().map(|value| plain(value.get_ref())).collect::<Option<_>>()?),
        DeValue::Table(table) => toml::Value::Table(
            table.iter().map(|(key, value)| Some((key.get_ref().clone().into_owned(), plain(value.get_ref())?))).collect::<Option<_>>()?,
        ),
    })
}
