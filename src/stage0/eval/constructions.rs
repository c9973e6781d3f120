//! Where a module makes instances of a class, and which parameter of a function takes what another one answers.
//!
//! In: a module and a class of the sources; a function and the name of another. Out: every call of the class in the module's text with the instance it
//! makes at module level, or with what hides it; the parameter's name. Refused: nothing.

use std::rc::Rc;

use super::value::{ClassValue, Stop, Value};
use super::{Evaluator, Frame};
use crate::names::ModuleId;
use crate::syntax::tree::{Expr, ExprKind, Function, Stmt, StmtKind};
use crate::text::Span;

impl Evaluator<'_> {
    /// Calls of a class in a module, whatever they stand in, in order of place.
    pub fn constructions(&mut self, module: ModuleId, class: &Rc<ClassValue>) -> Vec<(Span, Result<Value, Stop>)> {
        let tree = self.tree(module);
        let mut calls: Vec<&Expr> = Vec::new();
        statements(&tree.body, &mut |expr| {
            if let ExprKind::Call { func, .. } = &expr.kind
                && last_name(func) == Some(class.class.name.as_str())
            {
                calls.push(expr);
            }
        });
        let mut out = Vec::new();
        for call in calls {
            let frame = Frame { module, scope: None, locals: &[] };
            (self.size, self.limit, self.steps, self.depth) = (0, 0, 0, 0);
            let value = self.expr(&frame, call);
            // A class of the same name that is another one.
            if matches!(&value, Ok(Value::Instance(made)) if !Rc::ptr_eq(&made.class, class)) {
                continue;
            }
            out.push((self.span(module, call.range), value));
        }
        out.sort_by_key(|(at, _)| *at);
        out
    }
}

/// The parameter of a function to which its body assigns the answer of the function called `other`.
#[must_use]
pub fn parameter_for(function: &Function, other: &str) -> Option<String> {
    let mut open: Vec<&[Stmt]> = vec![&function.body];
    while let Some(body) = open.pop() {
        for stmt in body {
            if let StmtKind::Assign { targets, value } = &stmt.kind
                && let ([Expr { kind: ExprKind::Name(target), .. }], ExprKind::Call { func, .. }) = (targets.as_slice(), &value.kind)
                && last_name(func) == Some(other)
                && function.params.iter().any(|param| param.name == *target)
            {
                return Some(target.clone());
            }
            open.extend(super::globals::blocks(stmt));
        }
    }
    None
}

fn last_name(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Name(name) | ExprKind::Attribute(_, name) => Some(name),
        _ => None,
    }
}

/// Visits all expressions of some statements, also those within functions and classes.
fn statements<'t>(body: &'t [Stmt], visit: &mut dyn FnMut(&'t Expr)) {
    for stmt in body {
        match &stmt.kind {
            StmtKind::Assign { targets, value } => {
                targets.iter().for_each(|target| expression(target, visit));
                expression(value, visit);
            }
            StmtKind::Augmented { target, value, .. } => {
                expression(target, visit);
                expression(value, visit);
            }
            StmtKind::Annotated { value, .. } | StmtKind::Return(value) => value.iter().for_each(|value| expression(value, visit)),
            StmtKind::Expr(value) | StmtKind::Assert(value) => expression(value, visit),
            StmtKind::If(branches) => branches.iter().filter_map(|(test, _)| test.as_ref()).for_each(|test| expression(test, visit)),
            StmtKind::For { iter, .. } => expression(iter, visit),
            StmtKind::While { test, .. } => expression(test, visit),
            StmtKind::With { items, .. } => items.iter().for_each(|(item, _)| expression(item, visit)),
            StmtKind::Function(function) => {
                function.decorators.iter().for_each(|decorator| expression(decorator, visit));
                function.params.iter().filter_map(|param| param.default.as_ref()).for_each(|default| expression(default, visit));
                statements(&function.body, visit);
            }
            StmtKind::Class(class) => {
                class.decorators.iter().for_each(|decorator| expression(decorator, visit));
                statements(&class.body, visit);
            }
            _ => {}
        }
        super::globals::blocks(stmt).into_iter().for_each(|block| statements(block, visit));
    }
}

fn expression<'t>(expr: &'t Expr, visit: &mut dyn FnMut(&'t Expr)) {
    visit(expr);
    match &expr.kind {
        ExprKind::Attribute(value, _) | ExprKind::Not(value) | ExprKind::Negative(value) | ExprKind::Starred(value) => {
            expression(value, visit);
        }
        ExprKind::Item(a, b) | ExprKind::Binary { left: a, right: b, .. } | ExprKind::Walrus { target: a, value: b } => {
            expression(a, visit);
            expression(b, visit);
        }
        ExprKind::Call { func, args } => {
            expression(func, visit);
            args.iter().for_each(|(_, arg)| expression(arg, visit));
        }
        ExprKind::BoolOp(_, all) | ExprKind::Tuple(all) | ExprKind::List(all) | ExprKind::Set(all) => {
            all.iter().for_each(|item| expression(item, visit));
        }
        ExprKind::Compare { left, rest } => {
            expression(left, visit);
            rest.iter().for_each(|(_, right)| expression(right, visit));
        }
        ExprKind::Conditional { test, body, orelse } => [test, body, orelse].into_iter().for_each(|part| expression(part, visit)),
        ExprKind::Dict(items) => {
            for (key, value) in items {
                key.iter().for_each(|key| expression(key, visit));
                expression(value, visit);
            }
        }
        ExprKind::Lambda(function) => statements(&function.body, visit),
        ExprKind::Comprehension { key, element, generators } => {
            key.iter().for_each(|key| expression(key, visit));
            expression(element, visit);
            for generator in generators {
                expression(&generator.iter, visit);
                generator.tests.iter().for_each(|test| expression(test, visit));
            }
        }
        _ => {}
    }
}
