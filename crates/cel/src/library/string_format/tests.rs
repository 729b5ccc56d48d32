use super::format_call_check::FormatFault;
use super::*;
use crate::library::strings::TEXT_BYTES_MAX;
use crate::value::{Bytes, OwnedMap, TypeName};

fn run(text: &'static str, values: Vec<Value<'static>>) -> Result<String, EvalError> {
    match string_format(&[Value::borrowed_string(text), Value::owned_list_value(values)]) {
        Ok(Value::String(text)) => Ok(text.as_str().to_owned()),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error),
    }
}

#[track_caller]
fn check(text: &'static str, value: Value<'static>, expected: &str) {
    assert_eq!(run(text, vec![value]).as_deref(), Ok(expected), "{text}");
}

#[track_caller]
fn check_error(text: &'static str, values: Vec<Value<'static>>, expected: &str) {
    assert_eq!(run(text, values), Err(EvalError::new(expected)), "{text}");
}

fn double(number: f64) -> Value<'static> {
    Value::Double(number)
}

#[test]
fn text_between_clauses_is_copied() {
    assert_eq!(run("100%% of é", vec![]).as_deref(), Ok("100% of é"));
    let values = vec![Value::borrowed_string("a"), Value::Int(-1)];
    assert_eq!(run("<%s|%d>", values).as_deref(), Ok("<a|-1>"));
}

#[test]
fn integers_have_four_bases() {
    check("%d", Value::Uint(u64::MAX), "18446744073709551615");
    check("%b", Value::Int(-5), "-101");
    check("%b", Value::Bool(true), "1");
    check("%o", Value::Int(8), "10");
    check("%x", Value::Int(-255), "-ff");
    check("%X", Value::Uint(255), "FF");
    check("%x", Value::Int(i64::MIN), "-8000000000000000");
    check("%x", Value::borrowed_string("hé"), "68c3a9");
    check("%X", Value::Bytes(Bytes::Borrowed(b"\x00\xff")), "00FF");
}

#[test]
fn fixed_point_numbers_are_grouped_and_rounded_to_even() {
    check("%f", double(1_234_567.5), "1,234,567.500000");
    check("%f", double(-1234.5678), "-1,234.567800");
    check("%f", double(-0.0), "0.000000");
    check("%.3f", double(-0.0001), "-0.000");
    check("%.0f", double(0.5), "0");
    check("%.0f", double(1.5), "2");
    check("%.0f", double(999_999.5), "1,000,000");
    check("%.1f", double(0.25), "0.2");
    check("%.30f", double(0.1), "0.100000000000000005551115123126");
    check("%f", double(1e21), "1,000,000,000,000,000,000,000.000000");
    check("%f", double(f64::NAN), "NaN");
    check("%f", Value::borrowed_string("-Infinity"), "-∞");
}

#[test]
fn large_precisions_wrap_around_as_in_the_formatter_of_go() {
    check("%.256f", double(0.5), "0.5");
    check("%.256f", double(0.0), "0");
    check("%.257f", double(0.0), "0.0");
    check("%.260f", double(0.5), "0.5000");
    check("%.32768f", double(0.1), "0.1");
    check("%.32768f", double(1e-7), "0.0000001");
    check("%.32768f", double(1e21), "1,000,000,000,000,000,000,000");
    check("%.65536f", double(0.1), "0");
    check("%.10000009f", double(0.5), &format!("0.5{}", "0".repeat(136)));
    check("%.10000010f", double(0.5), "%!(NOVERB)");
}

#[test]
fn scientific_numbers_have_seven_digits_and_take_the_precision_for_a_width() {
    check("%e", double(2.5), "2.500000×10⁰⁰");
    check("%e", double(-1e-10), "-1.000000×10⁻¹⁰");
    check("%e", double(1e300), "1.000000×10³⁰⁰");
    check("%e", double(0.0), "0.000000×10⁰⁰");
    check("%.0e", double(12345.0), "1.234500×10⁰⁴");
    check("%.15e", double(1.5), "  1.500000×10⁰⁰");
    check("%e", double(f64::NAN), "   NaN");
    check("%e", Value::borrowed_string("Infinity"), "     ∞");
    check("%.65536e", double(1.5), "1.500000×10⁰⁰");
    check("%.10000010e", double(1.5), "%!(NOVERB)");
}

