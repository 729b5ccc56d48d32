//! How much of the past is kept.

use std::collections::VecDeque;

use store::Revision;

use crate::ledger::Ledger;
use crate::options::Limits;
use crate::state::State;

/// The age of the history is known to this part of it.
const SAMPLES_PER_AGE: u64 = 30;
/// History that is old and kept for its number alone takes up at most this part of its bytes.
const OLD_PART: u64 = 4;
/// While the disk is short of space, history takes up at most this part of its bytes.
const SHORT_PART: u64 = 16;

/// Why less history is kept than usual.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pressure {
    /// The disk has too little free space.
    pub(crate) is_disk_short: bool,
    /// History can not be moved from memory to files.
    pub(crate) is_memory_short: bool,
}

/// When the store was at which revision, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Retention {
    samples: VecDeque<(u64, Revision)>,
}

impl Retention {
    /// Whether the history must not wait for the next tick. Some slack spares the log most of the
    /// records that say so.
    pub(crate) fn is_due(limits: &Limits, state: &State, ledger: &Ledger) -> bool {
        let with_slack = |max: u64| max.saturating_add(max / 8);
        state.history.len() as u64 > with_slack(limits.history_revisions_max)
            || ledger.history_bytes() > with_slack(limits.history_bytes_max)
    }

    /// The floor that the history calls for, which may be lower than the one there is:
    ///
    /// 1. States that are old enough go, but of these the newest stay while they are few in number and
    ///    in bytes.
    /// 2. States beyond the largest number and beyond the bytes go, whatever their age.
    /// 3. Under pressure most go.
    pub(crate) fn floor(
        &mut self,
        limits: &Limits,
        now_ms: u64,
        state: &State,
        ledger: &Ledger,
        pressure: Pressure,
    ) -> Revision {
        let age_ms = u64::try_from(limits.history_age.as_millis()).unwrap_or(u64::MAX);
        let current = state.revision;
        if self
            .samples
            .back()
            .is_none_or(|(at_ms, _)| now_ms.saturating_sub(*at_ms) >= age_ms / SAMPLES_PER_AGE)
        {
            self.samples.push_back((now_ms, current));
        }
        let is_old = |(at_ms, _): &(u64, Revision)| now_ms.saturating_sub(*at_ms) >= age_ms;
        // The newest sample that is old enough stays, because it goes on to be so.
        while self.samples.get(1).is_some_and(is_old) {
            self.samples.pop_front();
        }
        let newest = |n: u64| Revision::new(current.number().saturating_sub(n));
        let keeping = |bytes: u64| ledger.floor_keeping(bytes).unwrap_or(Revision::ZERO);
        let bytes_max = limits.history_bytes_max;
        let known = self.samples.front().filter(|sample| is_old(sample));
        let old = known.map_or(state.floor, |(_, revision)| *revision);
        let few = newest(limits.history_revisions_min).max(keeping(bytes_max / OLD_PART));
        let mut floor = old.min(few);
        floor = floor.max(newest(limits.history_revisions_max)).max(keeping(bytes_max));
        if pressure.is_disk_short {
            floor = floor.max(keeping(bytes_max / SHORT_PART));
        }
        if pressure.is_memory_short {
            floor = floor.max(keeping(limits.history_memory_bytes_max as u64));
        }
        floor
    }
}
