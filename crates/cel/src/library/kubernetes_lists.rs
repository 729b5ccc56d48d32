//! Kubernetes' list library: `isSorted`, `sum`, `min`, `max`, `indexOf`, `lastIndexOf` and
//! `includes`.

use std::cmp::Ordering;

use super::arithmetic;
use crate::function::{
    CostFormula, EvalError, EvalResult, FunctionImpl, FunctionRegistry, Overload, StepBudget,
};
use crate::static_type::Type;
use crate::value::{List, Value};

/// The ordered types and the ids of their overloads.
const COMPARABLE: [ComparableOverloadIds; 8] = [
    ComparableOverloadIds {
        ty: Type::Int,
        is_sorted_overload_id: "list_int_is_sorted_bool",
        max_overload_id: "list_int_max_int",
        min_overload_id: "list_int_min_int",
    },
    ComparableOverloadIds {
        ty: Type::Uint,
        is_sorted_overload_id: "list_uint_is_sorted_bool",
        max_overload_id: "list_uint_max_uint",
        min_overload_id: "list_uint_min_uint",
    },
    ComparableOverloadIds {
        ty: Type::Double,
        is_sorted_overload_id: "list_double_is_sorted_bool",
        max_overload_id: "list_double_max_double",
        min_overload_id: "list_double_min_double",
    },
    ComparableOverloadIds {
        ty: Type::Bool,
        is_sorted_overload_id: "list_bool_is_sorted_bool",
        max_overload_id: "list_bool_max_bool",
        min_overload_id: "list_bool_min_bool",
    },
    ComparableOverloadIds {
        ty: Type::Duration,
        is_sorted_overload_id: "list_duration_is_sorted_bool",
        max_overload_id: "list_duration_max_duration",
        min_overload_id: "list_duration_min_duration",
    },
    ComparableOverloadIds {
        ty: Type::Timestamp,
        is_sorted_overload_id: "list_timestamp_is_sorted_bool",
        max_overload_id: "list_timestamp_max_timestamp",
        min_overload_id: "list_timestamp_min_timestamp",
    },
    ComparableOverloadIds {
        ty: Type::String,
        is_sorted_overload_id: "list_string_is_sorted_bool",
        max_overload_id: "list_string_max_string",
        min_overload_id: "list_string_min_string",
    },
    ComparableOverloadIds {
        ty: Type::Bytes,
        is_sorted_overload_id: "list_bytes_is_sorted_bool",
        max_overload_id: "list_bytes_max_bytes",
        min_overload_id: "list_bytes_min_bytes",
    },
];

struct ComparableOverloadIds {
    ty: Type,
    is_sorted_overload_id: &'static str,
    max_overload_id: &'static str,
    min_overload_id: &'static str,
}

/// The types that `sum` accepts. Each overload has its own zero, which is the sum of an empty list.
const SUMMABLE: [(Type, &str, FunctionImpl); 4] = [
    (Type::Int, "list_int_sum_int", |list| list_sum(list, Value::Int(0))),
    (Type::Uint, "list_uint_sum_uint", |list| list_sum(list, Value::Uint(0))),
    (Type::Double, "list_double_sum_double", |list| list_sum(list, Value::Double(0.0))),
    (Type::Duration, "list_duration_sum_duration", |list| list_sum(list, Value::Duration(0))),
];

/// Declares Kubernetes' list functions, version 0.
pub(crate) fn declare_functions(functions: &mut FunctionRegistry) {
    let walk = |overload: Overload| overload.with_cost_formula(CostFormula::Traverse);
    let each = |overload: fn(ComparableOverloadIds) -> Overload| {
        COMPARABLE.into_iter().map(overload).map(walk).collect()
    };
    functions.add_overloads(
        "isSorted",
        each(|of| {
            Overload::new_member_overload(
                of.is_sorted_overload_id,
                vec![Type::list_type_of(of.ty)],
                Type::Bool,
                list_is_sorted,
            )
        }),
    );
    functions.add_overloads(
        "max",
        each(|of| {
            Overload::new_member_overload(
                of.max_overload_id,
                vec![Type::list_type_of(of.ty.clone())],
                of.ty,
                list_max,
            )
        }),
    );
    functions.add_overloads(
        "min",
        each(|of| {
            Overload::new_member_overload(
                of.min_overload_id,
                vec![Type::list_type_of(of.ty.clone())],
                of.ty,
                list_min,
            )
        }),
    );
    let sums = SUMMABLE.into_iter().map(|(ty, id, implementation)| {
        walk(Overload::new_member_overload(
            id,
            vec![Type::list_type_of(ty.clone())],
            ty,
            implementation,
        ))
    });
    functions.add_overloads("sum", sums.collect());
    let a = || Type::type_param("A");
    let list_and_item = || vec![Type::list_type_of(a()), a()];
    functions.add_overloads(
        "indexOf",
        vec![
            walk(Overload::new_member_overload(
                "list_a_index_of_int",
                list_and_item(),
                Type::Int,
                list_index_of,
            ))
            .with_metered_implementation(list_index_of_metered),
        ],
    );
    functions.add_overloads(
        "lastIndexOf",
        vec![
            walk(Overload::new_member_overload(
                "list_a_last_index_of_int",
                list_and_item(),
                Type::Int,
                list_last_index_of,
            ))
            .with_metered_implementation(list_last_index_of_metered),
        ],
    );
}

