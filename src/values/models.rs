//! Framework models: what an external name does to the graph. A new framework is a new row.

/// What calling an external name does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Model {
    /// Returns its first argument (a decorator that changes nothing here).
    Identity,
    /// Returns a decorator that returns its argument.
    IdentityFactory,
    /// Makes its argument a GPU kernel; without one, returns a decorator that does.
    Kernel,
    /// Returns a decorator that makes its argument a custom operator, named by the first argument.
    CustomOp,
    /// Returns a decorator whose argument is not an implementation.
    NotAnImplementation,
    /// Imports the module that a string names.
    ImportModule,
    /// A function with some arguments bound.
    Partial,
    /// Holds the items of its first argument.
    Items,
    /// Returns its first argument, which remembers the second one (`wrapped`) as `__wrapped__`.
    UpdateWrapper,
    /// `functools.update_wrapper` with `wrapped` bound.
    Wraps,
    /// Binds a function to a receiver.
    MethodType,
    /// Calls its first argument with the rest.
    CallsFirst,
    /// Calls its first argument with the rest: first without gradients, again to recompute.
    Checkpoint,
    /// Reads an environment variable: first argument the name, second the default.
    Environment,
    /// Finds entry points: `group=` says which.
    EntryPoints,
    /// `load` of an entry point.
    LoadEntryPoint,
    /// A factory of dataclasses: fields come from keywords.
    Dataclass,
}

/// The table: dotted name, model.
pub const MODELS: &[(&str, Model)] = &[
    ("abc.abstractmethod", Model::Identity),
    ("contextlib.asynccontextmanager", Model::Identity),
    ("contextlib.contextmanager", Model::Identity),
    ("dataclasses.dataclass", Model::Dataclass),
    ("functools.cache", Model::Identity),
    ("functools.cached_property", Model::Identity),
    ("functools.lru_cache", Model::IdentityFactory),
    ("functools.partial", Model::Partial),
    ("functools.update_wrapper", Model::UpdateWrapper),
    ("functools.wraps", Model::Wraps),
    ("importlib.import_module", Model::ImportModule),
    ("importlib.metadata.entry_points", Model::EntryPoints),
    ("importlib.metadata.entry_points().get", Model::EntryPoints),
    ("importlib.metadata.entry_points().select", Model::EntryPoints),
    ("megatron.core.jit.jit_fuser", Model::Identity),
    ("os.environ.get", Model::Environment),
    ("os.getenv", Model::Environment),
    ("torch.compile", Model::IdentityFactory),
    ("torch.compiler.disable", Model::IdentityFactory),
    ("torch.enable_grad", Model::IdentityFactory),
    ("torch.inference_mode", Model::IdentityFactory),
    ("torch.jit.script", Model::Identity),
    ("torch.library.custom_op", Model::CustomOp),
    ("torch.library.register_fake", Model::NotAnImplementation),
    ("torch.nn.ModuleDict", Model::Items),
    ("torch.nn.ModuleList", Model::Items),
    ("torch.no_grad", Model::IdentityFactory),
    ("torch.utils.checkpoint.checkpoint", Model::Checkpoint),
    ("triton.autotune", Model::IdentityFactory),
    ("triton.heuristics", Model::IdentityFactory),
    ("triton.jit", Model::Kernel),
    ("types.MethodType", Model::MethodType),
    ("typing.cast", Model::Identity),
    ("typing.final", Model::Identity),
    ("typing.overload", Model::Identity),
    ("typing.runtime_checkable", Model::Identity),
];

/// External base classes whose instances run `forward` when called.
pub const CALLS_FORWARD: &[&str] = &["torch.nn.Module", "torch.nn.modules.module.Module"];

/// External base classes of autograd functions.
pub const AUTOGRAD: &[&str] = &["torch.autograd.Function", "torch.autograd.function.Function"];

/// External base classes of enumerations.
pub const ENUMS: &[&str] = &["enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag"];

/// The model of a dotted name.
#[must_use]
pub fn model(name: &str) -> Option<Model> {
    MODELS.binary_search_by_key(&name, |(key, _)| key).ok().map(|at| MODELS[at].1)
}

/// Whether a name is a builtin of Python.
#[must_use]
pub fn is_builtin(name: &str) -> bool {
    BUILTINS.binary_search(&name).is_ok()
}

const BUILTINS: &[&str] = &[
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "BaseException",
    "BaseExceptionGroup",
    "BlockingIOError",
    "BrokenPipeError",
    "BufferError",
    "BytesWarning",
    "ChildProcessError",
    "ConnectionAbortedError",
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "DeprecationWarning",
    "EOFError",
    "Ellipsis",
    "EncodingWarning",
    "EnvironmentError",
    "Exception",
    "ExceptionGroup",
    "FileExistsError",
    "FileNotFoundError",
    "FloatingPointError",
    "FutureWarning",
    "GeneratorExit",
    "IOError",
    "ImportError",
    "ImportWarning",
    "IndentationError",
    "IndexError",
    "InterruptedError",
    "IsADirectoryError",
    "KeyError",
    "KeyboardInterrupt",
    "LookupError",
    "MemoryError",
    "ModuleNotFoundError",
    "NameError",
    "NotADirectoryError",
    "NotImplemented",
    "NotImplementedError",
    "OSError",
    "OverflowError",
    "PendingDeprecationWarning",
    "PermissionError",
    "ProcessLookupError",
    "RecursionError",
    "ReferenceError",
    "ResourceWarning",
    "RuntimeError",
    "RuntimeWarning",
    "StopAsyncIteration",
    "StopIteration",
    "SyntaxError",
    "SyntaxWarning",
    "SystemError",
    "SystemExit",
    "TabError",
    "TimeoutError",
    "TypeError",
    "UnboundLocalError",
    "UnicodeDecodeError",
    "UnicodeEncodeError",
    "UnicodeError",
    "UnicodeTranslateError",
    "UnicodeWarning",
    "UserWarning",
    "ValueError",
    "Warning",
    "ZeroDivisionError",
    "__build_class__",
    "__debug__",
    "__import__",
    "abs",
    "aiter",
    "all",
    "anext",
    "any",
    "ascii",
    "bin",
    "bool",
    "breakpoint",
    "bytearray",
    "bytes",
    "callable",
    "chr",
    "classmethod",
    "compile",
    "complex",
    "delattr",
    "dict",
    "dir",
    "divmod",
    "enumerate",
    "eval",
    "exec",
    "exit",
    "filter",
    "float",
    "format",
    "frozenset",
    "getattr",
    "globals",
    "hasattr",
    "hash",
    "help",
    "hex",
    "id",
    "input",
    "int",
    "isinstance",
    "issubclass",
    "iter",
    "len",
    "list",
    "locals",
    "map",
    "max",
    "memoryview",
    "min",
    "next",
    "object",
    "oct",
    "open",
    "ord",
    "pow",
    "print",
    "property",
    "quit",
    "range",
    "repr",
    "reversed",
    "round",
    "set",
    "setattr",
    "slice",
    "sorted",
    "staticmethod",
    "str",
    "sum",
    "super",
    "tuple",
    "type",
    "vars",
    "zip",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_in_order_so_that_they_can_be_searched() {
        assert!(MODELS.is_sorted_by_key(|(name, _)| *name));
        assert!(BUILTINS.is_sorted());
        assert_eq!(model("triton.jit"), Some(Model::Kernel));
        assert_eq!(model("triton.jitter"), None);
    }
}
