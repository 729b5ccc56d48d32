use super::*;
use crate::library::operators::tests::{assert_outcome, implementation};
use crate::value::{Bytes, Map, OwnedMap, TypeName};

type Case = (&'static str, Vec<Value<'static>>, Result<Value<'static>, &'static str>);

fn check(cases: Vec<Case>) {
    for (function, arguments, expected) in cases {
        let actual = implementation(function, "")(&arguments);
        assert_outcome(&arguments, &actual, &expected);
    }
}

fn some(number: i64) -> Value<'static> {
    Value::optional_some(Value::Int(number))
}

#[test]
fn of_non_zero_value_of_a_zero_value_is_none() {
    let zeros = [
        Value::Null,
        Value::Bool(false),
        Value::Int(0),
        Value::Uint(0),
        Value::Double(-0.0),
        Value::borrowed_string(""),
        Value::Bytes(Bytes::Borrowed(b"")),
        Value::owned_list_value(Vec::new()),
        Value::Map(Map::from_owned_map(OwnedMap::new())),
        Value::Duration(0),
        Value::Timestamp("0001-01-01T00:00:00Z".parse().unwrap()),
    ];
    for zero in zeros {
        check(vec![
            ("optional.ofNonZeroValue", vec![zero.clone()], Ok(Value::optional_none())),
            ("optional.of", vec![zero.clone()], Ok(Value::optional_some(zero))),
        ]);
    }
    let others = [
        Value::Bool(true),
        Value::Int(-1),
        Value::borrowed_string(" "),
        Value::owned_list_value(vec![Value::Null]),
        Value::Timestamp("1970-01-01T00:00:00Z".parse().unwrap()),
        Value::Type(TypeName("int")),
        Value::optional_none(),
    ];
    for other in others {
        check(vec![(
            "optional.ofNonZeroValue",
            vec![other.clone()],
            Ok(Value::optional_some(other)),
        )]);
    }
}

#[test]
fn or_and_or_value_return_the_value_or_the_alternative() {
    let none = Value::optional_none;
    check(vec![
        ("value", vec![some(1)], Ok(Value::Int(1))),
        ("value", vec![none()], Err("optional.none() dereference")),
        ("hasValue", vec![some(1)], Ok(Value::Bool(true))),
        ("hasValue", vec![none()], Ok(Value::Bool(false))),
        ("or", vec![some(1), some(2)], Ok(some(1))),
        ("or", vec![none(), some(2)], Ok(some(2))),
        ("or", vec![none(), none()], Ok(none())),
        ("orValue", vec![some(1), Value::Int(2)], Ok(Value::Int(1))),
        ("orValue", vec![none(), Value::Int(2)], Ok(Value::Int(2))),
        ("orValue", vec![Value::Int(1), Value::Int(2)], Err("no such overload")),
        ("optional.none", vec![], Ok(none())),
    ]);
}

#[test]
fn first_last_and_unwrap_opt() {
    let list = |items| Value::owned_list_value(items);
    check(vec![
        ("first", vec![list(vec![Value::Int(1), Value::Int(2)])], Ok(some(1))),
        ("last", vec![list(vec![Value::Int(1), Value::Int(2)])], Ok(some(2))),
        ("first", vec![list(vec![])], Ok(Value::optional_none())),
        ("last", vec![list(vec![])], Ok(Value::optional_none())),
        (
            "optional.unwrap",
            vec![list(vec![some(1), Value::optional_none(), some(2)])],
            Ok(list(vec![Value::Int(1), Value::Int(2)])),
        ),
        ("unwrapOpt", vec![list(vec![])], Ok(list(vec![]))),
        (
            "unwrapOpt",
            vec![list(vec![some(1), Value::borrowed_string("a")])],
            Err("value a is not optional"),
        ),
    ]);
}

#[test]
fn optional_access_returns_a_value_or_none() {
    let list = || Value::owned_list_value(vec![Value::Int(1)]);
    let map = || {
        let mut map = OwnedMap::new();
        assert!(map.insert(Value::borrowed_string("a"), Value::Int(1)));
        Value::Map(Map::from_owned_map(map))
    };
    check(vec![
        ("_[?_]", vec![list(), Value::Int(0)], Ok(some(1))),
        ("_[?_]", vec![list(), Value::Int(1)], Ok(Value::optional_none())),
        ("_[?_]", vec![list(), Value::Int(-1)], Ok(Value::optional_none())),
        ("_[?_]", vec![map(), Value::borrowed_string("a")], Ok(some(1))),
        ("_[?_]", vec![map(), Value::borrowed_string("b")], Ok(Value::optional_none())),
        ("_[?_]", vec![Value::optional_some(map()), Value::borrowed_string("a")], Ok(some(1))),
        (
            "_[?_]",
            vec![Value::optional_none(), Value::borrowed_string("a")],
            Ok(Value::optional_none()),
        ),
        ("_?._", vec![map(), Value::borrowed_string("a")], Ok(some(1))),
        ("_?._", vec![Value::Int(1), Value::borrowed_string("a")], Err("no such overload")),
    ]);
}
