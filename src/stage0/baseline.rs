//! The static baseline: what the pinned selection function answers for every shape, and what the launch function makes of it.
//!
//! In: shapes, and the evaluator's facts. Out: [`Baseline`]. Nothing is copied from a table: both functions are evaluated. The selection has to be
//! pure; the launch may call what is not known as long as no grid, branch or allocation depends on it. Refused: nothing; what stopped an evaluation stands in the cells that it hides. What else makes
//! Triton compile again (alignment of pointers, divisibility of sizes) is not modelled.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::eval::number::Number;
use super::eval::value::{Instance, Stop, Tensor, Value};
use super::eval::{Evaluator, Launched, Piece, Trace, UNBOUNDED};
use super::{
    Baseline, BaselineRow, Cited, ConstantRow, Dim, Field, Interval, Launch, NotEvaluated, PinnedRow, Place, Rows, ServedRows, ShapeRow,
    Specialization,
};
use crate::names::ModuleId;
use crate::profile::workload::{Evaluated, Region};
use crate::text::Span;

/// A configuration that the sources define, with its value.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Name, or the class with its fields.
    pub name: String,
    /// The value.
    pub instance: Rc<Instance>,
    /// Definition.
    pub at: Span,
}

/// The baseline, and what candidates are judged by.
#[derive(Debug)]
pub struct Evaluation {
    /// The document.
    pub baseline: Baseline,
    /// Configurations of the selection function's module.
    pub configurations: Vec<Configuration>,
    /// The launch function.
    pub launcher: Option<Value>,
    /// The class of configurations.
    pub class: Option<Value>,
}

/// What turns spans into places.
pub type PlaceOf<'a> = &'a dyn Fn(Span) -> Place;

/// Number for a dimension.
#[must_use]
pub fn number(dim: Dim) -> Number {
    match dim {
        Dim::Fixed(value) => Number::constant(i128::from(value)),
        Dim::Rows(factor) => Number::Line { slope: i128::from(factor), offset: 0 },
    }
}

/// Range of rows as the evaluator takes it.
#[must_use]
pub fn range(rows: Rows) -> (i128, i128) {
    (i128::from(rows.from), rows.to.map_or(UNBOUNDED, i128::from))
}

fn rows(from: i128, to: i128) -> Rows {
    let small = |value: i128| i64::try_from(value).unwrap_or(i64::MAX);
    Rows { from: small(from), to: (to < UNBOUNDED).then(|| small(to)) }
}

pub(super) fn not_evaluated(stop: &Stop, place: PlaceOf<'_>) -> NotEvaluated {
    NotEvaluated { construct: stop.construct.clone(), at: Some(place(stop.at)) }
}

/// A name of a module by its dotted name.
///
/// # Errors
/// If no module of the sources has it, or its value could not be evaluated.
pub fn lookup(
    evaluator: &mut Evaluator<'_>,
    find: &dyn Fn(&str) -> Option<ModuleId>,
    dotted: &str,
    place: PlaceOf<'_>,
) -> Result<(Value, Option<Span>), NotEvaluated> {
    let missing = || NotEvaluated { construct: format!("no module of the sources defines `{dotted}`"), at: None };
    let (module, name) = dotted.rsplit_once('.').ok_or_else(missing)?;
    let module = find(module).ok_or_else(missing)?;
    let Some(at) = evaluator.definition(module, name) else { return Err(missing()) };
    match evaluator.global(module, name) {
        Ok(value) => Ok((value, Some(at))),
        Err(stop) => Err(not_evaluated(&stop, place)),
    }
}

fn fields(instance: &Instance) -> Vec<Field> {
    let pairs = instance.class.fields.iter().zip(&instance.fields);
    pairs.map(|(field, value)| Field { name: field.name.clone(), value: value.shown() }).collect()
}

/// Fields of a configuration.
#[must_use]
pub fn fields_of(value: &Value) -> Vec<Field> {
    match value {
        Value::Instance(instance) => fields(instance),
        Value::Sequence(items) => items.iter().enumerate().map(|(at, item)| Field { name: at.to_string(), value: item.shown() }).collect(),
        _ => Vec::new(),
    }
}

