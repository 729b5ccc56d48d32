//! Which objects lead to which nodes.

use foldhash::quality::RandomState;
use persistent::Shared;

use crate::name::{Name, OwnName, hash};
use crate::names::Names;
use crate::nodes::{NodeId, Nodes, Sought};
use crate::set::{Set, gather, join, split, spread};
use crate::slab::{Id, PLACES_MAX, Slab};

/// The relations between objects and nodes.
///
/// Every node knows what leads to it, so asking takes the same time however many pods share a
/// secret, and however many secrets there are. Keeping this up costs, per pod, as much as it has
/// references; a volume costs as much as its claim has pods. A clone costs nothing of note and never
/// sees later changes.
///
/// The cluster is so large that a question spends its time waiting for memory. So the parts lie
/// apart: what questions read is dense, and which places they read follows from hashes and small
/// numbers, so that the processor waits for several of them at once.
///
/// INVARIANT: a vertex leads to a node, by way of its successor, exactly if that successor is the
/// node or itself leads to it. A vertex or node has at least one edge.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    names: Names,
    /// INVARIANT: at the places of their names. Only changes read them, so little is copied at once.
    vertices: Slab<Vertex, 8, 32>,
    nodes: Nodes,
    /// Keyed at random, for names are chosen by users.
    hasher: RandomState,
}

/// An object that may lead to nodes.
#[derive(Debug, Clone)]
struct Vertex {
    /// That of its name.
    hash: u32,
    n_successors: u32,
    /// The successor added last. The vertices of objects that the graph learns from have only one.
    last_successor: Option<Successor>,
    /// For each predecessor: its place, spread, and nothing.
    predecessors: Set,
    /// For each way to a node: the place of the node, and that of the vertex that comes next, both
    /// spread. If the node itself comes next, that is [`NO_VERTEX`].
    ways: Set,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Successor {
    Node(NodeId),
    Vertex(Id),
}

/// Not the place of any vertex.
const NO_VERTEX: Id = PLACES_MAX;

impl Shared for Vertex {
    fn n_owners(&self) -> usize {
        self.predecessors.n_owners() + self.ways.n_owners()
    }
}

impl Vertex {
    fn leads_to(&self, node: NodeId) -> bool {
        self.ways.has(spread(node))
    }

    /// The vertex after this one on some way to the node, unless that is the node.
    fn next(&self, node: NodeId) -> Option<Id> {
        self.ways.find(spread(node), |_| true).map(gather).filter(|next| *next != NO_VERTEX)
    }

    /// The nodes that there is a way to.
    fn nodes(&self) -> Vec<NodeId> {
        let nodes = self.ways.numbers().into_iter().map(|way| gather(split(way).0));
        let mut nodes: Vec<NodeId> = nodes.collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    fn predecessors(&self) -> Vec<Id> {
        self.predecessors.numbers().into_iter().map(|own| gather(split(own).0)).collect()
    }
}

/// Queries.
impl Graph {
    /// How many vertices there are, nodes included.
    pub fn n_vertices(&self) -> usize {
        self.vertices.len() + self.nodes.len()
    }

    pub(crate) fn node(&self, name: &str) -> Option<NodeId> {
        self.nodes.find(self.seek(name)).map(|node| node.id)
    }

    pub(crate) fn vertex(&self, name: Name<'_>) -> Option<Id> {
        self.names.find(self.hash(name), name)
    }

    /// Begins to look for a node.
    #[inline]
    pub(crate) fn seek<'a>(&'a self, node: &'a str) -> Sought<'a> {
        self.nodes.seek(hash("", node, &self.hasher), node)
    }

