//! Regular expressions: `matches` of the standard library and Kubernetes' `find` and `findAll`.
//!
//! Patterns have the syntax of Go's regular expressions (RE2, always Unicode, `\d`, `\w` and `\s`
//! always ASCII). [`regex_translator`] checks and rewrites them. `regex-automata` executes them in
//! time that is linear in the text.

mod character_class;
mod pattern_cache;
mod regex_escape;
mod regex_pattern;
mod regex_piece;
mod regex_repetition;
mod regex_translator;
mod unicode_class;

pub(crate) use pattern_cache::{PatternCache, PatternError};
pub(crate) use regex_pattern::Pattern;

use super::operators::unsupported_operand_error;
use crate::function::{CostFormula, EvalError, EvalResult, FunctionRegistry, Overload, StepBudget};
use crate::static_type::Type;
use crate::value::{Str, Value};

/// Declares `matches`, `find` and `findAll`.
pub(crate) fn declare_functions(functions: &mut FunctionRegistry) {
    let text = || vec![Type::String, Type::String];
    let texts = || Type::list_type_of(Type::String);
    let regex = |overload: Overload| overload.with_cost_formula(CostFormula::Regex);
    functions.add_overloads(
        "matches",
        vec![
            regex(Overload::new_global_overload("matches", text(), Type::Bool, regex_matches))
                .with_metered_implementation(regex_matches_metered),
            regex(Overload::new_member_overload(
                "matches_string",
                text(),
                Type::Bool,
                regex_matches,
            ))
            .with_metered_implementation(regex_matches_metered),
        ],
    );
    functions.add_overloads(
        "find",
        vec![
            regex(Overload::new_member_overload(
                "string_find_string",
                text(),
                Type::String,
                regex_find,
            ))
            .with_metered_implementation(regex_find_metered),
        ],
    );
    let limited = vec![Type::String, Type::String, Type::Int];
    functions.add_overloads(
        "findAll",
        vec![
            regex(Overload::new_member_overload(
                "string_find_all_string",
                text(),
                texts(),
                regex_find_all,
            ))
            .with_metered_implementation(regex_find_all_metered),
            regex(Overload::new_member_overload(
                "string_find_all_string_int",
                limited,
                texts(),
                regex_find_all,
            ))
            .with_metered_implementation(regex_find_all_metered),
        ],
    );
}

fn regex_matches<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    regex_matches_metered(arguments, &mut StepBudget::default())
}

fn regex_find<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    regex_find_metered(arguments, &mut StepBudget::default())
}

fn regex_find_all<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    regex_find_all_metered(arguments, &mut StepBudget::default())
}

fn regex_matches_metered<'a>(
    arguments: &[Value<'a>],
    step_budget: &mut StepBudget,
) -> EvalResult<'a> {
    match arguments {
        [Value::String(text), Value::String(pattern)] => {
            let pattern = Pattern::compile_pattern(pattern.as_str(), step_budget)?;
            Ok(Value::Bool(
                pattern.map_err(|error| EvalError::new(error.to_string()))?.is_match(text.as_str()),
            ))
        }
        _ => Err(unsupported_operand_error("matches", arguments, |first| {
            matches!(first, Value::String(_))
        })),
    }
}

fn regex_find_metered<'a>(arguments: &[Value<'a>], step_budget: &mut StepBudget) -> EvalResult<'a> {
    match arguments {
        [Value::String(text), Value::String(pattern)] => {
            Ok(compile_dynamic_pattern(pattern, step_budget)?.find_first_match(text))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

fn regex_find_all_metered<'a>(
    arguments: &[Value<'a>],
    step_budget: &mut StepBudget,
) -> EvalResult<'a> {
    match arguments {
        [Value::String(text), Value::String(pattern)] => {
            compile_dynamic_pattern(pattern, step_budget)?.find_all_matches(text, -1, step_budget)
        }
        [Value::String(text), Value::String(pattern), Value::Int(limit)] => {
            compile_dynamic_pattern(pattern, step_budget)?.find_all_matches(
                text,
                *limit,
                step_budget,
            )
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Compiles a pattern that is not a constant.
fn compile_dynamic_pattern(
    pattern: &Str<'_>,
    step_budget: &mut StepBudget,
) -> Result<Pattern, EvalError> {
    Pattern::compile_pattern(pattern.as_str(), step_budget)?
        .map_err(|error| EvalError::new(format!("Illegal regex: {error}")))
}

#[cfg(test)]
mod tests;
