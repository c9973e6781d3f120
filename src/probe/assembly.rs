//! The assembly text that Triton keeps beside a binary.
//!
//! In: the text of an `.amdgcn` file. Out: the few numbers in it that the binary says as well. It is never evidence about the binary: what is loaded is
//! the `.hsaco`, and where the two differ, one of them was replaced.

use std::collections::BTreeMap;

use super::code_object::{CodeObject, Processor};

/// What the text says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assembly {
    /// Matrix instructions by mnemonic.
    pub matrix: BTreeMap<String, u64>,
    /// Fields of the kernel's metadata, by name without the dot.
    pub fields: BTreeMap<String, u64>,
    /// Bytes of machine code.
    pub code_bytes: Option<u64>,
}

impl Assembly {
    /// Reads it.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut assembly = Self::default();
        for line in text.lines() {
            let line = line.trim_start();
            if line.starts_with("v_mfma_") || line.starts_with("v_smfmac_") {
                let mnemonic = line.split([' ', '\t']).next().unwrap_or(line);
                // Some assemblers write the size of the encoding after the name.
                let mnemonic = mnemonic.trim_end_matches("_e64");
                *assembly.matrix.entry(mnemonic.to_owned()).or_insert(0) += 1;
            } else if let Some((key, value)) = line.strip_prefix('.').and_then(|line| line.split_once(':')) {
                if let Ok(value) = value.trim().parse() {
                    assembly.fields.insert(key.to_owned(), value);
                }
            } else if let Some(value) = line.strip_prefix("; codeLenInByte = ") {
                assembly.code_bytes = value.trim().parse().ok();
            }
        }
        assembly
    }

    /// Where the text and the binary differ, as clauses in a fixed order.
    #[must_use]
    pub fn differences(&self, code: &CodeObject, kernel: &str) -> Vec<String> {
        let mut differences = Vec::new();
        if self.matrix != code.matrix {
            differences.push(format!(
                "matrix instructions are {} in the text and {} in the binary",
                counted(&self.matrix),
                counted(&code.matrix)
            ));
        }
        let Some(kernel) = code.kernels.iter().find(|known| known.name == kernel) else { return differences };
        let numbers = [
            ("vgpr_count", kernel.vgprs),
            ("agpr_count", kernel.agprs),
            ("sgpr_count", kernel.sgprs),
            ("vgpr_spill_count", kernel.vgpr_spills),
            ("sgpr_spill_count", kernel.sgpr_spills),
            ("private_segment_fixed_size", kernel.scratch_bytes),
            ("max_flat_workgroup_size", kernel.workgroup),
            ("wavefront_size", kernel.wavefront),
        ];
        for (name, binary) in numbers {
            match self.fields.get(name) {
                Some(text) if *text != binary => differences.push(format!("{name} is {text} in the text and {binary} in the binary")),
                _ => {}
            }
        }
        // The compiler estimates this number before it encodes. For these processors it has been exact; for gfx1100 it is lower than what comes out.
        let exact = matches!(code.processor, Processor::Gfx942 | Processor::Gfx950 | Processor::Gfx90a);
        if let Some(text) = self.code_bytes
            && exact
            && text != kernel.code_bytes
        {
            differences.push(format!("the code has {text} bytes in the text and {} in the binary", kernel.code_bytes));
        }
        differences
    }
}

/// `none`, or names with counts.
#[must_use]
pub fn counted(matrix: &BTreeMap<String, u64>) -> String {
    if matrix.is_empty() {
        return "none".to_owned();
    }
    matrix.iter().map(|(name, count)| format!("{name} ×{count}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::code_object::Kernel;

    #[test]
    fn an_estimate_contradicts_nothing() {
        let text = Assembly::read("; codeLenInByte = 748\n");
        let kernel = Kernel { name: "k".to_owned(), code_bytes: 784, ..Kernel::default() };
        let code = |processor| CodeObject { processor, kernels: vec![kernel.clone()], matrix: BTreeMap::new(), code_id: String::new() };
        assert_eq!(text.differences(&code(Processor::Gfx942), "k"), ["the code has 748 bytes in the text and 784 in the binary"]);
        assert_eq!(text.differences(&code(Processor::Gfx1100), "k"), Vec::<String>::new());
    }
}
