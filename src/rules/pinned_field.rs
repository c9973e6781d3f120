//! RLK306: a constant that a contract pins is changed from outside, or bound to something else at a launch.

use std::collections::{BTreeMap, BTreeSet};

use super::dataflow::{Flow, Names, Spread};
use super::{Context, rule};
use crate::findings::{Finding, Related};
use crate::names::{GlobalScope, ModuleId};
use crate::profile::PathClass;
use crate::routes::CallsiteKind;
use crate::syntax::{Literal, NameId, OpKind, Passing, Reg, ScopeKind};
use crate::text::Span;

/// Names under which the environment is read.
const ENVIRONMENT: [&str; 3] = ["os.getenv", "os.environ.get", "os.environ"];

/// A parameter of a kernel at one launch.
struct Bound {
    scope: GlobalScope,
    op: u32,
    /// Module of the kernel: kernels of one module follow one contract.
    kernel: String,
    parameter: String,
    value: Reg,
}

/// A name of a module that is launched with.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Constant {
    module: ModuleId,
    name: String,
}

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let names = Names::new(context.program);
    let bound = launches(context, &names);
    // What a launch takes from a constant of a module is pinned; the constant's modules by parameter.
    let mut pinned: BTreeMap<(String, String), (Constant, Span)> = BTreeMap::new();
    for launch in &bound {
        if let Some(constant) = constant(context, &names, launch.scope, launch.value) {
            let place = context.span(launch.scope, launch.op);
            pinned.entry((launch.kernel.clone(), launch.parameter.clone())).or_insert((constant, place));
        }
    }
    let constants: BTreeMap<&Constant, (&str, Span)> =
        pinned.iter().map(|((_, parameter), (constant, place))| (constant, (parameter.as_str(), *place))).collect();
    stores(context, &names, &constants, findings);
    for constant in constants.keys() {
        from_environment(context, &names, constant, constants[constant], findings);
    }
    let mut said = BTreeSet::new();
    for launch in &bound {
        let Some((constant, place)) = pinned.get(&(launch.kernel.clone(), launch.parameter.clone())) else { continue };
        if !other_value(context, &names, launch, constant) || !said.insert((launch.scope, launch.op, launch.parameter.clone())) {
            continue;
        }
        let symbol = context.program.qualified(launch.scope);
        let shown = shown(context, constant);
        let arguments = vec![symbol.clone(), launch.parameter.clone(), shown];
        let mut finding = Finding::new(rule("pinned-field"), "launch", arguments, context.span(launch.scope, launch.op), symbol);
        finding.related.push(Related { span: *place, message: "this launch takes the pinned constant".to_owned() });
        findings.push(finding);
    }
}

fn shown(context: &Context<'_>, constant: &Constant) -> String {
    format!("{}.{}", context.program.strings.text(context.program.module(constant.module).name), constant.name)
}

/// Parameters that production code launches the family's kernels with.
fn launches(context: &Context<'_>, names: &Names<'_>) -> Vec<Bound> {
    let mut out = Vec::new();
    for routes in context.routes {
        let sites = routes.callsites.iter().filter(|site| site.kind == CallsiteKind::KernelLaunch);
        for site in sites.filter(|site| matches!(site.class, PathClass::Production | PathClass::Reference)) {
            let scope = site.caller;
            let OpKind::Call { args, .. } = &context.program.scope(scope).ops[site.op as usize].kind else { continue };
            let facts = &context.program.module(context.program.module_of(scope)).facts;
            for kernel in &site.targets {
                let home = kernel.rsplit_once('.').map_or("", |(home, _)| home).to_owned();
                let mut add = |parameter: &str, value: Reg| {
                    out.push(Bound { scope, op: site.op, kernel: home.clone(), parameter: parameter.to_owned(), value });
                };
                let own =
                    context.program.find_scope(kernel).map(|scope| context.program.scope(scope).params.as_slice()).unwrap_or_default();
                for (place, (passing, reg)) in args.iter().enumerate() {
                    match passing {
                        Passing::Keyword(name) => add(facts.name(*name), *reg),
                        Passing::Position => {
                            let kernel_names = context.program.find_scope(kernel).map(|at| context.program.module_of(at));
                            if let (Some(param), Some(module)) = (own.get(place), kernel_names) {
                                add(context.program.module(module).facts.name(param.name), *reg);
                            }
                        }
                        Passing::DoubleStar => {
                            for (name, value) in entries(context, names, scope, *reg) {
                                add(&name, value);
                            }
                        }
                        Passing::Star => {}
                    }
                }
            }
        }
    }
    out
}

