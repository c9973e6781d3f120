//! Where the values of environment variables go: reads, and the registers, names, attributes and results that depend on them.
//!
//! In: operations of production code and the engine's calls. Out: [`Flow`]: every read of a variable, and per register the reads it depends on. A
//! dependence is a value that is passed on, compared, looked up or converted; a constant that is chosen or returned under a test depends on the test,
//! too. Numbers that tensors hold are not followed: what a call outside the sources makes of a value is not a dependence, except for
//! builtins and methods of strings.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::FxHashMap;

use super::super::Context;
use super::super::dataflow::destination;
use crate::names::{GlobalScope, ModuleId, Sym};
use crate::syntax::{CondId, CondKind, Literal, ModuleFacts, NO_REG, Op, OpKind, Operator, Passing, Reg, Scope, ScopeKind};
use crate::text::Span;
use crate::values::{Object, Target};

/// One read of a variable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Read {
    /// Place of the read, or of the call that names the variable to a function which reads it.
    pub span: Span,
    /// Variable.
    pub name: String,
    /// Scope it stands in.
    pub scope: GlobalScope,
    /// Operation in that scope.
    pub op: u32,
}

/// What a register depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// A read, by number.
    Read(u32),
    /// A read of the variable that this parameter of the scope names.
    Named(u32),
}

type Sources = BTreeSet<Source>;

/// The analysis at its fixpoint.
#[derive(Debug, Default)]
pub struct Flow {
    /// Reads in the order in which they came up.
    pub reads: Vec<Read>,
    numbers: BTreeMap<(GlobalScope, u32, String), u32>,
    registers: FxHashMap<GlobalScope, FxHashMap<Reg, Sources>>,
    globals: FxHashMap<(ModuleId, Sym), Sources>,
    attributes: FxHashMap<(GlobalScope, Sym), Sources>,
    params: FxHashMap<(GlobalScope, u32), Sources>,
    results: FxHashMap<GlobalScope, Sources>,
    callers: FxHashMap<GlobalScope, BTreeSet<GlobalScope>>,
}

/// Where each register of a scope is made.
pub(in super::super) fn definitions(scope: &Scope) -> FxHashMap<Reg, u32> {
    let mut out = FxHashMap::default();
    for (at, op) in scope.ops.iter().enumerate() {
        if let Some(dst) = destination(&op.kind) {
            out.entry(dst).or_insert(u32::try_from(at).unwrap_or(u32::MAX));
        }
    }
    out
}

/// One scope with its module's names and the places of its registers.
#[derive(Clone, Copy)]
pub(in super::super) struct Code<'a> {
    pub facts: &'a ModuleFacts,
    pub scope: &'a Scope,
    pub made: &'a FxHashMap<Reg, u32>,
}

impl Code<'_> {
    pub fn maker(&self, reg: Reg) -> Option<&OpKind> {
        self.made.get(&reg).map(|at| &self.scope.ops[*at as usize].kind)
    }

    /// Register that a copy was made of.
    pub fn origin(&self, reg: Reg) -> Reg {
        let mut at = reg;
        for _ in 0..64 {
            match self.maker(at) {
                Some(OpKind::Move(_, src) | OpKind::Filter(_, src, _)) => at = *src,
                Some(OpKind::Phi(_, inputs)) if inputs.len() == 1 => at = inputs[0].0,
                _ => break,
            }
        }
        at
    }

    /// The string that a register holds, if it is written in this scope.
    pub fn text(&self, reg: Reg) -> Option<&str> {
        match self.maker(self.origin(reg)) {
            Some(OpKind::Literal(_, Literal::Str(text))) => Some(self.facts.name(*text)),
            _ => None,
        }
    }

    /// Name of the attribute or global that a register was read from.
    pub fn read_name(&self, reg: Reg) -> Option<&str> {
        match self.maker(self.origin(reg)) {
            Some(OpKind::LoadAttr { name, .. } | OpKind::LoadGlobal(_, name) | OpKind::ImportFrom { name, .. }) => {
                Some(self.facts.name(*name))
            }
            _ => None,
        }
    }

    /// Whether a register is `os.environ`.
    pub fn is_environment(&self, reg: Reg) -> bool {
        self.read_name(reg) == Some("environ")
    }

    /// Register of the variable's name, if an operation reads the environment.
    pub fn reads(&self, op: &OpKind) -> Option<Reg> {
        match op {
            OpKind::LoadItem { obj, key, .. } if self.is_environment(*obj) => Some(*key),
            OpKind::Binary { left, op: Operator::In | Operator::NotIn, right, .. } if self.is_environment(*right) => Some(*left),
            OpKind::Call { func, args, .. } => {
                let reads = match self.maker(self.origin(*func)) {
                    Some(OpKind::LoadAttr { obj, name, .. }) => match self.facts.name(*name) {
                        "getenv" => true,
                        "get" | "setdefault" | "pop" => self.is_environment(*obj),
                        _ => false,
                    },
                    Some(OpKind::LoadGlobal(_, name) | OpKind::ImportFrom { name, .. }) => self.facts.name(*name) == "getenv",
                    _ => false,
                };
                args.first().filter(|(passing, _)| reads && *passing == Passing::Position).map(|(_, reg)| *reg)
            }
            _ => None,
        }
    }
}

