//! Where a place lies in a report: in the main repository, or in a companion.
//!
//! In: spans and the sources of the run. Out: paths and addresses for reports, and for each finding the line of the main repository that it
//! is shown at. Refused: absolute paths, paths that leave the repository, and addresses that hold credentials.

use std::collections::BTreeMap;

use crate::findings::Finding;
use crate::text::{FileId, Files, Span};

use super::{Document, SourceInfo};

/// Characters of one primary region at most; a longer one is cut, so that a report stays small whatever the source looks like.
const LONGEST_REGION: usize = 200;

/// A file's address in a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// Path below the root of the main repository.
    Main(String),
    /// Path below the folder that holds the companions: `github.com/OWNER/NAME/path`.
    Companion(String),
}

impl Address {
    /// The path, unescaped.
    pub(super) fn path(&self) -> &str {
        match self {
            Self::Main(path) | Self::Companion(path) => path,
        }
    }
}

/// Where a finding is shown in the main repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    /// Place in the main repository; `None` only if the profile's text is absent too: its first line then stands for
    /// it by name.
    pub(super) shown: Option<Span>,
    /// The finding's own place, if that lies in a companion.
    pub(super) companion: Option<Span>,
}

/// Sources by id, and the folder name of each companion.
pub(super) struct Places<'a> {
    files: &'a Files,
    profile: String,
    sources: BTreeMap<&'a str, &'a SourceInfo>,
    folders: BTreeMap<&'a str, String>,
    home: Option<&'a str>,
}

impl<'a> Places<'a> {
    /// Prepares addresses for the sources of one run.
    pub(super) fn new(document: &Document<'a>) -> Self {
        let mut sources = BTreeMap::new();
        let mut folders: BTreeMap<&str, String> = BTreeMap::new();
        for source in &document.info.sources {
            sources.insert(source.id.as_str(), source);
            if source.is_main {
                continue;
            }
            let folder = source.repository.as_deref().and_then(host_path);
            let folder = folder.filter(|folder| !folders.values().any(|other| other == folder));
            folders.insert(&source.id, folder.unwrap_or_else(|| inside(&source.id)));
        }
        Self { files: document.files, profile: inside(&document.info.profile), sources, folders, home: document.info.home.as_deref() }
    }

    /// Whether a file is one of the main repository's (the profile is).
    pub(super) fn is_main(&self, file: FileId) -> bool {
        self.main_source(&self.files.get(file).source)
    }

    /// Whether a source is the main repository; the files beside no source are the profile and its neighbours.
    fn main_source(&self, source: &str) -> bool {
        let id = match (source, self.home) {
            ("", None) => return true,
            ("", Some(home)) => home,
            (id, _) => id,
        };
        self.sources.get(id).is_some_and(|source| source.is_main)
    }

    /// Folder of a source that is not the main repository.
    fn companion_folder(&self, source: &str) -> String {
        let id = if source.is_empty() { self.home.filter(|home| !home.is_empty()).unwrap_or("profile") } else { source };
        self.folders.get(id).cloned().unwrap_or_else(|| inside(id))
    }

