//! Environment variables on the routes of a family: which select a route, and which lists of variables hand them on, key caches or record them.
//!
//! In: the rules' context. Out: [`Environment`], made once and shared by the rules about variables. A variable selects a route if a test that depends on
//! it has different members of the family on its two sides (also where one side is ruled out by the profile), or if a call of the family calls
//! what was looked up with it. A test whose one side only raises refuses, and selects nothing.

mod flow;
mod imports;
mod lists;
mod shell_lists;
mod unset;

use std::collections::{BTreeMap, BTreeSet};

use super::Context;
use crate::names::{GlobalScope, ModuleId};
use crate::syntax::{CondId, CondKind, OpKind, Passing};
use crate::text::Span;
use crate::values::Target;

pub(super) use flow::{Code, definitions};
pub use flow::{Flow, Read};
pub(super) use imports::{imported_before, ruled_out, usable_from};
pub use lists::{List, Purpose};
pub(super) use unset::{Constant, Unset};

/// A variable that selects a route.
#[derive(Clone, Debug)]
pub struct Selector {
    /// Its first read that does.
    pub read: Read,
    /// Where the route is selected.
    pub place: Span,
    /// Function in which that is.
    pub function: String,
    /// Modules in which some route is selected with it.
    pub modules: BTreeSet<ModuleId>,
}

/// A place where the program sets a variable of its own environment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Write {
    /// Scope.
    pub scope: GlobalScope,
    /// Operation in that scope.
    pub op: u32,
    /// Variable.
    pub name: String,
}

/// What the rules about variables share.
#[derive(Debug)]
pub struct Environment {
    /// Reads and what depends on them.
    pub flow: Flow,
    /// Variables that select a route, by name.
    pub selectors: BTreeMap<String, Selector>,
    /// Lists of variables.
    pub lists: Vec<List>,
}

impl Context<'_> {
    /// Variables and lists of variables; computed once.
    pub(super) fn environment(&self) -> &Environment {
        self.environment.get_or_init(|| {
            let flow = Flow::new(self);
            let selectors = selectors(self, &flow);
            let lists = lists::collect(self);
            Environment { flow, selectors, lists }
        })
    }
}

impl Environment {
    /// Lists with a purpose that are about the family's variables: they name one at least that selects a route.
    pub(super) fn lists_for(&self, purpose: Purpose) -> impl Iterator<Item = &List> {
        let about =
            move |list: &&List| list.purpose == purpose && !list.open && list.names.iter().any(|name| self.selectors.contains_key(name));
        self.lists.iter().filter(about)
    }
}

/// Scopes that put members of the family in place of other code, and those that call them.
fn installers(context: &Context<'_>) -> BTreeSet<GlobalScope> {
    let mut out: BTreeSet<GlobalScope> = BTreeSet::new();
    for install in &context.engine.installs {
        let scope = context.engine.scope_of(install.installer);
        let src = match &context.program.scope(scope).ops[install.op as usize].kind {
            OpKind::StoreAttr { src, .. } => Some(*src),
            OpKind::Call { args, .. } => args.get(2).map(|(_, reg)| *reg),
            _ => None,
        };
        if src.is_some_and(|src| context.glance(scope, src).into_iter().any(|object| context.family_object(object).is_some())) {
            out.insert(scope);
        }
    }
    loop {
        let before = out.len();
        for ((caller, _), targets) in &context.calls {
            if targets.iter().any(|target| matches!(target, Target::Scope(callee) if out.contains(callee))) {
                out.insert(*caller);
            }
        }
        if out.len() == before {
            return out;
        }
    }
}

/// Members of the family, and functions that install them, that one operation calls or could call.
fn touched(context: &Context<'_>, installers: &BTreeSet<GlobalScope>, scope: GlobalScope, op: u32) -> BTreeSet<String> {
    let mut names = context.family_calls(scope, op);
    match context.program.scope(scope).ops[op as usize].kind {
        OpKind::Call { func, .. } => {
            names.extend(context.glance(scope, func).into_iter().filter_map(|object| context.family_object(object)));
            let called = context.calls.get(&(scope, op)).into_iter().flatten();
            names.extend(called.filter_map(|target| match target {
                Target::Scope(callee) if installers.contains(callee) => Some(context.program.qualified(*callee)),
                _ => None,
            }));
        }
        OpKind::ImportFrom { dst, .. } => {
            names.extend(context.glance(scope, dst).into_iter().filter_map(|object| context.family_object(object)));
        }
        _ => {}
    }
    names
}

