//! The evidence directory.
//!
//! In: a folder with `manifest.json`, which lists every file with role, size and digest; or a folder as an RL-Kernel run leaves it, which has
//! none. Out: files by role, opened only here. Refused: a file that differs from its digest, one that is not listed or not there, paths that
//! leave the folder, links, and anything that is no plain file. A refused file is not read, and its link is told.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::super::hex;
use super::link::{Findings, Link, State};

/// Schema of the manifest.
pub const SCHEMA: &str = "rlk-lint/evidence/v1";
/// Name of the manifest.
pub const MANIFEST: &str = "manifest.json";
/// Largest file that is read as a whole.
pub const LARGEST_DOCUMENT: u64 = 64 << 20;
/// Most files of a directory.
const MOST_FILES: usize = 200_000;

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// What `probe device` saw.
    Device,
    /// What was requested.
    Request,
    /// Static baseline: tiles, kernel names, code identities.
    Baseline,
    /// A file of the Triton cache.
    Cache,
    /// Code compiled again from the recorded specialization data.
    Reproduction,
    /// A recording of one process.
    Recorder,
    /// A binary that a process loaded.
    Object,
    /// rocprofv3, JSON.
    RocprofJson,
    /// rocprofv3, CSV of kernel dispatches.
    RocprofCsv,
    /// rocprofv3, SQLite.
    Rocpd,
    /// torch.profiler.
    TorchTrace,
    /// Standard output and error of the workload.
    Log,
    /// A readback of an integration.
    Readback,
    /// A file of an RL-Kernel run: plan, frozen inputs, launch.
    RunDocument,
    /// Compared bytes.
    Numbers,
    /// What the exerciser was told.
    Plan,
    /// Kept for people; proves nothing.
    Note,
}

impl Role {
    /// The link that misses the file when it is refused.
    #[must_use]
    pub const fn link(self) -> Link {
        match self {
            Self::Device => Link::L0,
            Self::Request | Self::RunDocument | Self::Plan | Self::Note => Link::L1,
            Self::Recorder => Link::L2,
            Self::Cache => Link::L3,
            Self::Baseline => Link::L4,
            Self::Reproduction => Link::L5,
            Self::Object => Link::L6,
            Self::RocprofJson | Self::RocprofCsv | Self::Rocpd | Self::TorchTrace => Link::L7,
            Self::Log | Self::Readback => Link::L8,
            Self::Numbers => Link::L9,
        }
    }
}

/// One file of the evidence.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Path in the folder, with forward slashes.
    pub path: String,
    /// What it is for.
    pub role: Role,
    /// Size.
    pub bytes: u64,
    /// Digest, lower-case hex.
    pub sha256: String,
}

/// The manifest.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: String,
    /// All files but the manifest, in order of path.
    pub files: Vec<Entry>,
}

/// Why a folder is no evidence.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// There is nothing to judge.
    #[error("'{0}' is no evidence directory: it has neither {MANIFEST} nor matrix-plan.json")]
    NoManifest(String),
    /// The system refused.
    #[error("'{path}' cannot be read: {cause}")]
    Unreadable {
        /// Path as given or inside of the folder.
        path: String,
        /// What the system said.
        cause: String,
    },
    /// The manifest is no manifest.
    #[error("{MANIFEST} cannot be understood: {0}")]
    Manifest(String),
}

/// An opened evidence directory.
#[derive(Debug)]
pub struct Evidence {
    root: PathBuf,
    files: Vec<Entry>,
}

/// Whether a path stays inside of the folder and has one spelling only.
fn is_plain(path: &str) -> bool {
    !path.is_empty() && path.split('/').all(|part| !part.is_empty() && part != "." && part != "..") && !path.contains(['\\', '\0'])
}

