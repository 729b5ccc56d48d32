//! Why a node is refused what does not lead to it.

use std::fmt;
use std::sync::Arc;

use authz::{Reason, ReasonSource};

/// Tells the reason for one node. The graph keeps one beside each node, since half of what is asked
/// may be refused, and so refusing allocates nothing.
#[derive(Debug)]
pub(crate) struct Refusal {
    node: Box<str>,
}

impl Refusal {
    pub(crate) fn new(node: &str) -> Arc<Self> {
        Arc::new(Self { node: node.into() })
    }

    pub(crate) fn reason(self: Arc<Self>) -> Reason {
        Reason::told_by(self, 0)
    }
}

impl ReasonSource for Refusal {
    fn tell(&self, _: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no relationship found between node '{}' and this object", self.node)
    }
}
