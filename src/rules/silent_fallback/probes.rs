//! Probes that answer exceptions with a constant, where the answer selects the implementation or leaves a collective out.

use std::collections::{BTreeMap, BTreeSet};

use super::{Taken, behind, types, words};
use crate::findings::{Finding, Related};
use crate::names::GlobalScope;
use crate::profile::{PathClass, Role};
use crate::rules::dataflow::modules_with;
use crate::syntax::{CondId, CondKind, Handler, Literal, NameId, OpKind, Reg, ScopeKind};

/// Rounds in which an answer is followed through returns and names of modules.
const ROUNDS: usize = 4;

/// Whether a handler takes every exception.
fn swallows(handler: &Handler) -> bool {
    handler.types.is_empty() || handler.types.iter().any(|kind| matches!(kind.as_str(), "Exception" | "BaseException"))
}

/// A capability probe that answers every exception with "no", where that answer switches the implementation.
pub(super) fn probe(taken: &Taken<'_>, findings: &mut Vec<Finding>) {
    let answers_no = taken.ops().iter().filter(|op| taken.context.below(taken.scope, op.cond, taken.cond)).any(|op| match op.kind {
        OpKind::Return(reg) => {
            matches!(taken.names.literal(taken.scope, reg), Some((_, Literal::Bool(false) | Literal::None | Literal::Int(0))))
        }
        _ => false,
    });
    if !answers_no || !swallows(taken.handler) {
        return;
    }
    let mut answer = Answer { taken, scopes: BTreeMap::new(), globals: BTreeSet::new() };
    answer.follow();
    for (scope, regs) in &answer.scopes {
        for (test, yes, no) in switches(taken, *scope, regs) {
            if yes.is_empty() || no.is_empty() || yes == no {
                continue;
            }
            let place = taken.context.program.span(*scope, taken.context.program.scope(*scope).conds[test as usize].range);
            let related =
                vec![Related { span: taken.context.first_line(place), message: "the answer switches the implementation here".to_owned() }];
            taken.report("handler", vec![taken.function(), words(&yes), words(&no), types(taken.handler)], related, findings);
            return;
        }
    }
}

/// For each test of the answer, or of something that depends on it: the family members on its true and on its false side.
fn switches(taken: &Taken<'_>, scope: GlobalScope, regs: &BTreeSet<Reg>) -> Vec<(CondId, BTreeSet<String>, BTreeSet<String>)> {
    let facts = taken.context.program.scope(scope);
    let mut sides: BTreeMap<Reg, (CondId, BTreeSet<String>, BTreeSet<String>)> = BTreeMap::new();
    for (at, cond) in facts.conds.iter().enumerate() {
        let CondKind::Test(reg, wanted) = cond.kind else { continue };
        if !regs.contains(&reg) {
            continue;
        }
        let at = CondId::try_from(at).unwrap_or(0);
        let found = behind(taken.context, scope, at);
        let entry = sides.entry(reg).or_insert_with(|| (at, BTreeSet::new(), BTreeSet::new()));
        if wanted {
            entry.1.extend(found);
        } else {
            entry.2.extend(found);
        }
    }
    sides.into_values().collect()
}

/// Where the answer of a probe goes: registers by scope, and names of modules.
struct Answer<'a> {
    taken: &'a Taken<'a>,
    scopes: BTreeMap<GlobalScope, BTreeSet<Reg>>,
    globals: BTreeSet<(crate::names::ModuleId, NameId)>,
}

