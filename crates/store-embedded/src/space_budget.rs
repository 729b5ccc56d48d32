//! Which writes there is room for.
//!
//! A delete is always accepted: it makes room. So is a put that belongs to a removal, unless the disk is
//! almost full and the put is large. Every other put passes these tests in order:
//!
//! 1. The disk. With less free space than the minimum and a snapshot take up, the alarm is on and puts
//!    that add are refused. With half of the minimum left, large puts are refused, and with a quarter all
//!    are, because each of them takes space in the log whatever it adds.
//! 2. The quota. When the current versions of all keys would take up more, the alarm is on and puts
//!    that add are refused. A share that holds a quarter of the quota is refused when all together hold
//!    three quarters, so that the rest is left for the others. An update that adds little may exceed both
//!    a little, because the status of an object changes after the object was accepted.
//! 3. The history. A share that takes up a quarter of it is put off while all together take up three
//!    quarters. So a flood of large writes does not make the store forget what others still want to read.
//!    Small writes pass: many users write to some namespaces and resources (Leases, Nodes), and one of
//!    them must not put off the others.

use std::sync::Arc;
use std::time::Duration;

use store::{Alarm, Usage, WriteError};

use crate::options::Limits;
use crate::usage_accounting::{UsageAccounting, version_bytes};

/// The parts of a budget at which shares begin to matter, and which one share may take up then.
const FAIRNESS_THRESHOLD: (u64, u64) = (3, 4);
const TENANT_PART_MAX: (u64, u64) = (1, 4);
/// An update that adds no more than this may exceed the quota and its share a little.
const SMALL_BYTES_MAX: u64 = 1024;
/// Small updates of all shares together may exceed the quota by this part of it, ...
const BEYOND_QUOTA: (u64, u64) = (1, 16);
/// ... and those of one share its own part by this part of the quota.
const BEYOND_TENANT_PART: (u64, u64) = (1, 64);
/// A write that adds no more than this to the history is not put off.
const SMALL_WRITE_BYTES_MAX: u64 = 16 * 1024;
/// With less than half of the reserve, no larger value is written.
const LARGE_BYTES_MIN: u64 = 64 * 1024;
/// The alarms are off again below this part of the quota, and with this much more than the reserve.
const CLEAR_BELOW: (u64, u64) = (19, 20);
const CLEAR_ABOVE: (u64, u64) = (9, 8);
/// When a share that was put off may try again.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// The room there is, and what was refused.
#[derive(Debug)]
pub(crate) struct SpaceBudget {
    quota_bytes: u64,
    history_bytes_max: u64,
    disk_free_bytes_min: u64,
    /// As last looked up, less what was written since.
    disk_free_bytes: Option<u64>,
    /// Whether a snapshot is being written, which takes the space that was kept for it.
    has_checkpoint: bool,
    is_over_quota: bool,
    is_disk_short: bool,
    n_refused: u64,
    n_throttled: u64,
}

/// A put: its key, the bytes of its value, and those of the value that it replaces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingPut<'a> {
    pub(crate) key: &'a str,
    pub(crate) value_len: usize,
    pub(crate) prev_len: Option<usize>,
    /// Whether it belongs to the removal of what the key holds.
    pub(crate) is_removal: bool,
}

fn fraction_of(of: u64, (numerator, denominator): (u64, u64)) -> u64 {
    (of / denominator).saturating_mul(numerator)
}

