use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, expected: Result<&str, TimestampError>) {
    let written = text.parse::<Timestamp>().map(|time| time.to_string());
    assert_eq!(written, expected.map(str::to_owned), "{text}");
}

#[test]
fn text_is_written_as_it_was_read() {
    for text in [
        "2020-01-01T00:00:00Z",
        "2020-02-29T23:59:59.000000001Z",
        "2020-01-01T00:00:00.12+05:30",
        "2020-01-01T00:00:00-00:30",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999999Z",
    ] {
        check(text, Ok(text));
    }
}

#[test]
fn lenient_forms_match_go() {
    check("2020-01-01T5:00:00Z", Ok("2020-01-01T05:00:00Z"));
    check("2020-01-01T05:00:00,50Z", Ok("2020-01-01T05:00:00.5Z"));
    check("2020-01-01T00:00:00.123456789987Z", Ok("2020-01-01T00:00:00.123456789Z"));
    check("2020-01-01T00:00:00.0Z", Ok("2020-01-01T00:00:00Z"));
    check("2020-01-01T00:00:00+00:00", Ok("2020-01-01T00:00:00Z"));
    check("2020-01-01T00:00:00+24:60", Ok("2020-01-01T00:00:00+25:00"));
}

#[test]
fn malformed_text_is_refused() {
    for text in [
        "",
        "2020-01-01",
        "2020-01-01T00:00:00",
        "2020-01-01t00:00:00Z",
        "2020-01-01T00:00:00z",
        "2020-01-01 00:00:00Z",
        "2020-1-01T00:00:00Z",
        "2020-13-01T00:00:00Z",
        "2020-00-01T00:00:00Z",
        "2020-02-30T00:00:00Z",
        "2021-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2020-01-00T00:00:00Z",
        "2020-01-01T24:00:00Z",
        "2020-01-01T00:60:00Z",
        "2020-01-01T00:00:60Z",
        "2020-01-01T00:00:00.Z",
        "2020-01-01T00:00:00.1.2Z",
        "2020-01-01T00:00:00Z ",
        "2020-01-01T00:00:00+25:00",
        "2020-01-01T00:00:00+00:61",
        "2020-01-01T00:00:00+0000",
        "2020-01-01T00:00:00+00",
        "+020-01-01T00:00:00Z",
        "20200-01-01T00:00:00Z",
        "２020-01-01T00:00:00Z",
    ] {
        check(text, Err(TimestampError::Malformed));
    }
}

#[test]
fn the_range_applies_in_utc() {
    check("0000-12-31T23:59:59Z", Err(TimestampError::OutOfRange));
    check("0001-01-01T00:00:00+00:01", Err(TimestampError::OutOfRange));
    check("9999-12-31T23:59:59-00:01", Err(TimestampError::OutOfRange));
    // The local year may be out of range if the UTC year is in range.
    check("0000-12-31T23:59:59-00:01", Ok("0000-12-31T23:59:59-00:01"));
    let late: Timestamp = "9999-12-31T23:59:59+00:30".parse().unwrap();
    let later = late.checked_add_nanos(60_000_000_000).unwrap();
    assert_eq!(later.to_string(), "10000-01-01T00:00:59+00:30");
    assert_eq!(later.to_utc().to_string(), "9999-12-31T23:30:59Z");
}

#[test]
fn seconds_and_nanos_are_normalized() {
    let shown = |seconds, nanos| {
        Timestamp::from_unix_seconds_and_nanos(seconds, nanos).map(|time| time.to_string())
    };
    assert_eq!(shown(1, -1).as_deref(), Some("1970-01-01T00:00:00.999999999Z"));
    assert_eq!(shown(1, 2_000_000_000).as_deref(), Some("1970-01-01T00:00:03Z"));
    assert_eq!(shown(999_999_999_999, 0).as_deref(), Some("33658-09-27T01:46:39Z"));
    assert_eq!(shown(-62_198_755_200, 0).as_deref(), Some("-0001-01-01T00:00:00Z"));
    assert_eq!(shown(i64::MAX, 0).as_deref(), Some("292277026596-12-04T15:30:07Z"));
    assert_eq!(shown(i64::MAX, i32::MAX), None);
    assert_eq!(shown(i64::MIN, -1), None);
}

#[test]
fn the_calendar_has_no_gaps() {
    let mut yesterday = WallTime::from_local_seconds(-800 * 366 * SECONDS_PER_DAY);
    for day in (-800 * 366 + 1)..(400 * 366) {
        let today = WallTime::from_local_seconds(day * SECONDS_PER_DAY);
        let next = (yesterday.year, yesterday.month, yesterday.day + 1);
        let new_month = (yesterday.year, yesterday.month + 1, 1);
        let new_year = (yesterday.year + 1, 1, 1);
        let date = (today.year, today.month, today.day);
        assert!([next, new_month, new_year].contains(&date), "{yesterday:?} then {today:?}");
        assert_eq!(days_since_epoch(today.year, today.month, today.day), day);
        assert_eq!(today.day_of_week, (yesterday.day_of_week + 1) % 7);
        yesterday = today;
    }
}

proptest! {
    #[test]
    fn written_timestamps_are_read_back(
        seconds in Timestamp::SECONDS_MIN + 90_000..=Timestamp::SECONDS_MAX - 90_000,
        nanos in 0u32..1_000_000_000,
        minutes in -1_500i32..=1_500,
    ) {
        // An offset of 25 hours is written as `25:00`, but only `24:60` can be parsed.
        let offset = (minutes % 1_500) * 60;
        let time = Timestamp { unix_seconds: seconds, nanos_of_second: nanos, utc_offset_seconds: offset };
        let again: Timestamp = time.to_string().parse().unwrap();
        prop_assert_eq!((again.unix_seconds, again.nanos_of_second, again.utc_offset_seconds), (seconds, nanos, offset));
    }

    #[test]
    fn subtraction_reverses_addition(seconds in -9_000_000_000i64..9_000_000_000, nanos: i64) {
        let time = Timestamp::from_unix_seconds(seconds).unwrap();
        let sum = time.checked_add_nanos(nanos).unwrap();
        let apart = nanos.div_euclid(NANOS_PER_SECOND).checked_mul(NANOS_PER_SECOND);
        prop_assert_eq!(sum.nanos_since(&time), apart.map(|_| nanos));
    }

    #[test]
    fn no_text_panics(text in "[-0-9TZ:.,+]{0,30}|\\PC{0,8}") {
        let _ = text.parse::<Timestamp>();
    }

    #[test]
    fn no_timestamp_panics(seconds: i64, nanos: i32, offset: i64, span: i64) {
        if let Some(time) = Timestamp::from_unix_seconds_and_nanos(seconds, nanos) {
            let _ = (time.to_string(), time.wall_time_at_offset(offset), time.checked_add_nanos(span));
        }
    }
}
