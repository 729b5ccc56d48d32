//! All events of the cluster, in order and without a gap.
//!
//! The watch covers all keys of the cluster. So each revision has at least one event, and after the last
//! event of a revision the stream has delivered everything up to that revision. A watch of some keys could
//! not know this: etcd sends nothing for revisions that write other keys, and in many versions its progress
//! notifications may overtake events.

use bytes::Bytes;
use store::{Event, ReadError, Revision, Unavailable};

use crate::call_error::CallError;
use crate::client::{Client, WatchStream};
use crate::etcd_conversion::{self, ConvertedEvent};
use crate::etcd_messages::{
    RangeRequest, RangeResponse, WatchCreateRequest, WatchEvent, WatchResponse,
};
use crate::member::RANGE;

/// The first possible key. As the end of a range it means that the range has no end.
const ALL_KEYS: &[u8] = b"\0";

/// A stream of all events after a revision.
pub(crate) struct EventStream {
    watch_stream: WatchStream,
    revision_assembler: RevisionAssembler,
}

/// The events of one or more complete revisions.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EventBatch {
    /// Events whose keys are valid keys of this store. Keys that expire together have the same revision.
    pub(crate) events: Vec<Event>,
    /// The stream has delivered all events up to this revision.
    pub(crate) complete_through_revision: Revision,
}

/// The reason why a stream ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EventStreamError {
    /// The next events are compacted; `floor` is the oldest state that may be complete.
    Compacted { floor: Revision },
    /// The watch broke; a new one can continue.
    Broken(Unavailable),
}

impl From<Unavailable> for EventStreamError {
    fn from(error: Unavailable) -> Self {
        Self::Broken(error)
    }
}

impl EventStream {
    /// Opens a stream after a revision.
    pub(crate) async fn open(client: &Client, after: Revision) -> Result<Self, EventStreamError> {
        let create = WatchCreateRequest {
            key: Bytes::from_static(ALL_KEYS),
            range_end: Bytes::from_static(ALL_KEYS),
            start_revision: etcd_conversion::to_etcd_revision(after.next()).unwrap_or(i64::MAX),
            prev_kv: true,
            fragment: true,
        };
        let messages = client.open_watch(create).await?;
        Ok(Self {
            watch_stream: messages,
            revision_assembler: RevisionAssembler {
                complete_through_revision: after,
                incomplete_events: Vec::new(),
            },
        })
    }

    /// The next revisions. Dropping the future loses no event.
    pub(crate) async fn next(&mut self) -> Result<EventBatch, EventStreamError> {
        loop {
            let message = self.watch_stream.next().await?;
            if message.canceled {
                return Err(self.cancellation_error(&message));
            }
            if let Some(step) = self.revision_assembler.push_watch_response(message)? {
                return Ok(step);
            }
        }
    }

    fn cancellation_error(&self, message: &WatchResponse) -> EventStreamError {
        if message.compact_revision > 0 {
            return EventStreamError::Compacted {
                floor: etcd_conversion::revision_from_etcd(message.compact_revision),
            };
        }
        self.watch_stream.mark_member_failed();
        EventStreamError::Broken(self.watch_stream.unavailable_error(&message.cancel_reason))
    }

    /// Abandons a member that is silent although newer revisions exist.
    pub(crate) fn abandon_member(&self) -> EventStreamError {
        self.watch_stream.abandon_connection();
        EventStreamError::Broken(self.watch_stream.unavailable_error("it sends no events"))
    }
}

/// Assembles fragments of watch responses into complete revisions.
struct RevisionAssembler {
    complete_through_revision: Revision,
    /// Events of the last revision while more of it may arrive.
    incomplete_events: Vec<WatchEvent>,
}

