//! RLK301: a route of the family comes to another implementation, or to none, and nothing raises.
//!
//! One file per shape: handlers here, and below them probes whose answer selects, hooks that are left out, replacements that hand back to the original, and
//! lookups with a default.

use std::collections::BTreeSet;

use super::dataflow::{Flow, Names, Spread};
use super::{Context, rule};
use crate::findings::{Finding, Related};
use crate::names::GlobalScope;
use crate::syntax::{CondId, CondKind, Handler, Literal, Op, OpKind, Passing, Reg, Try};
use crate::values::Target;

mod defaults;
mod hooks;
mod probes;
mod strict;
mod symbols;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let names = Names::new(context.program);
    for scope in context.scopes() {
        let facts = context.program.scope(scope);
        for (number, attempt) in facts.tries.iter().enumerate() {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            let called = in_range(context, scope, attempt.body);
            let imported = imported_in(context, scope, attempt.body);
            for (place, handler) in attempt.handlers.iter().enumerate() {
                if handler.raises || ends_the_task(handler) {
                    continue;
                }
                let place = u32::try_from(place).unwrap_or(u32::MAX);
                let cond = facts.conds.iter().position(|cond| cond.kind == CondKind::Handler(number, place));
                let Some(cond) = cond.and_then(|at| CondId::try_from(at).ok()) else { continue };
                let taken = Taken { context, names: &names, scope, attempt, handler, cond };
                if !called.is_empty() {
                    taken.calls(&called, findings);
                } else if !imported.is_empty() {
                    taken.import(&imported, findings);
                } else if !hooks::left_out(&taken, findings) && !probes::topology(&taken, findings) {
                    probes::probe(&taken, findings);
                }
            }
        }
    }
    hooks::handed_back(context, &names, findings);
    defaults::check(context, &names, findings);
    symbols::check(context, &names, findings);
}

/// Exceptions that say that somebody wants the work to end, and nothing about an implementation.
const ENDS: [&str; 6] = ["CancelledError", "KeyboardInterrupt", "SystemExit", "GeneratorExit", "StopIteration", "StopAsyncIteration"];

fn ends_the_task(handler: &Handler) -> bool {
    let ends = |kind: &String| ENDS.contains(&kind.rsplit('.').next().unwrap_or(kind));
    !handler.types.is_empty() && handler.types.iter().all(ends)
}

/// Family members called by a range of operations.
fn in_range(context: &Context<'_>, scope: GlobalScope, range: (u32, u32)) -> BTreeSet<String> {
    (range.0..range.1).flat_map(|op| context.family_calls(scope, op)).collect()
}

/// Family members imported by a range of operations.
fn imported_in(context: &Context<'_>, scope: GlobalScope, range: (u32, u32)) -> BTreeSet<String> {
    let ops = &context.program.scope(scope).ops[range.0 as usize..range.1 as usize];
    let imports = ops.iter().filter_map(|op| match op.kind {
        OpKind::ImportFrom { dst, .. } => Some(dst),
        _ => None,
    });
    imports.flat_map(|dst| context.glance(scope, dst)).filter_map(|object| context.family_object(object)).collect()
}

/// Family members that are reached under a condition, at once or behind it, in branches that do not run as well.
fn behind(context: &Context<'_>, scope: GlobalScope, cond: CondId) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, op) in context.program.scope(scope).ops.iter().enumerate() {
        if !context.below(scope, op.cond, cond) {
            continue;
        }
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        names.extend(context.family_calls(scope, at));
        if let OpKind::Call { func, .. } = op.kind {
            names.extend(context.glance(scope, func).into_iter().filter_map(|object| context.family_object(object)));
        }
        if let OpKind::ImportFrom { dst, .. } = op.kind {
            names.extend(context.glance(scope, dst).into_iter().filter_map(|object| context.family_object(object)));
        }
    }
    names
}

fn words(names: &BTreeSet<String>) -> String {
    if names.is_empty() { "none".to_owned() } else { names.iter().cloned().collect::<Vec<_>>().join("', '") }
}

fn types(handler: &Handler) -> String {
    if handler.types.is_empty() { "every exception".to_owned() } else { handler.types.join("', '") }
}

/// A handler that does not always raise.
struct Taken<'a> {
    context: &'a Context<'a>,
    names: &'a Names<'a>,
    scope: GlobalScope,
    attempt: &'a Try,
    handler: &'a Handler,
    /// The condition under which it is taken.
    cond: CondId,
}

