//! The timers of the pending initializers of one object.
//!
//! Times are durations since the creation of the object, on a monotonic clock.

use std::collections::HashMap;
use std::time::Duration;

use super::initializer_options::InitializerOptions;
use super::initializers_on_create::InitializersOrigin;
use crate::hook::FailurePolicy;
use crate::initializer_order::{PendingInitializer, runnable_initializers};
use crate::snapshot::Snapshot;

/// The minimum interval between two checks of a timer, even if the options are shorter.
const RECHECK_MIN: Duration = Duration::from_millis(1);

/// The timers of one object, from its creation until it is initialized or deleted, but no longer than the global timeout.
///
/// The owner [observes](Self::observe_pending) each state of the object, sleeps until [`next_due_at`](Self::next_due_at), and carries out
/// the actions of [`take_expired_initializers`](Self::take_expired_initializers).
#[derive(Debug, Clone)]
pub struct InitializerTimers {
    initializer_step_timeout: Duration,
    stale_configuration_retry_interval: Duration,
    timers_end_at: Duration,
    initializers_origin: InitializersOrigin,
    /// The names of the first list that was observed, for [`removal_annotation_key`](Self::removal_annotation_key).
    initial_pending_names: Option<Vec<String>>,
    timers: Vec<InitializerTimer>,
}

/// The timer of an entry that may act.
#[derive(Debug, Clone)]
struct InitializerTimer {
    name: String,
    /// The position of the entry in the pending list.
    pending_idx: usize,
    /// The number of entries with this name. A client may list a name twice; the timer starts again when the first entry is
    /// removed.
    n_entries_with_name: usize,
    due_at: Duration,
    has_reported_failure: bool,
}

/// An entry of the pending list whose timer expired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredInitializer {
    /// The name of the initializer.
    pub name: String,
    /// The position in the pending list.
    pub pending_idx: usize,
    /// The action to take.
    pub expiry_action: ExpiryAction,
}

/// The action for an expired entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExpiryAction {
    /// Remove the entry, see [`without_initializer`](crate::without_initializer). The entry stays due until the object is
    /// observed without it, so a lost race is retried.
    Remove,
    /// Keep the entry and fail the create request. It is returned once for an entry.
    Fail,
}

impl InitializerTimers {
    /// Makes the timers of a new object, before the first observation.
    #[must_use]
    pub fn new(options: &InitializerOptions, origin: InitializersOrigin) -> Self {
        Self {
            initializer_step_timeout: options.initializer_step_timeout.max(RECHECK_MIN),
            stale_configuration_retry_interval: options
                .stale_configuration_retry_interval
                .max(RECHECK_MIN),
            timers_end_at: options.initialization_timeout,
            initializers_origin: origin,
            initial_pending_names: None,
            timers: Vec::new(),
        }
    }

    /// Observes the pending list. Timers start for entries that may act now and could not before; timers of entries that
    /// are gone, or that have to wait again, are dropped.
    pub fn observe_pending(&mut self, pending: &[PendingInitializer], now: Duration) {
        if self.initial_pending_names.is_none() {
            self.initial_pending_names =
                Some(pending.iter().map(|entry| entry.name.clone()).collect());
        }
        let mut n_entries: HashMap<&str, usize> = HashMap::new();
        for entry in pending {
            *n_entries.entry(&entry.name).or_default() += 1;
        }
        let mut timers: Vec<InitializerTimer> = Vec::new();
        for idx in runnable_initializers(pending) {
            let Some(PendingInitializer { name, .. }) = pending.get(idx) else { continue };
            if timers.iter().any(|timer| timer.name == *name) {
                continue;
            }
            let n_entries = n_entries.get(name.as_str()).copied().unwrap_or_default();
            let running = self.timers.iter().find(|timer| timer.name == *name);
            timers.push(match running.filter(|timer| timer.n_entries_with_name <= n_entries) {
                Some(timer) => InitializerTimer {
                    pending_idx: idx,
                    n_entries_with_name: n_entries,
                    ..timer.clone()
                },
                None => InitializerTimer {
                    name: name.clone(),
                    pending_idx: idx,
                    n_entries_with_name: n_entries,
                    due_at: now.saturating_add(self.initializer_step_timeout),
                    has_reported_failure: false,
                },
            });
        }
        self.timers = timers;
    }

    /// The time of the next action, unless another state is observed before.
    #[must_use]
    pub fn next_due_at(&self) -> Duration {
        self.timers.iter().map(|timer| timer.due_at).fold(self.timers_end_at, Duration::min)
    }

    /// Reports whether the timers have ended, so that only read repair is left.
    #[must_use]
    pub fn have_timers_ended(&self, now: Duration) -> bool {
        now >= self.timers_end_at
    }

    /// Returns the expired entries and their actions, in the order of the list. `configured` is the current configuration,
    /// `None` while it is stale.
    pub fn take_expired_initializers(
        &mut self,
        now: Duration,
        configured: Option<&Snapshot>,
    ) -> Vec<ExpiredInitializer> {
        let mut expired = Vec::new();
        for timer in self.timers.iter_mut().filter(|timer| timer.due_at <= now) {
            let action = match expiry_verdict(&timer.name, self.initializers_origin, configured) {
                ExpiryVerdict::Remove => ExpiryAction::Remove,
                ExpiryVerdict::Fail => {
                    timer.due_at = now.saturating_add(self.initializer_step_timeout);
                    if std::mem::replace(&mut timer.has_reported_failure, true) {
                        continue;
                    }
                    ExpiryAction::Fail
                }
                ExpiryVerdict::Wait => {
                    timer.due_at = now.saturating_add(self.stale_configuration_retry_interval);
                    continue;
                }
            };
            expired.push(ExpiredInitializer {
                name: timer.name.clone(),
                pending_idx: timer.pending_idx,
                expiry_action: action,
            });
        }
        expired
    }

    /// Postpones the removal of an entry after a failed write to the store.
    pub fn postpone_removal(&mut self, name: &str, now: Duration) {
        let due_at = now.saturating_add(self.stale_configuration_retry_interval);
        self.timers.iter_mut().filter(|timer| timer.name == name).for_each(|it| it.due_at = due_at);
    }

    /// The key of the audit annotation for a removed entry; the value is the name. The number in the key is the position in
    /// the list that the object was created with, because every entry is the first one when it is removed. Entries that
    /// were added later share the number after the last.
    #[must_use]
    pub fn removal_annotation_key(&self, name: &str) -> String {
        let initial_names = self.initial_pending_names.as_deref().unwrap_or_default();
        let idx = initial_names.iter().position(|own| own == name);
        let idx = idx.unwrap_or(initial_names.len());
        format!("failed-open.initializer.portcullis.io/{idx}")
    }
}

enum ExpiryVerdict {
    Remove,
    Fail,
    Wait,
}

/// Decides about an initializer that did not act in time, by its failure policy.
fn expiry_verdict(
    name: &str,
    origin: InitializersOrigin,
    configured: Option<&Snapshot>,
) -> ExpiryVerdict {
    let Some(snapshot) = configured else { return ExpiryVerdict::Wait };
    match (snapshot.find_initializer(name).map(|found| found.failure_policy), origin) {
        (Some(FailurePolicy::Ignore), _) | (None, InitializersOrigin::Configuration) => {
            ExpiryVerdict::Remove
        }
        (Some(FailurePolicy::Fail), _) | (None, InitializersOrigin::Client) => ExpiryVerdict::Fail,
    }
}
