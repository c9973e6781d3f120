//! `[[source]]` and `[source.patch]`: the revisions that are linted.
//!
//! In: the tables, paths given on the command line, and what `sources.json` files pin. Out: sources in order. Refused: ids that are
//! declared twice, ids of commits and trees that are not written in full, paths that leave a source.

use std::path::PathBuf;

use super::error::{Mistake, Place};
use super::family::span_of;
use super::reader::{Notes, Placed, Section, suggest};
use super::{Input, PatchPin, Role, Source};
use crate::text::FileId;

const SOURCE_KEYS: &[&str] = &["id", "path", "repository", "commit", "tree", "roots", "role", "main", "patch"];
const PATCH_KEYS: &[&str] = &["path", "source", "sha256", "tree"];

/// A source while it is put together.
#[derive(Clone)]
pub(super) struct Draft {
    pub id: Placed<String>,
    pub path: Option<PathBuf>,
    pub repository: Option<Placed<String>>,
    pub commit: Option<Placed<String>>,
    pub tree: Option<Placed<String>>,
    pub roots: Vec<String>,
    pub role: Role,
    pub main: bool,
    pub patch: Option<PatchDraft>,
    pub place: Place,
}

/// A patch while it is put together.
#[derive(Clone)]
pub(super) struct PatchDraft {
    pub path: Option<Placed<String>>,
    pub source: Option<Placed<String>>,
    pub sha256: Option<Placed<String>>,
    pub tree: Option<Placed<String>>,
    pub place: Place,
}

impl Draft {
    /// The source as it stands.
    pub(super) fn finish(&self, file: FileId) -> Source {
        // An empty text stands for one that was refused.
        let value = |text: &Option<Placed<String>>| text.as_ref().map(|text| text.value.clone()).filter(|text| !text.is_empty());
        let patch = self.patch.as_ref().and_then(|patch| {
            Some(PatchPin {
                path: patch.path.as_ref()?.value.clone(),
                source: value(&patch.source),
                sha256: value(&patch.sha256),
                tree: value(&patch.tree),
            })
        });
        Source {
            id: self.id.value.clone(),
            path: self.path.clone(),
            repository: value(&self.repository),
            commit: value(&self.commit),
            tree: value(&self.tree),
            patch,
            roots: self.roots.clone(),
            role: self.role,
            main: self.main,
            span: span_of(file, &self.place),
        }
    }
}

/// What a hexadecimal id is the id of.
#[derive(Clone, Copy)]
pub(super) enum Hex {
    Commit,
    Tree,
    Sha256,
}

/// Notes and drops an id that is not written in full, in lower case.
pub(super) fn full_hex(notes: &mut Notes, key: &str, text: Option<Placed<String>>, hex: Hex) -> Option<Placed<String>> {
    let text = text?;
    let (what, lengths, how): (_, &[usize], _) = match hex {
        Hex::Commit => ("a full commit id", &[40, 64], "`git rev-parse <revision>^{commit}` prints it"),
        Hex::Tree => ("a full tree id", &[40, 64], "`git rev-parse <revision>^{tree}` prints it"),
        Hex::Sha256 => ("a SHA-256 digest", &[64], "`sha256sum <file>` prints it"),
    };
    let length = text.value.chars().count();
    let digits = text.value.bytes().all(|byte| byte.is_ascii_hexdigit());
    let upper = text.value.bytes().any(|byte| byte.is_ascii_uppercase());
    let digit_count = if lengths.len() == 1 { "64" } else { "40" };
    let label = if !digits {
        "not hexadecimal".to_owned()
    } else if !lengths.contains(&length) {
        format!("{} with {length} of {digit_count} digits", if length < 40 { "abbreviated," } else { "the wrong length," })
    } else if upper {
        "upper-case digits".to_owned()
    } else {
        return Some(text);
    };
    let help = if digits && upper && lengths.contains(&length) {
        format!("write `{}`", text.value.to_lowercase())
    } else {
        format!("write all {digit_count} lower-case hexadecimal digits; {how}")
    };
    notes.note(Mistake::new(format!("`{key}` is not {what}"), text.place, label).help(help));
    None
}

/// Whether `path` stays inside a source: relative, with forward slashes, without `..`.
pub(super) fn stays_inside(path: &str) -> bool {
    let drive = path.as_bytes().get(1) == Some(&b':');
    !path.is_empty()
        && !path.starts_with('/')
        && !drive
        && !path.contains('\\')
        && !path.contains('\0')
        && path.split('/').all(|part| part != "..")
}

