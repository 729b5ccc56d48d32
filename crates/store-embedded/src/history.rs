//! The changes since the floor, oldest first, as a list of which old copies stay readable.
//!
//! Watches read it, and reads of old states undo it. It is made of sealed chunks that never change and
//! a tail that is copied by the next batch of writes. The oldest chunks can be paged out to files.

use std::io;
use std::sync::Arc;

use store::{Change, Event, Prefix, Revision};

use crate::page::Page;
use crate::version::Version;

/// A chunk is sealed with so many changes. Small, because each batch copies the tail.
const CHUNK_CHANGES_MAX: usize = 128;
/// Or with so many bytes, so that one page is quickly read.
const CHUNK_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One write of a key: the version it made, if any, and the version it ended, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) revision: Revision,
    pub(crate) now: Option<Arc<Version>>,
    pub(crate) prev: Option<Arc<Version>>,
}

/// A list of steps.
#[derive(Debug, Clone)]
pub(crate) struct History {
    sealed: Arc<Vec<Chunk>>,
    tail: Arc<Vec<Step>>,
    /// Of the versions that the tail made or ended.
    tail_bytes: usize,
    len: usize,
    /// Of the ended versions in chunks that are not paged out: what history alone keeps in memory.
    resident_bytes: usize,
}

#[derive(Debug, Clone)]
struct Chunk {
    last: Revision,
    len: usize,
    /// Of the ended versions.
    bytes: usize,
    body: Body,
}

#[derive(Debug, Clone)]
enum Body {
    Resident(Arc<Vec<Step>>),
    Paged(Arc<Page>),
}

/// What [`History::events`] found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) events: Vec<Event>,
    /// The last revision that was looked at, when a limit ended the search.
    pub(crate) stopped_at: Option<Revision>,
}

impl Step {
    /// The version that tells the key.
    fn version(&self) -> Option<&Arc<Version>> {
        self.now.as_ref().or(self.prev.as_ref())
    }

    fn ended_bytes(&self) -> usize {
        self.prev.as_ref().map_or(0, |version| version.value.len() + version.key.len())
    }

    fn bytes(&self) -> usize {
        self.ended_bytes() + self.now.as_ref().map_or(0, |version| version.value.len())
    }

    fn event(&self) -> Option<Event> {
        let (key, change) = match (&self.now, &self.prev) {
            (Some(now), None) => (&now.key, Change::Create(now.entry())),
            (Some(now), Some(prev)) => {
                (&now.key, Change::Update { entry: now.entry(), prev: prev.entry() })
            }
            (None, Some(prev)) => (&prev.key, Change::Delete { prev: prev.entry() }),
            (None, None) => return None,
        };
        Some(Event { key: key.clone(), revision: self.revision, change })
    }
}

impl History {
    pub(crate) fn new() -> Self {
        Self {
            sealed: Arc::default(),
            tail: Arc::default(),
            tail_bytes: 0,
            len: 0,
            resident_bytes: 0,
        }
    }

