//! What the recorder wrote down in each process.
//!
//! In: files of JSON lines. Out: one [`Recording`] per process. Refused: a line that cannot be understood, a file without its first or last line,
//! a process that has two files.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};

use serde::Deserialize;

use super::evidence::{Evidence, Role};
use super::link::{Findings, Link, State};

/// Schema of the lines.
pub const SCHEMA: &str = "rlk-lint/recorder/v1";
/// Longest line.
const LONGEST_LINE: u64 = 4 << 20;

/// A binary that was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// Kernel.
    pub name: String,
    /// Triton's key of it.
    pub hash: String,
    /// Copy of the binary in the evidence, beside the recording.
    pub object: Option<String>,
}

/// Calls of one route with one shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Route.
    pub route: String,
    /// Rows.
    pub m: u64,
    /// Columns.
    pub n: u64,
    /// Length of the sum.
    pub k: u64,
    /// Calls that the device executed; a capture executes nothing.
    pub calls: u64,
}

/// One process.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// File of the evidence.
    pub file: String,
    /// Process.
    pub pid: u64,
    /// Rank and number of ranks, where they were known.
    pub rank: Option<(u64, Option<u64>)>,
    /// Environment when the recorder was attached and at the end, joined; values that changed are kept both.
    pub environment: BTreeMap<String, Vec<String>>,
    /// Versions of torch, Triton and HIP.
    pub versions: BTreeMap<String, String>,
    /// Digests of libraries by path; `None` where one could not be read.
    pub libraries: Option<BTreeMap<String, Option<String>>>,
    /// Compiled kernels with their specialization data.
    pub compiled: Vec<(String, String)>,
    /// Loaded binaries.
    pub loads: Vec<Load>,
    /// Launches outside of a capture, by kernel.
    pub launches: BTreeMap<String, u64>,
    /// Launches during a capture, by kernel.
    pub captured: BTreeMap<String, u64>,
    /// Launches of the canary, by kernel.
    pub canary: BTreeMap<String, u64>,
    /// What the exerciser drove.
    pub steps: Vec<Step>,
    /// Routes whose replay gave other bytes than the eager call.
    pub replays_differ: Vec<String>,
    /// Replays that were compared.
    pub replays_same: u64,
    /// What could not be recorded.
    pub trouble: Vec<String>,
    /// Whether the last line is there.
    pub ended: bool,
}

#[derive(Deserialize)]
struct Count {
    name: Option<String>,
    capturing: Option<bool>,
    count: u64,
}

#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Line {
    Start {
        schema: String,
        pid: u64,
        #[serde(default)]
        environment: BTreeMap<String, String>,
        #[serde(default)]
        environment_at_start: Option<BTreeMap<String, String>>,
    },
    Compile {
        name: Option<String>,
        specialization: Option<String>,
    },
    Load {
        name: String,
        hash: String,
        rank: Option<u64>,
        world: Option<u64>,
        object: Option<String>,
    },
    Launches {
        rank: Option<u64>,
        world: Option<u64>,
        counts: Vec<Count>,
    },
    Canary {
        launches: BTreeMap<String, u64>,
    },
    Step {
        route: String,
        m: u64,
        n: u64,
        k: u64,
        phase: String,
        calls: u64,
    },
    Replayed {
        route: String,
        same_bytes: bool,
    },
    Trouble {
        #[serde(rename = "where")]
        place: String,
        error: String,
    },
    End {
        rank: Option<u64>,
        world: Option<u64>,
        #[serde(default)]
        versions: BTreeMap<String, Option<String>>,
        #[serde(default)]
        environment: BTreeMap<String, String>,
        libraries: Option<BTreeMap<String, Option<String>>>,
    },
}

impl Recording {
    fn note_rank(&mut self, rank: Option<u64>, world: Option<u64>) {
        if let Some(rank) = rank {
            self.rank = Some((rank, world));
        }
    }

