//! `watch`: the changes of objects, in the order of their revisions.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::ops::Bound;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use api_object::{Status, Tree};
use api_resources::Resource;
use bytes::Bytes;
use codec::WatchEventType;
use concurrency_limit::{LimitReached, Permit};
use serde_json::json;
use store::{
    At, Change, Entry, Event, Key, ListPage, ListRequest, Prefix, ReadError, Revision, Store,
    WakeOrder, Watch, WatchError,
};
use tokio::time::{Instant, Sleep};

use crate::decodable_object_cache::DecodableObjectCache;
use crate::initializers::is_stored_uninitialized;
use crate::rest::get::wait_for_store_revision;
use crate::rest::{ObjectFilter, RequestContext, WatchOptions, WatchStart, decode_stored_entry};

/// A watch sends its last bookmark this long before its end.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);
/// How many of the objects that exist when a watch begins are read at a time. The watch sends them before it reads more,
/// so that it holds few of them.
const INITIAL_PAGE_ITEMS: usize = 128;
/// A page of these objects ends when they have this many bytes, because a watch with a slow client holds its page
/// for a long time.
const INITIAL_PAGE_BYTES: usize = 1 << 20;
/// A watch that has sent its events keeps room for this many, because an idle watch should be small.
const KEPT_EVENTS_MAX: usize = 16;
/// A watch that has skipped this many events that its client does not see lets other tasks run.
const UNSEEN_EVENTS_PER_TURN: usize = 64;
/// The annotation of the bookmark after the objects that existed when the watch began.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// An event of a watch.
#[derive(Debug)]
pub(crate) struct WatchEvent {
    pub(crate) event_type: WatchEventType,
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
    list_key_prefix: Prefix,
    decodable_object_cache: Arc<DecodableObjectCache>,
    pub(crate) resource: Arc<Resource>,
    filter: ObjectFilter,
    /// Events that were not sent yet.
    pending_events: VecDeque<WatchEvent>,
    /// The objects that existed when the watch began and were not read yet.
    unread_initial_objects: Option<UnreadInitialObjects>,
    /// Every event up to this revision was sent or is pending.
    through_revision: Revision,
    allows_bookmarks: bool,
    bookmark_interval: Duration,
    last_bookmark: (Instant, Revision),
    /// Fires when a bookmark may be due or the watch ends. It is reset only after it has fired, because most events
    /// arrive long before.
    bookmark_or_end_timer: Pin<Box<Sleep>>,
    pub(crate) watch_ends_at: Instant,
    has_watch_ended: bool,
    /// `None` for a member of `system:masters`.
    _watch_permit: Option<Permit>,
}

