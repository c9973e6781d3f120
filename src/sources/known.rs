//! Texts that another revision has too.
//!
//! In: the texts of one revision with their blob ids. Out: the text of a blob that is asked for again, so that it is neither unpacked nor decoded
//! twice. Refused: a text that was decoded as another kind of file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::{FileKind, LoadedSource};
use crate::text::{Files, TextFile};

/// Texts by blob id and kind.
#[derive(Clone, Debug, Default)]
pub struct KnownTexts {
    texts: BTreeMap<(Arc<str>, FileKind), TextFile>,
}

impl KnownTexts {
    /// The texts of sources that were read. Texts are shared, not copied.
    #[must_use]
    pub fn of(sources: &[LoadedSource], files: &Files) -> Self {
        let read = sources.iter().flat_map(|source| &source.files);
        Self { texts: read.map(|file| ((Arc::clone(&file.blob), file.kind), files.get(file.file).clone())).collect() }
    }

    /// The text of a blob, if it was read as a file of this kind.
    #[must_use]
    pub fn get(&self, blob: &str, kind: FileKind) -> Option<&TextFile> {
        self.texts.get(&(blob.into(), kind))
    }
}

/// A revision of the checked-out source that is read in place of what is there now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// Id of the source in the profile.
    pub source: String,
    /// Its repository.
    pub repository: PathBuf,
    /// Full id of the commit.
    pub commit: String,
    /// Folder of the profile in that commit's tree, without a final slash (empty for the root); `None` if the commit has no profile, so that
    /// files beside it are those that are there now.
    pub folder: Option<String>,
}

impl Past {
    /// Path within the commit's tree of a file that is named relative to the profile; `None` if it lies outside the tree or is not looked for there.
    #[must_use]
    pub fn beside_profile(&self, path: &str) -> Option<String> {
        let folder = self.folder.as_deref()?;
        let mut parts: Vec<&str> = Vec::new();
        for part in folder.split('/').chain(path.split('/')) {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop()?;
                }
                part => parts.push(part),
            }
        }
        (!path.starts_with('/')).then(|| parts.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_beside_the_profile_stay_in_the_tree() {
        let past = |folder: Option<&str>| Past {
            source: "main".into(),
            repository: PathBuf::new(),
            commit: String::new(),
            folder: folder.map(str::to_owned),
        };
        assert_eq!(past(Some("")).beside_profile("patches/a.patch").as_deref(), Some("patches/a.patch"));
        assert_eq!(past(Some("lint/x")).beside_profile("./../a.patch").as_deref(), Some("lint/a.patch"));
        assert_eq!(past(Some("lint")).beside_profile("../../a.patch"), None);
        assert_eq!(past(Some("lint")).beside_profile("/a.patch"), None);
        assert_eq!(past(None).beside_profile("a.patch"), None);
    }
}
