//! Pages of rules, as documents whose examples can be run.
//!
//! A page is Markdown with fenced blocks. The words behind the fence say what a block is:
//!
//! * `python flagged`, `python clean`: a tree that the rule flags, or leaves alone. `# file: path` on a line of its own starts a file of
//!   the tree; a block that does not begin with one is a single file [`DEFAULT_FILE`].
//! * `toml flagged`, `toml clean`: the `[[source]]` tables of a profile that the rule flags, or leaves alone.
//! * `toml profile`: goes into the profile of all Python blocks behind it.
//!
//! Blocks of other languages, or without a second word, are prose.

/// Name of the file of a Python block that names none.
pub const DEFAULT_FILE: &str = "page.py";

/// What a rule has to say about an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// At least one finding.
    Flagged,
    /// None.
    Clean,
}

/// What an example consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Files by path, and what goes into the profile.
    Tree { files: Vec<(String, String)>, profile: String },
    /// Tables of a profile; the page tells in words what lies at their paths.
    Profile(String),
}

/// One example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// Line of the page on which its fence stands.
    pub line: usize,
    /// What the rule has to say about it.
    pub role: Role,
    /// What it consists of.
    pub content: Content,
}

/// A page as far as the tests read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Text of the first line, without its mark.
    pub title: String,
    /// Titles of its sections.
    pub sections: Vec<String>,
    /// Examples in order.
    pub examples: Vec<Example>,
}

/// Reads a page.
///
/// # Errors
/// With the line, if a block is not closed, a role is unknown, or a file of a tree has no name, comes twice or leaves the tree.
pub fn parse(text: &str) -> Result<Page, String> {
    let mut lines = text.lines().enumerate();
    let title = lines.next().and_then(|(_, line)| line.strip_prefix("# ")).ok_or("line 1: the page has no title")?;
    let mut page = Page { title: title.trim().to_owned(), sections: Vec::new(), examples: Vec::new() };
    let mut profile = String::new();
    while let Some((at, line)) = lines.next() {
        if let Some(section) = line.strip_prefix("## ") {
            page.sections.push(section.trim().to_owned());
        }
        let Some(info) = line.strip_prefix("```") else { continue };
        let mut body = String::new();
        loop {
            match lines.next() {
                None => return Err(format!("line {}: the block is not closed", at + 1)),
                Some((_, "```")) => break,
                Some((_, line)) => {
                    body.push_str(line);
                    body.push('\n');
                }
            }
        }
        let words: Vec<&str> = info.split_whitespace().collect();
        let example = |role, content| Example { line: at + 1, role, content };
        let role = |word: &str| match word {
            "flagged" => Ok(Role::Flagged),
            "clean" => Ok(Role::Clean),
            _ => Err(format!("line {}: a block is flagged or clean, not {word:?}", at + 1)),
        };
        match words[..] {
            ["toml", "profile"] => profile.push_str(&body),
            ["toml", word] => page.examples.push(example(role(word)?, Content::Profile(body))),
            ["python", word] => {
                let files = split_files(&body).map_err(|error| format!("line {}: {error}", at + 1))?;
                page.examples.push(example(role(word)?, Content::Tree { files, profile: profile.clone() }));
            }
            [] | [_] => {}
            _ => return Err(format!("line {}: the fence says {info:?}", at + 1)),
        }
    }
    Ok(page)
}

