//! Which registers of a scope something flows into.

use rustc_hash::FxHashSet;

use crate::names::GlobalScope;
use crate::syntax::{OpKind, Reg};

use super::{Names, destination};

/// How far a value is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    /// Into everything that is computed from it: arithmetic, calls, containers.
    Computed,
    /// Into other names, elements and containers of the same value only.
    Alias,
}

/// The registers of one scope that carry a value.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    pub(crate) regs: FxHashSet<Reg>,
}

/// Calls through which a value stays the same value.
const SAME: [&str; 16] = [
    "to",
    "float",
    "detach",
    "clone",
    "cuda",
    "cpu",
    "contiguous",
    "cat",
    "stack",
    "tensor",
    "as_tensor",
    "list",
    "tuple",
    "flatten",
    "squeeze",
    "copy",
];

/// Calls that look at the form of a value and not at its numbers.
pub(crate) const FORM: [&str; 14] = [
    "zeros_like",
    "ones_like",
    "empty_like",
    "full_like",
    "rand_like",
    "randn_like",
    "new_zeros",
    "new_ones",
    "new_empty",
    "new_full",
    "len",
    "isinstance",
    "type",
    "enumerate",
];

impl Flow {
    /// Whether a register carries the value.
    pub(crate) fn holds(&self, reg: Reg) -> bool {
        self.regs.contains(&reg)
    }

    /// Follows values from seeds to a fixpoint. `stops` keeps a register out although something flows into it.
    pub(crate) fn from(
        names: &Names<'_>,
        scope: GlobalScope,
        seeds: impl IntoIterator<Item = Reg>,
        spread: Spread,
        stops: &dyn Fn(&OpKind) -> bool,
    ) -> Self {
        let facts = names.program.scope(scope);
        let mut flow = Self { regs: seeds.into_iter().collect() };
        if flow.regs.is_empty() {
            return flow;
        }
        loop {
            let before = flow.regs.len();
            for op in &facts.ops {
                if !stops(&op.kind) {
                    flow.step(names, scope, &op.kind, spread);
                }
            }
            if flow.regs.len() == before {
                return flow;
            }
        }
    }

    fn step(&mut self, names: &Names<'_>, scope: GlobalScope, kind: &OpKind, spread: Spread) {
        let has = |reg: &Reg| self.regs.contains(reg);
        let computed = spread == Spread::Computed;
        let carries = match kind {
            OpKind::Move(_, src)
            | OpKind::Filter(_, src, _)
            | OpKind::Unpack { src, .. }
            | OpKind::UnpackRest { src, .. }
            | OpKind::Iterate { src, .. }
            | OpKind::Enter { src, .. }
            | OpKind::Await { src, .. } => has(src),
            OpKind::Phi(_, inputs) => inputs.iter().any(|(src, _)| has(src)),
            OpKind::LoadItem { obj, .. } | OpKind::LoadSlice { obj, .. } => has(obj),
            OpKind::LoadAttr { obj, .. } => computed && has(obj),
            OpKind::Sequence { items, .. } => items.iter().any(|(reg, _)| has(reg)),
            OpKind::Dict { items, .. } => computed && items.iter().any(|(_, value)| has(value)),
            OpKind::Binary { left, right, .. } => computed && (has(left) || has(right)),
            OpKind::StoreItem { obj, src, .. } if computed && has(src) => {
                self.regs.insert(*obj);
                false
            }
            OpKind::Call { func, args, decorator: false, .. } => {
                let given = args.iter().any(|(_, reg)| has(reg));
                let receiver = method(names, scope, *func);
                let of_receiver = receiver.is_some_and(|(obj, _)| has(&obj));
                if let Some((obj, "append" | "extend" | "insert" | "add" | "copy_")) = receiver
                    && given
                {
                    self.regs.insert(obj);
                }
                match spread {
                    Spread::Computed => (given || of_receiver) && !named(names, scope, *func, &FORM[..13]),
                    Spread::Alias => (given || of_receiver) && named(names, scope, *func, &SAME),
                }
            }
            _ => false,
        };
        if carries && let Some(dst) = destination(kind) {
            self.regs.insert(dst);
        }
    }
}

/// Whether a function has one of some names, whatever it is looked up in.
fn named(names: &Names<'_>, scope: GlobalScope, func: Reg, list: &[&str]) -> bool {
    names.defined_by(scope, func).iter().any(|kind| {
        let module = &names.program.module(names.program.module_of(scope)).facts;
        matches!(kind, OpKind::LoadAttr { name, .. } | OpKind::LoadGlobal(_, name) if list.contains(&module.name(*name)))
    })
}

/// Receiver and name of a method that a register holds.
pub(crate) fn method<'p>(names: &Names<'p>, scope: GlobalScope, func: Reg) -> Option<(Reg, &'p str)> {
    names.defined_by(scope, func).into_iter().find_map(|kind| match kind {
        OpKind::LoadAttr { obj, name, .. } => Some((*obj, names.program.module(names.program.module_of(scope)).facts.name(*name))),
        _ => None,
    })
}
