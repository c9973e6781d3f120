//! Findings about compiled code.
//!
//! In: what was read, and where in a report each thing is shown. Out: findings and gaps. Refused: silence about anything that could not be read.

use crate::catalog;
use crate::findings::{Finding, Gap, GapKind};
use crate::text::{FileId, Files, Span, TextFile, sanitize};

use super::cache::{Cache, Problem};

/// Id under which files of a cache stand in reports.
pub const CACHE: &str = "cache";

/// Where in reports the entries of a cache are: the metadata of each kernel is a file.
pub struct Places {
    folders: Vec<(String, FileId)>,
    whole: FileId,
}

impl Places {
    /// Adds the files of a cache.
    pub fn new(cache: &Cache, files: &mut Files) -> Self {
        let whole = files.add(TextFile::new(CACHE, ".", ""));
        let add = |entry: &super::cache::Entry| (entry.folder.clone(), files.add(TextFile::new(CACHE, entry.path(), entry.text.as_str())));
        Self { folders: cache.entries.iter().map(add).collect(), whole }
    }

    /// The metadata of a folder, or the cache as a whole.
    #[must_use]
    pub fn of(&self, folder: &str) -> Span {
        let file = self.folders.iter().find(|(name, _)| name == folder).map_or(self.whole, |(_, file)| *file);
        Span::new(file, 0, 0)
    }
}

/// What does not fit together in a cache, one finding per folder.
#[must_use]
pub fn contradictions(cache: &Cache, places: &Places) -> Vec<Finding> {
    let rule = catalog::rule("RLK608").expect("the rule is in the catalog, which a test verifies");
    let mut findings: Vec<Finding> = Vec::new();
    for problem in &cache.contradictions {
        let symbol = symbol(problem);
        match findings.last_mut().filter(|last| last.symbol == symbol) {
            Some(last) => last.arguments[1].push_str(&format!("; {}", problem.what)),
            None => {
                findings.push(Finding::new(rule, "default", vec![symbol.clone(), problem.what.clone()], places.of(&problem.folder), symbol))
            }
        }
    }
    findings
}

fn symbol(problem: &Problem) -> String {
    let kernel = if problem.kernel.is_empty() { "*" } else { problem.kernel.as_str() };
    sanitize(&format!("{}/{kernel}", problem.folder)).into_owned()
}

/// What could not be read.
#[must_use]
pub fn unread(cache: &Cache) -> Vec<Gap> {
    let gap = |problem: &Problem| Gap {
        kind: GapKind::Unobserved,
        source: CACHE.to_owned(),
        path: sanitize(&problem.folder).into_owned(),
        span: None,
        cause: format!("Kernel '{}': {}.", sanitize(&problem.kernel), problem.what),
        next: "Remove the folder and compile again, in a cache of its own.".to_owned(),
        allowed: false,
    };
    cache.unread.iter().map(gap).collect()
}