impl SpaceBudget {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            quota_bytes: limits.quota_bytes,
            history_bytes_max: limits.history_bytes_max,
            disk_free_bytes_min: limits.disk_free_bytes_min,
            disk_free_bytes: None,
            has_checkpoint: false,
            is_over_quota: false,
            is_disk_short: false,
            n_refused: 0,
            n_throttled: 0,
        }
    }

    pub(crate) fn is_disk_short(&self) -> bool {
        self.is_disk_short
    }

    /// Whether there is room for a put. What is refused counts, and may raise an alarm.
    pub(crate) fn check_put(
        &mut self,
        put: PendingPut<'_>,
        accounting: &UsageAccounting,
    ) -> Result<(), WriteError> {
        let result = self.check_limits(put, accounting);
        match &result {
            Err(WriteError::Throttled { .. }) => self.n_throttled += 1,
            Err(_) => self.n_refused += 1,
            Ok(()) => {}
        }
        result
    }

    fn check_limits(
        &mut self,
        put: PendingPut<'_>,
        accounting: &UsageAccounting,
    ) -> Result<(), WriteError> {
        let bytes = version_bytes(put.key.len(), put.value_len);
        let prev = put.prev_len.map_or(0, |len| version_bytes(put.key.len(), len));
        let growth = bytes.saturating_sub(prev);
        let is_small = put.prev_len.is_some() && growth <= SMALL_BYTES_MAX;
        let full = |share: Option<&str>| WriteError::NoSpace { share: share.map(Arc::from) };
        self.is_disk_short |= self.disk_is_below(self.disk_reserve(accounting));
        if self.is_disk_short {
            let min = self.disk_free_bytes_min;
            let is_large = bytes > LARGE_BYTES_MIN;
            let is_refused = match put.is_removal {
                true => is_large && self.disk_is_below(min / 4),
                false => {
                    (growth > 0 && !is_small)
                        || (is_large && self.disk_is_below(min / 2))
                        || self.disk_is_below(min / 4)
                }
            };
            if is_refused {
                return Err(full(None));
            }
        }
        if put.is_removal {
            return Ok(());
        }
        let (tenant, own_live, own_history) = accounting.tenant_usage(put.key);
        if growth > 0 {
            let (live, own) = (accounting.live_bytes() + growth, own_live + growth);
            let quota = self.quota_bytes;
            let (beyond, beyond_tenant_part) = match is_small {
                true => (fraction_of(quota, BEYOND_QUOTA), fraction_of(quota, BEYOND_TENANT_PART)),
                false => (0, 0),
            };
            self.is_over_quota |= live > quota;
            if live > quota.saturating_add(beyond) || (self.is_over_quota && !is_small) {
                return Err(full(None));
            }
            if exceeds_fair_share(live, own.saturating_sub(beyond_tenant_part), quota) {
                return Err(full(Some(tenant)));
            }
        }
        let written = bytes.saturating_add(prev);
        let history = accounting.history_bytes().saturating_add(written);
        if written > SMALL_WRITE_BYTES_MAX
            && exceeds_fair_share(
                history,
                own_history.saturating_add(written),
                self.history_bytes_max,
            )
        {
            return Err(WriteError::Throttled { share: tenant.into(), retry_after: RETRY_AFTER });
        }
        Ok(())
    }

    /// Looks whether the alarms can be taken back, with the free space as it was just looked up.
    pub(crate) fn refresh_alarms(
        &mut self,
        disk_free_bytes: Option<u64>,
        has_checkpoint: bool,
        accounting: &UsageAccounting,
    ) {
        self.disk_free_bytes = disk_free_bytes;
        self.has_checkpoint = has_checkpoint;
        let reserve = self.disk_reserve(accounting);
        let wanted = if self.is_disk_short { fraction_of(reserve, CLEAR_ABOVE) } else { reserve };
        self.is_disk_short = self.disk_is_below(wanted);
        if accounting.live_bytes() <= fraction_of(self.quota_bytes, CLEAR_BELOW) {
            self.is_over_quota = false;
        }
    }

    /// So many bytes were written since the free space was looked up.
    pub(crate) fn subtract_free_bytes(&mut self, bytes: u64) {
        self.disk_free_bytes = self.disk_free_bytes.map(|free| free.saturating_sub(bytes));
    }

    pub(crate) fn alarms(&self) -> Vec<Alarm> {
        let is_on = |alarm: &Alarm| match alarm {
            Alarm::Quota => self.is_over_quota,
            Alarm::Disk => self.is_disk_short,
        };
        Alarm::ALL.into_iter().filter(is_on).collect()
    }

    /// The usage without the sizes of files, which the writer fills in.
    pub(crate) fn usage(&self, accounting: &UsageAccounting) -> Usage {
        Usage {
            live_bytes: accounting.live_bytes(),
            quota_bytes: self.quota_bytes,
            history_bytes: accounting.history_bytes(),
            history_bytes_max: self.history_bytes_max,
            disk_free_bytes: self.disk_free_bytes,
            n_refused: self.n_refused,
            n_throttled: self.n_throttled,
            ..Usage::default()
        }
    }

    /// The free space that must be left: what the operator says, and a snapshot, without which no log
    /// can be removed.
    fn disk_reserve(&self, accounting: &UsageAccounting) -> u64 {
        match self.disk_free_bytes_min {
            0 => 0,
            min if self.has_checkpoint => min,
            min => min.saturating_add(accounting.live_bytes()),
        }
    }

    fn disk_is_below(&self, bytes: u64) -> bool {
        self.disk_free_bytes.is_some_and(|free| free < bytes)
    }
}

/// Whether one share takes up more than its part of a budget that is running out.
fn exceeds_fair_share(total: u64, own: u64, max: u64) -> bool {
    total > fraction_of(max, FAIRNESS_THRESHOLD) && own > fraction_of(max, TENANT_PART_MAX)
}
