//! cel-go's list extensions, version 3: `slice`, `flatten`, `sort`, `reverse`, `distinct` and
//! `lists.range`.

mod pdqsort;

use std::cmp::Ordering;

use super::go_print::print_as_go;
use super::operators::unsupported_operand_error;
use crate::function::{CostFormula, EvalError, EvalResult, FunctionRegistry, Overload, StepBudget};
use crate::static_type::Type;
use crate::value::{List, TypeName, Value};

/// The maximum number of elements of `lists.range`, as in cel-go.
const RANGE_ELEMENTS_MAX: i64 = 1_000_000;

/// The maximum number of elements of the result of `flatten`. The cost counts the outermost list
/// only, and nested lists can share their elements, so the cost does not bound the result. Any
/// other way to create as many elements exceeds the cost limit, so exceeding this number is
/// reported as exceeding the cost limit.
const FLATTENED_ELEMENTS_MAX: usize = 1_000_000;

/// The cost of a call that creates a list: 1 for the call and 10 for the list.
const CALL_AND_LIST_COST: u64 = 11;

/// The ordered types, and the ids of their overloads of `sort` and of `@sortByAssociatedKeys`, to
/// which `sortBy` expands.
const COMPARABLE: [(Type, &str, &str); 8] = [
    (Type::Int, "list_int_sort", "list_int_sortByAssociatedKeys"),
    (Type::Uint, "list_uint_sort", "list_uint_sortByAssociatedKeys"),
    (Type::Double, "list_double_sort", "list_double_sortByAssociatedKeys"),
    (Type::Bool, "list_bool_sort", "list_bool_sortByAssociatedKeys"),
    (
        Type::Duration,
        "list_google.protobuf.Duration_sort",
        "list_google.protobuf.Duration_sortByAssociatedKeys",
    ),
    (
        Type::Timestamp,
        "list_google.protobuf.Timestamp_sort",
        "list_google.protobuf.Timestamp_sortByAssociatedKeys",
    ),
    (Type::String, "list_string_sort", "list_string_sortByAssociatedKeys"),
    (Type::Bytes, "list_bytes_sort", "list_bytes_sortByAssociatedKeys"),
];

/// Declares the functions of cel-go's list extension library, such as `slice` and `flatten`.
pub(crate) fn declare_functions(functions: &mut FunctionRegistry) {
    let list = || Type::list_type_of(Type::type_param("T"));
    let int = || Type::Int;
    functions.add_overloads(
        "slice",
        vec![
            Overload::new_member_overload(
                "list_slice",
                vec![list(), int(), int()],
                list(),
                list_slice,
            )
            .with_cost_formula(CostFormula::NewList),
        ],
    );
    let any = || Type::list_type_of(Type::Dyn);
    functions.add_overloads(
        "flatten",
        vec![
            Overload::new_member_overload(
                "list_flatten",
                vec![Type::list_type_of(list())],
                list(),
                list_flatten,
            )
            .with_cost_formula(CostFormula::Custom(cost_of_flatten))
            .with_metered_implementation(list_flatten_metered),
            Overload::new_member_overload(
                "list_flatten_int",
                vec![any(), int()],
                any(),
                list_flatten,
            )
            .with_cost_formula(CostFormula::Custom(cost_of_flatten))
            .with_metered_implementation(list_flatten_metered),
        ],
    );
    let sorts = COMPARABLE.into_iter().map(|(ty, id, _)| {
        Overload::new_member_overload(
            id,
            vec![Type::list_type_of(ty.clone())],
            Type::list_type_of(ty),
            list_sort,
        )
        .with_cost_formula(CostFormula::Custom(cost_of_comparing_elements))
    });
    functions.add_overloads("sort", sorts.collect());
    let sorts_by_keys = COMPARABLE.into_iter().map(|(ty, _, id)| {
        Overload::new_member_overload(
            id,
            vec![list(), Type::list_type_of(ty)],
            list(),
            list_sort_by_keys,
        )
        .with_cost_formula(CostFormula::Custom(cost_of_comparing_keys))
    });
    functions.add_overloads("@sortByAssociatedKeys", sorts_by_keys.collect());
    functions.add_overloads(
        "lists.range",
        vec![
            Overload::new_global_overload(
                "lists_range",
                vec![int()],
                Type::list_type_of(int()),
                lists_range,
            )
            .with_cost_formula(CostFormula::NewList),
        ],
    );
    functions.add_overloads(
        "reverse",
        vec![
            Overload::new_member_overload("list_reverse", vec![list()], list(), list_reverse)
                .with_cost_formula(CostFormula::NewList),
        ],
    );
    functions.add_overloads(
        "distinct",
        vec![
            Overload::new_member_overload("list_distinct", vec![list()], list(), list_distinct)
                .with_cost_formula(CostFormula::Custom(cost_of_comparing_elements))
                .with_metered_implementation(list_distinct_metered),
        ],
    );
}

