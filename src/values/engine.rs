//! The fixpoint: nodes, subscriptions, the queue, scope instances and conditions.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::object::{InstanceId, Object, ObjectId, Reason};
use crate::names::{GlobalScope, Interner, ModuleId, Program, Sym};
use crate::syntax::{CondId, CondKind, Keep, NO_REG, Passing, Reg, ScopeKind};

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
    /// The keys.
    Keys,
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
    DictMissing {
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
    Environment {
        default: Option<NodeId>,
        dst: NodeId,
    },
}

#[derive(Default, Debug)]
pub(super) struct Node {
    pub set: Vec<ObjectId>,
    delta: Vec<ObjectId>,
    uses: Vec<Use>,
    queued: bool,
}

/// A running copy of a scope.
#[derive(Debug)]
pub(super) struct ScopeInstance {
    pub scope: GlobalScope,
    pub parent: InstanceId,
    pub context: (u32, u32),
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
}

/// No object.
pub(super) const NOBODY: ObjectId = ObjectId(u32::MAX);
/// More objects than this in one node become `Unknown(Widened)`.
const MAX_SET: usize = 160;
/// More callers than this of one function are not told apart.
pub(super) const MAX_CONTEXTS: u32 = 40;

/// The analysis and, once it has run, its result.
pub struct Engine<'p> {
    /// The module table.
    pub program: &'p Program,
    pub(super) assumptions: &'p Assumptions,
    dynamic: Interner,
    objects: Vec<Object>,
    object_ids: FxHashMap<Object, ObjectId>,
    pub(super) nodes: Vec<Node>,
    copies: FxHashSet<(u32, u32)>,
    pub(super) instances: Vec<ScopeInstance>,
    instance_ids: FxHashMap<(GlobalScope, InstanceId, (u32, u32)), InstanceId>,
    pub(super) scope_instances: Vec<Vec<InstanceId>>,
    pub(super) contexts: FxHashMap<GlobalScope, u32>,
    pub(super) fields: FxHashMap<(ObjectId, Key), NodeId>,
    globals: FxHashMap<(ModuleId, Sym), NodeId>,
    pub(super) stored_globals: FxHashSet<(ModuleId, Sym)>,
    aliases: FxHashMap<Sym, NodeId>,
    pub(super) module_instances: FxHashMap<ModuleId, InstanceId>,
    pub(super) defaults: FxHashMap<ObjectId, Vec<(u32, NodeId)>>,
    pub(super) partials: FxHashMap<ObjectId, Rc<[(Passing, NodeId)]>>,
    pub(super) bases: FxHashMap<ObjectId, Vec<NodeId>>,
    pub(super) subclasses: FxHashMap<ObjectId, Vec<ObjectId>>,
    pub(super) linear: FxHashMap<ObjectId, Rc<[ObjectId]>>,
    pub(super) class_names: FxHashMap<GlobalScope, Rc<FxHashSet<Sym>>>,
    pub(super) patched: FxHashSet<(ObjectId, Sym)>,
    pub(super) lookups: Vec<Lookup>,
    pub(super) lookups_of: FxHashMap<ObjectId, Vec<u32>>,
    pub(super) sites: FxHashMap<ObjectId, Vec<u32>>,
    pub(super) dataclasses: FxHashSet<ObjectId>,
    pub(super) operators: FxHashMap<Sym, NodeId>,
    /// Number of items of sequences that no literal wrote.
    pub(super) lengths: FxHashMap<ObjectId, i64>,
    pub(super) iterated: FxHashSet<(InstanceId, u32, NodeId, ObjectId)>,
    pub(super) calls: Vec<CallRecord>,
    site_ids: FxHashMap<(GlobalScope, u32), u32>,
    site_places: Vec<(GlobalScope, u32)>,
    /// Stores that replace a module in `sys.modules`: who stores, where, and the module's name.
    pub(super) replacements: Vec<(InstanceId, u32, Sym)>,
    cond_ops: Vec<Option<Rc<Vec<Vec<u32>>>>>,
    pending: FxHashMap<(InstanceId, CondId), Vec<(NodeId, NodeId)>>,
    queue: VecDeque<NodeId>,
    tasks: VecDeque<Task>,
    /// Resolved calls.
    pub edges: Vec<CallEdge>,
    edge_set: FxHashSet<CallEdge>,
    /// Unresolved calls.
    pub unresolved: Vec<Unresolved>,
    unresolved_set: FxHashSet<Unresolved>,
    /// Installs.
    pub installs: Vec<Install>,
    /// Owner and name of installs that hold without a condition, by dotted name, from an earlier round.
    pub(super) overridden: FxHashSet<(String, Sym)>,
    /// Which scopes made those installs: they still see what was there before.
    pub(super) overriders: FxHashSet<(GlobalScope, String, Sym)>,
    /// Nodes that were widened.
    pub widened: u64,
}

