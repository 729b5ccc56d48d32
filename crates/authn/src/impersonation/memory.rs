//! Which mode last worked for whom.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::mode::ImpersonationMode;

/// The most users that one generation holds. Two generations are kept, so at least so many users
/// who came last are remembered, and at most twice as many.
const GENERATION_USERS_MAX: usize = 5_000;

/// Who impersonates usually does it in one mode, and trying that first saves the questions of the
/// others. Nothing else depends on what is remembered here.
#[derive(Debug, Default)]
pub(super) struct ModeMemory {
    generations: Mutex<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<String, ImpersonationMode>,
    old: HashMap<String, ImpersonationMode>,
}

impl ModeMemory {
    /// The mode that last worked for a user.
    pub(super) fn recall(&self, user_name: &str) -> Option<ImpersonationMode> {
        let generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        generations.young.get(user_name).or_else(|| generations.old.get(user_name)).copied()
    }

    /// Notes that a mode worked.
    pub(super) fn remember(&self, user_name: &str, mode: ImpersonationMode) {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = generations.young.get_mut(user_name) {
            *known = mode;
            return;
        }
        if generations.young.len() >= GENERATION_USERS_MAX {
            generations.old = std::mem::take(&mut generations.young);
        }
        generations.young.insert(user_name.to_owned(), mode);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mode_counts() {
        let memory = ModeMemory::default();
        assert_eq!(memory.recall("ana"), None);
        memory.remember("ana", ImpersonationMode::Legacy);
        memory.remember("ana", ImpersonationMode::UserInfo);
        assert_eq!(memory.recall("ana"), Some(ImpersonationMode::UserInfo));
        assert_eq!(memory.recall("bob"), None);
    }

    #[test]
    fn memory_is_limited_and_keeps_who_came_last() {
        let memory = ModeMemory::default();
        let n_users = 2 * GENERATION_USERS_MAX + 1;
        for user in 0..n_users {
            memory.remember(&user.to_string(), ImpersonationMode::Legacy);
        }
        let is_known = |user: usize| memory.recall(&user.to_string()).is_some();
        assert!((n_users - GENERATION_USERS_MAX..n_users).all(is_known));
        assert!(!(0..GENERATION_USERS_MAX).any(is_known));
    }
}
