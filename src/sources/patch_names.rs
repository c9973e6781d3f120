//! Paths in a git diff.
//!
//! In: the names on a `diff --git` line and on `---`, `+++` and rename lines. Out: paths as bytes. Refused: names that can be read in two ways, and
//! paths that are absolute, leave the tree or lie in a `.git` folder.

/// Both paths of a `diff --git` line, whose start has been cut off. `renamed` holds the paths of the rename lines, if there are any.
///
/// # Errors
/// Why the names are refused.
pub(super) fn header_names(line: &[u8], renamed: Option<(&[u8], &[u8])>) -> Result<(Vec<u8>, Vec<u8>), &'static str> {
    const PREFIXES: &str = "its paths do not start with `a/` and `b/`";
    let (first, second) = if line.starts_with(b"\"") {
        let (first, rest) = unquote(line)?;
        let rest = rest.strip_prefix(b" ").ok_or("its `diff --git` line is malformed")?;
        (first, side_name(rest)?)
    } else if line.ends_with(b"\"") {
        let at = line.windows(2).position(|window| window == b" \"").ok_or("its `diff --git` line is malformed")?;
        let (first, second) = line.split_at(at);
        (first.to_vec(), side_name(second.get(1..).unwrap_or_default())?)
    } else if let Some((from, to)) = renamed {
        let (first, second) = ([b"a/", from].concat(), [b"b/", to].concat());
        if line != [first.as_slice(), b" ", second.as_slice()].concat() {
            return Err("its `diff --git` line does not name the paths of its rename lines");
        }
        (first, second)
    } else {
        // The same path twice: both halves have the same length, so that blanks in them do no harm.
        let (first, second) = line.split_at(line.len() / 2);
        let second = second.strip_prefix(b" ").ok_or("its `diff --git` line is malformed or names two paths")?;
        (first.to_vec(), second.to_vec())
    };
    let old = first.strip_prefix(b"a/").ok_or(PREFIXES)?.to_vec();
    let new = second.strip_prefix(b"b/").ok_or(PREFIXES)?.to_vec();
    match renamed {
        Some((from, to)) if old != from || new != to => Err("its `diff --git` line does not name the paths of its rename lines"),
        None if old != new => Err("its `diff --git` line names two paths, but it is no rename"),
        _ => Ok((old, new)),
    }
}

/// One name that takes the rest of a line, quoted or not.
///
/// # Errors
/// Why the name is refused.
pub(super) fn side_name(line: &[u8]) -> Result<Vec<u8>, &'static str> {
    if line.starts_with(b"\"") {
        let (name, rest) = unquote(line)?;
        return if rest.is_empty() { Ok(name) } else { Err("something follows a quoted path") };
    }
    if line.is_empty() || line.iter().any(|byte| *byte < b' ' || *byte == b'"' || *byte == 0x7F) {
        return Err("a path is empty or holds characters that git would have quoted");
    }
    Ok(line.to_vec())
}

/// A name in C quotes at the start of `line`, and what follows it.
fn unquote(line: &[u8]) -> Result<(Vec<u8>, &[u8]), &'static str> {
    const BROKEN: &str = "a quoted path is malformed";
    let mut rest = line.strip_prefix(b"\"").ok_or(BROKEN)?;
    let mut name = Vec::new();
    loop {
        let (first, after) = rest.split_first().ok_or(BROKEN)?;
        rest = after;
        match first {
            b'"' => return Ok((name, rest)),
            b'\\' => {
                let (escape, after) = rest.split_first().ok_or(BROKEN)?;
                rest = after;
                name.push(match escape {
                    b'a' => 0x07,
                    b'b' => 0x08,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 0x0B,
                    b'f' => 0x0C,
                    b'r' => b'\r',
                    b'"' | b'\\' => *escape,
                    b'0'..=b'3' => {
                        let digits =
                            rest.get(..2).filter(|digits| digits.iter().all(|digit| matches!(digit, b'0'..=b'7'))).ok_or(BROKEN)?;
                        rest = rest.get(2..).ok_or(BROKEN)?;
                        digits.iter().fold(escape - b'0', |value, digit| value * 8 + (digit - b'0'))
                    }
                    _ => return Err(BROKEN),
                });
            }
            byte => name.push(*byte),
        }
    }
}

/// What is wrong with a path, if something is.
#[must_use]
pub(super) fn path_fault(path: &[u8]) -> Option<&'static str> {
    if path.first() == Some(&b'/') {
        return Some("its path is absolute");
    }
    if path.contains(&0) {
        return Some("its path holds a NUL byte");
    }
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" => return Some("its path has an empty part"),
            b"." | b".." => return Some("its path leaves the tree"),
            _ if part.eq_ignore_ascii_case(b".git") => return Some("its path lies in a `.git` folder"),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(line: &str) -> Result<(String, String), &'static str> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        header_names(line.as_bytes(), None).map(|(old, new)| (text(old), text(new)))
    }

    #[test]
    fn unquoted_names_with_blanks_and_quoted_names_are_read() {
        assert_eq!(names("a/x b/y.py b/x b/y.py").unwrap().0, "x b/y.py");
        assert_eq!(names(r#""a/\303\251\t.py" "b/\303\251\t.py""#).unwrap().1, "é\t.py");
        let renamed = header_names(br#"a/x y "b/\303\251""#, Some((b"x y", "é".as_bytes()))).unwrap();
        assert_eq!(renamed, (b"x y".to_vec(), "é".as_bytes().to_vec()));
    }

    #[test]
    fn names_that_could_mean_something_else_are_refused() {
        for line in ["a/x b/y", "x x", "i/x w/x", "a/x", "", r#""a/x" "b/y""#, r#""a/x\8" "b/x\8""#, r#""a/x"#, r#""a/\777" "b/\777""#] {
            assert!(names(line).is_err(), "{line}");
        }
    }

    #[test]
    fn paths_stay_in_the_tree() {
        for path in ["/etc/passwd", "a//b", "../a", "a/./b", "a/.GIT/config", "", "a/"] {
            assert!(path_fault(path.as_bytes()).is_some(), "{path}");
        }
        assert_eq!(path_fault(b"a b/.gitignore"), None);
    }
}