impl<'p> Engine<'p> {
    /// An engine with nothing run yet.
    #[must_use]
    pub fn new(program: &'p Program, assumptions: &'p Assumptions) -> Self {
        Self {
            program,
            assumptions,
            dynamic: Interner::default(),
            objects: Vec::new(),
            object_ids: FxHashMap::default(),
            nodes: Vec::new(),
            copies: FxHashSet::default(),
            instances: Vec::new(),
            instance_ids: FxHashMap::default(),
            scope_instances: vec![Vec::new(); program.scope_count()],
            contexts: FxHashMap::default(),
            fields: FxHashMap::default(),
            globals: FxHashMap::default(),
            stored_globals: FxHashSet::default(),
            aliases: FxHashMap::default(),
            module_instances: FxHashMap::default(),
            defaults: FxHashMap::default(),
            partials: FxHashMap::default(),
            bases: FxHashMap::default(),
            subclasses: FxHashMap::default(),
            linear: FxHashMap::default(),
            class_names: FxHashMap::default(),
            patched: FxHashSet::default(),
            lookups: Vec::new(),
            lookups_of: FxHashMap::default(),
            sites: FxHashMap::default(),
            dataclasses: FxHashSet::default(),
            operators: FxHashMap::default(),
            lengths: FxHashMap::default(),
            iterated: FxHashSet::default(),
            calls: Vec::new(),
            site_ids: FxHashMap::default(),
            site_places: Vec::new(),
            replacements: Vec::new(),
            cond_ops: vec![None; program.scope_count()],
            pending: FxHashMap::default(),
            queue: VecDeque::new(),
            tasks: VecDeque::new(),
            edges: Vec::new(),
            edge_set: FxHashSet::default(),
            unresolved: Vec::new(),
            unresolved_set: FxHashSet::default(),
            installs: Vec::new(),
            overridden: FxHashSet::default(),
            overriders: FxHashSet::default(),
            widened: 0,
        }
    }

    // --- strings and objects -------------------------------------------------------------------------------------------------------

    /// Number of a text, also of one that no module contains.
    pub(super) fn intern(&mut self, text: &str) -> Sym {
        if let Some(sym) = self.program.strings.find(text) {
            return sym;
        }
        let sym = self.dynamic.intern(text);
        Sym(sym.0 | 1 << 31)
    }

    /// Text of a number.
    #[must_use]
    pub fn text(&self, sym: Sym) -> &str {
        if sym.0 >> 31 == 1 { self.dynamic.text(Sym(sym.0 & !(1 << 31))) } else { self.program.strings.text(sym) }
    }

    pub(super) fn object(&mut self, object: Object) -> ObjectId {
        if let Some(id) = self.object_ids.get(&object) {
            return *id;
        }
        let id = ObjectId(u32::try_from(self.objects.len()).unwrap_or(u32::MAX));
        self.objects.push(object);
        self.object_ids.insert(object, id);
        id
    }

    /// The object with this number.
    #[must_use]
    pub fn get(&self, id: ObjectId) -> Object {
        self.objects.get(id.0 as usize).copied().unwrap_or(Object::Unknown(Reason::Opaque))
    }

    // --- nodes ---------------------------------------------------------------------------------------------------------------------

    pub(super) fn fresh(&mut self) -> NodeId {
        self.nodes.push(Node::default());
        NodeId(u32::try_from(self.nodes.len() - 1).unwrap_or(u32::MAX))
    }

    pub(super) fn set(&self, node: NodeId) -> &[ObjectId] {
        &self.nodes[node.0 as usize].set
    }

