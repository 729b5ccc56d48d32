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
    use crate::name::Name;
    use crate::names::Names;

    /// Another node is given the place of the one that was refused.
    #[test]
    fn a_reason_that_is_held_never_changes() {
        let mut names = Names::<16>::default();
        let reason = |names: &Names<16>, id| names.leaf(id).map(|(leaf, at)| of_known(leaf, at));
        let id = names.add(1, Name::node("a")).unwrap();
        let first = reason(&names, id).unwrap();
        names.remove(1, id);
        assert_eq!(names.add(2, Name::node("b")), Some(id));
        let second = reason(&names, id).unwrap();
        assert_eq!(first, "no relationship found between node 'a' and this object");
        assert_eq!(second, "no relationship found between node 'b' and this object");
        assert_eq!(second, of_unknown("b"));
    }
}
