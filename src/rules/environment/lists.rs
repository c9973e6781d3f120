//! Lists of environment variables in code: what a launcher hands on, what goes into the key of a cache, what is recorded.
//!
//! In: Python of production modules and of here-documents. Out: [`List`]s. A list is found backwards, from the place where it serves its purpose: everything
//! that the value there is made of, through loops over names, dicts, `update`, formatting, hashing and results of functions of the sources. A
//! list is open if all of `os.environ`, or something that is not followed, goes into it: nothing can be missing from it for sure.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::super::Context;
use super::flow::{Code, definitions};
use super::shell_lists;
use crate::names::ModuleId;
use crate::profile::{PathClass, PathClasses};
use crate::sources::FileKind;
use crate::syntax::{Literal, ModuleFacts, NO_REG, OpKind, Passing, Range, Reg, json};
use crate::text::{FileId, Span};
use crate::values::Target;

/// What a list is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Handed on to workers.
    Launch,
    /// Part of the key of a cache of compiled graphs or kernels.
    CacheKey,
    /// Written down as the environment of a run.
    Record,
}

/// A list of variables.
#[derive(Clone, Debug)]
pub struct List {
    /// What it is for.
    pub purpose: Purpose,
    /// Variables.
    pub names: BTreeSet<String>,
    /// Where they are listed first.
    pub place: Span,
    /// Whether more than the names can be in it.
    pub open: bool,
    /// Module that makes it, if it is one of the program.
    pub module: Option<ModuleId>,
}

/// Most registers that are followed for one list.
const MAX_STEPS: usize = 20_000;

/// Words that make a name one of a cache's key, beside `cache` itself.
const KEY_WORDS: [&str; 14] =
    ["digest", "dir", "directory", "factors", "hash", "id", "key", "keys", "namespace", "path", "prefix", "root", "salt", "tag"];

/// Methods that put their arguments into their receiver.
const FILLS: [&str; 7] = ["add", "append", "extend", "insert", "setdefault", "update", "writelines"];

/// Python whose lists are looked for.
#[derive(Clone, Copy)]
pub(super) struct Unit<'a> {
    pub facts: &'a ModuleFacts,
    pub file: FileId,
    /// Offset of its text in the file.
    pub start: u32,
    /// The module, if it is one of the program.
    pub module: Option<ModuleId>,
}

impl Unit<'_> {
    fn span(&self, range: Range) -> Span {
        Span::new(self.file, self.start + range.0, self.start + range.1)
    }
}

/// Every list in production code, scripts and configuration, in order of place.
pub(super) fn collect(context: &Context<'_>) -> Vec<List> {
    let mut out = Vec::new();
    for module in context.program.module_ids() {
        if !matches!((context.class_of)(module), PathClass::Production) {
            continue;
        }
        let entry = context.program.module(module);
        if entry.facts.names.iter().any(|name| name == "environ" || name == "getenv" || name == "env_vars") {
            in_unit(context, Unit { facts: &entry.facts, file: entry.file, start: 0, module: Some(module) }, &mut out);
        }
    }
    let classes = PathClasses::new(context.profile);
    for (source, file) in context.sources.iter().flat_map(|source| source.files.iter().map(move |file| (source, file))) {
        let entry = context.files.get(file.file);
        if !matches!(file.kind, FileKind::Shell | FileKind::Json) || !entry.text.contains("env_vars") {
            continue;
        }
        if classes.class(&source.id, &entry.path) != PathClass::Production {
            continue;
        }
        if file.kind == FileKind::Json {
            out.extend(in_json(&entry.text, file.file));
        } else {
            shell_lists::collect(context, file.file, &entry.text, &mut out);
        }
    }
    out.sort_by_key(|list| (list.place, list.purpose));
    out
}

/// Keys below each `env_vars` of a JSON document.
fn in_json(text: &str, file: FileId) -> Vec<List> {
    let mut out: BTreeMap<String, List> = BTreeMap::new();
    for string in json::strings(text).unwrap_or_default() {
        let below = string.path.rsplit('/').next() == Some("env_vars");
        if string.is_key && below {
            let place = Span::new(file, string.range.0, string.range.1);
            let list = List { purpose: Purpose::Launch, names: BTreeSet::new(), place, open: false, module: None };
            out.entry(string.path).or_insert(list).names.insert(string.text);
        }
    }
    out.into_values().collect()
}

