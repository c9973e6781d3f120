//! What an expression comes to when no environment variable is set.
//!
//! In: a register of production code. Out: its value, if only constants, reads with a default, string methods, comparisons and calls of functions
//! of the sources go into it. Refused: everything else; the answer is then that it is not known. Depth and work are bounded.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::super::Context;
use super::flow::{Code, argument, definitions};
use crate::names::GlobalScope;
use crate::syntax::{CondId, CondKind, Literal, OpKind, Operator, Passing, Reg};
use crate::values::Target;

/// A constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Constant {
    /// `None`.
    None,
    /// `True` and `False`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A string.
    Str(String),
    /// A tuple, list or set of constants.
    Sequence(Vec<Constant>),
}

impl Constant {
    pub(in super::super) fn truth(&self) -> bool {
        match self {
            Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Str(text) => !text.is_empty(),
            Self::Sequence(items) => !items.is_empty(),
        }
    }
}

const MAX_DEPTH: u32 = 40;
const MAX_STEPS: u32 = 20_000;

/// Evaluates with nothing set.
pub(in super::super) struct Unset<'a, 'c> {
    context: &'c Context<'a>,
    steps: Cell<u32>,
    /// Operations by the register that they define, per scope.
    made: RefCell<FxHashMap<GlobalScope, Rc<FxHashMap<Reg, u32>>>>,
}

/// Arguments of the function that is evaluated, by parameter.
type Given = Vec<Option<Constant>>;

impl<'a, 'c> Unset<'a, 'c> {
    pub(in super::super) fn new(context: &'c Context<'a>) -> Self {
        Self { context, steps: Cell::new(0), made: RefCell::default() }
    }

    /// The value of a register, with parameters unknown.
    pub(in super::super) fn value(&self, scope: GlobalScope, reg: Reg) -> Option<Constant> {
        self.steps.set(0);
        self.register(scope, reg, &Vec::new(), 0)
    }

    fn register(&self, scope: GlobalScope, reg: Reg, given: &Given, depth: u32) -> Option<Constant> {
        self.steps.set(self.steps.get() + 1);
        if depth > MAX_DEPTH || self.steps.get() > MAX_STEPS {
            return None;
        }
        let program = self.context.program;
        let id = program.module_of(scope);
        let module = program.module(id);
        let facts = program.scope(scope);
        let known = self.made.borrow().get(&scope).cloned();
        let made = known.unwrap_or_else(|| {
            let made = Rc::new(definitions(facts));
            self.made.borrow_mut().insert(scope, Rc::clone(&made));
            made
        });
        let code = Code { facts: &module.facts, scope: facts, made: &made };
        let go = |reg: Reg| self.register(scope, reg, given, depth + 1);
        if let Some(place) = facts.params.iter().position(|param| param.reg == reg) {
            return given.get(place).cloned().flatten();
        }
        let at = *made.get(&reg)?;
        let op = &facts.ops[at as usize].kind;
        if code.reads(op).is_some() {
            return match op {
                OpKind::Binary { op, .. } => Some(Constant::Bool(*op == Operator::NotIn)),
                OpKind::Call { args, .. } => match args.get(1) {
                    Some((Passing::Position | Passing::Keyword(_), default)) => go(*default),
                    None => Some(Constant::None),
                    _ => None,
                },
                _ => None,
            };
        }
        match op {
            OpKind::Literal(_, literal) => match literal {
                Literal::None => Some(Constant::None),
                Literal::Bool(value) => Some(Constant::Bool(*value)),
                Literal::Int(value) => Some(Constant::Int(*value)),
                Literal::Str(text) => Some(Constant::Str(module.facts.name(*text).to_owned())),
                Literal::Opaque => None,
            },
            OpKind::Move(_, src) | OpKind::Filter(_, src, _) => go(*src),
            OpKind::Not { src, .. } => Some(Constant::Bool(!go(*src)?.truth())),
            OpKind::Sequence { items, .. } => {
                let items = items.iter().map(|(item, starred)| if *starred { None } else { go(*item) });
                items.collect::<Option<Vec<_>>>().map(Constant::Sequence)
            }
            OpKind::Phi(_, inputs) => {
                for (src, cond) in inputs {
                    match self.holds(scope, *cond, given, depth) {
                        Some(true) => return go(*src),
                        Some(false) => {}
                        None => return None,
                    }
                }
                None
            }
            OpKind::Binary { left, op, right, .. } => compare(&go(*left)?, *op, &go(*right)?),
            OpKind::LoadGlobal(_, name) => {
                let body = program.global_scope(id, 0);
                let mut stores = program.scope(body).ops.iter().filter_map(|op| match op.kind {
                    OpKind::StoreGlobal(known, src) if known == *name => Some(src),
                    _ => None,
                });
                let first = stores.next()?;
                if stores.next().is_some() { None } else { self.register(body, first, &Vec::new(), depth + 1) }
            }
            OpKind::Call { func, args, .. } => self.call(scope, at, code, *func, args, given, depth),
            _ => None,
        }
    }

