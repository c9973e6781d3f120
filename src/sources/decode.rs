//! Bytes to text.
//!
//! In: the bytes of one file and its kind. Out: text, with a byte order mark kept. Refused, as stated gaps: Git LFS pointers, bytes that do not fit
//! the encoding that the file declares (PEP 263 for Python, UTF-8 for everything else), encodings that are not known here.

use std::borrow::Cow;

use encoding_rs::Encoding;

use super::FileKind;
use crate::findings::GapKind;

/// UTF-8 byte order mark.
const BOM: &[u8] = b"\xEF\xBB\xBF";
/// Start of every Git LFS pointer.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/v1";
/// Largest size of a Git LFS pointer.
const LFS_MAX: usize = 1024;

/// Kind of a file by its name; `None` if the name says nothing that is of interest.
#[must_use]
pub fn kind_by_name(path: &[u8]) -> Option<FileKind> {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let dot = name.iter().rposition(|byte| *byte == b'.')?;
    match name.get(dot + 1..)?.to_ascii_lowercase().as_slice() {
        b"py" => Some(FileKind::Python),
        b"sh" | b"bash" => Some(FileKind::Shell),
        b"json" => Some(FileKind::Json),
        b"toml" => Some(FileKind::Toml),
        b"md" | b"rst" | b"txt" => Some(FileKind::Document),
        _ => None,
    }
}

/// Whether the name has no extension, so that an executable's first line may say what it is.
#[must_use]
pub fn may_be_script(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    !name.is_empty() && !name.contains(&b'.')
}

/// Kind of an executable without extension by its `#!` line.
#[must_use]
pub fn kind_by_first_line(bytes: &[u8]) -> Option<FileKind> {
    let line = bytes.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line.get(..line.len().min(256))?).ok()?;
    let mut words = line.split_whitespace();
    let mut program = words.next()?.rsplit('/').next()?;
    if program == "env" {
        program = words.find(|word| !word.starts_with('-') && !word.contains('='))?.rsplit('/').next()?;
    }
    match program {
        "sh" | "bash" | "dash" | "ash" | "ksh" | "zsh" => Some(FileKind::Shell),
        _ if program.starts_with("python") => Some(FileKind::Python),
        _ => None,
    }
}

/// The text of a file.
///
/// # Errors
/// The kind of gap and its cause, as a clause without a final period.
pub fn decode(kind: FileKind, bytes: &[u8]) -> Result<Cow<'_, str>, (GapKind, String)> {
    if bytes.len() <= LFS_MAX && bytes.starts_with(LFS) {
        return Err((GapKind::LfsPointer, "it is a Git LFS pointer; the content is not in the repository".to_owned()));
    }
    let cookie = if kind == FileKind::Python { cookie(bytes) } else { None };
    let Some(cookie) = cookie else { return utf8(bytes) };
    let name = normalise(&cookie);
    if name == "utf-8" {
        return utf8(bytes);
    }
    if bytes.starts_with(BOM) {
        return Err(encoding(format!("it starts with a UTF-8 byte order mark, but declares encoding `{cookie}`")));
    }
    match name.as_str() {
        "ascii" => {
            if let Some(at) = bytes.iter().position(|byte| !byte.is_ascii()) {
                return Err(encoding(format!("it declares encoding `{cookie}`, but byte {at} is not ASCII")));
            }
            utf8(bytes)
        }
        "iso-8859-1" => Ok(Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect())),
        _ => {
            // UTF-16 cannot declare itself in ASCII, and the replacement encoding stands for those that browsers refuse.
            let known = Encoding::for_label(name.as_bytes()).filter(|known| known.is_ascii_compatible());
            let known = known.ok_or_else(|| encoding(format!("it declares encoding `{cookie}`, which is not known")))?;
            match known.decode_without_bom_handling_and_without_replacement(bytes) {
                Some(text) => Ok(text),
                None => Err(encoding(format!("its bytes are not valid in the declared encoding `{cookie}`"))),
            }
        }
    }
}

fn encoding(cause: String) -> (GapKind, String) {
    (GapKind::Encoding, cause)
}

fn utf8(bytes: &[u8]) -> Result<Cow<'_, str>, (GapKind, String)> {
    std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|error| encoding(format!("byte {} is not valid UTF-8", error.valid_up_to())))
}

/// The encoding that one of the first two lines declares, as in PEP 263: `^[ \t\f]*#.*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)`. The second line counts
/// only if the first holds nothing but a comment or white space.
fn cookie(bytes: &[u8]) -> Option<String> {
    let body = bytes.strip_prefix(BOM).unwrap_or(bytes);
    for line in body.split(|byte| *byte == b'\n').take(2) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let start = line.iter().position(|byte| !matches!(byte, b' ' | b'\t' | 0x0C));
        let Some(comment) = start.and_then(|start| line.get(start..)) else { continue };
        if comment.first() != Some(&b'#') {
            return None;
        }
        if let Some(found) = cookie_in(comment) {
            return Some(found);
        }
    }
    None
}

fn cookie_in(comment: &[u8]) -> Option<String> {
    let mut rest = comment;
    while let Some(at) = rest.windows(6).position(|window| window == b"coding") {
        rest = rest.get(at + 6..)?;
        if !matches!(rest.first(), Some(b':' | b'=')) {
            continue;
        }
        let value = rest.get(1..)?;
        let start = value.iter().position(|byte| !matches!(byte, b' ' | b'\t'))?;
        let value = value.get(start..)?;
        let end =
            value.iter().position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))).unwrap_or(value.len());
        if end > 0 {
            return value.get(..end).map(|name| String::from_utf8_lossy(name).into_owned());
        }
    }
    None
}

/// One spelling for Python's many names of an encoding.
fn normalise(name: &str) -> String {
    let name = name.to_ascii_lowercase().replace('_', "-");
    match name.as_str() {
        "utf8" | "utf-8" | "utf8-sig" | "u8" | "cp65001" => "utf-8".to_owned(),
        "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "iso-latin-1" | "l1" | "8859" | "cp819" => "iso-8859-1".to_owned(),
        "ascii" | "us-ascii" | "646" => "ascii".to_owned(),
        "cp932" | "ms932" | "mskanji" | "sjis" | "shiftjis" | "s-jis" => "shift_jis".to_owned(),
        "cp949" | "euckr" => "euc-kr".to_owned(),
        "eucjp" | "ujis" => "euc-jp".to_owned(),
        "cp936" | "936" => "gbk".to_owned(),
        "cp950" => "big5".to_owned(),
        _ if name.starts_with("utf-8-") => "utf-8".to_owned(),
        _ if name.starts_with("latin-1-") || name.starts_with("iso-8859-1-") || name.starts_with("iso-latin-1-") => "iso-8859-1".to_owned(),
        _ => name,
    }
}
