//! Runs the contract tests. Each test has its own member, because the revision counter is global to a cluster.

use std::time::Duration;

use etcd_testing::Member;
use store::{Delete, ExpectedKeyState, ListRequest, Prefix, Store};
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
            let expect = ExpectedKeyState::At(item.entry.mod_rev);
            store
                .delete(Delete {
                    key: item.key,
                    expected_state: expect,
                    key_group_revision_action: None,
                })
                .await
                .unwrap();
        }
        store
    }

    /// Waits, because tests cannot set the clock of etcd.
    async fn pass(&self, _store: &EtcdStore, time: Duration) {
        // waits for a real process: etcd, whose leases expire by its own clock
        tokio::time::sleep(time).await;
    }

    /// Few cases, because every operation takes a round trip and a disk sync.
    fn cases(&self) -> u32 {
        12
    }
}

store_contract::suite!(fresh());
