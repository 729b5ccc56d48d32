//! A cache of the mode that last succeeded for each user.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::impersonation_mode::ImpersonationMode;

/// Upper bound on the users of one generation. The cache keeps two generations, so it holds at
/// least this many recent users and at most twice as many.
const GENERATION_USERS_MAX: usize = 5_000;

/// The last successful mode by user name. A user usually impersonates in one mode, and trying that
/// mode first saves the checks of the others. No decision depends on this cache.
#[derive(Debug, Default)]
pub(super) struct LastImpersonationModeCache {
    cache_generations: Mutex<CacheGenerations>,
}

#[derive(Debug, Default)]
struct CacheGenerations {
    young_generation: HashMap<String, ImpersonationMode>,
    old_generation: HashMap<String, ImpersonationMode>,
}

impl LastImpersonationModeCache {
    /// The mode that last succeeded for a user.
    pub(super) fn last_successful_impersonation_mode(
        &self,
        user_name: &str,
    ) -> Option<ImpersonationMode> {
        let generations = self.cache_generations.lock().unwrap_or_else(PoisonError::into_inner);
        generations
            .young_generation
            .get(user_name)
            .or_else(|| generations.old_generation.get(user_name))
            .copied()
    }

    /// Records that a mode succeeded for a user.
    pub(super) fn record_successful_impersonation_mode(
        &self,
        user_name: &str,
        mode: ImpersonationMode,
    ) {
        let mut generations = self.cache_generations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = generations.young_generation.get_mut(user_name) {
            *known = mode;
            return;
        }
        if generations.young_generation.len() >= GENERATION_USERS_MAX {
            generations.old_generation = std::mem::take(&mut generations.young_generation);
        }
        generations.young_generation.insert(user_name.to_owned(), mode);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mode_counts() {
        let memory = LastImpersonationModeCache::default();
        assert_eq!(memory.last_successful_impersonation_mode("ana"), None);
        memory.record_successful_impersonation_mode("ana", ImpersonationMode::Legacy);
        memory.record_successful_impersonation_mode("ana", ImpersonationMode::UserInfo);
        assert_eq!(
            memory.last_successful_impersonation_mode("ana"),
            Some(ImpersonationMode::UserInfo)
        );
        assert_eq!(memory.last_successful_impersonation_mode("bob"), None);
    }

    #[test]
    fn memory_is_limited_and_keeps_who_came_last() {
        let memory = LastImpersonationModeCache::default();
        let n_users = 2 * GENERATION_USERS_MAX + 1;
        for user in 0..n_users {
            memory
                .record_successful_impersonation_mode(&user.to_string(), ImpersonationMode::Legacy);
        }
        let is_known =
            |user: usize| memory.last_successful_impersonation_mode(&user.to_string()).is_some();
        assert!((n_users - GENERATION_USERS_MAX..n_users).all(is_known));
        assert!(!(0..GENERATION_USERS_MAX).any(is_known));
    }
}
