//! The JSON that Triton writes beside a compiled kernel: what the compiler was asked for.
//!
//! In: its text. Out: [`Metadata`]. Refused: what is not a JSON object, or lacks the fields that every version writes. It is a claim: what the code is
//! stands in the code object, and the two are compared.

use std::collections::BTreeMap;

use serde_json::Value;

/// What the metadata of one kernel says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Kernel name.
    pub name: String,
    /// Triton's key for source, options, target and version, lower-case hex; names the folder.
    pub hash: String,
    /// Instruction set, without features.
    pub arch: String,
    /// Lanes per wave.
    pub wavefront: u64,
    /// Triton version.
    pub triton: String,
    /// Bytes of local memory that a launch asks for. The code object does not say.
    pub lds_bytes: u64,
    /// Waves per workgroup.
    pub num_warps: u64,
    /// Options that are numbers, by name: `kpack`, `matrix_instr_nonkdim`, `num_stages`, `waves_per_eu` and so on.
    pub numbers: BTreeMap<String, u64>,
    /// Options that are switches, by name.
    pub switches: BTreeMap<String, bool>,
    /// Environment variables that were set and changed what is compiled, with their values.
    pub environment: BTreeMap<String, String>,
}

impl Metadata {
    /// Reads it.
    ///
    /// # Errors
    /// As one clause, what is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        let root: Value = serde_json::from_str(text).map_err(|cause| format!("is not JSON: {cause}"))?;
        let Value::Object(root) = root else { return Err("is not a JSON object".to_owned()) };
        let target = root.get("target").and_then(Value::as_object).ok_or("has no `target`")?;
        let backend = target.get("backend").and_then(Value::as_str).unwrap_or("");
        if backend != "hip" {
            return Err(format!("is for backend `{}`, not for `hip`", crate::text::sanitize(backend)));
        }
        let text = |map: &serde_json::Map<String, Value>, key: &str| {
            map.get(key).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| format!("has no `{key}`"))
        };
        let number =
            |map: &serde_json::Map<String, Value>, key: &str| map.get(key).and_then(Value::as_u64).ok_or_else(|| format!("has no `{key}`"));
        let mut metadata = Self {
            name: text(&root, "name")?,
            hash: text(&root, "hash")?,
            arch: text(target, "arch")?.split(':').next().unwrap_or_default().to_owned(),
            wavefront: number(target, "warp_size")?,
            triton: text(&root, "triton_version")?,
            lds_bytes: number(&root, "shared")?,
            num_warps: number(&root, "num_warps")?,
            ..Self::default()
        };
        for (key, value) in &root {
            if is_variable(key) {
                let written = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                metadata.environment.insert(key.clone(), written);
            } else if let Some(number) = value.as_u64() {
                metadata.numbers.insert(key.clone(), number);
            } else if let Some(switch) = value.as_bool() {
                metadata.switches.insert(key.clone(), switch);
            }
        }
        Ok(metadata)
    }
}

/// Options are lower case, environment variables upper case.
fn is_variable(key: &str) -> bool {
    key.bytes().any(|byte| byte.is_ascii_uppercase()) && !key.bytes().any(|byte| byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_environment_are_told_apart() {
        let text = concat!(
            r#"{"hash": "ab", "target": {"backend": "hip", "arch": "gfx942:sramecc+", "warp_size": 64}, "name": "k", "shared": 512, "num_warps": 2,"#,
            r#" "triton_version": "3.7.0", "kpack": 2, "debug": false, "DISABLE_LLVM_OPT": "1", "TRITON_F32_DEFAULT": null, "schedule_hint": "none"}"#
        );
        let metadata = Metadata::read(text).unwrap();
        assert_eq!((metadata.arch.as_str(), metadata.wavefront, metadata.lds_bytes, metadata.num_warps), ("gfx942", 64, 512, 2));
        assert_eq!(metadata.numbers["kpack"], 2);
        assert!(!metadata.switches["debug"]);
        let environment: Vec<(&str, &str)> = metadata.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(environment, [("DISABLE_LLVM_OPT", "1"), ("TRITON_F32_DEFAULT", "null")]);
    }

    #[test]
    fn what_is_missing_is_named() {
        let refused = |text: &str| Metadata::read(text).unwrap_err();
        assert!(refused("{\"hash\": ").starts_with("is not JSON"));
        assert_eq!(refused("[]"), "is not a JSON object");
        assert_eq!(refused("{}"), "has no `target`");
        assert_eq!(refused(r#"{"target": {"backend": "cuda"}}"#), "is for backend `cuda`, not for `hip`");
        assert_eq!(refused(r#"{"name": "k", "target": {"backend": "hip"}}"#), "has no `hash`");
        assert_eq!(refused(r#"{"name": 3, "target": {"backend": "hip"}}"#), "has no `name`");
    }
}
