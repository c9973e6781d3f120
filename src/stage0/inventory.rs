//! The inventory as plain data: sources, callsites, bindings, requests and gaps.
//!
//! In: nothing; `run` fills it. Out: what is serialised. Refused: nothing.

use serde::{Deserialize, Serialize};

use super::Place;

/// Schema id of the JSON form.
pub const SCHEMA: &str = "rlk-lint/inventory/v1";

/// One step of a chain.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    /// Where.
    pub at: Place,
    /// Function it starts in.
    pub from: String,
    /// What it reaches.
    pub to: String,
    /// Word for its kind.
    pub kind: String,
}

/// A callsite.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CallsiteRow {
    /// Where.
    pub at: Place,
    /// Class of its path.
    pub class: String,
    /// Word for its kind.
    pub kind: String,
    /// What became of it.
    pub status: String,
    /// How sure that is.
    pub certainty: String,
    /// Function it stands in.
    pub caller: String,
    /// What it stands for or reaches in one step.
    pub targets: Vec<String>,
    /// Owner of the backward pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<String>,
    /// Kernels it can end in.
    pub kernels: Vec<String>,
    /// Contract ids of those.
    pub contracts: Vec<String>,
    /// Conditions that nothing decides.
    pub conditions: Vec<String>,
    /// From an entry down to it.
    pub up: Vec<Step>,
    /// From it down to a kernel.
    pub down: Vec<Step>,
}

/// A binding.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BindingRow {
    /// Where.
    pub at: Place,
    /// Class of its path.
    pub class: String,
    /// Word for its kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// What it stands for or reaches in one step.
    pub targets: Vec<String>,
}

/// A request in documentation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RequestRow {
    /// Where.
    pub at: Place,
    /// Class of its path.
    pub class: String,
    /// The line.
    pub text: String,
}

/// One source.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SourceRow {
    /// Id.
    pub id: String,
    /// Role.
    pub role: String,
    /// Commit.
    pub commit: Option<String>,
    /// Tree of the commit.
    pub tree: Option<String>,
    /// Tree with the patch.
    pub patched_tree: Option<String>,
    /// Digest of the patch.
    pub patch_sha256: Option<String>,
    /// Files read.
    pub files: usize,
}

/// Something that was not seen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GapRow {
    /// Source.
    pub source: String,
    /// Path; empty for the source as a whole.
    pub path: String,
    /// What happened.
    pub cause: String,
}

/// One family.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FamilyRow {
    /// Id.
    pub id: String,
    /// Callsites.
    pub callsites: Vec<CallsiteRow>,
    /// Bindings.
    pub bindings: Vec<BindingRow>,
    /// Mentions in documentation.
    pub requests: Vec<RequestRow>,
}

/// The whole inventory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Inventory {
    /// [`SCHEMA`].
    pub schema: String,
    /// Backend.
    pub backend: String,
    /// Instruction set.
    pub arch: String,
    /// Sources in declared order.
    pub sources: Vec<SourceRow>,
    /// Families in declared order.
    pub families: Vec<FamilyRow>,
    /// What was not seen.
    pub gaps: Vec<GapRow>,
}
