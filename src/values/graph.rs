//! The plain data of the analysis: nodes, subscriptions, edges, installs and call records.

use std::collections::BTreeMap;
use std::rc::Rc;

use smallvec::SmallVec;

use super::object::{InstanceId, ObjectId, Reason};
use crate::names::{GlobalScope, Sym};
use crate::syntax::{CondId, Grad, Keep, Passing};

/// A set of objects that something may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(super) u32);

/// What the profile declares.
#[derive(Clone, Debug, Default)]
pub struct Assumptions {
    /// Values of dotted names.
    pub known: BTreeMap<String, Known>,
    /// Environment variables; one that is absent is undecided.
    pub environment: BTreeMap<String, Known>,
    /// Entry points of the installed distributions by group: `module:attribute`.
    pub entry_points: BTreeMap<String, Vec<String>>,
    /// Strings of JSON documents by `index of the source:path`, and by the keys and indices that lead to them, joined by `/`.
    pub documents: BTreeMap<String, BTreeMap<String, String>>,
    /// Dotted paths that attributes of parsed arguments hold.
    pub arguments: BTreeMap<String, Given>,
}

/// What a flag is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Dotted paths, in order.
    pub paths: Vec<String>,
    /// Whether it may also be left out.
    pub perhaps: bool,
}

pub use crate::profile::Known;

/// How a call reaches its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeKind {
    /// A plain call.
    Call,
    /// The application of a decorator.
    Decorator,
    /// `__init__` of an instantiated class.
    Instantiation,
    /// A module's or object's `__getattr__`.
    LazyExport,
    /// A property.
    Property,
    /// `Function.apply` to `forward`.
    AutogradForward,
    /// `Function.apply` to `backward`, later.
    AutogradBackward,
    /// A registered custom operator.
    CustomOp,
    /// `kernel[grid](...)`.
    KernelLaunch,
    /// An implicit protocol call (`__iter__`, `__next__`, `__enter__`, `__exit__`).
    Protocol,
    /// A function handed to the framework, which calls it.
    Callback,
    /// The first pass of a checkpointed function, which records nothing for the backward pass.
    CheckpointPass,
}

impl EdgeKind {
    /// The word used in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Decorator => "decorator",
            Self::Instantiation => "instantiation",
            Self::LazyExport => "lazy-export",
            Self::Property => "property",
            Self::AutogradForward => "autograd-forward",
            Self::AutogradBackward => "autograd-backward",
            Self::CustomOp => "custom-op",
            Self::KernelLaunch => "kernel-launch",
            Self::Protocol => "protocol",
            Self::Callback => "callback",
            Self::CheckpointPass => "checkpoint-pass",
        }
    }
}

/// Where a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A function or lambda of the program.
    Scope(GlobalScope),
    /// A class without its own `__init__`.
    Class(GlobalScope),
    /// A dotted name outside the program.
    External(Sym),
    /// A builtin.
    Builtin(Sym),
    /// A method of a built-in type.
    BuiltinMethod(super::object::Builtin, Sym),
}

/// One resolved call of one running copy of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallEdge {
    /// Running copy that calls.
    pub caller: InstanceId,
    /// Operation in its scope.
    pub op: u32,
    /// Where it goes.
    pub target: Target,
    /// How.
    pub kind: EdgeKind,
    /// Running copy that is called; `InstanceId(u32::MAX)` outside the program.
    pub callee: InstanceId,
}

/// A call that stayed unresolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unresolved {
    /// Running copy that calls.
    pub caller: InstanceId,
    /// Operation in its scope.
    pub op: u32,
    /// Why.
    pub reason: Reason,
}

/// A store to an attribute of something that other code owns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Install {
    /// Running copy that stores.
    pub installer: InstanceId,
    /// Operation in its scope.
    pub op: u32,
    /// Owner: class, module or external name.
    pub owner: ObjectId,
    /// Attribute.
    pub name: Sym,
    /// Whether the owner defines the attribute itself or through a base.
    pub target_exists: bool,
}

/// A place in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key {
    /// Attribute as the object's own code defines it.
    Attr(Sym),
    /// Attribute as other code replaced it.
    Patched(Sym),
    /// Item under a known key.
    Item(ObjectId),
    /// Items stored under unknown keys.
    Element,
    /// Every item.
    All,
    /// Every item, as one that reads without knowing the key gets them.
    Any,
    /// The keys.
    Keys,
    /// Something, if the container is stored into after it was made.
    Stored,
}

