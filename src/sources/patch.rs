//! Reads a companion patch.
//!
//! In: the bytes of a git diff. Out: its sections, each with one file's headers and hunks. Refused, with file and hunk named: whatever could be read in
//! two ways or would be dropped silently: NUL bytes, binary sections, submodules, copies, a path that occurs twice, sections without a git header,
//! lines that belong to no section, paths that are absolute or leave the tree, and patches that end early.

use std::collections::BTreeSet;

use super::SourceError;
use super::patch_names::{header_names, path_fault, side_name};
use super::snapshot::{EXECUTABLE, LINK, REGULAR, SUBMODULE};

/// What a hunk says about one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// In both.
    Context,
    /// In the base only.
    Removed,
    /// In the result only.
    Added,
}

/// One line of a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'p> {
    /// Which side it is on.
    pub kind: LineKind,
    /// Its bytes with the line end, which is absent after `\ No newline at end of file`.
    pub bytes: &'p [u8],
}

/// One hunk. Line numbers are as in the patch: from 1, or the line before if the count is 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk<'p> {
    /// First line in the base.
    pub old_start: u32,
    /// Number of lines in the base.
    pub old_count: u32,
    /// First line in the result.
    pub new_start: u32,
    /// Number of lines in the result.
    pub new_count: u32,
    /// Lines in order.
    pub lines: Vec<Line<'p>>,
}

/// An `index a..b mode` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Id of the base's blob, possibly abbreviated; zeros if there is none.
    pub old: String,
    /// Id of the result's blob, possibly abbreviated; zeros if there is none.
    pub new: String,
    /// Mode, if it does not change.
    pub mode: Option<u32>,
}

/// What a section does to its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Edits content or mode in place.
    Edit,
    /// Creates the file.
    Create,
    /// Deletes the file.
    Delete,
    /// Moves the file, possibly with edits.
    Rename,
}

/// One file's part of a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section<'p> {
    /// What is done.
    pub action: Action,
    /// Path in the base; the same as `new` unless renamed.
    pub old: Vec<u8>,
    /// Path in the result.
    pub new: Vec<u8>,
    /// Mode in the base, if a header line says it.
    pub old_mode: Option<u32>,
    /// Mode in the result, if a header line says it.
    pub new_mode: Option<u32>,
    /// The `index` line.
    pub index: Option<Index>,
    /// Hunks in order.
    pub hunks: Vec<Hunk<'p>>,
}

/// Extended header lines of one section.
#[derive(Default)]
struct Headers {
    old_mode: Option<u32>,
    new_mode: Option<u32>,
    deleted: Option<u32>,
    created: Option<u32>,
    similarity: Option<u32>,
    rename_from: Option<Vec<u8>>,
    rename_to: Option<Vec<u8>>,
    index: Option<Index>,
}

struct Parser<'p> {
    id: &'p str,
    lines: Vec<&'p [u8]>,
    at: usize,
    file: String,
    hunk: u32,
}

/// Reads the sections of a patch for source `id`.
///
/// # Errors
/// [`SourceError::PatchRefused`].
pub fn parse<'p>(id: &'p str, bytes: &'p [u8]) -> Result<Vec<Section<'p>>, SourceError> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let mut parser = Parser { id, lines, at: 0, file: String::new(), hunk: 0 };
    if bytes.contains(&0) {
        return Err(parser.refuse("it contains a NUL byte"));
    }
    let announced = parser.preamble()?;
    let mut sections = Vec::new();
    let mut seen = BTreeSet::new();
    while let Some(line) = parser.peek() {
        if line == b"-- \n" && !sections.is_empty() {
            parser.signature()?;
            break;
        }
        let section = parser.section()?;
        if !seen.insert(section.old.clone()) || (section.new != section.old && !seen.insert(section.new.clone())) {
            return Err(parser.refuse("the path occurs in two sections"));
        }
        sections.push(section);
    }
    (parser.file, parser.hunk) = (String::new(), 0);
    if sections.is_empty() {
        return Err(parser.refuse("it has no section that starts with `diff --git`"));
    }
    if let Some(announced) = announced.filter(|announced| *announced != sections.len()) {
        return Err(parser.refuse(&format!("its summary announces {announced} files, but it has {} sections", sections.len())));
    }
    if !bytes.ends_with(b"\n") {
        return Err(parser.refuse("it ends in the middle of a line"));
    }
    Ok(sections)
}

