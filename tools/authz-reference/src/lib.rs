//! Reference implementations of the built-in authorizers. They read every object for every request.
//!
//! Tests compare the decisions of the indexed authorizers with these, and the benchmark also compares the
//! time. The two implementations share the policy objects and nothing else, and a plain loop is preferred to
//! a lookup. No program that serves requests may use this crate.
//!
//! Owns: linear ABAC, RBAC and Node, and the comparison of two sets of rules.
//! Must not know: how an index finds its answers, JSON, clocks.

mod abac;
mod coverage;
mod node;
mod node_object;
mod rbac;
mod rule;

pub use abac::ReferenceAbac;
pub use coverage::uncovered_rules;
pub use node::ReferenceNode;
pub use rbac::ReferenceRbac;
