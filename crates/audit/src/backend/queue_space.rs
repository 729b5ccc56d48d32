//! The space of a queue, of which one user has at most half.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::backend_status::LossCause;

/// Counts the events in a queue and their bytes, of each user and in total. Its memory is bounded by the number of
/// events.
#[derive(Debug)]
pub(super) struct QueueSpace {
    max: QueueLoad,
    used_space: Mutex<UsedSpace>,
}

#[derive(Debug, Clone, Copy, Default)]
struct QueueLoad {
    n_queued_events: usize,
    n_queued_bytes: usize,
}

#[derive(Debug, Default)]
struct UsedSpace {
    total_load: QueueLoad,
    /// Users without an event in the queue have no entry.
    load_by_user: HashMap<Arc<str>, QueueLoad>,
}

/// The space of one event. Dropping it frees the space.
#[derive(Debug)]
pub(super) struct QueueReservation {
    queue_space: Arc<QueueSpace>,
    user: Arc<str>,
    n_reserved_bytes: usize,
}

/// Why there is no space for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueFull {
    Total,
    User,
}

impl QueueLoad {
    fn with_event_added(self, n_bytes: usize) -> Self {
        Self {
            n_queued_events: self.n_queued_events + 1,
            n_queued_bytes: self.n_queued_bytes + n_bytes,
        }
    }

    fn with_event_removed(self, n_bytes: usize) -> Self {
        Self {
            n_queued_events: self.n_queued_events.saturating_sub(1),
            n_queued_bytes: self.n_queued_bytes.saturating_sub(n_bytes),
        }
    }

    fn half_load(self) -> Self {
        Self {
            n_queued_events: self.n_queued_events.div_ceil(2),
            n_queued_bytes: self.n_queued_bytes.div_ceil(2),
        }
    }

    fn fits_within(self, max: Self) -> bool {
        self.n_queued_events <= max.n_queued_events && self.n_queued_bytes <= max.n_queued_bytes
    }
}

impl QueueSpace {
    pub(super) fn new(events_max: usize, bytes_max: usize) -> Self {
        Self {
            max: QueueLoad { n_queued_events: events_max, n_queued_bytes: bytes_max },
            used_space: Mutex::default(),
        }
    }

    /// Reserves space for an event of a user, without waiting.
    pub(super) fn reserve(
        self: &Arc<Self>,
        user: &str,
        n_bytes: usize,
    ) -> Result<QueueReservation, QueueFull> {
        let mut used = self.lock();
        let total = used.total_load.with_event_added(n_bytes);
        if !total.fits_within(self.max) {
            return Err(QueueFull::Total);
        }
        let (user, of_user) = match used.load_by_user.get_key_value(user) {
            Some((user, load)) => (Arc::clone(user), load.with_event_added(n_bytes)),
            None => (Arc::from(user), QueueLoad::default().with_event_added(n_bytes)),
        };
        if !of_user.fits_within(self.max.half_load()) {
            return Err(QueueFull::User);
        }
        used.total_load = total;
        used.load_by_user.insert(Arc::clone(&user), of_user);
        Ok(QueueReservation { queue_space: Arc::clone(self), user, n_reserved_bytes: n_bytes })
    }

    /// The number of events that hold space.
    pub(super) fn n_queued_events(&self) -> usize {
        self.lock().total_load.n_queued_events
    }

    /// A poisoned lock is used: no panic can happen between the changes of the counts.
    fn lock(&self) -> MutexGuard<'_, UsedSpace> {
        self.used_space.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for QueueReservation {
    fn drop(&mut self) {
        let mut used = self.queue_space.lock();
        used.total_load = used.total_load.with_event_removed(self.n_reserved_bytes);
        if let Some(load) = used.load_by_user.get_mut(&*self.user) {
            *load = load.with_event_removed(self.n_reserved_bytes);
            if load.n_queued_events == 0 {
                used.load_by_user.remove(&*self.user);
            }
        }
    }
}

impl From<QueueFull> for LossCause {
    fn from(full: QueueFull) -> Self {
        match full {
            QueueFull::Total => Self::QueueFull,
            QueueFull::User => Self::UserShare,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One user leaves half of the events and half of the bytes to others, and freed space is space again.
    #[test]
    fn one_user_has_at_most_half() {
        let space = Arc::new(QueueSpace::new(4, 100));
        let first = space.reserve("jane", 10).unwrap();
        let second = space.reserve("jane", 40).unwrap();
        assert_eq!(space.reserve("jane", 1).err(), Some(QueueFull::User));
        let third = space.reserve("joe", 50).unwrap();
        assert_eq!(space.reserve("ada", 1).err(), Some(QueueFull::Total));
        drop(second);
        assert_eq!(space.reserve("jane", 41).err(), Some(QueueFull::Total));
        let fourth = space.reserve("jane", 40).unwrap();
        assert_eq!(space.n_queued_events(), 3);
        drop((first, third, fourth));
        assert_eq!(space.n_queued_events(), 0);
        assert!(space.lock().load_by_user.is_empty());
    }

    #[test]
    fn a_queue_of_one_event_has_space_for_one() {
        let space = Arc::new(QueueSpace::new(1, 100));
        let only = space.reserve("jane", 50).unwrap();
        assert_eq!(space.reserve("joe", 1).err(), Some(QueueFull::Total));
        drop(only);
        assert!(space.reserve("joe", 1).is_ok());
    }
}
