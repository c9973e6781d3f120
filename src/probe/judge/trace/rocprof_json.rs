//! rocprofv3's JSON: one document with processes, devices, kernel symbols and dispatches.
//!
//! In: a stream. Out: dispatches by process. Refused: see [`super`]; also a dispatch whose kernel has no symbol or whose process is not named.

use std::collections::BTreeMap;
use std::io::Read;

use serde::Deserialize;

use super::super::json_stream::{self, StreamError};
use super::{Process, Refusal, Shape, blocks_of, plain_name};

#[derive(Deserialize)]
struct Metadata {
    pid: u64,
    #[serde(default)]
    config: serde_json::Map<String, serde_json::Value>,
}

#[derive(Deserialize)]
struct Handle {
    handle: u64,
}

#[derive(Deserialize)]
struct Agent {
    id: Handle,
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Symbol {
    kernel_id: u64,
    kernel_name: String,
}

#[derive(Deserialize)]
struct Record {
    start_timestamp: u64,
    dispatch_info: Info,
}

#[derive(Deserialize)]
struct Info {
    agent_id: Handle,
    queue_id: Handle,
    kernel_id: u64,
    workgroup_size: Axes,
    grid_size: Axes,
}

#[derive(Deserialize)]
struct Axes {
    x: u32,
    y: u32,
    z: u32,
}

impl Axes {
    const fn extent(&self) -> super::Extent {
        [self.x, self.y, self.z]
    }
}

/// Switches of the collection that hide or rename dispatches, with what an untouched collection has there.
fn hides(config: &serde_json::Map<String, serde_json::Value>) -> Option<Refusal> {
    let set = |value: &serde_json::Value| match value {
        serde_json::Value::Null => false,
        serde_json::Value::Bool(value) => *value,
        serde_json::Value::Number(value) => value.as_f64() != Some(0.0),
        serde_json::Value::String(value) => !matches!(value.as_str(), "" | "0" | "false" | ".*"),
        serde_json::Value::Array(values) => !values.is_empty(),
        serde_json::Value::Object(values) => !values.is_empty(),
    };
    for (name, value) in config {
        if !set(value) {
            continue;
        }
        let reason = match name.as_str() {
            "kernel_rename" => "kernels-renamed",
            "truncate" | "truncate_kernels" => "kernels-truncated",
            "minimum_output_data" | "minimum_output_bytes" => "collection-drops-small-files",
            "collection_periods" | "collection_period" | "collection-period" => "collection-timed",
            "kernel_filter_include"
            | "kernel_filter_exclude"
            | "kernel_filter_range"
            | "kernel_include_regex"
            | "kernel_exclude_regex"
            | "kernel_iteration_range" => "collection-filtered",
            _ => continue,
        };
        return Some((reason, format!("the collection ran with '{name}' set to {value}, so that kernels are hidden or have other names")));
    }
    None
}

/// Reads a document.
///
/// # Errors
/// Why it is no observation.
pub fn read(input: impl Read) -> Result<BTreeMap<u64, Process>, Refusal> {
    let paths: [json_stream::Path<'_>; 4] = [
        &["rocprofiler-sdk-tool", "*", "metadata"],
        &["rocprofiler-sdk-tool", "*", "agents", "*"],
        &["rocprofiler-sdk-tool", "*", "kernel_symbols", "*"],
        &["rocprofiler-sdk-tool", "*", "buffer_records", "kernel_dispatch", "*"],
    ];
    // One element per process, whose parts come in any order.
    let mut tools: BTreeMap<usize, (Option<u64>, Process)> = BTreeMap::new();
    let mut refusal = None;
    let mut queues: BTreeMap<u64, u32> = BTreeMap::new();
    let mut each = |found: json_stream::Found, bytes: &[u8]| -> Result<(), String> {
        let parse = |error: serde_json::Error| error.to_string();
        let (pid, process) = tools.entry(found.outer).or_default();
        match found.path {
            0 => {
                let metadata: Metadata = serde_json::from_slice(bytes).map_err(parse)?;
                *pid = Some(metadata.pid);
                refusal = refusal.take().or_else(|| hides(&metadata.config));
            }
            1 => {
                let agent: Agent = serde_json::from_slice(bytes).map_err(parse)?;
                process.agents.insert(agent.id.handle, agent.name);
            }
            2 => {
                let symbol: Symbol = serde_json::from_slice(bytes).map_err(parse)?;
                process.kernels.insert(symbol.kernel_id, plain_name(&symbol.kernel_name).to_owned());
            }
            _ => {
                let Record { start_timestamp, dispatch_info: info } = serde_json::from_slice(bytes).map_err(parse)?;
                let next = u32::try_from(queues.len()).unwrap_or(u32::MAX);
                let queue = *queues.entry(info.queue_id.handle).or_insert(next);
                let workgroup = info.workgroup_size.extent();
                let shape = Shape {
                    kernel: info.kernel_id,
                    agent: info.agent_id.handle,
                    workgroup: Some(workgroup),
                    blocks: blocks_of(info.grid_size.extent(), workgroup),
                };
                process.push(start_timestamp, queue, shape);
            }
        }
        Ok(())
    };
    json_stream::elements(input, &paths, &mut each).map_err(|error| match error {
        StreamError::Truncated(_) => ("trace-truncated", error.to_string()),
        _ => ("trace-unreadable", error.to_string()),
    })?;
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    if tools.is_empty() {
        return Err(("trace-foreign", "it has no 'rocprofiler-sdk-tool' records, so rocprofv3 did not write it".to_owned()));
    }
    let mut processes = BTreeMap::new();
    for (pid, process) in tools.into_values() {
        let Some(pid) = pid else {
            return Err(("trace-without-process", "its metadata names no process".to_owned()));
        };
        if let Some(shape) = process.shapes.iter().find(|shape| !process.kernels.contains_key(&shape.kernel)) {
            return Err(("trace-without-symbol", format!("kernel {} of process {pid} has dispatches and no symbol", shape.kernel)));
        }
        if processes.insert(pid, process).is_some() {
            return Err(("trace-process-twice", format!("process {pid} stands in it twice")));
        }
    }
    Ok(processes)
}
