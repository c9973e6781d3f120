//! Evidence: what the files that a profile names really show, for this platform, table and workload.
//!
//! In: the profile's references, the pinned files, module facts, the history of their repositories, the workload's shapes. Out: one [`Item`] per reference, in
//! order, with what it states and why it does not count; and [`row`], the same as plain data. Refused: counting anything that was not shown: a test
//! without a record of its run, another vendor's device, a revision that nobody can look up.

use crate::names::Program;
use crate::profile::{EvidenceRef, Profile};
use crate::sources::history::History;
use crate::sources::{FileKind, LoadedFile, LoadedSource};
use crate::stage0::{Cited, Dim, EvidenceRow, Place, ShapeRow};
use crate::text::{FileId, Files, Span};

mod module;
pub mod statements;
mod tables;
#[cfg(test)]
mod tests;

pub use statements::{Comparison, Device, Shape, Stated, Statements};

/// Why an item does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The file is not among those that were read.
    Absent,
    /// It was made on another vendor's device, on another instruction set, or names devices of both.
    OtherPlatform,
    /// It names no device.
    NoPlatform,
    /// What it supports changed after it was made.
    Older,
    /// Its source is read from a folder, which has no revisions.
    Unpinned,
    /// It names no revision, and the history does not show its age either.
    NoRevision,
    /// Its revision cannot be compared with the pinned one.
    UnknownAge,
    /// It is a test without a record of its run, or with one that shows no success.
    Unrun,
    /// It measured a region with another shape than the workload's.
    OtherShape,
    /// No shape of the workload is among those that it states.
    NoShape,
    /// It was made with rollout scores used again.
    ScoreReuse,
    /// It allows a tolerance and compares nothing exactly.
    ToleranceOnly,
}

/// One reason, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// What kind of reason.
    pub fault: Fault,
    /// The reason, as one clause.
    pub text: String,
    /// Where it is stated; the profile's table where the file says nothing.
    pub at: Span,
}

/// What became of one reference.
#[derive(Clone, Debug)]
pub struct Item {
    /// The reference.
    pub reference: EvidenceRef,
    /// The file; `None` if it was not read.
    pub file: Option<FileId>,
    /// Its blob.
    pub blob: Option<String>,
    /// `report`, `test` or `result`.
    pub kind: &'static str,
    /// What it states.
    pub statements: Statements,
    /// What the record of its run states, with the file.
    pub run: Option<(FileId, Statements)>,
    /// Condition under which the whole test module is skipped.
    pub skip: Option<Stated<String>>,
    /// Revision that was found in the repository, with the file and line that name it.
    pub revision: Option<(String, Span)>,
    /// Ids of workload shapes that it covers, with the place.
    pub covers: Vec<(String, Span)>,
    /// Ids of workload shapes that it does not cover.
    pub lacks: Vec<String>,
    /// Why it does not count; empty if it does.
    pub reasons: Vec<Reason>,
}

impl Item {
    /// Whether it counts.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.reasons.is_empty()
    }

    /// The strictest way in which it compares results, and the laxest.
    #[must_use]
    pub fn comparisons(&self) -> Option<(Comparison, Comparison)> {
        let mut all = self.statements.comparisons.iter().map(|stated| stated.value);
        let first = all.next()?;
        Some(all.fold((first, first), |(strict, lax), own| (strict.min(own), lax.max(own))))
    }
}

/// What evidence is read from and compared with.
pub struct Ground<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// Sources as they were read.
    pub sources: &'a [LoadedSource],
    /// Texts.
    pub files: &'a Files,
    /// Modules.
    pub program: &'a Program,
    /// Shapes of the workload.
    pub shapes: &'a [ShapeRow],
}

/// Reads every reference of the profile, in order.
#[must_use]
pub fn read(ground: &Ground<'_>) -> Vec<Item> {
    ground.profile.evidence.iter().map(|reference| ground.item(reference)).collect()
}

