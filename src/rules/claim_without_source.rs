//! RLK409: a page about the family that names a path, a module, a name or a backend which the pinned sources do not have.

use std::collections::BTreeSet;

use super::{Context, rule};
use crate::findings::Finding;
use crate::profile::{PathClass, PathClasses};
use crate::sources::FileKind;
use crate::syntax::OpKind;
use crate::text::{FileId, Span};

/// Extensions of files that are read, so that the absence of one means something.
const READ: [&str; 3] = [".md", ".py", ".sh"];

/// Words by which pages call a backend.
const BACKENDS: [(&str, &[&str]); 2] = [
    ("rocm", &["rocm", "hip", "amd", "mfma", "mi300", "mi300x", "gfx942", "gfx950"]),
    ("cuda", &["cuda", "nvidia", "hopper", "sm80", "sm90"]),
];

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    // What was not read cannot be missed.
    if context.gaps.iter().any(|gap| gap.kind.is_fatal()) {
        return;
    }
    let needles = needles(context);
    let classes = PathClasses::new(context.profile);
    let paths = Paths::new(context);
    for (source, file) in context.sources.iter().flat_map(|source| source.files.iter().map(move |file| (source, file))) {
        let entry = context.files.get(file.file);
        let is_page = file.kind == FileKind::Document && needles.iter().any(|needle| entry.text.contains(needle.as_str()));
        if !is_page
            || tells_the_past(&entry.path)
            || matches!(classes.class(&source.id, &entry.path), PathClass::Test | PathClass::Benchmark | PathClass::Example)
        {
            continue;
        }
        for (start, end) in code_spans(&entry.text) {
            for token in tokens(&entry.text, start, end) {
                let text = &entry.text[token.0..token.1];
                let place = span(file.file, token.0, token.1);
                if is_path(text) {
                    if !paths.has(text) {
                        push(context, findings, "path", vec![text.to_owned()], place);
                    }
                } else if let Some(missing) = missing_name(context, text) {
                    push(context, findings, "name", vec![text.to_owned(), missing], place);
                }
            }
        }
        tables(context, findings, file.file, &entry.text);
    }
    imports(context, findings);
}

/// Whether a page lists what was once: the names in it were right then.
fn tells_the_past(path: &str) -> bool {
    let stem = path.rsplit('/').next().unwrap_or(path).split('.').next().unwrap_or("").to_ascii_lowercase().replace(['-', '_'], "");
    matches!(stem.as_str(), "changelog" | "changes" | "history" | "news" | "releases" | "releasenotes")
}

fn span(file: FileId, start: usize, end: usize) -> Span {
    let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    Span::new(file, number(start), number(end))
}

fn push(context: &Context<'_>, findings: &mut Vec<Finding>, key: &'static str, arguments: Vec<String>, place: Span) {
    let symbol = arguments.first().cloned().unwrap_or_default();
    findings.push(Finding::new(rule("claim-without-source"), key, arguments, context.first_line(place), symbol));
}

/// Words that make a page one about the family: its keys, and the last names of its kernels and fronts.
fn needles(context: &Context<'_>) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for family in &context.profile.families {
        out.extend(family.keys.iter().cloned());
        let names = family.sinks.iter().chain(&family.facades).filter_map(|name| name.rsplit('.').next());
        out.extend(names.map(|name| name.trim_end_matches('*').trim_end_matches('_').to_owned()));
    }
    out.retain(|needle| needle.len() > 4);
    out
}

/// Every path that was read or left out with a reason, and every folder of one.
struct Paths<'a>(BTreeSet<&'a str>);

impl<'a> Paths<'a> {
    fn new(context: &'a Context<'a>) -> Self {
        let read = context.sources.iter().flat_map(|source| &source.files).map(|file| &*context.files.get(file.file).path);
        Self(read.chain(context.gaps.iter().map(|gap| gap.path.as_str())).collect())
    }

    /// Whether some source has the path, counted from its root or from a folder of it.
    fn has(&self, path: &str) -> bool {
        self.0.contains(path) || self.0.iter().any(|known| known.strip_suffix(path).is_some_and(|head| head.ends_with('/')))
    }
}

/// Byte ranges of inline code and of the lines of fenced blocks.
fn code_spans(text: &str) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut fence: Option<String> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let trimmed = line.trim();
        let mark = trimmed.chars().next().unwrap_or(' ');
        let length = trimmed.chars().take_while(|c| *c == mark).count();
        if let Some(open) = &fence {
            if trimmed.starts_with(open.as_str()) && trimmed.trim_matches(mark).is_empty() {
                fence = None;
            } else {
                out.push((start, at));
            }
            continue;
        }
        if matches!(mark, '`' | '~') && length >= 3 {
            fence = Some(trimmed[..length].to_owned());
            continue;
        }
        let mut rest = line;
        let mut from = start;
        while let Some(open) = rest.find('`') {
            let Some(close) = rest[open + 1..].find('`') else { break };
            out.push((from + open + 1, from + open + 1 + close));
            from += open + close + 2;
            rest = &rest[open + close + 2..];
        }
    }
    out
}

/// Runs of characters that paths and dotted names are made of, without those that are part of something longer.
fn tokens(text: &str, start: usize, end: usize) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let belongs = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b'-');
    let mut out = Vec::new();
    let mut at = start;
    while at < end {
        if !belongs(bytes[at]) {
            at += 1;
            continue;
        }
        let from = at;
        while at < end && belongs(bytes[at]) {
            at += 1;
        }
        let before = if from == 0 { b' ' } else { bytes[from - 1] };
        let after = bytes.get(at).copied().unwrap_or(b' ');
        // A URL, a variable, a placeholder, a glob.
        let partial =
            matches!(before, b':' | b'$' | b'}' | b'>' | b'~' | b'*' | b'@' | b'\\') || matches!(after, b'*' | b'<' | b'{' | b'$');
        let token = text[from..at].trim_end_matches(['.', '-', '/']);
        if !partial && token.len() > 3 {
            out.push((from, from + token.len()));
        }
    }
    out
}

