//! Decides how much history to keep.

use std::collections::VecDeque;

use store::Revision;

use crate::options::Limits;
use crate::store_state::StoreState;
use crate::usage_accounting::UsageAccounting;

/// Number of samples per maximum age: the age of a revision is known to 1/30 of it.
const SAMPLES_PER_AGE: u64 = 30;
/// History that is kept only for the minimum number of revisions takes at most 1/4 of the bytes.
const OLD_HISTORY_DIVISOR: u64 = 4;
/// On a nearly full disk history takes at most 1/16 of the bytes.
const SHORT_DISK_DIVISOR: u64 = 16;

/// Reasons to keep less history.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SpacePressure {
    /// The disk has too little free space.
    pub(crate) is_disk_space_short: bool,
    /// History cannot be moved from memory to files.
    pub(crate) is_history_memory_short: bool,
}

/// Reports whether the history must be compacted before the next tick. The slack avoids a compaction
/// record after every batch.
pub(crate) fn is_history_over_limit(
    limits: &Limits,
    state: &StoreState,
    accounting: &UsageAccounting,
) -> bool {
    let with_slack = |max: u64| max.saturating_add(max / 8);
    state.history.len() as u64 > with_slack(limits.history_revisions_max)
        || accounting.history_bytes() > with_slack(limits.history_bytes_max)
}

/// Samples of (time, revision), oldest first, from which the age of a revision is known.
#[derive(Debug, Default)]
pub(crate) struct RevisionAges {
    revision_samples: VecDeque<(u64, Revision)>,
}

impl RevisionAges {
    /// Returns the floor that the limits require. It may be lower than the current floor.
    ///
    /// 1. Old states are dropped, except the newest of them up to a number and a size.
    /// 2. States beyond the maximum number and the maximum size are dropped, whatever their age.
    /// 3. Under space pressure most states are dropped.
    pub(crate) fn target_compaction_floor(
        &mut self,
        limits: &Limits,
        now_ms: u64,
        state: &StoreState,
        accounting: &UsageAccounting,
        pressure: SpacePressure,
    ) -> Revision {
        let age_ms = u64::try_from(limits.history_age_min.as_millis()).unwrap_or(u64::MAX);
        let current = state.revision;
        if self
            .revision_samples
            .back()
            .is_none_or(|(at_ms, _)| now_ms.saturating_sub(*at_ms) >= age_ms / SAMPLES_PER_AGE)
        {
            self.revision_samples.push_back((now_ms, current));
        }
        let is_old = |(at_ms, _): &(u64, Revision)| now_ms.saturating_sub(*at_ms) >= age_ms;
        // Keep the newest sample that is old enough; it gives the floor.
        while self.revision_samples.get(1).is_some_and(is_old) {
            self.revision_samples.pop_front();
        }
        let newest = |n: u64| Revision::new(current.as_u64().saturating_sub(n));
        let keeping =
            |bytes: u64| accounting.floor_for_history_bytes(bytes).unwrap_or(Revision::ZERO);
        let bytes_max = limits.history_bytes_max;
        let known = self.revision_samples.front().filter(|sample| is_old(sample));
        let old = known.map_or(state.compaction_floor, |(_, revision)| *revision);
        let few_enough =
            newest(limits.history_revisions_min).max(keeping(bytes_max / OLD_HISTORY_DIVISOR));
        let mut floor = old.min(few_enough);
        floor = floor.max(newest(limits.history_revisions_max)).max(keeping(bytes_max));
        if pressure.is_disk_space_short {
            floor = floor.max(keeping(bytes_max / SHORT_DISK_DIVISOR));
        }
        if pressure.is_history_memory_short {
            floor = floor.max(keeping(limits.history_memory_bytes_max as u64));
        }
        floor
    }
}
