//! Matrix instructions in machine code, without a disassembler.
//!
//! In: the `.text` section of a code object and the processor it is for. Out: how often each matrix instruction stands in it. Refused: nothing; an
//! opcode of the matrix range that no table names is counted under its number, so that it can never pass for a known one.
//!
//! Every matrix instruction is eight bytes long and begins with the nine bits of the VOP3P encoding, followed by a seven-bit opcode in bits 22 to 16.
//! The tables hold what an assembler makes of each mnemonic. What this cannot see: a 32-bit literal constant that happens to have these bits is
//! counted as well. It would add an instruction, never hide one.

use std::collections::BTreeMap;

use super::code_object::Processor;

/// The nine leading bits of a VOP3P instruction.
const VOP3P: u32 = 0x1a7;
/// Moves between vector and accumulation registers share the opcode range, and compute nothing.
const ACCUMULATOR_MOVES: [u8; 2] = [0x58, 0x59];
/// Below this opcode all VOP3P instructions that a table does not name are packed vector operations.
const FIRST_MATRIX_OPCODE: u8 = 0x34;

/// MI300.
const GFX942: &[(u8, &str)] = &[
    (0x3e, "v_mfma_f32_16x16x8_xf32"),
    (0x3f, "v_mfma_f32_32x32x4_xf32"),
    (0x40, "v_mfma_f32_32x32x1_2b_f32"),
    (0x41, "v_mfma_f32_16x16x1_4b_f32"),
    (0x42, "v_mfma_f32_4x4x1_16b_f32"),
    (0x44, "v_mfma_f32_32x32x2_f32"),
    (0x45, "v_mfma_f32_16x16x4_f32"),
    (0x48, "v_mfma_f32_32x32x4_2b_f16"),
    (0x49, "v_mfma_f32_16x16x4_4b_f16"),
    (0x4a, "v_mfma_f32_4x4x4_16b_f16"),
    (0x4c, "v_mfma_f32_32x32x8_f16"),
    (0x4d, "v_mfma_f32_16x16x16_f16"),
    (0x50, "v_mfma_i32_32x32x4_2b_i8"),
    (0x51, "v_mfma_i32_16x16x4_4b_i8"),
    (0x52, "v_mfma_i32_4x4x4_16b_i8"),
    (0x56, "v_mfma_i32_32x32x16_i8"),
    (0x57, "v_mfma_i32_16x16x32_i8"),
    (0x5d, "v_mfma_f32_32x32x4_2b_bf16"),
    (0x5e, "v_mfma_f32_16x16x4_4b_bf16"),
    (0x5f, "v_mfma_f32_4x4x4_16b_bf16"),
    (0x60, "v_mfma_f32_32x32x8_bf16"),
    (0x61, "v_mfma_f32_16x16x16_bf16"),
    (0x62, "v_smfmac_f32_16x16x32_f16"),
    (0x64, "v_smfmac_f32_32x32x16_f16"),
    (0x66, "v_smfmac_f32_16x16x32_bf16"),
    (0x68, "v_smfmac_f32_32x32x16_bf16"),
    (0x6a, "v_smfmac_i32_16x16x64_i8"),
    (0x6c, "v_smfmac_i32_32x32x32_i8"),
    (0x6e, "v_mfma_f64_16x16x4_f64"),
    (0x6f, "v_mfma_f64_4x4x4_4b_f64"),
    (0x70, "v_mfma_f32_16x16x32_bf8_bf8"),
    (0x71, "v_mfma_f32_16x16x32_bf8_fp8"),
    (0x72, "v_mfma_f32_16x16x32_fp8_bf8"),
    (0x73, "v_mfma_f32_16x16x32_fp8_fp8"),
    (0x74, "v_mfma_f32_32x32x16_bf8_bf8"),
    (0x75, "v_mfma_f32_32x32x16_bf8_fp8"),
    (0x76, "v_mfma_f32_32x32x16_fp8_bf8"),
    (0x77, "v_mfma_f32_32x32x16_fp8_fp8"),
    (0x78, "v_smfmac_f32_16x16x64_bf8_bf8"),
    (0x79, "v_smfmac_f32_16x16x64_bf8_fp8"),
    (0x7a, "v_smfmac_f32_16x16x64_fp8_bf8"),
    (0x7b, "v_smfmac_f32_16x16x64_fp8_fp8"),
    (0x7c, "v_smfmac_f32_32x32x32_bf8_bf8"),
    (0x7d, "v_smfmac_f32_32x32x32_bf8_fp8"),
    (0x7e, "v_smfmac_f32_32x32x32_fp8_bf8"),
    (0x7f, "v_smfmac_f32_32x32x32_fp8_fp8"),
];

/// What MI350 has besides those of MI300.
const GFX950_ONLY: &[(u8, &str)] = &[
    (0x2d, "v_mfma_f32_16x16x128_f8f6f4"),
    (0x2e, "v_mfma_f32_32x32x64_f8f6f4"),
    (0x35, "v_mfma_f32_16x16x32_bf16"),
    (0x36, "v_mfma_i32_16x16x64_i8"),
    (0x37, "v_mfma_f32_32x32x16_bf16"),
    (0x38, "v_mfma_i32_32x32x32_i8"),
    (0x39, "v_smfmac_f32_16x16x64_bf16"),
    (0x3a, "v_smfmac_i32_16x16x128_i8"),
    (0x3b, "v_smfmac_f32_16x16x128_bf8_bf8"),
    (0x46, "v_smfmac_f32_32x32x32_bf16"),
    (0x47, "v_smfmac_i32_32x32x64_i8"),
    (0x53, "v_smfmac_f32_32x32x64_fp8_fp8"),
    (0x54, "v_mfma_f32_16x16x32_f16"),
    (0x55, "v_mfma_f32_32x32x16_f16"),
    (0x5a, "v_smfmac_f32_16x16x64_f16"),
    (0x5b, "v_smfmac_f32_32x32x32_f16"),
];

