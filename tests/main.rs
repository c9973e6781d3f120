//! All integration tests, as one binary.
#![allow(clippy::print_stderr, missing_docs)]

mod candidates;
mod catalog;
mod cli;
mod companions;
mod depth;
mod determinism;
mod diff_base;
#[path = "support/elf.rs"]
mod elf;
#[path = "support/evidence.rs"]
mod evidence;
mod house;
mod judge;
mod outputs;
#[path = "support/page.rs"]
mod page;
mod provenance;
mod rules;
mod runner;
mod shapes;
mod support;
mod truth;
