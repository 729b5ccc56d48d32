use super::*;

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn texts_that_stand_for_the_same_amount_are_equal() {
    for (a, b) in [
        ("1000m", "1"),
        ("+1", "1"),
        ("1k", "1000"),
        ("1Ki", "1024"),
        ("1.5Gi", "1610612736"),
        ("0.5Ki", "512"),
        ("1E", "1000P"),
        ("1e3", "1k"),
        ("1e+3", "1E3"),
        ("1e-3", "1m"),
        (".5", "500m"),
        ("5.", "5"),
        ("00012", "12"),
        ("-0", "0"),
        // Smaller amounts are rounded away from zero.
        ("0.1n", "1n"),
        ("1.1e-10", "1n"),
        ("-1e-2147483000", "-1n"),
        ("0.9999999991", "1"),
        // Binary amounts are capped, decimal ones are not.
        ("99999Ei", "9223372036854775807"),
        ("-8Ei", "-9223372036854775807"),
        ("123456789012345678901k", "123456789012345678901000"),
        // The upper 32 bits of the exponent are dropped.
        ("1e4294967297", "10"),
        // Kubernetes accepts these texts, although they do not match the regular expression.
        ("+", "0"),
        ("-", "0"),
        (".", "0"),
        ("Ki", "0"),
        ("e5", "0"),
    ] {
        assert!(quantity(a).compare(&quantity(b)).is_eq(), "{a} == {b}");
        assert!(quantity(b).compare(&quantity(a)).is_eq(), "{b} == {a}");
    }
}

#[test]
fn amounts_are_ordered_by_value() {
    let ascending = [
        "-1e2000000000",
        "-123456789012345678901234567890",
        "-1Pi",
        "-1P",
        "-1",
        "-1n",
        "0",
        "1n",
        "1m",
        "0.5",
        "1",
        "1.000000001",
        "1k",
        "1Ki",
        "1.5Gi",
        "1000000000000000000",
        "8Ei",
        "123456789012345678901234567890",
        "1e2000000000",
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            assert_eq!(quantity(a).compare(&quantity(b)), i.cmp(&j), "{a} {b}");
        }
        assert_eq!(quantity(a).signum(), i64::from(i > 6) - i64::from(i < 6), "{a}");
    }
}

#[test]
fn malformed_quantities_have_kubernetes_messages() {
    for text in ["", "x", "1x", "1.2.3", "1..", "..1", "1.5e3.5", "1 ", " 1", "1é", "é", "1K1i"] {
        assert_eq!(Quantity::parse(text).unwrap_err(), QuantityError::Malformed, "{text}");
    }
    for text in [
        "1KiKi",
        "1K",
        "1e",
        "1ee5",
        "--1",
        "+-1",
        "1-1",
        "1+",
        "1m+",
        "1i",
        "1e99999999999999999999",
    ] {
        assert_eq!(Quantity::parse(text).unwrap_err(), QuantityError::UnknownSuffix, "{text}");
    }
    for text in [".e-10", "e-10", "Ei", "+Pi"] {
        assert_eq!(Quantity::parse(text).unwrap_err(), QuantityError::NoDigits, "{text}");
    }
}

#[test]
fn only_the_short_form_is_an_integer() {
    for (text, want) in [
        ("0", Some(0)),
        ("-50k", Some(-50_000)),
        ("1Ti", Some(1 << 40)),
        ("1e18", Some(1_000_000_000_000_000_000)),
        ("0e2000000000", Some(0)),
        ("1e19", None),
        ("1.0", None),
        ("1000m", None),
        ("1Pi", None),
        ("1.5Gi", None),
        ("123456789012345678", Some(123_456_789_012_345_678)),
        ("1234567890123456789", None),
    ] {
        assert_eq!(quantity(text).as_int(), want, "{text}");
    }
}

#[test]
fn arithmetic_is_exact_and_keeps_the_short_form_while_it_fits() {
    for (a, b, sum, sum_as_int, difference, difference_as_int) in [
        ("1", "2", "3", Some(3), "-1", Some(-1)),
        ("1k", "1", "1001", Some(1001), "999", Some(999)),
        ("1", "500m", "1.5", None, "500m", None),
        ("0", "1Ki", "1Ki", Some(1024), "-1Ki", Some(-1024)),
        ("1Ki", "0", "1Ki", Some(1024), "1Ki", Some(1024)),
        ("1", "1.5Gi", "1610612737", None, "-1610612735", None),
        ("9e18", "9e18", "18e18", None, "0", Some(0)),
        (
            "1e30",
            "1n",
            "1000000000000000000000000000000.000000001",
            None,
            "999999999999999999999999999999.999999999",
            None,
        ),
    ] {
        let total = quantity(a).add(&quantity(b)).unwrap();
        assert!(total.compare(&quantity(sum)).is_eq(), "{a} + {b}");
        assert_eq!(total.as_int(), sum_as_int, "{a} + {b}");
        let rest = quantity(a).subtract(&quantity(b)).unwrap();
        assert!(rest.compare(&quantity(difference)).is_eq(), "{a} - {b}");
        assert_eq!(rest.as_int(), difference_as_int, "{a} - {b}");
    }
    assert_eq!(
        quantity("1e2000000000").add(&quantity("1")).unwrap_err(),
        QuantityError::SumTooLong
    );
}

#[test]
fn the_smallest_integer_is_its_own_negation_where_the_short_form_fits() {
    let smallest = Quantity::from_int(i64::MIN);
    assert_eq!(quantity("1").subtract(&smallest).unwrap().as_int(), Some(i64::MIN + 1));
    let exact = quantity("-1").subtract(&smallest).unwrap();
    assert!(exact.compare(&Quantity::from_int(i64::MAX)).is_eq());
}

#[test]
fn floating_point_rounds_digits_and_power_apart() {
    for (text, want) in [
        ("50500m", 50.5),
        ("1.5Gi", 1_610_612_736.0),
        ("0.3", 3.0 * 1e-1),
        ("1e23", 1e23),
        ("1e308", 1e308),
        ("1e309", f64::INFINITY),
        ("-1e400", f64::NEG_INFINITY),
        ("12345678901234567890n", 12_345_678_901.234_568),
        ("9Ei", 9_223_372_036_854_775_807.0),
        ("1e-9", 1e-9),
    ] {
        assert_eq!(quantity(text).to_approximate_float(), want, "{text}");
    }
    assert!(quantity("0e400").to_approximate_float().is_nan());
}
