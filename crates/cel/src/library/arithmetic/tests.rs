use super::*;
use crate::library::operators::tests::{assert_outcome, implementation};

type Case<'a> = (&'a str, Vec<Value<'a>>, Result<Value<'a>, &'a str>);

fn check(cases: Vec<Case<'_>>) {
    for (operator, arguments, expected) in cases {
        let actual = implementation(operator, "")(&arguments);
        assert_outcome(&arguments, &actual, &expected);
    }
}

fn time(text: &str) -> Value<'static> {
    Value::Timestamp(text.parse().unwrap())
}

fn octets(bytes: &[u8]) -> Value<'_> {
    Value::Bytes(Bytes::Borrowed(bytes))
}

#[test]
fn integer_overflow_is_an_error() {
    use Value::{Int, Uint};
    check(vec![
        ("_+_", vec![Int(i64::MAX), Int(0)], Ok(Int(i64::MAX))),
        ("_+_", vec![Int(i64::MAX), Int(1)], Err("integer overflow")),
        ("_-_", vec![Int(i64::MIN), Int(1)], Err("integer overflow")),
        ("_*_", vec![Int(i64::MIN), Int(-1)], Err("integer overflow")),
        ("_*_", vec![Int(1 << 32), Int(1 << 31)], Err("integer overflow")),
        ("_*_", vec![Int(-(1 << 32)), Int(1 << 31)], Ok(Int(i64::MIN))),
        ("_/_", vec![Int(-7), Int(2)], Ok(Int(-3))),
        ("_/_", vec![Int(i64::MIN), Int(-1)], Err("integer overflow")),
        ("_/_", vec![Int(1), Int(0)], Err("division by zero")),
        ("_%_", vec![Int(-7), Int(2)], Ok(Int(-1))),
        ("_%_", vec![Int(i64::MIN), Int(-1)], Err("integer overflow")),
        ("_%_", vec![Int(1), Int(0)], Err("modulus by zero")),
        ("-_", vec![Int(i64::MIN)], Err("integer overflow")),
        ("_+_", vec![Uint(u64::MAX), Uint(1)], Err("unsigned integer overflow")),
        ("_-_", vec![Uint(1), Uint(2)], Err("unsigned integer overflow")),
        ("_*_", vec![Uint(1 << 32), Uint(1 << 32)], Err("unsigned integer overflow")),
        ("_/_", vec![Uint(7), Uint(2)], Ok(Uint(3))),
        ("_/_", vec![Uint(7), Uint(0)], Err("division by zero")),
        ("_%_", vec![Uint(7), Uint(0)], Err("modulus by zero")),
    ]);
}

#[test]
fn doubles_follow_ieee_754() {
    use Value::Double;
    check(vec![
        ("_+_", vec![Double(0.1), Double(0.2)], Ok(Double(0.30000000000000004))),
        ("_-_", vec![Double(1.0), Double(0.5)], Ok(Double(0.5))),
        ("_*_", vec![Double(1e200), Double(1e200)], Ok(Double(f64::INFINITY))),
        ("_/_", vec![Double(-1.0), Double(0.0)], Ok(Double(f64::NEG_INFINITY))),
        ("-_", vec![Double(0.0)], Ok(Double(-0.0))),
        ("_%_", vec![Double(1.0), Double(2.0)], Err("no such overload: _%_")),
    ]);
}

#[test]
fn text_octets_and_lists_are_concatenated() {
    let list =
        |items: &[i64]| Value::owned_list_value(items.iter().copied().map(Value::Int).collect());
    check(vec![
        (
            "_+_",
            vec![Value::borrowed_string("a"), Value::borrowed_string("é")],
            Ok(Value::borrowed_string("aé")),
        ),
        (
            "_+_",
            vec![Value::borrowed_string(""), Value::borrowed_string("b")],
            Ok(Value::borrowed_string("b")),
        ),
        ("_+_", vec![octets(&[0xff]), octets(&[0])], Ok(octets(&[0xff, 0]))),
        ("_+_", vec![octets(&[]), octets(&[1])], Ok(octets(&[1]))),
        ("_+_", vec![list(&[1]), list(&[2, 3])], Ok(list(&[1, 2, 3]))),
        ("_+_", vec![list(&[1]), list(&[])], Ok(list(&[1]))),
        ("_+_", vec![list(&[]), list(&[1])], Ok(list(&[1]))),
        ("_+_", vec![list(&[1]), Value::Int(1)], Err("no such overload")),
    ]);
}

