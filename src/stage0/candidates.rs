//! The family of configurations that could be compared: those that the frozen sources can build, under one contract.
//!
//! In: the evaluated selection and launch functions, shapes, evidence, budgets. Out: [`Candidates`]: one row per configuration and per value of an argument
//! that may vary, with a cell per shape; and what was found and is no candidate. The launch function is evaluated with each configuration as it is for
//! the baseline, so that launches, workspace and tiles are those of the sources. Refused as candidates, each with its line: another contract,
//! another vendor's functions, look-alikes, calls of the class that could not be evaluated.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::baseline::{
    Configuration, Evaluation, Modules, PlaceOf, configurations, fields_of, lookup, not_evaluated, operands, range, workspace,
};
use super::eval::constructions::parameter_for;
use super::eval::tensors::element_bytes;
use super::eval::value::{Instance, Value};
use super::eval::{Evaluator, Trace, UNBOUNDED};
use super::evidence::statements::Tile;
use super::evidence::{Comparison, Item};
use super::{CandidateCell, CandidateRow, Candidates, Cited, Excluded, Field, NotEvaluated, Place, ShapeRow};
use crate::names::{ModuleId, Program};
use crate::profile::Family;
use crate::profile::workload::{DecisionInput, Evaluated};
use crate::routes::Routes;
use crate::routes::fits;
use crate::text::Span;

/// Names of the numbers of a tile in evidence, in its order.
const TILE: [&str; 6] = ["block_m", "block_n", "num_warps", "waves_per_eu", "num_stages", "group_m"];
/// Backends of vendors, as parts of dotted names.
const BACKENDS: &[&str] = &["rocm", "cuda", "musa"];

/// What candidates are judged by.
pub struct Input<'a> {
    /// What is evaluated.
    pub declared: &'a Evaluated,
    /// The baseline.
    pub evaluation: &'a Evaluation,
    /// Type of the operands.
    pub dtype: &'a str,
    /// Shapes of the workload.
    pub shapes: &'a [ShapeRow],
    /// Evidence.
    pub evidence: &'a [Item],
    /// Budgets and certificates.
    pub decision: &'a DecisionInput,
    /// Modules that name a class, and whether only tests and the like run them.
    pub naming: &'a dyn Fn(&str) -> Vec<(ModuleId, bool)>,
    /// Dotted name of a module.
    pub name_of: &'a dyn Fn(ModuleId) -> String,
    /// What other parts of the sources were found not to be candidates.
    pub excluded: Vec<Excluded>,
}

/// A configuration with where it comes from.
struct Found {
    id: String,
    origin: &'static str,
    test_only: bool,
    instance: Rc<Instance>,
    /// An argument of the launch function that is given beside it.
    forced: Option<(String, bool)>,
    at: Span,
}

/// What the launch function makes of a candidate, for all rows of a shape.
#[derive(Clone, Default)]
struct Outcome {
    stop: Option<NotEvaluated>,
    workspace: Option<i64>,
    /// Bytes of operand tiles: held once, and once per stage.
    lds: Option<(i64, i64)>,
    /// What is launched, by rows.
    launches: Vec<(i128, String)>,
}

