//! The nodes, and what leads to them.

use std::hint::black_box;
use std::sync::Arc;

use foldhash::quality::RandomState;

use crate::name::{Name, OwnName, hash};
use crate::set::Set;
use crate::shared::Shared;
use crate::slab::{Id, Leaf, Slab};
use crate::table::{Hashed, Table};

/// The place of a node, which is none of a vertex.
pub(crate) type NodeId = Id;

/// Nodes by the hashes of their names, and the names by place.
///
/// What a question needs of a node lies where the hash points, so it is read in one step. The names
/// lie apart, since reasons hold on to them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nodes {
    nodes: Table<Node>,
    names: Slab<OwnName, 64, 64>,
}

/// What is known of a node. INVARIANT: its name is at its place.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// That of its name.
    hash: u32,
    pub(crate) id: NodeId,
    /// What leads to it. For each such vertex: the hash of its name, and its place, spread. This
    /// could be learned from the vertices too, from more places in memory.
    pub(crate) origins: Set,
}

impl Hashed for Node {
    fn hash(&self) -> u32 {
        self.hash
    }

    fn vacant() -> Self {
        Self { hash: 0, id: Id::MAX, origins: Set::default() }
    }

    fn is_vacant(&self) -> bool {
        self.id == Id::MAX
    }
}

impl Shared for Node {
    fn n_owners(&self) -> usize {
        self.origins.n_owners()
    }
}

impl Nodes {
    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// The node of a name, whose hash this is. Before the name is compared, `look` is shown any node
    /// that has the hash: what it looks for and the name are then waited for together.
    #[inline]
    pub(crate) fn find(&self, hash: u32, name: &str, mut look: impl FnMut(&Node)) -> Option<&Node> {
        let name = Name::node(name);
        self.nodes.find(hash, |node| {
            let Some((leaf, at)) = self.names.leaf(node.id) else { return false };
            // A refusal will count itself among them, and would wait for the count after all else.
            black_box(leaf.n_owners());
            look(node);
            leaf.get(at).is_some_and(|own| own.is(name))
        })
    }

    pub(crate) fn name(&self, id: NodeId) -> Option<&OwnName> {
        self.names.get(id)
    }

    /// The names that a name lies among, and which of them it is.
    pub(crate) fn leaf(&self, id: NodeId) -> Option<(&Arc<Leaf<OwnName, 64>>, usize)> {
        self.names.leaf(id)
    }

    /// What leads to a node, to be changed.
    pub(crate) fn origins_mut(&mut self, id: NodeId, hasher: &RandomState) -> Option<&mut Set> {
        let hash = hash("", self.names.get(id)?.get().name, hasher);
        self.nodes.find_mut(hash, |node| node.id == id).map(|node| &mut node.origins)
    }

    /// Adds a node that is not there, whose hash this is, unless there are too many.
    pub(crate) fn add(&mut self, hash: u32, name: &str) -> Option<NodeId> {
        let id = self.names.insert(OwnName::new(Name::node(name)))?;
        self.nodes.insert(Node { hash, id, origins: Set::default() });
        Some(id)
    }

    /// Removes a node that nothing leads to.
    pub(crate) fn remove_if_alone(&mut self, id: NodeId, hasher: &RandomState) {
        let Some(own) = self.names.get(id) else { return };
        let hash = hash("", own.get().name, hasher);
        if self.nodes.find(hash, |node| node.id == id && node.origins.is_empty()).is_some() {
            self.nodes.remove(hash, |node| node.id == id);
            self.names.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_share_a_hash_are_told_apart_by_name() {
        let mut nodes = Nodes::default();
        let [a, b] = ["a", "b"].map(|name| nodes.add(7, name).unwrap());
        let find = |nodes: &Nodes, hash, name: &str| {
            let mut n_looks = 0;
            let found = nodes.find(hash, name, |_| n_looks += 1).map(|node| node.id);
            (found, n_looks)
        };
        assert_eq!(find(&nodes, 7, "a"), (Some(a), 1));
        assert_eq!(find(&nodes, 7, "b"), (Some(b), 2));
        assert_eq!(find(&nodes, 7, "c"), (None, 2));
        assert_eq!(find(&nodes, 8, "a"), (None, 0));
    }

    #[test]
    fn a_node_stays_while_something_leads_to_it() {
        let hasher = RandomState::default();
        let own = hash("", "a", &hasher);
        let mut nodes = Nodes::default();
        let id = nodes.add(own, "a").unwrap();
        assert!(nodes.origins_mut(id, &hasher).unwrap().insert(1));
        nodes.remove_if_alone(id, &hasher);
        assert_eq!(nodes.len(), 1);
        assert!(nodes.origins_mut(id, &hasher).unwrap().remove(1));
        nodes.remove_if_alone(id, &hasher);
        assert_eq!(nodes.len(), 0);
        assert!(nodes.find(own, "a", |_| {}).is_none());
        assert!(nodes.origins_mut(id, &hasher).is_none());
    }

    #[test]
    fn two_nodes_take_what_a_processor_reads_at_once() {
        assert_eq!(size_of::<Node>(), 32);
    }
}
