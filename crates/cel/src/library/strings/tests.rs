use std::sync::Arc;

use super::*;
use crate::library::operators::tests::{assert_outcome, implementation};

type Case = (&'static str, Vec<Value<'static>>, Result<Value<'static>, &'static str>);

/// Runs each case twice: with texts that are borrowed, and with texts that are owned.
fn check(cases: Vec<Case>) {
    for (function, arguments, expected) in cases {
        let id = match function {
            "indexOf" | "lastIndexOf" => "string_",
            _ => "",
        };
        let run = implementation(function, id);
        assert_outcome(&arguments, &run(&arguments), &expected);
        let owned: Vec<Value<'static>> = arguments.iter().map(own).collect();
        assert_outcome(&owned, &run(&owned), &expected);
    }
}

fn own(value: &Value<'static>) -> Value<'static> {
    match value {
        Value::String(text) => Value::owned_string(text.as_str()),
        other => other.clone(),
    }
}

fn text(text: &'static str) -> Value<'static> {
    Value::borrowed_string(text)
}

fn texts(items: &[&'static str]) -> Value<'static> {
    Value::owned_list_value(items.iter().map(|item| text(item)).collect())
}

fn int(number: i64) -> Value<'static> {
    Value::Int(number)
}

#[test]
fn a_character_is_a_code_point_and_the_end_has_none() {
    check(vec![
        ("charAt", vec![text("hello"), int(4)], Ok(text("o"))),
        ("charAt", vec![text("hello"), int(5)], Ok(text(""))),
        ("charAt", vec![text("éa日😀"), int(2)], Ok(text("日"))),
        ("charAt", vec![text("éa日😀"), int(4)], Ok(text(""))),
        ("charAt", vec![text("hello"), int(6)], Err("index out of range: 6")),
        ("charAt", vec![text("hello"), int(-1)], Err("index out of range: -1")),
        ("charAt", vec![text(""), int(i64::MAX)], Err("index out of range: 9223372036854775807")),
    ]);
}

#[test]
fn the_first_occurrence_is_found_from_a_position_on() {
    let sought = |a, b| vec![text(a), text(b)];
    let from = |a, b, c| vec![text(a), text(b), int(c)];
    check(vec![
        ("indexOf", sought("hello mellow", ""), Ok(int(0))),
        ("indexOf", sought("hello mellow", "ello"), Ok(int(1))),
        ("indexOf", sought("hello mellow", "jello"), Ok(int(-1))),
        ("indexOf", sought("éé日x", "日"), Ok(int(2))),
        ("indexOf", from("hello mellow", "", 2), Ok(int(2))),
        ("indexOf", from("hello mellow", "", 20), Ok(int(12))),
        ("indexOf", from("hello mellow", "ello", 2), Ok(int(7))),
        ("indexOf", from("hello mellow", "ello", 20), Ok(int(-1))),
        ("indexOf", from("éé日x日", "日", 3), Ok(int(4))),
        ("indexOf", from("hello mellow", "ello", -1), Err("index out of range: -1")),
    ]);
}

#[test]
fn the_last_occurrence_begins_at_a_position_at_the_latest() {
    let sought = |a, b| vec![text(a), text(b)];
    let from = |a, b, c| vec![text(a), text(b), int(c)];
    check(vec![
        ("lastIndexOf", sought("hello mellow", ""), Ok(int(12))),
        ("lastIndexOf", sought("hello mellow", "ello"), Ok(int(7))),
        ("lastIndexOf", sought("hello mellow", "jello"), Ok(int(-1))),
        ("lastIndexOf", sought("a", "abc"), Ok(int(-1))),
        ("lastIndexOf", sought("", "a"), Ok(int(-1))),
        ("lastIndexOf", from("hello mellow", "ello", 6), Ok(int(1))),
        ("lastIndexOf", from("hello mellow", "ello", 7), Ok(int(7))),
        ("lastIndexOf", from("hello mellow", "ello", 11), Ok(int(7))),
        ("lastIndexOf", from("hello mellow", "ello", 12), Ok(int(-1))),
        ("lastIndexOf", from("日日x", "日", 1), Ok(int(1))),
        ("lastIndexOf", from("hello mellow", "", 3), Ok(int(3))),
        ("lastIndexOf", from("hello mellow", "", 30), Ok(int(12))),
        ("lastIndexOf", from("hello mellow", "ello", -1), Err("index out of range: -1")),
    ]);
}

#[test]
fn a_substring_lies_within_the_text() {
    check(vec![
        ("substring", vec![text("tacocat"), int(4)], Ok(text("cat"))),
        ("substring", vec![text("tacocat"), int(7)], Ok(text(""))),
        ("substring", vec![text("tacocat"), int(0), int(4)], Ok(text("taco"))),
        ("substring", vec![text("ta©o©αT"), int(2), int(6)], Ok(text("©o©α"))),
        ("substring", vec![text("tacocat"), int(8)], Err("index out of range: 8")),
        ("substring", vec![text("tacocat"), int(-1)], Err("index out of range: -1")),
        ("substring", vec![text("tacocat"), int(0), int(8)], Err("index out of range: 8")),
        ("substring", vec![text("tacocat"), int(-1), int(2)], Err("index out of range: -1")),
        (
            "substring",
            vec![text("tacocat"), int(2), int(1)],
            Err("invalid substring range. start: 2, end: 1"),
        ),
    ]);
}

#[test]
fn trimming_takes_unicode_spaces_and_case_is_ascii_only() {
    check(vec![
        ("trim", vec![text("  \ttrim\n    ")], Ok(text("trim"))),
        ("trim", vec![text("\u{3000}\u{85}x\u{a0}\u{2028}")], Ok(text("x"))),
        ("trim", vec![text("\u{200b}x\u{feff}")], Ok(text("\u{200b}x\u{feff}"))),
        ("trim", vec![text(" \n ")], Ok(text(""))),
        ("lowerAscii", vec![text("TacoCÆt Xii")], Ok(text("tacocÆt xii"))),
        ("upperAscii", vec![text("tacocæt xii")], Ok(text("TACOCæT XII"))),
        ("lowerAscii", vec![text("already")], Ok(text("already"))),
    ]);
}

#[test]
fn replacement_is_limited_and_the_empty_text_occurs_everywhere() {
    let all = |a, b, c| vec![text(a), text(b), text(c)];
    let some = |a, b, c, n| vec![text(a), text(b), text(c), int(n)];
    check(vec![
        ("replace", all("hello hello", "he", "we"), Ok(text("wello wello"))),
        ("replace", all("hello", "x", "we"), Ok(text("hello"))),
        ("replace", all("aé", "", "_"), Ok(text("_a_é_"))),
        ("replace", some("hello hello", "he", "we", -1), Ok(text("wello wello"))),
        ("replace", some("hello hello", "he", "we", 1), Ok(text("wello hello"))),
        ("replace", some("hello hello", "he", "we", 0), Ok(text("hello hello"))),
        ("replace", some("ab", "", "_", 2), Ok(text("_a_b"))),
    ]);
}

#[test]
fn splitting_is_limited_and_the_empty_separator_splits_code_points() {
    let all = |a, b| vec![text(a), text(b)];
    let some = |a, b, n| vec![text(a), text(b), int(n)];
    check(vec![
        ("split", all("a b c", " "), Ok(texts(&["a", "b", "c"]))),
        ("split", all("a", " "), Ok(texts(&["a"]))),
        ("split", all("", " "), Ok(texts(&[""]))),
        ("split", all(",a,", ","), Ok(texts(&["", "a", ""]))),
        ("split", all("", ""), Ok(texts(&[]))),
        ("split", all("é日", ""), Ok(texts(&["é", "日"]))),
        ("split", some("a b c", " ", 0), Ok(texts(&[]))),
        ("split", some("a b c", " ", 1), Ok(texts(&["a b c"]))),
        ("split", some("a b c", " ", 2), Ok(texts(&["a", "b c"]))),
        ("split", some("a b c", " ", -1), Ok(texts(&["a", "b", "c"]))),
        ("split", some("é日x", "", 2), Ok(texts(&["é", "日x"]))),
        ("split", some("", "", 2), Ok(texts(&[]))),
    ]);
}

#[test]
fn joining_takes_text_only() {
    let mixed = |other: Value<'static>| Value::owned_list_value(vec![text("a"), other]);
    check(vec![
        ("join", vec![texts(&["hello", "mellow"])], Ok(text("hellomellow"))),
        ("join", vec![texts(&["hello", "mellow"]), text(" ")], Ok(text("hello mellow"))),
        ("join", vec![texts(&[]), text("/")], Ok(text(""))),
        ("join", vec![mixed(int(1))], Err("join: invalid input: 1")),
        ("join", vec![mixed(Value::Null)], Err("join: invalid input: 0")),
        ("join", vec![mixed(texts(&["b", "c"]))], Err("join: invalid input: [b, c]")),
    ]);
}

#[test]
fn quoting_escapes_what_the_language_escapes() {
    check(vec![
        ("strings.quote", vec![text("a\"b\\é")], Ok(text("\"a\\\"b\\\\é\""))),
        (
            "strings.quote",
            vec![text("\u{7}\u{8}\u{c}\n\r\t\u{b}\u{1}")],
            Ok(text("\"\\a\\b\\f\\n\\r\\t\\v\u{1}\"")),
        ),
    ]);
}

#[test]
fn parts_of_borrowed_text_are_borrowed() {
    for (function, arguments) in [
        ("charAt", vec![text("hello"), int(1)]),
        ("substring", vec![text("hello"), int(1)]),
        ("trim", vec![text(" hello ")]),
        ("lowerAscii", vec![text("hello")]),
        ("replace", vec![text("hello"), text("x"), text("y")]),
    ] {
        let outcome = implementation(function, "")(&arguments);
        assert!(matches!(outcome, Ok(Value::String(Str::Borrowed(_)))), "{function}");
    }
}

#[test]
fn result_length_is_limited() {
    let half = TEXT_BYTES_MAX / 2;
    let long: Arc<str> = "x".repeat(half).into();
    let long = || Value::String(Str::Owned(Arc::clone(&long)));
    assert!(implementation("join", "")(&[Value::owned_list_value(vec![long(), long()])]).is_ok());
    let join =
        implementation("join", "")(&[Value::owned_list_value(vec![long(), long(), text("y")])]);
    assert_eq!(join.unwrap_err(), EvalError::CostLimit);
    let replace = implementation("replace", "")(&[text("abab"), text("a"), long()]);
    assert_eq!(replace.unwrap_err(), EvalError::CostLimit);
}
