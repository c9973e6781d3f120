//! RLK309: a strict switch that is off, or a profile-guided one that is on, when nothing is set.

use std::collections::{BTreeMap, BTreeSet};

use super::dataflow::modules_with;
use super::environment::{Code, Constant, Unset, definitions};
use super::{Context, rule};
use crate::findings::{Finding, Related};
use crate::names::GlobalScope;
use crate::syntax::{CondId, CondKind, Literal, OpKind, Operator, Passing, Reg, Scope, ScopeKind};
use crate::text::Span;
use crate::values::Target;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    strict_tests(context, findings);
    flags(context, findings);
    guided(context, findings);
}

fn has_word(name: &str, word: &str) -> bool {
    name.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| part.eq_ignore_ascii_case(word))
}

/// Whether a name is that of a switch between the static tables and those that a profile of an earlier run made.
fn is_guided(name: &str) -> bool {
    has_word(name, "guided") || has_word(name, "pgo") || has_word(name, "autotune")
}

fn push(context: &Context<'_>, findings: &mut Vec<Finding>, key: &'static str, arguments: Vec<String>, place: Span, decided: Option<Span>) {
    let symbol = arguments.first().cloned().unwrap_or_default();
    let mut finding = Finding::new(rule("lenient-default"), key, arguments, context.first_line(place), symbol);
    if let Some(span) = decided {
        finding.related = vec![Related { span: context.first_line(span), message: "this is what the switch decides".to_owned() }];
    }
    findings.push(finding);
}

/// Whether what stands below one side of a test raises and does not return.
fn refuses(context: &Context<'_>, scope: GlobalScope, test: Reg, wanted: bool) -> bool {
    let facts = context.program.scope(scope);
    let conds = facts.conds.iter().enumerate().filter(|(_, cond)| cond.kind == CondKind::Test(test, wanted));
    let conds: Vec<CondId> = conds.filter_map(|(at, _)| CondId::try_from(at).ok()).collect();
    let under = |cond: CondId| conds.iter().any(|above| context.below(scope, cond, *above));
    let returns = facts.ops.iter().any(|op| matches!(op.kind, OpKind::Return(_)) && under(op.cond));
    // `raise` without a value leaves no operation: then nothing at all stands there, in a handler that goes on otherwise.
    let raises = facts.ops.iter().any(|op| matches!(op.kind, OpKind::Raise(_)) && under(op.cond));
    let reraises = !conds.is_empty() && !facts.ops.iter().any(|op| under(op.cond)) && conds.iter().any(|cond| in_handler(facts, *cond));
    !returns && (raises || reraises)
}

fn in_handler(facts: &Scope, cond: CondId) -> bool {
    let mut at = cond;
    while at != 0 {
        if matches!(facts.conds[at as usize].kind, CondKind::Handler(..)) {
            return true;
        }
        at = facts.conds[at as usize].parent;
    }
    false
}

/// Tests into which a register goes as it is, negated, or as one part of an `and` or `or`: the test, and whether it is turned round.
fn tests_of(code: Code<'_>, reg: Reg) -> Vec<(Reg, bool)> {
    let mut flows: BTreeMap<Reg, bool> = BTreeMap::from([(reg, false)]);
    loop {
        let before = flows.len();
        for op in &code.scope.ops {
            match &op.kind {
                OpKind::Move(dst, src) | OpKind::Filter(dst, src, _) => {
                    if let Some(turned) = flows.get(src).copied() {
                        flows.entry(*dst).or_insert(turned);
                    }
                }
                OpKind::Not { dst, src } => {
                    if let Some(turned) = flows.get(src).copied() {
                        flows.entry(*dst).or_insert(!turned);
                    }
                }
                OpKind::Phi(dst, inputs) => {
                    if let Some(turned) = inputs.iter().find_map(|(src, _)| flows.get(src).copied()) {
                        flows.entry(*dst).or_insert(turned);
                    }
                }
                _ => {}
            }
        }
        if flows.len() == before {
            break;
        }
    }
    let tested: BTreeSet<Reg> = tests_in(code.scope);
    flows.into_iter().filter(|(reg, _)| tested.contains(reg)).collect()
}

fn tests_in(scope: &Scope) -> BTreeSet<Reg> {
    scope
        .conds
        .iter()
        .filter_map(|cond| match cond.kind {
            CondKind::Test(reg, _) => Some(reg),
            _ => None,
        })
        .collect()
}

