//! Text and places in it.
//!
//! In: the decoded text of every file that the run looks at. Out: file ids, byte spans, and positions in lines and in bytes, UTF-16 code
//! units or Unicode scalars. Refused: nothing; a span outside its file is clamped to it, so that a report can always be written.

use std::borrow::Cow;
use std::sync::Arc;

/// Index of a file in [`Files`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// A range of bytes of one file's decoded text: `start` inclusive, `end` exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// A span of `file` from byte `start` up to byte `end`.
    #[must_use]
    pub const fn new(file: FileId, start: u32, end: u32) -> Self {
        Self { file, start, end }
    }
}

/// Unit in which a column is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnUnit {
    /// UTF-8 bytes.
    Byte,
    /// UTF-16 code units, as in SARIF, LSP and GitHub.
    Utf16,
    /// Unicode scalar values, as people count.
    Scalar,
}

/// A place as people write it: both numbers count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1, in the unit that was asked for.
    pub column: u32,
}

/// One file: which source it belongs to, where it lies in that source, and its text.
#[derive(Clone, Debug)]
pub struct TextFile {
    /// Id of the source in the profile; empty for the profile itself and files beside it.
    pub source: Arc<str>,
    /// Path relative to the source's root, with forward slashes.
    pub path: Arc<str>,
    /// Decoded text. A byte order mark is kept, as GitHub keeps it when it computes fingerprints.
    pub text: Arc<str>,
    line_starts: Arc<[u32]>,
}

impl TextFile {
    /// A file with its line table. Lines end in LF, CRLF or a lone CR, as in Python.
    #[must_use]
    pub fn new(source: impl Into<Arc<str>>, path: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        let text: Arc<str> = text.into();
        let mut starts = vec![0];
        let bytes = text.as_bytes();
        for (at, byte) in bytes.iter().enumerate() {
            let ends = match byte {
                b'\n' => true,
                b'\r' => bytes.get(at + 1) != Some(&b'\n'),
                _ => false,
            };
            if ends {
                starts.push(u32::try_from(at + 1).unwrap_or(u32::MAX));
            }
        }
        Self { source: source.into(), path: path.into(), text, line_starts: starts.into() }
    }

    /// The same text under another name; it is shared, not copied.
    #[must_use]
    pub fn elsewhere(&self, source: impl Into<Arc<str>>, path: impl Into<Arc<str>>) -> Self {
        Self { source: source.into(), path: path.into(), text: Arc::clone(&self.text), line_starts: Arc::clone(&self.line_starts) }
    }

    /// Number of lines; an empty file has one.
    #[must_use]
    pub fn line_count(&self) -> u32 {
        u32::try_from(self.line_starts.len()).unwrap_or(u32::MAX)
    }

    /// One-based line that holds byte `offset`.
    #[must_use]
    pub fn line_of(&self, offset: u32) -> u32 {
        u32::try_from(self.line_starts.partition_point(|start| *start <= offset)).unwrap_or(u32::MAX)
    }

    /// Byte range of one-based `line`, without its line end; `None` beyond the last line.
    #[must_use]
    pub fn line_range(&self, line: u32) -> Option<(u32, u32)> {
        let index = (line as usize).checked_sub(1)?;
        let start = *self.line_starts.get(index)?;
        let end = self.line_starts.get(index + 1).copied().unwrap_or(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
        let body = self.text.get(start as usize..end as usize).unwrap_or("");
        let body = body.strip_suffix('\n').unwrap_or(body);
        let body = body.strip_suffix('\r').unwrap_or(body);
        Some((start, start + u32::try_from(body.len()).unwrap_or(0)))
    }

    /// Text of one-based `line` without its line end; empty beyond the last line.
    #[must_use]
    pub fn line_text(&self, line: u32) -> &str {
        self.line_range(line).and_then(|(start, end)| self.text.get(start as usize..end as usize)).unwrap_or("")
    }

    /// Position of byte `offset`; an offset inside a character counts as that character's start.
    #[must_use]
    pub fn position(&self, offset: u32, unit: ColumnUnit) -> Position {
        let mut offset = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.line_of(u32::try_from(offset).unwrap_or(u32::MAX));
        let start = self.line_starts.get(line as usize - 1).copied().unwrap_or(0) as usize;
        let before = self.text.get(start..offset).unwrap_or("");
        // Editors and readers of reports take a byte order mark off before they count.
        let mark = start == 0 && unit != ColumnUnit::Byte;
        let before = if mark { before.strip_prefix('\u{FEFF}').unwrap_or(before) } else { before };
        let count = match unit {
            ColumnUnit::Byte => before.len(),
            ColumnUnit::Utf16 => before.chars().map(char::len_utf16).sum(),
            ColumnUnit::Scalar => before.chars().count(),
        };
        Position { line, column: u32::try_from(count + 1).unwrap_or(u32::MAX) }
    }
}

/// Every file of a run, in the order in which they were added, which is the order of the profile's sources and of paths within each.
#[derive(Clone, Debug, Default)]
pub struct Files {
    files: Vec<TextFile>,
}

impl Files {
    /// Adds a file and says which id it got.
    pub fn add(&mut self, file: TextFile) -> FileId {
        let id = FileId(u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        self.files.push(file);
        id
    }

    /// The file with this id.
    ///
    /// # Panics
    /// Never for an id that this table gave out.
    #[must_use]
    pub fn get(&self, id: FileId) -> &TextFile {
        &self.files[id.0 as usize]
    }

    /// All files with their ids, in order.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &TextFile)> {
        self.files.iter().enumerate().map(|(at, file)| (FileId(u32::try_from(at).unwrap_or(u32::MAX)), file))
    }