fn words(name: &str) -> BTreeSet<String> {
    name.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_ascii_lowercase).collect()
}

/// Purpose of a value that is stored under, passed as, or returned from something with this name.
fn purpose_of(name: &str) -> Option<Purpose> {
    if matches!(name, "env_vars" | "env") {
        return Some(Purpose::Launch);
    }
    let words = words(name);
    if words.contains("cache") && KEY_WORDS.iter().any(|word| words.contains(*word)) {
        return Some(Purpose::CacheKey);
    }
    (words.contains("environment") || words.contains("environ")).then_some(Purpose::Record)
}

/// The lists of one module or here-document.
pub(super) fn in_unit(context: &Context<'_>, unit: Unit<'_>, out: &mut Vec<List>) {
    for (at, scope) in unit.facts.scopes.iter().enumerate() {
        let made = definitions(scope);
        let code = Code { facts: unit.facts, scope, made: &made };
        let scope_name = unit.facts.name(scope.name);
        let mut sinks: Vec<(Purpose, Reg)> = Vec::new();
        for op in &scope.ops {
            match &op.kind {
                OpKind::Dict { items, .. } => {
                    for (key, value) in items.iter().filter(|(key, _)| *key != NO_REG) {
                        let purpose = code.text(*key).filter(|key| *key != "env").and_then(purpose_of);
                        sinks.extend(purpose.map(|purpose| (purpose, *value)));
                    }
                }
                OpKind::StoreItem { key, src, .. } => {
                    let purpose = code.text(*key).filter(|key| *key != "env").and_then(purpose_of);
                    sinks.extend(purpose.map(|purpose| (purpose, *src)));
                }
                OpKind::StoreAttr { name, src, .. } => {
                    let purpose = purpose_of(unit.facts.name(*name)).filter(|purpose| *purpose == Purpose::CacheKey);
                    sinks.extend(purpose.map(|purpose| (purpose, *src)));
                }
                OpKind::Call { args, .. } => {
                    for (passing, reg) in args {
                        if let Passing::Keyword(name) = passing {
                            let purpose = purpose_of(unit.facts.name(*name)).filter(|purpose| *purpose != Purpose::Record);
                            sinks.extend(purpose.map(|purpose| (purpose, *reg)));
                        }
                    }
                }
                OpKind::Return(reg) => sinks.extend(purpose_of(scope_name).map(|purpose| (purpose, *reg))),
                _ => {}
            }
        }
        let mut found: BTreeMap<(Purpose, Span), List> = BTreeMap::new();
        for (purpose, reg) in sinks {
            let mut slice = Slice { context, purpose, names: BTreeSet::new(), place: None, open: false, many: false };
            slice.follow(unit, at, reg);
            let Some(place) = slice.place else { continue };
            if !slice.many && slice.names.len() < 2 {
                continue;
            }
            let list = List { purpose, names: slice.names, place, open: slice.open, module: unit.module };
            // The same list, seen at a second place, hands on what either place does.
            let entry = found.entry((purpose, place)).or_insert_with(|| list.clone());
            entry.names.extend(list.names);
            entry.open |= list.open;
        }
        out.extend(found.into_values());
    }
}

/// What a value is made of.
struct Slice<'a, 'c> {
    context: &'c Context<'a>,
    purpose: Purpose,
    names: BTreeSet<String>,
    place: Option<Span>,
    open: bool,
    /// Whether names were read in a loop.
    many: bool,
}

impl Slice<'_, '_> {
    fn note(&mut self, place: Span) {
        self.place = Some(self.place.map_or(place, |known| known.min(place)));
    }

