//! The parser's tree to [`super::tree::Tree`].

use std::sync::Arc;

use ruff_python_ast::{self as ast, ExceptHandler};
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};
use ruff_text_size::Ranged;

use super::facts::ParamKind;
use super::lower::{dotted, range};
use super::scan::Bindings;
use super::tree::{
    Argument, BinaryOp, Class, Comparison, Expr, ExprKind, Function, Generator, MAX_NESTING, Parameter, Stmt, StmtKind, Tree,
};

/// The trees of some texts, in their order; a text that does not parse as a whole gives what could be parsed.
///
/// # Panics
/// If the system gives no thread.
#[must_use]
pub fn trees(texts: &[&str]) -> Vec<Tree> {
    // The parser recurses, so it gets the stack that any input needs.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).stack_size(super::STACK_BYTES).build().expect("the system gives a thread");
    pool.install(|| texts.iter().map(|text| tree(text)).collect())
}

fn tree(text: &str) -> Tree {
    let parsed = parse_unchecked(text, ParseOptions::from(Mode::Module).with_target_version(ast::PythonVersion::latest()));
    match parsed.syntax() {
        ast::Mod::Module(module) => Tree { body: Lowering::default().block(&module.body) },
        ast::Mod::Expression(_) => Tree::default(),
    }
}

#[derive(Default)]
struct Lowering {
    depth: u32,
    /// Why the function being lowered cannot be run to its end.
    deferred: Option<&'static str>,
}

const TOO_DEEP: &str = "code nested too deeply";
const DEFERRED: &str = "a generator or coroutine";

impl Lowering {
    fn block(&mut self, body: &[ast::Stmt]) -> Vec<Stmt> {
        if self.depth >= MAX_NESTING {
            let first = body.first().map(|stmt| Stmt { kind: StmtKind::Other(TOO_DEEP), range: range(stmt.range()) });
            return first.into_iter().collect();
        }
        self.depth += 1;
        let mut out = Vec::with_capacity(body.len());
        for stmt in body {
            self.statement(stmt, &mut out);
        }
        self.depth -= 1;
        out
    }

