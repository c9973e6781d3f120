//! What runs: modules, entries, functions that nothing known calls, and what anyone may call.

use rustc_hash::FxHashSet;

use super::engine::Engine;
use super::object::{InstanceId, Object};
use crate::names::{GlobalScope, ModuleId, Sym};
use crate::syntax::ScopeKind;

impl Engine<'_> {
    /// Runs the bodies of these modules and what they reach.
    pub fn run_modules(&mut self, modules: &[ModuleId]) {
        for module in modules {
            self.run_module(*module);
        }
        self.settle();
    }

    /// Enters functions that nothing known calls, with unknown arguments: first those that no other such function names, then the rest.
    pub fn run_uncalled(&mut self, wanted: impl Fn(ModuleId) -> bool) {
        for round in 0..2 {
            let mut open: Vec<GlobalScope> = Vec::new();
            for at in 0..u32::try_from(self.program.scope_count()).unwrap_or(0) {
                let scope = GlobalScope(at);
                let facts = self.program.scope(scope);
                let function = matches!(facts.kind, ScopeKind::Function | ScopeKind::Lambda);
                let module = self.program.module_of(scope);
                if function && self.module_instances.contains_key(&module) && wanted(module) && self.scope_instances[at as usize].is_empty()
                {
                    open.push(scope);
                }
            }
            let named: FxHashSet<Sym> = if round == 0 { self.names_used_in(&open) } else { FxHashSet::default() };
            for scope in open {
                let module = self.program.module(self.program.module_of(scope));
                let facts = self.program.scope(scope);
                let name = module.sym(facts.name);
                if !named.contains(&name) && !(round == 0 && module.facts.name(facts.name).starts_with("__")) {
                    self.enter_unbound(scope);
                }
            }
            self.settle();
        }
        // Functions defined inside functions that were just entered.
        loop {
            let mut entered = false;
            for at in 0..u32::try_from(self.program.scope_count()).unwrap_or(0) {
                let scope = GlobalScope(at);
                let kind = self.program.scope(scope).kind;
                let module = self.program.module_of(scope);
                if matches!(kind, ScopeKind::Function | ScopeKind::Lambda)
                    && self.module_instances.contains_key(&module)
                    && wanted(module)
                    && self.scope_instances[at as usize].is_empty()
                {
                    entered |= self.enter_unbound(scope);
                }
            }
            if !entered {
                break;
            }
            self.settle();
        }
    }

    fn names_used_in(&self, scopes: &[GlobalScope]) -> FxHashSet<Sym> {
        use crate::syntax::OpKind;
        let mut names = FxHashSet::default();
        for scope in scopes {
            let module = self.program.module(self.program.module_of(*scope));
            let facts = self.program.scope(*scope);
            for op in &facts.ops {
                if let OpKind::LoadGlobal(_, name) | OpKind::LoadAttr { name, .. } = &op.kind
                    && *name != facts.name
                {
                    names.insert(module.sym(*name));
                }
            }
        }
        names
    }

    /// Enters every known object of a function with unknown arguments; false if its definition was never reached.
    fn enter_unbound(&mut self, scope: GlobalScope) -> bool {
        self.enter_apart(scope, (0, 0))
    }

    /// Enters what tells callers apart once more with unknown arguments, apart from the callers that are known: anyone may call it.
    pub fn run_public(&mut self, wanted: impl Fn(ModuleId) -> bool) {
        for at in 0..u32::try_from(self.program.scope_count()).unwrap_or(0) {
            let scope = GlobalScope(at);
            let facts = self.program.scope(scope);
            let known = self.scope_instances[at as usize].iter().any(|inst| self.instances[inst.0 as usize].unbound);
            if facts.kind == ScopeKind::Function && facts.polymorphic && !known && wanted(self.program.module_of(scope)) {
                self.enter_apart(scope, (u32::MAX, 0));
            }
        }
        self.settle();
    }

    fn enter_apart(&mut self, scope: GlobalScope, context: (u32, u32)) -> bool {
        let module = self.program.module_of(scope);
        let parent_scope = self.program.global_scope(module, self.program.scope(scope).parent);
        let parents: Vec<InstanceId> = self.scope_instances[parent_scope.0 as usize].clone();
        let mut entered = false;
        for parent in parents {
            let Some(function) = self.object_ids.get(&Object::Function(scope, parent)).copied() else { continue };
            entered = true;
            let inst = self.instance(scope, parent, context, None);
            self.instances[inst.0 as usize].unbound = true;
            self.bind_unknown(function, inst);
        }
        entered
    }

    /// Enters a function by its dotted name as an entry point: its parameters are unknown except for their defaults.
    pub fn enter(&mut self, scope: GlobalScope) -> bool {
        self.enter_unbound(scope)
    }
}
