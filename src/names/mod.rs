//! The module table: which file is which module, and what an import names.
//!
//! In: module facts with their source, path and package roots. Out: [`Program`]: modules under their dotted names, global symbol and scope
//! numbers, import resolution. A name that no source has is external; the caller decides what is known about it.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::syntax::{ModuleFacts, NameId, OpKind, Range, Scope, ScopeId};
use crate::text::{FileId, Span};

/// An interned string of the whole program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sym(pub u32);

/// Index into [`Program::modules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub u32);

/// A scope of the whole program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GlobalScope(pub u32);

/// Strings to numbers and back.
#[derive(Default, Debug)]
pub struct Interner {
    texts: Vec<Box<str>>,
    index: FxHashMap<Box<str>, Sym>,
}

impl Interner {
    /// The number of a text.
    pub fn intern(&mut self, text: &str) -> Sym {
        if let Some(sym) = self.index.get(text) {
            return *sym;
        }
        let sym = Sym(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        self.texts.push(text.into());
        self.index.insert(text.into(), sym);
        sym
    }

    /// The number of a text that was interned before.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<Sym> {
        self.index.get(text).copied()
    }

    /// The text of a number.
    #[must_use]
    pub fn text(&self, sym: Sym) -> &str {
        self.texts.get(sym.0 as usize).map_or("", |text| text)
    }
}

/// One module as it goes into the table.
#[derive(Debug)]
pub struct ModuleInput {
    /// Index of the source in the profile.
    pub source: usize,
    /// Path within the source.
    pub path: String,
    /// Its text in the file table.
    pub file: FileId,
    /// Package roots of the source.
    pub roots: Vec<String>,
    /// Its facts; two revisions share those of a file that is the same in both.
    pub facts: Arc<ModuleFacts>,
}

/// One module.
#[derive(Debug)]
pub struct Module {
    /// Dotted name.
    pub name: Sym,
    /// Index of the source in the profile.
    pub source: usize,
    /// Path within the source.
    pub path: String,
    /// Its text in the file table.
    pub file: FileId,
    /// Whether it is a package's `__init__`.
    pub is_package: bool,
    /// Its facts.
    pub facts: Arc<ModuleFacts>,
    /// First scope number.
    pub first_scope: u32,
    /// Names bound at module level.
    pub bound: FxHashSet<Sym>,
    /// Modules it imports everything from.
    pub stars: Vec<(NameId, u32)>,
    names: Vec<Sym>,
}

impl Module {
    /// Program-wide number of a name of this module.
    #[must_use]
    pub fn sym(&self, name: NameId) -> Sym {
        self.names.get(name as usize).copied().unwrap_or(Sym(0))
    }

    /// Program-wide numbers of all names and strings of this module.
    #[must_use]
    pub fn syms(&self) -> &[Sym] {
        &self.names
    }
}

/// What an import statement names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Imported {
    /// A module of the program.
    Module(ModuleId),
    /// A dotted name that no source has.
    External(Sym),
}

/// All modules.
#[derive(Default, Debug)]
pub struct Program {
    /// Strings.
    pub strings: Interner,
    /// Modules in order of source and path.
    pub modules: Vec<Module>,
    by_name: FxHashMap<Sym, Vec<ModuleId>>,
    scopes: Vec<(ModuleId, ScopeId)>,
    prefixes: FxHashSet<Sym>,
}

impl Program {
    /// Builds the table. Modules are put in order of source and path first, so that the order of the input does not matter.
    #[must_use]
    pub fn new(mut inputs: Vec<ModuleInput>) -> Self {
        inputs.sort_by(|a, b| (a.source, &a.path).cmp(&(b.source, &b.path)));
        let mut program = Self::default();
        program.strings.intern("");
        for input in inputs {
            program.add(input);
        }
        program
    }

    fn add(&mut self, input: ModuleInput) {
        let id = ModuleId(u32::try_from(self.modules.len()).unwrap_or(u32::MAX));
        let (names, is_package) = module_names(&input.path, &input.roots);
        let local: Vec<Sym> = input.facts.names.iter().map(|name| self.strings.intern(name)).collect();
        let first_scope = u32::try_from(self.scopes.len()).unwrap_or(u32::MAX);
        for scope in 0..u32::try_from(input.facts.scopes.len()).unwrap_or(u32::MAX) {
            self.scopes.push((id, scope));
        }
        let bound = input.facts.bound.iter().filter_map(|name| local.get(*name as usize).copied()).collect();
        let stars = input.facts.scopes.first().map(|scope| {
            let ops = scope.ops.iter();
            ops.filter_map(|op| match &op.kind {
                crate::syntax::OpKind::ImportStar { module, level } => Some((*module, *level)),
                _ => None,
            })
        });
        let stars = stars.map(Iterator::collect).unwrap_or_default();
        let mut name = Sym(0);
        for (place, text) in names.iter().enumerate() {
            let sym = self.strings.intern(text);
            if place == 0 {
                name = sym;
            }
            self.by_name.entry(sym).or_default().push(id);
            let mut prefix = text.as_str();
            while let Some((head, _)) = prefix.rsplit_once('.') {
                let head_sym = self.strings.intern(head);
                self.prefixes.insert(head_sym);
                prefix = head;
            }
        }
        self.modules.push(Module {
            name,
            source: input.source,
            path: input.path,
            file: input.file,
            is_package,
            facts: input.facts,
            first_scope,
            bound,
            stars,
            names: local,
        });
    }

    /// Number of scopes.
    #[must_use]
    pub fn scope_count(&self) -> usize {
        self.scopes.len()
    }

