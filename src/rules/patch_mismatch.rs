//! RLK104: a companion patch with another digest or result than recorded, or one that does not apply.

use super::{Context, rule};
use crate::findings::Finding;
use crate::sources::SourceError;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    for problem in context.sources.iter().flat_map(|source| &source.problems) {
        let (id, key, arguments) = match problem {
            SourceError::PatchDigestMismatch { id, recorded, computed } => {
                (id, "digest", vec![id.clone(), computed.clone(), recorded.clone()])
            }
            SourceError::PatchTreeMismatch { id, recorded, computed } => (id, "tree", vec![id.clone(), computed.clone(), recorded.clone()]),
            SourceError::PatchDoesNotApply { id, .. }
            | SourceError::PatchHeaderMismatch { id, .. }
            | SourceError::PatchRefused { id, .. } => (id, "apply", vec![id.clone(), problem.to_string()]),
            _ => continue,
        };
        if let Some(place) = context.pin(id) {
            findings.push(Finding::new(rule("patch-mismatch"), key, arguments, place, id.clone()));
        }
    }
}