/// Lists candidates; `None` if there is no launch function or no class of configurations to list them for.
#[must_use]
pub fn list(evaluator: &mut Evaluator<'_>, input: &Input<'_>, modules: &Modules<'_>) -> Option<Candidates> {
    let launcher = input.evaluation.launcher.as_ref()?;
    let (_, Some(at)) = lookup(evaluator, modules.find, input.declared.launcher.as_ref()?, modules.place).ok()? else { return None };
    let (Value::Function(closure), Some(class)) = (launcher, input.evaluation.class.as_ref()) else { return None };
    let selector = input.declared.selector.rsplit('.').next().unwrap_or_default();
    let mut excluded = input.excluded.clone();
    let (found, lost) = find(evaluator, input, modules, class);
    excluded.extend(lost);
    let parameter = parameter_for(&closure.function, selector);
    if parameter.is_none() {
        let why = format!("no parameter of `{}` takes what `{selector}` answers, so nothing can replace it", closure.function.name);
        excluded.push(Excluded { what: "every configuration but the baseline's".to_owned(), why, at: Some((modules.place)(at)) });
    }
    // Arguments that may vary besides the fields: switches only, since nothing says which other values there are.
    let Value::Class(class) = class else { return None };
    let mut switches = Vec::new();
    for name in input.declared.may_vary.iter().filter(|name| !class.fields.iter().any(|field| field.name == **name)) {
        let default = closure.function.params.iter().zip(&closure.defaults).find(|(param, _)| param.name == *name).map(|(_, value)| value);
        match default {
            Some(Some(Value::None | Value::Bool(_))) => switches.push(name.clone()),
            Some(_) => excluded.push(Excluded {
                what: format!("values of `{name}`"),
                why: "its default is no switch, and the sources do not say which other values it takes".to_owned(),
                at: Some((modules.place)(at)),
            }),
            None => excluded.push(Excluded {
                what: format!("values of `{name}`"),
                why: format!("neither `{}` nor `{}` has it", class.class.name, closure.function.name),
                at: Some((modules.place)(input.declared.span)),
            }),
        }
    }
    let mut rows = Vec::new();
    if let Some(parameter) = &parameter {
        let judge = Judge { input, parameter, launcher, at, place: modules.place };
        for one in found {
            let plain = judge.outcomes(evaluator, &one);
            let test_only = one.test_only;
            rows.push(judge.row(&one, &plain, None, &rows));
            for switch in switches.iter().filter(|_| !test_only) {
                for on in [true, false] {
                    let word = if on { "True" } else { "False" };
                    let forced = Found {
                        id: format!("{}, {switch}={word}", one.id),
                        instance: one.instance.clone(),
                        forced: Some((switch.clone(), on)),
                        ..one
                    };
                    let outcomes = judge.outcomes(evaluator, &forced);
                    rows.push(judge.row(&forced, &outcomes, Some((&one.id, &plain)), &rows));
                }
            }
        }
    }
    excluded.sort();
    excluded.dedup();
    Some(Candidates {
        contract: input.declared.contract.clone(),
        may_vary: input.declared.may_vary.clone(),
        pinned: input.declared.pinned.clone(),
        rows,
        excluded,
    })
}

/// Every configuration that the sources build: named ones of the selection function's module, then those of other modules, tests last.
fn find(evaluator: &mut Evaluator<'_>, input: &Input<'_>, modules: &Modules<'_>, class: &Value) -> (Vec<Found>, Vec<Excluded>) {
    let origin = |id: &str, test: bool| match (test, id.contains('[')) {
        (true, _) => "test-table",
        (false, true) => "table",
        (false, false) => "constant",
    };
    let own = input.declared.selector.rsplit_once('.').and_then(|(module, _)| (modules.find)(module));
    let mut out: Vec<Found> = Vec::new();
    let mut made: BTreeSet<Span> = BTreeSet::new();
    let Value::Class(of) = class else { return (out, Vec::new()) };
    let mut lost = Vec::new();
    let mut others = (input.naming)(&of.class.name);
    others.sort_by_key(|(module, test)| (*test, Some(*module) != own, *module));
    for (module, test) in others {
        let named: Vec<Configuration> = if Some(module) == own {
            input.evaluation.configurations.clone()
        } else {
            configurations(evaluator, module, &(modules.names)(module), Some(class))
        };
        for one in named {
            made.insert(one.instance.made);
            let id = if Some(module) == own { one.name } else { format!("{}.{}", (input.name_of)(module), one.name) };
            out.push(Found { origin: origin(&id, test), id, test_only: test, instance: one.instance, forced: None, at: one.at });
        }
        for (at, value) in evaluator.constructions(module, of) {
            if made.contains(&at) {
                continue;
            }
            let place = (modules.place)(at);
            match value {
                Ok(Value::Instance(instance)) => {
                    let id = format!("{}:{}", place.path, place.line);
                    let origin = if test { "test-table" } else { "table" };
                    out.push(Found { origin, id, test_only: test, instance, forced: None, at });
                }
                Ok(_) => {}
                Err(stop) => lost.push(Excluded {
                    what: format!("a `{}` that is built here", of.class.name),
                    why: format!("its fields are not known: {}", stop.construct),
                    at: Some(place),
                }),
            }
        }
    }
    (out, lost)
}