fn list_slice<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let [Value::List(list), Value::Int(start), Value::Int(end)] = arguments else {
        return Err(EvalError::no_such_overload());
    };
    let refused = |why: String| EvalError::new(format!("cannot slice({start}, {end}), {why}"));
    let (Ok(first), Ok(last)) = (usize::try_from(*start), usize::try_from(*end)) else {
        return Err(refused("negative indexes not supported".to_owned()));
    };
    if first > last {
        return Err(refused("start index must be less than or equal to end index".to_owned()));
    }
    if last > list.len() {
        return Err(refused(format!("list is length {}", list.len())));
    }
    let part = match list {
        List::Strings(items) => List::Strings(items.get(first..last).unwrap_or_default()),
        List::Source(_) | List::Constant(_) | List::Owned(_) => {
            return Ok(Value::owned_list_value(
                (first..last).filter_map(|index| list.get(index)).collect(),
            ));
        }
    };
    Ok(Value::List(part))
}

fn list_reverse<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let [Value::List(list)] = arguments else { return Err(EvalError::no_such_overload()) };
    Ok(Value::owned_list_value((0..list.len()).rev().filter_map(|index| list.get(index)).collect()))
}

fn lists_range<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let [Value::Int(size)] = arguments else { return Err(EvalError::no_such_overload()) };
    if *size < 0 {
        let message = format!("lists.range: size must be non-negative, got {size}");
        return Err(EvalError::new(message));
    }
    if *size > RANGE_ELEMENTS_MAX {
        let message =
            format!("lists.range: size {size} exceeds maximum allowed ({RANGE_ELEMENTS_MAX})");
        return Err(EvalError::new(message));
    }
    Ok(Value::owned_list_value((0..*size).map(Value::Int).collect()))
}

fn list_flatten<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    list_flatten_metered(arguments, &mut StepBudget::default())
}

/// Replaces nested lists by their elements, down to a depth of 1 or of the second argument. The
/// evaluator does not match the run-time types before the call, so this function reports
/// mismatches.
fn list_flatten_metered<'a>(
    arguments: &[Value<'a>],
    step_budget: &mut StepBudget,
) -> EvalResult<'a> {
    let name = |value: &Value<'_>| print_as_go(&Value::Type(TypeName(value.type_name())));
    let (list, depth) = match arguments {
        [Value::List(list)] => (list, 1),
        [Value::List(list), Value::Int(depth)] => (list, *depth),
        [other] => {
            return Err(EvalError::new(format!("no such overload: {}.flatten()", name(other))));
        }
        [value, depth] => {
            let message = format!("no such overload: {}.flatten({})", name(value), name(depth));
            return Err(EvalError::new(message));
        }
        _ => return Err(EvalError::no_such_overload()),
    };
    if depth < 0 {
        return Err(EvalError::new("level must be non-negative"));
    }
    let mut flat = Vec::new();
    flatten_into(list, depth, &mut flat, step_budget)?;
    Ok(Value::owned_list_value(flat))
}

fn flatten_into<'a>(
    list: &List<'a>,
    depth: i64,
    flat: &mut Vec<Value<'a>>,
    step_budget: &mut StepBudget,
) -> Result<(), EvalError> {
    for item in list.iter() {
        step_budget.spend_steps(1)?;
        match item {
            Value::List(inner) if depth > 0 => flatten_into(&inner, depth - 1, flat, step_budget)?,
            other => flat.push(other),
        }
        if flat.len() > FLATTENED_ELEMENTS_MAX {
            return Err(EvalError::CostLimit);
        }
    }
    Ok(())
}

