use super::*;
use crate::library::operators::tests::{assert_outcome, implementation};

type Case = (&'static str, Vec<Value<'static>>, Result<Value<'static>, &'static str>);

fn check(cases: Vec<Case>) {
    for (function, arguments, expected) in cases {
        let actual = implementation(function, "")(&arguments);
        assert_outcome(&arguments, &actual, &expected);
    }
}

fn ints(items: &[i64]) -> Value<'static> {
    list(items.iter().copied().map(Value::Int).collect())
}

fn list(items: Vec<Value<'static>>) -> Value<'static> {
    Value::owned_list_value(items)
}

fn int(number: i64) -> Value<'static> {
    Value::Int(number)
}

#[test]
fn a_slice_lies_within_the_list() {
    let part = |start, end| vec![ints(&[1, 2, 3]), int(start), int(end)];
    check(vec![
        ("slice", part(0, 2), Ok(ints(&[1, 2]))),
        ("slice", part(3, 3), Ok(ints(&[]))),
        ("slice", part(-1, 2), Err("cannot slice(-1, 2), negative indexes not supported")),
        (
            "slice",
            part(2, 1),
            Err("cannot slice(2, 1), start index must be less than or equal to end index"),
        ),
        ("slice", part(0, 9), Err("cannot slice(0, 9), list is length 3")),
    ]);
}

#[test]
fn a_slice_of_borrowed_strings_is_borrowed() {
    let texts = ["a".to_owned(), "b".to_owned()];
    let lent = Value::List(List::Strings(&texts));
    let part = implementation("slice", "")(&[lent, Value::Int(1), Value::Int(2)]);
    assert!(matches!(part, Ok(Value::List(List::Strings([only]))) if only == "b"));
}

#[test]
fn lists_in_lists_are_flattened_to_a_depth() {
    let nested = || list(vec![ints(&[1]), list(vec![ints(&[2]), int(3)]), int(4)]);
    check(vec![
        ("flatten", vec![nested()], Ok(list(vec![int(1), ints(&[2]), int(3), int(4)]))),
        ("flatten", vec![nested(), int(0)], Ok(nested())),
        ("flatten", vec![nested(), int(2)], Ok(ints(&[1, 2, 3, 4]))),
        ("flatten", vec![nested(), int(i64::MAX)], Ok(ints(&[1, 2, 3, 4]))),
        ("flatten", vec![ints(&[]), int(-1)], Err("level must be non-negative")),
        ("flatten", vec![Value::borrowed_string("a")], Err("no such overload: string.flatten()")),
        (
            "flatten",
            vec![Value::borrowed_string("a"), int(1)],
            Err("no such overload: string.flatten(int)"),
        ),
        (
            "flatten",
            vec![ints(&[]), Value::borrowed_string("a")],
            Err("no such overload: list(dyn).flatten(string)"),
        ),
    ]);
}

#[test]
fn flattening_shared_lists_has_a_limit() {
    // Each level contains the level below twice, so one more level doubles a million elements.
    let mut level = ints(&[0; 15_625]);
    for _ in 0..6 {
        level = list(vec![level.clone(), level]);
    }
    let list_flatten = implementation("flatten", "");
    assert!(list_flatten(&[level.clone(), int(6)]).is_ok());
    let twice = list(vec![level, int(1)]);
    assert_eq!(list_flatten(&[twice, int(7)]).unwrap_err(), EvalError::CostLimit);
}

#[test]
fn ranges_and_reversal() {
    check(vec![
        ("lists.range", vec![int(3)], Ok(ints(&[0, 1, 2]))),
        ("lists.range", vec![int(0)], Ok(ints(&[]))),
        ("lists.range", vec![int(-5)], Err("lists.range: size must be non-negative, got -5")),
        (
            "lists.range",
            vec![int(1_000_001)],
            Err("lists.range: size 1000001 exceeds maximum allowed (1000000)"),
        ),
        ("reverse", vec![ints(&[1, 2, 3])], Ok(ints(&[3, 2, 1]))),
        ("reverse", vec![ints(&[])], Ok(ints(&[]))),
    ]);
    let longest = implementation("lists.range", "")(&[int(RANGE_ELEMENTS_MAX)]).unwrap();
    assert_eq!(longest.size(), Some(1_000_000));
}