/// Answers to "is this strict?" that depend on the environment: the register, whether true means strict, and what is asked.
fn questions(context: &Context<'_>, scope: GlobalScope, code: Code<'_>) -> Vec<(Reg, bool, String, Option<GlobalScope>)> {
    let flow = &context.environment().flow;
    let mut out = Vec::new();
    for (at, op) in code.scope.ops.iter().enumerate() {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        match &op.kind {
            OpKind::Call { dst, .. } => {
                for target in context.calls.get(&(scope, at)).into_iter().flatten() {
                    if let Target::Scope(callee) = target
                        && flow.of(scope, *dst).next().is_some()
                    {
                        let name = context.program.qualified(*callee);
                        if has_word(name.rsplit('.').next().unwrap_or(&name), "strict") {
                            out.push((*dst, true, name, Some(*callee)));
                        }
                    }
                }
                if let Some(read) = flow.of(scope, *dst).find(|read| has_word(&read.name, "strict") && read.op == at && read.scope == scope)
                {
                    out.push((*dst, true, read.name.clone(), None));
                }
            }
            OpKind::Binary { dst, left, op, right } if matches!(op, Operator::Eq | Operator::NotEq) => {
                let says = |reg: Reg| code.text(reg).is_some_and(|text| text.eq_ignore_ascii_case("strict"));
                let other = if says(*right) { *left } else { *right };
                if (says(*left) || says(*right))
                    && let Some(read) = flow.of(scope, other).next()
                {
                    out.push((*dst, *op == Operator::Eq, read.name.clone(), None));
                }
            }
            _ => {}
        }
    }
    out
}

/// Tests whose strict side refuses, and that come out on the other one.
fn strict_tests(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let environment = context.environment();
    let unset = Unset::new(context);
    let mut seen = BTreeSet::new();
    for scope in environment.flow.scopes() {
        let module = context.program.module(context.program.module_of(scope));
        let facts = context.program.scope(scope);
        if facts.kind == ScopeKind::Module {
            continue;
        }
        let made = definitions(facts);
        let code = Code { facts: &module.facts, scope: facts, made: &made };
        for (reg, true_is_strict, name, predicate) in questions(context, scope, code) {
            let Some(answer) = unset.value(scope, reg) else { continue };
            if answer.truth() == true_is_strict {
                continue;
            }
            let test = tests_of(code, reg).into_iter().find(|(test, turned)| refuses(context, scope, *test, true_is_strict != *turned));
            let Some((test, _)) = test else { continue };
            let decided = facts.conds.iter().find(|cond| matches!(cond.kind, CondKind::Test(reg, _) if reg == test));
            let decided = decided.map(|cond| context.program.span(scope, cond.range));
            // The answer itself, if a function gives it; the read otherwise.
            let place = match predicate.and_then(|callee| Some((callee, unset.answers_with(callee)?))) {
                Some((callee, at)) => context.span(callee, at),
                None => environment.flow.of(scope, reg).map(|read| read.span).min().unwrap_or_else(|| context.span(scope, made[&reg])),
            };
            if seen.insert(place) {
                push(context, findings, "strict", vec![name, context.program.qualified(scope)], place, decided);
            }
        }
    }
}

/// A command-line flag.
struct Flag {
    attribute: String,
    shown: String,
    default: Option<Constant>,
    place: Span,
    strict: bool,
}

/// Flags that are declared in a scope and that speak of strictness or of guidance by a profile.
fn declared(context: &Context<'_>, scope: GlobalScope, code: Code<'_>) -> Vec<Flag> {
    let unset = Unset::new(context);
    let mut out = Vec::new();
    for (at, op) in code.scope.ops.iter().enumerate() {
        let OpKind::Call { func, args, .. } = &op.kind else { continue };
        if code.read_name(*func) != Some("add_argument") {
            continue;
        }
        let keyword = |wanted: &str| {
            args.iter()
                .find(|(passing, _)| matches!(passing, Passing::Keyword(name) if code.facts.name(*name) == wanted))
                .map(|(_, reg)| *reg)
        };
        let names = args.iter().take_while(|(passing, _)| *passing == Passing::Position).filter_map(|(_, reg)| code.text(*reg));
        let Some(shown) = names.into_iter().find(|name| name.starts_with("--")) else { continue };
        let attribute =
            keyword("dest").and_then(|reg| code.text(reg)).map_or_else(|| shown.trim_start_matches('-').replace('-', "_"), str::to_owned);
        let choices = keyword("choices").and_then(|reg| unset.value(scope, reg));
        let may_be_strict = matches!(choices, Some(Constant::Sequence(items)) if items.contains(&Constant::Str("strict".to_owned())));
        let action = keyword("action").and_then(|reg| code.text(reg));
        // A flag that must be given has no default.
        let required = keyword("required").is_some_and(|reg| unset.value(scope, reg).is_some_and(|value| value.truth()));
        let default = match (keyword("default"), action) {
            _ if required => None,
            (Some(reg), _) => unset.value(scope, reg),
            (None, Some("store_true")) => Some(Constant::Bool(false)),
            (None, Some("store_false")) => Some(Constant::Bool(true)),
            (None, None) => Some(Constant::None),
            _ => None,
        };
        let place = context.span(scope, u32::try_from(at).unwrap_or(u32::MAX));
        if may_be_strict || has_word(shown, "strict") || is_guided(shown) {
            out.push(Flag { attribute, shown: shown.to_owned(), default, place, strict: !is_guided(shown) });
        }
    }
    out
}

