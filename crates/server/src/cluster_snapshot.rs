//! The snapshot that the server decides from: an immutable copy of some of the stored objects, replaced as a
//! whole.

mod flow_control_objects;
mod namespace;
mod rbac_objects;
mod snapshot_keys;
mod snapshot_update;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use api_resources::{DefinedResources, Registry};
use authz_chain::{AuthorizerSlot, Chain, ConfigurationError};
use field_errors::FieldErrors;
use store::{Change, Event, Item, Revision};

pub(crate) use self::flow_control_objects::FlowControlObjects;
#[cfg(test)]
pub(crate) use self::flow_control_objects::StoredPriorityLevel;
pub use self::namespace::{Namespace, NamespacePhase};
pub(crate) use self::snapshot_keys::{TRACKED_PATHS, is_snapshot_key, service_directory_path};
use self::snapshot_update::StoreKeyChange;
use crate::admission::ConfiguredHooks;

/// A CustomResourceDefinition as it is stored.
#[derive(Debug, Clone)]
pub struct StoredCrd {
    /// Distinguishes definitions that had the same name at different times.
    pub uid: String,
    /// Whether the definition has a deletion timestamp.
    pub is_crd_terminating: bool,
    /// The resources that the definition defines, decoded once.
    pub defined_resources: Arc<DefinedResources>,
    /// The revision that wrote it.
    pub mod_rev: Revision,
}

/// The objects that decisions depend on, at one revision of the store.
#[derive(Clone)]
pub struct ClusterSnapshot {
    /// The snapshot contains all changes up to this revision.
    pub revision: Revision,
    /// The index of roles and bindings.
    pub rbac_snapshot: Arc<authz_rbac::Snapshot>,
    /// The graph of objects that nodes may read.
    pub node_graph: Arc<authz_node::Snapshot>,
    /// The authorizers, in order, over the two policies above.
    pub authorizer_chain: Arc<Chain>,
    /// The namespaces by name.
    pub namespaces: Arc<HashMap<String, Namespace>>,
    /// The CustomResourceDefinitions by name.
    pub crds_by_name: Arc<persistent::Map<Arc<str>, Arc<StoredCrd>>>,
    /// The resources that are served.
    pub resource_registry: Arc<Registry>,
    /// The flow schemas and priority levels.
    pub(crate) flow_control_objects: Arc<FlowControlObjects>,
    /// The admission webhooks and initializers.
    pub configured_hooks: ConfiguredHooks,
    /// The revision of the config revision key, which every change of the hooks writes. `None` if the hooks
    /// were never configured.
    pub admission_config_revision: Option<Revision>,
    /// Objects of tracked kinds that cannot be decoded, by the path of their key, with the reason. They
    /// count as absent.
    pub undecodable_objects: Arc<BTreeMap<String, String>>,
    /// The storage paths of resources that have, or once had, uninitialized objects.
    pub paths_with_uninitialized_objects: Arc<BTreeSet<String>>,
    authorizer_slots: Arc<[AuthorizerSlot]>,
}

/// The result of an update of the snapshot, apart from the next snapshot.
#[derive(Debug, Default)]
pub struct SnapshotUpdateReport {
    /// Keys of objects that could not be decoded, with the reason. They count as absent.
    pub undecodable_objects: Vec<(String, String)>,
    /// Aggregated cluster roles whose stored rules differ from those of the snapshot.
    pub stale_aggregated_roles: Vec<Arc<authz_rbac::Role>>,
}

