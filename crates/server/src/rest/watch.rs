//! `watch`: what changes, in the order in which it changes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use api_object::{Status, Tree};
use api_resources::Resource;
use bytes::Bytes;
use concurrency_limit::{Busy, Permit};
use serde_json::json;
use store::{
    At, Change, Entry, Event, Key, ListRequest, Prefix, Revision, Store, Watch, WatchError,
};
use tokio::time::Instant;

use crate::initialize::is_hidden;
use crate::rest::call::parse;
use crate::rest::{Call, Filter, WatchOptions, WatchStart};
use crate::undecodable::DecodableVersions;

/// How long before its end a watch says how far it came.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);
/// Marks the bookmark after the objects that existed when the watch began.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// One thing that a watch tells.
#[derive(Debug)]
pub(crate) struct WatchEvent {
    pub(crate) kind: &'static str,
    pub(crate) object: Seen,
}

/// The object of an event.
#[derive(Debug)]
pub(crate) enum Seen {
    /// As it is stored, and the revision to show it with.
    Stored(Bytes, Revision),
    /// A bookmark.
    Tree(Tree),
    /// What went wrong.
    Status(Box<Status>),
}

/// Why a watch ends without telling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WatchRegistration;

/// A running watch.
pub(crate) struct Watcher<S: Store> {
    store: Arc<S>,
    source: Option<S::Watch>,
    prefix: Prefix,
    decodable_versions: Arc<DecodableVersions>,
    pub(crate) resource: Arc<Resource>,
    filter: Filter,
    ready: VecDeque<WatchEvent>,
    /// Everything up to here was told or is ready to be.
    through: Revision,
    allows_bookmarks: bool,
    bookmark_every: Duration,
    last_bookmark: (Instant, Revision),
    pub(crate) ends_at: Instant,
    is_over: bool,
    /// `None` for a member of `system:masters`.
    _permit: Option<Permit>,
}

impl<S: Store> Call<'_, S> {
    /// Begins a watch.
    pub(crate) async fn watch(
        &self,
        resource: Arc<Resource>,
        filter: Filter,
        options: WatchOptions,
        ends_at: Instant,
    ) -> Result<Watcher<S>, Status> {
        let permit = self.watch_permit()?;
        let mut watcher = Watcher {
            store: Arc::clone(&self.server.store),
            source: None,
            prefix: self.key_prefix()?,
            decodable_versions: Arc::clone(&self.server.decodable_versions),
            resource,
            filter,
            ready: VecDeque::new(),
            through: Revision::ZERO,
            allows_bookmarks: options.allows_bookmarks,
            bookmark_every: self.server.options.bookmark_every,
            last_bookmark: (Instant::now(), Revision::ZERO),
            ends_at,
            is_over: false,
            _permit: permit,
        };
        match options.start {
            WatchStart::After(0) => {
                let current = self.server.store.current_rev().await;
                watcher.through = current.map_err(|error| self.read_failed("watch", &error))?;
            }
            WatchStart::After(number) => watcher.through = Revision::new(number),
            WatchStart::Initial { not_older_than, .. } => {
                match self.not_older_than(not_older_than, "watch").await {
                    Ok(_) => {}
                    // The stream has begun as far as the client is concerned.
                    Err(status) if status.code == 504 => {
                        watcher.fail(status);
                        return Ok(watcher);
                    }
                    Err(status) => return Err(status),
                }
                self.tell_current(&mut watcher).await?;
            }
        }
        watcher.last_bookmark.1 = watcher.through;
        Ok(watcher)
    }

    /// One of the places for watches, of which a user has a share.
    fn watch_permit(&self) -> Result<Option<Permit>, Status> {
        let user = self.authorized.user();
        if user.is_in_group("system:masters") {
            return Ok(None);
        }
        self.server.watches.acquire(authz::limit_name(&user.name)).map(Some).map_err(|busy| {
            self.server.metrics.terminations.with_label_values(&["429"]).inc();
            let why = match busy {
                Busy::User { calls_max } => format!(
                    "{calls_max} watches of this user are open, which is the most for one user, \
                     please try again later"
                ),
                Busy::Webhook { calls_max } => format!(
                    "{calls_max} watches are open, which is the most, please try again later"
                ),
            };
            Status::too_many_requests(&why, 1)
        })
    }

    async fn tell_current(&self, watcher: &mut Watcher<S>) -> Result<(), Status> {
        let request = ListRequest { at: At::Newest, ..ListRequest::default() };
        let page = self.server.store.list(&watcher.prefix, request).await;
        let page = page.map_err(|error| self.read_failed("watch", &error))?;
        for item in page.items {
            let revision = item.entry.mod_rev;
            if let Some(value) = watcher.sight(&item.key, item.entry) {
                let object = Seen::Stored(value, revision);
                watcher.ready.push_back(WatchEvent { kind: "ADDED", object });
            }
        }
        watcher.through = page.revision;
        if watcher.allows_bookmarks {
            let mut bookmark = watcher.bookmark(page.revision);
            let annotations = json!({INITIAL_EVENTS_END: "true"});
            api_object::metadata_mut(&mut bookmark).insert("annotations".to_owned(), annotations);
            let object = Seen::Tree(bookmark);
            watcher.ready.push_back(WatchEvent { kind: "BOOKMARK", object });
        }
        Ok(())
    }
}

