//! Opens stores on members of etcd.

use std::time::{Duration, Instant};

use etcd_testing::Member;
use store::{Prefix, Store};
use store_etcd::{EtcdStore, Options};

/// The longest time until a store is healthy. Elections and busy machines take seconds.
const UP_MAX: Duration = Duration::from_secs(30);

/// Options for these members, without compaction.
pub(crate) fn options(members: &[&Member]) -> Options {
    let endpoints = members.iter().map(|member| member.url.clone()).collect();
    let prefix = Prefix::new("/registry/").unwrap();
    Options { compaction_interval: None, ..Options::new(endpoints, prefix) }
}

/// Opens a store on these members and waits until it is healthy.
pub(crate) async fn open(members: &[&Member]) -> EtcdStore {
    open_with(options(members)).await
}

pub(crate) async fn open_with(options: Options) -> EtcdStore {
    let store = EtcdStore::open(options).await.unwrap();
    let began = Instant::now();
    while let Err(error) = store.check_health().await {
        assert!(began.elapsed() < UP_MAX, "{error}");
        // waits for a real process: etcd, which starts
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    store
}
