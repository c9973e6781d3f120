//! Evaluates pure functions of the pinned sources for every size in a range at once.
//!
//! In: the module table, the texts, the profile's assumptions, and a function with its arguments, one size of which is unknown within a range.
//! Out: [`Piece`]s: intervals of that size without a hole, each with the one answer that holds in it. The function is run for the first size of a range;
//! each comparison it makes says up to which size it comes out the same (see [`number`]), and the next run begins after the nearest of these. So the
//! bounds are exact and come from the comparisons. Refused, with the construct and its place: what is not pure or not modelled, such as a global that
//! some code assigns again, an unknown call, a loop that does not end. A function that launches kernels is run leniently: there a value that is not known stops only what depends
//! on it, and a check that is not known and can only raise is taken to pass, which is listed under [`Evaluator::assumed`].

mod calls;
pub mod constructions;
mod expressions;
mod functions;
mod globals;
pub mod number;
mod statements;
pub mod tensors;
#[cfg(test)]
mod tests;
pub mod value;

use std::collections::BTreeMap;
use std::rc::Rc;

use number::Number;
use value::{Scope, Stop, Value};

use crate::names::{ModuleId, Program};
use crate::profile::Known;
use crate::syntax::Range;
use crate::syntax::tree::Tree;
use crate::text::{Files, Span};

/// The size that stands for "nothing bounds it".
pub const UNBOUNDED: i128 = 1 << 40;
/// Steps of one range.
const MAX_STEPS: u64 = 2_000_000;
/// Pieces of one range.
const MAX_PIECES: usize = 50_000;
/// Rounds of one loop.
const MAX_ROUNDS: usize = 10_000;
/// Levels of expressions and calls.
const MAX_DEPTH: u32 = 1_000;
/// Stack, in bytes, that a thread needs to evaluate.
const STACK_BYTES: usize = 256 << 20;

/// Runs `work` on a thread with the stack that evaluation needs; `None` if the system gives none, or the work did not end.
pub fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work).ok()?;
        thread.join().ok()
    })
}

/// What the evaluator reads.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// Module table.
    pub program: &'a Program,
    /// Texts.
    pub files: &'a Files,
    /// Values of dotted names outside the sources.
    pub known: &'a BTreeMap<String, Known>,
    /// Environment variables.
    pub environment: &'a BTreeMap<String, Known>,
    /// Names of modules that other code replaces, with the place that does.
    pub replaced: &'a BTreeMap<(ModuleId, String), Span>,
}

/// A kernel launch as it was evaluated.
#[derive(Clone, Debug)]
pub struct Launched {
    /// Dotted name of the kernel.
    pub kernel: String,
    /// Grid.
    pub grid: Vec<Number>,
    /// Keyword arguments in order.
    pub options: Vec<(String, Value)>,
    /// The launch.
    pub at: Span,
    /// Calls that led to it, outermost first.
    pub calls: Vec<Span>,
}

/// What happened while a function ran.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Tests that decided something.
    pub tests: Vec<Span>,
    /// Launches in order.
    pub launches: Vec<Launched>,
    /// Bytes of each allocation, or what hides them; by number of the allocation.
    pub allocations: Vec<Result<Number, Stop>>,
    /// Answers of the watched function, with the calls that led to it, outermost first.
    pub selections: Vec<(Value, Vec<Span>)>,
}

/// An answer that holds for an interval of sizes.
#[derive(Clone, Debug)]
pub struct Piece<T> {
    /// First size.
    pub from: i128,
    /// Last size.
    pub to: i128,
    /// The answer, or what stopped the evaluation.
    pub outcome: Result<T, Stop>,
}

/// Evaluates functions.
pub struct Evaluator<'a> {
    facts: Facts<'a>,
    trees: BTreeMap<ModuleId, Rc<Tree>>,
    globals: BTreeMap<(ModuleId, String), Result<Value, Stop>>,
    open: Vec<(ModuleId, String)>,
    /// Definition whose answers are noted.
    watched: Option<Span>,
    lenient: bool,
    size: i128,
    limit: i128,
    steps: u64,
    depth: u32,
    calls: Vec<Span>,
    trace: Trace,
    assumed: BTreeMap<Span, String>,
}

/// Where an expression is evaluated.
#[derive(Clone)]
pub(super) struct Frame<'f> {
    pub module: ModuleId,
    /// `None` at module level.
    pub scope: Option<Rc<Scope>>,
    /// Names that are local, with or without a value.
    pub locals: &'f [String],
}

/// How a statement ends.
pub(super) enum Flow {
    Next,
    Return(Value),
    Break,
    Continue,
}

