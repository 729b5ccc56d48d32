use proptest::prelude::*;

use super::*;
use crate::library::operators::tests::{assert_outcome, implementation};

fn check(function: &str, cases: Vec<(Value<'_>, Result<Value<'_>, &str>)>) {
    for (argument, expected) in cases {
        let arguments = [argument];
        let actual = implementation(function, "")(&arguments);
        assert_outcome(&arguments, &actual, &expected);
    }
}

fn text(text: &str) -> Value<'_> {
    Value::borrowed_string(text)
}

fn octets(bytes: &[u8]) -> Value<'_> {
    Value::Bytes(Bytes::Borrowed(bytes))
}

#[test]
fn bool_accepts_six_spellings_of_each_value() {
    let refused = || Err("type conversion error from 'string' to 'bool'");
    for yes in ["1", "t", "T", "true", "TRUE", "True"] {
        check("bool", vec![(text(yes), Ok(Value::Bool(true)))]);
    }
    for no in ["0", "f", "F", "false", "FALSE", "False"] {
        check("bool", vec![(text(no), Ok(Value::Bool(false)))]);
    }
    check("bool", vec![(text("tRUE"), refused()), (text("yes"), refused()), (text(""), refused())]);
}

#[test]
fn int_reads_and_rounds() {
    let refused = || Err("type conversion error from 'string' to 'int'");
    let overflow = || Err("integer overflow");
    check(
        "int",
        vec![
            (text("+5"), Ok(Value::Int(5))),
            (text("-9223372036854775808"), Ok(Value::Int(i64::MIN))),
            (text("0010"), Ok(Value::Int(10))),
            (text("9223372036854775808"), refused()),
            (text("1_0"), refused()),
            (text("+-5"), refused()),
            (text("++5"), refused()),
            (text("0x10"), refused()),
            (text(" 1"), refused()),
            (text("-"), refused()),
            (text(""), refused()),
            (text("٣"), refused()),
            (Value::Double(9.9), Ok(Value::Int(9))),
            (Value::Double(-9.9), Ok(Value::Int(-9))),
            (Value::Double(9_223_372_036_854_774_784.0), Ok(Value::Int(9_223_372_036_854_774_784))),
            (Value::Double(9_223_372_036_854_775_808.0), overflow()),
            (Value::Double(-9_223_372_036_854_775_808.0), overflow()),
            (Value::Double(f64::NAN), overflow()),
            (Value::Double(f64::INFINITY), overflow()),
            (Value::Uint(u64::MAX), overflow()),
            (Value::Uint(7), Ok(Value::Int(7))),
            (Value::Duration(-5), Ok(Value::Int(-5))),
            (Value::Timestamp("1969-12-31T23:59:59.5Z".parse().unwrap()), Ok(Value::Int(-1))),
        ],
    );
}

#[test]
fn uint_takes_no_sign() {
    let refused = || Err("type conversion error from 'string' to 'uint'");
    let overflow = || Err("unsigned integer overflow");
    check(
        "uint",
        vec![
            (text("18446744073709551615"), Ok(Value::Uint(u64::MAX))),
            (text("18446744073709551616"), refused()),
            (text("+5"), refused()),
            (text("-0"), refused()),
            (Value::Int(-1), overflow()),
            (Value::Double(-0.5), overflow()),
            (Value::Double(-0.0), Ok(Value::Uint(0))),
            (Value::Double(18_446_744_073_709_551_616.0), overflow()),
            (Value::Double(1e19), Ok(Value::Uint(10_000_000_000_000_000_000))),
        ],
    );
}

#[test]
fn double_reads_decimal_and_hexadecimal() {
    let double = |number| Ok(Value::Double(number));
    let refused = || Err("type conversion error from 'string' to 'double'");
    check(
        "double",
        vec![
            (text("+1.5e3"), double(1500.0)),
            (text(".5"), double(0.5)),
            (text("5."), double(5.0)),
            (text("-0"), double(-0.0)),
            (text("1e-400"), double(0.0)),
            (text("1e400"), refused()),
            (text("."), refused()),
            (text("1e"), refused()),
            (text("1e+"), refused()),
            (text("e5"), refused()),
            (text(" 1"), refused()),
            (text(""), refused()),
            (text("+"), refused()),
            // Underscores separate digits.
            (text("1_000.2_5e1_0"), double(1000.25e10)),
            (text("_1"), refused()),
            (text("1_"), refused()),
            (text("1__0"), refused()),
            (text("1_.5"), refused()),
            (text("1_e5"), refused()),
            // Words.
            (text("inf"), double(f64::INFINITY)),
            (text("-INFINITY"), double(f64::NEG_INFINITY)),
            (text("infin"), refused()),
            (text("NaN"), double(f64::NAN)),
            (text("-nan"), refused()),
            // Hexadecimal.
            (text("0x1p4"), double(16.0)),
            (text("-0X_1.8P-2"), double(-0.375)),
            (text("0x.8p1"), double(1.0)),
            (text("0x1.fffffffffffff8p0"), double(2.0)),
            (text("0x1.fffffffffffff7p0"), double(1.9999999999999998)),
            (text("0x1.00000000000008p0"), double(1.0)),
            (text("0x1.000000000000080000000000000001p0"), double(1.0000000000000002)),
            (text("0x1p-1074"), double(5e-324)),
            (text("0x1p-1075"), double(0.0)),
            (text("0x1.1p-1075"), double(5e-324)),
            (text("0x1p1023"), double(8.98846567431158e307)),
            (text("0x1.fffffffffffff8p1023"), refused()),
            (text("0x1p99999999999999999999"), refused()),
            (text("0x1p-99999999999999999999"), double(0.0)),
            (text("0x0p99999999999999999999"), double(0.0)),
            (text("0x1"), refused()),
            (text("0xp1"), refused()),
            (text("0x"), refused()),
            (text("0x1g"), refused()),
            (text("0b1"), refused()),
            (Value::Int(i64::MAX), double(9_223_372_036_854_775_808.0)),
            (Value::Uint(u64::MAX), double(18_446_744_073_709_551_616.0)),
        ],
    );
}

