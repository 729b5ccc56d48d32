//! Why a node is refused what does not lead to it.

use std::fmt;
use std::sync::Arc;

use authz::{Reason, ReasonSource};

use crate::name::OwnName;
use crate::slab::Leaf;

/// The reason for a node that the graph knows, given where its name lies.
///
/// Half of what is asked may be refused, so this allocates nothing, and waits for memory no more than
/// comparing the name did. The names in a leaf never change while a reason holds it: the graph
/// copies it first.
pub(crate) fn of_known<const N: usize>(leaf: &Arc<Leaf<OwnName, N>>, at: usize) -> Reason {
    let leaf: Arc<Leaf<OwnName, N>> = Arc::clone(leaf);
    Reason::told_by(leaf, at)
}

/// The reason for a node that the graph does not know.
pub(crate) fn of_unknown(node: &str) -> Reason {
    text(node).to_string().into()
}

impl<const N: usize> ReasonSource for Leaf<OwnName, N> {
    fn tell(&self, at: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = self.get(at).map_or("", |own| own.get().name);
        write!(f, "{}", text(node))
    }
}

fn text(node: &str) -> impl fmt::Display {
    fmt::from_fn(move |f| write!(f, "no relationship found between node '{node}' and this object"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::hash;
    use crate::nodes::Nodes;
    use foldhash::quality::RandomState;

    /// Another node is given the place of the one that was refused.
    #[test]
    fn a_reason_that_is_held_never_changes() {
        let hasher = RandomState::default();
        let mut nodes = Nodes::default();
        let add = |nodes: &mut Nodes, name| nodes.add(hash("", name, &hasher), name);
        let reason = |nodes: &Nodes, id| nodes.leaf(id).map(|(leaf, at)| of_known(leaf, at));
        let id = add(&mut nodes, "a").unwrap();
        let first = reason(&nodes, id).unwrap();
        nodes.remove_if_alone(id, &hasher);
        assert_eq!(add(&mut nodes, "b"), Some(id));
        let second = reason(&nodes, id).unwrap();
        assert_eq!(first, "no relationship found between node 'a' and this object");
        assert_eq!(second, "no relationship found between node 'b' and this object");
        assert_eq!(second, of_unknown("b"));
    }
}
