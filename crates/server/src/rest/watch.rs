//! `watch`: the changes of objects, in the order of their revisions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use api_object::{Status, Tree};
use api_resources::Resource;
use bytes::Bytes;
use codec::EventType;
use concurrency_limit::{Busy, Permit};
use serde_json::json;
use store::{
    At, Change, Entry, Event, Key, ListRequest, Prefix, Revision, Store, Watch, WatchError,
};
use tokio::time::Instant;

use crate::decodable_versions::DecodableVersions;
use crate::initializers::is_stored_uninitialized;
use crate::rest::get::wait_for_store_revision;
use crate::rest::{ObjectFilter, RequestContext, WatchOptions, WatchStart, decode_stored_entry};

/// A watch sends its last bookmark this long before its end.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);
/// The annotation of the bookmark after the objects that existed when the watch began.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// An event of a watch.
#[derive(Debug)]
pub(crate) struct WatchEvent {
    pub(crate) event_type: EventType,
    pub(crate) object: WatchEventObject,
}

/// The object of a watch event.
#[derive(Debug)]
pub(crate) enum WatchEventObject {
    /// A stored object, and the revision to show as its resourceVersion.
    Stored(Bytes, Revision),
    /// The object of a bookmark.
    Tree(Tree),
    /// The error that ends the watch.
    Status(Box<Status>),
}

/// The end of a watch without an error event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WatchEnd;

/// A watch that has begun, and its unsent events.
pub(crate) struct Watcher {
    store: Arc<dyn Store>,
    source: Option<Box<dyn Watch>>,
    prefix: Prefix,
    decodable_versions: Arc<DecodableVersions>,
    pub(crate) resource: Arc<Resource>,
    filter: ObjectFilter,
    /// Events that were not sent yet.
    pending_events: VecDeque<WatchEvent>,
    /// Every event up to this revision was sent or is pending.
    through_revision: Revision,
    allows_bookmarks: bool,
    bookmark_interval: Duration,
    last_bookmark: (Instant, Revision),
    pub(crate) ends_at: Instant,
    has_ended: bool,
    /// `None` for a member of `system:masters`.
    _watch_permit: Option<Permit>,
}

/// Begins a watch, with the current objects if the client asks for them.
pub(crate) async fn watch(
    ctx: &RequestContext<'_>,
    resource: Arc<Resource>,
    filter: ObjectFilter,
    options: WatchOptions,
    ends_at: Instant,
) -> Result<Watcher, Status> {
    let permit = acquire_watch_permit(ctx)?;
    let mut watcher = Watcher {
        store: Arc::clone(&ctx.server.store),
        source: None,
        prefix: ctx.key_prefix()?,
        decodable_versions: Arc::clone(&ctx.server.decodable_versions),
        resource,
        filter,
        pending_events: VecDeque::new(),
        through_revision: Revision::ZERO,
        allows_bookmarks: options.allows_bookmarks,
        bookmark_interval: ctx.server.api_settings.bookmark_interval,
        last_bookmark: (Instant::now(), Revision::ZERO),
        ends_at,
        has_ended: false,
        _watch_permit: permit,
    };
    match options.start {
        WatchStart::After(0) => {
            let current = ctx.server.store.current_rev().await;
            watcher.through_revision =
                current.map_err(|error| ctx.read_failure_status("watch", &error))?;
        }
        WatchStart::After(number) => watcher.through_revision = Revision::new(number),
        WatchStart::Initial { not_older_than, .. } => {
            match wait_for_store_revision(ctx, not_older_than, "watch").await {
                Ok(_) => {}
                // Kubernetes answers 200 here and sends the error as an event.
                Err(status) if status.code == 504 => {
                    watcher.end_with_error(status);
                    return Ok(watcher);
                }
                Err(status) => return Err(status),
            }
            add_current_objects(ctx, &mut watcher).await?;
        }
    }
    watcher.last_bookmark.1 = watcher.through_revision;
    Ok(watcher)
}

/// Acquires one of the permits for watches, of which each user has a share; members of `system:masters`
/// need none.
fn acquire_watch_permit(ctx: &RequestContext<'_>) -> Result<Option<Permit>, Status> {
    let user = ctx.authorized.user();
    if user.is_in_group("system:masters") {
        return Ok(None);
    }
    ctx.server.watch_limit.acquire(authz::user_limit_key(&user.name)).map(Some).map_err(|busy| {
        ctx.server.metrics.request_terminations.with_label_values(&["429"]).inc();
        let why = match busy {
            Busy::User { permits_max } => format!(
                "{permits_max} watches of this user are open, which is the most for one user, \
                     please try again later"
            ),
            Busy::Total { permits_max } => {
                format!("{permits_max} watches are open, which is the most, please try again later")
            }
        };
        Status::too_many_requests(&why, 1)
    })
}

