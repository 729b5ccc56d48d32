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

use std::collections::HashMap;
use std::ops::Range;

use self::syntax::SyntaxError;
use super::operators::refuse;
use super::strings::slice;
use crate::function::{Cost, Failure, Functions, Outcome, Overload, Work};
use crate::ty::Type;
use crate::value::{Str, Value};

/// How much memory a compiled expression may take. Patterns can be made at run time, are then
/// compiled for each call, and cost by their length alone, so this also bounds the time of a call.
/// Go allows more for expressions that repeat large Unicode classes, such as `\pL{500}`; all others
/// reach its own limits first.
const PROGRAM_BYTES_MAX: usize = 10 << 20;

/// How much memory a compiled expression takes at most, and how much work making it is then. The
/// steps are tried in turn, so that small expressions are not counted as large ones.
const PROGRAM_STEPS: [(usize, usize); 4] =
    [(8 << 10, 500), (64 << 10, 5_000), (1 << 20, 80_000), (PROGRAM_BYTES_MAX, 800_000)];

/// A compiled regular expression.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    regex: ::regex::Regex,
    /// Whether a search may look at text that is then not part of the match, without a bound.
    looks_ahead: bool,
}

impl Pattern {
    /// Compiles an expression by itself; the error is Go's message about it.
    #[cfg(test)]
    pub(crate) fn compile(source: &str) -> Result<Self, String> {
        Patterns::default().compile(source)
    }

    /// Compiles an expression. The outer error means that too much work was done already, the inner
    /// one is Go's message about the expression.
    fn compile_metered(source: &str, work: &mut Work) -> Result<Result<Self, String>, Failure> {
        let translated = match syntax::translate(source) {
            Ok(translated) => translated,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let mut outcome = Err(BuildError::TooLarge);
        for (bytes_max, steps) in PROGRAM_STEPS {
            work.spend(steps)?;
            outcome = Self::build(&translated, bytes_max);
            if !matches!(outcome, Err(BuildError::TooLarge)) {
                break;
            }
        }
        Ok(outcome.map_err(|error| error.message(source)))
    }

    fn build(translated: &str, bytes_max: usize) -> Result<Self, BuildError> {
        let built = ::regex::RegexBuilder::new(translated)
            .size_limit(bytes_max)
            .nest_limit(syntax::NESTING_MAX)
            .build();
        let looks_ahead = translated.contains(['*', '+']) || translated.contains(",}");
        match built {
            Ok(regex) => Ok(Self { regex, looks_ahead }),
            Err(::regex::Error::CompiledTooBig(_)) => Err(BuildError::TooLarge),
            Err(_) => Err(BuildError::TooDeep),
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
    ///
    /// Each match may have looked at all of the text that follows it, so the time is not linear.
    pub(crate) fn find_all<'a>(&self, text: &Str<'a>, limit: i64, work: &mut Work) -> Outcome<'a> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut found: Vec<Range<usize>> = Vec::new();
        for range in self.regex.find_iter(text.as_str()).take(limit).map(|found| found.range()) {
            work.spend(1)?;
            if self.looks_ahead {
                work.spend_on_text(text.as_str().len().saturating_sub(range.end))?;
            }
            found.push(range);
        }
        Ok(Value::list(found.into_iter().map(|range| slice(text, range)).collect()))
    }
}

/// The patterns that stand in one expression. Each is compiled once, and what they take together is
/// bounded: a few characters can be megabytes, and an expression has room for thousands of them.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    compiled: HashMap<Box<str>, Result<Pattern, String>>,
    work: Work,
}

impl Patterns {
    /// Compiles a pattern; the error is Go's message about it.
    pub(crate) fn compile(&mut self, source: &str) -> Result<Pattern, String> {
        if let Some(outcome) = self.compiled.get(source) {
            return outcome.clone();
        }
        let outcome = Pattern::compile_metered(source, &mut self.work)
            .unwrap_or_else(|_| Err(SyntaxError::too_large(source).to_string()));
        self.compiled.insert(source.into(), outcome.clone());
        outcome
    }
}

/// Why an expression without syntax errors is refused.
enum BuildError {
    TooLarge,
    TooDeep,
}

impl BuildError {
    fn message(&self, source: &str) -> String {
        match self {
            Self::TooLarge => SyntaxError::too_large(source).to_string(),
            Self::TooDeep => SyntaxError::too_deep(source).to_string(),
        }
    }
}

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
            let pattern = Pattern::compile_metered(pattern.as_str(), work)?;
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
    Pattern::compile_metered(pattern.as_str(), work)?
        .map_err(|error| Failure::new(format!("Illegal regex: {error}")))
}

#[cfg(test)]
mod tests;
