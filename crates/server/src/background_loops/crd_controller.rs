//! Reconciles CustomResourceDefinitions: accepts their names, marks them as established, and deletes their
//! objects before a definition is deleted.

mod unserved_custom_objects;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use api_object::{DeleteOptions, DeletionPropagation, Status, Tree};
use api_resources::{CLEANUP_FINALIZER, CustomResourceDefinition, Resource};
use component_base::LogField;
use jiff::Timestamp;
use store::ListRequest;

use super::deletion_tasks::{DeletionTasks, is_stored_as_terminating, retry_until_deleted};
use crate::cluster_snapshot::StoredCrd;
use crate::object_ref::ObjectRef;
use crate::server_state::ServerState;

/// The delay before definitions whose conditions could not be updated are tried again.
const RETRY: Duration = Duration::from_millis(200);

/// The time between two searches for metric series of resources that are not served any more. They look at all series, and
/// ten thousand definitions may be deleted at once.
const SERIES_REMOVAL_INTERVAL: Duration = Duration::from_secs(1);

const DEFINITIONS: (&str, &str, &str) = ("apiextensions.k8s.io", "v1", "customresourcedefinitions");

/// Reconciles definitions whenever one of them changes: those that changed, and those that wait for a name in
/// the same group. The work for one change does not depend on the number of other definitions, apart from
/// comparing pointers and names.
pub(crate) async fn reconcile_crds(server: Arc<ServerState>) {
    let mut tasks = DeletionTasks::default();
    let mut seen_revision = 0;
    let mut reconciled = Arc::new(CrdsByName::default());
    let mut retried: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut has_unserved_resource = false;
    let mut series_removed_at = Instant::now();
    loop {
        let cluster = server.snapshot_cache.snapshot();
        let changes = CrdChanges::crd_changes_between_snapshots(&reconciled, &cluster.crds_by_name);
        let waits_for_name = |stored: &StoredCrd| {
            let definition = stored.defined_resources.custom_resource_definition.as_ref();
            definition.is_some_and(|own| {
                changes.groups.contains(own.group.as_str())
                    && !own.has_true_condition("NamesAccepted")
            })
        };
        // The names are sorted, so that if two new definitions claim the same name, the same definition always gets it.
        let mut affected: BTreeSet<&Arc<str>> = BTreeSet::new();
        for (name, stored) in cluster.crds_by_name.iter() {
            if stored.is_crd_terminating {
                tasks.start(name, || delete_crd_until_gone(Arc::clone(&server), name.to_string()));
            } else if changes.changed_crd_names.contains(name)
                || retried.contains(name)
                || waits_for_name(stored)
            {
                affected.insert(name);
            }
        }
        let mut failed = BTreeSet::new();
        for name in affected {
            match update_crd_conditions(&server, name).await {
                Ok(is_terminating) => {
                    if is_terminating {
                        failed.insert(Arc::clone(name));
                    }
                }
                // Another writer changes or deletes the definition.
                Err(status)
                    if status.is_status_from_this_server() && matches!(status.code, 404 | 409) =>
                {
                    failed.insert(Arc::clone(name));
                }
                Err(status) => {
                    let fields: [LogField<'_>; 2] = [("name", name), ("why", &status.message)];
                    server.log.warn("the conditions of a definition cannot be updated", &fields);
                    failed.insert(Arc::clone(name));
                }
            }
        }
        has_unserved_resource |= changes.has_unserved_resource;
        if has_unserved_resource && series_removed_at.elapsed() >= SERIES_REMOVAL_INTERVAL {
            server
                .metrics
                .remove_unserved_series(&server.snapshot_cache.snapshot().resource_registry);
            has_unserved_resource = false;
            series_removed_at = Instant::now();
        }
        reconciled = Arc::clone(&cluster.crds_by_name);
        retried = failed;
        if !retried.is_empty() {
            tokio::time::sleep(RETRY).await;
            continue;
        }
        while Arc::ptr_eq(&reconciled, &server.snapshot_cache.snapshot().crds_by_name) {
            tokio::select! {
                () = tasks.wait_for_any_deletion_task() => break,
                () = tokio::time::sleep(SERIES_REMOVAL_INTERVAL), if has_unserved_resource => break,
                revision = server.snapshot_cache.wait_for_revision_after(seen_revision) => {
                    seen_revision = revision;
                }
            }
        }
    }
}

/// The definitions of a snapshot by name.
type CrdsByName = persistent::Map<Arc<str>, Arc<StoredCrd>>;

/// The differences between the definitions of two snapshots.
#[derive(Default)]
struct CrdChanges<'a> {
    /// The definitions that are new or have changed.
    changed_crd_names: BTreeSet<Arc<str>>,
    /// The groups of all definitions that are new, have changed or are gone.
    groups: BTreeSet<&'a str>,
    /// Whether a resource is not served any more.
    has_unserved_resource: bool,
}

impl<'a> CrdChanges<'a> {
    fn crd_changes_between_snapshots(before: &'a CrdsByName, now: &'a CrdsByName) -> Self {
        let mut changes = Self::default();
        let mut n_known = 0;
        for (name, stored) in now.iter() {
            let old = before.get(name);
            n_known += usize::from(old.is_some());
            if !old.is_some_and(|old| Arc::ptr_eq(old, stored)) {
                changes.changed_crd_names.insert(Arc::clone(name));
                changes.add_changed_crd(old, Some(stored));
            }
        }
        if n_known < before.len() {
            let gone = before.iter().filter(|(name, _)| !now.contains_key(*name));
            gone.for_each(|(_, gone)| changes.add_changed_crd(Some(gone), None));
        }
        changes
    }

