//! Reads and writes timestamps in the form of RFC 3339, as leniently as Go.

use std::fmt;
use std::str::FromStr;

use super::{SECONDS_PER_DAY, Timestamp, WallTime, days_since_epoch};

/// The reason why a text is not a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampError {
    /// The text does not have the form `2006-01-02T15:04:05Z`.
    Malformed,
    /// The timestamp is not within the years 1 to 9999.
    OutOfRange,
}

impl fmt::Display for TimestampError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "malformed timestamp",
            Self::OutOfRange => "timestamp overflow",
        })
    }
}

impl std::error::Error for TimestampError {}

/// Reads `2006-01-02T15:04:05Z` or `2006-01-02T15:04:05.999999999+07:00`.
///
/// Like Go, it accepts more than the RFC: an hour of one digit, a comma before the fraction, a
/// fraction of any length (digits after the ninth are dropped), and offsets up to 24 hours and 60
/// minutes. It also accepts less: `T` and `Z` must be upper case, and leap seconds are invalid.
impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        let mut rest = TimestampCursor(text.as_bytes());
        let (seconds, nanos, offset) = rest.read_timestamp().ok_or(TimestampError::Malformed)?;
        Self { unix_seconds: seconds, nanos_of_second: nanos, utc_offset_seconds: offset }
            .check_timestamp_range()
            .ok_or(TimestampError::OutOfRange)
    }
}

/// The unread rest of a timestamp. Each method consumes a prefix, or returns `None`.
struct TimestampCursor<'t>(&'t [u8]);

impl TimestampCursor<'_> {
    /// Reads the whole text. Returns the seconds since 1970, the nanoseconds, and the UTC offset in
    /// seconds.
    fn read_timestamp(&mut self) -> Option<(i64, u32, i32)> {
        let year = self.read_two_digits()? * 100 + self.read_two_digits()?;
        self.expect_byte(b'-')?;
        let month = self.read_two_digits().filter(|month| (1..=12).contains(month))?;
        self.expect_byte(b'-')?;
        let day =
            self.read_two_digits().filter(|day| (1..=days_in_month(month, year)).contains(day))?;
        self.expect_byte(b'T')?;
        let hour = self.read_hour().filter(|hour| *hour < 24)?;
        self.expect_byte(b':')?;
        let minute = self.read_two_digits().filter(|minute| *minute < 60)?;
        self.expect_byte(b':')?;
        let second = self.read_two_digits().filter(|second| *second < 60)?;
        let nanos = self.read_second_fraction();
        let offset = self.read_utc_offset()?;
        if !self.0.is_empty() {
            return None;
        }
        let seconds = days_since_epoch(year, month, day) * SECONDS_PER_DAY
            + hour * 3_600
            + minute * 60
            + second
            - i64::from(offset);
        Some((seconds, nanos, offset))
    }

    fn expect_byte(&mut self, expected: u8) -> Option<()> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        (*first == expected).then_some(())
    }

    fn read_digit(&mut self) -> Option<i64> {
        let (first, rest) = self.0.split_first()?;
        if !first.is_ascii_digit() {
            return None;
        }
        self.0 = rest;
        Some(i64::from(first - b'0'))
    }

    fn read_two_digits(&mut self) -> Option<i64> {
        Some(self.read_digit()? * 10 + self.read_digit()?)
    }

    /// Reads an hour of one or two digits.
    fn read_hour(&mut self) -> Option<i64> {
        let first = self.read_digit()?;
        Some(self.read_digit().map_or(first, |second| first * 10 + second))
    }

    /// Reads the fraction of a second in nanoseconds; 0 if there is no fraction.
    fn read_second_fraction(&mut self) -> u32 {
        let [b'.' | b',', digits @ ..] = self.0 else { return 0 };
        if !digits.first().is_some_and(u8::is_ascii_digit) {
            return 0;
        }
        self.0 = digits;
        let mut nanos = 0;
        let mut unit = 100_000_000;
        while let [digit @ b'0'..=b'9', rest @ ..] = self.0 {
            nanos += u32::from(digit - b'0') * unit;
            unit /= 10;
            self.0 = rest;
        }
        nanos
    }

    /// Reads `Z`, or hours and minutes east or west of UTC.
    fn read_utc_offset(&mut self) -> Option<i32> {
        let (sign, rest) = self.0.split_first()?;
        self.0 = rest;
        let sign = match sign {
            b'Z' => return Some(0),
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        // Go accepts offsets of 24 hours and of 60 minutes.
        let hours = self.read_two_digits().filter(|hours| *hours <= 24)?;
        self.expect_byte(b':')?;
        let minutes = self.read_two_digits().filter(|minutes| *minutes <= 60)?;
        i32::try_from(sign * (hours * 60 + minutes) * 60).ok()
    }
}

fn days_in_month(month: i64, year: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Writes the form that [`Timestamp::from_str`] reads, with the offset that was read and as many
/// digits of the fraction as needed.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WallTime { year, month, day, hour, minute, second, .. } =
            self.wall_time_at_offset(i64::from(self.utc_offset_seconds));
        if year < 0 {
            f.write_str("-")?;
        }
        let year = year.unsigned_abs();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if self.nanos_of_second != 0 {
            let digits = format!("{:09}", self.nanos_of_second);
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        if self.utc_offset_seconds == 0 {
            return f.write_str("Z");
        }
        let sign = if self.utc_offset_seconds < 0 { '-' } else { '+' };
        let minutes = self.utc_offset_seconds.unsigned_abs() / 60;
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}
