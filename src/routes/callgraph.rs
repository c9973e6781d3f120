//! The plain call graph of files or folders, for comparison with other tools.
//!
//! In: paths. Out: adjacency of dotted names. Modules are found beside the files that are given, as Python would with that folder on its path.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::names::{GlobalScope, ModuleInput, Program};
use crate::syntax::{ModuleFacts, OpKind, ScopeKind, extract_all};
use crate::text::FileId;
use crate::values::{Assumptions, Builtin, EdgeKind, Engine, Target};

/// Adjacency: caller to callees, both in order.
pub type CallGraph = BTreeMap<String, BTreeSet<String>>;

/// Why no call graph could be made.
#[derive(Debug, thiserror::Error)]
pub enum CallGraphError {
    /// A path cannot be read.
    #[error("{path}: cannot be read: {cause}; give a Python file or a folder that holds some")]
    Unreadable {
        /// The path as it was given.
        path: String,
        /// What the system said.
        cause: std::io::Error,
    },
    /// Nothing to read.
    #[error("{path}: no Python file below this folder")]
    Empty {
        /// The path as it was given.
        path: String,
    },
}

/// Call graph of the modules at `paths` and of what they import from beside themselves.
///
/// # Errors
/// If a path cannot be read or holds no Python.
pub fn of_paths(paths: &[PathBuf], threads: usize) -> Result<CallGraph, CallGraphError> {
    let mut inputs: Vec<(PathBuf, String)> = Vec::new();
    let mut entries: BTreeSet<(usize, String)> = BTreeSet::new();
    let mut modules: Vec<ModuleInput> = Vec::new();
    let mut roots: Vec<PathBuf> = Vec::new();
    for path in paths {
        let label = path.display().to_string();
        let root = if path.is_dir() { path.clone() } else { path.parent().map_or_else(PathBuf::new, Path::to_path_buf) };
        // A folder inside a package is looked at from above the outermost package, so that its absolute imports resolve.
        let mut top = root.clone();
        if path.is_dir() {
            while top.join("__init__.py").is_file() {
                let Some(parent) = top.parent() else { break };
                top = parent.to_path_buf();
            }
        }
        let source = roots.iter().position(|known| *known == top).unwrap_or_else(|| {
            roots.push(top.clone());
            roots.len() - 1
        });
        let mut files = Vec::new();
        if path.is_dir() {
            let mut walk = ignore::WalkBuilder::new(path);
            walk.standard_filters(false).sort_by_file_name(Ord::cmp);
            for found in walk.build().flatten() {
                if found.path().extension().is_some_and(|ending| ending == "py") && found.path().is_file() {
                    files.push(found.path().to_path_buf());
                }
            }
            if files.is_empty() {
                return Err(CallGraphError::Empty { path: label });
            }
        } else {
            files.push(path.clone());
        }
        for file in files {
            let inside = file.strip_prefix(&top).unwrap_or(&file).to_string_lossy().replace('\\', "/");
            entries.insert((source, inside.clone()));
            inputs.push((file, inside));
        }
        close_over_imports(&mut inputs, &mut modules, source, &top, threads, &label)?;
    }
    let program = Program::new(modules);
    let assumptions = Assumptions::default();
    let mut engine = Engine::new(&program, &assumptions);
    let wanted: Vec<_> = program
        .module_ids()
        .filter(|id| {
            let module = program.module(*id);
            entries.contains(&(module.source, module.path.clone()))
        })
        .collect();
    engine.run_modules(&wanted);
    engine.run_uncalled(|_| true);
    Ok(graph(&engine))
}