impl Taken<'_> {
    fn function(&self) -> String {
        self.context.program.qualified(self.scope)
    }

    fn ops(&self) -> &[Op] {
        &self.context.program.scope(self.scope).ops
    }

    fn report(&self, key: &'static str, arguments: Vec<String>, related: Vec<Related>, findings: &mut Vec<Finding>) {
        let place = self.context.first_line(self.context.program.span(self.scope, self.handler.head));
        let mut finding = Finding::new(rule("silent-fallback"), key, arguments, place, self.function());
        finding.related = related;
        findings.push(finding);
    }

    /// A handler around a call of the family.
    fn calls(&self, called: &BTreeSet<String>, findings: &mut Vec<Finding>) {
        if self.looks_on() || strict::refuses(self) || self.exits() {
            return;
        }
        let lost = (self.attempt.body.0..self.attempt.body.1).filter(|op| !self.context.family_calls(self.scope, *op).is_empty());
        let related = lost.map(|op| Related { span: self.context.span(self.scope, op), message: "this implementation is lost".to_owned() });
        let related: Vec<Related> = related.collect();
        if self.attempt.in_loop {
            return self.report("loop", vec![self.function(), words(called)], related, findings);
        }
        let mut reached: BTreeSet<String> = behind(self.context, self.scope, self.cond).difference(called).cloned().collect();
        if reached.is_empty() && self.hands_out() {
            return;
        }
        if reached.is_empty() {
            reached = self.others();
        }
        self.report("handler", vec![self.function(), words(called), words(&reached), types(self.handler)], related, findings);
    }

    /// Whether the handler ends the process.
    fn exits(&self) -> bool {
        let ends = ["sys.exit", "os._exit", "os.abort", "exit", "quit"];
        (self.handler.ops.0..self.handler.ops.1).any(|at| match self.ops()[at as usize].kind {
            OpKind::Call { func, .. } => self.ops()[at as usize].cond == self.cond && self.names.is_one_of(self.scope, func, &ends),
            _ => false,
        })
    }

    /// Whether what the handler gives is the exception, or was made of it: whoever called is told.
    fn hands_out(&self) -> bool {
        let own = || self.handler.ops.0..self.handler.ops.1;
        let exception = own().find_map(|at| match &self.ops()[at as usize] {
            Op { kind: OpKind::Literal(dst, Literal::Opaque), range, .. } if range.1 == self.handler.head.1 => Some(*dst),
            _ => None,
        });
        let Some(exception) = exception else { return false };
        let flow = Flow::from(self.names, self.scope, [exception], Spread::Computed, &|_| false);
        let mut given =
            own().filter_map(|at| if let OpKind::Return(src) = self.ops()[at as usize].kind { Some(src) } else { None }).peekable();
        given.peek().is_some() && given.all(|src| flow.holds(src))
    }

    /// What the handler returns the result of, if that is not of the family.
    fn others(&self) -> BTreeSet<String> {
        let returned: BTreeSet<Reg> = self
            .ops()
            .iter()
            .filter(|op| self.context.below(self.scope, op.cond, self.cond))
            .filter_map(|op| if let OpKind::Return(src) = op.kind { Some(src) } else { None })
            .collect();
        let mut out = BTreeSet::new();
        for at in self.handler.ops.0..self.handler.ops.1 {
            let OpKind::Call { dst, .. } = self.ops()[at as usize].kind else { continue };
            if returned.contains(&dst) {
                let targets = self.context.calls.get(&(self.scope, at)).into_iter().flatten();
                out.extend(targets.filter(|target| !matches!(target, Target::Builtin(_))).map(|target| self.context.shown(*target)));
            }
        }
        out
    }

    /// Whether the attempt is a diagnosis: what the family gives is kept or logged, and neither returned nor written to an output.
    fn looks_on(&self) -> bool {
        let mut seeds = Vec::new();
        for at in self.attempt.body.0..self.attempt.body.1 {
            if self.context.family_calls(self.scope, at).is_empty() {
                continue;
            }
            let OpKind::Call { dst, args, .. } = &self.ops()[at as usize].kind else { continue };
            let module = &self.context.program.module(self.context.program.module_of(self.scope)).facts;
            let writes = args.iter().any(|(passing, _)| matches!(passing, Passing::Keyword(name) if module.name(*name) == "out"));
            if writes {
                return false;
            }
            seeds.push(*dst);
        }
        let flow = Flow::from(self.names, self.scope, seeds, Spread::Computed, &|_| false);
        let mut kept = false;
        for op in self.ops() {
            match &op.kind {
                OpKind::Return(src) | OpKind::Yield { src, .. } | OpKind::StoreGlobal(_, src) | OpKind::StoreFree(_, _, src)
                    if flow.holds(*src) =>
                {
                    return false;
                }
                OpKind::StoreAttr { src, .. } if flow.holds(*src) => kept = true,
                _ => {}
            }
        }
        kept
    }

    /// A handler around an import of the family. One that only notes the absence is clean: the first use raises.
    fn import(&self, imported: &BTreeSet<String>, findings: &mut Vec<Finding>) {
        let ops = &self.ops()[self.handler.ops.0 as usize..self.handler.ops.1 as usize];
        let acts = ops.iter().any(|op| matches!(op.kind, OpKind::Import { .. } | OpKind::ImportFrom { .. } | OpKind::Return(_)));
        if !acts || strict::refuses(self) {
            return;
        }
        let mut reached: BTreeSet<String> = behind(self.context, self.scope, self.cond).difference(imported).cloned().collect();
        if reached.is_empty() {
            reached = self.others();
        }
        self.report("handler", vec![self.function(), words(imported), words(&reached), types(self.handler)], Vec::new(), findings);
    }
}
