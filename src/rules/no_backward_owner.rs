//! RLK401: a training route that reaches a kernel without an autograd function that owns its backward pass.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::environment::{Code, definitions};
use super::{Context, rule};
use crate::findings::{Finding, Step};
use crate::names::GlobalScope;
use crate::profile::Role;
use crate::syntax::{CondKind, OpKind, Reg, ScopeKind};
use crate::text::Span;
use crate::values::{CallEdge, EdgeKind, InstanceId, Object, Target, models};

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    without_backward(context, findings);
    unowned(context, findings);
}

/// Autograd functions of the family that define no backward of their own or through a base.
fn without_backward(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let program = context.program;
    let forwards: BTreeSet<GlobalScope> = context
        .engine
        .edges
        .iter()
        .filter(|edge| edge.kind == EdgeKind::AutogradForward)
        .filter_map(|edge| match edge.target {
            Target::Scope(scope) if context.reaches(edge.target) => Some(scope),
            _ => None,
        })
        .collect();
    let owned: BTreeSet<(GlobalScope, u32)> = context
        .engine
        .edges
        .iter()
        .filter(|edge| edge.kind == EdgeKind::AutogradBackward)
        .map(|edge| (context.engine.scope_of(edge.caller), edge.op))
        .collect();
    let mut seen = BTreeSet::new();
    for edge in &context.engine.edges {
        let caller = context.engine.scope_of(edge.caller);
        let Target::Scope(forward) = edge.target else { continue };
        let is_new = edge.kind == EdgeKind::AutogradForward && forwards.contains(&forward) && !owned.contains(&(caller, edge.op));
        if !is_new || !context.counts(caller) || !seen.insert((caller, edge.op)) {
            continue;
        }
        let class = program.global_scope(program.module_of(forward), program.scope(forward).parent);
        let arguments = vec![program.qualified(class), program.qualified(caller)];
        let span = context.span(caller, edge.op);
        findings.push(Finding::new(rule("no-backward-owner"), "function", arguments, span, program.qualified(class)));
    }
}

/// How a scope turns autograd off: for all of it, or from one of its operations on.
#[derive(Clone, Default)]
struct GradMode {
    off: bool,
    /// First operation behind `with torch.no_grad()`.
    off_from: Option<u32>,
    /// Registers of `torch.is_grad_enabled()`.
    asked: BTreeSet<Reg>,
}

const TURNS_OFF: [&str; 2] = ["no_grad", "inference_mode"];

fn grad_mode(context: &Context<'_>, scope: GlobalScope) -> GradMode {
    let facts = context.program.scope(scope);
    let module = context.program.module(context.program.module_of(scope));
    let mut mode = GradMode::default();
    let last = |name: &str| name.rsplit('.').next().unwrap_or("").to_owned();
    mode.off = facts.decorators.iter().any(|name| TURNS_OFF.contains(&last(module.facts.name(*name)).as_str()));
    let speaks = |word: &str| module.facts.names.iter().any(|name| name == word);
    if !TURNS_OFF.iter().any(|word| speaks(word)) && !speaks("is_grad_enabled") {
        return mode;
    }
    let made = definitions(facts);
    let code = Code { facts: &module.facts, scope: facts, made: &made };
    for (at, op) in facts.ops.iter().enumerate() {
        match &op.kind {
            OpKind::Enter { src, .. } => {
                let name = match code.maker(code.origin(*src)) {
                    Some(OpKind::Call { func, .. }) => code.read_name(*func),
                    _ => None,
                };
                if name.is_some_and(|name| TURNS_OFF.contains(&name)) {
                    mode.off_from.get_or_insert(u32::try_from(at).unwrap_or(u32::MAX));
                }
            }
            OpKind::Call { dst, func, .. } if code.read_name(*func) == Some("is_grad_enabled") => {
                mode.asked.insert(*dst);
            }
            _ => {}
        }
    }
    mode
}

