//! One write, as admission sees it.

use std::sync::Arc;

use admission::{
    Attributes, EquivalentResource, GroupVersionKind, Initializers, Operation, PendingInitializer,
};
use api_object::{Status, Tree};
use api_resources::{Registry, Resource, equivalents, group_version_resource, written_kind};
use authz::User;
use manifests::WholeObject;
use serde_json::{Value, json};

use super::resource::{connection_kind, find_resource};
use super::settle::settle;
use crate::offline::ResourceText;

/// Where an object goes that does not say its namespace.
const DEFAULT_NAMESPACE: &str = "default";

/// What the flags say about all writes.
#[derive(Debug)]
pub(super) struct How {
    pub(super) operation: Operation,
    /// Empty for the object itself.
    pub(super) subresource: String,
    /// What the objects are written to, where their kind does not tell.
    pub(super) resource: Option<ResourceText>,
    /// Where objects go that do not say it.
    pub(super) namespace: Option<String>,
    pub(super) is_dry_run: bool,
    /// Who writes.
    pub(super) user: User,
}

/// One write.
#[derive(Debug)]
pub(super) struct Write<'a> {
    how: &'a How,
    pub(super) resource: &'a Arc<Resource>,
    /// The kind of the objects.
    kind: Kind,
    name: String,
    namespace: String,
    object: Option<Tree>,
    old_object: Option<Tree>,
    options: Option<Tree>,
    equivalents: Vec<EquivalentResource<'a>>,
    /// What a server answers that does not even take the object.
    pub(super) refusal: Option<Status>,
}

/// A group, a version and a kind.
#[derive(Debug)]
struct Kind {
    group: String,
    version: String,
    kind: String,
}

impl Kind {
    fn of(kind: &GroupVersionKind<'_>) -> Self {
        let GroupVersionKind { group, version, kind } = kind;
        Self {
            group: (*group).to_owned(),
            version: (*version).to_owned(),
            kind: (*kind).to_owned(),
        }
    }

    fn as_ref(&self) -> GroupVersionKind<'_> {
        GroupVersionKind { group: &self.group, version: &self.version, kind: &self.kind }
    }
}

impl<'a> Write<'a> {
    /// The write of an object; `old` is its stored state in an update.
    ///
    /// # Errors
    /// Says why it is not known what is written to.
    pub(super) fn new(
        registry: &'a Registry,
        how: &'a How,
        new: &WholeObject,
        old: Option<&WholeObject>,
    ) -> Result<Self, String> {
        let (group, version) = new.api_version().split_once('/').unwrap_or(("", new.api_version()));
        let written = GroupVersionKind { group, version, kind: new.kind_name() };
        let subresource = how.subresource.as_str();
        let resource = find_resource(registry, &written, subresource, how.resource.as_ref())?;
        let namespace = match (resource.is_namespaced(), new.namespace(), &how.namespace) {
            (false, _, _) => "",
            (true, "", Some(named)) => named,
            (true, "", None) => DEFAULT_NAMESPACE,
            (true, own, _) => own,
        };
        let kind = Kind::of(&kind(resource, how, &written));
        let mut refusal = None;
        let mut settled = |kept: &WholeObject, stored: Option<&Tree>| {
            let tree = kept.value.clone();
            let settled = settle(resource, how.operation, subresource, namespace, tree, stored);
            settled.map_err(|status| refusal.get_or_insert(status)).ok()
        };
        let (object, old_object) = match how.operation {
            Operation::Create => (settled(new, None), None),
            Operation::Update => {
                let old = old.and_then(|old| settled(old, None));
                (settled(new, old.as_ref()), old)
            }
            Operation::Delete => (None, settled(new, None)),
            Operation::Connect => (Some(connection(&kind)), None),
        };
        // A namespace is in itself.
        let is_namespace = resource.group.is_empty() && resource.plural == "namespaces";
        let namespace = if is_namespace { new.name() } else { namespace };
        Ok(Self {
            how,
            resource,
            kind,
            name: new.name().to_owned(),
            namespace: namespace.to_owned(),
            object,
            old_object,
            options: options(how),
            equivalents: equivalents(registry, resource, subresource),
            refusal,
        })
    }

    /// Lets the object say whom it waits for, as hooks are told it.
    pub(super) fn assign(&mut self, pending: Vec<PendingInitializer>) {
        if let Some(object) = &mut self.object {
            Initializers { pending, result: None }.write_to(object);
        }
    }

    pub(super) fn attributes(&self) -> Attributes<'_> {
        Attributes {
            operation: self.how.operation,
            kind: self.kind.as_ref(),
            resource: group_version_resource(self.resource),
            subresource: &self.how.subresource,
            name: &self.name,
            namespace: &self.namespace,
            object: self.object.as_ref(),
            old_object: self.old_object.as_ref(),
            options: self.options.as_ref(),
            is_dry_run: self.how.is_dry_run,
            user: Some(&self.how.user),
            equivalents: &self.equivalents,
        }
    }
}

/// The kind of what hooks are told: that of the subresource, where there is one.
fn kind<'k>(
    resource: &'k Resource,
    how: &How,
    written: &GroupVersionKind<'k>,
) -> GroupVersionKind<'k> {
    match how.operation {
        Operation::Connect => {
            let own = connection_kind(resource, &how.subresource);
            own.map_or(*written, |kind| GroupVersionKind { group: "", version: "v1", kind })
        }
        Operation::Create | Operation::Update | Operation::Delete => {
            match resource.subresource(&how.subresource) {
                Some(_) => written_kind(resource, &how.subresource),
                None => *written,
            }
        }
    }
}

/// What a connection is asked for with. Nobody knows the query, so it says nothing.
fn connection(Kind { group, version, kind }: &Kind) -> Tree {
    let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
    let members = [("apiVersion", api_version), ("kind", kind.clone())];
    members.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect()
}

/// The options of the operation; a connection has none.
fn options(how: &How) -> Option<Tree> {
    let kind = match how.operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
        Operation::Connect => return None,
    };
    let mut options = json!({ "kind": kind, "apiVersion": "meta.k8s.io/v1" });
    if how.is_dry_run {
        options["dryRun"] = json!(["All"]);
    }
    options.as_object().cloned()
}
