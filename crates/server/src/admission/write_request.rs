//! The description of a write for admission.

use admission::{Attributes, EquivalentResource, Operation};
use api_object::{DeleteOptions, DeletionPropagation, Tree};
use api_resources::{group_version_resource, kind_of_written_object};
use serde_json::{Value, json};
use store::Revision;

use crate::rest::{Query, RequestContext, WriteOptions};

/// The parts of a write that no step of admission changes.
#[derive(Debug, Clone)]
pub(crate) struct WriteRequest {
    pub(crate) operation: Operation,
    /// Empty for the resource itself.
    pub(crate) subresource: String,
    /// The options of the operation, with kind and version; empty for a connection.
    pub(crate) options: Tree,
    pub(crate) is_dry_run: bool,
    /// Whether hook requests contain the name of the object.
    pub(crate) sends_name_to_hooks: bool,
    /// The name in the URL path, if the body is another object than the path names, such as a TokenRequest.
    pub(crate) name_in_path: Option<String>,
    /// The revision of the stored object; `None` if there is none.
    pub(crate) stored_revision: Option<Revision>,
}

/// Builds the options object of the meta group.
fn meta_options_tree(kind: &str, members: Value) -> Tree {
    let mut tree = Tree::new();
    tree.insert("kind".to_owned(), kind.into());
    tree.insert("apiVersion".to_owned(), "meta.k8s.io/v1".into());
    if let Value::Object(members) = members {
        let is_set = |value: &Value| !value.is_null() && value != "";
        tree.extend(members.into_iter().filter(|(_, value)| is_set(value)));
    }
    tree
}

impl WriteRequest {
    /// A create of an object, or of a subresource.
    pub(crate) fn for_create(subresource: &str, own: WriteOptions, query: &Query) -> Self {
        Self::from_query_options(Operation::Create, "CreateOptions", subresource, own, query)
    }

    /// A create of a subresource of the object that the path names.
    pub(crate) fn for_subresource_create(
        subresource: &str,
        name: &str,
        own: WriteOptions,
        query: &Query,
    ) -> Self {
        Self { name_in_path: Some(name.to_owned()), ..Self::for_create(subresource, own, query) }
    }

    /// An update or a patch of an object, or of a subresource.
    pub(crate) fn for_update(subresource: Option<&str>, own: WriteOptions, query: &Query) -> Self {
        let subresource = subresource.unwrap_or_default();
        Self::from_query_options(Operation::Update, "UpdateOptions", subresource, own, query)
    }

    fn from_query_options(
        operation: Operation,
        kind: &str,
        subresource: &str,
        own: WriteOptions,
        query: &Query,
    ) -> Self {
        let members = json!({
            "dryRun": own.is_dry_run.then_some(["All"]),
            "fieldManager": query.parameter_or_empty("fieldManager"),
            "fieldValidation": query.parameter_or_empty("fieldValidation"),
        });
        Self {
            operation,
            subresource: subresource.to_owned(),
            options: meta_options_tree(kind, members),
            is_dry_run: own.is_dry_run,
            sends_name_to_hooks: true,
            name_in_path: None,
            stored_revision: None,
        }
    }

    /// A connection to the object that the path names. Hooks see the options of the connection as `object`, so
    /// `options` is empty.
    pub(crate) fn for_connect(subresource: &str, name: &str) -> Self {
        Self {
            operation: Operation::Connect,
            subresource: subresource.to_owned(),
            options: Tree::new(),
            is_dry_run: false,
            sends_name_to_hooks: true,
            name_in_path: Some(name.to_owned()),
            stored_revision: None,
        }
    }

    /// A delete, alone or as part of a deletecollection.
    pub(crate) fn for_delete(own: &DeleteOptions, is_collection: bool) -> Self {
        let mut preconditions = Tree::new();
        for (member, value) in [("uid", &own.uid), ("resourceVersion", &own.resource_version)] {
            if let Some(value) = value {
                preconditions.insert(member.to_owned(), value.as_str().into());
            }
        }
        let propagation = own.propagation_policy.map(|own| match own {
            DeletionPropagation::Orphan => "Orphan",
            DeletionPropagation::Background => "Background",
            DeletionPropagation::Foreground => "Foreground",
        });
        let members = json!({
            "gracePeriodSeconds": own.grace_period_seconds,
            "preconditions": own.has_preconditions().then_some(preconditions),
            "orphanDependents": own.orphan_dependents,
            "propagationPolicy": propagation,
            "dryRun": own.is_dry_run.then_some(["All"]),
        });
        Self {
            operation: Operation::Delete,
            subresource: String::new(),
            options: meta_options_tree("DeleteOptions", members),
            is_dry_run: own.is_dry_run,
            sends_name_to_hooks: !is_collection,
            name_in_path: None,
            stored_revision: None,
        }
    }

    /// Sets the revision of the stored object that the write changes.
    pub(crate) fn with_stored_revision(self, revision: Revision) -> Self {
        Self { stored_revision: Some(revision), ..self }
    }

    /// The admission attributes of the write, without the objects.
    pub(crate) fn admission_attributes<'a>(
        &'a self,
        ctx: &RequestContext<'a>,
        name: &'a str,
        equivalents: &'a [EquivalentResource<'a>],
    ) -> Attributes<'a> {
        let (resource, namespace) = (ctx.resource, ctx.namespace.unwrap_or_default());
        let name = self.name_in_path.as_deref().unwrap_or(name);
        // The namespace of a Namespace is its own name.
        let is_namespace = resource.group.is_empty() && resource.plural == "namespaces";
        Attributes {
            operation: self.operation,
            kind: kind_of_written_object(resource, &self.subresource),
            resource: group_version_resource(resource),
            subresource: &self.subresource,
            name: if self.sends_name_to_hooks { name } else { "" },
            namespace: if is_namespace { name } else { namespace },
            object: None,
            old_object: None,
            options: Some(&self.options).filter(|own| !own.is_empty()),
            is_dry_run: self.is_dry_run,
            user: Some(ctx.authorization_proof.user()),
            equivalent_resources: equivalents,
        }
    }
}
