//! Modules and their names: imports, star imports, lazy exports, and what replaced a module.

use super::engine::Engine;
use super::graph::{CallRecord, EdgeKind, Key, NodeId, Use};
use super::object::{InstanceId, Object, Reason};
use crate::names::{ModuleId, Sym};
use crate::syntax::{NameId, OpKind, Passing};

impl Engine<'_> {
    pub(super) fn resolve(&mut self, from: ModuleId, module: NameId, level: u32) -> Option<ModuleId> {
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
    fn replaces_itself(&self, module: ModuleId) -> bool {
        let program = self.program;
        let module = program.module(module);
        let Some(sys) = module.facts.names.iter().position(|name| name == "modules") else { return false };
        let Some(body) = module.facts.scopes.first() else { return false };
        body.ops.iter().any(|op| matches!(&op.kind, OpKind::LoadAttr { name, .. } if *name as usize == sys))
            && module.facts.names.iter().any(|name| name == "__name__")
    }

    pub(super) fn import(&mut self, from: ModuleId, name: NameId, top: bool, dst: NodeId) {
        let program = self.program;
        let here = program.module(from);
        let name = here.facts.name(name);
        self.run_with_parents(name, here.source);
        let bound = if top { name.split('.').next().unwrap_or(name) } else { name };
        self.add_module(bound, here.source, dst);
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn import_from(&mut self, from: ModuleId, module: NameId, level: u32, name: Sym, dst: NodeId, inst: InstanceId, op: u32) {
        let program = self.program;
        let here = program.module(from);
        let Some(base) = program.absolute(from, here.facts.name(module), level) else {
            self.add_object(dst, Object::Unknown(Reason::Undefined));
            return;
        };
        self.run_with_parents(&base, here.source);
        if program.strings.find(&base).and_then(|sym| program.find(sym, here.source)).is_some() {
            let node = self.fresh();
            self.subscribe(node, Use::Attr { name, dst, from: inst, op });
            self.add_module(&base, here.source, node);
            return;
        }
        // A name that only `sys.modules` has.
        let sym = self.intern(&base);
        let alias = self.alias(sym);
        self.subscribe(alias, Use::Attr { name, dst, from: inst, op });
        let full = if base.is_empty() { self.text(name).to_owned() } else { format!("{base}.{}", self.text(name)) };
        self.add_module(&full, here.source, dst);
    }

    pub(super) fn load_global(&mut self, module: ModuleId, name: Sym, dst: NodeId, inst: InstanceId) {
        if self.module_name(module, name, dst, inst) {
            return;
        }
        let text = self.text(name).to_owned();
        match text.as_str() {
            "__file__" => {
                let file = self.file_of(module);
                self.add_object(dst, file);
            }
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
    fn module_name(&mut self, module: ModuleId, name: Sym, dst: NodeId, inst: InstanceId) -> bool {
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
        false
    }

    pub(super) fn load_module_attr(&mut self, module: ModuleId, name: Sym, dst: NodeId, inst: InstanceId, op: u32) {
        let program = self.program;
        if self.module_name(module, name, dst, inst) {
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
}
