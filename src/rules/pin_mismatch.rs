//! RLK102: a pinned commit whose tree is another one than the pin says.

use super::{Context, rule};
use crate::findings::Finding;
use crate::sources::SourceError;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    for problem in context.sources.iter().flat_map(|source| &source.problems) {
        if let SourceError::TreeMismatch { id, commit, recorded, computed } = problem
            && let Some(place) = context.pin(id)
        {
            let arguments = vec![id.clone(), commit.clone(), computed.clone(), recorded.clone()];
            findings.push(Finding::new(rule("pin-mismatch"), "default", arguments, place, id.clone()));
        }
    }
}