    fn statement(&mut self, stmt: &ast::Stmt, out: &mut Vec<Stmt>) {
        let at = range(stmt.range());
        let kind = match stmt {
            ast::Stmt::FunctionDef(def) => StmtKind::Function(Arc::new(self.function(def))),
            ast::Stmt::ClassDef(def) => {
                let (bases, keywords) = def
                    .arguments
                    .as_deref()
                    .map_or((&[] as &[ast::Expr], false), |arguments| (&arguments.args, !arguments.keywords.is_empty()));
                StmtKind::Class(Arc::new(Class {
                    name: def.name.to_string(),
                    range: at,
                    name_range: range(def.name.range()),
                    bases: bases.iter().map(|base| self.expr(base)).collect(),
                    keywords,
                    decorators: def.decorator_list.iter().map(|decorator| self.expr(&decorator.expression)).collect(),
                    body: self.block(&def.body),
                }))
            }
            ast::Stmt::Return(stmt) => StmtKind::Return(stmt.value.as_deref().map(|value| self.expr(value))),
            ast::Stmt::Assign(stmt) => {
                let targets = stmt.targets.iter().map(|target| self.expr(target)).collect();
                StmtKind::Assign { targets, value: self.expr(&stmt.value) }
            }
            ast::Stmt::AugAssign(stmt) => {
                StmtKind::Augmented { target: self.expr(&stmt.target), op: binary(stmt.op), value: self.expr(&stmt.value) }
            }
            ast::Stmt::AnnAssign(stmt) => StmtKind::Annotated {
                target: self.expr(&stmt.target),
                annotation: dotted(match &*stmt.annotation {
                    ast::Expr::Subscript(subscript) => &subscript.value,
                    other => other,
                })
                .unwrap_or_default(),
                value: stmt.value.as_deref().map(|value| self.expr(value)),
            },
            ast::Stmt::Expr(stmt) => StmtKind::Expr(self.expr(&stmt.value)),
            ast::Stmt::If(stmt) => {
                let mut branches = vec![(Some(self.expr(&stmt.test)), self.block(&stmt.body))];
                for clause in &stmt.elif_else_clauses {
                    branches.push((clause.test.as_ref().map(|test| self.expr(test)), self.block(&clause.body)));
                }
                StmtKind::If(branches)
            }
            ast::Stmt::For(stmt) if stmt.is_async => StmtKind::Other("`async for`"),
            ast::Stmt::For(stmt) => StmtKind::For {
                target: self.expr(&stmt.target),
                iter: self.expr(&stmt.iter),
                body: self.block(&stmt.body),
                orelse: self.block(&stmt.orelse),
            },
            ast::Stmt::While(stmt) => {
                StmtKind::While { test: self.expr(&stmt.test), body: self.block(&stmt.body), orelse: self.block(&stmt.orelse) }
            }
            ast::Stmt::With(stmt) if stmt.is_async => StmtKind::Other("`async with`"),
            ast::Stmt::With(stmt) => {
                let items = stmt.items.iter();
                let items =
                    items.map(|item| (self.expr(&item.context_expr), item.optional_vars.as_deref().map(|target| self.expr(target))));
                let items = items.collect();
                StmtKind::With { items, body: self.block(&stmt.body) }
            }
            ast::Stmt::Try(stmt) => {
                let handlers = stmt.handlers.iter().map(|ExceptHandler::ExceptHandler(handler)| {
                    let types = handler.type_.as_deref().map(|kind| match kind {
                        ast::Expr::Tuple(tuple) => tuple.elts.iter().map(|elt| dotted(elt).unwrap_or_default()).collect(),
                        other => vec![dotted(other).unwrap_or_default()],
                    });
                    (types.unwrap_or_default(), self.block(&handler.body))
                });
                let handlers = handlers.collect();
                StmtKind::Try {
                    body: self.block(&stmt.body),
                    handlers,
                    orelse: self.block(&stmt.orelse),
                    finalbody: self.block(&stmt.finalbody),
                }
            }
            ast::Stmt::Import(stmt) => {
                for alias in &stmt.names {
                    let kind = StmtKind::Import { module: alias.name.to_string(), alias: alias.asname.as_ref().map(ToString::to_string) };
                    out.push(Stmt { kind, range: range(alias.range()) });
                }
                return;
            }
            ast::Stmt::ImportFrom(stmt) => {
                for alias in &stmt.names {
                    let kind = StmtKind::ImportFrom {
                        module: stmt.module.as_ref().map(ToString::to_string).unwrap_or_default(),
                        level: stmt.level,
                        name: alias.name.to_string(),
                        alias: alias.asname.as_ref().map(ToString::to_string),
                    };
                    out.push(Stmt { kind, range: range(alias.range()) });
                }
                return;
            }
            ast::Stmt::Raise(_) => StmtKind::Raise,
            ast::Stmt::Assert(stmt) => StmtKind::Assert(self.expr(&stmt.test)),
            ast::Stmt::Global(stmt) => StmtKind::Global(stmt.names.iter().map(ToString::to_string).collect()),
            ast::Stmt::Nonlocal(stmt) => StmtKind::Nonlocal(stmt.names.iter().map(ToString::to_string).collect()),
            ast::Stmt::Pass(_) => StmtKind::Pass,
            ast::Stmt::Break(_) => StmtKind::Break,
            ast::Stmt::Continue(_) => StmtKind::Continue,
            ast::Stmt::Delete(_) => StmtKind::Other("`del`"),
            ast::Stmt::Match(_) => StmtKind::Other("`match`"),
            ast::Stmt::TypeAlias(_) => StmtKind::Pass,
            ast::Stmt::IpyEscapeCommand(_) => StmtKind::Other("a shell escape"),
        };
        out.push(Stmt { kind, range: at });
    }

    fn function(&mut self, def: &ast::StmtFunctionDef) -> Function {
        let decorators = def.decorator_list.iter().map(|decorator| self.expr(&decorator.expression)).collect();
        let params = self.parameters(&def.parameters);
        let names: Vec<String> = params.iter().map(|param| param.name.clone()).collect();
        let outer = self.deferred.take();
        let body = self.block(&def.body);
        let deferred = std::mem::replace(&mut self.deferred, outer);
        Function {
            name: def.name.to_string(),
            range: range(def.range()),
            name_range: range(def.name.range()),
            locals: Bindings::of(&def.body, &names).bound,
            params,
            decorators,
            body,
            deferred: if def.is_async { Some(DEFERRED) } else { deferred },
        }
    }

    fn lambda(&mut self, lambda: &ast::ExprLambda) -> Function {
        let at = range(lambda.range());
        let params = lambda.parameters.as_deref().map(|parameters| self.parameters(parameters)).unwrap_or_default();
        let value = self.expr(&lambda.body);
        let body = vec![Stmt { range: value.range, kind: StmtKind::Return(Some(value)) }];
        Function {
            name: "<lambda>".to_owned(),
            range: at,
            name_range: at,
            locals: params.iter().map(|param| param.name.clone()).collect(),
            params,
            decorators: Vec::new(),
            body,
            deferred: None,
        }
    }