#[test]
fn text_clause_accepts_nearly_all_types() {
    check("%s", Value::Null, "null");
    check("%s", double(1e100), "1e+100");
    check("%s", double(1.0), "1");
    check("%s", Value::Duration(3_601_500_000_000), "3601.5s");
    check("%s", Value::Duration(-1), "-0.000000001s");
    check("%s", Value::Duration(10_000_000 * 1_000_000_000), "10000000s");
    check(
        "%s",
        Value::Timestamp("2020-01-01T00:00:00.5Z".parse().unwrap()),
        "2020-01-01T00:00:00.5Z",
    );
    check("%s", Value::Type(TypeName("int")), "int");
    check("%.3s", Value::borrowed_string("plain"), "plain");
}

#[test]
fn lists_and_maps_are_written_as_literals() {
    let mut map = OwnedMap::new();
    for (key, value) in [
        (Value::borrowed_string("b"), double(f64::INFINITY)),
        (Value::borrowed_string("a"), Value::Bytes(Bytes::Borrowed(b"xy"))),
        (Value::Int(2), Value::owned_list_value(Vec::new())),
        (Value::Bool(true), Value::Type(TypeName("int"))),
    ] {
        assert!(map.insert(key, value));
    }
    let list = Value::owned_list_value(vec![
        Value::borrowed_string("a\"b\n"),
        double(2.5e10),
        double(f64::NAN),
        Value::Null,
        Value::Duration(1_000_000_000),
        Value::Timestamp("2020-01-01T00:00:00Z".parse().unwrap()),
        Value::Map(Map::from_owned_map(map)),
    ]);
    let expected = "[\"a\\\"b\\n\", 25000000000.000000, \"NaN\", null, duration(\"1s\"), \
                    timestamp(\"2020-01-01T00:00:00Z\"), \
                    {\"a\":b\"xy\", \"b\":\"+Inf\", 2:[], true:int}]";
    check("%s", list, expected);
}

#[test]
fn values_of_other_types_are_refused() {
    let optional = || Value::optional_some(Value::Int(1));
    let one = |value| vec![value];
    let e = "error during formatting: ";
    let only_integers = "decimal clause can only be used on integers, was given double";
    check_error("%d", one(double(1.0)), &format!("{e}{only_integers}"));
    let only_doubles = "fixed-point clause can only be used on doubles, was given string";
    check_error("%f", one(Value::borrowed_string("1.0")), &format!("{e}{only_doubles}"));
    let only_printable = "string clause can only be used on strings, bools, bytes, ints, doubles, \
                          maps, lists, types, durations, and timestamps, was given optional_type";
    check_error("%s", one(optional()), &format!("{e}{only_printable}"));
    let inner = "no formatting function for optional_type";
    check_error("%s", one(Value::owned_list_value(vec![optional()])), &format!("{e}{inner}"));
    let bytes = Value::Bytes(Bytes::Borrowed(b"\xff"));
    let not_text = "could not convert argument \
                    \"invalid UTF-8 in bytes, cannot convert to string\" to string";
    check_error("%s", one(bytes), &format!("{e}{not_text}"));
}

#[test]
fn broken_formats_are_refused() {
    let one = || vec![Value::Int(1)];
    let c = "could not parse formatting clause: ";
    let p = "error while parsing precision: ";
    check_error("%s %s", one(), "index 1 out of range");
    check_error("%", vec![], "index 0 out of range");
    check_error("%", one(), "unexpected end of string");
    check_error("%q", one(), &format!("{c}unrecognized formatting clause \"q\""));
    check_error("%é", one(), &format!("{c}unrecognized formatting clause \"Ã\""));
    check_error("%.3", one(), &format!("{c}{p}could not find end of precision specifier"));
    let atoi = "error while converting precision to integer: strconv.Atoi: parsing";
    check_error("%.s", one(), &format!("{c}{p}{atoi} \"\": invalid syntax"));
    let huge = "9223372036854775808";
    check_error(
        "%.9223372036854775808f",
        one(),
        &format!("{c}{p}{atoi} \"{huge}\": value out of range"),
    );
}

