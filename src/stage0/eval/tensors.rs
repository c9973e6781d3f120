//! Tensors as far as a launch needs them: sizes, strides, element type, and how many bytes are allocated.

use std::rc::Rc;

use super::Evaluator;
use super::number::Number;
use super::value::{Stop, Tensor, Value};
use crate::text::Span;

impl Tensor {
    /// A tensor whose last dimension is the innermost; `None` if its strides are too long formulas.
    #[must_use]
    pub fn row_major(size: Vec<Number>, dtype: &str) -> Option<Self> {
        let mut strides = vec![Number::constant(1); size.len()];
        for place in (1..size.len()).rev() {
            strides[place - 1] = strides[place].times(&size[place])?;
        }
        Some(Self { size, strides, dtype: dtype.to_owned(), allocation: None })
    }

    /// The same memory with two dimensions swapped.
    #[must_use]
    pub fn swapped(&self, a: usize, b: usize) -> Self {
        let (mut size, mut strides) = (self.size.clone(), self.strides.clone());
        if a < size.len() && b < size.len() {
            size.swap(a, b);
            strides.swap(a, b);
        }
        Self { size, strides, dtype: self.dtype.clone(), allocation: self.allocation }
    }
}

/// Bytes of an element.
#[must_use]
pub fn element_bytes(dtype: &str) -> Option<i128> {
    Some(match dtype.strip_prefix("torch.")? {
        "bfloat16" | "float16" | "int16" => 2,
        "float32" | "int32" => 4,
        "float64" | "int64" => 8,
        "int8" | "uint8" | "bool" => 1,
        _ => return None,
    })
}

