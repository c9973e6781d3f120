//! rlk-lint says which GEMM kernel really runs.
//!
//! Data flows one way: `cli` -> `profile` -> `sources` -> `syntax` -> `names` -> `values` -> `routes` -> `rules` -> `findings` -> `render`,
//! and `run` composes them.
//! Each module uses only modules that stand before it in this list, which `tests/house.rs` checks:
//! `text < catalog < findings < profile < sources < syntax < names < values < routes < stage0 < rules < run < main`;
//! `render` sees text, catalog, findings and the plain documents of stage0; `cli` sees catalog.
//!
//! Beside them stands `probe`, which looks at compiled code; `run` calls it.

pub mod catalog;
pub mod cli;
pub mod findings;
pub mod names;
pub mod probe;
pub mod profile;
pub mod render;
pub mod routes;
pub mod rules;
pub mod run;
pub mod sources;
pub mod stage0;
pub mod syntax;
pub mod text;
pub mod values;