/// Entries of a dict of options that is made in the same function, with what is stored into it.
fn entries(context: &Context<'_>, names: &Names<'_>, scope: GlobalScope, dict: Reg) -> Vec<(String, Reg)> {
    let facts = &context.program.module(context.program.module_of(scope)).facts;
    let mut out = Vec::new();
    let mut open = vec![dict];
    let mut seen = BTreeSet::new();
    while let Some(dict) = open.pop() {
        if !seen.insert(dict) {
            continue;
        }
        for kind in names.defined_by(scope, dict) {
            match kind {
                OpKind::Move(_, src) | OpKind::Filter(_, src, _) => open.push(*src),
                OpKind::Phi(_, inputs) => open.extend(inputs.iter().map(|(src, _)| *src)),
                OpKind::Dict { items, .. } => {
                    for (key, value) in items {
                        match names.text(scope, *key) {
                            Some(key) => out.push((key.to_owned(), *value)),
                            None => open.push(*value),
                        }
                    }
                }
                OpKind::Call { func, args, .. } if names.is_one_of(scope, *func, &["dict"]) => {
                    for (passing, reg) in args {
                        match passing {
                            Passing::Keyword(name) => out.push((facts.name(*name).to_owned(), *reg)),
                            _ => open.push(*reg),
                        }
                    }
                }
                _ => {}
            }
        }
        for op in &context.program.scope(scope).ops {
            if let OpKind::StoreItem { obj, key, src } = op.kind
                && obj == dict
                && let Some(key) = names.text(scope, key)
            {
                out.push((key.to_owned(), src));
            }
        }
    }
    out
}

/// The name of a module that a value is taken from, if that is a number there or made from the environment.
fn constant(context: &Context<'_>, names: &Names<'_>, scope: GlobalScope, value: Reg) -> Option<Constant> {
    let program = context.program;
    let here = program.module_of(scope);
    let mut reg = value;
    for _ in 0..8 {
        let kinds = names.defined_by(scope, reg);
        let [kind] = kinds.as_slice() else { return None };
        match kind {
            OpKind::Move(_, src) | OpKind::Filter(_, src, _) => reg = *src,
            OpKind::LoadGlobal(_, name) => {
                let own = Constant { module: here, name: program.module(here).facts.name(*name).to_owned() };
                if is_number(context, names, &own) {
                    return Some(own);
                }
                // Imported from elsewhere, perhaps.
                break;
            }
            OpKind::Phi(..) => return None,
            _ => break,
        }
    }
    names.of(scope, value).into_iter().find_map(|full| {
        let (home, name) = full.rsplit_once('.')?;
        let sym = program.strings.find(home)?;
        let module = program.find(sym, program.module(here).source)?;
        let constant = Constant { module, name: name.to_owned() };
        is_number(context, names, &constant).then_some(constant)
    })
}

fn registers(context: &Context<'_>, names: &Names<'_>, constant: &Constant) -> Vec<Reg> {
    let facts = &context.program.module(constant.module).facts;
    let name = facts.names.iter().position(|name| *name == constant.name).and_then(|at| NameId::try_from(at).ok());
    name.map(|name| names.stored(constant.module, name)).unwrap_or_default()
}

/// Whether a module binds a name to a number, or to something that it makes from the environment.
fn is_number(context: &Context<'_>, names: &Names<'_>, constant: &Constant) -> bool {
    let body = context.program.global_scope(constant.module, 0);
    let environment = environment(context, names, body);
    registers(context, names, constant)
        .into_iter()
        .any(|reg| matches!(names.literal(body, reg), Some((_, Literal::Int(_)))) || environment.holds(reg))
}

/// What flows from the environment in a scope.
fn environment(context: &Context<'_>, names: &Names<'_>, scope: GlobalScope) -> Flow {
    let seeds = context.program.scope(scope).ops.iter().filter_map(|op| match &op.kind {
        OpKind::Call { dst, func, .. } if names.is_one_of(scope, *func, &ENVIRONMENT) => Some(*dst),
        OpKind::LoadItem { dst, obj, .. } if names.is_one_of(scope, *obj, &ENVIRONMENT) => Some(*dst),
        _ => None,
    });
    Flow::from(names, scope, seeds.collect::<Vec<_>>(), Spread::Computed, &|_| false)
}

