//! Extraction of many modules on several threads, with the stack that deep input needs.

use rayon::prelude::*;

use super::{ModuleFacts, STACK_BYTES, extract};

/// Facts of all texts, in their order, on `threads` threads (0: as many as there are processors).
///
/// # Panics
/// If the system gives no threads.
#[must_use]
pub fn extract_all(texts: &[&str], threads: usize) -> Vec<ModuleFacts> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK_BYTES).build().expect("the system gives threads");
    pool.install(|| texts.par_iter().map(|text| extract(text)).collect())
}