    pub(super) fn add(&mut self, node: NodeId, object: ObjectId) {
        let slot = &mut self.nodes[node.0 as usize];
        let Err(at) = slot.set.binary_search(&object) else { return };
        if slot.set.len() >= MAX_SET {
            if slot.set.len() == MAX_SET {
                self.widened += 1;
                let widened = self.object(Object::Unknown(Reason::Widened));
                let slot = &mut self.nodes[node.0 as usize];
                if let Err(at) = slot.set.binary_search(&widened) {
                    slot.set.insert(at, widened);
                    slot.delta.push(widened);
                }
            }
        } else {
            slot.set.insert(at, object);
            slot.delta.push(object);
        }
        let slot = &mut self.nodes[node.0 as usize];
        if !slot.queued && !slot.delta.is_empty() {
            slot.queued = true;
            self.queue.push_back(node);
        }
    }

    pub(super) fn add_object(&mut self, node: NodeId, object: Object) {
        let id = self.object(object);
        self.add(node, id);
    }

    pub(super) fn copy(&mut self, from: NodeId, to: NodeId) {
        if from != to && self.copies.insert((from.0, to.0)) {
            self.subscribe(from, Use::Copy(to));
        }
    }

    pub(super) fn subscribe(&mut self, node: NodeId, what: Use) {
        let slot = &mut self.nodes[node.0 as usize];
        slot.uses.push(what);
        if slot.set.is_empty() {
            return;
        }
        let settled: Vec<ObjectId> = slot.set.iter().copied().filter(|object| !slot.delta.contains(object)).collect();
        for object in settled {
            self.deliver(what, object);
        }
    }

    pub(super) fn field(&mut self, object: ObjectId, key: Key) -> NodeId {
        if let Some(node) = self.fields.get(&(object, key)) {
            return *node;
        }
        let node = self.fresh();
        self.fields.insert((object, key), node);
        node
    }

    /// Node of an item; whatever goes in also goes into the node of all items, and its key into the node of keys.
    pub(super) fn item(&mut self, container: ObjectId, key: ObjectId) -> NodeId {
        if let Some(node) = self.fields.get(&(container, Key::Item(key))) {
            return *node;
        }
        let node = self.field(container, Key::Item(key));
        let all = self.field(container, Key::All);
        self.copy(node, all);
        let keys = self.field(container, Key::Keys);
        self.add(keys, key);
        node
    }

    pub(super) fn element(&mut self, container: ObjectId) -> NodeId {
        if let Some(node) = self.fields.get(&(container, Key::Element)) {
            return *node;
        }
        let node = self.field(container, Key::Element);
        let all = self.field(container, Key::All);
        self.copy(node, all);
        node
    }

    pub(super) fn global(&mut self, module: ModuleId, name: Sym) -> NodeId {
        if let Some(node) = self.globals.get(&(module, name)) {
            return *node;
        }
        let node = self.fresh();
        self.globals.insert((module, name), node);
        node
    }

    /// Node of what replaced a module in `sys.modules`.
    pub(super) fn alias(&mut self, module: Sym) -> NodeId {
        if let Some(node) = self.aliases.get(&module) {
            return *node;
        }
        let node = self.fresh();
        self.aliases.insert(module, node);
        node
    }

    pub(super) fn reg(&self, inst: InstanceId, reg: Reg) -> NodeId {
        NodeId(self.instances[inst.0 as usize].base + reg)
    }

    // --- scope instances and conditions --------------------------------------------------------------------------------------------

    pub(super) fn instance(&mut self, scope: GlobalScope, parent: InstanceId, context: (u32, u32), class: Option<ObjectId>) -> InstanceId {
        if let Some(id) = self.instance_ids.get(&(scope, parent, context)) {
            return *id;
        }
        let facts = self.program.scope(scope);
        let base = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.nodes.resize_with(self.nodes.len() + facts.registers as usize, Node::default);
        let result = self.fresh();
        let yields = self.fresh();
        let id = InstanceId(u32::try_from(self.instances.len()).unwrap_or(u32::MAX));
        let active = vec![false; facts.conds.len().max(1)];
        self.instances.push(ScopeInstance { scope, parent, context, base, result, yields, class, active, unbound: false });
        self.instance_ids.insert((scope, parent, context), id);
        self.scope_instances[scope.0 as usize].push(id);
        self.tasks.push_back(Task::Activate(id, 0));
        id
    }

    /// Makes a module's body run.
    pub(super) fn run_module(&mut self, module: ModuleId) {
        if self.module_instances.contains_key(&module) {
            return;
        }
        let scope = self.program.global_scope(module, 0);
        let inst = self.instance(scope, InstanceId(u32::MAX), (0, 0), None);
        self.module_instances.insert(module, inst);
    }

