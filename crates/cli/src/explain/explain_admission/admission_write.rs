//! One write and its admission attributes.

use std::sync::Arc;

use admission::{
    Attributes, EquivalentResource, GroupVersionKind, Initializers, Operation, PendingInitializer,
};
use api_object::{Status, Tree};
use api_resources::{
    Registry, Resource, ResourceName, equivalent_resources, group_version_resource,
    kind_of_written_object,
};
use authz::User;
use manifests::UnstructuredObject;
use serde_json::{Value, json};

use super::find_resource::{FindResourceError, connect_options_kind, find_resource};
use super::prepare_for_admission::prepare_for_admission;

/// The namespace of an object without a namespace.
const DEFAULT_NAMESPACE: &str = "default";

/// The flags that apply to all writes.
#[derive(Debug)]
pub(super) struct AdmissionWriteOptions {
    pub(super) operation: Operation,
    /// The subresource; empty for the object itself.
    pub(super) subresource: String,
    /// The value of `--resource`, for kinds that belong to several resources.
    pub(super) resource: Option<ResourceName>,
    /// The value of `--namespace`, for objects without a namespace.
    pub(super) namespace: Option<String>,
    pub(super) is_dry_run: bool,
    /// The user who writes.
    pub(super) user: User,
}

/// One write whose admission is explained.
#[derive(Debug)]
pub(super) struct AdmissionWrite<'a> {
    write_options: &'a AdmissionWriteOptions,
    pub(super) resource: &'a Arc<Resource>,
    /// The kind of the objects.
    kind: OwnedGroupVersionKind,
    name: String,
    namespace: String,
    new_object: Option<Tree>,
    old_object: Option<Tree>,
    operation_options: Option<Tree>,
    equivalent_resources: Vec<EquivalentResource<'a>>,
    /// The status with which a server rejects the object before admission.
    pub(super) pre_admission_rejection: Option<Status>,
}

/// A group, a version and a kind, as owned texts.
#[derive(Debug)]
struct OwnedGroupVersionKind {
    group: String,
    version: String,
    kind: String,
}

impl OwnedGroupVersionKind {
    fn from_borrowed(kind: &GroupVersionKind<'_>) -> Self {
        let GroupVersionKind { group, version, kind } = kind;
        Self {
            group: (*group).to_owned(),
            version: (*version).to_owned(),
            kind: (*kind).to_owned(),
        }
    }

    fn as_borrowed(&self) -> GroupVersionKind<'_> {
        GroupVersionKind { group: &self.group, version: &self.version, kind: &self.kind }
    }
}

impl<'a> AdmissionWrite<'a> {
    /// Creates the write of an object. `old` is the stored object in an update.
    ///
    /// # Errors
    /// The resource of the object is not known.
    pub(super) fn new(
        registry: &'a Registry,
        options: &'a AdmissionWriteOptions,
        new: &UnstructuredObject,
        old: Option<&UnstructuredObject>,
    ) -> Result<Self, FindResourceError> {
        let (group, version) = new.api_version().split_once('/').unwrap_or(("", new.api_version()));
        let written = GroupVersionKind { group, version, kind: new.kind_name() };
        let subresource = options.subresource.as_str();
        let resource = find_resource(registry, &written, subresource, options.resource.as_ref())?;
        let namespace = match (resource.is_namespaced(), new.namespace(), &options.namespace) {
            (false, _, _) => "",
            (true, "", Some(named)) => named,
            (true, "", None) => DEFAULT_NAMESPACE,
            (true, own, _) => own,
        };
        let kind =
            OwnedGroupVersionKind::from_borrowed(&kind_sent_to_hooks(resource, options, &written));
        let mut rejection = None;
        let mut prepared = |kept: &UnstructuredObject, stored: Option<&Tree>| {
            let tree = kept.value.clone();
            let prepared = prepare_for_admission(
                resource,
                options.operation,
                subresource,
                namespace,
                tree,
                stored,
            );
            prepared.map_err(|status| rejection.get_or_insert(status)).ok()
        };
        let (object, old_object) = match options.operation {
            Operation::Create => (prepared(new, None), None),
            Operation::Update => {
                let old = old.and_then(|old| prepared(old, None));
                (prepared(new, old.as_ref()), old)
            }
            Operation::Delete => (None, prepared(new, None)),
            Operation::Connect => (Some(empty_connect_options(&kind)), None),
        };
        // For admission, a Namespace object belongs to the namespace of its own name.
        let is_namespace = resource.group.is_empty() && resource.plural == "namespaces";
        let namespace = if is_namespace { new.name() } else { namespace };
        Ok(Self {
            write_options: options,
            resource,
            kind,
            name: new.name().to_owned(),
            namespace: namespace.to_owned(),
            new_object: object,
            old_object,
            operation_options: operation_options(options),
            equivalent_resources: equivalent_resources(registry, resource, subresource),
            pre_admission_rejection: rejection,
        })
    }

    /// Sets the pending initializers in the object that hooks receive.
    pub(super) fn assign_initializers(&mut self, pending: Vec<PendingInitializer>) {
        if let Some(object) = &mut self.new_object {
            Initializers { pending_initializers: pending, failure_written_by_initializer: None }
                .write_to_object(object);
        }
    }

    pub(super) fn to_attributes(&self) -> Attributes<'_> {
        Attributes {
            operation: self.write_options.operation,
            kind: self.kind.as_borrowed(),
            resource: group_version_resource(self.resource),
            subresource: &self.write_options.subresource,
            name: &self.name,
            namespace: &self.namespace,
            object: self.new_object.as_ref(),
            old_object: self.old_object.as_ref(),
            options: self.operation_options.as_ref(),
            is_dry_run: self.write_options.is_dry_run,
            user: Some(&self.write_options.user),
            equivalent_resources: &self.equivalent_resources,
        }
    }
}

/// Returns the kind of the object that hooks receive: the kind of the subresource, if it has its own.
fn kind_sent_to_hooks<'k>(
    resource: &'k Resource,
    options: &AdmissionWriteOptions,
    written: &GroupVersionKind<'k>,
) -> GroupVersionKind<'k> {
    match options.operation {
        Operation::Connect => {
            let own = connect_options_kind(resource, &options.subresource);
            own.map_or(*written, |kind| GroupVersionKind { group: "", version: "v1", kind })
        }
        Operation::Create | Operation::Update | Operation::Delete => {
            match resource.find_subresource(&options.subresource) {
                Some(_) => kind_of_written_object(resource, &options.subresource),
                None => *written,
            }
        }
    }
}

/// Creates the options of a connect request. They are empty, because the query is unknown offline.
fn empty_connect_options(
    OwnedGroupVersionKind { group, version, kind }: &OwnedGroupVersionKind,
) -> Tree {
    let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
    let members = [("apiVersion", api_version), ("kind", kind.clone())];
    members.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect()
}

/// Creates the options of the operation, such as CreateOptions. A connect request has none.
fn operation_options(write_options: &AdmissionWriteOptions) -> Option<Tree> {
    let kind = match write_options.operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
        Operation::Connect => return None,
    };
    let mut options = json!({ "kind": kind, "apiVersion": "meta.k8s.io/v1" });
    if write_options.is_dry_run {
        options["dryRun"] = json!(["All"]);
    }
    options.as_object().cloned()
}
