//! What changed between two revisions: routes, and the findings about them (RLK206).
//!
//! In: the routes of both revisions, as rows. Out: each route that was added, is gone or changed, with what is different. Refused: differences of lines
//! alone; a route is told by its caller, kind, targets and ends.

use std::collections::{BTreeMap, VecDeque};

use super::renames::Renames;
use super::{Analysis, Loaded, counts};
use crate::catalog;
use crate::findings::{Finding, Step};
use crate::routes::Callsite;
use crate::text::Span;

/// One route, as it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteRow {
    /// Family.
    pub family: String,
    /// Dotted name of the function that the callsite stands in.
    pub caller: String,
    /// Word for what the callsite does.
    pub kind: &'static str,
    /// Dotted names of what it reaches in one step.
    pub targets: Vec<String>,
    /// Dotted names of the kernels that it can end in.
    pub kernels: Vec<String>,
    /// Backward owner, or `none`.
    pub backward: String,
    /// Word for what became of it.
    pub status: &'static str,
    /// Word for how sure that is.
    pub certainty: &'static str,
    /// Source texts of the conditions that nothing decides.
    pub conditions: Vec<String>,
    /// Whether it is of production or reference code.
    pub counts: bool,
    /// `source:path:line`.
    pub place: String,
    /// The callsite.
    pub span: Span,
}

/// What happened to a route; the numbers are indices of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteChange {
    /// Only the second revision has it.
    Added(usize),
    /// Only the first revision has it.
    Removed(usize),
    /// It is another one: row of the first and of the second revision, and what is different.
    Changed(usize, usize, String),
}

/// Every route of an analysis, in the order of its callsites.
#[must_use]
pub fn rows(loaded: &Loaded, analysis: &Analysis<'_>) -> Vec<RouteRow> {
    let condition = |span: &Span| loaded.files.slice(*span).split_whitespace().collect::<Vec<_>>().join(" ");
    let row = |family: &str, callsite: &Callsite| RouteRow {
        family: family.to_owned(),
        caller: loaded.program.qualified(callsite.caller),
        kind: callsite.kind.word(),
        targets: callsite.targets.clone(),
        kernels: callsite.kernels.clone(),
        backward: callsite.backward.clone().unwrap_or_else(|| "none".to_owned()),
        status: callsite.status.word(),
        certainty: callsite.certainty.word(),
        conditions: callsite.conditions.iter().map(condition).collect(),
        counts: counts(callsite.class),
        place: loaded.files.place(callsite.span),
        span: callsite.span,
    };
    analysis.routes.iter().flat_map(|routes| routes.callsites.iter().map(|callsite| row(&routes.family, callsite))).collect()
}

/// Gives rows of the first revision the names that files have in the second one.
pub fn rename(rows: &mut [RouteRow], renames: &Renames) {
    for row in rows {
        row.caller = renames.now(&row.caller);
        row.backward = renames.now(&row.backward);
        for name in row.targets.iter_mut().chain(&mut row.kernels) {
            *name = renames.now(name);
        }
    }
}

/// What two rows can have in common, from everything to the caller and the kind of the callsite.
const PASSES: [fn(&RouteRow) -> Vec<String>; 3] = [
    |row| {
        let ends = [row.kernels.join(","), row.backward.clone(), row.status.into(), row.certainty.into(), row.conditions.join(" and ")];
        let mut key = vec![row.family.clone(), row.caller.clone(), row.kind.to_owned(), row.targets.join(",")];
        key.extend(ends);
        key
    },
    |row| vec![row.family.clone(), row.caller.clone(), row.kind.to_owned(), row.targets.join(",")],
    |row| vec![row.family.clone(), row.caller.clone(), row.kind.to_owned()],
];

/// Compares routes. Changes come in the order of the second revision, then what is gone in that of the first.
#[must_use]
pub fn compare(old: &[RouteRow], new: &[RouteRow]) -> Vec<RouteChange> {
    let mut met: Vec<Option<usize>> = vec![None; new.len()];
    let mut open = vec![true; old.len()];
    for key in PASSES {
        let mut places: BTreeMap<Vec<String>, VecDeque<usize>> = BTreeMap::new();
        for (at, row) in old.iter().enumerate().filter(|(at, _)| open[*at]) {
            places.entry(key(row)).or_default().push_back(at);
        }
        for (met, row) in met.iter_mut().zip(new).filter(|(met, _)| met.is_none()) {
            if let Some(at) = places.get_mut(&key(row)).and_then(VecDeque::pop_front) {
                open[at] = false;
                *met = Some(at);
            }
        }
    }
    let mut changes = Vec::new();
    for (at, met) in met.iter().enumerate() {
        match met {
            None => changes.push(RouteChange::Added(at)),
            Some(before) => {
                let what = difference(&old[*before], &new[at]);
                if !what.is_empty() {
                    changes.push(RouteChange::Changed(*before, at, what));
                }
            }
        }
    }
    changes.extend((0..old.len()).filter(|at| open[*at]).map(RouteChange::Removed));
    changes
}

