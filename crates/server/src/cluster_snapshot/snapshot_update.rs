//! Builds the next snapshot from the current one and some changes. Parts that did not change are shared.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use api_resources::{DefinedResources, DefinitionChange};
use bytes::Bytes;
use serde_json::Value;
use store::Revision;

use super::rbac_objects::apply_rbac_object;
use super::snapshot_keys::{SnapshotKeyKind, classify_snapshot_key};
use super::{
    ClusterSnapshot, FlowControlObjects, Namespace, SnapshotUpdateReport, StoredCrd,
    StoredObjectDecodeError,
};
use crate::admission::AdmissionConfigChange;
use crate::initializers::{UNINITIALIZED_PATH, is_stored_initialized};
use crate::processor_turns::run_outside_async_workers;

/// A write or a deletion of a key.
pub(super) struct StoreKeyChange<'b> {
    /// The key with the prefix of the store.
    pub(super) key: &'b str,
    /// The revision of the change.
    pub(super) revision: Revision,
    pub(super) old_value: Option<&'b Bytes>,
    pub(super) new_value: Option<&'b Bytes>,
}

/// Copies of the parts of the snapshot that changes have modified; `None` for unmodified parts.
#[derive(Default)]
struct ModifiedSnapshotParts {
    rbac_snapshot: Option<authz_rbac::Snapshot>,
    node_graph: Option<authz_node::Snapshot>,
    namespaces: Option<HashMap<String, Namespace>>,
    crds_by_name: Option<persistent::Map<Arc<str>, Arc<StoredCrd>>>,
    crd_changes: Vec<DefinitionChange>,
    flow_control_objects: Option<FlowControlObjects>,
    admission_config_changes: Vec<AdmissionConfigChange>,
    admission_config_revision: Option<Option<Revision>>,
    undecodable_objects: Option<BTreeMap<String, String>>,
    paths_with_uninitialized_objects: Option<BTreeSet<String>>,
    has_changed_cluster_role: bool,
}

