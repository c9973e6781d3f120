//! The companions of `rlk-lint demo`, embedded in the program.
//!
//! In: `fixtures/companions/<id>/...`, `<id>.patch` and `rlk-lint.toml`. Out: on request, one bare repository per companion with reproducible
//! commit ids, the patches and the profile beside them. Refused: a folder that already holds one of these.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use sha2::{Digest as _, Sha256};

use super::SourceError;
use super::commit::{CommitEntry, CommitIds, bare_repository};

static COMPANIONS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/fixtures/companions");

/// Message of the one commit of every companion.
const MESSAGE: &str = "Companion of the rlk-lint demo\n";
/// Name of the demo's profile.
const PROFILE: &str = "rlk-lint.toml";

/// A companion that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Companion {
    /// Source id.
    pub id: String,
    /// Its bare repository.
    pub repository: PathBuf,
    /// Its commit and tree.
    pub ids: CommitIds,
    /// SHA-256 of its patch, lower-case hex, if it has one.
    pub patch_sha256: Option<String>,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Materialised {
    /// The demo's profile; `None` if none is embedded.
    pub profile: Option<PathBuf>,
    /// Companions in order of id.
    pub companions: Vec<Companion>,
}

/// Ids of the embedded companions, in order.
#[must_use]
pub fn companion_ids() -> Vec<String> {
    let mut ids: Vec<String> = COMPANIONS.dirs().filter_map(|dir| dir.path().to_str()).map(str::to_owned).collect();
    ids.sort();
    ids
}

/// Text of the embedded profile, if there is one.
#[must_use]
pub fn profile_text() -> Option<&'static str> {
    COMPANIONS.get_file(PROFILE)?.contents_utf8()
}

/// Writes every companion as the bare repository `<id>.git`, its patch as `<id>.patch`, and the profile, into the folder `into`.
///
/// # Errors
/// [`SourceError::Write`] if something is already there or cannot be written.
pub fn materialise(into: &Path) -> Result<Materialised, SourceError> {
    std::fs::create_dir_all(into).map_err(|error| write_error("the folder", &error))?;
    let mut companions = Vec::new();
    for id in companion_ids() {
        let repository = into.join(format!("{id}.git"));
        let ids = bare_repository(&repository, &files_of(&id), MESSAGE)?;
        let patch = COMPANIONS.get_file(format!("{id}.patch"));
        if let Some(patch) = patch {
            write_new(into, &format!("{id}.patch"), patch.contents())?;
        }
        let patch_sha256 = patch.map(|patch| hex(&Sha256::digest(patch.contents())));
        companions.push(Companion { id, repository, ids, patch_sha256 });
    }
    let profile = match COMPANIONS.get_file(PROFILE) {
        Some(profile) => {
            write_new(into, PROFILE, profile.contents())?;
            Some(into.join(PROFILE))
        }
        None => None,
    };
    Ok(Materialised { profile, companions })
}

/// Files of one companion, by path inside it.
fn files_of(id: &str) -> BTreeMap<String, CommitEntry> {
    let mut files = BTreeMap::new();
    let mut todo: Vec<&Dir<'_>> = COMPANIONS.get_dir(id).into_iter().collect();
    while let Some(dir) = todo.pop() {
        todo.extend(dir.dirs());
        for file in dir.files() {
            let inside = file.path().strip_prefix(id).unwrap_or(file.path());
            let path = inside.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/");
            files.insert(path, CommitEntry::File(file.contents().to_vec()));
        }
    }
    files
}

fn write_new(into: &Path, name: &str, bytes: &[u8]) -> Result<(), SourceError> {
    use std::io::Write as _;
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(into.join(name));
    file.and_then(|mut file| file.write_all(bytes)).map_err(|error| write_error(name, &error))
}

fn write_error(what: &str, error: &std::io::Error) -> SourceError {
    SourceError::Write { what: what.to_owned(), cause: super::directory::io_cause(error) }
}

/// Lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_profile_pins_the_ids_that_the_files_give() {
        let folder = tempfile::tempdir().unwrap();
        let written = materialise(folder.path()).unwrap();
        let Some(text) = profile_text() else { return };
        let value: toml::Table = toml::from_str(text).unwrap();
        let sources = value.get("source").or_else(|| value.get("sources"));
        let mut wrong = Vec::new();
        for companion in &written.companions {
            let table = sources.and_then(|all| find_source(all, &companion.id));
            let pin = |keys: &[&str]| {
                let found = keys.iter().try_fold(table?, |at, key| at.get(*key));
                found.and_then(toml::Value::as_str).map(str::to_owned)
            };
            let mut expect = |keys: &[&str], right: &str| {
                let found = pin(keys);
                if found.as_deref() != Some(right) {
                    wrong.push(format!("source `{}`: write {} = \"{right}\" (found {found:?})", companion.id, keys.join(".")));
                }
            };
            expect(&["commit"], &companion.ids.commit);
            if let Some(sha256) = &companion.patch_sha256 {
                expect(&["patch", "sha256"], sha256);
            }
        }
        assert!(wrong.is_empty(), "fixtures/companions/rlk-lint.toml is out of date:\n{}", wrong.join("\n"));
    }

    /// The table of a source, in either of the two forms that TOML has for a list of tables with ids.
    fn find_source<'t>(all: &'t toml::Value, id: &str) -> Option<&'t toml::Value> {
        match all {
            toml::Value::Array(list) => list.iter().find(|table| table.get("id").and_then(toml::Value::as_str) == Some(id)),
            other => other.get(id),
        }
    }

    #[test]
    fn everything_in_the_folder_is_embedded() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/companions");
        let mut todo = vec![root.clone()];
        while let Some(dir) = todo.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    todo.push(path);
                    continue;
                }
                let inside = path.strip_prefix(&root).unwrap();
                let embedded = COMPANIONS.get_file(inside).map(|file| file.contents().to_vec());
                assert!(
                    embedded.is_some_and(|bytes| bytes == std::fs::read(&path).unwrap()),
                    "{} is not embedded as it is: touch src/sources/embedded.rs and build again",
                    inside.display()
                );
            }
        }
    }
}
