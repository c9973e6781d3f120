//! `[[pins]]`: commits and patches that a `sources.json` beside companion patches records.
//!
//! In: the tables, and the text of each file, which the caller supplies since it may lie in a pinned tree. Out: sources with their
//! commits and patches filled in. Refused: text that is not such a file, ids not written in full, and whatever contradicts the profile or another pin;
//! both places are shown.
//!
//! Two forms exist. `{repo: {base, commit, tree, patch_sha256}}` pins a patch on `base`; `{repo: {base, tested_commit, tree, sha256}}` is
//! the same under other names, and without `base` (`modified: false`) the tested commit itself is read. A list of such objects with the
//! repository under `repo`, `id` or `name` is read alike. The patch is `<repo>.patch` beside the file. Other keys are left alone: the file is not ours.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::error::{Document, Mistake, Place};
use super::reader::{Notes, Placed, Section, suggest};
use super::source::{Draft, Hex, PatchDraft, full_hex, stays_inside};
use super::{Input, PinsRef, ReadPins};

/// Fills in what the `[[pins]]` of a profile pin; gives the pinned names that no source has, with the file that pins them.
pub(super) fn fill(
    notes: &mut Notes,
    root: &Section<'_, '_>,
    drafts: &mut [Draft],
    input: &Input<'_>,
    read: &mut ReadPins<'_>,
) -> Vec<(String, String)> {
    let mut unused = Vec::new();
    for section in root.tables(notes, "pins", "[[pins]]", &["path", "source"]) {
        section.check_keys(notes);
        let path = section.required(notes, "path", "\"patches/sources.json\"");
        let holder = section.string(notes, "source");
        let (Some(path), Ok(holder)) = (path, check_holder(notes, drafts, holder)) else { continue };
        if holder.is_some() && !stays_inside(&path.value) {
            let mistake = Mistake::new("`path` is not inside the source that holds the pins", path.place, "leaves the source");
            notes.note(mistake.help("write a path relative to that source's root, with forward slashes"));
            continue;
        }
        let source = holder.map(|at| drafts[at].finish(input.file));
        let name = source.as_ref().map_or_else(|| path.value.clone(), |source| format!("{}:{}", source.id, path.value));
        let text = match read(&PinsRef { path: path.value.clone(), source }) {
            Ok(text) => text,
            Err(cause) => {
                notes.note(Mistake::new(format!("{name} cannot be read"), path.place, cause));
                continue;
            }
        };
        let file =
            PinsFile { document: Document::new(&name, &text), text: &text, path: &path, holder: holder.map(|at| drafts[at].id.clone()) };
        apply(notes, &file, drafts, &mut unused);
    }
    unused
}

/// Index of the source that holds the pins; `Err` if it is not declared.
fn check_holder(notes: &mut Notes, drafts: &[Draft], holder: Option<Placed<String>>) -> Result<Option<usize>, ()> {
    let Some(holder) = holder else { return Ok(None) };
    if let Some(at) = drafts.iter().position(|draft| draft.id.value == holder.value) {
        return Ok(Some(at));
    }
    let mistake = Mistake::new(format!("no source has the id `{}`", holder.value), holder.place, "not declared");
    notes.note(mistake.help(suggest(&holder.value, drafts.iter().map(|draft| draft.id.value.as_str()), "declared sources")));
    Err(())
}

struct PinsFile<'a> {
    document: Document,
    text: &'a str,
    path: &'a Placed<String>,
    holder: Option<Placed<String>>,
}

