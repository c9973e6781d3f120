//! Calls: what each kind of callee does, argument binding, instantiation and iteration.

use std::rc::Rc;

use super::engine::{Engine, MAX_CONTEXTS, NOBODY};
use super::graph::{CallEdge, CallRecord, EdgeKind, Key, NodeId, Target, Unresolved, Use};
use super::models::{self, Model};
use super::object::{InstanceId, Object, ObjectId, Reason};
use crate::names::{GlobalScope, Sym};
use crate::syntax::{ParamKind, Passing};

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
        let context =
            if facts.polymorphic && !(record.args.is_empty() && receiver.is_none()) { self.context_of(scope, &record) } else { (0, 0) };
        let inst = self.instance(scope, parent, context, None);
        self.record(CallEdge { caller: record.caller, op: record.op, target: Target::Scope(scope), kind: record.kind, callee: inst });
        self.bind_arguments(function, inst, &record.args, receiver);
        if facts.is_generator || facts.is_async {
            self.add_object(record.dst, Object::Generator(inst));
        } else {
            let result = self.instances[inst.0 as usize].result;
            self.copy(result, record.dst);
        }
    }

    /// The caller that a running copy is told apart by: this call and the one that led to the caller.
    fn context_of(&mut self, scope: GlobalScope, record: &CallRecord) -> (u32, u32) {
        let site = self.site(record.caller, record.op);
        let outer = self.instances[record.caller.0 as usize].context.0;
        let count = self.contexts.entry(scope).or_default();
        if *count >= MAX_CONTEXTS {
            return (0, 0);
        }
        let known = self.scope_instances[scope.0 as usize].iter().any(|inst| self.instances[inst.0 as usize].context == (site, outer));
        if !known {
            *count += 1;
        }
        (site, outer)
    }

    fn bind_arguments(&mut self, function: ObjectId, inst: InstanceId, args: &[(Passing, NodeId)], receiver: Option<ObjectId>) {
        let program = self.program;
        let scope = self.instances[inst.0 as usize].scope;
        let module = program.module(program.module_of(scope));
        let params = &program.scope(scope).params;
        let positional: Vec<usize> =
            (0..params.len()).filter(|at| matches!(params[*at].kind, ParamKind::PositionOnly | ParamKind::Normal)).collect();
        let star = params.iter().position(|param| param.kind == ParamKind::Star);
        let double = params.iter().position(|param| param.kind == ParamKind::DoubleStar);
        let mut bound = vec![false; params.len()];
        let mut next = 0usize;
        if let Some(receiver) = receiver {
            if let Some(at) = positional.first() {
                let node = self.reg(inst, params[*at].reg);
                self.add(node, receiver);
                bound[*at] = true;
            } else if let Some(star) = star {
                let rest = self.rest(inst, params[star].reg);
                let key = self.object(Object::Int(0));
                let item = self.item(rest, key);
                self.add(item, receiver);
            }
            next = 1;
        }
        let mut spread = false;
        for (passing, node) in args {
            match passing {
                Passing::Position if !spread => {
                    if let Some(at) = positional.get(next) {
                        let param = self.reg(inst, params[*at].reg);
                        self.copy(*node, param);
                        bound[*at] = true;
                    } else if let Some(star) = star {
                        let rest = self.rest(inst, params[star].reg);
                        let key = self.object(Object::Int(i64::try_from(next - positional.len()).unwrap_or(0)));
                        let item = self.item(rest, key);
                        self.copy(*node, item);
                    }
                    next += 1;
                }
                // Behind `*args` a position is not known: the value may go to any parameter that is left.
                Passing::Position => {
                    for at in positional.iter().skip(next) {
                        let param = self.reg(inst, params[*at].reg);
                        self.copy(*node, param);
                    }
                }
                Passing::Star => {
                    spread = true;
                    let start = u32::try_from(next).unwrap_or(0);
                    self.subscribe(*node, Use::Spread { inst, start });
                }
                Passing::Keyword(name) => {
                    let name = Sym(*name);
                    let found = params.iter().position(|param| {
                        matches!(param.kind, ParamKind::Normal | ParamKind::KeywordOnly) && module.sym(param.name) == name
                    });
                    if let Some(at) = found {
                        let param = self.reg(inst, params[at].reg);
                        self.copy(*node, param);
                        bound[at] = true;
                    } else if let Some(double) = double {
                        let rest = self.named_rest(inst, params[double].reg);
                        let key = self.object(Object::Str(name));
                        let item = self.item(rest, key);
                        self.copy(*node, item);
                    }
                }
                Passing::DoubleStar => self.subscribe(*node, Use::SpreadNamed { inst }),
            }
        }
        if let Some(star) = star {
            self.rest(inst, params[star].reg);
        }
        if let Some(double) = double {
            self.named_rest(inst, params[double].reg);
        }
        for (at, node) in self.defaults.get(&function).cloned().unwrap_or_default() {
            let at = at as usize;
            if at < params.len() && !bound[at] {
                let param = self.reg(inst, params[at].reg);
                self.copy(node, param);
            }
        }
    }

    /// The tuple in a `*args` parameter.
    fn rest(&mut self, inst: InstanceId, reg: u32) -> ObjectId {
        let object = self.object(Object::Sequence(inst, u32::MAX));
        let node = self.reg(inst, reg);
        self.add(node, object);
        object
    }

    /// The dict in a `**kwargs` parameter.
    fn named_rest(&mut self, inst: InstanceId, reg: u32) -> ObjectId {
        let object = self.object(Object::Dict(inst, u32::MAX));
        let node = self.reg(inst, reg);
        self.add(node, object);
        object
    }

    pub(super) fn spread(&mut self, object: ObjectId, inst: InstanceId, start: u32) {
        match self.get(object) {
            Object::Sequence(..) => {
                let keys = self.field(object, Key::Keys);
                self.subscribe(keys, Use::SpreadKey { inst, start, container: object });
                let element = self.element(object);
                self.spread_from(element, inst, start);
            }
            Object::None => {}
            _ => {
                let unknown = self.fresh();
                self.add_object(unknown, Object::Unknown(Reason::Opaque));
                self.spread_from(unknown, inst, start);
            }
        }
    }

    fn spread_from(&mut self, node: NodeId, inst: InstanceId, start: u32) {
        let program = self.program;
        let params = &program.scope(self.instances[inst.0 as usize].scope).params;
        for (at, param) in params.iter().enumerate() {
            match param.kind {
                ParamKind::PositionOnly | ParamKind::Normal if at >= start as usize => {
                    let param = self.reg(inst, param.reg);
                    self.copy(node, param);
                }
                ParamKind::Star => {
                    let rest = self.rest(inst, param.reg);
                    let element = self.element(rest);
                    self.copy(node, element);
                }
                _ => {}
            }
        }
    }

    pub(super) fn spread_key(&mut self, key: ObjectId, inst: InstanceId, start: u32, container: ObjectId) {
        let Object::Int(at) = self.get(key) else { return };
        let program = self.program;
        let params = &program.scope(self.instances[inst.0 as usize].scope).params;
        let place = usize::try_from(at).unwrap_or(0) + start as usize;
        let positional = params.iter().filter(|param| matches!(param.kind, ParamKind::PositionOnly | ParamKind::Normal)).count();
        let item = self.item(container, key);
        if place < positional {
            let param = self.reg(inst, params[place].reg);
            self.copy(item, param);
        } else if let Some(star) = params.iter().find(|param| param.kind == ParamKind::Star) {
            let rest = self.rest(inst, star.reg);
            let key = self.object(Object::Int(i64::try_from(place - positional).unwrap_or(0)));
            let target = self.item(rest, key);
            self.copy(item, target);
        }
    }

    pub(super) fn spread_named(&mut self, key: ObjectId, inst: InstanceId, container: ObjectId) {
        let Object::Str(name) = self.get(key) else { return };
        let program = self.program;
        let scope = self.instances[inst.0 as usize].scope;
        let module = program.module(program.module_of(scope));
        let params = &program.scope(scope).params;
        let item = self.item(container, key);
        let found =
            params.iter().find(|param| matches!(param.kind, ParamKind::Normal | ParamKind::KeywordOnly) && module.sym(param.name) == name);
        if let Some(param) = found {
            let param = self.reg(inst, param.reg);
            self.copy(item, param);
        } else if let Some(double) = params.iter().find(|param| param.kind == ParamKind::DoubleStar) {
            let rest = self.named_rest(inst, double.reg);
            let target = self.item(rest, key);
            self.copy(item, target);
        }
    }

    /// Parameters of a function that nothing known calls: defaults where there are, else unknown.
    pub(super) fn bind_unknown(&mut self, function: ObjectId, inst: InstanceId) {
        let program = self.program;
        let scope = self.instances[inst.0 as usize].scope;
        let facts = program.scope(scope);
        self.bind_arguments(function, inst, &[], None);
        let parent = program.global_scope(program.module_of(scope), facts.parent);
        let is_method = program.scope(parent).kind == crate::syntax::ScopeKind::Class;
        for (at, param) in facts.params.iter().enumerate() {
            let node = self.reg(inst, param.reg);
            if at == 0 && is_method && matches!(param.kind, ParamKind::Normal | ParamKind::PositionOnly) {
                self.bind_own_class(parent, inst, node);
            } else if matches!(param.kind, ParamKind::PositionOnly | ParamKind::Normal | ParamKind::KeywordOnly) {
                self.add_object(node, Object::Unknown(Reason::ParameterUnbound));
            }
        }
    }

    /// The first parameter of a method that nothing known calls: an instance of the class it stands in.
    fn bind_own_class(&mut self, class_scope: GlobalScope, method: InstanceId, node: NodeId) {
        let outer = self.instances[method.0 as usize].parent;
        let Some(class) = self.instances.get(outer.0 as usize).filter(|outer| outer.scope == class_scope).and_then(|outer| outer.class)
        else {
            return self.add_object(node, Object::Unknown(Reason::ParameterUnbound));
        };
        let scope = self.instances[method.0 as usize].scope;
        let module = self.program.module(self.program.module_of(scope));
        let has = |wanted: &str| self.program.scope(scope).decorators.iter().any(|name| module.facts.name(*name) == wanted);
        if has("staticmethod") {
            return self.add_object(node, Object::Unknown(Reason::ParameterUnbound));
        }
        if has("classmethod") {
            return self.add(node, class);
        }
        for site in self.sites.get(&class).cloned().unwrap_or_else(|| vec![u32::MAX]) {
            self.add_object(node, Object::Instance(class, site));
        }
    }

    // --- classes -------------------------------------------------------------------------------------------------------------------

    fn instantiate(&mut self, call: u32, class: ObjectId, scope: GlobalScope) {
        let record = self.calls[call as usize].clone();
        if self.is_enum(class) {
            if let Some(value) = self.argument(call, 0) {
                let _ = value;
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

    fn apply_autograd(&mut self, call: u32, class: ObjectId) {
        let record = self.calls[call as usize].clone();
        let context = self.fresh();
        self.add_object(context, Object::Unknown(Reason::Opaque));
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

    // --- the framework table -------------------------------------------------------------------------------------------------------

    fn apply_external(&mut self, call: u32, name: Sym) {
        let text = self.text(name).to_owned();
        let called = self.without_calls(name);
        self.record_target(call, Target::External(called));
        let dst = self.calls[call as usize].dst;
        if text == "sys.modules.setdefault"
            && let (Some(key), Some(value)) = (self.argument(call, 0), self.argument(call, 1))
        {
            let CallRecord { caller, op, .. } = self.calls[call as usize];
            let keys = self.set(key).to_vec();
            let owner = self.intern("sys.modules");
            let owner = self.object(Object::External(owner));
            self.store_item(owner, &keys, value, caller, op);
        }
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
    fn decorate(&mut self, call: u32, model: Model, name: Sym) {
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
                    self.call_with(call, node, args, dst, EdgeKind::Callback);
                }
            }
            Model::Environment => self.read_environment(call),
        }
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

    // --- iteration and contexts ----------------------------------------------------------------------------------------------------

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