/// Arguments of the launch function: the operands as tensors.
#[must_use]
pub fn operands(shape: &ShapeRow, dtype: &str) -> Option<Vec<Value>> {
    let tensor = |place: usize| {
        let operand = shape.operands.get(place)?;
        let tensor = Tensor {
            size: operand.size.iter().map(|dim| number(*dim)).collect(),
            strides: operand.strides.iter().map(|dim| number(*dim)).collect(),
            dtype: format!("torch.{dtype}"),
            allocation: None,
        };
        Some(Value::Tensor(Rc::new(tensor)))
    };
    Some(vec![tensor(0)?, tensor(1)?])
}

/// Bytes of all allocations but the one that is returned.
///
/// # Errors
/// What hides the bytes of one.
pub fn workspace(answer: &Value, trace: &Trace) -> Result<Option<Number>, Stop> {
    let returned = match answer {
        Value::Tensor(tensor) => tensor.allocation,
        _ => None,
    };
    let mut total = Number::constant(0);
    for (place, bytes) in trace.allocations.iter().enumerate() {
        if Some(place) == returned {
            continue;
        }
        match bytes {
            Ok(bytes) => match total.plus(bytes) {
                Some(sum) => total = sum,
                None => return Ok(None),
            },
            Err(stop) => return Err(stop.clone()),
        }
    }
    Ok(Some(total))
}

fn at_ends(number: &Number, from: i128, to: i128) -> Option<(i64, Option<i64>)> {
    let small = |size: i128| number.at(size).and_then(|value| i64::try_from(value).ok());
    Some((small(from)?, if to < UNBOUNDED { Some(small(to)?) } else { None }))
}

fn options(launched: &Launched) -> Vec<Field> {
    launched.options.iter().map(|(name, value)| Field { name: name.clone(), value: value.shown() }).collect()
}

/// A launch for the document; its grid at the ends of an interval is filled in when the interval is complete.
fn launch(launched: &Launched, place: PlaceOf<'_>) -> Launch {
    Launch {
        kernel: launched.kernel.clone(),
        grid: launched.grid.iter().map(Number::formula).collect(),
        grid_at: (Vec::new(), None),
        options: options(launched),
        at: place(launched.at),
    }
}

/// An interval that is still growing.
struct Growing {
    from: i128,
    to: i128,
    interval: Interval,
    grids: Vec<Vec<Number>>,
    workspace: Option<Number>,
}

impl Growing {
    fn finish(mut self) -> Interval {
        self.interval.rows = rows(self.from, self.to);
        let ends = |grid: &[Number], size: i128| -> Option<Vec<i64>> {
            grid.iter().map(|number| number.at(size).and_then(|value| i64::try_from(value).ok())).collect()
        };
        for (launch, grid) in self.interval.launches.iter_mut().zip(&self.grids) {
            let last = if self.to < UNBOUNDED { ends(grid, self.to) } else { None };
            launch.grid_at = (ends(grid, self.from).unwrap_or_default(), last);
        }
        self.interval.workspace_bytes = self.workspace.as_ref().and_then(|number| at_ends(number, self.from, self.to));
        self.interval
    }
}

/// Joins neighbours with the same answer. Options that come back to an earlier value while everything else stays the same (a flag for sizes that divide
/// evenly, say) would cut a range into hundreds of pieces; there one interval lists all their values.
fn join(parts: Vec<Growing>) -> Vec<Interval> {
    let mut runs: Vec<Vec<Growing>> = Vec::new();
    for part in parts {
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|last| same(&last.interval, &part.interval)) => match run.last_mut() {
                Some(last) if last.interval.launches == part.interval.launches => absorb(last, part),
                _ => run.push(part),
            },
            _ => runs.push(vec![part]),
        }
    }
    let mut out = Vec::new();
    for run in runs {
        let returns = (0..run.len()).any(|at| run[..at].iter().any(|before| before.interval.launches == run[at].interval.launches));
        let mut parts = run.into_iter();
        if returns && let Some(mut all) = parts.next() {
            for part in parts {
                for (launch, other) in all.interval.launches.iter_mut().zip(&part.interval.launches) {
                    for (option, other) in launch.options.iter_mut().zip(&other.options) {
                        if !option.value.split(" or ").any(|known| known == other.value) {
                            option.value = format!("{} or {}", option.value, other.value);
                        }
                    }
                }
                absorb(&mut all, part);
            }
            out.push(all.finish());
        } else {
            out.extend(parts.map(Growing::finish));
        }
    }
    out
}

fn absorb(all: &mut Growing, part: Growing) {
    all.to = part.to;
    for at in part.interval.at {
        if !all.interval.at.contains(&at) {
            all.interval.at.push(at);
        }
    }
}