/// Register of an argument for a parameter of the callee.
pub(super) fn argument(
    context: &Context<'_>,
    callee: GlobalScope,
    index: usize,
    args: &[(Passing, Reg)],
    names: &ModuleFacts,
) -> Option<Reg> {
    let facts = context.program.scope(callee);
    let module = context.program.module(context.program.module_of(callee));
    let parent = &module.facts.scopes[facts.parent as usize];
    let is_static = facts.decorators.iter().any(|name| module.facts.name(*name) == "staticmethod");
    let shift = usize::from(parent.kind == ScopeKind::Class && !is_static);
    let param = facts.params.get(index)?;
    let wanted = module.facts.name(param.name);
    let named = args.iter().find(|(passing, _)| matches!(passing, Passing::Keyword(name) if names.name(*name) == wanted));
    let placed = || {
        let place = index.checked_sub(shift)?;
        args.iter().take_while(|(passing, _)| *passing == Passing::Position).nth(place)
    };
    named.or_else(placed).map(|(_, reg)| *reg)
}

impl Flow {
    /// Follows every variable that production code reads.
    pub(super) fn new(context: &Context<'_>) -> Self {
        let mut flow = Self::default();
        let entered = context.scopes();
        let mut by_module: FxHashMap<ModuleId, Vec<GlobalScope>> = FxHashMap::default();
        for scope in &entered {
            by_module.entry(context.program.module_of(*scope)).or_default().push(*scope);
        }
        let mut queue: VecDeque<GlobalScope> = VecDeque::new();
        let mut queued: BTreeSet<GlobalScope> = BTreeSet::new();
        for scope in &entered {
            let facts = &context.program.module(context.program.module_of(*scope)).facts;
            if facts.names.iter().any(|name| name == "environ" || name == "getenv") && queued.insert(*scope) {
                queue.push_back(*scope);
            }
        }
        // Who calls whom, for results; calls are many, so only those of entered scopes are kept.
        for ((caller, _), targets) in &context.calls {
            for target in targets {
                if let Target::Scope(callee) = target {
                    flow.callers.entry(*callee).or_default().insert(*caller);
                }
            }
        }
        while let Some(scope) = queue.pop_front() {
            queued.remove(&scope);
            let mut again: BTreeSet<GlobalScope> = BTreeSet::new();
            let changed = flow.scope(context, scope);
            for change in changed {
                match change {
                    Change::Result => again.extend(flow.callers.get(&scope).into_iter().flatten()),
                    Change::Param(callee) => {
                        again.insert(callee);
                    }
                    Change::Inner => {
                        let module = context.program.module_of(scope);
                        again.extend(by_module.get(&module).into_iter().flatten());
                    }
                    Change::Name(name) => {
                        let text = context.engine.text(name);
                        for (module, scopes) in sorted(&by_module) {
                            if context.program.module(module).facts.names.iter().any(|known| known == text) {
                                again.extend(scopes);
                            }
                        }
                    }
                }
            }
            for next in again {
                if next != scope && queued.insert(next) {
                    queue.push_back(next);
                }
            }
        }
        flow
    }

    /// Reads that a register depends on.
    pub fn of(&self, scope: GlobalScope, reg: Reg) -> impl Iterator<Item = &Read> {
        let found = self.registers.get(&scope).and_then(|registers| registers.get(&reg));
        found.into_iter().flatten().filter_map(|source| match source {
            Source::Read(number) => self.reads.get(*number as usize),
            Source::Named(_) => None,
        })
    }

    /// Whether what a module's body keeps depends on a read: it is made once, when the module is imported.
    pub fn is_frozen(&self, context: &Context<'_>, read: &Read) -> bool {
        self.registers.iter().any(|(scope, registers)| {
            context.program.scope(*scope).kind == ScopeKind::Module
                && registers.values().flatten().any(|source| match source {
                    Source::Read(number) => self.reads.get(*number as usize) == Some(read),
                    Source::Named(_) => false,
                })
        })
    }

