//! A write as admission sees it.

use admission::{Attributes, EquivalentResource, Operation};
use api_object::{DeleteOptions, Propagation, Tree};
use api_resources::{Resource, group_version_resource, written_kind};
use serde_json::{Value, json};
use store::Revision;

use crate::rest::{Query, WriteOptions};

/// What does not change about a write on its way through admission.
#[derive(Debug, Clone)]
pub(crate) struct Write {
    pub(crate) operation: Operation,
    /// Empty for the resource itself.
    pub(crate) subresource: String,
    /// With kind and version.
    pub(crate) options: Tree,
    pub(crate) is_dry_run: bool,
    /// Whether hooks are told the name of the object.
    pub(crate) has_name: bool,
    /// The name in the path, where the object is not what the path names.
    pub(crate) path_name: Option<String>,
    /// The version of the stored object; `None` if there is none.
    pub(crate) revision: Option<Revision>,
}

/// The options of the meta group, with what the query says.
fn options(kind: &str, members: Value) -> Tree {
    let mut tree = Tree::new();
    tree.insert("kind".to_owned(), kind.into());
    tree.insert("apiVersion".to_owned(), "meta.k8s.io/v1".into());
    if let Value::Object(members) = members {
        let is_set = |value: &Value| !value.is_null() && value != "";
        tree.extend(members.into_iter().filter(|(_, value)| is_set(value)));
    }
    tree
}

impl Write {
    /// A creation, of an object or by way of a subresource.
    pub(crate) fn create(subresource: &str, own: WriteOptions, query: &Query) -> Self {
        Self::of_object(Operation::Create, "CreateOptions", subresource, own, query)
    }

    /// A creation by way of a subresource of the object that the path names.
    pub(crate) fn create_part(part: &str, of: &str, own: WriteOptions, query: &Query) -> Self {
        Self { path_name: Some(of.to_owned()), ..Self::create(part, own, query) }
    }

    /// An update or a patch.
    pub(crate) fn update(subresource: Option<&str>, own: WriteOptions, query: &Query) -> Self {
        let subresource = subresource.unwrap_or_default();
        Self::of_object(Operation::Update, "UpdateOptions", subresource, own, query)
    }

    fn of_object(
        operation: Operation,
        kind: &str,
        subresource: &str,
        own: WriteOptions,
        query: &Query,
    ) -> Self {
        let members = json!({
            "dryRun": own.is_dry_run.then_some(["All"]),
            "fieldManager": query.text("fieldManager"),
            "fieldValidation": query.text("fieldValidation"),
        });
        Self {
            operation,
            subresource: subresource.to_owned(),
            options: options(kind, members),
            is_dry_run: own.is_dry_run,
            has_name: true,
            path_name: None,
            revision: None,
        }
    }

    /// A deletion, alone or as part of a collection.
    pub(crate) fn delete(own: &DeleteOptions, is_collection: bool) -> Self {
        let has_preconditions = own.uid.is_some() || own.resource_version.is_some();
        let mut preconditions = Tree::new();
        for (member, value) in [("uid", &own.uid), ("resourceVersion", &own.resource_version)] {
            if let Some(value) = value {
                preconditions.insert(member.to_owned(), value.as_str().into());
            }
        }
        let propagation = own.propagation.map(|own| match own {
            Propagation::Orphan => "Orphan",
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
        });
        let members = json!({
            "gracePeriodSeconds": own.grace_period_seconds,
            "preconditions": has_preconditions.then_some(preconditions),
            "orphanDependents": own.orphan_dependents,
            "propagationPolicy": propagation,
            "dryRun": own.is_dry_run.then_some(["All"]),
        });
        Self {
            operation: Operation::Delete,
            subresource: String::new(),
            options: options("DeleteOptions", members),
            is_dry_run: own.is_dry_run,
            has_name: !is_collection,
            path_name: None,
            revision: None,
        }
    }

    /// The same for an object that has that version in the store.
    pub(crate) fn at(&self, revision: Revision) -> Self {
        Self { revision: Some(revision), ..self.clone() }
    }

    /// The attributes, without the objects.
    pub(crate) fn attributes<'a>(
        &'a self,
        resource: &'a Resource,
        namespace: &'a str,
        name: &'a str,
        equivalents: &'a [EquivalentResource<'a>],
    ) -> Attributes<'a> {
        let name = self.path_name.as_deref().unwrap_or(name);
        // A namespace is in itself.
        let is_namespace = resource.group.is_empty() && resource.plural == "namespaces";
        Attributes {
            operation: self.operation,
            kind: written_kind(resource, &self.subresource),
            resource: group_version_resource(resource),
            subresource: &self.subresource,
            name: if self.has_name { name } else { "" },
            namespace: if is_namespace { name } else { namespace },
            object: None,
            old_object: None,
            options: Some(&self.options),
            is_dry_run: self.is_dry_run,
            user: None,
            equivalents,
        }
    }
}
