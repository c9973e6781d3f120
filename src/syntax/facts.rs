//! The facts about one module: a flat list of operations per scope, over numbered registers in static single assignment form.
//!
//! Pure data. Names are indices into [`ModuleFacts::names`]; registers and conditions are numbered per scope. Straight-line reassignment gives
//! each version its own register, so that a strong update of a local costs nothing later; merges are [`OpKind::Phi`].

/// Index into [`ModuleFacts::names`].
pub type NameId = u32;
/// A numbered value of one scope.
pub type Reg = u32;
/// A node of a scope's condition tree; 0 is "always".
pub type CondId = u32;
/// Index into [`ModuleFacts::scopes`]; 0 is the module's own body.
pub type ScopeId = u32;

/// A byte range of the module's text.
pub type Range = (u32, u32);

/// Register that stands for "no value" (an unbound name in a merge, an absent slice bound).
pub const NO_REG: Reg = u32::MAX;

/// A literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Literal {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer that fits.
    Int(i64),
    /// A string; implicit concatenation is joined.
    Str(NameId),
    /// A float, complex, bytes, ellipsis or an integer that does not fit: a value that no decision here depends on.
    Opaque,
}

/// Which values a narrowing lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keep {
    /// Those that may be true.
    Truthy,
    /// Those that may be false.
    Falsy,
    /// `None` only.
    IsNone,
    /// Everything but `None`.
    NotNone,
}

/// How an argument is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// By position.
    Position,
    /// By name.
    Keyword(NameId),
    /// `*args`.
    Star,
    /// `**kwargs`.
    DoubleStar,
}

/// Operators that the evaluator knows; the rest is [`Operator::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `==`
    Eq,
    /// `!=`
    NotEq,
    /// `is`
    Is,
    /// `is not`
    IsNot,
    /// `in`
    In,
    /// `not in`
    NotIn,
    /// `<`
    Lt,
    /// `<=`
    LtE,
    /// `>`
    Gt,
    /// `>=`
    GtE,
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `//`
    FloorDiv,
    /// `%`
    Mod,
    /// anything else
    Other,
}

/// One operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Op {
    /// What it does.
    pub kind: OpKind,
    /// Where it stands.
    pub range: Range,
    /// Under which condition it runs.
    pub cond: CondId,
}

