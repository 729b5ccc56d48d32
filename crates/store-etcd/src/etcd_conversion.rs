//! Converts etcd's key-values and events to those of the store.

use bytes::Bytes;
use store::{Change, Entry, Event, Item, Key, Revision};

use crate::etcd_messages::{KIND_DELETE, KeyValue, WatchEvent};

/// Converts a revision of etcd, which is signed but never negative.
pub(crate) fn revision_from_etcd(number: i64) -> Revision {
    Revision::new(u64::try_from(number).unwrap_or_default())
}

/// Converts a revision to the type of etcd; `None` if it is out of range.
pub(crate) fn to_etcd_revision(revision: Revision) -> Option<i64> {
    i64::try_from(revision.as_u64()).ok()
}

pub(crate) fn entry_from_etcd(kv: &KeyValue) -> Entry {
    Entry {
        // The value is a slice of the message buffer. Without the copy, one kept value would keep the whole
        // buffer.
        value: Bytes::copy_from_slice(&kv.value),
        mod_rev: revision_from_etcd(kv.mod_revision),
        create_rev: revision_from_etcd(kv.create_revision),
    }
}

/// Converts a key-value; `None` if its key is not a valid key of this store.
pub(crate) fn item_from_etcd(kv: &KeyValue) -> Option<Item> {
    Some(Item { key: key_from_etcd(&kv.key)?, entry: entry_from_etcd(kv) })
}

fn key_from_etcd(bytes: &Bytes) -> Option<Key> {
    Key::new(std::str::from_utf8(bytes).ok()?).ok()
}

/// An event of etcd after conversion.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ConvertedEvent {
    Event(Event),
    /// The key is not a valid key of this store.
    Foreign,
    /// The previous version is missing, because it is compacted.
    NoPreviousVersion,
}

/// Returns the revision of an event.
pub(crate) fn event_revision(event: &WatchEvent) -> Revision {
    revision_from_etcd(event.kv.as_ref().map_or(0, |kv| kv.mod_revision))
}

/// Converts an event of etcd.
///
/// 1. A delete carries the previous version; the revision of the delete is that of the event.
/// 2. A put is a create if it created the key, and otherwise an update of the previous version.
pub(crate) fn event_from_etcd(event: &WatchEvent) -> ConvertedEvent {
    let Some(kv) = &event.kv else { return ConvertedEvent::Foreign };
    let Some(key) = key_from_etcd(&kv.key) else { return ConvertedEvent::Foreign };
    let prev = event.prev_kv.as_ref().map(entry_from_etcd);
    let change = if event.kind == KIND_DELETE {
        match prev {
            Some(prev) => Change::Delete { prev },
            None => return ConvertedEvent::NoPreviousVersion,
        }
    } else if kv.create_revision == kv.mod_revision {
        Change::Create(entry_from_etcd(kv))
    } else {
        match prev {
            Some(prev) => Change::Update { entry: entry_from_etcd(kv), prev },
            None => return ConvertedEvent::NoPreviousVersion,
        }
    };
    ConvertedEvent::Event(Event { key, revision: revision_from_etcd(kv.mod_revision), change })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kv(key: &str, create_revision: i64, mod_revision: i64) -> KeyValue {
        let key = Bytes::copy_from_slice(key.as_bytes());
        KeyValue { key, create_revision, mod_revision, version: 1, value: "v".into() }
    }

    #[test]
    fn an_event_without_previous_version_is_not_converted() {
        let put = |kv, prev_kv| WatchEvent { kind: 0, kv: Some(kv), prev_kv };
        let delete = |kv, prev_kv| WatchEvent { kind: KIND_DELETE, kv: Some(kv), prev_kv };
        let change = |event| match event_from_etcd(&event) {
            ConvertedEvent::Event(Event { change, .. }) => Some(change),
            ConvertedEvent::Foreign | ConvertedEvent::NoPreviousVersion => None,
        };
        let prev = || entry_from_etcd(&kv("/a", 3, 4));
        let new = entry_from_etcd(&kv("/a", 3, 5));
        assert_eq!(
            change(put(kv("/a", 5, 5), None)),
            Some(Change::Create(entry_from_etcd(&kv("/a", 5, 5))))
        );
        assert_eq!(
            change(put(kv("/a", 3, 5), Some(kv("/a", 3, 4)))),
            Some(Change::Update { entry: new, prev: prev() })
        );
        assert_eq!(
            change(delete(kv("/a", 0, 5), Some(kv("/a", 3, 4)))),
            Some(Change::Delete { prev: prev() })
        );
        assert_eq!(event_from_etcd(&put(kv("/a", 3, 5), None)), ConvertedEvent::NoPreviousVersion);
        assert_eq!(
            event_from_etcd(&delete(kv("/a", 0, 5), None)),
            ConvertedEvent::NoPreviousVersion
        );
    }

    #[test]
    fn keys_that_are_not_ours_are_foreign() {
        for key in ["compact_rev_key", "/a/", "/a\0", ""] {
            let event = WatchEvent { kind: 0, kv: Some(kv(key, 5, 5)), prev_kv: None };
            assert_eq!(event_from_etcd(&event), ConvertedEvent::Foreign, "{key:?}");
            assert_eq!(item_from_etcd(&kv(key, 5, 5)), None, "{key:?}");
        }
        assert_eq!(
            event_from_etcd(&WatchEvent { kind: 0, kv: None, prev_kv: None }),
            ConvertedEvent::Foreign
        );
    }
}
