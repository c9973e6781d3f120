//! A Triton cache, read as evidence.
//!
//! In: a folder. Out: every compiled kernel in it, with what its binary, its metadata and its text say, and everything that does not fit together. Refused:
//! symbolic links, special files, files too large to be what they are called, names that lead elsewhere. Nothing outside the folder is opened, whatever
//! a file in it says.
//!
//! Triton itself compares none of this: it loads any binary that lies under the right name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use serde_json::Value;

use super::assembly::Assembly;
use super::code_object::CodeObject;
use super::hex;
use super::metadata::Metadata;
use super::ttgir::Dots;

/// Largest file of a cache that is read, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Folders of a cache that are looked at; more is no cache of one workload.
const MAX_FOLDERS: usize = 100_000;
/// Files of one folder; Triton writes eight.
const MAX_FILES: usize = 64;
/// What Triton writes beside the metadata of a kernel, and what this reads of it.
const PARTS: [&str; 6] = ["source", "ttir", "ttgir", "llir", "amdgcn", "hsaco"];

/// How a contradiction ends that says no more than that the cache lies where Triton did not make it.
pub const COPIED: &str = "the cache was copied";

/// One compiled kernel.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Name of its folder.
    pub folder: String,
    /// What was asked for.
    pub metadata: Metadata,
    /// What was made.
    pub code: CodeObject,
    /// Its dot products; `None` if there is no text of them.
    pub dots: Option<Dots>,
    /// Text of the metadata, for places in reports.
    pub text: String,
}

impl Entry {
    /// Path of the metadata, relative to the cache.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/{}.json", self.folder, self.metadata.name)
    }
}

/// Something about one folder that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Name of the folder.
    pub folder: String,
    /// Kernel, as far as it is known.
    pub kernel: String,
    /// What is wrong, as one clause.
    pub what: String,
}

/// What a cache holds.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    /// Kernels in order of folder.
    pub entries: Vec<Entry>,
    /// Things that disagree.
    pub contradictions: Vec<Problem>,
    /// Things that could not be read.
    pub unread: Vec<Problem>,
    /// Folders that hold no kernel, such as those of launchers.
    pub others: usize,
}

/// Reads a cache.
///
/// # Errors
/// If the folder itself cannot be listed.
pub fn read(root: &Path) -> io::Result<Cache> {
    let mut cache = Cache::default();
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if kind.is_symlink() {
            cache.unread.push(problem(&name, "", "is a symbolic link, which is not followed"));
        } else if kind.is_dir() {
            names.insert(name);
        }
        if names.len() > MAX_FOLDERS {
            return Err(io::Error::other(format!("it holds more than {MAX_FOLDERS} folders")));
        }
    }
    for name in names {
        read_folder(root, &name, &mut cache);
    }
    cache.contradictions.sort();
    cache.unread.sort();
    Ok(cache)
}

fn problem(folder: &str, kernel: &str, what: impl Into<String>) -> Problem {
    Problem { folder: folder.to_owned(), kernel: kernel.to_owned(), what: what.into() }
}

fn read_folder(root: &Path, folder: &str, cache: &mut Cache) {
    let path = root.join(folder);
    let files = match list(&path) {
        Ok(files) => files,
        Err(cause) => {
            cache.unread.push(problem(folder, "", format!("cannot be listed: {cause}")));
            return;
        }
    };
    let groups: Vec<&str> = files.iter().filter_map(|name| name.strip_prefix("__grp__")?.strip_suffix(".json")).collect();
    let plain = |name: &&String| !name.starts_with("__grp__");
    let kernels: BTreeSet<&str> = files
        .iter()
        .filter(plain)
        .filter_map(|name| name.strip_suffix(".hsaco").or_else(|| name.strip_suffix(".json")))
        .chain(groups)
        .collect();
    if kernels.is_empty() {
        cache.others += 1;
        return;
    }
    for kernel in &kernels {
        if let Err(what) = read_kernel(&path, folder, kernel, &files, cache) {
            cache.unread.push(problem(folder, kernel, what));
        }
    }
    let belongs = |name: &str| {
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        kernels.contains(stem.strip_prefix("__grp__").unwrap_or(stem))
    };
    for name in files.iter().filter(|name| !belongs(name)) {
        cache.contradictions.push(problem(
            folder,
            "",
            format!("the folder holds '{}', which belongs to no kernel", crate::text::sanitize(name)),
        ));
    }
}