    /// Scopes in which some register depends on a variable, in order.
    pub fn scopes(&self) -> Vec<GlobalScope> {
        let mut scopes: Vec<GlobalScope> = self.registers.keys().copied().collect();
        scopes.sort_unstable();
        scopes
    }

    fn read(&mut self, context: &Context<'_>, scope: GlobalScope, op: u32, name: &str) -> Source {
        let next = u32::try_from(self.reads.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry((scope, op, name.to_owned())).or_insert(next);
        if number == next {
            self.reads.push(Read { span: context.span(scope, op), name: name.to_owned(), scope, op });
        }
        Source::Read(number)
    }

    /// What naming a variable by this register means.
    fn named(&mut self, context: &Context<'_>, scope: GlobalScope, op: u32, code: Code<'_>, reg: Reg) -> Sources {
        if let Some(name) = code.text(reg) {
            let name = name.to_owned();
            return BTreeSet::from([self.read(context, scope, op, &name)]);
        }
        let origin = code.origin(reg);
        if let Some(place) = code.scope.params.iter().position(|param| param.reg == origin) {
            return BTreeSet::from([Source::Named(u32::try_from(place).unwrap_or(u32::MAX))]);
        }
        let names: Vec<String> = context
            .glance(scope, reg)
            .into_iter()
            .filter_map(|object| match context.engine.get(object) {
                Object::Str(text) => Some(context.engine.text(text).to_owned()),
                _ => None,
            })
            .collect();
        names.iter().map(|name| self.read(context, scope, op, name)).collect()
    }

    /// Goes through one scope until nothing changes; what changed outside it.
    fn scope(&mut self, context: &Context<'_>, scope: GlobalScope) -> BTreeSet<Change> {
        let program = context.program;
        let id = program.module_of(scope);
        let module = program.module(id);
        let facts = program.scope(scope);
        let made = definitions(facts);
        let code = Code { facts: &module.facts, scope: facts, made: &made };
        let mut registers = self.registers.remove(&scope).unwrap_or_default();
        let before: usize = registers.values().map(BTreeSet::len).sum();
        let mut changes: BTreeSet<Change> = BTreeSet::new();
        for (at, param) in facts.params.iter().enumerate() {
            let key = (scope, u32::try_from(at).unwrap_or(u32::MAX));
            if let Some(sources) = self.params.get(&key) {
                registers.entry(param.reg).or_default().extend(sources.iter().copied());
            }
        }
        loop {
            let sum: usize = registers.values().map(BTreeSet::len).sum();
            for (at, op) in facts.ops.iter().enumerate() {
                let at = u32::try_from(at).unwrap_or(u32::MAX);
                let of = |registers: &FxHashMap<Reg, Sources>, reg: Reg| registers.get(&reg).cloned().unwrap_or_default();
                let (dst, sources) = if let Some(name) = code.reads(&op.kind) {
                    (destination(&op.kind).unwrap_or(NO_REG), self.named(context, scope, at, code, name))
                } else {
                    match &op.kind {
                        OpKind::Move(dst, src)
                        | OpKind::Filter(dst, src, _)
                        | OpKind::Not { dst, src }
                        | OpKind::Await { dst, src }
                        | OpKind::Iterate { dst, src }
                        | OpKind::Unpack { dst, src, .. }
                        | OpKind::UnpackRest { dst, src, .. } => (*dst, of(&registers, *src)),
                        OpKind::LoadSlice { dst, obj, .. } => (*dst, of(&registers, *obj)),
                        OpKind::Phi(dst, inputs) => {
                            let mut sources = Sources::new();
                            for (src, cond) in inputs {
                                sources.extend(of(&registers, *src));
                                if is_choice(context, scope, code, *src) {
                                    sources.extend(tests(facts, *cond, op.cond).flat_map(|test| of(&registers, test)));
                                }
                            }
                            (*dst, sources)
                        }
                        OpKind::LoadGlobal(dst, name) => (*dst, self.globals.get(&(id, module.sym(*name))).cloned().unwrap_or_default()),
                        OpKind::ImportFrom { dst, module: from, level, name } => {
                            let base = program.absolute(id, module.facts.name(*from), *level);
                            let found = base.and_then(|base| program.strings.find(&base)).and_then(|sym| program.find(sym, module.source));
                            let sources = found.and_then(|found| self.globals.get(&(found, module.sym(*name)))).cloned();
                            (*dst, sources.unwrap_or_default())
                        }
                        OpKind::LoadFree(dst, outer, reg) => {
                            let outer = program.global_scope(id, *outer);
                            let known = self.registers.get(&outer).and_then(|registers| registers.get(reg));
                            (*dst, known.cloned().unwrap_or_default())
                        }
                        OpKind::LoadAttr { dst, obj, name } => {
                            let mut sources = of(&registers, *obj);
                            for owner in owners(context, scope, *obj) {
                                let known = match owner {
                                    Owner::Class(class) => self.attributes.get(&(class, module.sym(*name))),
                                    Owner::Module(found) => self.globals.get(&(found, module.sym(*name))),
                                };
                                sources.extend(known.into_iter().flatten().copied());
                            }
                            (*dst, sources)
                        }
                        OpKind::LoadItem { dst, obj, key } => (*dst, &of(&registers, *obj) | &of(&registers, *key)),
                        OpKind::Sequence { dst, items, .. } => (*dst, items.iter().flat_map(|(reg, _)| of(&registers, *reg)).collect()),
                        OpKind::Dict { dst, items } => {
                            (*dst, items.iter().flat_map(|(key, value)| &of(&registers, *key) | &of(&registers, *value)).collect())
                        }
                        OpKind::Format { dst, parts } => (*dst, parts.iter().flat_map(|reg| of(&registers, *reg)).collect()),
                        OpKind::Binary { dst, left, right, .. } => (*dst, &of(&registers, *left) | &of(&registers, *right)),
                        OpKind::Call { dst, func, args, .. } => {
                            (*dst, self.call(context, scope, at, code, &registers, *func, args, &mut changes))
                        }
                        OpKind::StoreItem { obj, src, .. } => (*obj, of(&registers, *src)),
                        OpKind::StoreGlobal(name, src) => {
                            let sources = self.chosen(context, scope, code, &registers, op, *src);
                            if grow(self.globals.entry((id, module.sym(*name))).or_default(), &sources) {
                                changes.insert(Change::Name(module.sym(*name)));
                            }
                            continue;
                        }
                        OpKind::StoreAttr { obj, name, src } => {
                            let sources = self.chosen(context, scope, code, &registers, op, *src);
                            if sources.is_empty() {
                                continue;
                            }
                            for owner in owners(context, scope, *obj) {
                                let known = match owner {
                                    Owner::Class(class) => self.attributes.entry((class, module.sym(*name))).or_default(),
                                    Owner::Module(found) => self.globals.entry((found, module.sym(*name))).or_default(),
                                };
                                if grow(known, &sources) {
                                    changes.insert(Change::Name(module.sym(*name)));
                                }
                            }
                            continue;
                        }
                        OpKind::Return(src) => {
                            let sources = self.chosen(context, scope, code, &registers, op, *src);
                            if grow(self.results.entry(scope).or_default(), &sources) {
                                changes.insert(Change::Result);
                            }
                            continue;
                        }
                        _ => continue,
                    }
                };
                if !sources.is_empty() {
                    registers.entry(dst).or_default().extend(sources);
                }
            }
            if registers.values().map(BTreeSet::len).sum::<usize>() == sum {
                break;
            }
        }
        let after: usize = registers.values().map(BTreeSet::len).sum();
        if after > before && facts.ops.iter().any(|op| matches!(op.kind, OpKind::Function { .. } | OpKind::Class { .. })) {
            changes.insert(Change::Inner);
        }
        if after > 0 {
            self.registers.insert(scope, registers);
        }
        changes
    }

    /// Dependences of a value that is stored or returned: its own and, if it is a constant or an implementation, those of the tests above.
    fn chosen(
        &self,
        context: &Context<'_>,
        scope: GlobalScope,
        code: Code<'_>,
        registers: &FxHashMap<Reg, Sources>,
        op: &Op,
        src: Reg,
    ) -> Sources {
        let mut sources = registers.get(&src).cloned().unwrap_or_default();
        let mut above = tests(code.scope, op.cond, 0).filter_map(|test| registers.get(&test)).peekable();
        if above.peek().is_some() && is_choice(context, scope, code, src) {
            sources.extend(above.flatten().copied());
        }
        sources
    }

    #[allow(clippy::too_many_arguments, reason = "one call is described by all of these")]
    fn call(
        &mut self,
        context: &Context<'_>,
        scope: GlobalScope,
        at: u32,
        code: Code<'_>,
        registers: &FxHashMap<Reg, Sources>,
        func: Reg,
        args: &[(Passing, Reg)],
        changes: &mut BTreeSet<Change>,
    ) -> Sources {
        let of = |reg: Reg| registers.get(&reg);
        let mut sources = Sources::new();
        let mut plain = true;
        let mut inside = true;
        for target in context.calls.get(&(scope, at)).into_iter().flatten() {
            match target {
                Target::Scope(callee) => {
                    plain = false;
                    for source in self.results.get(callee).cloned().unwrap_or_default() {
                        match source {
                            Source::Read(_) => {
                                sources.insert(source);
                            }
                            Source::Named(index) => {
                                if let Some(reg) = argument(context, *callee, index as usize, args, code.facts) {
                                    sources.extend(self.named(context, scope, at, code, reg));
                                }
                            }
                        }
                    }
                    for index in 0..context.program.scope(*callee).params.len() {
                        let Some(given) = argument(context, *callee, index, args, code.facts).and_then(of) else { continue };
                        let given: Sources = given.iter().copied().filter(|source| matches!(source, Source::Read(_))).collect();
                        let key = (*callee, u32::try_from(index).unwrap_or(u32::MAX));
                        if !given.is_empty() && grow(self.params.entry(key).or_default(), &given) {
                            changes.insert(Change::Param(*callee));
                        }
                    }
                }
                Target::Builtin(_) | Target::BuiltinMethod(..) => {}
                Target::Class(_) => plain = false,
                Target::External(_) => inside = false,
            }
        }
        if plain && inside {
            sources.extend(of(func).into_iter().flatten().copied());
            sources.extend(args.iter().filter_map(|(_, reg)| of(*reg)).flatten().copied());
        }
        sources
    }
}

/// What a scope changed outside itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    /// What it returns.
    Result,
    /// A parameter of another scope.
    Param(GlobalScope),
    /// A name of a module, or an attribute.
    Name(Sym),
    /// Registers that scopes inside it may read.
    Inner,
}

