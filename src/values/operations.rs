//! What each operation of a scope subscribes to.

use super::engine::Engine;
use super::graph::{CallRecord, Caller, EdgeKind, Key, NodeId, Use};
use super::object::{InstanceId, Object, Reason};
use crate::names::GlobalScope;
use crate::syntax::{Literal, NO_REG, OpKind, Passing};

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
                self.load_global(module_id, module.sym(*name), dst, inst);
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
                self.instance(scope, inst, Caller::default(), Some(object));
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
                        Object::Str(_) | Object::Prefix(_) => self.add_object(dst, Object::Unknown(Reason::ComputedString)),
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
}
