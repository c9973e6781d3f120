//! Builtins and methods of built-in types, as far as they move objects about.

use std::rc::Rc;

use super::engine::Engine;
use super::graph::{CallRecord, EdgeKind, Key, NodeId, Target, Use};
use super::object::{Builtin, InstanceId, Object, ObjectId, Reason};
use crate::names::Sym;
use crate::syntax::Passing;

impl Engine<'_> {
    /// One more builtin that a call may call. Builtins that read their arguments' values are evaluated again when those grow.
    pub(super) fn apply_builtin(&mut self, call: u32, name: Sym) {
        self.record_target(call, Target::Builtin(name));
        let text = self.text(name).to_owned();
        let record = self.calls[call as usize].clone();
        let (caller, op, dst) = (record.caller, record.op, record.dst);
        let first = self.argument(call, 0);
        self.calls_with_file(call, name);
        match text.as_str() {
            "getattr" | "hasattr" | "setattr" | "isinstance" | "issubclass" | "callable" | "__import__" | "bool" | "str" | "int"
            | "type" => {
                for (_, node) in record.args.iter() {
                    self.subscribe(*node, Use::Again2(call, name));
                }
                if record.args.is_empty() && matches!(text.as_str(), "str" | "int" | "bool") {
                    self.add_object(dst, Object::Unknown(Reason::Opaque));
                }
            }
            "staticmethod" => self.wrap_first(first, 2, dst),
            "classmethod" => self.wrap_first(first, 3, dst),
            "property" => self.wrap_first(first, 4, dst),
            "super" => self.super_object(call, caller, dst),
            "list" | "tuple" | "set" | "frozenset" | "sorted" | "reversed" | "iter" | "enumerate" | "zip" | "filter" | "map" => {
                self.sequence_builtin(call, &text, caller, op, dst);
            }
            "dict" | "dict.fromkeys" => {
                let object = self.object(Object::Dict(caller, op));
                for (passing, node) in record.args.iter() {
                    match passing {
                        Passing::Keyword(name) => {
                            let key = self.object(Object::Str(Sym(*name)));
                            let item = self.item(object, key);
                            self.copy(*node, item);
                        }
                        _ => self.subscribe(*node, Use::CopyContainer { to: object }),
                    }
                }
                self.add(dst, object);
            }
            "next" | "min" | "max" => {
                if let Some(node) = first {
                    let iterate = self.new_call(CallRecord { kind: EdgeKind::Protocol, ..record.clone() });
                    if text == "next" {
                        let next = self.intern("__next__");
                        let method = self.fresh();
                        self.subscribe(node, Use::Next { name: next, method, call: iterate });
                        self.call_with(call, method, [].into(), dst, EdgeKind::Protocol);
                    } else if record.args.len() == 1 {
                        self.subscribe(node, Use::Iterate(iterate));
                    } else {
                        for (passing, node) in record.args.iter() {
                            if *passing == Passing::Position {
                                self.copy(*node, dst);
                            }
                        }
                    }
                }
                if let Some(default) = self.argument(call, 1).filter(|_| text == "next") {
                    self.copy(default, dst);
                }
                self.call_key(call);
            }
            "globals" => {
                let module = self.program.module_of(self.instances[caller.0 as usize].scope);
                self.add_object(dst, Object::Namespace(module));
            }
            "vars" | "locals" => {
                self.add_object(dst, Object::Unknown(Reason::ComputedAttribute));
            }
            "eval" | "exec" => self.add_object(dst, Object::Unknown(Reason::ComputedString)),
            "object" => {
                let site = self.site(caller, op);
                let class = self.object(Object::Builtin(name));
                self.add_object(dst, Object::Instance(class, site));
            }
            "print" | "delattr" => self.add_object(dst, Object::None),
            _ => self.add_object(dst, Object::Unknown(Reason::Opaque)),
        }
    }

    fn wrap_first(&mut self, first: Option<NodeId>, kind: u8, dst: NodeId) {
        if let Some(node) = first {
            self.subscribe(node, Use::Wrap(kind, dst));
        }
    }

    /// `super()` and `super(Class, self)`.
    fn super_object(&mut self, call: u32, caller: InstanceId, dst: NodeId) {
        let program = self.program;
        let (class_node, receiver) = match (self.argument(call, 0), self.argument(call, 1)) {
            (Some(class), Some(receiver)) => (Some(class), Some(receiver)),
            _ => (None, None),
        };
        if let (Some(class), Some(receiver)) = (class_node, receiver) {
            for class in self.set(class).to_vec() {
                self.subscribe(receiver, Use::SuperOf { class, dst });
            }
            self.subscribe(class, Use::SuperFor { receiver, dst });
            return;
        }
        // The class around the method, seen from the method's own running copy or one that encloses it.
        let mut at = caller;
        while let Some(inst) = self.instances.get(at.0 as usize) {
            let (scope, parent) = (inst.scope, inst.parent);
            let class = self.instances.get(parent.0 as usize).and_then(|outer| outer.class);
            if let Some(class) = class {
                if let Some(param) = program.scope(scope).params.first() {
                    let node = self.reg(at, param.reg);
                    self.subscribe(node, Use::SuperOf { class, dst });
                }
                return;
            }
            at = parent;
        }
    }

    pub(super) fn super_of(&mut self, class: ObjectId, receiver: ObjectId, dst: NodeId) {
        if matches!(self.get(class), Object::Class(..))
            && matches!(self.get(receiver), Object::Instance(..) | Object::Class(..) | Object::Member(..))
        {
            self.add_object(dst, Object::Super(class, receiver));
        }
    }

    fn sequence_builtin(&mut self, call: u32, text: &str, caller: InstanceId, op: u32, dst: NodeId) {
        let record = self.calls[call as usize].clone();
        let object = self.object(Object::Sequence(caller, op));
        let element = self.element(object);
        match text {
            "enumerate" => {
                let pair = self.object(Object::Sequence(caller, op | 1 << 30));
                let (index, value) = (self.object(Object::Int(0)), self.object(Object::Int(1)));
                let (index, value) = (self.item(pair, index), self.item(pair, value));
                self.add_object(index, Object::Unknown(Reason::Opaque));
                if let Some(node) = self.argument(call, 0) {
                    let iterate = self.new_call(CallRecord { dst: value, kind: EdgeKind::Protocol, ..record });
                    self.subscribe(node, Use::Iterate(iterate));
                }
                self.add(element, pair);
            }
            "zip" => {
                let tuple = self.object(Object::Sequence(caller, op | 1 << 30));
                for (at, (_, node)) in record.args.iter().enumerate() {
                    let key = self.object(Object::Int(i64::try_from(at).unwrap_or(0)));
                    let item = self.item(tuple, key);
                    let iterate = self.new_call(CallRecord { dst: item, kind: EdgeKind::Protocol, ..record.clone() });
                    self.subscribe(*node, Use::Iterate(iterate));
                }
                self.add(element, tuple);
            }
            "map" | "filter" => {
                // Every function among the arguments is called with elements of the others.
                let items = self.fresh();
                for (_, node) in record.args.iter() {
                    let iterate = self.new_call(CallRecord { dst: items, kind: EdgeKind::Protocol, ..record.clone() });
                    self.subscribe(*node, Use::Iterate(iterate));
                }
                let result = if text == "map" { element } else { self.fresh() };
                if text == "filter" {
                    self.copy(items, element);
                }
                let args: Rc<[(Passing, NodeId)]> = [(Passing::Position, items)].into();
                for (_, node) in record.args.iter() {
                    let callback =
                        self.new_call(CallRecord { args: args.clone(), dst: result, kind: EdgeKind::Callback, ..record.clone() });
                    self.subscribe(*node, Use::CallFunction(callback));
                }
            }
            _ => {
                if let Some(node) = self.argument(call, 0) {
                    if matches!(text, "list" | "tuple") {
                        self.subscribe(node, Use::CopyContainer { to: object });
                    }
                    let iterate = self.new_call(CallRecord { dst: element, kind: EdgeKind::Protocol, ..record });
                    let what = if matches!(text, "list" | "tuple") { Use::IterateOther(iterate) } else { Use::Iterate(iterate) };
                    self.subscribe(node, what);
                }
                self.call_key(call);
            }
        }
        self.add(dst, object);
    }

    /// `key=` functions are called.
    fn call_key(&mut self, call: u32) {
        if let Some(node) = self.keyword(call, "key") {
            let (argument, junk) = (self.fresh(), self.fresh());
            self.add_object(argument, Object::Unknown(Reason::Opaque));
            let record = self.calls[call as usize].clone();
            let args = [(Passing::Position, argument)].into();
            let callback = self.new_call(CallRecord { args, dst: junk, kind: EdgeKind::Callback, ..record });
            self.subscribe(node, Use::CallFunction(callback));
        }
    }

    /// Methods of strings, dicts and lists.
    pub(super) fn apply_builtin_method(&mut self, call: u32, kind: Builtin, name: Sym, owner: ObjectId) {
        let text = self.text(name).to_owned();
        let record = self.calls[call as usize].clone();
        let (caller, op, dst) = (record.caller, record.op, record.dst);
        match (kind, text.as_str()) {
            (Builtin::Str, _) => {
                for (_, node) in record.args.iter() {
                    self.subscribe(*node, Use::StringMethod { call, name, owner });
                }
                self.string_method(call, name, owner);
            }
            (Builtin::Dict, "get" | "pop" | "setdefault") => {
                if let Some(key) = self.argument(call, 0) {
                    self.subscribe(key, Use::DictGet { call, owner });
                }
                if text == "setdefault"
                    && let Some(default) = self.argument(call, 1)
                {
                    let element = self.element(owner);
                    self.copy(default, element);
                    self.copy(default, dst);
                }
            }
            (Builtin::Dict, "items") => {
                let object = self.object(Object::Sequence(caller, op));
                let pair = self.object(Object::Sequence(caller, op | 1 << 30));
                let (zero, one) = (self.object(Object::Int(0)), self.object(Object::Int(1)));
                let (key, value) = (self.item(pair, zero), self.item(pair, one));
                let (keys, all) = (self.field(owner, Key::Keys), self.field(owner, Key::All));
                self.copy(keys, key);
                self.copy(all, value);
                let element = self.element(object);
                self.add(element, pair);
                self.add(dst, object);
            }
            (Builtin::Dict, "values" | "keys") => {
                let object = self.object(Object::Sequence(caller, op));
                let element = self.element(object);
                let from = self.field(owner, if text == "values" { Key::All } else { Key::Keys });
                self.copy(from, element);
                self.add(dst, object);
            }
            (Builtin::Dict, "copy") | (Builtin::List, "copy") => self.add(dst, owner),
            (Builtin::Dict, "update") => {
                for (passing, node) in record.args.iter() {
                    match passing {
                        Passing::Keyword(name) => {
                            let key = self.object(Object::Str(Sym(*name)));
                            let item = self.item(owner, key);
                            self.copy(*node, item);
                        }
                        _ => self.subscribe(*node, Use::CopyContainer { to: owner }),
                    }
                }
            }
            (Builtin::List, "append" | "add" | "insert" | "extend") => {
                let element = self.element(owner);
                for (_, node) in record.args.iter() {
                    if text == "extend" {
                        let iterate = self.new_call(CallRecord { dst: element, kind: EdgeKind::Protocol, ..record.clone() });
                        self.subscribe(*node, Use::Iterate(iterate));
                    } else {
                        self.copy(*node, element);
                    }
                }
                self.add_object(dst, Object::None);
            }
            (Builtin::List, "pop") => {
                let all = self.field(owner, Key::All);
                self.copy(all, dst);
            }
            (Builtin::List, "union" | "intersection" | "difference") => self.add(dst, owner),
            _ => self.add_object(dst, Object::Unknown(Reason::Opaque)),
        }
    }

    /// `get`, `pop` and `setdefault` with the keys that are known now. Whether a key is missing is decided when it arrives.
    pub(super) fn dict_get(&mut self, call: u32, owner: ObjectId) {
        let CallRecord { caller, op, dst, .. } = self.calls[call as usize].clone();
        let Some(node) = self.argument(call, 0) else { return };
        let keys = self.keys_in(node, Use::DictGet { call, owner });
        self.load_item(owner, &keys, dst, caller, op);
        let known = self.field(owner, Key::Keys);
        if keys.iter().any(|key| !self.set(known).contains(key)) {
            match self.argument(call, 1) {
                Some(default) => self.copy(default, dst),
                None => self.add_object(dst, Object::None),
            }
        }
    }

    // --- the framework table's functions that read values --------------------------------------------------------------------------

    pub(super) fn make_partial(&mut self, call: u32, function: ObjectId) {
        let record = self.calls[call as usize].clone();
        let rest: Rc<[(Passing, NodeId)]> = {
            let mut skipped = false;
            let keep = record.args.iter().filter(|(passing, _)| {
                let own = *passing == Passing::Position && !skipped;
                skipped |= own;
                !own
            });
            keep.copied().collect()
        };
        let object = self.object(Object::Partial(function, record.caller, record.op));
        self.partials.insert(object, rest);
        self.add(record.dst, object);
    }

    pub(super) fn bind_method(&mut self, call: u32) {
        let dst = self.calls[call as usize].dst;
        if let (Some(function), Some(receiver)) = (self.argument(call, 0), self.argument(call, 1)) {
            for node in [function, receiver] {
                self.subscribe(node, Use::MethodType { function, receiver, dst });
            }
        }
    }

    pub(super) fn bind_methods(&mut self, function: NodeId, receiver: NodeId, dst: NodeId) {
        for function in self.set(function).to_vec() {
            for receiver in self.set(receiver).to_vec() {
                if matches!(self.get(function), Object::Function(..) | Object::Partial(..) | Object::Bound(..)) {
                    self.add_object(dst, Object::Bound(function, receiver));
                }
            }
        }
    }

    pub(super) fn import_named(&mut self, call: u32) {
        if let Some(node) = self.argument(call, 0) {
            self.subscribe(node, Use::ImportNamed(call));
        }
    }

    pub(super) fn import_one(&mut self, call: u32, name: ObjectId) {
        let CallRecord { caller, dst, .. } = self.calls[call as usize];
        let module = self.program.module_of(self.instances[caller.0 as usize].scope);
        match self.get(name) {
            Object::Str(text) => {
                let text = self.text(text).to_owned();
                let level = u32::try_from(text.chars().take_while(|c| *c == '.').count()).unwrap_or(0);
                let near = self.program.module(module).source;
                match self.program.absolute(module, text.trim_start_matches('.'), level) {
                    Some(full) if !full.is_empty() => self.add_module(&full, near, dst),
                    _ => self.add_object(dst, Object::Unknown(Reason::ComputedString)),
                }
            }
            Object::Unknown(_) | Object::Prefix(_) | Object::External(_) | Object::Present(_) => {
                self.add_object(dst, Object::Unknown(Reason::ComputedString));
            }
            _ => {}
        }
    }

    pub(super) fn read_environment(&mut self, call: u32) {
        let dst = self.calls[call as usize].dst;
        let default = self.argument(call, 1);
        if let Some(name) = self.argument(call, 0) {
            self.subscribe(name, Use::Environment { default, dst });
        }
    }

    /// Value of an environment variable under the profile: the declared one, the default if it is declared unset, both if nothing is declared.
    pub(super) fn environment(&mut self, name: ObjectId, default: Option<NodeId>, dst: NodeId) {
        let Object::Str(sym) = self.get(name) else {
            return self.add_object(dst, Object::Unknown(Reason::ComputedString));
        };
        let text = self.text(sym).to_owned();
        let declared = self.assumptions.environment.get(&text).cloned();
        match &declared {
            Some(super::graph::Known::None) => {}
            Some(known) => {
                let object = self.known(known, sym);
                return self.add_object(dst, object);
            }
            None => self.add_object(dst, Object::Unknown(Reason::Opaque)),
        }
        match default {
            Some(node) => self.copy(node, dst),
            None => self.add_object(dst, Object::None),
        }
    }
}
