//! RLK203: one callsite, several implementations, and nothing that decides between them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Context, rule};
use crate::findings::{Finding, Related};
use crate::profile::PathClass;
use crate::values::{EdgeKind, InstanceId, Target};

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    for routes in context.routes {
        for callsite in &routes.callsites {
            if callsite.targets.len() < 2 || !matches!(callsite.class, PathClass::Production | PathClass::Reference) {
                continue;
            }
            // Who owns the backward pass is no alternative to who owns the forward one.
            let forwards = context.engine.edges.iter().filter(|edge| {
                edge.kind == EdgeKind::AutogradForward && edge.op == callsite.op && context.engine.scope_of(edge.caller) == callsite.caller
            });
            if forwards.map(|edge| edge.target).collect::<BTreeSet<_>>().len() == 1 {
                continue;
            }
            // Where every caller gets one implementation, the caller decides.
            let mut reached: BTreeMap<InstanceId, BTreeSet<Target>> = BTreeMap::new();
            for edge in &context.engine.edges {
                if edge.op == callsite.op && context.engine.scope_of(edge.caller) == callsite.caller {
                    reached.entry(edge.caller).or_default().insert(edge.target);
                }
            }
            if reached.values().all(|targets| targets.len() == 1) {
                continue;
            }
            let caller = context.program.qualified(callsite.caller);
            let arguments = vec![caller.clone(), callsite.targets.len().to_string(), callsite.targets.join("', '")];
            let mut finding = Finding::new(rule("unresolved-dispatch"), "default", arguments, context.first_line(callsite.span), caller);
            for condition in &callsite.conditions {
                finding
                    .related
                    .push(Related { span: context.first_line(*condition), message: "nothing decides this condition".to_owned() });
            }
            finding.flow = context.flow(callsite);
            findings.push(finding);
        }
    }
}
