//! Stores in temporary directories, and clocks that tests set.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use store::{
    At, Delete, ExpectedKeyState, Key, KeyGroupRevisionAction, ListRequest, Prefix, Put, Revision,
    Store, Transaction,
};
use store_embedded::{Clock, EmbeddedStore, Limits, Options};

/// A clock and the options that use it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hands(Arc<AtomicU64>);

impl Hands {
    pub(crate) fn clock(&self) -> Clock {
        Clock::Manual(self.0.clone())
    }

    pub(crate) fn options(&self) -> Options {
        Options { clock: self.clock(), ..Options::default() }
    }

    pub(crate) fn advance(&self, time: Duration) {
        self.0.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

/// Limits so small that a test reaches them.
pub(crate) fn tight() -> Limits {
    Limits {
        history_revisions_min: 10,
        history_memory_bytes_max: 1000,
        log_file_bytes_max: 2000,
        checkpoint_bytes_min: 4000,
        ..Limits::default()
    }
}

pub(crate) fn open(directory: &Path) -> EmbeddedStore {
    EmbeddedStore::open(directory, Options::default()).unwrap()
}

pub(crate) fn key(name: &str) -> Key {
    Key::new(&format!("/registry/things/{name}")).unwrap()
}

pub(crate) fn things() -> Prefix {
    Prefix::new("/registry/things/").unwrap()
}

/// Writes a text, whether or not the key exists.
pub(crate) async fn set(store: &EmbeddedStore, name: &str, text: &str) -> Revision {
    set_with_ttl(store, name, text, None).await
}

pub(crate) async fn set_with_ttl(
    store: &EmbeddedStore,
    name: &str,
    text: &str,
    ttl: Option<Duration>,
) -> Revision {
    let expect = expect(store, name).await;
    let value = Bytes::copy_from_slice(text.as_bytes());
    store
        .put(Put {
            key: key(name),
            value,
            expected_state: expect,
            ttl,
            key_group_revision_action: None,
        })
        .await
        .unwrap()
}

/// The key of the shared revision. It is under the tested prefix, so that every check includes it.
pub(crate) fn mark() -> Option<KeyGroupRevisionAction> {
    Some(KeyGroupRevisionAction::Bump { key: key("mark"), expect: None })
}

/// Writes a text, bumps the shared revision, and writes the text to an additional key.
pub(crate) async fn set_marked(store: &EmbeddedStore, name: &str, text: &str) -> Revision {
    let expect = expect(store, name).await;
    let value = Bytes::copy_from_slice(text.as_bytes());
    let put = Put {
        key: key(name),
        value: value.clone(),
        expected_state: expect,
        ttl: None,
        key_group_revision_action: mark(),
    };
    store.write(Transaction::from(put).add_put(key("beside"), value, None)).await.unwrap()
}

/// Deletes a key, bumps the shared revision, and deletes the additional key.
pub(crate) async fn unset_marked(store: &EmbeddedStore, name: &str) -> Revision {
    let delete = Delete {
        key: key(name),
        expected_state: expect(store, name).await,
        key_group_revision_action: mark(),
    };
    let delete = match expect(store, "beside").await {
        ExpectedKeyState::At(revision) => {
            Transaction::from(delete).add_delete(key("beside"), revision)
        }
        ExpectedKeyState::Absent => delete.into(),
    };
    store.write(delete).await.unwrap()
}

pub(crate) async fn unset(store: &EmbeddedStore, name: &str) -> Revision {
    let expect = expect(store, name).await;
    store
        .delete(Delete { key: key(name), expected_state: expect, key_group_revision_action: None })
        .await
        .unwrap()
}

async fn expect(store: &EmbeddedStore, name: &str) -> ExpectedKeyState {
    let got = store.get(&key(name), At::Newest).await.unwrap();
    got.entry.map_or(ExpectedKeyState::Absent, |entry| ExpectedKeyState::At(entry.mod_rev))
}

/// Returns every key with its text and its two revisions.
pub(crate) type WriteContent = Vec<(String, String, u64, u64)>;

pub(crate) async fn content(store: &EmbeddedStore, at: At) -> WriteContent {
    let page = store.list(&things(), ListRequest { at, ..ListRequest::default() }).await.unwrap();
    page.items
        .into_iter()
        .map(|item| {
            let name = item.key.strip_prefix(things().as_str()).unwrap().to_owned();
            let text = String::from_utf8(item.entry.value.to_vec()).unwrap();
            (name, text, item.entry.mod_rev.as_u64(), item.entry.create_rev.as_u64())
        })
        .collect()
}

/// Reads all states from a revision to the newest.
pub(crate) async fn states(store: &EmbeddedStore, from: Revision) -> Vec<WriteContent> {
    let current = store.current_rev().await.unwrap();
    let mut states = Vec::new();
    for revision in from.as_u64()..=current.as_u64() {
        states.push(content(store, At::Exactly(Revision::new(revision))).await);
    }
    states
}

/// Reads all events after a revision.
pub(crate) async fn events(store: &EmbeddedStore, after: Revision) -> Vec<store::Event> {
    let current = store.current_rev().await.unwrap();
    let mut watch = store.watch(things(), after).await.unwrap();
    let mut events = Vec::new();
    let mut complete_through = after;
    while complete_through < current {
        let batch = watch.next().await.unwrap();
        events.extend(batch.events);
        complete_through = batch.complete_through_revision;
    }
    events
}
