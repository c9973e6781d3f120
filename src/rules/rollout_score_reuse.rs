//! RLK307: a score that the rollout engine computed stands in for the one that training has to compute itself.

use std::collections::{BTreeMap, BTreeSet};

use super::dataflow::{FORM, Flow, Names, Side, Spread, method, score_seeds, score_side};
use super::{Context, rule};
use crate::findings::{Finding, Related};
use crate::names::{GlobalScope, ModuleId};
use crate::profile::{Known, PathClass, PathClasses, Role};
use crate::sources::FileKind;
use crate::syntax::shell::{self, HoleKind, Script, Word};
use crate::syntax::{CondId, CondKind, Literal, NO_REG, OpKind, Passing, Reg};
use crate::text::Span;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let names = Names::new(context.program);
    let mut switches: BTreeMap<String, Span> = BTreeMap::new();
    for module in context.program.module_ids() {
        let facts = context.program.module(module);
        let role = context.sources[facts.source].role;
        // The engine may do with its own scores what it likes.
        let counts = matches!((context.class_of)(module), PathClass::Production | PathClass::Reference) && role != Role::Rollout;
        if !counts || !facts.facts.names.iter().any(|name| score_side(name) == Some(Side::Rollout)) {
            continue;
        }
        for scope in 0..u32::try_from(facts.facts.scopes.len()).unwrap_or(u32::MAX) {
            let scope = context.program.global_scope(module, scope);
            Reader { context, names: &names, scope, module }.read(&mut switches, findings);
        }
    }
    launchers(context, &names, &switches, findings);
}

struct Reader<'a> {
    context: &'a Context<'a>,
    names: &'a Names<'a>,
    scope: GlobalScope,
    module: ModuleId,
}

