//! What a report, result file or run record states about itself, read from its text.
//!
//! In: the text of a document or of JSON, or the words of a test module. Out: [`Statements`], each with its line: devices, vendors, revisions, shapes,
//! tile configurations, ways of comparing, test outcomes. Refused: guesses; a number whose role is not written beside it is no shape.

use std::collections::BTreeSet;

use serde::Serialize;

use super::tables::{self, Row};

/// A value with the line that states it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Stated<T> {
    /// The value.
    pub value: T,
    /// Line, from 1.
    pub line: u32,
}

/// Who makes a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Vendor {
    /// AMD.
    Rocm,
    /// NVIDIA.
    Cuda,
    /// Moore Threads.
    Musa,
}

impl Vendor {
    /// The backend's word in profiles.
    #[must_use]
    pub const fn backend(self) -> &'static str {
        match self {
            Self::Rocm => "rocm",
            Self::Cuda => "cuda",
            Self::Musa => "musa",
        }
    }
}

/// How results were compared, from strict to lax.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// Bytes, or integers of the same width: +0 and -0 differ, equal NaNs agree.
    RawBits,
    /// `torch.equal` and the like on floating-point values: +0 equals -0.
    ValueEqual,
    /// Within a tolerance.
    Tolerance,
}

impl Comparison {
    /// The word used in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::RawBits => "raw-bits",
            Self::ValueEqual => "value-equal",
            Self::Tolerance => "tolerance",
        }
    }
}

/// A device or instruction set by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Device {
    /// As it is usually written, in lower case: `mi300x`, `gfx942`, `h100`.
    pub name: String,
    /// Its instruction set, where it is known.
    pub arch: Option<String>,
    /// Its maker.
    pub vendor: Vendor,
}

/// Operand sizes of one GEMM; `m` is absent where only the weight's shape is stated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Shape {
    /// What the shape is said to be of, in lower case; empty if nothing is said.
    pub name: String,
    /// Rows.
    pub m: Option<i64>,
    /// Columns of the result.
    pub n: i64,
    /// Length of the sum.
    pub k: i64,
}

/// A tile configuration in the order `block_m, block_n, num_warps, waves_per_eu, num_stages, group_m`.
pub type Tile = [i64; 6];

/// Outcome counts of a test run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcomes {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed, or ended in an error.
    pub failed: u64,
    /// Tests that were skipped.
    pub skipped: u64,
}

/// Everything that one text states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statements {
    /// Devices in headings and labelled fields if there are any there, otherwise anywhere.
    pub devices: BTreeSet<Stated<Device>>,
    /// Vendors by words that name no device (`rocm`, `cuBLAS`).
    pub vendors: BTreeSet<Stated<Vendor>>,
    /// Commit ids, in full or abbreviated, in lower case.
    pub revisions: BTreeSet<Stated<String>>,
    /// Shapes.
    pub shapes: BTreeSet<Stated<Shape>>,
    /// Tile configurations.
    pub tiles: BTreeSet<Stated<Tile>>,
    /// Ways of comparing.
    pub comparisons: BTreeSet<Stated<Comparison>>,
    /// Lines on which rollout scores are said to be used again.
    pub score_reuse: BTreeSet<u32>,
    /// Test outcomes, summed up.
    pub outcomes: Outcomes,
}

/// Device names with their instruction sets.
const DEVICES: &[(&str, &str, Vendor)] = &[
    ("mi100", "gfx908", Vendor::Rocm),
    ("mi210", "gfx90a", Vendor::Rocm),
    ("mi250", "gfx90a", Vendor::Rocm),
    ("mi250x", "gfx90a", Vendor::Rocm),
    ("mi300", "gfx942", Vendor::Rocm),
    ("mi300a", "gfx942", Vendor::Rocm),
    ("mi300x", "gfx942", Vendor::Rocm),
    ("mi308x", "gfx942", Vendor::Rocm),
    ("mi325x", "gfx942", Vendor::Rocm),
    ("mi350x", "gfx950", Vendor::Rocm),
    ("mi355x", "gfx950", Vendor::Rocm),
    ("v100", "sm_70", Vendor::Cuda),
    ("a100", "sm_80", Vendor::Cuda),
    ("a800", "sm_80", Vendor::Cuda),
    ("l40", "sm_89", Vendor::Cuda),
    ("l40s", "sm_89", Vendor::Cuda),
    ("h20", "sm_90", Vendor::Cuda),
    ("h100", "sm_90", Vendor::Cuda),
    ("h200", "sm_90", Vendor::Cuda),
    ("h800", "sm_90", Vendor::Cuda),
    ("b100", "sm_100", Vendor::Cuda),
    ("b200", "sm_100", Vendor::Cuda),
    ("gb200", "sm_100", Vendor::Cuda),
];