    fn add_changed_crd(
        &mut self,
        old: Option<&'a Arc<StoredCrd>>,
        new: Option<&'a Arc<StoredCrd>>,
    ) {
        for stored in [old, new].into_iter().flatten() {
            self.groups.extend(
                stored
                    .defined_resources
                    .custom_resource_definition
                    .as_ref()
                    .map(|own| own.group.as_str()),
            );
        }
        let resources = |stored: Option<&'a Arc<StoredCrd>>| {
            stored.map(|own| own.defined_resources.resources.as_slice()).unwrap_or_default()
        };
        self.has_unserved_resource |= resources(old).iter().any(|own| {
            let is_same = |it: &Arc<Resource>| {
                (&it.group, &it.version, &it.plural) == (&own.group, &own.version, &own.plural)
            };
            !resources(new).iter().any(is_same)
        });
    }
}

/// Updates the conditions `NamesAccepted` and `Established` of a definition. Returns whether the definition
/// is terminating by now.
async fn update_crd_conditions(server: &ServerState, name: &str) -> Result<bool, Status> {
    let definition_ref = ObjectRef::new(DEFINITIONS, "", name);
    let mut tree = server.loopback_get(definition_ref).await?.into_tree_with_resource_version();
    if api_object::is_terminating(&tree) {
        return Ok(true);
    }
    if let Some(definition) =
        CustomResourceDefinition::read(&tree).filter(|definition| !definition.is_served())
    {
        unserved_custom_objects::delete_objects_of_earlier_crds(server, &definition).await?;
    }
    let now = Timestamp::now();
    let cluster = server.snapshot_cache.snapshot();
    let others = cluster.crds_by_name.iter().filter(|(other, _)| &***other != name);
    let others =
        others.filter_map(|(_, other)| other.defined_resources.custom_resource_definition.as_ref());
    if api_resources::accept_definition_names(&mut tree, others, now) {
        // The write returns when the snapshot contains it, so the resource is served then.
        tree = server
            .loopback_update(definition_ref.with_subresource("status"), tree)
            .await?
            .into_tree_with_resource_version();
    }
    if api_resources::mark_established(&mut tree, now) {
        server.loopback_update(definition_ref.with_subresource("status"), tree).await?;
    }
    Ok(false)
}

async fn delete_crd_until_gone(server: Arc<ServerState>, name: String) {
    let attempt = || try_to_delete_crd(&server, &name);
    retry_until_deleted(server.log, "a definition cannot be emptied", &name, attempt).await;
}

/// Deletes the objects of a terminating definition, and then the definition. Returns how many objects are
/// left; `None` if the definition is not terminating.
async fn try_to_delete_crd(server: &ServerState, name: &str) -> Result<Option<usize>, Status> {
    let definition_ref = ObjectRef::new(DEFINITIONS, "", name);
    let mut tree = server.loopback_get(definition_ref).await?.into_tree_with_resource_version();
    if !api_object::is_terminating(&tree) {
        return Ok(None);
    }
    if !api_object::finalizers(&tree).contains(&CLEANUP_FINALIZER) {
        return Ok(Some(0));
    }
    // No object is created once the definition is stored as terminating, since each create depends on its
    // key. The second pass finds objects whose creation was in progress during the first.
    for _ in 0..2 {
        let n_found = delete_crd_objects(server, &tree).await?;
        if n_found > 0 {
            return Ok(Some(n_found));
        }
    }
    let mut finalizers: Vec<String> =
        api_object::finalizers(&tree).into_iter().map(str::to_owned).collect();
    finalizers.retain(|finalizer| finalizer != CLEANUP_FINALIZER);
    api_object::metadata_mut(&mut tree).insert("finalizers".to_owned(), finalizers.into());
    server.loopback_update(definition_ref, tree).await?;
    Ok(Some(0))
}

/// Deletes the objects of a definition and returns how many there were. Objects that the API serves are
/// deleted through the API. An object that cannot be deleted now does not keep the others from being
/// deleted.
///
/// # Errors
/// The first refusal, after all objects were tried.
async fn delete_crd_objects(server: &ServerState, tree: &Tree) -> Result<usize, Status> {
    let Some(definition) = CustomResourceDefinition::read(tree) else { return Ok(0) };
    let Some(prefix) = unserved_custom_objects::crd_objects_prefix(server, &definition) else {
        return Ok(0);
    };
    let cluster = server.snapshot_cache.snapshot();
    let served = cluster.resource_registry.group(&definition.group).and_then(|group| {
        let versions = group.versions.iter();
        versions
            .filter_map(|version| version.resource(&definition.requested_names.plural))
            .find(|resource| resource.is_custom_resource())
    });
    let page = server.store.list(&prefix, ListRequest::default()).await;
    let page = page.map_err(|error| Status::internal_error(&error.to_string()))?;
    let options = DeleteOptions {
        propagation_policy: Some(DeletionPropagation::Background),
        ..DeleteOptions::default()
    };
    let mut first_refusal = None;
    for item in &page.items {
        let object_ref = served.and_then(|resource| {
            let (namespace, name) = api_resources::namespace_and_name_in_key(
                &server.store_key_prefix,
                resource,
                &item.key,
            )?;
            Some(ObjectRef::for_resource(resource, namespace, name))
        });
        let Some(object_ref) = object_ref else {
            unserved_custom_objects::delete_or_mark_unserved_object(server, &definition, item)
                .await?;
            continue;
        };
        if is_stored_as_terminating(&item.entry.value) {
            continue;
        }
        match server.loopback_delete(object_ref, &options).await {
            Err(status) if status.is_status_from_this_server() && status.code == 404 => {}
            Err(status) => first_refusal = first_refusal.or(Some(status)),
            Ok(_) => {}
        }
    }
    first_refusal.map_or(Ok(page.items.len()), Err)
}