/// Adds events for all objects that exist now, and the bookmark after them.
async fn add_current_objects(
    ctx: &RequestContext<'_>,
    watcher: &mut Watcher,
) -> Result<(), Status> {
    let request = ListRequest { at: At::Newest, ..ListRequest::default() };
    let page = ctx.server.store.list(&watcher.prefix, request).await;
    let page = page.map_err(|error| ctx.read_failure_status("watch", &error))?;
    for item in page.items {
        let revision = item.entry.mod_rev;
        if let Some(value) = watcher.visible_value(&item.key, item.entry) {
            let object = WatchEventObject::Stored(value, revision);
            watcher.pending_events.push_back(WatchEvent { event_type: EventType::Added, object });
        }
    }
    watcher.through_revision = page.revision;
    if watcher.allows_bookmarks {
        let mut bookmark = watcher.new_bookmark(page.revision);
        let annotations = json!({INITIAL_EVENTS_END: "true"});
        api_object::metadata_mut(&mut bookmark).insert("annotations".to_owned(), annotations);
        let object = WatchEventObject::Tree(bookmark);
        watcher.pending_events.push_back(WatchEvent { event_type: EventType::Bookmark, object });
    }
    Ok(())
}

impl Watcher {
    /// Waits for the next event.
    pub(crate) async fn next(&mut self) -> Result<WatchEvent, WatchEnd> {
        loop {
            if let Some(event) = self.pending_events.pop_front() {
                return Ok(event);
            }
            if self.has_ended {
                return Err(WatchEnd);
            }
            let now = Instant::now();
            if now >= self.ends_at {
                self.has_ended = true;
                continue;
            }
            if let Some(event) = self.take_due_bookmark(now) {
                return Ok(event);
            }
            let mut wake = self.ends_at;
            if self.allows_bookmarks && now + LAST_BOOKMARK < self.ends_at {
                wake = (self.ends_at - LAST_BOOKMARK).min(now + self.bookmark_interval);
            }
            // Dropping the future of a watch loses no events.
            if let Ok(result) = tokio::time::timeout_at(wake, self.read_next_batch()).await {
                match result {
                    Ok(()) => {}
                    Err(WatchError::Compacted { .. }) => self.end_with_error(Status::expired(
                        "The resourceVersion for the provided watch is too old.",
                    )),
                    // The store is closed or unavailable; the client resumes from its last revision.
                    Err(WatchError::Unavailable(_)) => self.has_ended = true,
                }
            }
        }
    }

    /// Whether an event can be sent without waiting.
    pub(crate) fn has_pending_events(&self) -> bool {
        !self.pending_events.is_empty()
    }

    async fn read_next_batch(&mut self) -> Result<(), WatchError> {
        let source = match &mut self.source {
            Some(source) => source,
            None => {
                let begun = self.store.watch(self.prefix.clone(), self.through_revision).await?;
                self.source.insert(begun)
            }
        };
        let batch = source.next().await?;
        for event in batch.events {
            if let Some(visible) = self.visible_event(event) {
                self.pending_events.push_back(visible);
            }
        }
        self.through_revision = batch.complete_through;
        Ok(())
    }

    /// The event for a client that sees only the objects that match its filter.
    fn visible_event(&self, event: Event) -> Option<WatchEvent> {
        let name = event.key.rsplit('/').next().unwrap_or_default();
        if !self.filter.may_match_name(name) {
            return None;
        }
        let revision = event.revision;
        let visible = |entry: Entry| self.visible_value(&event.key, entry);
        let (event_type, value) = match event.change {
            Change::Create(entry) => (EventType::Added, visible(entry)?),
            Change::Delete { prev } => (EventType::Deleted, visible(prev)?),
            Change::Update { entry, prev } => match (visible(prev), visible(entry)) {
                (Some(_), Some(value)) => (EventType::Modified, value),
                (None, Some(value)) => (EventType::Added, value),
                (Some(value), None) => (EventType::Deleted, value),
                (None, None) => return None,
            },
        };
        Some(WatchEvent { event_type, object: WatchEventObject::Stored(value, revision) })
    }

    /// The stored form of an object that matches the filter.
    fn visible_value(&self, key: &Key, entry: Entry) -> Option<Bytes> {
        if self.filter.hides_uninitialized() && is_stored_uninitialized(&entry.value) {
            return None;
        }
        let listed = self.decodable_versions.entry_or_placeholder(&self.resource, key, entry);
        let matches = |tree: Tree| match listed.is_placeholder {
            true => self.filter.matches_placeholder(&self.resource, &tree),
            false => self.filter.matches(&self.resource, &tree),
        };
        (self.filter.has_no_selectors()
            || decode_stored_entry(&self.resource, &listed.entry).is_ok_and(matches))
        .then_some(listed.entry.value)
    }

    fn take_due_bookmark(&mut self, now: Instant) -> Option<WatchEvent> {
        let (sent_at, sent) = self.last_bookmark;
        let is_last = now + LAST_BOOKMARK >= self.ends_at;
        let is_due = is_last || now.duration_since(sent_at) >= self.bookmark_interval;
        if !self.allows_bookmarks || !is_due || self.through_revision <= sent {
            return None;
        }
        self.last_bookmark = (now, self.through_revision);
        let object = WatchEventObject::Tree(self.new_bookmark(self.through_revision));
        Some(WatchEvent { event_type: EventType::Bookmark, object })
    }

    fn new_bookmark(&self, revision: Revision) -> Tree {
        let bookmark = json!({
            "kind": self.resource.kind,
            "apiVersion": self.resource.group_version().to_string(),
            "metadata": {"resourceVersion": revision.to_string()},
        });
        bookmark.as_object().cloned().unwrap_or_default()
    }

    fn end_with_error(&mut self, status: Status) {
        let object = WatchEventObject::Status(Box::new(status));
        self.pending_events.push_back(WatchEvent { event_type: EventType::Error, object });
        self.has_ended = true;
    }
}
