//! RLK103: a source read from a working tree that differs from its commit.

use super::{Context, rule};
use crate::findings::Finding;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    for source in context.sources {
        let Some(tree) = source.work_tree.as_ref().filter(|tree| !tree.changed.is_empty()) else { continue };
        let Some(place) = context.pin(&source.id) else { continue };
        let arguments = vec![source.id.clone(), tree.changed.len().to_string(), tree.changed[0].clone()];
        findings.push(Finding::new(rule("dirty-tree"), "default", arguments, place, source.id.clone()));
    }
}
