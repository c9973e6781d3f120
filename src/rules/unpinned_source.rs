//! RLK101: a source without a pinned commit.

use super::{Context, rule};
use crate::findings::Finding;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    for (source, loaded) in context.profile.sources.iter().zip(context.sources) {
        // A commit cannot hold its own id: the checkout that results are reported against is pinned by what is checked out.
        let own = source.main && loaded.work_tree.as_ref().is_some_and(|tree| tree.head.is_some());
        if source.commit.is_some() || own || loaded.files.is_empty() {
            continue;
        }
        let revision = match &loaded.work_tree {
            Some(tree) => {
                tree.head.clone().map_or_else(|| "a working tree without a commit".to_owned(), |head| format!("a working tree of {head}"))
            }
            None => "a plain directory".to_owned(),
        };
        let place = context.first_line(source.span);
        findings.push(Finding::new(rule("unpinned-source"), "default", vec![source.id.clone(), revision], place, source.id.clone()));
    }
}
