//! Call edges to routes: every place where a family is reached, bound or mentioned, and the chains from entry to kernel.
//!
//! In: the engine at its fixpoint, the families and path classes of the profile. Out: [`Routes`]: callsites and bindings with kind, class,
//! certainty, condition and reason, and for each callsite the chain up to its entries and down to its kernels. Refused: nothing; what could not
//! be traced is listed as untraced with its reason.

mod bindings;
pub mod callgraph;
mod callsites;
mod chains;
mod family;

pub use bindings::{Binding, BindingKind};
pub use callsites::{Callsite, CallsiteKind, Certainty, Status};
pub use chains::Hop;
pub use family::{Reach, fits, target_name};

use crate::names::{GlobalScope, ModuleId, Program};
use crate::profile::{Family, PathClass};
use crate::text::Span;
use crate::values::Engine;

/// Everything found about one family.
#[derive(Debug)]
pub struct Routes {
    /// Id of the family.
    pub family: String,
    /// Callsites in order of file and place.
    pub callsites: Vec<Callsite>,
    /// Bindings in order of file and place.
    pub bindings: Vec<Binding>,
    /// What reaches the family.
    pub reach: Reach,
}

/// Traces one family.
#[must_use]
pub fn trace(engine: &mut Engine<'_>, family: &Family, class_of: &dyn Fn(ModuleId) -> PathClass) -> Routes {
    let reach = family::reach(engine, family);
    let mut callsites = callsites::collect(engine, &reach, class_of);
    chains::attach(engine, &reach, &mut callsites);
    let bindings = bindings::collect(engine, &reach, class_of);
    Routes { family: family.id.clone(), callsites, bindings, reach }
}

/// Span of an operation, cut to its first line so that a finding stays short.
pub(crate) fn op_span(program: &Program, scope: GlobalScope, op: u32) -> Span {
    program.span(scope, program.scope(scope).ops[op as usize].range)
}
