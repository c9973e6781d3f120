//! RLK506: evidence about another table, shape, revision or scoring than what it is said to support.

use super::{Context, evidence_findings};
use crate::findings::Finding;
use crate::stage0::evidence::Fault;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let faults = [Fault::Older, Fault::UnknownAge, Fault::OtherShape, Fault::ScoreReuse];
    evidence_findings(context, findings, "stale-evidence", &faults);
}
