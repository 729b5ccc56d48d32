//! Retention of history, in memory and in files.

use std::path::Path;
use std::time::Duration;

use store::{At, ReadError, Revision, Store, WatchError};
use store_embedded::{EmbeddedStore, Limits, Options};
use tempfile::TempDir;

use crate::scratch::{Hands, events, key, set, states, things};

fn open(directory: &Path, hands: &Hands, limits: Limits) -> EmbeddedStore {
    EmbeddedStore::open(directory, Options { limits, ..hands.options() }).unwrap()
}

async fn write(store: &EmbeddedStore, n_writes: u64) -> Revision {
    for n in 0..n_writes {
        set(store, &(n % 10).to_string(), "text").await;
    }
    store.current_rev().await.unwrap()
}

/// The store drops a state only if it is old and enough newer states exist.
#[tokio::test]
async fn states_are_kept_for_a_time_and_a_number() {
    let directory = TempDir::new().unwrap();
    let hands = Hands::default();
    let store = open(directory.path(), &hands, Limits::default());
    let minute = Duration::from_secs(60);
    let old = write(&store, 1100).await;
    // The store samples the clock every ten seconds, possibly during the writes.
    hands.advance(minute / 6);
    store.run_periodic_work().await;
    hands.advance(4 * minute);
    store.run_periodic_work().await;
    assert_eq!(store.compaction_floor().await, Ok(Revision::FIRST), "too young");
    hands.advance(minute);
    store.run_periodic_work().await;
    let floor = Revision::new(old.as_u64() - 1000);
    assert_eq!(store.compaction_floor().await, Ok(floor), "all but a thousand");
    let new = write(&store, 1500).await;
    hands.advance(minute / 6);
    store.run_periodic_work().await;
    assert_eq!(store.compaction_floor().await, Ok(old), "the new ones are too young");
    hands.advance(5 * minute);
    store.run_periodic_work().await;
    assert_eq!(store.compaction_floor().await, Ok(Revision::new(new.as_u64() - 1000)));
    hands.advance(60 * minute);
    store.run_periodic_work().await;
    assert_eq!(store.compaction_floor().await, Ok(Revision::new(new.as_u64() - 1000)));
}

#[tokio::test]
async fn a_burst_of_writes_is_forgotten_earlier() {
    let directory = TempDir::new().unwrap();
    let hands = Hands::default();
    let limits =
        Limits { history_revisions_min: 10, history_revisions_max: 100, ..Limits::default() };
    let store = open(directory.path(), &hands, limits);
    let current = write(&store, 100).await;
    store.run_periodic_work().await;
    assert_eq!(store.compaction_floor().await, Ok(Revision::FIRST), "at the limit");
    assert_eq!(current, Revision::new(101));
    write(&store, 1).await;
    store.run_periodic_work().await;
    assert_eq!(store.compaction_floor().await, Ok(Revision::new(2)), "one past it");
    // Between ticks the history may exceed the limit by a bounded slack.
    let current = write(&store, 500).await;
    let floor = store.compaction_floor().await.unwrap();
    assert!(current.as_u64() - floor.as_u64() < 300, "{floor} of {current}");
}

/// A slow watch first reads its events from files, and ends when they are compacted.
#[tokio::test]
async fn slow_watches_read_files_until_they_are_overtaken() {
    let directory = TempDir::new().unwrap();
    let hands = Hands::default();
    let limits = Limits { history_memory_bytes_max: 2000, ..Limits::default() };
    let store = open(directory.path(), &hands, limits);
    let mut slow = store.watch(things(), Revision::FIRST).await.unwrap();
    let mut slower = store.watch(things(), Revision::FIRST).await.unwrap();
    let end = write(&store, 2000).await;
    store.run_periodic_work().await;
    let pages = || {
        let names = std::fs::read_dir(directory.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("page-")).count()
    };
    assert!(pages() >= 10, "{} pages", pages());

    let mut told = Vec::new();
    while told.len() < 2000 {
        told.extend(slow.next().await.unwrap().events);
    }
    let revisions: Vec<u64> = told.iter().map(|event| event.revision.as_u64()).collect();
    assert_eq!(revisions, (2..=end.as_u64()).collect::<Vec<_>>());
    assert_eq!(events(&store, Revision::FIRST).await, told);
    let past = Revision::new(700);
    let got = store.get(&key("8"), At::Exactly(past)).await.unwrap();
    assert_eq!(got.entry.map(|entry| entry.mod_rev), Some(past));
    assert_eq!(states(&store, Revision::new(1999)).await[0].len(), 10);

    slower.next().await.unwrap();
    let floor = Revision::new(1900);
    store.compact(floor).await.unwrap();
    for _ in 0..2 {
        let error = slower.next().await.unwrap_err();
        assert!(matches!(error, WatchError::Compacted { floor: at, .. } if at == floor), "{error}");
    }
    let requested = past;
    let read = store.get(&key("8"), At::Exactly(past)).await;
    assert_eq!(read, Err(ReadError::Compacted { requested, floor }));
    drop((slow, slower));
    store.run_periodic_work().await;
    assert!(pages() <= 2, "{} pages are left", pages());
}