impl GradMode {
    /// Whether autograd is off for sure where an operation runs.
    fn is_off(&self, context: &Context<'_>, scope: GlobalScope, op: u32) -> bool {
        if self.off || self.off_from.is_some_and(|from| op > from) {
            return true;
        }
        let facts = context.program.scope(scope);
        let mut at = facts.ops[op as usize].cond;
        while at != 0 {
            let cond = facts.conds[at as usize];
            if let CondKind::Test(reg, wanted) = cond.kind {
                let mut asked = self.asked.contains(&reg).then_some(wanted);
                for op in &facts.ops {
                    if let OpKind::Not { dst, src } = op.kind
                        && dst == reg
                        && self.asked.contains(&src)
                    {
                        asked = Some(!wanted);
                    }
                }
                if asked == Some(false) {
                    return true;
                }
            }
            at = cond.parent;
        }
        false
    }
}

/// Custom operators that something gives a backward, by the scope of their body.
fn registered(context: &Context<'_>) -> BTreeSet<GlobalScope> {
    let mut out = BTreeSet::new();
    for scope in context.scopes() {
        let module = context.program.module(context.program.module_of(scope));
        if !module.facts.names.iter().any(|name| name == "register_autograd") {
            continue;
        }
        let facts = context.program.scope(scope);
        for op in &facts.ops {
            if let OpKind::LoadAttr { obj, name, .. } = op.kind
                && module.facts.name(name) == "register_autograd"
            {
                for object in context.glance(scope, obj) {
                    if let Object::CustomOp(function) = context.engine.get(object)
                        && let Object::Function(body, _) = context.engine.get(function)
                    {
                        out.insert(body);
                    }
                }
            }
        }
    }
    out
}

/// Where gradients are wanted: functions of the training framework, and functions that call `backward` on what they computed.
fn roots(context: &Context<'_>) -> BTreeSet<GlobalScope> {
    let mut out = BTreeSet::new();
    for scope in context.scopes() {
        let module = context.program.module(context.program.module_of(scope));
        let facts = context.program.scope(scope);
        if facts.kind == ScopeKind::Module {
            continue;
        }
        if context.sources.get(module.source).is_some_and(|source| source.role == Role::Training) {
            out.insert(scope);
            continue;
        }
        if !module.facts.names.iter().any(|name| name == "backward") {
            continue;
        }
        let made = definitions(facts);
        let code = Code { facts: &module.facts, scope: facts, made: &made };
        for op in &facts.ops {
            let OpKind::Call { func, .. } = op.kind else { continue };
            let Some(OpKind::LoadAttr { obj, name, .. }) = code.maker(func) else { continue };
            // `Function.backward(...)`, called by name, is no pass through the graph.
            let of_class = context.glance(scope, *obj).iter().any(|object| matches!(context.engine.get(*object), Object::Class(..)));
            if module.facts.name(*name) == "backward" && !of_class {
                out.insert(scope);
            }
        }
    }
    out
}

