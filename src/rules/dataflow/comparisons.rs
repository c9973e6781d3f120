//! Comparisons of what a family computed, in tests and in production code, with their tolerances.
//!
//! In: module facts and the family. Out: [`Comparison`]s whose operands matter to the contract. Refused: a comparison of which only one side
//! comes from the family is an accuracy check, and is reported as such.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::{Flow, Names, Operators, Side, Spread, method, modules_with, score_seeds, short_names};
use crate::names::{GlobalScope, ModuleId};
use crate::profile::PathClass;
use crate::rules::Context;
use crate::syntax::{Literal, OpKind, Operator, Passing, Reg};
use crate::text::Span;

/// How a comparison decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// Within a tolerance that is not zero.
    Tolerant,
    /// By equality of values: `-0.0` equals `0.0`, and a NaN equals nothing.
    Values,
}

/// What is compared with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sides {
    /// Two results of the family.
    Family,
    /// A result of the family with a product that PyTorch computed.
    Product,
    /// The rollout's score with the trainer's.
    Scores,
    /// A result of the family with something else: an accuracy check.
    Reference,
}

/// One comparison.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub(crate) scope: GlobalScope,
    pub(crate) op: u32,
    pub(crate) callee: String,
    pub(crate) strictness: Strictness,
    pub(crate) sides: Sides,
    /// Tolerances as they are written, or what the callee takes without them.
    pub(crate) rtol: String,
    pub(crate) atol: String,
    /// Whether both operands were turned into integers before.
    pub(crate) bits: bool,
}

const TOLERANT: [&str; 8] = [
    "torch.allclose",
    "torch.isclose",
    "torch.testing.assert_close",
    "torch.testing.assert_allclose",
    "numpy.allclose",
    "numpy.isclose",
    "numpy.testing.assert_allclose",
    "math.isclose",
];
const EXACT: [&str; 5] = ["torch.equal", "torch.eq", "numpy.array_equal", "numpy.testing.assert_array_equal", "numpy.testing.assert_equal"];
/// Products whose order of additions is PyTorch's own.
const PRODUCTS: [&str; 7] =
    ["torch.mm", "torch.matmul", "torch.bmm", "torch.addmm", "torch.einsum", "torch.nn.functional.linear", "torch.mv"];
/// Words without which a module compares nothing.
const WORDS: [&str; 12] = [
    "allclose",
    "isclose",
    "assert_close",
    "assert_allclose",
    "equal",
    "eq",
    "array_equal",
    "assert_array_equal",
    "assert_equal",
    "all",
    "torch.equal",
    "torch.allclose",
];
/// Methods and attributes after which a value is an integer, a flag or a shape: equal values are equal bits.
const WHOLE: [&str; 14] =
    ["argmax", "argmin", "argsort", "long", "int", "bool", "shape", "size", "dtype", "device", "isnan", "isfinite", "tobytes", "numel"];
const BIT_TYPES: [&str; 8] = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"];

/// All comparisons that matter, in order of place.
pub(crate) fn collect(context: &Context<'_>) -> Vec<Comparison> {
    let names = Names::new(context.program);
    let operators = Operators::new(context);
    let short = short_names(context);
    let mut out = Vec::new();
    for module in modules_with(context.program, &WORDS) {
        let class = (context.class_of)(module);
        if !matches!(class, PathClass::Production | PathClass::Reference | PathClass::Test) {
            continue;
        }
        let facts = &context.program.module(module).facts;
        let family = facts.names.iter().any(|name| short.contains(name));
        let scores = facts.names.iter().any(|name| super::score_side(name) == Some(Side::Rollout));
        if family || scores {
            Reader { context, names: &names, operators: &operators, module }.read(family, scores, &mut out);
        }
    }
    out
}

struct Reader<'a> {
    context: &'a Context<'a>,
    names: &'a Names<'a>,
    operators: &'a Operators<'a>,
    module: ModuleId,
}