fn sorted(by_module: &FxHashMap<ModuleId, Vec<GlobalScope>>) -> Vec<(ModuleId, &Vec<GlobalScope>)> {
    let mut out: Vec<_> = by_module.iter().map(|(module, scopes)| (*module, scopes)).collect();
    out.sort_unstable_by_key(|(module, _)| *module);
    out
}

fn grow(known: &mut Sources, more: &Sources) -> bool {
    let before = known.len();
    known.extend(more.iter().copied());
    known.len() > before
}

/// Registers of the tests from a condition up to, and without, another one above it.
pub(super) fn tests(facts: &Scope, from: CondId, above: CondId) -> impl Iterator<Item = Reg> {
    let mut at = from;
    let mut out = Vec::new();
    while at != above && at != 0 {
        let cond = facts.conds[at as usize];
        if let CondKind::Test(reg, _) = cond.kind {
            out.push(reg);
        }
        at = cond.parent;
    }
    out.into_iter()
}

/// Whether a register holds a constant or an implementation: something that is chosen, rather than computed.
fn is_choice(context: &Context<'_>, scope: GlobalScope, code: Code<'_>, reg: Reg) -> bool {
    if let Some(OpKind::Literal(_, literal)) = code.maker(code.origin(reg)) {
        return *literal != Literal::Opaque;
    }
    let mut objects = context.engine.copies_of(scope).iter().flat_map(|inst| context.engine.objects_in(*inst, reg)).peekable();
    objects.peek().is_some()
        && objects.all(|object| {
            !matches!(
                context.engine.get(object),
                Object::Unknown(_) | Object::Instance(..) | Object::External(_) | Object::Present(_) | Object::Generator(_)
            )
        })
}

enum Owner {
    Class(GlobalScope),
    Module(ModuleId),
}

/// Classes and modules that a register may be an instance of, or be.
fn owners(context: &Context<'_>, scope: GlobalScope, reg: Reg) -> Vec<Owner> {
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    for inst in context.engine.copies_of(scope) {
        for object in context.engine.objects_in(*inst, reg) {
            if !seen.insert(object) {
                continue;
            }
            match context.engine.get(object) {
                Object::Instance(class, _) => {
                    if let Object::Class(class, _) = context.engine.get(class) {
                        out.push(Owner::Class(class));
                    }
                }
                Object::Class(class, _) => out.push(Owner::Class(class)),
                Object::Module(module) => out.push(Owner::Module(module)),
                _ => {}
            }
        }
    }
    out
}