impl Ground<'_> {
    fn loaded(&self, source: &str, path: &str) -> Option<&LoadedFile> {
        let source = self.sources.iter().find(|own| own.id == source)?;
        source.files.iter().find(|file| &*self.files.get(file.file).path == path)
    }

    fn line(&self, file: FileId, line: u32) -> Span {
        let (start, end) = self.files.get(file).line_range(line).unwrap_or((0, 0));
        Span::new(file, start, end)
    }

    fn item(&self, reference: &EvidenceRef) -> Item {
        let file = self.loaded(&reference.source, &reference.path);
        let mut item = Item {
            reference: reference.clone(),
            file: file.map(|file| file.file),
            blob: file.map(|file| file.blob.to_string()),
            kind: "report",
            statements: Statements::default(),
            run: None,
            skip: None,
            revision: None,
            covers: Vec::new(),
            lacks: self.shapes.iter().map(|shape| shape.id.clone()).collect(),
            reasons: Vec::new(),
        };
        let Some(file) = file else {
            let text = format!("there is no file `{}` among those read from `{}`", reference.path, reference.source);
            item.reasons.push(Reason { fault: Fault::Absent, text, at: reference.span });
            return item;
        };
        let text = self.files.get(file.file);
        if file.kind == FileKind::Python {
            item.kind = "test";
            let facts = self.program.modules.iter().find(|module| module.file == file.file).map(|module| &module.facts);
            if let Some(facts) = facts {
                (item.statements, item.skip) = module::read(facts, text);
            }
            self.run_record(&mut item, file.file);
        } else {
            item.kind = if matches!(file.kind, FileKind::Json | FileKind::Toml) { "result" } else { "report" };
            item.statements = statements::read(&text.text);
        }
        self.platform(&mut item, file.file);
        self.age(&mut item, file.file);
        self.shapes(&mut item, file.file);
        if let Some(line) = item.statements.score_reuse.first() {
            let text = "it was made with rollout scores used again, which the scoring contract forbids".to_owned();
            item.reasons.push(Reason { fault: Fault::ScoreReuse, text, at: self.line(file.file, *line) });
        }
        if let Some((Comparison::Tolerance, _)) = item.comparisons()
            && let Some(first) = item.statements.comparisons.first()
        {
            let text = "it compares within a tolerance only".to_owned();
            item.reasons.push(Reason { fault: Fault::ToleranceOnly, text, at: self.line(file.file, first.line) });
        }
        item
    }

    /// A test shows something only if a record names it, the instruction set, and a run without failures.
    fn run_record(&self, item: &mut Item, file: FileId) {
        let skip = item.skip.as_ref();
        let at = skip.map_or(Span::new(file, 0, 0), |skip| self.line(file, skip.line));
        let mut fault = |text: String, at: Span| item.reasons.push(Reason { fault: Fault::Unrun, text, at });
        let skipped = match skip {
            Some(skip) => format!("; `{}` skips it where that holds, so that a green run elsewhere shows nothing", skip.value),
            None => String::new(),
        };
        let Some(path) = item.reference.run.as_deref() else {
            return fault(format!("it is a test, and no record of a run is named{skipped}"), at);
        };
        let Some(record) = self.loaded(&item.reference.source, path) else {
            return fault(
                format!("the record of its run, `{path}`, is not among the files read from `{}`", item.reference.source),
                item.reference.span,
            );
        };
        let text = &self.files.get(record.file).text;
        let start = self.line(record.file, 1);
        if !text.contains(&item.reference.path) {
            fault(format!("the record of its run does not name `{}`", item.reference.path), start);
        }
        let statements = statements::read(text);
        let outcomes = statements.outcomes;
        if outcomes.passed == 0 || outcomes.failed > 0 {
            let counts = format!("{} passed, {} failed, {} skipped", outcomes.passed, outcomes.failed, outcomes.skipped);
            fault(format!("the record of its run shows no success: {counts}"), start);
        }
        item.run = Some((record.file, statements));
    }

    /// Devices decide; words such as `rocm` only show which vendor is meant where no device is named.
    fn platform(&self, item: &mut Item, file: FileId) {
        let (file, statements) = match (&item.run, item.kind) {
            (Some((file, statements)), _) => (*file, statements),
            // A test that did not run was made on no device; what it names says only whom it is for.
            (None, _) => (file, &item.statements),
        };
        let (backend, arch) = (self.profile.backend.as_str(), self.profile.arch.as_str());
        let mut reasons = Vec::new();
        let foreign = statements.devices.iter().find(|device| device.value.vendor.backend() != backend);
        let own = statements.devices.iter().find(|device| device.value.vendor.backend() == backend);
        let mut other = |text: String, line: u32| reasons.push(Reason { fault: Fault::OtherPlatform, text, at: self.line(file, line) });
        match (own, foreign) {
            (None, Some(device)) => {
                let text = format!("it was made on `{}`, a device of backend `{}`", device.value.name, device.value.vendor.backend());
                other(text, device.line);
            }
            (Some(own), Some(device)) => {
                let text = format!(
                    "it names devices of two vendors, `{}` and `{}`, and does not say which result is whose",
                    own.value.name, device.value.name
                );
                other(text, device.line);
            }
            (Some(_), None) => {
                let known: Vec<_> = statements.devices.iter().filter(|device| device.value.arch.is_some()).collect();
                if let Some(device) = known.iter().find(|device| device.value.arch.as_deref() != Some(arch)) {
                    other(format!("it was made on `{}`, which is not `{arch}`", device.value.name), device.line);
                }
            }
            (None, None) => {
                let vendors: Vec<_> = statements.vendors.iter().collect();
                match vendors.iter().find(|vendor| vendor.value.backend() != backend) {
                    Some(vendor) if vendors.iter().all(|vendor| vendor.value.backend() != backend) => {
                        other(format!("it speaks of backend `{}` only", vendor.value.backend()), vendor.line);
                    }
                    _ => {
                        let text = "it names no device".to_owned();
                        reasons.push(Reason { fault: Fault::NoPlatform, text, at: self.line(file, 1) });
                    }
                }
            }
        }
        item.reasons.extend(reasons);
    }

    /// Compares what the evidence speaks of with the pinned file that it is said to support.
    fn age(&self, item: &mut Item, file: FileId) {
        let Some(supports) = item.reference.supports.clone() else {
            let text = "nothing says which file it supports, so its age cannot be judged".to_owned();
            item.reasons.push(Reason { fault: Fault::UnknownAge, text, at: item.reference.span });
            return;
        };
        let Some(table) = self.loaded(&item.reference.source, &supports) else {
            let text = format!("the file that it supports, `{supports}`, is not among those read from `{}`", item.reference.source);
            item.reasons.push(Reason { fault: Fault::UnknownAge, text, at: item.reference.span });
            return;
        };
        let source = self.sources.iter().find(|source| source.id == item.reference.source);
        let commit = source.and_then(|source| source.commit.clone());
        let repository = source.and_then(|source| source.repository.as_deref());
        let history = repository.and_then(|path| History::open(&item.reference.source, path).ok());
        let (speaker, statements) = match &item.run {
            Some((file, statements)) => (*file, statements),
            None => (file, &item.statements),
        };
        let unknown = |text: String, at: Span| Reason { fault: Fault::UnknownAge, text, at };
        let older = |text: String, at: Span| Reason { fault: Fault::Older, text, at };
        let mut reasons = Vec::new();
        let (Some(history), Some(commit)) = (history, commit) else {
            let text = "its source is not read from a commit, so its age cannot be judged".to_owned();
            item.reasons.push(Reason { fault: Fault::Unpinned, text, at: self.line(speaker, 1) });
            return;
        };
        let named: Vec<(&Stated<String>, Option<String>)> =
            statements.revisions.iter().map(|stated| (stated, history.commit(&stated.value).ok())).collect();
        if let Some((stated, Some(found))) = named.iter().find(|(_, found)| found.is_some()) {
            let at = self.line(speaker, stated.line);
            item.revision = Some((found.clone(), at));
            match history.blob_at(found, &supports) {
                Ok(Some(blob)) if *blob == *table.blob => {}
                Ok(Some(blob)) => {
                    let text = format!(
                        "it was made at {}, where `{supports}` was {}; the pinned one is {}",
                        short(found),
                        short(&blob),
                        short(&table.blob)
                    );
                    reasons.push(older(text, at));
                }
                Ok(None) => reasons.push(older(format!("it was made at {}, which has no `{supports}`", short(found)), at)),
                Err(error) => reasons.push(unknown(format!("{} could not be read: {error}", short(found)), at)),
            }
        } else if let Some((stated, _)) = named.first() {
            let text = format!("it was made at `{}`, which the repository of `{}` does not have", stated.value, item.reference.source);
            reasons.push(unknown(text, self.line(speaker, stated.line)));
        } else {
            let at = self.line(speaker, 1);
            let changes = (history.last_change(&commit, &item.reference.path), history.last_change(&commit, &supports));
            match changes {
                (Ok(Some(own)), Ok(Some(table))) if own != table && history.precedes(&own, &table).unwrap_or(false) => {
                    reasons.push(older(
                        format!("it was last changed in {}, and `{supports}` in {} after that", short(&own), short(&table)),
                        at,
                    ));
                }
                (Ok(None), Ok(Some(table))) => {
                    reasons.push(older(format!("`{supports}` was changed in {}, after it was written", short(&table)), at));
                }
                (Err(error), _) | (_, Err(error)) => reasons.push(unknown(format!("the history could not be read: {error}"), at)),
                _ => {
                    let text = "it names no revision".to_owned();
                    reasons.push(Reason { fault: Fault::NoRevision, text, at });
                }
            }
        }
        item.reasons.extend(reasons);
    }

    fn shapes(&self, item: &mut Item, file: FileId) {
        for shape in self.shapes {
            if let Some(stated) = item.statements.shapes.iter().find(|stated| covers(&stated.value, shape)) {
                item.covers.push((shape.id.clone(), self.line(file, stated.line)));
            }
        }
        item.lacks.retain(|id| !item.covers.iter().any(|(covered, _)| covered == id));
        let mut told: Vec<String> = Vec::new();
        for stated in &item.statements.shapes {
            let own: Vec<&ShapeRow> = self.shapes.iter().filter(|shape| names(&stated.value.name, &shape.region)).collect();
            let Some(first) = own.iter().find(|shape| shape.gemm == "forward").or(own.first()) else { continue };
            let fits = own.iter().any(|shape| fits(shape.n, stated.value.n, shape) && fits(shape.k, stated.value.k, shape));
            let (n, k) = (stated.value.n, stated.value.k);
            let text = format!(
                "it measured {} with N={n} and K={k}; the workload's {} has N={} and K={}",
                stated.value.name,
                first.region,
                size(first.n),
                size(first.k)
            );
            if !fits && !told.contains(&text) {
                told.push(text.clone());
                item.reasons.push(Reason { fault: Fault::OtherShape, text, at: self.line(file, stated.line) });
            }
        }
        if !self.shapes.is_empty() && item.covers.is_empty() && told.is_empty() {
            let text = "no shape of the workload is among those that it states".to_owned();
            item.reasons.push(Reason { fault: Fault::NoShape, text, at: self.line(file, 1) });
        }
    }
}

