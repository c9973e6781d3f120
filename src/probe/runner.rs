//! A workload under observation: the process and the evidence directory that it leaves.
//!
//! In: a command, its environment, a time limit. Out: files in the evidence directory, and in the end a manifest with the digest of each. Refused: a
//! folder that holds something, a workload that does not end in time, a link among the evidence.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::judge::evidence::{Entry, Evidence, MANIFEST, Manifest, Role, SCHEMA, digest};
use super::judge::link::Findings;

/// The recorder, under the name by which Python starts it.
const SHIM: [(&str, &str); 2] =
    [("sitecustomize.py", include_str!("record/recorder.py")), ("rlk_probe_canary.py", include_str!("record/canary.py"))];
/// What drives the routes. It lies beside the recorder and not in its folder, so that comparing bytes is not recorded.
const EXERCISER: &str = include_str!("record/exercise.py");
/// How often a running workload is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// How a workload ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With an exit code.
    Code(i32),
    /// By a signal.
    Signal,
    /// It did not within the limit, and was ended.
    TimeLimit,
}

/// The evidence directory while it is made, and the folder with the recorder.
#[derive(Debug)]
pub struct Room {
    evidence: PathBuf,
    tools: PathBuf,
}

impl Room {
    /// Makes the evidence directory, which has to be absent or empty, and writes the recorder to `tools`.
    ///
    /// # Errors
    /// If it holds something, or cannot be written to.
    pub fn make(evidence: &Path, tools: &Path) -> io::Result<Self> {
        fs::create_dir_all(evidence)?;
        if fs::read_dir(evidence)?.next().is_some() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "it holds something already; evidence of two runs is evidence of none",
            ));
        }
        let room = Self { evidence: fs::canonicalize(evidence)?, tools: fs::canonicalize(tools)? };
        fs::create_dir_all(room.shim())?;
        for (name, text) in SHIM {
            fs::write(room.shim().join(name), text)?;
        }
        fs::write(room.exerciser(), EXERCISER)?;
        for name in ["recorder", "cache"] {
            fs::create_dir(room.evidence.join(name))?;
        }
        Ok(room)
    }

    /// Folder of the recorder, for the head of PYTHONPATH.
    #[must_use]
    pub fn shim(&self) -> PathBuf {
        self.tools.join("shim")
    }

    /// The exerciser.
    #[must_use]
    pub fn exerciser(&self) -> PathBuf {
        self.tools.join("exercise.py")
    }

    /// A path in the evidence directory.
    #[must_use]
    pub fn at(&self, name: &str) -> PathBuf {
        self.evidence.join(name)
    }

    /// Writes one document.
    ///
    /// # Errors
    /// What the system said.
    pub fn write(&self, name: &str, document: &impl serde::Serialize) -> io::Result<()> {
        fs::write(self.at(name), serde_json::to_vec_pretty(document)?)
    }

    /// Runs a command with `variables` beside this process's own; both its outputs go to the file `log` of the evidence.
    ///
    /// # Errors
    /// If it cannot be started or the log cannot be written.
    pub fn run(&self, words: &[String], variables: &BTreeMap<String, String>, log: &str, limit: Duration) -> io::Result<Ended> {
        use std::os::unix::process::ExitStatusExt as _;
        let Some((program, arguments)) = words.split_first() else { return Err(io::Error::other("the command is empty")) };
        let output = File::create(self.at(log))?;
        let errors = output.try_clone()?;
        // A group of its own, so that what the workload starts can be ended with it.
        let mut process = Command::new(program)
            .args(arguments)
            .envs(variables)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()?;
        let began = Instant::now();
        loop {
            if let Some(status) = process.try_wait()? {
                return Ok(match (status.code(), status.signal()) {
                    (Some(code), _) => Ended::Code(code),
                    (None, _) => Ended::Signal,
                });
            }
            if began.elapsed() > limit {
                let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", process.id())]).status();
                let _ = process.kill();
                process.wait()?;
                return Ok(Ended::TimeLimit);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Writes the manifest over everything that lies in the evidence directory.
    ///
    /// # Errors
    /// If a file cannot be read, or something is no plain file.
    pub fn seal(&self) -> io::Result<usize> {
        let mut found = Findings::default();
        let paths = Evidence::list(&self.evidence, &mut found).map_err(io::Error::other)?;
        let mut files = Vec::new();
        for path in paths.into_iter().filter(|path| path != MANIFEST) {
            let (sha256, bytes) = digest(&self.at(&path))?;
            files.push(Entry { role: role(&path), path, bytes, sha256 });
        }
        let number = files.len();
        self.write(MANIFEST, &Manifest { schema: SCHEMA.to_owned(), files })?;
        Ok(number)
    }
}

/// What a file of a run is for, by its place.
#[must_use]
pub fn role(path: &str) -> Role {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let ends = |ending: &str| name.ends_with(ending);
    match folder {
        "" => match name {
            "device.json" => Role::Device,
            "request.json" => Role::Request,
            "baseline.json" => Role::Baseline,
            "reproduction.json" => Role::Reproduction,
            "numbers.json" => Role::Numbers,
            "plan.json" => Role::Plan,
            "workload.log" => Role::Log,
            _ => Role::Note,
        },
        "recorder/objects" => Role::Object,
        "recorder" if ends(".jsonl") => Role::Recorder,
        "recorder" if name.starts_with("torch-") && ends(".json") => Role::TorchTrace,
        _ if path.starts_with("cache/") => Role::Cache,
        _ if path.starts_with("rocprof/") && ends(".json") => Role::RocprofJson,
        _ if path.starts_with("rocprof/") && ends("_kernel_trace.csv") => Role::RocprofCsv,
        _ if path.starts_with("rocprof/") && ends(".db") => Role::Rocpd,
        _ if path.starts_with("readbacks/") => Role::Readback,
        _ => Role::Note,
    }
}

/// A program on the search path.
#[must_use]
pub fn on_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(folder: &Path) -> Room {
        fs::create_dir(folder.join("tools")).unwrap();
        Room::make(&folder.join("evidence"), &folder.join("tools")).unwrap()
    }

    fn shell(text: &str) -> Vec<String> {
        ["/bin/sh", "-c", text].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_folder_that_holds_something_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("manifest.json"), "old").unwrap();
        let error = Room::make(folder.path(), folder.path()).unwrap_err();
        assert!(error.to_string().contains("evidence of none"), "{error}");
        assert_eq!(fs::read_to_string(folder.path().join("manifest.json")).unwrap(), "old");
    }

    #[test]
    fn a_workload_that_hangs_is_ended_with_its_children_and_its_output_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let room = room(folder.path());
        let began = Instant::now();
        let ended = room.run(&shell("echo begun; sleep 60"), &BTreeMap::new(), "workload.log", Duration::from_millis(300)).unwrap();
        assert_eq!(ended, Ended::TimeLimit);
        assert!(began.elapsed() < Duration::from_secs(20));
        assert_eq!(fs::read_to_string(room.at("workload.log")).unwrap(), "begun\n");
        let variables = BTreeMap::from([("RLK".to_owned(), "5".to_owned())]);
        assert_eq!(room.run(&shell("exit $RLK"), &variables, "workload.log", Duration::from_secs(20)).unwrap(), Ended::Code(5));
        assert_eq!(room.run(&shell("kill -9 $$"), &variables, "workload.log", Duration::from_secs(20)).unwrap(), Ended::Signal);
    }

    #[test]
    fn the_manifest_lists_every_file_with_its_role() {
        let folder = tempfile::tempdir().unwrap();
        let room = room(folder.path());
        fs::create_dir_all(room.at("rocprof/host")).unwrap();
        fs::create_dir_all(room.at("recorder/objects")).unwrap();
        let files = [
            ("device.json", Role::Device),
            ("recorder/1-a.jsonl", Role::Recorder),
            ("recorder/objects/ab.hsaco", Role::Object),
            ("recorder/torch-1.json", Role::TorchTrace),
            ("rocprof/host/1_results.json", Role::RocprofJson),
            ("surprise", Role::Note),
        ];
        for (path, _) in files {
            fs::write(room.at(path), path).unwrap();
        }
        assert_eq!(room.seal().unwrap(), files.len());
        let manifest: Manifest = serde_json::from_slice(&fs::read(room.at(MANIFEST)).unwrap()).unwrap();
        let listed: Vec<(&str, Role)> = manifest.files.iter().map(|entry| (entry.path.as_str(), entry.role)).collect();
        assert_eq!(listed, files);
        let mut found = Findings::default();
        let opened = Evidence::open(&room.at(""), &mut found).unwrap();
        assert!(files.iter().all(|(path, _)| opened.at(path).is_some()));
    }
}
