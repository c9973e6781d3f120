//! Thin binary: hands the arguments to the library and the exit code to the system.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(rlk_lint::run::main())
}
