//! Arguments: how they are bound to parameters, spread, and made up where nobody is known to call.

use super::engine::Engine;
use super::graph::{Key, NodeId, Use};
use super::object::{InstanceId, Object, ObjectId, Reason};
use crate::names::{GlobalScope, Sym};
use crate::syntax::{ParamKind, Passing};

impl Engine<'_> {
    pub(super) fn bind_arguments(&mut self, function: ObjectId, inst: InstanceId, args: &[(Passing, NodeId)], receiver: Option<ObjectId>) {
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
    pub(super) fn rest(&mut self, inst: InstanceId, reg: u32) -> ObjectId {
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
}
