//! Statements to operations: control flow, definitions, imports and assignments.

use ruff_python_ast::{self as ast, ExceptHandler, Expr, Stmt};
use ruff_text_size::Ranged;

use super::facts::*;
use super::lower::{Env, Fields, Lowering, MAX_DEPTH, Opening, dotted, index, range};
use super::scan::Bindings;

impl Lowering<'_> {
    /// Lowers statements in order; false if no path falls out at the end. What follows a jump is dead and left out.
    pub(super) fn block(&mut self, body: &[Stmt]) -> bool {
        if self.depth >= MAX_DEPTH {
            if let Some(stmt) = body.first() {
                self.too_deep.get_or_insert(range(stmt.range()));
            }
            return true;
        }
        self.depth += 1;
        let alive = body.iter().all(|stmt| self.statement(stmt));
        self.depth -= 1;
        alive
    }

    fn statement(&mut self, stmt: &Stmt) -> bool {
        let at = range(stmt.range());
        match stmt {
            Stmt::FunctionDef(def) => self.function(def),
            Stmt::ClassDef(def) => self.class(def),
            Stmt::Return(stmt) => {
                let src = match &stmt.value {
                    Some(value) => self.expr(value),
                    None => self.none(at),
                };
                self.publish(at);
                self.emit(OpKind::Return(src), at);
                return false;
            }
            Stmt::Raise(stmt) => {
                if let Some(exception) = &stmt.exc {
                    let src = self.expr(exception);
                    self.publish(at);
                    self.emit(OpKind::Raise(src), range(exception.range()));
                }
                if let Some(cause) = &stmt.cause {
                    self.expr(cause);
                }
                return false;
            }
            Stmt::Break(_) | Stmt::Continue(_) => return false,
            Stmt::Assign(stmt) => {
                let src = self.expr(&stmt.value);
                for target in &stmt.targets {
                    self.assign(target, src);
                }
            }
            Stmt::AugAssign(stmt) => {
                let left = self.expr(&stmt.target);
                let right = self.expr(&stmt.value);
                let dst = self.reg();
                self.emit(OpKind::Binary { dst, left, op: super::expressions::operator(stmt.op), right }, at);
                self.assign(&stmt.target, dst);
            }
            Stmt::AnnAssign(stmt) => {
                let whole = if let Expr::Subscript(outer) = &*stmt.annotation { &outer.value } else { &stmt.annotation };
                let of_class = dotted(whole).is_some_and(|name| name.rsplit('.').next() == Some("ClassVar"));
                if let Expr::Name(target) = &*stmt.target
                    && !of_class
                {
                    self.annotate(target.id.as_str());
                }
                if let Some(value) = &stmt.value {
                    let src = self.expr(value);
                    self.assign(&stmt.target, src);
                }
            }
            Stmt::Expr(stmt) => {
                self.expr(&stmt.value);
            }
            Stmt::If(stmt) => return self.branches(stmt),
            Stmt::For(stmt) => self.for_loop(stmt),
            Stmt::While(stmt) => self.while_loop(stmt),
            Stmt::With(stmt) => {
                for item in &stmt.items {
                    let src = self.expr(&item.context_expr);
                    let dst = self.reg();
                    self.publish(at);
                    self.emit(OpKind::Enter { dst, src }, range(item.context_expr.range()));
                    self.forget();
                    if let Some(target) = &item.optional_vars {
                        self.assign(target, dst);
                    }
                }
                let named = stmt.items.iter().filter_map(|item| match &item.context_expr {
                    Expr::Call(call) => dotted(&call.func),
                    _ => None,
                });
                let grad = named.map(|name| Grad::set_by(&name)).fold(Grad::AsBefore, |outer, inner| inner.or(outer));
                let start = index(self.frame().ops.len());
                let alive = self.block(&stmt.body);
                if grad != Grad::AsBefore {
                    let (end, scope) = (index(self.frame().ops.len()), self.frame().id);
                    self.facts.scopes[scope as usize].grad_regions.push(((start, end), grad));
                }
                return alive;
            }
            Stmt::Try(stmt) => return self.try_statement(stmt),
            Stmt::Match(stmt) => return self.match_statement(stmt),
            Stmt::Import(stmt) => {
                for alias in &stmt.names {
                    self.publish(at);
                    let dst = self.reg();
                    let module = self.intern(&alias.name);
                    self.emit(OpKind::Import { dst, module, top: alias.asname.is_none() }, range(alias.range()));
                    let name = alias.asname.as_ref().map_or_else(|| alias.name.split('.').next().unwrap_or(""), |name| name.as_str());
                    self.assign_name(name, dst, range(alias.range()));
                }
            }
            Stmt::ImportFrom(stmt) => {
                let module = self.intern(stmt.module.as_ref().map_or("", |module| module.as_str()));
                for alias in &stmt.names {
                    self.publish(at);
                    let at = range(alias.range());
                    if alias.name.as_str() == "*" {
                        self.emit(OpKind::ImportStar { module, level: stmt.level }, at);
                        continue;
                    }
                    let dst = self.reg();
                    let name = self.intern(&alias.name);
                    self.emit(OpKind::ImportFrom { dst, module, level: stmt.level, name }, at);
                    self.assign_name(alias.asname.as_ref().unwrap_or(&alias.name), dst, at);
                }
            }
            Stmt::Assert(stmt) => {
                self.expr(&stmt.test);
                self.narrow(&stmt.test, true);
                if let Some(message) = &stmt.msg {
                    self.expr(message);
                }
            }
            Stmt::Delete(stmt) => {
                for target in &stmt.targets {
                    if let Expr::Name(name) = target {
                        if let Some(slot) = self.frame().slots.get(name.id.as_str()).copied() {
                            self.set_current(slot, NO_REG);
                        }
                    } else {
                        self.children(target);
                    }
                    self.emit(OpKind::Delete, range(target.range()));
                }
            }
            Stmt::TypeAlias(stmt) => {
                let src = self.expr(&stmt.value);
                self.assign(&stmt.name, src);
            }
            Stmt::Global(_) | Stmt::Nonlocal(_) | Stmt::Pass(_) | Stmt::IpyEscapeCommand(_) => {}
        }
        true
    }

    pub(super) fn none(&mut self, at: Range) -> Reg {
        let dst = self.reg();
        self.emit(OpKind::Literal(dst, Literal::None), at);
        dst
    }

    fn function(&mut self, def: &ast::StmtFunctionDef) {
        let decorators: Vec<(Reg, Range)> =
            def.decorator_list.iter().map(|decorator| (self.expr(&decorator.expression), range(decorator.expression.range()))).collect();
        let defaults = self.defaults(&def.parameters);
        let parameters: Vec<String> = def.parameters.iter().map(|parameter| parameter.name().to_string()).collect();
        let opening = Opening {
            kind: ScopeKind::Function,
            name: &def.name,
            whole: range(def.range()),
            name_range: range(def.name.range()),
            bindings: Bindings::of(&def.body, &parameters),
        };
        let scope = self.open(opening);
        let params = self.params(&def.parameters);
        self.facts.scopes[scope as usize].params = params;
        self.facts.scopes[scope as usize].is_async = def.is_async;
        let decorated = self.decorator_names(&def.decorator_list);
        let modes = decorated.iter().map(|name| Grad::set_by(self.facts.name(*name)));
        self.facts.scopes[scope as usize].grad = modes.fold(Grad::AsBefore, |inner, outer| inner.or(outer));
        self.facts.scopes[scope as usize].decorators = decorated;
        if self.block(&def.body) {
            let end = (def.range().end().to_u32(), def.range().end().to_u32());
            let src = self.none(end);
            self.publish(end);
            self.emit(OpKind::Return(src), end);
        }
        self.close();
        let mut value = self.reg();
        self.emit(OpKind::Function { dst: value, scope, defaults }, range(def.name.range()));
        value = self.decorate(value, decorators);
        self.assign_name(&def.name, value, range(def.name.range()));
    }

    fn decorator_names(&mut self, decorators: &[ast::Decorator]) -> Vec<NameId> {
        let names = decorators.iter().filter_map(|decorator| match &decorator.expression {
            Expr::Call(call) => dotted(&call.func),
            other => dotted(other),
        });
        let names: Vec<String> = names.collect();
        names.iter().map(|name| self.intern(name)).collect()
    }

    fn decorate(&mut self, mut value: Reg, decorators: Vec<(Reg, Range)>) -> Reg {
        for (func, at) in decorators.into_iter().rev() {
            self.publish(at);
            let dst = self.reg();
            self.emit(OpKind::Call { dst, func, args: Box::new([(Passing::Position, value)]), decorator: true }, at);
            self.forget();
            value = dst;
        }
        value
    }

    /// Evaluates default values where the definition stands; pairs of parameter index and register.
    pub(super) fn defaults(&mut self, parameters: &ast::Parameters) -> Box<[(u32, Reg)]> {
        let mut out = Vec::new();
        let positional = parameters.posonlyargs.len() + parameters.args.len();
        let star = usize::from(parameters.vararg.is_some());
        let listed = parameters.posonlyargs.iter().chain(&parameters.args).enumerate();
        let keyword = parameters.kwonlyargs.iter().enumerate().map(|(at, item)| (positional + star + at, item));
        for (at, item) in listed.chain(keyword) {
            if let Some(default) = &item.default {
                out.push((index(at), self.expr(default)));
            }
        }
        out.into_boxed_slice()
    }

    fn class(&mut self, def: &ast::StmtClassDef) {
        let decorators: Vec<(Reg, Range)> =
            def.decorator_list.iter().map(|decorator| (self.expr(&decorator.expression), range(decorator.expression.range()))).collect();
        let mut bases = Vec::new();
        let mut keywords = Vec::new();
        if let Some(arguments) = &def.arguments {
            for base in &arguments.args {
                let reg = match base {
                    Expr::Starred(starred) => self.expr(&starred.value),
                    // A parametrised base (`Generic[T]`) is its origin.
                    Expr::Subscript(subscript) => self.expr(&subscript.value),
                    other => self.expr(other),
                };
                bases.push(reg);
            }
            for keyword in &arguments.keywords {
                let reg = self.expr(&keyword.value);
                if let Some(name) = &keyword.arg {
                    keywords.push((self.intern(name), reg));
                }
            }
        }
        let opening = Opening {
            kind: ScopeKind::Class,
            name: &def.name,
            whole: range(def.range()),
            name_range: range(def.name.range()),
            bindings: Bindings::of(&def.body, &[]),
        };
        let scope = self.open(opening);
        self.facts.scopes[scope as usize].decorators = self.decorator_names(&def.decorator_list);
        // An annotated name without a value still declares a field.
        self.block(&def.body);
        self.close();
        self.publish(range(def.name.range()));
        let mut value = self.reg();
        let kind = OpKind::Class { dst: value, scope, bases: bases.into(), keywords: keywords.into() };
        self.emit(kind, range(def.name.range()));
        value = self.decorate(value, decorators);
        self.assign_name(&def.name, value, range(def.name.range()));
    }

    /// Runs `body` from the current state under `cond`; the state it leaves, if it falls through.
    pub(super) fn arm(&mut self, cond: CondId, body: impl FnOnce(&mut Self) -> bool) -> Option<(Env, CondId)> {
        self.forget();
        let state = self.branch(cond, body);
        self.forget();
        state.map(|(env, cond, _)| (env, cond))
    }

    /// As [`Self::arm`], for a body that runs at most once: what is known of fields stays known, and comes out with the state.
    fn branch(&mut self, cond: CondId, body: impl FnOnce(&mut Self) -> bool) -> Option<(Env, CondId, Fields)> {
        let outer = self.frame().cond;
        let before = self.frame().fields.clone();
        let stale = self.frame().stale.clone();
        self.frame().cond = cond;
        let alive = body(self);
        // What the branch made visible is visible there; on other paths it still has to be.
        self.still_stale(stale);
        let end = self.frame().cond;
        self.frame().cond = outer;
        let fields = std::mem::replace(&mut self.frame().fields, before);
        self.frame().dicts.clear();
        let env = self.frame().env.clone();
        alive.then_some((env, end, fields))
    }

    /// What is known of fields after a split: what every state knows.
    fn join_fields(&mut self, states: Vec<(CondId, Fields)>, at: Range) {
        let mut states = states.into_iter();
        let Some((first_cond, first)) = states.next() else { return };
        let rest: Vec<(CondId, Fields)> = states.collect();
        let mut keys: Vec<_> = first.keys().copied().filter(|key| rest.iter().all(|(_, fields)| fields.contains_key(key))).collect();
        keys.sort_unstable();
        let mut out = Fields::default();
        for key in keys {
            let mut inputs = vec![(first[&key], first_cond)];
            for (cond, fields) in &rest {
                if !inputs.iter().any(|(reg, _)| *reg == fields[&key]) {
                    inputs.push((fields[&key], *cond));
                }
            }
            if inputs.len() == 1 {
                out.insert(key, inputs[0].0);
            } else {
                let dst = self.reg();
                self.emit(OpKind::Phi(dst, inputs.into_boxed_slice()), at);
                out.insert(key, dst);
            }
        }
        self.frame().fields = out;
    }

    /// Continues after a split: with the one state that is left, or with the merge of several. False if none is left.
    pub(super) fn join(&mut self, mut states: Vec<(Env, CondId)>, at: Range) -> bool {
        self.forget();
        match states.len() {
            0 => false,
            1 => {
                let (env, cond) = states.remove(0);
                self.frame().env = env;
                self.frame().cond = cond;
                true
            }
            _ => {
                if let Some(env) = self.merge(states, at) {
                    self.frame().env = env;
                }
                true
            }
        }
    }

    fn branches(&mut self, stmt: &ast::StmtIf) -> bool {
        let at = range(stmt.range());
        let outer = self.frame().cond;
        let mut states: Vec<(Env, CondId)> = Vec::new();
        let mut known: Vec<(CondId, Fields)> = Vec::new();
        let mut keep = |states: &mut Vec<(Env, CondId)>, state: Option<(Env, CondId, Fields)>| {
            if let Some((env, cond, fields)) = state {
                states.push((env, cond));
                known.push((cond, fields));
            }
        };
        let first = (Some(&*stmt.test), &stmt.body);
        let clauses = std::iter::once(first).chain(stmt.elif_else_clauses.iter().map(|clause| (clause.test.as_ref(), &clause.body)));
        let mut open = true;
        for (test, body) in clauses {
            let Some(test) = test else {
                let cond = self.frame().cond;
                let state = self.branch(cond, |lowering| lowering.block(body));
                keep(&mut states, state);
                open = false;
                break;
            };
            let value = self.expr(test);
            let before = self.frame().env.clone();
            let taken = self.condition(CondKind::Test(value, true), range(test.range()));
            let state = self.branch(taken, |lowering| {
                lowering.narrow(test, true);
                lowering.block(body)
            });
            keep(&mut states, state);
            let skipped = self.condition(CondKind::Test(value, false), range(test.range()));
            self.frame().cond = skipped;
            let mut before = before;
            before.resize(self.frame().env.len(), NO_REG);
            self.frame().env = before;
            self.narrow(test, false);
        }
        if open {
            let (env, cond, fields) = (self.frame().env.clone(), self.frame().cond, self.frame().fields.clone());
            keep(&mut states, Some((env, cond, fields)));
        }
        self.frame().cond = outer;
        let alive = self.join(states, (at.0, at.0));
        self.join_fields(known, (at.0, at.0));
        alive
    }

    /// Narrows the names that `test` speaks of, given how it came out.
    pub(super) fn narrow(&mut self, test: &Expr, positive: bool) {
        match test {
            Expr::Name(name) => self.filter(&name.id, if positive { Keep::Truthy } else { Keep::Falsy }, range(test.range())),
            Expr::Named(named) => self.narrow(&named.target, positive),
            Expr::UnaryOp(unary) if unary.op == ast::UnaryOp::Not => self.narrow(&unary.operand, !positive),
            Expr::BoolOp(bool_op) if (bool_op.op == ast::BoolOp::And) == positive => {
                for value in &bool_op.values {
                    self.narrow(value, positive);
                }
            }
            Expr::Compare(compare) if compare.ops.len() == 1 && matches!(compare.comparators[0], Expr::NoneLiteral(_)) => {
                let is_none = match compare.ops[0] {
                    ast::CmpOp::Is | ast::CmpOp::Eq => positive,
                    ast::CmpOp::IsNot | ast::CmpOp::NotEq => !positive,
                    _ => return,
                };
                let target = match &*compare.left {
                    Expr::Named(named) => &*named.target,
                    other => other,
                };
                let keep = if is_none { Keep::IsNone } else { Keep::NotNone };
                match target {
                    Expr::Name(name) => self.filter(&name.id, keep, range(test.range())),
                    Expr::Attribute(attribute) => self.filter_field(attribute, keep, range(test.range())),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Narrows an attribute of a local until something may change it.
    fn filter_field(&mut self, attribute: &ast::ExprAttribute, keep: Keep, at: Range) {
        let Expr::Name(base) = &*attribute.value else { return };
        let Some(slot) = self.frame().slots.get(base.id.as_str()).copied() else { return };
        let obj = self.current(slot);
        if obj == NO_REG {
            return;
        }
        let name = self.intern(&attribute.attr);
        let field = (obj, super::lower::Field::Attr(name));
        let src = match self.frame().fields.get(&field).copied() {
            Some(src) => src,
            None => {
                let src = self.reg();
                self.emit(OpKind::LoadAttr { dst: src, obj, name }, at);
                src
            }
        };
        let dst = self.reg();
        self.emit(OpKind::Filter(dst, src, keep), at);
        self.frame().fields.insert(field, dst);
    }

    fn filter(&mut self, name: &str, keep: Keep, at: Range) {
        let frame = self.frame();
        let Some(slot) = frame.slots.get(name).copied() else {
            if frame.globals.contains(name) {
                let src = self.load_name(name, at);
                let dst = self.reg();
                self.emit(OpKind::Filter(dst, src, keep), at);
                let name = self.intern(name);
                self.frame().fields.insert((super::lower::MODULE, super::lower::Field::Attr(name)), dst);
            }
            return;
        };
        let src = frame.env.get(slot).copied().unwrap_or(NO_REG);
        if src == NO_REG || frame.shared.contains(&slot) {
            return;
        }
        let dst = self.reg();
        self.emit(OpKind::Filter(dst, src, keep), at);
        self.set_current(slot, dst);
    }

    /// Prepares the phis of a loop for the slots that its body assigns; the inputs from the loop's end are added afterwards.
    fn loop_head(&mut self, body: &[Stmt], target: Option<&Expr>, at: Range) -> Vec<(usize, usize)> {
        let mut bindings = Bindings::default();
        if let Some(target) = target {
            bindings.target(target);
        }
        bindings.statements(body);
        let mut phis = Vec::new();
        for name in &bindings.bound {
            let Some(slot) = self.frame().slots.get(name).copied() else { continue };
            let before = self.current(slot);
            if before == NO_REG || self.frame().shared.contains(&slot) || phis.iter().any(|(seen, _)| *seen == slot) {
                continue;
            }
            let cond = self.frame().cond;
            let dst = self.reg();
            self.emit(OpKind::Phi(dst, Box::new([(before, cond)])), at);
            self.set_current(slot, dst);
            let op = self.frame().ops.len() - 1;
            phis.push((slot, op));
        }
        phis
    }

    fn loop_tail(&mut self, phis: &[(usize, usize)], body: CondId) {
        for (slot, op) in phis {
            let end = self.current(*slot);
            let frame = self.frame();
            if let OpKind::Phi(dst, inputs) = &mut frame.ops[*op].kind
                && end != NO_REG
                && end != *dst
            {
                let mut all = inputs.to_vec();
                all.push((end, body));
                *inputs = all.into_boxed_slice();
            }
        }
    }

    fn run_loop(&mut self, at: Range, phis: &[(usize, usize)], cond: CondId, body: impl FnOnce(&mut Self) -> bool) {
        let entry = self.frame().env.clone();
        self.frame().loops += 1;
        let end = self.arm(cond, body);
        self.frame().loops -= 1;
        let entry_cond = self.frame().cond;
        // A `break` or `continue` inside may leave with any version, so the end counts even if it is not reached by falling through.
        let (env, end_cond) = end.unwrap_or_else(|| (self.frame().env.clone(), cond));
        self.frame().env = env.clone();
        self.loop_tail(phis, end_cond);
        self.join(vec![(entry, entry_cond), (env, end_cond)], (at.0, at.0));
    }

    fn for_loop(&mut self, stmt: &ast::StmtFor) {
        let at = range(stmt.range());
        let src = self.expr(&stmt.iter);
        self.publish(at);
        let phis = self.loop_head(&stmt.body, Some(&stmt.target), (at.0, at.0));
        let cond = self.condition(CondKind::Maybe, range(stmt.iter.range()));
        let item = self.reg();
        self.emit(OpKind::Iterate { dst: item, src }, range(stmt.iter.range()));
        self.run_loop(at, &phis, cond, |lowering| {
            lowering.assign(&stmt.target, item);
            lowering.block(&stmt.body)
        });
        if let Some(last) = self.last_item(stmt, src) {
            self.assign(&stmt.target, last);
        }
        self.block(&stmt.orelse);
    }

    /// The item that the variable of a loop over a literal holds once the loop has ended; `None` if it may end early or binds the name again.
    fn last_item(&mut self, stmt: &ast::StmtFor, src: Reg) -> Option<Reg> {
        let (Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. })) = &*stmt.iter else { return None };
        let Expr::Name(target) = &*stmt.target else { return None };
        let body = self.text.get(stmt.range().start().to_usize()..stmt.range().end().to_usize())?;
        let again = Bindings::of(&stmt.body, &[]).bound.iter().any(|name| name == target.id.as_str());
        if again || elts.iter().any(Expr::is_starred_expr) || body.contains("break") {
            return None;
        }
        let ops = self.frame().ops.iter().rev();
        ops.filter_map(|op| match &op.kind {
            OpKind::Sequence { dst, items, .. } if *dst == src => items.last().map(|(item, _)| *item),
            _ => None,
        })
        .next()
    }

    fn while_loop(&mut self, stmt: &ast::StmtWhile) {
        let at = range(stmt.range());
        self.publish(at);
        let phis = self.loop_head(&stmt.body, None, (at.0, at.0));
        let test = self.expr(&stmt.test);
        let cond = self.condition(CondKind::Test(test, true), range(stmt.test.range()));
        self.run_loop(at, &phis, cond, |lowering| {
            lowering.narrow(&stmt.test, true);
            lowering.block(&stmt.body)
        });
        self.block(&stmt.orelse);
    }

    fn try_statement(&mut self, stmt: &ast::StmtTry) -> bool {
        let at = range(stmt.range());
        let cond = self.frame().cond;
        let number = self.frame().tries.len();
        let in_loop = self.frame().loops > 0;
        let record = Try { range: at, body: (0, 0), orelse: (0, 0), cond, in_loop, handlers: Vec::new() };
        self.frame().tries.push(record);
        let entry = self.frame().env.clone();
        let start = index(self.frame().ops.len());
        let body = self.arm(cond, |lowering| lowering.block(&stmt.body));
        let after = self.frame().env.clone();
        let middle = index(self.frame().ops.len());
        self.frame().tries[number].body = (start, middle);
        let mut states = Vec::new();
        if let Some((env, end)) = body {
            self.frame().env = env;
            states.extend(self.arm(end, |lowering| lowering.block(&stmt.orelse)));
        }
        let last = index(self.frame().ops.len());
        self.frame().tries[number].orelse = (middle, last);
        for (place, ExceptHandler::ExceptHandler(handler)) in stmt.handlers.iter().enumerate() {
            let head_end = handler.name.as_ref().map_or_else(
                || handler.type_.as_ref().map_or(handler.range().start().to_u32() + 6, |kind| kind.range().end().to_u32()),
                |name| name.range().end().to_u32(),
            );
            let head = (handler.range().start().to_u32(), head_end);
            let taken = self.condition(CondKind::Handler(index(number), index(place)), head);
            let start = index(self.frame().ops.len());
            self.frame().env = entry.clone();
            let after = after.clone();
            let state = self.arm(taken, |lowering| {
                let now = lowering.frame().env.clone();
                if let Some(env) = lowering.merge(vec![(now, taken), (after, taken)], head) {
                    lowering.frame().env = env;
                }
                if let Some(kind) = &handler.type_ {
                    lowering.expr(kind);
                }
                if let Some(name) = &handler.name {
                    let exception = lowering.opaque(range(name.range()));
                    lowering.assign_name(name, exception, range(name.range()));
                }
                lowering.block(&handler.body)
            });
            let ops = (start, index(self.frame().ops.len()));
            let raises = state.is_none() && always_raises(&handler.body);
            let leaves = state.is_none();
            let types = handler.type_.as_deref().map(exception_names).unwrap_or_default();
            let record = Handler { types, range: range(handler.range()), head, ops, raises, leaves };
            self.frame().tries[number].handlers.push(record);
            states.extend(state);
        }
        self.frame().cond = cond;
        let alive = self.join(states, (at.0, at.0));
        let closing = self.block(&stmt.finalbody);
        alive && closing
    }

    pub(super) fn assign(&mut self, target: &Expr, src: Reg) {
        let at = range(target.range());
        match target {
            Expr::Name(name) => self.assign_name(&name.id, src, at),
            Expr::Attribute(attribute) => {
                let obj = self.expr(&attribute.value);
                let name = self.intern(&attribute.attr);
                self.publish(at);
                self.emit(OpKind::StoreAttr { obj, name, src }, at);
                self.store_field(obj, super::lower::Field::Attr(name), src);
            }
            Expr::Subscript(subscript) => {
                let obj = self.expr(&subscript.value);
                let key = self.expr(&subscript.slice);
                self.emit(OpKind::StoreItem { obj, key, src }, at);
                match self.frame().keys.get(&key).copied() {
                    Some(field) => self.store_field(obj, field, src),
                    None => self.forget(),
                }
            }
            Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
                let star = elts.iter().position(Expr::is_starred_expr);
                for (place, target) in elts.iter().enumerate() {
                    let dst = self.reg();
                    let kind = match star {
                        Some(star) if place == star => {
                            OpKind::UnpackRest { dst, src, before: index(star), after: index(elts.len() - star - 1) }
                        }
                        Some(star) if place > star => OpKind::Unpack { dst, src, index: index(elts.len() - place), from_end: true },
                        _ => OpKind::Unpack { dst, src, index: index(place), from_end: false },
                    };
                    self.emit(kind, range(target.range()));
                    match target {
                        Expr::Starred(starred) => self.assign(&starred.value, dst),
                        other => self.assign(other, dst),
                    }
                }
            }
            Expr::Starred(starred) => self.assign(&starred.value, src),
            other => {
                self.expr(other);
            }
        }
    }

    /// A store makes one field known. Fields of the same name in objects that may be the same one are forgotten.
    fn store_field(&mut self, obj: Reg, field: super::lower::Field, src: Reg) {
        let frame = self.frame();
        frame.fields.retain(|(_, known), _| *known != field);
        frame.fields.insert((obj, field), src);
    }
}

/// Whether the last statement is a `raise`.
fn always_raises(body: &[Stmt]) -> bool {
    match body.last() {
        Some(Stmt::Raise(_)) => true,
        Some(Stmt::If(stmt)) => {
            let has_else = stmt.elif_else_clauses.last().is_some_and(|clause| clause.test.is_none());
            has_else && always_raises(&stmt.body) && stmt.elif_else_clauses.iter().all(|clause| always_raises(&clause.body))
        }
        _ => false,
    }
}

fn exception_names(kind: &Expr) -> Vec<String> {
    match kind {
        Expr::Tuple(tuple) => tuple.elts.iter().flat_map(exception_names).collect(),
        other => vec![dotted(other).unwrap_or_else(|| "?".to_owned())],
    }
}