    /// The running copy of `scope` that encloses `inst`.
    pub(super) fn enclosing(&self, inst: InstanceId, scope: GlobalScope) -> Option<InstanceId> {
        let mut at = self.instances[inst.0 as usize].parent;
        while let Some(found) = self.instances.get(at.0 as usize) {
            if found.scope == scope {
                return Some(at);
            }
            at = found.parent;
        }
        None
    }

    pub(super) fn ops_by_cond(&mut self, scope: GlobalScope) -> Rc<Vec<Vec<u32>>> {
        if let Some(ops) = &self.cond_ops[scope.0 as usize] {
            return ops.clone();
        }
        let facts = self.program.scope(scope);
        let mut out = vec![Vec::new(); facts.conds.len().max(1)];
        for (at, op) in facts.ops.iter().enumerate() {
            out[op.cond as usize].push(u32::try_from(at).unwrap_or(u32::MAX));
        }
        let out = Rc::new(out);
        self.cond_ops[scope.0 as usize] = Some(out.clone());
        out
    }

    fn activate(&mut self, inst: InstanceId, cond: CondId) {
        let record = &mut self.instances[inst.0 as usize];
        if std::mem::replace(&mut record.active[cond as usize], true) {
            return;
        }
        let scope = record.scope;
        for op in self.ops_by_cond(scope)[cond as usize].iter() {
            self.install(inst, *op);
        }
        for (from, to) in self.pending.remove(&(inst, cond)).unwrap_or_default() {
            self.copy(from, to);
        }
        let program = self.program;
        for (at, child) in program.scope(scope).conds.iter().enumerate().skip(1).filter(|(_, child)| child.parent == cond) {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            match child.kind {
                CondKind::Always => {}
                CondKind::Test(reg, _) => {
                    let node = self.reg(inst, reg);
                    self.subscribe(node, Use::Cond(inst, at));
                }
                CondKind::Handler(number, place) => {
                    if !self.import_cannot_fail(scope, number, place) {
                        self.tasks.push_back(Task::Activate(inst, at));
                    }
                }
                CondKind::Maybe => self.tasks.push_back(Task::Activate(inst, at)),
            }
        }
    }

    /// Whether a handler only guards imports of modules that the pinned sources have.
    fn import_cannot_fail(&self, scope: GlobalScope, number: u32, place: u32) -> bool {
        use crate::syntax::OpKind;
        let facts = self.program.scope(scope);
        let Some(attempt) = facts.tries.get(number as usize) else { return false };
        let Some(handler) = attempt.handlers.get(place as usize) else { return false };
        let only_imports = handler.types.iter().all(|kind| matches!(kind.as_str(), "ImportError" | "ModuleNotFoundError"));
        if handler.types.is_empty() || !only_imports {
            return false;
        }
        let id = self.program.module_of(scope);
        let module = self.program.module(id);
        let mut imports = 0;
        let found = facts.ops[attempt.body.0 as usize..attempt.body.1 as usize].iter().all(|op| {
            let (name, level, member) = match &op.kind {
                OpKind::Import { module, .. } => (*module, 0, None),
                OpKind::ImportFrom { module, level, name, .. } => (*module, *level, Some(*name)),
                OpKind::Call { .. } | OpKind::ImportStar { .. } | OpKind::Raise(_) => return false,
                _ => return true,
            };
            imports += 1;
            let Some(target) = self.program.absolute(id, module.facts.name(name), level) else { return false };
            let Some(found) = self.program.strings.find(&target).and_then(|sym| self.program.find(sym, module.source)) else {
                return false;
            };
            let found = self.program.module(found);
            member.is_none_or(|member| found.bound.contains(&module.sym(member)))
        });
        found && imports > 0
    }

    pub(super) fn is_active(&self, inst: InstanceId, cond: CondId) -> bool {
        self.instances[inst.0 as usize].active[cond as usize]
    }

    pub(super) fn phi(&mut self, inst: InstanceId, from: Reg, cond: CondId, to: NodeId) {
        if from == NO_REG {
            return;
        }
        let from = self.reg(inst, from);
        if self.is_active(inst, cond) {
            self.copy(from, to);
        } else {
            self.pending.entry((inst, cond)).or_default().push((from, to));
        }
    }

