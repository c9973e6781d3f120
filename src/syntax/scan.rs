//! Which names a scope binds, before its body is lowered.
//!
//! In: the statements of one scope. Out: names in order of first binding, `global` and `nonlocal` declarations, and the names that scopes
//! below it write through `nonlocal` or `global`. Nested scopes are not entered except for those declarations.

use ruff_python_ast::{ExceptHandler, Expr, Pattern, Stmt};
use rustc_hash::FxHashSet;

use super::lower::dotted;

/// What a scope binds and declares.
#[derive(Default)]
pub(super) struct Bindings {
    /// Bound names in order of first binding.
    pub bound: Vec<String>,
    /// Declared `global` here.
    pub globals: Vec<String>,
    /// Declared `nonlocal` here.
    pub nonlocals: Vec<String>,
    /// Declared `nonlocal` in a scope below.
    pub shared: Vec<String>,
    /// Declared `global` in a scope below.
    pub shared_globals: Vec<String>,
    /// Names that something besides `if TYPE_CHECKING:` binds.
    pub at_run_time: FxHashSet<String>,
    /// Whether the statements at hand are seen by type checkers only.
    for_checkers: bool,
}

impl Bindings {
    pub(super) fn of(body: &[Stmt], parameters: &[String]) -> Self {
        let mut bindings = Self { bound: parameters.to_vec(), ..Self::default() };
        bindings.statements(body);
        let declared: FxHashSet<String> = bindings.globals.iter().chain(&bindings.nonlocals).cloned().collect();
        let mut seen = FxHashSet::default();
        bindings.bound.retain(|name| !declared.contains(name) && seen.insert(name.clone()));
        bindings
    }

    fn bind(&mut self, name: &str) {
        self.bound.push(name.to_owned());
        if !self.for_checkers {
            self.at_run_time.insert(name.to_owned());
        }
    }

    pub(super) fn statements(&mut self, body: &[Stmt]) {
        for stmt in body {
            self.statement(stmt);
        }
    }

    fn statement(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::FunctionDef(def) => {
                self.bind(&def.name);
                self.below(&def.body);
            }
            Stmt::ClassDef(def) => {
                self.bind(&def.name);
                self.below(&def.body);
            }
            Stmt::Assign(assign) => assign.targets.iter().for_each(|target| self.target(target)),
            Stmt::AugAssign(assign) => self.target(&assign.target),
            Stmt::AnnAssign(assign) if assign.value.is_some() => self.target(&assign.target),
            Stmt::TypeAlias(alias) => self.target(&alias.name),
            Stmt::For(stmt) => {
                self.target(&stmt.target);
                self.statements(&stmt.body);
                self.statements(&stmt.orelse);
            }
            Stmt::While(stmt) => {
                self.statements(&stmt.body);
                self.statements(&stmt.orelse);
            }
            Stmt::If(stmt) => {
                let outer = self.for_checkers;
                self.for_checkers |= dotted(&stmt.test).is_some_and(|test| test.rsplit('.').next() == Some("TYPE_CHECKING"));
                self.statements(&stmt.body);
                self.for_checkers = outer;
                for clause in &stmt.elif_else_clauses {
                    self.statements(&clause.body);
                }
            }
            Stmt::With(stmt) => {
                for target in stmt.items.iter().filter_map(|item| item.optional_vars.as_deref()) {
                    self.target(target);
                }
                self.statements(&stmt.body);
            }
            Stmt::Match(stmt) => {
                for case in &stmt.cases {
                    self.pattern(&case.pattern);
                    self.statements(&case.body);
                }
            }
            Stmt::Try(stmt) => {
                self.statements(&stmt.body);
                for ExceptHandler::ExceptHandler(handler) in &stmt.handlers {
                    if let Some(name) = &handler.name {
                        self.bind(name);
                    }
                    self.statements(&handler.body);
                }
                self.statements(&stmt.orelse);
                self.statements(&stmt.finalbody);
            }
            Stmt::Import(import) => {
                for alias in &import.names {
                    match &alias.asname {
                        Some(name) => self.bind(name),
                        None => self.bind(alias.name.split('.').next().unwrap_or("")),
                    }
                }
            }
            Stmt::ImportFrom(import) => {
                for alias in import.names.iter().filter(|alias| alias.name.as_str() != "*") {
                    self.bind(alias.asname.as_ref().unwrap_or(&alias.name));
                }
            }
            Stmt::Global(stmt) => self.globals.extend(stmt.names.iter().map(|name| name.to_string())),
            Stmt::Nonlocal(stmt) => self.nonlocals.extend(stmt.names.iter().map(|name| name.to_string())),
            _ => {}
        }
    }

    /// Names that a nested scope declares to be written in this one.
    fn below(&mut self, body: &[Stmt]) {
        let mut inner = Self::default();
        inner.statements(body);
        self.shared.append(&mut inner.nonlocals);
        self.shared.append(&mut inner.shared);
        self.shared_globals.append(&mut inner.globals);
        self.shared_globals.append(&mut inner.shared_globals);
    }

    pub(super) fn target(&mut self, target: &Expr) {
        match target {
            Expr::Name(name) => self.bind(&name.id),
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|target| self.target(target)),
            Expr::List(list) => list.elts.iter().for_each(|target| self.target(target)),
            Expr::Starred(starred) => self.target(&starred.value),
            _ => {}
        }
    }

    pub(super) fn pattern(&mut self, pattern: &Pattern) {
        match pattern {
            Pattern::MatchSequence(pattern) => pattern.patterns.iter().for_each(|pattern| self.pattern(pattern)),
            Pattern::MatchMapping(pattern) => {
                pattern.patterns.iter().for_each(|pattern| self.pattern(pattern));
                if let Some(rest) = &pattern.rest {
                    self.bind(rest);
                }
            }
            Pattern::MatchClass(pattern) => {
                pattern.arguments.patterns.iter().for_each(|pattern| self.pattern(pattern));
                pattern.arguments.keywords.iter().for_each(|keyword| self.pattern(&keyword.pattern));
            }
            Pattern::MatchStar(pattern) => {
                if let Some(name) = &pattern.name {
                    self.bind(name);
                }
            }
            Pattern::MatchAs(pattern) => {
                if let Some(inner) = &pattern.pattern {
                    self.pattern(inner);
                }
                if let Some(name) = &pattern.name {
                    self.bind(name);
                }
            }
            Pattern::MatchOr(pattern) => pattern.patterns.iter().for_each(|pattern| self.pattern(pattern)),
            Pattern::MatchValue(_) | Pattern::MatchSingleton(_) => {}
        }
    }
}