/// Whether two intervals give the same answer, whatever the values of launch options. The places that led there do not count.
fn same(a: &Interval, b: &Interval) -> bool {
    let shape = |interval: &Interval| -> Vec<(String, Vec<String>, Vec<String>)> {
        let names = |launch: &Launch| launch.options.iter().map(|option| option.name.clone()).collect();
        interval.launches.iter().map(|launch| (launch.kernel.clone(), launch.grid.clone(), names(launch))).collect()
    };
    a.configuration == b.configuration
        && a.fields == b.fields
        && a.schedule == b.schedule
        && a.chunks == b.chunks
        && a.workspace == b.workspace
        && a.not_evaluated == b.not_evaluated
        && shape(a) == shape(b)
}

/// What evaluates one shape.
struct Functions<'v> {
    selector: &'v Value,
    launcher: Option<&'v Value>,
    chunk: Option<i128>,
    dtype: &'v str,
    selector_at: Span,
    launcher_at: Option<Span>,
}

fn empty() -> Interval {
    Interval {
        rows: Rows { from: 0, to: None },
        configuration: None,
        fields: Vec::new(),
        schedule: None,
        chunks: None,
        launches: Vec::new(),
        workspace: None,
        workspace_bytes: None,
        not_evaluated: None,
        at: Vec::new(),
    }
}

fn selected(value: &Value, tests: &[Span], place: PlaceOf<'_>) -> Interval {
    let mut at = Vec::new();
    if let Value::Instance(instance) = value {
        at.push(place(instance.made));
    }
    at.extend(tests.iter().map(|span| place(*span)));
    Interval { configuration: Some(value.shown()), fields: fields_of(value), at, ..empty() }
}

/// Rows of shapes by kernel and options.
type Binaries = BTreeMap<(String, Vec<Field>), Vec<ServedRows>>;

fn row(
    evaluator: &mut Evaluator<'_>,
    functions: &Functions<'_>,
    shape: &ShapeRow,
    binaries: &mut Binaries,
    place: PlaceOf<'_>,
) -> BaselineRow {
    let args = [shape.m, shape.n, shape.k].map(|dim| Value::Number(number(dim)));
    let chosen = evaluator.pieces(functions.selector, (&args, &[]), range(shape.rows), false, functions.selector_at);
    let mut parts: Vec<Growing> = Vec::new();
    for piece in chosen {
        match &piece.outcome {
            Err(stop) => {
                let interval = Interval { not_evaluated: Some(not_evaluated(stop, place)), ..empty() };
                parts.push(Growing { from: piece.from, to: piece.to, interval, grids: Vec::new(), workspace: None });
            }
            Ok((value, trace)) => parts.extend(launches(evaluator, functions, shape, &piece, value, trace, place)),
        }
    }
    for part in &parts {
        for launch in &part.interval.launches {
            let served = ServedRows { shape: shape.id.clone(), rows: rows(part.from, part.to) };
            let list = binaries.entry((launch.kernel.clone(), launch.options.clone())).or_default();
            match list.last_mut() {
                // Rows between that launch it with other options are listed there.
                Some(last) if last.shape == served.shape => last.rows.to = served.rows.to,
                _ => list.push(served),
            }
        }
    }
    let intervals = join(parts);
    let stopped = intervals.iter().find_map(|interval| interval.not_evaluated.clone().filter(|_| interval.configuration.is_none()));
    BaselineRow { shape: shape.id.clone(), intervals, not_evaluated: stopped }
}