    /// A node and the vertex of an object, if that leads to it.
    ///
    /// The name of the node is compared only if the object leads to the node that was found by hash,
    /// so a refusal, which half of the answers may be, reads no name at all.
    #[inline]
    pub(crate) fn relation(&self, node: Sought<'_>, object: Name<'_>) -> Option<(NodeId, Id)> {
        let hash = self.hash(object);
        let first = node.first?;
        if let Some(vertex) = self.origin(&first.origins, hash, object)
            && self.nodes.is_named(first, node.name)
        {
            return Some((first.id, vertex));
        }
        if self.nodes.are_apart() { None } else { self.relation_among_all(node, object) }
    }

    /// The same, for whatever node of the hash has the name.
    #[cold]
    fn relation_among_all(&self, node: Sought<'_>, object: Name<'_>) -> Option<(NodeId, Id)> {
        let node = self.nodes.find(node)?;
        let vertex = self.origin(&node.origins, self.hash(object), object)?;
        Some((node.id, vertex))
    }

    /// The vertex of this name, if it is among the origins of a node.
    #[inline]
    fn origin(&self, origins: &Set, hash: u32, name: Name<'_>) -> Option<Id> {
        let is_wanted = |id| self.names.get(id).is_some_and(|own| own.is(name));
        origins.find(hash, |place| is_wanted(gather(place))).map(gather)
    }

    fn hash(&self, name: Name<'_>) -> u32 {
        hash(name.namespace, name.name, &self.hasher) ^ spread(name.kind as u32)
    }

    /// A way from a vertex that leads to a node, both included.
    pub(crate) fn way(&self, from: Id, node: NodeId) -> Vec<Name<'_>> {
        let next = |at: &Id| self.vertices.get(*at)?.next(node);
        let vertices = std::iter::successors(Some(from), next).filter_map(|id| self.names.get(id));
        vertices.chain(self.nodes.name(node)).map(OwnName::get).collect()
    }

    /// The names of the nodes that a vertex leads to, in no particular order.
    pub(crate) fn nodes(&self, from: Id) -> Vec<&str> {
        let nodes = self.vertices.get(from).map(Vertex::nodes).unwrap_or_default();
        let names = nodes.into_iter().filter_map(|node| self.nodes.name(node));
        names.map(|own| own.get().name).collect()
    }
}

/// Changes.
impl Graph {
    /// Adds an edge from an object, which has none yet and is made a vertex, to a node. Adds nothing
    /// if there are too many vertices.
    pub(crate) fn bind(&mut self, from: Name<'_>, to: &str) -> Option<Id> {
        let node = self.make_node(to)?;
        let from = self.make_vertex(from);
        if let Some(id) = from {
            self.follow(id, Successor::Node(node));
            self.gain(id, node, NO_VERTEX);
        }
        self.nodes.remove_if_alone(node, &self.hasher);
        from
    }

    /// Adds an edge between objects, which are made vertices if need be. Adds nothing if there are
    /// too many.
    pub(crate) fn connect(&mut self, from: Name<'_>, to: Name<'_>) -> Option<Id> {
        let to = self.make_vertex(to)?;
        let from = self.connect_to(from, to);
        self.drop_if_alone(to);
        from
    }

    /// The same, to a vertex.
    pub(crate) fn connect_to(&mut self, from: Name<'_>, to: Id) -> Option<Id> {
        let from = self.make_vertex(from)?;
        let target = self.vertices.get_mut(to)?;
        if target.predecessors.insert(join(spread(from), 0)) {
            let nodes = target.nodes();
            self.follow(from, Successor::Vertex(to));
            for node in nodes {
                self.gain(from, node, to);
            }
        }
        Some(from)
    }

    /// Removes a vertex with its edges, and every neighbour that is left without any.
    pub(crate) fn remove(&mut self, name: Name<'_>) {
        let Some(id) = self.vertex(name) else { return };
        let Some(vertex) = self.vertices.get(id) else { return };
        let successor = vertex.last_successor;
        for predecessor in vertex.predecessors() {
            self.disconnect(predecessor, id);
        }
        match successor {
            Some(Successor::Vertex(successor)) => self.disconnect(id, successor),
            Some(Successor::Node(node)) => self.unbind(id, node),
            None => {}
        }
    }

