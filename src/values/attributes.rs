//! Attributes: lookup along the method resolution order, binding, stores and installs.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::engine::{Engine, NOBODY};
use super::graph::{CallRecord, EdgeKind, Install, Key, Known, Lookup, NodeId, Task, Use};
use super::models;
use super::object::{Builtin, InstanceId, Object, ObjectId, Reason};
use crate::names::{GlobalScope, ModuleId, Sym};
use crate::syntax::{OpKind, Passing};

/// Dotted names outside the program longer than this are not told apart.
const MAX_EXTERNAL_PARTS: usize = 8;
/// Stands in an external name for a call.
const CALLED: &str = "()";

impl Engine<'_> {
    /// Adds an external name, or what the profile declares for it.
    pub(super) fn add_external(&mut self, name: Sym, dst: NodeId) {
        if let Some(object) = self.externals.get(&name) {
            return self.add(dst, *object);
        }
        let text = self.text(name).to_owned();
        let object = match self.assumptions.known.get(&text).cloned() {
            _ if text == "typing.TYPE_CHECKING" => Object::Bool(false),
            Some(known) => self.known(&known, name),
            None => Object::External(name),
        };
        let object = self.object(object);
        self.externals.insert(name, object);
        self.add(dst, object);
    }

    /// Name of what calling an external name gives: `a.b()`. What its methods give in turn is not told apart from it, so that chains of
    /// methods end: for `x = a.b()`, both `x.c` and `x.d().c` are `a.b().c`.
    pub(super) fn result_of(&mut self, name: Sym) -> Sym {
        let text = self.text(name);
        let result = match text.find(CALLED) {
            Some(at) => text[..at + CALLED.len()].to_owned(),
            None => format!("{text}{CALLED}"),
        };
        self.intern(&result)
    }

    /// An external name as reports have it, which do not tell an object from what made it.
    pub(super) fn without_calls(&mut self, name: Sym) -> Sym {
        match self.text(name).split_once(CALLED) {
            Some((made_by, rest)) => {
                let text = format!("{made_by}{rest}");
                self.intern(&text)
            }
            None => name,
        }
    }

    pub(super) fn known(&mut self, known: &Known, name: Sym) -> Object {
        match known {
            Known::None => Object::None,
            Known::Bool(value) => Object::Bool(*value),
            Known::Int(value) => Object::Int(*value),
            Known::Str(value) => Object::Str(self.intern(value)),
            Known::Present => Object::Present(name),
        }
    }

    pub(super) fn load_attr(&mut self, object: ObjectId, name: Sym, dst: NodeId, from: InstanceId, op: u32) {
        match self.get(object) {
            Object::Module(module) => self.load_module_attr(module, name, dst, from, op),
            Object::Class(scope, _) => {
                if self.text(name) == "__name__" {
                    let module = self.program.module(self.program.module_of(scope));
                    let own = module.sym(self.program.scope(scope).name);
                    self.add_object(dst, Object::Str(own));
                } else {
                    self.class_lookup(object, None, name, dst, NOBODY, from, op);
                }
            }
            Object::Instance(class, _) => {
                if self.text(name) == "__class__" {
                    return self.add(dst, class);
                }
                let own = self.field(object, Key::Attr(name));
                self.copy(own, dst);
                // What an instance was given in place of a method of its class hides the method.
                let replaced = self.is_overridden(object, name) && !self.installs_here(from, object, name);
                if !replaced {
                    self.class_lookup(class, None, name, dst, object, from, op);
                }
            }
            Object::Member(class, member) => match self.text(name) {
                "value" | "_value_" => {
                    let node = self.field(class, Key::Attr(member));
                    self.copy(node, dst);
                }
                "name" | "_name_" => self.add_object(dst, Object::Str(member)),
                _ => self.class_lookup(class, None, name, dst, object, from, op),
            },
            Object::Super(class, receiver) => {
                let start = match self.get(receiver) {
                    Object::Instance(class, _) | Object::Member(class, _) => class,
                    Object::Class(..) => receiver,
                    _ => class,
                };
                let bound = if matches!(self.get(receiver), Object::Class(..)) { NOBODY } else { receiver };
                self.class_lookup(start, Some(class), name, dst, bound, from, op);
            }
            Object::Bound(function, receiver) => match self.text(name) {
                "__func__" => self.add(dst, function),
                "__self__" => self.add(dst, receiver),
                _ => self.load_attr(function, name, dst, from, op),
            },
            Object::Function(scope, _) => {
                if matches!(self.text(name), "__name__" | "__qualname__") {
                    let module = self.program.module(self.program.module_of(scope));
                    let own = module.sym(self.program.scope(scope).name);
                    return self.add_object(dst, Object::Str(own));
                }
                let node = self.field(object, Key::Attr(name));
                self.copy(node, dst);
            }
            Object::StaticMethod(function) | Object::ClassMethod(function) => match self.text(name) {
                "__func__" | "__wrapped__" => self.add(dst, function),
                _ => {}
            },
            Object::Property(_) => self.add_object(dst, Object::Decorator(models::Model::Identity, name)),
            Object::Kernel(function) => {
                if matches!(self.text(name), "fn" | "__wrapped__") {
                    self.add(dst, function);
                } else {
                    let node = self.field(object, Key::Attr(name));
                    self.copy(node, dst);
                    self.add_object(dst, Object::Unknown(Reason::Opaque));
                }
            }
            Object::CustomOp(_) => {
                if self.text(name) == "default" {
                    self.add(dst, object);
                } else {
                    self.add_object(dst, Object::Decorator(models::Model::NotAnImplementation, name));
                }
            }
            Object::Partial(function, ..) => match self.text(name) {
                "func" => self.add(dst, function),
                _ => self.add_object(dst, Object::Unknown(Reason::Opaque)),
            },
            Object::External(outer) if self.text(outer).starts_with("argparse.") && self.given(name, dst) => {}
            Object::External(outer) | Object::Present(outer) => self.extend_external(outer, name, dst),
            Object::EntryPoint(_) if self.text(name) == "load" => {
                let Object::EntryPoint(point) = self.get(object) else { return };
                self.add_object(dst, Object::Decorator(models::Model::LoadEntryPoint, point));
            }
            Object::Builtin(outer) => {
                let full = format!("{}.{}", self.text(outer), self.text(name));
                let sym = self.intern(&full);
                self.add_object(dst, Object::Builtin(sym));
            }
            Object::Str(_) => self.add_object(dst, Object::BuiltinMethod(Builtin::Str, name, object)),
            Object::Dict(..) => self.add_object(dst, Object::BuiltinMethod(Builtin::Dict, name, object)),
            Object::Sequence(..) => self.add_object(dst, Object::BuiltinMethod(Builtin::List, name, object)),
            Object::Unknown(_) => {
                self.given(name, dst);
                self.add(dst, object);
            }
            Object::File(_) | Object::Json(..) => self.load_file_attr(object, name, dst),
            Object::Context(class, _) => {
                let node = self.field(object, Key::Attr(name));
                self.copy(node, dst);
                // What no method of the class stores, autograd sets.
                let Object::Class(scope, _) = self.get(class) else { return };
                let module = self.program.module(self.program.module_of(scope));
                let mut stores = module.facts.scopes.iter().flat_map(|scope| &scope.ops);
                if !stores.any(|op| matches!(op.kind, OpKind::StoreAttr { name: stored, .. } if module.sym(stored) == name)) {
                    self.add_object(dst, Object::Unknown(Reason::Opaque));
                }
            }
            Object::Apply(class) if self.text(name) == "__self__" => self.add(dst, class),
            Object::None => {}
            _ => self.add_object(dst, Object::Unknown(Reason::Opaque)),
        }
    }

    /// Adds what a flag of this attribute is given, if anything is known to be.
    fn given(&mut self, name: Sym, dst: NodeId) -> bool {
        let assumptions = self.assumptions;
        if assumptions.arguments.is_empty() {
            return false;
        }
        let Some(given) = assumptions.arguments.get(self.text(name)) else { return false };
        for path in &given.paths {
            let path = self.intern(path);
            self.add_object(dst, Object::Str(path));
        }
        if given.perhaps {
            self.add_object(dst, Object::None);
        }
        true
    }

    fn extend_external(&mut self, outer: Sym, name: Sym, dst: NodeId) {
        let sym = match self.extended.get(&(outer, name)) {
            Some(sym) => *sym,
            None => {
                let outer_text = self.text(outer);
                let sym = if outer_text.split('.').count() >= MAX_EXTERNAL_PARTS {
                    outer
                } else {
                    let full = format!("{outer_text}.{}", self.text(name));
                    self.intern(&full)
                };
                self.extended.insert((outer, name), sym);
                sym
            }
        };
        if sym == outer {
            return self.add_object(dst, Object::External(outer));
        }
        // `torch.ops.namespace.name` is whatever was registered under that name.
        if let Some(operator) = self.text(sym).strip_prefix("torch.ops.").filter(|rest| rest.contains('.')) {
            let key = operator.replacen('.', "::", 1);
            let key = self.intern(&key);
            let node = self.operator(key);
            self.copy(node, dst);
        }
        self.add_external(sym, dst);
    }

    pub(super) fn operator(&mut self, name: Sym) -> NodeId {
        if let Some(node) = self.operators.get(&name) {
            return *node;
        }
        let node = self.fresh();
        self.operators.insert(name, node);
        node
    }

    // --- classes -------------------------------------------------------------------------------------------------------------------

    fn names_of_class(&mut self, scope: GlobalScope) -> Rc<FxHashSet<Sym>> {
        if let Some(names) = self.class_names.get(&scope) {
            return names.clone();
        }
        let module = self.program.module(self.program.module_of(scope));
        let ops = self.program.scope(scope).ops.iter();
        let names: FxHashSet<Sym> = ops
            .filter_map(|op| match op.kind {
                OpKind::StoreClass(name, _) => Some(module.sym(name)),
                _ => None,
            })
            .collect();
        let names = Rc::new(names);
        self.class_names.insert(scope, names.clone());
        names
    }

    /// Whether a class's own body binds a name.
    pub(super) fn class_binds(&mut self, class: ObjectId, name: Sym) -> bool {
        match self.get(class) {
            Object::Class(scope, _) => self.names_of_class(scope).contains(&name),
            _ => false,
        }
    }

    /// Whether a class or one of its bases in the program binds a name.
    pub(super) fn defines(&mut self, class: ObjectId, name: Sym) -> bool {
        let order = self.order(class);
        order.iter().any(|base| self.class_binds(*base, name))
    }

    /// Dotted names of the external bases of a class.
    pub(super) fn external_bases(&mut self, class: ObjectId) -> Vec<Sym> {
        let order = self.order(class);
        let names = order.iter().filter_map(|base| match self.get(*base) {
            Object::External(name) | Object::Builtin(name) => Some(name),
            _ => None,
        });
        names.collect()
    }

    fn has_base(&mut self, class: ObjectId, wanted: &[&str]) -> bool {
        self.external_bases(class).into_iter().any(|name| wanted.contains(&self.text(name)))
    }

    pub(super) fn is_enum(&mut self, class: ObjectId) -> bool {
        self.has_base(class, models::ENUMS)
    }

    /// Whether a class is an autograd function.
    pub fn is_autograd(&mut self, class: ObjectId) -> bool {
        self.has_base(class, models::AUTOGRAD)
    }

    /// Method resolution order (C3) over the bases known so far; where no consistent order exists, depth first.
    pub(super) fn order(&mut self, class: ObjectId) -> Rc<[ObjectId]> {
        if let Some(order) = self.linear.get(&class) {
            return order.clone();
        }
        // Post-order without recursion: a class is linearised once all its bases are.
        let mut stack = vec![(class, false)];
        let mut open: FxHashSet<ObjectId> = FxHashSet::default();
        while let Some((at, ready)) = stack.pop() {
            if self.linear.contains_key(&at) {
                continue;
            }
            let bases = self.direct_bases(at);
            if ready {
                open.remove(&at);
                let order = self.merge_orders(at, &bases);
                self.linear.insert(at, order);
            } else {
                open.insert(at);
                stack.push((at, true));
                for base in bases.iter().rev().filter(|base| !open.contains(base)) {
                    stack.push((*base, false));
                }
            }
        }
        self.linear.get(&class).cloned().unwrap_or_else(|| [class].into())
    }

    fn direct_bases(&self, class: ObjectId) -> Vec<ObjectId> {
        let mut out = Vec::new();
        for node in self.bases.get(&class).into_iter().flatten() {
            for base in self.set(*node) {
                let class_like =
                    matches!(self.get(*base), Object::Class(..) | Object::External(_) | Object::Builtin(_) | Object::Present(_));
                if class_like && *base != class && !out.contains(base) {
                    out.push(*base);
                }
            }
        }
        out
    }

    fn merge_orders(&self, class: ObjectId, bases: &[ObjectId]) -> Rc<[ObjectId]> {
        let mut lists: Vec<Rc<[ObjectId]>> =
            bases.iter().map(|base| self.linear.get(base).cloned().unwrap_or_else(|| [*base].into())).collect();
        lists.push(bases.into());
        let mut at = vec![0usize; lists.len()];
        // How often an object still stands behind the head of a list.
        let mut behind: FxHashMap<ObjectId, usize> = FxHashMap::default();
        for list in &lists {
            for object in list.iter().skip(1) {
                *behind.entry(*object).or_default() += 1;
            }
        }
        let mut heads: FxHashMap<ObjectId, Vec<usize>> = FxHashMap::default();
        for (index, list) in lists.iter().enumerate() {
            if let Some(head) = list.first() {
                heads.entry(*head).or_default().push(index);
            }
        }
        let mut out = vec![class];
        let mut first = 0;
        loop {
            while first < lists.len() && at[first] >= lists[first].len() {
                first += 1;
            }
            if first >= lists.len() {
                break;
            }
            let candidate = (first..lists.len())
                .filter_map(|index| lists[index].get(at[index]).copied())
                .find(|head| behind.get(head).copied().unwrap_or(0) == 0)
                .unwrap_or(lists[first][at[first]]);
            if !out.contains(&candidate) || lists.len() > 64 {
                out.push(candidate);
            }
            for index in heads.remove(&candidate).unwrap_or_default() {
                at[index] += 1;
                if let Some(next) = lists[index].get(at[index]) {
                    if let Some(count) = behind.get_mut(next) {
                        *count = count.saturating_sub(1);
                    }
                    heads.entry(*next).or_default().push(index);
                }
            }
        }
        out.into()
    }

    /// A base of a class became known: orders and lookups that went through the class are done again.
    pub(super) fn base_changed(&mut self, class: ObjectId, base: ObjectId) {
        if !matches!(self.get(base), Object::Class(..) | Object::External(_) | Object::Builtin(_) | Object::Present(_)) {
            return;
        }
        self.subclasses.entry(base).or_default().push(class);
        let mut open = vec![class];
        let mut seen = FxHashSet::default();
        while let Some(at) = open.pop() {
            if !seen.insert(at) {
                continue;
            }
            self.linear.remove(&at);
            for lookup in self.lookups_of.get(&at).cloned().unwrap_or_default() {
                self.later(Task::Lookup(lookup));
            }
            open.extend(self.subclasses.get(&at).into_iter().flatten().copied());
        }
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn class_lookup(
        &mut self,
        class: ObjectId,
        after: Option<ObjectId>,
        name: Sym,
        dst: NodeId,
        receiver: ObjectId,
        from: InstanceId,
        op: u32,
    ) {
        self.lookups.push(Lookup { class, after, name, dst, receiver, from, op });
        let id = u32::try_from(self.lookups.len() - 1).unwrap_or(u32::MAX);
        self.lookups_of.entry(class).or_default().push(id);
        self.later(Task::Lookup(id));
    }

    pub(super) fn run_lookup(&mut self, id: u32) {
        let Lookup { class, after, name, dst, receiver, from, op } = self.lookups[id as usize];
        let order = self.order(class);
        let start = after.and_then(|after| order.iter().position(|base| *base == after)).map_or(0, |at| at + 1);
        let text = self.text(name).to_owned();
        let mut external = None;
        for base in order.get(start..).unwrap_or(&[]) {
            if !matches!(self.get(*base), Object::Class(..)) {
                external.get_or_insert(*base);
                continue;
            }
            let own = self.class_binds(*base, name);
            let patched = self.patched.contains(&(*base, name));
            if !own && !patched {
                continue;
            }
            if own && self.is_enum(*base) && !text.starts_with('_') && !self.is_function_name(*base, name) {
                return self.add_object(dst, Object::Member(*base, name));
            }
            let bind = |call| Use::Bind { receiver, class, dst, call };
            let call = self.plain_call(from, op, dst, EdgeKind::Property);
            let replaced = own && self.is_overridden(*base, name);
            let installer = replaced && self.installs_here(from, *base, name);
            if patched && !installer {
                let node = self.field(*base, Key::Patched(name));
                self.subscribe(node, bind(call));
            }
            if own && (!replaced || installer) {
                let node = self.field(*base, Key::Attr(name));
                self.subscribe(node, bind(call));
            }
            return;
        }
        // Nothing in the program defines it; it may have been set through a computed name.
        if matches!(self.get(receiver), Object::Instance(..)) {
            let any = self.field(receiver, Key::Any);
            self.copy(any, dst);
        }
        if text == "__call__" && self.has_base(class, models::CALLS_FORWARD) {
            let forward = self.intern("forward");
            return match self.get(receiver) {
                // An instance may have been given a `forward` of its own.
                Object::Instance(..) if after.is_none() => self.load_attr(receiver, forward, dst, from, op),
                _ => self.class_lookup(class, after, forward, dst, receiver, from, op),
            };
        }
        if text == "apply" && receiver == NOBODY && self.is_autograd(class) {
            return self.add_object(dst, Object::Apply(class));
        }
        let getter = self.intern("__getattr__");
        if receiver != NOBODY && !text.starts_with("__") && name != getter && self.defines(class, getter) {
            let (node, argument) = (self.fresh(), self.fresh());
            self.add_object(argument, Object::Str(name));
            self.class_lookup(class, None, getter, node, receiver, from, op);
            let args = [(Passing::Position, argument)].into();
            let call = self.new_call(CallRecord { caller: from, op, args, dst, kind: EdgeKind::LazyExport });
            return self.subscribe(node, Use::Call(call));
        }
        if let Some(base) = external
            && let Object::External(outer) | Object::Present(outer) = self.get(base)
        {
            let outer = self.text(outer);
            if !matches!(outer, "abc.ABC" | "typing.Generic" | "typing.Protocol" | "enum.Enum" | "typing.NamedTuple") {
                let full = format!("{outer}.{text}");
                let sym = self.intern(&full);
                self.add_object(dst, Object::External(sym));
            }
        }
    }

    /// Whether a class body binds a name by `def` or `class`.
    fn is_function_name(&self, class: ObjectId, name: Sym) -> bool {
        let Object::Class(scope, _) = self.get(class) else { return false };
        let module = self.program.module(self.program.module_of(scope));
        let facts = self.program.scope(scope);
        module
            .facts
            .scopes
            .iter()
            .any(|inner| module.facts.scopes[inner.parent as usize].qualname == facts.qualname && module.sym(inner.name) == name)
    }

    pub(super) fn bind(&mut self, object: ObjectId, receiver: ObjectId, class: ObjectId, dst: NodeId, call: u32) {
        match self.get(object) {
            Object::Function(..) | Object::Kernel(_) if receiver != NOBODY => self.add_object(dst, Object::Bound(object, receiver)),
            Object::StaticMethod(function) => self.add(dst, function),
            Object::ClassMethod(function) => self.add_object(dst, Object::Bound(function, class)),
            Object::Property(getter) if receiver != NOBODY => {
                let node = self.fresh();
                self.add_object(node, Object::Bound(getter, receiver));
                let record = CallRecord { dst, ..self.calls[call as usize].clone() };
                let call = self.new_call(record);
                self.subscribe(node, Use::Call(call));
            }
            _ => self.add(dst, object),
        }
    }

    // --- stores --------------------------------------------------------------------------------------------------------------------

    pub(super) fn store_attr(&mut self, object: ObjectId, name: Sym, src: NodeId, from: InstanceId, op: u32) {
        let within = self.program.module_of(self.instances[from.0 as usize].scope);
        match self.get(object) {
            Object::Module(module) => {
                let exists = self.program.module(module).bound.contains(&name);
                let foreign = within != module;
                if foreign && self.is_contained(within, module) {
                    self.record_install(Install { installer: from, op, owner: object, name, target_exists: exists });
                    return;
                }
                let node = if foreign { self.field(object, Key::Patched(name)) } else { self.global(module, name) };
                self.copy(src, node);
                self.stored_globals.insert((module, name));
                if foreign {
                    self.record_install(Install { installer: from, op, owner: object, name, target_exists: exists });
                }
            }
            Object::Class(scope, _) => {
                let exists = self.defines(object, name);
                if self.is_contained(within, self.program.module_of(scope)) {
                    self.record_install(Install { installer: from, op, owner: object, name, target_exists: exists });
                    return;
                }
                let node = self.field(object, Key::Patched(name));
                self.copy(src, node);
                if self.patched.insert((object, name)) {
                    self.redo_lookups(object);
                }
                self.record_install(Install { installer: from, op, owner: object, name, target_exists: exists });
            }
            Object::External(_) | Object::Present(_) => {
                self.record_install(Install { installer: from, op, owner: object, name, target_exists: false });
            }
            Object::Instance(class, _) => {
                let node = self.field(object, Key::Attr(name));
                self.copy(src, node);
                if self.defines(class, name) {
                    self.record_install(Install { installer: from, op, owner: object, name, target_exists: true });
                }
            }
            Object::Function(..) | Object::Kernel(_) | Object::Bound(..) | Object::Context(..) => {
                let node = self.field(object, Key::Attr(name));
                self.copy(src, node);
            }
            _ => {}
        }
    }

    /// From here on, what modules that have not run yet store into modules that have is recorded and goes no further.
    pub fn contain_patches(&mut self) {
        self.contained_from = Some(InstanceId(u32::try_from(self.instances.len()).unwrap_or(u32::MAX)));
    }

    /// Whether `installer` is a module whose patches of `owner` go no further.
    fn is_contained(&self, installer: ModuleId, owner: ModuleId) -> bool {
        let Some(from) = self.contained_from else { return false };
        let is_later = |module| self.module_instances.get(&module).is_some_and(|inst| *inst >= from);
        is_later(installer) && !is_later(owner)
    }

    fn record_install(&mut self, install: Install) {
        if !self.installs.contains(&install) {
            self.installs.push(install);
        }
    }

    fn redo_lookups(&mut self, class: ObjectId) {
        let mut open = vec![class];
        let mut seen = FxHashSet::default();
        while let Some(at) = open.pop() {
            if seen.insert(at) {
                for lookup in self.lookups_of.get(&at).cloned().unwrap_or_default() {
                    self.later(Task::Lookup(lookup));
                }
                open.extend(self.subclasses.get(&at).into_iter().flatten().copied());
            }
        }
    }

    /// Dotted name of an owner of attributes, for installs.
    #[must_use]
    pub fn owner_name(&self, owner: ObjectId) -> String {
        match self.get(owner) {
            Object::Module(module) => self.text(self.program.module(module).name).to_owned(),
            Object::Class(scope, _) => self.program.qualified(scope),
            Object::External(name) | Object::Present(name) | Object::Builtin(name) => self.text(name).to_owned(),
            Object::Instance(class, _) => self.owner_name(class),
            _ => String::new(),
        }
    }

    pub(super) fn is_overridden(&self, owner: ObjectId, name: Sym) -> bool {
        !self.overridden.is_empty() && self.overridden.contains(&(self.owner_key(owner), name))
    }

    /// Whether the scope that reads an attribute is, or encloses, one that replaces it.
    pub(super) fn installs_here(&self, from: InstanceId, owner: ObjectId, name: Sym) -> bool {
        let reader = self.instances[from.0 as usize].scope;
        self.overriders.contains(&(reader, self.owner_key(owner), name))
    }
}
