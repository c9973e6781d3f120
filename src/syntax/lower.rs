//! One module's text to facts: the shared state of lowering, scopes, names and conditions.
//!
//! Statements are lowered in `statements`, expressions in `expressions`. A flow state holds the current version of each local; branches clone
//! it and merges join it. Depth is bounded: beyond [`MAX_DEPTH`] an expression becomes an opaque value and the module gets a problem.

use ruff_python_ast::{Expr, Mod, Parameters, PythonVersion, Stmt};
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};
use ruff_text_size::{Ranged, TextRange};
use rustc_hash::{FxHashMap, FxHashSet};

use super::facts::*;
use super::scan::Bindings;

/// Nesting depth at which an expression or statement is given up.
pub(super) const MAX_DEPTH: u32 = 20_000;

/// Stands for the module's names as if they were fields of one object.
pub(super) const MODULE: Reg = NO_REG - 1;

/// A flow state: the current register of each slot.
pub(super) type Env = Vec<Reg>;

/// A place inside an object that a store made known, for reads that follow without a call or merge between.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Field {
    Attr(NameId),
    Str(NameId),
    Int(i64),
}

/// Registers of the fields that are known, by object and field.
pub(super) type Fields = FxHashMap<(Reg, Field), Reg>;

/// State of the scope being lowered.
pub(super) struct Frame {
    pub id: ScopeId,
    pub kind: ScopeKind,
    pub qualname: String,
    pub slots: FxHashMap<String, usize>,
    pub slot_names: Vec<String>,
    pub env: Env,
    /// Slots that a scope below writes: they live in their cell.
    pub shared: FxHashSet<usize>,
    pub cells: FxHashMap<usize, Reg>,
    /// Every version ever given to a slot, with its condition.
    pub versions: Vec<Vec<(Reg, CondId)>>,
    pub globals: FxHashSet<String>,
    pub nonlocals: FxHashSet<String>,
    pub registers: u32,
    pub ops: Vec<Op>,
    pub conds: Vec<Cond>,
    pub tries: Vec<Try>,
    pub cond: CondId,
    pub fields: Fields,
    pub keys: FxHashMap<Reg, Field>,
    pub dicts: FxHashMap<Reg, Vec<(Reg, Reg)>>,
    pub lambdas: u32,
    pub loops: u32,
    pub is_generator: bool,
    /// Slots whose version changed since names were last published.
    pub stale: Vec<usize>,
    /// Slots whose cell has been given a version.
    pub published: FxHashSet<usize>,
}

/// State of the module being lowered.
pub(super) struct Lowering<'a> {
    pub text: &'a str,
    pub facts: ModuleFacts,
    pub index: FxHashMap<String, NameId>,
    pub frames: Vec<Frame>,
    pub depth: u32,
    pub too_deep: Option<Range>,
    /// The call whose literal string is being lowered as code: every operation stands there.
    pub within: Option<Range>,
}

/// What a new scope starts from.
pub(super) struct Opening<'a> {
    pub kind: ScopeKind,
    pub name: &'a str,
    pub whole: Range,
    pub name_range: Range,
    pub bindings: Bindings,
}

