//! RLK304: equality of values where the contract demands equal bytes.

use super::dataflow::{Sides, Strictness};
use super::{Context, rule};
use crate::findings::Finding;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    for found in context.comparisons() {
        if found.strictness != Strictness::Values || found.bits {
            continue;
        }
        let key = match found.sides {
            Sides::Family => "family",
            Sides::Scores => "scores",
            // A test that replaces the kernel looks at the wiring, not at arithmetic.
            Sides::Product if !replaces(context, found.scope) => "product",
            Sides::Product | Sides::Reference => continue,
        };
        let symbol = context.program.qualified(found.scope);
        findings.push(Finding::new(rule("value-equality"), key, vec![found.callee.clone()], context.span(found.scope, found.op), symbol));
    }
}

/// Whether a test function takes pytest's `monkeypatch`.
fn replaces(context: &Context<'_>, scope: crate::names::GlobalScope) -> bool {
    let names = &context.program.module(context.program.module_of(scope)).facts;
    context.program.scope(scope).params.iter().any(|param| names.name(param.name) == "monkeypatch")
}
