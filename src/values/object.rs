//! Abstract objects: what an expression may be.

use crate::names::{GlobalScope, ModuleId, Sym};

/// Number of an interned [`Object`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u32);

/// A running copy of a scope: the scope, what encloses it and which caller it is told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(pub u32);

/// Why nothing is known about a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// A parameter that no caller in the sources binds.
    ParameterUnbound,
    /// A string that is built while the program runs.
    ComputedString,
    /// An attribute set or read through a computed name.
    ComputedAttribute,
    /// A name that no module defines.
    Undefined,
    /// More possibilities than are kept apart.
    Widened,
    /// The value of an operation that is not followed.
    Opaque,
    /// Nothing in the sources gives it a value.
    Nothing,
}

impl Reason {
    /// As words in a report.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::ParameterUnbound => "call of a parameter that no caller binds",
            Self::ComputedString => "string built at run time",
            Self::ComputedAttribute => "attribute set or read through a computed name",
            Self::Undefined => "name that no module defines",
            Self::Widened => "more possibilities than are kept apart",
            Self::Opaque => "value of an operation that is not followed",
            Self::Nothing => "value that nothing in the sources gives",
        }
    }

    /// As one word, for machines.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::ParameterUnbound => "parameter-unbound",
            Self::ComputedString => "computed-string",
            Self::ComputedAttribute => "computed-setattr",
            Self::Undefined => "undefined",
            Self::Widened => "widened",
            Self::Opaque => "opaque",
            Self::Nothing => "nothing",
        }
    }
}

/// A built-in type, as far as its methods matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Builtin {
    /// `str`
    Str,
    /// `dict`
    Dict,
    /// `list`, `tuple`, `set`
    List,
}

/// An abstract object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Object {
    /// A module of the program.
    Module(ModuleId),
    /// A function with the scope instance that encloses it.
    Function(GlobalScope, InstanceId),
    /// A class with the scope instance that encloses it.
    Class(GlobalScope, InstanceId),
    /// An instance of a class, by allocation site; `u32::MAX` stands for all further sites.
    Instance(ObjectId, u32),
    /// A function bound to a receiver.
    Bound(ObjectId, ObjectId),
    /// `staticmethod(f)`
    StaticMethod(ObjectId),
    /// `classmethod(f)`
    ClassMethod(ObjectId),
    /// `property(f)`
    Property(ObjectId),
    /// `functools.partial(f, ...)`: the function and the call that made it.
    Partial(ObjectId, InstanceId, u32),
    /// `None`
    None,
    /// `True`, `False`
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A string.
    Str(Sym),
    /// A tuple, list or set, by the operation that made it.
    Sequence(InstanceId, u32),
    /// A file of a source, and what is read from it: `index of the source:path`.
    File(Sym),
    /// What a JSON document holds: its file, and the keys and indices that lead there, joined by `/`.
    Json(Sym, Sym),
    /// A string of which only the beginning is known.
    Prefix(Sym),
    /// A tuple as a key: its items, written one after the other.
    TupleKey(Sym),
    /// A dict, by the operation that made it.
    Dict(InstanceId, u32),
    /// A member of an enumeration.
    Member(ObjectId, Sym),
    /// Something outside the sources, by its dotted name; also what calling it gives.
    External(Sym),
    /// Something outside the sources that the profile declares to be set.
    Present(Sym),
    /// A built-in function or type.
    Builtin(Sym),
    /// A method of a built-in type.
    BuiltinMethod(Builtin, Sym, ObjectId),
    /// `super()` of a class for a receiver.
    Super(ObjectId, ObjectId),
    /// A function compiled as a GPU kernel.
    Kernel(ObjectId),
    /// A kernel with its grid: calling it launches.
    Launch(ObjectId),
    /// A registered custom operator.
    CustomOp(ObjectId),
    /// `Class.apply` of an autograd function.
    Apply(ObjectId),
    /// What `forward` of an autograd function hands to `backward`, by the class and the call of `apply`.
    Context(ObjectId, u32),
    /// What a decorator factory of the framework table returned.
    Decorator(super::models::Model, Sym),
    /// A generator or coroutine of a scope instance.
    Generator(InstanceId),
    /// An entry point of a distribution: `module:attribute`.
    EntryPoint(Sym),
    /// `globals()` of a module.
    Namespace(ModuleId),
    /// Nothing is known.
    Unknown(Reason),
}
