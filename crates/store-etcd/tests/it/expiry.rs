//! Keys with a time to live, and their leases.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use etcd_testing::Member;
use store::{Change, ExpectedKeyState, Put, Store};

use crate::member::open;
use crate::shorthand::{put, text, things};

/// Keys that expire together share a lease and a revision, and a watch delivers them in one batch.
#[tokio::test]
async fn keys_that_expire_together_are_one_batch() {
    let member = Member::alone();
    let store = open(&[&member]).await;
    let start = store.current_rev().await.unwrap();
    let ttl = Some(Duration::from_secs(2));
    for n in 0..5 {
        let put = Put { ttl, ..put(&n.to_string(), "x", ExpectedKeyState::Absent) };
        store.put(put).await.unwrap();
    }
    let mut watch = store.watch(things(), start).await.unwrap();
    let mut gone = Vec::new();
    while gone.len() < 5 {
        let batch = watch.next().await.unwrap();
        let deletes = batch.events.into_iter();
        gone.extend(deletes.filter(|event| matches!(event.change, Change::Delete { .. })));
        // A batch never splits a revision.
        assert!(gone.is_empty() || gone.len() == 5, "{gone:?}");
    }
    let revisions: BTreeSet<_> = gone.iter().map(|event| event.revision).collect();
    assert_eq!(revisions.len(), 1, "{gone:?}");
    assert_eq!(store.current_rev().await.unwrap().as_u64(), start.as_u64() + 6);
}

/// A key that is renewed often, such as a heartbeat, needs few leases, and all of them expire.
#[tokio::test]
async fn a_key_that_is_renewed_takes_few_leases() {
    let member = Member::alone();
    let store = open(&[&member]).await;
    let ttl = Some(Duration::from_secs(5));
    let mut expect = ExpectedKeyState::Absent;
    for _ in 0..20 {
        // The put succeeds only if the key has not expired.
        expect =
            ExpectedKeyState::At(store.put(Put { ttl, ..put("a", "x", expect) }).await.unwrap());
        // waits for a real process: etcd, whose leases run by its own clock
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    let count = |what: &str| member.metric(&format!("etcd_debugging_lease_{what}_total")).unwrap();
    let granted = count("granted");
    assert!((1.0..=4.0).contains(&granted), "{granted} leases for twenty writes in five seconds");
    let began = Instant::now();
    while count("revoked") < granted {
        assert!(began.elapsed() < Duration::from_secs(15), "leases are left behind");
        // waits for a real process: etcd, which revokes the leases
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(text(&store, "a").await, None);
}