#[test]
fn adding_an_empty_operand_does_not_copy() {
    let text = "lent".to_owned();
    let sum = add(&[Value::borrowed_string(&text), Value::borrowed_string("")]).unwrap();
    assert!(matches!(sum, Value::String(Str::Borrowed(same)) if std::ptr::eq(same, &*text)));
}

#[test]
fn times_and_durations_stay_in_range() {
    use Value::Duration;
    const SECOND: i64 = 1_000_000_000;
    check(vec![
        ("_+_", vec![Duration(1), Duration(2)], Ok(Duration(3))),
        ("_+_", vec![Duration(i64::MAX), Duration(1)], Err("integer overflow")),
        ("_-_", vec![Duration(i64::MIN), Duration(1)], Err("integer overflow")),
        ("-_", vec![Duration(5)], Ok(Duration(-5))),
        ("-_", vec![Duration(i64::MIN)], Err("integer overflow")),
        (
            "_+_",
            vec![time("2020-02-28T23:59:59.5Z"), Duration(SECOND / 2)],
            Ok(time("2020-02-29T00:00:00Z")),
        ),
        (
            "_+_",
            vec![Duration(-1), time("2020-03-01T00:00:00Z")],
            Ok(time("2020-02-29T23:59:59.999999999Z")),
        ),
        ("_+_", vec![time("9999-12-31T23:59:59Z"), Duration(SECOND)], Err("timestamp overflow")),
        ("_-_", vec![time("0001-01-01T00:00:00Z"), Duration(1)], Err("timestamp overflow")),
        ("_-_", vec![time("2020-01-01T00:00:00Z"), Duration(i64::MIN)], Err("integer overflow")),
        (
            "_-_",
            vec![time("2020-01-01T00:00:01Z"), time("2020-01-01T02:00:00.5+02:00")],
            Ok(Duration(SECOND / 2)),
        ),
        (
            "_-_",
            vec![time("9999-12-31T23:59:59Z"), time("0001-01-01T00:00:00Z")],
            Err("integer overflow"),
        ),
        // The seconds alone overflow, although the sum with the nanoseconds would fit.
        (
            "_-_",
            vec![time("0001-01-01T00:00:00.9Z"), time("0293-04-11T23:47:17Z")],
            Err("integer overflow"),
        ),
        ("_-_", vec![Duration(1), time("2020-01-01T00:00:00Z")], Err("no such overload")),
    ]);
}

#[test]
fn timestamps_outside_the_calendar_do_not_panic() {
    let far = |seconds| {
        Value::Timestamp(crate::value::Timestamp::from_unix_seconds_and_nanos(seconds, 0).unwrap())
    };
    check(vec![
        ("_+_", vec![far(i64::MAX), Value::Duration(1_000_000_000)], Err("integer overflow")),
        ("_-_", vec![far(i64::MAX), Value::Duration(1_000_000_000)], Err("timestamp overflow")),
        ("_-_", vec![far(i64::MAX), far(-1)], Err("integer overflow")),
    ]);
}

#[test]
fn the_left_operand_determines_the_error_message() {
    let map = || Value::Map(crate::value::Map::from_owned_map(crate::value::OwnedMap::new()));
    check(vec![
        ("_+_", vec![Value::Int(1), Value::borrowed_string("a")], Err("no such overload")),
        ("_+_", vec![Value::Int(1), Value::Uint(1)], Err("no such overload")),
        ("_+_", vec![Value::Bool(true), Value::Int(1)], Err("no such overload: _+_")),
        ("_+_", vec![map(), map()], Err("no such overload: _+_")),
        (
            "_-_",
            vec![Value::borrowed_string("a"), Value::borrowed_string("a")],
            Err("no such overload"),
        ),
        ("_-_", vec![Value::owned_list_value(vec![]), Value::Int(1)], Err("no such overload: _-_")),
        ("_*_", vec![Value::Duration(1), Value::Int(2)], Err("no such overload")),
        ("_/_", vec![Value::Null, Value::Int(2)], Err("no such overload: _/_")),
        ("_%_", vec![Value::Int(1), Value::Double(2.0)], Err("no such overload")),
        ("-_", vec![Value::Bool(true)], Err("no such overload")),
        ("-_", vec![Value::borrowed_string("a")], Err("no such overload")),
        ("-_", vec![Value::Uint(1)], Err("no such overload: -_")),
    ]);
}
