//! A view of one table of a profile that reports what it refuses.
//!
//! In: spanned TOML. Out: typed values with their places. Refused: unknown keys (the nearest known one is suggested), missing keys, wrong
//! types. Every refusal is noted and reading goes on.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::error::{Document, Mistake, Place};

/// A value and where it is written.
#[derive(Clone, Debug)]
pub(super) struct Placed<T> {
    pub value: T,
    pub place: Place,
}

impl<T> Placed<T> {
    pub(super) const fn new(value: T, place: Place) -> Self {
        Self { value, place }
    }
}

/// What has been found wrong so far, and the document that is read.
pub(super) struct Notes {
    pub document: Document,
    pub mistakes: Vec<Mistake>,
}

impl Notes {
    pub(super) fn note(&mut self, mistake: Mistake) {
        self.mistakes.push(mistake);
    }

    pub(super) fn place(&self, span: Range<usize>) -> Place {
        self.document.place(span)
    }
}

/// One table with the keys that may stand in it.
pub(super) struct Section<'t, 'i> {
    /// As it is written in a profile: `[platform]`, `[[source]]`.
    pub name: &'static str,
    pub table: &'t DeTable<'i>,
    pub place: Place,
    /// Every key that may stand there; empty if the keys are names chosen by the user.
    pub keys: &'static [&'static str],
}

impl<'t, 'i> Section<'t, 'i> {
    /// Notes every key that is not known.
    pub(super) fn check_keys(&self, notes: &mut Notes) {
        for key in self.table.keys() {
            let written: &str = key.get_ref();
            if self.keys.contains(&written) {
                continue;
            }
            let message = format!("unknown key `{written}` in {}", self.name);
            let mistake = Mistake::new(message, notes.place(key.span()), format!("not a key of {}", self.name));
            notes.note(mistake.help(suggest(written, self.keys.iter().copied(), "valid keys")));
        }
    }