/// What is different, field by field; empty if nothing is.
fn difference(old: &RouteRow, new: &RouteRow) -> String {
    let list = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let parts = [
        ("targets", list(&old.targets), list(&new.targets)),
        ("kernels", list(&old.kernels), list(&new.kernels)),
        ("backward", old.backward.clone(), new.backward.clone()),
        ("status", old.status.to_owned(), new.status.to_owned()),
        ("certainty", old.certainty.to_owned(), new.certainty.to_owned()),
        ("conditions", list(&old.conditions), list(&new.conditions)),
    ];
    let different = parts.iter().filter(|(_, before, after)| before != after);
    different.map(|(what, before, after)| format!("{what} {before} -> {after}")).collect::<Vec<_>>().join("; ")
}

/// A finding for each production route that changed. What is gone is shown at `gone`, since its place is not there any more; `flow` gives the chain of a
/// route of the second revision.
#[must_use]
pub fn findings(old: &[RouteRow], new: &[RouteRow], gone: &dyn Fn(&RouteRow) -> Span, flow: &dyn Fn(usize) -> Vec<Step>) -> Vec<Finding> {
    let Some(rule) = catalog::rule("RLK206") else { return Vec::new() };
    let ends = |row: &RouteRow| if row.kernels.is_empty() { row.status.to_owned() } else { row.kernels.join("', '") };
    let mut found = Vec::new();
    for change in compare(old, new) {
        let mut finding = match &change {
            RouteChange::Added(at) => {
                let row = &new[*at];
                let arguments = vec![row.caller.clone(), row.targets.join("', '"), ends(row)];
                Finding::new(rule, "added", arguments, row.span, row.caller.clone())
            }
            RouteChange::Removed(at) => {
                let row = &old[*at];
                let arguments = vec![row.caller.clone(), row.targets.join("', '"), ends(row)];
                Finding::new(rule, "removed", arguments, gone(row), row.caller.clone())
            }
            RouteChange::Changed(_, at, what) => {
                let row = &new[*at];
                Finding::new(rule, "default", vec![row.caller.clone(), what.clone()], row.span, row.caller.clone())
            }
        };
        let (row, after) = match change {
            RouteChange::Removed(at) => (&old[at], None),
            RouteChange::Added(at) | RouteChange::Changed(_, at, _) => (&new[at], Some(at)),
        };
        if row.counts {
            finding.flow = after.map(flow).unwrap_or_default();
            found.push(finding);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::FileId;

    fn row(caller: &str, targets: &[&str], kernels: &[&str]) -> RouteRow {
        RouteRow {
            family: "det_gemm".into(),
            caller: caller.into(),
            kind: "direct-call",
            targets: targets.iter().map(|name| (*name).to_owned()).collect(),
            kernels: kernels.iter().map(|name| (*name).to_owned()).collect(),
            backward: "none".into(),
            status: "traced",
            certainty: "proved",
            conditions: vec![],
            counts: true,
            place: "main:a.py:1".into(),
            span: Span::new(FileId(0), 0, 1),
        }
    }

    #[test]
    fn equal_routes_count_once_each_and_lines_do_not() {
        let mut moved = row("f", &["g"], &["k"]);
        moved.place = "main:a.py:99".into();
        moved.span = Span::new(FileId(0), 40, 44);
        let one = row("f", &["g"], &["k"]);
        assert_eq!(compare(std::slice::from_ref(&one), std::slice::from_ref(&moved)), []);
        assert_eq!(compare(std::slice::from_ref(&one), &[moved, one.clone()]), [RouteChange::Added(1)]);
        assert_eq!(compare(&[one.clone(), one.clone()], &[one]), [RouteChange::Removed(1)]);
    }

    #[test]
    fn what_is_different_is_said() {
        let mut new = row("f", &["g"], &["other"]);
        new.certainty = "heuristic";
        new.conditions = vec!["fast".into()];
        let what = "kernels k -> other; certainty proved -> heuristic; conditions none -> fast".to_owned();
        assert_eq!(compare(&[row("f", &["g"], &["k"])], &[new]), [RouteChange::Changed(0, 0, what)]);
        let targets = compare(&[row("f", &["g"], &["k"])], &[row("f", &["h"], &["k"])]);
        assert_eq!(targets, [RouteChange::Changed(0, 0, "targets g -> h".into())]);
    }

    #[test]
    fn an_exact_match_is_not_taken_for_a_change_of_another_one() {
        let old = [row("f", &["g"], &["k"]), row("f", &["h"], &["k"])];
        let new = [row("f", &["h"], &["k"])];
        assert_eq!(compare(&old, &new), [RouteChange::Removed(0)]);
    }

    #[test]
    fn findings_are_about_production_routes() {
        let mut outside = row("test_f", &["g"], &["k"]);
        outside.counts = false;
        let gone = |_: &RouteRow| Span::new(FileId(7), 0, 0);
        let found = findings(&[row("f", &["g"], &["k"])], &[outside, row("h", &["g"], &["k"])], &gone, &|_| Vec::new());
        let said: Vec<_> = found.iter().map(|finding| (finding.text(), finding.primary.file.0)).collect();
        assert_eq!(
            said,
            [
                ("The base has no route from 'h' to 'g', which ends in 'k'.".to_owned(), 0),
                ("The route that the base has from 'f' to 'g' is gone; it ended in 'k'.".to_owned(), 7),
            ]
        );
    }
}
