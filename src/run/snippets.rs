//! Blocks of Python in documents.

use crate::rules::Snippet;
use crate::sources::{FileKind, LoadedSource};
use crate::syntax::extract_all;
use crate::text::{FileId, Files};

/// Fenced blocks (three or more backticks or tildes, marked as Python) of the documents that contain one of `needles`.
#[must_use]
pub fn of(files: &Files, sources: &[LoadedSource], needles: &[&str], threads: usize) -> Vec<Snippet> {
    let mut found: Vec<(FileId, u32, String)> = Vec::new();
    for file in sources.iter().flat_map(|source| &source.files).filter(|file| file.kind == FileKind::Document) {
        let text = &files.get(file.file).text;
        if needles.iter().any(|needle| text.contains(needle)) {
            found.extend(blocks(text).into_iter().map(|(start, block)| (file.file, start, block.to_owned())));
        }
    }
    let texts: Vec<&str> = found.iter().map(|(_, _, block)| block.as_str()).collect();
    let facts = if texts.is_empty() { Vec::new() } else { extract_all(&texts, threads) };
    found.into_iter().zip(facts).map(|((file, start, _), facts)| Snippet { file, start, facts }).collect()
}

/// Start and text of each fenced Python block.
fn blocks(text: &str) -> Vec<(u32, &str)> {
    let mut out = Vec::new();
    let mut open: Option<(&str, usize, bool)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let trimmed = line.trim();
        match open {
            Some((fence, from, python)) => {
                if trimmed.starts_with(fence) && trimmed.trim_matches(fence.chars().next().unwrap_or('`')).is_empty() {
                    if python {
                        out.push((u32::try_from(from).unwrap_or(u32::MAX), &text[from..start]));
                    }
                    open = None;
                }
            }
            None => {
                let mark = trimmed.chars().next().unwrap_or(' ');
                let length = trimmed.chars().take_while(|c| *c == mark).count();
                if matches!(mark, '`' | '~') && length >= 3 {
                    let info = trimmed[length..].trim().to_ascii_lowercase();
                    let python = ["python", "py", "python3"].iter().any(|word| info.split_whitespace().next() == Some(word));
                    open = Some((&trimmed[..length], at, python));
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_with_their_offsets() {
        let text = "a\n```python\nx = 1\n```\n~~~sh\nls\n~~~\n  ```py\n  y\n  ```\n";
        assert_eq!(blocks(text), vec![(12, "x = 1\n"), (43, "  y\n")]);
        assert_eq!(blocks("```python\nnever closed"), vec![]);
    }
}
