//! The one state of the configuration of admission that a request is admitted by.

use std::collections::BTreeMap;
use std::sync::Arc;

use admission::{GroupVersionKind, Operation};
use api_object::{Cause, Details, Status};
use api_resources::Resource;
use arc_swap::ArcSwap;
use metrics::ConfigRefusal;
use store::{At, Expect, Key, ListRequest, Prefix, Revision, Store};
use tokio::time::Instant;

use crate::cluster_snapshot::ClusterSnapshot;
use crate::confirm::{SyncMode, SyncOptions, Unconfirmed};
use crate::hooks::{CONFIGURATION_PATHS, Changed, Hooks, mark_key};
use crate::server_state::ServerState;

/// What a request is admitted by, from its first phase to its last.
#[derive(Clone)]
pub(crate) struct AdmissionSnapshot {
    /// The picture when the request asked.
    pub(crate) cluster: Arc<ClusterSnapshot>,
    /// Who is asked.
    pub(crate) hooks: Hooks,
    /// Every configuration up to here is in it.
    pub(crate) revision: Revision,
    /// Nobody has asked the store yet whether there is something newer. Whatever comes of the request
    /// depends on that.
    pub(crate) is_supposed: bool,
}

impl AdmissionSnapshot {
    /// Where the mark of the configuration is in the picture.
    pub(crate) fn mark(&self) -> Expect {
        self.cluster.config_revision.map_or(Expect::Absent, Expect::At)
    }
}

/// The configuration as it was read last, where it is read at intervals.
pub(crate) struct Polled {
    hooks: Hooks,
    revision: Revision,
    /// The revision of each object, by path.
    seen: BTreeMap<String, Revision>,
}

/// Where polling puts what it has read.
pub(crate) type PolledConfiguration = ArcSwap<Polled>;

impl Polled {
    pub(crate) fn nothing(hooks: Hooks) -> Self {
        Self { hooks, revision: Revision::ZERO, seen: BTreeMap::new() }
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    pub(crate) fn unreadable(&self) -> Arc<BTreeMap<String, String>> {
        Arc::clone(&self.hooks.unreadable)
    }
}

impl<S: Store> ServerState<S> {
    /// The configuration for a request that arrived before this is called.
    pub(crate) async fn stand(&self, deadline: Instant) -> Result<AdmissionSnapshot, Unconfirmed> {
        let need = self.barrier.need(deadline).await?;
        let SyncOptions { mode, is_only_server, .. } = self.barrier.options;
        if need.is_none() && mode == SyncMode::Barrier && !is_only_server {
            self.admission_metrics.count_degraded_request();
        }
        if let Some(need) = need {
            let limit = Instant::now() + self.barrier.options.max_staleness;
            let caught_up = self.snapshot_cache.wait_for(need.revision);
            if tokio::time::timeout_at(deadline.min(limit), caught_up).await.is_err() {
                return Err(match deadline < limit {
                    true => Unconfirmed::DeadlineExceeded,
                    false => Unconfirmed::Behind,
                });
            }
            self.barrier.confirmed(need);
        }
        let cluster = self.snapshot_cache.snapshot();
        let (hooks, revision) = match mode {
            SyncMode::Barrier => (cluster.hooks.clone(), cluster.revision),
            SyncMode::Poll => {
                let polled = self.polled.load();
                (polled.hooks.clone(), polled.revision)
            }
        };
        Ok(AdmissionSnapshot { cluster, hooks, revision, is_supposed: false })
    }

    /// The configuration as this server knows it, for a request that makes sure of it later; `None`
    /// where requests need not ask, or had better ask first.
    pub(crate) fn suppose(&self) -> Option<AdmissionSnapshot> {
        let SyncOptions { mode, is_only_server, .. } = self.barrier.options;
        if mode != SyncMode::Barrier || is_only_server || !self.barrier.is_calm() {
            return None;
        }
        let cluster = self.snapshot_cache.snapshot();
        let (hooks, revision) = (cluster.hooks.clone(), cluster.revision);
        Some(AdmissionSnapshot { cluster, hooks, revision, is_supposed: true })
    }

    /// Keeps the configuration new until the task is dropped.
    pub(crate) async fn confirm(self: Arc<Self>) {
        match self.barrier.options.mode {
            SyncMode::Barrier if self.barrier.options.is_only_server => {}
            SyncMode::Barrier => {
                let applied = || self.snapshot_cache.snapshot().revision;
                self.barrier.run(|| self.mark(), applied).await;
            }
            SyncMode::Poll => loop {
                let begun = Instant::now();
                let limit = self.barrier.options.max_staleness;
                let outcome = match tokio::time::timeout(limit, self.poll()).await {
                    Ok(outcome) => outcome.map_err(Into::into),
                    Err(_) => Err("the store does not answer".into()),
                };
                self.barrier.polled(begun, outcome);
                tokio::time::sleep_until(begun + self.barrier.options.poll_interval).await;
            },
        }
    }

    /// Tells the numbers which configuration is in effect, until the task is dropped.
    pub(crate) async fn count_configured(self: Arc<Self>) {
        let mut seen = 0;
        let mut counted = None;
        loop {
            let snapshot = Arc::clone(&self.snapshot_cache.snapshot().hooks.snapshot);
            if counted.as_ref().is_none_or(|last| !Arc::ptr_eq(last, &snapshot)) {
                self.admission_metrics.set_config_in_effect(&snapshot);
                counted = Some(snapshot);
            }
            seen = self.snapshot_cache.wait_for_change_after(seen).await;
        }
    }

