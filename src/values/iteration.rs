//! Implicit protocol calls: iteration, contexts, await, raise.

use super::engine::Engine;
use super::graph::{CallRecord, EdgeKind, Key, NodeId, Use};
use super::object::{Object, ObjectId, Reason};

impl Engine<'_> {
    /// One element of iterating over an object goes into the call's destination.
    pub(super) fn iterate(&mut self, call: u32, object: ObjectId) {
        let record = self.calls[call as usize].clone();
        match self.get(object) {
            Object::Sequence(..) => {
                let all = self.field(object, Key::All);
                self.copy(all, record.dst);
            }
            Object::Dict(..) => {
                let keys = self.field(object, Key::Keys);
                self.copy(keys, record.dst);
            }
            Object::Generator(inst) => {
                let yields = self.instances[inst.0 as usize].yields;
                self.copy(yields, record.dst);
            }
            Object::Class(..) if self.is_enum(object) => self.add_members(object, record.dst),
            Object::Instance(..) if !self.iterated.insert((record.caller, record.op, record.dst, object)) => {}
            Object::Instance(class, _) => {
                let (iter, next) = (self.intern("__iter__"), self.intern("__next__"));
                if self.defines(class, iter) {
                    let (node, iterator) = (self.fresh(), self.fresh());
                    self.class_lookup(class, None, iter, node, object, record.caller, record.op);
                    self.call_with(call, node, [].into(), iterator, EdgeKind::Protocol);
                    let method = self.fresh();
                    self.subscribe(iterator, Use::Attr { name: next, dst: method, from: record.caller, op: record.op });
                    self.call_with(call, method, [].into(), record.dst, EdgeKind::Protocol);
                    // An `__iter__` that yields, or hands out another iterable.
                    let inner = self.new_call(CallRecord { kind: EdgeKind::Protocol, ..record });
                    self.subscribe(iterator, Use::Iterate(inner));
                } else if self.defines(class, next) {
                    let node = self.fresh();
                    self.class_lookup(class, None, next, node, object, record.caller, record.op);
                    self.call_with(call, node, [].into(), record.dst, EdgeKind::Protocol);
                } else {
                    self.add_object(record.dst, Object::Unknown(Reason::Opaque));
                }
            }
            Object::None => {}
            _ => self.add_object(record.dst, Object::Unknown(Reason::Opaque)),
        }
    }

    pub(super) fn enter_context(&mut self, call: u32, object: ObjectId) {
        let record = self.calls[call as usize].clone();
        match self.get(object) {
            Object::File(_) => self.add(record.dst, object),
            Object::Instance(class, _) => {
                for (name, dst) in [("__enter__", record.dst), ("__exit__", self.fresh())] {
                    let name = self.intern(name);
                    if self.defines(class, name) {
                        let node = self.fresh();
                        self.class_lookup(class, None, name, node, object, record.caller, record.op);
                        self.call_with(call, node, [].into(), dst, EdgeKind::Protocol);
                    }
                }
            }
            Object::Generator(inst) => {
                let yields = self.instances[inst.0 as usize].yields;
                self.copy(yields, record.dst);
            }
            _ => self.add(record.dst, object),
        }
    }

    pub(super) fn await_value(&mut self, object: ObjectId, dst: NodeId) {
        match self.get(object) {
            Object::Generator(inst) => {
                let result = self.instances[inst.0 as usize].result;
                self.copy(result, dst);
            }
            _ => self.add(dst, object),
        }
    }

    /// `raise` of a class makes an instance.
    pub(super) fn raise(&mut self, call: u32, object: ObjectId) {
        if let Object::Class(scope, _) = self.get(object) {
            let init = self.intern("__init__");
            if self.defines(object, init) {
                self.instantiate(call, object, scope);
            }
        }
    }
}
