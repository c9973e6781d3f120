//! Which AMD GPU is here, by three witnesses that have to agree.
//!
//! In: the kernel's topology in sysfs, the HSA runtime, the HIP runtime, and the masks that hide devices. Out: a [`DeviceReport`], and whether it
//! shows devices of one architecture. Refused: one witness alone, a version as proof of a device, marketing names, and the exit codes of tools.
//!
//! Each runtime is asked in a process of its own, since a driver may end the process that asks it (`libraries`).

pub mod child;
pub mod libraries;
pub mod sysfs;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Schema of the report.
pub const SCHEMA: &str = "rlk-lint/device/v1";
/// Variables that hide devices: the first from HSA and what stands on it, the others from HIP alone.
pub const MASKS: [&str; 3] = ["ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"];

/// One device as one witness sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// Architecture without features: `gfx942`. HIP gives no more than its beginning, as `gfx94`.
    pub arch: String,
    /// The full name of the instruction set, where there is one.
    #[serde(default)]
    pub isa: Option<String>,
    /// PCI address: `0000:0c:00.0`.
    #[serde(default)]
    pub pci: Option<String>,
    /// Compute units.
    #[serde(default)]
    pub compute_units: Option<u64>,
    /// The device's own number, by which masks may name it.
    #[serde(default)]
    pub unique_id: Option<u64>,
}

/// What one witness says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// What was looked for, in order.
    pub tried: Vec<String>,
    /// What was found and asked; `None` if nothing was there.
    pub asked: Option<String>,
    /// What it calls itself. A version is no proof of a device.
    #[serde(default)]
    pub version: Option<String>,
    /// Why it has no answer.
    #[serde(default)]
    pub error: Option<String>,
    /// Devices in its order.
    pub devices: Vec<Gpu>,
}

impl Answer {
    /// One clause for people.
    #[must_use]
    pub fn clause(&self) -> String {
        match (&self.asked, &self.error) {
            (None, None) => format!("{} not found", self.tried.join(", ")),
            (None, Some(error)) => error.clone(),
            (Some(asked), Some(error)) => format!("{asked}: {error}"),
            (Some(asked), None) => {
                let names: Vec<&str> = self.devices.iter().map(|device| device.arch.as_str()).collect();
                format!("{asked}: {} device(s) {}", self.devices.len(), names.join(", ")).trim_end().to_owned()
            }
        }
    }
}

/// What all witnesses say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceReport {
    /// [`SCHEMA`].
    pub schema: String,
    /// Masks that are set.
    pub masks: BTreeMap<String, String>,
    /// The kernel.
    pub sysfs: Answer,
    /// The HSA runtime.
    pub hsa: Answer,
    /// The HIP runtime.
    pub hip: Answer,
}