impl Reader<'_> {
    fn name(&self, id: u32) -> &str {
        self.context.program.module(self.module).facts.name(id)
    }

    fn push(&self, key: &'static str, place: Span, what: &str, related: Vec<Related>, findings: &mut Vec<Finding>) {
        let symbol = self.context.program.qualified(self.scope);
        let mut finding =
            Finding::new(rule("rollout-score-reuse"), key, vec![symbol.clone(), what.to_owned()], self.context.first_line(place), symbol);
        finding.related = related;
        findings.push(finding);
    }

    fn range(&self, range: crate::syntax::Range) -> Span {
        self.context.program.span(self.scope, range)
    }

    fn read(&self, switches: &mut BTreeMap<String, Span>, findings: &mut Vec<Finding>) {
        let facts = self.context.program.scope(self.scope);
        let seeds = score_seeds(self.names, self.scope, Side::Rollout);
        if seeds.is_empty() {
            return;
        }
        let rollout = self.rollout(seeds);
        let training = Flow::from(self.names, self.scope, score_seeds(self.names, self.scope, Side::Training), Spread::Alias, &|_| false);
        for op in &facts.ops {
            match &op.kind {
                OpKind::Phi(dst, inputs) => {
                    let Some((theirs, cond)) = inputs.iter().find(|(reg, _)| rollout.holds(*reg)) else { continue };
                    let mixed = inputs.iter().any(|(reg, _)| training.holds(*reg) && !rollout.holds(*reg));
                    if !mixed || self.only_form(*dst) {
                        continue;
                    }
                    // A conditional expression is the place; a statement leaves only the read of the score.
                    let place = if op.range.0 < op.range.1 { op.range } else { self.made_at(*theirs).unwrap_or(op.range) };
                    let tests = self.tests(*cond);
                    for (attribute, range) in &tests {
                        switches.entry(attribute.clone()).or_insert_with(|| self.range(*range));
                    }
                    let related = tests.into_iter().map(|(_, range)| Related {
                        span: self.context.first_line(self.range(range)),
                        message: "this test lets the rollout's score in".to_owned(),
                    });
                    self.push("merged", self.range(place), self.shown(*theirs), related.collect(), findings);
                }
                OpKind::StoreItem { key, src, .. } if rollout.holds(*src) => {
                    if let Some(key) = self.names.text(self.scope, *key).filter(|key| score_side(key) == Some(Side::Training)) {
                        self.push("stored", self.range(op.range), key, Vec::new(), findings);
                    }
                }
                OpKind::StoreAttr { name, src, .. } if rollout.holds(*src) && score_side(self.name(*name)) == Some(Side::Training) => {
                    self.push("stored", self.range(op.range), self.name(*name), Vec::new(), findings);
                }
                OpKind::Dict { items, .. } => {
                    for (key, value) in items {
                        let key = self.names.text(self.scope, *key).filter(|key| score_side(key) == Some(Side::Training));
                        if let Some(key) = key.filter(|_| rollout.holds(*value)) {
                            self.push("stored", self.range(op.range), key, Vec::new(), findings);
                        }
                    }
                }
                OpKind::Call { func, args, decorator: false, .. } => {
                    let chosen = self.names.is_one_of(self.scope, *func, &["torch.where", "numpy.where"]);
                    if chosen && args.iter().any(|(_, reg)| rollout.holds(*reg)) && args.iter().any(|(_, reg)| training.holds(*reg)) {
                        self.push("merged", self.range(op.range), "torch.where", Vec::new(), findings);
                    }
                    if let Some(param) = self.bound_to_training(*func, args, &rollout) {
                        self.push("passed", self.range(op.range), &param, Vec::new(), findings);
                    }
                }
                _ => {}
            }
        }
    }

    /// Names of one and the same rollout score: merges with nothing else, with `None` and with empty lists included.
    fn rollout(&self, seeds: Vec<Reg>) -> Flow {
        let facts = self.context.program.scope(self.scope);
        let mut seeds = seeds;
        loop {
            let flow = Flow::from(self.names, self.scope, seeds.iter().copied(), Spread::Alias, &|kind| matches!(kind, OpKind::Phi(..)));
            let before = seeds.len();
            for op in &facts.ops {
                if let OpKind::Phi(dst, inputs) = &op.kind {
                    let same = |reg: &Reg| *reg == NO_REG || reg == dst || flow.holds(*reg) || self.is_nothing(*reg);
                    if !flow.holds(*dst) && inputs.iter().any(|(reg, _)| flow.holds(*reg)) && inputs.iter().all(|(reg, _)| same(reg)) {
                        seeds.push(*dst);
                    }
                }
            }
            if seeds.len() == before {
                return flow;
            }
        }
    }

    fn is_nothing(&self, reg: Reg) -> bool {
        self.names.defined_by(self.scope, reg).iter().any(|kind| match kind {
            OpKind::Literal(_, Literal::None) => true,
            OpKind::Sequence { items, .. } => items.is_empty(),
            _ => false,
        })
    }

    /// Whether nothing but shape, device and number of a value is looked at.
    fn only_form(&self, reg: Reg) -> bool {
        let flow = Flow::from(self.names, self.scope, [reg], Spread::Alias, &|_| false);
        let facts = self.context.program.scope(self.scope);
        let mut looked_at = false;
        for op in &facts.ops {
            match &op.kind {
                OpKind::Call { func, args, .. } => {
                    if method(self.names, self.scope, *func).is_some_and(|(obj, _)| flow.holds(obj)) {
                        return false;
                    }
                    if args.iter().any(|(_, arg)| flow.holds(*arg)) {
                        let named = self.names.of(self.scope, *func);
                        if !named.iter().any(|name| FORM.contains(&name.rsplit('.').next().unwrap_or(name))) {
                            return false;
                        }
                        looked_at = true;
                    }
                }
                OpKind::LoadAttr { obj, name, .. } if flow.holds(*obj) => {
                    looked_at |= matches!(self.name(*name), "shape" | "device" | "dtype");
                }
                OpKind::Return(src) | OpKind::StoreAttr { src, .. } | OpKind::StoreItem { src, .. } if flow.holds(*src) => return false,
                OpKind::Binary { left, right, .. } if flow.holds(*left) || flow.holds(*right) => return false,
                OpKind::Dict { items, .. } if items.iter().any(|(_, value)| flow.holds(*value)) => return false,
                _ => {}
            }
        }
        looked_at
    }

    /// Where a register's value is read or made.
    fn made_at(&self, reg: Reg) -> Option<crate::syntax::Range> {
        let (scope, op) = self.names.origin(self.scope, reg)?;
        (scope == self.scope).then(|| self.context.program.scope(scope).ops[op as usize].range)
    }

    /// Key, attribute or parameter under which a register was read.
    fn shown(&self, reg: Reg) -> &str {
        if let Some(name) = self.names.parameter(self.scope, reg) {
            return name;
        }
        for kind in self.names.defined_by(self.scope, reg) {
            match kind {
                OpKind::LoadItem { key, .. } => {
                    if let Some(key) = self.names.text(self.scope, *key) {
                        return key;
                    }
                }
                OpKind::LoadAttr { name, .. } => return self.name(*name),
                OpKind::Call { args, .. } => {
                    if let Some(key) = args.first().and_then(|(_, reg)| self.names.text(self.scope, *reg)) {
                        return key;
                    }
                }
                _ => {}
            }
        }
        "rollout score"
    }

    /// Attributes that are tested on the way to a condition, with the tests.
    fn tests(&self, cond: CondId) -> Vec<(String, crate::syntax::Range)> {
        let facts = self.context.program.scope(self.scope);
        let mut out = Vec::new();
        let mut at = cond;
        while at != 0 {
            let node = facts.conds[at as usize];
            if let CondKind::Test(reg, _) = node.kind {
                for kind in self.names.defined_by(self.scope, reg) {
                    if let OpKind::LoadAttr { name, .. } = kind {
                        out.push((self.name(*name).to_owned(), node.range));
                    }
                }
            }
            at = node.parent;
        }
        out
    }

    /// A parameter for the trainer's score to which a call binds the rollout's.
    fn bound_to_training(&self, func: Reg, args: &[(Passing, Reg)], rollout: &Flow) -> Option<String> {
        for (passing, reg) in args {
            if let Passing::Keyword(name) = passing
                && rollout.holds(*reg)
                && score_side(self.name(*name)) == Some(Side::Training)
            {
                return Some(self.name(*name).to_owned());
            }
        }
        if !args.iter().any(|(passing, reg)| *passing == Passing::Position && rollout.holds(*reg)) {
            return None;
        }
        let program = self.context.program;
        for callee in self.names.of(self.scope, func) {
            let Some(callee) = program.find_scope(&callee) else { continue };
            let names = &program.module(program.module_of(callee)).facts;
            for ((passing, reg), param) in args.iter().zip(&program.scope(callee).params) {
                let name = names.name(param.name);
                if *passing == Passing::Position && rollout.holds(*reg) && score_side(name) == Some(Side::Training) {
                    return Some(name.to_owned());
                }
            }
        }
        None
    }
}

