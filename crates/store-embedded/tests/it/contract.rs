//! Runs the contract tests with the default options, and with options that page out all history.

use std::time::Duration;

use store::Store;
use store_contract::Harness;
use store_embedded::{EmbeddedStore, Limits, Options, SyncMode};
use tempfile::TempDir;

use crate::scratch::Hands;

struct Fresh {
    hands: Hands,
    directories: TempDir,
    options: Options,
}

fn fresh(sync_mode: SyncMode, limits: Limits) -> Fresh {
    let hands = Hands::default();
    let options = Options { sync_mode, limits, clock: hands.clock(), ..Options::default() };
    Fresh { hands, directories: TempDir::new().unwrap(), options }
}

impl Harness for Fresh {
    type Store = EmbeddedStore;

    async fn fresh(&self) -> EmbeddedStore {
        let directory = TempDir::new_in(self.directories.path()).unwrap().keep();
        EmbeddedStore::open(&directory, self.options.clone()).unwrap()
    }

    async fn pass(&self, store: &EmbeddedStore, time: Duration) {
        self.hands.advance(time);
        store.run_periodic_work().await;
    }
}

mod always {
    store_contract::suite!(super::fresh(
        store_embedded::SyncMode::Always,
        store_embedded::Limits::default()
    ));
}

mod interval {
    store_contract::suite!(super::fresh(
        store_embedded::SyncMode::Interval(std::time::Duration::from_millis(5)),
        store_embedded::Limits::default()
    ));
}

/// Options with which no history stays in memory, each log has a few records and snapshots are frequent.
mod tight {
    store_contract::suite!(super::fresh(
        store_embedded::SyncMode::Always,
        store_embedded::Limits {
            history_memory_bytes_max: 0,
            log_file_bytes_max: 100,
            checkpoint_bytes_min: 0,
            ..store_embedded::Limits::default()
        }
    ));
}

#[tokio::test]
async fn an_empty_store_is_at_the_first_revision() {
    let harness = fresh(SyncMode::Always, Limits::default());
    let store = harness.fresh().await;
    assert_eq!(store.current_rev().await, Ok(store::Revision::FIRST));
    assert_eq!(store.compaction_floor().await, Ok(store::Revision::FIRST));
    assert_eq!(store.check_health().await, Ok(()));
}
