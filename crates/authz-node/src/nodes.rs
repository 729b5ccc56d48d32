//! The nodes, and what leads to them.

use foldhash::quality::RandomState;
use persistent::Shared;

use crate::name::{Name, OwnName, hash};
use crate::set::Set;
use crate::slab::{Id, Slab};
use crate::table::{Hashed, Table};

/// The place of a node, which is none of a vertex.
pub(crate) type NodeId = Id;

/// Nodes by the hashes of their names, and the names by place.
///
/// What a question needs of a node lies where the hash points, so it is read in one step. The names
/// lie apart, since refusals do not read them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nodes {
    nodes: Table<Node>,
    names: Slab<OwnName, 64, 64>,
    /// INVARIANT: by so many are the hashes of nodes fewer than the nodes. All but always zero, and
    /// then the first node of a hash is the only one.
    n_clashes: usize,
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

/// A node that is looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sought<'a> {
    pub(crate) name: &'a str,
    hash: u32,
    /// Some node of the hash. Whether it has the name was not looked at.
    pub(crate) first: Option<&'a Node>,
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

    /// Begins to look for the node of a name, whose hash this is. Whoever has other things to do
    /// before the end need not wait for memory meanwhile.
    #[inline]
    pub(crate) fn seek<'a>(&'a self, hash: u32, name: &'a str) -> Sought<'a> {
        Sought { name, hash, first: self.first(hash) }
    }

    /// The node that is looked for, among all that have its hash.
    pub(crate) fn find(&self, sought: Sought<'_>) -> Option<&Node> {
        self.nodes.find(sought.hash, |node| self.is_named(node, sought.name))
    }

    /// Reports whether no two nodes share a hash, so that whoever looked at the first node of one
    /// looked at them all.
    #[inline]
    pub(crate) fn are_apart(&self) -> bool {
        self.n_clashes == 0
    }

    #[inline]
    pub(crate) fn is_named(&self, node: &Node, name: &str) -> bool {
        self.name(node.id).is_some_and(|own| own.is(Name::node(name)))
    }

    #[inline]
    fn first(&self, hash: u32) -> Option<&Node> {
        self.nodes.find(hash, |_| true)
    }

    pub(crate) fn name(&self, id: NodeId) -> Option<&OwnName> {
        self.names.get(id)
    }

    /// What leads to a node, to be changed.
    pub(crate) fn origins_mut(&mut self, id: NodeId, hasher: &RandomState) -> Option<&mut Set> {
        let hash = hash("", self.names.get(id)?.get().name, hasher);
        self.nodes.find_mut(hash, |node| node.id == id).map(|node| &mut node.origins)
    }

    /// Adds a node that is not there, whose hash this is, unless there are too many.
    pub(crate) fn add(&mut self, hash: u32, name: &str) -> Option<NodeId> {
        let id = self.names.insert(OwnName::new(Name::node(name)))?;
        self.n_clashes += usize::from(self.first(hash).is_some());
        self.nodes.insert(Node { hash, id, origins: Set::default() });
        Some(id)
    }

    /// Removes a node that nothing leads to.
    pub(crate) fn remove_if_alone(&mut self, id: NodeId, hasher: &RandomState) {
        let Some(own) = self.names.get(id) else { return };
        let hash = hash("", own.get().name, hasher);
        if self.nodes.find(hash, |node| node.id == id && node.origins.is_empty()).is_some() {
            self.nodes.remove(hash, |node| node.id == id);
            self.n_clashes -= usize::from(self.first(hash).is_some());
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
        let find = |hash, name| nodes.find(nodes.seek(hash, name)).map(|node| node.id);
        assert_eq!(find(7, "a"), Some(a));
        assert_eq!(find(7, "b"), Some(b));
        assert_eq!(find(7, "c"), None);
        assert_eq!(find(8, "a"), None);
    }

    #[test]
    fn clashes_are_counted_while_they_last() {
        let hasher = RandomState::default();
        let own = hash("", "a", &hasher);
        let mut nodes = Nodes::default();
        nodes.add(own, "b").unwrap();
        nodes.add(!own, "c").unwrap();
        assert!(nodes.are_apart());
        let id = nodes.add(own, "a").unwrap();
        assert!(!nodes.are_apart());
        nodes.remove_if_alone(id, &hasher);
        assert_eq!(nodes.len(), 2);
        assert!(nodes.are_apart());
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
        assert!(nodes.first(own).is_none());
        assert!(nodes.origins_mut(id, &hasher).is_none());
    }

    #[test]
    fn two_nodes_take_what_a_processor_reads_at_once() {
        assert_eq!(size_of::<Node>(), 32);
    }
}
