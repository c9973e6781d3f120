//! One AMD code object, as the GPU would load it.
//!
//! In: the bytes of an ELF file. Out: the processor it is for, its kernels with their registers, spills and scratch memory, its matrix instructions,
//! and its identity. Refused: what is not ELF, not for an AMD GPU, cut short, or without the metadata that the driver itself reads.
//!
//! The identity is not that of the file: Triton writes source paths, install paths and line tables into it, so that equal code has different files.

use std::collections::BTreeMap;

use object::read::elf::{ElfFile64, FileHeader as _, SectionHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _};
use rmpv::Value;
use sha2::{Digest as _, Sha256};

use super::{hex, matrix};

/// `e_machine` of AMD GPUs.
const AMD_GPU: u16 = 224;
/// Type of the note that holds the kernels' metadata.
const METADATA_NOTE: u32 = 32;
/// Depth of metadata that is followed; what compilers write is four deep.
const METADATA_DEPTH: usize = 16;
/// The sections that decide what runs, in the order in which they are hashed.
const IDENTITY: [&str; 3] = [".text", ".rodata", ".note"];

/// Why a code object could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeObjectError {
    /// Not an ELF file, or a damaged one.
    #[error("it is not a complete ELF file: {0}")]
    Elf(String),
    /// For another machine.
    #[error("it is an ELF file for machine {0}, and AMD GPUs are 224")]
    Machine(u16),
    /// A section is absent.
    #[error("it has no section {0}")]
    Section(&'static str),
    /// The metadata cannot be understood.
    #[error("its metadata note {0}")]
    Metadata(String),
}

/// Processors that are told apart, by the machine number in `e_flags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Processor {
    /// MI300.
    Gfx942,
    /// MI350.
    Gfx950,
    /// MI200.
    Gfx90a,
    /// RDNA 3, without these matrix cores.
    Gfx1100,
    /// Any other, by its machine number.
    Other(u8),
}

impl Processor {
    const fn of(flags: u32) -> Self {
        match flags.to_le_bytes()[0] {
            0x4c => Self::Gfx942,
            0x4f => Self::Gfx950,
            0x3f => Self::Gfx90a,
            0x41 => Self::Gfx1100,
            other => Self::Other(other),
        }
    }

    /// The name used in profiles: `gfx942`.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Gfx942 => "gfx942".to_owned(),
            Self::Gfx950 => "gfx950".to_owned(),
            Self::Gfx90a => "gfx90a".to_owned(),
            Self::Gfx1100 => "gfx1100".to_owned(),
            Self::Other(machine) => format!("machine 0x{machine:02x}"),
        }
    }
}

/// What the metadata and the symbol table say about one kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Name.
    pub name: String,
    /// Vector registers per lane.
    pub vgprs: u64,
    /// Accumulation registers per lane.
    pub agprs: u64,
    /// Scalar registers per wave.
    pub sgprs: u64,
    /// Vector registers that were spilled to memory.
    pub vgpr_spills: u64,
    /// Scalar registers that were spilled.
    pub sgpr_spills: u64,
    /// Scratch memory per lane in bytes.
    pub scratch_bytes: u64,
    /// Largest workgroup, in lanes.
    pub workgroup: u64,
    /// Lanes per wave.
    pub wavefront: u64,
    /// Bytes of machine code, from the symbol table.
    pub code_bytes: u64,
}

/// A code object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeObject {
    /// What it is compiled for.
    pub processor: Processor,
    /// Kernels in the order of the metadata.
    pub kernels: Vec<Kernel>,
    /// Matrix instructions by mnemonic.
    pub matrix: BTreeMap<String, u64>,
    /// SHA-256 over `.text`, `.rodata` and `.note`, each with its name and length before it; lower-case hex.
    pub code_id: String,
}

