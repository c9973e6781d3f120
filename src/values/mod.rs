//! What may this expression be? Abstract objects, propagated over the whole program under the profile's assumptions.
//!
//! In: the module table and the assumptions. Out: [`Engine`] at its fixpoint: the objects of every register, the call edges with their kind,
//! the calls that stayed unresolved with their reason, the installs (monkeypatches). Refused: nothing; what is not followed is
//! [`Object::Unknown`] with its reason.
//!
//! Every register of every running copy of a scope is a node with a small set of objects; operations are subscriptions to nodes. A branch runs
//! when its test can come out that way, so that what the assumptions decide is never followed. Work is done in order of arrival from one queue,
//! which the input alone determines: same input, same result.

mod arguments;
mod attributes;
mod builtins;
mod calls;
mod engine;
mod eval;
mod files;
mod frameworks;
mod graph;
mod imports;
mod items;
mod iteration;
pub mod models;
mod object;
mod operations;
mod queries;
mod running;

pub use engine::Engine;
pub use graph::{Assumptions, CallEdge, EdgeKind, Given, Install, Known, Target, Unresolved};
pub use object::{Builtin, InstanceId, Object, ObjectId, Reason};