impl<'p> Parser<'p> {
    fn refuse(&self, reason: &str) -> SourceError {
        SourceError::PatchRefused { id: self.id.to_owned(), file: self.file.clone(), hunk: self.hunk, reason: reason.to_owned() }
    }

    fn peek(&self) -> Option<&'p [u8]> {
        self.lines.get(self.at).copied()
    }

    /// Skips the letter that `git format-patch` puts before the first section; gives the number of files that its summary announces.
    fn preamble(&mut self) -> Result<Option<usize>, SourceError> {
        let mut announced = None;
        while let Some(line) = self.peek() {
            if line.starts_with(b"diff --git ") {
                break;
            }
            let part_of_a_section = [
                &b"--- "[..],
                b"+++ ",
                b"@@ -",
                b"old mode 1",
                b"new mode 1",
                b"new file mode ",
                b"deleted file mode ",
                b"rename from ",
                b"rename to ",
                b"similarity index ",
                b"GIT binary patch",
                b"Binary files ",
                b"Index: ",
            ];
            let index = line.strip_prefix(b"index ").is_some_and(|rest| parse_index(rest).is_some());
            let header = line.windows(10).any(|window| window == b"diff --git");
            if index || header || part_of_a_section.iter().any(|start| line.starts_with(start)) {
                return Err(self.refuse(&format!("line {} belongs to a section without a `diff --git` header", self.at + 1)));
            }
            let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
            if let [b"", count, b"file" | b"files", changed, ..] = words.as_slice()
                && changed.starts_with(b"changed")
            {
                announced = std::str::from_utf8(count).ok().and_then(|count| count.parse().ok());
            }
            self.at += 1;
        }
        Ok(announced)
    }

    /// The signature at the end of a formatted patch: a version, and nothing after it.
    fn signature(&mut self) -> Result<(), SourceError> {
        (self.file, self.hunk) = (String::new(), 0);
        let rest = self.lines.get(self.at + 2..).unwrap_or_default();
        match rest.iter().position(|line| *line != b"\n") {
            Some(more) => Err(self.refuse(&format!("line {} stands after the patch's signature", self.at + more + 3))),
            None => Ok(()),
        }
    }

    fn section(&mut self) -> Result<Section<'p>, SourceError> {
        let line = self.peek().unwrap_or_default();
        let Some(names) = line.strip_prefix(b"diff --git ") else {
            return Err(self.refuse(&format!("line {} belongs to no hunk and starts no section", self.at + 1)));
        };
        let names = names.strip_suffix(b"\n").unwrap_or(names);
        (self.file, self.hunk) = (String::from_utf8_lossy(names).into_owned(), 0);
        self.at += 1;
        if let Ok((_, path)) = header_names(names, None) {
            self.file = String::from_utf8_lossy(&path).into_owned();
        }
        let headers = self.headers()?;
        let renamed = headers.rename_from.as_deref().zip(headers.rename_to.as_deref());
        let (old, new) = header_names(names, renamed).map_err(|reason| self.refuse(reason))?;
        self.file = String::from_utf8_lossy(&new).into_owned();
        for path in [&old, &new] {
            if let Some(fault) = path_fault(path) {
                return Err(self.refuse(fault));
            }
        }
        let action = self.action(&headers)?;
        if self.peek().is_some_and(|line| line.starts_with(b"--- ")) {
            self.sides(action, &old, &new)?;
        }
        let mut hunks = Vec::new();
        while self.peek().is_some_and(|line| line.starts_with(b"@@ ")) {
            self.hunk += 1;
            hunks.push(self.read_hunk()?);
        }
        self.hunk = 0;
        let (old_mode, new_mode) = match action {
            Action::Create => (None, headers.created),
            Action::Delete => (headers.deleted, None),
            Action::Edit | Action::Rename => (headers.old_mode, headers.new_mode),
        };
        let section = Section { action, old, new, old_mode, new_mode, index: headers.index, hunks };
        self.check_shape(&section, headers.similarity)?;
        Ok(section)
    }

    fn headers(&mut self) -> Result<Headers, SourceError> {
        let mut headers = Headers::default();
        while let Some(line) = self.peek() {
            if line.starts_with(b"--- ") || line.starts_with(b"diff --git ") || line == b"-- \n" {
                break;
            }
            let line = line.strip_suffix(b"\n").ok_or_else(|| self.refuse("the patch ends in the middle of a header line"))?;
            let text = String::from_utf8_lossy(line);
            let twice = if let Some(mode) = text.strip_prefix("old mode ") {
                headers.old_mode.replace(self.mode(mode)?).is_some()
            } else if let Some(mode) = text.strip_prefix("new mode ") {
                headers.new_mode.replace(self.mode(mode)?).is_some()
            } else if let Some(mode) = text.strip_prefix("deleted file mode ") {
                headers.deleted.replace(self.mode(mode)?).is_some()
            } else if let Some(mode) = text.strip_prefix("new file mode ") {
                headers.created.replace(self.mode(mode)?).is_some()
            } else if let Some(percent) = text.strip_prefix("similarity index ").or_else(|| text.strip_prefix("dissimilarity index ")) {
                let percent = percent.strip_suffix('%').and_then(|percent| percent.parse().ok());
                headers.similarity.replace(percent.ok_or_else(|| self.refuse("its similarity line is malformed"))?).is_some()
            } else if let Some(name) = line.strip_prefix(b"rename from ") {
                headers.rename_from.replace(side_name(name).map_err(|reason| self.refuse(reason))?).is_some()
            } else if let Some(name) = line.strip_prefix(b"rename to ") {
                headers.rename_to.replace(side_name(name).map_err(|reason| self.refuse(reason))?).is_some()
            } else if let Some(index) = line.strip_prefix(b"index ") {
                let index = parse_index(index).ok_or_else(|| self.refuse("its `index` line is malformed"))?;
                if index.mode == Some(SUBMODULE) {
                    return Err(self.refuse("it changes a submodule"));
                }
                headers.index.replace(index).is_some()
            } else if text.starts_with("copy ") {
                return Err(self.refuse("it is a copy"));
            } else if text.starts_with("GIT binary patch") || text.starts_with("Binary files ") {
                return Err(self.refuse("it is binary"));
            } else {
                return Err(self.refuse(&format!("line {} is no header line that is known", self.at + 1)));
            };
            if twice {
                return Err(self.refuse(&format!("line {} repeats a header line", self.at + 1)));
            }
            self.at += 1;
        }
        Ok(headers)
    }

    fn mode(&self, text: &str) -> Result<u32, SourceError> {
        match text {
            "100644" => Ok(REGULAR),
            "100755" => Ok(EXECUTABLE),
            "120000" => Ok(LINK),
            "160000" => Err(self.refuse("it changes a submodule")),
            _ => Err(self.refuse("its mode is none that git writes")),
        }
    }

    fn action(&self, headers: &Headers) -> Result<Action, SourceError> {
        let rename = headers.rename_from.is_some() || headers.rename_to.is_some();
        let (create, delete) = (headers.created.is_some(), headers.deleted.is_some());
        let change = headers.old_mode.is_some() || headers.new_mode.is_some();
        if u8::from(rename) + u8::from(create) + u8::from(delete) > 1 || (change && (create || delete)) {
            return Err(self.refuse("its header lines contradict each other"));
        }
        if rename && (headers.rename_from.is_none() || headers.rename_to.is_none() || headers.similarity.is_none()) {
            return Err(self.refuse("its rename lines are incomplete"));
        }
        if rename && headers.rename_from == headers.rename_to {
            return Err(self.refuse("it renames a path to itself"));
        }
        match (headers.old_mode, headers.new_mode) {
            (Some(_), None) | (None, Some(_)) => return Err(self.refuse("one of its two mode lines is missing")),
            (Some(old), Some(new)) if old == new => return Err(self.refuse("its mode lines change nothing")),
            (Some(old), Some(new)) if old == LINK || new == LINK => {
                return Err(self.refuse("it turns a file into a link or a link into a file"));
            }
            (Some(_), Some(_)) if headers.index.as_ref().is_some_and(|index| index.mode.is_some()) => {
                return Err(self.refuse("its `index` line gives one mode, although the mode changes"));
            }
            _ => {}
        }
        Ok(match (rename, create, delete) {
            (true, _, _) => Action::Rename,
            (_, true, _) => Action::Create,
            (_, _, true) => Action::Delete,
            _ => Action::Edit,
        })
    }

    /// Reads the `---` and `+++` lines, which must say what the other headers say.
    fn sides(&mut self, action: Action, old: &[u8], new: &[u8]) -> Result<(), SourceError> {
        let minus = self.side(b"--- ")?;
        let plus = self.side(b"+++ ")?;
        let expect = |prefix: &[u8], path: &[u8], absent: bool| if absent { b"/dev/null".to_vec() } else { [prefix, path].concat() };
        if minus != expect(b"a/", old, action == Action::Create) || plus != expect(b"b/", new, action == Action::Delete) {
            return Err(self.refuse("its `---` and `+++` lines do not name what the `diff --git` line names"));
        }
        if !self.peek().is_some_and(|line| line.starts_with(b"@@ ")) {
            return Err(self.refuse("the patch ends before the first hunk"));
        }
        Ok(())
    }

    fn side(&mut self, start: &[u8]) -> Result<Vec<u8>, SourceError> {
        let line = self.peek().and_then(|line| line.strip_prefix(start)).and_then(|line| line.strip_suffix(b"\n"));
        let line = line.ok_or_else(|| {
            self.refuse(&format!("line {} should start with `{}`", self.at + 1, String::from_utf8_lossy(start).trim_end()))
        })?;
        self.at += 1;
        // Git ends a name with white space by a tab, so that other tools find its end.
        let line = line.strip_suffix(b"\t").unwrap_or(line);
        side_name(line).map_err(|reason| self.refuse(reason))
    }

    fn read_hunk(&mut self) -> Result<Hunk<'p>, SourceError> {
        let header = self.peek().unwrap_or_default();
        let (old_start, old_count, new_start, new_count) = parse_hunk(header).ok_or_else(|| self.refuse("its `@@` line is malformed"))?;
        self.at += 1;
        let (mut old_left, mut new_left) = (old_count, new_count);
        let mut lines: Vec<Line<'p>> = Vec::new();
        loop {
            let line = self.peek();
            if let Some(line) = line.filter(|line| line.starts_with(b"\\ ")) {
                let ended = lines.last_mut().and_then(|last| last.bytes.strip_suffix(b"\n").map(|bytes| last.bytes = bytes));
                if ended.is_none() || !line.ends_with(b"\n") {
                    return Err(self.refuse("its mark for a missing last line end stands in the wrong place"));
                }
                self.at += 1;
                continue;
            }
            if old_left == 0 && new_left == 0 {
                break;
            }
            let line = line.ok_or_else(|| self.refuse("the patch ends inside this hunk"))?;
            if !line.ends_with(b"\n") {
                return Err(self.refuse("the patch ends in the middle of a line of this hunk"));
            }
            let (kind, bytes) = match line.split_first() {
                Some((b' ', rest)) => (LineKind::Context, rest),
                Some((b'-', rest)) => (LineKind::Removed, rest),
                Some((b'+', rest)) => (LineKind::Added, rest),
                // An empty context line whose blank some editor or mailer stripped; git accepts it too.
                Some((b'\n', _)) => (LineKind::Context, line),
                _ => return Err(self.refuse(&format!("line {} of the patch is no hunk line, but the hunk is not complete", self.at + 1))),
            };
            let (in_old, in_new) = (kind != LineKind::Added, kind != LineKind::Removed);
            let left = (old_left.checked_sub(u32::from(in_old)), new_left.checked_sub(u32::from(in_new)));
            let (Some(old), Some(new)) = left else { return Err(self.refuse("it has more lines than its `@@` line says")) };
            (old_left, new_left) = (old, new);
            lines.push(Line { kind, bytes });
            self.at += 1;
        }
        if lines.iter().all(|line| line.kind == LineKind::Context) {
            return Err(self.refuse("it changes nothing"));
        }
        Ok(Hunk { old_start, old_count, new_start, new_count, lines })
    }

    /// Whether headers and hunks of a section belong together.
    fn check_shape(&self, section: &Section<'_>, similarity: Option<u32>) -> Result<(), SourceError> {
        let old_lines = section.hunks.iter().any(|hunk| hunk.old_count > 0);
        let new_lines = section.hunks.iter().any(|hunk| hunk.new_count > 0);
        let bare = section.hunks.is_empty();
        match section.action {
            Action::Create if old_lines || section.hunks.len() > 1 => Err(self.refuse("it creates a file, but has old lines")),
            Action::Delete if new_lines || section.hunks.len() > 1 => Err(self.refuse("it deletes a file, but keeps lines of it")),
            Action::Create | Action::Delete if bare && section.index.is_none() => {
                Err(self.refuse("it has neither an `index` line nor a hunk"))
            }
            Action::Edit if bare && section.new_mode.is_none() => Err(self.refuse("it has no hunk and changes no mode")),
            Action::Rename if bare && similarity != Some(100) => Err(self.refuse("it is a rename with changes, but has no hunk")),
            _ => Ok(()),
        }
    }
}

