//! L7: what the device executed.
//!
//! In: traces, recordings and the static baseline. Out: which routes were observed, and every contradiction. Refused: the absence of a kernel as a
//! fact where the canary shows that the collection lost launches; a dispatch that no declared shape leads to.

use std::collections::{BTreeMap, BTreeSet};

use super::documents::{Baseline, Request, matches};
use super::geometry::{Launch, Part};
use super::link::{Findings, Link, State};
use super::recording::Recording;
use super::trace::{Process, Trace};

/// What was seen of one route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Dispatches.
    pub dispatches: u64,
    /// Kernels.
    pub kernels: BTreeSet<String>,
}

/// What was executed, for the links that compare with it.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// By route; a dispatch that several routes lead to counts for each.
    pub routes: BTreeMap<String, Seen>,
    /// Forbidden kernels that ran in a window of the family.
    pub forbidden: BTreeSet<String>,
    /// Kernels of the family that ran at all.
    pub family: BTreeSet<String>,
    /// Whether every process is covered by a collection whose canary is complete.
    pub complete: bool,
}

struct Check<'a> {
    baseline: &'a Baseline,
    request: &'a Request,
    found: &'a mut Findings,
    observed: Observed,
}

/// Judges what was executed.
pub fn judge(traces: &[Trace], recordings: &[Recording], baseline: &Baseline, request: &Request, found: &mut Findings) -> Observed {
    let mut check = Check { baseline, request, found, observed: Observed::default() };
    let family = |recording: &&Recording| {
        let launched = recording.launches.keys().chain(recording.captured.keys()).any(|name| baseline.part(name).is_some());
        launched || !recording.steps.is_empty()
    };
    let launching: Vec<&Recording> = recordings.iter().filter(family).collect();
    if traces.is_empty() {
        check.found.problem(Link::L7, State::Incomplete, "no-trace", "", "no trace of the device can be used as an observation");
    }
    if launching.is_empty() {
        check.found.problem(Link::L7, State::Incomplete, "nothing-launched", "", "no recording launches a kernel of the family");
    }
    let mut complete = !traces.is_empty() && !launching.is_empty();
    for recording in &launching {
        let of: Vec<(&str, &Process)> =
            traces.iter().filter_map(|trace| Some((trace.file.as_str(), trace.processes.get(&recording.pid)?))).collect();
        if of.is_empty() {
            let what = format!("no trace covers process {}, which launches kernels of the family", recording.pid);
            check.found.problem(Link::L7, State::Incomplete, "process-not-traced", &recording.file, what);
            complete = false;
        }
        for (file, process) in of {
            complete &= check.process(file, process, recording);
        }
    }
    // A process that nobody recorded may run what it likes, so its dispatches are looked at as well.
    for trace in traces {
        for (pid, process) in &trace.processes {
            if !launching.iter().any(|recording| recording.pid == *pid) {
                check.stranger(&trace.file, *pid, process);
            }
        }
    }
    let routes: BTreeSet<&str> = baseline.tiles.iter().map(|tile| tile.route.as_str()).collect();
    for route in routes {
        if !check.observed.routes.contains_key(route) {
            let what = format!("no dispatch that route {route} leads to was seen");
            check.tell(State::Incomplete, "route-not-observed", "", what, route);
        }
    }
    check.observed.complete = complete && check.found.holds(Link::L7);
    let Check { observed, .. } = check;
    if !traces.is_empty() {
        let dispatches: u64 = observed.routes.values().map(|seen| seen.dispatches).sum();
        let files = traces.len();
        let text =
            format!("{dispatches} dispatches on {} routes in {} processes, from {files} traces", observed.routes.len(), launching.len());
        found.fact(Link::L7, text);
    }
    observed
}

/// Dispatches by kernel name, workgroup and grid.
fn counts(process: &Process) -> Vec<u64> {
    let mut counts = vec![0; process.shapes.len()];
    for dispatch in &process.dispatches {
        if let Some(count) = usize::try_from(dispatch.shape).ok().and_then(|shape| counts.get_mut(shape)) {
            *count += 1;
        }
    }
    counts
}

