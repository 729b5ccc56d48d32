use proptest::prelude::*;

use super::*;

const S: i64 = 1_000_000_000;

#[test]
fn parses_like_go() {
    for (text, want) in [
        ("0", 0),
        ("+0", 0),
        ("-0", 0),
        ("0s", 0),
        ("5s", 5 * S),
        ("+5s", 5 * S),
        ("-5s", -5 * S),
        ("1478s", 1478 * S),
        (".5s", S / 2),
        ("5.s", 5 * S),
        ("-.5s", -S / 2),
        ("1.5h", 5400 * S),
        ("10ns", 10),
        ("11us", 11_000),
        ("12\u{b5}s", 12_000),
        ("12\u{3bc}s", 12_000),
        ("13ms", 13_000_000),
        ("3h30m", 12_600 * S),
        ("1m1s1m", 121 * S),
        ("39h9m14.425s", 140_954_425_000_000),
        ("0.3333333333333333333h", 1200 * S),
        ("9007199254.740993ms", 9_007_199_254_740_993),
        ("9223372036854775807ns", i64::MAX),
        ("-9223372036854775808ns", i64::MIN),
        ("-9223372036.854775808s", i64::MIN),
        // A fraction past 63 bits of precision is cut, not refused.
        ("0.100000000000000000000h", 360 * S),
        ("0.830103483285477580700h", 2_988_372_539_827),
    ] {
        assert_eq!(parse_duration(text), Ok(want), "{text}");
    }
}

#[test]
fn parse_errors_match_go() {
    for (text, want) in [
        ("", r#"time: invalid duration """#),
        ("-", r#"time: invalid duration "-""#),
        ("s", r#"time: invalid duration "s""#),
        (".", r#"time: invalid duration ".""#),
        (".s", r#"time: invalid duration ".s""#),
        ("+.s", r#"time: invalid duration "+.s""#),
        (" 1s", r#"time: invalid duration " 1s""#),
        ("3", r#"time: missing unit in duration "3""#),
        ("1m3", r#"time: missing unit in duration "1m3""#),
        ("0..5s", r#"time: missing unit in duration "0..5s""#),
        ("1d", r#"time: unknown unit "d" in duration "1d""#),
        ("1 s", r#"time: unknown unit " s" in duration "1 s""#),
        ("1S", r#"time: unknown unit "S" in duration "1S""#),
        ("1s ", r#"time: unknown unit "s " in duration "1s ""#),
        ("1m-2s", r#"time: unknown unit "m-" in duration "1m-2s""#),
        ("9223372036854775808ns", r#"time: invalid duration "9223372036854775808ns""#),
        ("9223372036854775809ns", r#"time: invalid duration "9223372036854775809ns""#),
        ("-9223372036854775809ns", r#"time: invalid duration "-9223372036854775809ns""#),
        ("3000000h", r#"time: invalid duration "3000000h""#),
        ("9223372036854ms775us808ns", r#"time: invalid duration "9223372036854ms775us808ns""#),
        ("1\u{e9}\n\"", r#"time: unknown unit "\xc3\xa9\x0a\"" in duration "1\xc3\xa9\x0a\"""#),
    ] {
        assert_eq!(parse_duration(text).unwrap_err().to_string(), want);
    }
}

#[test]
fn formats_like_go() {
    for (nanos, want) in [
        (0, "0s"),
        (1, "1ns"),
        (999, "999ns"),
        (1_100, "1.1\u{b5}s"),
        (2_200_000, "2.2ms"),
        (100_000_000, "100ms"),
        (S, "1s"),
        (3 * S + S / 2, "3.5s"),
        (59 * S + 999_999_999, "59.999999999s"),
        (60 * S, "1m0s"),
        (300 * S, "5m0s"),
        (3600 * S, "1h0m0s"),
        (3661 * S + 1, "1h1m1.000000001s"),
        (-30 * S, "-30s"),
        (i64::MAX, "2562047h47m16.854775807s"),
        (i64::MIN, "-2562047h47m16.854775808s"),
    ] {
        assert_eq!(format_duration(nanos), want);
    }
}

proptest! {
    #[test]
    fn formatted_durations_parse_back(nanos: i64) {
        prop_assert_eq!(parse_duration(&format_duration(nanos)), Ok(nanos));
    }

    #[test]
    fn no_text_panics(text in "[-+]?([0-9.]{0,22}(ns|us|µs|ms|s|m|h|x|é)?){0,4}") {
        let _ = parse_duration(&text);
    }
}
