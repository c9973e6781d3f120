//! The checks. Each reads the context and pushes findings; one file per rule, named like the rule's folder.
//!
//! In: [`Context`], which no check changes. Out: findings at their rule's own level; levels, ignore comments and order come later.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{self, RuleMeta};
use crate::findings::{Finding, Gap, Related, Step};
use crate::names::{GlobalScope, ModuleId, Program, Sym};
use crate::profile::{PathClass, Profile};
use crate::routes::{Callsite, Routes, target_name};
use crate::sources::LoadedSource;
use crate::stage0::evidence::{Fault, Item};
use crate::stage0::{Baseline, Place, ShapeRow};
use crate::syntax::{CondId, ModuleFacts, OpKind, Reg};
use crate::text::{FileId, Files, Span};
use crate::values::{Engine, InstanceId, Object, ObjectId, Target};

mod address_keyed_cache;
mod approximate_route;
mod changed_under_contract;
mod claim_without_source;
mod contract_switch;
mod dataflow;
mod dead_on_platform;
mod dead_patch_target;
mod dirty_tree;
mod documentation_only;
mod environment;
mod first_execution_record;
mod foreign_evidence;
mod grown_tolerance;
mod late_or_unrecorded_variable;
mod lenient_default;
mod no_backward_owner;
mod not_warmed;
mod out_of_memory_retry;
mod partial_checkpoint_load;
mod patch_mismatch;
mod pin_mismatch;
mod pinned_field;
mod relaxed_tolerance;
mod reported_constant;
mod rollout_score_reuse;
mod silent_fallback;
mod stale_evidence;
mod syntax_gap;
mod unchecked_refresh;
mod unpinned_source;
mod unproven_evidence;
mod unrecorded_backward;
mod unresolved_dispatch;
mod untraced_callsite;
mod value_equality;
mod variable_not_handed_on;
mod variable_not_in_cache_key;

pub use changed_under_contract::{Part, Parts};
pub use grown_tolerance::Tolerance;

/// What rules compare between the base revision and this one.
#[derive(Debug, Default)]
pub struct Remembered {
    /// Tolerances by which results of a family are judged.
    pub tolerances: Vec<Tolerance>,
    /// Definitions that a contract speaks for.
    pub parts: Parts,
}

impl Remembered {
    /// What a revision has.
    #[must_use]
    pub fn of(context: &Context<'_>) -> Self {
        Self { tolerances: grown_tolerance::tolerances(context), parts: changed_under_contract::parts(context) }
    }

    /// Gives names and paths of the base the form that they have in this revision.
    #[must_use]
    pub fn renamed(self, now: &dyn Fn(&str) -> String) -> Self {
        let tolerance = |tolerance: Tolerance| Tolerance { path: now(&tolerance.path), symbol: now(&tolerance.symbol), ..tolerance };
        let parts = self.parts.into_iter().map(|((contract, module), parts)| ((contract, now(&module)), parts));
        Self { tolerances: self.tolerances.into_iter().map(tolerance).collect(), parts: parts.collect() }
    }
}

/// A block of Python in a document.
#[derive(Debug)]
pub struct Snippet {
    /// The document.
    pub file: FileId,
    /// First byte of the block in the document.
    pub start: u32,
    /// Its facts; ranges count from `start`.
    pub facts: ModuleFacts,
}

/// Everything that checks may read.
pub struct Context<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// Texts.
    pub files: &'a Files,
    /// Sources as they were read.
    pub sources: &'a [LoadedSource],
    /// Module table.
    pub program: &'a Program,
    /// The analysis of production code.
    pub engine: &'a Engine<'a>,
    /// One per family.
    pub routes: &'a [Routes],
    /// Gaps found so far.
    pub gaps: &'a [Gap],
    /// Blocks of Python in documents.
    pub snippets: &'a [Snippet],
    /// The profile's evidence.
    pub evidence: &'a [Item],
    /// Shapes of the profile's workload.
    pub shapes: &'a [ShapeRow],
    /// What the selection, launch and warmup functions of the profile do for its workload; `None` if it declares none.
    pub baseline: Option<&'a Baseline>,
    /// Class of a module.
    pub class_of: &'a dyn Fn(ModuleId) -> PathClass,
    /// What each operation of production code calls.
    pub calls: BTreeMap<(GlobalScope, u32), BTreeSet<Target>>,
    /// What the base revision had; `None` without one.
    pub before: Option<&'a Remembered>,
    /// Scopes beside those that lead to a kernel, made when the first rule asks.
    pub on_route: OnceCell<BTreeSet<GlobalScope>>,
    /// Comparisons of results, made when the first rule asks.
    pub(crate) comparisons: OnceCell<Vec<dataflow::Comparison>>,
    /// Variables on the routes, made when the first rule asks.
    pub environment: OnceCell<environment::Environment>,
}

