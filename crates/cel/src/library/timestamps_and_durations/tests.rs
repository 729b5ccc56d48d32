use super::*;
use crate::library::operators::tests::{assert_outcome, implementation};

const GETTERS: [&str; 10] = [
    "getFullYear",
    "getMonth",
    "getDayOfYear",
    "getDayOfMonth",
    "getDate",
    "getDayOfWeek",
    "getHours",
    "getMinutes",
    "getSeconds",
    "getMilliseconds",
];

fn time(text: &str) -> Value<'static> {
    Value::Timestamp(text.parse().unwrap())
}

#[test]
fn getters_of_a_timestamp_count_as_documented() {
    let cases = [
        ("2023-07-14T10:30:45.123456789Z", [2023, 6, 194, 13, 14, 5, 10, 30, 45, 123]),
        // The UTC offset of the text does not matter.
        ("2023-07-14T12:30:45.123456789+02:00", [2023, 6, 194, 13, 14, 5, 10, 30, 45, 123]),
        ("0001-01-01T00:00:00Z", [1, 0, 0, 0, 1, 1, 0, 0, 0, 0]),
        ("9999-12-31T23:59:59.999Z", [9999, 11, 364, 30, 31, 5, 23, 59, 59, 999]),
        ("2000-02-29T00:00:00Z", [2000, 1, 59, 28, 29, 2, 0, 0, 0, 0]),
        ("1969-12-31T23:59:59Z", [1969, 11, 364, 30, 31, 3, 23, 59, 59, 0]),
    ];
    for (text, expected) in cases {
        for (getter, expected) in GETTERS.into_iter().zip(expected) {
            let arguments = [time(text)];
            let actual = implementation(getter, "timestamp")(&arguments);
            assert_outcome(&arguments, &actual, &Ok(Value::Int(expected)));
        }
    }
}

fn check_zone(getter: &str, text: &str, zone: &str, expected: Result<i64, &str>) {
    let arguments = [time(text), Value::borrowed_string(zone)];
    let actual = implementation(getter, "timestamp")(&arguments);
    assert_outcome(&arguments, &actual, &expected.map(Value::Int));
}

#[test]
fn time_zones_by_iana_name() {
    let cases = [
        ("2023-01-01T05:30:00Z", "", 5),
        ("2023-01-01T05:30:00Z", "UTC", 5),
        ("2023-01-01T05:30:00Z", "Local", 5),
        ("2023-01-01T05:30:00Z", "America/New_York", 0),
        // Daylight saving time, the second before it begins, and a year far in the future.
        ("2023-03-12T06:59:59Z", "America/New_York", 1),
        ("2023-03-12T07:00:00Z", "America/New_York", 3),
        ("5023-07-01T00:00:00Z", "America/New_York", 20),
        // Before standard time, the database has the local mean time.
        ("1800-01-01T00:00:00Z", "America/New_York", 19),
        ("9999-12-31T23:59:59Z", "Asia/Kolkata", 5),
        ("2023-01-01T05:30:00Z", "US/Pacific", 21),
    ];
    for (text, zone, hour) in cases {
        check_zone("getHours", text, zone, Ok(hour));
    }
    check_zone("getFullYear", "9999-12-31T23:59:59Z", "Asia/Kolkata", Ok(10_000));
    check_zone("getFullYear", "0001-01-01T00:00:00Z", "America/New_York", Ok(0));
    check_zone("getMinutes", "1800-01-01T00:00:00Z", "America/New_York", Ok(3));
}

#[test]
fn time_zones_as_fixed_offsets() {
    let cases = [
        ("+02:00", 2),
        ("02:00", 2),
        ("-08:30", 15),
        ("-00:30", 23),
        ("+02:99", 3),
        ("+99:00", 3),
        ("+0:-30", 23),
    ];
    for (zone, hour) in cases {
        check_zone("getHours", "2020-01-01T00:00:00Z", zone, Ok(hour));
    }
    // Overflow wraps around.
    check_zone("getHours", "2020-01-01T00:00:00Z", "999999999999999999:00", Ok(21));
    check_zone("getFullYear", "2020-01-01T00:00:00Z", "-9999999:00", Ok(2048));
    check_zone("getFullYear", "0001-01-01T00:00:00Z", "-99999:00", Ok(-11));
}

#[test]
fn zones_that_do_not_exist_are_errors() {
    let cases = [
        ("Foo/Bar", "unknown time zone Foo/Bar"),
        ("america/new_york", "unknown time zone america/new_york"),
        ("utc", "unknown time zone utc"),
        ("+0200", "unknown time zone +0200"),
        ("../x", "time: invalid location name"),
        ("/x", "time: invalid location name"),
        ("\\x", "time: invalid location name"),
        ("a:00", r#"strconv.Atoi: parsing "a": invalid syntax"#),
        (":00", r#"strconv.Atoi: parsing "": invalid syntax"#),
        ("1:2:3", r#"strconv.Atoi: parsing "2:3": invalid syntax"#),
        (
            "99999999999999999999:00",
            r#"strconv.Atoi: parsing "99999999999999999999": value out of range"#,
        ),
        (
            "9999999999999999999x:00",
            r#"strconv.Atoi: parsing "9999999999999999999x": invalid syntax"#,
        ),
    ];
    for (zone, error) in cases {
        check_zone("getHours", "2020-01-01T00:00:00Z", zone, Err(error));
        check_zone("getMilliseconds", "2020-01-01T00:00:00Z", zone, Err(error));
    }
}

#[test]
fn getters_of_a_duration_return_the_whole_duration() {
    let cases = [
        ("getHours", 3_723_456_000_000, 1),
        ("getMinutes", 3_723_456_000_000, 62),
        ("getSeconds", 3_723_456_000_000, 3_723),
        ("getMilliseconds", 3_723_456_000_000, 3_723_456),
        ("getSeconds", -1_500_000_000, -1),
        ("getMilliseconds", -1_999_999, -1),
        // Long durations are rounded before they are truncated to whole units.
        ("getSeconds", 9_223_372_035_999_999_999, 9_223_372_036),
        ("getHours", i64::MAX, 2_562_047),
    ];
    for (getter, nanos, expected) in cases {
        let arguments = [Value::Duration(nanos)];
        let actual = implementation(getter, "duration")(&arguments);
        assert_outcome(&arguments, &actual, &Ok(Value::Int(expected)));
    }
}