/// MI200.
const GFX90A: &[(u8, &str)] = &[
    (0x40, "v_mfma_f32_32x32x1f32"),
    (0x41, "v_mfma_f32_16x16x1f32"),
    (0x42, "v_mfma_f32_4x4x1f32"),
    (0x44, "v_mfma_f32_32x32x2f32"),
    (0x45, "v_mfma_f32_16x16x4f32"),
    (0x48, "v_mfma_f32_32x32x4f16"),
    (0x49, "v_mfma_f32_16x16x4f16"),
    (0x4a, "v_mfma_f32_4x4x4f16"),
    (0x4c, "v_mfma_f32_32x32x8f16"),
    (0x4d, "v_mfma_f32_16x16x16f16"),
    (0x50, "v_mfma_i32_32x32x4i8"),
    (0x51, "v_mfma_i32_16x16x4i8"),
    (0x52, "v_mfma_i32_4x4x4i8"),
    (0x54, "v_mfma_i32_32x32x8i8"),
    (0x55, "v_mfma_i32_16x16x16i8"),
    (0x63, "v_mfma_f32_32x32x4bf16_1k"),
    (0x64, "v_mfma_f32_16x16x4bf16_1k"),
    (0x65, "v_mfma_f32_4x4x4bf16_1k"),
    (0x66, "v_mfma_f32_32x32x8bf16_1k"),
    (0x67, "v_mfma_f32_16x16x16bf16_1k"),
    (0x68, "v_mfma_f32_32x32x2bf16"),
    (0x69, "v_mfma_f32_16x16x2bf16"),
    (0x6b, "v_mfma_f32_4x4x2bf16"),
    (0x6c, "v_mfma_f32_32x32x4bf16"),
    (0x6d, "v_mfma_f32_16x16x8bf16"),
    (0x6e, "v_mfma_f64_16x16x4f64"),
    (0x6f, "v_mfma_f64_4x4x4f64"),
];

/// How often each matrix instruction stands in `text`, by mnemonic. Empty for a processor without matrix cores.
#[must_use]
pub fn count(text: &[u8], processor: Processor) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let mut at = 0;
    while let Some(word) = text.get(at..at + 4) {
        at += 4;
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        if word >> 23 != VOP3P {
            continue;
        }
        // The second half is operands, whatever it looks like.
        at += 4;
        let opcode = u8::try_from((word >> 16) & 0x7f).unwrap_or(u8::MAX);
        if let Some(name) = mnemonic(opcode, processor) {
            *counts.entry(name).or_insert(0) += 1;
        }
    }
    counts
}

/// Name of a matrix opcode; `None` for anything that is not one.
fn mnemonic(opcode: u8, processor: Processor) -> Option<String> {
    let tables: &[&[(u8, &str)]] = match processor {
        Processor::Gfx942 => &[GFX942],
        Processor::Gfx950 => &[GFX950_ONLY, GFX942],
        Processor::Gfx90a => &[GFX90A],
        Processor::Gfx1100 | Processor::Other(_) => return None,
    };
    let named = tables.iter().flat_map(|table| table.iter()).find(|(code, _)| *code == opcode);
    match named {
        Some((_, name)) => Some((*name).to_owned()),
        None if opcode >= FIRST_MATRIX_OPCODE && !ACCUMULATOR_MOVES.contains(&opcode) => Some(format!("opcode 0x{opcode:02x}")),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A VOP3P instruction with this opcode; its operands are `operands`.
    fn instruction(opcode: u32, operands: u32) -> Vec<u8> {
        [(VOP3P << 23 | opcode << 16).to_le_bytes(), operands.to_le_bytes()].concat()
    }

    #[test]
    fn an_instruction_is_counted_once_even_if_its_operands_look_like_one() {
        let mfma = VOP3P << 23 | 0x61 << 16;
        let text = [instruction(0x61, mfma), instruction(0x58, mfma), instruction(0x33, 0), vec![0; 4], instruction(0x60, 0)].concat();
        let expected = BTreeMap::from([("v_mfma_f32_16x16x16_bf16".to_owned(), 1), ("v_mfma_f32_32x32x8_bf16".to_owned(), 1)]);
        assert_eq!(count(&text, Processor::Gfx942), expected);
        assert_eq!(count(&text[..text.len() - 3], Processor::Gfx942).len(), 2, "a cut second half changes nothing");
        assert_eq!(count(&text[..3], Processor::Gfx942), BTreeMap::new());
    }

    #[test]
    fn an_unknown_opcode_is_not_taken_for_a_known_one() {
        let text = [instruction(0x34, 0), instruction(0x35, 0), instruction(0x61, 0)].concat();
        let names = |processor| count(&text, processor).into_keys().collect::<Vec<_>>();
        assert_eq!(names(Processor::Gfx942), ["opcode 0x34", "opcode 0x35", "v_mfma_f32_16x16x16_bf16"]);
        assert_eq!(names(Processor::Gfx950), ["opcode 0x34", "v_mfma_f32_16x16x16_bf16", "v_mfma_f32_16x16x32_bf16"]);
        assert_eq!(names(Processor::Gfx90a), ["opcode 0x34", "opcode 0x35", "opcode 0x61"]);
        assert_eq!(names(Processor::Gfx1100), Vec::<String>::new());
    }
}
