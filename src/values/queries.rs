//! What routes and rules ask of the result, and what one round tells the next.

use std::collections::{BTreeMap, BTreeSet};

use super::engine::Engine;
use super::graph::{Caller, Key, Unresolved};
use super::object::{InstanceId, Object, ObjectId, Reason};
use crate::names::{GlobalScope, ModuleId, Program, Sym};
use crate::syntax::{CondKind, NO_REG, OpKind, Reg, ScopeKind};

impl Engine<'_> {
    /// The scope of a running copy.
    #[must_use]
    pub fn scope_of(&self, inst: InstanceId) -> GlobalScope {
        self.instances[inst.0 as usize].scope
    }

    /// Scopes that run at least once, in order.
    pub fn entered_scopes(&self) -> impl Iterator<Item = GlobalScope> + '_ {
        let all = self.scope_instances.iter().enumerate();
        all.filter(|(_, running)| !running.is_empty()).map(|(at, _)| GlobalScope(u32::try_from(at).unwrap_or(u32::MAX)))
    }
}

/// Questions that routes and rules ask of the result.
impl Engine<'_> {
    /// Whether a test's register may also come out the other way.
    #[must_use]
    pub fn is_undecided(&self, inst: InstanceId, reg: Reg, wanted: bool) -> bool {
        self.set(self.reg(inst, reg)).iter().any(|object| self.may_be(*object, !wanted))
    }

    /// Whether a running copy was only entered because nothing known calls it.
    #[must_use]
    pub fn is_unbound(&self, inst: InstanceId) -> bool {
        self.instances[inst.0 as usize].unbound
    }

    /// Whether a running copy stands for callers that the sources do not have, or is called from one that does.
    #[must_use]
    pub fn is_public(&self, inst: InstanceId) -> bool {
        let Caller { site, outer, .. } = self.instances[inst.0 as usize].caller;
        site == u32::MAX || outer == u32::MAX
    }

    /// Running copies of a scope, in the order in which they came up.
    #[must_use]
    pub fn copies_of(&self, scope: GlobalScope) -> &[InstanceId] {
        &self.scope_instances[scope.0 as usize]
    }

    /// Objects in a register.
    #[must_use]
    pub fn objects_in(&self, inst: InstanceId, reg: Reg) -> Vec<ObjectId> {
        if reg == NO_REG { Vec::new() } else { self.set(self.reg(inst, reg)).to_vec() }
    }

    /// Objects that the running copies of a function return.
    #[must_use]
    pub fn results_of(&self, scope: GlobalScope) -> Vec<ObjectId> {
        let copies = self.copies_of(scope).iter();
        copies.flat_map(|inst| self.set(self.instances[inst.0 as usize].result)).copied().collect()
    }

    /// Whether the branch of an operation runs in a running copy.
    #[must_use]
    pub fn runs(&self, inst: InstanceId, op: u32) -> bool {
        let scope = self.scope_of(inst);
        self.is_active(inst, self.program.scope(scope).ops[op as usize].cond)
    }

    /// Calls in running code of what nothing in the sources gives a value.
    pub fn calls_of_nothing(&self) -> impl Iterator<Item = Unresolved> + '_ {
        let instances = (0..u32::try_from(self.instances.len()).unwrap_or(0)).map(InstanceId);
        instances.flat_map(move |caller| {
            let ops = (0u32..).zip(&self.program.scope(self.scope_of(caller)).ops);
            ops.filter_map(move |(op, found)| match found.kind {
                OpKind::Call { func, .. } if self.is_active(caller, found.cond) && self.set(self.reg(caller, func)).is_empty() => {
                    Some(Unresolved { caller, op, reason: Reason::Nothing })
                }
                _ => None,
            })
        })
    }

    /// Values of an enumeration member.
    pub fn member_values(&mut self, class: ObjectId, name: Sym) -> Vec<ObjectId> {
        let node = self.field(class, Key::Attr(name));
        self.set(node).to_vec()
    }

    /// Whether a class is an exception by its name or its bases' names.
    #[must_use]
    pub fn is_exception(&self, class: GlobalScope) -> bool {
        let name = self.program.qualified(class);
        name.ends_with("Error") || name.ends_with("Exception")
    }

    /// Whether what a call calls came out of a string: its callee is a value returned by other code, not a name of a class.
    #[must_use]
    pub fn came_from_string(&self, scope: GlobalScope, op: u32) -> bool {
        let facts = self.program.scope(scope);
        let OpKind::Call { func, .. } = facts.ops[op as usize].kind else { return false };
        let mut reg = func;
        for op in facts.ops.iter().rev() {
            match &op.kind {
                OpKind::Filter(dst, src, _) | OpKind::Move(dst, src) if *dst == reg => reg = *src,
                OpKind::Call { dst, .. } if *dst == reg => return true,
                OpKind::LoadItem { dst, .. } if *dst == reg => return true,
                _ => {}
            }
        }
        false
    }
}