    fn get(&self, key: &str) -> Option<(Range<usize>, &'t DeValue<'i>, Range<usize>)> {
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(name, value)| (name.span(), value.get_ref(), value.span()))
    }

    /// Whether `key` is absent, or an array without elements.
    pub(super) fn lacks_elements(&self, key: &str) -> bool {
        self.table.get(key).is_none_or(|value| value.get_ref().as_array().is_some_and(|array| array.is_empty()))
    }

    /// Notes that a key is missing.
    pub(super) fn missing(&self, notes: &mut Notes, key: &str, example: &str) {
        let mistake = Mistake::new(format!("{} has no `{key}`", self.name), self.place.clone(), format!("`{key}` is missing here"));
        notes.note(mistake.help(format!("add `{key} = {example}`")));
    }

    /// The string under `key`, if there is one.
    pub(super) fn string(&self, notes: &mut Notes, key: &str) -> Option<Placed<String>> {
        let (_, value, span) = self.get(key)?;
        let place = notes.place(span);
        let DeValue::String(text) = value else {
            notes.note(wrong_type(key, place, value, "a string"));
            return None;
        };
        if text.trim().is_empty() {
            notes.note(
                Mistake::new(format!("`{key}` is empty"), place, "nothing is written here").help("write a value, or leave the key out"),
            );
            return None;
        }
        Some(Placed::new(text.clone().into_owned(), place))
    }

    /// The string under `key`, which has to be there. `example` is valid TOML.
    pub(super) fn required(&self, notes: &mut Notes, key: &str, example: &str) -> Option<Placed<String>> {
        if self.get(key).is_none() {
            self.missing(notes, key, example);
        }
        self.string(notes, key)
    }

    /// The strings of the array under `key`; `None` if the key is absent.
    pub(super) fn strings(&self, notes: &mut Notes, key: &str) -> Option<Vec<Placed<String>>> {
        let (_, value, span) = self.get(key)?;
        strings(notes, key, value, notes.place(span))
    }

    /// The boolean under `key`.
    pub(super) fn boolean(&self, notes: &mut Notes, key: &str) -> Option<Placed<bool>> {
        let (_, value, span) = self.get(key)?;
        let place = notes.place(span);
        if let DeValue::Boolean(value) = value {
            return Some(Placed::new(*value, place));
        }
        notes.note(wrong_type(key, place, value, "true or false"));
        None
    }

    /// The integer under `key`.
    pub(super) fn integer(&self, notes: &mut Notes, key: &str) -> Option<Placed<i64>> {
        let (_, value, span) = self.get(key)?;
        let place = notes.place(span);
        let DeValue::Integer(number) = value else {
            notes.note(wrong_type(key, place, value, "an integer"));
            return None;
        };
        match integer(number) {
            Some(value) => Some(Placed::new(value, place)),
            None => {
                notes.note(Mistake::new(format!("`{key}` does not fit into 64 bits"), place, "too large"));
                None
            }
        }
    }

    /// The integers of the array under `key`; `None` if the key is absent.
    pub(super) fn integers(&self, notes: &mut Notes, key: &str) -> Option<Vec<Placed<i64>>> {
        let (_, value, span) = self.get(key)?;
        let DeValue::Array(array) = value else {
            notes.note(wrong_type(key, notes.place(span), value, "an array of integers"));
            return None;
        };
        let mut out = Vec::with_capacity(array.len());
        for element in array.iter() {
            let place = notes.place(element.span());
            match element.get_ref() {
                DeValue::Integer(number) => match integer(number) {
                    Some(value) => out.push(Placed::new(value, place)),
                    None => notes.note(Mistake::new(format!("`{key}` holds a number that does not fit into 64 bits"), place, "too large")),
                },
                other => notes.note(wrong_type(key, place, other, "an integer")),
            }
        }
        Some(out)
    }

    /// The table under `key`.
    pub(super) fn table(&self, notes: &mut Notes, key: &str, name: &'static str, keys: &'static [&'static str]) -> Option<Section<'t, 'i>> {
        let (written, value, span) = self.get(key)?;
        let DeValue::Table(table) = value else {
            notes.note(wrong_type(key, notes.place(span), value, &format!("a table, as in {name}")));
            return None;
        };
        let span = if span.is_empty() { written } else { span };
        Some(Section { name, table, place: notes.place(span), keys })
    }

    /// The tables of the array under `key`, in order; empty if the key is absent.
    pub(super) fn tables(&self, notes: &mut Notes, key: &str, name: &'static str, keys: &'static [&'static str]) -> Vec<Section<'t, 'i>> {
        let Some((_, value, span)) = self.get(key) else { return Vec::new() };
        let DeValue::Array(array) = value else {
            let mistake = wrong_type(key, notes.place(span), value, "an array of tables");
            notes.note(mistake.help(format!("write {name}, with two brackets, before each one")));
            return Vec::new();
        };
        let mut sections = Vec::with_capacity(array.len());
        for element in array.iter() {
            let place = notes.place(element.span());
            match element.get_ref() {
                DeValue::Table(table) => sections.push(Section { name, table, place, keys }),
                other => notes.note(wrong_type(key, place, other, "a table")),
            }
        }
        sections
    }
}

/// The strings of an array value.
pub(super) fn strings(notes: &mut Notes, key: &str, value: &DeValue<'_>, place: Place) -> Option<Vec<Placed<String>>> {
    let DeValue::Array(array) = value else {
        notes.note(wrong_type(key, place, value, "an array of strings").help(format!("for example `{key} = [\"...\"]`")));
        return None;
    };
    let mut out = Vec::with_capacity(array.len());
    for element in array.iter() {
        let place = notes.place(element.span());
        match element.get_ref() {
            DeValue::String(text) if text.trim().is_empty() => {
                notes.note(Mistake::new(format!("`{key}` holds an empty string"), place, "nothing is written here"));
            }
            DeValue::String(text) => out.push(Placed::new(text.clone().into_owned(), place)),
            other => notes.note(wrong_type(key, place, other, "a string")),
        }
    }
    Some(out)
}

/// An integer of any radix as a number.
pub(super) fn integer(number: &toml::de::DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// A value of a type that cannot stand there.
pub(super) fn wrong_type(key: &str, place: Place, value: &DeValue<'_>, expected: &str) -> Mistake {
    let found = match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    };
    Mistake::new(format!("`{key}` is {found}"), place, format!("expected {expected}"))
}

/// The nearest of `known`, as advice; all of them if none is near.
pub(super) fn suggest<'a>(written: &str, known: impl Iterator<Item = &'a str> + Clone, what: &str) -> String {
    match nearest(written, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let all: Vec<_> = known.map(|word| format!("`{word}`")).collect();
            if all.is_empty() { "there is none to choose from".to_owned() } else { format!("{what}: {}", all.join(", ")) }
        }
    }
}

/// The known word that is fewest edits away, if that is few for its length. Case does not count.
pub(super) fn nearest<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Distances are quadratic in length, and no key or id is that long.
    if written.len() > 200 {
        return None;
    }
    let folded = written.to_lowercase();
    let allowed = 1 + folded.chars().count() / 4;
    known
        .map(|word| (strsim::osa_distance(&folded, &word.to_lowercase()), word))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}
