//! Leases.

use std::collections::BTreeSet;
use std::time::Duration;

use store::{Change, Expect, Put, Store, Watch};

use crate::member::{Member, open};
use crate::shorthand::{put, things};

/// Keys that expire together share a lease and so a revision, and a watch tells them together.
#[tokio::test]
async fn keys_that_expire_together_are_told_together() {
    let member = Member::alone();
    let store = open(&[&member]).await;
    let start = store.current_rev().await.unwrap();
    let ttl = Some(Duration::from_secs(2));
    for n in 0..5 {
        let put = Put { ttl, ..put(&n.to_string(), "x", Expect::Absent) };
        store.put(put).await.unwrap();
    }
    let mut watch = store.watch(things(), start).await.unwrap();
    let mut gone = Vec::new();
    while gone.len() < 5 {
        let batch = watch.next().await.unwrap();
        let deletes = batch.events.into_iter();
        gone.extend(deletes.filter(|event| matches!(event.change, Change::Delete { .. })));
        // A batch ends where a revision does.
        assert!(gone.is_empty() || gone.len() == 5, "{gone:?}");
    }
    let revisions: BTreeSet<_> = gone.iter().map(|event| event.revision).collect();
    assert_eq!(revisions.len(), 1, "{gone:?}");
    assert_eq!(store.current_rev().await.unwrap().number(), start.number() + 6);
}