    /// The module.
    #[must_use]
    pub fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0 as usize]
    }

    /// Module ids in order.
    pub fn module_ids(&self) -> impl Iterator<Item = ModuleId> + use<> {
        (0..u32::try_from(self.modules.len()).unwrap_or(u32::MAX)).map(ModuleId)
    }

    /// Program-wide number of a module's scope.
    #[must_use]
    pub fn global_scope(&self, module: ModuleId, scope: ScopeId) -> GlobalScope {
        GlobalScope(self.module(module).first_scope + scope)
    }

    /// The module of a scope.
    #[must_use]
    pub fn module_of(&self, scope: GlobalScope) -> ModuleId {
        self.scopes[scope.0 as usize].0
    }

    /// A scope's facts.
    #[must_use]
    pub fn scope(&self, scope: GlobalScope) -> &Scope {
        let (module, local) = self.scopes[scope.0 as usize];
        &self.module(module).facts.scopes[local as usize]
    }

    /// Dotted name of a scope: module and qualified name.
    #[must_use]
    pub fn qualified(&self, scope: GlobalScope) -> String {
        let module = self.module(self.module_of(scope));
        let inner = module.facts.name(self.scope(scope).qualname);
        let outer = self.strings.text(module.name);
        if inner.is_empty() { outer.to_owned() } else { format!("{outer}.{inner}") }
    }

    /// Place of a range in a scope's module.
    #[must_use]
    pub fn span(&self, scope: GlobalScope, range: Range) -> Span {
        Span::new(self.module(self.module_of(scope)).file, range.0, range.1)
    }

    /// The module with this dotted name; if several sources have one, that of `near`'s source.
    #[must_use]
    pub fn find(&self, name: Sym, near: usize) -> Option<ModuleId> {
        let found = self.by_name.get(&name)?;
        found.iter().copied().find(|id| self.module(*id).source == near).or_else(|| found.first().copied())
    }

    /// Whether some module's dotted name starts with this one (a namespace package).
    #[must_use]
    pub fn is_prefix(&self, name: Sym) -> bool {
        self.prefixes.contains(&name)
    }

    /// Dotted name that a module names with `level` dots and `module` from where it stands; `None` if the dots lead out of the tree.
    #[must_use]
    pub fn absolute(&self, from: ModuleId, module: &str, level: u32) -> Option<String> {
        if level == 0 {
            return Some(module.to_owned());
        }
        let here = self.module(from);
        let mut base: Vec<&str> = self.strings.text(here.name).split('.').filter(|part| !part.is_empty()).collect();
        let up = level - u32::from(here.is_package);
        for _ in 0..up {
            base.pop()?;
        }
        if !module.is_empty() {
            base.push(module);
        }
        Some(base.join("."))
    }

    /// Modules that the import statements of a scope name: the module itself and, where it is one, the member.
    #[must_use]
    pub fn imported_by(&self, scope: GlobalScope) -> Vec<ModuleId> {
        let id = self.module_of(scope);
        let module = self.module(id);
        let mut found = Vec::new();
        for op in &self.scope(scope).ops {
            let (name, level, member) = match &op.kind {
                OpKind::Import { module, .. } => (*module, 0, None),
                OpKind::ImportFrom { module, level, name, .. } => (*module, *level, Some(*name)),
                OpKind::ImportStar { module, level } => (*module, *level, None),
                _ => continue,
            };
            let Some(base) = self.absolute(id, module.facts.name(name), level) else { continue };
            let full = member.map(|member| format!("{base}.{}", module.facts.name(member)));
            let names = std::iter::once(base.as_str()).chain(full.as_deref());
            found.extend(names.filter_map(|name| self.strings.find(name).and_then(|sym| self.find(sym, module.source))));
        }
        found
    }

    /// The scope with this dotted name, if a module has one: module, class, function or nested.
    #[must_use]
    pub fn find_scope(&self, name: &str) -> Option<GlobalScope> {
        let mut split = name.len();
        loop {
            if let Some(sym) = self.strings.find(&name[..split])
                && let Some(found) = self.by_name.get(&sym)
            {
                let rest = name.get(split + 1..).unwrap_or("");
                for id in found {
                    let module = self.module(*id);
                    let scope = module.facts.scopes.iter().position(|scope| module.facts.name(scope.qualname) == rest);
                    if let Some(scope) = scope {
                        return Some(self.global_scope(*id, u32::try_from(scope).unwrap_or(0)));
                    }
                }
            }
            split = name[..split].rfind('.')?;
        }
    }
}

/// Dotted names of a file, the first being the main one, and whether it is a package.
fn module_names(path: &str, roots: &[String]) -> (Vec<String>, bool) {
    // What stands in a file of another language cannot be imported: its name is its path.
    let stem = match path.strip_suffix(".py") {
        Some(stem) => stem,
        None if path.rsplit('/').next().is_some_and(|name| name.contains('.')) => return (vec![path.to_owned()], false),
        None => path,
    };
    let is_package = stem == "__init__" || stem.ends_with("/__init__");
    let mut names = Vec::new();
    let mut roots: Vec<&str> = roots.iter().map(|root| root.trim_end_matches('/')).collect();
    roots.sort_by_key(|root| std::cmp::Reverse(root.len()));
    for root in roots {
        let inside =
            if root == "." || root.is_empty() { Some(stem) } else { stem.strip_prefix(root).and_then(|rest| rest.strip_prefix('/')) };
        if let Some(inside) = inside {
            let inside = inside.strip_suffix("/__init__").unwrap_or(inside);
            names.push(inside.replace('/', "."));
        }
    }
    if names.is_empty() {
        names.push(stem.strip_suffix("/__init__").unwrap_or(stem).replace('/', "."));
    }
    (names, is_package)
}