/// All plain files below `root`, sorted; what is no plain file is told.
fn walk(root: &Path, found: &mut Findings) -> Result<Vec<String>, EvidenceError> {
    let unreadable = |path: &Path, cause: std::io::Error| EvidenceError::Unreadable {
        path: path.strip_prefix(root).unwrap_or(path).display().to_string(),
        cause: cause.to_string(),
    };
    let mut open = vec![root.to_path_buf()];
    let mut files = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).map_err(|cause| unreadable(&folder, cause))? {
            let path = entry.map_err(|cause| unreadable(&folder, cause))?.path();
            let inside = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            let kind = fs::symlink_metadata(&path).map_err(|cause| unreadable(&path, cause))?.file_type();
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() {
                files.push(inside);
            } else {
                found.problem(Link::L1, State::Incomplete, "not-a-plain-file", &inside, "it is a link or a special file and was not read");
            }
            if files.len() > MOST_FILES {
                return Err(EvidenceError::Manifest(format!("the folder holds more than {MOST_FILES} files")));
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Digest of a file, and its size.
///
/// # Errors
/// What the system said.
pub fn digest(path: &Path) -> std::io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let mut state = Sha256::new();
    let mut block = vec![0; 1 << 20];
    let mut size = 0;
    loop {
        let number = file.read(&mut block)?;
        if number == 0 {
            break;
        }
        state.update(&block[..number]);
        size += u64::try_from(number).unwrap_or(u64::MAX);
    }
    Ok((hex(&state.finalize()), size))
}

impl Evidence {
    /// Opens a folder and checks every file against the manifest.
    ///
    /// # Errors
    /// If it is no evidence at all; files that are refused are problems of their links instead.
    pub fn open(root: &Path, found: &mut Findings) -> Result<Self, EvidenceError> {
        let manifest = root.join(MANIFEST);
        if !fs::symlink_metadata(&manifest).is_ok_and(|meta| meta.is_file()) {
            return Err(EvidenceError::NoManifest(root.display().to_string()));
        }
        let text = read_whole(&manifest).map_err(|cause| EvidenceError::Unreadable { path: MANIFEST.to_owned(), cause })?;
        let manifest: Manifest = serde_json::from_slice(&text).map_err(|error| EvidenceError::Manifest(error.to_string()))?;
        if manifest.schema != SCHEMA {
            return Err(EvidenceError::Manifest(format!("its schema is '{}', and this version reads '{SCHEMA}'", manifest.schema)));
        }
        let present = walk(root, found)?;
        let mut files: Vec<Entry> = Vec::new();
        let mut listed = BTreeSet::new();
        for entry in manifest.files {
            let link = entry.role.link();
            let refuse = |found: &mut Findings, reason, what: String| found.problem(link, State::Incomplete, reason, &entry.path, what);
            if !is_plain(&entry.path) {
                refuse(found, "path-leaves-folder", "the manifest's path leaves the folder or is not in its plain form".to_owned());
            } else if !listed.insert(entry.path.clone()) {
                refuse(found, "listed-twice", "the manifest lists it twice".to_owned());
            } else if present.binary_search(&entry.path).is_err() {
                refuse(found, "file-absent", "the manifest lists it, and it is not there".to_owned());
            } else {
                match digest(&root.join(&entry.path)) {
                    Err(cause) => refuse(found, "file-unreadable", format!("it cannot be read: {cause}")),
                    Ok((sha256, bytes)) if sha256 != entry.sha256 || bytes != entry.bytes => {
                        refuse(found, "digest-differs", format!("it has {bytes} bytes and SHA-256 {sha256}; the manifest says otherwise"));
                    }
                    Ok(_) => files.push(entry),
                }
            }
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        for path in &present {
            let accepted = path == MANIFEST || files.binary_search_by(|entry| entry.path.as_str().cmp(path)).is_ok();
            // A file that was refused has its reason already.
            if !accepted && found.holds_file(path) {
                found.problem(
                    Link::L1,
                    State::Incomplete,
                    "file-not-listed",
                    path,
                    "the manifest does not list it, so nothing vouches for it",
                );
            }
        }
        Ok(Self { root: root.to_path_buf(), files })
    }

    /// A folder without a manifest, whose files were told apart by their names.
    #[must_use]
    pub fn of_files(root: &Path, files: Vec<Entry>) -> Self {
        Self { root: root.to_path_buf(), files }
    }

    /// All plain files below a folder, in order.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub fn list(root: &Path, found: &mut Findings) -> Result<Vec<String>, EvidenceError> {
        walk(root, found)
    }

    /// Files of a role in order of path.
    pub fn of(&self, role: Role) -> impl Iterator<Item = &Entry> {
        self.files.iter().filter(move |entry| entry.role == role)
    }

    /// The file at a path, if it was accepted.
    #[must_use]
    pub fn at(&self, path: &str) -> Option<&Entry> {
        self.files.iter().find(|entry| entry.path == path)
    }

    /// Where a file lies, for readers that need a path.
    #[must_use]
    pub fn path(&self, entry: &Entry) -> PathBuf {
        self.root.join(&entry.path)
    }

    /// Where a folder of the evidence lies.
    #[must_use]
    pub fn folder(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A file as a stream.
    ///
    /// # Errors
    /// What the system said.
    pub fn stream(&self, entry: &Entry) -> Result<File, String> {
        File::open(self.path(entry)).map_err(|cause| format!("it cannot be read: {cause}"))
    }

    /// A file as a whole.
    ///
    /// # Errors
    /// If it cannot be read or is larger than a document may be.
    pub fn bytes(&self, entry: &Entry) -> Result<Vec<u8>, String> {
        read_whole(&self.path(entry))
    }
}

fn read_whole(path: &Path) -> Result<Vec<u8>, String> {
    let mut file = File::open(path).map_err(|cause| format!("it cannot be read: {cause}"))?;
    let size = file.seek(std::io::SeekFrom::End(0)).map_err(|cause| format!("it cannot be read: {cause}"))?;
    if size > LARGEST_DOCUMENT {
        return Err(format!("it has {size} bytes, more than the {LARGEST_DOCUMENT} of a document"));
    }
    file.rewind().map_err(|cause| format!("it cannot be read: {cause}"))?;
    let mut bytes = Vec::new();
    file.take(LARGEST_DOCUMENT).read_to_end(&mut bytes).map_err(|cause| format!("it cannot be read: {cause}"))?;
    Ok(bytes)
}