impl<'a> Evaluator<'a> {
    /// An evaluator over some facts.
    #[must_use]
    pub fn new(facts: Facts<'a>) -> Self {
        Self {
            facts,
            trees: BTreeMap::new(),
            globals: BTreeMap::new(),
            open: Vec::new(),
            watched: None,
            lenient: false,
            size: 0,
            limit: 0,
            steps: 0,
            depth: 0,
            calls: Vec::new(),
            trace: Trace::default(),
            assumed: BTreeMap::new(),
        }
    }

    /// What was taken for granted so far, by place.
    #[must_use]
    pub const fn assumed(&self) -> &BTreeMap<Span, String> {
        &self.assumed
    }

    /// Notes the answers of a function wherever it is called.
    pub fn watch(&mut self, function: &Value) {
        if let Value::Function(closure) = function {
            self.watched = Some(self.span(closure.module, closure.function.name_range));
        }
    }

    /// A name of a module.
    ///
    /// # Errors
    /// What hides its value.
    pub fn global(&mut self, module: ModuleId, name: &str) -> Result<Value, Stop> {
        let file = self.facts.program.module(module).file;
        self.module_name(module, name, Span::new(file, 0, 0))
    }

    /// Where a name of a module is bound, if one statement binds it.
    pub fn definition(&mut self, module: ModuleId, name: &str) -> Option<Span> {
        self.bindings(module, name).first().map(|range| self.span(module, *range))
    }

    /// Runs a function for all sizes from `from` to `to`, with arguments by position and by name. `lenient`: see the module's header.
    pub fn pieces(
        &mut self,
        function: &Value,
        (args, named): (&[Value], &[(String, Value)]),
        (from, to): (i128, i128),
        lenient: bool,
        at: Span,
    ) -> Vec<Piece<(Value, Trace)>> {
        let mut out = Vec::new();
        let mut next = from;
        self.steps = 0;
        while next <= to {
            self.size = next;
            self.limit = to;
            self.depth = 0;
            self.lenient = lenient;
            self.calls.clear();
            self.trace = Trace::default();
            let mut outcome = if out.len() >= MAX_PIECES {
                self.limit = to;
                Err(self.stop("more intervals than are kept apart", at))
            } else {
                self.call_value(function.clone(), args.to_vec(), named.to_vec(), at)
            };
            if let Ok(Value::Unknown(stop)) = outcome {
                outcome = Err((*stop).clone());
            }
            if self.steps > MAX_STEPS {
                // No step is left for the rest of the range.
                self.limit = to;
            }
            let trace = std::mem::take(&mut self.trace);
            out.push(Piece { from: next, to: self.limit, outcome: outcome.map(|value| (value, trace)) });
            next = self.limit + 1;
        }
        self.lenient = false;
        out
    }

    // --- what all parts share ------------------------------------------------------------------------------------------------------

    pub(super) fn span(&self, module: ModuleId, range: Range) -> Span {
        Span::new(self.facts.program.module(module).file, range.0, range.1)
    }

    pub(super) fn stop(&self, construct: impl Into<String>, at: Span) -> Stop {
        Stop { construct: construct.into(), at, raises: None }
    }

    /// A value that is not known: it stops a pure function, and waits in a lenient run until something depends on it.
    pub(super) fn unknown(&self, construct: impl Into<String>, at: Span) -> Result<Value, Stop> {
        let stop = self.stop(construct, at);
        if self.lenient { Ok(Value::Unknown(Rc::new(stop))) } else { Err(stop) }
    }

    pub(super) fn step(&mut self, at: Span) -> Result<(), Stop> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            // What is left of the range is one piece.
            return Err(self.stop("more steps than are taken", at));
        }
        Ok(())
    }

    /// How two numbers compare, from the current size up to where the comparison turns.
    pub(super) fn order(&mut self, a: &Number, b: &Number, at: Span) -> Result<std::cmp::Ordering, Stop> {
        let too_large = |evaluator: &Self| evaluator.stop("a number beyond 128 bits", at);
        let Some(difference) = a.minus(b) else {
            // Too long a formula: the answer holds for this size.
            self.limit = self.size;
            let (a, b) = (a.at(self.size), b.at(self.size));
            return match (a, b) {
                (Some(a), Some(b)) => Ok(a.cmp(&b)),
                _ => Err(too_large(self)),
            };
        };
        let (sign, until) = difference.sign(self.size, self.limit).ok_or_else(|| too_large(self))?;
        self.limit = self.limit.min(until);
        Ok(sign)
    }

    /// The value of a number, from the current size up to where it changes.
    pub(super) fn fixed(&mut self, number: &Number, at: Span) -> Result<i128, Stop> {
        if let Some(value) = number.as_constant() {
            return Ok(value);
        }
        let value = number.at(self.size).ok_or_else(|| self.stop("a number beyond 128 bits", at))?;
        self.order(number, &Number::constant(value), at)?;
        Ok(value)
    }

    /// The text of a span, on one line.
    pub(super) fn text(&self, at: Span) -> String {
        self.facts.files.slice(at).split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