/// `a..b` or `a..b mode`.
fn parse_index(line: &[u8]) -> Option<Index> {
    let text = std::str::from_utf8(line).ok()?.trim_end_matches('\n');
    let (ids, mode) = text.split_once(' ').map_or((text, None), |(ids, mode)| (ids, Some(mode)));
    let (old, new) = ids.split_once("..")?;
    let is_id = |id: &str| (4..=40).contains(&id.len()) && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let mode = match mode {
        None => None,
        Some("100644") => Some(REGULAR),
        Some("100755") => Some(EXECUTABLE),
        Some("120000") => Some(LINK),
        Some("160000") => Some(SUBMODULE),
        Some(_) => return None,
    };
    (is_id(old) && is_id(new)).then(|| Index { old: old.to_owned(), new: new.to_owned(), mode })
}

/// `@@ -l[,n] +l[,n] @@`, possibly followed by a blank and the name of a function.
fn parse_hunk(line: &[u8]) -> Option<(u32, u32, u32, u32)> {
    let rest = line.strip_prefix(b"@@ -")?;
    let end = rest.windows(3).position(|window| window == b" @@")?;
    if !matches!(rest.get(end + 3), Some(b' ' | b'\n')) {
        return None;
    }
    let (old, new) = std::str::from_utf8(rest.get(..end)?).ok()?.split_once(" +")?;
    let (old_start, old_count) = parse_range(old)?;
    let (new_start, new_count) = parse_range(new)?;
    (old_count > 0 || new_count > 0).then_some((old_start, old_count, new_start, new_count))
}

fn parse_range(text: &str) -> Option<(u32, u32)> {
    let number = |text: &str| if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None };
    let (start, count) = text.split_once(',').map_or((text, "1"), |(start, count)| (start, count));
    let (start, count): (u32, u32) = (number(start)?, number(count)?);
    (start > 0 || count == 0).then_some((start, count))
}
