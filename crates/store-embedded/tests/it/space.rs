//! Quota, disk space and fair shares of tenants.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use store::{
    Alarm, At, Delete, ExpectedKeyState, Key, Put, Revision, Store, Transaction, WatchError,
    WriteError,
};
use store_embedded::{EmbeddedStore, FreeSpaceSource, Limits, Options};
use tempfile::TempDir;

use crate::scratch::{Hands, tight};

const MIB: usize = 1024 * 1024;

fn limits() -> Limits {
    Limits { history_revisions_min: 10, disk_free_bytes_min: 0, ..Limits::default() }
}

fn open(directory: &Path, hands: &Hands, limits: &Limits) -> EmbeddedStore {
    EmbeddedStore::open(directory, Options { limits: limits.clone(), ..hands.options() }).unwrap()
}

fn key(namespace: &str, name: &str) -> Key {
    Key::new(&format!("/registry/things/{namespace}/{name}")).unwrap()
}

/// Writes a value of this many bytes, whether or not the key exists.
async fn try_set(
    store: &EmbeddedStore,
    namespace: &str,
    name: &str,
    bytes: usize,
) -> Result<Revision, WriteError> {
    let key = key(namespace, name);
    let current = store.get(&key, At::Newest).await.unwrap().entry;
    let expect =
        current.map_or(ExpectedKeyState::Absent, |entry| ExpectedKeyState::At(entry.mod_rev));
    let value = Bytes::from(vec![b'x'; bytes]);
    store
        .put(Put { key, value, expected_state: expect, ttl: None, key_group_revision_action: None })
        .await
}

/// Writes a value as a step of deleting the key.
async fn try_remove_later(
    store: &EmbeddedStore,
    namespace: &str,
    name: &str,
    bytes: usize,
) -> Result<Revision, WriteError> {
    let key = key(namespace, name);
    let entry = store.get(&key, At::Newest).await.unwrap().entry.unwrap();
    let (value, expect) = (Bytes::from(vec![b'y'; bytes]), ExpectedKeyState::At(entry.mod_rev));
    let put =
        Put { key, value, expected_state: expect, ttl: None, key_group_revision_action: None };
    store.write(Transaction::from(put).mark_as_step_of_object_deletion()).await
}

async fn try_unset(
    store: &EmbeddedStore,
    namespace: &str,
    name: &str,
) -> Result<Revision, WriteError> {
    let key = key(namespace, name);
    let entry = store.get(&key, At::Newest).await.unwrap().entry.unwrap();
    store
        .delete(Delete {
            key,
            expected_state: ExpectedKeyState::At(entry.mod_rev),
            key_group_revision_action: None,
        })
        .await
}

fn disk_bytes(directory: &Path) -> u64 {
    let files = fs::read_dir(directory).unwrap();
    files.map(|entry| entry.unwrap().metadata().map_or(0, |found| found.len())).sum()
}

fn full() -> Result<Revision, WriteError> {
    Err(WriteError::NoSpace { tenant: None })
}

/// Many namespaces write one key each in turn, so that no share is too large.
async fn churn(store: &EmbeddedStore, n_writes: usize, bytes: usize) {
    for n in 0..n_writes {
        try_set(store, &format!("ns{}", n % 8), "a", bytes).await.unwrap();
    }
}

#[tokio::test]
async fn history_has_a_largest_size() {
    let directory = TempDir::new().unwrap();
    let hands = Hands::default();
    let bytes_max = 64 * MIB as u64;
    let limits = Limits { history_bytes_max: bytes_max, ..limits() };
    let store = open(directory.path(), &hands, &limits);
    churn(&store, 400, MIB).await;
    let usage = store.status().space_usage.unwrap();
    store.run_periodic_work().await;
    assert!(usage.history_bytes <= bytes_max + bytes_max / 8, "{usage:?}");
    let floor = store.compaction_floor().await.unwrap();
    assert!(floor > Revision::new(300), "{floor}");
    let prefix = store::Prefix::new("/registry/things/").unwrap();
    let watch = store.watch(prefix, Revision::new(100)).await;
    assert!(matches!(watch, Err(WatchError::Compacted { .. })), "{watch:?}");
    // The files are pages, the logs of the history, a snapshot, and logs that do not justify another snapshot.
    store.run_periodic_work().await;
    let disk = disk_bytes(directory.path());
    assert!(disk < 3 * bytes_max + 128 * MIB as u64, "{disk} bytes on disk");
}