#[test]
fn distinct_keeps_the_first_of_equal_elements() {
    let mixed = vec![int(1), Value::borrowed_string("a"), Value::Uint(1), Value::Double(1.0)];
    let nan = || Value::Double(f64::NAN);
    check(vec![
        ("distinct", vec![ints(&[3, 1, 3, 2, 1])], Ok(ints(&[3, 1, 2]))),
        ("distinct", vec![list(mixed)], Ok(list(vec![int(1), Value::borrowed_string("a")]))),
    ]);
    let kept = implementation("distinct", "")(&[list(vec![nan(), nan()])]).unwrap();
    assert_eq!(kept.size(), Some(2));
}

#[test]
fn sort_requires_comparable_elements_of_one_type() {
    check(vec![
        ("sort", vec![ints(&[3, 1, 2])], Ok(ints(&[1, 2, 3]))),
        ("sort", vec![ints(&[])], Ok(ints(&[]))),
        ("sort", vec![list(vec![Value::Null])], Err("list elements must be comparable")),
        (
            "sort",
            vec![list(vec![int(1), Value::borrowed_string("a")])],
            Err("list elements must have the same type"),
        ),
        ("sort", vec![int(1)], Err("no such overload: sort")),
        ("sort", vec![Value::borrowed_string("a")], Err("no such overload")),
    ]);
}

#[test]
fn sorting_by_keys_moves_elements_with_their_keys() {
    let texts = |items: &[&'static str]| {
        list(items.iter().map(|item| Value::borrowed_string(item)).collect())
    };
    check(vec![
        (
            "@sortByAssociatedKeys",
            vec![texts(&["foo", "bar", "baz"]), ints(&[3, 1, 2])],
            Ok(texts(&["bar", "baz", "foo"])),
        ),
        (
            "@sortByAssociatedKeys",
            vec![texts(&["foo"]), ints(&[3, 1])],
            Err("@sortByAssociatedKeys() expected a list of the same size as the associated keys \
                 list, but got 1 and 2 elements respectively"),
        ),
    ]);
}

/// Go's sort is not stable; this is its order of twenty numbers by their remainder modulo 2.
#[test]
fn equal_keys_have_the_order_of_gos_sort() {
    let numbers: Vec<i64> = (0..20).collect();
    let keys: Vec<i64> = numbers.iter().map(|number| number % 2).collect();
    let sorted = implementation("@sortByAssociatedKeys", "")(&[ints(&numbers), ints(&keys)]);
    assert_outcome(&[], &sorted, &Ok(ints(&GO_ORDER)));
}

const GO_ORDER: [i64; 20] = [10, 18, 2, 16, 4, 0, 6, 14, 8, 12, 5, 11, 9, 13, 7, 15, 3, 17, 1, 19];

#[test]
fn cost_grows_with_the_result_or_with_the_pairs() {
    let texts = list(vec![
        Value::borrowed_string("a"),
        Value::borrowed_string("b"),
        Value::borrowed_string("c"),
    ]);
    assert_eq!(CostFormula::NewList.cost_of_call(&[], Some(&ints(&[1, 2]))), 13);
    assert_eq!(CostFormula::NewList.cost_of_call(&[], None), 12);
    assert_eq!(cost_of_flatten(&[ints(&[1, 2])]), 13);
    assert_eq!(cost_of_flatten(&[ints(&[1, 2]), int(5)]), 21);
    assert_eq!(cost_of_flatten(&[ints(&[1, 2]), int(0)]), 11);
    assert_eq!(cost_of_flatten(&[ints(&[1, 2]), int(-1)]), 13);
    assert_eq!(cost_of_comparing_elements(&[ints(&[1, 2, 3])]), 29);
    assert_eq!(cost_of_comparing_elements(std::slice::from_ref(&texts)), 29);
    assert_eq!(cost_of_comparing_elements(&[ints(&[])]), 11);
    assert_eq!(cost_of_comparing_keys(&[ints(&[]), texts]), 29);
}