fn split_files(body: &str) -> Result<Vec<(String, String)>, String> {
    let mut files: Vec<(String, String)> = Vec::new();
    for line in body.lines() {
        let name = line.strip_prefix("# file:").map(str::trim);
        match name {
            Some(name) => {
                let leaves = name.starts_with('/') || name.split('/').any(|part| matches!(part, "" | "." | ".."));
                if leaves || files.iter().any(|(path, _)| path == name) {
                    return Err(format!("{name:?} is no name for another file of the tree"));
                }
                files.push((name.to_owned(), String::new()));
            }
            None if files.is_empty() => files.push((DEFAULT_FILE.to_owned(), format!("{line}\n"))),
            None => {
                if let Some((_, text)) = files.last_mut() {
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
    }
    if files.is_empty() { Err("the block is empty".to_owned()) } else { Ok(files) }
}

/// A finding as examples are compared by: rule id, path, line.
pub type Found = (String, String, u32);

/// Runs the examples of a page, and says what is wrong with them: a flagged one without a finding of `rule`, a clean one with one. Findings of
/// other rules are not compared.
pub fn check(rule: &str, page: &Page, lint: &mut dyn FnMut(&Content) -> Result<Vec<Found>, String>) -> Vec<String> {
    let mut complaints = Vec::new();
    for Example { line, role, content } in &page.examples {
        let found = match lint(content) {
            Ok(found) => found,
            Err(error) => {
                complaints.push(format!("{rule}, line {line}: the example cannot be linted: {error}"));
                continue;
            }
        };
        let own: Vec<&Found> = found.iter().filter(|(id, _, _)| id == rule).collect();
        match role {
            Role::Flagged if own.is_empty() => {
                complaints.push(format!("{rule}, line {line}: the flagged example is not flagged; found: {found:?}"));
            }
            Role::Clean if !own.is_empty() => complaints.push(format!("{rule}, line {line}: the clean example is flagged: {own:?}")),
            _ => {}
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(files: &[(&str, &str)]) -> Vec<(String, String)> {
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn blocks_become_examples() {
        let page = parse(
            "# RLK301 silent-fallback\n\n## Flagged\n```python flagged\nx = 1\n```\n```toml profile\na = 1\n```\n## Clean\n```python clean\n\
             # file: a/b.py\ny\n\n# file: docs/c.md\n~~~python\nz\n~~~\n```\n```console\n$ run\n```\n```toml flagged\n[[source]]\n```\n",
        )
        .unwrap();
        assert_eq!(page.title, "RLK301 silent-fallback");
        assert_eq!(page.sections, ["Flagged", "Clean"]);
        let tree = |files: &[(&str, &str)], profile: &str| Content::Tree { files: owned(files), profile: profile.to_owned() };
        assert_eq!(
            page.examples,
            [
                Example { line: 4, role: Role::Flagged, content: tree(&[(DEFAULT_FILE, "x = 1\n")], "") },
                Example {
                    line: 11,
                    role: Role::Clean,
                    content: tree(&[("a/b.py", "y\n\n"), ("docs/c.md", "~~~python\nz\n~~~\n")], "a = 1\n")
                },
                Example { line: 23, role: Role::Flagged, content: Content::Profile("[[source]]\n".to_owned()) },
            ]
        );
    }

    #[test]
    fn what_cannot_be_run_is_refused_with_its_line() {
        for (text, error) in [
            ("no title\n", "line 1: the page has no title"),
            ("# t\n```python flagged\nx\n", "line 2: the block is not closed"),
            ("# t\n\n```python bad\nx\n```\n", "line 3: a block is flagged or clean, not \"bad\""),
            ("# t\n```python flagged\n```\n", "line 2: the block is empty"),
            ("# t\n```python flagged\n# file: ../a.py\n```\n", "line 2: \"../a.py\" is no name for another file of the tree"),
            ("# t\n```python clean\n# file: a.py\n# file: a.py\n```\n", "line 2: \"a.py\" is no name for another file of the tree"),
            ("# t\n```python flagged twice\nx\n```\n", "line 2: the fence says \"python flagged twice\""),
        ] {
            assert_eq!(parse(text), Err(error.to_owned()));
        }
    }

    #[test]
    fn an_example_that_does_not_do_what_it_says_is_named() {
        let page = parse("# t\n```python flagged\nx\n```\n```python clean\ny\n```\n").unwrap();
        let found = |id: &str| vec![(id.to_owned(), DEFAULT_FILE.to_owned(), 1)];
        let by_text = |flagged: &'static str, clean: &'static str| {
            move |content: &Content| match content {
                Content::Tree { files, .. } => Ok(found(if files[0].1 == "x\n" { flagged } else { clean })),
                Content::Profile(_) => Err("no tree".to_owned()),
            }
        };
        assert_eq!(check("RLK301", &page, &mut by_text("RLK301", "RLK302")), Vec::<String>::new());
        let complaints = check("RLK301", &page, &mut by_text("RLK302", "RLK301"));
        assert_eq!(complaints.len(), 2);
        assert!(complaints[0].starts_with("RLK301, line 2: the flagged example is not flagged"), "{complaints:?}");
        assert!(complaints[1].starts_with("RLK301, line 5: the clean example is flagged"), "{complaints:?}");
        let complaints = check("RLK301", &page, &mut |_| Err("broken".to_owned()));
        assert!(complaints.len() == 2 && complaints[0].ends_with("cannot be linted: broken"), "{complaints:?}");
    }
}