impl ClusterSnapshot {
    pub(super) fn with_store_key_changes<'b>(
        &self,
        prefix: &str,
        changes: impl Iterator<Item = StoreKeyChange<'b>>,
        revision: Revision,
    ) -> (Self, SnapshotUpdateReport) {
        let mut parts = ModifiedSnapshotParts::default();
        let mut report = SnapshotUpdateReport::default();
        for change in changes {
            let key = change.key;
            let Some((kind, path)) = classify_snapshot_key(prefix, key) else { continue };
            let applied = self.apply_store_key_change(&mut parts, kind, path, change);
            let why = applied.err().map(|error| error.to_string());
            if kind != SnapshotKeyKind::ConfigRevision {
                self.set_or_clear_undecodable_object(&mut parts, path, why.as_deref());
            }
            report.undecodable_objects.extend(why.map(|why| (key.to_owned(), why)));
        }
        let next = self.build_next_snapshot(parts, revision, &mut report);
        (next, report)
    }

    /// Records why an object cannot be decoded, or that it can be.
    fn set_or_clear_undecodable_object(
        &self,
        parts: &mut ModifiedSnapshotParts,
        path: &str,
        why: Option<&str>,
    ) {
        let known = parts.undecodable_objects.as_ref().unwrap_or(&self.undecodable_objects);
        if why.is_none() && !known.contains_key(path) {
            return;
        }
        let objects = parts
            .undecodable_objects
            .get_or_insert_with(|| self.undecodable_objects.as_ref().clone());
        match why {
            Some(why) => drop(objects.insert(path.to_owned(), why.to_owned())),
            None => drop(objects.remove(path)),
        }
    }

    /// Applies one change. An object that cannot be decoded counts as absent: its earlier version does not
    /// stay in force.
    fn apply_store_key_change(
        &self,
        parts: &mut ModifiedSnapshotParts,
        kind: SnapshotKeyKind,
        path: &str,
        change: StoreKeyChange<'_>,
    ) -> Result<(), StoredObjectDecodeError> {
        let StoreKeyChange { revision, old_value, new_value, .. } = change;
        // An uninitialized object does not affect decisions.
        let (shown_old, shown_new) =
            (old_value.filter(is_stored_initialized), new_value.filter(is_stored_initialized));
        match kind {
            SnapshotKeyKind::Rbac => {
                let rbac =
                    parts.rbac_snapshot.get_or_insert_with(|| self.rbac_snapshot.as_ref().clone());
                parts.has_changed_cluster_role |= path.starts_with("clusterroles/");
                apply_rbac_object(rbac, path, shown_new)
            }
            SnapshotKeyKind::Node => {
                let node = parts.node_graph.get_or_insert_with(|| self.node_graph.as_ref().clone());
                apply_node_graph_object(node, shown_old, shown_new)
            }
            // An uninitialized namespace is deleted like any other; its phase says that it is uninitialized.
            SnapshotKeyKind::Namespace => {
                let namespaces =
                    parts.namespaces.get_or_insert_with(|| self.namespaces.as_ref().clone());
                let name = object_name_of_path(path);
                let decoded = new_value
                    .map(|value| Namespace::from_stored_namespace(value, revision))
                    .transpose();
                namespaces.remove(name);
                if let Some(namespace) = decoded? {
                    namespaces.insert(name.to_owned(), namespace);
                }
                Ok(())
            }
            SnapshotKeyKind::Definition => {
                let definitions =
                    parts.crds_by_name.get_or_insert_with(|| self.crds_by_name.as_ref().clone());
                let name = object_name_of_path(path);
                let decoded = shown_new.map(|value| codec::decode_stored_object(value)).transpose();
                let old =
                    definitions.remove(name).map(|stored| Arc::clone(&stored.defined_resources));
                let (new, applied) = match decoded {
                    Ok(tree) => (tree, Ok(())),
                    Err(error) => (None, Err(error.into())),
                };
                let new = new.map(|tree| {
                    let defined = Arc::new(DefinedResources::read(&tree));
                    let stored = StoredCrd {
                        uid: api_object::uid(&tree).to_owned(),
                        is_crd_terminating: api_object::is_terminating(&tree),
                        defined_resources: Arc::clone(&defined),
                        mod_rev: revision,
                    };
                    definitions.insert(Arc::from(name), Arc::new(stored));
                    defined
                });
                parts.crd_changes.push(DefinitionChange { old_resources: old, new_resources: new });
                applied
            }
            SnapshotKeyKind::FlowControl => {
                let objects = parts
                    .flow_control_objects
                    .get_or_insert_with(|| self.flow_control_objects.as_ref().clone());
                objects.apply_flow_control_object(path, shown_new)
            }
            SnapshotKeyKind::Hooks(kind) => {
                let decoded = new_value.map(|value| codec::decode_stored_object(value)).transpose();
                let (tree, applied) = match decoded {
                    Ok(tree) => (tree.map(Ok), Ok(())),
                    Err(error) => (Some(Err(error.clone())), Err(error.into())),
                };
                parts.admission_config_changes.push(AdmissionConfigChange {
                    path: path.to_owned(),
                    kind,
                    object_tree: tree,
                });
                applied
            }
            SnapshotKeyKind::ConfigRevision => {
                parts.admission_config_revision = Some(new_value.map(|_| revision));
                Ok(())
            }
            SnapshotKeyKind::UninitializedPath => {
                let paths = (parts.paths_with_uninitialized_objects)
                    .get_or_insert_with(|| self.paths_with_uninitialized_objects.as_ref().clone());
                let path = path.strip_prefix(UNINITIALIZED_PATH).unwrap_or_default();
                paths.insert(path.trim_start_matches('/').to_owned());
                Ok(())
            }
            SnapshotKeyKind::ServiceOrEndpoints | SnapshotKeyKind::UninitializedRecord => Ok(()),
        }
    }

    fn build_next_snapshot(
        &self,
        parts: ModifiedSnapshotParts,
        revision: Revision,
        report: &mut SnapshotUpdateReport,
    ) -> Self {
        let mut next = Self { revision, ..self.clone() };
        let is_chain_stale = parts.rbac_snapshot.is_some() || parts.node_graph.is_some();
        if let Some(mut rbac) = parts.rbac_snapshot {
            if parts.has_changed_cluster_role {
                // The snapshot uses the aggregated rules immediately; a background loop stores them later.
                report.stale_aggregated_roles = rbac.aggregate_roles();
            }
            next.rbac_snapshot = Arc::new(rbac);
        }
        if let Some(node) = parts.node_graph {
            next.node_graph = Arc::new(node);
        }
        if is_chain_stale {
            // The slots have built a chain before, so their names are unique.
            next.authorizer_chain = next
                .build_authorizer_chain(&next.authorizer_slots)
                .unwrap_or(next.authorizer_chain);
        }
        if let Some(namespaces) = parts.namespaces {
            next.namespaces = Arc::new(namespaces);
        }
        if let Some(objects) = parts.flow_control_objects {
            next.flow_control_objects = Arc::new(objects);
        }
        if let Some(paths) = parts.paths_with_uninitialized_objects {
            next.paths_with_uninitialized_objects = Arc::new(paths);
        }
        if let Some(objects) = parts.undecodable_objects {
            next.undecodable_objects = Arc::new(objects);
        }
        if let Some(config_revision) = parts.admission_config_revision {
            next.admission_config_revision = config_revision;
        }
        if !parts.admission_config_changes.is_empty() {
            // Match conditions may take long to compile.
            next.configured_hooks = run_outside_async_workers(|| {
                next.configured_hooks.with_configuration_changes(parts.admission_config_changes)
            });
        }
        if let Some(definitions) = parts.crds_by_name {
            let (registry, faults) =
                next.resource_registry.with_definition_changes(parts.crd_changes);
            report.undecodable_objects.extend(faults);
            next.resource_registry = Arc::new(registry);
            next.crds_by_name = Arc::new(definitions);
        }
        next
    }
}

/// Replaces an object in the graph of the node authorizer. The edges of a version that cannot be decoded
/// are removed.
fn apply_node_graph_object(
    policy: &mut authz_node::Snapshot,
    old_value: Option<&Bytes>,
    new_value: Option<&Bytes>,
) -> Result<(), StoredObjectDecodeError> {
    let decode = |value: Option<&Bytes>| -> Result<_, StoredObjectDecodeError> {
        let tree = value.map(|value| codec::decode_stored_object(value)).transpose()?;
        Ok(tree.and_then(|tree| manifests::parse_node_authorizer_object(&Value::Object(tree))))
    };
    let old = decode(old_value).unwrap_or_default();
    let new = decode(new_value);
    match (&old, new.as_ref().ok().and_then(Option::as_ref)) {
        (Some(old), Some(new)) => policy.graph.update_object(old, new),
        (None, Some(new)) => policy.graph.add_object(new),
        (Some(old), None) => policy.graph.delete_object(old),
        (None, None) => {}
    }
    new.map(drop)
}

/// The name of the object with a path, which is the last segment.
fn object_name_of_path(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}
