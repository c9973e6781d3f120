//! Asking a runtime in a process of its own.
//!
//! In: the program and the arguments that make it ask one runtime. Out: its [`Answer`], or one that says how the process ended. Refused: output of a
//! process that did not end with success, whatever it wrote before.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Answer;

/// How long a driver may take to answer.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Longest answer.
const LONGEST: u64 = 1 << 20;

fn failed(asked: &str, error: String) -> Answer {
    Answer { asked: Some(asked.to_owned()), error: Some(error), ..Answer::default() }
}

/// Runs `command` and reads its answer.
#[must_use]
pub fn ask(asked: &str, mut command: Command, patience: Duration) -> Answer {
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => return failed(asked, format!("the process that asks it could not be started: {error}")),
    };
    let Some(output) = child.stdout.take() else { return failed(asked, "its output could not be read".to_owned()) };
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        output.take(LONGEST).read_to_end(&mut text).map(|_| text)
    });
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() > patience => {
                // It may be stuck in the driver; what cannot be killed is left behind.
                let _ = child.kill();
                let _ = child.try_wait();
                return failed(asked, format!("it did not answer within {} seconds", patience.as_secs()));
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => return failed(asked, format!("the process that asks it was lost: {error}")),
        }
    };
    if !status.success() {
        return failed(asked, format!("it ended the process that asked it: {status}"));
    }
    let Ok(Ok(text)) = reader.join() else { return failed(asked, "its answer could not be read".to_owned()) };
    serde_json::from_slice(&text).unwrap_or_else(|error| failed(asked, format!("its answer cannot be understood: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn only_a_process_that_ends_well_has_answered() {
        let good = r#"echo '{"tried": [], "asked": "x", "devices": [{"arch": "gfx942"}]}'"#;
        assert_eq!(ask("HIP", shell(good), PATIENCE).devices[0].arch, "gfx942");
        let error = |script: &str, patience| ask("HIP", shell(script), patience).error.unwrap();
        assert!(error(&format!("{good}; kill -ABRT $$"), PATIENCE).contains("signal: 6"));
        assert!(error(&format!("{good}; exit 9"), PATIENCE).contains("exit status: 9"));
        assert!(error("echo hello", PATIENCE).contains("cannot be understood"));
        assert!(error("exec sleep 30", Duration::from_millis(50)).contains("did not answer"));
    }
}