/// Extracts the facts of a module. Nesting is followed by recursion up to a fixed bound: the thread needs [`super::STACK_BYTES`] of stack.
#[must_use]
pub fn extract(text: &str) -> ModuleFacts {
    let options = ParseOptions::from(Mode::Module).with_target_version(PythonVersion::latest());
    let parsed = parse_unchecked(text, options);
    let mut lowering = Lowering {
        text,
        facts: ModuleFacts::default(),
        index: FxHashMap::default(),
        frames: Vec::new(),
        depth: 0,
        too_deep: None,
        within: None,
    };
    for error in parsed.errors() {
        lowering.facts.problems.push(SyntaxProblem { range: range(error.location), message: error.error.to_string() });
    }
    if text.contains("rlk-lint:") {
        for token in parsed.tokens().iter().filter(|token| token.kind().is_comment()) {
            let comment = text.get(token.range().start().to_usize()..token.range().end().to_usize()).unwrap_or("");
            if let Some(at) = comment.find("rlk-lint:") {
                let directive = Directive { range: range(token.range()), text: comment[at + "rlk-lint:".len()..].trim().to_owned() };
                lowering.facts.directives.push(directive);
            }
        }
    }
    if let Mod::Module(module) = parsed.syntax() {
        lowering.module(&module.body);
    }
    if let Some(range) = lowering.too_deep {
        lowering.facts.problems.push(SyntaxProblem { range, message: format!("nested deeper than {MAX_DEPTH} levels") });
    }
    lowering.facts
}

pub(super) fn range(range: TextRange) -> Range {
    (range.start().to_u32(), range.end().to_u32())
}