struct Judge<'j, 'a> {
    input: &'j Input<'a>,
    parameter: &'j str,
    launcher: &'j Value,
    at: Span,
    place: PlaceOf<'j>,
}

impl Judge<'_, '_> {
    /// What the launch function does for each shape, in order. Equal GEMMs are evaluated once.
    fn outcomes(&self, evaluator: &mut Evaluator<'_>, found: &Found) -> Vec<Outcome> {
        let mut known: BTreeMap<String, Outcome> = BTreeMap::new();
        let mut out = Vec::new();
        for shape in self.input.shapes {
            let key = format!("{:?} {:?}", shape.operands.iter().map(|own| (own.size, own.strides)).collect::<Vec<_>>(), shape.rows);
            let outcome = known.entry(key).or_insert_with(|| self.outcome(evaluator, found, shape));
            out.push(outcome.clone());
        }
        out
    }

    fn outcome(&self, evaluator: &mut Evaluator<'_>, found: &Found, shape: &ShapeRow) -> Outcome {
        let mut out = Outcome { workspace: Some(0), ..Outcome::default() };
        let Some(args) = operands(shape, self.input.dtype) else { return Outcome::default() };
        let mut named = vec![(self.parameter.to_owned(), Value::Instance(found.instance.clone()))];
        named.extend(found.forced.iter().map(|(name, on)| (name.clone(), Value::Bool(*on))));
        for piece in evaluator.pieces(self.launcher, (&args, &named), range(shape.rows), true, self.at) {
            let done = piece.outcome.and_then(|(answer, trace)| Ok((workspace(&answer, &trace)?, trace)));
            let (bytes, trace) = match done {
                Ok(done) => done,
                Err(stop) => return Outcome { stop: Some(not_evaluated(&stop, self.place)), ..Outcome::default() },
            };
            let ends = bytes.and_then(|bytes| match bytes.as_constant() {
                Some(constant) => Some(constant),
                None if piece.to >= UNBOUNDED => None,
                None => Some(bytes.at(piece.from)?.max(bytes.at(piece.to)?)),
            });
            let ends = ends.and_then(|bytes| i64::try_from(bytes).ok());
            out.workspace = out.workspace.zip(ends).map(|(a, b)| a.max(b));
            let lds = tiles(&trace, self.input.dtype);
            out.lds = match (out.lds, lds) {
                (Some((a, b)), Some((c, d))) => Some((a.max(c), b.max(d))),
                (known, new) => known.or(new),
            };
            let shown = launches(&trace);
            if out.launches.last().is_none_or(|(_, last)| *last != shown) {
                out.launches.push((piece.from, shown));
            }
        }
        out
    }

    /// `base`: the same configuration without the argument that is forced.
    fn row(&self, found: &Found, outcomes: &[Outcome], base: Option<(&String, &[Outcome])>, before: &[CandidateRow]) -> CandidateRow {
        let mut fields = fields_of(&Value::Instance(found.instance.clone()));
        fields.extend(found.forced.iter().map(|(name, on)| Field { name: name.clone(), value: Value::Bool(*on).shown() }));
        let at = (self.place)(found.at);
        let twin = before.iter().find(|row| !row.test_only && row.fields == fields);
        let mut cells = Vec::new();
        for ((place, shape), outcome) in self.input.shapes.iter().enumerate().zip(outcomes) {
            let mut against: Vec<Cited<String>> = Vec::new();
            let mut no = |value: String, at: Place| against.push(Cited { value, at: vec![at] });
            if found.test_only {
                no("only tests build it".to_owned(), at.clone());
            }
            if let Some(twin) = twin {
                no(format!("it is `{}` again: all fields are equal", twin.id), twin.at.clone());
            }
            if let Some((id, base)) = base
                && outcome.stop.is_none()
                && base.get(place).is_some_and(|base| base.stop.is_none() && base.launches == outcome.launches)
            {
                no(format!("it launches what `{id}` launches without the argument"), (self.place)(self.at));
            }
            self.limits(shape, outcome, &mut no);
            self.fixed_fields(shape, &fields, &mut no);
            let evidence = self.evidence(shape, found);
            let missing = self.missing(outcome, &evidence);
            let admissible = against.is_empty();
            if admissible {
                let vary: Vec<&str> = self.input.declared.may_vary.iter().map(String::as_str).collect();
                let value = format!(
                    "the launch was evaluated with it for every row, and it differs from the baseline at most in {}",
                    vary.join(", ")
                );
                against.push(Cited { value, at: vec![at.clone(), (self.place)(self.at)] });
            }
            cells.push(CandidateCell {
                shape: shape.id.clone(),
                admissible,
                why: against,
                baseline: found.forced.is_none() && self.picked(shape).any(|interval| interval.configuration.as_ref() == Some(&found.id)),
                workspace_bytes: outcome.workspace,
                lds_bytes: outcome.lds.map(|(_, most)| most),
                evidence: evidence.iter().map(|item| item.reference.id.clone()).collect(),
                missing,
            });
        }
        CandidateRow { id: found.id.clone(), origin: found.origin.to_owned(), test_only: found.test_only, fields, cells, at }
    }