impl Answer<'_> {
    fn follow(&mut self) {
        let mut asked = BTreeSet::from([self.taken.scope]);
        for _ in 0..ROUNDS {
            self.ask(&asked);
            let mut more = asked.clone();
            for scope in self.scopes.keys().copied().collect::<Vec<_>>() {
                self.spread(scope);
                if self.returned(scope) {
                    more.insert(scope);
                }
            }
            self.read_globals();
            if more == asked && self.globals.is_empty() {
                break;
            }
            asked = more;
        }
        for scope in self.scopes.keys().copied().collect::<Vec<_>>() {
            self.spread(scope);
        }
    }

    /// Calls of the functions that give the answer, in branches that do not run as well.
    fn ask(&mut self, functions: &BTreeSet<GlobalScope>) {
        let program = self.taken.context.program;
        let full: BTreeSet<String> = functions.iter().map(|scope| program.qualified(*scope)).collect();
        let short: Vec<&str> = full.iter().filter_map(|name| name.rsplit('.').next()).collect();
        for module in modules_with(program, &short) {
            if !matches!((self.taken.context.class_of)(module), PathClass::Production | PathClass::Reference) {
                continue;
            }
            let count = u32::try_from(program.module(module).facts.scopes.len()).unwrap_or(u32::MAX);
            for scope in (0..count).map(|scope| program.global_scope(module, scope)) {
                for (at, op) in program.scope(scope).ops.iter().enumerate() {
                    let OpKind::Call { dst, func, decorator: false, .. } = op.kind else { continue };
                    let at = u32::try_from(at).unwrap_or(u32::MAX);
                    let known = self.taken.context.calls.get(&(scope, at));
                    let known = known.is_some_and(|targets| {
                        targets.iter().any(|target| matches!(target, crate::values::Target::Scope(scope) if functions.contains(scope)))
                    });
                    if known || self.taken.names.of(scope, func).iter().any(|name| full.contains(name)) {
                        self.scopes.entry(scope).or_default().insert(dst);
                    }
                }
            }
        }
    }

    /// What depends on the answer within a scope: computed from it, or chosen by a test of it.
    fn spread(&mut self, scope: GlobalScope) {
        let facts = self.taken.context.program.scope(scope);
        let module = self.taken.context.program.module_of(scope);
        let Some(regs) = self.scopes.get_mut(&scope) else { return };
        loop {
            let before = regs.len() + self.globals.len();
            let chosen = |regs: &BTreeSet<Reg>, cond: CondId| {
                let mut at = cond;
                while at != 0 {
                    let node = facts.conds[at as usize];
                    if matches!(node.kind, CondKind::Test(reg, _) if regs.contains(&reg)) {
                        return true;
                    }
                    at = node.parent;
                }
                false
            };
            for op in &facts.ops {
                let (dst, from) = match &op.kind {
                    OpKind::Move(dst, src) | OpKind::Filter(dst, src, _) | OpKind::Not { dst, src } => (*dst, regs.contains(src)),
                    OpKind::Phi(dst, inputs) => (*dst, inputs.iter().any(|(src, cond)| regs.contains(src) || chosen(regs, *cond))),
                    OpKind::Binary { dst, left, right, .. } => (*dst, regs.contains(left) || regs.contains(right)),
                    OpKind::Unpack { dst, src, .. } => (*dst, regs.contains(src)),
                    OpKind::LoadGlobal(dst, name) => (*dst, self.globals.contains(&(module, *name))),
                    OpKind::StoreGlobal(name, src) => {
                        if facts.kind != ScopeKind::Module && (regs.contains(src) || chosen(regs, op.cond)) {
                            self.globals.insert((module, *name));
                        }
                        continue;
                    }
                    _ => continue,
                };
                if from {
                    regs.insert(dst);
                }
            }
            if regs.len() + self.globals.len() == before {
                return;
            }
        }
    }

    /// Whether a scope gives on what depends on the answer.
    fn returned(&self, scope: GlobalScope) -> bool {
        let facts = self.taken.context.program.scope(scope);
        let Some(regs) = self.scopes.get(&scope) else { return false };
        facts.kind == ScopeKind::Function
            && facts.ops.iter().any(|op| match op.kind {
                OpKind::Return(src) => {
                    let mut at = op.cond;
                    let mut chosen = false;
                    while at != 0 {
                        let node = facts.conds[at as usize];
                        chosen |= matches!(node.kind, CondKind::Test(reg, _) if regs.contains(&reg));
                        at = node.parent;
                    }
                    // A value that comes out of the family is not the answer any more.
                    let constant = self.taken.names.literal(scope, src).is_some();
                    regs.contains(&src) || (chosen && constant)
                }
                _ => false,
            })
    }

    /// Functions of a module that read a name which depends on the answer.
    fn read_globals(&mut self) {
        let program = self.taken.context.program;
        for (module, name) in self.globals.clone() {
            let count = u32::try_from(program.module(module).facts.scopes.len()).unwrap_or(u32::MAX);
            for scope in (0..count).map(|scope| program.global_scope(module, scope)) {
                for op in &program.scope(scope).ops {
                    if let OpKind::LoadGlobal(dst, read) = op.kind
                        && read == name
                    {
                        self.scopes.entry(scope).or_default().insert(dst);
                    }
                }
            }
        }
    }
}

/// A handler that answers a question about the process group with a world of one.
pub(super) fn topology(taken: &Taken<'_>, findings: &mut Vec<Finding>) -> bool {
    let program = taken.context.program;
    let source = program.module(program.module_of(taken.scope)).source;
    if taken.context.sources[source].role != Role::Kernel {
        return false;
    }
    let module = &program.module(program.module_of(taken.scope)).facts;
    let speaks = |reg: Reg| {
        let mut open = vec![reg];
        let mut seen = BTreeSet::new();
        while let Some(reg) = open.pop() {
            if !seen.insert(reg) {
                continue;
            }
            for kind in taken.names.defined_by(taken.scope, reg) {
                match kind {
                    OpKind::LoadAttr { name, .. } | OpKind::LoadGlobal(_, name) if module.name(*name).contains("world_size") => {
                        return true;
                    }
                    OpKind::ImportFrom { name, .. } if module.name(*name).contains("world_size") => return true,
                    OpKind::Move(_, src) | OpKind::Filter(_, src, _) => open.push(*src),
                    OpKind::Call { func, args, .. } => {
                        open.push(*func);
                        open.extend(args.iter().map(|(_, reg)| *reg));
                    }
                    _ => {}
                }
            }
        }
        false
    };
    let parts = |reg: Reg| -> Vec<Reg> {
        let kinds = taken.names.defined_by(taken.scope, reg);
        kinds
            .iter()
            .find_map(
                |kind| if let OpKind::Sequence { items, .. } = kind { Some(items.iter().map(|(item, _)| *item).collect()) } else { None },
            )
            .unwrap_or_else(|| vec![reg])
    };
    let returned = |inside: bool| {
        let ops = taken.ops().iter();
        let ops = ops.filter(move |op| taken.context.below(taken.scope, op.cond, taken.cond) == inside);
        ops.filter_map(|op| if let OpKind::Return(src) = op.kind { Some(src) } else { None }).map(parts).collect::<Vec<Vec<Reg>>>()
    };
    let asked: BTreeSet<usize> = returned(false)
        .iter()
        .flat_map(|items| items.iter().enumerate().filter(|(_, reg)| speaks(**reg)).map(|(at, _)| at).collect::<Vec<_>>())
        .collect();
    let one = |reg: &Reg| matches!(taken.names.literal(taken.scope, *reg), Some((_, Literal::Int(1))));
    if asked.is_empty() || !returned(true).iter().any(|items| asked.iter().any(|at| items.get(*at).is_some_and(one))) {
        return false;
    }
    taken.report("topology", vec![taken.function(), types(taken.handler)], Vec::new(), findings);
    true
}