pub(super) fn index(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

impl Lowering<'_> {
    pub(super) fn intern(&mut self, text: &str) -> NameId {
        if let Some(id) = self.index.get(text) {
            return *id;
        }
        let id = index(self.facts.names.len());
        self.facts.names.push(text.to_owned());
        self.index.insert(text.to_owned(), id);
        id
    }

    pub(super) fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("a scope is being lowered")
    }

    pub(super) fn reg(&mut self) -> Reg {
        let frame = self.frame();
        frame.registers += 1;
        frame.registers - 1
    }

    pub(super) fn emit(&mut self, kind: OpKind, range: Range) {
        let range = self.within.unwrap_or(range);
        let frame = self.frame();
        let cond = frame.cond;
        frame.ops.push(Op { kind, range, cond });
    }

    /// A register with a value that no decision depends on.
    pub(super) fn opaque(&mut self, range: Range) -> Reg {
        let dst = self.reg();
        self.emit(OpKind::Literal(dst, Literal::Opaque), range);
        dst
    }

    pub(super) fn condition(&mut self, kind: CondKind, range: Range) -> CondId {
        let range = self.within.unwrap_or(range);
        let frame = self.frame();
        frame.conds.push(Cond { parent: frame.cond, kind, range });
        index(frame.conds.len() - 1)
    }

    /// Something happened after which known fields may have changed.
    pub(super) fn forget(&mut self) {
        let frame = self.frame();
        frame.fields.clear();
        frame.dicts.clear();
    }

    /// Makes the current version of every changed name visible to other scopes: a call or import may read it from now on. In between, a
    /// version that is replaced is never seen.
    pub(super) fn publish(&mut self, at: Range) {
        if self.frame().kind == ScopeKind::Class {
            return;
        }
        let mut stale = std::mem::take(&mut self.frame().stale);
        stale.sort_unstable();
        stale.dedup();
        if self.frame().kind != ScopeKind::Module {
            // In a function, what matters is what functions inside it capture; a slot that none captures yet stays stale.
            for slot in stale {
                let reg = self.current(slot);
                let cell = self.frame().cells.get(&slot).copied();
                match cell {
                    Some(cell) if reg != NO_REG && reg != cell => {
                        self.frame().published.insert(slot);
                        self.emit(OpKind::Move(cell, reg), at);
                    }
                    Some(_) => {}
                    None => self.frame().stale.push(slot),
                }
            }
            return;
        }
        for slot in stale {
            let reg = self.current(slot);
            let name = self.frame().slot_names[slot].clone();
            if reg == NO_REG || name.is_empty() {
                continue;
            }
            let name = self.intern(&name);
            self.emit(OpKind::StoreGlobal(name, reg), at);
        }
    }

    fn module(&mut self, body: &[Stmt]) {
        let mut bindings = Bindings::of(body, &[]);
        let end = index(self.text.len());
        let shared: FxHashSet<String> = bindings.shared_globals.iter().cloned().collect();
        let at_run_time = bindings.bound.iter().filter(|name| bindings.at_run_time.contains(*name));
        for name in at_run_time.chain(&bindings.shared_globals) {
            let id = self.intern(name);
            if !self.facts.bound.contains(&id) {
                self.facts.bound.push(id);
            }
        }
        bindings.bound.retain(|name| !shared.contains(name));
        self.open(Opening { kind: ScopeKind::Module, name: "", whole: (0, end), name_range: (0, 0), bindings });
        self.block(body);
        self.publish((end, end));
        self.close();
    }

    /// Opens a scope; the caller lowers its body and closes it.
    pub(super) fn open(&mut self, opening: Opening<'_>) -> ScopeId {
        let id = index(self.facts.scopes.len());
        let parent = self.frames.last().map_or(id, |frame| frame.id);
        let qualname = match self.frames.last() {
            Some(frame) if !frame.qualname.is_empty() => format!("{}.{}", frame.qualname, opening.name),
            _ => opening.name.to_owned(),
        };
        let bindings = opening.bindings;
        let slots: FxHashMap<String, usize> = bindings.bound.iter().enumerate().map(|(slot, name)| (name.clone(), slot)).collect();
        let shared = bindings.shared.iter().filter_map(|name| slots.get(name).copied()).collect();
        let name = self.intern(opening.name);
        let qualname_id = self.intern(&qualname);
        self.facts.scopes.push(Scope {
            kind: opening.kind,
            name,
            qualname: qualname_id,
            parent,
            range: opening.whole,
            name_range: opening.name_range,
            params: Vec::new(),
            registers: 0,
            ops: Vec::new(),
            conds: Vec::new(),
            tries: Vec::new(),
            is_generator: false,
            is_async: false,
            decorators: Vec::new(),
            grad: Grad::AsBefore,
            grad_regions: Vec::new(),
            polymorphic: false,
            annotated: Vec::new(),
        });
        self.frames.push(Frame {
            id,
            kind: opening.kind,
            qualname,
            env: vec![NO_REG; slots.len()],
            versions: vec![Vec::new(); slots.len()],
            slots,
            slot_names: bindings.bound,
            shared,
            cells: FxHashMap::default(),
            globals: bindings.globals.into_iter().collect(),
            nonlocals: bindings.nonlocals.into_iter().collect(),
            registers: 0,
            ops: Vec::new(),
            conds: vec![Cond { parent: 0, kind: CondKind::Always, range: opening.whole }],
            tries: Vec::new(),
            cond: 0,
            fields: FxHashMap::default(),
            keys: FxHashMap::default(),
            dicts: FxHashMap::default(),
            lambdas: 0,
            loops: 0,
            is_generator: false,
            stale: Vec::new(),
            published: FxHashSet::default(),
        });
        id
    }

    /// Closes the innermost scope: fills its cells and hands its operations over.
    pub(super) fn close(&mut self) {
        let Some(mut frame) = self.frames.pop() else { return };
        let mut cells: Vec<(usize, Reg)> = frame.cells.iter().map(|(slot, cell)| (*slot, *cell)).collect();
        cells.sort_unstable();
        let scope = &mut self.facts.scopes[frame.id as usize];
        for (slot, cell) in cells.into_iter().filter(|(slot, _)| !frame.published.contains(slot)) {
            let inputs: Box<[(Reg, CondId)]> = frame.versions[slot].iter().copied().filter(|(reg, _)| *reg != cell).collect();
            frame.ops.push(Op { kind: OpKind::Phi(cell, inputs), range: scope.name_range, cond: 0 });
        }
        scope.registers = frame.registers;
        scope.ops = frame.ops;
        scope.conds = frame.conds;
        scope.tries = frame.tries;
        scope.is_generator = frame.is_generator;
        scope.polymorphic = polymorphic(scope);
    }

    /// A class body annotates a name: a field, should it be a dataclass.
    pub(super) fn annotate(&mut self, name: &str) {
        if self.frame().kind == ScopeKind::Class {
            let (name, scope) = (self.intern(name), self.frame().id);
            self.facts.scopes[scope as usize].annotated.push(name);
        }
    }

    pub(super) fn params(&mut self, parameters: &Parameters) -> Vec<Param> {
        let mut listed: Vec<(&ruff_python_ast::Parameter, ParamKind, bool)> = Vec::new();
        let with_default = |parameter: &ruff_python_ast::ParameterWithDefault| parameter.default.is_some();
        listed.extend(parameters.posonlyargs.iter().map(|item| (&item.parameter, ParamKind::PositionOnly, with_default(item))));
        listed.extend(parameters.args.iter().map(|item| (&item.parameter, ParamKind::Normal, with_default(item))));
        listed.extend(parameters.vararg.as_deref().map(|item| (item, ParamKind::Star, false)));
        listed.extend(parameters.kwonlyargs.iter().map(|item| (&item.parameter, ParamKind::KeywordOnly, with_default(item))));
        listed.extend(parameters.kwarg.as_deref().map(|item| (item, ParamKind::DoubleStar, false)));
        let mut out = Vec::with_capacity(listed.len());
        for (parameter, kind, has_default) in listed {
            let reg = self.reg();
            let name = self.intern(&parameter.name);
            let annotation = parameter.annotation.as_deref().and_then(dotted).map(|text| self.intern(&text));
            if let Some(slot) = self.frame().slots.get(parameter.name.as_str()).copied() {
                self.assign_slot(slot, reg, range(parameter.range()));
            }
            out.push(Param { name, kind, reg, has_default, annotation });
        }
        out
    }

    /// Gives a slot of the current scope a new version.
    pub(super) fn assign_slot(&mut self, slot: usize, reg: Reg, at: Range) {
        let depth = self.frames.len() - 1;
        let frame = self.frame();
        let cond = frame.cond;
        frame.versions[slot].push((reg, cond));
        frame.stale.push(slot);
        let shared = frame.shared.contains(&slot);
        if shared {
            let cell = self.cell(depth, slot);
            self.frame().published.insert(slot);
            self.emit(OpKind::Move(cell, reg), at);
            self.set_current(slot, cell);
        } else {
            self.set_current(slot, reg);
        }
        let name = self.frame().slot_names[slot].clone();
        if self.frame().kind == ScopeKind::Class && !name.is_empty() {
            let name = self.intern(&name);
            self.emit(OpKind::StoreClass(name, reg), at);
        }
    }

    /// Adds slots that are still to be made visible, each once.
    pub(super) fn still_stale(&mut self, slots: Vec<usize>) {
        let stale = &mut self.frame().stale;
        stale.extend(slots);
        stale.sort_unstable();
        stale.dedup();
    }

    /// Current version of a slot. A flow state that is older than the slot does not have it yet.
    pub(super) fn current(&mut self, slot: usize) -> Reg {
        self.frame().env.get(slot).copied().unwrap_or(NO_REG)
    }

    pub(super) fn set_current(&mut self, slot: usize, reg: Reg) {
        let env = &mut self.frame().env;
        if env.len() <= slot {
            env.resize(slot + 1, NO_REG);
        }
        env[slot] = reg;
    }

    /// A slot that the scan did not see: a target of a comprehension (no name) or of an assignment expression.
    pub(super) fn new_slot(&mut self, name: &str) -> usize {
        let frame = self.frame();
        frame.slot_names.push(name.to_owned());
        frame.versions.push(Vec::new());
        frame.slot_names.len() - 1
    }

    /// Register of the cell for `slot` in frame `depth`.
    fn cell(&mut self, depth: usize, slot: usize) -> Reg {
        let frame = &mut self.frames[depth];
        if let Some(cell) = frame.cells.get(&slot) {
            return *cell;
        }
        let cell = frame.registers;
        frame.registers += 1;
        frame.cells.insert(slot, cell);
        cell
    }

    pub(super) fn assign_name(&mut self, name: &str, reg: Reg, at: Range) {
        let depth = self.frames.len() - 1;
        let frame = &self.frames[depth];
        let kind = frame.kind;
        if frame.nonlocals.contains(name)
            && let Some((outer, slot)) = self.outer(name, depth)
        {
            let cell = self.cell(outer, slot);
            let scope = self.frames[outer].id;
            self.emit(OpKind::StoreFree(scope, cell, reg), at);
            return;
        }
        let slot = self.frames[depth].slots.get(name).copied();
        match slot {
            Some(slot) => self.assign_slot(slot, reg, at),
            None if kind == ScopeKind::Module || self.frames[depth].globals.contains(name) => {
                let name = self.intern(name);
                self.emit(OpKind::StoreGlobal(name, reg), at);
                self.frame().fields.insert((MODULE, Field::Attr(name)), reg);
            }
            // A name that only an assignment expression binds.
            None => {
                let slot = self.new_slot(name);
                self.frame().slots.insert(name.to_owned(), slot);
                self.assign_slot(slot, reg, at);
            }
        }
    }

    /// The function scope outside frame `depth` that binds `name`.
    fn outer(&self, name: &str, depth: usize) -> Option<(usize, usize)> {
        (0..depth).rev().find_map(|outer| {
            let frame = &self.frames[outer];
            let function = matches!(frame.kind, ScopeKind::Function | ScopeKind::Lambda);
            frame.slots.get(name).filter(|_| function).map(|slot| (outer, *slot))
        })
    }

    pub(super) fn load_name(&mut self, name: &str, at: Range) -> Reg {
        let depth = self.frames.len() - 1;
        let frame = &self.frames[depth];
        if !frame.globals.contains(name) {
            if let Some(slot) = frame.slots.get(name).copied() {
                let reg = frame.env.get(slot).copied().unwrap_or(NO_REG);
                if reg != NO_REG {
                    return reg;
                }
                if matches!(frame.kind, ScopeKind::Function | ScopeKind::Lambda) {
                    return self.opaque(at);
                }
            }
            if let Some((outer, slot)) = self.outer(name, depth) {
                let cell = self.cell(outer, slot);
                let scope = self.frames[outer].id;
                let dst = self.reg();
                self.emit(OpKind::LoadFree(dst, scope, cell), at);
                return dst;
            }
        }
        let name = self.intern(name);
        if let Some(known) = self.frame().fields.get(&(MODULE, Field::Attr(name))).copied() {
            return known;
        }
        let dst = self.reg();
        self.emit(OpKind::LoadGlobal(dst, name), at);
        dst
    }

    /// Joins flow states that arrive under different conditions; `None` if none arrives.
    pub(super) fn merge(&mut self, mut states: Vec<(Env, CondId)>, at: Range) -> Option<Env> {
        if states.len() <= 1 {
            return states.pop().map(|(env, _)| env);
        }
        let width = states.iter().map(|(env, _)| env.len()).max().unwrap_or(0);
        let joined = self.frame().cond;
        let mut out = Vec::with_capacity(width);
        for slot in 0..width {
            let mut inputs: Vec<(Reg, CondId)> = Vec::new();
            for (env, cond) in &states {
                let reg = env.get(slot).copied().unwrap_or(NO_REG);
                if reg == NO_REG {
                    continue;
                }
                match inputs.iter_mut().find(|(seen, _)| *seen == reg) {
                    // The same version on several paths arrives if any of them is taken.
                    Some(input) => input.1 = joined,
                    None => inputs.push((reg, *cond)),
                }
            }
            let everywhere = inputs.len() == 1 && states.iter().all(|(env, _)| env.get(slot).copied() == Some(inputs[0].0));
            out.push(match inputs.as_slice() {
                [] => NO_REG,
                [(reg, _)] if everywhere => *reg,
                _ => {
                    let dst = self.reg();
                    self.emit(OpKind::Phi(dst, inputs.into_boxed_slice()), at);
                    self.frame().stale.push(slot);
                    dst
                }
            });
        }
        Some(out)
    }
}

