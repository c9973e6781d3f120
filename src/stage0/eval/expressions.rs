//! Expressions to values.

use std::cmp::Ordering;
use std::rc::Rc;

use super::number::Number;
use super::value::{Method, Scope, Stop, Value};
use super::{Evaluator, Frame, MAX_DEPTH, MAX_ROUNDS};
use crate::syntax::tree::{Argument, BinaryOp, Comparison, Expr, ExprKind, Generator};
use crate::text::Span;

impl Evaluator<'_> {
    /// The value of an expression.
    pub(super) fn expr(&mut self, frame: &Frame<'_>, expr: &Expr) -> Result<Value, Stop> {
        let at = self.span(frame.module, expr.range);
        self.step(at)?;
        if self.depth >= MAX_DEPTH {
            return Err(self.stop("calls nested too deeply", at));
        }
        self.depth += 1;
        let value = self.value(frame, expr, at);
        self.depth -= 1;
        value
    }

    fn value(&mut self, frame: &Frame<'_>, expr: &Expr, at: Span) -> Result<Value, Stop> {
        Ok(match &expr.kind {
            ExprKind::None => Value::None,
            ExprKind::Bool(value) => Value::Bool(*value),
            ExprKind::Int(value) => Value::int(i128::from(*value)),
            ExprKind::Str(text) => Value::text(text),
            ExprKind::Name(name) => self.name(frame, name, at)?,
            ExprKind::Attribute(value, name) => {
                let value = self.expr(frame, value)?;
                self.attribute(value, name, at)?
            }
            ExprKind::Item(value, key) => {
                let value = self.expr(frame, value)?;
                let key = self.expr(frame, key)?;
                self.item(&value, &key, at)?
            }
            ExprKind::Call { func, args } => {
                let func = self.expr(frame, func)?;
                let (mut positional, mut named) = (Vec::new(), Vec::new());
                for (passing, arg) in args {
                    let value = self.expr(frame, arg)?;
                    match passing {
                        Argument::Position => positional.push(value),
                        Argument::Keyword(name) => named.push((name.clone(), value)),
                        Argument::Star => positional.extend(self.items(&value, at)?.iter().cloned()),
                        Argument::DoubleStar => match value {
                            Value::Dict(items) => {
                                for (key, value) in items.iter() {
                                    let Value::Str(key) = key else { return Err(self.stop("keywords that are not strings", at)) };
                                    named.push((key.to_string(), value.clone()));
                                }
                            }
                            Value::Unknown(stop) => return Err((*stop).clone()),
                            _ => return Err(self.stop("`**` of something that is not a dict", at)),
                        },
                    }
                }
                self.call_value(func, positional, named, at)?
            }
            ExprKind::BoolOp(and, parts) => {
                let mut last = Value::None;
                for (place, part) in parts.iter().enumerate() {
                    last = self.expr(frame, part)?;
                    if place + 1 < parts.len() {
                        let part_at = self.span(frame.module, part.range);
                        if let Value::Unknown(_) = last {
                            return Ok(last);
                        }
                        if self.truth(&last, part_at)? != *and {
                            break;
                        }
                    }
                }
                last
            }
            ExprKind::Not(inner) => match self.expr(frame, inner)? {
                Value::Unknown(stop) => Value::Unknown(stop),
                value => Value::Bool(!self.truth(&value, at)?),
            },
            ExprKind::Negative(inner) => match self.expr(frame, inner)? {
                Value::Number(number) => Value::Number(number.scaled(-1).ok_or_else(|| self.stop("a number beyond 128 bits", at))?),
                Value::Unknown(stop) => Value::Unknown(stop),
                _ => return self.unknown("`-` of something that is not an integer", at),
            },
            ExprKind::Binary { left, op, right } => {
                let left = self.expr(frame, left)?;
                let right = self.expr(frame, right)?;
                self.binary(&left, *op, &right, at)?
            }
            ExprKind::Compare { left, rest } => {
                let mut left = self.expr(frame, left)?;
                for (op, right) in rest {
                    let right = self.expr(frame, right)?;
                    if let Some(unknown) = [&left, &right].into_iter().find(|value| matches!(value, Value::Unknown(_))) {
                        return Ok(unknown.clone());
                    }
                    let holds = match self.compare(&left, *op, &right, at) {
                        Ok(holds) => holds,
                        Err(stop) if self.lenient && stop.raises.is_none() => return Ok(Value::Unknown(Rc::new(stop))),
                        Err(stop) => return Err(stop),
                    };
                    if !holds {
                        return Ok(Value::Bool(false));
                    }
                    left = right;
                }
                Value::Bool(true)
            }
            ExprKind::Conditional { test, body, orelse } => {
                let value = self.expr(frame, test)?;
                let test_at = self.span(frame.module, test.range);
                if self.decide(frame, &value, test_at)? { self.expr(frame, body)? } else { self.expr(frame, orelse)? }
            }
            ExprKind::Tuple(items) | ExprKind::List(items) | ExprKind::Set(items) => {
                let mut out = Vec::with_capacity(items.len());
                for item in items {
                    if let ExprKind::Starred(inner) = &item.kind {
                        let value = self.expr(frame, inner)?;
                        out.extend(self.items(&value, at)?.iter().cloned());
                    } else {
                        out.push(self.expr(frame, item)?);
                    }
                }
                Value::Sequence(Rc::new(out))
            }
            ExprKind::Dict(items) => {
                let mut out: Vec<(Value, Value)> = Vec::with_capacity(items.len());
                for (key, value) in items {
                    let value = self.expr(frame, value)?;
                    match key {
                        Some(key) => {
                            let key = self.expr(frame, key)?;
                            self.put(&mut out, key, value, at)?;
                        }
                        None => match value {
                            Value::Dict(more) => {
                                for (key, value) in more.iter() {
                                    self.put(&mut out, key.clone(), value.clone(), at)?;
                                }
                            }
                            _ => return Err(self.stop("`**` of something that is not a dict", at)),
                        },
                    }
                }
                Value::Dict(Rc::new(out))
            }
            ExprKind::Lambda(function) => self.define(frame.module, function, Some(frame))?,
            ExprKind::Comprehension { key, element, generators } => {
                // Its names are its own; those around it stay visible.
                let inner = Rc::new(Scope { outer: frame.scope.clone(), ..Scope::default() });
                let own = Frame { module: frame.module, scope: Some(inner), locals: &[] };
                let mut out = Vec::new();
                self.generate(&own, frame, generators, key.as_deref(), element, &mut out)?;
                if key.is_some() {
                    let mut items = Vec::new();
                    for pair in out {
                        if let (key, Some(value)) = pair {
                            self.put(&mut items, key, value, at)?;
                        }
                    }
                    Value::Dict(Rc::new(items))
                } else {
                    Value::Sequence(Rc::new(out.into_iter().map(|(value, _)| value).collect()))
                }
            }
            ExprKind::Walrus { target, value } => {
                let value = self.expr(frame, value)?;
                self.assign(frame, target, value.clone())?;
                value
            }
            ExprKind::Starred(_) => return Err(self.stop("`*` outside a call or list", at)),
            ExprKind::Other(what) => return self.unknown(*what, at),
        })
    }

    fn generate(
        &mut self,
        own: &Frame<'_>,
        around: &Frame<'_>,
        generators: &[Generator],
        key: Option<&Expr>,
        element: &Expr,
        out: &mut Vec<(Value, Option<Value>)>,
    ) -> Result<(), Stop> {
        let Some((first, rest)) = generators.split_first() else {
            let entry = match key {
                Some(key) => (self.expr(own, key)?, Some(self.expr(own, element)?)),
                None => (self.expr(own, element)?, None),
            };
            out.push(entry);
            return Ok(());
        };
        let at = self.span(own.module, first.iter.range);
        let iterable = self.expr(around, &first.iter)?;
        for item in self.items(&iterable, at)?.iter() {
            if out.len() > MAX_ROUNDS {
                return Err(self.stop("a comprehension of more elements than are followed", at));
            }
            self.assign(own, &first.target, item.clone())?;
            let mut holds = true;
            for test in &first.tests {
                let value = self.expr(own, test)?;
                let test_at = self.span(own.module, test.range);
                if !self.decide(own, &value, test_at)? {
                    holds = false;
                    break;
                }
            }
            if holds {
                self.generate(own, own, rest, key, element, out)?;
            }
        }
        Ok(())
    }

    pub(super) fn put(&mut self, items: &mut Vec<(Value, Value)>, key: Value, value: Value, at: Span) -> Result<(), Stop> {
        for entry in items.iter_mut() {
            if self.same(&entry.0, &key, at)? {
                entry.1 = value;
                return Ok(());
            }
        }
        items.push((key, value));
        Ok(())
    }

    fn name(&mut self, frame: &Frame<'_>, name: &str, at: Span) -> Result<Value, Stop> {
        if let Some(scope) = &frame.scope {
            let mut scope = Some(scope);
            let mut own = true;
            while let Some(here) = scope {
                if let Some(value) = here.names.borrow().get(name) {
                    return Ok(value.clone());
                }
                if own && frame.locals.iter().any(|local| local == name) {
                    return Err(self.stop(format!("the local `{name}`, which has no value here"), at));
                }
                own = false;
                scope = here.outer.as_ref();
            }
        }
        match self.module_name(frame.module, name, at) {
            Err(stop) if self.lenient => Ok(Value::Unknown(Rc::new(stop))),
            other => other,
        }
    }

    /// Elements of something that is iterated.
    pub(super) fn items(&mut self, value: &Value, at: Span) -> Result<Rc<Vec<Value>>, Stop> {
        match value {
            Value::Sequence(items) => Ok(items.clone()),
            Value::Dict(items) => Ok(Rc::new(items.iter().map(|(key, _)| key.clone()).collect())),
            Value::Instance(instance) if instance.class.class.bases.iter().any(|base| self.is_named_tuple(&instance.class, base)) => {
                Ok(Rc::new(instance.fields.clone()))
            }
            Value::Unknown(stop) => Err((**stop).clone()),
            _ => Err(self.stop("iteration over something that is not a sequence", at)),
        }
    }

    fn is_named_tuple(&self, class: &super::value::ClassValue, base: &Expr) -> bool {
        let text = self.facts.files.slice(self.span(class.module, base.range));
        text.rsplit('.').next() == Some("NamedTuple")
    }

    /// Whether a test holds; noted, since it chose a branch.
    pub(super) fn decide(&mut self, frame: &Frame<'_>, value: &Value, at: Span) -> Result<bool, Stop> {
        let holds = self.truth(value, at)?;
        if frame.scope.is_some() && !self.trace.tests.contains(&at) {
            self.trace.tests.push(at);
        }
        Ok(holds)
    }

    /// Whether a value counts as true.
    pub(super) fn truth(&mut self, value: &Value, at: Span) -> Result<bool, Stop> {
        match value {
            Value::None => Ok(false),
            Value::Bool(value) => Ok(*value),
            Value::Number(number) => Ok(self.order(number, &Number::constant(0), at)? != Ordering::Equal),
            Value::Str(text) => Ok(!text.is_empty()),
            Value::Sequence(items) => Ok(!items.is_empty()),
            Value::Dict(items) => Ok(!items.is_empty()),
            Value::Function(_) | Value::Bound(..) | Value::Class(_) | Value::Instance(_) | Value::Module(_) | Value::Launcher(..) => {
                Ok(true)
            }
            Value::Unknown(stop) => Err((**stop).clone()),
            Value::External(_) | Value::Method(..) | Value::Tensor(_) => {
                Err(self.stop(format!("a test of `{}`, which is not known", self.text(at)), at))
            }
        }
    }

    /// Whether two values are equal.
    pub(super) fn same(&mut self, a: &Value, b: &Value, at: Span) -> Result<bool, Stop> {
        let number = |value: &Value| match value {
            Value::Number(number) => Some(number.clone()),
            Value::Bool(value) => Some(Number::constant(i128::from(*value))),
            _ => None,
        };
        if let (Some(a), Some(b)) = (number(a), number(b)) {
            return Ok(self.order(&a, &b, at)? == Ordering::Equal);
        }
        match (a, b) {
            (Value::Unknown(stop), _) | (_, Value::Unknown(stop)) => Err((**stop).clone()),
            (Value::None, Value::None) => Ok(true),
            (Value::Str(a), Value::Str(b)) => Ok(a == b),
            (Value::Sequence(a), Value::Sequence(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (a, b) in a.iter().zip(b.iter()) {
                    if !self.same(a, b, at)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Instance(a), Value::Instance(b)) => {
                if !Rc::ptr_eq(&a.class, &b.class) && a.class.class.range != b.class.class.range {
                    return Ok(false);
                }
                for (a, b) in a.fields.iter().zip(&b.fields) {
                    if !self.same(a, b, at)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            // Element types have one name each; other names outside the sources may stand for anything.
            (Value::External(a), Value::External(b)) if a == b => Ok(true),
            (Value::External(a), Value::External(b)) if a.starts_with("torch.") && b.starts_with("torch.") => Ok(false),
            (Value::External(_) | Value::Method(..) | Value::Tensor(_), _)
            | (_, Value::External(_) | Value::Method(..) | Value::Tensor(_)) => {
                Err(self.stop(format!("the comparison `{}` of values that are not known", self.text(at)), at))
            }
            (Value::Function(a), Value::Function(b)) => Ok(Rc::ptr_eq(a, b)),
            (Value::Class(a), Value::Class(b)) => Ok(Rc::ptr_eq(a, b)),
            (Value::Module(a), Value::Module(b)) => Ok(a == b),
            (Value::Dict(a), Value::Dict(b)) if a.is_empty() || b.is_empty() => Ok(a.len() == b.len()),
            (Value::Dict(_), Value::Dict(_)) => Err(self.stop("a comparison of two dicts", at)),
            _ => Ok(false),
        }
    }

    fn compare(&mut self, a: &Value, op: Comparison, b: &Value, at: Span) -> Result<bool, Stop> {
        Ok(match op {
            Comparison::Eq => self.same(a, b, at)?,
            Comparison::NotEq => !self.same(a, b, at)?,
            Comparison::Is | Comparison::IsNot => {
                let is = match (a, b) {
                    (Value::None, Value::External(_) | Value::Method(..)) | (Value::External(_) | Value::Method(..), Value::None) => {
                        return Err(self.stop(format!("the comparison `{}` of values that are not known", self.text(at)), at));
                    }
                    (Value::None, _) | (_, Value::None) => matches!((a, b), (Value::None, Value::None)),
                    (Value::Bool(a), Value::Bool(b)) => a == b,
                    (Value::Instance(a), Value::Instance(b)) => Rc::ptr_eq(a, b) || (a.name.is_some() && a.name == b.name),
                    (Value::Class(_), Value::Class(_)) | (Value::External(_), Value::External(_)) => self.same(a, b, at)?,
                    _ => return Err(self.stop(format!("the identity test `{}`", self.text(at)), at)),
                };
                is == (op == Comparison::Is)
            }
            Comparison::In => self.contains(b, a, at)?,
            Comparison::NotIn => !self.contains(b, a, at)?,
            Comparison::Lt | Comparison::LtE | Comparison::Gt | Comparison::GtE => {
                let order = self.less(a, b, at)?;
                match op {
                    Comparison::Lt => order == Ordering::Less,
                    Comparison::LtE => order != Ordering::Greater,
                    Comparison::Gt => order == Ordering::Greater,
                    _ => order != Ordering::Less,
                }
            }
        })
    }

    /// How two values are ordered.
    pub(super) fn less(&mut self, a: &Value, b: &Value, at: Span) -> Result<Ordering, Stop> {
        match (a, b) {
            (Value::Number(a), Value::Number(b)) => self.order(a, b, at),
            (Value::Str(a), Value::Str(b)) => Ok(a.cmp(b)),
            (Value::Sequence(a), Value::Sequence(b)) => {
                for (a, b) in a.iter().zip(b.iter()) {
                    match self.less(a, b, at)? {
                        Ordering::Equal => {}
                        order => return Ok(order),
                    }
                }
                Ok(a.len().cmp(&b.len()))
            }
            (Value::Unknown(stop), _) | (_, Value::Unknown(stop)) => Err((**stop).clone()),
            _ => Err(self.stop(format!("the comparison `{}` of values that are not integers", self.text(at)), at)),
        }
    }

    fn contains(&mut self, container: &Value, member: &Value, at: Span) -> Result<bool, Stop> {
        if let (Value::Str(text), Value::Str(part)) = (container, member) {
            return Ok(text.contains(&**part));
        }
        for item in self.items(container, at)?.iter() {
            if self.same(item, member, at)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn binary(&mut self, left: &Value, op: BinaryOp, right: &Value, at: Span) -> Result<Value, Stop> {
        let number = |value: &Value| match value {
            Value::Number(number) => Some(number.clone()),
            Value::Bool(value) => Some(Number::constant(i128::from(*value))),
            _ => None,
        };
        if let (Some(a), Some(b)) = (number(left), number(right)) {
            return self.arithmetic(&a, op, &b, at);
        }
        match (left, op, right) {
            (Value::Unknown(_), ..) => Ok(left.clone()),
            (.., Value::Unknown(_)) => Ok(right.clone()),
            (Value::Str(a), BinaryOp::Add, Value::Str(b)) => Ok(Value::text(&format!("{a}{b}"))),
            (Value::Sequence(a), BinaryOp::Add, Value::Sequence(b)) => {
                Ok(Value::Sequence(Rc::new(a.iter().chain(b.iter()).cloned().collect())))
            }
            (Value::Dict(a), BinaryOp::Or, Value::Dict(b)) => {
                let mut items = a.to_vec();
                for (key, value) in b.iter() {
                    self.put(&mut items, key.clone(), value.clone(), at)?;
                }
                Ok(Value::Dict(Rc::new(items)))
            }
            _ => self.unknown(format!("the operation `{}`", self.text(at)), at),
        }
    }

    fn arithmetic(&mut self, a: &Number, op: BinaryOp, b: &Number, at: Span) -> Result<Value, Stop> {
        let large = |evaluator: &Self| evaluator.stop("a number beyond 128 bits", at);
        let exact = match op {
            BinaryOp::Add => a.plus(b),
            BinaryOp::Sub => a.minus(b),
            BinaryOp::Mul => a.times(b),
            BinaryOp::FloorDiv => match b.as_constant() {
                Some(divisor) => a.over(divisor),
                None => None,
            },
            BinaryOp::Mod => match b.as_constant() {
                Some(divisor) if divisor > 0 => {
                    // Where the quotient stays the same, the rest is a line.
                    let quotient = a.over(divisor).ok_or_else(|| large(self))?;
                    let quotient = self.fixed(&quotient, at)?;
                    let whole = quotient.checked_mul(divisor).ok_or_else(|| large(self))?;
                    a.minus(&Number::constant(whole))
                }
                _ => None,
            },
            _ => None,
        };
        if let Some(number) = exact {
            return Ok(Value::Number(number));
        }
        let (x, y) = (self.fixed(a, at)?, self.fixed(b, at)?);
        let value = match op {
            BinaryOp::Add => x.checked_add(y),
            BinaryOp::Sub => x.checked_sub(y),
            BinaryOp::Mul => x.checked_mul(y),
            BinaryOp::FloorDiv | BinaryOp::Mod | BinaryOp::Div if y == 0 => {
                return Err(Stop { raises: Some("ZeroDivisionError"), ..self.stop("a division by zero", at) });
            }
            // Python rounds towards minus infinity, whatever the signs.
            BinaryOp::FloorDiv => x.checked_div_euclid(y).map(|q| if y < 0 && x.rem_euclid(y) != 0 { q - 1 } else { q }),
            BinaryOp::Mod => x.checked_rem_euclid(y).map(|r| if y < 0 && r != 0 { r + y } else { r }),
            BinaryOp::Pow => u32::try_from(y).ok().and_then(|y| x.checked_pow(y)),
            BinaryOp::LeftShift => u32::try_from(y).ok().filter(|y| *y < 120).and_then(|y| x.checked_mul(1 << y)),
            BinaryOp::RightShift => u32::try_from(y).ok().map(|y| if y > 126 { -i128::from(x < 0) } else { x >> y }),
            BinaryOp::And => Some(x & y),
            BinaryOp::Or => Some(x | y),
            BinaryOp::Xor => Some(x ^ y),
            BinaryOp::Div | BinaryOp::MatMul => return self.unknown(format!("the operation `{}`", self.text(at)), at),
        };
        value.map(Value::int).ok_or_else(|| large(self))
    }

    /// `value[key]`
    pub(super) fn item(&mut self, value: &Value, key: &Value, at: Span) -> Result<Value, Stop> {
        match (value, key) {
            (Value::Unknown(_), _) => Ok(value.clone()),
            (Value::Function(closure), grid) if closure.kernel => Ok(Value::Launcher(closure.clone(), Box::new(grid.clone()))),
            (Value::Dict(items), key) => {
                for (known, value) in items.iter() {
                    if self.same(known, key, at)? {
                        return Ok(value.clone());
                    }
                }
                Err(Stop { raises: Some("KeyError"), ..self.stop(format!("the key of `{}`, which is not there", self.text(at)), at) })
            }
            (Value::Sequence(_) | Value::Instance(_), Value::Number(index)) => {
                let items = self.items(value, at)?;
                let index = self.fixed(index, at)?;
                let length = i128::try_from(items.len()).unwrap_or(0);
                let place = if index < 0 { index + length } else { index };
                let found = usize::try_from(place).ok().and_then(|place| items.get(place));
                found.cloned().ok_or_else(|| Stop {
                    raises: Some("IndexError"),
                    ..self.stop(format!("the index of `{}`, which is out of range", self.text(at)), at)
                })
            }
            (Value::External(name), Value::Str(key)) if &**name == "os.environ" => self.environment(key, None, at),
            _ => self.unknown(format!("the subscript `{}`", self.text(at)), at),
        }
    }

    /// `value.name`
    pub(super) fn attribute(&mut self, value: Value, name: &str, at: Span) -> Result<Value, Stop> {
        match value {
            Value::Unknown(_) => Ok(value),
            Value::Module(module) => {
                let dotted = format!("{}.{name}", self.facts.program.strings.text(self.facts.program.module(module).name));
                if self.bindings(module, name).is_empty()
                    && let Some(found) = self.module_called(module, &dotted)
                {
                    return Ok(Value::Module(found));
                }
                match self.module_name(module, name, at) {
                    Err(stop) if self.lenient => Ok(Value::Unknown(Rc::new(stop))),
                    other => other,
                }
            }
            Value::External(outer) => Ok(self.external(&format!("{outer}.{name}"))),
            Value::Instance(ref instance) => {
                let class = instance.class.clone();
                if let Some(place) = class.fields.iter().position(|field| field.name == name) {
                    return instance.fields.get(place).cloned().ok_or_else(|| self.stop("a field without a value", at));
                }
                if let Some((_, method, how)) = class.methods.iter().find(|(own, ..)| own == name) {
                    return match how {
                        Method::Property => self.call_value(Value::Bound(method.clone(), Box::new(value)), Vec::new(), Vec::new(), at),
                        Method::Static => Ok(Value::Function(method.clone())),
                        Method::Plain => Ok(Value::Bound(method.clone(), Box::new(value))),
                    };
                }
                if let Some((_, constant)) = class.constants.iter().rev().find(|(own, _)| own == name) {
                    return Ok(constant.clone());
                }
                if name == "_replace" {
                    return Ok(Value::Method(Box::new(value), name.into()));
                }
                Err(self.stop(format!("the attribute `{name}`, which `{}` does not define", class.class.name), at))
            }
            Value::Class(ref class) => {
                if let Some((_, constant)) = class.constants.iter().rev().find(|(own, _)| own == name) {
                    return Ok(constant.clone());
                }
                if let Some((_, method, Method::Static)) = class.methods.iter().find(|(own, ..)| own == name) {
                    return Ok(Value::Function(method.clone()));
                }
                Err(self.stop(format!("the attribute `{name}`, which `{}` does not define", class.class.name), at))
            }
            Value::Tensor(ref tensor) => self.tensor_attribute(tensor.clone(), name, at),
            Value::Str(_) | Value::Sequence(_) | Value::Dict(_) | Value::Number(_) => Ok(Value::Method(Box::new(value), name.into())),
            _ => self.unknown(format!("the attribute `{}`", self.text(at)), at),
        }
    }
}
