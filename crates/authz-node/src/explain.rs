//! Explaining a decision: the path from the object to the node, or why there is none.

use authz::{TraceEvent, TraceRecorder, User};

use crate::graph::Graph;
use crate::node_identity::{NODE_USER_PREFIX, NODES_GROUP};
use crate::object_name::ObjectName;

/// The largest number of other nodes in one explanation. Thousands of nodes may share a secret.
pub const NEAR_MISSES_MAX: usize = 5;

/// Explains why a user is not a node.
pub(crate) fn explain_not_a_node(user: Option<&User>, recorder: &mut TraceRecorder<'_>) {
    recorder.record_trace_event(|| {
        let event = TraceEvent::new("node").with_trace_event_value("isNode", false);
        let Some(user) = user else { return event.with_trace_event_value("missing", "user") };
        let has_prefix = user.name.starts_with(NODE_USER_PREFIX);
        match (has_prefix, user.is_in_group(NODES_GROUP)) {
            (true, true) => event.with_trace_event_value("missing", "name of the node"),
            (true, false) => {
                event.with_trace_event_value("missing", format!("group {NODES_GROUP}"))
            }
            (false, true) => {
                event.with_trace_event_value("missing", format!("user name {NODE_USER_PREFIX}NAME"))
            }
            (false, false) => event,
        }
    });
}

/// Explains how an object is related to a node.
pub(crate) fn explain_graph_path(
    graph: &Graph,
    object: ObjectName<'_>,
    node: &str,
    recorder: &mut TraceRecorder<'_>,
) {
    recorder.record_trace_event(|| {
        let path = graph.path_to_node(object, node).into_iter().map(describe_object);
        let vertices: Vec<String> = path.chain([format!("node {node}")]).collect();
        TraceEvent::new("path").with_trace_event_value("vertices", vertices)
    });
}

/// Explains why an object is not related to a node: whether the graph has the object and the node, and
/// to which other nodes the object is related.
pub(crate) fn explain_no_graph_path(
    graph: &Graph,
    object: ObjectName<'_>,
    node: &str,
    recorder: &mut TraceRecorder<'_>,
) {
    recorder.record_trace_event(|| {
        let related_nodes = graph.nodes_of_object(object);
        let is_object_known =
            !related_nodes.is_empty() || graph.is_persistent_volume_or_used_by_one(object);
        let shown_nodes = related_nodes.iter().take(NEAR_MISSES_MAX);
        TraceEvent::new("noPath")
            .with_trace_event_value("object", describe_object(object))
            .with_trace_event_value("isObjectKnown", is_object_known)
            .with_trace_event_value("isNodeKnown", graph.has_node(node))
            .with_trace_event_value("nNodes", related_nodes.len())
            .with_trace_event_value(
                "nodes",
                shown_nodes.map(|node| (*node).to_owned()).collect::<Vec<_>>(),
            )
    });
}

fn describe_object(object: ObjectName<'_>) -> String {
    let ObjectName { kind, namespace, name } = object;
    match namespace.name() {
        None => format!("{} {name}", kind.name()),
        Some(namespace) => format!("{} {namespace}/{name}", kind.name()),
    }
}
