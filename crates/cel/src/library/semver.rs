//! Kubernetes' semver library: `semver`, `isSemver`, comparison and the three numbers.

use crate::function::{CostFormula, EvalError, EvalResult, FunctionRegistry, Overload};
use crate::static_type::Type;
use crate::value::{OpaqueValue, Semver, SemverError, Value};

/// Declares version 1 of the library, in which `semver` and `isSemver` have an optional argument
/// that selects tolerant parsing.
pub(crate) fn declare_functions(functions: &mut FunctionRegistry) {
    let semver = || Type::Opaque(OpaqueValue::SEMVER);
    let text = || vec![Type::String];
    let text_and_bool = || vec![Type::String, Type::Bool];
    let read = |id, params| {
        Overload::new_global_overload(id, params, semver(), string_to_semver)
            .with_cost_formula(CostFormula::Scan(0))
    };
    functions.add_overloads(
        "semver",
        vec![read("string_to_semver", text()), read("string_bool_to_semver", text_and_bool())],
    );
    let test = |id, params| {
        Overload::new_global_overload(id, params, Type::Bool, is_semver)
            .with_cost_formula(CostFormula::Scan(0))
    };
    functions.add_overloads(
        "isSemver",
        vec![test("is_semver_string", text()), test("is_semver_string_bool", text_and_bool())],
    );
    let mut member = |name, id, params, result, implementation| {
        functions.add_overloads(
            name,
            vec![Overload::new_member_overload(id, params, result, implementation)],
        );
    };
    let two = || vec![semver(), semver()];
    member("isGreaterThan", "semver_is_greater_than", two(), Type::Bool, semver_is_greater_than);
    member("isLessThan", "semver_is_less_than", two(), Type::Bool, semver_is_less_than);
    member("compareTo", "semver_compare_to", two(), Type::Int, semver_compare_to);
    let one = || vec![semver()];
    member("major", "semver_major", one(), Type::Int, semver_major);
    member("minor", "semver_minor", one(), Type::Int, semver_minor);
    member("patch", "semver_patch", one(), Type::Int, semver_patch);
}

fn parse_semver_arguments(
    arguments: &[Value<'_>],
) -> Result<Result<Semver, SemverError>, EvalError> {
    match arguments {
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => {
            Ok(Semver::parse(text.as_str()))
        }
        [Value::String(text), Value::Bool(true)] => {
            Ok(Semver::parse_tolerant_version(text.as_str()))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

fn string_to_semver<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match parse_semver_arguments(arguments)? {
        Ok(version) => Ok(Value::opaque_value(OpaqueValue::Semver(version))),
        Err(error) => Err(EvalError::new(error.to_string())),
    }
}

fn is_semver<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    Ok(Value::Bool(parse_semver_arguments(arguments)?.is_ok()))
}

fn semver_major<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    semver_number(arguments, Semver::major_version)
}

fn semver_minor<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    semver_number(arguments, Semver::minor_version)
}

fn semver_patch<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    semver_number(arguments, Semver::patch_version)
}

fn semver_is_greater_than<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    apply_to_two_versions(arguments, |a, b| Value::Bool(a > b))
}

fn semver_is_less_than<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    apply_to_two_versions(arguments, |a, b| Value::Bool(a < b))
}

fn semver_compare_to<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    apply_to_two_versions(arguments, |a, b| Value::Int(a.cmp(b) as i64))
}

/// Returns one of the three numbers. A number above the range of `int` wraps around, as in
/// Kubernetes.
fn semver_number<'a>(arguments: &[Value<'a>], number: fn(&Semver) -> u64) -> EvalResult<'a> {
    match arguments {
        [version] => Ok(Value::Int(number(as_semver(version)?) as i64)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn apply_to_two_versions<'a>(
    arguments: &[Value<'a>],
    answer: fn(&Semver, &Semver) -> Value<'a>,
) -> EvalResult<'a> {
    match arguments {
        [a, b] => Ok(answer(as_semver(a)?, as_semver(b)?)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn as_semver<'v>(value: &'v Value<'_>) -> Result<&'v Semver, EvalError> {
    if let Value::Opaque(value) = value
        && let OpaqueValue::Semver(version) = &**value
    {
        return Ok(version);
    }
    Err(EvalError::no_such_overload())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::operators::tests::{assert_outcome, implementation};

    fn semver(text: &'static str) -> Value<'static> {
        string_to_semver(&[Value::borrowed_string(text)]).unwrap()
    }

    #[test]
    fn tolerant_parsing_needs_an_argument() {
        let short = "No Major.Minor.Patch elements found";
        for (arguments, want) in [
            (vec![Value::borrowed_string("1.2.3")], Ok(semver("1.2.3"))),
            (vec![Value::borrowed_string("v1.2")], Err(short)),
            (vec![Value::borrowed_string("v1.2"), Value::Bool(false)], Err(short)),
            (vec![Value::borrowed_string("v1.2"), Value::Bool(true)], Ok(semver("1.2.0"))),
        ] {
            let is_semver = Ok(Value::Bool(want.is_ok()));
            assert_outcome(&arguments, &implementation("semver", "string_")(&arguments), &want);
            assert_outcome(&arguments, &implementation("isSemver", "is_")(&arguments), &is_semver);
        }
    }

    #[test]
    fn version_numbers_and_comparison() {
        let arguments = [semver("1.2.18446744073709551615")];
        for (name, want) in [("major", 1), ("minor", 2), ("patch", -1)] {
            let got = implementation(name, "semver_")(&arguments);
            assert_outcome(&arguments, &got, &Ok(Value::Int(want)));
        }
        for (a, b, want) in
            [("1.0.0-a", "1.0.0", -1), ("1.0.0+a", "1.0.0", 0), ("2.0.0", "1.9.9", 1)]
        {
            let arguments = [semver(a), semver(b)];
            for (name, want) in [
                ("isGreaterThan", Value::Bool(want > 0)),
                ("isLessThan", Value::Bool(want < 0)),
                ("compareTo", Value::Int(want)),
            ] {
                assert_outcome(&arguments, &implementation(name, "semver_")(&arguments), &Ok(want));
            }
        }
    }
}
