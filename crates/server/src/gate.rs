//! Proofs: values that only the step which grants them can make, and that the next step demands.

use std::sync::Arc;

use api_object::Tree;
use api_resources::Verb;
use authz::{Attributes, RequestInfo, ResourceInfo, User};

use crate::cluster_snapshot::ClusterSnapshot;

/// A request that the chain allowed: the user, the verb, the target, and the snapshot with which the
/// request began.
///
/// INVARIANT: only [`crate::authorize`] makes one, from the very question that the chain allowed. Code
/// that executes a request takes the verb and every part of the target from here, never from the HTTP
/// request, so that nothing else can run than what was authorized.
pub struct Authorized {
    user: Arc<User>,
    info: RequestInfo,
    verb: Option<Verb>,
    cluster: Arc<ClusterSnapshot>,
}

/// An object, or the end of one, that admission let in.
pub struct Admitted {
    tree: Tree,
}

impl Authorized {
    /// Only [`crate::authorize`] decides.
    pub(crate) fn new(user: Arc<User>, info: RequestInfo, cluster: Arc<ClusterSnapshot>) -> Self {
        let verb = info.resource.as_ref().and_then(|_| Verb::parse(&info.verb));
        Self { user, info, verb, cluster }
    }

    /// The user who asks, after impersonation.
    pub fn user(&self) -> &Arc<User> {
        &self.user
    }

    /// The verb that was authorized, which is what is executed. `None` for paths that name no resource
    /// and for words that are no verb of any resource, such as `proxy`.
    pub fn verb(&self) -> Option<Verb> {
        self.verb
    }

    /// The group, version, resource, subresource, namespace and name that were authorized; `None` for
    /// paths that name no resource.
    pub fn target(&self) -> Option<&ResourceInfo> {
        self.info.resource.as_ref()
    }

    /// The request as it was classified.
    pub fn info(&self) -> &RequestInfo {
        &self.info
    }

    /// The snapshot with which the request began. Later questions of the same request are decided by newer
    /// objects.
    pub fn snapshot(&self) -> &Arc<ClusterSnapshot> {
        &self.cluster
    }

    /// The question that was answered, for related questions.
    pub fn attributes(&self) -> Attributes<'_> {
        self.info.attributes(Some(&self.user))
    }

    /// The deletion of one object of a collection whose deletion was authorized; `None` if this is no
    /// such authorization or the object lies outside of it.
    pub(crate) fn member(&self, namespace: Option<&str>, name: &str) -> Option<Self> {
        let collection = self.target().filter(|_| self.verb == Some(Verb::DeleteCollection))?;
        let namespace = namespace.unwrap_or_default();
        let covers = |authorized: &str, own: &str| authorized.is_empty() || authorized == own;
        if !covers(&collection.namespace, namespace) || !covers(&collection.name, name) {
            return None;
        }
        let member = ResourceInfo {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..collection.clone()
        };
        Some(Self {
            user: Arc::clone(&self.user),
            info: RequestInfo { resource: Some(member), ..self.info.clone() },
            verb: Some(Verb::Delete),
            cluster: Arc::clone(&self.cluster),
        })
    }
}

impl Admitted {
    /// Only [`crate::admit`] admits.
    pub(crate) fn new(tree: Tree) -> Self {
        Self { tree }
    }

    /// The object on its way out: its end was admitted, and this is the next step of that.
    pub(crate) fn ending(&self, tree: Tree) -> Self {
        Self { tree }
    }

    /// The object as it may be stored.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The object as it may be stored.
    pub fn into_tree(self) -> Tree {
        self.tree
    }
}