impl<S: Store> Watcher<S> {
    /// The next thing to tell; waits for it.
    pub(crate) async fn next(&mut self) -> Result<WatchEvent, WatchRegistration> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            if self.is_over {
                return Err(WatchRegistration);
            }
            let now = Instant::now();
            if now >= self.ends_at {
                self.is_over = true;
                continue;
            }
            if let Some(event) = self.due_bookmark(now) {
                return Ok(event);
            }
            let mut wake = self.ends_at;
            if self.allows_bookmarks && now + LAST_BOOKMARK < self.ends_at {
                wake = (self.ends_at - LAST_BOOKMARK).min(now + self.bookmark_every);
            }
            // Dropping the future of a watch loses nothing.
            if let Ok(result) = tokio::time::timeout_at(wake, self.advance()).await {
                match result {
                    Ok(()) => {}
                    Err(WatchError::Compacted { .. }) => self.fail(Status::expired(
                        "The resourceVersion for the provided watch is too old.",
                    )),
                    // The store is closed or gone; the client resumes where it was.
                    Err(WatchError::Unavailable(_)) => self.is_over = true,
                }
            }
        }
    }

    /// Whether something is ready to be told without waiting.
    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    async fn advance(&mut self) -> Result<(), WatchError> {
        let source = match &mut self.source {
            Some(source) => source,
            None => {
                let begun = self.store.watch(self.prefix.clone(), self.through).await?;
                self.source.insert(begun)
            }
        };
        let batch = source.next().await?;
        for event in batch.events {
            if let Some(told) = self.told(event) {
                self.ready.push_back(told);
            }
        }
        self.through = batch.through;
        Ok(())
    }

    /// What an event of the store means to somebody who sees only some objects.
    fn told(&self, event: Event) -> Option<WatchEvent> {
        let name = event.key.rsplit('/').next().unwrap_or_default();
        if !self.filter.may_match(name) {
            return None;
        }
        let revision = event.revision;
        let sight = |entry: Entry| self.sight(&event.key, entry);
        let (kind, value) = match event.change {
            Change::Create(entry) => ("ADDED", sight(entry)?),
            Change::Delete { prev } => ("DELETED", sight(prev)?),
            Change::Update { entry, prev } => match (sight(prev), sight(entry)) {
                (Some(_), Some(value)) => ("MODIFIED", value),
                (None, Some(value)) => ("ADDED", value),
                (Some(value), None) => ("DELETED", value),
                (None, None) => return None,
            },
        };
        Some(WatchEvent { kind, object: Seen::Stored(value, revision) })
    }

    /// The object as it is told, if it is wanted.
    fn sight(&self, key: &Key, entry: Entry) -> Option<Bytes> {
        if self.filter.hides_uninitialized() && is_hidden(&entry.value) {
            return None;
        }
        let sighted = self.decodable_versions.sight(&self.resource, key, entry);
        let is_wanted = |tree: Tree| match sighted.is_placeholder {
            true => self.filter.matches_placeholder(&self.resource, &tree),
            false => self.filter.matches(&self.resource, &tree),
        };
        (self.filter.is_open() || parse(&self.resource, &sighted.entry).is_ok_and(is_wanted))
            .then_some(sighted.entry.value)
    }

    fn due_bookmark(&mut self, now: Instant) -> Option<WatchEvent> {
        let (told_at, told) = self.last_bookmark;
        let is_last = now + LAST_BOOKMARK >= self.ends_at;
        let is_due = is_last || now.duration_since(told_at) >= self.bookmark_every;
        if !self.allows_bookmarks || !is_due || self.through <= told {
            return None;
        }
        self.last_bookmark = (now, self.through);
        let object = Seen::Tree(self.bookmark(self.through));
        Some(WatchEvent { kind: "BOOKMARK", object })
    }

    fn bookmark(&self, revision: Revision) -> Tree {
        let bookmark = json!({
            "kind": self.resource.kind,
            "apiVersion": self.resource.group_version().to_string(),
            "metadata": {"resourceVersion": revision.to_string()},
        });
        bookmark.as_object().cloned().unwrap_or_default()
    }

    fn fail(&mut self, status: Status) {
        let object = Seen::Status(Box::new(status));
        self.ready.push_back(WatchEvent { kind: "ERROR", object });
        self.is_over = true;
    }
}
