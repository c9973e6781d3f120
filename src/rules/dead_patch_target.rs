//! RLK204: a monkeypatch of an attribute that its owner does not have.

use std::collections::BTreeSet;

use super::{Context, rule};
use crate::findings::Finding;
use crate::profile::PathClass;
use crate::syntax::OpKind;
use crate::values::Object;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let mut seen = BTreeSet::new();
    for install in context.engine.installs.iter().filter(|install| !install.target_exists) {
        let scope = context.engine.scope_of(install.installer);
        let module = context.program.module_of(scope);
        if !matches!((context.class_of)(module), PathClass::Production | PathClass::Reference) {
            continue;
        }
        let owner_module = match context.engine.get(install.owner) {
            Object::Class(class, _) if !context.engine.has_open_base(install.owner) => context.program.module_of(class),
            Object::Module(module) => module,
            _ => continue,
        };
        // Attributes of its own class or module are new ones, not replacements.
        let name = context.engine.text(install.name);
        if owner_module == module || name.starts_with('_') {
            continue;
        }
        let op = &context.program.scope(scope).ops[install.op as usize];
        let src = match &op.kind {
            OpKind::StoreAttr { src, .. } => *src,
            OpKind::Call { args, .. } => match args.get(2) {
                Some((_, reg)) => *reg,
                None => continue,
            },
            _ => continue,
        };
        let strict = context.glance(scope, src).into_iter().any(|object| context.family_object(object).is_some());
        if !strict || !seen.insert((scope, install.op, install.name)) {
            continue;
        }
        let full = format!("{}.{name}", context.engine.owner_name(install.owner));
        let source = &context.sources[context.program.module(owner_module).source].id;
        let arguments = vec![full.clone(), source.clone()];
        findings.push(Finding::new(rule("dead-patch-target"), "default", arguments, context.span(scope, install.op), full));
    }
}
