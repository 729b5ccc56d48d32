use super::*;
use crate::library::operators::tests::{assert_outcome, implementation};

type Case = (&'static str, Vec<Value<'static>>, Result<Value<'static>, &'static str>);

fn check(cases: Vec<Case>) {
    for (function, arguments, expected) in cases {
        let actual = implementation(function, "list_")(&arguments);
        assert_outcome(&arguments, &actual, &expected);
    }
}

fn list(items: Vec<Value<'static>>) -> Value<'static> {
    Value::owned_list_value(items)
}

fn ints(items: &[i64]) -> Value<'static> {
    list(items.iter().copied().map(Value::Int).collect())
}

fn doubles(items: &[f64]) -> Value<'static> {
    list(items.iter().copied().map(Value::Double).collect())
}

fn bool(value: bool) -> Result<Value<'static>, &'static str> {
    Ok(Value::Bool(value))
}

#[test]
fn is_sorted_compares_neighbours() {
    let mixed = |second| list(vec![Value::Int(1), second]);
    check(vec![
        ("isSorted", vec![ints(&[1, 2, 2])], bool(true)),
        ("isSorted", vec![ints(&[1, 3, 2])], bool(false)),
        ("isSorted", vec![ints(&[])], bool(true)),
        ("isSorted", vec![doubles(&[f64::NAN, 1.0])], bool(true)),
        ("isSorted", vec![mixed(Value::borrowed_string("a"))], bool(true)),
        ("isSorted", vec![mixed(Value::Null)], Err("no such overload")),
    ]);
}

#[test]
fn min_and_max_compare_across_numeric_types() {
    let mixed = |second| list(vec![Value::Int(1), second]);
    check(vec![
        ("min", vec![ints(&[2, 1, 3])], Ok(Value::Int(1))),
        ("max", vec![ints(&[2, 1, 3])], Ok(Value::Int(3))),
        ("min", vec![mixed(Value::Double(0.5))], Ok(Value::Double(0.5))),
        ("max", vec![mixed(Value::Uint(1))], Ok(Value::Int(1))),
        ("min", vec![mixed(Value::borrowed_string("a"))], Ok(Value::Int(1))),
        ("min", vec![doubles(&[1.0, f64::NAN, 0.5])], Ok(Value::Double(0.5))),
        ("max", vec![mixed(list(Vec::new()))], Err("no such overload")),
        ("min", vec![ints(&[])], Err("min called on empty list")),
        ("max", vec![ints(&[])], Err("max called on empty list")),
    ]);
}

#[test]
fn a_sum_has_the_type_of_its_overload() {
    for (id, items, expected) in [
        ("list_int", ints(&[1, 2]), Ok(Value::Int(3))),
        ("list_int", ints(&[]), Ok(Value::Int(0))),
        ("list_uint", ints(&[]), Ok(Value::Uint(0))),
        ("list_double", ints(&[]), Ok(Value::Double(0.0))),
        ("list_double", doubles(&[1.5, 2.5]), Ok(Value::Double(4.0))),
        ("list_duration", ints(&[]), Ok(Value::Duration(0))),
        (
            "list_duration",
            list(vec![Value::Duration(1), Value::Duration(2)]),
            Ok(Value::Duration(3)),
        ),
        ("list_int", ints(&[i64::MAX, 1]), Err("integer overflow")),
        (
            "list_uint",
            list(vec![Value::Uint(u64::MAX), Value::Uint(1)]),
            Err("unsigned integer overflow"),
        ),
        ("list_int", list(vec![Value::Int(1), Value::Uint(1)]), Err("no such overload")),
    ] {
        let arguments = [items];
        assert_outcome(&arguments, &implementation("sum", id)(&arguments), &expected);
    }
}

#[test]
fn elements_are_found_from_both_ends() {
    let find = |sought| vec![ints(&[1, 2, 1]), sought];
    check(vec![
        ("indexOf", find(Value::Int(1)), Ok(Value::Int(0))),
        ("lastIndexOf", find(Value::Int(1)), Ok(Value::Int(2))),
        ("indexOf", find(Value::Double(2.0)), Ok(Value::Int(1))),
        ("indexOf", find(Value::Int(3)), Ok(Value::Int(-1))),
        ("lastIndexOf", find(Value::borrowed_string("1")), Ok(Value::Int(-1))),
        ("indexOf", vec![ints(&[]), Value::Int(1)], Ok(Value::Int(-1))),
        ("includes", find(Value::Uint(2)), bool(true)),
        ("includes", find(Value::Int(3)), bool(false)),
        ("includes", vec![list(vec![ints(&[1])]), ints(&[1])], bool(true)),
    ]);
}

#[test]
fn includes_treats_a_scalar_as_a_list_of_one() {
    check(vec![
        ("includes", vec![Value::borrowed_string("a"), Value::borrowed_string("a")], bool(true)),
        ("includes", vec![Value::borrowed_string("a"), Value::borrowed_string("b")], bool(false)),
        ("includes", vec![Value::Int(1), Value::Uint(1)], bool(true)),
        ("includes", vec![Value::Null, Value::Null], bool(true)),
    ]);
}