/// An earlier version kept the whole history in memory after a restart.
#[tokio::test]
async fn a_restart_takes_no_more_memory_for_history_than_running() {
    let directory = TempDir::new().unwrap();
    let hands = Hands::default();
    let memory = 4 * MIB;
    let limits = Limits { history_memory_bytes_max: memory, ..limits() };
    let store = open(directory.path(), &hands, &limits);
    churn(&store, 100, MIB).await;
    store.run_periodic_work().await;
    let running = store.status().space_usage.unwrap();
    store.close().await;
    drop(store);
    let store = open(directory.path(), &hands, &limits);
    let restarted = store.status().space_usage.unwrap();
    for usage in [running, restarted] {
        assert!(usage.history_memory_bytes <= 3 * memory as u64, "{usage:?}");
        assert!(usage.history_bytes > 150 * MIB as u64, "{usage:?}");
    }
    assert_eq!(running.live_bytes, restarted.live_bytes);
    assert_eq!(running.history_bytes, restarted.history_bytes);
    // The whole history can be read, from files.
    let got = store.get(&key("ns1", "a"), At::Exactly(Revision::new(3))).await.unwrap();
    assert_eq!(got.entry.map(|entry| entry.mod_rev), Some(Revision::new(3)));
}

/// Opening the data of a program without limits neither reads it all into memory nor writes it all to pages.
#[tokio::test]
async fn a_restart_forgets_history_beyond_its_size() {
    let directory = TempDir::new().unwrap();
    let hands = Hands::default();
    let store = open(directory.path(), &hands, &limits());
    churn(&store, 100, MIB).await;
    store.close().await;
    drop(store);
    let bytes_max = 16 * MIB as u64;
    let store =
        open(directory.path(), &hands, &Limits { history_bytes_max: bytes_max, ..limits() });
    let usage = store.status().space_usage.unwrap();
    assert!(usage.history_bytes <= bytes_max + bytes_max / 8, "{usage:?}");
    assert_eq!(store.current_rev().await, Ok(Revision::new(101)));
}

/// A namespace that writes too much is throttled, and another namespace is not affected.
#[tokio::test]
async fn a_flood_of_one_namespace_is_put_off_and_others_write_on() {
    let directory = TempDir::new().unwrap();
    let hands = Hands::default();
    let limits = Limits { history_bytes_max: 64 * MIB as u64, ..limits() };
    let store = open(directory.path(), &hands, &limits);
    let start = try_set(&store, "quiet", "a", 10).await.unwrap();
    let mut n_written = 0;
    let error = loop {
        match try_set(&store, "flood", "a", MIB).await {
            Ok(_) => n_written += 1,
            Err(error) => break error,
        }
        assert!(n_written < 100, "the flood has no end");
    };
    let WriteError::Throttled { tenant, retry_after } = error else { panic!("{error}") };
    assert_eq!(&*tenant, "/registry/things/flood/");
    assert!(retry_after > Duration::ZERO);
    assert!(n_written > 10, "{n_written}");
    for n in 0..100 {
        let name = format!("{n}");
        try_set(&store, "quiet", &name, 1000).await.unwrap();
    }
    // Small writes to the same namespace pass, and so do writes of any size that are steps of a delete.
    try_set(&store, "flood", "small", 5000).await.unwrap();
    try_remove_later(&store, "flood", "a", MIB).await.unwrap();
    try_unset(&store, "flood", "a").await.unwrap();
    store.run_periodic_work().await;
    assert_eq!(
        store.compaction_floor().await,
        Ok(Revision::FIRST),
        "nobody else's history is gone"
    );
    let got = store.get(&key("quiet", "a"), At::Exactly(start)).await.unwrap();
    assert_eq!(got.entry.map(|entry| entry.mod_rev), Some(start));
    let usage = store.status().space_usage.unwrap();
    assert_eq!((usage.n_throttled_writes, usage.n_refused_writes), (1, 0));
    // After compaction of its history the namespace may write again.
    hands.advance(Duration::from_secs(10));
    store.run_periodic_work().await;
    hands.advance(Duration::from_secs(600));
    store.run_periodic_work().await;
    try_set(&store, "flood", "a", MIB).await.unwrap();
}