/// First digits of an object id.
fn short(id: &str) -> &str {
    id.get(..10).unwrap_or(id)
}

/// Whether a name in a report means a region: the same, or its first part (`qkv` for `qkv_proj`).
fn names(name: &str, region: &str) -> bool {
    !name.is_empty() && (name == region || region.strip_prefix(name).is_some_and(|rest| rest.starts_with('_')))
}

fn size(dim: Dim) -> String {
    match dim {
        Dim::Fixed(value) => value.to_string(),
        Dim::Rows(1) => "the rows".to_owned(),
        Dim::Rows(times) => format!("{times} times the rows"),
    }
}

/// Whether a size of a shape can be `value`.
fn fits(dim: Dim, value: i64, shape: &ShapeRow) -> bool {
    match dim {
        Dim::Fixed(own) => own == value,
        Dim::Rows(times) => {
            times > 0 && value % times == 0 && {
                let rows = value / times;
                rows >= shape.rows.from && shape.rows.to.is_none_or(|to| rows <= to)
            }
        }
    }
}

/// Whether a stated shape lies in a shape of the workload. Without its number of rows it lies in none.
fn covers(stated: &Shape, shape: &ShapeRow) -> bool {
    let named = stated.name.is_empty() || names(&stated.name, &shape.region);
    named && fits(shape.n, stated.n, shape) && fits(shape.k, stated.k, shape) && stated.m.is_some_and(|m| fits(shape.m, m, shape))
}

