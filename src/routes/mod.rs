//! Call edges to routes: entry to kernel, with the place of every step.

pub mod callgraph;