impl Reader<'_> {
    fn scopes(&self) -> impl Iterator<Item = GlobalScope> + use<'_> {
        let count = u32::try_from(self.context.program.module(self.module).facts.scopes.len()).unwrap_or(u32::MAX);
        (0..count).map(|scope| self.context.program.global_scope(self.module, scope))
    }

    fn read(&self, family: bool, scores: bool, out: &mut Vec<Comparison>) {
        // Functions of the module that give what the family computed; helpers of helpers need another round.
        let mut helpers: BTreeSet<String> = BTreeSet::new();
        let given = if family { self.given_operators() } else { FxHashSet::default() };
        for _ in 0..3 {
            let before = helpers.len();
            for scope in self.scopes().filter(|_| family) {
                let flow = self.family_flow(scope, &helpers, &given);
                let returns =
                    self.context.program.scope(scope).ops.iter().any(|op| matches!(op.kind, OpKind::Return(src) if flow.holds(src)));
                if returns {
                    helpers.insert(self.context.program.qualified(scope));
                }
            }
            if helpers.len() == before {
                break;
            }
        }
        for scope in self.scopes() {
            let found = self.candidates(scope);
            if found.is_empty() {
                continue;
            }
            let of_family = if family { self.family_flow(scope, &helpers, &given) } else { Flow::default() };
            let whole = self.whole(scope);
            let products = self.products(scope);
            let (rollout, training) = if scores { self.scores(scope) } else { (Flow::default(), Flow::default()) };
            for (op, callee, strictness, left, right, tolerances) in found {
                let both = |flow: &Flow| flow.holds(left) && flow.holds(right);
                let crossed = |a: &Flow, b: &Flow| (a.holds(left) && b.holds(right)) || (b.holds(left) && a.holds(right));
                let sides = if both(&of_family) && strictness == Strictness::Tolerant && self.changes_environment(scope) {
                    Sides::Reference
                } else if both(&of_family) {
                    Sides::Family
                } else if crossed(&rollout, &training) && !both(&rollout) && !both(&training) {
                    Sides::Scores
                } else if crossed(&of_family, &products) {
                    Sides::Product
                } else if of_family.holds(left) || of_family.holds(right) {
                    Sides::Reference
                } else {
                    continue;
                };
                let (rtol, atol) = tolerances;
                let bits = both(&whole);
                out.push(Comparison { scope, op, callee, strictness, sides, rtol, atol, bits });
            }
        }
    }

    /// Parameters of test functions that a decorator or a fixture binds to an operator.
    fn given_operators(&self) -> FxHashSet<(GlobalScope, Reg)> {
        let program = self.context.program;
        let facts = &program.module(self.module).facts;
        let body = program.global_scope(self.module, 0);
        let seeds: Vec<Reg> = self.program_regs(body).filter(|reg| self.is_operator(body, *reg)).collect();
        let carried = Flow::from(self.names, body, seeds, Spread::Alias, &|_| false);
        let holds = |scope: GlobalScope, reg: Reg| {
            carried.holds(reg) && scope == body
                || self.names.defined_by(scope, reg).iter().any(|kind| match kind {
                    OpKind::LoadGlobal(_, name) => self.names.stored(self.module, *name).iter().any(|src| carried.holds(*src)),
                    _ => false,
                })
        };
        let mut fixtures: BTreeSet<&str> = BTreeSet::new();
        let mut out = FxHashSet::default();
        for scope in self.scopes() {
            let function = program.scope(scope);
            if function.decorators.iter().any(|name| facts.name(*name).ends_with("fixture")) {
                let gives = function.ops.iter().any(|op| match op.kind {
                    OpKind::Return(src) | OpKind::Yield { src, .. } => self.is_operator(scope, src),
                    _ => false,
                });
                if gives {
                    fixtures.insert(facts.name(function.name));
                }
            }
        }
        for scope in self.scopes() {
            for op in &program.scope(scope).ops {
                let OpKind::Function { dst, scope: inner, .. } = op.kind else { continue };
                let inner = program.global_scope(self.module, inner);
                let mut bound: BTreeSet<&str> = fixtures.clone();
                let mut value = dst;
                for later in &program.scope(scope).ops {
                    let OpKind::Call { dst, func, args, decorator: true } = &later.kind else { continue };
                    if args.first().is_none_or(|(_, reg)| *reg != value) {
                        continue;
                    }
                    value = *dst;
                    for kind in self.names.defined_by(scope, *func) {
                        let OpKind::Call { func, args, .. } = kind else { continue };
                        let parametrizes = self.names.of(scope, *func).iter().any(|name| name.ends_with(".parametrize"));
                        let [(_, first), (_, second), ..] = &args[..] else { continue };
                        if parametrizes && holds(scope, *second) {
                            bound.extend(self.names.text(scope, *first).unwrap_or("").split(',').map(str::trim));
                        }
                    }
                }
                let params = program.scope(inner).params.iter().filter(|param| bound.contains(facts.name(param.name)));
                out.extend(params.map(|param| (inner, param.reg)));
            }
        }
        out
    }

    fn program_regs(&self, scope: GlobalScope) -> impl Iterator<Item = Reg> + use<'_> {
        self.context.program.scope(scope).ops.iter().filter_map(|op| super::destination(&op.kind))
    }

    fn is_operator(&self, scope: GlobalScope, reg: Reg) -> bool {
        self.names.of(scope, reg).iter().any(|name| self.operators.is_operator(name))
    }

    /// What flows from the family's results.
    fn family_flow(&self, scope: GlobalScope, helpers: &BTreeSet<String>, given: &FxHashSet<(GlobalScope, Reg)>) -> Flow {
        let facts = self.context.program.scope(scope);
        let names = &self.context.program.module(self.module).facts;
        let mut seeds = Vec::new();
        let mut operands: FxHashSet<Reg> = FxHashSet::default();
        for op in &facts.ops {
            let OpKind::Call { dst, func, args, decorator: false } = &op.kind else { continue };
            let spelled = self.names.of(scope, *func);
            let runs = spelled.iter().any(|name| helpers.contains(name) || self.operators.is_operator(name))
                || self.parameters_of(scope, *func).iter().any(|place| given.contains(place));
            if !runs {
                continue;
            }
            seeds.push(*dst);
            for (passing, reg) in args {
                match passing {
                    Passing::Keyword(name) if names.name(*name) == "out" => seeds.push(*reg),
                    _ => {
                        operands.insert(*reg);
                    }
                }
            }
        }
        // Gradients of operands come out of the family's backward.
        for op in &facts.ops {
            if let OpKind::LoadAttr { dst, obj, name } = op.kind
                && names.name(name) == "grad"
                && operands.contains(&obj)
            {
                seeds.push(dst);
            }
        }
        // What is computed with a result is another number: that a gradient scales with the loss, say, is no claim about bits.
        Flow::from(self.names, scope, seeds, Spread::Computed, &|kind| matches!(kind, OpKind::Binary { .. }))
    }

    /// Whether a function, or one inside it, sets variables of the environment: it then compares two ways of computing, each with its own order of
    /// additions.
    fn changes_environment(&self, scope: GlobalScope) -> bool {
        let facts = &self.context.program.module(self.module).facts;
        let within = |other: GlobalScope| {
            let mut at = other;
            while at != scope {
                let parent = self.context.program.global_scope(self.module, self.context.program.scope(at).parent);
                if parent == at {
                    return false;
                }
                at = parent;
            }
            true
        };
        self.scopes().filter(|other| within(*other)).any(|scope| {
            self.context.program.scope(scope).ops.iter().any(|op| match &op.kind {
                OpKind::LoadAttr { name, .. } => matches!(facts.name(*name), "setenv" | "delenv" | "putenv"),
                OpKind::StoreItem { obj, .. } => self.names.is_one_of(scope, *obj, &["os.environ"]),
                _ => false,
            })
        })
    }

    /// Parameters, of this or an enclosing function, that a register may be.
    fn parameters_of(&self, scope: GlobalScope, reg: Reg) -> Vec<(GlobalScope, Reg)> {
        let mut out = Vec::new();
        let mut open = vec![(scope, reg)];
        for _ in 0..16 {
            let Some((scope, reg)) = open.pop() else { break };
            if self.names.parameter(scope, reg).is_some() {
                out.push((scope, reg));
            }
            for kind in self.names.defined_by(scope, reg) {
                match kind {
                    OpKind::Move(_, src) | OpKind::Filter(_, src, _) => open.push((scope, *src)),
                    OpKind::LoadFree(_, outer, src) => open.push((self.context.program.global_scope(self.module, *outer), *src)),
                    _ => {}
                }
            }
        }
        out
    }

    /// Values that are integers, or the bits of a float.
    fn whole(&self, scope: GlobalScope) -> Flow {
        let facts = &self.context.program.module(self.module).facts;
        let mut seeds = Vec::new();
        for op in &self.context.program.scope(scope).ops {
            match &op.kind {
                OpKind::LoadAttr { dst, name, .. } if WHOLE.contains(&facts.name(*name)) => seeds.push(*dst),
                OpKind::Call { dst, func, args, .. } => {
                    let Some((_, name)) = method(self.names, scope, *func) else { continue };
                    let typed = |reg: Reg| {
                        self.names.of(scope, reg).iter().any(|name| BIT_TYPES.iter().any(|kind| name.ends_with(&format!(".{kind}"))))
                    };
                    if WHOLE.contains(&name) || (matches!(name, "view" | "to" | "astype") && args.iter().any(|(_, reg)| typed(*reg))) {
                        seeds.push(*dst);
                    }
                }
                _ => {}
            }
        }
        Flow::from(self.names, scope, seeds, Spread::Computed, &|_| false)
    }

    /// What flows from products that PyTorch computes.
    fn products(&self, scope: GlobalScope) -> Flow {
        let mut seeds = Vec::new();
        for op in &self.context.program.scope(scope).ops {
            match &op.kind {
                OpKind::Call { dst, func, .. } if self.names.is_one_of(scope, *func, &PRODUCTS) => seeds.push(*dst),
                OpKind::Binary { dst, op: Operator::Other, .. } => {
                    let place = self.context.program.span(scope, op.range);
                    if self.context.files.slice(place).contains('@') {
                        seeds.push(*dst);
                    }
                }
                _ => {}
            }
        }
        Flow::from(self.names, scope, seeds, Spread::Computed, &|_| false)
    }

    fn scores(&self, scope: GlobalScope) -> (Flow, Flow) {
        let of = |side| Flow::from(self.names, scope, score_seeds(self.names, scope, side), Spread::Alias, &|_| false);
        (of(Side::Rollout), of(Side::Training))
    }

    /// Comparisons of a scope: operation, name, strictness, operands, tolerances.
    #[allow(clippy::type_complexity)]
    fn candidates(&self, scope: GlobalScope) -> Vec<(u32, String, Strictness, Reg, Reg, (String, String))> {
        let facts = &self.context.program.module(self.module).facts;
        let mut out = Vec::new();
        for (at, op) in self.context.program.scope(scope).ops.iter().enumerate() {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            if let OpKind::Binary { dst, left, op: Operator::Eq, right } = op.kind {
                if self.reduced_by_all(scope, dst) {
                    out.push((at, "==".to_owned(), Strictness::Values, left, right, (String::new(), String::new())));
                }
                continue;
            }
            let OpKind::Call { func, args, decorator: false, .. } = &op.kind else { continue };
            let spelled = self.names.of(scope, *func);
            let positional: Vec<Reg> = args.iter().filter(|(passing, _)| *passing == Passing::Position).map(|(_, reg)| *reg).collect();
            let keyword = |wanted: &[&str]| {
                args.iter().find_map(|(passing, reg)| match passing {
                    Passing::Keyword(name) if wanted.contains(&facts.name(*name)) => Some(*reg),
                    _ => None,
                })
            };
            let named = spelled.iter().find(|name| TOLERANT.contains(&name.as_str()) || EXACT.contains(&name.as_str())).cloned();
            let (callee, left, right, more) = if let Some(callee) = named {
                let left = positional.first().copied().or_else(|| keyword(&["actual", "input", "a"]));
                let right = positional.get(1).copied().or_else(|| keyword(&["expected", "other", "desired", "b"]));
                let (Some(left), Some(right)) = (left, right) else { continue };
                (callee, left, right, 2)
            } else if let Some((receiver, name @ ("allclose" | "equal" | "isclose"))) = method(self.names, scope, *func)
                && !spelled.iter().any(|name| name.starts_with("torch.") || name.starts_with("numpy."))
                && let Some(other) = positional.first()
            {
                (format!("torch.{name}"), receiver, *other, 1)
            } else {
                continue;
            };
            if EXACT.contains(&callee.as_str()) {
                out.push((at, callee, Strictness::Values, left, right, (String::new(), String::new())));
                continue;
            }
            // `assert_close` takes its tolerances by name only.
            let by_place = |place: usize| if callee.ends_with("assert_close") { None } else { positional.get(place).copied() };
            let rtol = keyword(&["rtol", "rel_tol"]).or_else(|| by_place(more));
            let atol = keyword(&["atol", "abs_tol"]).or_else(|| by_place(more + 1));
            let zero = |reg: Option<Reg>| reg.is_some_and(|reg| self.number(scope, reg) == Some(0.0));
            let strictness = if zero(rtol) && zero(atol) { Strictness::Values } else { Strictness::Tolerant };
            let written = |reg: Option<Reg>| reg.map_or_else(|| "default".to_owned(), |reg| self.written(scope, reg));
            out.push((at, callee, strictness, left, right, (written(rtol), written(atol))));
        }
        out
    }

    /// Whether every element of a comparison is asked for.
    fn reduced_by_all(&self, scope: GlobalScope, compared: Reg) -> bool {
        let facts = &self.context.program.module(self.module).facts;
        self.context.program.scope(scope).ops.iter().any(|op| match &op.kind {
            OpKind::LoadAttr { obj, name, .. } => *obj == compared && facts.name(*name) == "all",
            OpKind::Call { func, args, .. } => {
                args.first().is_some_and(|(_, reg)| *reg == compared) && self.names.is_one_of(scope, *func, &["torch.all", "numpy.all"])
            }
            _ => false,
        })
    }

    /// Text of what a register holds where it comes from, on one line.
    fn written(&self, scope: GlobalScope, reg: Reg) -> String {
        let Some((scope, op)) = self.names.origin(scope, reg) else { return "computed".to_owned() };
        let span = self.context.program.span(scope, self.context.program.scope(scope).ops[op as usize].range);
        one_line(self.context.files.slice(span))
    }

    fn number(&self, scope: GlobalScope, reg: Reg) -> Option<f64> {
        let (scope, op) = self.names.origin(scope, reg)?;
        match &self.context.program.scope(scope).ops[op as usize] {
            op if matches!(op.kind, OpKind::Literal(_, Literal::Int(0))) => Some(0.0),
            op => {
                let span: Span = self.context.program.span(scope, op.range);
                self.context.files.slice(span).trim().parse().ok()
            }
        }
    }
}

fn one_line(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if joined.chars().count() > 60 { format!("{}...", joined.chars().take(57).collect::<String>()) } else { joined }
}
