//! The state after a restart.

use std::fs;
use std::time::Duration;

use store::{At, ReadError, Revision, Store};
use store_embedded::{EmbeddedStore, OpenError, Options, REVISION_GAP, SyncMode};
use tempfile::TempDir;

use crate::scratch::{
    Hands, content, events, open, set, set_marked, set_with_ttl, states, tight, unset, unset_marked,
};

#[tokio::test]
async fn states_and_events_since_the_floor_survive() {
    let directory = TempDir::new().unwrap();
    let options = Options { limits: tight(), ..Options::default() };
    let mut before = None;
    for round in 0..5 {
        let store = EmbeddedStore::open(directory.path(), options.clone()).unwrap();
        let floor = store.compaction_floor().await.unwrap();
        let now = (floor, states(&store, floor).await, events(&store, floor).await);
        if let Some(before) = before {
            assert!(before == now, "round {round}");
        }
        for n in 0..40 {
            set(&store, &format!("{}", n % 7), &format!("{round}/{n}").repeat(20)).await;
            if n % 5 == 0 {
                unset(&store, &format!("{}", n % 7)).await;
            }
            if n % 4 == 0 {
                set_marked(&store, "marked", &format!("{round}/{n}")).await;
            }
            if n % 16 == 0 {
                unset_marked(&store, "marked").await;
            }
            if n == 20 {
                let current = store.current_rev().await.unwrap();
                store.compact(Revision::new(current.as_u64() - 15)).await.unwrap();
            }
        }
        let floor = store.compaction_floor().await.unwrap();
        before = Some((floor, states(&store, floor).await, events(&store, floor).await));
        if round == 4 {
            // Closing cancels a running snapshot, so the last round waits for one.
            while directory.path().join(format!("log-{:020}", 1)).exists() {
                store.run_periodic_work().await;
            }
        }
        store.close().await;
    }
    // The store has written snapshots and removed old logs.
    let names: Vec<String> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.iter().filter(|name| name.starts_with("snapshot-")).count(), 1, "{names:?}");
    assert!(!names.contains(&format!("log-{:020}", 1)), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("page-")), "{names:?}");
}

#[tokio::test]
async fn compaction_is_remembered() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    for n in 0..5 {
        set(&store, "a", &n.to_string()).await;
    }
    let floor = Revision::new(4);
    store.compact(floor).await.unwrap();
    drop(store);
    let store = open(directory.path());
    assert_eq!(store.compaction_floor().await, Ok(floor));
    let requested = Revision::new(3);
    let read = store.get(&crate::scratch::key("a"), At::Exactly(requested)).await;
    assert_eq!(read, Err(ReadError::Compacted { requested, floor }));
}

#[tokio::test]
async fn deadlines_survive() {
    let directory = TempDir::new().unwrap();
    let hands = Hands::default();
    let store = EmbeddedStore::open(directory.path(), hands.options()).unwrap();
    let ttl = Some(Duration::from_secs(10));
    set_with_ttl(&store, "old", "1", ttl).await;
    set_with_ttl(&store, "renewed", "1", ttl).await;
    hands.advance(Duration::from_secs(6));
    set_with_ttl(&store, "renewed", "2", ttl).await;
    set(&store, "kept", "1").await;
    drop(store);

    let store = EmbeddedStore::open(directory.path(), hands.options()).unwrap();
    store.run_periodic_work().await;
    assert_eq!(content(&store, At::Newest).await.len(), 3);
    hands.advance(Duration::from_secs(5));
    store.run_periodic_work().await;
    let names = |content: crate::scratch::WriteContent| -> Vec<String> {
        content.into_iter().map(|(name, ..)| name).collect()
    };
    assert_eq!(names(content(&store, At::Newest).await), ["kept", "renewed"]);
    drop(store);
    // The clock advanced while the store was closed.
    hands.advance(Duration::from_secs(5));
    let store = EmbeddedStore::open(directory.path(), hands.options()).unwrap();
    store.run_periodic_work().await;
    assert_eq!(names(content(&store, At::Newest).await), ["kept"]);
}

#[tokio::test]
async fn a_directory_is_open_once() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let error = EmbeddedStore::open(directory.path(), Options::default()).unwrap_err();
    assert!(matches!(&error, OpenError::Locked { .. }), "{error}");
    assert!(error.to_string().ends_with("is in use by another process"), "{error}");
    store.close().await;
    open(directory.path());
}

#[tokio::test]
async fn lazy_runs_leave_a_gap_behind() {
    let directory = TempDir::new().unwrap();
    let interval = SyncMode::Interval(Duration::from_millis(50));
    let lazy = Options { sync_mode: interval, limits: tight(), ..Options::default() };
    let store = EmbeddedStore::open(directory.path(), lazy.clone()).unwrap();
    let mut last = Revision::FIRST;
    for n in 0..100 {
        let revision = set(&store, "a", &n.to_string()).await;
        assert_eq!(revision, last.next(), "a new file in one run leaves no gap");
        last = revision;
    }
    drop(store);
    let skip = |revision: Revision| Revision::new(revision.as_u64() + REVISION_GAP);
    // Opened twice without a write: nothing was lost, but the store cannot know that.
    for _ in 0..2 {
        let store = EmbeddedStore::open(directory.path(), lazy.clone()).unwrap();
        last = skip(last);
        assert_eq!(store.current_rev().await, Ok(last));
    }
    let store = open(directory.path());
    last = skip(last);
    assert_eq!(set(&store, "a", "x").await, last.next());
    drop(store);
    let store = open(directory.path());
    assert_eq!(store.current_rev().await, Ok(last.next()), "a run that syncs leaves no gap");
    assert_eq!(content(&store, At::Newest).await.len(), 1);
}

#[tokio::test]
async fn unfinished_files_are_removed() {
    let directory = TempDir::new().unwrap();
    set(&open(directory.path()), "a", "1").await;
    let leftovers = ["snapshot-00000000000000000009.tmp", "log-00000000000000000009.tmp", "page-1"];
    for name in leftovers {
        fs::write(directory.path().join(name), "x").unwrap();
    }
    let store = open(directory.path());
    assert_eq!(content(&store, At::Newest).await.len(), 1);
    for name in leftovers {
        assert!(!directory.path().join(name).exists(), "{name}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn files_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let parent = TempDir::new().unwrap();
    let directory = parent.path().join("data");
    let store = open(&directory);
    set(&store, "a", "1").await;
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for entry in fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{path:?}");
    }
}
