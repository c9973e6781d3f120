//! Expressions to operations.

use ruff_python_ast::{self as ast, Expr};
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};
use ruff_text_size::Ranged;

use super::facts::*;
use super::lower::{Field, Lowering, MAX_DEPTH, Opening, range};
use super::scan::Bindings;

pub(super) fn operator(op: ast::Operator) -> Operator {
    match op {
        ast::Operator::Add => Operator::Add,
        ast::Operator::Sub => Operator::Sub,
        ast::Operator::Mult => Operator::Mul,
        ast::Operator::FloorDiv => Operator::FloorDiv,
        ast::Operator::Mod => Operator::Mod,
        _ => Operator::Other,
    }
}

fn comparison(op: ast::CmpOp) -> Operator {
    match op {
        ast::CmpOp::Eq => Operator::Eq,
        ast::CmpOp::NotEq => Operator::NotEq,
        ast::CmpOp::Is => Operator::Is,
        ast::CmpOp::IsNot => Operator::IsNot,
        ast::CmpOp::In => Operator::In,
        ast::CmpOp::NotIn => Operator::NotIn,
        ast::CmpOp::Lt => Operator::Lt,
        ast::CmpOp::LtE => Operator::LtE,
        ast::CmpOp::Gt => Operator::Gt,
        ast::CmpOp::GtE => Operator::GtE,
    }
}

