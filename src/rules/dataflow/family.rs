//! Which dotted names are operators of a family, for code that the analysis does not run.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::names::ModuleId;
use crate::rules::Context;
use crate::syntax::ScopeKind;
use crate::values::{Object, ObjectId, Target};

/// Decides whether a dotted name is an operator of a family: something whose call gives what a kernel of it computed.
pub(crate) struct Operators<'a> {
    context: &'a Context<'a>,
    known: RefCell<BTreeMap<String, bool>>,
}

impl<'a> Operators<'a> {
    pub(crate) fn new(context: &'a Context<'a>) -> Self {
        Self { context, known: RefCell::default() }
    }

    /// Whether calling what has this name runs the family.
    pub(crate) fn is_operator(&self, name: &str) -> bool {
        if let Some(known) = self.known.borrow().get(name) {
            return *known;
        }
        let answer = self.decide(name);
        self.known.borrow_mut().insert(name.to_owned(), answer);
        answer
    }

    fn decide(&self, name: &str) -> bool {
        let Some((module, rest)) = self.module_of(name) else { return false };
        let program = self.context.program;
        let mut parts = rest.split('.');
        let first = parts.next().unwrap_or("");
        let bare = first.trim_end_matches("()");
        let made = first.len() > bare.len();
        let Some(sym) = program.strings.find(bare) else { return false };
        let member = parts.next();
        if parts.next().is_some() {
            return false;
        }
        let objects = self.context.engine.global_objects(module, sym);
        objects.into_iter().any(|object| self.object_is_operator(object, made, member))
    }

    fn object_is_operator(&self, object: ObjectId, made: bool, member: Option<&str>) -> bool {
        let context = self.context;
        match (context.engine.get(object), made, member) {
            (Object::Class(class, _), true, member) => {
                let method = member.unwrap_or("__call__").trim_end_matches("()");
                let inside = |name: &str| {
                    let full = format!("{}.{name}", context.program.qualified(class));
                    context.program.find_scope(&full).is_some_and(|scope| context.reaches(Target::Scope(scope)))
                };
                inside(method) || (member.is_none() && inside("forward"))
            }
            (Object::Class(class, _), false, Some("apply")) => context.reaches(Target::Class(class)),
            (Object::Function(..) | Object::CustomOp(_) | Object::Kernel(_), false, None) => context.family_object(object).is_some(),
            _ => false,
        }
    }

    /// The module that a dotted name starts with, and the rest of the name.
    fn module_of<'n>(&self, name: &'n str) -> Option<(ModuleId, &'n str)> {
        let program = self.context.program;
        let plain = name.find(['(', '<']).unwrap_or(name.len());
        let mut end = name[..plain].rfind('.')?;
        loop {
            if let Some(module) = program.strings.find(&name[..end]).and_then(|sym| program.find(sym, 0)) {
                return Some((module, &name[end + 1..]));
            }
            end = name[..end].rfind('.')?;
        }
    }
}

/// Last names of a family's top-level functions and classes: a module that has none of them does not use the family.
pub(crate) fn short_names(context: &Context<'_>) -> BTreeSet<String> {
    let program = context.program;
    let mut out = BTreeSet::new();
    for routes in context.routes {
        let scopes = routes.reach.towards.keys().chain(&routes.reach.facades).chain(&routes.reach.classes);
        for scope in scopes {
            let facts = program.scope(*scope);
            if facts.parent == 0 && facts.kind != ScopeKind::Lambda {
                out.insert(program.module(program.module_of(*scope)).facts.name(facts.name).to_owned());
            }
        }
    }
    out.retain(|name| name.len() > 3);
    out
}