    // --- the loop ------------------------------------------------------------------------------------------------------------------

    pub(super) fn later(&mut self, task: Task) {
        self.tasks.push_back(task);
    }

    /// Works until nothing changes.
    pub fn settle(&mut self) {
        loop {
            if let Some(task) = self.tasks.pop_front() {
                match task {
                    Task::Activate(inst, cond) => self.activate(inst, cond),
                    Task::Lookup(lookup) => self.run_lookup(lookup),
                }
                continue;
            }
            let Some(node) = self.queue.pop_front() else { break };
            let slot = &mut self.nodes[node.0 as usize];
            slot.queued = false;
            let delta = std::mem::take(&mut slot.delta);
            let count = slot.uses.len();
            for at in 0..count {
                let what = self.nodes[node.0 as usize].uses[at];
                for object in &delta {
                    self.deliver(what, *object);
                }
            }
        }
    }

    fn deliver(&mut self, what: Use, object: ObjectId) {
        match what {
            Use::Copy(to) => self.add(to, object),
            Use::Keep(keep, to) => {
                if self.keeps(keep, object) {
                    self.add(to, object);
                }
            }
            Use::Cond(inst, cond) => {
                if self.is_active(inst, cond) {
                    return;
                }
                let scope = self.instances[inst.0 as usize].scope;
                if let CondKind::Test(_, wanted) = self.program.scope(scope).conds[cond as usize].kind
                    && self.may_be(object, wanted)
                {
                    self.tasks.push_back(Task::Activate(inst, cond));
                }
            }
            Use::Again(inst, op) => self.evaluate(inst, op),
            Use::Attr { name, dst, from, op } => self.load_attr(object, name, dst, from, op),
            Use::StoreAttr { name, src, from, op } => self.store_attr(object, name, src, from, op),
            Use::Bind { receiver, class, dst, call } => self.bind(object, receiver, class, dst, call),
            Use::Call(call) => self.apply(call, object, None),
            Use::Iterate(call) => self.iterate(call, object),
            Use::Enter(call) => self.enter_context(call, object),
            Use::Await(dst) => self.await_value(object, dst),
            Use::Raise(call) => self.raise(call, object),
            Use::Spread { inst, start } => self.spread(object, inst, start),
            Use::SpreadKey { inst, start, container } => self.spread_key(object, inst, start, container),
            Use::SpreadNamed { inst } => {
                if matches!(self.get(object), Object::Dict(..)) {
                    let keys = self.field(object, Key::Keys);
                    self.subscribe(keys, Use::SpreadNamedKey { inst, container: object });
                }
            }
            Use::SpreadNamedKey { inst, container } => self.spread_named(object, inst, container),
            Use::Wrap(kind, dst) => self.wrap(kind, object, dst),
            Use::AgainCall(call) => self.again_call(call),
            Use::BaseChanged(class) => self.base_changed(class, object),
            Use::CopyItems { from, to } => {
                let source = self.item(from, object);
                let target = self.item(to, object);
                self.copy(source, target);
            }
            Use::CopyContainer { to } => self.copy_container(object, to),
            Use::Again2(call, name) => self.evaluate_builtin(call, name),
            Use::SuperOf { class, dst } => self.super_of(class, object, dst),
            Use::SuperFor { receiver, dst } => self.subscribe(receiver, Use::SuperOf { class: object, dst }),
            Use::Next { name, method, call } => match self.get(object) {
                Object::Generator(_) | Object::Sequence(..) | Object::Dict(..) => self.iterate(call, object),
                _ => {
                    let CallRecord { caller, op, .. } = self.calls[call as usize];
                    self.load_attr(object, name, method, caller, op);
                }
            },
            Use::CallFunction(call) => {
                if matches!(self.get(object), Object::Function(..) | Object::Bound(..) | Object::Class(..) | Object::Partial(..)) {
                    self.apply(call, object, None);
                }
            }
            Use::IterateOther(call) => {
                if !matches!(self.get(object), Object::Sequence(..)) {
                    self.iterate(call, object);
                }
            }
            Use::StringMethod { call, name, owner } => self.string_method(call, name, owner),
            Use::DictGet { call, owner } => self.dict_get(call, owner, object),
            Use::DictMissing { call, owner } => {
                let keys = self.field(owner, Key::Keys);
                if !self.set(keys).contains(&object) {
                    let dst = self.calls[call as usize].dst;
                    match self.argument(call, 1) {
                        Some(default) => self.copy(default, dst),
                        None => self.add_object(dst, Object::None),
                    }
                }
            }
            Use::Partial { call } => self.make_partial(call, object),
            Use::MethodType { function, receiver, dst } => self.bind_methods(function, receiver, dst),
            Use::ImportNamed(call) => self.import_one(call, object),
            Use::Environment { default, dst } => self.environment(object, default, dst),
        }
    }

