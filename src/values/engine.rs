//! The fixpoint: nodes, subscriptions, the queue, scope instances and conditions.

use std::collections::VecDeque;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::graph::{Assumptions, CallEdge, CallRecord, Caller, Install, Key, Lookup, Node, NodeId, ScopeInstance, Task, Unresolved, Use};
use super::object::{InstanceId, Object, ObjectId, Reason};
use crate::names::{GlobalScope, Interner, ModuleId, Program, Sym};
use crate::syntax::{CondId, CondKind, NO_REG, Passing, Reg};

/// No object.
pub(super) const NOBODY: ObjectId = ObjectId(u32::MAX);
/// More objects than this in one node become `Unknown(Widened)`.
const MAX_SET: usize = 160;
/// So do more numbers, strings and their parts than this.
const MAX_TEXTS: u8 = 96;
/// So do more names outside the sources than this.
const MAX_DATA: u8 = 32;
/// So do more containers than this.
const MAX_CONTAINERS: u8 = 16;
/// More containers than this that are read under a key that nobody knows are put into one.
const MAX_JOINED: u8 = 4;
/// Copies of a node are looked for among this many of its uses before they are looked up.
const NEAR: usize = 8;
/// Marks the operation of a sequence that a string was split into.
pub(super) const PARTS: u32 = 1 << 29;
/// Makes the containers that stand for many.
const JOINED: InstanceId = InstanceId(u32::MAX);
/// More callers than this of one function are not told apart.
pub(super) const MAX_CONTEXTS: u32 = 20;

/// How many of a kind of object a node keeps apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// What can be called, and what has attributes of its own.
    Code,
    Text,
    Data,
    Container,
    /// Stands for many containers.
    Joined,
}

impl Weight {
    const fn of(object: Object) -> Self {
        match object {
            Object::Sequence(JOINED, _) | Object::Dict(JOINED, _) => Self::Joined,
            Object::Sequence(_, op) if op & PARTS != 0 && op < JOINED.0 => Self::Text,
            Object::Sequence(..) | Object::Dict(..) => Self::Container,
            Object::Int(_) | Object::Str(_) | Object::Prefix(_) | Object::TupleKey(_) => Self::Text,
            Object::External(_) | Object::BuiltinMethod(..) => Self::Data,
            _ => Self::Code,
        }
    }
}