/// What is launched for the rows of one piece of the selection.
fn launches(
    evaluator: &mut Evaluator<'_>,
    functions: &Functions<'_>,
    shape: &ShapeRow,
    piece: &Piece<(Value, Trace)>,
    value: &Value,
    trace: &Trace,
    place: PlaceOf<'_>,
) -> Vec<Growing> {
    let base = selected(value, &trace.tests, place);
    let whole = |interval: Interval| vec![Growing { from: piece.from, to: piece.to, interval, grids: Vec::new(), workspace: None }];
    let Some((launcher, at)) = functions.launcher.zip(functions.launcher_at) else { return whole(base) };
    let Some(args) = operands(shape, functions.dtype) else { return whole(base) };
    let chunks = functions.chunk.and_then(|chunk| {
        let shifted = number(shape.k).plus(&Number::constant(chunk - 1))?;
        shifted.over(chunk)
    });
    let mut out = Vec::new();
    for part in evaluator.pieces(launcher, (&args, &[]), (piece.from, piece.to), true, at) {
        let mut interval = Interval { chunks: chunks.as_ref().map(Number::formula), ..base.clone() };
        let mut grids = Vec::new();
        let mut bytes = None;
        match &part.outcome {
            Err(stop) => interval.not_evaluated = Some(not_evaluated(stop, place)),
            Ok((answer, trace)) => {
                for test in &trace.tests {
                    let at = place(*test);
                    if !interval.at.contains(&at) {
                        interval.at.push(at);
                    }
                }
                interval.schedule = Some(if trace.launches.len() > 1 { "split" } else { "single" }.to_owned());
                interval.launches = trace.launches.iter().map(|launched| launch(launched, place)).collect();
                grids = trace.launches.iter().map(|launched| launched.grid.clone()).collect();
                match workspace(answer, trace) {
                    Ok(Some(number)) => {
                        interval.workspace = Some(number.formula());
                        bytes = Some(number);
                    }
                    Ok(None) => {}
                    Err(stop) => interval.not_evaluated = Some(not_evaluated(&stop, place)),
                }
            }
        }
        out.push(Growing { from: part.from, to: part.to, interval, grids, workspace: bytes });
    }
    out
}

/// Configurations that a module holds by name, also inside its tables, in order of place.
pub(super) fn configurations(
    evaluator: &mut Evaluator<'_>,
    module: ModuleId,
    names: &[String],
    class: Option<&Value>,
) -> Vec<Configuration> {
    let mut out: Vec<Configuration> = Vec::new();
    for name in names {
        let Some(at) = evaluator.definition(module, name) else { continue };
        let Ok(value) = evaluator.global(module, name) else { continue };
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            match value {
                Value::Instance(instance) => {
                    let fits = match class {
                        Some(Value::Class(class)) => Rc::ptr_eq(class, &instance.class),
                        _ => true,
                    };
                    let own = instance.name.as_ref().is_some_and(|own| own == name || own.starts_with(&format!("{name}[")));
                    if fits && own {
                        out.push(Configuration { name: instance.shown(), instance, at });
                    }
                }
                Value::Sequence(items) => open.extend(items.iter().rev().cloned()),
                Value::Dict(items) => open.extend(items.iter().rev().map(|(_, item)| item.clone())),
                _ => {}
            }
        }
    }
    out.sort_by_key(|configuration| configuration.at);
    out
}

/// Whether a constant's name holds a word between underscores.
fn named_after(name: &str, word: &str) -> bool {
    let parts = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).map(str::to_lowercase).collect()
    };
    let (name, word) = (parts(name), parts(word));
    !word.is_empty() && name.windows(word.len()).any(|window| window == word.as_slice())
}

/// Everything about the modules that is not in the evaluator.
pub struct Modules<'a> {
    /// Module by dotted name.
    pub find: &'a dyn Fn(&str) -> Option<ModuleId>,
    /// Names that a module binds, sorted.
    pub names: &'a dyn Fn(ModuleId) -> Vec<String>,
    /// Places.
    pub place: PlaceOf<'a>,
}

/// A baseline of which nothing was evaluated.
#[must_use]
pub fn nothing(shapes: &[ShapeRow], why: &str) -> Baseline {
    let stop = NotEvaluated { construct: why.to_owned(), at: None };
    Baseline {
        selector: None,
        launcher: None,
        rows: shapes.iter().map(|shape| unknown_row(shape, &stop)).collect(),
        constants: Vec::new(),
        specializations: Vec::new(),
        warmup_not_evaluated: Some(stop),
        pinned: Vec::new(),
        assumed: Vec::new(),
    }
}