    /// Everything in one container also is in another.
    pub(super) fn copy_container(&mut self, from: ObjectId, to: ObjectId) {
        if from == to || !matches!(self.get(from), Object::Dict(..) | Object::Sequence(..)) {
            return;
        }
        let keys = self.field(from, Key::Keys);
        self.subscribe(keys, Use::CopyItems { from, to });
        let source = self.element(from);
        let target = self.element(to);
        self.copy(source, target);
    }

    // --- records -------------------------------------------------------------------------------------------------------------------

    pub(super) fn site(&mut self, inst: InstanceId, op: u32) -> u32 {
        let scope = self.instances[inst.0 as usize].scope;
        let next = u32::try_from(self.site_ids.len() + 1).unwrap_or(u32::MAX);
        let site = *self.site_ids.entry((scope, op)).or_insert(next);
        if site == next {
            self.site_places.push((scope, op));
        }
        site
    }

    pub(super) fn record(&mut self, edge: CallEdge) {
        if self.edge_set.insert(edge) {
            self.edges.push(edge);
        }
    }

    pub(super) fn record_unresolved(&mut self, unresolved: Unresolved) {
        if self.unresolved_set.insert(unresolved) {
            self.unresolved.push(unresolved);
        }
    }

    pub(super) fn new_call(&mut self, record: CallRecord) -> u32 {
        self.calls.push(record);
        u32::try_from(self.calls.len() - 1).unwrap_or(u32::MAX)
    }

    // --- running -------------------------------------------------------------------------------------------------------------------

    /// Runs the bodies of these modules and what they reach.
    pub fn run_modules(&mut self, modules: &[ModuleId]) {
        for module in modules {
            self.run_module(*module);
        }
        self.settle();
    }

    /// Enters functions that nothing known calls, with unknown arguments: first those that no other such function names, then the rest.
    pub fn run_uncalled(&mut self, wanted: impl Fn(ModuleId) -> bool) {
        for round in 0..2 {
            let mut open: Vec<GlobalScope> = Vec::new();
            for at in 0..u32::try_from(self.program.scope_count()).unwrap_or(0) {
                let scope = GlobalScope(at);
                let facts = self.program.scope(scope);
                let function = matches!(facts.kind, ScopeKind::Function | ScopeKind::Lambda);
                let module = self.program.module_of(scope);
                if function && self.module_instances.contains_key(&module) && wanted(module) && self.scope_instances[at as usize].is_empty()
                {
                    open.push(scope);
                }
            }
            let named: FxHashSet<Sym> = if round == 0 { self.names_used_in(&open) } else { FxHashSet::default() };
            for scope in open {
                let module = self.program.module(self.program.module_of(scope));
                let facts = self.program.scope(scope);
                let name = module.sym(facts.name);
                if !named.contains(&name) || module.facts.name(facts.name).starts_with("__") {
                    self.enter_unbound(scope);
                }
            }
            self.settle();
        }
        // Functions defined inside functions that were just entered.
        loop {
            let mut entered = false;
            for at in 0..u32::try_from(self.program.scope_count()).unwrap_or(0) {
                let scope = GlobalScope(at);
                let kind = self.program.scope(scope).kind;
                let module = self.program.module_of(scope);
                if matches!(kind, ScopeKind::Function | ScopeKind::Lambda)
                    && self.module_instances.contains_key(&module)
                    && wanted(module)
                    && self.scope_instances[at as usize].is_empty()
                {
                    entered |= self.enter_unbound(scope);
                }
            }
            if !entered {
                break;
            }
            self.settle();
        }
    }

    fn names_used_in(&self, scopes: &[GlobalScope]) -> FxHashSet<Sym> {
        use crate::syntax::OpKind;
        let mut names = FxHashSet::default();
        for scope in scopes {
            let module = self.program.module(self.program.module_of(*scope));
            let facts = self.program.scope(*scope);
            for op in &facts.ops {
                if let OpKind::LoadGlobal(_, name) | OpKind::LoadAttr { name, .. } = &op.kind
                    && *name != facts.name
                {
                    names.insert(module.sym(*name));
                }
            }
        }
        names
    }