/// Command-line flags whose default is the lenient side of a test that refuses on the other, or the guided one.
fn flags(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let mut flags = Vec::new();
    for module in modules_with(context.program, &["add_argument"]) {
        let entry = context.program.module(module);
        for local in 0..u32::try_from(entry.facts.scopes.len()).unwrap_or(0) {
            let scope = context.program.global_scope(module, local);
            if !context.counts(scope) {
                break;
            }
            let facts = context.program.scope(scope);
            if facts.ops.is_empty() {
                continue;
            }
            let made = definitions(facts);
            flags.extend(declared(context, scope, Code { facts: &entry.facts, scope: facts, made: &made }));
        }
    }
    for flag in flags {
        let Some(default) = &flag.default else { continue };
        if !flag.strict {
            if default.truth() {
                push(context, findings, "guided", vec![flag.shown.clone()], flag.place, None);
            }
            continue;
        }
        if let Some(decided) = refused_by(context, &flag, default) {
            let span = context.program.span(decided.0, decided.1);
            push(context, findings, "strict", vec![flag.shown.clone(), context.program.qualified(decided.0)], flag.place, Some(span));
        }
    }
}

/// A test of the flag that refuses when the flag is strict, and does not with the default.
fn refused_by(context: &Context<'_>, flag: &Flag, default: &Constant) -> Option<(GlobalScope, crate::syntax::Range)> {
    for module in modules_with(context.program, &[&flag.attribute]) {
        let entry = context.program.module(module);
        for local in 1..u32::try_from(entry.facts.scopes.len()).unwrap_or(0) {
            let scope = context.program.global_scope(module, local);
            if !context.counts(scope) {
                break;
            }
            let facts = context.program.scope(scope);
            let is_flag = |code: Code<'_>, reg: Reg| matches!(code.maker(code.origin(reg)), Some(OpKind::LoadAttr { name, .. }) if entry.facts.name(*name) == flag.attribute);
            let made = definitions(facts);
            let code = Code { facts: &entry.facts, scope: facts, made: &made };
            for op in &facts.ops {
                let (reg, true_is_strict, comes_out) = match &op.kind {
                    OpKind::Binary { dst, left, op, right } if matches!(op, Operator::Eq | Operator::NotEq) && is_flag(code, *left) => {
                        if code.text(*right) != Some("strict") {
                            continue;
                        }
                        let equal = *default == Constant::Str("strict".to_owned());
                        (*dst, *op == Operator::Eq, equal == (*op == Operator::Eq))
                    }
                    OpKind::LoadAttr { dst, name, .. }
                        if entry.facts.name(*name) == flag.attribute && has_word(&flag.attribute, "strict") =>
                    {
                        (*dst, true, default.truth())
                    }
                    _ => continue,
                };
                if comes_out == true_is_strict {
                    continue;
                }
                for (test, turned) in tests_of(code, reg) {
                    if refuses(context, scope, test, true_is_strict != turned) {
                        let cond = facts.conds.iter().find(|cond| matches!(cond.kind, CondKind::Test(reg, _) if reg == test))?;
                        return Some((scope, cond.range));
                    }
                }
            }
        }
    }
    None
}

/// Environment switches and parameters that are guided by a profile unless somebody says otherwise.
fn guided(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let environment = context.environment();
    let unset = Unset::new(context);
    let mut seen = BTreeSet::new();
    for scope in environment.flow.scopes() {
        for test in tests_in(context.program.scope(scope)) {
            for read in
                environment.flow.of(scope, test).filter(|read| is_guided(&read.name) && environment.selectors.contains_key(&read.name))
            {
                let on = unset.value(scope, test).is_some_and(|value| value.truth());
                if on && seen.insert(read.span) {
                    push(context, findings, "guided", vec![read.name.clone()], read.span, None);
                }
            }
        }
    }
    for scope in context.scopes() {
        let facts = context.program.scope(scope);
        let module = context.program.module(context.program.module_of(scope));
        for op in &facts.ops {
            let OpKind::Function { scope: local, defaults, .. } = &op.kind else { continue };
            let inner = context.program.global_scope(context.program.module_of(scope), *local);
            if !context.reaches(Target::Scope(inner)) {
                continue;
            }
            let params = &context.program.scope(inner).params;
            for (index, reg) in defaults {
                let Some(param) = params.get(*index as usize) else { continue };
                let name = module.facts.name(param.name);
                let literal = facts.ops.iter().find_map(|op| match op.kind {
                    OpKind::Literal(dst, Literal::Bool(value)) if dst == *reg => Some(value),
                    _ => None,
                });
                let place = context.program.span(inner, context.program.scope(inner).name_range);
                let function = context.program.qualified(inner);
                if literal == Some(true) && is_guided(name) {
                    push(context, findings, "guided", vec![format!("{function}({name})")], place, None);
                } else if literal == Some(false) && has_word(name, "strict") {
                    let made = definitions(context.program.scope(inner));
                    let code = Code { facts: &module.facts, scope: context.program.scope(inner), made: &made };
                    let refusing = tests_of(code, param.reg).into_iter().any(|(test, turned)| refuses(context, inner, test, !turned));
                    if refusing {
                        push(context, findings, "strict", vec![format!("{function}({name})"), function.clone()], place, None);
                    }
                }
            }
        }
    }
}
