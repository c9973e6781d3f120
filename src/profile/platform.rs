//! `[platform]`: what is assumed about the machine and the process.
//!
//! In: the table. Out: backend, instruction set, environment and known names. Refused: assumptions that cannot all hold.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::Known;
use super::error::{Mistake, Place};
use super::family::is_dotted;
use super::reader::{Notes, Placed, Section, integer, suggest, wrong_type};

const BACKENDS: &[&str] = &["rocm", "cuda", "cpu"];

/// What `[platform]` says.
#[derive(Default)]
pub(super) struct Platform {
    pub backend: String,
    pub arch: String,
    pub environment: BTreeMap<String, Known>,
    pub known: BTreeMap<String, Known>,
}

/// Reads `[platform]`. `root` is the whole profile.
pub(super) fn read(notes: &mut Notes, root: &Section<'_, '_>) -> Platform {
    let keys = &["backend", "arch", "environment", "known"];
    let Some(section) = root.table(notes, "platform", "[platform]", keys) else {
        if !root.table.contains_key("platform") {
            let mistake =
                Mistake::new("the profile has no [platform]", root.place.clone(), "nothing says for which machine to resolve routes");
            notes.note(mistake.help("add [platform] with `backend = \"rocm\"` and `arch = \"gfx942\"`"));
        }
        return Platform::default();
    };
    section.check_keys(notes);
    let backend = section.required(notes, "backend", "\"rocm\"").filter(|backend| {
        let known = BACKENDS.contains(&backend.value.as_str());
        if !known {
            let mistake = Mistake::new(format!("unknown backend `{}`", backend.value), backend.place.clone(), "not a backend");
            notes.note(mistake.help(suggest(&backend.value, BACKENDS.iter().copied(), "valid backends")));
        }
        known
    });
    let arch = section.required(notes, "arch", "\"gfx942\"");
    if let (Some(backend), Some(arch)) = (&backend, &arch) {
        check_arch(notes, backend, arch);
    }
    let environment = section.table(notes, "environment", "[platform.environment]", &[]);
    let environment = environment.map(|section| read_environment(notes, section.table)).unwrap_or_default();
    let known = section.table(notes, "known", "[platform.known]", &[]);
    let known = known.map(|section| read_known(notes, section.table)).unwrap_or_default();
    if let Some(backend) = &backend {
        check_versions(notes, backend, &known);
    }
    Platform {
        backend: backend.map(|it| it.value).unwrap_or_default(),
        arch: arch.map(|it| it.value).unwrap_or_default(),
        environment,
        known: known.into_iter().map(|(name, value)| (name, value.value)).collect(),
    }
}

fn check_arch(notes: &mut Notes, backend: &Placed<String>, arch: &Placed<String>) {
    let (prefix, example) = match backend.value.as_str() {
        "rocm" => ("gfx", "gfx942"),
        "cuda" => ("sm_", "sm_90"),
        _ => return,
    };
    let rest = arch.value.strip_prefix(prefix);
    if rest.is_none_or(|rest| rest.is_empty() || !rest.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())) {
        let message = format!("`{}` is not an instruction set of backend `{}`", arch.value, backend.value);
        let mistake = Mistake::new(message, arch.place.clone(), format!("should begin with `{prefix}`"));
        notes.note(mistake.and(backend.place.clone(), "the backend is declared here").help(format!("for example `arch = \"{example}\"`")));
    }
}