    /// Enters every known object of a function with unknown arguments; false if its definition was never reached.
    fn enter_unbound(&mut self, scope: GlobalScope) -> bool {
        self.enter_apart(scope, (0, 0))
    }

    /// Enters what tells callers apart once more with unknown arguments, apart from the callers that are known: anyone may call it.
    pub fn run_public(&mut self, wanted: impl Fn(ModuleId) -> bool) {
        for at in 0..u32::try_from(self.program.scope_count()).unwrap_or(0) {
            let scope = GlobalScope(at);
            let facts = self.program.scope(scope);
            let known = self.scope_instances[at as usize].iter().any(|inst| self.instances[inst.0 as usize].unbound);
            if facts.kind == ScopeKind::Function && facts.polymorphic && !known && wanted(self.program.module_of(scope)) {
                self.enter_apart(scope, (u32::MAX, 0));
            }
        }
        self.settle();
    }

    fn enter_apart(&mut self, scope: GlobalScope, context: (u32, u32)) -> bool {
        let module = self.program.module_of(scope);
        let parent_scope = self.program.global_scope(module, self.program.scope(scope).parent);
        let parents: Vec<InstanceId> = self.scope_instances[parent_scope.0 as usize].clone();
        let mut entered = false;
        for parent in parents {
            let Some(function) = self.object_ids.get(&Object::Function(scope, parent)).copied() else { continue };
            entered = true;
            let inst = self.instance(scope, parent, context, None);
            self.instances[inst.0 as usize].unbound = true;
            self.bind_unknown(function, inst);
        }
        entered
    }

    /// Enters a function by its dotted name as an entry point: its parameters are unknown except for their defaults.
    pub fn enter(&mut self, scope: GlobalScope) -> bool {
        self.enter_unbound(scope)
    }
}

impl Engine<'_> {
    /// The scope of a running copy.
    #[must_use]
    pub fn scope_of(&self, inst: InstanceId) -> GlobalScope {
        self.instances[inst.0 as usize].scope
    }

    /// Scopes that run at least once, in order.
    pub fn entered_scopes(&self) -> impl Iterator<Item = GlobalScope> + '_ {
        let all = self.scope_instances.iter().enumerate();
        all.filter(|(_, running)| !running.is_empty()).map(|(at, _)| GlobalScope(u32::try_from(at).unwrap_or(u32::MAX)))
    }
}

/// Questions that routes and rules ask of the result.
impl Engine<'_> {
    /// Whether a test's register may also come out the other way.
    #[must_use]
    pub fn is_undecided(&self, inst: InstanceId, reg: Reg, wanted: bool) -> bool {
        self.set(self.reg(inst, reg)).iter().any(|object| self.may_be(*object, !wanted))
    }

    /// Whether a running copy was only entered because nothing known calls it.
    #[must_use]
    pub fn is_unbound(&self, inst: InstanceId) -> bool {
        self.instances[inst.0 as usize].unbound
    }

    /// Whether a running copy stands for callers that the sources do not have, or is called from one that does.
    #[must_use]
    pub fn is_public(&self, inst: InstanceId) -> bool {
        let (site, outer) = self.instances[inst.0 as usize].context;
        site == u32::MAX || outer == u32::MAX
    }

    /// Running copies of a scope, in the order in which they came up.
    #[must_use]
    pub fn copies_of(&self, scope: GlobalScope) -> &[InstanceId] {
        &self.scope_instances[scope.0 as usize]
    }

    /// Objects in a register.
    #[must_use]
    pub fn objects_in(&self, inst: InstanceId, reg: Reg) -> Vec<ObjectId> {
        if reg == NO_REG { Vec::new() } else { self.set(self.reg(inst, reg)).to_vec() }
    }

    /// Whether the branch of an operation runs in a running copy.
    #[must_use]
    pub fn runs(&self, inst: InstanceId, op: u32) -> bool {
        let scope = self.scope_of(inst);
        self.is_active(inst, self.program.scope(scope).ops[op as usize].cond)
    }

    /// Values of an enumeration member.
    pub fn member_values(&mut self, class: ObjectId, name: Sym) -> Vec<ObjectId> {
        let node = self.field(class, Key::Attr(name));
        self.set(node).to_vec()
    }

    /// Whether a class is an exception by its name or its bases' names.
    #[must_use]
    pub fn is_exception(&self, class: GlobalScope) -> bool {
        let name = self.program.qualified(class);
        name.ends_with("Error") || name.ends_with("Exception")
    }

    /// Whether what a call calls came out of a string: its callee is a value returned by other code, not a name of a class.
    #[must_use]
    pub fn came_from_string(&self, scope: GlobalScope, op: u32) -> bool {
        use crate::syntax::OpKind;
        let facts = self.program.scope(scope);
        let OpKind::Call { func, .. } = facts.ops[op as usize].kind else { return false };
        let mut reg = func;
        for op in facts.ops.iter().rev() {
            match &op.kind {
                OpKind::Filter(dst, src, _) | OpKind::Move(dst, src) if *dst == reg => reg = *src,
                OpKind::Call { dst, .. } if *dst == reg => return true,
                OpKind::LoadItem { dst, .. } if *dst == reg => return true,
                _ => {}
            }
        }
        false
    }
}