    #[allow(clippy::too_many_arguments, reason = "one call is described by all of these")]
    fn call(
        &self,
        scope: GlobalScope,
        at: u32,
        code: Code<'_>,
        func: Reg,
        args: &[(Passing, Reg)],
        given: &Given,
        depth: u32,
    ) -> Option<Constant> {
        let go = |reg: Reg| self.register(scope, reg, given, depth + 1);
        let callees: Vec<GlobalScope> = self
            .context
            .calls
            .get(&(scope, at))
            .into_iter()
            .flatten()
            .filter_map(|target| match target {
                Target::Scope(callee) => Some(*callee),
                _ => None,
            })
            .collect();
        if let [callee] = callees[..] {
            let count = self.context.program.scope(callee).params.len();
            let given = (0..count).map(|index| argument(self.context, callee, index, args, code.facts).and_then(go)).collect();
            return self.result(callee, &given, depth).map(|(value, _)| value);
        }
        match code.maker(func)? {
            OpKind::LoadAttr { obj, name, .. } => {
                let Constant::Str(text) = go(*obj)? else { return None };
                match code.facts.name(*name) {
                    "strip" if args.is_empty() => Some(Constant::Str(text.trim().to_owned())),
                    "lower" | "casefold" => Some(Constant::Str(text.to_lowercase())),
                    "upper" => Some(Constant::Str(text.to_uppercase())),
                    _ => None,
                }
            }
            OpKind::LoadGlobal(_, name) => {
                let value = go(args.first()?.1)?;
                match (code.facts.name(*name), value) {
                    ("bool", value) => Some(Constant::Bool(value.truth())),
                    ("int", Constant::Str(text)) => text.trim().parse().ok().map(Constant::Int),
                    ("int", Constant::Int(value)) => Some(Constant::Int(value)),
                    ("str", Constant::Str(text)) => Some(Constant::Str(text)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// What a function returns, and with which operation.
    fn result(&self, scope: GlobalScope, given: &Given, depth: u32) -> Option<(Constant, u32)> {
        let facts = self.context.program.scope(scope);
        for (at, op) in facts.ops.iter().enumerate() {
            let OpKind::Return(src) = op.kind else { continue };
            if self.holds(scope, op.cond, given, depth)? {
                return Some((self.register(scope, src, given, depth + 1)?, u32::try_from(at).unwrap_or(u32::MAX)));
            }
        }
        None
    }

    /// The operation with which a function without arguments answers.
    pub(in super::super) fn answers_with(&self, scope: GlobalScope) -> Option<u32> {
        self.steps.set(0);
        let given = vec![None; self.context.program.scope(scope).params.len()];
        self.result(scope, &given, 0).map(|(_, at)| at)
    }

    /// Whether everything above a condition, and itself, comes out as it says.
    fn holds(&self, scope: GlobalScope, cond: CondId, given: &Given, depth: u32) -> Option<bool> {
        let facts = self.context.program.scope(scope);
        let mut chain = Vec::new();
        let mut at = cond;
        while at != 0 {
            chain.push(facts.conds[at as usize].kind);
            at = facts.conds[at as usize].parent;
        }
        // Outermost first: what stands below a test that fails is not looked at.
        for kind in chain.into_iter().rev() {
            match kind {
                CondKind::Test(reg, wanted) => {
                    if self.register(scope, reg, given, depth + 1)?.truth() != wanted {
                        return Some(false);
                    }
                }
                CondKind::Handler(..) => return Some(false),
                CondKind::Maybe => return None,
                CondKind::Always => {}
            }
        }
        Some(true)
    }
}

fn compare(left: &Constant, op: Operator, right: &Constant) -> Option<Constant> {
    let answer = match (op, right) {
        (Operator::Eq | Operator::Is, right) => left == right,
        (Operator::NotEq | Operator::IsNot, right) => left != right,
        (Operator::In, Constant::Sequence(items)) => items.contains(left),
        (Operator::NotIn, Constant::Sequence(items)) => !items.contains(left),
        (Operator::Gt, Constant::Int(right)) => matches!(left, Constant::Int(left) if left > right),
        _ => return None,
    };
    Some(Constant::Bool(answer))
}