/// The limits hold after a restart too, because the usage is counted from the files.
#[tokio::test]
async fn a_flood_is_put_off_after_a_restart_too() {
    let directory = TempDir::new().unwrap();
    let hands = Hands::default();
    let limits = Limits { history_bytes_max: 64 * MIB as u64, ..limits() };
    let store = open(directory.path(), &hands, &limits);
    while try_set(&store, "flood", "a", MIB).await.is_ok() {}
    store.close().await;
    drop(store);
    let store = open(directory.path(), &hands, &limits);
    let again = try_set(&store, "flood", "a", MIB).await;
    assert!(matches!(again, Err(WriteError::Throttled { .. })), "{again:?}");
    try_set(&store, "quiet", "a", MIB).await.unwrap();
}

#[tokio::test]
async fn a_full_quota_refuses_what_adds_and_clears_by_itself() {
    const PIECE: usize = MIB / 4;
    let directory = TempDir::new().unwrap();
    let hands = Hands::default();
    let limits = Limits { quota_bytes: 16 * MIB as u64, ..limits() };
    let store = open(directory.path(), &hands, &limits);
    let mut names = Vec::new();
    let refused = loop {
        let name = format!("{:03}", names.len());
        let namespace = format!("ns{}", names.len() % 8);
        match try_set(&store, &namespace, &name, PIECE).await {
            Ok(_) => names.push((namespace, name)),
            other => break other,
        }
        assert!(names.len() < 70, "the quota has no effect");
    };
    assert_eq!(refused, full());
    assert_eq!(names.len(), 63);
    store.run_periodic_work().await;
    assert_eq!(store.status().alarms, [Alarm::Quota]);
    assert_eq!(store.check_health().await, Ok(()), "it reads and writes");
    let (namespace, name) = &names[0];
    for (bytes, is_accepted, why) in [
        (PIECE, true, "the same size"),
        (PIECE + 1000, true, "so little is what a delete with finalizers takes"),
        (PIECE + 1000 + 1025, false, "it adds"),
        (10, true, "it shrinks"),
        (PIECE, false, "it adds again"),
    ] {
        let written = try_set(&store, namespace, name, bytes).await;
        assert_eq!(written.is_ok(), is_accepted, "{why}: {written:?}");
    }
    assert_eq!(try_set(&store, "other", "new", 10).await, full());
    let (namespace, name) = &names[1];
    try_remove_later(&store, namespace, name, PIECE + 5000).await.unwrap();
    for (namespace, name) in &names[..4] {
        try_unset(&store, namespace, name).await.unwrap();
    }
    store.run_periodic_work().await;
    assert_eq!(store.status().alarms, []);
    try_set(&store, "other", "new", 10).await.unwrap();
}

/// A tenant that holds a quarter of the quota cannot use its last quarter.
#[tokio::test]
async fn one_namespace_can_not_take_the_whole_quota() {
    let directory = TempDir::new().unwrap();
    let hands = Hands::default();
    let limits = Limits { quota_bytes: 16 * MIB as u64, ..limits() };
    let store = open(directory.path(), &hands, &limits);
    let mut n_written = 0;
    let refused = loop {
        match try_set(&store, "greedy", &format!("{n_written}"), MIB).await {
            Ok(_) => n_written += 1,
            other => break other,
        }
    };
    let tenant = Some("/registry/things/greedy/".into());
    assert_eq!((n_written, refused), (11, Err(WriteError::NoSpace { tenant })));
    try_set(&store, "modest", "a", MIB).await.unwrap();
    // Many small updates cannot exceed the share of the tenant.
    let tenant = Some("/registry/things/greedy/".into());
    let refused = try_set(&store, "greedy", "1", MIB + 900).await;
    assert_eq!(refused, Err(WriteError::NoSpace { tenant }));
    try_set(&store, "modest", "a", MIB + 900).await.unwrap();
    store.run_periodic_work().await;
    assert_eq!(store.status().alarms, [], "there is room for others");
    try_unset(&store, "greedy", "0").await.unwrap();
}