fn from_environment(
    context: &Context<'_>,
    names: &Names<'_>,
    constant: &Constant,
    (parameter, launch): (&str, Span),
    findings: &mut Vec<Finding>,
) {
    let body = context.program.global_scope(constant.module, 0);
    let flow = environment(context, names, body);
    for reg in registers(context, names, constant).into_iter().filter(|reg| flow.holds(*reg)) {
        let Some((scope, op)) = names.origin(body, reg) else { continue };
        let arguments = vec![shown(context, constant), parameter.to_owned()];
        let mut finding = Finding::new(rule("pinned-field"), "environment", arguments, context.span(scope, op), shown(context, constant));
        finding.related.push(Related { span: launch, message: "the kernel is launched with it here".to_owned() });
        findings.push(finding);
    }
}

/// Stores to pinned constants: through the module, with `setattr`, or by a function of the module itself.
fn stores(context: &Context<'_>, names: &Names<'_>, constants: &BTreeMap<&Constant, (&str, Span)>, findings: &mut Vec<Finding>) {
    if constants.is_empty() {
        return;
    }
    let program = context.program;
    let words: Vec<&str> = constants.keys().map(|constant| constant.name.as_str()).collect();
    for module in super::dataflow::modules_with(program, &words) {
        if !matches!((context.class_of)(module), PathClass::Production | PathClass::Reference) {
            continue;
        }
        let facts = &program.module(module).facts;
        for scope in 0..u32::try_from(facts.scopes.len()).unwrap_or(u32::MAX) {
            let scope = program.global_scope(module, scope);
            for (at, op) in program.scope(scope).ops.iter().enumerate() {
                let stored: Option<(Vec<ModuleId>, &str)> = match &op.kind {
                    OpKind::StoreAttr { obj, name, .. } => Some((modules(context, names, scope, *obj), facts.name(*name))),
                    OpKind::Call { func, args, .. } if names.is_one_of(scope, *func, &["setattr"]) => {
                        let [(_, owner), (_, name), ..] = &args[..] else { continue };
                        names.text(scope, *name).map(|name| (modules(context, names, scope, *owner), name))
                    }
                    OpKind::StoreGlobal(name, _) if program.scope(scope).kind != ScopeKind::Module => {
                        Some((vec![module], facts.name(*name)))
                    }
                    _ => None,
                };
                let Some((owners, name)) = stored else { continue };
                for owner in owners {
                    let constant = Constant { module: owner, name: name.to_owned() };
                    let Some((parameter, launch)) = constants.get(&constant) else { continue };
                    let symbol = program.qualified(scope);
                    let arguments = vec![symbol.clone(), shown(context, &constant), (*parameter).to_owned()];
                    let place = context.span(scope, u32::try_from(at).unwrap_or(u32::MAX));
                    let mut finding = Finding::new(rule("pinned-field"), "store", arguments, place, symbol);
                    finding.related.push(Related { span: *launch, message: "the kernel is launched with it here".to_owned() });
                    findings.push(finding);
                }
            }
        }
    }
}

/// Modules that a register may be.
fn modules(context: &Context<'_>, names: &Names<'_>, scope: GlobalScope, reg: Reg) -> Vec<ModuleId> {
    let program = context.program;
    let near = program.module(program.module_of(scope)).source;
    let named = names.of(scope, reg);
    named.iter().filter_map(|name| program.strings.find(name)).filter_map(|sym| program.find(sym, near)).collect()
}

/// Whether a launch binds a pinned parameter to something else than the constant, or than its value.
fn other_value(context: &Context<'_>, names: &Names<'_>, launch: &Bound, pinned: &Constant) -> bool {
    let body = context.program.global_scope(pinned.module, 0);
    let wanted: Vec<Literal> = registers(context, names, pinned).into_iter().filter_map(|reg| Some(names.literal(body, reg)?.1)).collect();
    let mut open = vec![launch.value];
    let mut seen = BTreeSet::new();
    while let Some(reg) = open.pop() {
        if !seen.insert(reg) {
            continue;
        }
        if constant(context, names, launch.scope, reg).is_some_and(|constant| constant == *pinned) {
            continue;
        }
        if let Some((_, literal)) = names.literal(launch.scope, reg) {
            // A test for `None` that leads to the constant says so with the constant itself.
            if literal != Literal::None && !wanted.contains(&literal) {
                return true;
            }
            continue;
        }
        let kinds = names.defined_by(launch.scope, reg);
        let mut followed = false;
        for kind in &kinds {
            match kind {
                OpKind::Move(_, src) | OpKind::Filter(_, src, _) => {
                    followed = true;
                    open.push(*src);
                }
                OpKind::Phi(_, inputs) => {
                    followed = true;
                    open.extend(inputs.iter().map(|(src, _)| *src).filter(|src| *src != crate::syntax::NO_REG));
                }
                _ => {}
            }
        }
        if !followed {
            return true;
        }
    }
    false
}
