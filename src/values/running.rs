//! What runs: modules, entries, functions that nothing known calls, and what anyone may call.

use rustc_hash::FxHashMap;

use super::engine::Engine;
use super::graph::Caller;
use super::object::{InstanceId, Object};
use crate::names::{GlobalScope, ModuleId, Sym};
use crate::syntax::{Grad, ScopeKind};

impl Engine<'_> {
    /// Runs the bodies of these modules and what they reach.
    pub fn run_modules(&mut self, modules: &[ModuleId]) {
        for module in modules {
            self.run_module(*module);
        }
        self.settle();
    }

    /// Enters functions that nothing known calls, with unknown arguments, from the outside in: whoever calls a function knows more about its
    /// arguments. First those that no other such function names; then special methods, of classes that none of them names before the others;
    /// at last those that name each other.
    pub fn run_uncalled(&mut self, wanted: impl Fn(ModuleId) -> bool) {
        let mut open = Vec::new();
        let mut named: FxHashMap<Sym, u32> = FxHashMap::default();
        let mut modules = None;
        loop {
            if modules.replace(self.module_instances.len()) == Some(self.module_instances.len()) {
                let (still, done): (Vec<GlobalScope>, _) = open.into_iter().partition(|scope| self.is_uncalled(*scope));
                self.count_names(&done, |count| *count -= 1, &mut named);
                open = still;
            } else {
                open = self.uncalled(&wanted);
                named.clear();
                self.count_names(&open, |count| *count += 1, &mut named);
            }
            let turns = open.iter().map(|scope| (self.turn(*scope, &named), *scope));
            let mut turns: Vec<(u8, GlobalScope)> = turns.collect();
            turns.sort_unstable();
            let mut entered = None;
            for (turn, scope) in turns {
                if entered.is_some_and(|entered| entered < turn) {
                    break;
                }
                if self.enter_unbound(scope) {
                    entered = Some(turn);
                }
            }
            if entered.is_none() {
                return;
            }
            self.settle();
        }
    }

    /// When a function that nothing calls has its turn.
    fn turn(&self, scope: GlobalScope, named: &FxHashMap<Sym, u32>) -> u8 {
        let id = self.program.module_of(scope);
        let (module, facts) = (self.program.module(id), self.program.scope(scope));
        let special = module.facts.name(facts.name).starts_with("__");
        let parent = self.program.scope(self.program.global_scope(id, facts.parent));
        let of = if special && parent.kind == ScopeKind::Class { parent.name } else { facts.name };
        match (special, named.get(&module.sym(of)).is_some_and(|count| *count > 0)) {
            (false, false) => 0,
            (true, false) => 1,
            (true, true) => 2,
            (false, true) => 3,
        }
    }

    /// Functions of modules that run, of which no copy does.
    fn uncalled(&self, wanted: &impl Fn(ModuleId) -> bool) -> Vec<GlobalScope> {
        let all = (0..u32::try_from(self.program.scope_count()).unwrap_or(0)).map(GlobalScope);
        all.filter(|scope| {
            let module = self.program.module_of(*scope);
            matches!(self.program.scope(*scope).kind, ScopeKind::Function | ScopeKind::Lambda)
                && self.is_uncalled(*scope)
                && self.module_instances.contains_key(&module)
                && wanted(module)
        })
        .collect()
    }

    fn is_uncalled(&self, scope: GlobalScope) -> bool {
        self.scope_instances[scope.0 as usize].is_empty()
    }

    /// Counts each name that the scopes read, apart from their own.
    fn count_names(&self, scopes: &[GlobalScope], count: impl Fn(&mut u32), named: &mut FxHashMap<Sym, u32>) {
        use crate::syntax::OpKind;
        for scope in scopes {
            let module = self.program.module(self.program.module_of(*scope));
            let facts = self.program.scope(*scope);
            for op in &facts.ops {
                if let OpKind::LoadGlobal(_, name) | OpKind::LoadAttr { name, .. } = &op.kind
                    && *name != facts.name
                {
                    count(named.entry(module.sym(*name)).or_default());
                }
            }
        }
    }

    /// Enters every known object of a function with unknown arguments; false if its definition was never reached.
    fn enter_unbound(&mut self, scope: GlobalScope) -> bool {
        self.enter_apart(scope, Caller::default())
    }

    /// Enters what tells callers apart once more with unknown arguments, apart from the callers that are known: anyone may call it.
    pub fn run_public(&mut self, wanted: impl Fn(ModuleId) -> bool) {
        for at in 0..u32::try_from(self.program.scope_count()).unwrap_or(0) {
            let scope = GlobalScope(at);
            let facts = self.program.scope(scope);
            let known = self.scope_instances[at as usize].iter().any(|inst| self.instances[inst.0 as usize].unbound);
            if facts.kind == ScopeKind::Function && facts.polymorphic && !known && wanted(self.program.module_of(scope)) {
                self.enter_apart(scope, Caller { site: u32::MAX, ..Caller::default() });
            }
        }
        self.settle();
    }

    fn enter_apart(&mut self, scope: GlobalScope, caller: Caller) -> bool {
        let module = self.program.module_of(scope);
        let parent_scope = self.program.global_scope(module, self.program.scope(scope).parent);
        let parents: Vec<InstanceId> = self.scope_instances[parent_scope.0 as usize].clone();
        let mut entered = false;
        for parent in parents {
            let Some(function) = self.object_ids.get(&Object::Function(scope, parent)).copied() else { continue };
            entered = true;
            let grad = if self.differentiates(scope, parent) { Grad::Off } else { caller.grad };
            let inst = self.instance(scope, parent, Caller { grad, ..caller }, None);
            self.instances[inst.0 as usize].unbound = true;
            self.bind_unknown(function, inst);
        }
        entered
    }

    /// Whether a function is `forward` or `backward` of an autograd function, which run with the grad mode off.
    fn differentiates(&mut self, scope: GlobalScope, parent: InstanceId) -> bool {
        let module = self.program.module(self.program.module_of(scope));
        let name = module.facts.name(self.program.scope(scope).name);
        let class = self.instances.get(parent.0 as usize).and_then(|outer| outer.class);
        matches!(name, "forward" | "backward") && class.is_some_and(|class| self.is_autograd(class))
    }

    /// Enters a function by its dotted name as an entry point: its parameters are unknown except for their defaults.
    pub fn enter(&mut self, scope: GlobalScope) -> bool {
        self.enter_unbound(scope)
    }
}
