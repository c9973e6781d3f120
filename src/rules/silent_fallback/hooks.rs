//! Replacements of framework code that are not made after an exception, and those that hand back to what they replaced.

use std::collections::BTreeSet;

use super::{Taken, in_range, types, words};
use crate::findings::{Finding, Related};
use crate::names::GlobalScope;
use crate::profile::{PathClass, Role};
use crate::rules::dataflow::{Names, method};
use crate::rules::{Context, rule};
use crate::syntax::{CondKind, OpKind, Reg};
use crate::values::{Install, Object};

/// A handler that leaves the function before it installs its hooks, or before it comes to the family.
pub(super) fn left_out(taken: &Taken<'_>, findings: &mut Vec<Finding>) -> bool {
    let context = taken.context;
    let imports = taken.ops()[taken.attempt.body.0 as usize..taken.attempt.body.1 as usize]
        .iter()
        .any(|op| matches!(op.kind, OpKind::Import { .. } | OpKind::ImportFrom { .. }));
    if !imports || !taken.handler.leaves || taken.attempt.in_loop || super::strict::refuses(taken) {
        return false;
    }
    let after = |op: u32| {
        op >= taken.attempt.body.0
            && !(op >= taken.handler.ops.0 && op < taken.handler.ops.1)
            && !context.below(taken.scope, taken.ops()[op as usize].cond, taken.cond)
    };
    let kernel = context.sources[context.program.module(context.program.module_of(taken.scope)).source].role == Role::Kernel;
    let mut hooks: BTreeSet<String> = BTreeSet::new();
    let mut related = Vec::new();
    for install in context.engine.installs.iter().filter(|_| kernel) {
        let here = context.engine.scope_of(install.installer) == taken.scope && after(install.op);
        if here && is_foreign(context, taken.scope, install) && !replacements(context, install).is_empty() {
            let name = format!("{}.{}", context.engine.owner_name(install.owner), context.engine.text(install.name));
            if hooks.insert(name) {
                let span = context.span(taken.scope, install.op);
                related.push(Related { span, message: "this replacement is not made".to_owned() });
            }
        }
    }
    if !hooks.is_empty() {
        related.sort();
        taken.report("hook", vec![taken.function(), types(taken.handler), words(&hooks)], related, findings);
        return true;
    }
    let last = u32::try_from(taken.ops().len()).unwrap_or(u32::MAX);
    let lost: BTreeSet<String> = (0..last).filter(|op| after(*op)).flat_map(|op| in_range(context, taken.scope, (op, op + 1))).collect();
    if lost.is_empty() {
        return false;
    }
    let reached = taken.others();
    taken.report("handler", vec![taken.function(), words(&lost), words(&reached), types(taken.handler)], Vec::new(), findings);
    true
}

/// Whether an install replaces something that another module owns.
fn is_foreign(context: &Context<'_>, scope: GlobalScope, install: &Install) -> bool {
    let here = context.program.module_of(scope);
    let name = context.engine.text(install.name);
    let own = match context.engine.get(install.owner) {
        Object::Class(class, _) => context.program.module_of(class) == here,
        Object::Module(module) => module == here,
        Object::External(_) => false,
        _ => true,
    };
    // Marks that are kept on other code's objects replace nothing.
    !own && (install.target_exists || !name.starts_with('_'))
}

/// Functions that an install puts in place.
fn replacements(context: &Context<'_>, install: &Install) -> Vec<GlobalScope> {
    let installer = context.engine.scope_of(install.installer);
    let src = match &context.program.scope(installer).ops[install.op as usize].kind {
        OpKind::StoreAttr { src, .. } => *src,
        OpKind::Call { args, .. } => match args.get(2) {
            Some((_, reg)) => *reg,
            None => return Vec::new(),
        },
        _ => return Vec::new(),
    };
    let objects = context.glance(installer, src).into_iter();
    objects.filter_map(|object| if let Object::Function(scope, _) = context.engine.get(object) { Some(scope) } else { None }).collect()
}