/// Evaluates the baseline for all shapes.
pub fn evaluate(
    evaluator: &mut Evaluator<'_>,
    declared: &Evaluated,
    dtype: &str,
    shapes: &[ShapeRow],
    regions: &[Region],
    modules: &Modules<'_>,
) -> Evaluation {
    let place = modules.place;
    let mut baseline = Baseline {
        selector: None,
        launcher: None,
        rows: Vec::new(),
        constants: Vec::new(),
        specializations: Vec::new(),
        warmup_not_evaluated: None,
        pinned: Vec::new(),
        assumed: Vec::new(),
    };
    for dotted in &declared.pinned {
        let value = lookup(evaluator, modules.find, dotted, place);
        baseline.pinned.push(match value {
            Ok((value, at)) => PinnedRow { name: dotted.clone(), value: Some(value.shown()), not_evaluated: None, at: at.map(place) },
            Err(stop) => PinnedRow { name: dotted.clone(), value: None, at: stop.at.clone(), not_evaluated: Some(stop) },
        });
    }
    let chunk = declared.pinned.iter().find(|name| name.ends_with(".CHUNK_K")).and_then(|name| {
        match lookup(evaluator, modules.find, name, place) {
            Ok((Value::Number(number), _)) => number.as_constant().filter(|chunk| *chunk > 0),
            _ => None,
        }
    });
    let selector = lookup(evaluator, modules.find, &declared.selector, place);
    let launcher = declared.launcher.as_ref().map(|name| (name, lookup(evaluator, modules.find, name, place)));
    let (selector, selector_at) = match selector {
        Ok((value, at)) => (value, at),
        Err(stop) => {
            baseline.rows = shapes.iter().map(|shape| unknown_row(shape, &stop)).collect();
            return Evaluation { baseline, configurations: Vec::new(), launcher: None, class: None };
        }
    };
    baseline.selector = selector_at.map(|at| Cited { value: declared.selector.clone(), at: vec![place(at)] });
    evaluator.watch(&selector);
    let mut launcher_value = None;
    let mut launcher_stop = None;
    let mut launcher_at = None;
    match launcher {
        Some((name, Ok((value, at)))) => {
            baseline.launcher = at.map(|at| Cited { value: name.clone(), at: vec![place(at)] });
            launcher_at = at;
            launcher_value = Some(value);
        }
        Some((_, Err(stop))) => launcher_stop = Some(stop),
        None => {}
    }
    let Some(at) = selector_at else { return Evaluation { baseline, configurations: Vec::new(), launcher: None, class: None } };
    let functions = Functions { selector: &selector, launcher: launcher_value.as_ref(), chunk, dtype, selector_at: at, launcher_at };
    let mut binaries = Binaries::new();
    for shape in shapes {
        let mut row = row(evaluator, &functions, shape, &mut binaries, place);
        if let Some(stop) = &launcher_stop {
            for interval in row.intervals.iter_mut().filter(|interval| interval.not_evaluated.is_none()) {
                interval.not_evaluated = Some(stop.clone());
            }
        }
        baseline.rows.push(row);
    }
    // The class of configurations is that of the first answer.
    let class = first_class(evaluator, &selector, at);
    let module = declared.selector.rsplit_once('.').and_then(|(module, _)| (modules.find)(module));
    let configurations =
        module.map(|module| configurations(evaluator, module, &(modules.names)(module), class.as_ref())).unwrap_or_default();
    let warmed = declared.warmup.as_ref().map(|name| warmup(evaluator, name, modules));
    constants(&mut baseline, &configurations, shapes, regions, warmed.as_ref(), place);
    specializations(&mut baseline, binaries, warmed.as_ref(), place);
    if let Some(Err(stop)) = &warmed {
        baseline.warmup_not_evaluated = Some(stop.clone());
    }
    baseline.assumed = evaluator.assumed().iter().map(|(at, words)| Cited { value: words.clone(), at: vec![place(*at)] }).collect();
    Evaluation { baseline, configurations, launcher: launcher_value, class }
}

fn unknown_row(shape: &ShapeRow, stop: &NotEvaluated) -> BaselineRow {
    let interval = Interval { rows: shape.rows, not_evaluated: Some(stop.clone()), ..empty() };
    BaselineRow { shape: shape.id.clone(), intervals: vec![interval], not_evaluated: Some(stop.clone()) }
}

fn first_class(evaluator: &mut Evaluator<'_>, selector: &Value, at: Span) -> Option<Value> {
    let one = || Value::int(1);
    let pieces = evaluator.pieces(selector, (&[one(), one(), one()], &[]), (1, 1), false, at);
    match pieces.into_iter().next()?.outcome.ok()?.0 {
        Value::Instance(instance) => Some(Value::Class(instance.class.clone())),
        _ => None,
    }
}

/// What warmup compiles.
struct Warmed {
    selections: Vec<(Value, Span)>,
    launches: Vec<(String, Vec<Field>, Span)>,
}

