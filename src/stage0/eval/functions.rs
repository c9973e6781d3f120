//! Functions outside the sources whose result is known, and methods of built-in types.

use std::cmp::Ordering;
use std::rc::Rc;

use super::number::Number;
use super::value::{Stop, Value};
use super::{Evaluator, MAX_ROUNDS};
use crate::profile::Known;
use crate::syntax::tree::BinaryOp;
use crate::text::Span;

impl Evaluator<'_> {
    /// Calls something outside the sources by its dotted name.
    pub(super) fn call_external(&mut self, name: &str, args: &[Value], named: &[(String, Value)], at: Span) -> Result<Value, Stop> {
        if let Some(Value::Unknown(stop)) = args.iter().chain(named.iter().map(|(_, value)| value)).find(|v| matches!(v, Value::Unknown(_)))
            && !name.starts_with("torch.")
        {
            return Ok(Value::Unknown(stop.clone()));
        }
        if let Some(builtin) = name.strip_prefix("builtins.") {
            return self.builtin(builtin, args, named, at);
        }
        match (name, args) {
            ("triton.cdiv" | "triton.language.cdiv", [Value::Number(a), Value::Number(b)]) => {
                let divisor = self.fixed(b, at)?;
                let shifted = a.plus(&Number::constant(divisor.saturating_sub(1))).and_then(|sum| sum.over(divisor));
                shifted.map(Value::Number).ok_or_else(|| self.stop("a division by zero, or of too long a formula", at))
            }
            ("triton.next_power_of_2", [Value::Number(a)]) => {
                let value = self.fixed(a, at)?;
                let power = u64::try_from(value).ok().and_then(u64::checked_next_power_of_two);
                power.map(|power| Value::int(i128::from(power))).ok_or_else(|| self.stop("a number beyond 64 bits", at))
            }
            ("dataclasses.replace", [Value::Instance(instance)]) => self.replace(&instance.clone(), named, at),
            ("dataclasses.asdict", [Value::Instance(instance)]) => {
                let fields = instance.class.fields.iter().zip(&instance.fields);
                Ok(Value::Dict(Rc::new(fields.map(|(field, value)| (Value::text(&field.name), value.clone())).collect())))
            }
            ("dataclasses.astuple", [Value::Instance(instance)]) => Ok(Value::Sequence(Rc::new(instance.fields.clone()))),
            ("os.getenv" | "os.environ.get", [Value::Str(key), rest @ ..]) => {
                self.environment(key, Some(rest.first().cloned().unwrap_or(Value::None)), at)
            }
            ("types.MappingProxyType", [Value::Dict(_)]) => Ok(args[0].clone()),
            _ if name.starts_with("torch.") && self.lenient => self.call_torch(name, args, named, at),
            _ => self.unknown(format!("the call of `{name}`, which is not part of the sources"), at),
        }
    }

    /// An environment variable, as the profile declares it.
    pub(super) fn environment(&mut self, name: &str, default: Option<Value>, at: Span) -> Result<Value, Stop> {
        match (self.facts.environment.get(name), default) {
            (Some(Known::Str(text)), _) => Ok(Value::text(text)),
            (Some(Known::None), Some(default)) => Ok(default),
            (Some(Known::None), None) => {
                Err(Stop { raises: Some("KeyError"), ..self.stop(format!("the environment variable `{name}`, which is not set"), at) })
            }
            _ => self.unknown(format!("the environment variable `{name}`, which the profile does not declare"), at),
        }
    }

    fn builtin(&mut self, name: &str, args: &[Value], named: &[(String, Value)], at: Span) -> Result<Value, Stop> {
        match (name, args) {
            ("min" | "max", _) if named.is_empty() && !args.is_empty() => {
                let items = if let [only] = args { self.items(only, at)? } else { Rc::new(args.to_vec()) };
                let Some((first, rest)) = items.split_first() else { return Err(self.stop("`min` or `max` of nothing", at)) };
                let mut best = first.clone();
                for item in rest {
                    let order = self.less(item, &best, at)?;
                    if order == (if name == "min" { Ordering::Less } else { Ordering::Greater }) {
                        best = item.clone();
                    }
                }
                Ok(best)
            }
            ("len", [value]) => {
                let length = match value {
                    Value::Str(text) => text.chars().count(),
                    other => self.items(other, at)?.len(),
                };
                Ok(Value::int(i128::try_from(length).unwrap_or(i128::MAX)))
            }
            ("abs", [Value::Number(number)]) => {
                if self.order(number, &Number::constant(0), at)? == Ordering::Less {
                    Ok(Value::Number(number.scaled(-1).ok_or_else(|| self.stop("a number beyond 128 bits", at))?))
                } else {
                    Ok(args[0].clone())
                }
            }
            ("int", [Value::Number(_)]) => Ok(args[0].clone()),
            ("int", [Value::Bool(value)]) => Ok(Value::int(i128::from(*value))),
            ("int", [Value::Str(text)]) => match text.trim().parse::<i64>() {
                Ok(value) => Ok(Value::int(i128::from(value))),
                Err(_) => Err(Stop { raises: Some("ValueError"), ..self.stop(format!("`int({text:?})`"), at) }),
            },
            ("bool", [value]) => Ok(Value::Bool(self.truth(value, at)?)),
            ("str", [Value::Str(_)]) => Ok(args[0].clone()),
            ("sum", [value]) => {
                let mut total = Value::int(0);
                for item in self.items(value, at)?.iter() {
                    total = self.binary(&total, BinaryOp::Add, item, at)?;
                }
                Ok(total)
            }
            ("any" | "all", [value]) => {
                for item in self.items(value, at)?.iter() {
                    if self.truth(item, at)? == (name == "any") {
                        return Ok(Value::Bool(name == "any"));
                    }
                }
                Ok(Value::Bool(name == "all"))
            }
            ("range", [Value::Number(_), ..]) => {
                let mut bounds = Vec::new();
                for arg in args {
                    let Value::Number(number) = arg else { return Err(self.stop("a range that is not of integers", at)) };
                    bounds.push(self.fixed(number, at)?);
                }
                let (start, end, step) = match bounds.as_slice() {
                    [end] => (0, *end, 1),
                    [start, end] => (*start, *end, 1),
                    [start, end, step] if *step != 0 => (*start, *end, *step),
                    _ => return Err(self.stop("a range without a step", at)),
                };
                let mut out = Vec::new();
                let mut value = start;
                while (step > 0 && value < end) || (step < 0 && value > end) {
                    if out.len() >= MAX_ROUNDS {
                        return Err(self.stop("a range of more numbers than are followed", at));
                    }
                    out.push(Value::int(value));
                    value += step;
                }
                Ok(Value::Sequence(Rc::new(out)))
            }
            ("tuple" | "list" | "set" | "frozenset", []) => Ok(Value::Sequence(Rc::new(Vec::new()))),
            ("tuple" | "list" | "set" | "frozenset", [value]) => Ok(Value::Sequence(self.items(value, at)?)),
            ("reversed", [value]) => Ok(Value::Sequence(Rc::new(self.items(value, at)?.iter().rev().cloned().collect()))),
            ("enumerate", [value]) => {
                let items = self.items(value, at)?;
                let pairs = items
                    .iter()
                    .enumerate()
                    .map(|(at, item)| Value::Sequence(Rc::new(vec![Value::int(i128::try_from(at).unwrap_or(i128::MAX)), item.clone()])));
                Ok(Value::Sequence(Rc::new(pairs.collect())))
            }
            ("zip", [a, b]) => {
                let (a, b) = (self.items(a, at)?, self.items(b, at)?);
                let pairs = a.iter().zip(b.iter()).map(|(a, b)| Value::Sequence(Rc::new(vec![a.clone(), b.clone()])));
                Ok(Value::Sequence(Rc::new(pairs.collect())))
            }
            ("sorted", [value]) if named.is_empty() => {
                let mut out: Vec<Value> = Vec::new();
                for item in self.items(value, at)?.iter() {
                    let mut place = out.len();
                    while place > 0 && self.less(item, &out[place - 1], at)? == Ordering::Less {
                        place -= 1;
                    }
                    out.insert(place, item.clone());
                }
                Ok(Value::Sequence(Rc::new(out)))
            }
            ("divmod", [a, b]) => {
                let quotient = self.binary(a, BinaryOp::FloorDiv, b, at)?;
                let rest = self.binary(a, BinaryOp::Mod, b, at)?;
                Ok(Value::Sequence(Rc::new(vec![quotient, rest])))
            }
            ("dict", args) if args.len() < 2 => {
                let mut items = match args {
                    [Value::Dict(items)] => items.to_vec(),
                    [] => Vec::new(),
                    _ => return self.unknown(format!("the call `{}`", self.text(at)), at),
                };
                for (key, value) in named {
                    self.put(&mut items, Value::text(key), value.clone(), at)?;
                }
                Ok(Value::Dict(Rc::new(items)))
            }
            ("isinstance", [value, Value::External(class)]) => match (value, &**class) {
                (Value::Number(_), "builtins.int")
                | (Value::Bool(_), "builtins.int" | "builtins.bool")
                | (Value::Str(_), "builtins.str") => Ok(Value::Bool(true)),
                (
                    Value::None | Value::Number(_) | Value::Bool(_) | Value::Str(_),
                    "builtins.int" | "builtins.bool" | "builtins.str" | "builtins.float",
                ) => Ok(Value::Bool(false)),
                _ => self.unknown(format!("the call `{}`", self.text(at)), at),
            },
            ("isinstance", [Value::Instance(instance), Value::Class(class)]) if Rc::ptr_eq(&instance.class, class) => Ok(Value::Bool(true)),
            _ => self.unknown(format!("the call `{}`", self.text(at)), at),
        }
    }

    /// Calls a method of something that is not of the sources.
    pub(super) fn call_method(
        &mut self,
        receiver: &Value,
        name: &str,
        args: &[Value],
        named: &[(String, Value)],
        at: Span,
    ) -> Result<Value, Stop> {
        match (receiver, name, args) {
            (Value::Dict(items), "get", [key, rest @ ..]) => {
                for (known, value) in items.iter() {
                    if self.same(known, key, at)? {
                        return Ok(value.clone());
                    }
                }
                Ok(rest.first().cloned().unwrap_or(Value::None))
            }
            (Value::Dict(items), "keys", []) => Ok(Value::Sequence(Rc::new(items.iter().map(|(key, _)| key.clone()).collect()))),
            (Value::Dict(items), "values", []) => Ok(Value::Sequence(Rc::new(items.iter().map(|(_, value)| value.clone()).collect()))),
            (Value::Dict(items), "items", []) => {
                let pairs = items.iter().map(|(key, value)| Value::Sequence(Rc::new(vec![key.clone(), value.clone()])));
                Ok(Value::Sequence(Rc::new(pairs.collect())))
            }
            (Value::Instance(instance), "_replace", []) => self.replace(&instance.clone(), named, at),
            (Value::Str(text), "startswith", [Value::Str(part)]) => Ok(Value::Bool(text.starts_with(&**part))),
            (Value::Str(text), "endswith", [Value::Str(part)]) => Ok(Value::Bool(text.ends_with(&**part))),
            (Value::Str(text), "lower", []) => Ok(Value::text(&text.to_lowercase())),
            (Value::Str(text), "upper", []) => Ok(Value::text(&text.to_uppercase())),
            (Value::Str(text), "strip", []) => Ok(Value::text(text.trim())),
            (Value::Number(number), "bit_length", []) => {
                let value = self.fixed(number, at)?;
                Ok(Value::int(i128::from(128 - value.unsigned_abs().leading_zeros())))
            }
            (Value::Tensor(tensor), ..) => self.call_tensor(&tensor.clone(), name, args, named, at),
            (
                Value::Sequence(_) | Value::Dict(_),
                "append" | "extend" | "insert" | "remove" | "pop" | "add" | "update" | "setdefault" | "clear" | "sort" | "reverse",
                _,
            ) => Err(self.stop(format!("the call `{}`, which changes an object in place", self.text(at)), at)),
            _ => self.unknown(format!("the call `{}`", self.text(at)), at),
        }
    }
}
