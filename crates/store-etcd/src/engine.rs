//! The store as callers see it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use store::{
    At, Got, Key, ListRequest, Page, Prefix, ReadError, Revision, Store, StoreFuture, Transaction,
    Unavailable, Watch, WatchError, WriteError,
};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::client::{Client, closed};
use crate::compactor;
use crate::event_stream;
use crate::format::{self, FormatError};
use crate::lease_pool::LeasePool;
use crate::options::{OpenError, Options, addresses};
use crate::read::{self, PrefixInUse};
use crate::shared_watch::SharedWatch;
use crate::watch::{CATCH_UPS_MAX, EtcdWatch};
use crate::write;

/// How long the cluster may take to say that it is well.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);

/// A store on an etcd cluster.
///
/// Dropping it stops its tasks and watches; [`Store::close`] also waits for writes on their way.
pub struct EtcdStore {
    core: Arc<Core>,
    leases: LeasePool,
    prefix: Prefix,
    /// Those that follow the cluster, ask after members that have failed, and compact.
    tasks: Vec<AbortHandle>,
}

/// State shared by callers, watches and tasks.
pub(crate) struct Core {
    pub(crate) client: Client,
    pub(crate) shared_watch: SharedWatch,
    /// The turns of watches that read from etcd because they are behind.
    pub(crate) catch_ups: Semaphore,
}

/// Tells whose keys it keeps, not where they lie.
impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdStore").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl EtcdStore {
    /// Starts the tasks of the store, in the current runtime of tokio. Whether the cluster can be
    /// reached shows with the first request.
    pub fn open(options: Options) -> StoreFuture<'static, Result<Self, OpenError>> {
        Box::pin(Self::start_tasks(options))
    }

    async fn start_tasks(options: Options) -> Result<Self, OpenError> {
        let client = Client::new(addresses(&options)?, options.request_timeout);
        let core = Arc::new(Core {
            client,
            shared_watch: SharedWatch::new(),
            catch_ups: Semaphore::new(CATCH_UPS_MAX),
        });
        let (follower, prober) = (core.clone(), core.clone());
        let follow = async move { follower.shared_watch.run(&follower.client).await };
        let probe = async move { prober.client.probe_failed_members().await };
        let mut tasks =
            vec![tokio::spawn(follow).abort_handle(), tokio::spawn(probe).abort_handle()];
        if let Some(every) = options.compaction_interval.filter(|every| !every.is_zero()) {
            let core = core.clone();
            let compact = async move {
                compactor::compact_periodically(&core.client, &core.shared_watch, every).await
            };
            tasks.push(tokio::spawn(compact).abort_handle());
        }
        Ok(Self { core, leases: LeasePool::default(), prefix: options.prefix, tasks })
    }

    /// Refuses a prefix under which another API server keeps its objects. Reads all values there, so
    /// it is for the start of a server.
    pub fn check_prefix(&self) -> StoreFuture<'_, Result<(), PrefixInUse>> {
        Box::pin(read::check_prefix(&self.core.client, &self.prefix))
    }

    /// Refuses a prefix under which a program of a later version keeps its objects, and says under it
    /// which version this program writes.
    pub fn check_format(&self) -> StoreFuture<'_, Result<(), FormatError>> {
        Box::pin(format::check(self, &self.prefix))
    }

    fn stop(&self) {
        self.core.client.stop_accepting();
        self.core.shared_watch.notifier.close();
        self.core.catch_ups.close();
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Drop for EtcdStore {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Store for EtcdStore {
    fn get<'a>(&'a self, key: &'a Key, at: At) -> StoreFuture<'a, Result<Got, ReadError>> {
        Box::pin(read::get(&self.core.client, key, at))
    }

    fn list<'a>(
        &'a self,
        prefix: &'a Prefix,
        request: ListRequest,
    ) -> StoreFuture<'a, Result<Page, ReadError>> {
        Box::pin(read::list(&self.core.client, prefix, request))
    }

    fn write(&self, transaction: Transaction) -> StoreFuture<'_, Result<Revision, WriteError>> {
        Box::pin(write::write(&self.core.client, &self.leases, transaction))
    }

    fn watch(
        &self,
        prefix: Prefix,
        after: Revision,
    ) -> StoreFuture<'_, Result<Box<dyn Watch>, WatchError>> {
        Box::pin(async move {
            let watch = EtcdWatch::start(self.core.clone(), prefix, after)?;
            Ok(Box::new(watch) as Box<dyn Watch>)
        })
    }

    fn current_rev(&self) -> StoreFuture<'_, Result<Revision, ReadError>> {
        Box::pin(read::current_revision(&self.core.client))
    }

    fn wait_for(&self, revision: Revision) -> StoreFuture<'_, Result<Revision, ReadError>> {
        Box::pin(async move {
            // Every key is under `/`.
            let mut revision_changed =
                self.core.shared_watch.notifier.subscribe("/").ok_or_else(closed)?;
            loop {
                let current = self.current_rev().await?;
                if current >= revision {
                    return Ok(current);
                }
                while self.core.shared_watch.through().is_none_or(|through| through < revision) {
                    revision_changed.changed().await.map_err(|_| closed())?;
                }
            }
        })
    }

    fn compact(&self, revision: Revision) -> StoreFuture<'_, Result<Revision, ReadError>> {
        Box::pin(compactor::compact(&self.core.client, &self.core.shared_watch, revision))
    }

    fn compact_floor(&self) -> StoreFuture<'_, Result<Revision, ReadError>> {
        Box::pin(event_stream::compaction_floor(&self.core.client))
    }

    fn health(&self) -> StoreFuture<'_, Result<(), Unavailable>> {
        Box::pin(read::health(&self.core.client, &self.prefix, HEALTH_TIMEOUT))
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.stop();
            self.core.client.wait_for_requests().await;
        })
    }
}
