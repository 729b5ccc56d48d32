//! Work that takes long, a few pieces at one time, and never all of them for one user.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How many pieces of work are under way.
#[derive(Debug, Clone)]
pub(crate) struct UserSlots {
    all_max: usize,
    per_user_max: usize,
    taken: Arc<Mutex<HashMap<String, usize>>>,
}

/// The right to one piece of work. Dropping it makes room for another.
#[derive(Debug)]
#[must_use = "the work counts only while the slot lives"]
pub(crate) struct UserSlot {
    taken: Arc<Mutex<HashMap<String, usize>>>,
    user: String,
}

impl UserSlots {
    pub(crate) fn new(all_max: usize, per_user_max: usize) -> Self {
        Self { all_max, per_user_max, taken: Arc::default() }
    }

    /// Takes a slot for a user, or `None` if all are taken, or all that one user may take.
    pub(crate) fn acquire(&self, user: &str) -> Option<UserSlot> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let n_all: usize = taken.values().sum();
        let n_own = taken.get(user).copied().unwrap_or_default();
        if n_all >= self.all_max || n_own >= self.per_user_max {
            return None;
        }
        taken.insert(user.to_owned(), n_own + 1);
        Some(UserSlot { taken: Arc::clone(&self.taken), user: user.to_owned() })
    }
}

impl Drop for UserSlot {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        match taken.get_mut(&self.user) {
            Some(n_own) if *n_own > 1 => *n_own -= 1,
            _ => drop(taken.remove(&self.user)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_leaves_room_for_others_and_slots_come_back() {
        let slots = UserSlots::new(3, 2);
        let first = slots.acquire("a").unwrap();
        let second = slots.acquire("a").unwrap();
        assert!(slots.acquire("a").is_none());
        let other = slots.acquire("b").unwrap();
        assert!(slots.acquire("b").is_none(), "all are taken");
        drop(second);
        assert!(slots.acquire("b").is_some());
        drop((first, other));
        assert!(slots.taken.lock().unwrap().is_empty());
    }
}
