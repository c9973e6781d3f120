//! RLK308: after running out of memory the same call is made again, on state that the first attempt has changed.

use std::collections::BTreeSet;

use super::dataflow::{Flow, Names, Spread, method, modules_with};
use super::{Context, rule};
use crate::findings::{Finding, Related};
use crate::names::GlobalScope;
use crate::profile::PathClass;
use crate::syntax::{Handler, OpKind, Reg, Try};
use crate::values::Target;

/// Exceptions that say that memory ran out.
const OUT_OF_MEMORY: [&str; 3] = ["OutOfMemoryError", "MemoryError", "OutOfMemoryException"];
/// Exceptions that it is one of.
const BROAD: [&str; 3] = ["RuntimeError", "Exception", "BaseException"];
/// Functions that are called for an effect which a second attempt does not see.
const HARMLESS: [&str; 13] = [
    "print",
    "debug",
    "info",
    "warning",
    "error",
    "exception",
    "log",
    "warn",
    "warn_once",
    "empty_cache",
    "synchronize",
    "collect",
    "_check",
];
/// How many calls deep changes of state are looked for.
const DEPTH: usize = 4;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let names = Names::new(context.program);
    let mut scopes: BTreeSet<GlobalScope> = context.scopes().into_iter().collect();
    for module in modules_with(context.program, &OUT_OF_MEMORY) {
        if matches!((context.class_of)(module), PathClass::Production | PathClass::Reference) {
            let count = u32::try_from(context.program.module(module).facts.scopes.len()).unwrap_or(u32::MAX);
            scopes.extend((0..count).map(|scope| context.program.global_scope(module, scope)));
        }
    }
    for scope in scopes {
        for attempt in &context.program.scope(scope).tries {
            for handler in attempt.handlers.iter().filter(|handler| !handler.raises) {
                let is = |list: &[&str]| handler.types.iter().any(|kind| list.contains(&kind.rsplit('.').next().unwrap_or(kind)));
                let broad = handler.types.is_empty() || is(&BROAD);
                if is(&OUT_OF_MEMORY) || broad {
                    Attempt { context, names: &names, scope, attempt, handler, only_family: !is(&OUT_OF_MEMORY) }.check(findings);
                }
            }
        }
    }
}

struct Attempt<'a> {
    context: &'a Context<'a>,
    names: &'a Names<'a>,
    scope: GlobalScope,
    attempt: &'a Try,
    handler: &'a Handler,
    /// A broad handler counts around the family alone.
    only_family: bool,
}

