//! RLK505: evidence that was made on another vendor's device, or on another instruction set.

use super::{Context, evidence_findings};
use crate::findings::Finding;
use crate::stage0::evidence::Fault;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    evidence_findings(context, findings, "foreign-evidence", &[Fault::OtherPlatform]);
}
