//! Short forms of store operations.

use std::time::Duration;

use bytes::Bytes;
use store::{At, Event, ExpectedKeyState, Key, Prefix, Put, Revision, Store, Watch, WriteError};
use store_etcd::EtcdStore;

/// The longest time that a test waits before it fails.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn key(name: &str) -> Key {
    Key::new(&format!("/registry/things/{name}")).unwrap()
}

pub(crate) fn things() -> Prefix {
    Prefix::new("/registry/things/").unwrap()
}

pub(crate) fn put(name: &str, text: &str, expect: ExpectedKeyState) -> Put {
    let value = Bytes::copy_from_slice(text.as_bytes());
    Put {
        key: key(name),
        value,
        expected_state: expect,
        ttl: None,
        key_group_revision_action: None,
    }
}

pub(crate) async fn create(store: &EtcdStore, name: &str, text: &str) -> Revision {
    store.put(put(name, text, ExpectedKeyState::Absent)).await.unwrap()
}

pub(crate) async fn text(store: &EtcdStore, name: &str) -> Option<String> {
    let got = store.get(&key(name), At::Newest).await.unwrap();
    got.entry.map(|entry| String::from_utf8(entry.value.to_vec()).unwrap())
}

/// Reads all events of a watch up to a revision and checks their order.
pub(crate) async fn events(watch: &mut dyn Watch, after: Revision, up_to: Revision) -> Vec<Event> {
    let mut told: Vec<Event> = Vec::new();
    let mut complete_through = after;
    while complete_through < up_to {
        let batch =
            tokio::time::timeout(TEST_TIMEOUT, watch.next()).await.expect("the watch hangs");
        let batch = batch.unwrap();
        for event in batch.events {
            let last = told.last().map_or(after, |event| event.revision);
            assert!(event.revision > last, "{} comes after {last}", event.revision);
            told.push(event);
        }
        assert!(batch.complete_through_revision >= complete_through);
        complete_through = batch.complete_through_revision;
    }
    told
}

/// Reports whether the outcome of a failed write is unknown.
pub(crate) fn is_unsure(error: &WriteError) -> bool {
    match error {
        WriteError::Unavailable(_) | WriteError::DiskFull { .. } | WriteError::Timeout => true,
        WriteError::Conflict { .. }
        | WriteError::ConditionFailed { .. }
        | WriteError::NoSpace { .. }
        | WriteError::Throttled { .. }
        | WriteError::ValueTooLarge { .. } => false,
    }
}