/// The item as plain data.
#[must_use]
pub fn row(item: &Item, files: &Files) -> EvidenceRow {
    let place = |span: Span| {
        let file = files.get(span.file);
        Place { source: file.source.to_string(), path: file.path.to_string(), line: file.line_of(span.start) }
    };
    let stated = |file: FileId, line: u32| stated_place(files, file, line);
    let speaker =
        item.run.as_ref().map(|(file, statements)| (*file, statements)).or_else(|| item.file.map(|file| (file, &item.statements)));
    let gpu = speaker.and_then(|(file, statements)| {
        let device = statements.devices.first()?;
        Some(Cited { value: device.value.name.clone(), at: vec![stated(file, device.line)] })
    });
    let platform = speaker.and_then(|(file, statements)| {
        let device = statements.devices.first().map(|device| (device.value.vendor, device.line));
        let (vendor, line) = device.or_else(|| statements.vendors.first().map(|vendor| (vendor.value, vendor.line)))?;
        Some(Cited { value: vendor.backend().to_owned(), at: vec![stated(file, line)] })
    });
    let comparison = match item.comparisons() {
        None => String::new(),
        Some((strict, _)) => strict.word().to_owned(),
    };
    let mut notes: Vec<Cited<String>> =
        item.reasons.iter().map(|reason| Cited { value: reason.text.clone(), at: vec![place(reason.at)] }).collect();
    if let (Some(file), Some((Comparison::RawBits | Comparison::ValueEqual, _))) = (item.file, item.comparisons()) {
        let value_equal: Vec<Place> = item
            .statements
            .comparisons
            .iter()
            .filter(|stated| stated.value == Comparison::ValueEqual)
            .map(|stated| stated_place(files, file, stated.line))
            .collect();
        if !value_equal.is_empty() {
            let value = "values are compared here, not raw bits: +0 and -0 pass as equal".to_owned();
            notes.push(Cited { value, at: value_equal });
        }
    }
    let at = item.file.map_or_else(|| place(item.reference.span), |file| stated_place(files, file, 1));
    EvidenceRow {
        id: item.reference.id.clone(),
        kind: item.kind.to_owned(),
        at,
        blob: item.blob.clone(),
        platform,
        gpu,
        revision: item.revision.as_ref().map(|(commit, span)| Cited { value: commit.clone(), at: vec![place(*span)] }),
        covers: item.covers.iter().map(|(id, span)| Cited { value: id.clone(), at: vec![place(*span)] }).collect(),
        lacks: item.lacks.clone(),
        comparison,
        counts: item.counts(),
        notes,
    }
}

fn stated_place(files: &Files, file: FileId, line: u32) -> Place {
    let text = files.get(file);
    Place { source: text.source.to_string(), path: text.path.to_string(), line }
}