/// A check.
pub type Check = fn(&Context<'_>, &mut Vec<Finding>);

/// All checks by the folder of their rule, in order of id.
pub const CHECKS: &[(&str, Check)] = &[
    ("unpinned-source", unpinned_source::check),
    ("pin-mismatch", pin_mismatch::check),
    ("dirty-tree", dirty_tree::check),
    ("patch-mismatch", patch_mismatch::check),
    ("syntax-gap", syntax_gap::check),
    ("untraced-callsite", untraced_callsite::check),
    ("documentation-only", documentation_only::check),
    ("unresolved-dispatch", unresolved_dispatch::check),
    ("dead-patch-target", dead_patch_target::check),
    ("dead-on-platform", dead_on_platform::check),
    ("silent-fallback", silent_fallback::check),
    ("contract-switch", contract_switch::check),
    ("relaxed-tolerance", relaxed_tolerance::check),
    ("value-equality", value_equality::check),
    ("approximate-route", approximate_route::check),
    ("pinned-field", pinned_field::check),
    ("rollout-score-reuse", rollout_score_reuse::check),
    ("out-of-memory-retry", out_of_memory_retry::check),
    ("lenient-default", lenient_default::check),
    ("partial-checkpoint-load", partial_checkpoint_load::check),
    ("grown-tolerance", grown_tolerance::check),
    ("changed-under-contract", changed_under_contract::check),
    ("address-keyed-cache", address_keyed_cache::check),
    ("unchecked-refresh", unchecked_refresh::check),
    ("no-backward-owner", no_backward_owner::check),
    ("reported-constant", reported_constant::check),
    ("unrecorded-backward", unrecorded_backward::check),
    ("first-execution-record", first_execution_record::check),
    ("variable-not-handed-on", variable_not_handed_on::check),
    ("variable-not-in-cache-key", variable_not_in_cache_key::check),
    ("late-or-unrecorded-variable", late_or_unrecorded_variable::check),
    ("not-warmed", not_warmed::check),
    ("claim-without-source", claim_without_source::check),
    ("foreign-evidence", foreign_evidence::check),
    ("stale-evidence", stale_evidence::check),
    ("unproven-evidence", unproven_evidence::check),
];

/// Runs every check; `tell` gets the folder of each rule before it starts.
#[must_use]
pub fn run(context: &Context<'_>, tell: &dyn Fn(&str)) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (slug, check) in CHECKS {
        tell(slug);
        check(context, &mut findings);
    }
    findings
}

fn rule(slug: &str) -> &'static RuleMeta {
    catalog::rule(slug).expect("every check has its rule, which a test verifies")
}

/// One finding per item and reason of some kinds, with the profile's table as second place. An item of another platform, or one that never ran,
/// is not also blamed for its age.
fn evidence_findings(context: &Context<'_>, findings: &mut Vec<Finding>, slug: &str, faults: &[Fault]) {
    for item in context.evidence {
        let has = |fault: Fault| item.reasons.iter().any(|reason| reason.fault == fault);
        let first = [Fault::OtherPlatform, Fault::Unrun].into_iter().find(|fault| has(*fault));
        let said = |fault: Fault| first.is_none_or(|first| fault == first || matches!(fault, Fault::ScoreReuse | Fault::OtherShape));
        for reason in item.reasons.iter().filter(|reason| faults.contains(&reason.fault) && said(reason.fault)) {
            let arguments = vec![item.reference.id.clone(), reason.text.clone()];
            let mut finding = Finding::new(rule(slug), "default", arguments, context.first_line(reason.at), item.reference.id.clone());
            if reason.at.file != item.reference.span.file {
                let span = context.first_line(item.reference.span);
                finding.related.push(Related { span, message: "it is named as evidence here".to_owned() });
            }
            findings.push(finding);
        }
    }
}

