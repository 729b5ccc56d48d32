//! The syntax of the formats `date` and `datetime`.

/// Reports whether the text is `YYYY-MM-DD` with a day that the month has.
pub(super) fn is_date(text: &str) -> bool {
    let [year @ .., b'-', m1, m2, b'-', d1, d2] = text.as_bytes() else {
        return false;
    };
    let number = |digits: &[u8]| match digits.iter().all(u8::is_ascii_digit) {
        true => Some(digits.iter().fold(0, |n, digit| n * 10 + u32::from(digit - b'0'))),
        false => None,
    };
    if year.len() != 4 {
        return false;
    }
    match (number(year), number(&[*m1, *m2]), number(&[*d1, *d2])) {
        (Some(year), Some(month), Some(day)) => (1..=days_in_month(year, month)).contains(&day),
        _ => false,
    }
}

/// The number of days of a month; 0 if the month does not exist.
fn days_in_month(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => 0,
    }
}

/// Reports whether the text is a date, a `T`, and a time with a time zone. Text after a second `T` is ignored, as
/// in Kubernetes.
pub(super) fn is_datetime(text: &str) -> bool {
    let mut parts = text.split(['T', 't']);
    match (parts.next(), parts.next()) {
        (Some(date), Some(time)) => is_date(date) && is_time_with_zone(time),
        _ => false,
    }
}

/// Reports whether the text is `hh:mm:ss`, an optional fraction (any character and digits), and `Z` or an offset.
fn is_time_with_zone(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else {
        return false;
    };
    let [h1, h2, b':', m1, m2, b':', s1, s2] = clock.as_bytes() else {
        return false;
    };
    let is_below = |tens: &u8, ones: &u8, limit: u8| {
        tens.is_ascii_digit() && ones.is_ascii_digit() && (tens - b'0') * 10 + (ones - b'0') < limit
    };
    is_below(h1, h2, 24)
        && is_below(m1, m2, 60)
        && is_below(s1, s2, 60)
        && (is_utc_offset(rest) || strip_fraction(rest).is_some_and(is_utc_offset))
}

/// Removes any character but a line feed, and the digits after it; `None` if no digit follows.
fn strip_fraction(text: &str) -> Option<&str> {
    let mut chars = text.chars();
    chars.next().filter(|c| *c != '\n')?;
    let rest = chars.as_str().trim_start_matches(|c: char| c.is_ascii_digit());
    Some(rest).filter(|rest| rest.len() < chars.as_str().len())
}

fn is_utc_offset(text: &str) -> bool {
    match text.as_bytes() {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => [h1, h2, m1, m2].into_iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_days_that_exist() {
        for text in ["2021-01-31", "2020-02-29", "2000-02-29", "0000-02-29", "9999-12-31"] {
            assert!(is_date(text), "{text}");
        }
        for text in [
            "",
            "x",
            "2021-1-01",
            "2021-01-1",
            "2021-00-01",
            "2021-13-01",
            "2021-01-00",
            "2021-01-32",
            "2021-04-31",
            "2021-02-29",
            "1900-02-29",
            "021-01-01",
            "12021-01-01",
            "2021-01-01 ",
            "+021-01-01",
            "2021/01/01",
            "2021-01-0\u{e9}",
        ] {
            assert!(!is_date(text), "{text}");
        }
    }

    #[test]
    fn times_have_a_zone_and_maybe_a_fraction() {
        for text in [
            "2021-01-01T00:00:00Z",
            "2021-01-01t23:59:59z",
            "2021-01-01T00:00:00.123Z",
            "2021-01-01T00:00:00+99:99",
            "2021-01-01T00:00:00-01:00",
            "2021-01-01T00:00:00\u{e9}1z",
            "2021-01-01T00:00:00-01-01:00",
            "2021-01-01T00:00:00ZTz",
        ] {
            assert!(is_datetime(text), "{text}");
        }
        for text in [
            "",
            "2021-01-01",
            "2021-01-01T",
            "2021-01-01T00:00:00",
            "2021-01-01T24:00:00Z",
            "2021-01-01T00:60:00Z",
            "2021-01-01T00:00:60Z",
            "2021-01-01T00:00:00.Z",
            "2021-01-01T00:00:00.5",
            "2021-01-01T00:00:00\n5Z",
            "2021-01-01T00:00:00+1:00",
            "2021-01-01T00:00:0\u{e9}Z",
            "2021-02-30T00:00:00Z",
        ] {
            assert!(!is_datetime(text), "{text}");
        }
    }
}