/// Words that name a vendor and no device.
const VENDOR_WORDS: &[(&str, Vendor)] = &[
    ("rocm", Vendor::Rocm),
    ("hip", Vendor::Rocm),
    ("hipblaslt", Vendor::Rocm),
    ("cdna3", Vendor::Rocm),
    ("cuda", Vendor::Cuda),
    ("nvidia", Vendor::Cuda),
    ("cublas", Vendor::Cuda),
    ("cublaslt", Vendor::Cuda),
    ("hopper", Vendor::Cuda),
    ("blackwell", Vendor::Cuda),
    ("musa", Vendor::Musa),
    ("torch_musa", Vendor::Musa),
    ("mudnn", Vendor::Musa),
];

/// Words that say that a line is about the device.
const DEVICE_LABELS: &[&str] =
    &["gpu", "gpus", "device", "devices", "hardware", "platform", "accelerator", "accelerators", "arch", "backend"];
/// Words that say that a hexadecimal word is a commit.
const REVISION_LABELS: &[&str] = &["commit", "commits", "revision", "revisions", "rev", "sha", "head", "git"];

/// A device by one lower-case word.
pub(super) fn device(word: &str) -> Option<Device> {
    if let Some((name, arch, vendor)) = DEVICES.iter().find(|(name, ..)| *name == word) {
        return Some(Device { name: (*name).to_owned(), arch: Some((*arch).to_owned()), vendor: *vendor });
    }
    let gfx = word.strip_prefix("gfx").is_some_and(|rest| (3..=5).contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_hexdigit()));
    if gfx {
        return Some(Device { name: word.to_owned(), arch: Some(word.to_owned()), vendor: Vendor::Rocm });
    }
    let digits = word.strip_prefix("sm_").or_else(|| word.strip_prefix("sm"))?;
    let number = digits.trim_end_matches('a');
    if (2..=3).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit()) {
        return Some(Device { name: word.to_owned(), arch: Some(format!("sm_{number}")), vendor: Vendor::Cuda });
    }
    None
}

/// Lower-case words of a line: letters, digits and underscores.
pub(super) fn words(line: &str) -> Vec<String> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// Reads a document or JSON.
#[must_use]
pub fn read(text: &str) -> Statements {
    let mut out = Statements::default();
    let mut everywhere = BTreeSet::new();
    for (at, line) in text.lines().enumerate() {
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        let words = words(line);
        let labelled = line.trim_start().starts_with('#') || words.iter().any(|word| DEVICE_LABELS.contains(&word.as_str()));
        for found in words.iter().filter_map(|word| device(word)) {
            let stated = Stated { value: found, line: number };
            if labelled {
                out.devices.insert(stated.clone());
            }
            everywhere.insert(stated);
        }
        vendors(&words, number, &mut out);
        revisions(line, &words, number, &mut out);
        comparisons(line, &words, number, &mut out);
        outcomes(line, &words, &mut out.outcomes);
        if reuses_scores(line) {
            out.score_reuse.insert(number);
        }
        out.tiles.extend(tiles_in(line).into_iter().map(|value| Stated { value, line: number }));
    }
    if out.devices.is_empty() {
        out.devices = everywhere;
    }
    for row in tables::rows(text) {
        read_row(&row, &mut out);
    }
    out
}

pub(super) fn vendors(words: &[String], line: u32, out: &mut Statements) {
    for word in words {
        if let Some((_, vendor)) = VENDOR_WORDS.iter().find(|(name, _)| name == word) {
            out.vendors.insert(Stated { value: *vendor, line });
        }
    }
}

/// Hexadecimal words of 7 to 40 digits on a line that speaks of commits, or behind an `@`.
fn revisions(line: &str, words: &[String], number: u32, out: &mut Statements) {
    let labelled = words.iter().any(|word| REVISION_LABELS.contains(&word.as_str()) || word.ends_with("_commit") || word.ends_with("_sha"));
    for word in words {
        let hex = (7..=40).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_hexdigit());
        // A word of digits alone is a number, and one without any is a word.
        let mixed = word.len() == 40 || (word.bytes().any(|b| b.is_ascii_digit()) && word.bytes().any(|b| b.is_ascii_alphabetic()));
        if hex && mixed && (labelled || line.to_lowercase().contains(&format!("@{word}"))) {
            out.revisions.insert(Stated { value: word.clone(), line: number });
        }
    }
}

