//! Decides whether the store has space for a put.
//!
//! The store always accepts a delete, because it frees space. It accepts a put that is a step of a delete,
//! unless the disk is almost full and the put is large. Every other put passes these checks in order:
//!
//! 1. Disk. If less is free than the minimum plus one snapshot, the alarm is on and growing puts are
//!    refused. Below half of the minimum, large puts are refused, and below a quarter all puts, because
//!    every put takes space in the log.
//! 2. Quota. If the current versions of all keys would exceed the quota, the alarm is on and growing puts
//!    are refused. When all tenants together hold three quarters, a tenant that holds a quarter is refused,
//!    so that the rest is left for the others. An update that adds little may exceed both limits a little,
//!    because the status of an object changes after the object was accepted.
//! 3. History. When all tenants together fill three quarters of the history, a tenant that fills a quarter
//!    is throttled. So a flood of large writes does not make the store drop history that others still read.
//!    Small writes pass: many users write to some namespaces and resources (Leases, Nodes), and one of them
//!    must not throttle the others.

use std::sync::Arc;
use std::time::Duration;

use store::{Alarm, SpaceUsage, WriteError};

use crate::options::Limits;
use crate::usage_accounting::{UsageAccounting, version_bytes};

/// The fraction of a limit from which on fairness applies, and the fraction that one tenant may then hold.
const FAIRNESS_THRESHOLD: (u64, u64) = (3, 4);
const TENANT_PART_MAX: (u64, u64) = (1, 4);
/// An update that adds at most this many bytes may exceed the quota and the tenant's part a little.
const SMALL_BYTES_MAX: u64 = 1024;
/// Small updates of all tenants together may exceed the quota by this fraction of it.
const BEYOND_QUOTA: (u64, u64) = (1, 16);
/// Small updates of one tenant may exceed its part by this fraction of the quota.
const BEYOND_TENANT_PART: (u64, u64) = (1, 64);
/// A write that adds at most this many bytes to the history is not throttled.
const SMALL_WRITE_BYTES_MAX: u64 = 16 * 1024;
/// Below half of the minimum, the store writes no larger value.
const LARGE_BYTES_MIN: u64 = 64 * 1024;
/// The quota alarm clears below this fraction of the quota; the disk alarm above this multiple of the reserve.
const CLEAR_BELOW: (u64, u64) = (19, 20);
const CLEAR_ABOVE: (u64, u64) = (9, 8);
/// Time after which a throttled tenant may try again.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// The limits, the free space, and counters of refused writes.
#[derive(Debug)]
pub(crate) struct SpaceBudget {
    quota_bytes: u64,
    history_bytes_max: u64,
    disk_free_bytes_min: u64,
    /// Free space as last measured, minus the bytes written since.
    disk_free_bytes: Option<u64>,
    /// Whether a snapshot is being written. It uses the space that is reserved for it.
    is_checkpoint_running: bool,
    is_over_quota: bool,
    is_disk_space_short: bool,
    n_refused_writes: u64,
    n_throttled_writes: u64,
}

/// A put to check: its key, the length of its value, and that of the value it replaces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingPut<'a> {
    pub(crate) key: &'a str,
    pub(crate) value_len: usize,
    pub(crate) old_value_len: Option<usize>,
    /// Whether it is a step of deleting the object.
    pub(crate) is_step_of_object_deletion: bool,
}

fn fraction_of_bytes(of: u64, (numerator, denominator): (u64, u64)) -> u64 {
    (of / denominator).saturating_mul(numerator)
}

