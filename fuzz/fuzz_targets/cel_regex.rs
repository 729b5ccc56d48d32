//! Any text is a regular expression or is refused, and the functions that search agree.
//!
//! The first line of an input is the pattern, the rest is the text.

#![no_main]

use std::sync::LazyLock;

use cel::{COST_LIMIT, Environment, EvalError, Program, Type, Value};
use libfuzzer_sys::fuzz_target;

static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    Environment::for_stored_expressions(vec![("text", Type::String), ("pattern", Type::String)])
});

static PROGRAMS: LazyLock<[Program; 4]> = LazyLock::new(|| {
    [
        "text.matches(pattern)",
        "text.find(pattern)",
        "text.findAll(pattern)",
        "text.findAll(pattern, 1)",
    ]
    .map(|source| ENVIRONMENT.compile(source).expect("the source has no fault"))
});

fuzz_target!(|input: &str| {
    let (pattern, text) = input.split_once('\n').unwrap_or((input, ""));
    let variables = [Value::borrowed_string(text), Value::borrowed_string(pattern)];
    let run = |program: &'static Program| program.evaluate(&variables, COST_LIMIT).result;
    let [matches, find, find_all, find_one] = &*PROGRAMS;
    let [matches, find, all, one] = [run(matches), run(find), run(find_all), run(find_one)];
    let is_costly =
        |found: &Result<Value<'_>, EvalError>| matches!(found, Err(EvalError::CostLimit));
    if [&matches, &find, &all, &one].into_iter().any(is_costly) {
        return;
    }
    check_literal(pattern, matches.is_ok());
    match (matches, find, all, one) {
        (
            Ok(Value::Bool(matches)),
            Ok(Value::String(find)),
            Ok(Value::List(all)),
            Ok(Value::List(one)),
        ) => {
            assert_eq!(matches, !all.is_empty(), "{pattern}");
            assert_eq!(one.len(), all.len().min(1), "{pattern}");
            let first = all.get(0).unwrap_or_else(|| Value::borrowed_string(""));
            assert!(first.equals(&Value::String(find.clone())), "{pattern}: {first}, {find:?}");
            assert!(all.len() <= text.len() + 1, "{pattern}");
            assert!(text.contains(find.as_str()));
        }
        (Err(matches), Err(find), Err(all), Err(one)) => {
            assert!(find.to_string().ends_with(&matches.to_string()), "{find}, {matches}");
            assert_eq!((&find, &find), (&all, &one), "{pattern}");
        }
        other => panic!("{pattern}: {other:?}"),
    }
});

/// A pattern that stands in the expression is refused by the compiler if it is refused at all.
fn check_literal(pattern: &str, is_valid: bool) {
    let literal: String = pattern.chars().map(|c| format!("\\U{:08x}", u32::from(c))).collect();
    let compiled = ENVIRONMENT.compile(&format!("text.matches('{literal}')"));
    assert_eq!(compiled.is_ok(), is_valid, "{pattern}: {compiled:?}");
}
