//! All integration tests, as one binary.
#![allow(clippy::print_stderr, missing_docs)]

mod cli;
mod companions;
mod depth;
mod determinism;
mod house;
mod rules;
mod shapes;
mod support;
