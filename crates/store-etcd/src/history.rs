//! All events of the cluster, in order and provably without a gap.
//!
//! The watch covers every key there is, not only those of somebody's prefix. So each revision has at
//! least one event in it, and after the last event of a revision everything up to that revision has been
//! told. A watch of some keys only could not know: etcd is silent about revisions that wrote others, and
//! in many versions its answer to a request for progress may overtake events.

use bytes::Bytes;
use store::{Event, ReadError, Revision, Unavailable};

use crate::client::{Client, Messages};
use crate::entries::{self, Told};
use crate::failure::CallError;
use crate::member::RANGE;
use crate::messages::{RangeRequest, RangeResponse, WatchCreateRequest, WatchEvent, WatchResponse};

/// The first key, and as the end of a range: no end.
const ALL_KEYS: &[u8] = b"\0";

/// Events after a revision.
pub(crate) struct History {
    messages: Messages,
    assembly: Assembly,
}

/// Some revisions, whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The events whose keys can be ours. Several may have one revision: keys that expire together.
    pub(crate) events: Vec<Event>,
    /// All events up to here have been told.
    pub(crate) through: Revision,
}

/// Why there are no more events.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HistoryError {
    /// The next events are compacted. States from this one on may be complete.
    Compacted { floor: Revision },
    /// The watch broke; another one can go on.
    Broken(Unavailable),
}

impl From<Unavailable> for HistoryError {
    fn from(error: Unavailable) -> Self {
        Self::Broken(error)
    }
}

impl History {
    /// Begins after a revision.
    pub(crate) async fn open(client: &Client, after: Revision) -> Result<Self, HistoryError> {
        let create = WatchCreateRequest {
            key: Bytes::from_static(ALL_KEYS),
            range_end: Bytes::from_static(ALL_KEYS),
            start_revision: entries::number(after.next()).unwrap_or(i64::MAX),
            prev_kv: true,
            fragment: true,
        };
        let messages = client.watch(create).await?;
        Ok(Self { messages, assembly: Assembly { through: after, held: Vec::new() } })
    }

    /// The next revisions. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Step, HistoryError> {
        loop {
            let message = self.messages.next().await?;
            if message.canceled {
                return Err(self.cancelled(&message));
            }
            if let Some(step) = self.assembly.take(message)? {
                return Ok(step);
            }
        }
    }

    fn cancelled(&self, message: &WatchResponse) -> HistoryError {
        if message.compact_revision > 0 {
            return HistoryError::Compacted { floor: entries::revision(message.compact_revision) };
        }
        self.messages.distrust();
        HistoryError::Broken(self.messages.unavailable(&message.cancel_reason))
    }

    /// Gives the member up because it is silent although there is something to tell.
    pub(crate) fn give_up(&self) -> HistoryError {
        self.messages.give_up();
        HistoryError::Broken(self.messages.unavailable("it tells no events"))
    }
}

/// Puts the parts of answers together to whole revisions.
struct Assembly {
    through: Revision,
    /// The last revision, as long as more of it may come.
    held: Vec<WatchEvent>,
}

impl Assembly {
    /// Adds a message; absent means that no revision has become whole.
    fn take(&mut self, message: WatchResponse) -> Result<Option<Step>, HistoryError> {
        self.held.extend(message.events);
        let mut whole = std::mem::take(&mut self.held);
        if message.fragment
            && let Some(last) = whole.last().map(entries::revision_of)
        {
            self.held = whole.split_off(whole.partition_point(|e| entries::revision_of(e) < last));
        }
        let before = self.through;
        let mut through = before;
        let mut events = Vec::new();
        for event in &whole {
            let revision = entries::revision_of(event);
            // A member that was behind when it was asked may repeat itself.
            if revision <= before {
                continue;
            }
            if revision > through.next() {
                return Err(HistoryError::Compacted { floor: revision });
            }
            match entries::told(event) {
                Told::Event(event) => events.push(event),
                Told::Foreign => {}
                Told::NoPrevious => return Err(HistoryError::Compacted { floor: revision }),
            }
            through = revision;
        }
        self.through = through;
        Ok((through > before).then_some(Step { events, through }))
    }
}

