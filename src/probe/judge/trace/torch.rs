//! torch.profiler's trace in Chrome's format.
//!
//! In: a stream, and the process that the file's name says it is of. Out: kernel events as dispatches; their grid is in workgroups and absent
//! where the profiler could not join the launch, which is kept as absent. Refused: see [`super`]; also a trace without a schema version.

use std::collections::BTreeMap;
use std::io::Read;

use serde::Deserialize;

use super::super::json_stream::{self, StreamError};
use super::{Extent, Process, Refusal, Shape, plain_name};

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default)]
    cat: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<std::borrow::Cow<'a, str>>,
    #[serde(default)]
    ts: Option<f64>,
    #[serde(default)]
    args: Arguments,
}

#[derive(Default, Deserialize)]
struct Arguments {
    #[serde(default)]
    device: Option<u64>,
    #[serde(default)]
    stream: Option<u32>,
    #[serde(default)]
    grid: Option<Extent>,
    #[serde(default)]
    block: Option<Extent>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Device {
    id: u64,
    #[serde(default)]
    name: String,
    #[serde(default)]
    compute_major: u32,
    #[serde(default)]
    compute_minor: u32,
    #[serde(default)]
    warp_size: u32,
}

/// Nanoseconds from microseconds with a fraction.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn nanoseconds(microseconds: f64) -> u64 {
    (microseconds * 1000.0).max(0.0) as u64
}

/// Reads a document.
///
/// # Errors
/// Why it is no observation.
pub fn read(input: impl Read, pid: Option<u64>) -> Result<BTreeMap<u64, Process>, Refusal> {
    let paths: [json_stream::Path<'_>; 3] = [&["schemaVersion"], &["deviceProperties", "*"], &["traceEvents", "*"]];
    let mut versioned = false;
    let mut process = Process::default();
    let mut kernels: BTreeMap<String, u64> = BTreeMap::new();
    let mut each = |found: json_stream::Found, bytes: &[u8]| -> Result<(), String> {
        match found.path {
            0 => versioned = true,
            1 => {
                let device: Device = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
                // The trace has no architecture; 9.4 with waves of 64 is what MI300 reports, and nothing else does.
                let arch = match (device.compute_major, device.compute_minor, device.warp_size) {
                    (9, 4, 64) => "gfx942".to_owned(),
                    _ => device.name,
                };
                process.agents.insert(device.id, arch);
            }
            _ => {
                // Most events are no kernels, and their arguments have other types.
                if !is_kernel(bytes) {
                    return Ok(());
                }
                let event: Event<'_> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
                if event.cat.as_deref() != Some("kernel") {
                    return Ok(());
                }
                let name = plain_name(event.name.as_deref().unwrap_or(""));
                let fresh = u64::try_from(kernels.len()).unwrap_or(u64::MAX);
                let kernel = match kernels.get(name) {
                    Some(kernel) => *kernel,
                    None => {
                        kernels.insert(name.to_owned(), fresh);
                        process.kernels.insert(fresh, name.to_owned());
                        fresh
                    }
                };
                let Arguments { device, stream, grid, block } = event.args;
                let shape = Shape { kernel, agent: device.unwrap_or(u64::MAX), workgroup: grid.and(block), blocks: block.and(grid) };
                process.push(event.ts.map_or(0, nanoseconds), stream.unwrap_or(u32::MAX), shape);
            }
        }
        Ok(())
    };
    json_stream::elements(input, &paths, &mut each).map_err(|error| match error {
        StreamError::Truncated(_) => ("trace-truncated", error.to_string()),
        _ => ("trace-unreadable", error.to_string()),
    })?;
    if !versioned {
        return Err(("trace-foreign", "it has no 'schemaVersion', so torch.profiler did not write it".to_owned()));
    }
    let Some(pid) = pid else {
        return Err((
            "trace-without-process",
            "its name is not 'torch-<pid>….json', so nobody knows whose dispatches these are".to_owned(),
        ));
    };
    Ok(BTreeMap::from([(pid, process)]))
}

/// Whether an event can be of the category `kernel`, by its bytes.
fn is_kernel(bytes: &[u8]) -> bool {
    bytes.windows(8).any(|window| window == b"\"kernel\"")
}
