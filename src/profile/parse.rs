//! The profile as a whole.
//!
//! In: its text, paths from the command line, the text of pins. Out: [`Profile`]. Refused: everything that the passes note; all of it is
//! reported at once, except that text which is not TOML is reported alone.

use toml::de::DeTable;

use super::error::{Document, Mistake, ProfileErrors};
use super::reader::{Notes, Placed, Section};
use super::source::Draft;
use super::{DEFAULT_MAX_FILE_BYTES, Input, Profile, ReadPins, SCHEMA, evidence, family, levels, pins, platform, probe, source, workload};

/// Profiles larger than this, in bytes, are refused unread.
const MAX_PROFILE_BYTES: usize = 1 << 20;
const MAX_MAX_FILE_BYTES: i64 = 1 << 30;
const KEYS: &[&str] = &[
    "schema",
    "max-file-bytes",
    "platform",
    "source",
    "pins",
    "family",
    "entry",
    "evidence",
    "paths",
    "rules",
    "rules-for",
    "probe",
    "workload",
    "region",
    "decision",
];

impl Profile {
    /// Parses and validates a profile. `read_pins` supplies the text of each `sources.json` that it names.
    ///
    /// # Errors
    /// Every mistake, each with its place and what would be valid.
    pub fn parse(input: &Input<'_>, read_pins: &mut ReadPins<'_>) -> Result<Self, ProfileErrors> {
        if input.text.len() > MAX_PROFILE_BYTES {
            let document = Document::new(input.name, "");
            let mistake = Mistake::new("the profile is larger than 1 MiB", document.place(0..0), "too large to be a profile");
            return Err(ProfileErrors::new(input.name, vec![mistake]));
        }
        let mut notes = Notes { document: Document::new(input.name, input.text), mistakes: Vec::new() };
        // A byte order mark is not TOML; editors write it all the same. It is blanked so that offsets stay.
        let without_mark = input.text.strip_prefix('\u{FEFF}').map(|rest| format!("   {rest}"));
        let (table, errors) = DeTable::parse_recoverable(without_mark.as_deref().unwrap_or(input.text));
        for error in errors {
            let span = error.span().unwrap_or(0..0);
            notes.note(Mistake::new(format!("not TOML: {}", error.message()), notes.place(span), "here"));
        }
        if notes.mistakes.is_empty() {
            let profile = validate(&mut notes, table.get_ref(), input, read_pins);
            if notes.mistakes.is_empty() {
                return Ok(profile);
            }
        }
        Err(ProfileErrors::new(input.name, notes.mistakes))
    }
}

fn validate(notes: &mut Notes, table: &DeTable<'_>, input: &Input<'_>, read_pins: &mut ReadPins<'_>) -> Profile {
    // What is missing as a whole is shown at the first line.
    let first_line = input.text.lines().next().map_or(0, str::len);
    let root = Section { name: "the profile", table, place: notes.place(0..first_line), keys: KEYS };
    root.check_keys(notes);
    if let Some(schema) = root.required(notes, "schema", &format!("\"{SCHEMA}\"")) {
        check_schema(notes, &schema);
    }
    let max_file_bytes = root.integer(notes, "max-file-bytes").and_then(|limit| {
        let valid = (1..=MAX_MAX_FILE_BYTES).contains(&limit.value);
        if !valid {
            let mistake = Mistake::new(format!("`max-file-bytes` is {}", limit.value), limit.place, "out of range");
            notes.note(mistake.help(format!("write a number of bytes from 1 to {MAX_MAX_FILE_BYTES}")));
        }
        u64::try_from(limit.value).ok().filter(|_| valid)
    });
    let platform = platform::read(notes, &root);
    let mut drafts = source::read(notes, &root, input);
    let unused_pins = pins::fill(notes, &root, &mut drafts, input, read_pins);
    source::check_together(notes, &drafts);
    let families = family::read_families(notes, &root, input.file);
    let entries = family::read_entries(notes, &root, input.file);
    let ids: Vec<String> = drafts.iter().map(|draft: &Draft| draft.id.value.clone()).collect();
    let evidence = evidence::read(notes, &root, &ids, input.file);
    let paths = levels::read_paths(notes, &root, &ids);
    let rules = levels::read_rules(notes, &root, &ids);
    let probe = probe::read(notes, &root, &ids);
    let workload = workload::read(notes, &root, input.file);
    Profile {
        backend: platform.backend,
        arch: platform.arch,
        environment: platform.environment,
        known: platform.known,
        sources: drafts.iter().map(|draft| draft.finish(input.file)).collect(),
        families,
        entries,
        evidence,
        paths,
        levels: rules.levels,
        path_levels: rules.path_levels,
        options: rules.options,
        unused_pins,
        workload,
        max_file_bytes: max_file_bytes.unwrap_or(DEFAULT_MAX_FILE_BYTES),
        probe,
    }
}

fn check_schema(notes: &mut Notes, schema: &Placed<String>) {
    if schema.value == SCHEMA {
        return;
    }
    let known = schema.value.starts_with("rlk-lint/profile/v");
    let label = if known { "another version of the profile" } else { "not a profile" };
    let mistake = Mistake::new(format!("unknown schema `{}`", schema.value), schema.place.clone(), label);
    notes.note(mistake.help(format!("this version reads `schema = \"{SCHEMA}\"`")));
}