impl Context<'_> {
    /// What each operation calls, from the engine's edges.
    #[must_use]
    pub fn calls_of(engine: &Engine<'_>) -> BTreeMap<(GlobalScope, u32), BTreeSet<Target>> {
        let mut calls: BTreeMap<(GlobalScope, u32), BTreeSet<Target>> = BTreeMap::new();
        for edge in &engine.edges {
            calls.entry((engine.scope_of(edge.caller), edge.op)).or_default().insert(edge.target);
        }
        calls
    }

    /// Comparisons that matter to the contract; computed once.
    fn comparisons(&self) -> &[dataflow::Comparison] {
        self.comparisons.get_or_init(|| dataflow::comparisons(self))
    }

    /// Scopes of production code that run, in order.
    fn scopes(&self) -> Vec<GlobalScope> {
        let counts =
            |scope: &GlobalScope| matches!((self.class_of)(self.program.module_of(*scope)), PathClass::Production | PathClass::Reference);
        self.engine.entered_scopes().filter(counts).collect()
    }

    /// Running copies of a scope that known callers make; where there are none, those that stand for callers elsewhere.
    fn known_copies(&self, scope: GlobalScope) -> Vec<InstanceId> {
        let copies = self.engine.copies_of(scope);
        let known: Vec<InstanceId> = copies.iter().copied().filter(|inst| !self.engine.is_unbound(*inst)).collect();
        if known.is_empty() { copies.to_vec() } else { known }
    }

    /// Whether the companion patch added or changed the line of a place.
    #[must_use]
    pub fn from_patch(&self, span: Span) -> bool {
        let line = self.files.get(span.file).line_of(span.start);
        let files = self.sources.iter().flat_map(|source| &source.files);
        files.filter(|file| file.file == span.file).any(|file| file.patched_lines.contains(&line))
    }

    /// Whether a scope stands in code that runs in a real job.
    fn counts(&self, scope: GlobalScope) -> bool {
        matches!((self.class_of)(self.program.module_of(scope)), PathClass::Production | PathClass::Reference)
    }

    /// Whether a target is of a family or leads to one.
    fn reaches(&self, target: Target) -> bool {
        self.routes.iter().any(|routes| match target {
            Target::Scope(scope) => routes.reach.holds(scope),
            Target::Class(scope) => routes.reach.classes.contains(&scope),
            other => routes.reach.sinks.contains(&other),
        })
    }

    /// Dotted names of the family members that an operation calls.
    fn family_calls(&self, scope: GlobalScope, op: u32) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for target in self.calls.get(&(scope, op)).into_iter().flatten() {
            if self.reaches(*target) {
                names.insert(self.shown(*target));
            } else if let Target::Scope(init) = target {
                // Instantiation of an operator's class.
                let class = self.program.global_scope(self.program.module_of(*init), self.program.scope(*init).parent);
                if self.routes.iter().any(|routes| routes.reach.classes.contains(&class))
                    && self.program.qualified(*init).ends_with(".__init__")
                {
                    names.insert(self.program.qualified(class));
                }
            }
        }
        names
    }

    /// Whether a scope is on a route of the family: it leads to a kernel, is called on the way, or is the body of such a module.
    fn on_route(&self, scope: GlobalScope) -> bool {
        let ways = self.on_route.get_or_init(|| {
            let holds = |scope: GlobalScope| self.routes.iter().any(|routes| routes.reach.holds(scope));
            let held = self.routes.iter().flat_map(|routes| routes.reach.towards.keys().copied());
            let called = self.calls.iter().filter(|((caller, _), _)| holds(*caller)).flat_map(|(_, targets)| targets);
            let called = called.filter_map(|target| if let Target::Scope(scope) = target { Some(*scope) } else { None });
            let bodies = held.map(|scope| self.program.global_scope(self.program.module_of(scope), 0));
            bodies.chain(called).collect()
        });
        ways.contains(&scope) || self.routes.iter().any(|routes| routes.reach.holds(scope))
    }

    fn shown(&self, target: Target) -> String {
        target_name(self.engine, target)
    }

    /// Objects that a register may hold, also in a branch that never runs: there its definition is followed by name.
    fn glance(&self, scope: GlobalScope, reg: Reg) -> Vec<ObjectId> {
        let mut out: BTreeSet<ObjectId> = BTreeSet::new();
        // Scope, register, and what is done with it, first step last: an attribute is read, or (without a name) it is called.
        let mut open: Vec<(GlobalScope, Reg, Vec<Option<Sym>>)> = vec![(scope, reg, Vec::new())];
        let mut seen = BTreeSet::new();
        while let Some((scope, reg, path)) = open.pop() {
            if !seen.insert((scope, reg, path.clone())) {
                continue;
            }
            let copies = self.engine.copies_of(scope).iter();
            let known: Vec<ObjectId> = copies.flat_map(|inst| self.engine.objects_in(*inst, reg)).collect();
            if !known.is_empty() {
                out.extend(known.into_iter().flat_map(|object| self.glance_steps(object, &path)));
                continue;
            }
            let id = self.program.module_of(scope);
            let here = self.program.module(id);
            for op in &self.program.scope(scope).ops {
                let mut named = |module: ModuleId, name: Sym| {
                    let objects = self.engine.global_objects(module, name);
                    if objects.is_empty() {
                        // The module's own statement that binds the name did not run either.
                        let body = self.program.global_scope(module, 0);
                        let home = self.program.module(module);
                        let binds = self.program.scope(body).ops.iter().filter_map(|op| match op.kind {
                            OpKind::StoreGlobal(bound, src) if home.sym(bound) == name => Some(src),
                            _ => None,
                        });
                        open.extend(binds.map(|src| (body, src, path.clone())));
                    }
                    out.extend(objects.into_iter().flat_map(|object| self.glance_steps(object, &path)));
                };
                match &op.kind {
                    OpKind::Move(dst, src) | OpKind::Filter(dst, src, _) if *dst == reg => open.push((scope, *src, path.clone())),
                    OpKind::Phi(dst, inputs) if *dst == reg => open.extend(inputs.iter().map(|(src, _)| (scope, *src, path.clone()))),
                    OpKind::LoadGlobal(dst, name) if *dst == reg => named(id, here.sym(*name)),
                    OpKind::LoadFree(dst, outer, src) if *dst == reg => {
                        open.push((self.program.global_scope(id, *outer), *src, path.clone()));
                    }
                    OpKind::ImportFrom { dst, module: from, level, name } if *dst == reg => {
                        let base = self.program.absolute(id, here.facts.name(*from), *level);
                        let module = |name: &str| self.program.strings.find(name).and_then(|sym| self.program.find(sym, here.source));
                        if let Some(base) = base {
                            let full = format!("{base}.{}", here.facts.name(*name));
                            match (module(&full), module(&base)) {
                                (Some(found), _) if path.last().is_some_and(Option::is_some) => {
                                    let mut rest = path.clone();
                                    let first = rest.pop().flatten().unwrap_or_else(|| here.sym(*name));
                                    let objects = self.engine.global_objects(found, first);
                                    out.extend(objects.into_iter().flat_map(|object| self.glance_steps(object, &rest)));
                                }
                                (_, Some(found)) => named(found, here.sym(*name)),
                                _ => {}
                            }
                        }
                    }
                    OpKind::LoadAttr { dst, obj, name } if *dst == reg => {
                        let mut longer = path.clone();
                        longer.push(Some(here.sym(*name)));
                        open.push((scope, *obj, longer));
                    }
                    OpKind::Call { dst, func, .. } if *dst == reg => {
                        let mut longer = path.clone();
                        longer.push(None);
                        open.push((scope, *func, longer));
                    }
                    _ => {}
                }
            }
        }
        out.into_iter().collect()
    }

    /// What a path of attributes and calls leads to from an object, first step last.
    fn glance_steps(&self, object: ObjectId, path: &[Option<Sym>]) -> Vec<ObjectId> {
        let mut objects = vec![object];
        for step in path.iter().rev() {
            objects = objects
                .into_iter()
                .flat_map(|object| match step {
                    Some(name) => self.glance_attribute(object, *name),
                    None => match self.engine.get(object) {
                        Object::Function(scope, _) => self.engine.results_of(scope),
                        Object::Bound(function, _) => match self.engine.get(function) {
                            Object::Function(scope, _) => self.engine.results_of(scope),
                            _ => Vec::new(),
                        },
                        // What calling a class gives has the class's methods.
                        Object::Class(..) => vec![object],
                        _ => Vec::new(),
                    },
                })
                .collect();
        }
        objects
    }

    fn glance_attribute(&self, object: ObjectId, name: Sym) -> Vec<ObjectId> {
        let found = self.engine.attribute_objects(object, name);
        if !found.is_empty() || self.program.strings.text(name) != "apply" {
            return found;
        }
        // `apply` of an autograd function runs its `forward`.
        self.program.strings.find("forward").map_or_else(Vec::new, |forward| self.engine.attribute_objects(object, forward))
    }

    /// Dotted name of an object if it is of a family.
    fn family_object(&self, object: ObjectId) -> Option<String> {
        match self.engine.get(object) {
            Object::Function(scope, _) => self.reaches(Target::Scope(scope)).then(|| self.program.qualified(scope)),
            Object::Class(scope, _) => self.reaches(Target::Class(scope)).then(|| self.program.qualified(scope)),
            Object::StaticMethod(function) | Object::ClassMethod(function) => self.family_object(function),
            Object::Bound(function, _) | Object::Kernel(function) | Object::Launch(function) | Object::CustomOp(function) => {
                self.family_object(function)
            }
            Object::Apply(class) => self.family_object(class),
            // Calling an instance.
            Object::Instance(..) => {
                let call = self.program.strings.find("__call__")?;
                self.engine.attribute_objects(object, call).into_iter().find_map(|object| match self.engine.get(object) {
                    Object::Function(..) => self.family_object(object),
                    _ => None,
                })
            }
            Object::External(name) => self.reaches(Target::External(name)).then(|| self.engine.text(name).to_owned()),
            _ => None,
        }
    }

    /// Whether a condition is, or stands below, another one.
    fn below(&self, scope: GlobalScope, cond: CondId, above: CondId) -> bool {
        let conds = &self.program.scope(scope).conds;
        let mut at = cond;
        loop {
            if at == above {
                return true;
            }
            if at == 0 {
                return false;
            }
            at = conds[at as usize].parent;
        }
    }

    /// The line of a place.
    fn line_at(&self, place: &Place) -> Option<Span> {
        let (id, file) = self.files.iter().find(|(_, file)| *file.source == *place.source && *file.path == *place.path)?;
        let (start, end) = file.line_range(place.line)?;
        Some(Span::new(id, start, end))
    }

    /// Span of an operation, up to the end of its first line.
    fn span(&self, scope: GlobalScope, op: u32) -> Span {
        self.first_line(self.program.span(scope, self.program.scope(scope).ops[op as usize].range))
    }

    /// A span up to the end of its first line.
    pub(crate) fn first_line(&self, span: Span) -> Span {
        let file = self.files.get(span.file);
        let end = file.line_range(file.line_of(span.start)).map_or(span.end, |(_, end)| end);
        Span::new(span.file, span.start, span.end.min(end).max(span.start))
    }

    /// The chain of a callsite as steps: from the entry to the callsite, and on to a kernel.
    pub(crate) fn flow(&self, callsite: &Callsite) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for hop in &callsite.up {
            steps.push(Step { span: self.first_line(hop.span), message: format!("{} reaches {} ({})", hop.from, hop.to, hop.kind) });
        }
        let targets = callsite.targets.join(", ");
        steps.push(Step {
            span: self.first_line(callsite.span),
            message: format!("this call reaches {targets} ({})", callsite.kind.word()),
        });
        for hop in callsite.down.iter().filter(|hop| hop.span != callsite.span) {
            steps.push(Step { span: self.first_line(hop.span), message: format!("{} reaches {} ({})", hop.from, hop.to, hop.kind) });
        }
        steps
    }

    /// Place of a source's pin in the profile.
    fn pin(&self, id: &str) -> Option<Span> {
        self.profile.sources.iter().find(|source| source.id == id).map(|source| self.first_line(source.span))
    }
}
