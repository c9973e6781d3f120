//! RLK305: something on a strict route that computes approximately, or in an order of its own.

use std::collections::BTreeSet;

use super::dataflow::{Flow, Names, Spread};
use super::{Context, rule};
use crate::findings::{Finding, Related};
use crate::names::GlobalScope;
use crate::profile::{PathClass, Role};
use crate::routes::fits;
use crate::syntax::{CondId, CondKind, Literal, OpKind, Passing, Reg};
use crate::values::Target;

/// Products whose order of additions is the library's own.
const PRODUCTS: [&str; 8] = [
    "torch.mm",
    "torch.matmul",
    "torch.bmm",
    "torch.addmm",
    "torch.baddbmm",
    "torch.einsum",
    "torch.nn.functional.linear",
    "torch.nn.functional.bilinear",
];
/// Switches of the whole process, by owner and attribute, that are approximate when true.
const SWITCHES: [(&str, &str); 5] = [
    ("torch.backends.cuda.matmul", "allow_tf32"),
    ("torch.backends.cudnn", "allow_tf32"),
    ("torch.backends.cuda.matmul", "allow_bf16_reduced_precision_reduction"),
    ("torch.backends.cuda.matmul", "allow_fp16_reduced_precision_reduction"),
    ("torch.backends.cuda.matmul", "allow_fp16_accumulation"),
];
/// Parts of names of functions that quantise.
const QUANTISERS: [&str; 9] = ["quant", "quantize", "quantise", "fakequant", "int4", "int8", "fp8", "fp4", "qat"];

/// Words that end the name of something that belongs to a quantiser.
const OF_A_QUANTISER: [&str; 10] = ["padding", "pad", "scale", "scales", "config", "recipe", "context", "mode", "state", "method"];

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let names = Names::new(context.program);
    let route = Route { context, names: &names };
    for scope in kernels(context) {
        route.kernel(scope, findings);
    }
    for scope in context.scopes() {
        route.alternatives(scope, findings);
        route.switches(scope, findings);
        route.quantised(scope, findings);
        route.candidates(scope, findings);
    }
}

/// The family's kernels and what they call.
fn kernels(context: &Context<'_>) -> BTreeSet<GlobalScope> {
    let mut open: Vec<GlobalScope> = context
        .routes
        .iter()
        .flat_map(|routes| &routes.reach.sinks)
        .filter_map(|sink| if let Target::Scope(scope) = sink { Some(*scope) } else { None })
        .collect();
    let mut out = BTreeSet::new();
    while let Some(scope) = open.pop() {
        if !out.insert(scope) {
            continue;
        }
        let last = u32::try_from(context.program.scope(scope).ops.len()).unwrap_or(u32::MAX);
        for (_, targets) in context.calls.range((scope, 0)..(scope, last)) {
            open.extend(targets.iter().filter_map(|target| if let Target::Scope(scope) = target { Some(*scope) } else { None }));
        }
    }
    let production = |scope: &GlobalScope| (context.class_of)(context.program.module_of(*scope)) == PathClass::Production;
    out.retain(production);
    out
}

struct Route<'a> {
    context: &'a Context<'a>,
    names: &'a Names<'a>,
}