/// The text of an expression that is a plain dotted name, or a string that holds one.
pub(super) fn dotted(expr: &Expr) -> Option<String> {
    let mut parts = Vec::new();
    let mut expr = expr;
    loop {
        match expr {
            Expr::Attribute(attribute) => {
                parts.push(attribute.attr.as_str());
                expr = &attribute.value;
            }
            Expr::Name(name) => {
                parts.push(name.id.as_str());
                parts.reverse();
                return Some(parts.join("."));
            }
            Expr::StringLiteral(text) if parts.is_empty() => {
                let text = text.value.to_str();
                return text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.').then(|| text.to_owned());
            }
            _ => return None,
        }
    }
}

/// See [`Scope::polymorphic`].
fn polymorphic(scope: &Scope) -> bool {
    let mut derived: FxHashSet<Reg> = scope.params.iter().map(|param| param.reg).collect();
    if derived.is_empty() {
        return false;
    }
    let mut literals: FxHashSet<Reg> = FxHashSet::default();
    let mut decisions: FxHashSet<Reg> = FxHashSet::default();
    let mut registries: FxHashSet<Reg> = FxHashSet::default();
    for op in &scope.ops {
        let (dst, from) = match &op.kind {
            OpKind::Literal(dst, _) => {
                literals.insert(*dst);
                continue;
            }
            OpKind::Binary { dst, left, right, .. } => {
                let constant = literals.contains(left) || literals.contains(right);
                if constant && (derived.contains(left) || derived.contains(right)) {
                    decisions.insert(*dst);
                }
                continue;
            }
            OpKind::Dict { dst, items } => {
                if items.is_empty() {
                    registries.insert(*dst);
                }
                continue;
            }
            OpKind::StoreAttr { obj, src, .. } => {
                if derived.contains(obj) && registries.contains(src) {
                    return true;
                }
                continue;
            }
            OpKind::StoreItem { key, .. } => {
                if derived.contains(key) {
                    return true;
                }
                continue;
            }
            OpKind::Move(dst, src) | OpKind::Filter(dst, src, _) => (*dst, derived.contains(src)),
            OpKind::Phi(dst, inputs) => (*dst, inputs.iter().any(|(src, _)| derived.contains(src))),
            OpKind::LoadItem { dst, obj, key } => {
                if derived.contains(key) {
                    return true;
                }
                (*dst, derived.contains(obj))
            }
            OpKind::Call { dst, func, args, .. } => {
                if derived.contains(func) {
                    return true;
                }
                (*dst, args.iter().any(|(_, reg)| derived.contains(reg)))
            }
            OpKind::Sequence { dst, items, .. } => (*dst, items.iter().any(|(item, _)| derived.contains(item))),
            OpKind::Iterate { dst, src } | OpKind::Unpack { dst, src, .. } => (*dst, derived.contains(src)),
            OpKind::Format { dst, parts } => (*dst, parts.iter().any(|part| derived.contains(part))),
            OpKind::LoadAttr { dst, obj, .. } => (*dst, derived.contains(obj)),
            OpKind::Function { .. } | OpKind::Class { .. } => return true,
            OpKind::Return(src) => {
                if derived.contains(src) {
                    return true;
                }
                continue;
            }
            _ => continue,
        };
        if from {
            derived.insert(dst);
        }
    }
    let returns = scope.ops.iter().filter(|op| matches!(op.kind, OpKind::Return(_))).count();
    returns > 1 && scope.conds.iter().any(|cond| matches!(cond.kind, CondKind::Test(reg, _) if decisions.contains(&reg)))
}
