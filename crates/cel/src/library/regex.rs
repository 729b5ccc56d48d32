//! Regular expressions: `matches` of the standard library and Kubernetes' `find` and `findAll`.
//!
//! The expressions are Go's (RE2 syntax, always Unicode, classes by letter always ASCII); they are
//! checked and rewritten by [`syntax`] and executed by `regex-automata`, in time linear in the text.

mod class;
mod escape;
mod pattern;
mod patterns;
mod piece;
mod repeat;
mod syntax;
mod unicode_class;

pub(crate) use pattern::Pattern;
pub(crate) use patterns::{PatternError, Patterns};

use super::operators::refuse;
use crate::function::{Cost, Failure, Functions, Outcome, Overload, Work};
use crate::ty::Type;
use crate::value::{Str, Value};

/// Declares `matches`, `find` and `findAll`.
pub(crate) fn declare(functions: &mut Functions) {
    let text = || vec![Type::String, Type::String];
    let texts = || Type::list(Type::String);
    let regex = |overload: Overload| overload.cost(Cost::Regex);
    functions.add(
        "matches",
        vec![
            regex(Overload::global("matches", text(), Type::Bool, matches))
                .metered(matches_metered),
            regex(Overload::member("matches_string", text(), Type::Bool, matches))
                .metered(matches_metered),
        ],
    );
    functions.add(
        "find",
        vec![
            regex(Overload::member("string_find_string", text(), Type::String, find))
                .metered(find_metered),
        ],
    );
    let limited = vec![Type::String, Type::String, Type::Int];
    functions.add(
        "findAll",
        vec![
            regex(Overload::member("string_find_all_string", text(), texts(), find_all))
                .metered(find_all_metered),
            regex(Overload::member("string_find_all_string_int", limited, texts(), find_all))
                .metered(find_all_metered),
        ],
    );
}

fn matches<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    matches_metered(arguments, &mut Work::default())
}

fn find<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    find_metered(arguments, &mut Work::default())
}

fn find_all<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    find_all_metered(arguments, &mut Work::default())
}

fn matches_metered<'a>(arguments: &[Value<'a>], work: &mut Work) -> Outcome<'a> {
    match arguments {
        [Value::String(text), Value::String(pattern)] => {
            let pattern = Pattern::compile(pattern.as_str(), work)?;
            Ok(Value::Bool(pattern.map_err(Failure::new)?.is_match(text.as_str())))
        }
        _ => Err(refuse("matches", arguments, |first| matches!(first, Value::String(_)))),
    }
}

fn find_metered<'a>(arguments: &[Value<'a>], work: &mut Work) -> Outcome<'a> {
    match arguments {
        [Value::String(text), Value::String(pattern)] => Ok(compile(pattern, work)?.find(text)),
        _ => Err(Failure::no_such_overload()),
    }
}

fn find_all_metered<'a>(arguments: &[Value<'a>], work: &mut Work) -> Outcome<'a> {
    match arguments {
        [Value::String(text), Value::String(pattern)] => {
            compile(pattern, work)?.find_all(text, -1, work)
        }
        [Value::String(text), Value::String(pattern), Value::Int(limit)] => {
            compile(pattern, work)?.find_all(text, *limit, work)
        }
        _ => Err(Failure::no_such_overload()),
    }
}

/// Compiles a pattern that was not known before the evaluation.
fn compile(pattern: &Str<'_>, work: &mut Work) -> Result<Pattern, Failure> {
    Pattern::compile(pattern.as_str(), work)?
        .map_err(|error| Failure::new(format!("Illegal regex: {error}")))
}

#[cfg(test)]
mod tests;
