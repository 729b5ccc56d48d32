//! Declares all operators, and implements the logical operators and the comparisons.
//!
//! All overloads of an operator share one implementation, because the overload that the checker
//! chose says nothing about the run-time types of `dyn` operands. Each implementation accepts any
//! operands and returns cel-go's error for operands that it does not support.

use super::{arithmetic, standard_functions};
use crate::cost;
use crate::function::{
    CostFormula, EvalError, EvalResult, FunctionImpl, FunctionRegistry, Overload,
};
use crate::static_type::Type::{self, Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
use crate::value::Value;

/// Declares the overloads of every operator.
pub(crate) fn declare_functions(functions: &mut FunctionRegistry) {
    declare_logical_operators(functions);
    declare_equality_operators(functions);
    declare_arithmetic_operators(functions);
    declare_ordering_operators(functions);
    declare_collection_operators(functions);
}

/// The error for operands that an operator does not support.
///
/// The message depends on the first operand, as in cel-go. It does not name the function if the
/// first operand is a string, a timestamp or a duration, or if `takes_part` says that its type
/// supports the operation. Otherwise it names the function.
pub(super) fn unsupported_operand_error(
    function: &str,
    arguments: &[Value<'_>],
    takes_part: fn(&Value<'_>) -> bool,
) -> EvalError {
    match arguments.first() {
        Some(Value::String(_) | Value::Timestamp(_) | Value::Duration(_)) => {
            EvalError::no_such_overload()
        }
        Some(first) if takes_part(first) => EvalError::no_such_overload(),
        Some(_) | None => EvalError::new(format!("no such overload: {function}")),
    }
}

fn declare_logical_operators(functions: &mut FunctionRegistry) {
    let a = || Type::type_param("A");
    functions.add_overloads(
        "_?_:_",
        vec![Overload::new_global_overload(
            "conditional",
            vec![Bool, a(), a()],
            a(),
            conditional_operator,
        )],
    );
    functions.add_overloads(
        "_&&_",
        vec![Overload::new_global_overload("logical_and", vec![Bool, Bool], Bool, logical_and)],
    );
    functions.add_overloads(
        "_||_",
        vec![Overload::new_global_overload("logical_or", vec![Bool, Bool], Bool, logical_or)],
    );
    functions.add_overloads(
        "!_",
        vec![Overload::new_global_overload("logical_not", vec![Bool], Bool, logical_not)],
    );
    functions.add_overloads(
        "@not_strictly_false",
        vec![Overload::new_global_overload(
            "not_strictly_false",
            vec![Bool],
            Bool,
            not_strictly_false,
        )],
    );
}

fn declare_equality_operators(functions: &mut FunctionRegistry) {
    let pair = || vec![Type::type_param("A"), Type::type_param("A")];
    functions.add_overloads(
        "_==_",
        vec![
            Overload::new_global_overload("equals", pair(), Bool, equals)
                .with_cost_formula(CostFormula::Custom(cost_of_equals)),
        ],
    );
    functions.add_overloads(
        "_!=_",
        vec![
            // Unlike `==`, this has no exception for values of the Kubernetes libraries.
            Overload::new_global_overload("not_equals", pair(), Bool, not_equals)
                .with_cost_formula(CostFormula::ScanShorter),
        ],
    );
}

fn declare_arithmetic_operators(functions: &mut FunctionRegistry) {
    let list = || Type::list_type_of(Type::type_param("A"));
    let binary = |id, left, right, result, implementation| {
        Overload::new_global_overload(id, vec![left, right], result, implementation)
    };
    let add = |id, left, right, result| {
        binary(id, left, right, result, arithmetic::add)
            .with_metered_implementation(arithmetic::add_metered)
    };
    functions.add_overloads(
        "_+_",
        vec![
            add("add_bytes", Bytes, Bytes, Bytes).with_cost_formula(CostFormula::ScanBoth),
            add("add_double", Double, Double, Double),
            add("add_duration_duration", Duration, Duration, Duration),
            add("add_duration_timestamp", Duration, Timestamp, Timestamp),
            add("add_timestamp_duration", Timestamp, Duration, Timestamp),
            add("add_int64", Int, Int, Int),
            add("add_list", list(), list(), list()),
            add("add_string", String, String, String).with_cost_formula(CostFormula::ScanBoth),
            add("add_uint64", Uint, Uint, Uint),
        ],
    );
    let divide =
        |id, number: Type| binary(id, number.clone(), number.clone(), number, arithmetic::divide);
    functions.add_overloads(
        "_/_",
        vec![
            divide("divide_double", Double),
            divide("divide_int64", Int),
            divide("divide_uint64", Uint),
        ],
    );
    let modulo =
        |id, number: Type| binary(id, number.clone(), number.clone(), number, arithmetic::modulo);
    functions
        .add_overloads("_%_", vec![modulo("modulo_int64", Int), modulo("modulo_uint64", Uint)]);
    let multiply =
        |id, number: Type| binary(id, number.clone(), number.clone(), number, arithmetic::multiply);
    functions.add_overloads(
        "_*_",
        vec![
            multiply("multiply_double", Double),
            multiply("multiply_int64", Int),
            multiply("multiply_uint64", Uint),
        ],
    );
    functions.add_overloads(
        "-_",
        vec![
            Overload::new_global_overload(
                "negate_double",
                vec![Double],
                Double,
                arithmetic::negate,
            ),
            Overload::new_global_overload("negate_int64", vec![Int], Int, arithmetic::negate),
        ],
    );
    let subtract = |id, left, right, result| binary(id, left, right, result, arithmetic::subtract);
    functions.add_overloads(
        "_-_",
        vec![
            subtract("subtract_double", Double, Double, Double),
            subtract("subtract_duration_duration", Duration, Duration, Duration),
            subtract("subtract_int64", Int, Int, Int),
            subtract("subtract_timestamp_duration", Timestamp, Duration, Timestamp),
            subtract("subtract_timestamp_timestamp", Timestamp, Timestamp, Duration),
            subtract("subtract_uint64", Uint, Uint, Uint),
        ],
    );
}

/// The operand types of `<`, `<=`, `>` and `>=`, with the cost of a comparison. The ids of each
/// operator below are in the same order.
const ORDERED: [(Type, Type, CostFormula); 14] = [
    (Bool, Bool, CostFormula::Unit),
    (Int, Int, CostFormula::Unit),
    (Int, Double, CostFormula::Unit),
    (Int, Uint, CostFormula::Unit),
    (Uint, Uint, CostFormula::Unit),
    (Uint, Double, CostFormula::Unit),
    (Uint, Int, CostFormula::Unit),
    (Double, Double, CostFormula::Unit),
    (Double, Int, CostFormula::Unit),
    (Double, Uint, CostFormula::Unit),
    (String, String, CostFormula::ScanShorter),
    (Bytes, Bytes, CostFormula::ScanShorter),
    (Timestamp, Timestamp, CostFormula::Unit),
    (Duration, Duration, CostFormula::Unit),
];

fn declare_ordering_operators(functions: &mut FunctionRegistry) {
    let mut add = |name, ids: [&'static str; 14], implementation: FunctionImpl| {
        let overload = |(id, (left, right, cost))| {
            Overload::new_global_overload(id, vec![left, right], Bool, implementation)
                .with_cost_formula(cost)
        };
        functions.add_overloads(name, ids.into_iter().zip(ORDERED).map(overload).collect());
    };
    add(
        "_<_",
        [
            "less_bool",
            "less_int64",
            "less_int64_double",
            "less_int64_uint64",
            "less_uint64",
            "less_uint64_double",
            "less_uint64_int64",
            "less_double",
            "less_double_int64",
            "less_double_uint64",
            "less_string",
            "less_bytes",
            "less_timestamp",
            "less_duration",
        ],
        less_than,
    );
    add(
        "_<=_",
        [
            "less_equals_bool",
            "less_equals_int64",
            "less_equals_int64_double",
            "less_equals_int64_uint64",
            "less_equals_uint64",
            "less_equals_uint64_double",
            "less_equals_uint64_int64",
            "less_equals_double",
            "less_equals_double_int64",
            "less_equals_double_uint64",
            "less_equals_string",
            "less_equals_bytes",
            "less_equals_timestamp",
            "less_equals_duration",
        ],
        less_than_or_equal,
    );
    add(
        "_>_",
        [
            "greater_bool",
            "greater_int64",
            "greater_int64_double",
            "greater_int64_uint64",
            "greater_uint64",
            "greater_uint64_double",
            "greater_uint64_int64",
            "greater_double",
            "greater_double_int64",
            "greater_double_uint64",
            "greater_string",
            "greater_bytes",
            "greater_timestamp",
            "greater_duration",
        ],
        greater_than,
    );
    add(
        "_>=_",
        [
            "greater_equals_bool",
            "greater_equals_int64",
            "greater_equals_int64_double",
            "greater_equals_int64_uint64",
            "greater_equals_uint64",
            "greater_equals_uint64_double",
            "greater_equals_uint64_int64",
            "greater_equals_double",
            "greater_equals_double_int64",
            "greater_equals_double_uint64",
            "greater_equals_string",
            "greater_equals_bytes",
            "greater_equals_timestamp",
            "greater_equals_duration",
        ],
        greater_than_or_equal,
    );
}

fn declare_collection_operators(functions: &mut FunctionRegistry) {
    let a = || Type::type_param("A");
    let b = || Type::type_param("B");
    functions.add_overloads(
        "_[_]",
        vec![
            Overload::new_global_overload(
                "index_list",
                vec![Type::list_type_of(a()), Int],
                a(),
                standard_functions::index,
            ),
            Overload::new_global_overload(
                "index_map",
                vec![Type::map_type_of(a(), b()), a()],
                b(),
                standard_functions::index,
            ),
        ],
    );
    functions.add_overloads(
        "@in",
        vec![
            Overload::new_global_overload(
                "in_list",
                vec![a(), Type::list_type_of(a())],
                Bool,
                standard_functions::in_operator,
            )
            .with_cost_formula(CostFormula::SizeOfSecond)
            .with_metered_implementation(standard_functions::in_operator_metered),
            Overload::new_global_overload(
                "in_map",
                vec![a(), Type::map_type_of(a(), b())],
                Bool,
                standard_functions::in_operator,
            )
            .with_metered_implementation(standard_functions::in_operator_metered),
        ],
    );
}

fn conditional_operator<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::Bool(true), then, _] => Ok(then.clone()),
        [Value::Bool(false), _, otherwise] => Ok(otherwise.clone()),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn logical_and<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::Bool(false), _] | [_, Value::Bool(false)] => Ok(Value::Bool(false)),
        [Value::Bool(true), Value::Bool(true)] => Ok(Value::Bool(true)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn logical_or<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::Bool(true), _] | [_, Value::Bool(true)] => Ok(Value::Bool(true)),
        [Value::Bool(false), Value::Bool(false)] => Ok(Value::Bool(false)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn logical_not<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::Bool(value)] => Ok(Value::Bool(!value)),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Reports whether a loop continues: it does unless the value is `false`. The evaluator handles errors without
/// this call.
fn not_strictly_false<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    Ok(Value::Bool(!matches!(arguments, [Value::Bool(false)])))
}

fn equals<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [left, right] => Ok(Value::Bool(left.equals(right))),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn not_equals<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [left, right] => Ok(Value::Bool(!left.equals(right))),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn less_than<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    arithmetic::compare_operands("_<_", arguments).map(|order| Value::Bool(order.is_lt()))
}

fn less_than_or_equal<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    arithmetic::compare_operands("_<=_", arguments).map(|order| Value::Bool(order.is_le()))
}

fn greater_than<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    arithmetic::compare_operands("_>_", arguments).map(|order| Value::Bool(order.is_gt()))
}

fn greater_than_or_equal<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    arithmetic::compare_operands("_>=_", arguments).map(|order| Value::Bool(order.is_ge()))
}

fn cost_of_equals<'a>(arguments: &[Value<'a>]) -> u64 {
    cost::equality_cost(arguments.first(), arguments.get(1), false)
}

#[cfg(test)]
pub(super) mod tests;