/// Names of the files in a folder. Links and special files count as listed: they are refused when they are opened.
fn list(path: &Path) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(path)? {
        names.insert(entry?.file_name().to_string_lossy().into_owned());
        if names.len() > MAX_FILES {
            return Err(io::Error::other(format!("it holds more than {MAX_FILES} files")));
        }
    }
    Ok(names)
}

/// The content of a regular file.
fn content(path: &Path, name: &str) -> Result<Vec<u8>, String> {
    let path = path.join(name);
    let refused = |cause: &dyn std::fmt::Display| format!("'{}' cannot be read: {cause}", crate::text::sanitize(name));
    let kind = fs::symlink_metadata(&path).map_err(|cause| refused(&cause))?;
    if kind.file_type().is_symlink() {
        return Err(refused(&"it is a symbolic link"));
    }
    if !kind.is_file() {
        return Err(refused(&"it is not a regular file"));
    }
    if kind.len() > MAX_FILE_BYTES {
        return Err(refused(&format!("it has more than {} MiB", MAX_FILE_BYTES >> 20)));
    }
    let mut bytes = Vec::new();
    let file = File::open(&path).map_err(|cause| refused(&cause))?;
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(|cause| refused(&cause))?;
    Ok(bytes)
}

fn text(path: &Path, name: &str) -> Result<String, String> {
    String::from_utf8(content(path, name)?).map_err(|_| format!("'{}' is not text", crate::text::sanitize(name)))
}

fn read_kernel(path: &Path, folder: &str, kernel: &str, files: &BTreeSet<String>, cache: &mut Cache) -> Result<(), String> {
    let name = |extension: &str| format!("{kernel}.{extension}");
    let has = |extension: &str| files.contains(&name(extension));
    if !has("json") {
        return Err(format!("'{}' is missing", name("json")));
    }
    let written = text(path, &name("json"))?;
    let metadata = Metadata::read(&written).map_err(|what| format!("'{}' {what}", name("json")))?;
    if !has("hsaco") {
        return Err(format!("'{}' is missing: there is no binary", name("hsaco")));
    }
    let binary = content(path, &name("hsaco"))?;
    let code = CodeObject::read(&binary).map_err(|cause| format!("'{}' is no code object: {cause}", name("hsaco")))?;
    let mut contradictions = identity(folder, kernel, &metadata, &code);
    if has("amdgcn") {
        contradictions.extend(Assembly::read(&text(path, &name("amdgcn"))?).differences(&code, &metadata.name));
    }
    let dots = if has("ttgir") { Some(Dots::read(&text(path, &name("ttgir"))?)) } else { None };
    if let Some(dots) = &dots {
        contradictions.extend(layout(dots, &metadata, &code));
    }
    let group = format!("__grp__{kernel}.json");
    if files.contains(&group) {
        contradictions.extend(children(path, kernel, files, &text(path, &group)?)?);
    } else {
        contradictions.push(format!("'{group}' is missing, so that Triton does not find the kernel"));
    }
    cache.contradictions.extend(contradictions.into_iter().map(|what| problem(folder, kernel, what)));
    cache.entries.push(Entry { folder: folder.to_owned(), metadata, code, dots, text: written });
    Ok(())
}

/// Whether folder, file name, metadata and binary speak of the same kernel.
fn identity(folder: &str, kernel: &str, metadata: &Metadata, code: &CodeObject) -> Vec<String> {
    let mut found = Vec::new();
    match key_of_folder(folder) {
        Some(key) if key == metadata.hash => {}
        Some(key) => found.push(format!("the folder stands for key {}, the metadata says {}", short(&key), short(&metadata.hash))),
        None => found.push("the folder's name is no key of Triton".to_owned()),
    }
    // Triton cuts long names for the file, and only there.
    if !metadata.name.starts_with(kernel) {
        found.push(format!("the metadata is about kernel '{}'", crate::text::sanitize(&metadata.name)));
    }
    let processor = code.processor.name();
    if metadata.arch != processor {
        found.push(format!("the metadata says {}, the binary is for {processor}", crate::text::sanitize(&metadata.arch)));
    }
    match code.kernels.iter().find(|known| known.name == metadata.name) {
        None => {
            let names: Vec<&str> = code.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
            found.push(format!("the binary holds {} and not '{}'", names.join(", "), crate::text::sanitize(&metadata.name)));
        }
        Some(known) => {
            let lanes = metadata.num_warps.saturating_mul(metadata.wavefront);
            if known.workgroup != lanes {
                found.push(format!("the metadata asks for {lanes} lanes in a workgroup, the binary is for {}", known.workgroup));
            }
            if known.wavefront != metadata.wavefront {
                found.push(format!("waves have {} lanes in the metadata and {} in the binary", metadata.wavefront, known.wavefront));
            }
        }
    }
    found
}

