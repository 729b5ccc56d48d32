//! Whether a node may do what it asks.

use authz::{Attributes, Decision, Event, NodeRule, Reason, Recorder, Resource, Rules, User};

use crate::demand::{Demand, demand, selected_nodes};
use crate::explain::{note_identity, note_unrelated, note_way};
use crate::identity::NodeIdentity;
use crate::name::{Kind, Name};
use crate::nodes::Sought;
use crate::policy::Policy;

/// What a request for a path has in place of a resource.
static NOTHING: Resource<'static> = Resource {
    path: "",
    api_group: "",
    api_version: "",
    namespace: "",
    resource: "",
    subresource: "",
    name: "",
    field_selector: None,
    label_selector: None,
};

impl Policy {
    /// Answers a request. Never denies: what is not allowed here, others may still allow.
    ///
    /// 1. Who is not a node gets no opinion.
    /// 2. The verb and the resource tell what is demanded of the node.
    /// 3. The request is allowed if the node meets it.
    ///
    /// Allowing allocates nothing, and takes as long in a large cluster as in a small one.
    pub fn authorize(&self, attributes: &Attributes<'_>, mut recorder: Recorder<'_>) -> Decision {
        let node = match NodeIdentity::of(attributes.user) {
            NodeIdentity::Node(name) => name,
            not_named => {
                note_identity(attributes.user, &mut recorder);
                return refuse_identity(not_named, attributes.user);
            }
        };
        recorder.note(|| Event::new("node").with("name", node));
        // Most demands need the node, and while it comes from memory the demand is found.
        let sought = self.graph.seek(node);
        let resource = attributes.resource().unwrap_or(&NOTHING);
        match demand(attributes, self.gates) {
            Demand::Nothing => Decision::allow(NodeRule::EveryNode),
            Demand::Refuse(reason) => Decision::no_opinion(reason),
            Demand::Rule if self.rules.allow(attributes, &mut recorder) => {
                Decision::allow(NodeRule::SystemNodeRole)
            }
            Demand::Rule => Decision::no_opinion(""),
            Demand::OwnName(_) | Demand::OwnNode if resource.name == node => {
                Decision::allow(NodeRule::OwnObject)
            }
            Demand::OwnName(reason) => Decision::no_opinion(reason),
            Demand::OwnNode => Decision::no_opinion(not_own_node(node, resource.name)),
            Demand::Related(kind) => self.related(kind, resource, node, sought, recorder),
            Demand::Selected(_) | Demand::SelectedOrRelated(..)
                if selected_nodes(resource).any(|selected| selected == node) =>
            {
                recorder.note(|| Event::new("selector").with("spec.nodeName", node));
                Decision::allow(NodeRule::NodeNameSelector)
            }
            Demand::SelectedOrRelated(_, kind) if !resource.name.is_empty() => {
                self.related(kind, resource, node, sought, recorder)
            }
            Demand::Selected(reason) | Demand::SelectedOrRelated(reason, _) => {
                Decision::no_opinion(reason)
            }
        }
    }

    /// What a user may do can not be listed for nodes, and is nothing for others.
    pub fn rules_for(&self, user: &User) -> Rules {
        match NodeIdentity::of(Some(user)) {
            NodeIdentity::Node(_) | NodeIdentity::Unnamed => {
                Rules::unknown("node authorizer does not support user rule resolution")
            }
            NodeIdentity::NotANode => Rules::default(),
        }
    }

    fn related(
        &self,
        kind: Kind,
        resource: &Resource<'_>,
        node: &str,
        sought: Sought<'_>,
        mut recorder: Recorder<'_>,
    ) -> Decision {
        if resource.name.is_empty() {
            return Decision::no_opinion("No Object name found");
        }
        let object = Name { kind, namespace: resource.namespace, name: resource.name };
        if let Some((id, vertex)) = self.graph.relation(sought, object) {
            note_way(&self.graph, vertex, id, &mut recorder);
            return Decision::allow(NodeRule::RelatedObject);
        }
        note_unrelated(&self.graph, object, node, &mut recorder);
        Decision::no_opinion(Reason::NodeNotRelated { node: node.into() })
    }
}

fn refuse_identity(identity: NodeIdentity<'_>, user: Option<&User>) -> Decision {
    match identity {
        NodeIdentity::Unnamed => {
            let name = user.map_or("", |user| &user.name);
            Decision::no_opinion(format!("unknown node for user {}", go_compat::quote(name)))
        }
        NodeIdentity::NotANode | NodeIdentity::Node(_) => Decision::no_opinion(""),
    }
}

fn not_own_node(node: &str, asked: &str) -> String {
    if asked.is_empty() {
        format!("node '{node}' cannot read all nodes, only its own Node object")
    } else {
        format!("node '{node}' cannot read '{asked}', only its own Node object")
    }
}

#[cfg(test)]
mod tests;
