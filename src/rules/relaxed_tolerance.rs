//! RLK303: a tolerance where the contract demands equal bits.

use super::dataflow::{Sides, Strictness};
use super::{Context, rule};
use crate::findings::Finding;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    for found in context.comparisons() {
        let key = match found.sides {
            Sides::Family => "family",
            Sides::Scores => "scores",
            Sides::Product | Sides::Reference => continue,
        };
        if found.strictness == Strictness::Tolerant && !found.bits {
            let symbol = context.program.qualified(found.scope);
            let arguments = vec![found.callee.clone(), found.rtol.clone(), found.atol.clone()];
            findings.push(Finding::new(rule("relaxed-tolerance"), key, arguments, context.span(found.scope, found.op), symbol));
        }
    }
}
