//! Regular expressions: `matches` of the standard library and Kubernetes' `find` and `findAll`.
//!
//! The expressions are Go's (RE2 syntax, always Unicode, classes by letter always ASCII); they are
//! checked and rewritten by [`syntax`] and executed by the `regex` crate, in time linear in the
//! text.

mod class;
mod escape;
mod piece;
mod repeat;
mod syntax;
mod unicode_class;

use std::ops::Range;

use self::syntax::SyntaxError;
use super::operators::refuse;
use super::strings::slice;
use crate::function::{Cost, Failure, Functions, Outcome, Overload};
use crate::ty::Type;
use crate::value::{Str, Value};

/// How much memory a compiled expression may take. Patterns can be made at run time, are then
/// compiled for each call, and cost by their length alone, so this also bounds the time of a call.
/// Go allows more for expressions that repeat large Unicode classes, such as `\pL{500}`; all others
/// reach its own limits first.
const PROGRAM_BYTES_MAX: usize = 10 << 20;

/// A compiled regular expression.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    regex: ::regex::Regex,
}

impl Pattern {
    /// Compiles an expression; the error is Go's message about it.
    pub(crate) fn compile(source: &str) -> Result<Self, String> {
        let translated = syntax::translate(source).map_err(|error| error.to_string())?;
        let compiled = ::regex::RegexBuilder::new(&translated)
            .size_limit(PROGRAM_BYTES_MAX)
            .nest_limit(syntax::NESTING_MAX)
            .build();
        match compiled {
            Ok(regex) => Ok(Self { regex }),
            Err(::regex::Error::CompiledTooBig(_)) => {
                Err(SyntaxError::too_large(source).to_string())
            }
            Err(_) => Err(SyntaxError::too_deep(source).to_string()),
        }
    }

    /// Whether the expression matches somewhere in the text.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// The first match, or the empty text.
    pub(crate) fn find<'a>(&self, text: &Str<'a>) -> Value<'a> {
        let found = self.regex.find(text.as_str());
        slice(text, found.map_or(0..0, |found| found.range()))
    }

    /// The matches from left to right, at most `limit` of them unless it is negative.
    pub(crate) fn find_all<'a>(&self, text: &Str<'a>, limit: i64) -> Value<'a> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let found: Vec<Range<usize>> =
            self.regex.find_iter(text.as_str()).take(limit).map(|found| found.range()).collect();
        Value::list(found.into_iter().map(|range| slice(text, range)).collect())
    }
}

/// Declares `matches`, `find` and `findAll`.
pub(crate) fn declare(functions: &mut Functions) {
    let text = || vec![Type::String, Type::String];
    let texts = || Type::list(Type::String);
    functions.add(
        "matches",
        vec![
            Overload::global("matches", text(), Type::Bool, matches).cost(Cost::Regex),
            Overload::member("matches_string", text(), Type::Bool, matches).cost(Cost::Regex),
        ],
    );
    functions.add(
        "find",
        vec![Overload::member("string_find_string", text(), Type::String, find).cost(Cost::Regex)],
    );
    let limited = vec![Type::String, Type::String, Type::Int];
    functions.add(
        "findAll",
        vec![
            Overload::member("string_find_all_string", text(), texts(), find_all).cost(Cost::Regex),
            Overload::member("string_find_all_string_int", limited, texts(), find_all)
                .cost(Cost::Regex),
        ],
    );
}

fn matches<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    match arguments {
        [Value::String(text), Value::String(pattern)] => {
            let pattern = Pattern::compile(pattern.as_str()).map_err(Failure::new)?;
            Ok(Value::Bool(pattern.is_match(text.as_str())))
        }
        _ => Err(refuse("matches", arguments, |first| matches!(first, Value::String(_)))),
    }
}

fn find<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    match arguments {
        [Value::String(text), Value::String(pattern)] => Ok(compile(pattern)?.find(text)),
        _ => Err(Failure::no_such_overload()),
    }
}

fn find_all<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    match arguments {
        [Value::String(text), Value::String(pattern)] => Ok(compile(pattern)?.find_all(text, -1)),
        [Value::String(text), Value::String(pattern), Value::Int(limit)] => {
            Ok(compile(pattern)?.find_all(text, *limit))
        }
        _ => Err(Failure::no_such_overload()),
    }
}

/// Compiles a pattern that was not known before the evaluation.
fn compile(pattern: &Str<'_>) -> Result<Pattern, Failure> {
    Pattern::compile(pattern.as_str())
        .map_err(|error| Failure::new(format!("Illegal regex: {error}")))
}

#[cfg(test)]
mod tests;
