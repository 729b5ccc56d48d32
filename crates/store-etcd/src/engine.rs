//! The etcd store: implements `Store` over the client and the shared watch.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use store::{
    At, GetResult, Key, ListPage, ListRequest, Prefix, ReadError, Revision, Store, StoreFuture,
    Transaction, Unavailable, WakeOrder, Watch, WatchError, WriteError,
};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::client::Client;
use crate::compactor;
use crate::event_stream;
use crate::format_version::{self, FormatVersionError};
use crate::lease_pool::LeasePool;
use crate::options::{OpenError, Options, parse_member_addresses};
use crate::read::{self, PrefixInUse};
use crate::shared_watch::SharedWatch;
use crate::watch::{CATCH_UPS_MAX, EtcdWatch};
use crate::write;

/// Timeout of a health check.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);

/// A store that keeps its data in an etcd cluster.
///
/// Dropping it stops its tasks and watches; [`Store::close`] also waits for running writes.
pub struct EtcdStore {
    shared_state: Arc<SharedState>,
    lease_pool: LeasePool,
    prefix: Prefix,
    /// The tasks that follow the events of the cluster, probe failed members and compact.
    background_tasks: Vec<AbortHandle>,
}

/// State shared by callers, watches and tasks.
pub(crate) struct SharedState {
    pub(crate) client: Client,
    pub(crate) shared_watch: SharedWatch,
    /// Permits of watches that read from etcd because they are behind the window.
    pub(crate) catch_up_permits: Semaphore,
}

/// Prints the prefix, not the addresses of members.
impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdStore").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl EtcdStore {
    /// Starts the tasks of the store in the current tokio runtime. Does not connect: the first request shows
    /// whether the cluster is reachable.
    pub fn open(options: Options) -> StoreFuture<'static, Result<Self, OpenError>> {
        Box::pin(Self::start_tasks(options))
    }

    async fn start_tasks(options: Options) -> Result<Self, OpenError> {
        let client = Client::new(parse_member_addresses(&options)?, options.request_timeout);
        let shared_state = Arc::new(SharedState {
            client,
            shared_watch: SharedWatch::new(),
            catch_up_permits: Semaphore::new(CATCH_UPS_MAX),
        });
        let (follower, prober) = (shared_state.clone(), shared_state.clone());
        let follow = async move { follower.shared_watch.run(&follower.client).await };
        let probe = async move { prober.client.probe_failed_members().await };
        let mut tasks =
            vec![tokio::spawn(follow).abort_handle(), tokio::spawn(probe).abort_handle()];
        if let Some(every) = options.compaction_interval.filter(|every| !every.is_zero()) {
            let shared_state = shared_state.clone();
            let compact = async move {
                compactor::compact_periodically(
                    &shared_state.client,
                    &shared_state.shared_watch,
                    every,
                )
                .await
            };
            tasks.push(tokio::spawn(compact).abort_handle());
        }
        Ok(Self {
            shared_state,
            lease_pool: LeasePool::default(),
            prefix: options.prefix,
            background_tasks: tasks,
        })
    }

    /// Refuses a prefix under which another API server keeps its objects. Reads all values under the prefix, so
    /// call it once at the start of a server.
    pub fn check_prefix_unused(&self) -> StoreFuture<'_, Result<(), PrefixInUse>> {
        Box::pin(read::check_prefix_unused(&self.shared_state.client, &self.prefix))
    }

    /// Refuses a prefix under which a program with a later format version keeps its objects. Writes the format
    /// version of this program if there is none.
    pub fn check_format_version(&self) -> StoreFuture<'_, Result<(), FormatVersionError>> {
        Box::pin(format_version::check_format_version(self, &self.prefix))
    }

    fn stop(&self) {
        self.shared_state.client.stop_accepting_requests();
        self.shared_state.shared_watch.watch_notifier.close();
        self.shared_state.catch_up_permits.close();
        self.background_tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Drop for EtcdStore {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Store for EtcdStore {
    fn get<'a>(&'a self, key: &'a Key, at: At) -> StoreFuture<'a, Result<GetResult, ReadError>> {
        Box::pin(read::get(&self.shared_state.client, key, at))
    }

    fn list<'a>(
        &'a self,
        prefix: &'a Prefix,
        request: ListRequest,
    ) -> StoreFuture<'a, Result<ListPage, ReadError>> {
        Box::pin(read::list(&self.shared_state.client, prefix, request))
    }

    fn write(&self, transaction: Transaction) -> StoreFuture<'_, Result<Revision, WriteError>> {
        Box::pin(write::write(&self.shared_state.client, &self.lease_pool, transaction))
    }

    fn watch_with_wake_order(
        &self,
        prefix: Prefix,
        after: Revision,
        order: WakeOrder,
    ) -> StoreFuture<'_, Result<Box<dyn Watch>, WatchError>> {
        Box::pin(async move {
            let watch = EtcdWatch::start(self.shared_state.clone(), prefix, after, order)?;
            Ok(Box::new(watch) as Box<dyn Watch>)
        })
    }

    fn current_rev(&self) -> StoreFuture<'_, Result<Revision, ReadError>> {
        Box::pin(read::read_current_revision(&self.shared_state.client))
    }

    fn wait_for_revision(
        &self,
        revision: Revision,
    ) -> StoreFuture<'_, Result<Revision, ReadError>> {
        Box::pin(async move {
            // `/` is a prefix of every key.
            let mut revision_changed = self
                .shared_state
                .shared_watch
                .watch_notifier
                .subscribe_to_prefix("/", WakeOrder::AtOnce)
                .ok_or_else(Unavailable::store_closed)?;
            loop {
                let current = self.current_rev().await?;
                if current >= revision {
                    return Ok(current);
                }
                while self
                    .shared_state
                    .shared_watch
                    .complete_through_revision()
                    .is_none_or(|complete_through| complete_through < revision)
                {
                    revision_changed.wait_for_newer_revision().await?;
                }
            }
        })
    }

    fn compact(&self, revision: Revision) -> StoreFuture<'_, Result<Revision, ReadError>> {
        Box::pin(compactor::compact(
            &self.shared_state.client,
            &self.shared_state.shared_watch,
            revision,
        ))
    }

    fn compaction_floor(&self) -> StoreFuture<'_, Result<Revision, ReadError>> {
        Box::pin(event_stream::find_compaction_floor(&self.shared_state.client))
    }

    fn check_health(&self) -> StoreFuture<'_, Result<(), Unavailable>> {
        Box::pin(read::check_health(&self.shared_state.client, &self.prefix, HEALTH_TIMEOUT))
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.stop();
            self.shared_state.client.wait_for_requests().await;
        })
    }
}
