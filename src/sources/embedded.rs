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

pub(super) static COMPANIONS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/fixtures/companions");

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
