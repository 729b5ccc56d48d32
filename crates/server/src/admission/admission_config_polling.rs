//! Poll mode: the configuration is read from the store at intervals.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use store::{At, KeyError, ListRequest, Prefix, ReadError, Revision};
use tokio::time::Instant;

use super::configured_hooks::{
    AdmissionConfigChange, CONFIGURATION_PATHS, ConfiguredHooks, configuration_kind_at_path,
};
use super::freshness_barrier::AdmissionConfigSyncMode;
use crate::server_state::ServerState;

/// The configuration as the last poll read it.
pub(crate) struct PolledAdmissionConfig {
    configured_hooks: ConfiguredHooks,
    revision: Revision,
    /// The revision of each configuration, by path.
    revisions_by_path: BTreeMap<String, Revision>,
}

/// The slot that a poll stores its result in.
pub(crate) type PolledAdmissionConfigSlot = ArcSwap<PolledAdmissionConfig>;

/// Why a poll failed.
#[derive(Debug, thiserror::Error)]
enum AdmissionConfigPollError {
    #[error(transparent)]
    Prefix(#[from] KeyError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("the store has gone back in time")]
    OlderRevision,
    #[error("the store does not answer")]
    Timeout,
}

impl PolledAdmissionConfig {
    /// The configuration before the first poll.
    pub(crate) fn before_first_poll(hooks: ConfiguredHooks) -> Self {
        Self {
            configured_hooks: hooks,
            revision: Revision::ZERO,
            revisions_by_path: BTreeMap::new(),
        }
    }

    pub(super) fn hooks_and_revision(&self) -> (ConfiguredHooks, Revision) {
        (self.configured_hooks.clone(), self.revision)
    }

    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    pub(super) fn undecodable_configurations(&self) -> Arc<BTreeMap<String, String>> {
        Arc::clone(&self.configured_hooks.undecodable_configurations)
    }
}

impl ServerState {
    /// Keeps the local configuration confirmed until the task is dropped: by the barrier, or by polls.
    pub(crate) async fn keep_admission_config_fresh(self: Arc<Self>) {
        match self.admission_freshness_barrier.options.admission_config_sync_mode {
            AdmissionConfigSyncMode::Barrier
                if self.admission_freshness_barrier.options.is_only_server => {}
            AdmissionConfigSyncMode::Barrier => {
                let applied = || self.snapshot_cache.snapshot().revision;
                self.admission_freshness_barrier
                    .run(|| self.read_admission_config_revision(), applied)
                    .await;
            }
            AdmissionConfigSyncMode::Poll => loop {
                let begun = Instant::now();
                let limit = self.admission_freshness_barrier.options.admission_config_staleness_max;
                let polled = tokio::time::timeout(limit, self.poll_admission_config()).await;
                let polled = polled.unwrap_or(Err(AdmissionConfigPollError::Timeout));
                self.admission_freshness_barrier
                    .record_config_poll(begun, polled.map_err(|error| error.to_string().into()));
                tokio::time::sleep_until(
                    begun + self.admission_freshness_barrier.options.admission_config_poll_interval,
                )
                .await;
            },
        }
    }

    /// Reads the whole configuration at one revision of the store, and compiles the changed parts.
    async fn poll_admission_config(&self) -> Result<Revision, AdmissionConfigPollError> {
        let last = self.polled_admission_config.load();
        let mut at = At::Newest;
        let mut revision = Revision::ZERO;
        let mut revisions_by_path = BTreeMap::new();
        let mut changes = Vec::new();
        for (path, kind) in CONFIGURATION_PATHS {
            let prefix = Prefix::new(&format!("{}/{path}", self.store_key_prefix))?;
            let request = ListRequest { at, ..ListRequest::default() };
            let page = self.store.list(&prefix, request).await?;
            revision = page.revision;
            at = At::Exactly(revision);
            for item in page.items {
                let path =
                    item.key.get(self.store_key_prefix.len() + 1..).unwrap_or_default().to_owned();
                if last.revisions_by_path.get(&path) != Some(&item.entry.mod_rev) {
                    let tree = Some(codec::decode_stored_object(&item.entry.value));
                    changes.push(AdmissionConfigChange {
                        path: path.clone(),
                        kind,
                        object_tree: tree,
                    });
                }
                revisions_by_path.insert(path, item.entry.mod_rev);
            }
        }
        if revision < last.revision {
            return Err(AdmissionConfigPollError::OlderRevision);
        }
        for path in
            last.revisions_by_path.keys().filter(|path| !revisions_by_path.contains_key(*path))
        {
            if let Some(kind) = configuration_kind_at_path(path) {
                changes.push(AdmissionConfigChange { path: path.clone(), kind, object_tree: None });
            }
        }
        for change in &changes {
            if let Some(Err(why)) = &change.object_tree {
                let key = &change.path;
                self.log.error("a stored object cannot be read", &[("key", key), ("why", why)]);
            }
        }
        let hooks = match changes.is_empty() {
            true => last.configured_hooks.clone(),
            false => last.configured_hooks.with_configuration_changes(changes),
        };
        self.polled_admission_config.store(Arc::new(PolledAdmissionConfig {
            configured_hooks: hooks,
            revision,
            revisions_by_path,
        }));
        Ok(revision)
    }

    /// Reports the configured hooks to the metrics whenever they change, until the task is dropped.
    pub(crate) async fn report_configured_hooks(self: Arc<Self>) {
        let mut seen_version = 0;
        let mut reported = None;
        loop {
            let snapshot = Arc::clone(&self.snapshot_cache.snapshot().configured_hooks.hook_index);
            if reported.as_ref().is_none_or(|last| !Arc::ptr_eq(last, &snapshot)) {
                self.admission_metrics.set_config_in_effect(&snapshot);
                reported = Some(snapshot);
            }
            seen_version = self.snapshot_cache.wait_for_revision_after(seen_version).await;
        }
    }
}
