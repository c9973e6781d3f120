//! RLK402: a record of what ran that says the same whatever ran.

use std::collections::{BTreeMap, BTreeSet};

use super::dataflow::{Names, method};
use super::{Context, rule};
use crate::findings::{Finding, Related};
use crate::names::GlobalScope;
use crate::profile::PathClass;
use crate::syntax::{CondKind, Literal, NO_REG, OpKind, Operator, Passing, Range, Reg, ScopeKind};
use crate::text::Span;

/// Fields that state an observation.
const OBSERVED: [&str; 15] = [
    "fallback",
    "fallback_used",
    "fallback_reason",
    "backend_id",
    "actual",
    "actual_backend",
    "actual_implementation",
    "observed",
    "observed_backend",
    "observed_implementation",
    "effective_backend",
    "resolved_backend",
    "triton_used",
    "split_k",
    "use_rollout_logprobs",
];
/// Fields of a provenance record that name what it is about, or what was asked for.
const IDENTITY: [&str; 16] = [
    "schema",
    "version",
    "region",
    "side",
    "phase",
    "op",
    "operator",
    "name",
    "module",
    "kind",
    "mode",
    "role",
    "target",
    "type",
    "semantic_op",
    "source",
];

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Held {
    /// The same on every path, or on one path past what is read on the others.
    Constant(String),
    /// Something that was read or decided.
    Read,
}

/// A record with fields that are constants.
struct Record {
    scope: GlobalScope,
    range: Range,
    fields: BTreeMap<String, String>,
}

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let names = Names::new(context.program);
    let mut records = Vec::new();
    let scopes = scopes(context);
    for scope in &scopes {
        let reader = Reader { context, names: &names, scope: *scope };
        records.extend(reader.records());
        reader.texts(findings);
        reader.answers(findings);
    }
    let mut said: BTreeMap<String, Vec<(String, Span)>> = BTreeMap::new();
    for record in &records {
        let place = context.first_line(context.program.span(record.scope, record.range));
        for (field, value) in &record.fields {
            said.entry(field.clone()).or_default().push((value.clone(), place));
        }
        let symbol = context.program.qualified(record.scope);
        let fields = record.fields.iter().map(|(field, value)| format!("{field}={value}")).collect::<Vec<_>>().join("', '");
        findings.push(Finding::new(rule("reported-constant"), "record", vec![symbol.clone(), fields], place, symbol));
    }
    for scope in &scopes {
        Reader { context, names: &names, scope: *scope }.validators(&said, findings);
    }
}

/// Scopes of production modules that speak of one of the fields.
fn scopes(context: &Context<'_>) -> Vec<GlobalScope> {
    let program = context.program;
    let mut out = Vec::new();
    let speaks = |name: &String| {
        OBSERVED.contains(&name.as_str())
            || name.contains("provenance")
            || OBSERVED.iter().any(|field| name.contains(field) && name.contains('='))
    };
    for module in program.module_ids() {
        let facts = &program.module(module).facts;
        let production = (context.class_of)(module) == PathClass::Production;
        if production && facts.names.iter().any(|name| speaks(name) || name.ends_with("_fallback_reason")) {
            out.extend((0..u32::try_from(facts.scopes.len()).unwrap_or(u32::MAX)).map(|scope| program.global_scope(module, scope)));
        }
    }
    out
}

/// Name of a field of a record, how it is held, and the literal that it is.
type Field = (String, Held, Literal);

struct Reader<'a> {
    context: &'a Context<'a>,
    names: &'a Names<'a>,
    scope: GlobalScope,
}

