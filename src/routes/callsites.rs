//! Callsites: where control moves one step nearer to a family's kernel.

use std::collections::{BTreeMap, BTreeSet};

use super::chains::Hop;
use super::family::{Reach, target_name};
use super::op_span;
use crate::names::{GlobalScope, ModuleId};
use crate::profile::PathClass;
use crate::syntax::{CondKind, ScopeKind};
use crate::text::Span;
use crate::values::{EdgeKind, Engine, InstanceId, Target};

/// What a callsite does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallsiteKind {
    /// A plain call of a function that leads to a kernel.
    DirectCall,
    /// A call of a method of an operator from outside its class.
    MethodCall,
    /// `kernel[grid](...)`.
    KernelLaunch,
    /// `Function.apply`: forward now, backward later.
    AutogradApply,
    /// A call into a native extension.
    NativeCall,
    /// A registered custom operator, called as an object or through `torch.ops`.
    CustomOp,
    /// Instantiation of an operator's class.
    Instantiation,
    /// Instantiation of a class that a string named.
    RegistryInstantiation,
}

impl CallsiteKind {
    /// The word used in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::DirectCall => "direct-call",
            Self::MethodCall => "method-call",
            Self::KernelLaunch => "kernel-launch",
            Self::AutogradApply => "autograd-apply",
            Self::NativeCall => "native-call",
            Self::CustomOp => "custom-op",
            Self::Instantiation => "instantiation",
            Self::RegistryInstantiation => "registry-instantiation",
        }
    }
}

/// How sure a resolution is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// Every step resolved to one object without an undecided condition.
    Proved,
    /// Decided by the profile's assumptions.
    Assumed,
    /// One of several, or under a condition that nothing decides.
    Heuristic,
}

/// What became of a callsite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The chain down to a kernel is known, and something declared or public leads to it.
    Traced,
    /// The chain down is known, but nothing in the sources calls the function it stands in.
    Uncalled,
    /// The callee is not known.
    Untraced,
    /// The assumptions rule it out.
    Dead,
}

impl Certainty {
    /// The word used in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Proved => "proved",
            Self::Assumed => "assumed",
            Self::Heuristic => "heuristic",
        }
    }
}

impl Status {
    /// The word used in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Traced => "traced",
            Self::Uncalled => "uncalled",
            Self::Untraced => "untraced",
            Self::Dead => "dead",
        }
    }
}

/// One callsite.
#[derive(Clone, Debug)]
pub struct Callsite {
    /// The call.
    pub span: Span,
    /// Function it stands in.
    pub caller: GlobalScope,
    /// Operation in that function.
    pub op: u32,
    /// What it does.
    pub kind: CallsiteKind,
    /// Dotted names of what it reaches in one step.
    pub targets: Vec<String>,
    /// Dotted name of the backward function, for autograd.
    pub backward: Option<String>,
    /// Class of the path.
    pub class: PathClass,
    /// What became of it.
    pub status: Status,
    /// How sure that is.
    pub certainty: Certainty,
    /// Conditions that nothing decides, outermost first.
    pub conditions: Vec<Span>,
    /// Whether only a caller that the sources do not have could come here: no known call leads to it.
    pub public: bool,
    /// From an entry down to the call; filled by `chains`.
    pub up: Vec<Hop>,
    /// From the call down to a kernel.
    pub down: Vec<Hop>,
    /// Kernels and native symbols that it can end in.
    pub kernels: Vec<String>,
    /// Contract ids of those.
    pub contracts: Vec<String>,
}

/// Conditions above an operation that hold only perhaps, in a running copy of its scope; and whether an assumption decided some.
pub(super) fn conditions(engine: &Engine<'_>, inst: InstanceId, op: u32) -> (Vec<Span>, bool) {
    let program = engine.program;
    let scope = engine.scope_of(inst);
    let facts = program.scope(scope);
    let mut at = facts.ops[op as usize].cond;
    let mut open = Vec::new();
    let mut decided = false;
    while at != 0 {
        let cond = facts.conds[at as usize];
        match cond.kind {
            CondKind::Test(reg, wanted) => {
                if engine.is_undecided(inst, reg, wanted) {
                    open.push(program.span(scope, cond.range));
                } else {
                    decided = true;
                }
            }
            CondKind::Handler(..) => open.push(program.span(scope, cond.range)),
            CondKind::Maybe | CondKind::Always => {}
        }
        at = cond.parent;
    }
    open.reverse();
    (open, decided)
}

struct Found {
    kinds: BTreeSet<CallsiteKind>,
    targets: BTreeSet<String>,
    backward: Option<String>,
    instances: BTreeSet<InstanceId>,
    others: usize,
}

/// Whether `caller` stands in the class that `callee` stands in: a call inside an operator.
fn same_class(engine: &Engine<'_>, caller: GlobalScope, callee: GlobalScope) -> bool {
    let program = engine.program;
    let class = |scope: GlobalScope| {
        let mut at = scope;
        while program.scope(at).kind != ScopeKind::Module {
            at = program.global_scope(program.module_of(at), program.scope(at).parent);
            if program.scope(at).kind == ScopeKind::Class {
                return Some(at);
            }
        }
        None
    };
    class(caller).is_some() && class(caller) == class(callee)
}

