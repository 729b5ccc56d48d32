//! Limits of the queue and of searches.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use store::{
    ExpectedKeyState, Prefix, Put, Revision, Store, VALUE_BYTES_MAX, WATCHES_MAX, WatchError,
};
use store_embedded::{EmbeddedStore, Options, SyncMode};
use tempfile::TempDir;

use crate::scratch::{key, open, set, things};

#[tokio::test]
async fn watches_have_a_largest_number() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let mut watches = Vec::new();
    for _ in 0..WATCHES_MAX {
        watches.push(store.watch(things(), Revision::FIRST).await.unwrap());
    }
    let one_more = store.watch(things(), Revision::FIRST).await;
    assert!(matches!(one_more, Err(WatchError::Unavailable(_))), "{one_more:?}");
    watches.pop();
    store.watch(things(), Revision::FIRST).await.unwrap();
}

/// Writes that exceed the queue wait for space.
#[tokio::test]
async fn writes_beyond_the_queue_wait() {
    let directory = TempDir::new().unwrap();
    let store = Arc::new(open(directory.path()));
    let value = Bytes::from(vec![b'x'; VALUE_BYTES_MAX]);
    let mut writers = Vec::new();
    for n in 0..60 {
        let (store, value) = (store.clone(), value.clone());
        writers.push(tokio::spawn(async move {
            let (key, expected_state) = (key(&n.to_string()), ExpectedKeyState::Absent);
            store
                .put(Put { key, value, expected_state, ttl: None, key_group_revision_action: None })
                .await
        }));
    }
    for writer in writers {
        writer.await.unwrap().unwrap();
    }
    assert_eq!(store.current_rev().await, Ok(Revision::new(61)));
}

/// A watch of a prefix without writes searches many changes of other prefixes in several steps.
#[tokio::test]
async fn a_long_search_finds_what_is_at_its_end() {
    let directory = TempDir::new().unwrap();
    let sync_mode = SyncMode::Interval(Duration::from_millis(100));
    let store =
        EmbeddedStore::open(directory.path(), Options { sync_mode, ..Options::default() }).unwrap();
    for n in 0..20_000 {
        set(&store, &format!("busy/{}", n % 100), "x").await;
    }
    let last = set(&store, "quiet/a", "x").await;
    let quiet = Prefix::new("/registry/things/quiet/").unwrap();
    let mut watch = store.watch(quiet, Revision::FIRST).await.unwrap();
    let batch = watch.next().await.unwrap();
    assert_eq!((batch.events.len(), batch.complete_through_revision), (1, last));
    assert_eq!(batch.events[0].revision, last);
}