/// A ROCm build of PyTorch has a HIP version and no CUDA version; a CUDA build the reverse.
fn check_versions(notes: &mut Notes, backend: &Placed<String>, known: &BTreeMap<String, Placed<Known>>) {
    let (own, other) = match backend.value.as_str() {
        "rocm" => ("torch.version.hip", "torch.version.cuda"),
        "cuda" => ("torch.version.cuda", "torch.version.hip"),
        _ => return,
    };
    let mut contradict = |name: &str, place: &Place, label: &str, help: String| {
        let message = format!("`{name}` contradicts backend `{}`", backend.value);
        let mistake = Mistake::new(message, place.clone(), label);
        notes.note(mistake.and(backend.place.clone(), "the backend is declared here").help(help));
    };
    if let Some(value) = known.get(own)
        && !matches!(value.value, Known::Present | Known::Str(_))
    {
        contradict(own, &value.place, "has to be present", format!("write `\"{own}\" = {{ present = true }}`, or its version as a string"));
    }
    if let Some(value) = known.get(other)
        && value.value != Known::None
    {
        contradict(other, &value.place, "has to be `None`", format!("write `\"{other}\" = {{ none = true }}`"));
    }
}

fn read_environment(notes: &mut Notes, table: &DeTable<'_>) -> BTreeMap<String, Known> {
    let mut environment = BTreeMap::new();
    for (key, value) in table {
        let name: &str = key.get_ref();
        let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        if !starts || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            let place = notes.place(key.span());
            notes.note(
                Mistake::new(format!("`{name}` is not the name of an environment variable"), place, "not a name")
                    .help("use letters, digits and underscores, and do not begin with a digit"),
            );
            continue;
        }
        let place = notes.place(value.span());
        let help = "write a string for its value, or false for \"not set\"";
        match value.get_ref() {
            DeValue::String(text) => {
                environment.insert(name.to_owned(), Known::Str(text.clone().into_owned()));
            }
            DeValue::Boolean(false) => {
                environment.insert(name.to_owned(), Known::None);
            }
            DeValue::Boolean(true) => {
                notes.note(Mistake::new(format!("`{name}` is true, which is no value"), place, "set to what?").help(help));
            }
            other => notes.note(wrong_type(name, place, other, "a string or false").help(help)),
        }
    }
    environment
}

fn read_known(notes: &mut Notes, table: &DeTable<'_>) -> BTreeMap<String, Placed<Known>> {
    let mut known = BTreeMap::new();
    for (key, value) in table {
        let name: &str = key.get_ref();
        if !is_dotted(name) {
            let place = notes.place(key.span());
            notes.note(
                Mistake::new(format!("`{name}` is not a dotted Python name"), place, "not a name")
                    .help("write the whole name in quotes, for example `\"torch.version.hip\"`"),
            );
            continue;
        }
        let place = notes.place(value.span());
        let found = match value.get_ref() {
            DeValue::String(text) => Some(Known::Str(text.clone().into_owned())),
            DeValue::Boolean(value) => Some(Known::Bool(*value)),
            DeValue::Integer(number) => integer(number).map(Known::Int),
            DeValue::Table(table) => marker(table),
            _ => None,
        };
        match found {
            Some(found) => {
                known.insert(name.to_owned(), Placed::new(found, place));
            }
            None => {
                let mut mistake = Mistake::new(format!("`{name}` has no value that can be known"), place, "not a value")
                    .help("write a string, a boolean, an integer, `{ present = true }` or `{ none = true }`");
                // `torch.version.hip = ...` without quotes is a table `torch` that holds a table `version`.
                if !name.contains('.') && matches!(value.get_ref(), DeValue::Table(table) if !table.is_empty()) {
                    mistake = mistake.help("write a dotted name in quotes: `\"torch.version.hip\" = { present = true }`");
                }
                notes.note(mistake);
            }
        }
    }
    known
}

/// `{ present = true }` or `{ none = true }`.
fn marker(table: &DeTable<'_>) -> Option<Known> {
    let mut entries = table.iter();
    let (Some((key, value)), None) = (entries.next(), entries.next()) else { return None };
    match (key.get_ref().as_ref(), value.get_ref()) {
        ("present", DeValue::Boolean(true)) => Some(Known::Present),
        ("none", DeValue::Boolean(true)) => Some(Known::None),
        _ => None,
    }
}
