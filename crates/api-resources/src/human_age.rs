//! Ages in the short form that kubectl prints.

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Formats the time since an RFC 3339 timestamp, or returns `<unknown>` without a valid timestamp.
pub(crate) fn format_age(now: Timestamp, began: Option<&str>) -> String {
    match began.and_then(|text| text.parse::<Timestamp>().ok()) {
        Some(began) => format_age_seconds(now.as_second().saturating_sub(began.as_second())),
        None => "<unknown>".to_owned(),
    }
}

/// Formats a duration in one or two units; longer durations are coarser. A duration of -1 second, from
/// clocks that differ, counts as zero.
pub(crate) fn format_age_seconds(seconds: i64) -> String {
    let of = |unit: i64| seconds / unit;
    match seconds {
        i64::MIN..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if of(MINUTE) < 10 => format_two_units(of(MINUTE), 'm', seconds % MINUTE, 's'),
        _ if of(HOUR) < 3 => format!("{}m", of(MINUTE)),
        _ if of(HOUR) < 8 => format_two_units(of(HOUR), 'h', of(MINUTE) % 60, 'm'),
        _ if of(HOUR) < 48 => format!("{}h", of(HOUR)),
        _ if of(DAY) < 8 => format_two_units(of(DAY), 'd', of(HOUR) % 24, 'h'),
        _ if of(DAY) < 2 * 365 => format!("{}d", of(DAY)),
        _ if of(YEAR) < 8 => format_two_units(of(YEAR), 'y', of(DAY) % 365, 'd'),
        _ => format!("{}y", of(YEAR)),
    }
}

fn format_two_units(large: i64, large_unit: char, small: i64, small_unit: char) -> String {
    match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit}{small}{small_unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_every_limit() {
        for (seconds, want) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (3 * MINUTE + 25, "3m25s"),
            (10 * MINUTE - 1, "9m59s"),
            (10 * MINUTE, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (5 * HOUR + 30 * MINUTE, "5h30m"),
            (8 * HOUR, "8h"),
            (48 * HOUR - 1, "47h"),
            (48 * HOUR, "2d"),
            (5 * DAY + 3 * HOUR, "5d3h"),
            (8 * DAY, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (3 * YEAR + 40 * DAY, "3y40d"),
            (8 * YEAR, "8y"),
            (i64::MAX, "292471208677y"),
        ] {
            assert_eq!(format_age_seconds(seconds), want, "{seconds}");
        }
    }

    #[test]
    fn without_a_time_the_age_is_unknown() {
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(format_age(now, None), "<unknown>");
        assert_eq!(format_age(now, Some("yesterday")), "<unknown>");
        assert_eq!(format_age(now, Some("1969-12-31T23:59:14Z")), "46s");
    }
}
