//! Unreachable members, and limits.

use std::time::Duration;

use etcd_testing::Member;
use store::{
    At, ExpectedKeyState, ReadError, Revision, Store, WATCHES_MAX, WatchError, WriteError,
};
use store_etcd::{EtcdStore, Options};

use crate::member::{open, open_with, options};
use crate::shorthand::{create, key, put, text, things};

/// No process listens there: the port is reserved and needs privileges that tests do not have.
const NOWHERE: &str = "http://127.0.0.1:1";

/// A request that was never sent goes to another member, even a write.
#[tokio::test]
async fn unreachable_endpoints_are_skipped() {
    let member = Member::alone();
    let endpoints = vec![NOWHERE.to_owned(), member.url.clone(), NOWHERE.to_owned()];
    let store = open_with(Options { endpoints, ..options(&[&member]) }).await;
    for n in 0..9 {
        create(&store, &n.to_string(), "x").await;
        assert!(text(&store, &n.to_string()).await.is_some());
    }
}

#[tokio::test]
async fn an_unreachable_cluster_is_unavailable() {
    let member = Member::alone();
    let endpoints = vec![NOWHERE.to_owned()];
    let store = EtcdStore::open(Options { endpoints, ..options(&[&member]) }).await.unwrap();
    let error = store.check_health().await.unwrap_err();
    assert!(error.reason.contains(NOWHERE), "{error}");
    let read = store.get(&key("a"), At::Newest).await;
    assert!(matches!(read, Err(ReadError::Unavailable(_))), "{read:?}");
    let write = store.put(put("a", "x", ExpectedKeyState::Absent)).await;
    assert!(matches!(write, Err(WriteError::Unavailable(_))), "{write:?}");
}

#[tokio::test]
async fn a_silent_member_times_out() {
    let member = Member::alone();
    let request_timeout = Duration::from_millis(300);
    let store = open_with(Options { request_timeout, ..options(&[&member]) }).await;
    member.freeze();
    assert_eq!(store.get(&key("a"), At::Newest).await, Err(ReadError::Timeout));
    assert_eq!(store.put(put("a", "x", ExpectedKeyState::Absent)).await, Err(WriteError::Timeout));
    assert!(store.check_health().await.is_err());
    member.thaw();
}

/// Two stores on one cluster: each delivers the writes of the other, and both check the same key.
#[tokio::test]
async fn stores_deliver_each_others_writes() {
    let member = Member::alone();
    let (one, two) = (open(&[&member]).await, open(&[&member]).await);
    let start = one.current_rev().await.unwrap();
    let mut watch = two.watch(things(), start).await.unwrap();
    let made = create(&one, "a", "1").await;
    let told = crate::shorthand::events(&mut *watch, start, made).await;
    assert_eq!(told.iter().map(|event| event.revision).collect::<Vec<_>>(), [made]);
    let second = two.put(put("a", "2", ExpectedKeyState::At(made))).await.unwrap();
    let stale = one.put(put("a", "3", ExpectedKeyState::At(made))).await;
    let Err(WriteError::Conflict { current: Some(current) }) = stale else { panic!("{stale:?}") };
    assert_eq!((current.mod_rev, &*current.value), (second, &b"2"[..]));
}

#[tokio::test]
async fn the_number_of_watches_is_limited() {
    let member = Member::alone();
    let store = open(&[&member]).await;
    let mut watches = Vec::new();
    for _ in 0..WATCHES_MAX {
        watches.push(store.watch(things(), Revision::FIRST).await.unwrap());
    }
    let refused = store.watch(things(), Revision::FIRST).await;
    assert!(matches!(refused, Err(WatchError::Unavailable(_))), "{refused:?}");
    watches.pop();
    store.watch(things(), Revision::FIRST).await.unwrap();
}
