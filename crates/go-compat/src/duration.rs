//! Durations as Go writes them: `1m30s`, `1.5h`, `-250ms`.

use std::fmt;

use crate::quote::push_hex_escape;

/// The reason why a text is not a duration. Displays as Go's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurationError {
    input: String,
    fault: DurationFault,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum DurationFault {
    Invalid,
    MissingUnit,
    UnknownUnit(String),
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = quote_like_time_package(&self.input);
        match &self.fault {
            DurationFault::Invalid => write!(f, "time: invalid duration {text}"),
            DurationFault::MissingUnit => write!(f, "time: missing unit in duration {text}"),
            DurationFault::UnknownUnit(unit) => {
                write!(f, "time: unknown unit {} in duration {text}", quote_like_time_package(unit))
            }
        }
    }
}

impl std::error::Error for DurationError {}

/// The magnitude of the most negative duration, one more than the largest count of nanoseconds.
const NANOS_LIMIT: u64 = 1 << 63;

/// Reads a duration and returns it in nanoseconds.
///
/// The syntax is an optional sign, then `0` or one or more `<decimal><unit>` groups, where the
/// decimal may have a fraction and the unit is `ns`, `us`, `µs`, `μs`, `ms`, `s`, `m` or `h`.
///
/// # Errors
/// Any other text, and any value outside of signed 64-bit nanoseconds.
///
/// ```
/// assert_eq!(go_compat::parse_duration("-1m1.5s"), Ok(-61_500_000_000));
/// let missing = go_compat::parse_duration("30").unwrap_err();
/// assert_eq!(missing.to_string(), r#"time: missing unit in duration "30""#);
/// ```
pub fn parse_duration(input: &str) -> Result<i64, DurationError> {
    parse_duration_as_nanos(input).map_err(|fault| DurationError { input: input.to_owned(), fault })
}

fn parse_duration_as_nanos(input: &str) -> Result<i64, DurationFault> {
    let (negative, mut rest) = match input.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, input.strip_prefix('+').unwrap_or(input)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(DurationFault::Invalid);
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (nanos, after) = parse_duration_group(rest)?;
        total = total
            .checked_add(nanos)
            .filter(|&sum| sum <= NANOS_LIMIT)
            .ok_or(DurationFault::Invalid)?;
        rest = after;
    }
    if negative {
        // The magnitude may be one more than i64 holds; negation brings it back into range.
        Ok((total as i64).wrapping_neg())
    } else {
        i64::try_from(total).map_err(|_| DurationFault::Invalid)
    }
}

/// Parses one `<decimal><unit>` group. Returns its nanoseconds and the text after it.
fn parse_duration_group(input: &str) -> Result<(u64, &str), DurationFault> {
    let (whole, rest) = input.split_at(count_leading_digits(input));
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(after) => after.split_at(count_leading_digits(after)),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(DurationFault::Invalid);
    }
    let whole = parse_digits(whole)?;
    let unit_end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    if unit.is_empty() {
        return Err(DurationFault::MissingUnit);
    }
    let unit = nanos_per_unit(unit).ok_or_else(|| DurationFault::UnknownUnit(unit.to_owned()))?;
    let nanos = whole
        .checked_mul(unit)
        .and_then(|nanos| nanos.checked_add(fraction_to_nanos(fraction, unit)))
        .filter(|&nanos| nanos <= NANOS_LIMIT)
        .ok_or(DurationFault::Invalid)?;
    Ok((nanos, rest))
}

fn count_leading_digits(input: &str) -> usize {
    input.bytes().take_while(u8::is_ascii_digit).count()
}

fn parse_digits(digits: &str) -> Result<u64, DurationFault> {
    let mut value: u64 = 0;
    for digit in digits.bytes() {
        value = value
            .checked_mul(10)
            .and_then(|value| value.checked_add(u64::from(digit - b'0')))
            .filter(|&value| value <= NANOS_LIMIT)
            .ok_or(DurationFault::Invalid)?;
    }
    Ok(value)
}

/// Converts a fraction to nanoseconds. Digits beyond 63 bits are ignored, and the rest is scaled in floating
/// point like in Go, because the last nanosecond depends on the rounding.
fn fraction_to_nanos(digits: &str, unit: u64) -> u64 {
    let mut value: u64 = 0;
    let mut scale: f64 = 1.0;
    for digit in digits.bytes() {
        if value > (NANOS_LIMIT - 1) / 10 {
            break;
        }
        let next = value * 10 + u64::from(digit - b'0');
        if next > NANOS_LIMIT {
            break;
        }
        value = next;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

fn nanos_per_unit(unit: &str) -> Option<u64> {
    match unit {
        "ns" => Some(1),
        "us" | "\u{b5}s" | "\u{3bc}s" => Some(1_000),
        "ms" => Some(1_000_000),
        "s" => Some(1_000_000_000),
        "m" => Some(60_000_000_000),
        "h" => Some(3_600_000_000_000),
        _ => None,
    }
}

/// Quotes a text as the `time` package does, which is simpler than `%q`: everything outside of
/// printable ASCII is written byte by byte, except DEL, which stays.
fn quote_like_time_package(input: &str) -> String {
    let mut out = String::with_capacity(input.len() + 2);
    out.push('"');
    for byte in input.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=0x7f => out.push(char::from(byte)),
            _ => push_hex_escape(&mut out, 'x', u32::from(byte), 2),
        }
    }
    out.push('"');
    out
}

/// Writes a count of nanoseconds as Go does: `1h0m0s`, `1.5s`, `100ms`, `0s`.
///
/// ```
/// assert_eq!(go_compat::format_duration(300_000_000_000), "5m0s");
/// ```
pub fn format_duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    let seconds = nanos / 1_000_000_000;
    if seconds == 0 {
        return match nanos {
            0 => "0s".to_owned(),
            1..1_000 => format!("{sign}{nanos}ns"),
            1_000..1_000_000 => format!("{sign}{}\u{b5}s", format_scaled_decimal(nanos, 3)),
            _ => format!("{sign}{}ms", format_scaled_decimal(nanos, 6)),
        };
    }
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let below_minute = format_scaled_decimal(nanos % 60_000_000_000, 9);
    if hours > 0 {
        format!("{sign}{hours}h{minutes}m{below_minute}s")
    } else if minutes > 0 {
        format!("{sign}{minutes}m{below_minute}s")
    } else {
        format!("{sign}{below_minute}s")
    }
}

/// Writes `value / 10^places`, without trailing zeros after the point.
fn format_scaled_decimal(value: u64, places: usize) -> String {
    let digits = format!("{value:0width$}", width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    match fraction.trim_end_matches('0') {
        "" => whole.to_owned(),
        fraction => format!("{whole}.{fraction}"),
    }
}

#[cfg(test)]
mod tests;
