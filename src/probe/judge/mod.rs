//! The judge.

pub mod evidence;
pub mod json_stream;
pub mod link;
pub mod trace;