/// The analysis and, once it has run, its result.
pub struct Engine<'p> {
    /// The module table.
    pub program: &'p Program,
    pub(super) assumptions: &'p Assumptions,
    dynamic: Interner,
    objects: Vec<Object>,
    pub(super) object_ids: FxHashMap<Object, ObjectId>,
    pub(super) nodes: Vec<Node>,
    /// Copies beyond the first uses of their node.
    copies: FxHashSet<(u32, u32)>,
    /// Containers that went into one that stands for many.
    joined: FxHashSet<(ObjectId, ObjectId)>,
    pub(super) instances: Vec<ScopeInstance>,
    instance_ids: FxHashMap<(GlobalScope, InstanceId, Caller), InstanceId>,
    pub(super) scope_instances: Vec<Vec<InstanceId>>,
    pub(super) contexts: FxHashMap<GlobalScope, u32>,
    /// Whether anything in the program asks for the grad mode.
    pub(super) asks_for_grad: bool,
    pub(super) fields: FxHashMap<(ObjectId, Key), NodeId>,
    pub(super) globals: FxHashMap<(ModuleId, Sym), NodeId>,
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
    /// Objects of external names that came up.
    pub(super) externals: FxHashMap<Sym, ObjectId>,
    /// External names by the name that they extend.
    pub(super) extended: FxHashMap<(Sym, Sym), Sym>,
    /// Number of items of sequences that no literal wrote.
    pub(super) lengths: FxHashMap<ObjectId, i64>,
    /// Items of tuples that are used as keys, with what is done again when they grow.
    pub(super) watched: FxHashSet<((u32, u32), NodeId)>,
    /// Nodes of items that something was stored in; reading a key does not make it one.
    pub(super) stored_items: FxHashSet<NodeId>,
    pub(super) iterated: FxHashSet<(InstanceId, u32, NodeId, ObjectId)>,
    pub(super) calls: Vec<CallRecord>,
    site_ids: FxHashMap<(GlobalScope, u32), u32>,
    pub(super) site_places: Vec<(GlobalScope, u32)>,
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
    /// The first running copy whose patches of what ran before go no further.
    pub(super) contained_from: Option<InstanceId>,
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
            joined: FxHashSet::default(),
            instances: Vec::new(),
            instance_ids: FxHashMap::default(),
            scope_instances: vec![Vec::new(); program.scope_count()],
            contexts: FxHashMap::default(),
            asks_for_grad: program.strings.find("is_grad_enabled").is_some(),
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
            externals: FxHashMap::default(),
            extended: FxHashMap::default(),
            lengths: FxHashMap::default(),
            watched: FxHashSet::default(),
            stored_items: FxHashSet::default(),
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
            contained_from: None,
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
        let weight = Weight::of(self.objects[object.0 as usize]);
        let slot = &mut self.nodes[node.0 as usize];
        let crowded = match weight {
            Weight::Code => false,
            Weight::Text => slot.texts >= MAX_TEXTS,
            Weight::Data => slot.data >= MAX_DATA,
            Weight::Joined => slot.joined >= MAX_CONTAINERS,
            Weight::Container => slot.containers >= if slot.joins { MAX_JOINED } else { MAX_CONTAINERS },
        };
        let full = slot.set.len() >= MAX_SET;
        let joins = crowded && !full && slot.joins && weight == Weight::Container;
        if ((full || crowded) && !joins && slot.widened) || slot.set.contains(&object) {
            return;
        }
        let mut object = object;
        if joins {
            object = self.join_containers(node, object);
        } else if full || crowded {
            object = self.object(Object::Unknown(Reason::Widened));
            self.widened += 1;
        }
        let slot = &mut self.nodes[node.0 as usize];
        if joins || full || crowded {
            slot.widened |= !joins;
            if slot.set.contains(&object) {
                return;
            }
        } else {
            match weight {
                Weight::Code => {}
                Weight::Text => slot.texts += 1,
                Weight::Data => slot.data += 1,
                Weight::Container => slot.containers += 1,
                Weight::Joined => slot.joined += 1,
            }
        }
        slot.set.push(object);
        if !std::mem::replace(&mut slot.queued, true) {
            self.queue.push_back(node);
        }
    }

    /// The container that stands for all further ones among the items of another; everything in `container` goes into it.
    fn join_containers(&mut self, node: NodeId, container: ObjectId) -> ObjectId {
        let dict = matches!(self.get(container), Object::Dict(..));
        let joined = self.object(if dict { Object::Dict(JOINED, node.0) } else { Object::Sequence(JOINED, node.0) });
        if self.joined.insert((container, joined)) {
            self.later(Task::Join(container, joined));
        }
        joined
    }

    fn join(&mut self, container: ObjectId, joined: ObjectId) {
        let (all, element) = (self.field(container, Key::All), self.element(joined));
        self.copy(all, element);
        if matches!(self.get(joined), Object::Dict(..)) {
            let (from, to) = (self.field(container, Key::Keys), self.field(joined, Key::Keys));
            self.copy(from, to);
        }
    }

    pub(super) fn add_object(&mut self, node: NodeId, object: Object) {
        let id = self.object(object);
        self.add(node, id);
    }

    pub(super) fn copy(&mut self, from: NodeId, to: NodeId) {
        // Most nodes have few uses: reading those is cheaper than a hash.
        let uses = &self.nodes[from.0 as usize].uses;
        let near = &uses[..uses.len().min(NEAR)];
        if from == to || near.iter().any(|known| matches!(known, Use::Copy(known) if *known == to)) {
            return;
        }
        if uses.len() < NEAR || self.copies.insert((from.0, to.0)) {
            self.subscribe(from, Use::Copy(to));
        }
    }

    pub(super) fn subscribe(&mut self, node: NodeId, what: Use) {
        let slot = &mut self.nodes[node.0 as usize];
        slot.uses.push(what);
        let settled = slot.settled;
        self.deliver_range(what, node, 0, settled);
    }

    /// Delivers the objects `from..to` of a node; to what reads the whole node anyway, only one.
    fn deliver_range(&mut self, what: Use, node: NodeId, from: u32, to: u32) {
        let reads_all = matches!(
            what,
            Use::Again(..)
                | Use::Again2(..)
                | Use::AgainCall(_)
                | Use::MethodType { .. }
                | Use::StringMethod { .. }
                | Use::DictGet { .. }
                | Use::FileCall { .. }
        );
        for at in if reads_all && from < to { to - 1..to } else { from..to } {
            let object = self.nodes[node.0 as usize].set[at as usize];
            self.deliver(what, object);
        }
    }

    pub(super) fn field(&mut self, object: ObjectId, key: Key) -> NodeId {
        if let Some(node) = self.fields.get(&(object, key)) {
            return *node;
        }
        let node = self.fresh();
        // What stands for many containers does not do so again: values that hold themselves would go on for ever.
        let own = !matches!(self.get(object), Object::Sequence(JOINED, _) | Object::Dict(JOINED, _));
        self.nodes[node.0 as usize].joins = key == Key::Any && own;
        self.fields.insert((object, key), node);
        node
    }

    /// Node of an item; whatever goes in also goes into the node of all items, and its key into the node of keys.
    pub(super) fn item(&mut self, container: ObjectId, key: ObjectId) -> NodeId {
        let node = self.field(container, Key::Item(key));
        if !self.stored_items.insert(node) {
            return node;
        }
        let all = self.field(container, Key::All);
        self.copy(node, all);
        let keys = self.field(container, Key::Keys);
        self.add(keys, key);
        node
    }

    /// Node of whatever stands under a key that is not known.
    pub(super) fn any_item(&mut self, container: ObjectId) -> NodeId {
        let (all, any) = (self.field(container, Key::All), self.field(container, Key::Any));
        self.copy(all, any);
        any
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

    pub(super) fn instance(&mut self, scope: GlobalScope, parent: InstanceId, caller: Caller, class: Option<ObjectId>) -> InstanceId {
        if let Some(id) = self.instance_ids.get(&(scope, parent, caller)) {
            return *id;
        }
        let facts = self.program.scope(scope);
        let base = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.nodes.resize_with(self.nodes.len() + facts.registers as usize, Node::default);
        let result = self.fresh();
        let yields = self.fresh();
        let id = InstanceId(u32::try_from(self.instances.len()).unwrap_or(u32::MAX));
        let active = vec![false; facts.conds.len().max(1)];
        self.instances.push(ScopeInstance { scope, parent, caller, base, result, yields, class, active, unbound: false });
        self.instance_ids.insert((scope, parent, caller), id);
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
        let inst = self.instance(scope, InstanceId(u32::MAX), Caller::default(), None);
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
                    Task::Join(container, joined) => self.join(container, joined),
                }
                continue;
            }
            let Some(node) = self.queue.pop_front() else { break };
            let slot = &mut self.nodes[node.0 as usize];
            slot.queued = false;
            let (from, to) = (slot.settled, u32::try_from(slot.set.len()).unwrap_or(u32::MAX));
            slot.settled = to;
            for at in 0..slot.uses.len() {
                let what = self.nodes[node.0 as usize].uses[at];
                self.deliver_range(what, node, from, to);
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
            Use::FileCall { call, name } => self.file_call(call, name),
            Use::ItemOfPrefix { container, begun, dst } => {
                if matches!(self.get(object), Object::Str(key) if self.text(key).starts_with(self.text(begun))) {
                    let item = self.field(container, Key::Item(object));
                    self.copy(item, dst);
                }
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
            Use::DictGet { call, owner } => self.dict_get(call, owner),
            Use::Partial { call } => self.make_partial(call, object),
            Use::MethodType { function, receiver, dst } => self.bind_methods(function, receiver, dst),
            Use::ImportNamed(call) => self.import_one(call, object),
            Use::EntryPoints(call) => self.entry_points(call, object),
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
}