impl SpaceBudget {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            quota_bytes: limits.quota_bytes,
            history_bytes_max: limits.history_bytes_max,
            disk_free_bytes_min: limits.disk_free_bytes_min,
            disk_free_bytes: None,
            is_checkpoint_running: false,
            is_over_quota: false,
            is_disk_space_short: false,
            n_refused_writes: 0,
            n_throttled_writes: 0,
        }
    }

    pub(crate) fn is_disk_space_short(&self) -> bool {
        self.is_disk_space_short
    }

    /// Checks whether there is space for a put. A refusal is counted and may raise an alarm.
    pub(crate) fn check_space_for_put(
        &mut self,
        put: PendingPut<'_>,
        accounting: &UsageAccounting,
    ) -> Result<(), WriteError> {
        let result = self.check_space_limits(put, accounting);
        match &result {
            Err(WriteError::Throttled { .. }) => self.n_throttled_writes += 1,
            Err(_) => self.n_refused_writes += 1,
            Ok(()) => {}
        }
        result
    }

    fn check_space_limits(
        &mut self,
        put: PendingPut<'_>,
        accounting: &UsageAccounting,
    ) -> Result<(), WriteError> {
        let bytes = version_bytes(put.key.len(), put.value_len);
        let prev = put.old_value_len.map_or(0, |len| version_bytes(put.key.len(), len));
        let growth = bytes.saturating_sub(prev);
        let is_small = put.old_value_len.is_some() && growth <= SMALL_BYTES_MAX;
        let full = |share: Option<&str>| WriteError::NoSpace { tenant: share.map(Arc::from) };
        self.is_disk_space_short |=
            self.is_disk_free_space_below(self.disk_reserve_bytes(accounting));
        if self.is_disk_space_short {
            let min = self.disk_free_bytes_min;
            let is_large = bytes > LARGE_BYTES_MIN;
            let is_refused = match put.is_step_of_object_deletion {
                true => is_large && self.is_disk_free_space_below(min / 4),
                false => {
                    (growth > 0 && !is_small)
                        || (is_large && self.is_disk_free_space_below(min / 2))
                        || self.is_disk_free_space_below(min / 4)
                }
            };
            if is_refused {
                return Err(full(None));
            }
        }
        if put.is_step_of_object_deletion {
            return Ok(());
        }
        let (tenant, own_live, own_history) = accounting.tenant_usage(put.key);
        if growth > 0 {
            let (live, own) = (accounting.live_bytes() + growth, own_live + growth);
            let quota = self.quota_bytes;
            let (beyond, beyond_tenant_part) = match is_small {
                true => (
                    fraction_of_bytes(quota, BEYOND_QUOTA),
                    fraction_of_bytes(quota, BEYOND_TENANT_PART),
                ),
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
            return Err(WriteError::Throttled { tenant: tenant.into(), retry_after: RETRY_AFTER });
        }
        Ok(())
    }

    /// Clears or raises the alarms for a new measurement of the free space.
    pub(crate) fn refresh_alarms(
        &mut self,
        disk_free_bytes: Option<u64>,
        has_checkpoint: bool,
        accounting: &UsageAccounting,
    ) {
        self.disk_free_bytes = disk_free_bytes;
        self.is_checkpoint_running = has_checkpoint;
        let reserve = self.disk_reserve_bytes(accounting);
        let wanted = if self.is_disk_space_short {
            fraction_of_bytes(reserve, CLEAR_ABOVE)
        } else {
            reserve
        };
        self.is_disk_space_short = self.is_disk_free_space_below(wanted);
        if accounting.live_bytes() <= fraction_of_bytes(self.quota_bytes, CLEAR_BELOW) {
            self.is_over_quota = false;
        }
    }

    /// Subtracts bytes that were written since the last measurement.
    pub(crate) fn subtract_free_bytes(&mut self, bytes: u64) {
        self.disk_free_bytes = self.disk_free_bytes.map(|free| free.saturating_sub(bytes));
    }

    pub(crate) fn alarms(&self) -> Vec<Alarm> {
        let is_on = |alarm: &Alarm| match alarm {
            Alarm::Quota => self.is_over_quota,
            Alarm::Disk => self.is_disk_space_short,
        };
        Alarm::ALL.into_iter().filter(is_on).collect()
    }

    /// The usage without the sizes of files, which the writer fills in.
    pub(crate) fn space_usage(&self, accounting: &UsageAccounting) -> SpaceUsage {
        SpaceUsage {
            live_bytes: accounting.live_bytes(),
            quota_bytes: self.quota_bytes,
            history_bytes: accounting.history_bytes(),
            history_bytes_max: self.history_bytes_max,
            disk_free_bytes: self.disk_free_bytes,
            n_refused_writes: self.n_refused_writes,
            n_throttled_writes: self.n_throttled_writes,
            ..SpaceUsage::default()
        }
    }

    /// The free space to keep: the configured minimum, and room for a snapshot, without which no log can be
    /// removed.
    fn disk_reserve_bytes(&self, accounting: &UsageAccounting) -> u64 {
        match self.disk_free_bytes_min {
            0 => 0,
            min if self.is_checkpoint_running => min,
            min => min.saturating_add(accounting.live_bytes()),
        }
    }

    fn is_disk_free_space_below(&self, bytes: u64) -> bool {
        self.disk_free_bytes.is_some_and(|free| free < bytes)
    }
}

/// Reports whether one tenant holds more than its part of a limit that is nearly reached.
fn exceeds_fair_share(total: u64, own: u64, max: u64) -> bool {
    total > fraction_of_bytes(max, FAIRNESS_THRESHOLD)
        && own > fraction_of_bytes(max, TENANT_PART_MAX)
}