impl Check<'_> {
    fn tell(&mut self, state: State, reason: &'static str, file: &str, what: String, about: &str) {
        self.found.problem_about(Link::L7, state, reason, file, what, about);
    }

    /// Judges one process; whether its canary is complete.
    fn process(&mut self, file: &str, process: &Process, recording: &Recording) -> bool {
        let counts = counts(process);
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        for (shape, count) in process.shapes.iter().zip(&counts) {
            *by_name.entry(process.name(shape)).or_default() += count;
        }
        if process.dispatches.is_empty() {
            let what = format!("it holds no dispatch of process {}", recording.pid);
            self.tell(State::Incomplete, "trace-empty", file, what, "");
        }
        let canary = self.canary(file, &by_name, recording);
        self.devices(file, process);
        let (launches, unclear) = self.layouts(file, process, &counts);
        if recording.steps.is_empty() {
            for (name, launched) in &recording.launches {
                let seen = by_name.get(name.as_str()).copied().unwrap_or(0);
                if self.baseline.part(name).is_some() && seen < *launched {
                    let what = format!(
                        "process {} launched {name} {launched} times outside of graphs, and {seen} dispatches were seen",
                        recording.pid
                    );
                    self.tell(State::Incomplete, "launches-lost", file, what, name);
                }
            }
        } else {
            self.steps(file, &launches, recording, &|part| canary && !unclear.contains(&part));
        }
        self.order(file, process, recording.pid);
        canary
    }

    /// Whether every launch of the canary was seen.
    fn canary(&mut self, file: &str, by_name: &BTreeMap<&str, u64>, recording: &Recording) -> bool {
        let pid = recording.pid;
        if recording.canary.is_empty() || recording.canary.values().all(|count| *count == 0) {
            let what = format!("process {pid} planted no canary, so nobody knows what the collection lost");
            self.tell(State::Incomplete, "canary-absent", &recording.file, what, "");
            return false;
        }
        let mut complete = true;
        for (name, planted) in &recording.canary {
            let seen = by_name.get(name.as_str()).copied().unwrap_or(0);
            if seen != *planted {
                complete = false;
                let (reason, more) =
                    if seen < *planted { ("canary-incomplete", "was lost") } else { ("canary-exceeded", "is of somebody else") };
                let what = format!("{seen} of {planted} launches of {name} in process {pid} were seen: part of the collection {more}");
                self.tell(State::Incomplete, reason, file, what, "");
            }
        }
        complete
    }

    /// Whether every device that was used is of the request's processor, where the trace says so.
    fn devices(&mut self, file: &str, process: &Process) {
        let used: BTreeSet<u64> = process.shapes.iter().map(|shape| shape.agent).collect();
        let strangers: BTreeSet<&String> =
            used.iter().filter_map(|agent| process.agents.get(agent)).filter(|name| **name != self.request.arch).collect();
        for name in strangers {
            let what = format!("kernels ran on '{name}', and the request is for {}", self.request.arch);
            self.tell(State::Mismatch, "wrong-device-in-trace", file, what, "");
        }
    }

    /// Every dispatch of the family by its layout; one that no shape leads to is a mismatch.
    /// Also the kernels of which some dispatch has no layout.
    fn layouts(&mut self, file: &str, process: &Process, counts: &[u64]) -> (BTreeMap<Launch, u64>, BTreeSet<Part>) {
        let mut launches: BTreeMap<Launch, u64> = BTreeMap::new();
        let mut unknown: BTreeMap<&str, u64> = BTreeMap::new();
        let mut unclear: BTreeSet<Part> = BTreeSet::new();
        for (shape, count) in process.shapes.iter().zip(counts) {
            let name = process.name(shape);
            let Some(part) = self.baseline.part(name) else { continue };
            self.observed.family.insert(name.to_owned());
            match (shape.workgroup, shape.blocks) {
                (Some(workgroup), Some(blocks)) => *launches.entry(Launch { part, workgroup, blocks }).or_default() += count,
                (Some(workgroup), None) => {
                    let what = format!("a dispatch of {name} has a grid that is no multiple of its workgroup {workgroup:?}");
                    self.tell(State::Mismatch, "geometry-impossible", file, what, name);
                }
                _ => {
                    *unknown.entry(name).or_default() += count;
                    unclear.insert(part);
                }
            }
        }
        for (name, count) in unknown {
            let what = format!("{count} dispatches of {name} have no grid, so they cannot be told to be of a declared shape");
            self.tell(State::Incomplete, "geometry-unknown", file, what, name);
        }
        for (launch, count) in &launches {
            let routes: Vec<String> = self.baseline.routes(launch).into_iter().map(str::to_owned).collect();
            let name = self.baseline.name(launch.part).to_owned();
            if routes.is_empty() {
                let what = format!(
                    "{count} dispatches of {name} with {:?} threads in {:?} workgroups follow from no declared shape",
                    launch.workgroup, launch.blocks
                );
                self.tell(State::Mismatch, "geometry-underivable", file, what, &name);
            }
            for route in routes {
                let seen = self.observed.routes.entry(route).or_default();
                seen.dispatches += count;
                seen.kernels.insert(name.clone());
            }
        }
        (launches, unclear)
    }

    /// Compares what was seen with what the exerciser drove, dispatch by dispatch.
    fn steps(&mut self, file: &str, seen: &BTreeMap<Launch, u64>, recording: &Recording, complete: &dyn Fn(Part) -> bool) {
        let mut expected: BTreeMap<Launch, (u64, BTreeSet<&str>)> = BTreeMap::new();
        for step in &recording.steps {
            let Some(tile) = self.baseline.tile(&step.route, step.m, step.n, step.k) else {
                let what =
                    format!("route {} was driven with {}x{}x{}, and the baseline has no tile for it", step.route, step.m, step.n, step.k);
                self.tell(State::Incomplete, "step-without-tile", &recording.file, what, &step.route);
                continue;
            };
            for launch in self.baseline.launches(tile, step.m) {
                let entry = expected.entry(launch).or_default();
                entry.0 = entry.0.saturating_add(step.calls);
                entry.1.insert(&step.route);
            }
        }
        let mut both: BTreeSet<Launch> = expected.keys().copied().collect();
        both.extend(seen.keys().copied());
        for launch in both {
            let (wanted, routes) = expected.get(&launch).cloned().unwrap_or_default();
            let count = seen.get(&launch).copied().unwrap_or(0);
            let name = self.baseline.name(launch.part).to_owned();
            let layout = format!("{name} with {:?} threads in {:?} workgroups", launch.workgroup, launch.blocks);
            let about = routes.into_iter().collect::<Vec<_>>().join(", ");
            if count > wanted {
                let what = format!("{count} dispatches of {layout} were seen, and the routes that were driven need {wanted}");
                self.tell(State::Mismatch, "dispatches-unrequested", file, what, &about);
            } else if count < wanted {
                // Only a collection that lost nothing can show that something did not run.
                let (state, reason) = if complete(launch.part) {
                    (State::Mismatch, "dispatches-missing")
                } else {
                    (State::Incomplete, "dispatches-not-seen")
                };
                let what = format!("{count} of {wanted} dispatches of {layout} were seen for {about}");
                self.tell(state, reason, file, what, &about);
            }
        }
    }

    /// Partials without their sum, and forbidden kernels between the first and the last dispatch of the family.
    fn order(&mut self, file: &str, process: &Process, pid: u64) {
        let part_of: Vec<Option<Part>> = process.shapes.iter().map(|shape| self.baseline.part(process.name(shape))).collect();
        let forbidden_of: Vec<bool> = process.shapes.iter().map(|shape| self.forbids(process.name(shape))).collect();
        let at = |shape: u32| usize::try_from(shape).unwrap_or(usize::MAX);
        let part = |shape: u32| part_of.get(at(shape)).copied().flatten();
        let family = process.dispatches.iter().filter(|dispatch| part(dispatch.shape).is_some());
        let (mut first, mut last) = (u64::MAX, 0);
        let mut ordered: Vec<(u32, u64, Part)> = Vec::new();
        for dispatch in family {
            first = first.min(dispatch.start);
            last = last.max(dispatch.start);
            if let Some(part) = part(dispatch.shape)
                && part != Part::Mono
            {
                ordered.push((dispatch.queue, dispatch.start, part));
            }
        }
        ordered.sort();
        let mut alone = 0u64;
        let mut open: Option<u32> = None;
        for (queue, _, part) in ordered {
            match (part, open) {
                (Part::Partial, None) => open = Some(queue),
                (Part::Partial, Some(_)) => {
                    alone += 1;
                    open = Some(queue);
                }
                (_, Some(of)) if of == queue => open = None,
                (_, Some(_)) => {
                    alone += 2;
                    open = None;
                }
                (_, None) => alone += 1,
            }
        }
        alone += u64::from(open.is_some());
        if alone > 0 {
            let what = format!(
                "in process {pid} {alone} dispatches of the split schedule are partials without their sum, or sums without partials"
            );
            let about = self.baseline.kernels.partial.clone();
            self.tell(State::Mismatch, "partial-without-reduce", file, what, &about);
        }
        if first > last {
            // Nothing of the family ran, so all that ran may have run in its place.
            (first, last) = (0, u64::MAX);
        }
        let mut inside: BTreeMap<&str, u64> = BTreeMap::new();
        for dispatch in &process.dispatches {
            let forbidden = forbidden_of.get(at(dispatch.shape)).copied().unwrap_or(false);
            if forbidden
                && (first..=last).contains(&dispatch.start)
                && let Some(shape) = process.shapes.get(at(dispatch.shape))
            {
                *inside.entry(process.name(shape)).or_default() += 1;
            }
        }
        for (name, count) in inside {
            let what = format!("{count} dispatches of {name} ran in process {pid} between kernels of the family");
            self.tell(State::Mismatch, "forbidden-kernel", file, what, name);
            self.observed.forbidden.insert(name.to_owned());
        }
    }

    /// A process without a recording that launches: nothing of the family and nothing forbidden may run in it.
    fn stranger(&mut self, file: &str, pid: u64, process: &Process) {
        let names: BTreeSet<&str> = process.shapes.iter().map(|shape| process.name(shape)).collect();
        for name in names {
            if self.baseline.part(name).is_some() {
                let what = format!("process {pid} ran {name}, and no recording says that it launches it");
                self.tell(State::Incomplete, "process-not-recorded", file, what, name);
            } else if self.forbids(name) {
                let what = format!("process {pid} ran {name}, and it has no recording to show that this is not in place of the family");
                self.tell(State::Incomplete, "forbidden-kernel-unrecorded", file, what, name);
            }
        }
    }

    fn forbids(&self, name: &str) -> bool {
        self.baseline.forbidden.iter().any(|pattern| matches(pattern, name))
            && !self.request.allowed.iter().any(|pattern| matches(pattern, name))
    }
}