/// Routes from a root to a kernel on which no autograd function stands and autograd is not off.
fn unowned(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let program = context.program;
    let roots = roots(context);
    if roots.is_empty() {
        return;
    }
    let registered = registered(context);
    let mut edges: Vec<&CallEdge> = context.engine.edges.iter().collect();
    edges.sort_unstable_by_key(|edge| (context.engine.scope_of(edge.caller), edge.op, edge.target, edge.callee));
    let mut outgoing: BTreeMap<InstanceId, Vec<&CallEdge>> = BTreeMap::new();
    for edge in edges {
        let skipped = matches!(edge.kind, EdgeKind::AutogradForward | EdgeKind::AutogradBackward | EdgeKind::Decorator);
        let owned = matches!(edge.target, Target::Scope(scope) if registered.contains(&scope));
        let leads = matches!(edge.target, Target::Scope(_)) || context.reaches(edge.target);
        if !skipped && !owned && leads {
            outgoing.entry(edge.caller).or_default().push(edge);
        }
    }
    let mut modes: BTreeMap<GlobalScope, GradMode> = BTreeMap::new();
    let mut came: BTreeMap<InstanceId, Option<&CallEdge>> = BTreeMap::new();
    let mut queue: VecDeque<InstanceId> = VecDeque::new();
    for root in roots {
        // What autograd calls by itself runs with autograd off.
        if is_inside_function(context, root) {
            continue;
        }
        for inst in context.engine.copies_of(root) {
            if came.insert(*inst, None).is_none() {
                queue.push_back(*inst);
            }
        }
    }
    let mut reported = BTreeSet::new();
    while let Some(inst) = queue.pop_front() {
        let scope = context.engine.scope_of(inst);
        for edge in outgoing.get(&inst).into_iter().flatten() {
            let mode = modes.entry(scope).or_insert_with(|| grad_mode(context, scope));
            if mode.is_off(context, scope, edge.op) {
                continue;
            }
            let sink = context.routes.iter().any(|routes| routes.reach.sinks.contains(&edge.target));
            if sink {
                report(context, findings, &came, inst, edge, &mut reported);
            } else if let Target::Scope(_) = edge.target
                && context.reaches(edge.target)
                && !came.contains_key(&edge.callee)
            {
                came.insert(edge.callee, Some(edge));
                queue.push_back(edge.callee);
            } else if matches!(edge.target, Target::Scope(_)) && !came.contains_key(&edge.callee) && edge.kind != EdgeKind::Protocol {
                came.insert(edge.callee, Some(edge));
                queue.push_back(edge.callee);
            }
        }
    }
    let _ = program;
}

/// Whether a scope is the forward or backward of an autograd function.
fn is_inside_function(context: &Context<'_>, scope: GlobalScope) -> bool {
    let program = context.program;
    let facts = program.scope(scope);
    let class = program.global_scope(program.module_of(scope), facts.parent);
    if program.scope(class).kind != ScopeKind::Class {
        return false;
    }
    context
        .engine
        .edges
        .iter()
        .any(|edge| matches!(edge.kind, EdgeKind::AutogradForward | EdgeKind::AutogradBackward) && edge.target == Target::Scope(scope))
        || models::AUTOGRAD.iter().any(|base| program.qualified(class) == *base)
}

/// Reports the call with which the route enters the family.
fn report(
    context: &Context<'_>,
    findings: &mut Vec<Finding>,
    came: &BTreeMap<InstanceId, Option<&CallEdge>>,
    inst: InstanceId,
    launch: &CallEdge,
    reported: &mut BTreeSet<(GlobalScope, u32)>,
) {
    let program = context.program;
    let mut path: Vec<&CallEdge> = vec![launch];
    let mut at = inst;
    while let Some(Some(edge)) = came.get(&at) {
        path.push(edge);
        at = edge.caller;
    }
    path.reverse();
    // Modules that hold kernels are the family's own; the route enters it where it enters one of those.
    let own = |target: Target| match target {
        Target::Scope(scope) => context.routes.iter().any(|routes| {
            routes.reach.facades.contains(&scope)
                || routes
                    .reach
                    .sinks
                    .iter()
                    .any(|sink| matches!(sink, Target::Scope(kernel) if program.module_of(*kernel) == program.module_of(scope)))
        }),
        _ => true,
    };
    let Some(entry) = path.iter().position(|edge| own(edge.target)) else { return };
    let edge = path[entry];
    let caller = context.engine.scope_of(edge.caller);
    if !context.counts(caller) || !reported.insert((caller, edge.op)) {
        return;
    }
    let place = |edge: &CallEdge| -> Span { context.span(context.engine.scope_of(edge.caller), edge.op) };
    let root = program.qualified(context.engine.scope_of(at));
    let arguments = vec![context.shown(edge.target), root, context.shown(launch.target)];
    let mut finding = Finding::new(rule("no-backward-owner"), "route", arguments, place(edge), program.qualified(caller));
    finding.flow = path[..=entry]
        .iter()
        .map(|edge| Step {
            span: place(edge),
            message: format!("{} calls {}", program.qualified(context.engine.scope_of(edge.caller)), context.shown(edge.target)),
        })
        .collect();
    findings.push(finding);
}
