//! Which dotted names a register may stand for.
//!
//! A name is spelled as Python would reach it from outside: `torch.testing.assert_close`, `pkg.ops.DetGemmOp().linear`, where `()` stands for
//! what a call gives. A parameter is spelled `<name>`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::destination;
use crate::names::{GlobalScope, ModuleId, Program};
use crate::syntax::{Literal, NameId, OpKind, Passing, Reg, Scope};

/// Most names that one register is followed to.
const MOST_NAMES: usize = 32;

/// Operations by the register that they define.
type Definitions = Rc<FxHashMap<Reg, Vec<u32>>>;
/// Registers of a module's body that are stored under each of its names.
type Stores = Rc<FxHashMap<NameId, Vec<Reg>>>;

/// Looks up names; remembers what it indexed.
pub(crate) struct Names<'p> {
    pub(crate) program: &'p Program,
    definitions: RefCell<FxHashMap<GlobalScope, Definitions>>,
    stores: RefCell<FxHashMap<ModuleId, Stores>>,
}

impl<'p> Names<'p> {
    pub(crate) fn new(program: &'p Program) -> Self {
        Self { program, definitions: RefCell::default(), stores: RefCell::default() }
    }

    /// Operations that define each register of a scope.
    pub(crate) fn definitions(&self, scope: GlobalScope) -> Definitions {
        let known = self.definitions.borrow().get(&scope).cloned();
        known.unwrap_or_else(|| {
            let mut index: FxHashMap<Reg, Vec<u32>> = FxHashMap::default();
            for (at, op) in self.program.scope(scope).ops.iter().enumerate() {
                if let Some(dst) = destination(&op.kind) {
                    index.entry(dst).or_default().push(u32::try_from(at).unwrap_or(u32::MAX));
                }
            }
            let index = Rc::new(index);
            self.definitions.borrow_mut().insert(scope, Rc::clone(&index));
            index
        })
    }

