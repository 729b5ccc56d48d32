//! Which objects lead to which nodes.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::quality::RandomState;

use crate::trie::{Key, Trie};

/// The kinds of vertices. Edges lead from a kind to one that is listed later, hence no cycles, and
/// no path is longer than the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    ConfigMap,
    Secret,
    ServiceAccount,
    ResourceClaim,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    VolumeAttachment,
    ResourceSlice,
    PodCertificateRequest,
    Node,
}

impl Kind {
    /// The name in explanations.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap",
            Self::Secret => "secret",
            Self::ServiceAccount => "serviceaccount",
            Self::ResourceClaim => "resourceclaim",
            Self::PersistentVolume => "persistentvolume",
            Self::PersistentVolumeClaim => "persistentvolumeclaim",
            Self::Pod => "pod",
            Self::VolumeAttachment => "volumeattachment",
            Self::ResourceSlice => "resourceslice",
            Self::PodCertificateRequest => "podcertificaterequest",
            Self::Node => "node",
        }
    }
}

/// What a vertex stands for. The object need not exist: a pod may name a secret that does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Name<'a> {
    pub(crate) kind: Kind,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

impl<'a> Name<'a> {
    pub(crate) const fn node(name: &'a str) -> Self {
        Self { kind: Kind::Node, namespace: "", name }
    }
}

/// The relations between objects and nodes.
///
/// Every vertex knows the nodes it leads to, so asking takes the same time however many pods share
/// a secret. Keeping this up costs, per pod, as much as it has references; a volume costs as much
/// as its claim has pods. A clone costs nothing of note and never sees later changes.
///
/// INVARIANT: a vertex leads to a node, by way of its successor, exactly if that successor is the
/// node or itself leads to it. A vertex has at least one edge. (Should the hashes of two nodes ever
/// be equal, a route to one may displace a route to the other, which loses access and grants none.)
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// By hash of the name, and by a number of its own.
    vertices: Trie<Arc<Vertex>>,
    /// Keyed at random, for names are chosen by users.
    hasher: RandomState,
    n_created: u64,
    n_vertices: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Vertex {
    kind: Kind,
    /// Namespace and name, one after the other.
    text: Arc<str>,
    namespace_len: usize,
    /// By the hash of a node and the number of a successor on the way to it. So a question need not
    /// look for the node first.
    routes: Trie<Route>,
    predecessors: Trie<()>,
    n_successors: usize,
    /// The successor added last. The vertices of objects that the graph learns from have only one.
    last_successor: Option<Key>,
}

/// A way to a node.
#[derive(Debug, Clone)]
struct Route {
    /// The name of the node, shared with its vertex.
    node: Arc<str>,
    /// The hash of the successor.
    next: u64,
}

/// A node at the end of a way.
#[derive(Debug, Clone)]
struct Destination {
    hash: u64,
    name: Arc<str>,
}

impl Vertex {
    pub(crate) fn name(&self) -> Name<'_> {
        let (namespace, name) = self.text.split_at(self.namespace_len);
        Name { kind: self.kind, namespace, name }
    }

    fn leads_to(&self, node: &Destination) -> bool {
        self.routes.find(node.hash, |route| route.node == node.name).is_some()
    }
}

/// Queries.
impl Graph {
    /// How many vertices there are.
    pub fn n_vertices(&self) -> usize {
        self.n_vertices
    }

    pub(crate) fn find(&self, name: Name<'_>) -> Option<(Key, &Vertex)> {
        let found = self.vertices.find(self.hash(name), |vertex| vertex.name() == name);
        found.map(|(key, vertex)| (key, vertex.as_ref()))
    }

    /// The vertex after `from` on a way to the node; `None` if there is no way.
    pub(crate) fn next(&self, from: &Vertex, node: &str) -> Option<Key> {
        let hash = self.hash(Name::node(node));
        let (key, route) = from.routes.find(hash, |route| *route.node == *node)?;
        Some(Key { high: route.next, low: key.low })
    }

    /// A way from a vertex to a node, both included; empty if there is none.
    pub(crate) fn route<'g>(&'g self, from: &'g Vertex, node: &str) -> Vec<Name<'g>> {
        let mut names = Vec::new();
        let mut at = Some(from);
        while let Some(vertex) = at {
            names.push(vertex.name());
            at = self.next(vertex, node).and_then(|next| self.get(next));
        }
        if names.last().is_some_and(|last| last.kind == Kind::Node) { names } else { Vec::new() }
    }

    /// The nodes that a vertex leads to, in no particular order.
    pub(crate) fn nodes<'g>(&'g self, from: &'g Vertex) -> Vec<&'g str> {
        let mut nodes: Vec<&str> = Vec::new();
        from.routes.for_each(&mut |_, route| {
            // Routes to the same node are neighbours.
            if nodes.last() != Some(&&*route.node) {
                nodes.push(&route.node);
            }
        });
        nodes
    }

