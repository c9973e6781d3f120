//! The kernel's view: KFD's topology in sysfs.
//!
//! In: the root of sysfs, usually `/sys`. Out: GPU nodes in order of their number. Refused: a node whose properties cannot be read or lack what
//! identifies it; nodes that are processors are left out.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{Answer, Gpu};

/// Where the nodes lie below the root.
const NODES: &str = "class/kfd/kfd/topology/nodes";
/// Vendor id of AMD.
const AMD: u64 = 4098;

/// Name of an architecture from the kernel's number: 90402 is `gfx942`, 90010 is `gfx90a`.
#[must_use]
pub fn arch_of(version: u64) -> String {
    format!("gfx{}{:x}{:x}", version / 10_000, version / 100 % 100, version % 100)
}

/// PCI address from domain and location.
#[must_use]
pub fn pci_of(domain: u64, location: u64) -> String {
    format!("{domain:04x}:{:02x}:{:02x}.{:x}", location >> 8 & 0xff, location >> 3 & 0x1f, location & 0x7)
}

fn properties(text: &str) -> BTreeMap<&str, u64> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let (name, value) = (words.next()?, words.next()?.parse().ok()?);
            words.next().is_none().then_some((name, value))
        })
        .collect()
}

/// Reads the topology.
#[must_use]
pub fn read(root: &Path) -> Answer {
    let folder = root.join(NODES);
    let shown = format!("/sys/{NODES}");
    let mut answer = Answer { tried: vec![shown.clone()], ..Answer::default() };
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return answer,
        Err(error) => {
            answer.error = Some(format!("{shown} cannot be read: {error}"));
            return answer;
        }
    };
    answer.asked = Some(shown);
    let mut numbers: Vec<u32> = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    for number in numbers {
        let text = match fs::read_to_string(folder.join(number.to_string()).join("properties")) {
            Ok(text) => text,
            Err(error) => {
                answer.error = Some(format!("the properties of node {number} cannot be read: {error}"));
                return answer;
            }
        };
        let values = properties(&text);
        let value = |name: &str| values.get(name).copied();
        let Some(version) = value("gfx_target_version") else {
            answer.error = Some(format!("node {number} has no gfx_target_version"));
            return answer;
        };
        if version == 0 || value("vendor_id").is_some_and(|vendor| vendor != AMD) {
            continue;
        }
        let units = match (value("simd_count"), value("simd_per_cu")) {
            (Some(simds), Some(per)) if per > 0 => Some(simds / per),
            _ => None,
        };
        let pci = match (value("domain"), value("location_id")) {
            (domain, Some(location)) => Some(pci_of(domain.unwrap_or(0), location)),
            _ => None,
        };
        answer.devices.push(Gpu { arch: arch_of(version), isa: None, pci, compute_units: units, unique_id: value("unique_id") });
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_kernel_are_names_of_architectures() {
        for (version, name) in [(90_402, "gfx942"), (90_500, "gfx950"), (90_010, "gfx90a"), (110_000, "gfx1100"), (90_400, "gfx940")] {
            assert_eq!(arch_of(version), name);
        }
        assert_eq!(pci_of(0, 0x0c00), "0000:0c:00.0");
        assert_eq!(pci_of(1, 0xe50b), "0001:e5:01.3");
    }

    #[test]
    fn nodes_are_read_in_order_and_processors_left_out() {
        let root = tempfile::tempdir().unwrap();
        let node = |number: u32, text: &str| {
            let folder = root.path().join(NODES).join(number.to_string());
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("properties"), text).unwrap();
        };
        assert_eq!(read(root.path()).asked, None);
        node(0, "cpu_cores_count 96\ngfx_target_version 0\n");
        node(10, "gfx_target_version 90402\nvendor_id 4098\nsimd_count 1216\nsimd_per_cu 4\nlocation_id 3072\ndomain 0\nunique_id 77\n");
        node(2, "gfx_target_version 90010\nvendor_id 4098\nlocation_id 256\n");
        let answer = read(root.path());
        let names: Vec<&str> = answer.devices.iter().map(|device| device.arch.as_str()).collect();
        assert_eq!(names, ["gfx90a", "gfx942"]);
        assert_eq!(answer.devices[1].compute_units, Some(304));
        assert_eq!(answer.devices[1].pci.as_deref(), Some("0000:0c:00.0"));
        assert_eq!(answer.devices[1].unique_id, Some(77));
        node(3, "simd_count 4\n");
        assert!(read(root.path()).error.unwrap().contains("node 3 has no gfx_target_version"));
    }
}