/// Reads files, and the files of the modules that they import from below `root`, until no new one is named.
fn close_over_imports(
    open: &mut Vec<(PathBuf, String)>,
    modules: &mut Vec<ModuleInput>,
    source: usize,
    root: &Path,
    threads: usize,
    label: &str,
) -> Result<(), CallGraphError> {
    let mut seen: BTreeSet<String> = modules.iter().filter(|module| module.source == source).map(|module| module.path.clone()).collect();
    while !open.is_empty() {
        let mut batch = Vec::new();
        for (file, inside) in open.drain(..) {
            if seen.insert(inside.clone()) {
                let bytes = std::fs::read(&file).map_err(|cause| CallGraphError::Unreadable { path: label.to_owned(), cause })?;
                batch.push((inside, String::from_utf8_lossy(&bytes).into_owned()));
            }
        }
        let texts: Vec<&str> = batch.iter().map(|(_, text)| text.as_str()).collect();
        let facts = extract_all(&texts, threads);
        for ((path, _), facts) in batch.into_iter().zip(facts) {
            for name in imported_names(&facts, &path) {
                let stem = name.replace('.', "/");
                for inside in [format!("{stem}.py"), format!("{stem}/__init__.py")] {
                    let file = root.join(&inside);
                    if !seen.contains(&inside) && file.is_file() {
                        open.push((file, inside));
                    }
                }
            }
            modules.push(ModuleInput { source, path, file: FileId(0), roots: vec![".".to_owned()], facts: facts.into() });
        }
    }
    Ok(())
}

/// Every dotted name that the imports of a module may mean, packages above included.
fn imported_names(facts: &ModuleFacts, path: &str) -> BTreeSet<String> {
    let stem = path.strip_suffix(".py").unwrap_or(path);
    let package: Vec<&str> = match stem.rsplit_once('/') {
        Some((folder, _)) => folder.split('/').collect(),
        None => Vec::new(),
    };
    let mut names = BTreeSet::new();
    let mut add = |name: String| {
        let mut at = name.as_str();
        while !at.is_empty() {
            names.insert(at.to_owned());
            at = at.rsplit_once('.').map_or("", |(head, _)| head);
        }
    };
    for op in facts.scopes.iter().flat_map(|scope| &scope.ops) {
        match &op.kind {
            OpKind::Import { module, .. } => add(facts.name(*module).to_owned()),
            OpKind::ImportFrom { module, level, .. } | OpKind::ImportStar { module, level } => {
                let mut base = String::new();
                if *level > 0 {
                    let keep = package.len().saturating_sub(*level as usize - 1);
                    base = package[..keep].join(".");
                }
                let module = facts.name(*module);
                if !module.is_empty() {
                    base = if base.is_empty() { module.to_owned() } else { format!("{base}.{module}") };
                }
                if let OpKind::ImportFrom { name, .. } = &op.kind {
                    let member = facts.name(*name);
                    add(if base.is_empty() { member.to_owned() } else { format!("{base}.{member}") });
                }
                add(base);
            }
            OpKind::Literal(_, crate::syntax::Literal::Str(text)) => {
                let text = facts.name(*text);
                if text.contains('.')
                    && text.split('.').all(|part| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_'))
                {
                    add(text.to_owned());
                }
            }
            _ => {}
        }
    }
    names
}

/// The function, lambda or module whose body an operation belongs to: class bodies run as part of what is around them.
#[must_use]
pub fn owner(program: &Program, scope: GlobalScope) -> GlobalScope {
    let mut at = scope;
    while program.scope(at).kind == ScopeKind::Class {
        at = program.global_scope(program.module_of(at), program.scope(at).parent);
    }
    at
}

fn graph(engine: &Engine<'_>) -> CallGraph {
    let program = engine.program;
    let mut out = CallGraph::new();
    for scope in engine.entered_scopes() {
        if program.scope(scope).kind != ScopeKind::Class {
            out.entry(program.qualified(scope)).or_default();
        }
    }
    for edge in &engine.edges {
        let name = match edge.target {
            Target::Scope(scope) => program.qualified(scope),
            Target::Class(_) => continue,
            Target::External(name) => engine.text(name).to_owned(),
            Target::Builtin(name) => {
                if edge.kind == EdgeKind::Decorator {
                    continue;
                }
                format!("<builtin>.{}", engine.text(name))
            }
            Target::BuiltinMethod(kind, name) => {
                let kind = match kind {
                    Builtin::Str => "PyStr",
                    Builtin::Dict => "PyDict",
                    Builtin::List => "PyList",
                };
                format!("<**{kind}**>.{}", engine.text(name))
            }
        };
        let caller = owner(program, engine.scope_of(edge.caller));
        out.entry(program.qualified(caller)).or_default().insert(name);
    }
    out
}
