//! Which nodes may do something.

use authz::{Attributes, Recorder, Resource, Subjects};

use crate::demand::{Demand, demand, selected_nodes};
use crate::identity::{NODE_USER_PREFIX, NODES_GROUP};
use crate::name::{Kind, Name};
use crate::policy::Policy;

impl Policy {
    /// The nodes that would be allowed what is asked; the user of the attributes is ignored. The
    /// group stands for all its members that are nodes.
    pub fn allowed_subjects(&self, attributes: &Attributes<'_>) -> Subjects {
        let mut subjects = Subjects::default();
        let none = Resource::default();
        let resource = attributes.resource().unwrap_or(&none);
        match demand(attributes, self.gates) {
            Demand::Nothing => add_all(&mut subjects),
            Demand::Refuse(_) => {}
            Demand::Rule => {
                if self.rules.allow(attributes, &mut Recorder::off()) {
                    add_all(&mut subjects);
                }
            }
            Demand::OwnName(_) | Demand::OwnNode => add_node(&mut subjects, resource.name),
            Demand::Related(kind) => self.add_related(&mut subjects, kind, resource),
            Demand::Selected(_) => add_selected(&mut subjects, resource),
            Demand::SelectedOrRelated(_, kind) => {
                add_selected(&mut subjects, resource);
                self.add_related(&mut subjects, kind, resource);
            }
        }
        subjects
    }

    fn add_related(&self, subjects: &mut Subjects, kind: Kind, resource: &Resource<'_>) {
        let object = Name { kind, namespace: resource.namespace, name: resource.name };
        if let Some(vertex) = self.graph.vertex(object)
            && !resource.name.is_empty()
        {
            self.graph.nodes(vertex).into_iter().for_each(|node| add_node(subjects, node));
        }
    }
}

fn add_selected(subjects: &mut Subjects, resource: &Resource<'_>) {
    selected_nodes(resource).for_each(|node| add_node(subjects, node));
}

/// A node without a name is none.
fn add_node(subjects: &mut Subjects, name: &str) {
    if !name.is_empty() {
        subjects.users.insert(format!("{NODE_USER_PREFIX}{name}"));
    }
}

fn add_all(subjects: &mut Subjects) {
    subjects.groups.insert(NODES_GROUP.to_owned());
}