impl CodeObject {
    /// Reads a code object.
    ///
    /// # Errors
    /// If it is damaged, for another kind of machine, or lacks what the driver needs.
    pub fn read(bytes: &[u8]) -> Result<Self, CodeObjectError> {
        let file = ElfFile64::<Endianness>::parse(bytes).map_err(|cause| CodeObjectError::Elf(cause.to_string()))?;
        let endian = file.endian();
        let machine = file.elf_header().e_machine(endian).0;
        if machine != AMD_GPU {
            return Err(CodeObjectError::Machine(machine));
        }
        let processor = Processor::of(file.elf_header().e_flags(endian).0);
        let mut hasher = Sha256::new();
        let mut text: &[u8] = &[];
        for name in IDENTITY {
            let section = file.section_by_name(name).ok_or(CodeObjectError::Section(name))?;
            let data = section.data().map_err(|cause| CodeObjectError::Elf(format!("section {name}: {cause}")))?;
            hasher.update(name.as_bytes());
            hasher.update(u64::try_from(data.len()).unwrap_or(u64::MAX).to_le_bytes());
            hasher.update(data);
            if name == ".text" {
                text = data;
            }
        }
        let mut kernels = read_metadata(&file, bytes)?;
        let mut sizes = BTreeMap::new();
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            if let Ok(name) = symbol.name() {
                sizes.insert(name, symbol.size());
            }
        }
        for kernel in &mut kernels {
            kernel.code_bytes = sizes.get(kernel.name.as_str()).copied().unwrap_or(0);
        }
        Ok(Self { processor, kernels, matrix: matrix::count(text, processor), code_id: hex(&hasher.finalize()) })
    }
}

fn read_metadata(file: &ElfFile64<'_, Endianness>, bytes: &[u8]) -> Result<Vec<Kernel>, CodeObjectError> {
    let damaged = |cause: object::Error| CodeObjectError::Metadata(format!("cannot be read: {cause}"));
    let section = file.section_by_name(".note").ok_or(CodeObjectError::Section(".note"))?;
    let endian = file.endian();
    for note in section.elf_section_header().notes(endian, bytes).map_err(damaged)?.into_iter().flatten() {
        let note = note.map_err(damaged)?;
        if note.n_type(endian).0 == METADATA_NOTE && note.name() == b"AMDGPU" {
            return kernels_of(note.desc());
        }
    }
    Err(CodeObjectError::Metadata("is not there".to_owned()))
}

fn kernels_of(mut packed: &[u8]) -> Result<Vec<Kernel>, CodeObjectError> {
    let root = rmpv::decode::read_value_with_max_depth(&mut packed, METADATA_DEPTH)
        .map_err(|cause| CodeObjectError::Metadata(format!("is not MessagePack: {cause}")))?;
    let listed = field(&root, "amdhsa.kernels").and_then(Value::as_array);
    let listed = listed.ok_or_else(|| CodeObjectError::Metadata("lists no kernels".to_owned()))?;
    if listed.is_empty() {
        return Err(CodeObjectError::Metadata("lists no kernels".to_owned()));
    }
    listed.iter().map(kernel_of).collect()
}

fn kernel_of(map: &Value) -> Result<Kernel, CodeObjectError> {
    let name =
        field(map, ".name").and_then(Value::as_str).ok_or_else(|| CodeObjectError::Metadata("has a kernel without a name".to_owned()))?;
    // Left out for processors without such registers.
    let optional = |key: &str| field(map, key).and_then(Value::as_u64).unwrap_or(0);
    let required = |key: &str| {
        let missing = || CodeObjectError::Metadata(format!("has no {key} for kernel '{}'", crate::text::sanitize(name)));
        field(map, key).and_then(Value::as_u64).ok_or_else(missing)
    };
    Ok(Kernel {
        name: name.to_owned(),
        vgprs: required(".vgpr_count")?,
        agprs: optional(".agpr_count"),
        sgprs: required(".sgpr_count")?,
        vgpr_spills: required(".vgpr_spill_count")?,
        sgpr_spills: required(".sgpr_spill_count")?,
        scratch_bytes: required(".private_segment_fixed_size")?,
        workgroup: required(".max_flat_workgroup_size")?,
        wavefront: required(".wavefront_size")?,
        code_bytes: 0,
    })
}

fn field<'v>(map: &'v Value, key: &str) -> Option<&'v Value> {
    map.as_map()?.iter().find(|(name, _)| name.as_str() == Some(key)).map(|(_, value)| value)
}