    /// When the configuration was written last.
    pub(crate) async fn mark(&self) -> Result<Revision, String> {
        let key = self.mark_key()?;
        let got = self.store.get(&key, At::Newest).await.map_err(|error| error.to_string())?;
        Ok(got.entry.map_or(Revision::ZERO, |entry| entry.mod_rev))
    }

    pub(crate) fn mark_key(&self) -> Result<Key, String> {
        mark_key(&self.prefix).map_err(|error| error.to_string())
    }

    /// Reads the whole configuration in one state of the store. Only what changed is compiled.
    async fn poll(&self) -> Result<Revision, String> {
        let last = self.polled.load();
        let mut at = At::Newest;
        let mut revision = Revision::ZERO;
        let mut seen = BTreeMap::new();
        let mut changes = Vec::new();
        for (path, kind) in CONFIGURATION_PATHS {
            let prefix = Prefix::new(&format!("{}/{path}", self.prefix));
            let prefix = prefix.map_err(|error| error.to_string())?;
            let request = ListRequest { at, ..ListRequest::default() };
            let page = self.store.list(&prefix, request).await.map_err(|why| why.to_string())?;
            revision = page.revision;
            at = At::Exactly(revision);
            for item in page.items {
                let own = item.key.get(self.prefix.len() + 1..).unwrap_or_default().to_owned();
                if last.seen.get(&own) != Some(&item.entry.mod_rev) {
                    let tree = codec::from_stored(&item.entry.value);
                    let tree = Some(tree.map_err(|error| error.to_string()));
                    changes.push(Changed { path: own.clone(), kind, tree });
                }
                seen.insert(own, item.entry.mod_rev);
            }
        }
        if revision < last.revision {
            return Err("the store has gone back in time".to_owned());
        }
        for path in last.seen.keys().filter(|path| !seen.contains_key(*path)) {
            if let Some(kind) = crate::hooks::kind_at(path) {
                changes.push(Changed { path: path.clone(), kind, tree: None });
            }
        }
        for changed in &changes {
            if let Some(Err(why)) = &changed.tree {
                let key = &changed.path;
                self.log.error("a stored object can not be read", &[("key", key), ("why", why)]);
            }
        }
        let hooks = match changes.is_empty() {
            true => last.hooks.clone(),
            false => last.hooks.with_changes(changes),
        };
        self.polled.store(Arc::new(Polled { hooks, revision, seen }));
        Ok(revision)
    }
}

/// Whether requests for a resource are admitted whatever is configured: an administrator can always
/// repair.
pub(crate) fn is_configuration(resource: &Resource) -> bool {
    admission::is_admission_configuration(&GroupVersionKind {
        group: &resource.group,
        version: &resource.version,
        kind: &resource.kind,
    })
}

impl Unconfirmed {
    /// How it is counted; `None` for what is the caller's own doing.
    pub(crate) fn reason(&self) -> Option<ConfigRefusal> {
        match self {
            Self::Pending => Some(ConfigRefusal::Pending),
            Self::Stale(_) => Some(ConfigRefusal::Stale),
            Self::Behind => Some(ConfigRefusal::Behind),
            Self::DeadlineExceeded => None,
        }
    }

    fn why(&self) -> &str {
        match self {
            Self::Pending => "configuration is not ready",
            Self::Stale(why) => why,
            Self::Behind => "the server has not caught up with the store",
            Self::DeadlineExceeded => "the time of the request is up",
        }
    }
}

/// The answer while the configuration is not known (admission §5.4).
pub(crate) fn refusal(
    unconfirmed: &Unconfirmed,
    operation: Operation,
    resource: &Resource,
    has_initializers: bool,
) -> Status {
    if *unconfirmed == Unconfirmed::DeadlineExceeded {
        return Status::timeout();
    }
    let why = unconfirmed.why();
    let is_initializers = operation == Operation::Create && has_initializers;
    let (message, kind, explanation) = match (unconfirmed, is_initializers) {
        (Unconfirmed::Pending, true) => (
            format!("Waiting for initialization configuration to load: {why}"),
            "InitializerConfigurationPending",
            "The configuration of initializers is still being loaded, and until then nothing can \
             be created. Try again.",
        ),
        (_, true) => (
            format!("Unable to refresh the initializer configuration: {why}"),
            "InitializerConfigurationFailure",
            "The configuration of initializers could not be refreshed, and until it is nothing \
             can be created.",
        ),
        (_, false) => (
            format!("Unable to refresh the ExternalAdmissionHook configuration: {why}"),
            "ExternalAdmissionHookConfigurationFailure",
            "The configuration of admission hooks could not be refreshed, and until it is \
             nothing can be created, updated, deleted or connected to.",
        ),
    };
    let cause =
        Cause { reason: kind.to_owned(), message: explanation.to_owned(), field: String::new() };
    let details = Details {
        name: operation.name().to_owned(),
        group: resource.group.clone(),
        kind: resource.plural.clone(),
        causes: vec![cause],
        retry_after_seconds: 1,
        ..Details::default()
    };
    Status {
        reason: "LoadingConfiguration".into(),
        message,
        details: Some(Box::new(details)),
        ..Status::internal("")
    }
}
