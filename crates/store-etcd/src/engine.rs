//! The store as callers see it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use store::{
    At, Got, Key, ListRequest, Page, Prefix, ReadError, Revision, Store, Transaction, Unavailable,
    WatchError, WriteError,
};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::client::{Client, closed};
use crate::compactor;
use crate::format::{self, FormatError};
use crate::history;
use crate::hub::Hub;
use crate::lease::Leases;
use crate::options::{OpenError, Options, addresses};
use crate::read::{self, PrefixError};
use crate::watch::{CATCH_UPS_MAX, EtcdWatch};
use crate::write;

/// How long the cluster may take to say that it is well.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);

/// A store on an etcd cluster.
///
/// Dropping it stops its tasks and watches; [`Store::close`] also waits for writes on their way.
pub struct Etcd {
    core: Arc<Core>,
    leases: Leases,
    prefix: Prefix,
    /// Those that follow the cluster, ask after members that have failed, and compact.
    tasks: Vec<AbortHandle>,
}

/// What callers, watches and tasks share.
pub(crate) struct Core {
    pub(crate) client: Client,
    pub(crate) hub: Hub,
    /// The turns of watches that read from etcd because they are behind.
    pub(crate) catch_ups: Semaphore,
    pub(crate) n_watches: Arc<AtomicUsize>,
}

/// Tells whose keys it keeps, not where they lie.
impl fmt::Debug for Etcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Etcd").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Etcd {
    /// Starts the tasks of the store, in the current runtime of tokio. Whether the cluster can be
    /// reached shows with the first request.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let client = Client::new(addresses(&options)?, options.request_timeout);
        let core = Arc::new(Core {
            client,
            hub: Hub::new(),
            catch_ups: Semaphore::new(CATCH_UPS_MAX),
            n_watches: Arc::default(),
        });
        let (follower, prober) = (core.clone(), core.clone());
        let follow = async move { follower.hub.run(&follower.client).await };
        let probe = async move { prober.client.probe().await };
        let mut tasks =
            vec![tokio::spawn(follow).abort_handle(), tokio::spawn(probe).abort_handle()];
        if let Some(every) = options.compaction_interval.filter(|every| !every.is_zero()) {
            let core = core.clone();
            let compact = async move { compactor::run(&core.client, &core.hub, every).await };
            tasks.push(tokio::spawn(compact).abort_handle());
        }
        Ok(Self { core, leases: Leases::default(), prefix: options.prefix, tasks })
    }

    /// Refuses a prefix under which another API server keeps its objects. Reads all values there, so
    /// it is for the start of a server.
    pub async fn check_prefix(&self) -> Result<(), PrefixError> {
        read::check_prefix(&self.core.client, &self.prefix).await
    }

    /// Refuses a prefix under which a program of a later version keeps its objects, and says under it
    /// which version this program writes.
    pub async fn check_format(&self) -> Result<(), FormatError> {
        format::check(self, &self.prefix).await
    }

    fn stop(&self) {
        self.core.client.refuse();
        self.core.hub.bells.close();
        self.core.catch_ups.close();
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Store for Etcd {
    type Watch = EtcdWatch;

    async fn get(&self, key: &Key, at: At) -> Result<Got, ReadError> {
        read::get(&self.core.client, key, at).await
    }

    async fn list(&self, prefix: &Prefix, request: ListRequest) -> Result<Page, ReadError> {
        read::list(&self.core.client, prefix, request).await
    }

    async fn write(&self, transaction: Transaction) -> Result<Revision, WriteError> {
        write::write(&self.core.client, &self.leases, transaction).await
    }

    async fn watch(&self, prefix: Prefix, after: Revision) -> Result<EtcdWatch, WatchError> {
        EtcdWatch::start(self.core.clone(), prefix, after)
    }

    async fn current_rev(&self) -> Result<Revision, ReadError> {
        read::current(&self.core.client).await
    }

    async fn wait_for(&self, revision: Revision) -> Result<Revision, ReadError> {
        // Every key is under `/`.
        let mut bell = self.core.hub.bells.subscribe("/").ok_or_else(closed)?;
        loop {
            let current = self.current_rev().await?;
            if current >= revision {
                return Ok(current);
            }
            while self.core.hub.through().is_none_or(|through| through < revision) {
                bell.changed().await.map_err(|_| closed())?;
            }
        }
    }

    async fn compact(&self, revision: Revision) -> Result<Revision, ReadError> {
        compactor::compact(&self.core.client, &self.core.hub, revision).await
    }

    async fn compact_floor(&self) -> Result<Revision, ReadError> {
        history::floor(&self.core.client).await
    }

    async fn health(&self) -> Result<(), Unavailable> {
        read::health(&self.core.client, &self.prefix, HEALTH_TIMEOUT).await
    }

    async fn close(&self) {
        self.stop();
        self.core.client.finish().await;
    }
}
