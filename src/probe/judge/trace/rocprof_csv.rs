//! rocprofv3's CSV of kernel dispatches, read by its header.
//!
//! In: a stream, and the process that the file's name says it is of. Out: dispatches. Refused: see [`super`]; also a header with a column twice or
//! without the columns that are needed, and a row that does not have the header's number of fields. What rocprof v1 and v2 wrote is told apart.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};

use super::{Process, Refusal, Shape, blocks_of, plain_name};

/// Columns that are needed, under the one name that both versions of rocprofv3 give them.
const NEEDED: [&str; 9] = [
    "Kernel_Name",
    "Start_Timestamp",
    "Workgroup_Size_X",
    "Workgroup_Size_Y",
    "Workgroup_Size_Z",
    "Grid_Size_X",
    "Grid_Size_Y",
    "Grid_Size_Z",
    "Queue_Id",
];
/// Longest line.
const LONGEST_LINE: usize = 1 << 20;

/// Fields of a line; quotes are taken away, doubled quotes inside stand for one. `None` if a quote stays open.
fn fields(line: &str) -> Option<Vec<String>> {
    let mut fields = Vec::with_capacity(24);
    let mut field = String::new();
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    fields.push(field);
    (!quoted).then_some(fields)
}

/// Reads a file.
///
/// # Errors
/// Why it is no observation.
pub fn read(input: impl Read, pid: Option<u64>) -> Result<BTreeMap<u64, Process>, Refusal> {
    let mut input = BufReader::with_capacity(1 << 20, input);
    let mut line = String::new();
    let mut number = 0u64;
    let mut next = |line: &mut String| -> Result<bool, Refusal> {
        line.clear();
        let limit = u64::try_from(LONGEST_LINE).unwrap_or(u64::MAX);
        let read = (&mut input).take(limit).read_line(line);
        number += 1;
        match read {
            Err(error) => Err(("trace-unreadable", format!("line {number} cannot be read: {error}"))),
            Ok(0) => Ok(false),
            Ok(_) if !line.ends_with('\n') => Err(("trace-truncated", format!("line {number} does not end: the file is cut short"))),
            Ok(_) => {
                line.truncate(line.trim_end_matches(['\n', '\r']).len());
                Ok(true)
            }
        }
    };
    if !next(&mut line)? {
        return Err(("trace-empty", "it is empty, without even a header".to_owned()));
    }
    let header = fields(&line).ok_or_else(|| ("trace-unreadable", "the header has a quote that stays open".to_owned()))?;
    let has = |name: &str| header.iter().any(|column| column == name);
    if has("KernelName") || (has("Dispatch_ID") && has("GPU_ID")) {
        let version = if has("KernelName") { "v1" } else { "v2" };
        return Err(("rocprof-old", format!("it was written by rocprof {version}, which loses dispatches; record with rocprofv3")));
    }
    if let Some(twice) = header.iter().enumerate().find(|(at, column)| header[..*at].contains(column)) {
        return Err(("trace-foreign", format!("the header has column '{}' twice", twice.1)));
    }
    let place = |name: &str| header.iter().position(|column| column == name);
    let missing: Vec<&str> = NEEDED.into_iter().filter(|name| !has(name)).collect();
    if !missing.is_empty() {
        return Err(("trace-foreign", format!("the header lacks {}", missing.join(", "))));
    }
    let at: Vec<usize> = NEEDED.iter().filter_map(|name| place(name)).collect();
    let agent_at = place("Agent_Id");
    let mut process = Process::default();
    let mut kernels: BTreeMap<String, u64> = BTreeMap::new();
    while next(&mut line)? {
        if line.is_empty() {
            continue;
        }
        let broken = |what: &str| ("trace-unreadable", format!("line '{}': {what}", line.chars().take(80).collect::<String>()));
        let row = fields(&line).ok_or_else(|| broken("a quote stays open"))?;
        if row.len() != header.len() {
            return Err(broken("it has another number of fields than the header"));
        }
        let text = |index: usize| at.get(index).and_then(|at| row.get(*at)).map_or("", String::as_str);
        let small = |index: usize| text(index).parse::<u32>().map_err(|_| broken("a size is no number"));
        let start = text(1).parse::<u64>().map_err(|_| broken("the time is no number"))?;
        let workgroup = [small(2)?, small(3)?, small(4)?];
        let grid = [small(5)?, small(6)?, small(7)?];
        let name = plain_name(text(0));
        let kernel = match kernels.get(name) {
            Some(kernel) => *kernel,
            None => {
                let fresh = u64::try_from(kernels.len()).unwrap_or(u64::MAX);
                kernels.insert(name.to_owned(), fresh);
                process.kernels.insert(fresh, name.to_owned());
                fresh
            }
        };
        let agent = agent_at.and_then(|at| row.get(at)).and_then(|text| text.trim_start_matches("Agent ").parse().ok()).unwrap_or(0);
        let queue = text(8).parse::<u32>().map_err(|_| broken("the queue is no number"))?;
        process.push(start, queue, Shape { kernel, agent, workgroup: Some(workgroup), blocks: blocks_of(grid, workgroup) });
    }
    let Some(pid) = pid else {
        return Err((
            "trace-without-process",
            "its name does not begin with a process id, so nobody knows whose dispatches these are".to_owned(),
        ));
    };
    Ok(BTreeMap::from([(pid, process)]))
}
