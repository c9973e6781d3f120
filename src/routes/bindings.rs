//! Bindings: where a name or string comes to stand for a family without a call.

use std::collections::{BTreeMap, BTreeSet};

use super::family::Reach;
use super::op_span;
use crate::names::{GlobalScope, ModuleId};
use crate::profile::PathClass;
use crate::syntax::{Literal, OpKind, ScopeKind};
use crate::text::Span;
use crate::values::{Builtin, Engine, InstanceId, Object, ObjectId, Target};

/// What a binding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BindingKind {
    /// A package hands a name on.
    ReExport,
    /// A name is imported for use.
    Import,
    /// A string that names the family by its dotted path.
    RegistryString,
    /// A list or table that holds members which name the family, or the insertion into one.
    RegistryTable,
    /// An attribute set to a native symbol.
    NativeAttribute,
    /// An import of a module whose name is computed.
    DynamicImport,
    /// An attribute of other code replaced by something that reaches the family.
    Install,
}

impl BindingKind {
    /// The word used in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ReExport => "re-export",
            Self::Import => "import",
            Self::RegistryString => "registry-string",
            Self::RegistryTable => "registry-table",
            Self::NativeAttribute => "native-attribute",
            Self::DynamicImport => "dynamic-import",
            Self::Install => "install",
        }
    }
}

/// One binding.
#[derive(Clone, Debug)]
pub struct Binding {
    /// Place.
    pub span: Span,
    /// Scope it stands in.
    pub scope: GlobalScope,
    /// Kind.
    pub kind: BindingKind,
    /// Name that is bound.
    pub name: String,
    /// Dotted names of what it stands for.
    pub targets: Vec<String>,
    /// Class of the path.
    pub class: PathClass,
}

/// Dotted name of an object that is of the family.
fn member_name(engine: &Engine<'_>, reach: &Reach, object: ObjectId) -> Option<String> {
    let program = engine.program;
    match engine.get(object) {
        Object::Class(scope, _) => reach.classes.contains(&scope).then(|| program.qualified(scope)),
        Object::Function(scope, _) => reach.holds(scope).then(|| program.qualified(scope)),
        Object::Kernel(function) | Object::CustomOp(function) | Object::StaticMethod(function) => member_name(engine, reach, function),
        Object::External(name) => reach.sinks.contains(&Target::External(name)).then(|| engine.text(name).to_owned()),
        _ => None,
    }
}

/// Dotted name of the family member that a string names.
fn named_by(engine: &Engine<'_>, reach: &Reach, text: &str) -> Option<String> {
    if !text.contains('.') || text.contains(' ') {
        return None;
    }
    let scope = engine.program.find_scope(&text.replace(':', "."))?;
    (reach.classes.contains(&scope) || reach.holds(scope)).then(|| engine.program.qualified(scope))
}

/// Scope that binds, name that it binds, and what is bound.
type Found = (GlobalScope, String, BTreeSet<String>);

