//! A tree as one flat list.
//!
//! In: entries of a git tree, with their full paths. Out: the same, in byte order of paths, with symbolic links resolved on request. Refused:
//! links that leave the tree, dangle, loop or lead to a folder; nothing is looked up outside the list.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use git2::Oid;

/// Mode of a symbolic link.
pub const LINK: u32 = 0o120_000;
/// Mode of a submodule.
pub const SUBMODULE: u32 = 0o160_000;
/// Mode of a file with the executable bit.
pub const EXECUTABLE: u32 = 0o100_755;
/// Mode of a regular file.
pub const REGULAR: u32 = 0o100_644;

/// Most links that are followed for one path, as on Linux.
const MAX_LINKS: usize = 40;

/// One file, link or submodule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Git mode.
    pub mode: u32,
    /// Object id.
    pub id: Oid,
    /// Content, if a patch produced it; otherwise it is in the object database.
    pub content: Option<Arc<[u8]>>,
    /// Lines (from 1) that a patch added.
    pub added: BTreeSet<u32>,
}

impl Entry {
    /// An entry that lies in the object database.
    #[must_use]
    pub const fn stored(mode: u32, id: Oid) -> Self {
        Self { mode, id, content: None, added: BTreeSet::new() }
    }

    /// Whether this is a regular or executable file.
    #[must_use]
    pub const fn is_file(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }
}

/// All entries of a tree by path, in byte order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Path, with forward slashes, to entry.
    pub entries: BTreeMap<Vec<u8>, Entry>,
}

impl Snapshot {
    /// Whether `path` is a folder, that is, a prefix of some entry's path. The root (an empty path) is one.
    #[must_use]
    pub fn is_folder(&self, path: &[u8]) -> bool {
        if path.is_empty() {
            return true;
        }
        let mut prefix = path.to_vec();
        prefix.push(b'/');
        self.entries.range(prefix.clone()..).next().is_some_and(|(first, _)| first.starts_with(&prefix))
    }

    /// Follows the link at `path` to a regular file and gives that file's path. `read` gives the target that a link entry holds, or why it cannot.
    ///
    /// # Errors
    /// Why the link cannot be followed, as the rest of a sentence that starts with "the link".
    pub fn follow(&self, path: &[u8], read: &mut dyn FnMut(&Entry) -> Result<Vec<u8>, String>) -> Result<Vec<u8>, String> {
        let mut links = 0;
        let mut at: Vec<Vec<u8>> = Vec::new();
        let mut todo: Vec<Vec<u8>> = path.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec).collect();
        while let Some(part) = todo.pop() {
            match part.as_slice() {
                b"" | b"." => continue,
                b".." => {
                    if at.pop().is_none() {
                        return Err("leads out of the tree".to_owned());
                    }
                    continue;
                }
                _ => at.push(part),
            }
            let here = at.join(&b'/');
            match self.entries.get(&here) {
                Some(entry) if entry.mode == LINK => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err("loops".to_owned());
                    }
                    let target = read(entry)?;
                    if target.first() == Some(&b'/') {
                        return Err("leads out of the tree: its target is absolute".to_owned());
                    }
                    if target.is_empty() || target.contains(&0) {
                        return Err("has no valid target".to_owned());
                    }
                    at.pop();
                    todo.extend(target.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec));
                }
                Some(entry) if entry.mode == SUBMODULE => return Err("leads into a submodule".to_owned()),
                Some(_) if todo.iter().any(|part| !part.is_empty()) => return Err("leads through a file as if it were a folder".to_owned()),
                Some(_) => return Ok(here),
                None if self.is_folder(&here) => {}
                None => return Err(format!("dangles: there is no `{}` in the tree", String::from_utf8_lossy(&here))),
            }
        }
        Err("leads to a folder; the files in it are read under their own paths".to_owned())
    }
}
