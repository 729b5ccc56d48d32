//! The policy objects of the cluster and of files, and the chain over them as an immutable snapshot.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use authz::Namespace;
use authz_chain::{AuthorizerSlot, Chain, ChainMember, ConfigurationError, SlotAuthorizer};
use authz_rbac::{BootstrapPolicy, ReconcileExtrasPolicy};
use cluster_client::WatchedObject;
use manifests::rbac::{Kind, RbacObject};

use crate::cluster_resource::ClusterResource;

/// Where the objects come from.
#[derive(Debug, Clone)]
pub enum PolicyOrigin {
    /// Files alone. The program adds these default roles and bindings, and aggregates roles, as a server does.
    Files(Box<BootstrapPolicy>),
    /// A cluster alone. Its roles count as they are stored.
    Cluster,
    /// A cluster to which files are applied. Roles are aggregated again, as the controllers of the cluster would.
    ClusterAndFiles,
}

/// The authorizers cannot be used by a webhook.
#[derive(Debug, thiserror::Error)]
pub enum AuthorizersError {
    /// The chain contains the Node authorizer.
    #[error(
        "the authorizer type `Node` cannot be in the chain of the webhook: it decides by pods and volumes, which the webhook \
         does not watch; let kube-apiserver run its own Node authorizer before the webhook"
    )]
    Node,
    /// Two authorizers have one name.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
}

/// The policy that decides one request, from beginning to end.
#[derive(Debug)]
pub(crate) struct PolicySnapshot {
    /// The authorizers over the objects.
    pub(crate) chain: Arc<Chain>,
    /// Whether the chain decides a question again in the same way, because no authorizer asks anything outside of it.
    pub(crate) is_deterministic: bool,
    /// The names of the namespaces; `None` without a cluster.
    pub(crate) namespaces: Option<Arc<BTreeSet<String>>>,
}

/// The current policy. Writers change the objects under a lock and publish a new snapshot; readers need no lock.
pub(crate) struct PolicyCache {
    policy_objects: Mutex<PolicyObjects>,
    snapshot: ArcSwap<PolicySnapshot>,
}

/// The identity of a role or a binding: kind, namespace and name.
type ObjectKey = (Kind, String, String);

struct PolicyObjects {
    origin: PolicyOrigin,
    authorizer_slots: Arc<[AuthorizerSlot]>,
    cluster_objects: HashMap<ObjectKey, RbacObject>,
    /// The objects of files, which replace those of the cluster with the same key.
    file_objects: HashMap<ObjectKey, RbacObject>,
    namespaces: Option<Arc<BTreeSet<String>>>,
    /// The objects of the cluster with those of the files applied, before aggregation.
    rbac_snapshot: authz_rbac::Snapshot,
}

impl PolicyCache {
    /// A cache without objects.
    ///
    /// # Errors
    /// The authorizers cannot be used.
    pub(crate) fn new(
        origin: PolicyOrigin,
        authorizer_slots: Arc<[AuthorizerSlot]>,
    ) -> Result<Self, AuthorizersError> {
        check_no_node_authorizer(&authorizer_slots)?;
        let namespaces = match origin {
            PolicyOrigin::Files(_) => None,
            PolicyOrigin::Cluster | PolicyOrigin::ClusterAndFiles => Some(Arc::default()),
        };
        let objects = PolicyObjects {
            origin,
            authorizer_slots,
            cluster_objects: HashMap::new(),
            file_objects: HashMap::new(),
            namespaces,
            rbac_snapshot: authz_rbac::Snapshot::default(),
        };
        let snapshot = ArcSwap::from_pointee(objects.to_snapshot()?);
        Ok(Self { policy_objects: Mutex::new(objects), snapshot })
    }

    /// Returns the policy that decides requests from now on.
    pub(crate) fn snapshot(&self) -> Arc<PolicySnapshot> {
        self.snapshot.load_full()
    }

