//! Files that moved between two revisions, and the dotted names that moved with them.
//!
//! In: both revisions as they were read. Out: for each Python file of the first revision that is gone and lives on under another path, both paths and
//! both module names. Refused: guesses; less than half of the lines in common is another file.

use std::collections::{BTreeMap, BTreeSet};

use super::Loaded;
use crate::names::Program;
use crate::sources::{FileKind, LoadedFile};
use crate::text::{FileId, Files};

/// Pairs of files that are compared line by line at most, in one source.
const MOST_PAIRS: usize = 20_000;

/// What moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renames {
    /// Source id, path before, path after, in order.
    pub files: Vec<(String, String, String)>,
    /// Module name before and after, longest first.
    modules: Vec<(String, String)>,
}

impl Renames {
    /// Compares the files of two revisions, source by source.
    #[must_use]
    pub fn between(old: &Loaded, new: &Loaded) -> Self {
        let mut renames = Self::default();
        for before in &old.sources {
            let Some(after) = new.sources.iter().find(|after| after.id == before.id) else { continue };
            let paths = |loaded: &Loaded, files: &[LoadedFile]| -> BTreeMap<String, (FileId, String)> {
                let python = files.iter().filter(|file| file.kind == FileKind::Python && file.link_target.is_none());
                python.map(|file| (loaded.files.get(file.file).path.to_string(), (file.file, file.blob.to_string()))).collect()
            };
            let (was, is) = (paths(old, &before.files), paths(new, &after.files));
            let gone: Vec<_> = was.iter().filter(|(path, _)| !is.contains_key(*path)).collect();
            let come: Vec<_> = is.iter().filter(|(path, _)| !was.contains_key(*path)).collect();
            let pairs = pairs(&gone, &come, &old.files, &new.files);
            for (from, to) in pairs {
                let names = (module_of(&old.program, gone[from].1.0), module_of(&new.program, come[to].1.0));
                if let (Some(before), Some(after)) = names
                    && before != after
                {
                    renames.modules.push((before, after));
                }
                renames.files.push((before.id.clone(), gone[from].0.clone(), come[to].0.clone()));
            }
        }
        renames.files.sort();
        renames.modules.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.cmp(b)));
        renames
    }

    /// A dotted name or a path of the first revision as the second one has it.
    #[must_use]
    pub fn now(&self, name: &str) -> String {
        if let Some((_, _, after)) = self.files.iter().find(|(_, before, _)| before == name) {
            return after.clone();
        }
        for (before, after) in &self.modules {
            if let Some(rest) = name.strip_prefix(before.as_str())
                && (rest.is_empty() || rest.starts_with('.'))
            {
                return format!("{after}{rest}");
            }
        }
        name.to_owned()
    }
}

fn module_of(program: &Program, file: FileId) -> Option<String> {
    let module = program.modules.iter().find(|module| module.file == file)?;
    Some(program.strings.text(module.name).to_owned())
}

type Row<'a> = (&'a String, &'a (FileId, String));

/// Indices of files that are the same one: equal content first, then at least half of the lines, the most alike first.
fn pairs(gone: &[Row<'_>], come: &[Row<'_>], old: &Files, new: &Files) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let (mut from_used, mut to_used) = (BTreeSet::new(), BTreeSet::new());
    for (from, (_, (_, blob))) in gone.iter().enumerate() {
        let equal = come.iter().enumerate().find(|(to, (_, (_, other)))| other == blob && !to_used.contains(to));
        // Files without a word, such as most `__init__.py`, are alike and say nothing.
        if let Some((to, (_, (file, _)))) = equal
            && !new.get(*file).text.trim().is_empty()
        {
            from_used.insert(from);
            to_used.insert(to);
            found.push((from, to));
        }
    }
    let left = |count: usize, used: &BTreeSet<usize>| (0..count).filter(|at| !used.contains(at)).collect::<Vec<_>>();
    let (from_left, to_left) = (left(gone.len(), &from_used), left(come.len(), &to_used));
    if from_left.len() * to_left.len() > MOST_PAIRS {
        return found;
    }
    let mut likely: Vec<(std::cmp::Reverse<usize>, usize, usize)> = Vec::new();
    for from in &from_left {
        for to in &to_left {
            let share = likeness(&old.get(gone[*from].1.0).text, &new.get(come[*to].1.0).text);
            if share >= 50 {
                likely.push((std::cmp::Reverse(share), *from, *to));
            }
        }
    }
    likely.sort_unstable();
    for (_, from, to) in likely {
        if from_used.insert(from) {
            if to_used.insert(to) {
                found.push((from, to));
            } else {
                from_used.remove(&from);
            }
        }
    }
    found
}

/// Percentage of lines that two texts share, of those of the longer one; blank lines do not count.
fn likeness(old: &str, new: &str) -> usize {
    let lines = |text: &str| -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            *counts.entry(line.to_owned()).or_default() += 1;
        }
        counts
    };
    let (old, new) = (lines(old), lines(new));
    let shared: usize = old.iter().map(|(line, count)| (*count).min(new.get(line).copied().unwrap_or(0))).sum();
    let most = old.values().sum::<usize>().max(new.values().sum());
    (shared * 100).checked_div(most).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_move_with_their_modules() {
        let renames =
            Renames { files: vec![("main".into(), "a/b.py".into(), "a/c.py".into())], modules: vec![("a.b".into(), "a.c".into())] };
        assert_eq!(renames.now("a.b.f"), "a.c.f");
        assert_eq!(renames.now("a.b"), "a.c");
        assert_eq!(renames.now("a.bc.f"), "a.bc.f");
        assert_eq!(renames.now("a/b.py"), "a/c.py");
        assert_eq!(renames.now("none"), "none");
    }

    #[test]
    fn likeness_is_a_share_of_the_longer_text() {
        assert_eq!(likeness("a\nb\nc\nd\n", "a\n\n  b\nc\nx\n"), 75);
        assert_eq!(likeness("a\nb\n", "a\nb\nc\nd\n"), 50);
        assert_eq!(likeness("a\na\n", "a\nb\n"), 50);
        assert_eq!(likeness("", "\n"), 0);
    }
}