#[test]
fn string_uses_the_shortest_number_form() {
    check(
        "string",
        vec![
            (Value::Double(123456.0), Ok(text("123456"))),
            (Value::Double(1234567.0), Ok(text("1.234567e+06"))),
            (Value::Double(1e21), Ok(text("1e+21"))),
            (Value::Double(1e-300), Ok(text("1e-300"))),
            (Value::Double(0.0001), Ok(text("0.0001"))),
            (Value::Double(0.00001), Ok(text("1e-05"))),
            (Value::Double(-0.0), Ok(text("-0"))),
            (Value::Double(100000.0), Ok(text("100000"))),
            (Value::Double(-12.5), Ok(text("-12.5"))),
            (Value::Double(f64::MAX), Ok(text("1.7976931348623157e+308"))),
            (Value::Double(5e-324), Ok(text("5e-324"))),
            // Halfway between two decimals, the even one is chosen.
            (Value::Double(1_769_185_902_913_797.0 + 0.25), Ok(text("1.7691859029137972e+15"))),
            (Value::Double(65_536.0 + 1.0 / 4096.0), Ok(text("65536.00024414062"))),
            (Value::Double(0.1), Ok(text("0.1"))),
            (Value::Double(f64::INFINITY), Ok(text("+Inf"))),
            (Value::Double(f64::NEG_INFINITY), Ok(text("-Inf"))),
            (Value::Double(f64::NAN), Ok(text("NaN"))),
            (Value::Int(-7), Ok(text("-7"))),
            (Value::Uint(7), Ok(text("7"))),
            (Value::Bool(true), Ok(text("true"))),
            (Value::Duration(0), Ok(text("0s"))),
            (Value::Duration(-5), Ok(text("-0.000000005s"))),
            (Value::Duration(5_400_000_000_001), Ok(text("5400.000000001s"))),
            (Value::Duration(i64::MAX), Ok(text("9223372036.854776s"))),
            (Value::Duration(2_882_252_332_691_406_047), Ok(text("2882252332.6914062s"))),
        ],
    );
}

#[test]
fn bytes_to_string_requires_utf8() {
    check(
        "string",
        vec![
            (octets("ñ".as_bytes()), Ok(text("ñ"))),
            (octets(b"\xff"), Err("invalid UTF-8 in bytes, cannot convert to string")),
            (octets(b"\xed\xa0\x80"), Err("invalid UTF-8 in bytes, cannot convert to string")),
        ],
    );
    check("bytes", vec![(text("ñ"), Ok(octets("ñ".as_bytes())))]);
}

#[test]
fn borrowed_text_stays_borrowed() {
    let word = "lent".to_owned();
    let bytes = to_bytes(&[text(&word)]).unwrap();
    let again = to_string(&[bytes]).unwrap();
    assert!(matches!(again, Value::String(Str::Borrowed(same)) if std::ptr::eq(same, &*word)));
}

#[test]
fn times_are_read_from_text_and_numbers() {
    let time = |seconds| Ok(Value::Timestamp(Timestamp::from_unix_seconds(seconds).unwrap()));
    check(
        "timestamp",
        vec![
            (text("1970-01-01T01:00:00+01:00"), time(0)),
            (Value::Int(253_402_300_799), time(253_402_300_799)),
            (Value::Int(253_402_300_800), Err("timestamp overflow")),
            (Value::Int(-62_135_596_801), Err("timestamp overflow")),
            (text("0000-12-31T23:59:59Z"), Err("timestamp overflow")),
            (
                text("1970-01-01"),
                Err("type conversion error from 'string' to 'google.protobuf.Timestamp'"),
            ),
        ],
    );
    check(
        "duration",
        vec![
            (text("1h0.5s"), Ok(Value::Duration(3_600_500_000_000))),
            (text("1d"), Err("type conversion error from 'string' to 'google.protobuf.Duration'")),
        ],
    );
}

proptest! {
    #[test]
    fn written_doubles_are_read_back(bits: u64) {
        let number = f64::from_bits(bits);
        prop_assume!(!number.is_nan());
        for text in [format_double(number), format_double::format_double_without_exponent(number)] {
            prop_assert_eq!(number_from_text::parse_double(&text).map(f64::to_bits), Some(bits), "{}", text);
        }
    }

    #[test]
    fn hexadecimal_doubles_are_exact(mantissa in 0u64..1 << 53, exponent in -1126i32..971) {
        let text = format!("0x{mantissa:x}p{exponent}");
        // Divides in two steps, because the power alone may be too small for a double.
        let half = exponent / 2;
        let expected = mantissa as f64 * 2f64.powi(half) * 2f64.powi(exponent - half);
        prop_assert_eq!(number_from_text::parse_double(&text), Some(expected), "{}", text);
    }

    #[test]
    fn no_text_panics(text in "[-+0-9a-fx_.pePEXiny ]{0,24}|\\PC{0,8}") {
        for function in ["bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"] {
            let _ = implementation(function, "")(&[Value::borrowed_string(&text)]);
        }
    }
}