    fn picked(&self, shape: &ShapeRow) -> impl Iterator<Item = &super::Interval> {
        self.input.evaluation.baseline.rows.iter().filter(|row| row.shape == shape.id).flat_map(|row| &row.intervals)
    }

    /// What does not fit.
    fn limits(&self, shape: &ShapeRow, outcome: &Outcome, no: &mut dyn FnMut(String, Place)) {
        let launch = || (self.place)(self.at);
        if let Some(stop) = &outcome.stop {
            no(format!("the launch could not be evaluated with it: {}", stop.construct), stop.at.clone().unwrap_or_else(launch));
            return;
        }
        match (outcome.workspace, self.input.decision.memory_budget) {
            (Some(bytes), Some(budget)) if bytes > budget.value => {
                no(format!("its workspace of {bytes} bytes is above the budget of {}", budget.value), (self.place)(budget.span));
            }
            (None, _) => no(format!("nothing bounds its workspace for the rows of {}", shape.phase), launch()),
            _ => {}
        }
        if let (Some((least, _)), Some(limit)) = (outcome.lds, self.input.decision.lds)
            && least > limit.value
        {
            no(
                format!("one pair of operand tiles takes {least} bytes of LDS, and a workgroup has {}", limit.value),
                (self.place)(limit.span),
            );
        }
    }

    /// Fields that may not vary have the baseline's values.
    fn fixed_fields(&self, shape: &ShapeRow, fields: &[Field], no: &mut dyn FnMut(String, Place)) {
        let may = |name: &str| self.input.declared.may_vary.iter().any(|own| own == name);
        for field in fields.iter().filter(|field| !may(&field.name)) {
            let other = self.picked(shape).find_map(|interval| {
                let own = interval.fields.iter().find(|own| own.name == field.name && own.value != field.value)?;
                Some((own, interval.at.first()))
            });
            if let Some((own, at)) = other {
                let text = format!("its {} is {}, which may not vary, and the baseline's is {}", field.name, field.value, own.value);
                no(text, at.cloned().unwrap_or_else(|| (self.place)(self.input.declared.span)));
            }
        }
    }

    /// Evidence that counts, covers the shape and names these very fields. None speaks of a forced argument.
    fn evidence(&self, shape: &ShapeRow, found: &Found) -> Vec<&Item> {
        let number = |name: &&str| {
            let place = found.instance.class.fields.iter().position(|field| field.name == **name)?;
            found.instance.fields.get(place)?.shown().parse::<i64>().ok()
        };
        let tile: Option<Vec<i64>> = TILE.iter().map(number).collect();
        let Some(tile) = tile.and_then(|tile| Tile::try_from(tile).ok()).filter(|_| found.forced.is_none()) else { return Vec::new() };
        let fits = |item: &&Item| {
            item.counts()
                && item.covers.iter().any(|(covered, _)| *covered == shape.id)
                && item.statements.tiles.iter().any(|stated| stated.value == tile)
        };
        self.input.evidence.iter().filter(fits).collect()
    }

