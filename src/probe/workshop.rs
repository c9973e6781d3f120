//! The private folder in which kernels are compiled.
//!
//! In: a folder, and the sources as text. Out: sources, driver and an empty cache in it, and whether what an earlier run left can be used again. Refused: a
//! folder that holds something else, and paths of sources that lead out of it.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::child::DRIVER;
use super::hex;

/// Marks a folder as one of these.
const STATE: &str = "rlk-lint-probe.json";
/// Name of the record in it.
const RECORD: &str = "record.json";

/// A Python file of the pinned source.
#[derive(Clone, Copy, Debug)]
pub struct SourceFile<'a> {
    /// Path within the source.
    pub path: &'a str,
    /// Text.
    pub text: &'a str,
}

/// What an earlier run left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    /// Digest of everything that the result depends on; empty while there is no result.
    inputs: String,
    /// Triton's native library, whose size and time of change are part of `inputs`.
    native: PathBuf,
}

/// The folder.
pub struct Workshop {
    root: PathBuf,
}

impl Workshop {
    /// Opens a folder that is absent, empty, or one of these.
    ///
    /// # Errors
    /// If it holds something else or cannot be written to.
    pub fn open(root: &Path) -> io::Result<Self> {
        fs::create_dir_all(root)?;
        let root = fs::canonicalize(root)?;
        let state = root.join(STATE);
        if !state.is_file() {
            if fs::read_dir(&root)?.next().is_some() {
                return Err(io::Error::other("it holds something that this program did not write; name an empty folder"));
            }
            write_state(&state, &State::default())?;
        }
        Ok(Self { root })
    }

    /// The folder itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Triton's cache in it.
    #[must_use]
    pub fn cache(&self) -> PathBuf {
        self.root.join("cache")
    }

    /// Folders of the import path.
    #[must_use]
    pub fn roots(&self, roots: &[String]) -> Vec<PathBuf> {
        roots.iter().map(|root| if root == "." { self.root.join("sources") } else { self.root.join("sources").join(root) }).collect()
    }

    /// Removes what an earlier run left, and writes sources and driver.
    ///
    /// # Errors
    /// If something cannot be written, or a path leads out of the folder.
    pub fn prepare(&self, files: &[SourceFile<'_>]) -> io::Result<()> {
        write_state(&self.root.join(STATE), &State::default())?;
        for name in ["sources", "cache", "replay"] {
            match fs::remove_dir_all(self.root.join(name)) {
                Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
                _ => fs::create_dir(self.root.join(name))?,
            }
        }
        fs::write(self.root.join("driver.py"), DRIVER)?;
        for file in files {
            let inside = Path::new(file.path);
            if !inside.components().all(|part| matches!(part, Component::Normal(_))) {
                return Err(io::Error::other(format!("the source path '{}' leads out of the source", crate::text::sanitize(file.path))));
            }
            let path = self.root.join("sources").join(inside);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(path, file.text)?;
        }
        Ok(())
    }

    /// The record that an earlier run left, if everything that it depends on is unchanged. `inputs` is the digest of what this program knows.
    #[must_use]
    pub fn earlier(&self, inputs: &str, python: &Path) -> Option<String> {
        let state: State = serde_json::from_str(&fs::read_to_string(self.root.join(STATE)).ok()?).ok()?;
        let now = installed(inputs, python, &state.native).ok()?;
        (now == state.inputs).then(|| fs::read_to_string(self.root.join(RECORD)).ok()).flatten()
    }

    /// Keeps a record for the next run.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, record: &str, inputs: &str, python: &Path, native: &Path) -> io::Result<()> {
        replace(&self.root.join(RECORD), record)?;
        let state = State { inputs: installed(inputs, python, native)?, native: native.to_path_buf() };
        write_state(&self.root.join(STATE), &state)
    }
}

fn write_state(path: &Path, state: &State) -> io::Result<()> {
    replace(path, &serde_json::to_string(state).unwrap_or_default())
}

/// Beside and renamed, so that there is never half of it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension("new");
    fs::write(&beside, text)?;
    fs::rename(beside, path)
}

/// `inputs` together with the interpreter and the compiler as they are installed. The compiler has hundreds of megabytes, so its size and time of change
/// stand for its content.
fn installed(inputs: &str, python: &Path, native: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    hasher.update(inputs);
    for path in [fs::canonicalize(python)?, native.to_path_buf()] {
        let about = fs::metadata(&path)?;
        let changed = about.modified()?.duration_since(UNIX_EPOCH).map_or(0, |age| age.as_nanos());
        hasher.update(format!("\n{}\n{}\n{changed}", path.display(), about.len()));
    }
    Ok(hex(&hasher.finalize()))
}

/// SHA-256 over files, with their paths.
#[must_use]
pub fn digest(files: &[SourceFile<'_>]) -> String {
    let mut hasher = Sha256::new();
    for file in files {
        for part in [file.path, file.text] {
            hasher.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
            hasher.update(part);
        }
    }
    hex(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_something_else_in_it_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.tex"), "x").unwrap();
        assert!(Workshop::open(folder.path()).is_err());
        assert_eq!(fs::read_to_string(folder.path().join("thesis.tex")).unwrap(), "x");
    }

    #[test]
    fn a_source_path_cannot_leave_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let workshop = Workshop::open(&folder.path().join("work")).unwrap();
        for path in ["../evil.py", "/evil.py", "a/../../evil.py"] {
            let error = workshop.prepare(&[SourceFile { path, text: "" }]).unwrap_err();
            assert!(error.to_string().contains("leads out"), "{error}");
        }
        assert!(!folder.path().join("evil.py").exists());
        workshop.prepare(&[SourceFile { path: "a/b.py", text: "x = 1" }]).unwrap();
        assert_eq!(fs::read_to_string(workshop.root().join("sources/a/b.py")).unwrap(), "x = 1");
    }

    #[test]
    fn a_record_is_used_again_only_if_nothing_changed() {
        let folder = tempfile::tempdir().unwrap();
        let (python, native) = (folder.path().join("python"), folder.path().join("libtriton.so"));
        fs::write(&python, "p").unwrap();
        fs::write(&native, "n").unwrap();
        let workshop = Workshop::open(&folder.path().join("work")).unwrap();
        assert_eq!(workshop.earlier("one", &python), None);
        workshop.keep("the record", "one", &python, &native).unwrap();
        assert_eq!(workshop.earlier("one", &python).as_deref(), Some("the record"));
        assert_eq!(workshop.earlier("two", &python), None);
        fs::write(&native, "longer").unwrap();
        assert_eq!(workshop.earlier("one", &python), None);
        workshop.keep("the record", "one", &python, &native).unwrap();
        workshop.prepare(&[]).unwrap();
        assert_eq!(workshop.earlier("one", &python), None, "a compilation that did not end leaves nothing to use");
    }
}