#[test]
fn the_result_has_a_limit() {
    // Each level contains the level below twice.
    let mut level = Value::Int(i64::MIN);
    for _ in 0..40 {
        level = Value::owned_list_value(vec![level.clone(), level]);
    }
    let outcome =
        string_format(&[Value::borrowed_string("%s"), Value::owned_list_value(vec![level])]);
    assert_eq!(outcome.unwrap_err(), EvalError::CostLimit);
    let long = Value::owned_string("x".repeat(TEXT_BYTES_MAX));
    let fits =
        string_format(&[Value::borrowed_string("%s"), Value::owned_list_value(vec![long.clone()])]);
    assert!(fits.is_ok());
    let outcome =
        string_format(&[Value::borrowed_string("%s!"), Value::owned_list_value(vec![long])]);
    assert_eq!(outcome.unwrap_err(), EvalError::CostLimit);
}

#[test]
fn literal_calls_are_checked_before_they_run() {
    let optional = Type::optional_type_of(Type::Int);
    let list = Type::list_type_of(Type::Int);
    type Expected = Option<(Option<usize>, &'static str)>;
    let cases: [(&str, &[&Type], Expected); 12] = [
        ("%s %d %f", &[&Type::Null, &Type::Uint, &Type::Dyn], None),
        ("%s", &[&list], None),
        ("%e %x %b", &[&Type::String, &Type::Bytes, &Type::Bool], None),
        ("%%", &[], None),
        ("%s", &[], Some((None, "index 0 out of range"))),
        ("%", &[], Some((None, "unexpected end of string"))),
        (
            "%q",
            &[&Type::Int],
            Some((None, "could not parse formatting clause: unrecognized formatting clause \"q\"")),
        ),
        (
            "%s",
            &[&Type::Int, &Type::Int],
            Some((None, "too many arguments supplied to string.format (expected 1, got 2)")),
        ),
        (
            "%s %d",
            &[&Type::Int, &list],
            Some((
                Some(1),
                "error during formatting: decimal clause can only be used on integers, \
                 was given list",
            )),
        ),
        (
            "%x",
            &[&Type::Duration],
            Some((
                Some(0),
                "error during formatting: only integers, byte buffers, and strings can be \
                 formatted as hex, was given google.protobuf.Duration",
            )),
        ),
        (
            "%s",
            &[&optional],
            Some((
                Some(0),
                "error during formatting: string clause can only be used on strings, bools, \
                 bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given \
                 optional_type",
            )),
        ),
        (
            "%b",
            &[&Type::Double],
            Some((
                Some(0),
                "error during formatting: only integers and bools can be formatted as binary, \
                 was given double",
            )),
        ),
    ];
    for (format, types, expected) in cases {
        let expected = expected
            .map(|(at, message)| FormatFault { faulty_node: at, message: message.to_owned() });
        let list: Vec<usize> = (0..types.len()).collect();
        assert_eq!(
            validate_format_literal(
                format,
                &list,
                LiteralNodeAccess {
                    type_of_node: &|n| types[n],
                    nested_literal_nodes: &|_| Vec::new()
                }
            ),
            expected,
            "{format}"
        );
    }
}

#[test]
fn only_text_clauses_report_nested_literals() {
    let types = [Type::list_type_of(Type::Dyn), Type::Int, Type::optional_type_of(Type::Int)];
    let parts = |n| if n == 0 { vec![1, 2] } else { Vec::new() };
    let look =
        LiteralNodeAccess { type_of_node: &|n: usize| &types[n], nested_literal_nodes: &parts };
    assert_eq!(
        validate_format_literal("%s", &[0], look).map(|fault| fault.faulty_node),
        Some(Some(2))
    );
    assert_eq!(
        validate_format_literal("%d", &[0], look).map(|fault| fault.faulty_node),
        Some(Some(0))
    );
    assert_eq!(validate_format_literal("%s", &[1], look), None);
}
