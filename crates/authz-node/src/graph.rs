//! Which objects lead to which nodes.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use foldhash::quality::RandomState;

use crate::name::{Name, OwnName};
use crate::origins::Origins;
use crate::refusal::Refusal;
use crate::set::{Set, gather, join, split, spread};
use crate::slab::{Id, PLACES_MAX, Slab};

/// The relations between objects and nodes.
///
/// Every node knows what leads to it, so asking takes the same time however many pods share a
/// secret, and however many secrets there are. Keeping this up costs, per pod, as much as it has
/// references; a volume costs as much as its claim has pods. A clone costs nothing of note and never
/// sees later changes.
///
/// INVARIANT: a vertex leads to a node, by way of its successor, exactly if that successor is the
/// node or itself leads to it. A vertex or node has at least one edge.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    vertices: Slab<Vertex>,
    /// For each vertex: the hash of its name, and its place, spread.
    vertex_names: Set,
    nodes: Slab<Node>,
    /// The same for nodes.
    node_names: Set,
    /// Keyed at random, for names are chosen by users.
    hasher: RandomState,
}

/// The place of a node, which is none of a vertex.
pub(crate) type NodeId = Id;

/// An object that may lead to nodes.
#[derive(Debug, Clone)]
#[repr(C)] // What a question reads comes first.
pub(crate) struct Vertex {
    name: OwnName,
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

/// A node.
///
/// What leads to it could be learned from the vertices too. But the cluster is so large that every
/// place in memory that a question reads takes long to read, and from here it takes the fewest.
#[derive(Debug, Clone)]
#[repr(C)] // What a question reads comes first.
pub(crate) struct Node {
    name: OwnName,
    origins: Origins,
    refusal: Arc<Refusal>,
    n_predecessors: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Successor {
    Node(NodeId),
    Vertex(Id),
}

/// Not the place of any vertex.
const NO_VERTEX: Id = PLACES_MAX;

impl Vertex {
    pub(crate) fn name(&self) -> Name<'_> {
        self.name.get()
    }

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

impl Node {
    /// Tells why it is refused something.
    pub(crate) fn refusal(&self) -> Arc<Refusal> {
        self.refusal.clone()
    }
}

/// Queries.
impl Graph {
    /// How many vertices there are, nodes included.
    pub fn n_vertices(&self) -> usize {
        self.vertices.len() + self.nodes.len()
    }

    pub(crate) fn node(&self, name: &str) -> Option<(NodeId, &Node)> {
        let name = Name::node(name);
        let is_wanted = |node: &Node| node.name.is(name);
        lookup(&self.node_names, self.hash(name), &self.nodes, is_wanted)
    }

    pub(crate) fn vertex(&self, name: Name<'_>) -> Option<(Id, &Vertex)> {
        let is_wanted = |vertex: &Vertex| vertex.name.is(name);
        lookup(&self.vertex_names, self.hash(name), &self.vertices, is_wanted)
    }

    /// The vertex of this name, if there is a way from it to the node.
    pub(crate) fn origin(&self, name: Name<'_>, node: &Node) -> Option<&Vertex> {
        let is_wanted = |vertex: &&Vertex| vertex.name.is(name);
        let mut found = None;
        node.origins.find(self.hash(name), |id| {
            found = self.vertices.get(id).filter(is_wanted);
            found.is_some()
        })?;
        found
    }

    /// A way from a vertex that leads to a node, both included.
    pub(crate) fn way<'g>(&'g self, from: &'g Vertex, node: NodeId) -> Vec<Name<'g>> {
        let next = |at: &&Vertex| self.vertices.get(at.next(node)?);
        let vertices = std::iter::successors(Some(from), next).map(Vertex::name);
        vertices.chain(self.nodes.get(node).map(|node| node.name.get())).collect()
    }

    /// The names of the nodes that a vertex leads to, in no particular order.
    pub(crate) fn nodes<'g>(&'g self, from: &Vertex) -> Vec<&'g str> {
        let nodes = from.nodes().into_iter().filter_map(|node| self.nodes.get(node));
        nodes.map(|node| node.name.get().name).collect()
    }

    /// Half of a hash is enough: names that share it are few, and they are compared anyway.
    fn hash(&self, name: Name<'_>) -> u32 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(name.namespace.as_bytes());
        hasher.write(name.name.as_bytes());
        (hasher.finish() >> 32) as u32 ^ spread(name.kind as u32)
    }
}

/// Finds something by the hash of its name among places that are given with hashes.
fn lookup<'s, T: Clone>(
    names: &Set,
    hash: u32,
    slab: &'s Slab<T>,
    is_wanted: impl Fn(&T) -> bool,
) -> Option<(Id, &'s T)> {
    let mut found = None;
    names.find(hash, |place| {
        let id = gather(place);
        found = slab.get(id).filter(|value| is_wanted(value)).map(|value| (id, value));
        found.is_some()
    })?;
    found
}

/// Changes.
impl Graph {
    /// Adds an edge from an object, which has none yet and is made a vertex, to a node. Adds nothing
    /// if there are too many vertices.
    pub(crate) fn bind(&mut self, from: Name<'_>, to: &str) -> Option<Id> {
        let node = self.make_node(to)?;
        let from = self.make_vertex(from);
        if let (Some(id), Some(target)) = (from, self.nodes.get_mut(node)) {
            target.n_predecessors += 1;
            self.follow(id, Successor::Node(node));
            self.gain(id, node, NO_VERTEX);
        }
        self.drop_node_if_alone(node);
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
        let Some((id, vertex)) = self.vertex(name) else { return };
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
        if let Some(target) = self.nodes.get_mut(node) {
            target.n_predecessors -= 1;
        }
        self.unfollow(from);
        self.lose(from, node, NO_VERTEX);
        self.drop_if_alone(from);
        self.drop_node_if_alone(node);
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
            if let Some(node) = self.nodes.get_mut(node) {
                node.origins.insert(hash, at);
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
            if let Some(node) = self.nodes.get_mut(node) {
                node.origins.remove(hash, at);
            }
            for predecessor in predecessors {
                self.lose(predecessor, node, at);
            }
        }
    }

    fn make_vertex(&mut self, name: Name<'_>) -> Option<Id> {
        if let Some((id, _)) = self.vertex(name) {
            return Some(id);
        }
        let hash = self.hash(name);
        let id = self.vertices.insert(Vertex {
            name: OwnName::new(name),
            hash,
            n_successors: 0,
            last_successor: None,
            predecessors: Set::default(),
            ways: Set::default(),
        })?;
        self.vertex_names.insert(join(hash, spread(id)));
        Some(id)
    }

    fn make_node(&mut self, name: &str) -> Option<NodeId> {
        if let Some((id, _)) = self.node(name) {
            return Some(id);
        }
        let name = Name::node(name);
        let id = self.nodes.insert(Node {
            name: OwnName::new(name),
            origins: Origins::default(),
            refusal: Refusal::new(name.name),
            n_predecessors: 0,
        })?;
        self.node_names.insert(join(self.hash(name), spread(id)));
        Some(id)
    }

    fn drop_if_alone(&mut self, id: Id) {
        if let Some(vertex) = self.vertices.get(id)
            && vertex.n_successors == 0
            && vertex.predecessors.is_empty()
        {
            self.vertex_names.remove(join(vertex.hash, spread(id)));
            self.vertices.remove(id);
        }
    }

    fn drop_node_if_alone(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get(id)
            && node.n_predecessors == 0
        {
            self.node_names.remove(join(self.hash(node.name.get()), spread(id)));
            self.nodes.remove(id);
        }
    }
}