/// Whether the dialect's text, the options and the binary speak of the same dot products.
fn layout(dots: &Dots, metadata: &Metadata, code: &CodeObject) -> Vec<String> {
    let mut found = Vec::new();
    let matrix = dots.count > dots.without_matrix + dots.unclear;
    if matrix == code.matrix.is_empty() {
        let said = |yes: bool| if yes { "has" } else { "has no" };
        found.push(format!("the ttgir {} matrix layout, the binary {} matrix instruction", said(matrix), said(!code.matrix.is_empty())));
    }
    // On MI300 an operand of 16-bit elements holds 4 × kpack of them; other processors choose for themselves.
    let narrow = !dots.elements.is_empty() && dots.elements.iter().all(|element| matches!(element.as_str(), "bf16" | "f16"));
    if let Some(kpack) = metadata.numbers.get("kpack").filter(|_| metadata.arch == "gfx942" && narrow) {
        let expected = kpack.saturating_mul(4);
        if let Some(width) = dots.k_widths.iter().find(|width| **width != expected) {
            found.push(format!("the metadata says kpack {kpack}, the ttgir has kWidth {width} and not {expected}"));
        }
    }
    found
}

/// Whether the group file names this folder's files, all of them and no others. The paths in it are compared and never opened.
fn children(path: &Path, kernel: &str, files: &BTreeSet<String>, text: &str) -> Result<Vec<String>, String> {
    let root: Value = serde_json::from_str(text).map_err(|cause| format!("'__grp__{kernel}.json' is not JSON: {cause}"))?;
    let listed = root.get("child_paths").and_then(Value::as_object).ok_or_else(|| format!("'__grp__{kernel}.json' lists no files"))?;
    let here = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let mut found = Vec::new();
    let mut elsewhere = BTreeMap::new();
    for (name, place) in listed {
        let place = Path::new(place.as_str().unwrap_or(""));
        let shown = crate::text::sanitize(name);
        let single = Path::new(name).components().count() == 1 && !name.starts_with('.');
        if !single || place.file_name().and_then(|last| last.to_str()) != Some(name.as_str()) {
            found.push(format!("the group file lists '{shown}' under a path that leads elsewhere"));
        } else if place.parent() != Some(here.as_path()) && place.parent() != Some(path) {
            elsewhere.insert(name.as_str(), place);
        }
        if !files.contains(name) {
            found.push(format!("the group file lists '{shown}', which is missing"));
        }
    }
    if !elsewhere.is_empty() {
        // The paths themselves are not repeated: a report does not depend on where a cache lies.
        found.push(format!("the group file sends Triton to another folder for {} of {} files: {COPIED}", elsewhere.len(), listed.len()));
    }
    for extension in PARTS {
        let name = format!("{kernel}.{extension}");
        if files.contains(&name) && !listed.contains_key(&name) {
            found.push(format!("'{name}' is not in the group file"));
        }
    }
    Ok(found)
}

/// The key that a folder's name stands for, in hexadecimal: the name is base 32 without padding.
fn key_of_folder(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len() * 5 / 8);
    let (mut held, mut bits) = (0u32, 0u32);
    for letter in name.bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'2'..=b'7' => letter - b'2' + 26,
            _ => return None,
        };
        held = held << 5 | u32::from(value);
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits & 0xff).unwrap_or(0));
            held &= (1 << bits) - 1;
        }
    }
    (bytes.len() == 32).then(|| hex(&bytes))
}

fn short(key: &str) -> String {
    crate::text::sanitize(key).chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_name_is_a_key_in_base_32() {
        // 32 bytes of 0xff are 51 letters '7' (five ones each) and a last one with a single one and four zeros: 'Q'.
        assert_eq!(key_of_folder(&format!("{}Q", "7".repeat(51))), Some("ff".repeat(32)));
        assert_eq!(key_of_folder(&"A".repeat(52)), Some("00".repeat(32)));
        assert_eq!(key_of_folder(&"A".repeat(51)), None);
        assert_eq!(key_of_folder(&"a".repeat(52)), None);
        assert_eq!(key_of_folder("../../etc"), None);
    }
}
