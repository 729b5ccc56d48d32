//! Watches that continue after a crash of the member, or that start before the window of events.

use std::time::Duration;

use etcd_testing::Member;
use store::{ExpectedKeyState, Revision, Store, WriteError};

use crate::member::open;
use crate::shorthand::{create, events, is_unsure, put, things};

/// Retries to create a key until the member accepts it.
async fn insist(store: &store_etcd::EtcdStore, name: &str) {
    loop {
        match store.put(put(name, "x", ExpectedKeyState::Absent)).await {
            Ok(_) | Err(WriteError::Conflict { .. }) => return,
            Err(error) => assert!(is_unsure(&error), "{error}"),
        }
        // waits for a real process: etcd, which restarts
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_watch_continues_after_a_member_restart() {
    let mut member = Member::alone();
    let store = open(&[&member]).await;
    let start = store.current_rev().await.unwrap();
    let mut watch = store.watch(things(), start).await.unwrap();
    let mut told = Vec::new();
    let mut complete_through = start;
    for round in 0..3 {
        create(&store, &format!("{round}-before"), "x").await;
        member.kill();
        member.restart();
        insist(&store, &format!("{round}-after")).await;
        // The watch reads the events of the first rounds while the member is killed again.
        if round > 0 {
            let current = store.current_rev().await.unwrap();
            told.extend(events(&mut *watch, complete_through, current).await);
            complete_through = current;
        }
    }
    let names: Vec<&str> = told.iter().map(|event| event.key.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["0-before", "0-after", "1-before", "1-after", "2-before", "2-after"]);
}

/// A server that has just started has few events in memory, and its clients continue from older revisions.
#[tokio::test]
async fn watches_behind_the_window_read_from_etcd() {
    let member = Member::alone();
    let store = std::sync::Arc::new(open(&[&member]).await);
    let start = store.current_rev().await.unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..20 {
        let store = store.clone();
        writers.spawn(async move {
            for n in 0..80 {
                create(&store, &format!("{writer}/{n}"), "x").await;
            }
        });
    }
    writers.join_all().await;
    let end = store.current_rev().await.unwrap();
    assert_eq!(end.as_u64(), start.as_u64() + 1600);
    let later = open(&[&member]).await;
    let mut watches = tokio::task::JoinSet::new();
    for n in 0..40 {
        let after = Revision::new(start.as_u64() + 30 * n);
        let mut watch = later.watch(things(), after).await.unwrap();
        watches.spawn(async move { (after, events(&mut *watch, after, end).await.len() as u64) });
    }
    for (after, n_told) in watches.join_all().await {
        assert_eq!(n_told, end.as_u64() - after.as_u64(), "after {after}");
    }
}