/// Declares `includes`, which version 1 of the library adds.
pub(crate) fn declare_includes(functions: &mut FunctionRegistry) {
    let params = vec![Type::Dyn, Type::Dyn];
    functions.add_overloads(
        "includes",
        vec![
            Overload::new_member_overload(
                "list_includes_dyn_dyn",
                params,
                Type::Bool,
                list_includes,
            )
            .with_cost_formula(CostFormula::Traverse)
            .with_metered_implementation(list_includes_metered),
        ],
    );
}

/// Reports whether a list is sorted. Elements that cannot be compared, such as NaN, count as sorted.
fn list_is_sorted<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let [Value::List(list)] = arguments else { return Err(EvalError::no_such_overload()) };
    let mut previous: Option<Value<'a>> = None;
    for item in list.iter() {
        check_comparable(&item)?;
        if let Some(previous) = previous
            && matches!(previous.compare(&item), Ok(Ordering::Greater))
        {
            return Ok(Value::Bool(false));
        }
        previous = Some(item);
    }
    Ok(Value::Bool(true))
}

fn list_max<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    find_min_or_max(arguments, "max", Ordering::Less)
}

fn list_min<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    find_min_or_max(arguments, "min", Ordering::Greater)
}

/// Finds the smallest or largest element. An element replaces the best one so far if the best one
/// compares to it as `replaced_if`.
fn find_min_or_max<'a>(
    arguments: &[Value<'a>],
    name: &str,
    replaced_if: Ordering,
) -> EvalResult<'a> {
    let [Value::List(list)] = arguments else { return Err(EvalError::no_such_overload()) };
    let mut best: Option<Value<'a>> = None;
    for item in list.iter() {
        check_comparable(&item)?;
        let replaces = match &best {
            None => true,
            Some(best) => best.compare(&item) == Ok(replaced_if),
        };
        if replaces {
            best = Some(item);
        }
    }
    best.ok_or_else(|| EvalError::new(format!("{name} called on empty list")))
}

fn check_comparable(value: &Value<'_>) -> Result<(), EvalError> {
    if value.has_ordering() { Ok(()) } else { Err(EvalError::no_such_overload()) }
}

fn list_sum<'a>(arguments: &[Value<'a>], zero: Value<'a>) -> EvalResult<'a> {
    let [Value::List(list)] = arguments else { return Err(EvalError::no_such_overload()) };
    list.iter().try_fold(zero, |sum, item| arithmetic::add(&[sum, item]))
}

fn list_index_of<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    list_index_of_metered(arguments, &mut StepBudget::default())
}

fn list_last_index_of<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    list_last_index_of_metered(arguments, &mut StepBudget::default())
}

fn list_index_of_metered<'a>(
    arguments: &[Value<'a>],
    step_budget: &mut StepBudget,
) -> EvalResult<'a> {
    let [Value::List(list), sought] = arguments else { return Err(EvalError::no_such_overload()) };
    find_first_element_index(list, sought, step_budget).map(index_or_minus_one)
}

fn list_last_index_of_metered<'a>(
    arguments: &[Value<'a>],
    step_budget: &mut StepBudget,
) -> EvalResult<'a> {
    let [Value::List(list), sought] = arguments else { return Err(EvalError::no_such_overload()) };
    for index in (0..list.len()).rev() {
        let Some(item) = list.get(index) else { continue };
        if step_budget.equals_metered(&item, sought)? {
            return Ok(index_or_minus_one(Some(index)));
        }
    }
    Ok(index_or_minus_one(None))
}

/// Finds the first element that equals a value. Unlike in `sought in list`, the element is the left
/// operand, which decides whether values can be compared.
fn find_first_element_index<'a>(
    list: &List<'a>,
    sought: &Value<'a>,
    step_budget: &mut StepBudget,
) -> Result<Option<usize>, EvalError> {
    for (index, item) in list.iter().enumerate() {
        if step_budget.equals_metered(&item, sought)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

fn index_or_minus_one<'a>(found: Option<usize>) -> Value<'a> {
    Value::Int(found.and_then(|index| i64::try_from(index).ok()).unwrap_or(-1))
}

fn list_includes<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    list_includes_metered(arguments, &mut StepBudget::default())
}

/// Evaluates `list.includes(value)`. A receiver that is not a list is treated as a list with one element.
fn list_includes_metered<'a>(
    arguments: &[Value<'a>],
    step_budget: &mut StepBudget,
) -> EvalResult<'a> {
    let includes = match arguments {
        [Value::List(list), sought] => {
            find_first_element_index(list, sought, step_budget)?.is_some()
        }
        [value, sought] => step_budget.equals_metered(value, sought)?,
        _ => return Err(EvalError::no_such_overload()),
    };
    Ok(Value::Bool(includes))
}

#[cfg(test)]
mod tests;