impl Route<'_> {
    fn push(&self, key: &'static str, scope: GlobalScope, op: u32, what: &str, related: Vec<Related>, findings: &mut Vec<Finding>) {
        let symbol = self.context.program.qualified(scope);
        let mut finding =
            Finding::new(rule("approximate-route"), key, vec![symbol.clone(), what.to_owned()], self.context.span(scope, op), symbol);
        finding.related = related;
        findings.push(finding);
    }

    fn name(&self, scope: GlobalScope, id: u32) -> &str {
        self.context.program.module(self.context.program.module_of(scope)).facts.name(id)
    }

    /// Atomics, precision of products and of accumulators, and autotuning of a kernel.
    fn kernel(&self, scope: GlobalScope, findings: &mut Vec<Finding>) {
        let program = self.context.program;
        let facts = program.scope(scope);
        for (at, op) in facts.ops.iter().enumerate() {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            let OpKind::Call { func, args, .. } = &op.kind else { continue };
            for name in self.names.of(scope, *func) {
                let Some(name) = name.strip_prefix("triton.language.") else { continue };
                if name.starts_with("atomic_") && name != "atomic_cas" {
                    self.push("atomic", scope, at, name, Vec::new(), findings);
                } else if matches!(name, "dot" | "dot_scaled")
                    && let Some(what) = self.imprecise(scope, args)
                {
                    self.push("precision", scope, at, &what, Vec::new(), findings);
                }
            }
        }
        let parent = program.global_scope(program.module_of(scope), facts.parent);
        let mut value = None;
        for (at, op) in program.scope(parent).ops.iter().enumerate() {
            match &op.kind {
                OpKind::Function { dst, scope: inner, .. } if program.global_scope(program.module_of(scope), *inner) == scope => {
                    value = Some(*dst);
                }
                OpKind::Call { dst, func, args, decorator: true } if value.is_some() && args.first().map(|(_, reg)| *reg) == value => {
                    value = Some(*dst);
                    if self.names.of(parent, *func).iter().any(|name| name == "triton.autotune()") {
                        let kernel = program.qualified(scope);
                        let at = u32::try_from(at).unwrap_or(u32::MAX);
                        let place = self.context.span(parent, at);
                        findings.push(Finding::new(rule("approximate-route"), "autotuned", vec![kernel.clone()], place, kernel));
                    }
                }
                _ => {}
            }
        }
    }

    /// What makes a `dot` less than exact products with FP32 accumulation.
    fn imprecise(&self, scope: GlobalScope, args: &[(Passing, Reg)]) -> Option<String> {
        for (place, (passing, reg)) in args.iter().enumerate() {
            let keyword = match passing {
                Passing::Keyword(name) => self.name(scope, *name),
                Passing::Position if place == 2 => "acc",
                _ => continue,
            };
            let half = |reg: Reg| {
                self.names.of(scope, reg).into_iter().find(|name| {
                    matches!(name.as_str(), "triton.language.float16" | "triton.language.bfloat16" | "triton.language.float8e4nv")
                })
            };
            match keyword {
                "allow_tf32" if matches!(self.names.literal(scope, *reg), Some((_, Literal::Bool(true)))) => {
                    return Some("allow_tf32=True".to_owned());
                }
                "input_precision" => {
                    if let Some(mode) = self.names.text(scope, *reg).filter(|mode| mode.starts_with("tf32")) {
                        return Some(format!("input_precision={mode}"));
                    }
                }
                "out_dtype" => {
                    if let Some(kind) = half(*reg) {
                        return Some(format!("out_dtype={kind}"));
                    }
                }
                "acc" => {
                    if let Some(kind) = self.accumulators(scope, *reg).into_iter().find_map(half) {
                        return Some(format!("an accumulator of {kind}"));
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Registers of the types with which an accumulator starts.
    fn accumulators(&self, scope: GlobalScope, reg: Reg) -> Vec<Reg> {
        let mut out = Vec::new();
        let mut open = vec![reg];
        let mut seen = BTreeSet::new();
        while let Some(reg) = open.pop() {
            if !seen.insert(reg) {
                continue;
            }
            for kind in self.names.defined_by(scope, reg) {
                match kind {
                    OpKind::Move(_, src) | OpKind::Filter(_, src, _) => open.push(*src),
                    OpKind::Phi(_, inputs) => open.extend(inputs.iter().map(|(src, _)| *src)),
                    OpKind::Call { func, args, .. }
                        if self.names.is_one_of(scope, *func, &["triton.language.zeros", "triton.language.full"]) =>
                    {
                        out.extend(args.iter().filter_map(|(passing, reg)| match passing {
                            Passing::Keyword(name) if self.name(scope, *name) == "dtype" => Some(*reg),
                            _ => None,
                        }));
                        let full = self.names.is_one_of(scope, *func, &["triton.language.full"]);
                        let place = if full { 2 } else { 1 };
                        out.extend(args.get(place).filter(|(passing, _)| *passing == Passing::Position).map(|(_, reg)| *reg));
                    }
                    _ => {}
                }
            }
        }
        out
    }

    /// A library's product in a branch beside a call of the family, if nothing decides which of the two runs.
    fn alternatives(&self, scope: GlobalScope, findings: &mut Vec<Finding>) {
        let facts = self.context.program.scope(scope);
        let strict: Vec<u32> = (0..u32::try_from(facts.ops.len()).unwrap_or(u32::MAX))
            .filter(|op| matches!(facts.ops[*op as usize].kind, OpKind::Call { .. }) && !self.context.family_calls(scope, *op).is_empty())
            .collect();
        if strict.is_empty() {
            return;
        }
        for (at, op) in facts.ops.iter().enumerate() {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            let OpKind::Call { func, .. } = op.kind else { continue };
            if op.cond == 0 {
                continue;
            }
            let named = self.names.of(scope, func);
            let Some(product) = named.iter().find(|name| PRODUCTS.contains(&name.as_str())) else { continue };
            let Some((call, test)) =
                strict.iter().find_map(|call| Some((*call, self.parts(scope, op.cond, facts.ops[*call as usize].cond)?)))
            else {
                continue;
            };
            let copies = self.context.known_copies(scope);
            let open = copies.iter().any(|inst| {
                let CondKind::Test(reg, wanted) = facts.conds[test as usize].kind else { return false };
                self.context.engine.runs(*inst, at) && self.context.engine.is_undecided(*inst, reg, wanted)
            });
            if open {
                let span = self.context.first_line(self.context.program.span(scope, facts.conds[test as usize].range));
                let related = vec![
                    Related { span: self.context.span(scope, call), message: "the family runs here otherwise".to_owned() },
                    Related { span, message: "nothing decides this test".to_owned() },
                ];
                self.push("product", scope, at, product, related, findings);
            }
        }
    }

    /// The test of the first condition that comes out the other way for the second.
    fn parts(&self, scope: GlobalScope, one: CondId, other: CondId) -> Option<CondId> {
        let conds = &self.context.program.scope(scope).conds;
        let mut at = one;
        while at != 0 {
            if let CondKind::Test(reg, wanted) = conds[at as usize].kind {
                let mut up = other;
                while up != 0 {
                    if conds[up as usize].kind == CondKind::Test(reg, !wanted) {
                        return Some(at);
                    }
                    up = conds[up as usize].parent;
                }
            }
            at = conds[at as usize].parent;
        }
        None
    }

    /// Switches of the process that make products approximate.
    fn switches(&self, scope: GlobalScope, findings: &mut Vec<Finding>) {
        let program = self.context.program;
        let module = program.module(program.module_of(scope));
        if self.context.sources[module.source].role != Role::Kernel || !self.context.on_route(scope) {
            return;
        }
        for (at, op) in program.scope(scope).ops.iter().enumerate() {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            match &op.kind {
                OpKind::StoreAttr { obj, name, src } => {
                    let name = self.name(scope, *name);
                    let on = matches!(self.names.literal(scope, *src), Some((_, Literal::Bool(true))));
                    let owners = self.names.of(scope, *obj);
                    if on && SWITCHES.iter().any(|(owner, switch)| *switch == name && owners.contains(*owner)) {
                        self.push("switch", scope, at, &format!("{name} = True"), Vec::new(), findings);
                    }
                }
                OpKind::Call { func, args, .. } if self.names.is_one_of(scope, *func, &["torch.set_float32_matmul_precision"]) => {
                    let mode = args.first().and_then(|(_, reg)| self.names.text(scope, *reg));
                    if let Some(mode) = mode.filter(|mode| *mode != "highest") {
                        self.push("switch", scope, at, &format!("set_float32_matmul_precision({mode})"), Vec::new(), findings);
                    }
                }
                _ => {}
            }
        }
    }

    /// Operands of the family that went through a quantiser.
    fn quantised(&self, scope: GlobalScope, findings: &mut Vec<Finding>) {
        let facts = self.context.program.scope(scope);
        for (at, op) in facts.ops.iter().enumerate() {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            let OpKind::Call { dst, func, decorator: false, .. } = &op.kind else { continue };
            let Some(name) = self.names.of(scope, *func).into_iter().find(|name| quantises(name)) else { continue };
            if !self.context.engine.copies_of(scope).iter().any(|inst| self.context.engine.runs(*inst, at)) {
                continue;
            }
            let flow = Flow::from(self.names, scope, [*dst], Spread::Computed, &|_| false);
            let operand = (0..u32::try_from(facts.ops.len()).unwrap_or(u32::MAX)).find(|call| {
                *call != at
                    && matches!(&facts.ops[*call as usize].kind, OpKind::Call { args, .. } if args.iter().any(|(_, reg)| flow.holds(*reg)))
                    && !self.context.family_calls(scope, *call).is_empty()
            });
            if let Some(call) = operand {
                let related = vec![Related { span: self.context.span(scope, call), message: "the family gets the result here".to_owned() }];
                self.push("quantised", scope, at, &name, related, findings);
            }
        }
    }

    /// A look-alike in a list of candidates of the family.
    fn candidates(&self, scope: GlobalScope, findings: &mut Vec<Finding>) {
        let facts = self.context.program.scope(scope);
        for op in &facts.ops {
            let pairs: Vec<(String, Reg)> = match &op.kind {
                OpKind::Dict { items, .. } => {
                    items.iter().filter_map(|(key, value)| Some((self.names.text(scope, *key)?.to_owned(), *value))).collect()
                }
                OpKind::StoreItem { key, src, .. } => self.names.text(scope, *key).map(|key| (key.to_owned(), *src)).into_iter().collect(),
                _ => continue,
            };
            for (key, list) in pairs {
                let asked = |wanted: &String| key == *wanted || key.ends_with(&format!(".{wanted}"));
                let family = self.context.profile.families.iter().find(|family| family.keys.iter().any(asked));
                let Some(family) = family else { continue };
                let lists = self.names.definitions(scope).get(&list).cloned().unwrap_or_default();
                for place in lists {
                    let OpKind::Sequence { items, .. } = &facts.ops[place as usize].kind else { continue };
                    let within = facts.ops[place as usize].range;
                    for (item, _) in items {
                        let named = self.implementations(scope, *item);
                        let alike = named.iter().find(|name| family.lookalikes.iter().any(|pattern| fits(pattern, name)));
                        let Some(alike) = alike else { continue };
                        // An entry that is read in the list is the place; a name that was bound before has none there.
                        let own = self.names.definitions(scope).get(item).and_then(|ops| ops.first()).copied();
                        let inside = |op: &u32| facts.ops[*op as usize].range.0 >= within.0 && facts.ops[*op as usize].range.1 <= within.1;
                        self.push("candidate", scope, own.filter(inside).unwrap_or(place), alike, Vec::new(), findings);
                    }
                }
            }
        }
    }

    /// Dotted names that an entry of a list stands for: its own, the string that it is, or the value of the enumeration member.
    fn implementations(&self, scope: GlobalScope, item: Reg) -> BTreeSet<String> {
        let program = self.context.program;
        let mut out: BTreeSet<String> = self.names.text(scope, item).map(str::to_owned).into_iter().collect();
        for name in self.names.of(scope, item) {
            if let Some((class, member)) = name.rsplit_once('.')
                && let Some(class) = program.find_scope(class)
            {
                let names = &program.module(program.module_of(class)).facts;
                for op in &program.scope(class).ops {
                    if let OpKind::StoreClass(stored, src) = op.kind
                        && names.name(stored) == member
                        && let Some(text) = self.names.text(class, src)
                    {
                        out.insert(text.to_owned());
                    }
                }
            }
            out.insert(name);
        }
        out
    }
}

/// Whether a function's name says that it quantises.
fn quantises(name: &str) -> bool {
    let plain = name.trim_end_matches("()").trim_end_matches(".apply");
    let last = plain.rsplit('.').next().unwrap_or(plain);
    let mut words: Vec<String> = Vec::new();
    for c in last.chars() {
        if c == '_' || c.is_uppercase() && words.last().is_some_and(|word| word.ends_with(|c: char| c.is_lowercase() || c.is_numeric())) {
            words.push(String::new());
        }
        if words.is_empty() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c != '_') {
            word.extend(c.to_lowercase());
        }
    }
    // The padding, scale or settings of a quantiser are not one.
    !words.last().is_some_and(|word| OF_A_QUANTISER.contains(&word.as_str()))
        && words.iter().any(|word| QUANTISERS.contains(&word.as_str()) || word.starts_with("quantiz") || word.starts_with("quantis"))
}

#[cfg(test)]
mod tests {
    use super::quantises;

    #[test]
    fn a_quantiser_is_known_by_whole_words() {
        for name in ["pkg.fake_quant", "pkg._FakeInt4QuantizationSTE.apply", "quantize_fp8", "torch.ao.quantise"] {
            assert!(quantises(name), "{name}");
        }
        for name in ["pkg.quantile", "pkg.point", "torch.fp32", "m.quantization_padding", "pkg.dequeue", "torch.equal"] {
            assert!(!quantises(name), "{name}");
        }
    }
}