    fn get(&self, key: Key) -> Option<&Vertex> {
        self.vertices.get(key).map(Arc::as_ref)
    }

    fn hash(&self, name: Name<'_>) -> u64 {
        self.hasher.hash_one(name)
    }
}

/// Changes.
impl Graph {
    /// The vertex of this name, made if need be. The caller gives it an edge.
    pub(crate) fn vertex(&mut self, name: Name<'_>) -> Key {
        if let Some((key, _)) = self.find(name) {
            return key;
        }
        let key = Key { high: self.hash(name), low: spread(self.n_created) };
        self.n_created = self.n_created.wrapping_add(1);
        self.n_vertices += 1;
        let vertex = Vertex {
            kind: name.kind,
            text: format!("{}{}", name.namespace, name.name).into(),
            namespace_len: name.namespace.len(),
            routes: Trie::default(),
            predecessors: Trie::default(),
            n_successors: 0,
            last_successor: None,
        };
        self.vertices.insert(key, Arc::new(vertex));
        key
    }

    /// Adds an edge, unless it exists.
    pub(crate) fn connect(&mut self, from: Key, to: Key) {
        let Some(target) = self.get_mut(to) else { return };
        if !target.predecessors.insert(from, ()) {
            return;
        }
        let nodes = nodes_beyond(to, target);
        if let Some(origin) = self.get_mut(from) {
            origin.n_successors += 1;
            origin.last_successor = Some(to);
        }
        for node in nodes {
            self.gain(from, &node, to);
        }
    }

    /// Removes a vertex with its edges, and every neighbour that is left without any.
    pub(crate) fn remove(&mut self, name: Name<'_>) {
        let Some((key, vertex)) = self.find(name) else { return };
        let successor = vertex.last_successor;
        for predecessor in vertex.predecessors.keys() {
            self.disconnect(predecessor, key);
        }
        if let Some(successor) = successor {
            self.disconnect(key, successor);
        }
    }

    fn disconnect(&mut self, from: Key, to: Key) {
        let Some(target) = self.get_mut(to) else { return };
        if !target.predecessors.remove(from) {
            return;
        }
        let nodes = nodes_beyond(to, target);
        if let Some(origin) = self.get_mut(from) {
            origin.n_successors -= 1;
        }
        for node in nodes {
            self.lose(from, &node, to);
        }
        self.drop_if_alone(from);
        self.drop_if_alone(to);
    }

    /// Notes that `at` leads to a node through `next`; if it did not before, so do those before it.
    fn gain(&mut self, at: Key, node: &Destination, next: Key) {
        let Some(vertex) = self.get_mut(at) else { return };
        let is_first = !vertex.leads_to(node);
        let route = Route { node: node.name.clone(), next: next.high };
        vertex.routes.insert(Key { high: node.hash, low: next.low }, route);
        if is_first {
            for predecessor in vertex.predecessors.keys() {
                self.gain(predecessor, node, at);
            }
        }
    }

    /// The reverse of `gain`.
    fn lose(&mut self, at: Key, node: &Destination, next: Key) {
        let Some(vertex) = self.get_mut(at) else { return };
        let was_there = vertex.routes.remove(Key { high: node.hash, low: next.low });
        if was_there && !vertex.leads_to(node) {
            for predecessor in vertex.predecessors.keys() {
                self.lose(predecessor, node, at);
            }
        }
    }

    fn drop_if_alone(&mut self, key: Key) {
        let is_alone = |vertex: &Vertex| vertex.n_successors == 0 && vertex.predecessors.is_empty();
        if self.get(key).is_some_and(is_alone) && self.vertices.remove(key) {
            self.n_vertices -= 1;
        }
    }

    fn get_mut(&mut self, key: Key) -> Option<&mut Vertex> {
        self.vertices.get_mut(key).map(Arc::make_mut)
    }
}

/// The nodes at a vertex or beyond it.
fn nodes_beyond(key: Key, vertex: &Vertex) -> Vec<Destination> {
    if vertex.kind == Kind::Node {
        return vec![Destination { hash: key.high, name: vertex.text.clone() }];
    }
    let mut nodes: Vec<Destination> = Vec::new();
    vertex.routes.for_each(&mut |key, route| {
        // Routes to the same node are neighbours.
        if nodes.last().is_none_or(|last| last.name != route.node) {
            nodes.push(Destination { hash: key.high, name: route.node.clone() });
        }
    });
    nodes
}

/// Makes counted numbers differ in their first bits. Multiplying by an odd number is one to one.
fn spread(count: u64) -> u64 {
    count.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