/// Modules whose bodies have run once a function has made its imports: those that it or its own module names, and what those import.
fn loaded_before(program: &Program, function: GlobalScope) -> BTreeSet<ModuleId> {
    let mut open = program.imported_by(function);
    open.push(program.module_of(function));
    let mut seen = BTreeSet::new();
    while let Some(module) = open.pop() {
        if seen.insert(module) {
            open.extend(program.imported_by(program.global_scope(module, 0)));
        }
    }
    seen
}

/// Installs from one round to the next.
impl Engine<'_> {
    /// Installs of an earlier round: after them, readers get the replacement. Bodies of modules that had run before still have what was there.
    pub fn override_with(&mut self, installs: impl Iterator<Item = (String, String, GlobalScope)>) {
        let mut before: BTreeMap<GlobalScope, BTreeSet<ModuleId>> = BTreeMap::new();
        for (owner, name, installer) in installs {
            if installer.0 != u32::MAX && self.program.scope(installer).kind == ScopeKind::Function {
                let program = self.program;
                for module in &*before.entry(installer).or_insert_with(|| loaded_before(program, installer)) {
                    if program.module(*module).facts.names.contains(&name) {
                        let name = self.intern(&name);
                        self.overriders.insert((program.global_scope(*module, 0), owner.clone(), name));
                    }
                }
            }
            let name = self.intern(&name);
            self.overridden.insert((owner.clone(), name));
            self.overriders.insert((installer, owner, name));
        }
    }

    /// Installs on classes that hold without an undecided condition, by dotted name of the owner and attribute.
    #[must_use]
    pub fn certain_installs(&self) -> std::collections::BTreeSet<(String, String, GlobalScope)> {
        let replaceable = |owner| matches!(self.get(owner), Object::Class(..) | Object::Module(_) | Object::Instance(..));
        let certain = self.installs.iter().filter(|install| replaceable(install.owner) && self.is_certain(install.installer, install.op));
        let installs =
            certain.map(|install| (self.owner_key(install.owner), self.text(install.name).to_owned(), self.scope_of(install.installer)));
        let replaced = self.replacements.iter().filter(|(inst, op, _)| self.is_certain(*inst, *op));
        let nobody = GlobalScope(u32::MAX);
        installs.chain(replaced.map(|(_, _, module)| (self.text(*module).to_owned(), "sys.modules".to_owned(), nobody))).collect()
    }

    /// Name of an owner that means the same object in every round: for an instance, with the place that makes it.
    #[must_use]
    pub fn owner_key(&self, owner: ObjectId) -> String {
        match self.get(owner) {
            Object::Instance(class, site) => match self.site_places.get((site as usize).wrapping_sub(1)) {
                Some((scope, op)) => format!("{}@{}:{op}", self.owner_name(class), scope.0),
                None => String::new(),
            },
            _ => self.owner_name(owner),
        }
    }

    /// Whether no undecided condition stands above an operation.
    #[must_use]
    pub fn is_certain(&self, inst: InstanceId, op: u32) -> bool {
        let scope = self.scope_of(inst);
        let facts = self.program.scope(scope);
        let mut at = facts.ops[op as usize].cond;
        while at != 0 {
            let cond = facts.conds[at as usize];
            match cond.kind {
                CondKind::Test(reg, wanted) if self.is_undecided(inst, reg, wanted) => return false,
                CondKind::Handler(..) => return false,
                _ => {}
            }
            at = cond.parent;
        }
        true
    }
}

/// Looks at what no branch ran.
impl Engine<'_> {
    /// Objects that a module's name may hold.
    #[must_use]
    pub fn global_objects(&self, module: ModuleId, name: Sym) -> Vec<ObjectId> {
        self.globals.get(&(module, name)).map(|node| self.set(*node).to_vec()).unwrap_or_default()
    }

    /// Whether a class has a base outside the program, which may define anything.
    #[must_use]
    pub fn has_open_base(&self, class: ObjectId) -> bool {
        let order = self.linear.get(&class);
        order.is_some_and(|order| {
            order.iter().any(|base| match self.get(*base) {
                Object::External(name) | Object::Present(name) => {
                    !matches!(self.text(name), "abc.ABC" | "typing.Generic" | "typing.Protocol")
                }
                _ => false,
            })
        })
    }

    /// Objects that an attribute may hold, as the object's own code or that of its class and bases defines it.
    #[must_use]
    pub fn attribute_objects(&self, object: ObjectId, name: Sym) -> Vec<ObjectId> {
        let held = |owner: ObjectId| {
            let places = [Key::Attr(name), Key::Patched(name)];
            let nodes = places.into_iter().filter_map(move |key| self.fields.get(&(owner, key)));
            nodes.flat_map(|node| self.set(*node).iter().copied()).collect::<Vec<_>>()
        };
        match self.get(object) {
            Object::Module(module) => self.global_objects(module, name),
            Object::Class(..) | Object::Instance(..) => {
                let class = if let Object::Instance(class, _) = self.get(object) { class } else { object };
                let mut found = held(object);
                if found.is_empty() {
                    let order = self.linear.get(&class).cloned().unwrap_or_else(|| [class].into());
                    found = order.iter().map(|base| held(*base)).find(|objects| !objects.is_empty()).unwrap_or_default();
                }
                found
            }
            _ => Vec::new(),
        }
    }
}