impl Lowering<'_> {
    /// Lowers an expression; the register of its value.
    pub(super) fn expr(&mut self, expr: &Expr) -> Reg {
        let at = range(expr.range());
        if self.depth >= MAX_DEPTH {
            self.too_deep.get_or_insert(at);
            return self.opaque(at);
        }
        self.depth += 1;
        let reg = self.value(expr, at);
        self.depth -= 1;
        reg
    }

    /// Lowers what an expression is made of, for its effects.
    pub(super) fn children(&mut self, expr: &Expr) {
        match expr {
            Expr::Attribute(attribute) => {
                self.expr(&attribute.value);
            }
            Expr::Subscript(subscript) => {
                self.expr(&subscript.value);
                self.expr(&subscript.slice);
            }
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|part| self.children(part)),
            _ => {}
        }
    }

    fn literal(&mut self, literal: Literal, at: Range) -> Reg {
        let dst = self.reg();
        self.emit(OpKind::Literal(dst, literal), at);
        let key = match literal {
            Literal::Str(text) => Some(Field::Str(text)),
            Literal::Int(number) => Some(Field::Int(number)),
            _ => None,
        };
        if let Some(key) = key {
            self.frame().keys.insert(dst, key);
        }
        dst
    }

    fn value(&mut self, expr: &Expr, at: Range) -> Reg {
        match expr {
            Expr::Name(name) => self.load_name(&name.id, at),
            Expr::NoneLiteral(_) => self.literal(Literal::None, at),
            Expr::BooleanLiteral(literal) => self.literal(Literal::Bool(literal.value), at),
            Expr::NumberLiteral(literal) => match &literal.value {
                ast::Number::Int(int) => self.literal(int.as_i64().map_or(Literal::Opaque, Literal::Int), at),
                _ => self.opaque(at),
            },
            Expr::StringLiteral(literal) => {
                let text = self.intern(literal.value.to_str());
                self.literal(Literal::Str(text), at)
            }
            Expr::BytesLiteral(_) | Expr::EllipsisLiteral(_) | Expr::TString(_) | Expr::IpyEscapeCommand(_) => self.opaque(at),
            Expr::Attribute(attribute) => {
                let obj = self.expr(&attribute.value);
                let name = self.intern(&attribute.attr);
                if let Some(known) = self.frame().fields.get(&(obj, Field::Attr(name))).copied() {
                    return known;
                }
                let dst = self.reg();
                self.emit(OpKind::LoadAttr { dst, obj, name }, (attribute.attr.range().start().to_u32(), at.1));
                dst
            }
            Expr::Subscript(subscript) => self.subscript(subscript, at),
            Expr::Call(call) => self.call(call, at),
            Expr::BoolOp(bool_op) => self.bool_op(bool_op, at),
            Expr::Named(named) => {
                let src = self.expr(&named.value);
                self.assign(&named.target, src);
                src
            }
            Expr::BinOp(binary) => {
                let left = self.expr(&binary.left);
                let right = self.expr(&binary.right);
                let dst = self.reg();
                self.emit(OpKind::Binary { dst, left, op: operator(binary.op), right }, at);
                dst
            }
            Expr::UnaryOp(unary) => {
                if let (ast::UnaryOp::USub, Expr::NumberLiteral(number)) = (unary.op, &*unary.operand)
                    && let ast::Number::Int(int) = &number.value
                    && let Some(value) = int.as_i64()
                {
                    return self.literal(Literal::Int(-value), at);
                }
                let src = self.expr(&unary.operand);
                if unary.op == ast::UnaryOp::Not {
                    let dst = self.reg();
                    self.emit(OpKind::Not { dst, src }, at);
                    dst
                } else {
                    self.opaque(at)
                }
            }
            Expr::Compare(compare) => self.compare(compare, at),
            Expr::If(conditional) => {
                let test = self.expr(&conditional.test);
                let outer = self.frame().cond;
                let entry = self.frame().env.clone();
                let stale = self.frame().stale.clone();
                let taken = self.condition(CondKind::Test(test, true), range(conditional.test.range()));
                let skipped = self.condition(CondKind::Test(test, false), range(conditional.test.range()));
                self.forget();
                self.frame().cond = taken;
                self.narrow(&conditional.test, true);
                let body = self.expr(&conditional.body);
                self.frame().env = entry.clone();
                self.forget();
                self.frame().cond = skipped;
                self.narrow(&conditional.test, false);
                let orelse = self.expr(&conditional.orelse);
                self.frame().env = entry;
                self.forget();
                self.frame().cond = outer;
                self.still_stale(stale);
                let dst = self.reg();
                self.emit(OpKind::Phi(dst, Box::new([(body, taken), (orelse, skipped)])), at);
                dst
            }
            Expr::Lambda(lambda) => self.lambda(lambda, at),
            Expr::Tuple(tuple) => self.sequence(&tuple.elts, false, at),
            Expr::List(list) => self.sequence(&list.elts, true, at),
            Expr::Set(set) => self.sequence(&set.elts, true, at),
            Expr::Dict(dict) => {
                let mut items = Vec::new();
                for item in dict.iter() {
                    let key = item.key.as_ref().map_or(NO_REG, |key| self.expr(key));
                    let value = self.expr(&item.value);
                    items.push((key, value));
                }
                let dst = self.reg();
                self.emit(OpKind::Dict { dst, items: items.clone().into_boxed_slice() }, at);
                for (key, value) in &items {
                    if let Some(field) = self.frame().keys.get(key).copied() {
                        self.frame().fields.insert((dst, field), *value);
                    }
                }
                self.frame().dicts.insert(dst, items);
                dst
            }
            Expr::ListComp(comp) => self.comprehension(&comp.generators, &comp.elt, None, at),
            Expr::SetComp(comp) => self.comprehension(&comp.generators, &comp.elt, None, at),
            Expr::Generator(comp) => self.comprehension(&comp.generators, &comp.elt, None, at),
            Expr::DictComp(comp) => self.comprehension(&comp.generators, &comp.value, comp.key.as_deref(), at),
            Expr::Await(inner) => {
                let src = self.expr(&inner.value);
                let dst = self.reg();
                self.emit(OpKind::Await { dst, src }, at);
                dst
            }
            Expr::Yield(inner) => {
                let src = match &inner.value {
                    Some(value) => self.expr(value),
                    None => self.none(at),
                };
                let dst = self.reg();
                self.frame().is_generator = true;
                self.publish(at);
                self.emit(OpKind::Yield { dst, src }, at);
                self.forget();
                dst
            }
            Expr::YieldFrom(inner) => {
                let src = self.expr(&inner.value);
                let dst = self.reg();
                self.frame().is_generator = true;
                self.emit(OpKind::YieldFrom { dst, src }, at);
                self.forget();
                dst
            }
            Expr::FString(string) => self.format(string, at),
            Expr::Starred(starred) => self.expr(&starred.value),
            Expr::Slice(slice) => {
                for part in [&slice.lower, &slice.upper, &slice.step].into_iter().flatten() {
                    self.expr(part);
                }
                self.opaque(at)
            }
        }
    }

    fn subscript(&mut self, subscript: &ast::ExprSubscript, at: Range) -> Reg {
        let obj = self.expr(&subscript.value);
        if let Expr::Slice(slice) = &*subscript.slice {
            let bound = |lowering: &mut Self, part: &Option<Box<Expr>>| part.as_ref().map_or(NO_REG, |part| lowering.expr(part));
            let lower = bound(self, &slice.lower);
            let upper = bound(self, &slice.upper);
            let dst = self.reg();
            self.emit(OpKind::LoadSlice { dst, obj, lower, upper }, at);
            return dst;
        }
        let key = self.expr(&subscript.slice);
        if let Some(field) = self.frame().keys.get(&key).copied()
            && let Some(known) = self.frame().fields.get(&(obj, field)).copied()
        {
            return known;
        }
        let dst = self.reg();
        self.emit(OpKind::LoadItem { dst, obj, key }, at);
        dst
    }

    /// The value of `eval` of a literal string: its expression, as if it stood there. What would open a scope of its own is left alone.
    fn evaluated(&mut self, call: &ast::ExprCall, at: Range) -> Option<Reg> {
        let (Expr::Name(name), [Expr::StringLiteral(code)]) = (&*call.func, &*call.arguments.args) else { return None };
        let code = code.value.to_str();
        let scopes = ["lambda", "for", ":=", "{"].iter().any(|word| code.contains(word));
        if name.id.as_str() != "eval" || scopes || self.within.is_some() || !call.arguments.keywords.is_empty() {
            return None;
        }
        let parsed = parse_unchecked(code, ParseOptions::from(Mode::Expression));
        let ast::Mod::Expression(expression) = parsed.syntax() else { return None };
        if !parsed.errors().is_empty() {
            return None;
        }
        self.within = Some(at);
        let value = self.expr(&expression.body);
        self.within = None;
        Some(value)
    }

    /// Whether a call puts something into a list or set of this scope and runs nothing else.
    fn only_keeps(&mut self, call: &ast::ExprCall) -> bool {
        let Expr::Attribute(method) = &*call.func else { return false };
        let Expr::Name(owner) = &*method.value else { return false };
        if !matches!(method.attr.as_str(), "append" | "add" | "insert") {
            return false;
        }
        let Some(slot) = self.frame().slots.get(owner.id.as_str()).copied() else { return false };
        let owner = self.current(slot);
        self.frame().ops.iter().rev().any(|op| matches!(op.kind, OpKind::Sequence { dst, .. } if dst == owner))
    }

    fn call(&mut self, call: &ast::ExprCall, at: Range) -> Reg {
        let func = self.expr(&call.func);
        let mut args = Vec::with_capacity(call.arguments.args.len() + call.arguments.keywords.len());
        for arg in &call.arguments.args {
            match arg {
                Expr::Starred(starred) => args.push((Passing::Star, self.expr(&starred.value))),
                other => args.push((Passing::Position, self.expr(other))),
            }
        }
        for keyword in &call.arguments.keywords {
            let reg = self.expr(&keyword.value);
            let passing = match &keyword.arg {
                Some(name) => Passing::Keyword(self.intern(name)),
                None => Passing::DoubleStar,
            };
            args.push((passing, reg));
        }
        if !self.only_keeps(call) {
            self.publish(at);
        }
        // `known.update({...})` on a dict whose content is known is a series of stores.
        let mut updates = Vec::new();
        if let Expr::Attribute(attribute) = &*call.func
            && attribute.attr.as_str() == "update"
            && let [(Passing::Position, arg)] = args.as_slice()
            && let Some(OpKind::LoadAttr { obj, .. }) = self
                .frame()
                .ops
                .iter()
                .rev()
                .map(|op| &op.kind)
                .find(|kind| matches!(kind, OpKind::LoadAttr { dst, .. } if *dst == func))
                .cloned()
            && self.frame().dicts.contains_key(&obj)
            && let Some(items) = self.frame().dicts.get(arg).cloned()
        {
            updates = items.into_iter().filter(|(key, _)| *key != NO_REG).map(|(key, value)| (obj, key, value)).collect();
        }
        let dst = self.reg();
        self.emit(OpKind::Call { dst, func, args: args.into_boxed_slice(), decorator: false }, at);
        self.forget();
        if let Some(value) = self.evaluated(call, at) {
            return value;
        }
        for (obj, key, src) in updates {
            self.emit(OpKind::StoreItem { obj, key, src }, at);
            if let Some(field) = self.frame().keys.get(&key).copied() {
                self.frame().fields.insert((obj, field), src);
            }
        }
        dst
    }

    fn bool_op(&mut self, bool_op: &ast::ExprBoolOp, at: Range) -> Reg {
        let and = bool_op.op == ast::BoolOp::And;
        let stale = self.frame().stale.clone();
        let outer = self.frame().cond;
        let entry = self.frame().env.clone();
        let mut inputs = Vec::new();
        let last = bool_op.values.len().saturating_sub(1);
        for (place, value) in bool_op.values.iter().enumerate() {
            let reg = self.expr(value);
            let cond = self.frame().cond;
            if place == last {
                inputs.push((reg, cond));
                break;
            }
            let stays = self.reg();
            self.emit(OpKind::Filter(stays, reg, if and { Keep::Falsy } else { Keep::Truthy }), range(value.range()));
            inputs.push((stays, cond));
            let goes_on = self.condition(CondKind::Test(reg, and), range(value.range()));
            self.frame().cond = goes_on;
            self.narrow(value, and);
            self.forget();
        }
        let mut entry = entry;
        let width = self.frame().env.len();
        // Names that an assignment expression bound on the way stay bound.
        for slot in 0..width {
            if entry.len() <= slot {
                entry.push(self.frame().env[slot]);
            } else if entry[slot] == NO_REG {
                entry[slot] = self.frame().env[slot];
            }
        }
        self.frame().env = entry;
        self.frame().cond = outer;
        self.still_stale(stale);
        let dst = self.reg();
        self.emit(OpKind::Phi(dst, inputs.into_boxed_slice()), at);
        dst
    }

    fn compare(&mut self, compare: &ast::ExprCompare, at: Range) -> Reg {
        let mut left = self.expr(&compare.left);
        let mut results = Vec::new();
        for (op, right) in compare.ops.iter().zip(&compare.comparators) {
            let right = self.expr(right);
            let dst = self.reg();
            self.emit(OpKind::Binary { dst, left, op: comparison(*op), right }, at);
            results.push(dst);
            left = right;
        }
        match results.as_slice() {
            [only] => *only,
            // A chained comparison is true if all its parts are: decided only if the evaluator decides each.
            several => {
                let outer = self.frame().cond;
                let mut inputs = Vec::new();
                for (place, part) in several.iter().enumerate() {
                    let cond = self.frame().cond;
                    if place + 1 == several.len() {
                        inputs.push((*part, cond));
                    } else {
                        let stays = self.reg();
                        self.emit(OpKind::Filter(stays, *part, Keep::Falsy), at);
                        inputs.push((stays, cond));
                        let goes_on = self.condition(CondKind::Test(*part, true), at);
                        self.frame().cond = goes_on;
                    }
                }
                self.frame().cond = outer;
                let dst = self.reg();
                self.emit(OpKind::Phi(dst, inputs.into_boxed_slice()), at);
                dst
            }
        }
    }

    fn sequence(&mut self, elts: &[Expr], mutable: bool, at: Range) -> Reg {
        let mut items = Vec::with_capacity(elts.len());
        for elt in elts {
            match elt {
                Expr::Starred(starred) => items.push((self.expr(&starred.value), true)),
                other => items.push((self.expr(other), false)),
            }
        }
        let dst = self.reg();
        if items.iter().all(|(_, starred)| !starred) {
            for (place, (reg, _)) in items.iter().enumerate() {
                let place = i64::try_from(place).unwrap_or(i64::MAX);
                self.frame().fields.insert((dst, Field::Int(place)), *reg);
            }
        }
        self.emit(OpKind::Sequence { dst, items: items.into_boxed_slice(), mutable }, at);
        dst
    }

    fn lambda(&mut self, lambda: &ast::ExprLambda, at: Range) -> Reg {
        self.frame().lambdas += 1;
        let name = format!("<lambda{}>", self.frame().lambdas);
        let defaults = lambda.parameters.as_deref().map(|parameters| self.defaults(parameters)).unwrap_or_default();
        let parameters: Vec<String> =
            lambda.parameters.iter().flat_map(|parameters| parameters.iter()).map(|parameter| parameter.name().to_string()).collect();
        let bindings = Bindings::of(&[], &parameters);
        let scope = self.open(Opening { kind: ScopeKind::Lambda, name: &name, whole: at, name_range: (at.0, at.0 + 6), bindings });
        if let Some(parameters) = &lambda.parameters {
            let params = self.params(parameters);
            self.facts.scopes[scope as usize].params = params;
        }
        let src = self.expr(&lambda.body);
        self.publish(at);
        self.emit(OpKind::Return(src), range(lambda.body.range()));
        self.close();
        let dst = self.reg();
        self.emit(OpKind::Function { dst, scope, defaults }, at);
        dst
    }

    /// Comprehensions run in place: their targets shadow names of the scope while they last.
    fn comprehension(&mut self, generators: &[ast::Comprehension], element: &Expr, key: Option<&Expr>, at: Range) -> Reg {
        let mut shadowed: Vec<(String, Option<usize>)> = Vec::new();
        let stale = self.frame().stale.clone();
        let outer = self.frame().cond;
        for generator in generators {
            let src = self.expr(&generator.iter);
            self.publish(at);
            let item = self.reg();
            self.emit(OpKind::Iterate { dst: item, src }, range(generator.iter.range()));
            let mut bindings = Bindings::default();
            bindings.target(&generator.target);
            for name in bindings.bound {
                let slot = self.new_slot("");
                let before = self.frame().slots.insert(name.clone(), slot);
                shadowed.push((name, before));
            }
            self.assign(&generator.target, item);
            for test in &generator.ifs {
                let value = self.expr(test);
                let taken = self.condition(CondKind::Test(value, true), range(test.range()));
                self.frame().cond = taken;
                self.narrow(test, true);
            }
        }
        let key = key.map(|key| self.expr(key));
        let value = self.expr(element);
        self.frame().cond = outer;
        self.still_stale(stale);
        for (name, before) in shadowed.into_iter().rev() {
            let frame = self.frame();
            match before {
                Some(slot) => frame.slots.insert(name, slot),
                None => frame.slots.remove(&name),
            };
        }
        let dst = self.reg();
        match key {
            Some(key) => self.emit(OpKind::Dict { dst, items: Box::new([(key, value)]) }, at),
            // One element stands for all: its index is not known.
            None => {
                let list = self.reg();
                self.emit(OpKind::Sequence { dst: list, items: Box::new([(value, false)]), mutable: true }, at);
                self.emit(OpKind::Sequence { dst, items: Box::new([(list, true)]), mutable: true }, at);
            }
        }
        self.forget();
        dst
    }

    fn format(&mut self, string: &ast::ExprFString, at: Range) -> Reg {
        let mut parts = Vec::new();
        for part in &string.value {
            match part {
                ast::FStringPart::Literal(literal) => {
                    let text = self.intern(literal.as_str());
                    parts.push(self.literal(Literal::Str(text), at));
                }
                ast::FStringPart::FString(inner) => {
                    for element in &inner.elements {
                        match element {
                            ast::InterpolatedStringElement::Literal(literal) => {
                                let text = self.intern(&literal.value);
                                parts.push(self.literal(Literal::Str(text), at));
                            }
                            ast::InterpolatedStringElement::Interpolation(interpolation) => {
                                let plain = interpolation.format_spec.is_none();
                                let value = self.expr(&interpolation.expression);
                                parts.push(if plain { value } else { self.opaque(at) });
                            }
                        }
                    }
                }
            }
        }
        let dst = self.reg();
        self.emit(OpKind::Format { dst, parts: parts.into_boxed_slice() }, at);
        dst
    }
}
