//! What was compiled, in a form that another machine can compile again.
//!
//! In: launches and the kernels that they led to. Out: JSON of the schema [`SCHEMA`]. Refused: a record of another schema. It holds no path, no time and no
//! name of a machine.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Identifies records and their version.
pub const SCHEMA: &str = "rlk-lint/probe-record/v1";
/// Largest record that is read, in bytes.
pub const MAX_BYTES: u64 = 64 << 20;

/// One launch: a candidate at a shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Name of the shape class.
    pub shape: String,
    /// Rows.
    pub m: u64,
    /// Columns.
    pub n: u64,
    /// Depth.
    pub k: u64,
    /// How the second operand lies: `nk` or `kn`.
    pub layout: String,
    /// Name of the configuration in the module.
    pub config: String,
    /// The configuration as Python writes it.
    pub values: String,
    /// Schedule that was forced; `None` if the module chose.
    pub split: Option<bool>,
    /// Keys of the kernels that it launched, in order.
    pub kernels: Vec<String>,
    /// Why nothing was compiled, as one clause.
    pub failure: Option<String>,
}

impl Launch {
    /// A few words that tell it from others of its configuration.
    #[must_use]
    pub fn label(&self) -> String {
        let schedule = match self.split {
            Some(true) => ", split",
            Some(false) => ", monolithic",
            None => "",
        };
        format!("{} at M={}{schedule}", self.shape, self.m)
    }
}

/// One compiled kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compiled {
    /// Name.
    pub kernel: String,
    /// Triton's key.
    pub key: String,
    /// Identity of the code.
    pub code_id: String,
    /// What Triton specialised it for: signature, constants, attributes, options and target.
    pub specialisation: String,
}

/// A whole compilation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: String,
    /// That nothing was observed on a device.
    pub label: String,
    /// Version of Triton.
    pub triton: String,
    /// What was compiled for.
    pub arch: String,
    /// Kernel module.
    pub module: String,
    /// SHA-256 over the sources that were compiled.
    pub sources: String,
    /// Launches in the order of the plan.
    pub launches: Vec<Launch>,
    /// Kernels by name and key.
    pub kernels: Vec<Compiled>,
}

impl Record {
    /// Reads one.
    ///
    /// # Errors
    /// As one clause, what is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        let record: Self = serde_json::from_str(text).map_err(|cause| format!("is no record: {cause}"))?;
        if record.schema != SCHEMA {
            return Err(format!("has schema `{}`, and this version reads `{SCHEMA}`", crate::text::sanitize(&record.schema)));
        }
        let keys: BTreeSet<&str> = record.kernels.iter().map(|kernel| kernel.key.as_str()).collect();
        if keys.len() != record.kernels.len() {
            return Err("lists one key twice".to_owned());
        }
        Ok(record)
    }

    /// The kernel with this key.
    #[must_use]
    pub fn kernel(&self, key: &str) -> Option<&Compiled> {
        self.kernels.iter().find(|kernel| kernel.key == key)
    }

    /// As text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

/// Constants that a kernel was specialised for, by the name of the parameter. Triton stores them under the parameter's number.
#[must_use]
pub fn constants(specialisation: &str) -> Option<BTreeMap<String, Value>> {
    let data: Value = serde_json::from_str(specialisation).ok()?;
    let parameters: Vec<&String> = data.get("signature")?.as_object()?.keys().collect();
    let numbers = data.get("constant_keys")?.as_array()?;
    let values = data.get("constant_vals")?.as_array()?;
    let mut constants = BTreeMap::new();
    for (number, value) in numbers.iter().zip(values) {
        let [number] = number.as_array()?.as_slice() else { continue };
        let name = parameters.get(usize::try_from(number.as_u64()?).ok()?)?;
        constants.insert((*name).clone(), value.get("constexpr").unwrap_or(value).clone());
    }
    Some(constants)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_have_the_names_of_their_parameters() {
        let data = r#"{"signature": {"a_ptr": "*bf16", "M": "constexpr", "BLOCK_K": "constexpr", "EVEN_K": "constexpr"},
            "constant_keys": [[1], [2], [3]], "constant_vals": [1, {"constexpr": 64}, true]}"#;
        let found = constants(data).unwrap();
        assert_eq!(found["M"], 1);
        assert_eq!(found["BLOCK_K"], 64);
        assert_eq!(found["EVEN_K"], true);
        assert_eq!(constants("{}"), None);
        assert_eq!(constants(r#"{"signature": {"a": "i32"}, "constant_keys": [[7]], "constant_vals": [1]}"#), None);
    }

    #[test]
    fn a_record_of_another_schema_is_refused() {
        let record = Record {
            schema: SCHEMA.to_owned(),
            label: String::new(),
            triton: "3.7.0".to_owned(),
            arch: "gfx942".to_owned(),
            module: "kernels".to_owned(),
            sources: String::new(),
            launches: Vec::new(),
            kernels: vec![Compiled { kernel: "k".into(), key: "a".into(), code_id: "b".into(), specialisation: "{}".into() }],
        };
        assert_eq!(Record::read(&record.text()), Ok(record.clone()));
        let other = record.text().replace("record/v1", "record/v9");
        assert!(Record::read(&other).unwrap_err().contains("`rlk-lint/probe-record/v9`"));
        let mut twice = record.clone();
        twice.kernels.push(record.kernels[0].clone());
        assert_eq!(Record::read(&twice.text()).unwrap_err(), "lists one key twice");
        assert!(Record::read("{").unwrap_err().starts_with("is no record"));
    }
}