fn comparisons(line: &str, words: &[String], number: u32, out: &mut Statements) {
    let lower = line.to_lowercase();
    let has = |word: &str| words.iter().any(|own| own == word);
    let mut add = |value| {
        out.comparisons.insert(Stated { value, line: number });
    };
    let raw = ["raw bits", "raw-bit", "raw bytes", "raw-byte", "as int16", "int16 view", "view(torch.int16)"];
    // A line that speaks of raw bits to say that they were not compared claims nothing.
    let denied = ["not", "no", "never", "without", "nor"].iter().any(|word| has(word));
    if raw.iter().any(|phrase| lower.contains(phrase)) && !denied {
        add(Comparison::RawBits);
    } else if lower.contains("torch.equal") || lower.contains("value-equal") || has("array_equal") {
        add(Comparison::ValueEqual);
    }
    if ["allclose", "atol", "rtol", "tolerance", "assert_close"].iter().any(|word| has(word)) {
        add(Comparison::Tolerance);
    }
}

/// `12 passed, 3 skipped` and `"passed": 12`.
fn outcomes(line: &str, words: &[String], out: &mut Outcomes) {
    for (at, word) in words.iter().enumerate() {
        let slot = match word.as_str() {
            "passed" => &mut out.passed,
            "failed" | "error" | "errors" | "failures" => &mut out.failed,
            "skipped" => &mut out.skipped,
            _ => continue,
        };
        let number = |at: Option<usize>| at.and_then(|at| words.get(at)).and_then(|word| word.parse::<u64>().ok());
        // The number stands before the word in pytest's summary, behind it in JSON.
        let is_key = line.contains(&format!("\"{word}\""));
        let count = if is_key { number(Some(at + 1)) } else { number(at.checked_sub(1)) };
        if let Some(count) = count {
            *slot = slot.saturating_add(count);
        }
    }
}

/// Whether a line switches the use of rollout scores on.
fn reuses_scores(line: &str) -> bool {
    let lower = line.to_lowercase().replace('-', "_");
    lower.match_indices("use_rollout_logprobs").any(|(at, name)| {
        let rest = words(&lower[at + name.len()..]);
        matches!(rest.first().map(String::as_str), Some("true" | "1" | "on" | "yes" | "enabled"))
    })
}

/// Parenthesised groups of exactly six numbers.
pub(super) fn tiles_in(line: &str) -> Vec<Tile> {
    let mut out = Vec::new();
    for part in line.split('(').skip(1) {
        let Some((inside, _)) = part.split_once(')') else { continue };
        let numbers: Option<Vec<i64>> = inside.split(',').map(|number| number.trim().parse().ok()).collect();
        if let Some(tile) = numbers.and_then(|numbers| Tile::try_from(numbers).ok()) {
            out.push(tile);
        }
    }
    out
}

/// A row of a table, or an object of JSON, with N and K.
fn read_row(row: &Row, out: &mut Statements) {
    let number =
        |keys: &[&str]| row.cells.iter().find(|(key, _)| keys.contains(&key.as_str())).and_then(|(_, value)| tables::number(value));
    if let (Some(n), Some(k)) = (number(&["n", "n_size"]), number(&["k", "k_size"])) {
        let name = row
            .cells
            .iter()
            .find(|(key, _)| matches!(key.as_str(), "region" | "shape" | "projection" | "operator" | "name" | "layer" | "gemm"));
        let name = name.map(|(_, value)| value.trim_matches(|c: char| c == '`' || c.is_whitespace()).to_lowercase()).unwrap_or_default();
        let shape = Shape { name, m: number(&["m", "m_size", "rows", "tokens"]), n, k };
        out.shapes.insert(Stated { value: shape, line: row.line });
    }
    let tile: Option<Vec<i64>> = [
        ["block_m", "bm"],
        ["block_n", "bn"],
        ["num_warps", "warps"],
        ["waves_per_eu", "waves"],
        ["num_stages", "stages"],
        ["group_m", "group"],
    ]
    .iter()
    .map(|keys| number(keys))
    .collect();
    if let Some(tile) = tile.and_then(|tile| Tile::try_from(tile).ok()) {
        out.tiles.insert(Stated { value: tile, line: row.line });
    }
}