    /// Replaces the authorizers.
    ///
    /// # Errors
    /// The authorizers cannot be used; the old ones stay.
    pub(crate) fn replace_authorizers(
        &self,
        authorizer_slots: &Arc<[AuthorizerSlot]>,
    ) -> Result<(), AuthorizersError> {
        check_no_node_authorizer(authorizer_slots)?;
        let mut objects = self.lock();
        let old = std::mem::replace(&mut objects.authorizer_slots, Arc::clone(authorizer_slots));
        match objects.to_snapshot() {
            Ok(snapshot) => {
                self.snapshot.store(Arc::new(snapshot));
                Ok(())
            }
            Err(error) => {
                objects.authorizer_slots = old;
                Err(error.into())
            }
        }
    }

    /// Replaces all objects of files.
    pub(crate) fn replace_file_objects(&self, objects: Vec<RbacObject>) {
        let mut own = self.lock();
        let new: HashMap<ObjectKey, RbacObject> =
            objects.into_iter().map(|object| (key_of(&object), object)).collect();
        let old = std::mem::replace(&mut own.file_objects, new);
        let changed: Vec<ObjectKey> = old
            .iter()
            .filter(|(key, object)| own.file_objects.get(*key) != Some(*object))
            .map(|(key, _)| key.clone())
            .chain(own.file_objects.keys().filter(|key| !old.contains_key(*key)).cloned())
            .collect();
        for key in &changed {
            own.apply_effective_object(key);
        }
        self.publish(&own);
    }

    /// Replaces all objects of a resource of the cluster. Objects that did not change stay, so that old snapshots share them.
    pub(crate) fn replace_cluster_objects(
        &self,
        resource: ClusterResource,
        objects: Vec<WatchedObject<RbacObject>>,
    ) {
        let mut own = self.lock();
        match resource.rbac_kind() {
            None => {
                let names = objects.into_iter().map(|object| object.name).collect();
                own.namespaces = Some(Arc::new(names));
            }
            Some(kind) => {
                let new: HashMap<ObjectKey, RbacObject> = objects
                    .into_iter()
                    .filter_map(|own| Some(((kind, own.namespace, own.name), own.object?)))
                    .collect();
                let is_gone = |key: &&ObjectKey| key.0 == kind && !new.contains_key(*key);
                let gone: Vec<ObjectKey> =
                    own.cluster_objects.keys().filter(is_gone).cloned().collect();
                for key in gone {
                    own.put_cluster_object(key, None);
                }
                for (key, object) in new {
                    own.put_cluster_object(key, Some(object));
                }
            }
        }
        self.publish(&own);
    }

    /// Puts an object of the cluster, or removes it. An object that cannot be decoded is removed: its earlier version does
    /// not stay in force.
    pub(crate) fn put_cluster_object(
        &self,
        resource: ClusterResource,
        namespace: String,
        name: String,
        object: ClusterObjectState,
    ) {
        let mut own = self.lock();
        match (resource.rbac_kind(), object) {
            (Some(kind), ClusterObjectState::Exists(object)) => {
                own.put_cluster_object((kind, namespace, name), object);
            }
            (Some(kind), ClusterObjectState::Deleted) => {
                own.put_cluster_object((kind, namespace, name), None);
            }
            (None, state) => {
                let mut names = own.namespaces.as_deref().cloned().unwrap_or_default();
                let is_changed = match state {
                    ClusterObjectState::Exists(_) => names.insert(name),
                    ClusterObjectState::Deleted => names.remove(&name),
                };
                if !is_changed {
                    return;
                }
                own.namespaces = Some(Arc::new(names));
            }
        }
        self.publish(&own);
    }

    /// The number of cached objects of a resource of the cluster.
    pub(crate) fn n_cluster_objects(&self, resource: ClusterResource) -> usize {
        let own = self.lock();
        match resource.rbac_kind() {
            Some(kind) => own.cluster_objects.keys().filter(|key| key.0 == kind).count(),
            None => own.namespaces.as_ref().map_or(0, |names| names.len()),
        }
    }

