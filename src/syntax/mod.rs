//! Python text to facts; shell and JSON text to words and strings with their places.
//!
//! In: the decoded text of one file. Out: [`ModuleFacts`]: operations, conditions, `try` statements, directives. Refused: nothing; where the
//! parser gives up the problem is recorded with its position and what could still be parsed is kept. The parser crate is named here alone.

mod expressions;
mod facts;
pub mod heredoc;
pub mod json;
mod lower;
mod parallel;
mod patterns;
mod scan;
pub mod shell;
mod statements;
pub mod tree;
mod tree_lower;

pub use facts::*;
pub use lower::extract;
pub use parallel::extract_all;
pub use tree_lower::trees;

/// Stack, in bytes, that a thread needs to call [`extract`] on any input.
pub const STACK_BYTES: usize = 512 << 20;