fn list_distinct<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    list_distinct_metered(arguments, &mut StepBudget::default())
}

fn list_distinct_metered<'a>(
    arguments: &[Value<'a>],
    step_budget: &mut StepBudget,
) -> EvalResult<'a> {
    let [Value::List(list)] = arguments else { return Err(EvalError::no_such_overload()) };
    let mut seen: Vec<Value<'a>> = Vec::new();
    'items: for item in list.iter() {
        for other in &seen {
            if step_budget.equals_metered(&item, other)? {
                continue 'items;
            }
        }
        seen.push(item);
    }
    Ok(Value::owned_list_value(seen))
}

fn list_sort<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::List(list)] => sort_values_by_keys(list, list),
        _ => Err(unsupported_operand_error("sort", arguments, |_| false)),
    }
}

/// Implements `@sortByAssociatedKeys`, to which `list.sortBy(element, key)` expands. The second
/// list has the keys.
fn list_sort_by_keys<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::List(list), Value::List(keys)] => sort_values_by_keys(list, keys),
        _ => Err(unsupported_operand_error("@sortByAssociatedKeys", arguments, |_| false)),
    }
}

/// Sorts a list by the keys of its elements. Elements with equal keys are in the order of Go's
/// sort, which is not stable.
fn sort_values_by_keys<'a>(list: &List<'a>, keys: &List<'a>) -> EvalResult<'a> {
    if list.len() != keys.len() {
        return Err(EvalError::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, \
             but got {} and {} elements respectively",
            list.len(),
            keys.len(),
        )));
    }
    let Some(first) = keys.get(0) else { return Ok(Value::List(list.clone())) };
    if !first.has_ordering() {
        return Err(EvalError::new("list elements must be comparable"));
    }
    let keys: Vec<Value<'a>> = keys.iter().collect();
    if keys.iter().any(|key| key.type_name() != first.type_name()) {
        return Err(EvalError::new("list elements must have the same type"));
    }
    // If a comparison fails, such as with NaN, the first key is not less.
    let less = |a: usize, b: usize| match (keys.get(a), keys.get(b)) {
        (Some(a), Some(b)) => matches!(a.compare(b), Ok(Ordering::Less)),
        _ => false,
    };
    let order = pdqsort::sorted_positions(keys.len(), &less);
    Ok(Value::owned_list_value(order.into_iter().filter_map(|index| list.get(index)).collect()))
}

/// The size of an argument; 1 for values without a size and for errors.
fn argument_size_or_one(value: Option<&Value<'_>>) -> u64 {
    value.and_then(Value::size).unwrap_or(1)
}

/// The cost of `flatten`: the depth for each element of the outermost list, and the call.
fn cost_of_flatten<'a>(arguments: &[Value<'a>]) -> u64 {
    let depth = match arguments.get(1) {
        Some(Value::Int(depth)) if *depth >= 0 => *depth as f64,
        _ => 1.0,
    };
    let elements = argument_size_or_one(arguments.first()) as f64;
    ((elements * depth) as u64).saturating_add(CALL_AND_LIST_COST)
}

fn cost_of_comparing_elements<'a>(arguments: &[Value<'a>]) -> u64 {
    cost_of_comparing_all_pairs(arguments.first())
}

fn cost_of_comparing_keys<'a>(arguments: &[Value<'a>]) -> u64 {
    cost_of_comparing_all_pairs(arguments.get(1))
}

/// The cost of comparing each element with each other one twice. Comparing strings or bytes costs a
/// tenth more.
fn cost_of_comparing_all_pairs(list: Option<&Value<'_>>) -> u64 {
    let first = match list {
        Some(Value::List(list)) => list.get(0),
        _ => None,
    };
    let factor = match first {
        Some(Value::String(_) | Value::Bytes(_)) => 2.0 + 0.1,
        Some(_) => 2.0,
        None => return CALL_AND_LIST_COST,
    };
    let elements = argument_size_or_one(list);
    let pairs = elements.saturating_mul(elements) as f64;
    ((pairs * factor) as u64).saturating_add(CALL_AND_LIST_COST)
}

#[cfg(test)]
mod tests;