    fn parameters(&mut self, parameters: &ast::Parameters) -> Vec<Parameter> {
        let mut out = Vec::new();
        let plain = |lowering: &mut Self, items: &[ast::ParameterWithDefault], kind: ParamKind, out: &mut Vec<Parameter>| {
            for item in items {
                let default = item.default.as_deref().map(|default| lowering.expr(default));
                out.push(Parameter { name: item.parameter.name.to_string(), kind, default });
            }
        };
        plain(self, &parameters.posonlyargs, ParamKind::PositionOnly, &mut out);
        plain(self, &parameters.args, ParamKind::Normal, &mut out);
        out.extend(parameters.vararg.as_deref().map(|item| Parameter {
            name: item.name.to_string(),
            kind: ParamKind::Star,
            default: None,
        }));
        plain(self, &parameters.kwonlyargs, ParamKind::KeywordOnly, &mut out);
        let rest = parameters.kwarg.as_deref();
        out.extend(rest.map(|item| Parameter { name: item.name.to_string(), kind: ParamKind::DoubleStar, default: None }));
        out
    }

    fn boxed(&mut self, expr: &ast::Expr) -> Box<Expr> {
        Box::new(self.expr(expr))
    }

    fn all(&mut self, exprs: &[ast::Expr]) -> Vec<Expr> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn expr(&mut self, expr: &ast::Expr) -> Expr {
        let at = range(expr.range());
        if self.depth >= MAX_NESTING {
            // A `yield` that is not seen would turn a generator into a plain function.
            self.deferred.get_or_insert("nested too deeply");
            return Expr { kind: ExprKind::Other(TOO_DEEP), range: at };
        }
        self.depth += 1;
        let kind = self.value(expr);
        self.depth -= 1;
        Expr { kind, range: at }
    }

    fn value(&mut self, expr: &ast::Expr) -> ExprKind {
        match expr {
            ast::Expr::Name(name) => ExprKind::Name(name.id.to_string()),
            ast::Expr::NoneLiteral(_) => ExprKind::None,
            ast::Expr::BooleanLiteral(literal) => ExprKind::Bool(literal.value),
            ast::Expr::NumberLiteral(literal) => match &literal.value {
                ast::Number::Int(int) => int.as_i64().map_or(ExprKind::Other("an integer of more than 64 bits"), ExprKind::Int),
                ast::Number::Float(_) => ExprKind::Other("a floating-point number"),
                ast::Number::Complex { .. } => ExprKind::Other("a complex number"),
            },
            ast::Expr::StringLiteral(literal) => ExprKind::Str(literal.value.to_str().to_owned()),
            ast::Expr::Attribute(attribute) => ExprKind::Attribute(self.boxed(&attribute.value), attribute.attr.to_string()),
            ast::Expr::Subscript(subscript) => match &*subscript.slice {
                ast::Expr::Slice(_) => ExprKind::Other("a slice"),
                key => ExprKind::Item(self.boxed(&subscript.value), self.boxed(key)),
            },
            ast::Expr::Call(call) => {
                let func = self.boxed(&call.func);
                let mut args = Vec::new();
                for arg in &call.arguments.args {
                    match arg {
                        ast::Expr::Starred(starred) => args.push((Argument::Star, self.expr(&starred.value))),
                        other => args.push((Argument::Position, self.expr(other))),
                    }
                }
                for keyword in &call.arguments.keywords {
                    let passing = keyword.arg.as_ref().map_or(Argument::DoubleStar, |name| Argument::Keyword(name.to_string()));
                    args.push((passing, self.expr(&keyword.value)));
                }
                ExprKind::Call { func, args }
            }
            ast::Expr::BoolOp(op) => ExprKind::BoolOp(op.op == ast::BoolOp::And, self.all(&op.values)),
            ast::Expr::UnaryOp(unary) => match unary.op {
                ast::UnaryOp::Not => ExprKind::Not(self.boxed(&unary.operand)),
                ast::UnaryOp::USub => ExprKind::Negative(self.boxed(&unary.operand)),
                ast::UnaryOp::UAdd | ast::UnaryOp::Invert => ExprKind::Other("unary `+` or `~`"),
            },
            ast::Expr::BinOp(op) => ExprKind::Binary { left: self.boxed(&op.left), op: binary(op.op), right: self.boxed(&op.right) },
            ast::Expr::Compare(compare) => {
                let left = self.boxed(&compare.left);
                let rest = compare.ops.iter().zip(&compare.comparators);
                ExprKind::Compare { left, rest: rest.map(|(op, right)| (comparison(*op), self.expr(right))).collect() }
            }
            ast::Expr::If(conditional) => ExprKind::Conditional {
                test: self.boxed(&conditional.test),
                body: self.boxed(&conditional.body),
                orelse: self.boxed(&conditional.orelse),
            },
            ast::Expr::Tuple(tuple) => ExprKind::Tuple(self.all(&tuple.elts)),
            ast::Expr::List(list) => ExprKind::List(self.all(&list.elts)),
            ast::Expr::Set(set) => ExprKind::Set(self.all(&set.elts)),
            ast::Expr::Dict(dict) => {
                ExprKind::Dict(dict.iter().map(|item| (item.key.as_ref().map(|key| self.expr(key)), self.expr(&item.value))).collect())
            }
            ast::Expr::Lambda(lambda) => ExprKind::Lambda(Arc::new(self.lambda(lambda))),
            ast::Expr::ListComp(comp) => self.comprehension(None, &comp.elt, &comp.generators),
            ast::Expr::SetComp(comp) => self.comprehension(None, &comp.elt, &comp.generators),
            ast::Expr::Generator(comp) => self.comprehension(None, &comp.elt, &comp.generators),
            ast::Expr::DictComp(comp) => self.comprehension(comp.key.as_deref(), &comp.value, &comp.generators),
            ast::Expr::Named(named) => ExprKind::Walrus { target: self.boxed(&named.target), value: self.boxed(&named.value) },
            ast::Expr::Starred(starred) => ExprKind::Starred(self.boxed(&starred.value)),
            ast::Expr::Yield(_) | ast::Expr::YieldFrom(_) | ast::Expr::Await(_) => {
                self.deferred = Some(DEFERRED);
                ExprKind::Other("`yield` or `await`")
            }
            ast::Expr::FString(_) | ast::Expr::TString(_) => ExprKind::Other("a formatted string"),
            ast::Expr::BytesLiteral(_) => ExprKind::Other("a bytes literal"),
            ast::Expr::EllipsisLiteral(_) => ExprKind::Other("an ellipsis"),
            ast::Expr::Slice(_) => ExprKind::Other("a slice"),
            ast::Expr::IpyEscapeCommand(_) => ExprKind::Other("a shell escape"),
        }
    }

