//! Thin binary: hands the arguments to the library and the exit code to the system.
fn main() {}