#[tokio::test]
async fn a_disk_that_fills_up_refuses_what_adds_and_keeps_room_for_deletes() {
    let directory = TempDir::new().unwrap();
    let hands = Hands::default();
    let free = Arc::new(AtomicU64::new(1000 * MIB as u64));
    let free_space = FreeSpaceSource::Manual(free.clone());
    let limits = Limits { disk_free_bytes_min: 100 * MIB as u64, ..limits() };
    let options = Options { limits, free_space_source: free_space, ..hands.options() };
    let store = EmbeddedStore::open(directory.path(), options).unwrap();
    for name in ["a", "b", "c", "d"] {
        try_set(&store, "ns", name, 100_000).await.unwrap();
    }
    try_set(&store, "ns", "small", 1000).await.unwrap();
    // Free space in MiB, and whether the store accepts a new key, a large value that shrinks by a byte, and a
    // small value of the same size.
    for (free_mib, new, large, small, alarms) in [
        (102, true, true, true, vec![]),
        (100, false, true, true, vec![Alarm::Disk]),
        (60, false, true, true, vec![Alarm::Disk]),
        (40, false, false, true, vec![Alarm::Disk]),
        (20, false, false, false, vec![Alarm::Disk]),
        (0, false, false, false, vec![Alarm::Disk]),
        (110, false, true, true, vec![Alarm::Disk]),
        (120, true, true, true, vec![]),
    ] {
        free.store(free_mib * MIB as u64, Ordering::SeqCst);
        store.run_periodic_work().await;
        assert_eq!(store.status().alarms, alarms, "{free_mib} MiB");
        let large_bytes = 99_999 - free_mib as usize;
        let got = [
            try_set(&store, "ns", &format!("new{free_mib}"), 10).await.is_ok(),
            try_set(&store, "ns", "a", large_bytes.min(99_800)).await.is_ok(),
            try_set(&store, "ns", "small", 1000).await.is_ok(),
        ];
        assert_eq!(got, [new, large, small], "{free_mib} MiB");
        if free_mib == 0 {
            try_unset(&store, "ns", "b").await.unwrap();
        }
    }
}

/// A directory in the way of a page makes writing it fail, as a full disk would.
#[tokio::test]
async fn a_page_that_can_not_be_written_is_told_and_then_forgotten() {
    let directory = TempDir::new().unwrap();
    let hands = Hands::default();
    let limits = Limits { disk_free_bytes_min: 0, ..tight() };
    let store = open(directory.path(), &hands, &limits);
    let in_the_way = directory.path().join(format!("page-{:020}-{:020}", 1, 0));
    fs::create_dir(&in_the_way).unwrap();
    for n in 0..200 {
        try_set(&store, "ns", &format!("{}", n % 5), 100).await.unwrap();
    }
    let degraded = store.status().maintenance_failure_text.unwrap();
    assert!(degraded.contains("cannot move history to a file"), "{degraded}");
    assert_eq!(store.check_health().await, Ok(()), "it reads and writes all the same");
    let memory = store.status().space_usage.unwrap().history_memory_bytes;
    // The next page has another name, so the next attempt succeeds.
    store.run_periodic_work().await;
    assert_eq!(store.status().maintenance_failure_text, None);
    store.run_periodic_work().await;
    let after = store.status().space_usage.unwrap().history_memory_bytes;
    assert!(after < memory, "{after} of {memory}");
}