    fn missing(&self, outcome: &Outcome, evidence: &[&Item]) -> Vec<String> {
        let mut out = Vec::new();
        let mut need = |text: String| out.push(text);
        if evidence.is_empty() {
            need("evidence that counts for this shape and configuration".to_owned());
        }
        if !evidence.iter().any(|item| item.comparisons().is_some_and(|(strict, _)| strict == Comparison::RawBits)) {
            need("a comparison of raw bits with the baseline".to_owned());
        }
        match (outcome.lds, self.input.decision.lds) {
            (Some((_, most)), Some(limit)) if most > limit.value => {
                need(format!(
                    "the LDS of its compiled code: {most} bytes at most by its tiles and stages, and a workgroup has {}",
                    limit.value
                ));
            }
            (None, _) => need("sizes of its operand tiles".to_owned()),
            (_, None) => need("a declared size of LDS".to_owned()),
            _ => {}
        }
        if self.input.decision.memory_budget.is_none() {
            need("a declared memory budget".to_owned());
        }
        // Nothing reads certificates yet: naming a file is no certificate.
        need("a certificate".to_owned());
        out
    }
}

/// Bytes of the operand tiles of a run's largest launch: held once, and held once per stage.
fn tiles(trace: &Trace, dtype: &str) -> Option<(i64, i64)> {
    let bytes = element_bytes(&format!("torch.{dtype}"))?;
    let sizes = trace.launches.iter().filter_map(|launched| {
        let option = |name: &str| {
            let value = launched.options.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)?;
            if let Value::Number(number) = value { number.as_constant() } else { None }
        };
        let once = option("block_m")?.checked_add(option("block_n")?)?.checked_mul(option("block_k")?)?.checked_mul(bytes)?;
        let most = once.checked_mul(option("num_stages")?.max(1))?;
        Some((i64::try_from(once).ok()?, i64::try_from(most).ok()?))
    });
    sizes.max()
}

fn launches(trace: &Trace) -> String {
    let one = |launched: &super::eval::Launched| {
        let grid: Vec<String> = launched.grid.iter().map(super::eval::number::Number::formula).collect();
        let options: Vec<String> = launched.options.iter().map(|(name, value)| format!("{name}={}", value.shown())).collect();
        format!("{}[{}]({})", launched.kernel, grid.join(", "), options.join(", "))
    };
    trace.launches.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Kernels of another contract or of none, other vendors' fronts, and look-alikes.
#[must_use]
pub fn excluded(
    families: &[Family],
    routes: &[Routes],
    program: &Program,
    contract: &str,
    backend: &str,
    place: PlaceOf<'_>,
) -> Vec<Excluded> {
    let defined = |name: &str| {
        let scope = program.find_scope(name)?;
        Some(place(program.span(scope, program.scope(scope).range)))
    };
    let foreign = |name: &str| {
        let mut parts = name.split('.');
        parts.find(|part| *part != backend && BACKENDS.contains(part)).map(str::to_owned)
    };
    let mut out = Vec::new();
    for (family, routes) in families.iter().zip(routes) {
        for name in &family.sinks {
            let called = routes.callsites.iter().find(|row| row.kernels.iter().any(|kernel| fits(name, kernel)));
            let at = defined(name).or_else(|| called.map(|row| place(row.span)));
            let own = family.contracts.iter().find(|(pattern, _)| fits(pattern, name)).map(|(_, own)| own.as_str());
            let why = match own {
                Some(own) if own == contract => continue,
                Some(own) => format!("its contract is `{own}`, another arithmetic"),
                None => "the profile gives it no contract".to_owned(),
            };
            out.push(Excluded { what: name.clone(), why, at: Some(at.unwrap_or_else(|| place(family.span))) });
        }
        for name in &family.facades {
            if let Some(other) = foreign(name) {
                let at = defined(name).unwrap_or_else(|| place(family.span));
                out.push(Excluded { what: name.clone(), why: format!("it is made for backend `{other}`, not `{backend}`"), at: Some(at) });
            }
        }
        for name in &family.lookalikes {
            let at = defined(name).unwrap_or_else(|| place(family.span));
            let why = "it looks like the family and follows no contract of it".to_owned();
            out.push(Excluded { what: name.clone(), why, at: Some(at) });
        }
    }
    out
}