/// Reads every `[[source]]`.
pub(super) fn read(notes: &mut Notes, root: &Section<'_, '_>, input: &Input<'_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut main: Option<Place> = None;
    let sections = root.tables(notes, "source", "[[source]]", SOURCE_KEYS);
    if sections.is_empty() && root.table.get("source").is_none_or(|value| value.get_ref().is_array()) {
        notes.note(
            Mistake::new("the profile has no [[source]]", root.place.clone(), "there is nothing to lint")
                .help("add [[source]] with `id = \"rl-kernel\"`, `path = \".\"`, `role = \"kernel\"` and `commit`"),
        );
    }
    for section in sections {
        section.check_keys(notes);
        let id = section.required(notes, "id", "\"rl-kernel\"");
        let id = id.filter(|id| check_id(notes, id, &drafts));
        let path = section.string(notes, "path").filter(|path| {
            let valid = !path.value.contains('\0');
            if !valid {
                notes.note(Mistake::new("`path` holds a zero byte", path.place.clone(), "not a path"));
            }
            valid
        });
        let repository = section.string(notes, "repository");
        let commit = section.string(notes, "commit");
        let commit_written = commit.is_some();
        let commit = full_hex(notes, "commit", commit, Hex::Commit);
        let tree = section.string(notes, "tree");
        let tree = full_hex(notes, "tree", tree, Hex::Tree);
        let roots = roots(notes, &section);
        let role = section.required(notes, "role", "\"kernel\"").and_then(|role| read_role(notes, &role));
        let flag = section.boolean(notes, "main");
        if let Some(flag) = flag.as_ref().filter(|flag| flag.value) {
            match &main {
                Some(first) => notes.note(
                    Mistake::new("two sources have `main = true`", flag.place.clone(), "again here")
                        .and(first.clone(), "first here")
                        .help("results are reported against one checkout: keep one"),
                ),
                None => main = Some(flag.place.clone()),
            }
        }
        let patch = read_patch(notes, &section);
        let (Some(id), Some(role)) = (id, role) else { continue };
        // A commit that was refused is not one that is missing: without this, `tree` would be refused too.
        let commit = commit.or_else(|| commit_written.then(|| Placed::new(String::new(), section.place.clone())));
        let given = input.paths.iter().rev().find(|(given, _)| *given == id.value);
        drafts.push(Draft {
            path: given.map(|(_, path)| path.clone()).or_else(|| path.map(|path| PathBuf::from(path.value))),
            repository,
            commit,
            tree,
            roots,
            role,
            main: flag.is_some_and(|flag| flag.value),
            patch,
            place: section.place,
            id,
        });
    }
    check_given(notes, &drafts, input);
    drafts
}

fn check_id(notes: &mut Notes, id: &Placed<String>, drafts: &[Draft]) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.');
    if !id.value.bytes().all(plain) || !id.value.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        let mistake = Mistake::new(format!("`{}` is not an id", id.value), id.place.clone(), "not an id");
        notes.note(mistake.help("use lower-case letters, digits, `-`, `_` and `.`, beginning with a letter or digit"));
        return false;
    }
    if let Some(first) = drafts.iter().find(|draft| draft.id.value == id.value) {
        let mistake = Mistake::new(format!("source `{}` is declared twice", id.value), id.place.clone(), "again here");
        notes.note(mistake.and(first.id.place.clone(), "first here").help("give one of them another id"));
        return false;
    }
    true
}

fn check_given(notes: &mut Notes, drafts: &[Draft], input: &Input<'_>) {
    for (at, (id, path)) in input.paths.iter().enumerate() {
        let ids = drafts.iter().map(|draft| draft.id.value.as_str());
        if !drafts.iter().any(|draft| draft.id.value == *id) {
            let mistake = Mistake::unplaced(format!("`--source {id}={}` names a source that the profile does not declare", path.display()));
            notes.note(mistake.help(suggest(id, ids, "declared sources")));
        } else if input.paths[..at].iter().any(|(other, before)| other == id && before != path) {
            let mistake = Mistake::unplaced(format!("`--source` gives `{id}` two different paths"));
            notes.note(mistake.help("give each source one path"));
        }
    }
}