    fn unbind(&mut self, from: Id, node: NodeId) {
        self.unfollow(from);
        self.lose(from, node, NO_VERTEX);
        self.drop_if_alone(from);
        self.nodes.remove_if_alone(node, &self.hasher);
    }

    fn disconnect(&mut self, from: Id, to: Id) {
        let Some(target) = self.vertices.get_mut(to) else { return };
        if !target.predecessors.remove(join(spread(from), 0)) {
            return;
        }
        let nodes = target.nodes();
        self.unfollow(from);
        for node in nodes {
            self.lose(from, node, to);
        }
        self.drop_if_alone(from);
        self.drop_if_alone(to);
    }

    fn follow(&mut self, from: Id, to: Successor) {
        if let Some(vertex) = self.vertices.get_mut(from) {
            vertex.n_successors += 1;
            vertex.last_successor = Some(to);
        }
    }

    fn unfollow(&mut self, from: Id) {
        if let Some(vertex) = self.vertices.get_mut(from) {
            vertex.n_successors -= 1;
        }
    }

    /// Notes that `at` leads to a node through `next`; if it did not before, so do those before it.
    fn gain(&mut self, at: Id, node: NodeId, next: Id) {
        let Some(vertex) = self.vertices.get_mut(at) else { return };
        let is_first = !vertex.leads_to(node);
        vertex.ways.insert(join(spread(node), spread(next)));
        if is_first {
            let (hash, predecessors) = (vertex.hash, vertex.predecessors());
            if let Some(origins) = self.nodes.origins_mut(node, &self.hasher) {
                origins.insert(join(hash, spread(at)));
            }
            for predecessor in predecessors {
                self.gain(predecessor, node, at);
            }
        }
    }

    /// The reverse of `gain`.
    fn lose(&mut self, at: Id, node: NodeId, next: Id) {
        let Some(vertex) = self.vertices.get_mut(at) else { return };
        let was_there = vertex.ways.remove(join(spread(node), spread(next)));
        if was_there && !vertex.leads_to(node) {
            let (hash, predecessors) = (vertex.hash, vertex.predecessors());
            if let Some(origins) = self.nodes.origins_mut(node, &self.hasher) {
                origins.remove(join(hash, spread(at)));
            }
            for predecessor in predecessors {
                self.lose(predecessor, node, at);
            }
        }
    }

    fn make_vertex(&mut self, name: Name<'_>) -> Option<Id> {
        let hash = self.hash(name);
        if let Some(id) = self.names.find(hash, name) {
            return Some(id);
        }
        self.names.add(hash, name)?;
        self.vertices.insert(Vertex {
            hash,
            n_successors: 0,
            last_successor: None,
            predecessors: Set::default(),
            ways: Set::default(),
        })
    }

    fn make_node(&mut self, name: &str) -> Option<NodeId> {
        self.node(name).or_else(|| self.nodes.add(hash("", name, &self.hasher), name))
    }

    fn drop_if_alone(&mut self, id: Id) {
        if let Some(vertex) = self.vertices.get(id)
            && vertex.n_successors == 0
            && vertex.predecessors.is_empty()
        {
            self.names.remove(vertex.hash, id);
            self.vertices.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Kind;

    /// Another node has the hash of the one that asks, and was there first.
    #[test]
    fn a_node_whose_hash_clashes_is_told_by_its_name() {
        let mut graph = Graph::default();
        let object = |name| Name { kind: Kind::Pod, namespace: "ns", name };
        let other = graph.nodes.add(hash("", "a", &graph.hasher), "other").unwrap();
        let own = graph.bind(object("own"), "a").unwrap();
        let node = graph.node("a").unwrap();
        assert_ne!(node, other);
        assert_eq!(graph.relation(graph.seek("a"), object("own")), Some((node, own)));
        assert_eq!(graph.relation(graph.seek("a"), object("none")), None);
        assert_eq!(graph.relation(graph.seek("b"), object("own")), None);
    }
}