pub(super) fn collect(engine: &mut Engine<'_>, reach: &Reach, class_of: &dyn Fn(ModuleId) -> PathClass) -> Vec<Binding> {
    let program = engine.program;
    let mut found: BTreeMap<(Span, u32, BindingKind), Found> = BTreeMap::new();
    let calls: BTreeMap<(InstanceId, u32), Vec<Target>> = {
        let mut calls: BTreeMap<(InstanceId, u32), Vec<Target>> = BTreeMap::new();
        for edge in &engine.edges {
            calls.entry((edge.caller, edge.op)).or_default().push(edge.target);
        }
        calls
    };
    let scopes: Vec<GlobalScope> = engine.entered_scopes().collect();
    for scope in scopes {
        let module = program.module(program.module_of(scope));
        let facts = program.scope(scope);
        for inst in engine.copies_of(scope).to_vec() {
            for (at, op) in facts.ops.iter().enumerate() {
                let at = u32::try_from(at).unwrap_or(u32::MAX);
                let mut add = |kind: BindingKind, name: String, targets: BTreeSet<String>| {
                    if !targets.is_empty() {
                        let entry = found.entry((op_span(program, scope, at), at, kind)).or_insert_with(|| (scope, name, BTreeSet::new()));
                        entry.2.extend(targets);
                    }
                };
                match &op.kind {
                    OpKind::ImportFrom { dst, name, .. } => {
                        let objects = engine.objects_in(inst, *dst);
                        let targets: BTreeSet<String> = objects.iter().filter_map(|object| member_name(engine, reach, *object)).collect();
                        let re_export = module.is_package && facts.kind == ScopeKind::Module;
                        let kind = if re_export { BindingKind::ReExport } else { BindingKind::Import };
                        add(kind, module.facts.name(*name).to_owned(), targets);
                    }
                    OpKind::Literal(_, Literal::Str(text)) => {
                        let text = module.facts.name(*text);
                        add(BindingKind::RegistryString, text.to_owned(), named_by(engine, reach, text).into_iter().collect());
                    }
                    OpKind::Sequence { items, .. } => {
                        let mut targets = BTreeSet::new();
                        for (reg, _) in items {
                            for object in engine.objects_in(inst, *reg) {
                                targets.extend(named_by_member(engine, reach, object));
                            }
                        }
                        add(BindingKind::RegistryTable, String::new(), targets);
                    }
                    OpKind::StoreAttr { src, name, .. } => {
                        let native =
                            engine.objects_in(inst, *src).into_iter().filter(|object| matches!(engine.get(*object), Object::External(_)));
                        let targets = native.collect::<Vec<_>>().iter().filter_map(|object| native_name(engine, reach, *object)).collect();
                        add(BindingKind::NativeAttribute, module.facts.name(*name).to_owned(), targets);
                    }
                    // A list that is filled in a branch which the platform rules out is listed all the same.
                    OpKind::Call { func, args, .. } if !engine.runs(inst, at) => {
                        let method = facts.ops.iter().find_map(|other| match other.kind {
                            OpKind::LoadAttr { dst, name, .. } if dst == *func => Some(module.facts.name(name)),
                            _ => None,
                        });
                        if let Some(method @ ("insert" | "append")) = method {
                            let mut targets = BTreeSet::new();
                            for (_, reg) in args {
                                targets.extend(named_without_running(engine, reach, scope, *reg));
                            }
                            add(BindingKind::RegistryTable, method.to_owned(), targets);
                        }
                    }
                    OpKind::Call { dst, args, .. } => {
                        let targets_of_call = calls.get(&(inst, at)).cloned().unwrap_or_default();
                        for target in targets_of_call {
                            match target {
                                Target::External(name) if engine.text(name) == "importlib.import_module" => {
                                    let literal = args.first().is_some_and(|(_, reg)| is_literal(facts, *reg));
                                    if literal {
                                        continue;
                                    }
                                    let mut targets = BTreeSet::new();
                                    for object in engine.objects_in(inst, *dst) {
                                        if let Object::Module(id) = engine.get(object) {
                                            targets.extend(classes_of(engine, reach, id));
                                        }
                                    }
                                    add(BindingKind::DynamicImport, String::new(), targets);
                                }
                                Target::BuiltinMethod(Builtin::List, name) if matches!(engine.text(name), "insert" | "append") => {
                                    let mut targets = BTreeSet::new();
                                    for (_, reg) in args {
                                        for object in engine.objects_in(inst, *reg) {
                                            targets.extend(named_by_member(engine, reach, object));
                                        }
                                    }
                                    add(BindingKind::RegistryTable, engine.text(name).to_owned(), targets);
                                }
                                _ => {}
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    let mut out: Vec<Binding> = found
        .into_iter()
        .map(|((span, _, kind), (scope, name, targets))| Binding {
            span,
            scope,
            kind,
            name,
            targets: targets.into_iter().collect(),
            class: class_of(program.module_of(scope)),
        })
        .collect();
    out.dedup_by(|a, b| a.span == b.span && a.kind == b.kind && a.targets == b.targets);
    out
}

fn is_literal(facts: &crate::syntax::Scope, reg: u32) -> bool {
    facts.ops.iter().any(|op| matches!(op.kind, OpKind::Literal(dst, _) if dst == reg))
}

fn native_name(engine: &Engine<'_>, reach: &Reach, object: ObjectId) -> Option<String> {
    member_name(engine, reach, object)
}

/// Family members that an enumeration member's value names.
fn named_by_member(engine: &mut Engine<'_>, reach: &Reach, object: ObjectId) -> Vec<String> {
    let Object::Member(class, name) = engine.get(object) else { return Vec::new() };
    let values = engine.member_values(class, name);
    let texts = values.into_iter().filter_map(|value| match engine.get(value) {
        Object::Str(text) => Some(engine.text(text).to_owned()),
        _ => None,
    });
    let texts: Vec<String> = texts.collect();
    texts.iter().filter_map(|text| named_by(engine, reach, text)).collect()
}

/// Family members that `Enumeration.MEMBER` names, where the code that says so does not run.
fn named_without_running(engine: &mut Engine<'_>, reach: &Reach, scope: GlobalScope, reg: u32) -> Vec<String> {
    let program = engine.program;
    let id = program.module_of(scope);
    let module = program.module(id);
    let ops = &program.scope(scope).ops;
    let member = ops.iter().find_map(|op| match op.kind {
        OpKind::LoadAttr { dst, obj, name } if dst == reg => Some((obj, name)),
        _ => None,
    });
    let Some((owner, name)) = member else { return Vec::new() };
    let global = ops.iter().find_map(|op| match op.kind {
        OpKind::LoadGlobal(dst, name) if dst == owner => Some(name),
        _ => None,
    });
    let Some(global) = global else { return Vec::new() };
    let mut out = Vec::new();
    for class in engine.global_objects(id, module.sym(global)) {
        if matches!(engine.get(class), Object::Class(..)) {
            for value in engine.member_values(class, module.sym(name)) {
                if let Object::Str(text) = engine.get(value) {
                    out.extend(named_by(engine, reach, engine.text(text)));
                }
            }
        }
    }
    out
}

fn classes_of(engine: &Engine<'_>, reach: &Reach, module: ModuleId) -> Vec<String> {
    let program = engine.program;
    let mut classes: Vec<GlobalScope> = reach.classes.iter().copied().filter(|scope| program.module_of(*scope) == module).collect();
    classes.sort_unstable();
    // Autograd functions are inside, not asked for.
    classes.retain(|class| {
        !program.scope(*class).name.eq(&u32::MAX) && !program.qualified(*class).rsplit('.').next().unwrap_or("").starts_with('_')
    });
    classes.into_iter().map(|class| program.qualified(class)).collect()
}