/// The position in the objects that existed at the revision at which a watch began.
struct UnreadInitialObjects {
    revision: Revision,
    /// The last key that was read.
    last_read_key: Key,
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
        list_key_prefix: ctx.list_key_prefix()?,
        decodable_object_cache: Arc::clone(&ctx.server.decodable_object_cache),
        resource,
        filter,
        pending_events: VecDeque::new(),
        unread_initial_objects: None,
        through_revision: Revision::ZERO,
        allows_bookmarks: options.allows_bookmarks,
        bookmark_interval: ctx.server.api_settings.bookmark_interval,
        last_bookmark: (Instant::now(), Revision::ZERO),
        bookmark_or_end_timer: Box::pin(tokio::time::sleep_until(Instant::now())),
        watch_ends_at: ends_at,
        has_watch_ended: false,
        _watch_permit: permit,
    };
    match options.start {
        WatchStart::After(0) => {
            let current = ctx.server.store.current_rev().await;
            watcher.through_revision =
                current.map_err(|error| ctx.store_read_error_status("watch", &error))?;
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
    let Some(user) = ctx.user_for_limits() else { return Ok(None) };
    ctx.server.watch_limit.acquire_permit(user).map(Some).map_err(|busy| {
        ctx.server.metrics.request_terminations.with_label_values(&["429"]).inc();
        let why = match busy {
            LimitReached::User { permits_max } => format!(
                "{permits_max} watches of this user are open, which is the most for one user, \
                     please try again later"
            ),
            LimitReached::Total { permits_max } => {
                format!("{permits_max} watches are open, which is the most, please try again later")
            }
        };
        Status::too_many_requests(&why, 1)
    })
}

/// Adds events for the first of the objects that exist now. The others are read when these are sent, at the same
/// revision.
async fn add_current_objects(
    ctx: &RequestContext<'_>,
    watcher: &mut Watcher,
) -> Result<(), Status> {
    let request = initial_page_request(Bound::Unbounded, At::Newest);
    let page = ctx.server.store.list(&watcher.list_key_prefix, request).await;
    let page = page.map_err(|error| ctx.store_read_error_status("watch", &error))?;
    watcher.through_revision = page.revision;
    watcher.add_initial_page(page);
    Ok(())
}

fn initial_page_request(from: Bound<Key>, at: At) -> ListRequest {
    let limit = NonZeroUsize::new(INITIAL_PAGE_ITEMS);
    ListRequest {
        from,
        items_max: limit,
        page_bytes_max: NonZeroUsize::new(INITIAL_PAGE_BYTES),
        at,
    }
}

impl Watcher {
    /// Waits for the next event.
    pub(crate) async fn next(&mut self) -> Result<WatchEvent, WatchEnd> {
        loop {
            if let Some(event) = self.pending_events.pop_front() {
                if self.pending_events.is_empty() {
                    self.pending_events.shrink_to(KEPT_EVENTS_MAX);
                }
                return Ok(event);
            }
            if self.has_watch_ended {
                return Err(WatchEnd);
            }
            let now = Instant::now();
            if now >= self.watch_ends_at {
                self.has_watch_ended = true;
                continue;
            }
            if let Some(unread) = &self.unread_initial_objects {
                let (revision, after) = (unread.revision, unread.last_read_key.clone());
                self.read_initial_page(revision, after).await;
                continue;
            }
            if let Some(event) = self.take_due_bookmark(now) {
                return Ok(event);
            }
            let mut wake = self.watch_ends_at;
            if self.allows_bookmarks && now + LAST_BOOKMARK < self.watch_ends_at {
                wake = (self.watch_ends_at - LAST_BOOKMARK).min(now + self.bookmark_interval);
            }
            if self.bookmark_or_end_timer.is_elapsed()
                || self.bookmark_or_end_timer.deadline() > wake
            {
                self.bookmark_or_end_timer.as_mut().reset(wake);
            }
            match self.read_next_event_batch().await {
                Ok(()) => {}
                Err(WatchError::Compacted { .. }) => {
                    self.end_with_error(Status::resource_version_expired(
                        "The resourceVersion for the provided watch is too old.",
                    ))
                }
                // The store is closed or unavailable; the client resumes from its last revision.
                Err(WatchError::Unavailable(_)) => self.has_watch_ended = true,
            }
        }
    }

    /// Reads the next objects that existed when the watch began.
    async fn read_initial_page(&mut self, revision: Revision, after: Key) {
        let request = initial_page_request(Bound::Excluded(after), At::Exactly(revision));
        match self.store.list(&self.list_key_prefix, request).await {
            Ok(page) => self.add_initial_page(page),
            Err(ReadError::Compacted { .. }) => {
                self.end_with_error(Status::resource_version_expired(
                    "The resourceVersion for the provided watch is too old.",
                ))
            }
            // The client begins again.
            Err(ReadError::Future { .. } | ReadError::Unavailable(_) | ReadError::Timeout) => {
                self.has_watch_ended = true;
            }
        }
        if self.pending_events.is_empty() {
            // The selector matched no object of the page, so no event suspends this task.
            tokio::task::yield_now().await;
        }
    }

    /// Adds events for a page of the objects that existed when the watch began, and after the last page the bookmark
    /// that says so.
    fn add_initial_page(&mut self, page: ListPage) {
        let last = page.items.last().map(|item| item.key.clone());
        for item in page.items {
            let revision = item.entry.mod_rev;
            if let Some(value) = self.visible_object_bytes(&item.key, item.entry) {
                let object = WatchEventObject::Stored(value, revision);
                self.pending_events
                    .push_back(WatchEvent { event_type: WatchEventType::Added, object });
            }
        }
        let revision = page.revision;
        self.unread_initial_objects = last
            .filter(|_| page.n_remaining_items > 0)
            .map(|after| UnreadInitialObjects { revision, last_read_key: after });
        if self.allows_bookmarks && self.unread_initial_objects.is_none() {
            let mut bookmark = self.new_bookmark(revision);
            let annotations = json!({INITIAL_EVENTS_END: "true"});
            api_object::metadata_mut(&mut bookmark).insert("annotations".to_owned(), annotations);
            let object = WatchEventObject::Tree(bookmark);
            self.pending_events
                .push_back(WatchEvent { event_type: WatchEventType::Bookmark, object });
        }
    }

    /// Whether an event can be sent without waiting.
    pub(crate) fn has_pending_events(&self) -> bool {
        !self.pending_events.is_empty()
    }

    /// Waits for the next events of the store, or until the timer fires.
    async fn read_next_event_batch(&mut self) -> Result<(), WatchError> {
        let source = match &mut self.source {
            Some(source) => source,
            None => {
                let (prefix, after) = (self.list_key_prefix.clone(), self.through_revision);
                let begun =
                    self.store.watch_with_wake_order(prefix, after, WakeOrder::InGroup).await?;
                self.source.insert(begun)
            }
        };
        // Dropping the future of a watch loses no events.
        let batch = tokio::select! {
            biased;
            batch = source.next() => batch?,
            () = &mut self.bookmark_or_end_timer => return Ok(()),
        };
        let n_events = batch.events.len();
        for event in batch.events {
            if let Some(visible) = self.visible_event(event) {
                self.pending_events.push_back(visible);
            }
        }
        self.through_revision = batch.complete_through_revision;
        if self.pending_events.is_empty() && n_events >= UNSEEN_EVENTS_PER_TURN {
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// The event for a client that sees only the objects that match its filter.
    fn visible_event(&self, event: Event) -> Option<WatchEvent> {
        let name = event.key.rsplit('/').next().unwrap_or_default();
        if !self.filter.may_match_name(name) {
            return None;
        }
        let revision = event.revision;
        let visible = |entry: Entry| self.visible_object_bytes(&event.key, entry);
        let (event_type, value) = match event.change {
            Change::Create(entry) => (WatchEventType::Added, visible(entry)?),
            Change::Delete { prev } => (WatchEventType::Deleted, visible(prev)?),
            Change::Update { entry, prev } => match (visible(prev), visible(entry)) {
                (Some(_), Some(value)) => (WatchEventType::Modified, value),
                (None, Some(value)) => (WatchEventType::Added, value),
                (Some(value), None) => (WatchEventType::Deleted, value),
                (None, None) => return None,
            },
        };
        Some(WatchEvent { event_type, object: WatchEventObject::Stored(value, revision) })
    }

    /// The stored form of an object that matches the filter.
    fn visible_object_bytes(&self, key: &Key, entry: Entry) -> Option<Bytes> {
        if self.filter.hides_uninitialized() && is_stored_uninitialized(&entry.value) {
            return None;
        }
        let listed = self.decodable_object_cache.entry_or_placeholder(&self.resource, key, entry);
        let matches = |tree: Tree| match listed.is_placeholder {
            true => self.filter.matches_undecodable_placeholder(&self.resource, &tree),
            false => self.filter.matches(&self.resource, &tree),
        };
        (self.filter.has_no_selectors()
            || decode_stored_entry(&self.resource, &listed.entry).is_ok_and(matches))
        .then_some(listed.entry.value)
    }

    fn take_due_bookmark(&mut self, now: Instant) -> Option<WatchEvent> {
        let (sent_at, sent) = self.last_bookmark;
        let is_last = now + LAST_BOOKMARK >= self.watch_ends_at;
        let is_due = is_last || now.duration_since(sent_at) >= self.bookmark_interval;
        if !self.allows_bookmarks || !is_due || self.through_revision <= sent {
            return None;
        }
        self.last_bookmark = (now, self.through_revision);
        let object = WatchEventObject::Tree(self.new_bookmark(self.through_revision));
        Some(WatchEvent { event_type: WatchEventType::Bookmark, object })
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
        self.pending_events.push_back(WatchEvent { event_type: WatchEventType::Error, object });
        self.has_watch_ended = true;
    }
}