    fn comprehension(&mut self, key: Option<&ast::Expr>, element: &ast::Expr, generators: &[ast::Comprehension]) -> ExprKind {
        if generators.iter().any(|generator| generator.is_async) {
            return ExprKind::Other("an asynchronous comprehension");
        }
        let generators = generators.iter().map(|generator| Generator {
            target: self.expr(&generator.target),
            iter: self.expr(&generator.iter),
            tests: self.all(&generator.ifs),
        });
        let generators = generators.collect();
        ExprKind::Comprehension { key: key.map(|key| self.boxed(key)), element: self.boxed(element), generators }
    }
}

const fn binary(op: ast::Operator) -> BinaryOp {
    match op {
        ast::Operator::Add => BinaryOp::Add,
        ast::Operator::Sub => BinaryOp::Sub,
        ast::Operator::Mult => BinaryOp::Mul,
        ast::Operator::Div => BinaryOp::Div,
        ast::Operator::FloorDiv => BinaryOp::FloorDiv,
        ast::Operator::Mod => BinaryOp::Mod,
        ast::Operator::Pow => BinaryOp::Pow,
        ast::Operator::LShift => BinaryOp::LeftShift,
        ast::Operator::RShift => BinaryOp::RightShift,
        ast::Operator::BitAnd => BinaryOp::And,
        ast::Operator::BitOr => BinaryOp::Or,
        ast::Operator::BitXor => BinaryOp::Xor,
        ast::Operator::MatMult => BinaryOp::MatMul,
    }
}

const fn comparison(op: ast::CmpOp) -> Comparison {
    match op {
        ast::CmpOp::Eq => Comparison::Eq,
        ast::CmpOp::NotEq => Comparison::NotEq,
        ast::CmpOp::Lt => Comparison::Lt,
        ast::CmpOp::LtE => Comparison::LtE,
        ast::CmpOp::Gt => Comparison::Gt,
        ast::CmpOp::GtE => Comparison::GtE,
        ast::CmpOp::Is => Comparison::Is,
        ast::CmpOp::IsNot => Comparison::IsNot,
        ast::CmpOp::In => Comparison::In,
        ast::CmpOp::NotIn => Comparison::NotIn,
    }
}
