//! What is noted about a decision, when somebody listens.

use authz::{Event, Recorder, User};

use crate::graph::Graph;
use crate::identity::{NODE_USER_PREFIX, NODES_GROUP};
use crate::name::Name;
use crate::nodes::NodeId;
use crate::slab::Id;

/// The most other nodes that an explanation names. A secret may be shared by thousands.
pub const NEAR_MISSES_MAX: usize = 5;

/// Says why a user who may have been meant to be a node is none.
pub(crate) fn note_identity(user: Option<&User>, recorder: &mut Recorder<'_>) {
    recorder.note(|| {
        let event = Event::new("node").with("isNode", false);
        let Some(user) = user else { return event.with("missing", "user") };
        let has_prefix = user.name.starts_with(NODE_USER_PREFIX);
        match (has_prefix, user.is_in_group(NODES_GROUP)) {
            (true, true) => event.with("missing", "name of the node"),
            (true, false) => event.with("missing", format!("group {NODES_GROUP}")),
            (false, true) => event.with("missing", format!("user name {NODE_USER_PREFIX}NAME")),
            (false, false) => event,
        }
    });
}

/// Shows the way from the object to the node.
pub(crate) fn note_way(graph: &Graph, from: Id, node: NodeId, recorder: &mut Recorder<'_>) {
    recorder.note(|| {
        let way = graph.way(from, node).into_iter().map(describe).collect::<Vec<_>>();
        Event::new("path").with("vertices", way)
    });
}

/// Says what is missing on the way: whether anything is known of the object and of the node, and
/// which other nodes the object leads to.
pub(crate) fn note_unrelated(
    graph: &Graph,
    object: Name<'_>,
    node: &str,
    recorder: &mut Recorder<'_>,
) {
    recorder.note(|| {
        let vertex = graph.vertex(object);
        let mut nodes = vertex.map_or(Vec::new(), |vertex| graph.nodes(vertex));
        nodes.sort_unstable();
        let n_nodes = nodes.len();
        nodes.truncate(NEAR_MISSES_MAX);
        Event::new("noPath")
            .with("object", describe(object))
            .with("isObjectKnown", vertex.is_some())
            .with("isNodeKnown", graph.node(node).is_some())
            .with("nNodes", n_nodes)
            .with("nodes", nodes.into_iter().map(str::to_owned).collect::<Vec<_>>())
    });
}

fn describe(name: Name<'_>) -> String {
    let Name { kind, namespace, name } = name;
    if namespace.is_empty() {
        format!("{} {name}", kind.name())
    } else {
        format!("{} {namespace}/{name}", kind.name())
    }
}