impl Attempt<'_> {
    fn check(&self, findings: &mut Vec<Finding>) {
        let first: Vec<u32> = self.calls_in(self.attempt.body);
        let Some((once, again)) = first.iter().find_map(|op| Some((*op, self.again(*op)?))) else { return };
        let Some((changed, what)) = self.changed_before(once) else { return };
        let symbol = self.context.program.qualified(self.scope);
        let types = if self.handler.types.is_empty() { "every exception".to_owned() } else { self.handler.types.join("', '") };
        let called = self.called(once).into_iter().collect::<Vec<_>>().join("', '");
        let place = self.context.first_line(self.context.program.span(self.scope, self.handler.head));
        let mut finding = Finding::new(rule("out-of-memory-retry"), "default", vec![symbol.clone(), called, types, what], place, symbol);
        let mut relate = |op: u32, message: &str| {
            finding.related.push(Related { span: self.context.span(self.scope, op), message: message.to_owned() });
        };
        relate(changed, "state is changed here");
        relate(once, "this call may run out of memory");
        if let Some(again) = again {
            relate(again, "the call is made again here");
        }
        findings.push(finding);
    }

    fn ops(&self) -> &[crate::syntax::Op] {
        &self.context.program.scope(self.scope).ops
    }

    fn calls_in(&self, range: (u32, u32)) -> Vec<u32> {
        let is_call = |op: &u32| matches!(self.ops()[*op as usize].kind, OpKind::Call { decorator: false, .. });
        (range.0..range.1)
            .filter(is_call)
            .filter(|op| !self.only_family || !self.context.family_calls(self.scope, *op).is_empty())
            .collect()
    }

    /// Names of what a call calls.
    fn called(&self, op: u32) -> BTreeSet<String> {
        let OpKind::Call { func, .. } = self.ops()[op as usize].kind else { return BTreeSet::new() };
        let family = self.context.family_calls(self.scope, op);
        if family.is_empty() { self.names.of(self.scope, func) } else { family }
    }

    /// Whether a call is made again after the handler: there (`Some(op)`), or by the loop around it.
    #[allow(clippy::option_option)]
    fn again(&self, op: u32) -> Option<Option<u32>> {
        let called = self.called(op);
        if called.is_empty() || self.harmless(op) {
            return None;
        }
        let in_handler = (self.handler.ops.0..self.handler.ops.1)
            .find(|other| matches!(self.ops()[*other as usize].kind, OpKind::Call { .. }) && !self.called(*other).is_disjoint(&called));
        if let Some(other) = in_handler {
            return Some(Some(other));
        }
        let text = self.context.files.slice(self.context.program.span(self.scope, self.handler.range));
        let returns = (self.handler.ops.0..self.handler.ops.1).any(|other| matches!(self.ops()[other as usize].kind, OpKind::Return(_)));
        let leaves = returns || text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "break");
        (self.attempt.in_loop && !leaves && !self.over_items(op)).then_some(None)
    }

    /// Whether a loop gives the call something else each time.
    fn over_items(&self, op: u32) -> bool {
        let items: Vec<Reg> =
            self.ops().iter().filter_map(|op| if let OpKind::Iterate { dst, .. } = op.kind { Some(dst) } else { None }).collect();
        let flow = Flow::from(self.names, self.scope, items, Spread::Computed, &|_| false);
        match &self.ops()[op as usize].kind {
            OpKind::Call { func, args, .. } => {
                flow.holds(*func)
                    || method(self.names, self.scope, *func).is_some_and(|(obj, _)| flow.holds(obj))
                    || args.iter().any(|(_, reg)| flow.holds(*reg))
            }
            _ => false,
        }
    }

    fn harmless(&self, op: u32) -> bool {
        let OpKind::Call { func, .. } = self.ops()[op as usize].kind else { return true };
        self.names.of(self.scope, func).iter().any(|name| HARMLESS.contains(&name.rsplit('.').next().unwrap_or(name)))
    }

    /// The operation of the attempt that changes state, up to and including the call, and what it changes.
    fn changed_before(&self, call: u32) -> Option<(u32, String)> {
        (self.attempt.body.0..=call).find_map(|op| Some((op, self.changes(self.scope, op, DEPTH)?)))
    }

    /// What an operation changes that outlives the function: an attribute, a name of the module, something behind a call for its effect.
    fn changes(&self, scope: GlobalScope, op: u32, depth: usize) -> Option<String> {
        let program = self.context.program;
        let mut open = vec![(scope, op, depth)];
        let mut seen = BTreeSet::new();
        while let Some((scope, op, depth)) = open.pop() {
            let own = program.scope(scope);
            let names = &program.module(program.module_of(scope)).facts;
            match &own.ops[op as usize].kind {
                OpKind::StoreAttr { obj, name, .. } if self.outlives(scope, *obj) => return Some(names.name(*name).to_owned()),
                OpKind::StoreItem { obj, .. } if self.outlives(scope, *obj) => {
                    return Some("an item of something that outlives the call".to_owned());
                }
                OpKind::StoreGlobal(name, _) if own.parent != 0 || own.kind != crate::syntax::ScopeKind::Module => {
                    return Some(names.name(*name).to_owned());
                }
                OpKind::Call { dst, decorator: false, .. } => {
                    let targets = self.context.calls.get(&(scope, op)).cloned().unwrap_or_default();
                    let unused = !own.ops.iter().any(|other| uses(&other.kind, *dst));
                    for target in targets {
                        let sink = self.context.routes.iter().any(|routes| routes.reach.sinks.contains(&target));
                        match target {
                            // A kernel writes its output, again the same way.
                            _ if sink => {}
                            Target::Scope(callee) if depth > 0 && seen.insert(callee) => {
                                let count = u32::try_from(program.scope(callee).ops.len()).unwrap_or(u32::MAX);
                                open.extend((0..count).rev().map(|op| (callee, op, depth - 1)));
                            }
                            Target::External(name) if unused => {
                                let name = self.context.engine.text(name);
                                let last = name.rsplit('.').next().unwrap_or(name);
                                if !HARMLESS.contains(&last) {
                                    return Some(name.to_owned());
                                }
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Whether an object is there before and after the function: a parameter, `self`, a name of the module or something read from one.
    fn outlives(&self, scope: GlobalScope, reg: Reg) -> bool {
        let mut open = vec![reg];
        let mut seen = BTreeSet::new();
        while let Some(reg) = open.pop() {
            if !seen.insert(reg) {
                continue;
            }
            if let Some(name) = self.names.parameter(scope, reg) {
                // The context of an autograd function lives as long as the call.
                return name != "ctx";
            }
            for kind in self.names.defined_by(scope, reg) {
                match kind {
                    OpKind::LoadGlobal(..) | OpKind::LoadFree(..) => return true,
                    OpKind::Move(_, src) | OpKind::Filter(_, src, _) => open.push(*src),
                    OpKind::LoadAttr { obj, .. } | OpKind::LoadItem { obj, .. } => open.push(*obj),
                    OpKind::Phi(_, inputs) => open.extend(inputs.iter().map(|(src, _)| *src)),
                    _ => {}
                }
            }
        }
        false
    }
}

/// Whether an operation reads a register.
fn uses(kind: &OpKind, reg: Reg) -> bool {
    match kind {
        OpKind::Move(_, src) | OpKind::Filter(_, src, _) | OpKind::Return(src) | OpKind::Raise(src) | OpKind::StoreGlobal(_, src) => {
            *src == reg
        }
        OpKind::StoreFree(_, _, src) | OpKind::StoreClass(_, src) => *src == reg,
        OpKind::Phi(_, inputs) => inputs.iter().any(|(src, _)| *src == reg),
        OpKind::LoadAttr { obj, .. } => *obj == reg,
        OpKind::StoreAttr { obj, src, .. } => *obj == reg || *src == reg,
        OpKind::LoadItem { obj, key, .. } => *obj == reg || *key == reg,
        OpKind::LoadSlice { obj, .. } => *obj == reg,
        OpKind::StoreItem { obj, key, src } => *obj == reg || *key == reg || *src == reg,
        OpKind::Sequence { items, .. } => items.iter().any(|(item, _)| *item == reg),
        OpKind::Dict { items, .. } => items.iter().any(|(key, value)| *key == reg || *value == reg),
        OpKind::Unpack { src, .. } | OpKind::UnpackRest { src, .. } | OpKind::Iterate { src, .. } | OpKind::Enter { src, .. } => {
            *src == reg
        }
        OpKind::Await { src, .. } | OpKind::Yield { src, .. } | OpKind::YieldFrom { src, .. } | OpKind::Not { src, .. } => *src == reg,
        OpKind::Call { func, args, .. } => *func == reg || args.iter().any(|(_, arg)| *arg == reg),
        OpKind::Binary { left, right, .. } => *left == reg || *right == reg,
        OpKind::Format { parts, .. } => parts.contains(&reg),
        _ => false,
    }
}