/// Replacements that run the original after all, on what they are given and without a record.
pub(super) fn handed_back(context: &Context<'_>, names: &Names<'_>, findings: &mut Vec<Finding>) {
    let mut said: BTreeSet<(GlobalScope, u32)> = BTreeSet::new();
    for install in &context.engine.installs {
        let installer = context.engine.scope_of(install.installer);
        let module = context.program.module_of(installer);
        let production = matches!((context.class_of)(module), PathClass::Production | PathClass::Reference);
        if !production
            || context.sources[context.program.module(module).source].role != Role::Kernel
            || !is_foreign(context, installer, install)
        {
            continue;
        }
        let full = format!("{}.{}", context.engine.owner_name(install.owner), context.engine.text(install.name));
        let marks = marks(context, names, module);
        for replacement in replacements(context, install) {
            if !context.routes.iter().any(|routes| routes.reach.holds(replacement)) {
                continue;
            }
            let facts = context.program.scope(replacement);
            for (at, op) in facts.ops.iter().enumerate() {
                let at = u32::try_from(at).unwrap_or(u32::MAX);
                let OpKind::Call { func, .. } = op.kind else { continue };
                if op.cond == 0 || !names.of(replacement, func).contains(&full) {
                    continue;
                }
                let runs = context.engine.copies_of(replacement).iter().any(|inst| context.engine.runs(*inst, at));
                let Some(test) = data_test(context, names, replacement, op.cond, &marks).filter(|_| runs) else { continue };
                if said.insert((replacement, at)) {
                    let symbol = context.program.qualified(replacement);
                    let arguments = vec![symbol.clone(), full.clone()];
                    let mut finding = Finding::new(rule("silent-fallback"), "original", arguments, context.span(replacement, at), symbol);
                    let span = context.first_line(context.program.span(replacement, test));
                    finding.related.push(Related { span, message: "this test of the arguments decides".to_owned() });
                    findings.push(finding);
                }
            }
        }
    }
}

/// Attribute names by which a module marks objects of the framework: a test of one says what was installed, not what arrives.
fn marks<'p>(context: &'p Context<'_>, names: &Names<'p>, module: crate::names::ModuleId) -> BTreeSet<&'p str> {
    let mut out = BTreeSet::new();
    let count = u32::try_from(context.program.module(module).facts.scopes.len()).unwrap_or(u32::MAX);
    for scope in (0..count).map(|scope| context.program.global_scope(module, scope)) {
        for op in &context.program.scope(scope).ops {
            match &op.kind {
                OpKind::Call { func, args, .. } if args.len() == 3 && names.is_one_of(scope, *func, &["setattr"]) => {
                    out.extend(names.text(scope, args[1].1));
                }
                OpKind::StoreAttr { name, .. } => {
                    out.insert(context.program.module(module).facts.name(*name));
                }
                _ => {}
            }
        }
    }
    out
}

/// The innermost test above a condition that depends on what the function is given, marks left aside.
fn data_test(
    context: &Context<'_>,
    names: &Names<'_>,
    scope: GlobalScope,
    cond: u32,
    marks: &BTreeSet<&str>,
) -> Option<crate::syntax::Range> {
    let facts = context.program.scope(scope);
    let mut at = cond;
    while at != 0 {
        let node = facts.conds[at as usize];
        if let CondKind::Test(reg, _) = node.kind
            && looks_at_data(context, names, scope, reg, marks)
        {
            return Some(node.range);
        }
        at = node.parent;
    }
    None
}

fn looks_at_data(context: &Context<'_>, names: &Names<'_>, scope: GlobalScope, reg: Reg, marks: &BTreeSet<&str>) -> bool {
    let module = &context.program.module(context.program.module_of(scope)).facts;
    let mut open = vec![reg];
    let mut seen = BTreeSet::new();
    while let Some(reg) = open.pop() {
        if !seen.insert(reg) {
            continue;
        }
        for kind in names.defined_by(scope, reg) {
            match kind {
                OpKind::Move(_, src) | OpKind::Filter(_, src, _) | OpKind::Not { src, .. } => open.push(*src),
                OpKind::Binary { left, right, .. } => open.extend([*left, *right]),
                OpKind::Phi(_, inputs) => open.extend(inputs.iter().map(|(src, _)| *src)),
                OpKind::LoadAttr { obj, name, .. } if !marks.contains(module.name(*name)) && of_parameter(names, scope, *obj) => {
                    return true;
                }
                OpKind::LoadItem { obj, .. } => open.push(*obj),
                OpKind::Call { func, args, .. } => {
                    if names.is_one_of(scope, *func, &["getattr", "hasattr"]) {
                        let key = args.get(1).and_then(|(_, reg)| names.text(scope, *reg));
                        if key.is_some_and(|key| !marks.contains(key)) {
                            return true;
                        }
                    } else if let Some((obj, _)) = method(names, scope, *func) {
                        if of_parameter(names, scope, obj) {
                            return true;
                        }
                    } else {
                        open.extend(args.iter().map(|(_, reg)| *reg));
                    }
                }
                _ => {}
            }
        }
    }
    false
}

/// Whether a register is a parameter or read from one.
fn of_parameter(names: &Names<'_>, scope: GlobalScope, reg: Reg) -> bool {
    names.of(scope, reg).iter().any(|name| name.starts_with('<'))
}
