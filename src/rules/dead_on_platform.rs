//! RLK205: a callsite of the family that the platform's assumptions rule out.

use std::collections::BTreeSet;

use super::{Context, rule};
use crate::findings::{Finding, Related};
use crate::syntax::{CondKind, OpKind};

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    for scope in context.scopes() {
        let facts = context.program.scope(scope);
        let copies = context.engine.copies_of(scope);
        for (at, op) in facts.ops.iter().enumerate() {
            let OpKind::Call { func, .. } = op.kind else { continue };
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            if op.cond == 0 || copies.iter().any(|inst| context.engine.runs(*inst, at)) {
                continue;
            }
            let targets: BTreeSet<String> =
                context.glance(scope, func).into_iter().filter_map(|object| context.family_object(object)).collect();
            // A branch that no caller's arguments take is not the platform's doing.
            let Some(decided) = by_platform(context, scope, op.cond) else { continue };
            if targets.is_empty() {
                continue;
            }
            let caller = context.program.qualified(scope);
            let platform = format!("{}/{}", context.profile.backend, context.profile.arch);
            let arguments = vec![caller.clone(), targets.into_iter().collect::<Vec<_>>().join("', '"), platform];
            let mut finding = Finding::new(rule("dead-on-platform"), "default", arguments, context.span(scope, at), caller);
            let place = context.first_line(context.program.span(scope, decided));
            finding.related.push(Related { span: place, message: "this test is decided by the profile".to_owned() });
            findings.push(finding);
        }
    }
}

/// The test that rules a condition out, if what it reads is a declared name or follows from one.
fn by_platform(context: &Context<'_>, scope: crate::names::GlobalScope, cond: u32) -> Option<crate::syntax::Range> {
    let facts = context.program.scope(scope);
    let mut at = cond;
    while at != 0 {
        let node = facts.conds[at as usize];
        if let CondKind::Test(reg, wanted) = node.kind {
            // Copies that return before the test have no say.
            let mut copies =
                context.engine.copies_of(scope).iter().filter(|inst| !context.engine.objects_in(**inst, reg).is_empty()).peekable();
            if copies.peek().is_some() && copies.all(|inst| !context.engine.is_undecided(*inst, reg, !wanted)) {
                return Some(node.range);
            }
        }
        at = node.parent;
    }
    None
}
