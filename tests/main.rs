//! All integration tests, as one binary.
#![allow(clippy::print_stderr, missing_docs)]

mod catalog;
mod cli;
mod companions;
mod depth;
mod determinism;
mod diff_base;
mod house;
#[path = "support/page.rs"]
mod page;
mod rules;
mod shapes;
mod support;
mod truth;
