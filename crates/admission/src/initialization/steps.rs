//! The timers of one object: how long each initializer may take, and what happens then.
//!
//! Time is how long ago the object was created, on a clock that never goes back.

use std::collections::HashMap;
use std::time::Duration;

use super::create::Origin;
use super::options::InitializerOptions;
use crate::hook::FailurePolicy;
use crate::order::{Pending, runnable};
use crate::snapshot::Snapshot;

/// No timer fires more often than this, however short the options are.
const RECHECK_MIN: Duration = Duration::from_millis(1);

/// The timers of one object, from its creation until it is initialized or gone, but no longer than the
/// global timeout (admission §6.6).
///
/// The owner [observes](Self::observe) each state of the object, sleeps until
/// [`next_due`](Self::next_due), and carries out what [`fire`](Self::fire) returns.
#[derive(Debug, Clone)]
pub struct Steps {
    step_timeout: Duration,
    stale_retry: Duration,
    ends_at: Duration,
    origin: Origin,
    /// The names of the first list that was observed, for [`annotation`](Self::annotation).
    created: Option<Vec<String>>,
    timers: Vec<Timer>,
}

/// The timer of an entry that can act.
#[derive(Debug, Clone)]
struct Timer {
    name: String,
    /// Where the entry stands in the list.
    idx: usize,
    /// How many entries have the name. A client may list one twice; when the first of them is done,
    /// the second begins.
    n_entries: usize,
    due: Duration,
    has_failed: bool,
}

/// An entry whose time is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expired {
    /// The initializer.
    pub name: String,
    /// Where it stands in the pending list.
    pub idx: usize,
    /// What to do.
    pub action: ExpiryAction,
}

/// What to do about an entry whose time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExpiryAction {
    /// The entry goes, see [`without`](crate::without). It is due until the object is observed without
    /// it, so that a lost race is simply tried again.
    Remove,
    /// The entry stays, and the creator is told. An entry fails once, even if it is looked up again
    /// and again.
    Fail,
}

impl Steps {
    /// The timers of an object that nobody observed yet.
    #[must_use]
    pub fn new(options: &InitializerOptions, origin: Origin) -> Self {
        Self {
            step_timeout: options.step_timeout.max(RECHECK_MIN),
            stale_retry: options.stale_retry.max(RECHECK_MIN),
            ends_at: options.global_timeout,
            origin,
            created: None,
            timers: Vec::new(),
        }
    }

    /// Takes notice of the pending list. Entries that can act now and could not before begin; those
    /// that could before go on, and those that are gone or have to wait again are forgotten.
    pub fn observe(&mut self, pending: &[Pending], now: Duration) {
        if self.created.is_none() {
            self.created = Some(pending.iter().map(|entry| entry.name.clone()).collect());
        }
        let mut n_entries: HashMap<&str, usize> = HashMap::new();
        for entry in pending {
            *n_entries.entry(&entry.name).or_default() += 1;
        }
        let mut timers: Vec<Timer> = Vec::new();
        for idx in runnable(pending) {
            let Some(Pending { name, .. }) = pending.get(idx) else { continue };
            if timers.iter().any(|timer| timer.name == *name) {
                continue;
            }
            let n_entries = n_entries.get(name.as_str()).copied().unwrap_or_default();
            let running = self.timers.iter().find(|timer| timer.name == *name);
            timers.push(match running.filter(|timer| timer.n_entries <= n_entries) {
                Some(timer) => Timer { idx, n_entries, ..timer.clone() },
                None => Timer {
                    name: name.clone(),
                    idx,
                    n_entries,
                    due: now.saturating_add(self.step_timeout),
                    has_failed: false,
                },
            });
        }
        self.timers = timers;
    }

    /// When there is something to do, if nothing is observed before.
    #[must_use]
    pub fn next_due(&self) -> Duration {
        self.timers.iter().map(|timer| timer.due).fold(self.ends_at, Duration::min)
    }

    /// Whether the object is left to those who read it.
    #[must_use]
    pub fn is_over(&self, now: Duration) -> bool {
        now >= self.ends_at
    }

    /// What to do about the entries that are due, in the order of the list. `configured` is the current
    /// configuration, `None` while it is stale.
    pub fn fire(&mut self, now: Duration, configured: Option<&Snapshot>) -> Vec<Expired> {
        let mut expired = Vec::new();
        for timer in self.timers.iter_mut().filter(|timer| timer.due <= now) {
            let action = match verdict(&timer.name, self.origin, configured) {
                Verdict::Remove => ExpiryAction::Remove,
                Verdict::Fail => {
                    timer.due = now.saturating_add(self.step_timeout);
                    if std::mem::replace(&mut timer.has_failed, true) {
                        continue;
                    }
                    ExpiryAction::Fail
                }
                Verdict::Wait => {
                    timer.due = now.saturating_add(self.stale_retry);
                    continue;
                }
            };
            expired.push(Expired { name: timer.name.clone(), idx: timer.idx, action });
        }
        expired
    }

    /// Puts off an entry that could not be removed for lack of a store.
    pub fn put_off(&mut self, name: &str, now: Duration) {
        let due = now.saturating_add(self.stale_retry);
        self.timers.iter_mut().filter(|timer| timer.name == name).for_each(|it| it.due = due);
    }

    /// The audit annotation that says that an entry was removed, whose value is the name. The number
    /// is the place of the entry in the list that the object was created with, since all are at the
    /// head when they go; those who joined later share the number after the last.
    #[must_use]
    pub fn annotation(&self, name: &str) -> String {
        let created = self.created.as_deref().unwrap_or_default();
        let idx = created.iter().position(|own| own == name).unwrap_or(created.len());
        format!("failed-open.initializer.portcullis.io/{idx}")
    }
}

enum Verdict {
    Remove,
    Fail,
    Wait,
}

/// What the configuration says about an initializer that did not act in time.
fn verdict(name: &str, origin: Origin, configured: Option<&Snapshot>) -> Verdict {
    let Some(snapshot) = configured else { return Verdict::Wait };
    match (snapshot.initializer(name).map(|found| found.failure_policy), origin) {
        (Some(FailurePolicy::Ignore), _) | (None, Origin::Configuration) => Verdict::Remove,
        (Some(FailurePolicy::Fail), _) | (None, Origin::Client) => Verdict::Fail,
    }
}