    fn note_environment(&mut self, environment: BTreeMap<String, String>) {
        for (name, value) in environment {
            let values = self.environment.entry(name).or_default();
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }

    fn take(&mut self, line: Line) -> Result<(), String> {
        match line {
            Line::Start { .. } => return Err("a second 'start'".to_owned()),
            Line::Compile { name, specialization } => self.compiled.push((name.unwrap_or_default(), specialization.unwrap_or_default())),
            Line::Load { name, hash, rank, world, object } => {
                self.note_rank(rank, world);
                self.loads.push(Load { name, hash, object });
            }
            Line::Launches { rank, world, counts } => {
                self.note_rank(rank, world);
                for Count { name, capturing, count } in counts {
                    // Where it is not known whether a graph was captured, the launch is not counted on.
                    let into = if capturing == Some(false) { &mut self.launches } else { &mut self.captured };
                    let total = into.entry(name.unwrap_or_default()).or_default();
                    *total = total.saturating_add(count);
                }
            }
            Line::Canary { launches } => {
                for (name, count) in launches {
                    let total = self.canary.entry(name).or_default();
                    *total = total.saturating_add(count);
                }
            }
            Line::Step { route, m, n, k, phase, calls } => match phase.as_str() {
                "capture" => {}
                "eager" | "replay" => self.steps.push(Step { route, m, n, k, calls }),
                other => return Err(format!("the phase '{other}' is none of eager, capture, replay")),
            },
            Line::Replayed { same_bytes: true, .. } => self.replays_same += 1,
            Line::Replayed { route, same_bytes: false } => self.replays_differ.push(route),
            Line::Trouble { place, error } => self.trouble.push(format!("{place}: {error}")),
            Line::End { rank, world, versions, environment, libraries } => {
                self.note_rank(rank, world);
                self.note_environment(environment);
                self.versions = versions.into_iter().filter_map(|(name, version)| Some((name, version?))).collect();
                self.libraries = libraries;
                self.ended = true;
            }
        }
        Ok(())
    }
}

/// Reads one file.
fn read(file: &str, input: impl Read) -> Result<Recording, String> {
    let mut input = BufReader::new(input);
    let mut recording = Recording { file: file.to_owned(), ..Recording::default() };
    let mut text = Vec::new();
    let mut number = 0u64;
    loop {
        text.clear();
        let read = (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut text).map_err(|error| format!("it cannot be read: {error}"))?;
        if read == 0 {
            break;
        }
        number += 1;
        if text.last() != Some(&b'\n') {
            return Err(format!("line {number} does not end: the recording was cut off"));
        }
        if recording.ended {
            return Err(format!("line {number} stands after the end"));
        }
        let line: Line = serde_json::from_slice(&text).map_err(|error| format!("line {number}: {error}"))?;
        if number > 1 {
            recording.take(line).map_err(|what| format!("line {number}: {what}"))?;
            continue;
        }
        let Line::Start { schema, pid, environment, environment_at_start } = line else {
            return Err("its first line is no 'start'".to_owned());
        };
        if schema != SCHEMA {
            return Err(format!("its schema is '{schema}', and this version reads '{SCHEMA}'"));
        }
        recording.pid = pid;
        recording.note_environment(environment);
        recording.note_environment(environment_at_start.unwrap_or_default());
    }
    if number == 0 {
        return Err("it is empty".to_owned());
    }
    Ok(recording)
}

/// Reads every recording of the evidence.
pub fn read_all(evidence: &Evidence, found: &mut Findings) -> Vec<Recording> {
    let mut recordings: Vec<Recording> = Vec::new();
    for entry in evidence.of(Role::Recorder) {
        match evidence.stream(entry).and_then(|file| read(&entry.path, file)) {
            Ok(recording) => recordings.push(recording),
            Err(what) => found.problem(Link::L6, State::Incomplete, "recording-unreadable", &entry.path, what),
        }
    }
    recordings.sort_by(|one, other| (one.pid, &one.file).cmp(&(other.pid, &other.file)));
    for pair in recordings.windows(2) {
        if let [one, other] = pair
            && one.pid == other.pid
        {
            let what = format!("'{}' is a recording of process {} already", one.file, one.pid);
            found.problem(Link::L6, State::Incomplete, "process-twice", &other.file, what);
        }
    }
    for recording in &recordings {
        if !recording.ended {
            let what = format!("process {} has no last line: it was ended before it could say what it had loaded", recording.pid);
            found.problem(Link::L6, State::Incomplete, "recording-cut-off", &recording.file, what);
        }
        for trouble in &recording.trouble {
            let what = format!("the recorder of process {} could not note: {trouble}", recording.pid);
            found.problem(Link::L6, State::Incomplete, "recorder-trouble", &recording.file, what);
        }
    }
    recordings
}