/// What an operation does. Field order is destination first.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are named after what they are in Python")]
pub enum OpKind {
    /// A literal.
    Literal(Reg, Literal),
    /// Reads a name of the module, else a builtin.
    LoadGlobal(Reg, NameId),
    /// Writes a name of the module.
    StoreGlobal(NameId, Reg),
    /// Reads register `.2` of the function scope `.1` that encloses this one.
    LoadFree(Reg, ScopeId, Reg),
    /// Writes register `.1` of the enclosing function scope `.0`.
    StoreFree(ScopeId, Reg, Reg),
    /// Writes a name of the class body.
    StoreClass(NameId, Reg),
    /// `import a.b.c` (`top`: binds `a`) or `import a.b.c as x`.
    Import { dst: Reg, module: NameId, top: bool },
    /// `from .module import name`; `level` dots.
    ImportFrom { dst: Reg, module: NameId, level: u32, name: NameId },
    /// `from .module import *`.
    ImportStar { module: NameId, level: u32 },
    /// A copy.
    Move(Reg, Reg),
    /// Merge of values from several paths, each with the condition under which it arrives.
    Phi(Reg, Box<[(Reg, CondId)]>),
    /// A narrowed copy.
    Filter(Reg, Reg, Keep),
    /// `obj.name`
    LoadAttr { dst: Reg, obj: Reg, name: NameId },
    /// `obj.name = src`
    StoreAttr { obj: Reg, name: NameId, src: Reg },
    /// `obj[key]`
    LoadItem { dst: Reg, obj: Reg, key: Reg },
    /// `obj[lower:upper]`
    LoadSlice { dst: Reg, obj: Reg, lower: Reg, upper: Reg },
    /// `obj[key] = src`
    StoreItem { obj: Reg, key: Reg, src: Reg },
    /// A tuple (`mutable` false), list or set. The flag of an item says that it is starred.
    Sequence { dst: Reg, items: Box<[(Reg, bool)]>, mutable: bool },
    /// A dict; `NO_REG` as key means `**value`.
    Dict { dst: Reg, items: Box<[(Reg, Reg)]> },
    /// Element `index` of an unpacked value; `from_end` counts from the right.
    Unpack { dst: Reg, src: Reg, index: u32, from_end: bool },
    /// The starred rest of an unpacked value: after `before` and before `after` elements.
    UnpackRest { dst: Reg, src: Reg, before: u32, after: u32 },
    /// A function or lambda object; defaults by parameter index.
    Function { dst: Reg, scope: ScopeId, defaults: Box<[(u32, Reg)]> },
    /// A class object; its body runs here.
    Class { dst: Reg, scope: ScopeId, bases: Box<[Reg]>, keywords: Box<[(NameId, Reg)]> },
    /// A call. `decorator`: the application of a decorator.
    Call { dst: Reg, func: Reg, args: Box<[(Passing, Reg)]>, decorator: bool },
    /// One element of iterating over `src`.
    Iterate { dst: Reg, src: Reg },
    /// `with src as dst`
    Enter { dst: Reg, src: Reg },
    /// `await src`
    Await { dst: Reg, src: Reg },
    /// `yield src`
    Yield { dst: Reg, src: Reg },
    /// `yield from src`
    YieldFrom { dst: Reg, src: Reg },
    /// `return src`
    Return(Reg),
    /// `raise src`
    Raise(Reg),
    /// `not src`
    Not { dst: Reg, src: Reg },
    /// A comparison of two operands or a binary operation.
    Binary { dst: Reg, left: Reg, op: Operator, right: Reg },
    /// An f-string.
    Format { dst: Reg, parts: Box<[Reg]> },
    /// `del`: recorded, no effect.
    Delete,
}

/// Why a part of a scope may or may not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CondKind {
    /// The root.
    Always,
    /// A test with this register came out true (or false).
    Test(Reg, bool),
    /// An exception was raised in `try` number `.0` of the scope and handler `.1` took it.
    Handler(u32, u32),
    /// A loop body, a `match` case and the like.
    Maybe,
}

/// A node of the condition tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cond {
    /// Enclosing condition.
    pub parent: CondId,
    /// What decides it.
    pub kind: CondKind,
    /// Its text.
    pub range: Range,
}

/// One exception handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    /// Dotted names of the exception types; empty for a bare `except:`.
    pub types: Vec<String>,
    /// From `except` to the end of its body.
    pub range: Range,
    /// From `except` to the end of its type and name.
    pub head: Range,
    /// Operations of its body.
    pub ops: (u32, u32),
    /// Whether every path through its body ends in `raise`.
    pub raises: bool,
    /// Whether every path through its body leaves the function or loop.
    pub leaves: bool,
}

/// One `try` statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Try {
    /// The whole statement.
    pub range: Range,
    /// Operations of the `try` body.
    pub body: (u32, u32),
    /// Operations of the `else` body.
    pub orelse: (u32, u32),
    /// Condition under which the statement runs.
    pub cond: CondId,
    /// Whether the statement stands in a loop of the same scope.
    pub in_loop: bool,
    /// Handlers in order.
    pub handlers: Vec<Handler>,
}

/// Whether operations are recorded for a backward pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grad {
    /// As wherever the caller stands, if anybody knows.
    #[default]
    AsBefore,
    /// Yes.
    On,
    /// No.
    Off,
}

/// What a scope is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeKind {
    /// Module body.
    Module,
    /// Class body.
    Class,
    /// `def`.
    Function,
    /// `lambda`.
    Lambda,
}

