//! The built-in authorizers as a reader of the rules would write them: every object is looked at for
//! every question.
//!
//! They are what the indexed authorizers are compared with, in tests for their answers and in the
//! benchmark for their answers and their time. So they share with them the objects that policy is
//! made of and nothing else, and where a loop is plainer than a look-up, it is a loop. Nothing that
//! serves requests may use them.
//!
//! Owns: linear ABAC, RBAC and Node, and what one set of rules grants beyond another.
//! Must not know: how an index finds its answers, JSON, clocks.

mod abac;
mod coverage;
mod node;
mod node_object;
mod rbac;
mod rule;

pub use abac::Abac;
pub use coverage::uncovered;
pub use node::Node;
pub use rbac::Rbac;
