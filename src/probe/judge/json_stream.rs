//! Elements of a large JSON document, one at a time.
//!
//! In: a reader and the paths of the elements that are wanted. Out: the bytes of each such element, in order; the rest is skipped and only its
//! nesting is looked at. Refused: a document that ends early or continues after its end, brackets that do not match, an element above the limit.
//! Memory is that of the largest element; nesting is followed with a list, so that no depth can exhaust the stack.

use std::io::Read;

/// Bytes that are read at a time.
const BLOCK: usize = 1 << 20;
/// Largest element.
pub const LARGEST_ELEMENT: usize = 64 << 20;
/// Deepest nesting that is followed.
const DEEPEST: usize = 4096;

/// Why a document could not be read.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The system could not read on.
    #[error("it could not be read: {0}")]
    Read(#[from] std::io::Error),
    /// It ends in the middle.
    #[error("it is cut short: it ends at byte {0} with brackets open")]
    Truncated(u64),
    /// It is no JSON.
    #[error("it is no JSON at byte {at}: {what}")]
    Syntax {
        /// Offset in bytes.
        at: u64,
        /// What was expected.
        what: &'static str,
    },
    /// One element is too large.
    #[error("the element at byte {0} is larger than 64 MiB")]
    Oversize(u64),
    /// An element was refused by what takes it.
    #[error("the element at byte {at}: {cause}")]
    Element {
        /// Offset in bytes.
        at: u64,
        /// Why.
        cause: String,
    },
}