/// Whether a token is a path inside a source, to a file of a kind that is read.
fn is_path(token: &str) -> bool {
    let parts: Vec<&str> = token.split('/').collect();
    parts.len() > 1
        && READ.iter().any(|end| token.ends_with(end))
        && !parts.iter().any(|part| part.is_empty() || *part == "." || *part == "..")
}

/// The part of a dotted name that the sources lack. A name that starts outside the sources, or leads through something that answers for any name, lacks
/// nothing.
fn missing_name(context: &Context<'_>, token: &str) -> Option<String> {
    let program = context.program;
    let parts: Vec<&str> = token.split('.').collect();
    let plain = |part: &&str| part.chars().next().is_some_and(|c| c == '_' || c.is_ascii_alphabetic()) && !part.contains(['/', '-']);
    if parts.len() < 2 || !parts.iter().all(plain) || READ.iter().any(|end| token.ends_with(end)) {
        return None;
    }
    let find = |name: &str| program.strings.find(name).and_then(|sym| program.find(sym, 0));
    let is_known = |name: &str| find(name).is_some() || program.strings.find(name).is_some_and(|sym| program.is_prefix(sym));
    if !is_known(parts[0]) || program.find_scope(token).is_some() || is_known(token) {
        return None;
    }
    let native = |part: &&str| part.starts_with("_C");
    if parts.iter().any(native) {
        return None;
    }
    let length = (1..parts.len()).rev().find(|length| is_known(&parts[..*length].join(".")))?;
    let owner = parts[..length].join(".");
    let next = parts[length];
    let Some(module) = find(&owner) else { return Some(format!("{owner}.{next}")) };
    let entry = program.module(module);
    let answers_all = !entry.stars.is_empty() || entry.facts.scopes.iter().any(|scope| entry.facts.name(scope.name) == "__getattr__");
    let bound = program.strings.find(next).is_some_and(|sym| entry.bound.contains(&sym));
    (!answers_all && !bound).then(|| format!("{owner}.{next}"))
}

/// Imports in the Python blocks of pages.
fn imports(context: &Context<'_>, findings: &mut Vec<Finding>) {
    for snippet in context.snippets {
        for op in snippet.facts.scopes.iter().flat_map(|scope| &scope.ops) {
            if let OpKind::ImportFrom { module, level: 0, name, .. } = op.kind {
                let full = format!("{}.{}", snippet.facts.name(module), snippet.facts.name(name));
                // A module that is missing is seen where it is spelled.
                if let Some(missing) = missing_name(context, &full).filter(|missing| *missing == full) {
                    let place = Span::new(snippet.file, snippet.start + op.range.0, snippet.start + op.range.1);
                    push(context, findings, "name", vec![full, missing], place);
                }
            }
        }
    }
}

/// Tables that list the backends of the family and leave out the one that the routes run on.
fn tables(context: &Context<'_>, findings: &mut Vec<Finding>, file: FileId, text: &str) {
    let Some((_, words)) = BACKENDS.iter().find(|(backend, _)| *backend == context.profile.backend) else { return };
    let others: BTreeSet<&str> =
        BACKENDS.iter().filter(|(backend, _)| *backend != context.profile.backend).flat_map(|(_, words)| words.iter().copied()).collect();
    let speaks = |row: &str, word: &str| row.to_ascii_lowercase().split(|c: char| !c.is_ascii_alphanumeric()).any(|part| part == word);
    // Something on a route that only this backend has.
    let spoken = |name: &str| words.iter().any(|word| name.split(['.', '_']).any(|part| part == *word));
    let routes = context.routes.iter().flat_map(|routes| &routes.callsites).filter(|callsite| callsite.class == PathClass::Production);
    let own = routes
        .flat_map(|callsite| callsite.kernels.iter().cloned().chain([context.program.qualified(callsite.caller)]))
        .find(|name| spoken(name));
    let Some(kernel) = own else { return };
    let keys: Vec<&String> = context.profile.families.iter().flat_map(|family| &family.keys).collect();
    let mut at = 0;
    let mut table: Option<(usize, usize, Vec<&str>)> = None;
    let mut close = |table: Option<(usize, usize, Vec<&str>)>| {
        let Some((start, end, rows)) = table else { return };
        let names_other = rows.iter().any(|row| others.iter().any(|word| speaks(row, word)));
        let names_own = rows.iter().any(|row| words.iter().any(|word| speaks(row, word)));
        if names_other && !names_own {
            push(context, findings, "backends", vec![context.profile.backend.clone(), kernel.clone()], span(file, start, end));
        }
    };
    let about = keys.iter().any(|key| text.contains(key.as_str()));
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let trimmed = line.trim();
        if trimmed.starts_with('|') {
            match &mut table {
                Some((_, _, rows)) => rows.push(trimmed),
                None => {
                    let first = trimmed.trim_start_matches('|').split('|').next().unwrap_or("").trim().to_ascii_lowercase();
                    if about && matches!(first.as_str(), "backend" | "backends" | "implementation") {
                        table = Some((start, start + line.trim_end().len(), Vec::new()));
                    } else {
                        table = Some((usize::MAX, usize::MAX, Vec::new()));
                    }
                }
            }
        } else {
            close(table.take().filter(|(start, _, _)| *start != usize::MAX));
        }
    }
    close(table.take().filter(|(start, _, _)| *start != usize::MAX));
}
