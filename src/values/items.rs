//! Items of containers: keys, loads, stores, slices and unpacking.

use super::engine::Engine;
use super::graph::{CallRecord, EdgeKind, Key, NodeId, Use};
use super::object::{InstanceId, Object, ObjectId, Reason};
use crate::names::Sym;
use crate::syntax::{OpKind, Passing};

/// More combinations of the items of a tuple than this are not told apart as keys.
const MAX_KEYS: usize = 32;

impl Engine<'_> {
    pub(super) fn single_int(&self, node: NodeId) -> Option<i64> {
        match self.set(node) {
            [only] => match self.get(*only) {
                Object::Int(value) => Some(value),
                _ => None,
            },
            _ => None,
        }
    }

    /// Number of items of a literal sequence.
    pub(super) fn length(&self, object: ObjectId) -> Option<i64> {
        let Object::Sequence(inst, op) = self.get(object) else { return None };
        if let Some(length) = self.lengths.get(&object) {
            return Some(*length);
        }
        let scope = self.instances.get(inst.0 as usize)?.scope;
        match &self.program.scope(scope).ops.get(op as usize)?.kind {
            OpKind::Sequence { items, .. } if items.iter().all(|(_, starred)| !starred) => i64::try_from(items.len()).ok(),
            _ => None,
        }
    }

    /// Copies items `lower..upper` of a sequence to the start of another; unknown bounds give every item anywhere.
    pub(super) fn slice(&mut self, from: ObjectId, lower: Option<Option<i64>>, upper: Option<Option<i64>>, to: ObjectId) {
        let length = self.length(from);
        let known = match (lower, upper, length) {
            (Some(lower), Some(upper), Some(length)) => {
                let clamp = |value: i64| if value < 0 { (value + length).max(0) } else { value.min(length) };
                Some((clamp(lower.unwrap_or(0)), clamp(upper.unwrap_or(length))))
            }
            _ => None,
        };
        match known {
            Some((lower, upper)) => {
                for at in lower..upper {
                    let source = self.object(Object::Int(at));
                    let target = self.object(Object::Int(at - lower));
                    let (source, target) = (self.item(from, source), self.item(to, target));
                    self.copy(source, target);
                }
            }
            None => {
                let all = self.field(from, Key::All);
                let element = self.element(to);
                self.copy(all, element);
            }
        }
    }

    pub(super) fn unpack(&mut self, object: ObjectId, index: u32, from_end: bool, dst: NodeId, inst: InstanceId, op: u32) {
        match self.get(object) {
            Object::Sequence(..) => {
                let at = if from_end { self.length(object).map(|length| length - i64::from(index)) } else { Some(i64::from(index)) };
                match at {
                    Some(at) => {
                        let key = self.object(Object::Int(at));
                        self.load_item(object, &[key], dst, inst, op);
                    }
                    None => {
                        let all = self.field(object, Key::All);
                        self.copy(all, dst);
                    }
                }
            }
            Object::External(_) | Object::Unknown(_) | Object::Present(_) => self.add_object(dst, Object::Unknown(Reason::Opaque)),
            _ => {
                let call = self.plain_call(inst, op, dst, EdgeKind::Protocol);
                self.iterate(call, object);
            }
        }
    }

    /// Keys that a node holds. A tuple stands for what its items may be, and `again` is done when one of them grows.
    pub(super) fn keys_in(&mut self, node: NodeId, again: Use) -> Vec<ObjectId> {
        let mut out = Vec::new();
        for object in self.set(node).to_vec() {
            match self.length(object) {
                Some(length) if matches!(self.get(object), Object::Sequence(..)) => {
                    let items: Vec<NodeId> = (0..length)
                        .map(|at| {
                            let at = self.object(Object::Int(at));
                            self.field(object, Key::Item(at))
                        })
                        .collect();
                    for item in &items {
                        if self.watched.insert((again_place(again), *item)) {
                            self.subscribe(*item, again);
                        }
                    }
                    out.extend(self.tuple_keys(object, &items));
                }
                _ => out.push(object),
            }
        }
        out
    }

    /// A tuple as keys, one for each combination of its items; itself if there are too many or one cannot be a key.
    fn tuple_keys(&mut self, tuple: ObjectId, items: &[NodeId]) -> Vec<ObjectId> {
        let mut texts = vec![String::new()];
        for item in items {
            let objects = self.set(*item).to_vec();
            if objects.len() * texts.len() > MAX_KEYS || objects.iter().any(|object| !self.is_key(*object)) {
                return vec![tuple];
            }
            texts = objects.iter().flat_map(|object| texts.iter().map(move |text| format!("{text}{},", object.0))).collect();
        }
        let keys: Vec<Sym> = texts.iter().map(|text| self.intern(text)).collect();
        keys.into_iter().map(|key| self.object(Object::TupleKey(key))).collect()
    }

    /// Whether an object is an instance that is made once: by a statement of a module's body.
    pub(super) fn is_single(&self, object: ObjectId) -> bool {
        let Object::Instance(_, site) = self.get(object) else { return false };
        let place = self.site_places.get((site as usize).wrapping_sub(1));
        place.is_some_and(|(scope, op)| {
            let facts = self.program.scope(*scope);
            let mut at = facts.ops[*op as usize].cond;
            let mut repeated = facts.kind != crate::syntax::ScopeKind::Module;
            while at != 0 && !repeated {
                repeated = facts.conds[at as usize].kind == crate::syntax::CondKind::Maybe;
                at = facts.conds[at as usize].parent;
            }
            !repeated
        })
    }

    /// A key that tells items apart.
    fn is_key(&self, key: ObjectId) -> bool {
        self.is_single(key)
            || matches!(
                self.get(key),
                Object::Int(_)
                    | Object::TupleKey(_)
                    | Object::Str(_)
                    | Object::Bool(_)
                    | Object::None
                    | Object::Member(..)
                    | Object::Class(..)
                    | Object::Function(..)
            )
    }

    pub(super) fn load_item(&mut self, object: ObjectId, keys: &[ObjectId], dst: NodeId, inst: InstanceId, op: u32) {
        match self.get(object) {
            Object::Sequence(..) | Object::Dict(..) => {
                for key in keys {
                    if self.is_key(*key) {
                        let key = match (self.get(*key), self.length(object)) {
                            (Object::Int(at), Some(length)) if at < 0 => self.object(Object::Int(at + length)),
                            _ => *key,
                        };
                        let item = self.field(object, Key::Item(key));
                        self.copy(item, dst);
                        let element = self.element(object);
                        self.copy(element, dst);
                    } else if let (Object::Dict(..), Object::Prefix(begun)) = (self.get(object), self.get(*key)) {
                        let known = self.field(object, Key::Keys);
                        if self.watched.insert(((dst.0, begun.0), known)) {
                            self.subscribe(known, Use::ItemOfPrefix { container: object, begun, dst });
                        }
                        let element = self.element(object);
                        self.copy(element, dst);
                    } else {
                        let any = self.any_item(object);
                        self.copy(any, dst);
                    }
                }
            }
            Object::Json(file, path) => {
                for key in keys {
                    self.load_json_item(file, path, *key, dst);
                }
            }
            Object::Kernel(function) => self.add_object(dst, Object::Launch(function)),
            Object::Namespace(module) => {
                for key in keys {
                    if let Object::Str(name) = self.get(*key) {
                        let node = self.global(module, name);
                        self.copy(node, dst);
                    }
                }
            }
            // `Class[T]` is the class, `Enum["NAME"]` the member.
            Object::Class(..) => {
                let members = self.is_enum(object);
                for key in keys {
                    match self.get(*key) {
                        Object::Str(name) if members => self.add_object(dst, Object::Member(object, name)),
                        _ => self.add(dst, object),
                    }
                }
            }
            Object::Instance(class, _) => {
                let getter = self.intern("__getitem__");
                if self.defines(class, getter) {
                    let node = self.fresh();
                    let argument = self.fresh();
                    for key in keys {
                        self.add(argument, *key);
                    }
                    self.class_lookup(class, None, getter, node, object, inst, op);
                    let args = [(Passing::Position, argument)].into();
                    let call = self.new_call(CallRecord { caller: inst, op, args, dst, kind: EdgeKind::Protocol });
                    self.subscribe(node, Use::Call(call));
                } else {
                    self.add_object(dst, Object::Unknown(Reason::Opaque));
                }
            }
            Object::External(name) => {
                let text = self.text(name).to_owned();
                if text == "os.environ" {
                    for key in keys {
                        self.environment(*key, None, dst);
                    }
                } else if text == "sys.modules" {
                    for key in keys {
                        if let Object::Str(module) = self.get(*key) {
                            let module = self.text(module).to_owned();
                            let near = self.program.module(self.program.module_of(self.instances[inst.0 as usize].scope)).source;
                            self.add_module(&module, near, dst);
                        }
                    }
                } else {
                    self.add_object(dst, Object::Unknown(Reason::Opaque));
                }
            }
            Object::Unknown(_) => self.add(dst, object),
            _ => self.add_object(dst, Object::Unknown(Reason::Opaque)),
        }
    }

    pub(super) fn store_item(&mut self, object: ObjectId, keys: &[ObjectId], src: NodeId, inst: InstanceId, op: u32) {
        match self.get(object) {
            Object::Namespace(module) => {
                for key in keys {
                    if let Object::Str(name) = self.get(*key) {
                        let node = self.global(module, name);
                        self.copy(src, node);
                        self.stored_globals.insert((module, name));
                    }
                }
            }
            Object::Sequence(..) | Object::Dict(..) => {
                if !matches!(self.get(object), Object::Dict(maker, at) if (maker, at) == (inst, op)) {
                    let grown = self.field(object, Key::Stored);
                    self.add_object(grown, Object::None);
                }
                for key in keys {
                    if self.is_key(*key) {
                        let item = self.item(object, *key);
                        self.copy(src, item);
                    } else {
                        let element = self.element(object);
                        self.copy(src, element);
                        let known = self.field(object, Key::Keys);
                        self.add(known, *key);
                    }
                }
            }
            Object::Instance(class, _) => {
                let setter = self.intern("__setitem__");
                if self.defines(class, setter) {
                    let (node, argument, junk) = (self.fresh(), self.fresh(), self.fresh());
                    for key in keys {
                        self.add(argument, *key);
                    }
                    self.class_lookup(class, None, setter, node, object, inst, op);
                    let args = [(Passing::Position, argument), (Passing::Position, src)].into();
                    let call = self.new_call(CallRecord { caller: inst, op, args, dst: junk, kind: EdgeKind::Protocol });
                    self.subscribe(node, Use::Call(call));
                }
            }
            Object::External(name) if self.text(name) == "sys.modules" => {
                for key in keys {
                    if let Object::Str(module) = self.get(*key) {
                        let alias = self.alias(module);
                        self.copy(src, alias);
                        if !self.replacements.contains(&(inst, op, module)) {
                            self.replacements.push((inst, op, module));
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

/// What is done again, as a key.
const fn again_place(again: Use) -> (u32, u32) {
    match again {
        Use::Again(inst, op) => (inst.0, op),
        Use::DictGet { call, owner } => (call, owner.0 | 1 << 31),
        _ => (u32::MAX, u32::MAX),
    }
}
