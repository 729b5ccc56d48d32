//! Listing the nodes that are allowed a request.

use authz::{Attributes, Resource, Subjects, TraceRecorder};

use crate::node_identity::{NODE_USER_PREFIX, NODES_GROUP};
use crate::node_requirement::{NodeRequirement, nodes_in_field_selector, requirement_for_request};
use crate::object_name::{ObjectKind, ObjectName};
use crate::snapshot::Snapshot;

impl Snapshot {
    /// Lists the nodes that would be allowed the request. The user of the attributes is ignored. If every
    /// node is allowed it, the list has the group of all nodes.
    pub fn allowed_subjects(&self, attributes: &Attributes<'_>) -> Subjects {
        let mut subjects = Subjects::default();
        let no_resource = Resource::default();
        let resource = attributes.resource().unwrap_or(&no_resource);
        match requirement_for_request(attributes, self.feature_gates) {
            NodeRequirement::AlwaysMet => add_all_nodes_group(&mut subjects),
            NodeRequirement::NeverMet(_) => {}
            NodeRequirement::NodeRule => {
                if self.node_rules.allows(attributes, &mut TraceRecorder::disabled_recorder()) {
                    add_all_nodes_group(&mut subjects);
                }
            }
            NodeRequirement::SameName(_) | NodeRequirement::OwnNode => {
                add_node_user(&mut subjects, resource.name);
            }
            NodeRequirement::Related(kind) => self.add_related_nodes(&mut subjects, kind, resource),
            NodeRequirement::Selector(_) => add_nodes_named_in_selector(&mut subjects, resource),
            NodeRequirement::SelectorOrRelated(_, kind) => {
                add_nodes_named_in_selector(&mut subjects, resource);
                self.add_related_nodes(&mut subjects, kind, resource);
            }
        }
        subjects
    }

    fn add_related_nodes(
        &self,
        subjects: &mut Subjects,
        kind: ObjectKind,
        resource: &Resource<'_>,
    ) {
        let object = ObjectName { kind, namespace: resource.namespace, name: resource.name };
        if !resource.name.is_empty() {
            let nodes = self.graph.nodes_of_object(object).into_iter();
            nodes.for_each(|node| add_node_user(subjects, node));
        }
    }
}

fn add_nodes_named_in_selector(subjects: &mut Subjects, resource: &Resource<'_>) {
    nodes_in_field_selector(resource).for_each(|node| add_node_user(subjects, node));
}

/// Adds the user of a node. No node has an empty name.
fn add_node_user(subjects: &mut Subjects, name: &str) {
    if !name.is_empty() {
        subjects.users.insert(format!("{NODE_USER_PREFIX}{name}"));
    }
}

fn add_all_nodes_group(subjects: &mut Subjects) {
    subjects.groups.insert(NODES_GROUP.to_owned());
}