/// Installs from one round to the next.
impl Engine<'_> {
    /// Installs of an earlier round: after them, readers get the replacement.
    pub fn override_with(&mut self, installs: impl Iterator<Item = (String, String, GlobalScope)>) {
        for (owner, name, installer) in installs {
            let name = self.intern(&name);
            self.overridden.insert((owner.clone(), name));
            self.overriders.insert((installer, owner, name));
        }
    }

    /// Installs on classes that hold without an undecided condition, by dotted name of the owner and attribute.
    #[must_use]
    pub fn certain_installs(&self) -> std::collections::BTreeSet<(String, String, GlobalScope)> {
        let replaceable = |owner| matches!(self.get(owner), Object::Class(..) | Object::Module(_) | Object::Instance(..));
        let certain = self.installs.iter().filter(|install| replaceable(install.owner) && self.is_certain(install.installer, install.op));
        let installs =
            certain.map(|install| (self.owner_key(install.owner), self.text(install.name).to_owned(), self.scope_of(install.installer)));
        let replaced = self.replacements.iter().filter(|(inst, op, _)| self.is_certain(*inst, *op));
        let nobody = GlobalScope(u32::MAX);
        installs.chain(replaced.map(|(_, _, module)| (self.text(*module).to_owned(), "sys.modules".to_owned(), nobody))).collect()
    }

    /// Name of an owner that means the same object in every round: for an instance, with the place that makes it.
    #[must_use]
    pub fn owner_key(&self, owner: ObjectId) -> String {
        match self.get(owner) {
            Object::Instance(class, site) => match self.site_places.get((site as usize).wrapping_sub(1)) {
                Some((scope, op)) => format!("{}@{}:{op}", self.owner_name(class), scope.0),
                None => String::new(),
            },
            _ => self.owner_name(owner),
        }
    }

    /// Whether no undecided condition stands above an operation.
    #[must_use]
    pub fn is_certain(&self, inst: InstanceId, op: u32) -> bool {
        let scope = self.scope_of(inst);
        let facts = self.program.scope(scope);
        let mut at = facts.ops[op as usize].cond;
        while at != 0 {
            let cond = facts.conds[at as usize];
            match cond.kind {
                CondKind::Test(reg, wanted) if self.is_undecided(inst, reg, wanted) => return false,
                CondKind::Handler(..) => return false,
                _ => {}
            }
            at = cond.parent;
        }
        true
    }
}

/// Looks at what no branch ran.
impl Engine<'_> {
    /// Objects that a module's name may hold.
    #[must_use]
    pub fn global_objects(&self, module: ModuleId, name: Sym) -> Vec<ObjectId> {
        self.globals.get(&(module, name)).map(|node| self.set(*node).to_vec()).unwrap_or_default()
    }

    /// Whether a class has a base outside the program, which may define anything.
    #[must_use]
    pub fn has_open_base(&self, class: ObjectId) -> bool {
        let order = self.linear.get(&class);
        order.is_some_and(|order| {
            order.iter().any(|base| match self.get(*base) {
                Object::External(name) | Object::Present(name) => {
                    !matches!(self.text(name), "abc.ABC" | "typing.Generic" | "typing.Protocol")
                }
                _ => false,
            })
        })
    }
}