    /// The kinds of operations that define a register.
    pub(crate) fn defined_by(&self, scope: GlobalScope, reg: Reg) -> Vec<&'p OpKind> {
        let facts = self.program.scope(scope);
        let index = self.definitions(scope);
        index.get(&reg).map(|ops| ops.iter().map(|at| &facts.ops[*at as usize].kind).collect()).unwrap_or_default()
    }

    /// Registers of the module's body that are stored under a name.
    pub(crate) fn stored(&self, module: ModuleId, name: NameId) -> Vec<Reg> {
        let known = self.stores.borrow().get(&module).cloned();
        let stores = known.unwrap_or_else(|| {
            let mut index: FxHashMap<NameId, Vec<Reg>> = FxHashMap::default();
            for op in self.program.module(module).facts.scopes.first().into_iter().flat_map(|scope| &scope.ops) {
                if let OpKind::StoreGlobal(name, src) = op.kind {
                    let known = index.entry(name).or_default();
                    if !known.contains(&src) {
                        known.push(src);
                    }
                }
            }
            let index = Rc::new(index);
            self.stores.borrow_mut().insert(module, Rc::clone(&index));
            index
        });
        stores.get(&name).cloned().unwrap_or_default()
    }

    /// A parameter's own name, if a register is one.
    pub(crate) fn parameter(&self, scope: GlobalScope, reg: Reg) -> Option<&'p str> {
        let facts: &Scope = self.program.scope(scope);
        let param = facts.params.iter().find(|param| param.reg == reg)?;
        Some(self.program.module(self.program.module_of(scope)).facts.name(param.name))
    }

    /// The names that a register may stand for.
    pub(crate) fn of(&self, scope: GlobalScope, reg: Reg) -> BTreeSet<String> {
        let mut out = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut open: Vec<(GlobalScope, Reg, String)> = vec![(scope, reg, String::new())];
        while let Some((scope, reg, rest)) = open.pop() {
            if out.len() >= MOST_NAMES || rest.len() > 400 || !seen.insert((scope, reg, rest.clone())) {
                continue;
            }
            let module = self.program.module_of(scope);
            let facts = &self.program.module(module).facts;
            if let Some(name) = self.parameter(scope, reg) {
                out.insert(format!("<{name}>{rest}"));
            }
            for kind in self.defined_by(scope, reg) {
                match kind {
                    OpKind::Move(_, src) | OpKind::Filter(_, src, _) | OpKind::Enter { src, .. } | OpKind::Await { src, .. } => {
                        open.push((scope, *src, rest.clone()));
                    }
                    OpKind::Phi(_, inputs) => open.extend(inputs.iter().map(|(src, _)| (scope, *src, rest.clone()))),
                    OpKind::LoadAttr { obj, name, .. } => open.push((scope, *obj, format!(".{}{rest}", facts.name(*name)))),
                    OpKind::Call { func, args, decorator: true, .. } => {
                        // A decorated definition keeps its name.
                        let wrapped = args.first().filter(|(passing, _)| *passing == Passing::Position);
                        open.push((scope, wrapped.map_or(*func, |(_, reg)| *reg), rest.clone()));
                    }
                    OpKind::Call { func, .. } => open.push((scope, *func, format!("(){rest}"))),
                    OpKind::Unpack { src, index, from_end: false, .. } => {
                        for kind in self.defined_by(scope, *src) {
                            if let OpKind::Sequence { items, .. } = kind
                                && let Some((item, false)) = items.get(*index as usize)
                            {
                                open.push((scope, *item, rest.clone()));
                            }
                        }
                    }
                    OpKind::LoadFree(_, outer, src) => open.push((self.program.global_scope(module, *outer), *src, rest.clone())),
                    OpKind::LoadGlobal(_, name) => {
                        let stored = self.stored(module, *name);
                        if stored.is_empty() {
                            out.insert(format!("{}{rest}", facts.name(*name)));
                        }
                        let body = self.program.global_scope(module, 0);
                        // A variable that starts as a constant and is filled elsewhere has no name but its own.
                        let filled = |src: &Reg| self.defined_by(body, *src).iter().any(|kind| matches!(kind, OpKind::Literal(..)));
                        if stored.iter().any(filled) {
                            let own = self.program.strings.text(self.program.module(module).name);
                            out.insert(format!("{own}.{}{rest}", facts.name(*name)));
                        }
                        open.extend(stored.into_iter().map(|src| (body, src, rest.clone())));
                    }
                    OpKind::Import { module: named, top, .. } => {
                        let full = facts.name(*named);
                        let shown = if *top { full.split('.').next().unwrap_or(full) } else { full };
                        out.insert(format!("{shown}{rest}"));
                    }
                    OpKind::ImportFrom { module: named, level, name, .. } => {
                        if let Some(base) = self.program.absolute(module, facts.name(*named), *level) {
                            let dot = if base.is_empty() { "" } else { "." };
                            out.insert(format!("{base}{dot}{}{rest}", facts.name(*name)));
                        }
                    }
                    OpKind::Function { scope: inner, .. } | OpKind::Class { scope: inner, .. } => {
                        out.insert(format!("{}{rest}", self.program.qualified(self.program.global_scope(module, *inner))));
                    }
                    _ => {}
                }
            }
        }
        out
    }

    /// The string that a register holds, if it is one literal, here or at module level.
    pub(crate) fn text(&self, scope: GlobalScope, reg: Reg) -> Option<&'p str> {
        match self.literal(scope, reg) {
            Some((module, Literal::Str(name))) => Some(self.program.module(module).facts.name(name)),
            _ => None,
        }
    }

    /// The literal that a register holds, with the module whose names it is spelled in.
    pub(crate) fn literal(&self, scope: GlobalScope, reg: Reg) -> Option<(ModuleId, Literal)> {
        let (scope, at) = self.origin(scope, reg)?;
        match self.program.scope(scope).ops[at as usize].kind {
            OpKind::Literal(_, literal) => Some((self.program.module_of(scope), literal)),
            _ => None,
        }
    }

    /// The one operation that makes what a register holds, followed through copies, enclosing functions and names of the module.
    pub(crate) fn origin(&self, scope: GlobalScope, reg: Reg) -> Option<(GlobalScope, u32)> {
        let mut at = (scope, reg);
        for _ in 0..16 {
            let module = self.program.module_of(at.0);
            let index = self.definitions(at.0);
            let [op] = index.get(&at.1)?.as_slice() else { return None };
            at = match &self.program.scope(at.0).ops[*op as usize].kind {
                OpKind::Move(_, src) | OpKind::Filter(_, src, _) => (at.0, *src),
                OpKind::LoadFree(_, outer, src) => (self.program.global_scope(module, *outer), *src),
                OpKind::LoadGlobal(_, name) => {
                    let stored = self.stored(module, *name);
                    let [src] = stored.as_slice() else { return None };
                    (self.program.global_scope(module, 0), *src)
                }
                _ => return Some((at.0, *op)),
            };
        }
        None
    }

    /// Whether one of the names of a register is on a list.
    pub(crate) fn is_one_of(&self, scope: GlobalScope, reg: Reg, list: &[&str]) -> bool {
        self.of(scope, reg).iter().any(|name| list.contains(&name.as_str()))
    }
}