/// Launch scripts that switch reuse on, and launchers that hand the variable for it through.
fn launchers(context: &Context<'_>, names: &Names<'_>, switches: &BTreeMap<String, Span>, findings: &mut Vec<Finding>) {
    let flags: BTreeMap<String, Span> = switches.iter().map(|(name, span)| (format!("--{}", name.replace('_', "-")), *span)).collect();
    if flags.is_empty() {
        return;
    }
    let classes = PathClasses::new(context.profile);
    let mut variables: BTreeSet<(usize, String, String, Span)> = BTreeSet::new();
    for (source, loaded) in context.sources.iter().enumerate() {
        for file in loaded.files.iter().filter(|file| file.kind == FileKind::Shell) {
            let text = context.files.get(file.file);
            let counts = matches!(classes.class(&text.source, &text.path), PathClass::Production | PathClass::Reference);
            if !counts || !flags.keys().any(|flag| text.text.contains(flag.as_str())) {
                continue;
            }
            let script = shell::read(&text.text);
            let elements = script.assignments.iter().flat_map(|assignment| &assignment.elements);
            let words = script.commands.iter().flat_map(|command| &command.words);
            for word in elements.chain(words) {
                let Some((flag, used)) = word.literal().and_then(|text| flags.get_key_value(text)) else { continue };
                let place = Span::new(file.file, word.range.0, word.range.1);
                let variable = guarding(&script, &text.text, word);
                if let Some(variable) = &variable {
                    variables.insert((source, variable.clone(), flag.clone(), place));
                    if matches!(context.profile.environment.get(variable), Some(Known::None)) {
                        continue;
                    }
                }
                let shown = variable.clone().unwrap_or_else(|| "no condition".to_owned());
                let mut finding =
                    Finding::new(rule("rollout-score-reuse"), "flag", vec![flag.clone(), shown], place, format!("{}:{flag}", text.path));
                finding.related.push(Related { span: context.first_line(*used), message: "the flag is tested here".to_owned() });
                findings.push(finding);
            }
        }
    }
    for (source, variable, flag, place) in variables {
        inherits(context, names, source, &variable, &flag, place, findings);
    }
}

