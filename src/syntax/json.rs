//! JSON text to its strings with their places.
//!
//! In: the text of a JSON document. Out: every string, keys included, decoded, with the key that it stands under and its place. Refused: text that is
//! not JSON, with the place where that shows. Numbers and literals are checked for their form only. Nesting is not followed by recursion.

use super::facts::Range;

/// A string of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonString {
    /// Its text, decoded.
    pub text: String,
    /// Its place, quotes included.
    pub range: Range,
    /// Keys and indices from the root to it, joined by `/`; for a key, those of its object.
    pub path: String,
    /// Whether it is a key.
    pub is_key: bool,
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Comma,
}

/// An array or object that is open.
struct Container {
    object: bool,
    index: usize,
    /// Length of the path before it.
    prefix: usize,
}

/// Longest path that is kept; beyond it strings stand under the path of what encloses them.
const MAX_PATH: usize = 4096;

/// The strings of a document in order of place.
///
/// # Errors
/// The offset at which the text is not JSON, and what was expected there.
pub fn strings(text: &str) -> Result<Vec<JsonString>, (u32, &'static str)> {
    let bytes = text.as_bytes();
    let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let mut out = Vec::new();
    let mut open: Vec<Container> = Vec::new();
    let mut path = String::new();
    let mut next = Next::Value;
    let mut at = if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
    let mut done = false;
    while at < bytes.len() {
        let byte = bytes[at];
        if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            at += 1;
            continue;
        }
        if done {
            return Err((number(at), "the end"));
        }
        if next == Next::Value || next == Next::ValueOrEnd {
            // The place in an array; members of an object have put their key here already.
            if let Some(container) = open.last().filter(|container| !container.object && byte != b']') {
                path.truncate(container.prefix);
                step(&mut path, &container.index.to_string());
            }
        }
        let value = next == Next::Value || next == Next::ValueOrEnd;
        match byte {
            b'"' if next != Next::Comma => {
                let (decoded, end) = string(text, at).ok_or((number(at), "a string with its end"))?;
                let is_key = !value;
                if is_key {
                    path.truncate(open.last().map_or(0, |container| container.prefix));
                }
                out.push(JsonString { text: decoded.clone(), range: (number(at), number(end)), path: path.clone(), is_key });
                at = end;
                next = Next::Comma;
                if is_key {
                    step(&mut path, &decoded);
                    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
                        at += 1;
                    }
                    if bytes.get(at) != Some(&b':') {
                        return Err((number(at), "a colon"));
                    }
                    at += 1;
                    next = Next::Value;
                }
            }
            b'{' | b'[' if value => {
                open.push(Container { object: byte == b'{', index: 0, prefix: path.len() });
                next = if byte == b'{' { Next::KeyOrEnd } else { Next::ValueOrEnd };
                at += 1;
                continue;
            }
            b'}' if matches!(next, Next::KeyOrEnd | Next::Comma) && open.last().is_some_and(|container| container.object) => {
                open.pop();
                next = Next::Comma;
                at += 1;
            }
            b']' if matches!(next, Next::ValueOrEnd | Next::Comma) && open.last().is_some_and(|container| !container.object) => {
                open.pop();
                next = Next::Comma;
                at += 1;
            }
            b',' if next == Next::Comma => {
                let Some(container) = open.last_mut() else { return Err((number(at), "the end")) };
                container.index += 1;
                next = if container.object { Next::Key } else { Next::Value };
                at += 1;
                continue;
            }
            _ if value => {
                let length =
                    bytes[at..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')).count();
                let word = &text[at..at + length];
                let known = matches!(word, "true" | "false" | "null") || (!word.is_empty() && word.parse::<f64>().is_ok());
                if !known {
                    return Err((number(at), "a value"));
                }
                at += length;
                next = Next::Comma;
            }
            _ if next == Next::Comma => return Err((number(at), "a comma or the end of what is open")),
            _ => return Err((number(at), "a key")),
        }
        done = open.is_empty();
    }
    if done { Ok(out) } else { Err((number(bytes.len()), "more")) }
}

fn step(path: &mut String, part: &str) {
    if path.len() + part.len() < MAX_PATH {
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(part);
    }
}

/// The string that starts at `at`, and where it ends.
fn string(text: &str, at: usize) -> Option<(String, usize)> {
    let mut out = String::new();
    let mut chars = text.get(at + 1..)?.char_indices();
    let unit = |chars: &mut std::str::CharIndices<'_>| -> Option<u32> {
        let mut value = 0;
        for _ in 0..4 {
            value = value * 16 + chars.next()?.1.to_digit(16)?;
        }
        Some(value)
    };
    while let Some((offset, c)) = chars.next() {
        match c {
            '"' => return Some((out, at + 1 + offset + 1)),
            '\\' => match chars.next()?.1 {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                'b' => out.push('\u{8}'),
                'f' => out.push('\u{c}'),
                'u' => {
                    let mut code = unit(&mut chars)?;
                    if (0xD800..0xDC00).contains(&code) {
                        let mut ahead = chars.clone();
                        if ahead.next()?.1 == '\\' && ahead.next()?.1 == 'u' {
                            let low = unit(&mut ahead)?;
                            if (0xDC00..0xE000).contains(&low) {
                                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
                                chars = ahead;
                            }
                        }
                    }
                    out.push(char::from_u32(code).unwrap_or('\u{FFFD}'));
                }
                other @ ('"' | '\\' | '/') => out.push(other),
                _ => return None,
            },
            c if u32::from(c) < 0x20 => return None,
            c => out.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<(String, String, bool, &str)> {
        let found = strings(text).unwrap();
        found
            .into_iter()
            .map(|string| (string.text, string.path, string.is_key, &text[string.range.0 as usize..string.range.1 as usize]))
            .collect()
    }

    #[test]
    fn strings_come_with_their_path_and_place() {
        let text = r#" {"a": {"b\n": ["x", 1.5e3, {"c": "y"}, "z"]}, "d": "\u00e9\ud83d\ude00"} "#;
        let row = |text: &str, path: &str, is_key, raw| (text.to_owned(), path.to_owned(), is_key, raw);
        assert_eq!(
            rows(text),
            [
                row("a", "", true, "\"a\""),
                row("b\n", "a", true, "\"b\\n\""),
                row("x", "a/b\n/0", false, "\"x\""),
                row("c", "a/b\n/2", true, "\"c\""),
                row("y", "a/b\n/2/c", false, "\"y\""),
                row("z", "a/b\n/3", false, "\"z\""),
                row("d", "", true, "\"d\""),
                row("é😀", "d", false, "\"\\u00e9\\ud83d\\ude00\""),
            ]
        );
        assert_eq!(rows("\"alone\"").len(), 1);
        assert_eq!(rows("[]"), []);
    }

    #[test]
    fn what_is_not_json_is_refused_with_its_place() {
        for (text, at) in [
            ("", 0),
            ("../elsewhere/sources.json", 0),
            ("{", 1),
            ("{\"a\" 1}", 5),
            ("{\"a\": }", 6),
            ("[1, ]", 4),
            ("[1 2]", 3),
            ("{\"a\": 1]", 7),
            ("1 2", 2),
            ("{a: 1}", 1),
            ("[\"open]", 1),
            ("[\"\\q\"]", 1),
            ("{,}", 1),
        ] {
            assert_eq!(strings(text).map_err(|(at, _)| at), Err(at), "{text}");
        }
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = format!("{}\"x\"{}", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(strings(&deep).unwrap().len(), 1);
    }
}