    /// The number of objects of files.
    pub(crate) fn n_file_objects(&self) -> usize {
        self.lock().file_objects.len()
    }

    fn publish(&self, objects: &PolicyObjects) {
        // INVARIANT: the slots of `objects` have made a chain before, so their names are unique.
        if let Ok(snapshot) = objects.to_snapshot() {
            self.snapshot.store(Arc::new(snapshot));
        }
    }

    fn lock(&self) -> MutexGuard<'_, PolicyObjects> {
        self.policy_objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of an object of the cluster.
#[derive(Debug)]
pub(crate) enum ClusterObjectState {
    /// The object exists; `None` if it is a namespace or cannot be decoded.
    Exists(Option<RbacObject>),
    /// The object was deleted.
    Deleted,
}

impl PolicyObjects {
    fn put_cluster_object(&mut self, key: ObjectKey, object: Option<RbacObject>) {
        if self.cluster_objects.get(&key) == object.as_ref() {
            return;
        }
        match object {
            Some(object) => drop(self.cluster_objects.insert(key.clone(), object)),
            None => drop(self.cluster_objects.remove(&key)),
        }
        if !self.file_objects.contains_key(&key) {
            self.apply_effective_object(&key);
        }
    }

    /// Puts the object of a key into the index: that of the files, else that of the cluster, else none.
    fn apply_effective_object(&mut self, key: &ObjectKey) {
        let object = self.file_objects.get(key).or_else(|| self.cluster_objects.get(key));
        let (kind, namespace, name) = key;
        match object {
            Some(RbacObject::Role(role)) => self.rbac_snapshot.put_role(role.clone()),
            Some(RbacObject::Binding(binding)) => self.rbac_snapshot.put_binding(binding.clone()),
            None => match kind {
                Kind::Role | Kind::ClusterRole => {
                    drop(self.rbac_snapshot.remove_role(Namespace::new(namespace), name));
                }
                Kind::RoleBinding | Kind::ClusterRoleBinding => {
                    drop(self.rbac_snapshot.remove_binding(Namespace::new(namespace), name));
                }
            },
        }
    }

    fn to_snapshot(&self) -> Result<PolicySnapshot, ConfigurationError> {
        let mut rbac = self.rbac_snapshot.clone();
        match &self.origin {
            PolicyOrigin::Cluster => {}
            PolicyOrigin::ClusterAndFiles => drop(rbac.aggregate_roles()),
            PolicyOrigin::Files(defaults) => {
                authz_rbac::reconcile_bootstrap_policy(
                    &mut rbac,
                    defaults,
                    ReconcileExtrasPolicy::Keep,
                );
            }
        }
        let (rbac, node) = (Arc::new(rbac), Arc::default());
        let members = self
            .authorizer_slots
            .iter()
            .map(|slot| (slot.to_chain_member(&rbac, &node), slot.decision_observer.clone()));
        let chain = Chain::with_observers(members)?;
        let is_deterministic = chain.chain_members().all(|member| match member {
            ChainMember::Abac(_)
            | ChainMember::AlwaysAllow
            | ChainMember::AlwaysDeny
            | ChainMember::Node(_)
            | ChainMember::Rbac(_) => true,
            ChainMember::Webhook(_) | ChainMember::Plugin(..) => false,
        });
        let namespaces = self.namespaces.clone();
        Ok(PolicySnapshot { chain: Arc::new(chain), is_deterministic, namespaces })
    }
}

fn key_of(object: &RbacObject) -> ObjectKey {
    let metadata = object.metadata();
    (object.kind(), metadata.namespace.clone(), metadata.name.clone())
}

fn check_no_node_authorizer(slots: &[AuthorizerSlot]) -> Result<(), AuthorizersError> {
    let is_node = |slot: &AuthorizerSlot| matches!(slot.authorizer, SlotAuthorizer::Node);
    if slots.iter().any(is_node) { Err(AuthorizersError::Node) } else { Ok(()) }
}