impl PinsFile<'_> {
    /// Where `raw`, a part of this file's text, stands in it.
    fn place(&self, raw: &RawValue) -> Place {
        let start = (raw.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        self.document.place(start..start + raw.get().len())
    }

    fn malformed(&self, error: &serde_json::Error) -> Mistake {
        let before: usize = self.text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let at = before + error.column().saturating_sub(1);
        let text = error.to_string();
        let cause = text.split(" at line ").next().unwrap_or_default().to_owned();
        Mistake::new(format!("{} is not JSON that pins sources", self.document.name()), self.document.place(at..at + 1), cause)
            .and(self.path.place.clone(), "the file is named here")
    }

    fn entries(&self, notes: &mut Notes) -> Option<Vec<(String, &RawValue)>> {
        let kind = |raw: &RawValue| raw.get().trim_start().chars().next();
        let whole: &RawValue = serde_json::from_str(self.text).map_err(|error| notes.note(self.malformed(&error))).ok()?;
        match kind(whole) {
            Some('{') => self.object(notes, whole),
            Some('[') => {
                let list: Vec<&RawValue> = serde_json::from_str(whole.get()).map_err(|error| notes.note(self.malformed(&error))).ok()?;
                let mut entries = Vec::with_capacity(list.len());
                for raw in list {
                    let name = (kind(raw) == Some('{')).then(|| self.object(notes, raw)).flatten().and_then(|object| {
                        let named = object.iter().find(|(key, _)| matches!(key.as_str(), "repo" | "id" | "name"));
                        named.and_then(|(_, value)| serde_json::from_str::<String>(value.get()).ok())
                    });
                    match name {
                        Some(name) => entries.push((name, raw)),
                        None => notes.note(Mistake::new("a pin does not say of which source", self.place(raw), "no `repo` here")),
                    }
                }
                Some(entries)
            }
            _ => {
                let mistake = Mistake::new(format!("{} pins nothing", self.document.name()), self.place(whole), "expected an object");
                notes.note(mistake.help("expected `{\"megatron\": {\"base\": ..., \"tree\": ..., \"patch_sha256\": ...}}`"));
                None
            }
        }
    }

    /// The entries of an object. A key that stands in it twice is noted; the first counts.
    fn object<'r>(&self, notes: &mut Notes, raw: &'r RawValue) -> Option<Vec<(String, &'r RawValue)>> {
        let Entries(all) = match serde_json::from_str::<Entries<'r>>(raw.get()) {
            Ok(entries) => entries,
            Err(_) => {
                notes.note(Mistake::new("a pin is not an object", self.place(raw), "expected an object"));
                return None;
            }
        };
        let mut kept: Vec<(String, &RawValue)> = Vec::with_capacity(all.len());
        for (key, value) in all {
            match kept.iter().find(|(other, _)| *other == key) {
                Some((_, first)) => {
                    let mistake = Mistake::new(format!("`{key}` stands in the object twice"), self.place(value), "again here");
                    notes.note(mistake.and(self.place(first), "first here"));
                }
                None => kept.push((key, value)),
            }
        }
        Some(kept)
    }
}

/// The entries of a JSON object in order, repeated keys included.
struct Entries<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Entries<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Vec<(String, &'de RawValue)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(entries)
            }
        }
        deserializer.deserialize_map(Visit).map(Self)
    }
}

fn apply(notes: &mut Notes, file: &PinsFile<'_>, drafts: &mut [Draft], unused: &mut Vec<(String, String)>) {
    let Some(entries) = file.entries(notes) else { return };
    let mut used = false;
    for (repo, raw) in &entries {
        let Some(draft) = drafts.iter_mut().find(|draft| draft.id.value == *repo) else {
            unused.push((repo.clone(), file.document.name().to_owned()));
            continue;
        };
        used = true;
        if let Some(fields) = file.object(notes, raw) {
            pin(notes, file, draft, repo, &file.place(raw), &fields);
        }
    }
    if !used {
        let ids: Vec<_> = drafts.iter().map(|draft| format!("`{}`", draft.id.value)).collect();
        let pinned: Vec<_> = entries.iter().map(|(repo, _)| format!("`{repo}`")).collect();
        let mistake =
            Mistake::new(format!("{} pins no source of this profile", file.document.name()), file.path.place.clone(), "of no use");
        notes.note(mistake.help(format!("it pins {}; the profile declares {}", list(&pinned), list(&ids))));
    }
}

