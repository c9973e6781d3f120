//! Object ids by hashing.
//!
//! In: blob bytes, or a flat snapshot. Out: the ids that git would give, computed here and written nowhere. Refused: a path that is both a
//! file and a folder, a path that git would not store.

use git2::Oid;
use sha1::{Digest as _, Sha1};

use super::snapshot::Snapshot;

/// Id of a blob with these bytes.
#[must_use]
pub fn blob_id(bytes: &[u8]) -> Oid {
    object_id("blob", bytes)
}

fn object_id(kind: &str, bytes: &[u8]) -> Oid {
    let mut hash = Sha1::new();
    hash.update(format!("{kind} {}\0", bytes.len()));
    hash.update(bytes);
    // Twenty bytes are always an id.
    Oid::from_bytes(&hash.finalize()).unwrap_or(Oid::ZERO_SHA1)
}

/// One folder that is being filled.
#[derive(Default)]
struct Folder {
    /// Entries so far: sort key (folders end in a slash, as git orders them), mode, id.
    entries: Vec<(Vec<u8>, u32, Oid)>,
}

impl Folder {
    fn id(mut self) -> Oid {
        self.entries.sort_unstable();
        let mut bytes = Vec::new();
        for (key, mode, id) in &self.entries {
            bytes.extend_from_slice(format!("{mode:o} ").as_bytes());
            bytes.extend_from_slice(key.strip_suffix(b"/").unwrap_or(key));
            bytes.push(0);
            bytes.extend_from_slice(id.as_bytes());
        }
        object_id("tree", &bytes)
    }
}

/// Id of the tree that holds exactly the snapshot's entries.
///
/// # Errors
/// The path that is both a file and a folder.
pub fn tree_id(snapshot: &Snapshot) -> Result<Oid, String> {
    let mut open: Vec<(Vec<u8>, Folder)> = vec![(Vec::new(), Folder::default())];
    for (path, entry) in &snapshot.entries {
        if snapshot.is_folder(path) {
            return Err(String::from_utf8_lossy(path).into_owned());
        }
        let mut parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        let name = parts.pop().unwrap_or_default();
        let shared = open.iter().skip(1).zip(&parts).take_while(|((name, _), part)| name.as_slice() == **part).count();
        close(&mut open, shared + 1);
        for part in parts.iter().skip(shared) {
            open.push((part.to_vec(), Folder::default()));
        }
        if let Some((_, folder)) = open.last_mut() {
            folder.entries.push((name.to_vec(), entry.mode, entry.id));
        }
    }
    close(&mut open, 1);
    Ok(open.pop().map(|(_, folder)| folder).unwrap_or_default().id())
}

/// Closes folders until `keep` are open.
fn close(open: &mut Vec<(Vec<u8>, Folder)>, keep: usize) {
    while open.len() > keep {
        let Some((mut name, folder)) = open.pop() else { return };
        let id = folder.id();
        name.push(b'/');
        if let Some((_, parent)) = open.last_mut() {
            parent.entries.push((name, 0o40_000, id));
        }
    }
}
