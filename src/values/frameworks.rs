//! What calling an external name of the framework table does: autograd, kernels, custom operators, checkpoints, decorators.

use std::rc::Rc;

use super::engine::{Engine, NOBODY};
use super::graph::{CallRecord, EdgeKind, NodeId, Target, Use};
use super::models::{self, Model};
use super::object::{Object, ObjectId, Reason};
use crate::names::Sym;
use crate::syntax::{Grad, Passing};

impl Engine<'_> {
    pub(super) fn apply_autograd(&mut self, call: u32, class: ObjectId) {
        let record = self.calls[call as usize].clone();
        let context = self.fresh();
        let site = self.site(record.caller, record.op);
        self.add_object(context, Object::Context(class, site));
        let forward = self.intern("forward");
        let node = self.fresh();
        self.class_lookup(class, None, forward, node, NOBODY, record.caller, record.op);
        let args: Rc<[(Passing, NodeId)]> = std::iter::once((Passing::Position, context)).chain(record.args.iter().copied()).collect();
        self.call_with(call, node, args, record.dst, EdgeKind::AutogradForward);
        let backward = self.intern("backward");
        if self.defines(class, backward) {
            let (node, gradient, junk) = (self.fresh(), self.fresh(), self.fresh());
            self.add_object(gradient, Object::Unknown(Reason::Opaque));
            self.class_lookup(class, None, backward, node, NOBODY, record.caller, record.op);
            let args = [(Passing::Position, context), (Passing::Position, gradient)].into();
            self.call_with(call, node, args, junk, EdgeKind::AutogradBackward);
        }
    }

    pub(super) fn apply_external(&mut self, call: u32, name: Sym) {
        let text = self.text(name).to_owned();
        let called = self.without_calls(name);
        self.record_target(call, Target::External(called));
        let dst = self.calls[call as usize].dst;
        if text == "torch.is_grad_enabled" {
            let CallRecord { caller, op, .. } = self.calls[call as usize];
            return match self.grad_at(caller, op) {
                Grad::AsBefore => self.undecided(crate::syntax::Operator::Is, dst),
                grad => self.add_object(dst, Object::Bool(grad == Grad::On)),
            };
        }
        if text == "sys.modules.setdefault"
            && let (Some(key), Some(value)) = (self.argument(call, 0), self.argument(call, 1))
        {
            let CallRecord { caller, op, .. } = self.calls[call as usize];
            let keys = self.set(key).to_vec();
            let owner = self.intern("sys.modules");
            let owner = self.object(Object::External(owner));
            self.store_item(owner, &keys, value, caller, op);
        }
        self.calls_with_file(call, name);
        let Some(model) = models::model(&text) else {
            let result = self.result_of(name);
            self.add_object(dst, Object::External(result));
            return;
        };
        match model {
            Model::IdentityFactory => match self.argument(call, 0) {
                // Used without parentheses, the argument is the function itself.
                Some(node) if self.calls[call as usize].kind == EdgeKind::Decorator => self.copy(node, dst),
                _ => self.add_object(dst, Object::Decorator(Model::Identity, name)),
            },
            Model::Kernel | Model::Dataclass | Model::CustomOp | Model::NotAnImplementation
                if self.calls[call as usize].kind != EdgeKind::Decorator
                    && (model == Model::CustomOp || model == Model::NotAnImplementation || self.argument(call, 0).is_none()) =>
            {
                let mut key = name;
                if model == Model::CustomOp
                    && let Some(argument) = self.argument(call, 0)
                {
                    let named = self.set(argument).iter().find_map(|object| match self.get(*object) {
                        Object::Str(name) => Some(name),
                        _ => None,
                    });
                    if let (Some(name), Some(function)) = (named, self.argument(call, 1)) {
                        self.subscribe(function, Use::Wrap(1, dst));
                        let registered = self.operator(name);
                        return self.subscribe(function, Use::Wrap(1, registered));
                    }
                    match named {
                        Some(name) => key = name,
                        None => return self.subscribe(argument, Use::AgainCall(call)),
                    }
                }
                self.add_object(dst, Object::Decorator(model, key));
            }
            _ => self.decorate(call, model, name),
        }
    }

    /// Evaluates a call of an external name again, now that an argument is known.
    pub(super) fn again_call(&mut self, call: u32) {
        let argument = self.argument(call, 0);
        let dst = self.calls[call as usize].dst;
        for object in argument.map(|node| self.set(node).to_vec()).unwrap_or_default() {
            if let Object::Str(name) = self.get(object) {
                self.add_object(dst, Object::Decorator(Model::CustomOp, name));
            }
        }
    }

    /// What a decorator or a modelled function does with its arguments.
    pub(super) fn decorate(&mut self, call: u32, model: Model, name: Sym) {
        let record = self.calls[call as usize].clone();
        let dst = record.dst;
        let first = self.argument(call, 0);
        match model {
            Model::Identity | Model::IdentityFactory | Model::NotAnImplementation => {
                if let Some(node) = first {
                    self.copy(node, dst);
                } else {
                    self.add_object(dst, Object::Decorator(Model::Identity, name));
                }
            }
            Model::Kernel => {
                if let Some(node) = first {
                    self.subscribe(node, Use::Wrap(0, dst));
                }
            }
            Model::CustomOp => {
                if let Some(node) = first {
                    self.subscribe(node, Use::Wrap(1, dst));
                    let registered = self.operator(name);
                    self.subscribe(node, Use::Wrap(1, registered));
                }
            }
            Model::Dataclass => {
                if let Some(node) = first {
                    self.subscribe(node, Use::Wrap(5, dst));
                }
            }
            Model::Partial => {
                if let Some(node) = first {
                    self.subscribe(node, Use::Partial { call });
                }
            }
            Model::Items => match first {
                Some(node) => self.copy(node, dst),
                None if self.text(name).ends_with("Dict") => self.add_object(dst, Object::Dict(record.caller, record.op)),
                None => self.add_object(dst, Object::Sequence(record.caller, record.op)),
            },
            Model::UpdateWrapper => {
                if let Some(node) = first {
                    self.copy(node, dst);
                    if let Some(src) = self.argument(call, 1).or(self.keyword(call, "wrapped")) {
                        let name = self.intern("__wrapped__");
                        self.subscribe(node, Use::StoreAttr { name, src, from: record.caller, op: record.op });
                    }
                }
            }
            Model::Wraps => {
                if let Some(node) = first.or(self.keyword(call, "wrapped")) {
                    let (update, wrapped) = (self.intern("functools.update_wrapper"), self.intern("wrapped"));
                    let update = self.object(Object::External(update));
                    let partial = self.object(Object::Partial(update, record.caller, record.op));
                    self.partials.insert(partial, [(Passing::Keyword(wrapped.0), node)].into());
                    self.add(dst, partial);
                }
            }
            Model::MethodType => self.bind_method(call),
            Model::ImportModule => self.import_named(call),
            Model::CallsFirst | Model::Checkpoint => {
                if let Some(node) = first {
                    let mut skipped = false;
                    let args: Rc<[(Passing, NodeId)]> = record
                        .args
                        .iter()
                        .filter(|(passing, _)| {
                            let own = *passing == Passing::Position && !skipped;
                            skipped |= own;
                            !own && !matches!(passing, Passing::Keyword(_))
                        })
                        .copied()
                        .collect();
                    if model == Model::Checkpoint {
                        self.call_with(call, node, args.clone(), dst, EdgeKind::CheckpointPass);
                    }
                    self.call_with(call, node, args, dst, EdgeKind::Callback);
                }
            }
            Model::Environment => self.read_environment(call),
            Model::EntryPoints => {
                let group = self.keyword(call, "group").or(first);
                match group {
                    Some(group) => self.subscribe(group, Use::EntryPoints(call)),
                    None => {
                        let result = self.result_of(name);
                        self.add_object(dst, Object::External(result));
                    }
                }
            }
            Model::LoadEntryPoint => self.load_entry_point(call, name),
        }
    }

    /// The entry points of a group, as a sequence.
    pub(super) fn entry_points(&mut self, call: u32, group: ObjectId) {
        let CallRecord { caller, op, dst, .. } = self.calls[call as usize];
        let Object::Str(group) = self.get(group) else { return self.add_object(dst, Object::Unknown(Reason::ComputedString)) };
        let sequence = self.object(Object::Sequence(caller, op));
        let element = self.element(sequence);
        let assumptions = self.assumptions;
        for point in assumptions.entry_points.get(self.text(group)).into_iter().flatten() {
            let point = self.intern(point);
            self.add_object(element, Object::EntryPoint(point));
        }
        self.add(dst, sequence);
    }

    /// What an entry point names: `module:attribute.attribute`.
    fn load_entry_point(&mut self, call: u32, point: Sym) {
        let CallRecord { caller, op, dst, .. } = self.calls[call as usize];
        let point = self.text(point).to_owned();
        let (module, path) = point.split_once(':').unwrap_or((&point, ""));
        let near = self.program.module(self.program.module_of(self.instances[caller.0 as usize].scope)).source;
        let mut node = self.fresh();
        self.add_module(module.trim(), near, node);
        for part in path.split('.').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, next) = (self.intern(part), self.fresh());
            self.subscribe(node, Use::Attr { name, dst: next, from: caller, op });
            node = next;
        }
        self.copy(node, dst);
    }

    pub(super) fn wrap(&mut self, kind: u8, object: ObjectId, dst: NodeId) {
        let function = matches!(self.get(object), Object::Function(..) | Object::Kernel(_) | Object::Bound(..) | Object::Partial(..));
        match (kind, self.get(object)) {
            (0, Object::Function(..)) => self.add_object(dst, Object::Kernel(object)),
            (1, _) if function => self.add_object(dst, Object::CustomOp(object)),
            (2, _) => self.add_object(dst, Object::StaticMethod(object)),
            (3, _) => self.add_object(dst, Object::ClassMethod(object)),
            (4, _) => self.add_object(dst, Object::Property(object)),
            (5, Object::Class(..)) => {
                self.dataclasses.insert(object);
                self.add(dst, object);
            }
            _ => self.add(dst, object),
        }
    }
}
