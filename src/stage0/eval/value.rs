//! Values of the evaluator.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use super::number::Number;
use crate::names::ModuleId;
use crate::syntax::tree;
use crate::text::Span;

/// What stopped an evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The construct, in words.
    pub construct: String,
    /// Where.
    pub at: Span,
    /// The exception that Python raises there, if it is one that code may handle.
    pub raises: Option<&'static str>,
}

/// Local names of a running function.
#[derive(Debug, Default)]
pub struct Scope {
    /// Names that have a value.
    pub names: RefCell<BTreeMap<String, Value>>,
    /// The function around it.
    pub outer: Option<Rc<Self>>,
}

/// A function with what surrounds it.
#[derive(Debug)]
pub struct Closure {
    /// Its definition.
    pub function: Arc<tree::Function>,
    /// Its module.
    pub module: ModuleId,
    /// The function around it, which has to be still running when it is called.
    pub outer: Option<Weak<Scope>>,
    /// Values of defaults by parameter.
    pub defaults: Vec<Option<Value>>,
    /// Whether it is compiled as a GPU kernel.
    pub kernel: bool,
}

/// A field of a data class.
#[derive(Debug)]
pub struct FieldDef {
    /// Name.
    pub name: String,
    /// Default.
    pub default: Option<Value>,
}

/// A class.
#[derive(Debug)]
pub struct ClassValue {
    /// Definition.
    pub class: Arc<tree::Class>,
    /// Module.
    pub module: ModuleId,
    /// Fields in order.
    pub fields: Vec<FieldDef>,
    /// Methods by name; whether each is a property.
    pub methods: Vec<(String, Rc<Closure>, Method)>,
    /// Other names of the body.
    pub constants: Vec<(String, Value)>,
}

/// How a function of a class is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// With the instance.
    Plain,
    /// With the instance, on reading it.
    Property,
    /// Without.
    Static,
}

/// An instance of a data class.
#[derive(Debug)]
pub struct Instance {
    /// Its class.
    pub class: Rc<ClassValue>,
    /// Values in the order of the class's fields.
    pub fields: Vec<Value>,
    /// Where it was made.
    pub made: Span,
    /// The module constant that holds it.
    pub name: Option<String>,
}

/// A tensor, as far as its shape matters.
#[derive(Debug)]
pub struct Tensor {
    /// Sizes.
    pub size: Vec<Number>,
    /// Strides in elements.
    pub strides: Vec<Number>,
    /// Dotted name of its type.
    pub dtype: String,
    /// Number of its allocation; `None` for an argument.
    pub allocation: Option<usize>,
}

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// `None`
    None,
    /// `True`, `False`
    Bool(bool),
    /// An integer.
    Number(Number),
    /// A string.
    Str(Rc<str>),
    /// A tuple, list or set: nothing here changes one in place.
    Sequence(Rc<Vec<Value>>),
    /// A dict in order.
    Dict(Rc<Vec<(Value, Value)>>),
    /// A function.
    Function(Rc<Closure>),
    /// A function with its receiver.
    Bound(Rc<Closure>, Box<Self>),
    /// A class.
    Class(Rc<ClassValue>),
    /// An instance of a data class.
    Instance(Rc<Instance>),
    /// A module of the sources.
    Module(ModuleId),
    /// Something outside the sources, by its dotted name.
    External(Rc<str>),
    /// A method of something that is not of the sources.
    Method(Box<Self>, Rc<str>),
    /// A tensor.
    Tensor(Rc<Tensor>),
    /// A kernel with its grid.
    Launcher(Rc<Closure>, Box<Self>),
    /// Not known, and why. Only what depends on it stops.
    Unknown(Rc<Stop>),
}

impl Value {
    /// A number that does not depend on the size.
    #[must_use]
    pub const fn int(value: i128) -> Self {
        Self::Number(Number::constant(value))
    }

    /// A string.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Str(text.into())
    }

    /// As Python writes it, with formulas for numbers that depend on the size.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::None => "None".to_owned(),
            Self::Bool(true) => "True".to_owned(),
            Self::Bool(false) => "False".to_owned(),
            Self::Number(number) => number.formula(),
            Self::Str(text) => format!("{text:?}"),
            Self::Sequence(items) => format!("({})", items.iter().map(Self::shown).collect::<Vec<_>>().join(", ")),
            Self::Dict(items) => {
                format!("{{{}}}", items.iter().map(|(k, v)| format!("{}: {}", k.shown(), v.shown())).collect::<Vec<_>>().join(", "))
            }
            Self::Function(closure) | Self::Bound(closure, _) | Self::Launcher(closure, _) => closure.function.name.clone(),
            Self::Class(class) => class.class.name.clone(),
            Self::Instance(instance) => instance.shown(),
            Self::Module(_) => "a module".to_owned(),
            Self::External(name) => name.to_string(),
            Self::Method(_, name) => format!(".{name}"),
            Self::Tensor(_) => "a tensor".to_owned(),
            Self::Unknown(stop) => format!("unknown ({})", stop.construct),
        }
    }
}

impl Instance {
    /// The constant's name, or the class with its fields.
    #[must_use]
    pub fn shown(&self) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        let fields = self.class.fields.iter().zip(&self.fields).map(|(field, value)| format!("{}={}", field.name, value.shown()));
        format!("{}({})", self.class.class.name, fields.collect::<Vec<_>>().join(", "))
    }
}