fn selectors(context: &Context<'_>, flow: &Flow) -> BTreeMap<String, Selector> {
    let installers = installers(context);
    let mut out: BTreeMap<String, Selector> = BTreeMap::new();
    let mut note = |read: &Read, place: Span, scope: GlobalScope| {
        let function = context.program.qualified(scope);
        let entry = out.entry(read.name.clone()).or_insert_with(|| Selector {
            read: read.clone(),
            place,
            function: function.clone(),
            modules: BTreeSet::new(),
        });
        entry.modules.insert(context.program.module_of(scope));
        if (read.span, place) < (entry.read.span, entry.place) {
            entry.read = read.clone();
            entry.place = place;
            entry.function = function;
        }
    };
    for scope in flow.scopes() {
        let facts = context.program.scope(scope);
        let mut tests: BTreeMap<u32, [Vec<CondId>; 2]> = BTreeMap::new();
        for (at, cond) in facts.conds.iter().enumerate() {
            if let CondKind::Test(reg, wanted) = cond.kind
                && flow.of(scope, reg).next().is_some()
            {
                tests.entry(reg).or_default()[usize::from(wanted)].push(CondId::try_from(at).unwrap_or(0));
            }
        }
        let calls_tainted =
            facts.ops.iter().any(|op| matches!(op.kind, OpKind::Call { func, .. } if flow.of(scope, func).next().is_some()));
        if tests.is_empty() && !calls_tainted {
            continue;
        }
        let family: Vec<(u32, BTreeSet<String>)> = (0..u32::try_from(facts.ops.len()).unwrap_or(0))
            .map(|op| (op, touched(context, &installers, scope, op)))
            .filter(|(_, names)| !names.is_empty())
            .collect();
        for (reg, [no, yes]) in &tests {
            let side = |conds: &[CondId]| -> (BTreeSet<&String>, bool) {
                let under = |cond: CondId| conds.iter().any(|above| context.below(scope, cond, *above));
                let names = family.iter().filter(|(op, _)| under(facts.ops[*op as usize].cond)).flat_map(|(_, names)| names).collect();
                let raises = facts.ops.iter().any(|op| matches!(op.kind, OpKind::Raise(_)) && under(op.cond));
                let returns = facts.ops.iter().any(|op| matches!(op.kind, OpKind::Return(_)) && under(op.cond));
                (names, raises && !returns)
            };
            let (yes_names, yes_raises) = side(yes);
            let (no_names, no_raises) = side(no);
            let refuses = (yes_names.is_empty() && yes_raises) || (no_names.is_empty() && no_raises);
            if yes_names == no_names || refuses {
                continue;
            }
            let place = yes.iter().chain(no).map(|cond| context.program.span(scope, facts.conds[*cond as usize].range)).min();
            for read in flow.of(scope, *reg) {
                note(read, context.first_line(place.unwrap_or(read.span)), scope);
            }
        }
        for (op, _) in &family {
            if let OpKind::Call { func, .. } = facts.ops[*op as usize].kind {
                for read in flow.of(scope, func) {
                    note(read, context.span(scope, *op), scope);
                }
            }
        }
    }
    out
}

/// Every place where production code sets a variable of its own environment, by a literal name, in order.
pub(super) fn writes(context: &Context<'_>) -> Vec<Write> {
    let mut out = Vec::new();
    for scope in context.scopes() {
        let module = context.program.module(context.program.module_of(scope));
        if !module.facts.names.iter().any(|name| name == "environ" || name == "putenv") {
            continue;
        }
        let facts = context.program.scope(scope);
        let made = flow::definitions(facts);
        let code = flow::Code { facts: &module.facts, scope: facts, made: &made };
        for (at, op) in facts.ops.iter().enumerate() {
            let mut names: Vec<&str> = Vec::new();
            match &op.kind {
                OpKind::StoreItem { obj, key, .. } if code.is_environment(*obj) => names.extend(code.text(*key)),
                OpKind::Call { func, args, .. } => match code.maker(*func) {
                    Some(OpKind::LoadAttr { name, .. }) if module.facts.name(*name) == "putenv" => {
                        names.extend(args.first().and_then(|(_, reg)| code.text(*reg)));
                    }
                    Some(OpKind::LoadAttr { obj, name, .. }) if code.is_environment(*obj) => match module.facts.name(*name) {
                        "setdefault" => names.extend(args.first().and_then(|(_, reg)| code.text(*reg))),
                        "update" => {
                            for (passing, reg) in args {
                                if let Passing::Keyword(name) = passing {
                                    names.push(module.facts.name(*name));
                                }
                                if let Some(OpKind::Dict { items, .. }) = code.maker(code.origin(*reg)) {
                                    names.extend(items.iter().filter_map(|(key, _)| code.text(*key)));
                                }
                            }
                        }
                        _ => {}
                    },
                    _ => {}
                },
                _ => {}
            }
            let op = u32::try_from(at).unwrap_or(u32::MAX);
            out.extend(names.into_iter().map(|name| Write { scope, op, name: name.to_owned() }));
        }
    }
    out
}
