//! The contract, each test with a member of its own: the counter is one for the whole cluster.

use std::time::Duration;

use etcd_testing::Member;
use store::{Delete, Expect, ListRequest, Prefix, Store};
use store_contract::Harness;
use store_etcd::EtcdStore;

use crate::member::open;

struct Fresh {
    member: Member,
}

fn fresh() -> Fresh {
    Fresh { member: Member::alone() }
}

impl Harness for Fresh {
    type Store = EtcdStore;

    async fn fresh(&self) -> EtcdStore {
        let store = open(&[&self.member]).await;
        let all = Prefix::new("/registry/").unwrap();
        for item in store.list(&all, ListRequest::default()).await.unwrap().items {
            let expect = Expect::At(item.entry.mod_rev);
            store.delete(Delete { key: item.key, expect, shared_revision: None }).await.unwrap();
        }
        store
    }

    /// etcd has no clock that could be moved.
    async fn pass(&self, _store: &EtcdStore, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Every operation is a round trip and a sync of the disk.
    fn cases(&self) -> u32 {
        12
    }
}

store_contract::suite!(fresh());