    fn follow(&mut self, unit: Unit<'_>, scope: usize, reg: Reg) {
        let context = self.context;
        let mut open: Vec<(Unit<'_>, usize, Reg)> = vec![(unit, scope, reg)];
        let mut seen: BTreeSet<(FileId, u32, usize, Reg)> = BTreeSet::new();
        let mut maps: FxHashMap<(FileId, u32, usize), FxHashMap<Reg, u32>> = FxHashMap::default();
        while let Some((unit, at, reg)) = open.pop() {
            if reg == NO_REG || !seen.insert((unit.file, unit.start, at, reg)) {
                continue;
            }
            if seen.len() > MAX_STEPS {
                self.open = true;
                return;
            }
            let Some(scope) = unit.facts.scopes.get(at) else { continue };
            let made = maps.entry((unit.file, unit.start, at)).or_insert_with(|| definitions(scope)).clone();
            let code = Code { facts: unit.facts, scope, made: &made };
            if scope.params.iter().any(|param| param.reg == reg) {
                // A function that fills what it was given hands on more than it names.
                self.open |= self.purpose == Purpose::Launch;
                continue;
            }
            let Some(place) = made.get(&reg) else { continue };
            let op = &scope.ops[*place as usize];
            if let Some(name) = code.reads(&op.kind) {
                self.name(unit, at, code, name, op.range);
                if let OpKind::Call { args, .. } = &op.kind {
                    open.extend(args.iter().skip(1).map(|(_, reg)| (unit, at, *reg)));
                }
                continue;
            }
            if code.is_environment(reg) {
                self.open = true;
                continue;
            }
            match &op.kind {
                OpKind::Move(_, src)
                | OpKind::Filter(_, src, _)
                | OpKind::Not { src, .. }
                | OpKind::Await { src, .. }
                | OpKind::Iterate { src, .. }
                | OpKind::Unpack { src, .. }
                | OpKind::UnpackRest { src, .. } => open.push((unit, at, *src)),
                OpKind::LoadSlice { obj, .. } | OpKind::LoadAttr { obj, .. } => open.push((unit, at, *obj)),
                OpKind::LoadItem { obj, key, .. } => open.extend([(unit, at, *obj), (unit, at, *key)]),
                OpKind::Phi(_, inputs) => open.extend(inputs.iter().map(|(reg, _)| (unit, at, *reg))),
                OpKind::Sequence { items, .. } => open.extend(items.iter().map(|(reg, _)| (unit, at, *reg))),
                OpKind::Format { parts, .. } => open.extend(parts.iter().map(|reg| (unit, at, *reg))),
                OpKind::Binary { left, right, .. } => open.extend([(unit, at, *left), (unit, at, *right)]),
                OpKind::Dict { items, .. } => {
                    for (key, value) in items {
                        if *key != NO_REG && self.purpose == Purpose::Launch {
                            self.name(unit, at, code, *key, op.range);
                        }
                        open.push((unit, at, *value));
                    }
                }
                OpKind::LoadGlobal(_, name) if at != 0 => {
                    let stored = unit.facts.scopes[0].ops.iter().filter_map(|op| match op.kind {
                        OpKind::StoreGlobal(known, src) if known == *name => Some(src),
                        _ => None,
                    });
                    open.extend(stored.map(|src| (unit, 0, src)));
                }
                OpKind::Call { func, args, .. } => {
                    open.push((unit, at, *func));
                    open.extend(args.iter().map(|(_, reg)| (unit, at, *reg)));
                    let Some(module) = unit.module else { continue };
                    let scope_id = context.program.global_scope(module, u32::try_from(at).unwrap_or(0));
                    for target in context.calls.get(&(scope_id, *place)).into_iter().flatten() {
                        let Target::Scope(callee) = target else { continue };
                        let id = context.program.module_of(*callee);
                        let entry = context.program.module(id);
                        let other = Unit { facts: &entry.facts, file: entry.file, start: 0, module: Some(id) };
                        let inside = (callee.0 - entry.first_scope) as usize;
                        let results = context.program.scope(*callee).ops.iter().filter_map(|op| match op.kind {
                            OpKind::Return(src) => Some(src),
                            _ => None,
                        });
                        open.extend(results.map(|src| (other, inside, src)));
                    }
                }
                _ => {}
            }
            // What is put into it afterwards.
            for op in &scope.ops {
                match &op.kind {
                    OpKind::StoreItem { obj, key, src } if *obj == reg => {
                        if self.purpose == Purpose::Launch {
                            self.name(unit, at, code, *key, op.range);
                        }
                        open.push((unit, at, *src));
                    }
                    OpKind::Call { func, args, .. } => {
                        if let Some(OpKind::LoadAttr { obj, name, .. }) = code.maker(*func)
                            && *obj == reg
                            && FILLS.contains(&unit.facts.name(*name))
                        {
                            open.extend(args.iter().map(|(_, reg)| (unit, at, *reg)));
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Takes the names that a register stands for: a literal, or an element of a list that a loop goes over.
    fn name(&mut self, unit: Unit<'_>, at: usize, code: Code<'_>, reg: Reg, range: Range) {
        if let Some(text) = code.text(reg) {
            self.names.insert(text.to_owned());
            self.note(unit.span(range));
            return;
        }
        let mut origin = code.origin(reg);
        if let Some(OpKind::Unpack { src, .. }) = code.maker(origin) {
            origin = code.origin(*src);
        }
        let Some(OpKind::Iterate { src, .. }) = code.maker(origin) else {
            self.open |= self.purpose == Purpose::Launch;
            return;
        };
        match sequence(unit, at, *src, 0) {
            Some((names, range)) => {
                self.many = true;
                self.names.extend(names);
                self.note(unit.span(range));
            }
            None => self.open = true,
        }
    }
}

/// Strings of a list that is written in this module, and where it starts; `None` if it is not.
fn sequence(unit: Unit<'_>, at: usize, reg: Reg, depth: u32) -> Option<(BTreeSet<String>, Range)> {
    if depth > 16 {
        return None;
    }
    let scope = unit.facts.scopes.get(at)?;
    let made = definitions(scope);
    let code = Code { facts: unit.facts, scope, made: &made };
    let origin = code.origin(reg);
    let op = &scope.ops[*made.get(&origin)? as usize];
    match &op.kind {
        OpKind::Sequence { items, .. } => {
            let mut names = BTreeSet::new();
            for (item, starred) in items {
                if *starred {
                    names.extend(sequence(unit, at, *item, depth + 1)?.0);
                } else if let Some(text) = code.text(*item) {
                    names.insert(text.to_owned());
                } else if let Some(OpKind::Sequence { items, .. }) = code.maker(code.origin(*item)) {
                    // Pairs of a name and something else.
                    names.insert(code.text(items.first()?.0)?.to_owned());
                } else {
                    return None;
                }
            }
            Some((names, op.range))
        }
        OpKind::Dict { items, .. } => {
            let names: Option<BTreeSet<String>> = items.iter().map(|(key, _)| code.text(*key).map(str::to_owned)).collect();
            Some((names?, op.range))
        }
        OpKind::Binary { left, right, .. } => {
            let (mut names, range) = sequence(unit, at, *left, depth + 1)?;
            names.extend(sequence(unit, at, *right, depth + 1)?.0);
            Some((names, range))
        }
        OpKind::LoadGlobal(_, name) => {
            let stored = unit.facts.scopes[0].ops.iter().find_map(|op| match op.kind {
                OpKind::StoreGlobal(known, src) if known == *name => Some(src),
                _ => None,
            });
            sequence(unit, 0, stored?, depth + 1)
        }
        // `sorted(NAMES)`, `NAMES.items()` and the like.
        OpKind::Call { func, args, .. } => match code.maker(*func) {
            Some(OpKind::LoadGlobal(_, name)) if matches!(unit.facts.name(*name), "sorted" | "tuple" | "list" | "set" | "frozenset") => {
                sequence(unit, at, args.first()?.1, depth + 1)
            }
            Some(OpKind::LoadAttr { obj, name, .. }) if matches!(unit.facts.name(*name), "items" | "keys") => {
                sequence(unit, at, *obj, depth + 1)
            }
            _ => None,
        },
        OpKind::Literal(_, Literal::Str(text)) => Some((BTreeSet::from([unit.facts.name(*text).to_owned()]), op.range)),
        _ => None,
    }
}