/// Why no device of the architecture is shown: a fixed name, and a sentence.
pub type Refusal = (&'static str, String);

/// The devices that a mask leaves, as the runtimes read it: entries in order, up to the first that names no device.
fn masked(devices: &[Gpu], mask: Option<&String>) -> Vec<Gpu> {
    let Some(mask) = mask else { return devices.to_vec() };
    let mut left: Vec<Gpu> = Vec::new();
    for entry in mask.split(',') {
        let entry = entry.trim();
        let device = match entry.strip_prefix("GPU-") {
            Some(id) => u64::from_str_radix(id, 16).ok().and_then(|id| devices.iter().find(|device| device.unique_id == Some(id))),
            None => entry.parse::<usize>().ok().and_then(|index| devices.get(index)),
        };
        match device {
            Some(device) if !left.contains(device) || device.pci.is_none() => left.push(device.clone()),
            _ => break,
        }
    }
    left
}

impl DeviceReport {
    /// Whether all witnesses see the same devices and all of these are `arch`: what was agreed on.
    ///
    /// # Errors
    /// Why not.
    pub fn agreed(&self, arch: &str) -> Result<String, Refusal> {
        let witnesses = [("KFD", &self.sysfs), ("HSA", &self.hsa), ("HIP", &self.hip)];
        let told = witnesses.map(|(name, answer)| format!("{name}: {}", answer.clause())).join("; ");
        if witnesses.iter().all(|(_, answer)| answer.devices.is_empty()) {
            return Err(("no-device", format!("no AMD GPU ({told})")));
        }
        for (name, answer) in witnesses {
            if let Some(error) = &answer.error {
                return Err(("witness-failed", format!("{name} has no answer: {error} ({told})")));
            }
        }
        let after_hsa = masked(&self.sysfs.devices, self.masks.get("ROCR_VISIBLE_DEVICES"));
        // HIP reads its own variable, and CUDA's only where its own is not set.
        let own = self.masks.get("HIP_VISIBLE_DEVICES").or_else(|| self.masks.get("CUDA_VISIBLE_DEVICES"));
        let after_hip = masked(&after_hsa, own);
        for (name, expected, answer) in [("HSA", &after_hsa, &self.hsa), ("HIP", &after_hip, &self.hip)] {
            if expected.len() != answer.devices.len() {
                let (wanted, count) = (expected.len(), answer.devices.len());
                return Err(("witnesses-disagree", format!("{name} sees {count} device(s), and the kernel leaves it {wanted} ({told})")));
            }
            for (number, device) in answer.devices.iter().enumerate() {
                // Orders differ between runtimes; the PCI address tells which device is meant.
                let same = match &device.pci {
                    Some(pci) => expected.iter().find(|other| other.pci.as_ref() == Some(pci)),
                    None => expected.get(number),
                };
                let Some(same) = same else {
                    let pci = device.pci.as_deref().unwrap_or("");
                    return Err(("witnesses-disagree", format!("{name} sees a device at {pci}, and the kernel shows none there ({told})")));
                };
                let agrees = if name == "HIP" { same.arch.starts_with(&device.arch) } else { same.arch == device.arch };
                if device.arch.is_empty() || !agrees {
                    let (one, other) = (&device.arch, &same.arch);
                    return Err(("witnesses-disagree", format!("{name} calls device {number} '{one}', and the kernel '{other}' ({told})")));
                }
            }
        }
        if after_hip.is_empty() {
            return Err(("no-device", format!("the masks leave no device ({told})")));
        }
        if let Some(other) = after_hip.iter().find(|device| device.arch != arch) {
            return Err(("other-device", format!("the device is {}, and the contract is for {arch} ({told})", other.arch)));
        }
        let units: Vec<String> = after_hip.iter().filter_map(|device| device.compute_units).map(|units| units.to_string()).collect();
        let units = if units.is_empty() { String::new() } else { format!(" with {} compute units", units.join(", ")) };
        Ok(format!("{} device(s) {arch}{units}, by kernel, HSA and HIP", after_hip.len()))
    }
}

/// The masks of this process.
#[must_use]
pub fn masks() -> BTreeMap<String, String> {
    MASKS.into_iter().filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(arch: &str, pci: &str) -> Gpu {
        Gpu { arch: arch.to_owned(), pci: Some(pci.to_owned()), ..Gpu::default() }
    }

    fn answer(devices: &[Gpu]) -> Answer {
        Answer { asked: Some("x".to_owned()), devices: devices.to_vec(), ..Answer::default() }
    }

    fn report(sysfs: &[Gpu], hsa: &[Gpu], hip: &[Gpu]) -> DeviceReport {
        DeviceReport { sysfs: answer(sysfs), hsa: answer(hsa), hip: answer(hip), ..DeviceReport::default() }
    }

    fn reason(report: &DeviceReport) -> &'static str {
        report.agreed("gfx942").unwrap_err().0
    }

    #[test]
    fn three_witnesses_agree_on_every_device() {
        let (one, two) = (gpu("gfx942", "a"), gpu("gfx942", "b"));
        let hip = |pci| gpu("gfx94", pci);
        assert!(report(&[one.clone(), two.clone()], &[two.clone(), one.clone()], &[hip("b"), hip("a")]).agreed("gfx942").is_ok());
        assert_eq!(reason(&report(&[one.clone(), two.clone()], std::slice::from_ref(&one), &[hip("a")])), "witnesses-disagree");
        assert_eq!(reason(&report(std::slice::from_ref(&one), &[gpu("gfx90a", "a")], &[hip("a")])), "witnesses-disagree");
        assert_eq!(reason(&report(std::slice::from_ref(&one), std::slice::from_ref(&one), &[gpu("gfx95", "a")])), "witnesses-disagree");
        assert_eq!(reason(&report(std::slice::from_ref(&one), std::slice::from_ref(&one), &[gpu("", "a")])), "witnesses-disagree");
        assert_eq!(reason(&report(std::slice::from_ref(&one), &[gpu("gfx942", "c")], &[hip("a")])), "witnesses-disagree");
        assert_eq!(reason(&report(&[], &[], &[])), "no-device");
        let other = gpu("gfx950", "a");
        assert_eq!(reason(&report(std::slice::from_ref(&other), std::slice::from_ref(&other), &[gpu("gfx95", "a")])), "other-device");
        let mut failed = report(std::slice::from_ref(&one), std::slice::from_ref(&one), &[]);
        failed.hip.error = Some("killed by signal 6".to_owned());
        assert_eq!(reason(&failed), "witness-failed");
    }

    #[test]
    fn masks_hide_devices_as_the_runtimes_read_them() {
        let devices: Vec<Gpu> = ["a", "b", "c"].iter().map(|pci| gpu("gfx942", pci)).collect();
        let left = |mask: &str| masked(&devices, Some(&mask.to_owned())).into_iter().filter_map(|gpu| gpu.pci).collect::<String>();
        assert_eq!(left("2,0"), "ca");
        assert_eq!(left("0,-1,2"), "a");
        assert_eq!(left("1,7,0"), "b");
        assert_eq!(left(""), "");
        let mut named = devices.clone();
        named[1].unique_id = Some(0xabc);
        assert_eq!(masked(&named, Some(&"GPU-abc".to_owned()))[0].pci.as_deref(), Some("b"));
        let mut report = report(&devices, &devices[1..2], &[gpu("gfx94", "b")]);
        report.masks.insert("ROCR_VISIBLE_DEVICES".to_owned(), "1".to_owned());
        assert!(report.agreed("gfx942").is_ok());
        report.masks.insert("CUDA_VISIBLE_DEVICES".to_owned(), String::new());
        assert_eq!(reason(&report), "witnesses-disagree");
        report.masks.insert("HIP_VISIBLE_DEVICES".to_owned(), "0".to_owned());
        assert!(report.agreed("gfx942").is_ok());
    }
}
