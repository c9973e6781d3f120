//! Statements of a running function.

use super::value::{Stop, Value};
use super::{Evaluator, Flow, Frame, MAX_ROUNDS};
use crate::syntax::tree::{Expr, ExprKind, Stmt, StmtKind};

impl Evaluator<'_> {
    /// Runs statements in order.
    pub(super) fn block(&mut self, frame: &Frame<'_>, body: &[Stmt]) -> Result<Flow, Stop> {
        for stmt in body {
            match self.statement(frame, stmt)? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, frame: &Frame<'_>, stmt: &Stmt) -> Result<Flow, Stop> {
        let at = self.span(frame.module, stmt.range);
        self.step(at)?;
        match &stmt.kind {
            StmtKind::Assign { targets, value } => {
                let value = self.expr(frame, value)?;
                for target in targets {
                    self.assign(frame, target, value.clone())?;
                }
            }
            StmtKind::Augmented { target, op, value } => {
                if !matches!(target.kind, ExprKind::Name(_)) {
                    return Err(self.stop("a store into an object", at));
                }
                let left = self.expr(frame, target)?;
                let right = self.expr(frame, value)?;
                // `list += ...` changes the list that other names hold, too.
                if let Value::Sequence(_) | Value::Dict(_) = left {
                    return Err(self.stop("a change of an object in place", at));
                }
                let value = self.binary(&left, *op, &right, at)?;
                self.assign(frame, target, value)?;
            }
            StmtKind::Annotated { target, value, .. } => {
                if let Some(value) = value {
                    let value = self.expr(frame, value)?;
                    self.assign(frame, target, value)?;
                }
            }
            StmtKind::Expr(expr) => {
                self.expr(frame, expr)?;
            }
            StmtKind::Return(value) => {
                return Ok(Flow::Return(match value {
                    Some(value) => self.expr(frame, value)?,
                    None => Value::None,
                }));
            }
            StmtKind::If(branches) => {
                for (test, body) in branches {
                    let taken = match test {
                        None => true,
                        Some(test) => {
                            let value = self.expr(frame, test)?;
                            let test_at = self.span(frame.module, test.range);
                            match value {
                                // A check that is not known and can only raise is taken to pass.
                                Value::Unknown(_) | Value::External(_) if self.lenient && only_raises(body) => {
                                    let words = format!("`{}` does not hold, so that nothing is raised", self.text(test_at));
                                    self.assumed.insert(test_at, words);
                                    false
                                }
                                value => self.decide(frame, &value, test_at)?,
                            }
                        }
                    };
                    if taken {
                        return self.block(frame, body);
                    }
                }
            }
            StmtKind::For { target, iter, body, orelse } => {
                let iter_at = self.span(frame.module, iter.range);
                let iterable = self.expr(frame, iter)?;
                for item in self.items(&iterable, iter_at)?.iter() {
                    self.assign(frame, target, item.clone())?;
                    match self.block(frame, body)? {
                        Flow::Next | Flow::Continue => {}
                        Flow::Break => return Ok(Flow::Next),
                        Flow::Return(value) => return Ok(Flow::Return(value)),
                    }
                }
                return self.block(frame, orelse);
            }
            StmtKind::While { test, body, orelse } => {
                let test_at = self.span(frame.module, test.range);
                for _ in 0..MAX_ROUNDS {
                    let value = self.expr(frame, test)?;
                    if !self.decide(frame, &value, test_at)? {
                        return self.block(frame, orelse);
                    }
                    match self.block(frame, body)? {
                        Flow::Next | Flow::Continue => {}
                        Flow::Break => return Ok(Flow::Next),
                        Flow::Return(value) => return Ok(Flow::Return(value)),
                    }
                }
                return Err(self.stop(format!("the loop `while {}`, which has no bound that was found", self.text(test_at)), test_at));
            }
            StmtKind::Try { body, handlers, orelse, finalbody } => {
                let flow = match self.block(frame, body) {
                    Ok(Flow::Next) => self.block(frame, orelse)?,
                    Ok(other) => other,
                    Err(stop) => {
                        let Some(raised) = stop.raises else { return Err(stop) };
                        let takes = |types: &[String]| {
                            types.is_empty()
                                || types.iter().any(|kind| {
                                    kind == raised || kind == "Exception" || (kind == "LookupError" && raised != "ZeroDivisionError")
                                })
                        };
                        let Some((_, body)) = handlers.iter().find(|(types, _)| takes(types)) else { return Err(stop) };
                        self.block(frame, body)?
                    }
                };
                return match self.block(frame, finalbody)? {
                    Flow::Next => Ok(flow),
                    other => Ok(other),
                };
            }
            StmtKind::With { items, body } => {
                for (item, target) in items {
                    let item_at = self.span(frame.module, item.range);
                    let value = self.expr(frame, item)?;
                    if !self.lenient {
                        return Err(self.stop(format!("the context `{}`", self.text(item_at)), item_at));
                    }
                    if let Some(target) = target {
                        self.assign(frame, target, value)?;
                    }
                }
                return self.block(frame, body);
            }
            StmtKind::Function(function) => {
                let value = self.define(frame.module, function, Some(frame))?;
                self.set(frame, &function.name, value);
            }
            StmtKind::Raise => return Err(self.stop(format!("`{}`: the sources refuse this", self.text(at)), at)),
            StmtKind::Assert(test) => {
                let value = self.expr(frame, test)?;
                let test_at = self.span(frame.module, test.range);
                match value {
                    Value::Unknown(_) | Value::External(_) if self.lenient => {
                        let words = format!("`{}` holds, as it is asserted", self.text(test_at));
                        self.assumed.insert(test_at, words);
                    }
                    value => {
                        if !self.decide(frame, &value, test_at)? {
                            return Err(self.stop(format!("`{}`: the sources refuse this", self.text(at)), at));
                        }
                    }
                }
            }
            StmtKind::Import { module, alias } => {
                let wanted = if alias.is_some() { module.as_str() } else { module.split('.').next().unwrap_or("") };
                let value = self.module_called(frame.module, wanted).map_or_else(|| self.external(wanted), Value::Module);
                self.set(frame, alias.as_deref().unwrap_or(wanted), value);
            }
            StmtKind::ImportFrom { module, level, name, alias } => {
                let base = self.facts.program.absolute(frame.module, module, *level);
                let Some(base) = base else { return Err(self.stop("an import that leads out of its package", at)) };
                let value = match self.module_called(frame.module, &base) {
                    Some(home) => self.attribute(Value::Module(home), name, at)?,
                    None => match self.module_called(frame.module, &format!("{base}.{name}")) {
                        Some(found) => Value::Module(found),
                        None => self.external(&format!("{base}.{name}")),
                    },
                };
                self.set(frame, alias.as_ref().unwrap_or(name), value);
            }
            StmtKind::Global(names) => {
                return Err(self.stop(format!("`global {}`: the function is not pure", names.join(", ")), at));
            }
            StmtKind::Nonlocal(names) => {
                return Err(self.stop(format!("`nonlocal {}`: the function is not pure", names.join(", ")), at));
            }
            StmtKind::Class(_) => return Err(self.stop("a class inside a function", at)),
            StmtKind::Pass => {}
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
            StmtKind::Other(what) => return Err(self.stop(*what, at)),
        }
        Ok(Flow::Next)
    }

    fn set(&mut self, frame: &Frame<'_>, name: &str, value: Value) {
        if let Some(scope) = &frame.scope {
            scope.names.borrow_mut().insert(name.to_owned(), value);
        }
    }

    pub(super) fn assign(&mut self, frame: &Frame<'_>, target: &Expr, value: Value) -> Result<(), Stop> {
        let at = self.span(frame.module, target.range);
        match &target.kind {
            ExprKind::Name(name) => self.set(frame, name, value),
            ExprKind::Tuple(targets) | ExprKind::List(targets) => {
                if let Value::Unknown(_) = value {
                    for target in targets {
                        self.assign(frame, target, value.clone())?;
                    }
                    return Ok(());
                }
                let items = self.items(&value, at)?;
                if items.len() != targets.len() || targets.iter().any(|target| matches!(target.kind, ExprKind::Starred(_))) {
                    return Err(self.stop("an assignment of another number of values", at));
                }
                for (target, item) in targets.iter().zip(items.iter()) {
                    self.assign(frame, target, item.clone())?;
                }
            }
            _ => return Err(self.stop(format!("the store `{}` into an object", self.text(at)), at)),
        }
        Ok(())
    }
}

/// Whether a block does nothing but raise.
fn only_raises(body: &[Stmt]) -> bool {
    matches!(body, [Stmt { kind: StmtKind::Raise, .. }])
}