/// A path: object keys, or `*` for every element of an array.
pub type Path<'a> = &'a [&'a str];

struct Stream<R> {
    input: R,
    buffer: Vec<u8>,
    at: usize,
    /// Offset of the buffer's first byte in the document.
    base: u64,
    /// From here on bytes are kept when the buffer is filled again.
    keep: Option<usize>,
    ended: bool,
}

impl<R: Read> Stream<R> {
    fn offset(&self) -> u64 {
        self.base + u64::try_from(self.at).unwrap_or(u64::MAX)
    }

    /// Reads the next block; whether there was one.
    fn fill(&mut self) -> Result<bool, StreamError> {
        if self.ended {
            return Ok(false);
        }
        let from = self.keep.unwrap_or(self.at).min(self.at);
        if self.at - from > LARGEST_ELEMENT {
            return Err(StreamError::Oversize(self.base + u64::try_from(from).unwrap_or(u64::MAX)));
        }
        self.buffer.drain(..from);
        self.base += u64::try_from(from).unwrap_or(u64::MAX);
        self.at -= from;
        self.keep = self.keep.map(|_| 0);
        let old = self.buffer.len();
        self.buffer.resize(old + BLOCK, 0);
        let mut filled = old;
        while filled < self.buffer.len() {
            match self.input.read(&mut self.buffer[filled..]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(number) => filled += number,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.buffer.truncate(filled);
        Ok(filled > old)
    }

    fn peek(&mut self) -> Result<Option<u8>, StreamError> {
        loop {
            if let Some(byte) = self.buffer.get(self.at) {
                return Ok(Some(*byte));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// The next byte that is not space, left in place.
    fn next_token(&mut self) -> Result<Option<u8>, StreamError> {
        while let Some(byte) = self.peek()? {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Ok(Some(byte));
            }
            self.at += 1;
        }
        Ok(None)
    }

    fn must(&mut self) -> Result<u8, StreamError> {
        self.next_token()?.ok_or(StreamError::Truncated(self.offset()))
    }

    fn syntax(&self, what: &'static str) -> StreamError {
        StreamError::Syntax { at: self.offset(), what }
    }

    /// Moves behind the string that begins here.
    fn skip_string(&mut self) -> Result<(), StreamError> {
        self.at += 1;
        loop {
            let rest = self.buffer.get(self.at..).unwrap_or_default();
            match rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) {
                Some(found) if rest[found] == b'"' => {
                    self.at += found + 1;
                    return Ok(());
                }
                Some(found) => {
                    // The byte behind a backslash is part of the string, whatever it is.
                    self.at += found + 1;
                    if self.peek()?.is_none() {
                        return Err(StreamError::Truncated(self.offset()));
                    }
                    self.at += 1;
                }
                None => {
                    self.at = self.buffer.len();
                    if !self.fill()? {
                        return Err(StreamError::Truncated(self.offset()));
                    }
                }
            }
        }
    }

    fn skip_scalar(&mut self) -> Result<(), StreamError> {
        let start = self.offset();
        while let Some(byte) = self.peek()? {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.') {
                self.at += 1;
            } else {
                break;
            }
        }
        if self.offset() == start { Err(self.syntax("a value was expected")) } else { Ok(()) }
    }

    /// Moves behind the value that begins here.
    fn skip_value(&mut self) -> Result<(), StreamError> {
        match self.must()? {
            b'"' => self.skip_string(),
            b'{' | b'[' => self.skip_container(),
            _ => self.skip_scalar(),
        }
    }

    fn skip_container(&mut self) -> Result<(), StreamError> {
        let mut open: Vec<u8> = Vec::new();
        loop {
            let rest = self.buffer.get(self.at..).unwrap_or_default();
            let Some(found) = rest.iter().position(|byte| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']')) else {
                self.at = self.buffer.len();
                if !self.fill()? {
                    return Err(StreamError::Truncated(self.offset()));
                }
                continue;
            };
            let byte = rest[found];
            self.at += found;
            match byte {
                b'"' => self.skip_string()?,
                b'{' | b'[' => {
                    if open.len() >= DEEPEST {
                        return Err(self.syntax("it is nested too deeply"));
                    }
                    open.push(if byte == b'{' { b'}' } else { b']' });
                    self.at += 1;
                }
                close => {
                    if open.pop() != Some(close) {
                        return Err(self.syntax("a bracket does not match the one that is open"));
                    }
                    self.at += 1;
                    if open.is_empty() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// The key that begins here, unescaped enough to be compared: keys with escapes are never wanted.
    fn key(&mut self) -> Result<Vec<u8>, StreamError> {
        if self.must()? != b'"' {
            return Err(self.syntax("a key was expected"));
        }
        self.keep = Some(self.at);
        self.skip_string()?;
        let start = self.keep.take().unwrap_or(self.at);
        Ok(self.buffer[start + 1..self.at - 1].to_vec())
    }
}

/// What is open on the way to an element.
struct Frame {
    object: bool,
    /// Paths whose beginning leads here, as bits.
    paths: u64,
    /// Values that began in it.
    begun: usize,
}

/// Where an element was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Number of the path.
    pub path: usize,
    /// Position in the outermost array on the way to it; 0 without one.
    pub outer: usize,
}

/// Takes the place and the bytes of one element, or says why it cannot.
pub type Each<'e> = dyn FnMut(Found, &[u8]) -> Result<(), String> + 'e;

/// Calls `each` with the place and the bytes of every element that lies on one of `paths` (64 at most).
///
/// # Errors
/// See [`StreamError`]; elements before the error were delivered.
pub fn elements<R: Read>(input: R, paths: &[Path<'_>], each: &mut Each<'_>) -> Result<(), StreamError> {
    let mut stream = Stream { input, buffer: Vec::new(), at: 0, base: 0, keep: None, ended: false };
    let mut frames: Vec<Frame> = Vec::new();
    let all = paths.iter().enumerate().fold(0u64, |bits, (index, _)| bits | 1 << index);
    // Paths on which the value that comes next lies.
    let mut leads = all;
    let mut value_next = true;
    loop {
        if value_next {
            value_next = false;
            let depth = frames.len();
            let wanted = paths.iter().enumerate().find(|(index, path)| leads >> index & 1 == 1 && path.len() == depth);
            let begin = stream.must()?;
            if let Some((path, _)) = wanted {
                let at = stream.offset();
                stream.keep = Some(stream.at);
                stream.skip_value()?;
                let start = stream.keep.take().unwrap_or(stream.at);
                let outer = frames.iter().find(|frame| !frame.object).map_or(0, |frame| frame.begun - 1);
                each(Found { path, outer }, &stream.buffer[start..stream.at]).map_err(|cause| StreamError::Element { at, cause })?;
            } else if leads != 0 && matches!(begin, b'{' | b'[') {
                stream.at += 1;
                frames.push(Frame { object: begin == b'{', paths: leads, begun: 0 });
            } else {
                stream.skip_value()?;
            }
        }
        let depth = frames.len();
        let Some(frame) = frames.last_mut() else { break };
        let token = stream.must()?;
        let close = if frame.object { b'}' } else { b']' };
        if token == close {
            stream.at += 1;
            frames.pop();
            continue;
        }
        frame.begun += 1;
        if frame.begun == 1 {
            // No comma before the first.
        } else if token == b',' {
            stream.at += 1;
        } else {
            return Err(stream.syntax("a comma or a closing bracket was expected"));
        }
        let (object, open) = (frame.object, frame.paths);
        let key = if object { stream.key()? } else { b"*".to_vec() };
        if object {
            if stream.must()? != b':' {
                return Err(stream.syntax("a colon was expected"));
            }
            stream.at += 1;
        }
        leads = paths
            .iter()
            .enumerate()
            .filter(|(index, path)| open >> index & 1 == 1 && path.get(depth - 1).is_some_and(|part| part.as_bytes() == key))
            .fold(0, |bits, (index, _)| bits | 1 << index);
        value_next = true;
    }
    match stream.next_token()? {
        None => Ok(()),
        Some(_) => Err(stream.syntax("the document has ended already")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out one byte at a time, so that every place is a place where the buffer ends.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let (Some((first, rest)), Some(place)) = (self.0.split_first(), out.first_mut()) else { return Ok(0) };
            *place = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    fn found(text: &str, paths: &[Path<'_>]) -> Result<Vec<(usize, String)>, String> {
        let mut rows = Vec::new();
        let mut each = |found: Found, bytes: &[u8]| {
            assert_eq!(found.outer, 0);
            rows.push((found.path, String::from_utf8_lossy(bytes).into_owned()));
            Ok(())
        };
        elements(Drip(text.as_bytes()), paths, &mut each).map_err(|error| error.to_string())?;
        Ok(rows)
    }

    const TEXT: &str = r#" {"tool": [{"meta": {"pid": 7, "x": "}\"]"}, "skip": [[{"rows": [9]}]],
        "rows": [ {"a": [1, 2]}, 3 , "b,]" , null]}, {"rows": []}], "rows": [5]} "#;

    #[test]
    fn elements_are_found_by_their_path_and_by_no_other() {
        let paths: [Path<'_>; 2] = [&["tool", "*", "meta"], &["tool", "*", "rows", "*"]];
        let rows = found(TEXT, &paths).unwrap();
        let expected = [(0, r#"{"pid": 7, "x": "}\"]"}"#), (1, r#"{"a": [1, 2]}"#), (1, "3"), (1, r#""b,]""#), (1, "null")];
        assert_eq!(rows, expected.map(|(index, text)| (index, text.to_owned())));
        assert_eq!(found("{}", &[&["a"]]).unwrap(), []);
    }

    #[test]
    fn the_position_in_the_outermost_array_is_told() {
        let mut rows = Vec::new();
        let mut each = |found: Found, bytes: &[u8]| {
            rows.push((found.path, found.outer, String::from_utf8_lossy(bytes).into_owned()));
            Ok(())
        };
        elements(&br#"[{"a": [1, 2]}, {"b": 0}, {"a": [3], "b": 4}]"#[..], &[&["*", "a", "*"], &["*", "b"]], &mut each).unwrap();
        let expected = [(0, 0, "1"), (0, 0, "2"), (1, 1, "0"), (0, 2, "3"), (1, 2, "4")];
        assert_eq!(rows, expected.map(|(path, outer, text)| (path, outer, text.to_owned())));
    }

    #[test]
    fn every_way_to_be_cut_short_is_seen() {
        let text = TEXT.trim();
        let paths: [Path<'_>; 1] = [&["tool", "*", "rows", "*"]];
        for end in 0..text.len() {
            assert!(found(&text[..end], &paths).unwrap_err().contains("cut short"), "{}", &text[..end]);
        }
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        let paths: [Path<'_>; 1] = [&["a", "*"]];
        for (text, what) in [
            (r#"{"a": [1 2]}"#, "byte 9: a comma"),
            (r#"{"a": [1]} x"#, "byte 11: the document has ended"),
            (r#"{"b": {]}"#, "byte 7: a bracket"),
            (r#"{"a" 1}"#, "byte 5: a colon"),
            (r#"{a: 1}"#, "byte 1: a key"),
            (r#"{"b": ;}"#, "byte 6: a value"),
        ] {
            let error = found(text, &paths).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
        let deep = format!("{{\"b\": {}", "[".repeat(5000));
        assert!(found(&deep, &paths).unwrap_err().contains("nested too deeply"));
    }
}
