//! RLK507: a file that is named as evidence and does not show that anything ran.

use super::{Context, evidence_findings};
use crate::findings::Finding;
use crate::stage0::evidence::Fault;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    evidence_findings(context, findings, "unproven-evidence", &[Fault::Absent, Fault::NoPlatform, Fault::NoRevision, Fault::Unrun]);
}