/// A stored object cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoredObjectDecodeError {
    #[error(transparent)]
    Json(#[from] codec::JsonError),
    #[error(transparent)]
    Rbac(#[from] manifests::rbac::RbacDecodeError),
    #[error(transparent)]
    FlowControl(#[from] manifests::flow_control::FlowControlDecodeError),
    #[error("{0}")]
    Invalid(FieldErrors),
    #[error("the key names no object")]
    UnnamedKey,
    #[error("it is not the object that its key names")]
    NameDiffersFromKey,
}

impl ClusterSnapshot {
    /// The snapshot of an empty store.
    ///
    /// # Errors
    /// Two authorizers have the same name.
    pub fn of_empty_store(
        authorizer_slots: Arc<[AuthorizerSlot]>,
        node: authz_node::Snapshot,
        hooks: ConfiguredHooks,
    ) -> Result<Self, ConfigurationError> {
        let cluster = Self {
            revision: Revision::ZERO,
            rbac_snapshot: Arc::default(),
            node_graph: Arc::new(node),
            authorizer_chain: Arc::default(),
            namespaces: Arc::default(),
            crds_by_name: Arc::default(),
            resource_registry: Arc::new(Registry::with_built_in_resources()),
            flow_control_objects: Arc::default(),
            configured_hooks: hooks,
            admission_config_revision: None,
            undecodable_objects: Arc::default(),
            paths_with_uninitialized_objects: Arc::default(),
            authorizer_slots,
        };
        Ok(Self {
            authorizer_chain: cluster.build_authorizer_chain(&cluster.authorizer_slots)?,
            ..cluster
        })
    }

    /// The same objects with other authorizers.
    ///
    /// # Errors
    /// Two authorizers have the same name.
    pub fn with_authorizers(
        &self,
        authorizer_slots: &Arc<[AuthorizerSlot]>,
    ) -> Result<Self, ConfigurationError> {
        let chain = self.build_authorizer_chain(authorizer_slots)?;
        Ok(Self {
            authorizer_chain: chain,
            authorizer_slots: Arc::clone(authorizer_slots),
            ..self.clone()
        })
    }

    /// The configured authorizers, in order.
    pub(crate) fn authorizer_slots(&self) -> &Arc<[AuthorizerSlot]> {
        &self.authorizer_slots
    }

    /// The authorizers of an earlier snapshot over the objects of this one.
    pub(crate) fn chain_with_earlier_authorizers(&self, earlier: &Self) -> Arc<Chain> {
        match Arc::ptr_eq(&self.authorizer_slots, &earlier.authorizer_slots) {
            true => Arc::clone(&self.authorizer_chain),
            // The earlier snapshot has built a chain from these slots, so their names are unique.
            false => self
                .build_authorizer_chain(&earlier.authorizer_slots)
                .unwrap_or_else(|_| Arc::clone(&earlier.authorizer_chain)),
        }
    }

    fn build_authorizer_chain(
        &self,
        authorizer_slots: &[AuthorizerSlot],
    ) -> Result<Arc<Chain>, ConfigurationError> {
        let members = authorizer_slots.iter().map(|slot| {
            (
                slot.to_chain_member(&self.rbac_snapshot, &self.node_graph),
                slot.decision_observer.clone(),
            )
        });
        Chain::with_observers(members).map(Arc::new)
    }

    /// The snapshot with these objects, which were read at one revision of the store.
    #[must_use]
    pub fn with_stored_items(
        &self,
        prefix: &str,
        items: &[Item],
        revision: Revision,
    ) -> (Self, SnapshotUpdateReport) {
        let changes = items.iter().map(|item| StoreKeyChange {
            key: item.key.as_str(),
            revision: item.entry.mod_rev,
            old_value: None,
            new_value: Some(&item.entry.value),
        });
        self.with_store_key_changes(prefix, changes, revision)
    }

    /// The snapshot after these events.
    #[must_use]
    pub fn with_store_events(
        &self,
        prefix: &str,
        events: &[Event],
        revision: Revision,
    ) -> (Self, SnapshotUpdateReport) {
        let changes = events.iter().map(|event| {
            let (old_value, new_value) = match &event.change {
                Change::Create(entry) => (None, Some(&entry.value)),
                Change::Update { entry, prev } => (Some(&prev.value), Some(&entry.value)),
                Change::Delete { prev } => (Some(&prev.value), None),
            };
            StoreKeyChange {
                key: event.key.as_str(),
                revision: event.revision,
                old_value,
                new_value,
            }
        });
        self.with_store_key_changes(prefix, changes, revision)
    }
}
