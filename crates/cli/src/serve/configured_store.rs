//! The store that the flags choose, as one type.
//!
//! The server is generic over its store. With one type for both engines the compiler generates the
//! code of the server once, which halves the time of a release build.

use store::{
    At, Batch, Got, Key, ListRequest, Page, Prefix, ReadError, Revision, Store, StoreStatus,
    Transaction, Unavailable, Watch, WatchError, WriteError,
};
use store_embedded::EmbeddedStore;
use store_etcd::EtcdStore;

/// One of the two engines.
///
/// The futures of etcd are boxed: they are large, they wait for the network anyway, and the futures of
/// the embedded store would otherwise have their size.
pub(super) enum ConfiguredStore {
    Embedded(EmbeddedStore),
    Etcd(EtcdStore),
}

/// A running watch of one of the two engines.
pub(super) enum ConfiguredWatch {
    Embedded(<EmbeddedStore as Store>::Watch),
    Etcd(Box<<EtcdStore as Store>::Watch>),
}

impl Store for ConfiguredStore {
    type Watch = ConfiguredWatch;

    async fn get(&self, key: &Key, at: At) -> Result<Got, ReadError> {
        match self {
            Self::Embedded(store) => store.get(key, at).await,
            Self::Etcd(store) => Box::pin(store.get(key, at)).await,
        }
    }

    async fn list(&self, prefix: &Prefix, request: ListRequest) -> Result<Page, ReadError> {
        match self {
            Self::Embedded(store) => store.list(prefix, request).await,
            Self::Etcd(store) => Box::pin(store.list(prefix, request)).await,
        }
    }

    async fn write(&self, transaction: Transaction) -> Result<Revision, WriteError> {
        match self {
            Self::Embedded(store) => store.write(transaction).await,
            Self::Etcd(store) => Box::pin(store.write(transaction)).await,
        }
    }

    async fn watch(&self, prefix: Prefix, after: Revision) -> Result<Self::Watch, WatchError> {
        match self {
            Self::Embedded(store) => {
                store.watch(prefix, after).await.map(ConfiguredWatch::Embedded)
            }
            Self::Etcd(store) => {
                let watch = Box::pin(store.watch(prefix, after)).await?;
                Ok(ConfiguredWatch::Etcd(Box::new(watch)))
            }
        }
    }

    async fn current_rev(&self) -> Result<Revision, ReadError> {
        match self {
            Self::Embedded(store) => store.current_rev().await,
            Self::Etcd(store) => Box::pin(store.current_rev()).await,
        }
    }

    async fn wait_for(&self, revision: Revision) -> Result<Revision, ReadError> {
        match self {
            Self::Embedded(store) => store.wait_for(revision).await,
            Self::Etcd(store) => Box::pin(store.wait_for(revision)).await,
        }
    }

    async fn compact(&self, revision: Revision) -> Result<Revision, ReadError> {
        match self {
            Self::Embedded(store) => store.compact(revision).await,
            Self::Etcd(store) => Box::pin(store.compact(revision)).await,
        }
    }

    async fn compact_floor(&self) -> Result<Revision, ReadError> {
        match self {
            Self::Embedded(store) => store.compact_floor().await,
            Self::Etcd(store) => Box::pin(store.compact_floor()).await,
        }
    }

    async fn health(&self) -> Result<(), Unavailable> {
        match self {
            Self::Embedded(store) => store.health().await,
            Self::Etcd(store) => Box::pin(store.health()).await,
        }
    }

    fn status(&self) -> StoreStatus {
        match self {
            Self::Embedded(store) => store.status(),
            Self::Etcd(store) => store.status(),
        }
    }

    async fn close(&self) {
        match self {
            Self::Embedded(store) => store.close().await,
            Self::Etcd(store) => Box::pin(store.close()).await,
        }
    }
}

impl Watch for ConfiguredWatch {
    async fn next(&mut self) -> Result<Batch, WatchError> {
        match self {
            Self::Embedded(watch) => watch.next().await,
            Self::Etcd(watch) => Box::pin(watch.next()).await,
        }
    }
}