fn roots(notes: &mut Notes, section: &Section<'_, '_>) -> Vec<String> {
    let Some(written) = section.strings(notes, "roots") else { return vec![".".to_owned()] };
    if section.lacks_elements("roots") {
        let place = section.table.get("roots").map_or_else(|| section.place.clone(), |value| notes.place(value.span()));
        let mistake = Mistake::new("`roots` names no folder", place, "empty");
        notes.note(mistake.help("leave the key out for the source's own root, or write `roots = [\".\"]`"));
    }
    let mut roots: Vec<String> = Vec::new();
    for root in written {
        if !stays_inside(&root.value) {
            let mistake = Mistake::new(format!("root `{}` is not inside the source", root.value), root.place, "leaves the source");
            notes.note(mistake.help("write a path relative to the source's root, with forward slashes, or `.`"));
            continue;
        }
        let parts: Vec<_> = root.value.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        let clean = if parts.is_empty() { ".".to_owned() } else { parts.join("/") };
        if roots.contains(&clean) {
            let mistake = Mistake::new(format!("root `{clean}` is listed twice"), root.place, "again here");
            notes.note(mistake.help("remove one of the two"));
        } else {
            roots.push(clean);
        }
    }
    roots
}

fn read_role(notes: &mut Notes, written: &Placed<String>) -> Option<Role> {
    let found = Role::ALL.iter().copied().find(|role| role.word() == written.value);
    if found.is_none() {
        let mistake = Mistake::new(format!("unknown role `{}`", written.value), written.place.clone(), "not a role");
        notes.note(mistake.help(suggest(&written.value, Role::ALL.iter().map(|role| role.word()), "valid roles")));
    }
    found
}

fn read_patch(notes: &mut Notes, section: &Section<'_, '_>) -> Option<PatchDraft> {
    let section = section.table(notes, "patch", "[source.patch]", PATCH_KEYS)?;
    section.check_keys(notes);
    let path = section.string(notes, "path");
    let source = section.string(notes, "source");
    let sha256 = section.string(notes, "sha256");
    let sha256 = full_hex(notes, "sha256", sha256, Hex::Sha256);
    let tree = section.string(notes, "tree");
    let tree = full_hex(notes, "tree", tree, Hex::Tree);
    if let (Some(path), Some(_)) = (&path, &source)
        && !stays_inside(&path.value)
    {
        let mistake = Mistake::new("`path` is not inside the source that holds the patch", path.place.clone(), "leaves the source");
        notes.note(mistake.help("write a path relative to that source's root, with forward slashes"));
    }
    Some(PatchDraft { path, source, sha256, tree, place: section.place })
}

/// Checks what can be said only when every source and pin is known.
pub(super) fn check_together(notes: &mut Notes, drafts: &[Draft]) {
    let ids = || drafts.iter().map(|draft| draft.id.value.as_str());
    for draft in drafts {
        if let (Some(tree), None) = (&draft.tree, &draft.commit) {
            let mistake =
                Mistake::new(format!("source `{}` has a tree but no commit", draft.id.value), tree.place.clone(), "the tree of what?");
            notes.note(mistake.help("add `commit`, or remove `tree`"));
        }
        let Some(patch) = &draft.patch else { continue };
        if draft.commit.is_none() {
            let message = format!("source `{}` has a patch but no commit to apply it to", draft.id.value);
            notes.note(Mistake::new(message, patch.place.clone(), "a patch on top of what?").help("add `commit` to the [[source]]"));
        }
        if patch.path.is_none() {
            notes.note(
                Mistake::new(
                    format!("the patch of source `{}` has no `path`", draft.id.value),
                    patch.place.clone(),
                    "`path` is missing here",
                )
                .help("add `path = \"patches/name.patch\"`"),
            );
        }
        let Some(holder) = &patch.source else { continue };
        if holder.value == draft.id.value {
            let message = format!("source `{}` cannot hold the patch that is applied to it", draft.id.value);
            notes.note(Mistake::new(message, holder.place.clone(), "the source itself").help("name another source, or leave `source` out"));
        } else if !ids().any(|id| id == holder.value) {
            let mistake = Mistake::new(format!("no source has the id `{}`", holder.value), holder.place.clone(), "not declared");
            notes.note(mistake.help(suggest(&holder.value, ids().filter(|id| *id != draft.id.value), "declared sources")));
        }
    }
}