pub(super) fn collect(engine: &Engine<'_>, reach: &Reach, class_of: &dyn Fn(ModuleId) -> PathClass) -> Vec<Callsite> {
    let program = engine.program;
    let mut found: BTreeMap<(GlobalScope, u32), Found> = BTreeMap::new();
    let mut edges = engine.edges.clone();
    edges.sort_unstable();
    for edge in &edges {
        let scope = engine.scope_of(edge.caller);
        let caller = super::callgraph::owner(program, scope);
        // Inside a kernel there are no callsites, only device functions.
        if reach.sinks.contains(&Target::Scope(caller)) || edge.kind == EdgeKind::Decorator {
            continue;
        }
        let sink = reach.sinks.contains(&edge.target);
        let kind = match (edge.target, edge.kind) {
            (Target::Scope(_), EdgeKind::KernelLaunch) if sink => CallsiteKind::KernelLaunch,
            (Target::External(_), _) if sink => CallsiteKind::NativeCall,
            (Target::Scope(target), EdgeKind::AutogradForward | EdgeKind::AutogradBackward) if reach.holds(target) => {
                CallsiteKind::AutogradApply
            }
            (Target::Scope(target), EdgeKind::CustomOp) if reach.holds(target) => CallsiteKind::CustomOp,
            (Target::Scope(target), EdgeKind::Instantiation) => {
                let class = program.global_scope(program.module_of(target), program.scope(target).parent);
                if !reach.classes.contains(&class) || same_class(engine, caller, target) {
                    continue;
                }
                CallsiteKind::Instantiation
            }
            (Target::Class(class), _) if reach.classes.contains(&class) && !engine.is_exception(class) => CallsiteKind::Instantiation,
            (Target::Scope(target), _) if reach.holds(target) && !same_class(engine, caller, target) => {
                let parent = program.global_scope(program.module_of(target), program.scope(target).parent);
                if program.scope(parent).kind == ScopeKind::Class { CallsiteKind::MethodCall } else { CallsiteKind::DirectCall }
            }
            _ => continue,
        };
        let entry = found.entry((scope, edge.op)).or_insert_with(|| Found {
            kinds: BTreeSet::new(),
            targets: BTreeSet::new(),
            backward: None,
            instances: BTreeSet::new(),
            others: 0,
        });
        entry.kinds.insert(kind);
        entry.instances.insert(edge.caller);
        let name = target_name(engine, edge.target);
        if edge.kind == EdgeKind::AutogradBackward {
            entry.backward = Some(name.clone());
        }
        let shown = match (edge.target, kind) {
            (Target::Scope(target), CallsiteKind::AutogradApply | CallsiteKind::Instantiation) => {
                program.qualified(program.global_scope(program.module_of(target), program.scope(target).parent))
            }
            _ => name,
        };
        entry.targets.insert(shown);
    }
    for edge in &edges {
        let key = (engine.scope_of(edge.caller), edge.op);
        if let Some(entry) = found.get_mut(&key) {
            let name = target_name(engine, edge.target);
            let within = entry.targets.iter().any(|target| name == *target || name.starts_with(&format!("{target}.")));
            if !within {
                entry.others += 1;
            }
        }
    }
    let mut out = Vec::new();
    for ((scope, op), found) in found {
        let mut kind = found.kinds.first().copied().unwrap_or(CallsiteKind::DirectCall);
        if kind == CallsiteKind::Instantiation && engine.came_from_string(scope, op) {
            kind = CallsiteKind::RegistryInstantiation;
        }
        // The instance with the fewest open conditions speaks for the callsite.
        let best = found.instances.iter().map(|inst| conditions(engine, *inst, op)).min_by_key(|(open, _)| open.len());
        let (open, decided) = best.unwrap_or_default();
        let certainty = if found.others > 0 || found.targets.len() > 1 || !open.is_empty() {
            Certainty::Heuristic
        } else if decided {
            Certainty::Assumed
        } else {
            Certainty::Proved
        };
        let called = found.instances.iter().any(|inst| !engine.is_unbound(*inst));
        out.push(Callsite {
            span: op_span(program, scope, op),
            caller: super::callgraph::owner(program, scope),
            op,
            kind,
            targets: found.targets.into_iter().collect(),
            backward: found.backward,
            class: class_of(program.module_of(scope)),
            status: if called { Status::Traced } else { Status::Uncalled },
            certainty,
            conditions: open,
            public: found.instances.iter().all(|inst| engine.is_public(*inst)),
            up: Vec::new(),
            down: Vec::new(),
            kernels: Vec::new(),
            contracts: Vec::new(),
        });
    }
    out.sort_by_key(|callsite| (callsite.span, callsite.op));
    out
}
