//! One Python process that compiles, kept at arm's length.
//!
//! In: the interpreter, a private folder, orders. Out: one answer to each. Refused: to wait longer than the time limit, to hand on anything of this
//! process's environment, to take an answer that is not one line of JSON. A process that died or hung is replaced by the caller.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::Value;

/// Longest answer, in bytes.
const MAX_ANSWER_BYTES: u64 = 16 << 20;
/// How much of what a process said last is repeated in a message.
const LAST_WORDS_BYTES: u64 = 600;
/// What runs in the process.
pub const DRIVER: &str = include_str!("driver.py");

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The interpreter cannot be started.
    #[error("the interpreter cannot be started: {0}")]
    Start(io::Error),
    /// The process ended.
    #[error("the process ended with {status}{said}")]
    Died {
        /// How it ended.
        status: String,
        /// What it said last, as a clause; may be empty.
        said: String,
    },
    /// No answer in time.
    #[error("there was no answer within {0} seconds")]
    Hung(u64),
    /// An answer that makes no sense.
    #[error("the answer is not JSON: {0}")]
    Answer(String),
}

/// The process.
pub struct Compiler {
    process: Child,
    orders: ChildStdin,
    answers: Receiver<io::Result<String>>,
    said: PathBuf,
}

/// Where a process works. All paths lie in one private folder.
pub struct Rooms<'a> {
    /// The private folder.
    pub private: &'a Path,
    /// Triton's cache.
    pub cache: &'a Path,
}

impl Compiler {
    /// Starts a process. `number` keeps several in one folder apart.
    ///
    /// # Errors
    /// If the interpreter is not there or the folder cannot be written to.
    pub fn start(python: &Path, rooms: &Rooms<'_>, number: usize) -> Result<Self, ChildError> {
        let said = rooms.private.join(format!("said-{number}.txt"));
        let errors = File::create(&said).map_err(ChildError::Start)?;
        // Isolated mode ignores PYTHON* variables, the user's packages and the current folder. What the compiler writes stays in the folder.
        let mut process = Command::new(python)
            .args(["-I", "-B", "-X", "utf8"])
            .arg(rooms.private.join("driver.py"))
            .current_dir(rooms.private)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .env("HOME", rooms.private)
            .env("TMPDIR", rooms.private)
            .env("TRITON_CACHE_DIR", rooms.cache)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .map_err(ChildError::Start)?;
        let (Some(orders), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(ChildError::Start(io::Error::other("it has no standard streams")));
        };
        let (sender, answers) = channel();
        // Ends when the process closes its output, or when nobody listens any more.
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let mut line = String::new();
                match output.by_ref().take(MAX_ANSWER_BYTES).read_line(&mut line) {
                    Ok(0) => return,
                    Ok(_) => {
                        if sender.send(Ok(line)).is_err() {
                            return;
                        }
                    }
                    Err(cause) => {
                        let _ = sender.send(Err(cause));
                        return;
                    }
                }
            }
        });
        Ok(Self { process, orders, answers, said })
    }

    /// Gives an order and waits for its answer.
    ///
    /// # Errors
    /// If the process died, hung, or talks nonsense; it is of no use afterwards.
    pub fn ask(&mut self, order: &Value, seconds: u64) -> Result<Value, ChildError> {
        let mut line = order.to_string();
        line.push('\n');
        if self.orders.write_all(line.as_bytes()).and_then(|()| self.orders.flush()).is_err() {
            return Err(self.died());
        }
        match self.answers.recv_timeout(Duration::from_secs(seconds)) {
            Ok(Ok(line)) => serde_json::from_str(&line).map_err(|cause| ChildError::Answer(cause.to_string())),
            Ok(Err(cause)) => Err(ChildError::Answer(cause.to_string())),
            Err(RecvTimeoutError::Disconnected) => Err(self.died()),
            Err(RecvTimeoutError::Timeout) => Err(ChildError::Hung(seconds)),
        }
    }

    fn died(&mut self) -> ChildError {
        // It closed its output; one that lives on is ended.
        let _ = self.process.kill();
        let status = self.process.wait().map_or_else(|cause| cause.to_string(), |status| words(&status));
        ChildError::Died { status, said: last_words(&self.said) }
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn words(status: &ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit code".to_owned(),
    }
}

/// The last non-empty line that was written to the standard error.
fn last_words(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LAST_WORDS_BYTES)))?;
        file.take(LAST_WORDS_BYTES).read_to_end(&mut bytes)
    });
    let text = String::from_utf8_lossy(&bytes);
    match (read, text.lines().rev().find(|line| !line.trim().is_empty())) {
        (Ok(_), Some(line)) => format!("; it said last: {}", crate::text::sanitize(line.trim())),
        _ => String::new(),
    }
}
