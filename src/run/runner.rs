//! `probe device` and `probe judge`: from a device, or what ran on one, to an answer.

use std::process::Command;

use super::commands::{json, write_text};
use super::error::RunError;
use crate::cli::{DeviceRuntime, ListFormat, ProbeDeviceArgs, ProbeJudgeArgs};
use crate::probe::device::{self, DeviceReport, child, libraries, sysfs};
use crate::probe::judge;
use crate::text::sanitize;

/// Exit code of a machine without a device that the contract is for.
const UNSUPPORTED: u8 = 3;

/// Asks all witnesses.
pub(super) fn device_report(args: &ProbeDeviceArgs) -> DeviceReport {
    let ask = |name: &str, word: &str| {
        let mut answer = match std::env::current_exe() {
            Ok(program) => {
                let mut command = Command::new(program);
                command.args(["probe", "device", "--ask", word]);
                child::ask(name, command, child::PATIENCE)
            }
            Err(error) => {
                device::Answer { error: Some(format!("this program does not know where it lies: {error}")), ..Default::default() }
            }
        };
        if answer.tried.is_empty() {
            answer.tried.push(name.to_owned());
        }
        answer
    };
    DeviceReport {
        schema: device::SCHEMA.to_owned(),
        masks: device::masks(),
        sysfs: sysfs::read(&args.sysfs),
        hsa: ask("HSA", "hsa"),
        hip: ask("HIP", "hip"),
    }
}

/// Says which device is here.
pub(super) fn device(args: &ProbeDeviceArgs) -> Result<u8, RunError> {
    if let Some(runtime) = args.ask {
        let answer = match runtime {
            DeviceRuntime::Hsa => libraries::hsa(),
            DeviceRuntime::Hip => libraries::hip(),
        };
        write_text(None, &json(&answer))?;
        return Ok(0);
    }
    let report = device_report(args);
    let agreed = report.agreed(&args.arch);
    let text = match args.format {
        ListFormat::Json => json(&report),
        ListFormat::Human => match &agreed {
            Ok(what) => format!("{}\n", sanitize(what)),
            Err((_, what)) => format!("unsupported: {}\n", sanitize(what)),
        },
    };
    write_text(args.output.as_deref(), &text)?;
    Ok(if agreed.is_ok() { 0 } else { UNSUPPORTED })
}

/// Judges an evidence directory.
pub(super) fn judge(args: &ProbeJudgeArgs) -> Result<u8, RunError> {
    let judged = judge::judge(&args.folder).map_err(RunError::Evidence)?;
    let text = match args.format {
        ListFormat::Human => judged.human(),
        ListFormat::Json => json(&judged.json()),
    };
    write_text(args.output.as_deref(), &text)?;
    Ok(judged.chain.verdict.exit_code())
}