/// The variable whose test stands before a word in the same `if`.
fn guarding(script: &Script, text: &str, word: &Word) -> Option<String> {
    let mut tests = script.commands.iter().filter(|command| command.range.1 <= word.range.0);
    let test = tests.rfind(|command| matches!(command.program(), Some("[[" | "[" | "test")))?;
    let between = text.get(test.range.1 as usize..word.range.0 as usize)?;
    if between.lines().any(|line| line.trim() == "fi") {
        return None;
    }
    test.words.iter().flat_map(|word| &word.holes).find_map(|hole| match &hole.kind {
        HoleKind::Variable { name, .. } => Some(name.clone()),
        _ => None,
    })
}

/// Copies of the caller's environment, in a launcher of the same source, that do not set the variable.
fn inherits(
    context: &Context<'_>,
    names: &Names<'_>,
    source: usize,
    variable: &str,
    flag: &str,
    script: Span,
    findings: &mut Vec<Finding>,
) {
    let program = context.program;
    for module in super::dataflow::modules_with(program, &["environ"]) {
        let facts = program.module(module);
        if facts.source != source || !matches!((context.class_of)(module), PathClass::Production | PathClass::Reference) {
            continue;
        }
        for scope in 0..u32::try_from(facts.facts.scopes.len()).unwrap_or(u32::MAX) {
            let scope = program.global_scope(module, scope);
            for (at, op) in program.scope(scope).ops.iter().enumerate() {
                let OpKind::Call { dst, func, args, decorator: false } = &op.kind else { continue };
                let of_environment = |reg: Reg| names.is_one_of(scope, reg, &["os.environ"]);
                let copies = names.is_one_of(scope, *func, &["os.environ.copy"])
                    || (names.is_one_of(scope, *func, &["dict", "copy.copy", "copy.deepcopy"])
                        && args.first().is_some_and(|(_, reg)| of_environment(*reg)));
                if !copies || !handed_on(context, names, scope, *dst) || sets(context, names, scope, *dst, variable) {
                    continue;
                }
                let symbol = program.qualified(scope);
                let arguments = vec![symbol.clone(), variable.to_owned(), flag.to_owned()];
                let place = context.span(scope, u32::try_from(at).unwrap_or(u32::MAX));
                let mut finding = Finding::new(rule("rollout-score-reuse"), "inherits", arguments, place, symbol);
                finding.related.push(Related { span: script, message: "the launch script adds the flag here".to_owned() });
                findings.push(finding);
            }
        }
    }
}

/// Whether an environment goes to a process or to a caller.
fn handed_on(context: &Context<'_>, names: &Names<'_>, scope: GlobalScope, environment: Reg) -> bool {
    let flow = Flow::from(names, scope, [environment], Spread::Alias, &|_| false);
    let facts = &context.program.module(context.program.module_of(scope)).facts;
    context.program.scope(scope).ops.iter().any(|op| match &op.kind {
        OpKind::Return(src) => flow.holds(*src),
        OpKind::Call { args, .. } => args.iter().any(|(passing, reg)| match passing {
            Passing::Keyword(name) => flow.holds(*reg) && facts.name(*name) == "env",
            _ => false,
        }),
        _ => false,
    })
}

/// Whether an environment gets its own value for a variable, or loses it.
fn sets(context: &Context<'_>, names: &Names<'_>, scope: GlobalScope, environment: Reg, variable: &str) -> bool {
    let is = |scope: GlobalScope, reg: Reg| names.text(scope, reg) == Some(variable);
    let keys = |reg: Reg| {
        names.origin(scope, reg).is_some_and(|(scope, op)| match &context.program.scope(scope).ops[op as usize].kind {
            OpKind::Dict { items, .. } => items.iter().any(|(key, _)| is(scope, *key)),
            _ => false,
        })
    };
    context.program.scope(scope).ops.iter().any(|op| match &op.kind {
        OpKind::StoreItem { obj, key, .. } => *obj == environment && is(scope, *key),
        OpKind::Call { func, args, .. } => match method(names, scope, *func) {
            Some((obj, "update")) => obj == environment && args.iter().any(|(_, reg)| keys(*reg)),
            Some((obj, "pop")) => obj == environment && args.first().is_some_and(|(_, reg)| is(scope, *reg)),
            _ => false,
        },
        _ => false,
    })
}
