//! The standard functions of strings and collections (`size`, `contains`, `startsWith`, `endsWith`,
//! `in`, indexing) and the functions `type` and `dyn`.

use super::operators::unsupported_operand_error;
use crate::function::{CostFormula, EvalError, EvalResult, FunctionRegistry, Overload, StepBudget};
use crate::static_type::Type;
use crate::value::{List, TypeName, Value};

/// Declares the functions of this file that are not operators.
pub(crate) fn declare_functions(functions: &mut FunctionRegistry) {
    declare_size_overloads(functions);
    declare_type_functions(functions);
    let text = || vec![Type::String, Type::String];
    functions.add_overloads(
        "contains",
        vec![
            Overload::new_member_overload("contains_string", text(), Type::Bool, contains)
                .with_cost_formula(CostFormula::ScanProduct),
        ],
    );
    functions.add_overloads(
        "endsWith",
        vec![
            Overload::new_member_overload("ends_with_string", text(), Type::Bool, ends_with)
                .with_cost_formula(CostFormula::Scan(1)),
        ],
    );
    functions.add_overloads(
        "startsWith",
        vec![
            Overload::new_member_overload("starts_with_string", text(), Type::Bool, starts_with)
                .with_cost_formula(CostFormula::Scan(1)),
        ],
    );
}

fn declare_size_overloads(functions: &mut FunctionRegistry) {
    let list = || vec![Type::list_type_of(Type::type_param("A"))];
    let map = || vec![Type::map_type_of(Type::type_param("A"), Type::type_param("B"))];
    functions.add_overloads(
        "size",
        vec![
            Overload::new_global_overload("size_bytes", vec![Type::Bytes], Type::Int, size),
            Overload::new_member_overload("bytes_size", vec![Type::Bytes], Type::Int, size),
            Overload::new_global_overload("size_list", list(), Type::Int, size),
            Overload::new_member_overload("list_size", list(), Type::Int, size),
            Overload::new_global_overload("size_map", map(), Type::Int, size),
            Overload::new_member_overload("map_size", map(), Type::Int, size),
            Overload::new_global_overload("size_string", vec![Type::String], Type::Int, size),
            Overload::new_member_overload("string_size", vec![Type::String], Type::Int, size),
        ],
    );
}

fn declare_type_functions(functions: &mut FunctionRegistry) {
    let a = || Type::type_param("A");
    functions.add_overloads(
        "type",
        vec![Overload::new_global_overload(
            "type",
            vec![a()],
            Type::Type(Some(a().into())),
            type_of,
        )],
    );
    functions.add_overloads(
        "dyn",
        vec![Overload::new_global_overload("to_dyn", vec![a()], Type::Dyn, to_dyn)],
    );
}

/// The number of code points, octets, elements or entries.
///
/// Opaque values have a size for the cost, but `size()` does not accept them.
fn size<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let size = match arguments {
        [value @ (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_))] => {
            value.size()
        }
        _ => None,
    };
    match size.and_then(|size| i64::try_from(size).ok()) {
        Some(size) => Ok(Value::Int(size)),
        None => Err(unsupported_operand_error("size", arguments, |_| false)),
    }
}

fn contains<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    apply_string_predicate(arguments, |text, part| text.contains(part))
}

fn ends_with<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    apply_string_predicate(arguments, |text, suffix| text.ends_with(suffix))
}

fn starts_with<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    apply_string_predicate(arguments, |text, prefix| text.starts_with(prefix))
}

fn apply_string_predicate<'a>(
    arguments: &[Value<'a>],
    holds: fn(&str, &str) -> bool,
) -> EvalResult<'a> {
    match arguments {
        [Value::String(text), Value::String(other)] => {
            Ok(Value::Bool(holds(text.as_str(), other.as_str())))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Evaluates `left in right` with a step budget of its own.
pub(super) fn in_operator<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    in_operator_metered(arguments, &mut StepBudget::default())
}

/// Evaluates `left in right`: whether a list has an equal element, or a map has the key.
pub(super) fn in_operator_metered<'a>(
    arguments: &[Value<'a>],
    step_budget: &mut StepBudget,
) -> EvalResult<'a> {
    match arguments {
        [Value::String(text), Value::List(List::Strings(items))] => {
            Ok(Value::Bool(items.iter().any(|item| item == text.as_str())))
        }
        [element, Value::List(list)] => {
            Ok(Value::Bool(step_budget.find_element_index_metered(list, element)?.is_some()))
        }
        [key, Value::Map(map)] => Ok(Value::Bool(map.get(key).is_some())),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Evaluates `container[index]`. A value that is not a container has no such key.
pub(super) fn index<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let no_such_key = |key: &Value<'_>| EvalError::new(format!("no such key: {key}"));
    match arguments {
        [Value::List(list), index] => {
            let position = to_list_position(index)?;
            let element = usize::try_from(position).ok().and_then(|at| list.get(at));
            element.ok_or_else(|| EvalError::new(format!("index out of bounds: {position}")))
        }
        [Value::Map(map), key] => map.get(key).ok_or_else(|| no_such_key(key)),
        [_, key] => Err(no_such_key(key)),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Converts an index of any numeric type; it must be a whole number.
fn to_list_position(index: &Value<'_>) -> Result<i64, EvalError> {
    let whole = match index {
        Value::Int(index) => Some(*index),
        Value::Uint(index) => i64::try_from(*index).ok(),
        Value::Double(index) => {
            super::type_conversions::double_to_int(*index).filter(|whole| *whole as f64 == *index)
        }
        other => {
            let name = other.type_name();
            return Err(EvalError::new(format!("unsupported index type '{name}' in list")));
        }
    };
    whole.ok_or_else(|| EvalError::new(format!("unsupported index value {index} in list")))
}

fn type_of<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [value] => Ok(Value::Type(TypeName(value.type_name()))),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn to_dyn<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [value] => Ok(value.clone()),
        _ => Err(EvalError::no_such_overload()),
    }
}

#[cfg(test)]
mod tests;
