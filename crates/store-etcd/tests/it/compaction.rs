//! Periodic compaction by several servers.

use std::time::Duration;

use etcd_testing::Member;
use store::{At, Revision, Store};
use store_etcd::Options;

use crate::member::{open_with, options};
use crate::shorthand::{create, key};

/// Two servers compact one cluster once per interval, each time to the newest revision of the previous round.
#[tokio::test]
async fn one_of_several_servers_compacts() {
    let every = Duration::from_millis(400);
    let member = Member::alone();
    let with = || Options { compaction_interval: Some(every), ..options(&[&member]) };
    let (one, two) = (open_with(with()).await, open_with(with()).await);
    let old = create(&one, "a", "1").await;
    let mut floors = Vec::new();
    let mut last = Revision::FIRST;
    while floors.len() < 4 {
        // waits for a real process: etcd, which the store compacts at an interval
        tokio::time::sleep(every / 10).await;
        let floor = two.compaction_floor().await.unwrap();
        assert!(floor >= last, "the floor decreases");
        if floor > last {
            floors.push((tokio::time::Instant::now(), floor));
            last = floor;
        }
    }
    let (first, end) = (floors[0], floors[3]);
    // Every compaction round writes its key once, whichever server compacts.
    let current = two.current_rev().await.unwrap().as_u64();
    assert!(current <= old.as_u64() + 8, "more rounds than floors: {current}");
    assert!(end.0 - first.0 >= 2 * every, "{floors:?}");
    assert!(end.1 >= old);
    let got = one.get(&key("a"), At::Newest).await.unwrap();
    assert_eq!(got.entry.map(|entry| entry.mod_rev), Some(old));
}
