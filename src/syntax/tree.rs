//! One module's text as a tree, for the few functions that are evaluated instead of followed.
//!
//! In: the decoded text of one file. Out: [`Tree`]: statements and expressions with their ranges, and nothing of the parser's own types. Refused:
//! nothing; what is not modelled, or nested deeper than [`MAX_NESTING`], stands in the tree as `Other` with words for what it is.

use std::sync::Arc;

use super::facts::Range;

/// Levels of nesting that are kept.
pub const MAX_NESTING: u32 = 64;

/// A module.
#[derive(Debug, Default)]
pub struct Tree {
    /// Statements in order.
    pub body: Vec<Stmt>,
}

/// A statement.
#[derive(Debug)]
pub struct Stmt {
    /// What it does.
    pub kind: StmtKind,
    /// Where.
    pub range: Range,
}

/// What a statement does.
#[derive(Debug)]
#[allow(missing_docs, reason = "the fields are named after what they are in Python")]
pub enum StmtKind {
    /// `a = b = value`
    Assign { targets: Vec<Expr>, value: Expr },
    /// `a += value`
    Augmented { target: Expr, op: BinaryOp, value: Expr },
    /// `a: T = value`
    Annotated { target: Expr, annotation: String, value: Option<Expr> },
    /// An expression for its effect.
    Expr(Expr),
    /// `return value`
    Return(Option<Expr>),
    /// `if`, `elif` (test) and `else` (no test).
    If(Vec<(Option<Expr>, Vec<Stmt>)>),
    /// `for target in iter`
    For { target: Expr, iter: Expr, body: Vec<Stmt>, orelse: Vec<Stmt> },
    /// `while test`
    While { test: Expr, body: Vec<Stmt>, orelse: Vec<Stmt> },
    /// `def`
    Function(Arc<Function>),
    /// `class`
    Class(Arc<Class>),
    /// `import module as alias`
    Import { module: String, alias: Option<String> },
    /// `from module import name as alias`
    ImportFrom { module: String, level: u32, name: String, alias: Option<String> },
    /// `try`; of each handler the names of its types (none for a bare `except`) and its body.
    Try { body: Vec<Stmt>, handlers: Vec<(Vec<String>, Vec<Stmt>)>, orelse: Vec<Stmt>, finalbody: Vec<Stmt> },
    /// `with item as name`
    With { items: Vec<(Expr, Option<Expr>)>, body: Vec<Stmt> },
    /// `raise`
    Raise,
    /// `assert test`
    Assert(Expr),
    /// `global names`
    Global(Vec<String>),
    /// `nonlocal names`
    Nonlocal(Vec<String>),
    /// `pass`
    Pass,
    /// `break`
    Break,
    /// `continue`
    Continue,
    /// Anything else.
    Other(&'static str),
}

/// An expression.
#[derive(Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where.
    pub range: Range,
}

/// What an expression is.
#[derive(Debug)]
#[allow(missing_docs, reason = "the fields are named after what they are in Python")]
pub enum ExprKind {
    /// `None`
    None,
    /// `True`, `False`
    Bool(bool),
    /// An integer that fits.
    Int(i64),
    /// A string.
    Str(String),
    /// A name.
    Name(String),
    /// `value.name`
    Attribute(Box<Expr>, String),
    /// `value[key]`
    Item(Box<Expr>, Box<Expr>),
    /// `func(args)`
    Call { func: Box<Expr>, args: Vec<(Argument, Expr)> },
    /// `a and b` (true), `a or b` (false).
    BoolOp(bool, Vec<Expr>),
    /// `not a`
    Not(Box<Expr>),
    /// `-a`
    Negative(Box<Expr>),
    /// `a + b`
    Binary { left: Box<Expr>, op: BinaryOp, right: Box<Expr> },
    /// `a < b <= c`
    Compare { left: Box<Expr>, rest: Vec<(Comparison, Expr)> },
    /// `body if test else orelse`
    Conditional { test: Box<Expr>, body: Box<Expr>, orelse: Box<Expr> },
    /// `(a, b)`
    Tuple(Vec<Expr>),
    /// `[a, b]`
    List(Vec<Expr>),
    /// `{a, b}`
    Set(Vec<Expr>),
    /// `{k: v, **rest}`
    Dict(Vec<(Option<Expr>, Expr)>),
    /// `lambda`
    Lambda(Arc<Function>),
    /// `[element for ...]` and its relatives; `key` for a dict.
    Comprehension { key: Option<Box<Expr>>, element: Box<Expr>, generators: Vec<Generator> },
    /// `name := value`
    Walrus { target: Box<Expr>, value: Box<Expr> },
    /// `*value`
    Starred(Box<Expr>),
    /// Anything else.
    Other(&'static str),
}

/// One `for` of a comprehension.
#[derive(Debug)]
pub struct Generator {
    /// What each element is bound to.
    pub target: Expr,
    /// What is iterated.
    pub iter: Expr,
    /// Conditions.
    pub tests: Vec<Expr>,
}

/// How an argument is passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// By position.
    Position,
    /// By name.
    Keyword(String),
    /// `*args`
    Star,
    /// `**kwargs`
    DoubleStar,
}

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named after what they are in Python")]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
    LeftShift,
    RightShift,
    And,
    Or,
    Xor,
    MatMul,
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named after what they are in Python")]
pub enum Comparison {
    Eq,
    NotEq,
    Lt,
    LtE,
    Gt,
    GtE,
    Is,
    IsNot,
    In,
    NotIn,
}

/// A `def` or `lambda`.
#[derive(Debug)]
pub struct Function {
    /// Name; `<lambda>` for a lambda.
    pub name: String,
    /// Where it stands.
    pub range: Range,
    /// The name in the definition.
    pub name_range: Range,
    /// Parameters in order.
    pub params: Vec<Parameter>,
    /// Names that are local to it.
    pub locals: Vec<String>,
    /// Decorators in order.
    pub decorators: Vec<Expr>,
    /// Body.
    pub body: Vec<Stmt>,
    /// Why a call of it does not run its body to its end, if so.
    pub deferred: Option<&'static str>,
}

/// A parameter.
#[derive(Debug)]
pub struct Parameter {
    /// Name.
    pub name: String,
    /// How it takes arguments.
    pub kind: super::facts::ParamKind,
    /// Default.
    pub default: Option<Expr>,
}

/// A `class`.
#[derive(Debug)]
pub struct Class {
    /// Name.
    pub name: String,
    /// Where it stands.
    pub range: Range,
    /// The name in the definition.
    pub name_range: Range,
    /// Bases in order.
    pub bases: Vec<Expr>,
    /// Whether it has keywords (`metaclass=`).
    pub keywords: bool,
    /// Decorators in order.
    pub decorators: Vec<Expr>,
    /// Body.
    pub body: Vec<Stmt>,
}