    /// How many steps it holds, some of which may be at or before the floor.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn resident_bytes(&self) -> usize {
        self.resident_bytes
    }

    /// The last revision of the oldest chunk that is in memory.
    pub(crate) fn oldest_resident(&self) -> Option<Revision> {
        let resident = |chunk: &&Chunk| matches!(chunk.body, Body::Resident(_));
        self.sealed.iter().find(resident).map(|chunk| chunk.last)
    }

    pub(crate) fn push(&mut self, step: Step) {
        self.tail_bytes += step.bytes();
        self.resident_bytes += step.ended_bytes();
        self.len += 1;
        let revision = step.revision;
        let tail = Arc::make_mut(&mut self.tail);
        tail.push(step);
        if tail.len() >= CHUNK_CHANGES_MAX || self.tail_bytes >= CHUNK_BYTES_MAX {
            let steps = std::mem::take(&mut self.tail);
            let chunk = Chunk {
                last: revision,
                len: steps.len(),
                bytes: steps.iter().map(Step::ended_bytes).sum(),
                body: Body::Resident(steps),
            };
            Arc::make_mut(&mut self.sealed).push(chunk);
            self.tail_bytes = 0;
        }
    }

    /// Lets go of chunks that lie at or before the floor as a whole.
    pub(crate) fn trim(&mut self, floor: Revision) {
        let n_old = self.sealed.partition_point(|chunk| chunk.last <= floor);
        if n_old > 0 {
            for chunk in Arc::make_mut(&mut self.sealed).drain(..n_old) {
                self.len -= chunk.len;
                if matches!(chunk.body, Body::Resident(_)) {
                    self.resident_bytes -= chunk.bytes;
                }
            }
        }
        if self.tail.last().is_some_and(|step| step.revision <= floor) {
            self.len -= self.tail.len();
            self.resident_bytes -= self.tail.iter().map(Step::ended_bytes).sum::<usize>();
            self.tail = Arc::default();
            self.tail_bytes = 0;
        }
    }

    /// Moves the oldest resident chunk to a page that `write` makes of it.
    pub(crate) fn page_out(
        &mut self,
        write: &mut dyn FnMut(&[Step]) -> io::Result<Page>,
    ) -> io::Result<()> {
        let resident = |chunk: &Chunk| matches!(chunk.body, Body::Resident(_));
        let Some(at) = self.sealed.iter().position(resident) else { return Ok(()) };
        let Some(chunk) = Arc::make_mut(&mut self.sealed).get_mut(at) else { return Ok(()) };
        if let Body::Resident(steps) = &chunk.body {
            let page = write(steps)?;
            chunk.body = Body::Paged(Arc::new(page));
            self.resident_bytes -= chunk.bytes;
        }
        Ok(())
    }

    /// Whether steps after this revision must be read from files.
    pub(crate) fn is_paged_after(&self, after: Revision) -> bool {
        let at = self.sealed.partition_point(|chunk| chunk.last <= after);
        self.sealed.get(at).is_some_and(|chunk| matches!(chunk.body, Body::Paged(_)))
    }

    /// Calls `visit` with each step after a revision, oldest first, until it says to stop.
    pub(crate) fn visit(
        &self,
        after: Revision,
        visit: &mut dyn FnMut(&Step) -> bool,
    ) -> io::Result<()> {
        let from = self.sealed.partition_point(|chunk| chunk.last <= after);
        for chunk in self.sealed.iter().skip(from) {
            let goes_on = match &chunk.body {
                Body::Resident(steps) => visit_steps(steps, after, visit),
                Body::Paged(page) => visit_steps(&page.read()?, after, visit),
            };
            if !goes_on {
                return Ok(());
            }
        }
        visit_steps(&self.tail, after, visit);
        Ok(())
    }

    /// The events of a prefix after a revision, about as many as the limits allow.
    pub(crate) fn events(
        &self,
        prefix: &Prefix,
        after: Revision,
        events_max: usize,
        steps_max: usize,
    ) -> io::Result<Found> {
        let mut found = Found { events: Vec::new(), stopped_at: None };
        let mut n_steps = 0;
        let mut last = after;
        self.visit(after, &mut |step| {
            // A write and its mark are two steps of one revision, which is told whole.
            let is_enough = found.events.len() >= events_max || n_steps >= steps_max;
            if is_enough && step.revision > last {
                found.stopped_at = Some(last);
                return false;
            }
            n_steps += 1;
            last = step.revision;
            if step.version().is_some_and(|version| prefix.covers(&version.key)) {
                found.events.extend(step.event());
            }
            true
        })?;
        Ok(found)
    }
}

fn visit_steps(steps: &[Step], after: Revision, visit: &mut dyn FnMut(&Step) -> bool) -> bool {
    let from = steps.partition_point(|step| step.revision <= after);
    steps.iter().skip(from).all(visit)
}