impl Evaluator<'_> {
    fn allocate(&mut self, size: Vec<Number>, dtype: Option<&str>, at: Span) -> Result<Value, Stop> {
        let dtype = dtype.unwrap_or("");
        let bytes = element_bytes(dtype).and_then(|bytes| {
            let mut total = Number::constant(bytes);
            for part in &size {
                total = total.times(part)?;
            }
            Some(total)
        });
        let bytes = bytes.ok_or_else(|| self.stop(format!("the allocation `{}`, whose bytes are not known", self.text(at)), at));
        self.trace.allocations.push(bytes);
        let Some(mut tensor) = Tensor::row_major(size, dtype) else { return self.unknown("a tensor of too long a formula", at) };
        tensor.allocation = Some(self.trace.allocations.len() - 1);
        Ok(Value::Tensor(Rc::new(tensor)))
    }

    fn sizes(args: &[Value]) -> Result<Option<Vec<Number>>, Stop> {
        let items = match args {
            [Value::Sequence(items)] => items.clone(),
            other => Rc::new(other.to_vec()),
        };
        let mut out = Vec::with_capacity(items.len());
        for item in items.iter() {
            match item {
                Value::Number(number) => out.push(number.clone()),
                Value::Unknown(stop) => return Err((**stop).clone()),
                _ => return Ok(None),
            }
        }
        Ok(Some(out))
    }

    /// A function of `torch`.
    pub(super) fn call_torch(&mut self, name: &str, args: &[Value], named: &[(String, Value)], at: Span) -> Result<Value, Stop> {
        let keyword = |wanted: &str| {
            named.iter().find(|(name, _)| name == wanted).and_then(|(_, value)| match value {
                Value::External(name) => Some(name.to_string()),
                _ => None,
            })
        };
        match (name, args) {
            ("torch.empty" | "torch.zeros" | "torch.ones" | "torch.randn" | "torch.rand", [_, ..]) => match Self::sizes(args)? {
                Some(size) => {
                    let dtype = keyword("dtype");
                    self.allocate(size, dtype.as_deref(), at)
                }
                None => self.unknown(format!("the call `{}`", self.text(at)), at),
            },
            ("torch.empty_like" | "torch.zeros_like", [Value::Tensor(tensor)]) => {
                let dtype = keyword("dtype").unwrap_or_else(|| tensor.dtype.clone());
                self.allocate(tensor.size.clone(), Some(&dtype), at)
            }
            _ => self.unknown(format!("the call of `{name}`"), at),
        }
    }

    /// An attribute of a tensor.
    pub(super) fn tensor_attribute(&mut self, tensor: Rc<Tensor>, name: &str, at: Span) -> Result<Value, Stop> {
        let numbers = |numbers: &[Number]| Value::Sequence(Rc::new(numbers.iter().cloned().map(Value::Number).collect()));
        match name {
            "shape" => Ok(numbers(&tensor.size)),
            "ndim" => Ok(Value::int(i128::try_from(tensor.size.len()).unwrap_or(0))),
            "dtype" => Ok(Value::External(tensor.dtype.as_str().into())),
            "T" | "mT" if tensor.size.len() == 2 => Ok(Value::Tensor(Rc::new(tensor.swapped(0, 1)))),
            "is_cuda" => Ok(Value::Bool(true)),
            "requires_grad" => Ok(Value::Bool(false)),
            "device" | "data" | "grad_fn" | "grad" => self.unknown(format!("the attribute `{}`", self.text(at)), at),
            _ => Ok(Value::Method(Box::new(Value::Tensor(tensor)), name.into())),
        }
    }

    /// A method of a tensor.
    pub(super) fn call_tensor(
        &mut self,
        tensor: &Rc<Tensor>,
        name: &str,
        args: &[Value],
        named: &[(String, Value)],
        at: Span,
    ) -> Result<Value, Stop> {
        let place = |number: i128| {
            let length = i128::try_from(tensor.size.len()).unwrap_or(0);
            usize::try_from(if number < 0 { number + length } else { number }).ok()
        };
        match (name, args) {
            ("size", []) => self.tensor_attribute(tensor.clone(), "shape", at),
            ("size" | "stride", [Value::Number(dim)]) => {
                let dim = self.fixed(dim, at)?;
                let list = if name == "size" { &tensor.size } else { &tensor.strides };
                let found = place(dim).and_then(|place| list.get(place)).cloned();
                found.map(Value::Number).ok_or_else(|| self.stop(format!("the dimension of `{}`", self.text(at)), at))
            }
            ("stride", []) => Ok(Value::Sequence(Rc::new(tensor.strides.iter().cloned().map(Value::Number).collect()))),
            ("dim", []) => self.tensor_attribute(tensor.clone(), "ndim", at),
            ("t", []) if tensor.size.len() == 2 => Ok(Value::Tensor(Rc::new(tensor.swapped(0, 1)))),
            ("transpose", [Value::Number(a), Value::Number(b)]) => {
                let (a, b) = (self.fixed(a, at)?, self.fixed(b, at)?);
                match (place(a), place(b)) {
                    (Some(a), Some(b)) => Ok(Value::Tensor(Rc::new(tensor.swapped(a, b)))),
                    _ => self.unknown(format!("the call `{}`", self.text(at)), at),
                }
            }
            ("numel", []) => {
                let mut total = Number::constant(1);
                for part in &tensor.size {
                    total = total.times(part).ok_or_else(|| self.stop("a number beyond 128 bits", at))?;
                }
                Ok(Value::Number(total))
            }
            ("element_size", []) => match element_bytes(&tensor.dtype) {
                Some(bytes) => Ok(Value::int(bytes)),
                None => self.unknown(format!("the element size of `{}`", tensor.dtype), at),
            },
            ("is_contiguous", []) => {
                let Some(plain) = Tensor::row_major(tensor.size.clone(), &tensor.dtype) else {
                    return self.unknown("a tensor of too long a formula", at);
                };
                for ((own, plain), size) in tensor.strides.iter().zip(&plain.strides).zip(&tensor.size) {
                    let one = self.order(size, &Number::constant(1), at)?.is_eq();
                    if !one && self.order(own, plain, at)?.is_ne() {
                        return Ok(Value::Bool(false));
                    }
                }
                Ok(Value::Bool(true))
            }
            ("contiguous", []) => match self.call_tensor(tensor, "is_contiguous", &[], &[], at)? {
                Value::Bool(true) => Ok(Value::Tensor(tensor.clone())),
                Value::Bool(false) => self.allocate(tensor.size.clone(), Some(&tensor.dtype), at),
                other => Ok(other),
            },
            ("new_empty", [_, ..]) => match Self::sizes(args)? {
                Some(size) => {
                    let dtype = named.iter().find_map(|(name, value)| match value {
                        Value::External(dtype) if name == "dtype" => Some(dtype.to_string()),
                        _ => None,
                    });
                    self.allocate(size, Some(dtype.as_deref().unwrap_or(&tensor.dtype)), at)
                }
                None => self.unknown(format!("the call `{}`", self.text(at)), at),
            },
            _ => self.unknown(format!("the call `{}`", self.text(at)), at),
        }
    }
}