impl RevisionAssembler {
    /// Adds a message. Returns `None` if it completes no revision.
    fn push_watch_response(
        &mut self,
        message: WatchResponse,
    ) -> Result<Option<EventBatch>, EventStreamError> {
        self.incomplete_events.extend(message.events);
        let mut whole = std::mem::take(&mut self.incomplete_events);
        if message.fragment
            && let Some(last) = whole.last().map(etcd_conversion::event_revision)
        {
            self.incomplete_events = whole
                .split_off(whole.partition_point(|e| etcd_conversion::event_revision(e) < last));
        }
        let before = self.complete_through_revision;
        let mut complete_through = before;
        let mut events = Vec::new();
        for event in &whole {
            let revision = etcd_conversion::event_revision(event);
            // A member that lagged when the watch opened may repeat events.
            if revision <= before {
                continue;
            }
            if revision > complete_through.next() {
                return Err(EventStreamError::Compacted { floor: revision });
            }
            match etcd_conversion::event_from_etcd(event) {
                ConvertedEvent::Event(event) => events.push(event),
                ConvertedEvent::Foreign => {}
                ConvertedEvent::NoPreviousVersion => {
                    return Err(EventStreamError::Compacted { floor: revision });
                }
            }
            complete_through = revision;
        }
        self.complete_through_revision = complete_through;
        Ok((complete_through > before)
            .then_some(EventBatch { events, complete_through_revision: complete_through }))
    }
}

/// The oldest state that can be read. etcd reports it only in errors: a read of the first revision shows
/// whether anything is compacted, and a watch from there fails with the floor.
pub(crate) async fn find_compaction_floor(client: &Client) -> Result<Revision, ReadError> {
    let key = Bytes::from_static(ALL_KEYS);
    let first = etcd_conversion::to_etcd_revision(Revision::FIRST).unwrap_or_default();
    let range = RangeRequest { key, revision: first, count_only: true, ..RangeRequest::default() };
    match client.call::<_, RangeResponse>(RANGE, &range).await {
        Ok(_) => return Ok(Revision::FIRST),
        Err(CallError::Compacted) => {}
        Err(error) => return Err(error.into_read_error()),
    }
    let create = WatchCreateRequest {
        key: range.key,
        start_revision: first,
        ..WatchCreateRequest::default()
    };
    let refused = async {
        let mut messages = client.open_watch(create).await?;
        loop {
            let message = messages.next().await?;
            if message.compact_revision > 0 {
                return Ok(etcd_conversion::revision_from_etcd(message.compact_revision));
            }
        }
    };
    client.with_request_timeout(refused).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd_messages::KeyValue;

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

    /// Formats the keys and the revision of a batch.
    fn told(step: Result<Option<EventBatch>, EventStreamError>) -> Option<(String, u64)> {
        let step = step.unwrap()?;
        let keys: Vec<&str> = step.events.iter().map(|event| event.key.as_str()).collect();
        Some((keys.join(" "), step.complete_through_revision.as_u64()))
    }

    fn after(revision: u64) -> RevisionAssembler {
        RevisionAssembler {
            complete_through_revision: Revision::new(revision),
            incomplete_events: Vec::new(),
        }
    }

    #[test]
    fn foreign_keys_advance_the_revision_without_events() {
        let mut assembler = after(4);
        let events = vec![put("/a", 5), put("compact_rev_key", 6), put("/b", 7)];
        assert_eq!(
            told(assembler.push_watch_response(message(false, events))),
            Some(("/a /b".into(), 7))
        );
        assert_eq!(
            told(assembler.push_watch_response(message(false, vec![put("x", 8)]))),
            Some(("".into(), 8))
        );
        assert_eq!(told(assembler.push_watch_response(message(false, vec![]))), None);
    }

    #[test]
    fn a_fragmented_revision_is_delivered_when_complete() {
        let mut assembler = after(4);
        let first = message(true, vec![put("/a", 5), put("/b", 6)]);
        assert_eq!(told(assembler.push_watch_response(first)), Some(("/a".into(), 5)));
        assert_eq!(told(assembler.push_watch_response(message(true, vec![put("/c", 6)]))), None);
        let last = message(false, vec![put("/d", 6), put("/e", 7)]);
        assert_eq!(told(assembler.push_watch_response(last)), Some(("/b /c /d /e".into(), 7)));
    }

    #[test]
    fn delivered_events_are_not_repeated() {
        let mut assembler = after(4);
        let events = vec![put("/a", 3), put("/b", 4), put("/c", 5)];
        assert_eq!(
            told(assembler.push_watch_response(message(false, events))),
            Some(("/c".into(), 5))
        );
    }

    #[test]
    fn a_missing_revision_counts_as_compacted() {
        let gap = after(4).push_watch_response(message(false, vec![put("/a", 5), put("/b", 7)]));
        assert_eq!(gap, Err(EventStreamError::Compacted { floor: Revision::new(7) }));
        let late = after(4).push_watch_response(message(false, vec![put("/a", 6)]));
        assert_eq!(late, Err(EventStreamError::Compacted { floor: Revision::new(6) }));
    }
}
