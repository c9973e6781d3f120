//! Calls: what each kind of callee does, contexts of callers, and instantiation.

use std::rc::Rc;

use super::engine::{Engine, MAX_CONTEXTS, NOBODY};
use super::graph::{CallEdge, CallRecord, Caller, EdgeKind, Key, NodeId, Target, Unresolved, Use};
use super::object::{InstanceId, Object, ObjectId};
use crate::names::{GlobalScope, Sym};
use crate::syntax::{Grad, Passing};

/// Instances of one class from more allocation sites than this share one object.
const MAX_SITES: usize = 24;

impl Engine<'_> {
    /// One more thing that a call may call. `receiver` goes in front of the arguments.
    pub(super) fn apply(&mut self, call: u32, callee: ObjectId, receiver: Option<ObjectId>) {
        match self.get(callee) {
            Object::Function(scope, parent) => self.enter_function(call, callee, scope, parent, receiver),
            Object::Bound(function, own) => self.apply(call, function, Some(own)),
            Object::StaticMethod(function) | Object::ClassMethod(function) => self.apply(call, function, receiver),
            Object::Class(scope, _) => self.instantiate(call, callee, scope),
            Object::Instance(class, _) | Object::Member(class, _) => {
                let name = self.intern("__call__");
                let node = self.fresh();
                let record = self.calls[call as usize].clone();
                self.class_lookup(class, None, name, node, callee, record.caller, record.op);
                let call = self.new_call(record);
                self.subscribe(node, Use::Call(call));
            }
            Object::Partial(function, ..) => {
                let bound = self.partials.get(&callee).cloned().unwrap_or_else(|| [].into());
                let record = self.calls[call as usize].clone();
                let positional =
                    bound.iter().chain(record.args.iter()).filter(|(passing, _)| matches!(passing, Passing::Position | Passing::Star));
                let named =
                    record.args.iter().chain(bound.iter()).filter(|(passing, _)| !matches!(passing, Passing::Position | Passing::Star));
                let args: Rc<[(Passing, NodeId)]> = positional.chain(named).copied().collect();
                let call = self.new_call(CallRecord { args, ..record });
                self.apply(call, function, None);
            }
            Object::Apply(class) => self.apply_autograd(call, class),
            Object::Kernel(function) => self.apply(call, function, receiver),
            Object::Launch(function) => self.apply_as(call, function, EdgeKind::KernelLaunch),
            Object::CustomOp(function) => self.apply_as(call, function, EdgeKind::CustomOp),
            Object::Decorator(model, name) => self.decorate(call, model, name),
            Object::External(name) | Object::Present(name) => self.apply_external(call, name),
            Object::Builtin(name) => self.apply_builtin(call, name),
            Object::BuiltinMethod(kind, name, owner) => {
                self.record_target(call, Target::BuiltinMethod(kind, name));
                self.apply_builtin_method(call, kind, name, owner);
            }
            Object::Unknown(reason) => {
                let CallRecord { caller, op, dst, .. } = self.calls[call as usize];
                self.record_unresolved(Unresolved { caller, op, reason });
                self.add(dst, callee);
            }
            _ => {}
        }
    }

    fn apply_as(&mut self, call: u32, function: ObjectId, kind: EdgeKind) {
        let record = CallRecord { kind, ..self.calls[call as usize].clone() };
        let call = self.new_call(record);
        self.apply(call, function, None);
    }

    pub(super) fn record_target(&mut self, call: u32, target: Target) {
        let CallRecord { caller, op, kind, .. } = self.calls[call as usize];
        self.record(CallEdge { caller, op, target, kind, callee: InstanceId(u32::MAX) });
    }

    /// Calls `function` with these arguments from where another call stands.
    pub(super) fn call_with(&mut self, call: u32, function: NodeId, args: Rc<[(Passing, NodeId)]>, dst: NodeId, kind: EdgeKind) {
        let CallRecord { caller, op, .. } = self.calls[call as usize];
        let call = self.new_call(CallRecord { caller, op, args, dst, kind });
        self.subscribe(function, Use::Call(call));
    }

    pub(super) fn argument(&self, call: u32, at: usize) -> Option<NodeId> {
        let mut positional = self.calls[call as usize].args.iter().filter(|(passing, _)| *passing == Passing::Position);
        positional.nth(at).map(|(_, node)| *node)
    }

    pub(super) fn keyword(&self, call: u32, name: &str) -> Option<NodeId> {
        self.calls[call as usize].args.iter().find_map(|(passing, node)| match passing {
            Passing::Keyword(sym) if self.text(Sym(*sym)) == name => Some(*node),
            _ => None,
        })
    }

    // --- functions -----------------------------------------------------------------------------------------------------------------

    fn enter_function(&mut self, call: u32, function: ObjectId, scope: GlobalScope, parent: InstanceId, receiver: Option<ObjectId>) {
        let record = self.calls[call as usize].clone();
        let facts = self.program.scope(scope);
        let told_apart = facts.polymorphic && !(record.args.is_empty() && receiver.is_none());
        let caller = self.caller_of(scope, &record, told_apart);
        let inst = self.instance(scope, parent, caller, None);
        self.record(CallEdge { caller: record.caller, op: record.op, target: Target::Scope(scope), kind: record.kind, callee: inst });
        self.bind_arguments(function, inst, &record.args, receiver);
        if facts.is_generator || facts.is_async {
            self.add_object(record.dst, Object::Generator(inst));
        } else {
            let result = self.instances[inst.0 as usize].result;
            self.copy(result, record.dst);
        }
    }

    /// What a running copy is told apart by: this call and the one that led to the caller if callers are worth it, and the grad mode if
    /// anything asks for it.
    fn caller_of(&mut self, scope: GlobalScope, record: &CallRecord, told_apart: bool) -> Caller {
        let from = &self.instances[record.caller.0 as usize];
        // A function that calls itself goes on in the same copy.
        if told_apart && from.scope == scope {
            return from.caller;
        }
        let outer = from.caller.site;
        let (site, outer) = if told_apart { (self.site(record.caller, record.op), outer) } else { (0, 0) };
        let grad = match record.kind {
            _ if !self.asks_for_grad => Grad::AsBefore,
            EdgeKind::AutogradForward | EdgeKind::AutogradBackward | EdgeKind::CheckpointPass => Grad::Off,
            _ => self.grad_at(record.caller, record.op),
        };
        let caller = Caller { site, outer, grad };
        if caller == Caller::default()
            || self.scope_instances[scope.0 as usize].iter().any(|inst| self.instances[inst.0 as usize].caller == caller)
        {
            return caller;
        }
        let count = self.contexts.entry(scope).or_default();
        if *count >= MAX_CONTEXTS {
            return Caller::default();
        }
        *count += 1;
        caller
    }

    /// Grad mode in which an operation of a running copy runs.
    pub(super) fn grad_at(&self, inst: InstanceId, op: u32) -> Grad {
        let running = &self.instances[inst.0 as usize];
        self.program.scope(running.scope).grad_at(op).or(running.caller.grad)
    }

    pub(super) fn instantiate(&mut self, call: u32, class: ObjectId, scope: GlobalScope) {
        let record = self.calls[call as usize].clone();
        if self.is_enum(class) {
            if self.argument(call, 0).is_some() {
                self.record_target(call, Target::Class(scope));
                self.add_members(class, record.dst);
            }
            return;
        }
        let site = self.site(record.caller, record.op);
        let sites = self.sites.entry(class).or_default();
        let site = if sites.contains(&site) {
            site
        } else if sites.len() < MAX_SITES {
            sites.push(site);
            site
        } else {
            if !sites.contains(&u32::MAX) {
                sites.push(u32::MAX);
            }
            u32::MAX
        };
        let instance = self.object(Object::Instance(class, site));
        self.add(record.dst, instance);
        let init = self.intern("__init__");
        let external = self.external_bases(class).into_iter().any(|name| {
            let text = self.text(name);
            !super::models::is_builtin(text) && !matches!(text, "abc.ABC" | "typing.Generic" | "typing.Protocol" | "typing.NamedTuple")
        });
        if self.defines(class, init) || external {
            let node = self.fresh();
            self.class_lookup(class, None, init, node, instance, record.caller, record.op);
            let junk = self.fresh();
            let kind = if record.kind == EdgeKind::Call { EdgeKind::Instantiation } else { record.kind };
            self.call_with(call, node, record.args.clone(), junk, kind);
        }
        if !self.defines(class, init) {
            self.record_target(call, Target::Class(scope));
            if self.dataclasses.contains(&class) {
                let mut fields = self.dataclass_fields(class).into_iter();
                for (passing, node) in record.args.iter() {
                    let name = match passing {
                        Passing::Keyword(name) => Some(Sym(*name)),
                        Passing::Position => fields.next(),
                        Passing::Star | Passing::DoubleStar => None,
                    };
                    if let Some(name) = name {
                        let field = self.field(instance, Key::Attr(name));
                        self.copy(*node, field);
                    }
                }
            }
        }
        for name in ["__new__", "__post_init__"] {
            let name = self.intern(name);
            if self.defines(class, name) {
                let node = self.fresh();
                let junk = self.fresh();
                let receiver = if self.text(name) == "__new__" { NOBODY } else { instance };
                self.class_lookup(class, None, name, node, receiver, record.caller, record.op);
                let args: Rc<[(Passing, NodeId)]> = if receiver == NOBODY {
                    let own = self.fresh();
                    self.add(own, class);
                    std::iter::once((Passing::Position, own)).chain(record.args.iter().copied()).collect()
                } else {
                    [].into()
                };
                self.call_with(call, node, args, junk, EdgeKind::Protocol);
            }
        }
    }

    /// Fields of a dataclass in the order of its `__init__`: those of the bases first.
    fn dataclass_fields(&mut self, class: ObjectId) -> Vec<Sym> {
        let mut fields = Vec::new();
        for base in self.order(class).iter().rev() {
            let Object::Class(scope, _) = self.get(*base) else { continue };
            let module = self.program.module(self.program.module_of(scope));
            for name in &self.program.scope(scope).annotated {
                let name = module.sym(*name);
                if !fields.contains(&name) {
                    fields.push(name);
                }
            }
        }
        fields
    }

    pub(super) fn add_members(&mut self, class: ObjectId, dst: NodeId) {
        let Object::Class(scope, _) = self.get(class) else { return };
        let program = self.program;
        let module = program.module(program.module_of(scope));
        for op in &program.scope(scope).ops {
            if let crate::syntax::OpKind::StoreClass(name, _) = op.kind {
                let text = module.facts.name(name);
                let is_def = module.facts.scopes.iter().any(|inner| inner.name == name && inner.parent != 0);
                if !text.starts_with('_') && !is_def {
                    self.add_object(dst, Object::Member(class, module.sym(name)));
                }
            }
        }
    }
}
