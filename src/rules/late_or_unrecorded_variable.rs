//! RLK407: a variable that selects a route when its reader is imported and is set after that, or one that the record of the environment lacks.

use super::environment::{Purpose, imported_before, writes};
use super::variable_not_handed_on::missing;
use super::{Context, rule};
use crate::findings::{Finding, Related};

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    missing(context, findings, "late-or-unrecorded-variable", "unrecorded", Purpose::Record, "the record is made of these");
    let environment = context.environment();
    for write in writes(context) {
        let Some(selector) = environment.selectors.get(&write.name).filter(|selector| environment.flow.is_frozen(context, &selector.read))
        else {
            continue;
        };
        let reader = context.program.module_of(selector.read.scope);
        if !imported_before(context, write.scope, write.op).contains(&reader) {
            continue;
        }
        let module = context.engine.text(context.program.module(reader).name).to_owned();
        let arguments = vec![write.name.clone(), module];
        let span = context.span(write.scope, write.op);
        let mut finding =
            Finding::new(rule("late-or-unrecorded-variable"), "late", arguments, span, context.program.qualified(write.scope));
        finding.related = vec![Related { span: selector.read.span, message: "it is read here, once, at import".to_owned() }];
        findings.push(finding);
    }
}
