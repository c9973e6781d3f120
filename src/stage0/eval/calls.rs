//! Calls: of functions of the sources, of data classes, and of kernels.

use std::rc::Rc;

use super::number::Number;
use super::value::{ClassValue, Closure, Instance, Stop, Value};
use super::{Evaluator, Flow, Frame, Launched, MAX_DEPTH};
use crate::syntax::ParamKind;
use crate::text::Span;

impl Evaluator<'_> {
    /// Calls a value.
    pub(super) fn call_value(&mut self, func: Value, positional: Vec<Value>, named: Vec<(String, Value)>, at: Span) -> Result<Value, Stop> {
        match func {
            Value::Function(closure) if closure.kernel => {
                self.unknown(format!("the call `{}` of a kernel without a grid", self.text(at)), at)
            }
            Value::Function(closure) => self.call(&closure, positional, named, at),
            Value::Bound(closure, receiver) => {
                let mut all = vec![*receiver];
                all.extend(positional);
                self.call(&closure, all, named, at)
            }
            Value::Class(class) => self.instantiate(&class, positional, named, at),
            Value::External(name) => self.call_external(&name, &positional, &named, at),
            Value::Method(receiver, name) => self.call_method(&receiver, &name, &positional, &named, at),
            Value::Launcher(kernel, grid) => self.launch(&kernel, *grid, named, at),
            Value::Unknown(stop) if self.lenient => Ok(Value::Unknown(stop)),
            Value::Unknown(stop) => Err((*stop).clone()),
            _ => Err(self.stop(format!("the call `{}` of something that is no function", self.text(at)), at)),
        }
    }

    fn call(&mut self, closure: &Rc<Closure>, positional: Vec<Value>, named: Vec<(String, Value)>, at: Span) -> Result<Value, Stop> {
        let function = &closure.function;
        if let Some(why) = function.deferred {
            return self.unknown(format!("the call of `{}`, which is {why}", function.name), at);
        }
        if self.depth + 20 >= MAX_DEPTH || self.calls.len() > 60 {
            return Err(self.stop(format!("the call of `{}`, nested too deeply", function.name), at));
        }
        let scope = self.scope_for(closure, at)?;
        {
            let bound = self.bind(closure, positional, named, at)?;
            scope.names.borrow_mut().extend(bound);
        }
        let frame = Frame { module: closure.module, scope: Some(scope), locals: &function.locals };
        self.calls.push(at);
        let flow = self.block(&frame, &function.body);
        let value = match flow {
            Ok(Flow::Return(value)) => Ok(value),
            Ok(_) => Ok(Value::None),
            Err(stop) => Err(stop),
        };
        if self.watched == Some(self.span(closure.module, function.name_range))
            && let Ok(value) = &value
        {
            let calls = self.calls.clone();
            self.trace.selections.push((value.clone(), calls));
        }
        self.calls.pop();
        value
    }

    /// Arguments by parameter name.
    fn bind(
        &mut self,
        closure: &Closure,
        positional: Vec<Value>,
        named: Vec<(String, Value)>,
        at: Span,
    ) -> Result<Vec<(String, Value)>, Stop> {
        let function = &closure.function;
        let wrong = |evaluator: &Self| evaluator.stop(format!("the call `{}`, whose arguments do not fit", evaluator.text(at)), at);
        let mut out: Vec<(String, Value)> = Vec::new();
        let mut positional = positional.into_iter();
        let mut named = named;
        for (param, default) in function.params.iter().zip(&closure.defaults) {
            let by_name = |named: &mut Vec<(String, Value)>| {
                let place = named.iter().position(|(name, _)| *name == param.name)?;
                Some(named.remove(place).1)
            };
            let value = match param.kind {
                ParamKind::Star => Value::Sequence(Rc::new(positional.by_ref().collect())),
                ParamKind::DoubleStar => {
                    Value::Dict(Rc::new(std::mem::take(&mut named).into_iter().map(|(name, value)| (Value::text(&name), value)).collect()))
                }
                ParamKind::PositionOnly => positional.next().or_else(|| default.clone()).ok_or_else(|| wrong(self))?,
                ParamKind::KeywordOnly => by_name(&mut named).or_else(|| default.clone()).ok_or_else(|| wrong(self))?,
                ParamKind::Normal => match positional.next() {
                    Some(value) => value,
                    None => by_name(&mut named).or_else(|| default.clone()).ok_or_else(|| wrong(self))?,
                },
            };
            out.push((param.name.clone(), value));
        }
        if positional.next().is_some() || !named.is_empty() {
            return Err(wrong(self));
        }
        Ok(out)
    }

    fn instantiate(
        &mut self,
        class: &Rc<ClassValue>,
        positional: Vec<Value>,
        named: Vec<(String, Value)>,
        at: Span,
    ) -> Result<Value, Stop> {
        if class.fields.is_empty() {
            return self.unknown(format!("an instance of `{}`, which is no data class", class.class.name), at);
        }
        let wrong = |evaluator: &Self| evaluator.stop(format!("the call `{}`, whose arguments do not fit", evaluator.text(at)), at);
        let mut positional = positional.into_iter();
        let mut named = named;
        let mut fields = Vec::with_capacity(class.fields.len());
        for field in &class.fields {
            let value = positional.next().or_else(|| {
                let place = named.iter().position(|(name, _)| *name == field.name)?;
                Some(named.remove(place).1)
            });
            fields.push(value.or_else(|| field.default.clone()).ok_or_else(|| wrong(self))?);
        }
        if positional.next().is_some() || !named.is_empty() {
            return Err(wrong(self));
        }
        Ok(Value::Instance(Rc::new(Instance { class: class.clone(), fields, made: at, name: None })))
    }

    /// `dataclasses.replace(instance, field=value)`
    pub(super) fn replace(&mut self, instance: &Rc<Instance>, changes: &[(String, Value)], at: Span) -> Result<Value, Stop> {
        let mut fields = instance.fields.clone();
        for (name, value) in changes {
            let Some(place) = instance.class.fields.iter().position(|field| field.name == *name) else {
                return Err(self.stop(format!("the field `{name}`, which `{}` does not have", instance.class.class.name), at));
            };
            fields[place] = value.clone();
        }
        Ok(Value::Instance(Rc::new(Instance { class: instance.class.clone(), fields, made: at, name: None })))
    }

    fn launch(&mut self, kernel: &Rc<Closure>, grid: Value, named: Vec<(String, Value)>, at: Span) -> Result<Value, Stop> {
        let grid = match grid {
            // `kernel[lambda meta: (...)]`: the grid is computed from the keywords.
            Value::Function(closure) => {
                let meta = named.iter().map(|(name, value)| (Value::text(name), value.clone())).collect();
                self.call(&closure, vec![Value::Dict(Rc::new(meta))], Vec::new(), at)?
            }
            other => other,
        };
        let parts: Vec<Value> = match &grid {
            Value::Sequence(items) => items.to_vec(),
            other => vec![other.clone()],
        };
        let mut sizes: Vec<Number> = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Value::Number(number) => sizes.push(number),
                Value::Unknown(stop) => return Err((*stop).clone()),
                _ => return Err(self.stop(format!("the grid of `{}`", self.text(at)), at)),
            }
        }
        let program = self.facts.program;
        let module = program.strings.text(program.module(kernel.module).name);
        self.trace.launches.push(Launched {
            kernel: format!("{module}.{}", kernel.function.name),
            grid: sizes,
            options: named,
            at,
            calls: self.calls.clone(),
        });
        Ok(Value::None)
    }
}
