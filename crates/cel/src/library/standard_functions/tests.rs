use super::*;
use crate::library::operators::tests::{assert_outcome, implementation};
use crate::value::{Bytes, Map, OwnedMap};

fn check(cases: Vec<(&str, Vec<Value<'_>>, Result<Value<'_>, &str>)>) {
    for (function, arguments, expected) in cases {
        let actual = implementation(function, "")(&arguments);
        assert_outcome(&arguments, &actual, &expected);
    }
}

fn numbers(items: &[i64]) -> Value<'static> {
    Value::owned_list_value(items.iter().copied().map(Value::Int).collect())
}

fn map(entries: Vec<(Value<'static>, Value<'static>)>) -> Value<'static> {
    let mut map = OwnedMap::new();
    for (key, value) in entries {
        assert!(map.insert(key, value));
    }
    Value::Map(Map::from_owned_map(map))
}

#[test]
fn size_counts_code_points_bytes_elements_and_entries() {
    check(vec![
        ("size", vec![Value::borrowed_string("añ𝄞")], Ok(Value::Int(3))),
        ("size", vec![Value::Bytes(Bytes::Borrowed("ñ".as_bytes()))], Ok(Value::Int(2))),
        ("size", vec![numbers(&[1, 2])], Ok(Value::Int(2))),
        ("size", vec![map(vec![(Value::Int(1), Value::Null)])], Ok(Value::Int(1))),
        ("size", vec![Value::Int(1)], Err("no such overload: size")),
        ("size", vec![Value::Duration(1)], Err("no such overload")),
    ]);
}

#[test]
fn text_is_searched_from_both_ends() {
    let text = |a, b| vec![Value::borrowed_string(a), Value::borrowed_string(b)];
    check(vec![
        ("contains", text("hello", "ell"), Ok(Value::Bool(true))),
        ("contains", text("hello", ""), Ok(Value::Bool(true))),
        ("contains", text("hello", "Ell"), Ok(Value::Bool(false))),
        ("startsWith", text("hello", "he"), Ok(Value::Bool(true))),
        ("startsWith", text("hello", "lo"), Ok(Value::Bool(false))),
        ("endsWith", text("hello", "lo"), Ok(Value::Bool(true))),
        ("endsWith", text("hello", "he"), Ok(Value::Bool(false))),
        ("contains", vec![Value::Int(1), Value::borrowed_string("a")], Err("no such overload")),
        ("endsWith", vec![Value::borrowed_string("a"), Value::Null], Err("no such overload")),
    ]);
}

#[test]
fn membership_uses_equality() {
    let host = ["dev".to_owned(), "ops".to_owned()];
    let strings = || Value::List(List::Strings(&host));
    let keys =
        || map(vec![(Value::Int(1), Value::Null), (Value::borrowed_string("a"), Value::Null)]);
    check(vec![
        ("@in", vec![Value::Double(2.0), numbers(&[1, 2])], Ok(Value::Bool(true))),
        ("@in", vec![Value::borrowed_string("2"), numbers(&[1, 2])], Ok(Value::Bool(false))),
        ("@in", vec![Value::borrowed_string("ops"), strings()], Ok(Value::Bool(true))),
        ("@in", vec![Value::borrowed_string("op"), strings()], Ok(Value::Bool(false))),
        ("@in", vec![Value::Int(1), strings()], Ok(Value::Bool(false))),
        ("@in", vec![Value::Uint(1), keys()], Ok(Value::Bool(true))),
        ("@in", vec![Value::borrowed_string("a"), keys()], Ok(Value::Bool(true))),
        ("@in", vec![Value::Null, keys()], Ok(Value::Bool(false))),
        ("@in", vec![Value::Int(1), Value::Int(1)], Err("no such overload")),
        ("@in", vec![Value::Int(1), Value::borrowed_string("1")], Err("no such overload")),
    ]);
}

#[test]
fn an_index_is_a_whole_number_or_a_key() {
    let list = || numbers(&[10, 20]);
    let keys = || map(vec![(Value::borrowed_string("a"), Value::Int(1))]);
    check(vec![
        ("_[_]", vec![list(), Value::Int(1)], Ok(Value::Int(20))),
        ("_[_]", vec![list(), Value::Double(1.0)], Ok(Value::Int(20))),
        ("_[_]", vec![list(), Value::Uint(0)], Ok(Value::Int(10))),
        ("_[_]", vec![list(), Value::Int(2)], Err("index out of bounds: 2")),
        ("_[_]", vec![list(), Value::Int(-1)], Err("index out of bounds: -1")),
        ("_[_]", vec![list(), Value::Double(0.5)], Err("unsupported index value 0.5 in list")),
        (
            "_[_]",
            vec![list(), Value::borrowed_string("a")],
            Err("unsupported index type 'string' in list"),
        ),
        ("_[_]", vec![keys(), Value::borrowed_string("a")], Ok(Value::Int(1))),
        ("_[_]", vec![keys(), Value::borrowed_string("b")], Err("no such key: b")),
        ("_[_]", vec![Value::Int(1), Value::Int(1)], Err("no such key: 1")),
    ]);
}

#[test]
fn every_value_has_a_type() {
    let name = |name| Ok(Value::Type(TypeName(name)));
    check(vec![
        ("type", vec![Value::Int(1)], name("int")),
        ("type", vec![Value::Null], name("null_type")),
        ("type", vec![numbers(&[])], name("list")),
        ("type", vec![Value::Type(TypeName("int"))], name("type")),
        ("dyn", vec![Value::Int(1)], Ok(Value::Int(1))),
    ]);
}