impl<'a> Reader<'a> {
    fn name(&self, id: u32) -> &'a str {
        self.context.program.module(self.context.program.module_of(self.scope)).facts.name(id)
    }

    fn ops(&self) -> &'a [crate::syntax::Op] {
        &self.context.program.scope(self.scope).ops
    }

    fn records(&self) -> Vec<Record> {
        let mut found: Vec<(Range, Vec<Field>, bool)> = Vec::new();
        for op in self.ops() {
            match &op.kind {
                OpKind::Dict { dst, items } => {
                    let provenance = self.is_provenance(*dst);
                    let fields = items.iter().filter_map(|(key, value)| Some((self.names.text(self.scope, *key)?, *value)));
                    let fields: Vec<_> = fields.map(|(key, value)| self.field(key, value)).collect();
                    found.push((op.range, fields, provenance));
                }
                OpKind::Call { func, args, decorator: false, .. } if self.makes_record(*func) => {
                    let fields = args.iter().filter_map(|(passing, reg)| match passing {
                        Passing::Keyword(name) => Some(self.field(self.name(*name), *reg)),
                        _ => None,
                    });
                    found.push((op.range, fields.collect(), false));
                }
                _ => {}
            }
        }
        let several = self.kernels() > 1;
        let none = self.kernels() == 0;
        let mut out = Vec::new();
        for (at, (range, fields, provenance)) in found.iter().enumerate() {
            let mut constants = BTreeMap::new();
            for (field, held, literal) in fields {
                let Held::Constant(value) = held else { continue };
                // A branch that says otherwise makes the constant an answer of the control flow.
                let contradicted = found.iter().enumerate().any(|(other, (_, fields, _))| {
                    other != at && fields.iter().any(|(name, held, _)| name == field && *held != Held::Constant(value.clone()))
                });
                let observed = OBSERVED.contains(&field.as_str());
                let described = *provenance && matches!(literal, Literal::Str(_)) && !IDENTITY.contains(&field.as_str());
                let described = described && !field.starts_with("requested") && several;
                let counts = (observed && (none || several)) || described;
                if counts && !contradicted && !self.written_later(field) && (*literal != Literal::None || field == "fallback_reason") {
                    constants.insert(field.clone(), value.clone());
                }
            }
            // A record is one if it tells of a run: with provenance, or with two observations, or with a frozen setting.
            let observations = fields.iter().filter(|(field, ..)| OBSERVED.contains(&field.as_str())).count();
            let frozen = constants.contains_key("use_rollout_logprobs");
            if !constants.is_empty() && (*provenance || observations > 1 || frozen) {
                out.push(Record { scope: self.scope, range: *range, fields: constants });
            }
        }
        out
    }

    fn field(&self, name: &str, value: Reg) -> Field {
        let literal = self.names.literal(self.scope, value).map_or(Literal::Opaque, |(_, literal)| literal);
        (name.to_owned(), self.held(value), literal)
    }

    /// Kernels that calls of the scope reach.
    fn kernels(&self) -> usize {
        let sites = self.context.routes.iter().flat_map(|routes| &routes.callsites);
        let kernels: BTreeSet<&String> = sites.filter(|site| site.caller == self.scope).flat_map(|site| &site.kernels).collect();
        kernels.len()
    }

    fn held(&self, reg: Reg) -> Held {
        if let Some((module, literal)) = self.names.literal(self.scope, reg) {
            let text = match literal {
                Literal::None => "None".to_owned(),
                Literal::Bool(true) => "True".to_owned(),
                Literal::Bool(false) => "False".to_owned(),
                Literal::Int(number) => number.to_string(),
                Literal::Str(name) => self.context.program.module(module).facts.name(name).to_owned(),
                Literal::Opaque => return Held::Read,
            };
            return Held::Constant(text);
        }
        for kind in self.names.defined_by(self.scope, reg) {
            if let OpKind::Phi(_, inputs) = kind {
                let arms: Vec<Held> = inputs
                    .iter()
                    .filter(|(arm, _)| *arm != NO_REG && *arm != reg)
                    .map(|(arm, _)| if self.names.literal(self.scope, *arm).is_some() { self.held(*arm) } else { Held::Read })
                    .collect();
                let constants: Vec<&Held> = arms.iter().filter(|arm| **arm != Held::Read).collect();
                let past_a_read = constants.len() == 1 && arms.len() > 1;
                if past_a_read && !matches!(constants[0], Held::Constant(text) if text == "None") {
                    return constants[0].clone();
                }
            }
        }
        Held::Read
    }

    /// Whether a dict becomes a provenance record: kept under such a name, given to an observer, or returned by a function of that name.
    fn is_provenance(&self, dict: Reg) -> bool {
        let own = self.context.program.scope(self.scope);
        self.ops().iter().any(|op| match &op.kind {
            OpKind::StoreAttr { name, src, .. } => *src == dict && self.name(*name).contains("provenance"),
            OpKind::Return(src) => {
                *src == dict && ["provenance", "readback", "frozen"].iter().any(|word| self.name(own.name).contains(word))
            }
            OpKind::Call { func, args, .. } => {
                let given = args.iter().any(|(_, reg)| *reg == dict);
                given
                    && self.names.of(self.scope, *func).iter().any(|name| {
                        let last = name.trim_end_matches("()").rsplit('.').next().unwrap_or(name).to_ascii_lowercase();
                        ["observer", "provenance", "record_"].iter().any(|word| last.contains(word))
                    })
            }
            _ => false,
        })
    }

    /// Whether a call makes an object whose class is named like a record.
    fn makes_record(&self, func: Reg) -> bool {
        self.names.of(self.scope, func).iter().any(|name| {
            let last = name.rsplit('.').next().unwrap_or(name);
            last.starts_with(char::is_uppercase)
                && ["Provenance", "Readback", "RouteRecord", "Observation"].iter().any(|word| last.contains(word))
        })
    }

    /// Whether the scope stores the field later on.
    fn written_later(&self, field: &str) -> bool {
        self.ops().iter().any(|op| match &op.kind {
            OpKind::StoreItem { key, .. } => self.names.text(self.scope, *key) == Some(field),
            _ => false,
        })
    }

    /// Text that is printed with an observation spelled out in it.
    fn texts(&self, findings: &mut Vec<Finding>) {
        for op in self.ops() {
            let OpKind::Format { dst, parts } = &op.kind else { continue };
            let printed = self.ops().iter().find_map(|other| match &other.kind {
                OpKind::Call { args, .. } if args.iter().any(|(_, reg)| reg == dst) => Some(other.range),
                _ => None,
            });
            let Some(range) = printed else { continue };
            let reads = parts.iter().any(|part| self.names.literal(self.scope, *part).is_none());
            let spelled = parts.iter().filter_map(|part| self.names.text(self.scope, *part)).find_map(spelled_out);
            if let Some(pair) = spelled.filter(|_| reads) {
                let symbol = self.context.program.qualified(self.scope);
                let place = self.context.first_line(self.context.program.span(self.scope, range));
                findings.push(Finding::new(rule("reported-constant"), "text", vec![symbol.clone(), pair], place, symbol));
            }
        }
    }

    /// A function that is asked for an observation and has one answer.
    fn answers(&self, findings: &mut Vec<Finding>) {
        let own = self.context.program.scope(self.scope);
        let name = self.name(own.name);
        let asked = ["fallback_reason", "fallback_used", "actual_backend", "observed_backend", "actual_implementation"];
        if own.kind != ScopeKind::Function || !asked.iter().any(|end| name.ends_with(end)) {
            return;
        }
        let returns: Vec<Reg> =
            self.ops().iter().filter_map(|op| if let OpKind::Return(src) = op.kind { Some(src) } else { None }).collect();
        let held: BTreeSet<String> = returns
            .iter()
            .filter_map(|reg| match self.held(*reg) {
                Held::Constant(text) => Some(text),
                Held::Read => None,
            })
            .collect();
        let all = returns.iter().all(|reg| self.held(*reg) != Held::Read);
        let Some(only) = held.first().filter(|_| all && held.len() == 1) else { return };
        let symbol = self.context.program.qualified(self.scope);
        let place = self.context.program.span(self.scope, own.name_range);
        findings.push(Finding::new(rule("reported-constant"), "answer", vec![symbol.clone(), only.clone()], place, symbol));
    }

    /// Checks of a record's field against the constant that the record holds anyway.
    fn validators(&self, said: &BTreeMap<String, Vec<(String, Span)>>, findings: &mut Vec<Finding>) {
        for (at, op) in self.ops().iter().enumerate() {
            let OpKind::Binary { dst, left, op: operator, right } = &op.kind else { continue };
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            let (key, field, constant) = match operator {
                Operator::Eq | Operator::NotEq => {
                    let ways = [(*left, *right), (*right, *left)];
                    let Some((field, constant)) =
                        ways.into_iter().find_map(|(record, wanted)| Some((self.field_of(record)?, self.text(wanted)?)))
                    else {
                        continue;
                    };
                    ("requires", field, constant)
                }
                Operator::In => {
                    let (Some(field), Some(constant)) = (self.field_of(*right), self.text(*left)) else { continue };
                    ("rejects", field, constant)
                }
                _ => continue,
            };
            let values = said.get(field).map(Vec::as_slice).unwrap_or_default();
            let agrees = |value: &str| if key == "requires" { value == constant } else { value.contains(&constant) };
            let Some((_, record)) = values.iter().find(|(value, _)| agrees(value)) else { continue };
            if !self.raises_on(*dst) {
                continue;
            }
            let symbol = self.context.program.qualified(self.scope);
            let arguments = vec![symbol.clone(), field.to_owned(), constant];
            let mut finding = Finding::new(rule("reported-constant"), key, arguments, self.context.span(self.scope, at), symbol);
            finding.related.push(Related { span: *record, message: "the record holds this constant".to_owned() });
            findings.push(finding);
        }
    }

    fn text(&self, reg: Reg) -> Option<String> {
        match self.held(reg) {
            Held::Constant(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// Field of a record that a register was read from, also through `str(...)`.
    fn field_of(&self, reg: Reg) -> Option<&'a str> {
        let mut at = reg;
        for _ in 0..8 {
            let kinds = self.names.defined_by(self.scope, at);
            let next = kinds.iter().find_map(|kind| match kind {
                OpKind::Move(_, src) | OpKind::Filter(_, src, _) => Some(Ok(*src)),
                OpKind::LoadItem { key, .. } => self.names.text(self.scope, *key).map(Err),
                OpKind::LoadAttr { name, .. } => Some(Err(self.name(*name))),
                OpKind::Call { func, args, .. } => match method(self.names, self.scope, *func) {
                    Some((_, "get")) => self.names.text(self.scope, args.first()?.1).map(Err),
                    Some(_) => None,
                    None if self.names.is_one_of(self.scope, *func, &["str"]) => Some(Ok(args.first()?.1)),
                    None => None,
                },
                _ => None,
            })?;
            match next {
                Ok(src) => at = src,
                Err(field) => return OBSERVED.contains(&field).then_some(field),
            }
        }
        None
    }

    /// Whether an exception is raised behind a test that a comparison is part of.
    fn raises_on(&self, compared: Reg) -> bool {
        let own = self.context.program.scope(self.scope);
        let mut parts = BTreeSet::from([compared]);
        for op in &own.ops {
            let (dst, from) = match &op.kind {
                OpKind::Filter(dst, src, _) | OpKind::Move(dst, src) | OpKind::Not { dst, src } => (*dst, parts.contains(src)),
                OpKind::Phi(dst, inputs) => (*dst, inputs.iter().any(|(src, _)| parts.contains(src))),
                _ => continue,
            };
            if from {
                parts.insert(dst);
            }
        }
        let under = |mut cond: u32| {
            while cond != 0 {
                let node = own.conds[cond as usize];
                if matches!(node.kind, CondKind::Test(reg, _) if parts.contains(&reg)) {
                    return true;
                }
                cond = node.parent;
            }
            false
        };
        own.ops.iter().any(|op| matches!(op.kind, OpKind::Raise(_)) && under(op.cond))
    }
}

/// `field=value` in a text, where the value stands in the text itself.
fn spelled_out(text: &str) -> Option<String> {
    for field in ["fallback", "actual", "actual_backend", "backend_id", "triton_used"] {
        for (at, _) in text.match_indices(field) {
            let before = text[..at].chars().next_back();
            let Some(rest) = text[at + field.len()..].strip_prefix('=') else { continue };
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let value: String = rest.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-')).collect();
            if !value.is_empty() {
                return Some(format!("{field}={value}"));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::spelled_out;

    #[test]
    fn a_value_that_follows_is_not_spelled_out() {
        assert_eq!(spelled_out(" fallback=false").as_deref(), Some("fallback=false"));
        assert_eq!(spelled_out("[route] actual="), None, "the value is the next part");
        assert_eq!(spelled_out("no_fallback=1 and fallback"), None, "another field");
        assert_eq!(spelled_out("actual_backend=tree").as_deref(), Some("actual_backend=tree"));
    }
}
