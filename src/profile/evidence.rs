//! `[[evidence]]`: which files are said to be evidence for the family, and for what.
//!
//! In: the tables and the ids of the sources. Out: references in order. Refused: a source that is not declared, a path that leaves its source,
//! one id or file named twice.

use super::EvidenceRef;
use super::error::Mistake;
use super::family::span_of;
use super::reader::{Notes, Placed, Section, suggest};
use super::source::stays_inside;
use crate::text::FileId;

const KEYS: &[&str] = &["id", "source", "path", "supports", "run"];

/// Reads every `[[evidence]]`. `sources` are the ids of the declared sources.
pub(super) fn read(notes: &mut Notes, root: &Section<'_, '_>, sources: &[String], file: FileId) -> Vec<EvidenceRef> {
    let mut out: Vec<EvidenceRef> = Vec::new();
    let mut seen: Vec<(String, Placed<String>)> = Vec::new();
    let mut ids: Vec<Placed<String>> = Vec::new();
    for section in root.tables(notes, "evidence", "[[evidence]]", KEYS) {
        section.check_keys(notes);
        let id = section.required(notes, "id", "\"mi300x-report\"");
        let source = section.required(notes, "source", "\"rl-kernel\"");
        let path = section.required(notes, "path", "\"reports/run/report.md\"");
        let supports = section.string(notes, "supports");
        let run = section.string(notes, "run");
        for inside in [&path, &supports, &run].into_iter().flatten() {
            if !stays_inside(&inside.value) {
                let mistake = Mistake::new(format!("`{}` leaves its source", inside.value), inside.place.clone(), "not a path inside");
                notes.note(mistake.help("write a path from the root of the source, with forward slashes and without `..`"));
            }
        }
        let (Some(id), Some(source), Some(path)) = (id, source, path) else { continue };
        if let Some(first) = ids.iter().find(|other| other.value == id.value) {
            let mistake = Mistake::new(format!("evidence `{}` is declared twice", id.value), id.place.clone(), "again here");
            notes.note(mistake.and(first.place.clone(), "first here").help("give one of them another id"));
        }
        ids.push(id.clone());
        if !sources.contains(&source.value) {
            let mistake = Mistake::new(format!("no source is called `{}`", source.value), source.place.clone(), "not declared");
            notes.note(mistake.help(suggest(&source.value, sources.iter().map(String::as_str), "declared sources")));
        }
        if let Some((_, first)) = seen.iter().find(|(id, other)| *id == source.value && other.value == path.value) {
            let mistake = Mistake::new(format!("evidence `{}` is named twice", path.value), path.place.clone(), "again here");
            notes.note(mistake.and(first.place.clone(), "first here").help("remove one of the two"));
            continue;
        }
        let span = span_of(file, &section.place);
        seen.push((source.value.clone(), path.clone()));
        let value = |text: Option<Placed<String>>| text.map(|text| text.value);
        let (id, source, path) = (id.value, source.value, path.value);
        out.push(EvidenceRef { id, source, path, supports: value(supports), run: value(run), span });
    }
    out
}