fn list(words: &[String]) -> String {
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

fn pin(notes: &mut Notes, file: &PinsFile<'_>, draft: &mut Draft, repo: &str, place: &Place, fields: &[(String, &RawValue)]) {
    let text = |notes: &mut Notes, keys: &[&str]| -> Option<(String, Placed<String>)> {
        let (key, raw) = fields.iter().find(|(key, _)| keys.contains(&key.as_str()))?;
        match serde_json::from_str::<Option<String>>(raw.get()) {
            Ok(value) => Some((key.clone(), Placed::new(value?, file.place(raw)))),
            Err(_) => {
                notes.note(Mistake::new(format!("`{key}` of `{repo}` is not a string"), file.place(raw), "expected a string"));
                None
            }
        }
    };
    let base = text(notes, &["base"]);
    let result = text(notes, &["commit", "tested_commit"]);
    let tree = text(notes, &["tree"]);
    let digest = text(notes, &["patch_sha256", "sha256"]);
    let repository = text(notes, &["repository"]);
    let modified = fields.iter().find(|(key, _)| key == "modified").map(|(_, raw)| (raw.get() == "true", file.place(raw)));
    let hex = |notes: &mut Notes, field: Option<(String, Placed<String>)>, hex| {
        field.and_then(|(key, value)| full_hex(notes, &key, Some(value), hex))
    };
    let (has_base, has_result) = (base.is_some(), result.is_some());
    let (base, result) = (hex(notes, base, Hex::Commit), hex(notes, result, Hex::Commit));
    let (tree, digest) = (hex(notes, tree, Hex::Tree), hex(notes, digest, Hex::Sha256));
    if let Some((_, repository)) = repository {
        merge(notes, &mut draft.repository, repository, repo, "repository");
    }
    if !has_base && !has_result {
        let mistake = Mistake::new(format!("`{repo}` is pinned to no commit"), place.clone(), "neither `base` nor `tested_commit` here");
        notes.note(mistake.help("expected `base` with the commit that is read"));
        return;
    }
    let patched = has_base && modified.as_ref().is_none_or(|(modified, _)| *modified);
    if let Some((true, place)) = modified.as_ref().filter(|_| !has_base) {
        let mistake = Mistake::new(format!("`{repo}` is modified, but from no `base`"), place.clone(), "modified from what?");
        notes.note(mistake.help("expected `base` with the commit that the patch applies to"));
        return;
    }
    match if has_base { base } else { result } {
        Some(commit) => merge(notes, &mut draft.commit, commit, repo, "commit"),
        // Empty: pinned, and refused already.
        None => drop(draft.commit.get_or_insert_with(|| Placed::new(String::new(), place.clone()))),
    }
    if !patched {
        if let Some(patch) = &draft.patch {
            let here = modified.map_or_else(|| place.clone(), |(_, place)| place);
            let mistake = Mistake::new(
                format!("the patch of source `{repo}` is declared, but pinned as absent"),
                patch.place.clone(),
                "declared here",
            );
            notes.note(mistake.and(here, "pinned without a patch here").help("remove [source.patch], or correct the pins"));
        } else if let Some(tree) = tree {
            merge(notes, &mut draft.tree, tree, repo, "tree");
        }
        return;
    }
    let folder = file.path.value.rsplit_once('/').map_or("", |(folder, _)| folder);
    let beside = if folder.is_empty() { format!("{repo}.patch") } else { format!("{folder}/{repo}.patch") };
    let patch = draft.patch.get_or_insert_with(|| PatchDraft { path: None, source: None, sha256: None, tree: None, place: place.clone() });
    // A path that the profile declares stands for itself, with its own holder.
    if patch.path.is_none() {
        patch.path = Some(Placed::new(beside, place.clone()));
        if patch.source.is_none() {
            patch.source.clone_from(&file.holder);
        }
    }
    if let Some(digest) = digest {
        merge(notes, &mut patch.sha256, digest, repo, "sha256");
    }
    if let Some(tree) = tree {
        merge(notes, &mut patch.tree, tree, repo, "patch.tree");
    }
}

/// Fills in a field, or notes that it says something else already.
fn merge(notes: &mut Notes, field: &mut Option<Placed<String>>, pinned: Placed<String>, repo: &str, key: &str) {
    let same = |a: &str, b: &str| {
        let bare = |text: &str| text.trim_end_matches('/').trim_end_matches(".git").to_lowercase();
        a == b || (key == "repository" && bare(a) == bare(b))
    };
    match field {
        None => *field = Some(pinned),
        // Empty: written, and refused already.
        Some(declared) if declared.value.is_empty() || same(&declared.value, &pinned.value) => {}
        Some(declared) => {
            let mistake =
                Mistake::new(format!("`{key}` of source `{repo}` is given twice and differs"), declared.place.clone(), "one value here");
            notes.note(
                mistake
                    .and(pinned.place, "another value here")
                    .help("keep the right one: leave the key out of the profile, or correct the pins"),
            );
        }
    }
}
