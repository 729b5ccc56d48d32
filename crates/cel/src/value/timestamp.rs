//! Timestamps of CEL: points in time from year 1 to 9999.

mod rfc3339;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::function::EvalError;
pub use rfc3339::TimestampError;

/// A point in time, to the nanosecond.
///
/// It keeps the UTC offset of the text that it was parsed from, to write it again with this offset.
/// Two timestamps are equal if they are the same point in time, whatever their offsets. Timestamps
/// from text, numbers and sums are within the years 1 to 9999 of UTC. A message literal may be any
/// point in time.
///
/// INVARIANT: the nanoseconds are fewer than a second.
#[derive(Debug, Clone, Copy)]
pub struct Timestamp {
    /// The whole seconds since 1970-01-01T00:00:00Z.
    unix_seconds: i64,
    nanos_of_second: u32,
    /// Seconds east of UTC.
    utc_offset_seconds: i32,
}

/// The date and the time of day of a point in time at some UTC offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WallTime {
    /// The year. Year 0 is the year before year 1.
    pub(crate) year: i64,
    /// The month of the year, from 1.
    pub(crate) month: i64,
    /// The day of the month, from 1.
    pub(crate) day: i64,
    /// The day of the year, from 0.
    pub(crate) day_of_year: i64,
    /// The day of the week, from 0 for Sunday.
    pub(crate) day_of_week: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
}

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

impl Timestamp {
    /// The first timestamp: 0001-01-01T00:00:00Z.
    const SECONDS_MIN: i64 = -62_135_596_800;
    /// The last whole second: 9999-12-31T23:59:59Z.
    const SECONDS_MAX: i64 = 253_402_300_799;

    /// The point in time `seconds` after 1970-01-01T00:00:00Z, if it is in range.
    pub fn from_unix_seconds(seconds: i64) -> Option<Self> {
        Self { unix_seconds: seconds, nanos_of_second: 0, utc_offset_seconds: 0 }
            .check_timestamp_range()
    }

    /// The point in time `seconds` and `nanos` after 1970-01-01T00:00:00Z, even if it is out of
    /// range; `None` if the number of seconds overflows.
    pub fn from_unix_seconds_and_nanos(seconds: i64, nanos: i32) -> Option<Self> {
        let nanos = i64::from(nanos);
        let seconds = seconds.checked_add(nanos.div_euclid(NANOS_PER_SECOND))?;
        let nanos = u32::try_from(nanos.rem_euclid(NANOS_PER_SECOND)).ok()?;
        Some(Self { unix_seconds: seconds, nanos_of_second: nanos, utc_offset_seconds: 0 })
    }

    fn check_timestamp_range(self) -> Option<Self> {
        (Self::SECONDS_MIN..=Self::SECONDS_MAX).contains(&self.unix_seconds).then_some(self)
    }

    /// Whole seconds since the start of 1970, rounded towards the past.
    pub fn unix_seconds(&self) -> i64 {
        self.unix_seconds
    }

    /// Nanoseconds within the second.
    pub fn nanos_of_second(&self) -> u32 {
        self.nanos_of_second
    }

    /// The same point in time with the UTC offset 0.
    #[must_use]
    pub fn to_utc(self) -> Self {
        Self { utc_offset_seconds: 0, ..self }
    }

    /// The point in time `nanos` later, or earlier if `nanos` is negative.
    pub(crate) fn checked_add_nanos(self, nanos: i64) -> Result<Self, EvalError> {
        let nanos = i128::from(self.nanos_of_second) + i128::from(nanos);
        let seconds = i128::from(self.unix_seconds) + nanos.div_euclid(NANOS_PER_SECOND.into());
        let nanos = nanos.rem_euclid(NANOS_PER_SECOND.into());
        let (Ok(seconds), Ok(nanos)) = (i64::try_from(seconds), u32::try_from(nanos)) else {
            return Err(EvalError::new("integer overflow"));
        };
        let sum = Self {
            unix_seconds: seconds,
            nanos_of_second: nanos,
            utc_offset_seconds: self.utc_offset_seconds,
        };
        sum.check_timestamp_range().ok_or_else(|| EvalError::new("timestamp overflow"))
    }

    /// The nanoseconds from `earlier` to this timestamp; `None` if they overflow.
    ///
    /// As in cel-go, the whole seconds in nanoseconds must not overflow either. A span within a
    /// second of the limit may therefore fail, although its nanoseconds fit.
    pub(crate) fn nanos_since(&self, earlier: &Self) -> Option<i64> {
        self.unix_seconds
            .checked_sub(earlier.unix_seconds)?
            .checked_mul(NANOS_PER_SECOND)?
            .checked_add(i64::from(self.nanos_of_second) - i64::from(earlier.nanos_of_second))
    }

    /// The date and the time of day at `offset` seconds east of UTC.
    pub(crate) fn wall_time_at_offset(&self, offset: i64) -> WallTime {
        WallTime::from_local_seconds(self.unix_seconds.saturating_add(offset))
    }
}

/// Compares points in time, not UTC offsets.
impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.unix_seconds, self.nanos_of_second).cmp(&(other.unix_seconds, other.nanos_of_second))
    }
}

impl Hash for Timestamp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.unix_seconds, self.nanos_of_second).hash(state);
    }
}

/// Days in 400 years, after which the calendar repeats.
const DAYS_PER_CYCLE: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01. Counting years from March puts the leap day last.
const DAYS_FROM_MARCH_0: i64 = 719_468;

impl WallTime {
    /// Computes the date and time from the local seconds since 1970-01-01T00:00:00.
    fn from_local_seconds(seconds: i64) -> Self {
        let days = seconds.div_euclid(SECONDS_PER_DAY);
        let within_day = seconds.rem_euclid(SECONDS_PER_DAY);

        let from_march_0 = days + DAYS_FROM_MARCH_0;
        let cycle = from_march_0.div_euclid(DAYS_PER_CYCLE);
        let day_of_cycle = from_march_0.rem_euclid(DAYS_PER_CYCLE);
        // Subtracts the leap days of the cycle, so that all years have 365 days.
        let year_of_cycle = (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524
            - day_of_cycle / 146_096)
            / 365;
        let day_from_march =
            day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
        // From March on, every five months have 153 days.
        let month_from_march = (5 * day_from_march + 2) / 153;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = cycle * 400 + year_of_cycle + i64::from(month <= 2);

        Self {
            year,
            month,
            day: day_from_march - (153 * month_from_march + 2) / 5 + 1,
            day_of_year: days - days_since_epoch(year, 1, 1),
            // 1970 began on a Thursday.
            day_of_week: (days + 4).rem_euclid(7),
            hour: within_day / 3_600,
            minute: within_day / 60 % 60,
            second: within_day % 60,
        }
    }
}

/// Days from 1970-01-01 to a date of the calendar.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let (year, month_from_march) =
        if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let cycle = year.div_euclid(400);
    let year_of_cycle = year.rem_euclid(400);
    let day_of_cycle = 365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100
        + (153 * month_from_march + 2) / 5
        + day
        - 1;
    cycle * DAYS_PER_CYCLE + day_of_cycle - DAYS_FROM_MARCH_0
}

#[cfg(test)]
mod tests;
