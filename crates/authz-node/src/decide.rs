//! Deciding: may the node make the request?

use authz::{
    Attributes, Decision, NodeAllowRule, Reason, Resource, TraceEvent, TraceRecorder, User,
};

use crate::explain::{explain_graph_path, explain_no_graph_path, explain_not_a_node};
use crate::node_identity::NodeIdentity;
use crate::node_requirement::{NodeRequirement, nodes_in_field_selector, requirement_for_request};
use crate::object_name::{ObjectKind, ObjectName};
use crate::snapshot::Snapshot;

impl Snapshot {
    /// Decides a request. Never denies: a request that is not allowed is left to the next authorizer.
    ///
    /// 1. A user who is not a node gets no opinion.
    /// 2. The verb and the resource determine the requirement on the node.
    /// 3. The request is allowed if the node meets the requirement.
    ///
    /// Allowing allocates nothing unless the recorder is on.
    pub fn authorize(
        &self,
        attributes: &Attributes<'_>,
        mut recorder: TraceRecorder<'_>,
    ) -> Decision {
        let node = match NodeIdentity::from_user(attributes.user) {
            NodeIdentity::Node(name) => name,
            identity @ (NodeIdentity::Unnamed | NodeIdentity::NotANode) => {
                explain_not_a_node(attributes.user, &mut recorder);
                return no_opinion_for_non_node(identity, attributes.user);
            }
        };
        recorder
            .record_trace_event(|| TraceEvent::new("node").with_trace_event_value("name", node));
        let no_resource = Resource::default();
        let resource = attributes.resource().unwrap_or(&no_resource);
        match requirement_for_request(attributes, self.feature_gates) {
            NodeRequirement::AlwaysMet => Decision::allow(NodeAllowRule::EveryNode),
            NodeRequirement::NeverMet(reason) => Decision::no_opinion(reason),
            NodeRequirement::NodeRule if self.node_rules.allows(attributes, &mut recorder) => {
                Decision::allow(NodeAllowRule::SystemNodeRole)
            }
            NodeRequirement::NodeRule => Decision::no_opinion(""),
            NodeRequirement::SameName(_) | NodeRequirement::OwnNode if resource.name == node => {
                Decision::allow(NodeAllowRule::OwnObject)
            }
            NodeRequirement::SameName(reason) => Decision::no_opinion(reason),
            NodeRequirement::OwnNode => {
                Decision::no_opinion(not_own_node_reason(node, resource.name))
            }
            NodeRequirement::Related(kind) => {
                self.decide_by_relation(kind, resource, node, recorder)
            }
            NodeRequirement::Selector(_) | NodeRequirement::SelectorOrRelated(..)
                if nodes_in_field_selector(resource).any(|selected_node| selected_node == node) =>
            {
                recorder.record_trace_event(|| {
                    TraceEvent::new("selector").with_trace_event_value("spec.nodeName", node)
                });
                Decision::allow(NodeAllowRule::NodeNameSelector)
            }
            NodeRequirement::SelectorOrRelated(_, kind) if !resource.name.is_empty() => {
                self.decide_by_relation(kind, resource, node, recorder)
            }
            NodeRequirement::Selector(reason) | NodeRequirement::SelectorOrRelated(reason, _) => {
                Decision::no_opinion(reason)
            }
        }
    }

    /// Allows the request if the object is related to the node.
    fn decide_by_relation(
        &self,
        kind: ObjectKind,
        resource: &Resource<'_>,
        node: &str,
        mut recorder: TraceRecorder<'_>,
    ) -> Decision {
        if resource.name.is_empty() {
            return Decision::no_opinion("No Object name found");
        }
        let object = ObjectName { kind, namespace: resource.namespace, name: resource.name };
        if self.graph.is_related_to_node(object, node) {
            explain_graph_path(&self.graph, object, node, &mut recorder);
            return Decision::allow(NodeAllowRule::RelatedObject);
        }
        explain_no_graph_path(&self.graph, object, node, &mut recorder);
        Decision::no_opinion(Reason::NodeNotRelated { node: node.into() })
    }
}

fn no_opinion_for_non_node(identity: NodeIdentity<'_>, user: Option<&User>) -> Decision {
    match identity {
        NodeIdentity::Unnamed => {
            let name = user.map_or("", |user| &user.name);
            Decision::no_opinion(format!("unknown node for user {}", go_compat::quote(name)))
        }
        NodeIdentity::NotANode | NodeIdentity::Node(_) => Decision::no_opinion(""),
    }
}

fn not_own_node_reason(node: &str, requested_node: &str) -> String {
    if requested_node.is_empty() {
        format!("node '{node}' cannot read all nodes, only its own Node object")
    } else {
        format!("node '{node}' cannot read '{requested_node}', only its own Node object")
    }
}

#[cfg(test)]
mod tests;
