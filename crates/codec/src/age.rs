//! Ages as people read them.

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// How long ago something was, with at most two units: `46s`, `3m25s`, `5d3h`.
///
/// Clocks differ a little, so up to a second in the future is now.
#[must_use]
pub fn age(now: Timestamp, then: Option<Timestamp>) -> String {
    let Some(then) = then else { return "<unknown>".to_owned() };
    // Whole seconds towards zero, as for Kubernetes.
    let seconds = now.as_millisecond().saturating_sub(then.as_millisecond()) / 1000;
    match seconds {
        ..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        seconds if seconds < 2 * MINUTE => format!("{seconds}s"),
        seconds if seconds < 10 * MINUTE => two_units(seconds, (MINUTE, 'm'), (1, 's')),
        seconds if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        seconds if seconds < 8 * HOUR => two_units(seconds, (HOUR, 'h'), (MINUTE, 'm')),
        seconds if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        seconds if seconds < 8 * DAY => two_units(seconds, (DAY, 'd'), (HOUR, 'h')),
        seconds if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        seconds if seconds < 8 * YEAR => two_units(seconds, (YEAR, 'y'), (DAY, 'd')),
        seconds => format!("{}y", seconds / YEAR),
    }
}

/// Leaves out the smaller unit where there is none of it.
fn two_units(seconds: i64, large: (i64, char), small: (i64, char)) -> String {
    let n_large = seconds / large.0;
    match seconds % large.0 / small.0 {
        0 => format!("{n_large}{}", large.1),
        n_small => format!("{n_large}{}{n_small}{}", large.1, small.1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_every_step() {
        let then = Timestamp::from_second(1_700_000_000).unwrap();
        for (seconds, want) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (46, "46s"),
            (119, "119s"),
            (120, "2m"),
            (205, "3m25s"),
            (599, "9m59s"),
            (600, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (5 * HOUR + 30 * MINUTE, "5h30m"),
            (8 * HOUR - 1, "7h59m"),
            (8 * HOUR, "8h"),
            (48 * HOUR - 1, "47h"),
            (48 * HOUR, "2d"),
            (5 * DAY + 3 * HOUR, "5d3h"),
            (8 * DAY - 1, "7d23h"),
            (8 * DAY, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (3 * YEAR + 40 * DAY, "3y40d"),
            (8 * YEAR, "8y"),
        ] {
            let now = Timestamp::from_second(1_700_000_000 + seconds).unwrap();
            assert_eq!(age(now, Some(then)), want, "{seconds}");
        }
        assert_eq!(age(then, None), "<unknown>");
        assert_eq!(age(Timestamp::MIN, Some(Timestamp::MAX)), "<invalid>");
    }
}