/// What happens when a node gains an object.
#[derive(Clone, Copy, Debug)]
pub(super) enum Use {
    Copy(NodeId),
    Keep(Keep, NodeId),
    Cond(InstanceId, CondId),
    /// Evaluate an operation again: it depends on several nodes.
    Again(InstanceId, u32),
    Attr {
        name: Sym,
        dst: NodeId,
        from: InstanceId,
        op: u32,
    },
    StoreAttr {
        name: Sym,
        src: NodeId,
        from: InstanceId,
        op: u32,
    },
    Bind {
        receiver: ObjectId,
        class: ObjectId,
        dst: NodeId,
        call: u32,
    },
    Call(u32),
    Iterate(u32),
    Enter(u32),
    Await(NodeId),
    Raise(u32),
    /// Positional arguments from a sequence, from this parameter on.
    Spread {
        inst: InstanceId,
        start: u32,
    },
    SpreadKey {
        inst: InstanceId,
        start: u32,
        container: ObjectId,
    },
    /// Keyword arguments from a dict.
    SpreadNamed {
        inst: InstanceId,
    },
    SpreadNamedKey {
        inst: InstanceId,
        container: ObjectId,
    },
    /// Wrap functions: 0 kernel, 1 custom op, 2 static method, 3 class method, 4 property.
    Wrap(u8, NodeId),
    /// Values of `sys.modules[...]` stores and the like: handled again with the call.
    AgainCall(u32),
    BaseChanged(ObjectId),
    /// All keys of one container become keys of another.
    CopyItems {
        from: ObjectId,
        to: ObjectId,
    },
    /// A call of a function that takes paths.
    FileCall {
        call: u32,
        name: Sym,
    },
    /// The item under a key that begins so.
    ItemOfPrefix {
        container: ObjectId,
        begun: Sym,
        dst: NodeId,
    },
    CopyContainer {
        to: ObjectId,
    },
    /// A builtin that reads its arguments' values.
    Again2(u32, Sym),
    SuperOf {
        class: ObjectId,
        dst: NodeId,
    },
    SuperFor {
        receiver: NodeId,
        dst: NodeId,
    },
    /// `next(x)`.
    Next {
        name: Sym,
        method: NodeId,
        call: u32,
    },
    /// Call functions only: arguments of `map`, `key=`.
    CallFunction(u32),
    /// Iterate over what is not a sequence or dict.
    IterateOther(u32),
    StringMethod {
        call: u32,
        name: Sym,
        owner: ObjectId,
    },
    DictGet {
        call: u32,
        owner: ObjectId,
    },
    Partial {
        call: u32,
    },
    MethodType {
        function: NodeId,
        receiver: NodeId,
        dst: NodeId,
    },
    ImportNamed(u32),
    EntryPoints(u32),
    Environment {
        default: Option<NodeId>,
        dst: NodeId,
    },
}

#[derive(Default, Debug)]
pub(super) struct Node {
    /// Objects in order of arrival; never more than a few dozen.
    pub set: SmallVec<[ObjectId; 4]>,
    /// How many of them every use has got.
    pub settled: u32,
    pub uses: Vec<Use>,
    /// Numbers and strings among the objects.
    pub texts: u8,
    /// Names outside the sources among them.
    pub data: u8,
    /// Containers among them.
    pub containers: u8,
    /// Those that stand for many.
    pub joined: u8,
    /// Whether something had no room.
    pub widened: bool,
    /// Whether containers that are too many are put into one.
    pub joins: bool,
    pub queued: bool,
}

/// What tells running copies of a scope apart: the call that leads here, the one that led to the caller, the grad mode. Zeros stand for all
/// callers, `u32::MAX` for callers that the sources do not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Caller {
    pub site: u32,
    pub outer: u32,
    pub grad: Grad,
}

/// A running copy of a scope.
#[derive(Debug)]
pub(super) struct ScopeInstance {
    pub scope: GlobalScope,
    pub parent: InstanceId,
    pub caller: Caller,
    pub base: u32,
    pub result: NodeId,
    pub yields: NodeId,
    pub class: Option<ObjectId>,
    pub active: Vec<bool>,
    /// Whether it was only entered because nothing known calls it.
    pub unbound: bool,
}

/// A call as it is evaluated: from where, with which arguments, into which node.
#[derive(Clone, Debug)]
pub(super) struct CallRecord {
    pub caller: InstanceId,
    pub op: u32,
    pub args: Rc<[(Passing, NodeId)]>,
    pub dst: NodeId,
    pub kind: EdgeKind,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Lookup {
    pub class: ObjectId,
    pub after: Option<ObjectId>,
    pub name: Sym,
    pub dst: NodeId,
    pub receiver: ObjectId,
    pub from: InstanceId,
    pub op: u32,
}

pub(super) enum Task {
    Activate(InstanceId, CondId),
    Lookup(u32),
    Join(ObjectId, ObjectId),
}