/// How a parameter takes arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// By position only.
    PositionOnly,
    /// By position or name.
    Normal,
    /// `*args`.
    Star,
    /// By name only.
    KeywordOnly,
    /// `**kwargs`.
    DoubleStar,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Name.
    pub name: NameId,
    /// Kind.
    pub kind: ParamKind,
    /// Register that holds it.
    pub reg: Reg,
    /// Whether there is a default.
    pub has_default: bool,
    /// Annotation, if it is a plain dotted name.
    pub annotation: Option<NameId>,
}

/// A module body, class body, function or lambda.
#[derive(Clone, Debug, PartialEq)]
pub struct Scope {
    /// Kind.
    pub kind: ScopeKind,
    /// Own name; `<lambda1>` and so on for lambdas, numbered per enclosing scope.
    pub name: NameId,
    /// Dotted name within the module; empty for the module body.
    pub qualname: NameId,
    /// Enclosing scope (itself for the module).
    pub parent: ScopeId,
    /// Whole definition.
    pub range: Range,
    /// The name in the definition.
    pub name_range: Range,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Number of registers.
    pub registers: u32,
    /// Operations in order.
    pub ops: Vec<Op>,
    /// Condition tree.
    pub conds: Vec<Cond>,
    /// `try` statements.
    pub tries: Vec<Try>,
    /// Whether it contains `yield`.
    pub is_generator: bool,
    /// `async def`.
    pub is_async: bool,
    /// Dotted names of decorators, for those that are plain or called names.
    pub decorators: Vec<NameId>,
    /// Grad mode that decorators set for the whole body.
    pub grad: Grad,
    /// Bodies of `with` statements that set the grad mode, as ranges of operations; an inner one stands before the one around it.
    pub grad_regions: Vec<((u32, u32), Grad)>,
    /// Whether callers are worth telling apart: a parameter, or something taken from one, is called, returned, used as a key or captured, or
    /// compared with a constant to choose what to return; or an object that is passed gets an empty dictionary of its own.
    pub polymorphic: bool,
    /// Names that a class body annotates, in order: the fields of a dataclass.
    pub annotated: Vec<NameId>,
}

/// A comment that steers the tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// The comment.
    pub range: Range,
    /// Its text after `rlk-lint:`.
    pub text: String,
}

/// A place where the parser gave up, with what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxProblem {
    /// Where.
    pub range: Range,
    /// What.
    pub message: String,
}

/// Everything known about one module.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ModuleFacts {
    /// Names and strings.
    pub names: Vec<String>,
    /// Scopes; 0 is the module body.
    pub scopes: Vec<Scope>,
    /// Names bound at module level or declared `global` in a function, in order of first binding; not those that only `if TYPE_CHECKING:`
    /// binds, which no run sees.
    pub bound: Vec<NameId>,
    /// Directives.
    pub directives: Vec<Directive>,
    /// Syntax problems; what could be parsed is in the scopes all the same.
    pub problems: Vec<SyntaxProblem>,
}

impl ModuleFacts {
    /// The text of a name.
    #[must_use]
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id as usize).map_or("", String::as_str)
    }
}

impl Grad {
    /// The mode that calling something of this name, as a decorator or in a `with` statement, sets.
    #[must_use]
    pub fn set_by(name: &str) -> Self {
        match name.rsplit('.').next() {
            Some("no_grad" | "inference_mode") => Self::Off,
            Some("enable_grad") => Self::On,
            _ => Self::AsBefore,
        }
    }

    /// This mode, or `outer` if it leaves that as it is.
    #[must_use]
    pub fn or(self, outer: Self) -> Self {
        if self == Self::AsBefore { outer } else { self }
    }
}

impl Scope {
    /// Grad mode that the scope itself sets around an operation.
    #[must_use]
    pub fn grad_at(&self, op: u32) -> Grad {
        let inner = self.grad_regions.iter().find(|((from, to), _)| (*from..*to).contains(&op));
        inner.map_or(self.grad, |(_, grad)| *grad)
    }
}