fn warmup(evaluator: &mut Evaluator<'_>, name: &str, modules: &Modules<'_>) -> Result<Warmed, NotEvaluated> {
    let (function, at) = lookup(evaluator, modules.find, name, modules.place)?;
    let at = at.ok_or_else(|| NotEvaluated { construct: format!("no module of the sources defines `{name}`"), at: None })?;
    let device = Value::External("device".into());
    let count = match &function {
        Value::Function(closure) => closure.function.params.iter().filter(|param| param.default.is_none()).count(),
        _ => 1,
    };
    let args = vec![device; count];
    let pieces = evaluator.pieces(&function, (&args, &[]), (1, 1), true, at);
    let Some(piece) = pieces.into_iter().next() else {
        return Err(NotEvaluated { construct: "nothing was evaluated".to_owned(), at: None });
    };
    let (_, trace) = piece.outcome.map_err(|stop| not_evaluated(&stop, modules.place))?;
    // The first call is that of warmup itself; the second stands in it.
    let within = |calls: &[Span], own: Span| calls.get(1).copied().unwrap_or(own);
    Ok(Warmed {
        selections: trace.selections.iter().map(|(value, calls)| (value.clone(), within(calls, at))).collect(),
        launches: trace
            .launches
            .iter()
            .map(|launched| (launched.kernel.clone(), options(launched), within(&launched.calls, launched.at)))
            .collect(),
    })
}

fn constants(
    baseline: &mut Baseline,
    configurations: &[Configuration],
    shapes: &[ShapeRow],
    regions: &[Region],
    warmed: Option<&Result<Warmed, NotEvaluated>>,
    place: PlaceOf<'_>,
) {
    let complete = baseline.rows.iter().all(|row| row.not_evaluated.is_none());
    for configuration in configurations {
        let mut serves = Vec::new();
        for row in &baseline.rows {
            for interval in row.intervals.iter().filter(|interval| interval.configuration.as_ref() == Some(&configuration.name)) {
                match serves.last_mut() {
                    Some(ServedRows { shape, rows }) if *shape == row.shape && rows.to.is_some_and(|to| to + 1 == interval.rows.from) => {
                        rows.to = interval.rows.to;
                    }
                    _ => serves.push(ServedRows { shape: row.shape.clone(), rows: interval.rows }),
                }
            }
        }
        let named: Vec<String> = regions
            .iter()
            .filter(|region| region.words.iter().any(|word| named_after(&configuration.name, word)))
            .map(|region| region.id.clone())
            .collect();
        let region_of = |id: &str| shapes.iter().find(|shape| shape.id == id).map(|shape| shape.region.clone());
        let others: Vec<String> = serves
            .iter()
            .filter(|served| !named.is_empty() && region_of(&served.shape).is_some_and(|region| !named.contains(&region)))
            .map(|served: &ServedRows| served.shape.clone())
            .fold(Vec::new(), |mut all, shape| {
                if !all.contains(&shape) {
                    all.push(shape);
                }
                all
            });
        let reachable = if serves.is_empty() { complete.then_some(false) } else { Some(true) };
        let warmed_by = match warmed {
            Some(Ok(warmed)) => {
                let mut places: Vec<Place> = Vec::new();
                for (value, at) in &warmed.selections {
                    let at = place(*at);
                    if value.shown() == configuration.name && !places.contains(&at) {
                        places.push(at);
                    }
                }
                Some(places)
            }
            Some(Err(_)) => None,
            None => Some(Vec::new()),
        };
        baseline.constants.push(ConstantRow {
            name: configuration.name.clone(),
            fields: fields(&configuration.instance),
            named_after: named,
            serves,
            others,
            reachable,
            warmed_by,
            at: place(configuration.at),
        });
    }
}

fn specializations(baseline: &mut Baseline, found: Binaries, warmed: Option<&Result<Warmed, NotEvaluated>>, place: PlaceOf<'_>) {
    for ((kernel, options), serves) in found {
        let warmed_by = match warmed {
            Some(Ok(warmed)) => {
                let mut places: Vec<Place> = Vec::new();
                for (own, own_options, at) in &warmed.launches {
                    let at = place(*at);
                    if *own == kernel && *own_options == options && !places.contains(&at) {
                        places.push(at);
                    }
                }
                Some(places)
            }
            Some(Err(_)) => None,
            None => Some(Vec::new()),
        };
        baseline.specializations.push(Specialization { kernel, options, serves, warmed_by });
    }
}