    /// The source that a file belongs to.
    pub(super) fn source(&self, file: FileId) -> Option<&'a SourceInfo> {
        self.sources.get(&*self.files.get(file).source).copied()
    }

    /// Address of a file.
    pub(super) fn address(&self, file: FileId) -> Address {
        let text = self.files.get(file);
        let path = inside(&text.path);
        if self.is_main(file) {
            return Address::Main(path);
        }
        Address::Companion(format!("{}/{path}", self.companion_folder(&text.source)))
    }

    /// Address of a path within a source of which no file was read.
    pub(super) fn address_in(&self, source: &str, path: &str) -> Address {
        if self.main_source(source) {
            return Address::Main(inside(path));
        }
        Address::Companion(format!("{}/{}", self.companion_folder(source), inside(path)))
    }

    /// Folder of a companion below the folder that holds all of them.
    pub(super) fn folder(&self, source: &str) -> Option<&str> {
        self.folders.get(source).map(String::as_str)
    }

    /// Address of the profile.
    pub(super) fn profile(&self) -> Address {
        Address::Main(self.profile.clone())
    }

    /// Where to show a finding: on its own line in the main repository, else on the line there that leads to it, else on the pin.
    pub(super) fn anchor(&self, finding: &Finding) -> Anchor {
        let own = finding.primary;
        if self.is_main(own.file) {
            return Anchor { shown: Some(own), companion: None };
        }
        let in_flow = finding.flow.iter().rev().map(|step| step.span).find(|span| self.is_main(span.file));
        let in_related = || finding.related.iter().rev().map(|related| related.span).find(|span| self.is_main(span.file));
        let pin = || self.source(own.file).map(|source| source.pin).filter(|pin| (pin.file.0 as usize) < self.files.len());
        let profile = || self.files.iter().find(|(_, file)| file.source.is_empty()).map(|(file, _)| Span::new(file, 0, 0));
        Anchor { shown: in_flow.or_else(in_related).or_else(pin).or_else(profile), companion: Some(own) }
    }

    /// Address of a companion's line on the web, as a clause: the page at the pinned commit or, without one, the path and line.
    pub(super) fn on_the_web(&self, span: Span, from_patch: bool) -> String {
        let text = self.files.get(span.file);
        let line = text.line_of(span.start);
        let path = self.address(span.file);
        let Some(source) = self.source(span.file) else { return format!("{}:{line}", path.path()) };
        let page = source.repository.as_deref().and_then(host_path).filter(|place| place.starts_with("github.com/"));
        // Elsewhere in a patched source lines are those of the commit.
        let touched = source.patched_files.contains(&*text.path);
        match (page, source.commit.as_deref()) {
            _ if from_patch => format!("{}:{line}, a line that the companion patch adds", path.path()),
            (Some(place), Some(commit)) => {
                let address = format!("https://{place}/blob/{commit}/{}", percent_encode(&inside(&text.path)));
                if touched {
                    format!("{address} (line {line} once the companion patch is applied, which leaves this line as it is)")
                } else {
                    format!("{address}#L{line}")
                }
            }
            _ if touched => format!("{}:{line}, a line that the companion patch leaves as it is", path.path()),
            _ => format!("{}:{line}", path.path()),
        }
    }

    /// A span on one line, cut to it, not empty if the line is not.
    pub(super) fn one_line(&self, span: Span) -> Span {
        let file = self.files.get(span.file);
        let size = u32::try_from(file.text.len()).unwrap_or(u32::MAX);
        let start = boundary(&file.text, span.start.min(size));
        let (first, last) = file.line_range(file.line_of(start)).unwrap_or((start, start));
        let start = start.min(last);
        let end = boundary(&file.text, span.end.clamp(start, last));
        let (start, end) = if start == end { (first, last) } else { (start, end) };
        let body = file.text.get(start as usize..end as usize).unwrap_or("");
        let cut = body.char_indices().nth(LONGEST_REGION).map_or(body.len(), |(at, _)| at);
        Span::new(span.file, start, start + u32::try_from(cut).unwrap_or(0))
    }
}

/// The nearest character boundary at or before `offset`.
fn boundary(text: &str, offset: u32) -> u32 {
    let mut offset = offset as usize;
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// A path without what would lead out of its root: leading slashes, `.` and `..`, backslashes, drive letters.
fn inside(path: &str) -> String {
    let parts = path.split(['/', '\\']).filter(|part| !matches!(*part, "" | "." | ".."));
    let kept: Vec<&str> = parts.filter(|part| !(part.len() == 2 && part.ends_with(':'))).collect();
    kept.join("/")
}

/// `host/owner/name` of a repository's public address; `None` for a local path. User names and passwords are left out.
pub(super) fn host_path(repository: &str) -> Option<String> {
    let rest = match repository.split_once("://") {
        Some(("https" | "http" | "ssh" | "git", rest)) => rest.to_owned(),
        Some(_) => return None,
        None => {
            let (host, path) = repository.split_once(':')?;
            if host.len() < 2 || host.contains('/') || path.starts_with(['/', '\\']) {
                return None;
            }
            format!("{host}/{path}")
        }
    };
    let rest = rest.split(['?', '#']).next().unwrap_or("");
    let (authority, path) = rest.split_once('/')?;
    let host = authority.rsplit('@').next().unwrap_or("");
    let host = host.split(':').next().unwrap_or("").to_ascii_lowercase();
    let path = inside(path);
    let path = path.strip_suffix(".git").unwrap_or(&path);
    if host.is_empty() || path.is_empty() { None } else { Some(format!("{host}/{path}")) }
}

/// Percent-encodes a path for use in a URI: everything but unreserved characters and slashes.
pub(super) fn percent_encode(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            for digit in [byte >> 4, byte & 15] {
                out.push(char::from_digit(u32::from(digit), 16).unwrap_or('0').to_ascii_uppercase());
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_becomes_host_owner_and_name() {
        for address in [
            "https://github.com/o/n",
            "https://github.com/o/n.git",
            "https://user:secret@github.com:443/o/n/",
            "git@github.com:o/n.git",
            "ssh://git@GitHub.com/o/n",
            "https://github.com/o/n?x#y",
        ] {
            assert_eq!(host_path(address).as_deref(), Some("github.com/o/n"), "{address}");
        }
        for address in ["", "/srv/mirror/n", "C:\\mirror", "file:///srv/n", "../n", "https://github.com/"] {
            assert_eq!(host_path(address), None, "{address}");
        }
    }

    #[test]
    fn no_path_leaves_its_root() {
        assert_eq!(inside("/abs/../a//./b.py"), "abs/a/b.py");
        assert_eq!(inside("C:\\x\\y.py"), "x/y.py");
        assert_eq!(inside("./src/a.py"), "src/a.py");
    }

    #[test]
    fn uris_hold_nothing_but_unreserved_characters() {
        assert_eq!(percent_encode("a b/c#d?e%f/é:[1].py"), "a%20b/c%23d%3Fe%25f/%C3%A9%3A%5B1%5D.py");
    }
}
