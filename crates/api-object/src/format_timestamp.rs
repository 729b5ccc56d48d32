//! The formats of timestamps in objects.

use jiff::Timestamp;

/// Formats a time in UTC with whole seconds: `2026-11-15T18:02:38Z`.
#[must_use]
pub fn format_rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Formats a time in UTC with six decimals: `2026-11-15T18:02:38.000000Z`.
#[must_use]
pub fn format_rfc3339_micro(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_utc_and_cut_not_rounded() {
        let time: Timestamp = "2026-11-15T20:02:38.999999999+02:00".parse().unwrap();
        assert_eq!(format_rfc3339(time), "2026-11-15T18:02:38Z");
        assert_eq!(format_rfc3339_micro(time), "2026-11-15T18:02:38.999999Z");
    }
}