/// The oldest state that can be read. etcd tells it only to those who ask for too much: a read of the
/// first revision shows whether anything is compacted at all, and a watch from there is refused with the
/// floor.
pub(crate) async fn floor(client: &Client) -> Result<Revision, ReadError> {
    let key = Bytes::from_static(ALL_KEYS);
    let first = entries::number(Revision::FIRST).unwrap_or_default();
    let range = RangeRequest { key, revision: first, count_only: true, ..RangeRequest::default() };
    match client.call::<_, RangeResponse>(RANGE, &range).await {
        Ok(_) => return Ok(Revision::FIRST),
        Err(CallError::Compacted) => {}
        Err(error) => return Err(error.unexpected()),
    }
    let create = WatchCreateRequest {
        key: range.key,
        start_revision: first,
        ..WatchCreateRequest::default()
    };
    let refused = async {
        let mut messages = client.watch(create).await?;
        loop {
            let message = messages.next().await?;
            if message.compact_revision > 0 {
                return Ok(entries::revision(message.compact_revision));
            }
        }
    };
    client.in_time(refused).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::KeyValue;

    fn put(key: &'static str, revision: i64) -> WatchEvent {
        let kv = KeyValue {
            key: key.into(),
            create_revision: revision,
            mod_revision: revision,
            version: 1,
            value: Bytes::new(),
        };
        WatchEvent { kind: 0, kv: Some(kv), prev_kv: None }
    }

    fn message(fragment: bool, events: Vec<WatchEvent>) -> WatchResponse {
        WatchResponse { fragment, events, ..WatchResponse::default() }
    }

    /// Keys and end of a step.
    fn told(step: Result<Option<Step>, HistoryError>) -> Option<(String, u64)> {
        let step = step.unwrap()?;
        let keys: Vec<&str> = step.events.iter().map(|event| event.key.as_str()).collect();
        Some((keys.join(" "), step.through.number()))
    }

    fn after(revision: u64) -> Assembly {
        Assembly { through: Revision::new(revision), held: Vec::new() }
    }

    #[test]
    fn foreign_keys_count_but_are_not_told() {
        let mut assembly = after(4);
        let events = vec![put("/a", 5), put("compact_rev_key", 6), put("/b", 7)];
        assert_eq!(told(assembly.take(message(false, events))), Some(("/a /b".into(), 7)));
        assert_eq!(told(assembly.take(message(false, vec![put("x", 8)]))), Some(("".into(), 8)));
        assert_eq!(told(assembly.take(message(false, vec![]))), None);
    }

    #[test]
    fn a_revision_in_parts_is_told_when_it_is_whole() {
        let mut assembly = after(4);
        let first = message(true, vec![put("/a", 5), put("/b", 6)]);
        assert_eq!(told(assembly.take(first)), Some(("/a".into(), 5)));
        assert_eq!(told(assembly.take(message(true, vec![put("/c", 6)]))), None);
        let last = message(false, vec![put("/d", 6), put("/e", 7)]);
        assert_eq!(told(assembly.take(last)), Some(("/b /c /d /e".into(), 7)));
    }

    #[test]
    fn what_was_told_is_not_told_again() {
        let mut assembly = after(4);
        let events = vec![put("/a", 3), put("/b", 4), put("/c", 5)];
        assert_eq!(told(assembly.take(message(false, events))), Some(("/c".into(), 5)));
    }

    #[test]
    fn a_missing_revision_is_noticed() {
        let gap = after(4).take(message(false, vec![put("/a", 5), put("/b", 7)]));
        assert_eq!(gap, Err(HistoryError::Compacted { floor: Revision::new(7) }));
        let late = after(4).take(message(false, vec![put("/a", 6)]));
        assert_eq!(late, Err(HistoryError::Compacted { floor: Revision::new(6) }));
    }
}
