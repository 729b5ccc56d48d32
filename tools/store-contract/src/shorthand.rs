//! Short forms of operations, so that checks are easy to read.

use std::num::NonZeroUsize;
use std::ops::Bound;
use std::time::Duration;

use bytes::Bytes;
use store::{
    At, Delete, Event, ExpectedKeyState, GetResult, Key, ListPage, ListRequest, Prefix, Put,
    ReadError, Revision, Store, Watch, WatchBatch, WatchError, WriteError,
};

/// A wait that takes longer counts as a hang. Only a failing check takes so long.
const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// The key of a name such as `a` or `team/a`.
pub(crate) fn key(name: &str) -> Key {
    Key::new(&format!("/registry/things/{name}")).unwrap()
}

/// The common prefix of these keys.
pub(crate) fn things() -> Prefix {
    Prefix::new("/registry/things/").unwrap()
}

pub(crate) fn value(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

pub(crate) async fn put(
    store: &dyn Store,
    name: &str,
    text: &str,
    expect: ExpectedKeyState,
) -> Result<Revision, WriteError> {
    store
        .put(Put {
            key: key(name),
            value: value(text),
            expected_state: expect,
            ttl: None,
            key_group_revision_action: None,
        })
        .await
}

pub(crate) async fn create(store: &dyn Store, name: &str, text: &str) -> Revision {
    put(store, name, text, ExpectedKeyState::Absent).await.unwrap()
}

pub(crate) async fn update(store: &dyn Store, name: &str, text: &str, at: Revision) -> Revision {
    put(store, name, text, ExpectedKeyState::At(at)).await.unwrap()
}

pub(crate) async fn delete(store: &dyn Store, name: &str, at: Revision) -> Revision {
    try_delete(store, name, ExpectedKeyState::At(at)).await.unwrap()
}

pub(crate) async fn try_delete(
    store: &dyn Store,
    name: &str,
    expect: ExpectedKeyState,
) -> Result<Revision, WriteError> {
    store
        .delete(Delete { key: key(name), expected_state: expect, key_group_revision_action: None })
        .await
}

pub(crate) async fn get(store: &dyn Store, name: &str, at: At) -> Result<GetResult, ReadError> {
    store.get(&key(name), at).await
}

/// The text that a key has now.
pub(crate) async fn text(store: &dyn Store, name: &str) -> Option<String> {
    let got = get(store, name, At::Newest).await.unwrap();
    got.entry.map(|entry| String::from_utf8(entry.value.to_vec()).unwrap())
}

pub(crate) async fn list(
    store: &dyn Store,
    from: Bound<Key>,
    limit: Option<usize>,
    at: At,
) -> Result<ListPage, ReadError> {
    let limit = limit.and_then(NonZeroUsize::new);
    store.list(&things(), ListRequest { from, items_max: limit, page_bytes_max: None, at }).await
}

pub(crate) async fn list_all(store: &dyn Store, at: At) -> ListPage {
    list(store, Bound::Unbounded, None, at).await.unwrap()
}

/// The names and texts of a page.
pub(crate) fn pairs(page: &ListPage) -> Vec<(String, String)> {
    let pair = |item: &store::Item| {
        let name = item.key.strip_prefix(things().as_str()).unwrap().to_owned();
        (name, String::from_utf8(item.entry.value.to_vec()).unwrap())
    };
    page.items.iter().map(pair).collect()
}

/// The expected pairs of a check.
pub(crate) fn want(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

/// Returns the next batch, and panics if none comes.
pub(crate) async fn next(watch: &mut dyn Watch) -> Result<WatchBatch, WatchError> {
    tokio::time::timeout(HANG_TIMEOUT, watch.next()).await.expect("the watch hangs")
}

/// All events of a watch up to a revision. It checks their order.
pub(crate) async fn events(watch: &mut dyn Watch, after: Revision, up_to: Revision) -> Vec<Event> {
    let mut delivered = Vec::new();
    let mut complete_through = after;
    while complete_through < up_to {
        let batch = next(watch).await.unwrap();
        assert!(
            batch.complete_through_revision >= complete_through,
            "progress goes back: {complete_through} to {}",
            batch.complete_through_revision
        );
        let mut last = complete_through.next();
        for event in batch.events {
            // Several events may have one revision, but they are all in one batch.
            assert!(event.revision >= last, "{} comes after {last}", event.revision);
            assert!(event.revision <= batch.complete_through_revision);
            last = event.revision;
            delivered.push(event);
        }
        complete_through = batch.complete_through_revision;
    }
    delivered
}

/// All events after a revision, read by a new watch.
pub(crate) async fn history(store: &dyn Store, after: Revision) -> Vec<Event> {
    let current = store.current_rev().await.unwrap();
    let mut watch = store.watch(things(), after).await.unwrap();
    events(&mut *watch, after, current).await
}
