//! What each operation of a scope subscribes to.

use super::engine::Engine;
use super::graph::{CallRecord, EdgeKind, Key, NodeId, Use};
use super::object::{InstanceId, Object, ObjectId, Reason};
use crate::names::{GlobalScope, ModuleId, Sym};
use crate::syntax::{Literal, NO_REG, NameId, OpKind, Passing};

/// More combinations of the items of a tuple than this are not told apart as keys.
const MAX_KEYS: usize = 32;

impl Engine<'_> {
    /// Starts an operation in a running copy of its scope.
    pub(super) fn install(&mut self, inst: InstanceId, op_index: u32) {
        let program = self.program;
        let scope = self.instances[inst.0 as usize].scope;
        let module_id = program.module_of(scope);
        let module = program.module(module_id);
        let op = &program.scope(scope).ops[op_index as usize];
        match &op.kind {
            OpKind::Literal(dst, literal) => {
                let object = match literal {
                    Literal::None => Object::None,
                    Literal::Bool(value) => Object::Bool(*value),
                    Literal::Int(value) => Object::Int(*value),
                    Literal::Str(text) => Object::Str(module.sym(*text)),
                    Literal::Opaque => Object::Unknown(Reason::Opaque),
                };
                let dst = self.reg(inst, *dst);
                self.add_object(dst, object);
            }
            OpKind::LoadGlobal(dst, name) => {
                let dst = self.reg(inst, *dst);
                self.load_global(module_id, module.sym(*name), dst, inst, op_index);
            }
            OpKind::StoreGlobal(name, src) => {
                let name = module.sym(*name);
                let src = self.reg(inst, *src);
                let node = self.global(module_id, name);
                self.copy(src, node);
            }
            OpKind::LoadFree(dst, outer, reg) => {
                let outer = program.global_scope(module_id, *outer);
                if let Some(outer) = self.enclosing(inst, outer) {
                    let (src, dst) = (self.reg(outer, *reg), self.reg(inst, *dst));
                    self.copy(src, dst);
                }
            }
            OpKind::StoreFree(outer, reg, src) => {
                let outer = program.global_scope(module_id, *outer);
                if let Some(outer) = self.enclosing(inst, outer) {
                    let (src, dst) = (self.reg(inst, *src), self.reg(outer, *reg));
                    self.copy(src, dst);
                }
            }
            OpKind::StoreClass(name, src) => {
                if let Some(class) = self.instances[inst.0 as usize].class {
                    let src = self.reg(inst, *src);
                    let node = self.field(class, Key::Attr(module.sym(*name)));
                    self.copy(src, node);
                }
            }
            OpKind::Import { dst, module: name, top } => {
                let dst = self.reg(inst, *dst);
                self.import(module_id, *name, *top, dst);
            }
            OpKind::ImportFrom { dst, module: from, level, name } => {
                let dst = self.reg(inst, *dst);
                self.import_from(module_id, *from, *level, module.sym(*name), dst, inst, op_index);
            }
            OpKind::ImportStar { module: from, level } => {
                if let Some(target) = self.resolve(module_id, *from, *level) {
                    self.run_module(target);
                }
            }
            OpKind::Move(dst, src) => {
                let (src, dst) = (self.reg(inst, *src), self.reg(inst, *dst));
                self.copy(src, dst);
            }
            OpKind::Phi(dst, inputs) => {
                let dst = self.reg(inst, *dst);
                for (src, cond) in inputs {
                    self.phi(inst, *src, *cond, dst);
                }
            }
            OpKind::Filter(dst, src, keep) => {
                let (src, dst) = (self.reg(inst, *src), self.reg(inst, *dst));
                self.subscribe(src, Use::Keep(*keep, dst));
            }
            OpKind::LoadAttr { dst, obj, name } => {
                let (obj, dst) = (self.reg(inst, *obj), self.reg(inst, *dst));
                self.subscribe(obj, Use::Attr { name: module.sym(*name), dst, from: inst, op: op_index });
            }
            OpKind::StoreAttr { obj, name, src } => {
                let (obj, src) = (self.reg(inst, *obj), self.reg(inst, *src));
                self.subscribe(obj, Use::StoreAttr { name: module.sym(*name), src, from: inst, op: op_index });
            }
            OpKind::LoadItem { obj, key, .. } => {
                self.again_on(inst, op_index, &[*obj, *key]);
            }
            OpKind::LoadSlice { obj, lower, upper, .. } => self.again_on(inst, op_index, &[*obj, *lower, *upper]),
            OpKind::StoreItem { obj, key, .. } => self.again_on(inst, op_index, &[*obj, *key]),
            OpKind::Sequence { dst, items, .. } => {
                let dst = self.reg(inst, *dst);
                let object = self.object(Object::Sequence(inst, op_index));
                let mut known = true;
                for (at, (reg, starred)) in items.iter().enumerate() {
                    let node = self.reg(inst, *reg);
                    if *starred {
                        known = false;
                        let element = self.element(object);
                        let call = self.plain_call(inst, op_index, element, EdgeKind::Protocol);
                        self.subscribe(node, Use::Iterate(call));
                    } else if known {
                        let key = self.object(Object::Int(i64::try_from(at).unwrap_or(i64::MAX)));
                        let item = self.item(object, key);
                        self.copy(node, item);
                    } else {
                        let element = self.element(object);
                        self.copy(node, element);
                    }
                }
                self.add(dst, object);
            }
            OpKind::Dict { dst, items } => {
                let object = self.object(Object::Dict(inst, op_index));
                let dst = self.reg(inst, *dst);
                for (key, value) in items {
                    let value = self.reg(inst, *value);
                    if *key == NO_REG {
                        self.subscribe(value, Use::CopyContainer { to: object });
                    } else {
                        let key = self.reg(inst, *key);
                        self.subscribe(key, Use::Again(inst, op_index));
                    }
                }
                self.evaluate(inst, op_index);
                self.add(dst, object);
            }
            OpKind::Unpack { src, .. } | OpKind::UnpackRest { src, .. } => self.again_on(inst, op_index, &[*src]),
            OpKind::Function { dst, scope: local, defaults } => {
                let scope = program.global_scope(module_id, *local);
                let object = self.object(Object::Function(scope, inst));
                let nodes = defaults.iter().map(|(at, reg)| (*at, self.reg(inst, *reg))).collect();
                self.defaults.insert(object, nodes);
                let dst = self.reg(inst, *dst);
                self.add(dst, object);
            }
            OpKind::Class { dst, scope: local, bases, .. } => {
                let scope = program.global_scope(module_id, *local);
                let object = self.object(Object::Class(scope, inst));
                let nodes: Vec<NodeId> = bases.iter().map(|reg| self.reg(inst, *reg)).collect();
                self.bases.insert(object, nodes.clone());
                for node in nodes {
                    self.subscribe(node, Use::BaseChanged(object));
                }
                self.instance(scope, inst, (0, 0), Some(object));
                let dst = self.reg(inst, *dst);
                self.add(dst, object);
            }
            OpKind::Call { dst, func, args, decorator } => {
                let args: Vec<(Passing, NodeId)> = args
                    .iter()
                    .map(|(passing, reg)| {
                        let passing = match passing {
                            Passing::Keyword(name) => Passing::Keyword(module.sym(*name).0),
                            other => *other,
                        };
                        (passing, self.reg(inst, *reg))
                    })
                    .collect();
                let kind = if *decorator { EdgeKind::Decorator } else { EdgeKind::Call };
                let dst = self.reg(inst, *dst);
                let call = self.new_call(CallRecord { caller: inst, op: op_index, args: args.into(), dst, kind });
                let func = self.reg(inst, *func);
                self.subscribe(func, Use::Call(call));
            }
            OpKind::Iterate { dst, src } => {
                let (src, dst) = (self.reg(inst, *src), self.reg(inst, *dst));
                let call = self.plain_call(inst, op_index, dst, EdgeKind::Protocol);
                self.subscribe(src, Use::Iterate(call));
            }
            OpKind::Enter { dst, src } => {
                let (src, dst) = (self.reg(inst, *src), self.reg(inst, *dst));
                let call = self.plain_call(inst, op_index, dst, EdgeKind::Protocol);
                self.subscribe(src, Use::Enter(call));
            }
            OpKind::Await { dst, src } => {
                let (src, dst) = (self.reg(inst, *src), self.reg(inst, *dst));
                self.subscribe(src, Use::Await(dst));
            }
            OpKind::Yield { dst, src } => {
                let src = self.reg(inst, *src);
                let yields = self.instances[inst.0 as usize].yields;
                self.copy(src, yields);
                let dst = self.reg(inst, *dst);
                self.add_object(dst, Object::Unknown(Reason::Opaque));
            }
            OpKind::YieldFrom { dst, src } => {
                let src = self.reg(inst, *src);
                let yields = self.instances[inst.0 as usize].yields;
                let call = self.plain_call(inst, op_index, yields, EdgeKind::Protocol);
                self.subscribe(src, Use::Iterate(call));
                let dst = self.reg(inst, *dst);
                self.subscribe(src, Use::Await(dst));
            }
            OpKind::Return(src) => {
                let src = self.reg(inst, *src);
                let result = self.instances[inst.0 as usize].result;
                self.copy(src, result);
            }
            OpKind::Raise(src) => {
                let src = self.reg(inst, *src);
                let junk = self.fresh();
                let call = self.plain_call(inst, op_index, junk, EdgeKind::Call);
                self.subscribe(src, Use::Raise(call));
            }
            OpKind::Not { src, .. } => self.again_on(inst, op_index, &[*src]),
            OpKind::Binary { left, right, .. } => self.again_on(inst, op_index, &[*left, *right]),
            OpKind::Format { parts, .. } => {
                if parts.is_empty() {
                    self.evaluate(inst, op_index);
                }
                self.again_on(inst, op_index, parts);
            }
            OpKind::Delete => {}
        }
    }

    fn again_on(&mut self, inst: InstanceId, op: u32, regs: &[u32]) {
        for reg in regs.iter().filter(|reg| **reg != NO_REG) {
            let node = self.reg(inst, *reg);
            self.subscribe(node, Use::Again(inst, op));
        }
    }

    /// A call record without arguments.
    pub(super) fn plain_call(&mut self, caller: InstanceId, op: u32, dst: NodeId, kind: EdgeKind) -> u32 {
        self.new_call(CallRecord { caller, op, args: [].into(), dst, kind })
    }

    // --- imports -------------------------------------------------------------------------------------------------------------------

    fn resolve(&mut self, from: ModuleId, module: NameId, level: u32) -> Option<ModuleId> {
        let program = self.program;
        let here = program.module(from);
        let name = program.absolute(from, here.facts.name(module), level)?;
        let sym = program.strings.find(&name)?;
        program.find(sym, here.source)
    }

    /// Runs a module and the packages above it.
    fn run_with_parents(&mut self, name: &str, near: usize) {
        let program = self.program;
        let ends = name.match_indices('.').map(|(at, _)| at).chain([name.len()]);
        for end in ends {
            if let Some(found) = program.strings.find(&name[..end]).and_then(|sym| program.find(sym, near)) {
                self.run_module(found);
            }
        }
    }

    /// Adds a module by its dotted name: itself or what replaced it, else an external name.
    pub(super) fn add_module(&mut self, name: &str, near: usize, dst: NodeId) {
        let program = self.program;
        self.run_with_parents(name, near);
        if let Some(found) = program.strings.find(name).and_then(|sym| program.find(sym, near)) {
            if self.replaces_itself(found) {
                let full = program.module(found).name;
                let alias = self.alias(full);
                self.copy(alias, dst);
                let replaced = self.intern("sys.modules");
                if self.overridden.contains(&(self.text(full).to_owned(), replaced)) || program.module(found).facts.scopes.len() == 1 {
                    return;
                }
            }
            self.add_object(dst, Object::Module(found));
            return;
        }
        let sym = self.intern(name);
        let alias = self.alias(sym);
        self.copy(alias, dst);
        self.add_external(sym, dst);
    }

    /// Whether a module's body stores into `sys.modules`.
    pub(super) fn replaces_itself(&self, module: ModuleId) -> bool {
        let program = self.program;
        let module = program.module(module);
        let Some(sys) = module.facts.names.iter().position(|name| name == "modules") else { return false };
        let Some(body) = module.facts.scopes.first() else { return false };
        body.ops.iter().any(|op| matches!(&op.kind, OpKind::LoadAttr { name, .. } if *name as usize == sys))
            && module.facts.names.iter().any(|name| name == "__name__")
    }

    fn import(&mut self, from: ModuleId, name: NameId, top: bool, dst: NodeId) {
        let program = self.program;
        let here = program.module(from);
        let name = here.facts.name(name);
        self.run_with_parents(name, here.source);
        let bound = if top { name.split('.').next().unwrap_or(name) } else { name };
        self.add_module(bound, here.source, dst);
    }

    #[allow(clippy::too_many_arguments)]
    fn import_from(&mut self, from: ModuleId, module: NameId, level: u32, name: Sym, dst: NodeId, inst: InstanceId, op: u32) {
        let program = self.program;
        let here = program.module(from);
        let Some(base) = program.absolute(from, here.facts.name(module), level) else {
            self.add_object(dst, Object::Unknown(Reason::Undefined));
            return;
        };
        self.run_with_parents(&base, here.source);
        if let Some(target) = program.strings.find(&base).and_then(|sym| program.find(sym, here.source)) {
            let node = self.fresh();
            self.subscribe(node, Use::Attr { name, dst, from: inst, op });
            self.add_module(&base, here.source, node);
            let _ = target;
            return;
        }
        let full = if base.is_empty() { self.text(name).to_owned() } else { format!("{base}.{}", self.text(name)) };
        self.add_module(&full, here.source, dst);
    }

    pub(super) fn load_global(&mut self, module: ModuleId, name: Sym, dst: NodeId, inst: InstanceId, op: u32) {
        if self.module_name(module, name, dst, inst, op) {
            return;
        }
        let text = self.text(name).to_owned();
        match text.as_str() {
            "__name__" => {
                let name = self.program.module(module).name;
                self.add_object(dst, Object::Str(name));
            }
            _ if super::models::is_builtin(&text) => self.add_object(dst, Object::Builtin(name)),
            _ => {
                // A name that other code may still store into this module.
                let node = self.global(module, name);
                self.copy(node, dst);
                self.add_object(dst, Object::Unknown(Reason::Undefined));
            }
        }
    }

    /// Copies a name that a module binds, or gets from a star import, into `dst`; false if it does neither.
    pub(super) fn module_name(&mut self, module: ModuleId, name: Sym, dst: NodeId, inst: InstanceId, op: u32) -> bool {
        let program = self.program;
        let mut open = vec![module];
        let mut seen = Vec::new();
        while let Some(at) = open.pop() {
            if seen.contains(&at) {
                continue;
            }
            seen.push(at);
            self.run_module(at);
            let record = program.module(at);
            if record.bound.contains(&name) || self.stored_globals.contains(&(at, name)) {
                let object = self.object(Object::Module(at));
                let replaced = self.is_overridden(object, name);
                let installer = replaced && self.installs_here(inst, object, name);
                if !replaced || installer {
                    let node = self.global(at, name);
                    self.copy(node, dst);
                }
                if !installer {
                    let node = self.field(object, Key::Patched(name));
                    self.copy(node, dst);
                }
                return true;
            }
            for (star, level) in record.stars.iter().rev() {
                if let Some(target) = self.resolve(at, *star, *level) {
                    open.push(target);
                }
            }
        }
        let _ = op;
        false
    }

    pub(super) fn load_module_attr(&mut self, module: ModuleId, name: Sym, dst: NodeId, inst: InstanceId, op: u32) {
        let program = self.program;
        if self.module_name(module, name, dst, inst, op) {
            return;
        }
        let full = format!("{}.{}", self.text(program.module(module).name), self.text(name));
        let near = program.module(module).source;
        if let Some(sub) = program.strings.find(&full).filter(|sym| program.find(*sym, near).is_some() || program.is_prefix(*sym)) {
            if program.find(sub, near).is_some() {
                self.add_module(&full, near, dst);
            } else {
                self.add_object(dst, Object::External(sub));
            }
            return;
        }
        if let Some(lazy) = program.strings.find("__getattr__").filter(|lazy| program.module(module).bound.contains(lazy)) {
            let argument = self.fresh();
            self.add_object(argument, Object::Str(name));
            let args = [(Passing::Position, argument)].into();
            let call = self.new_call(CallRecord { caller: inst, op, args, dst, kind: EdgeKind::LazyExport });
            let getter = self.global(module, lazy);
            self.subscribe(getter, Use::Call(call));
            return;
        }
        if self.replaces_itself(module) {
            return;
        }
        let node = self.global(module, name);
        self.copy(node, dst);
        let sym = self.intern(&full);
        self.add_object(dst, Object::External(sym));
    }

    /// Evaluates an operation that depends on several nodes, on all they hold now.
    pub(super) fn evaluate(&mut self, inst: InstanceId, op_index: u32) {
        let program = self.program;
        let scope: GlobalScope = self.instances[inst.0 as usize].scope;
        let op = &program.scope(scope).ops[op_index as usize];
        match &op.kind {
            OpKind::LoadItem { dst, obj, key } => {
                let (obj, key, dst) = (self.reg(inst, *obj), self.reg(inst, *key), self.reg(inst, *dst));
                let objects = self.set(obj).to_vec();
                let keys = self.keys_in(key, Use::Again(inst, op_index));
                for object in objects {
                    self.load_item(object, &keys, dst, inst, op_index);
                }
            }
            OpKind::StoreItem { obj, key, src } => {
                let (obj, key, src) = (self.reg(inst, *obj), self.reg(inst, *key), self.reg(inst, *src));
                let objects = self.set(obj).to_vec();
                let keys = self.keys_in(key, Use::Again(inst, op_index));
                for object in objects {
                    self.store_item(object, &keys, src, inst, op_index);
                }
            }
            OpKind::LoadSlice { dst, obj, lower, upper } => {
                let dst = self.reg(inst, *dst);
                let objects = self.set(self.reg(inst, *obj)).to_vec();
                let bound =
                    |engine: &Self, reg: u32| if reg == NO_REG { Some(None) } else { engine.single_int(engine.reg(inst, reg)).map(Some) };
                let (lower, upper) = (bound(self, *lower), bound(self, *upper));
                let result = self.object(Object::Sequence(inst, op_index));
                for object in objects {
                    match self.get(object) {
                        Object::Sequence(..) => self.slice(object, lower, upper, result),
                        Object::Str(_) => self.add_object(dst, Object::Unknown(Reason::ComputedString)),
                        Object::External(_) | Object::Unknown(_) => self.add(dst, object),
                        _ => {}
                    }
                    if matches!(self.get(object), Object::Sequence(..)) {
                        self.add(dst, result);
                    }
                }
            }
            OpKind::Dict { dst: _, items } => {
                let object = self.object(Object::Dict(inst, op_index));
                for (key, value) in items.iter().filter(|(key, _)| *key != NO_REG) {
                    let keys = self.keys_in(self.reg(inst, *key), Use::Again(inst, op_index));
                    let value = self.reg(inst, *value);
                    self.store_item(object, &keys, value, inst, op_index);
                }
            }
            OpKind::Unpack { dst, src, index, from_end } => {
                let dst = self.reg(inst, *dst);
                let objects = self.set(self.reg(inst, *src)).to_vec();
                for object in objects {
                    self.unpack(object, *index, *from_end, dst, inst, op_index);
                }
            }
            OpKind::UnpackRest { dst, src, before, after } => {
                let dst = self.reg(inst, *dst);
                let objects = self.set(self.reg(inst, *src)).to_vec();
                let result = self.object(Object::Sequence(inst, op_index));
                for object in objects {
                    let upper = self.length(object).map(|length| length - i64::from(*after));
                    self.slice(object, Some(Some(i64::from(*before))), upper.map(Some), result);
                }
                self.add(dst, result);
            }
            OpKind::Not { .. } | OpKind::Binary { .. } | OpKind::Format { .. } => self.compute(inst, op_index),
            _ => {}
        }
    }

    fn single_int(&self, node: NodeId) -> Option<i64> {
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
    fn slice(&mut self, from: ObjectId, lower: Option<Option<i64>>, upper: Option<Option<i64>>, to: ObjectId) {
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

    fn unpack(&mut self, object: ObjectId, index: u32, from_end: bool, dst: NodeId, inst: InstanceId, op: u32) {
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
    pub(super) fn is_key(&self, key: ObjectId) -> bool {
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
                    } else {
                        let all = self.field(object, Key::All);
                        self.copy(all, dst);
                    }
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
