//! Small AMD code objects, as a compiler lays them out.

use rmpv::Value;

/// One kernel's machine code and metadata.
pub struct Binary<'a> {
    pub kernel: &'a str,
    /// Processor in `e_flags`; 0x4c is gfx942.
    pub machine: u32,
    /// Opcodes of matrix instructions; 0x61 is 16x16x16 of BF16 on gfx942.
    pub matrix: &'a [u32],
    pub threads: u64,
    pub spills: u64,
    /// Any number, so that two binaries of one kernel can differ.
    pub salt: u32,
}

impl Binary<'_> {
    pub fn bytes(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for opcode in self.matrix {
            text.extend((0x1a7u32 << 23 | opcode << 16).to_le_bytes());
            text.extend(0u32.to_le_bytes());
        }
        // s_endpgm, and the salt as a constant behind it.
        text.extend(0xbf81_0000u32.to_le_bytes());
        let note = note(&self.metadata());
        let rodata = self.salt.to_le_bytes().to_vec();
        elf(self.machine, &[(".text", 1, text), (".rodata", 1, rodata), (".note", 7, note)])
    }

    fn metadata(&self) -> Vec<u8> {
        let number = |key: &str, value: u64| (Value::from(key), Value::from(value));
        let kernel = Value::Map(vec![
            (Value::from(".name"), Value::from(self.kernel)),
            number(".vgpr_count", 64),
            number(".agpr_count", 0),
            number(".sgpr_count", 32),
            number(".vgpr_spill_count", self.spills),
            number(".sgpr_spill_count", 0),
            number(".private_segment_fixed_size", 0),
            number(".max_flat_workgroup_size", self.threads),
            number(".wavefront_size", 64),
        ]);
        let root = Value::Map(vec![(Value::from("amdhsa.kernels"), Value::Array(vec![kernel]))]);
        let mut packed = Vec::new();
        rmpv::encode::write_value(&mut packed, &root).unwrap();
        packed
    }
}

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    while !bytes.len().is_multiple_of(4) {
        bytes.push(0);
    }
    bytes
}

fn note(desc: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for number in [7, u32::try_from(desc.len()).unwrap(), 32] {
        out.extend(u32::to_le_bytes(number));
    }
    out.extend(padded(b"AMDGPU\0".to_vec()));
    out.extend(padded(desc.to_vec()));
    out
}

/// A 64-bit little-endian ELF file with these sections (name, type, content).
fn elf(flags: u32, sections: &[(&str, u32, Vec<u8>)]) -> Vec<u8> {
    let mut names = vec![0u8];
    let mut body = vec![0u8; 64];
    let mut headers = vec![0u8; 64];
    let mut header = |name: u32, kind: u32, at: usize, size: usize| {
        for number in [name, kind] {
            headers.extend(number.to_le_bytes());
        }
        for number in [0, 0, at, size] {
            headers.extend(u64::try_from(number).unwrap().to_le_bytes());
        }
        headers.extend([0u8; 8]);
        headers.extend(4u64.to_le_bytes());
        headers.extend(0u64.to_le_bytes());
    };
    for (name, kind, content) in sections {
        header(u32::try_from(names.len()).unwrap(), *kind, body.len(), content.len());
        names.extend(name.as_bytes());
        names.push(0);
        body.extend(padded(content.clone()));
    }
    let own = u32::try_from(names.len()).unwrap();
    names.extend(b".shstrtab\0");
    header(own, 3, body.len(), names.len());
    body.extend(padded(names));
    while !body.len().is_multiple_of(8) {
        body.push(0);
    }
    let table = u64::try_from(body.len()).unwrap();
    let count = u16::try_from(sections.len() + 2).unwrap();
    let mut top = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 64, 4, 0, 0, 0, 0, 0, 0, 0];
    top.extend(3u16.to_le_bytes());
    top.extend(224u16.to_le_bytes());
    top.extend(1u32.to_le_bytes());
    top.extend([0u8; 16]);
    top.extend(table.to_le_bytes());
    top.extend(flags.to_le_bytes());
    for number in [64u16, 56, 0, 64, count, count - 1] {
        top.extend(number.to_le_bytes());
    }
    body[..64].copy_from_slice(&top);
    body.extend(headers);
    body
}
