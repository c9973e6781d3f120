//! What the compiled code is, seen beside the inventory.
//!
//! In: code objects, Triton caches, and the kernel module of a pinned source as text. Out: facts read from the machine code, and findings where they
//! differ from the contract that the profile declares. Refused: text beside a binary as evidence about the binary, and a clean verdict about anything
//! that was not seen.
//!
//! `code_object` and `matrix` read one binary; `cache` reads a Triton cache, with `metadata` and `ttgir` for what lies beside a binary.

pub mod assembly;
pub mod cache;
pub mod checks;
pub mod child;
pub mod code_object;
pub mod compile;
pub mod contract;
pub mod device;
pub mod judge;
pub mod matrix;
pub mod metadata;
pub mod record;
pub mod report;
pub mod runner;
pub mod ttgir;
pub mod workshop;

/// Lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
