//! The tables of a probe, for people and for machines.
//!
//! In: what was read. Out: text and plain data without places, clocks and paths of this machine. Refused: the word "validated": what is said here is read
//! from files, and no device has run anything.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cache::{Cache, Entry};
use super::record::Record;
use crate::text::sanitize;

/// What every report of compiled code carries.
pub const LABEL: &str = "static only: read from files, not observed on a device";

/// One compiled kernel, as reports show it.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Kernel name.
    pub kernel: String,
    /// Triton's key.
    pub key: String,
    /// What the machine code is for.
    pub processor: String,
    /// Triton version that the metadata names.
    pub triton: String,
    /// Identity of the code.
    pub code_id: String,
    /// Matrix instructions by mnemonic.
    pub matrix: BTreeMap<String, u64>,
    /// Values of `kWidth`.
    pub k_widths: Vec<u64>,
    /// Tiles as (M, N, K).
    pub tiles: Vec<(u64, u64, u64)>,
    /// Waves per workgroup.
    pub num_warps: u64,
    /// Local memory in bytes, from the metadata.
    pub lds_bytes: u64,
    /// Vector registers.
    pub vgprs: u64,
    /// Accumulation registers.
    pub agprs: u64,
    /// Scalar registers.
    pub sgprs: u64,
    /// Spilled vector registers.
    pub vgpr_spills: u64,
    /// Scratch memory per lane in bytes.
    pub scratch_bytes: u64,
}

impl Row {
    /// The row of an entry.
    #[must_use]
    pub fn of(entry: &Entry) -> Self {
        let Entry { metadata, code, dots, .. } = entry;
        let kernel = code.kernels.iter().find(|kernel| kernel.name == metadata.name).cloned().unwrap_or_default();
        Self {
            kernel: metadata.name.clone(),
            key: metadata.hash.clone(),
            processor: code.processor.name(),
            triton: metadata.triton.clone(),
            code_id: code.code_id.clone(),
            matrix: code.matrix.clone(),
            k_widths: dots.iter().flat_map(|dots| dots.k_widths.iter().copied()).collect(),
            tiles: dots.iter().flat_map(|dots| dots.tiles.iter().copied()).collect(),
            num_warps: metadata.num_warps,
            lds_bytes: metadata.lds_bytes,
            vgprs: kernel.vgprs,
            agprs: kernel.agprs,
            sgprs: kernel.sgprs,
            vgpr_spills: kernel.vgpr_spills,
            scratch_bytes: kernel.scratch_bytes,
        }
    }
}

/// Rows of a cache, by kernel name, then key.
#[must_use]
pub fn rows(cache: &Cache) -> Vec<Row> {
    let mut rows: Vec<Row> = cache.entries.iter().map(Row::of).collect();
    rows.sort_by(|a, b| (&a.kernel, &a.key).cmp(&(&b.kernel, &b.key)));
    rows
}

/// The table of a cache, for people.
#[must_use]
pub fn table(cache: &Cache) -> String {
    let head =
        ["kernel", "processor", "code_id", "tile", "kWidth", "matrix instructions", "warps", "LDS", "VGPR", "AGPR", "spills", "scratch"];
    let mut lines: Vec<Vec<String>> = vec![head.map(str::to_owned).to_vec()];
    for row in rows(cache) {
        let tiles: Vec<String> = row.tiles.iter().map(|(m, n, k)| format!("{m}x{n}x{k}")).collect();
        let widths: Vec<String> = row.k_widths.iter().map(u64::to_string).collect();
        let dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
        lines.push(vec![
            sanitize(&row.kernel).into_owned(),
            row.processor,
            row.code_id.chars().take(16).collect(),
            dash(tiles.join(" ")),
            dash(widths.join(" ")),
            super::assembly::counted(&row.matrix),
            row.num_warps.to_string(),
            row.lds_bytes.to_string(),
            row.vgprs.to_string(),
            row.agprs.to_string(),
            row.vgpr_spills.to_string(),
            row.scratch_bytes.to_string(),
        ]);
    }
    let mut text = aligned(&lines);
    text.push_str(&format!("{LABEL}\n"));
    text
}

/// The table of candidates by shape class, for people. Rows of one candidate that lead to the same code are one row.
#[must_use]
pub fn candidates(record: &Record, cache: &Cache) -> String {
    let by_key: BTreeMap<&str, Row> = cache.entries.iter().map(|entry| (entry.metadata.hash.as_str(), Row::of(entry))).collect();
    let head = [
        "shape",
        "M",
        "N",
        "K",
        "layout",
        "configuration",
        "schedule",
        "kernel",
        "code_id",
        "matrix",
        "kWidth",
        "LDS",
        "VGPR",
        "spills",
        "scratch",
    ];
    let mut lines: Vec<Vec<String>> = vec![head.map(str::to_owned).to_vec()];
    let mut at: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for launch in &record.launches {
        let schedule = match launch.split {
            Some(true) => "split",
            Some(false) => "monolithic",
            None => "as chosen",
        };
        let front = [
            launch.shape.clone(),
            launch.n.to_string(),
            launch.k.to_string(),
            launch.layout.clone(),
            launch.config.clone(),
            schedule.to_owned(),
        ];
        let mut rows: Vec<Vec<String>> = Vec::new();
        for key in &launch.kernels {
            let Some(row) = by_key.get(key.as_str()) else { continue };
            let widths: Vec<String> = row.k_widths.iter().map(u64::to_string).collect();
            let dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
            rows.push(vec![
                sanitize(&row.kernel).into_owned(),
                row.code_id.chars().take(16).collect(),
                dash(row.matrix.keys().map(|name| name.trim_start_matches("v_mfma_")).collect::<Vec<_>>().join(" ")),
                dash(widths.join(" ")),
                row.lds_bytes.to_string(),
                row.vgprs.to_string(),
                row.vgpr_spills.to_string(),
                row.scratch_bytes.to_string(),
            ]);
        }
        if let Some(why) = &launch.failure {
            rows.push(vec![format!("failed: {}", sanitize(why))]);
        }
        for back in rows {
            let [shape, n, k, layout, config, schedule] = front.clone().map(|cell| sanitize(&cell).into_owned());
            let mut line = vec![shape, String::new(), n, k, layout, config, schedule];
            line.extend(back);
            match at.get(&line).and_then(|at| lines.get_mut(*at)).and_then(|line| line.get_mut(1)) {
                Some(rows) => rows.push_str(&format!(" {}", launch.m)),
                None => {
                    at.insert(line.clone(), lines.len());
                    line[1] = launch.m.to_string();
                    lines.push(line);
                }
            }
        }
    }
    let failed = record.launches.iter().filter(|launch| launch.failure.is_some()).count();
    let mut text = aligned(&lines);
    text.push_str(&format!(
        "{} launches, {failed} of them failed; {} kernels; Triton {}; {}\n{LABEL}\n",
        record.launches.len(),
        record.kernels.len(),
        sanitize(&record.triton),
        sanitize(&record.arch),
    ));
    text
}

/// Columns under each other, two spaces apart.
#[must_use]
pub fn aligned(lines: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for line in lines {
        for (at, cell) in line.iter().enumerate() {
            let wide = cell.chars().count();
            match widths.get_mut(at) {
                Some(width) => *width = wide.max(*width),
                None => widths.push(wide),
            }
        }
    }
    let mut text = String::new();
    for line in lines {
        let mut row = String::new();
        for (cell, width) in line.iter().zip(&widths) {
            row.push_str(cell);
            row.extend(std::iter::repeat_n(' ', width - cell.chars().count() + 2));
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}
