//! RLK203: one callsite, several implementations, and nothing that decides between them.

use super::{Context, rule};
use crate::findings::{Finding, Related};
use crate::profile::PathClass;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    for routes in context.routes {
        for callsite in &routes.callsites {
            if callsite.targets.len() < 2 || !matches!(callsite.class, PathClass::Production | PathClass::Reference) {
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