    /// Number of files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there is no file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Text that a span covers.
    #[must_use]
    pub fn slice(&self, span: Span) -> &str {
        self.get(span.file).text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// `source:path:line`, the form used in messages and inventories.
    #[must_use]
    pub fn place(&self, span: Span) -> String {
        let file = self.get(span.file);
        let line = file.line_of(span.start);
        if file.source.is_empty() { format!("{}:{line}", file.path) } else { format!("{}:{}:{line}", file.source, file.path) }
    }
}

/// Replaces what could steer a terminal or reorder text on screen (control and bidirectional characters) by visible `\u{...}` escapes.
/// Tabs stay; line ends are escaped, since the result is meant for one line.
#[must_use]
pub fn sanitize(text: &str) -> Cow<'_, str> {
    let steers = |c: char| {
        (c.is_control() && c != '\t')
            || matches!(c, '\u{061C}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
    };
    if !text.chars().any(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if steers(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_by_hand() {
        // Line 2 is `é😀 x`: é is 2 bytes and 1 unit, 😀 is 4 bytes and 2 units, so x is at byte 8, unit 5, scalar 4.
        let file = TextFile::new("s", "a.py", "a\r\né😀 x\rlast");
        let at = u32::try_from(file.text.find('x').unwrap()).unwrap();
        assert_eq!(file.position(at, ColumnUnit::Byte), Position { line: 2, column: 8 });
        assert_eq!(file.position(at, ColumnUnit::Utf16), Position { line: 2, column: 5 });
        assert_eq!(file.position(at, ColumnUnit::Scalar), Position { line: 2, column: 4 });
        assert_eq!(file.line_count(), 3);
        assert_eq!(file.line_text(1), "a");
        assert_eq!(file.line_text(2), "é😀 x");
        assert_eq!(file.line_text(3), "last");
        assert_eq!(file.line_text(4), "");
    }

    #[test]
    fn what_stands_before_a_token_counts_as_editors_count_it() {
        // Text, then line, byte, UTF-16 and scalar column of the X, counted by hand.
        for (text, line, byte, utf16, scalar) in [
            ("é = 'é'; X", 1, 12, 10, 10),
            ("😀X", 1, 5, 3, 2),
            ("e\u{301}X", 1, 4, 3, 3),
            ("\t\tX", 1, 3, 3, 3),
            ("a\u{C}X", 1, 3, 3, 3),
            ("a\r\n\r\nX", 3, 1, 1, 1),
            ("\u{FEFF}X", 1, 4, 1, 1),
            ("\u{FEFF}é😀\tX", 1, 11, 5, 4),
            ("a\n\u{FEFF}X", 2, 4, 2, 2),
        ] {
            let file = TextFile::new("s", "a.py", text);
            let at = u32::try_from(text.find('X').unwrap()).unwrap();
            let found = |unit| file.position(at, unit);
            let wanted = |column| Position { line, column };
            assert_eq!(found(ColumnUnit::Byte), wanted(byte), "{text:?}");
            assert_eq!(found(ColumnUnit::Utf16), wanted(utf16), "{text:?}");
            assert_eq!(found(ColumnUnit::Scalar), wanted(scalar), "{text:?}");
        }
    }

    #[test]
    fn an_offset_inside_a_character_or_beyond_the_end_is_clamped() {
        let file = TextFile::new("s", "a.py", "é");
        assert_eq!(file.position(1, ColumnUnit::Scalar).column, 1);
        assert_eq!(file.position(99, ColumnUnit::Scalar).column, 2);
    }

    #[test]
    fn bidi_and_control_characters_become_visible() {
        assert_eq!(sanitize("a\u{202E}b\x1b[0m"), "a\\u{202e}b\\u{1b}[0m");
        assert!(matches!(sanitize("plain\té😀"), Cow::Borrowed(_)));
    }
}
