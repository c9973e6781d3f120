//! What a profiler saw the device execute.
//!
//! In: files of rocprofv3 (JSON, CSV, SQLite) and torch.profiler. Out: the dispatches of each process, by kernel, workgroup and grid, and what the
//! collection hid. Refused as observation: formats of rocprof v1 and v2, which lose dispatches; renamed kernels; truncated names; filtered or
//! timed collections; files that end early.

pub mod rocpd;
pub mod rocprof_csv;
pub mod rocprof_json;
pub mod torch;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::evidence::{Evidence, Role};
use super::link::{Findings, Link, State};

/// Extent in x, y and z.
pub type Extent = [u32; 3];

/// One kind of dispatch: which kernel, and how it was laid out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Kernel in the numbering of the file.
    pub kernel: u64,
    /// Device in the numbering of the file.
    pub agent: u64,
    /// Threads of a workgroup; `None` if the file does not say how the kernel was laid out.
    pub workgroup: Option<Extent>,
    /// Workgroups of the grid; `None` if the file does not say, or beside a workgroup if the grid is no whole number of them.
    pub blocks: Option<Extent>,
}

/// One dispatch.
#[derive(Clone, Copy, Debug)]
pub struct Dispatch {
    /// When it began, in the file's clock.
    pub start: u64,
    /// Queue or stream.
    pub queue: u32,
    /// Index into [`Process::shapes`].
    pub shape: u32,
}

/// What one file says about one process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Names of devices: `gfx942`.
    pub agents: BTreeMap<u64, String>,
    /// Names of kernels, without the suffix of code objects.
    pub kernels: BTreeMap<u64, String>,
    /// Kinds of dispatches.
    pub shapes: Vec<Shape>,
    /// Dispatches in the order of the file.
    pub dispatches: Vec<Dispatch>,
    numbers: FxHashMap<Shape, u32>,
}

impl Process {
    /// Notes a dispatch.
    pub fn push(&mut self, start: u64, queue: u32, shape: Shape) {
        let shape = match self.numbers.get(&shape) {
            Some(number) => *number,
            None => {
                let number = u32::try_from(self.shapes.len()).unwrap_or(u32::MAX);
                self.shapes.push(shape.clone());
                self.numbers.insert(shape, number);
                number
            }
        };
        self.dispatches.push(Dispatch { start, queue, shape });
    }

    /// Name of the kernel of a shape; empty if the file has no name for it.
    #[must_use]
    pub fn name(&self, shape: &Shape) -> &str {
        self.kernels.get(&shape.kernel).map_or("", String::as_str)
    }
}

/// One file, read.
#[derive(Debug)]
pub struct Trace {
    /// Path in the evidence.
    pub file: String,
    /// Processes by id.
    pub processes: BTreeMap<u64, Process>,
}

/// Grid in workgroups, from one in work-items.
#[must_use]
pub fn blocks_of(grid: Extent, workgroup: Extent) -> Option<Extent> {
    let mut blocks = [0; 3];
    for axis in 0..3 {
        if workgroup[axis] == 0 || !grid[axis].is_multiple_of(workgroup[axis]) {
            return None;
        }
        blocks[axis] = grid[axis] / workgroup[axis];
    }
    Some(blocks)
}

/// A kernel's name without what code objects add to it.
#[must_use]
pub fn plain_name(name: &str) -> &str {
    name.strip_suffix(".kd").unwrap_or(name)
}

/// Why a file is no observation: a fixed name, and a sentence.
pub type Refusal = (&'static str, String);

/// Process id at the beginning of a file name, as rocprofv3 writes it (`1234_kernel_trace.csv`).
fn pid_of_name(path: &str) -> Option<u64> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let digits: String = name.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Reads every trace of the evidence; one that is no observation is told and left out.
pub fn read_all(evidence: &Evidence, found: &mut Findings) -> Vec<Trace> {
    let mut traces = Vec::new();
    for role in [Role::RocprofJson, Role::RocprofCsv, Role::Rocpd, Role::TorchTrace] {
        for entry in evidence.of(role) {
            let read = match role {
                Role::RocprofJson => evidence.stream(entry).map_err(unreadable).and_then(rocprof_json::read),
                Role::RocprofCsv => {
                    let pid = pid_of_name(&entry.path);
                    evidence.stream(entry).map_err(unreadable).and_then(|file| rocprof_csv::read(file, pid))
                }
                Role::Rocpd => rocpd::read(&evidence.path(entry)),
                _ => {
                    let name = entry.path.rsplit('/').next().unwrap_or("");
                    let pid = pid_of_name(name.trim_start_matches("torch-"));
                    evidence.stream(entry).map_err(unreadable).and_then(|file| torch::read(file, pid))
                }
            };
            match read {
                Ok(processes) => traces.push(Trace { file: entry.path.clone(), processes }),
                Err((reason, what)) => found.problem(Link::L7, State::Incomplete, reason, &entry.path, what),
            }
        }
    }
    traces
}

fn unreadable(what: String) -> Refusal {
    ("file-unreadable", what)
}
