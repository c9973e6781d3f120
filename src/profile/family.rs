//! `[[family]]` and `[[entry]]`: which names are kernels, which are their front, and where execution begins.
//!
//! In: the tables. Out: families and entries in order. Refused: names that cannot be Python names, one name with two meanings.

use toml::de::DeValue;

use super::error::{Mistake, Place};
use super::reader::{Notes, Placed, Section, wrong_type};
use super::{Entry, Family};
use crate::text::{FileId, Span};

/// The span of a place of the profile itself.
pub(super) fn span_of(file: FileId, place: &Place) -> Span {
    let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    Span::new(file, number(place.span.start), number(place.span.end))
}

/// Whether `name` is Python identifiers joined by dots.
pub(super) fn is_dotted(name: &str) -> bool {
    name.split('.').all(|part| {
        let mut characters = part.chars();
        characters.next().is_some_and(|c| c == '_' || c.is_alphabetic()) && characters.all(|c| c == '_' || c.is_alphanumeric())
    })
}

/// Whether `pattern` is a dotted name whose last part may end in `*`, or be `*`.
pub(super) fn is_pattern(pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(stem) => is_dotted(stem) || stem.strip_suffix('.').is_some_and(is_dotted),
        None => is_dotted(pattern),
    }
}

fn check_pattern(notes: &mut Notes, pattern: &Placed<String>) -> bool {
    let valid = is_pattern(&pattern.value);
    if !valid {
        let message = format!("`{}` is not a qualified Python name", pattern.value);
        notes.note(
            Mistake::new(message, pattern.place.clone(), "not a name")
                .help("write `package.module.name`; a `*` may stand at the very end only, as in `rl_engine._C.det_gemm_*`"),
        );
    }
    valid
}

/// Notes every value that stands in the list twice, and keeps the first.
fn unique(notes: &mut Notes, what: &str, list: Vec<Placed<String>>) -> Vec<Placed<String>> {
    let mut kept: Vec<Placed<String>> = Vec::with_capacity(list.len());
    for item in list {
        match kept.iter().find(|other| other.value == item.value) {
            Some(first) => {
                let message = format!("`{}` stands in {what} twice", item.value);
                notes.note(
                    Mistake::new(message, item.place, "again here").and(first.place.clone(), "first here").help("remove one of the two"),
                );
            }
            None => kept.push(item),
        }
    }
    kept
}

fn patterns(notes: &mut Notes, section: &Section<'_, '_>, key: &str) -> Vec<Placed<String>> {
    let listed = section.strings(notes, key).unwrap_or_default();
    let listed = listed.into_iter().filter(|pattern| check_pattern(notes, pattern)).collect();
    unique(notes, &format!("`{key}`"), listed)
}

/// Reads every `[[family]]`.
pub(super) fn read_families(notes: &mut Notes, root: &Section<'_, '_>, file: FileId) -> Vec<Family> {
    let keys = &["id", "sinks", "facades", "keys", "lookalikes", "contracts"];
    let mut families = Vec::new();
    let mut ids: Vec<Placed<String>> = Vec::new();
    for section in root.tables(notes, "family", "[[family]]", keys) {
        section.check_keys(notes);
        let id = section.required(notes, "id", "\"det_gemm\"");
        if let Some(id) = &id {
            match ids.iter().find(|other| other.value == id.value) {
                Some(first) => notes.note(
                    Mistake::new(format!("family `{}` is declared twice", id.value), id.place.clone(), "again here")
                        .and(first.place.clone(), "first here")
                        .help("merge the two, or give one of them another id"),
                ),
                None => ids.push(id.clone()),
            }
        }
        let sinks = patterns(notes, &section, "sinks");
        if section.lacks_elements("sinks") {
            notes.note(
                Mistake::new("a family without sinks has no kernels to reach", section.place.clone(), "no `sinks` here")
                    .help("add `sinks = [\"package.module.kernel\"]`"),
            );
        }
        let facades = patterns(notes, &section, "facades");
        let lookalikes = patterns(notes, &section, "lookalikes");
        for (first, first_key, second, second_key) in [
            (&sinks, "sinks", &facades, "facades"),
            (&sinks, "sinks", &lookalikes, "lookalikes"),
            (&facades, "facades", &lookalikes, "lookalikes"),
        ] {
            for item in second {
                if let Some(other) = first.iter().find(|other| other.value == item.value) {
                    let message = format!("`{}` stands in both `{first_key}` and `{second_key}`", item.value);
                    notes.note(
                        Mistake::new(message, item.place.clone(), format!("listed under `{second_key}` here"))
                            .and(other.place.clone(), format!("listed under `{first_key}` here"))
                            .help("a name is a kernel, a front of one, or neither: keep one of the two"),
                    );
                }
            }
        }
        let keys = section.strings(notes, "keys").unwrap_or_default();
        let keys = unique(notes, "`keys`", keys);
        let contracts = contracts(notes, &section);
        let plain = |list: Vec<Placed<String>>| list.into_iter().map(|item| item.value).collect();
        families.push(Family {
            id: id.map(|id| id.value).unwrap_or_default(),
            sinks: plain(sinks),
            facades: plain(facades),
            contracts,
            keys: plain(keys),
            lookalikes: plain(lookalikes),
            span: span_of(file, &section.place),
        });
    }
    families
}

fn contracts(notes: &mut Notes, section: &Section<'_, '_>) -> Vec<(String, String)> {
    let Some(table) = section.table(notes, "contracts", "[family.contracts]", &[]) else { return Vec::new() };
    let mut contracts = Vec::new();
    for (key, value) in table.table {
        let pattern = Placed::new(key.get_ref().clone().into_owned(), notes.place(key.span()));
        let place = notes.place(value.span());
        match value.get_ref() {
            DeValue::String(id) if id.trim().is_empty() => {
                notes.note(Mistake::new(format!("the contract of `{}` is empty", pattern.value), place, "nothing is written here"));
            }
            DeValue::String(id) => {
                if check_pattern(notes, &pattern) {
                    contracts.push((pattern.value, id.clone().into_owned()));
                }
            }
            other => {
                let help = "write the qualified name in quotes and a contract id: `\"package.module.name\" = \"rlkernel.det_gemm.v1\"`";
                notes.note(wrong_type(&pattern.value, place, other, "a contract id").help(help));
            }
        }
    }
    contracts
}

/// Reads every `[[entry]]`.
pub(super) fn read_entries(notes: &mut Notes, root: &Section<'_, '_>, file: FileId) -> Vec<Entry> {
    let mut symbols = Vec::new();
    for section in root.tables(notes, "entry", "[[entry]]", &["symbol"]) {
        section.check_keys(notes);
        let Some(symbol) = section.required(notes, "symbol", "\"package.module.function\"") else { continue };
        if is_dotted(&symbol.value) {
            symbols.push(symbol);
        } else {
            notes.note(
                Mistake::new(format!("`{}` is not a qualified Python name", symbol.value), symbol.place, "not a name")
                    .help("write `package.module.function` or `package.module.Class.method`"),
            );
        }
    }
    let symbols = unique(notes, "the [[entry]] tables", symbols);
    symbols.into_iter().map(|symbol| Entry { span: span_of(file, &symbol.place), symbol: symbol.value }).collect()
}
