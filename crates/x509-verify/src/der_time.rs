//! Reads and encodes the timestamps in certificates.

use crate::der::{DerReader, DerTag, encode_der_value};

/// The last second that GeneralizedTime can express: 9999-12-31T23:59:59Z.
const LAST_SECOND: i64 = 253_402_300_799;

/// Reads a UTC timestamp with seconds, as seconds since 1970.
pub(crate) fn read_time(reader: &mut DerReader<'_>) -> Option<i64> {
    let value = reader.read_any_value()?;
    let text = value.contents;
    let (year, rest) = match value.tag {
        DerTag::UTC_TIME => {
            let year = parse_digits(text.get(..2)?)?;
            // A two-digit year below 50 is in the 21st century (RFC 5280, 4.1.2.5.1).
            (if year >= 50 { 1900 + year } else { 2000 + year }, text.get(2..)?)
        }
        DerTag::GENERALIZED_TIME => (parse_digits(text.get(..4)?)?, text.get(4..)?),
        _ => return None,
    };
    let [pairs @ .., b'Z'] = rest else { return None };
    let (pairs, []) = pairs.as_chunks::<2>() else { return None };
    let parts: Vec<i64> = pairs.iter().map(|pair| parse_digits(pair)).collect::<Option<_>>()?;
    let [month, day, hour, minute, second] = parts[..] else { return None };
    let is_moment = (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour <= 23
        && minute <= 59
        && second <= 59;
    is_moment
        .then(|| days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Encodes a time in seconds since 1970: as UTCTime until 2049, as GeneralizedTime from 2050 (RFC 5280, 4.1.2.5).
/// A time before 1970 becomes the first second of 1970, and one after the year 9999 the last second of 9999.
#[must_use]
pub fn encode_time(seconds: i64) -> Vec<u8> {
    let seconds = seconds.clamp(0, LAST_SECOND);
    let (mut days, second_of_day) = (seconds / 86_400, seconds % 86_400);
    let (mut year, mut month) = (1970, 1);
    while days >= days_in_year(year) {
        days -= days_in_year(year);
        year += 1;
    }
    while days >= days_in_month(year, month) {
        days -= days_in_month(year, month);
        month += 1;
    }
    let (day, hour, minute) = (days + 1, second_of_day / 3600, second_of_day / 60 % 60);
    let rest = format!("{month:02}{day:02}{hour:02}{minute:02}{:02}Z", second_of_day % 60);
    match year {
        ..2050 => {
            let text = format!("{:02}{rest}", year % 100);
            encode_der_value(DerTag::UTC_TIME, &[text.as_bytes()])
        }
        _ => encode_der_value(DerTag::GENERALIZED_TIME, &[format!("{year}{rest}").as_bytes()]),
    }
}

fn parse_digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
    })
}

fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_year(year: i64) -> i64 {
    if is_leap_year(year) { 366 } else { 365 }
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap_year(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the number of days from 1970 to a date. Years have four digits, so the computation cannot overflow.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let before = year - 1;
    let leap_days = before / 4 - before / 100 + before / 400;
    let days_before_year = if year == 0 { -366 } else { before * 365 + leap_days };
    let days_before_month: i64 = (1..month).map(|month| days_in_month(year, month)).sum();
    // January 1 of year 1 was 719,162 days before January 1, 1970.
    days_before_year + days_before_month + day - 1 - 719_162
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(tag: DerTag, text: &str) -> Option<i64> {
        let mut bytes = vec![tag.0, u8::try_from(text.len()).unwrap()];
        bytes.extend_from_slice(text.as_bytes());
        read_time(&mut DerReader::new(&bytes))
    }

    #[test]
    fn timestamps_match_the_calendar() {
        for (tag, text, want) in [
            (DerTag::UTC_TIME, "700101000000Z", Some(0)),
            (DerTag::UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (DerTag::UTC_TIME, "500101000000Z", Some(-631_152_000)),
            (DerTag::UTC_TIME, "240229120000Z", Some(1_709_208_000)),
            (DerTag::UTC_TIME, "230229120000Z", None),
            (DerTag::UTC_TIME, "2302281200Z", None),
            (DerTag::UTC_TIME, "230228120000+0000", None),
            (DerTag::UTC_TIME, "230228120000", None),
            (DerTag::UTC_TIME, "23022812000xZ", None),
            (DerTag::UTC_TIME, "230228240000Z", None),
            (DerTag::UTC_TIME, "230028000000Z", None),
            (DerTag::UTC_TIME, "231328000000Z", None),
            (DerTag::UTC_TIME, "", None),
            (DerTag::GENERALIZED_TIME, "20500101000000Z", Some(2_524_608_000)),
            (DerTag::GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
            (DerTag::GENERALIZED_TIME, "00010101000000Z", Some(-62_135_596_800)),
            (DerTag::GENERALIZED_TIME, "00000101000000Z", Some(-62_167_219_200)),
            (DerTag::GENERALIZED_TIME, "20500101000000.5Z", None),
            (DerTag::UTF8_STRING, "20500101000000Z", None),
        ] {
            assert_eq!(seconds(tag, text), want, "{text}");
        }
    }
    #[test]
    fn years_from_2050_are_encoded_with_four_digits() {
        for (seconds, tag, text) in [
            (0, DerTag::UTC_TIME, "700101000000Z"),
            (-1, DerTag::UTC_TIME, "700101000000Z"),
            (1_709_208_000, DerTag::UTC_TIME, "240229120000Z"),
            (2_524_607_999, DerTag::UTC_TIME, "491231235959Z"),
            (2_524_608_000, DerTag::GENERALIZED_TIME, "20500101000000Z"),
            (i64::MAX, DerTag::GENERALIZED_TIME, "99991231235959Z"),
        ] {
            assert_eq!(encode_time(seconds), encode_der_value(tag, &[text.as_bytes()]), "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_encoded_time_is_read_back(seconds in 0..=LAST_SECOND) {
            prop_assert_eq!(read_time(&mut DerReader::new(&encode_time(seconds))), Some(seconds));
        }
    }
}
