//! cel-go's library of optional values, in its latest version.
//!
//! The evaluator implements `or` and `orValue`, which evaluate their second operand only if needed,
//! and the selections `.?field`, `[?index]` and indexing of optionals.

use crate::function::{EvalError, EvalResult, FunctionRegistry, Overload};
use crate::static_type::Type;
use crate::value::{List, Timestamp, Value};

/// Declares the functions and operators of optional values.
pub(crate) fn declare_functions(functions: &mut FunctionRegistry) {
    let value = || Type::type_param("V");
    let optional = || Type::optional_type_of(value());
    let list = || Type::list_type_of(value());
    functions.add_overloads(
        "optional.of",
        vec![Overload::new_global_overload("optional_of", vec![value()], optional(), optional_of)],
    );
    functions.add_overloads(
        "optional.ofNonZeroValue",
        vec![Overload::new_global_overload(
            "optional_ofNonZeroValue",
            vec![value()],
            optional(),
            optional_of_non_zero_value,
        )],
    );
    functions.add_overloads(
        "optional.none",
        vec![Overload::new_global_overload("optional_none", Vec::new(), optional(), optional_none)],
    );
    functions.add_overloads(
        "value",
        vec![Overload::new_member_overload(
            "optional_value",
            vec![optional()],
            value(),
            optional_value,
        )],
    );
    functions.add_overloads(
        "hasValue",
        vec![Overload::new_member_overload(
            "optional_hasValue",
            vec![optional()],
            Type::Bool,
            optional_has_value,
        )],
    );
    functions.add_overloads(
        "or",
        vec![Overload::new_member_overload(
            "optional_or_optional",
            vec![optional(), optional()],
            optional(),
            optional_or,
        )],
    );
    functions.add_overloads(
        "orValue",
        vec![Overload::new_member_overload(
            "optional_orValue_value",
            vec![optional(), value()],
            value(),
            optional_or_value,
        )],
    );
    declare_optional_lookup_operators(functions);
    functions.add_overloads(
        "last",
        vec![Overload::new_member_overload(
            "list_last",
            vec![list()],
            optional(),
            last_element_as_optional,
        )],
    );
    functions.add_overloads(
        "first",
        vec![Overload::new_member_overload(
            "list_first",
            vec![list()],
            optional(),
            first_element_as_optional,
        )],
    );
    let optionals = || Type::list_type_of(optional());
    functions.add_overloads(
        "optional.unwrap",
        vec![Overload::new_global_overload(
            "optional_unwrap",
            vec![optionals()],
            list(),
            unwrap_optionals,
        )],
    );
    functions.add_overloads(
        "unwrapOpt",
        vec![Overload::new_member_overload(
            "optional_unwrapOpt",
            vec![optionals()],
            list(),
            unwrap_optionals,
        )],
    );
}

fn declare_optional_lookup_operators(functions: &mut FunctionRegistry) {
    let key = || Type::type_param("K");
    let optional = || Type::optional_type_of(Type::type_param("V"));
    let list = || Type::list_type_of(Type::type_param("V"));
    let map = || Type::map_type_of(key(), Type::type_param("V"));
    functions.add_overloads(
        "_?._",
        vec![Overload::new_global_overload(
            "select_optional_field",
            vec![Type::Dyn, Type::String],
            optional(),
            optional_lookup,
        )],
    );
    functions.add_overloads(
        "_[?_]",
        vec![
            Overload::new_global_overload(
                "list_optindex_optional_int",
                vec![list(), Type::Int],
                optional(),
                optional_lookup,
            ),
            Overload::new_global_overload(
                "optional_list_optindex_optional_int",
                vec![Type::optional_type_of(list()), Type::Int],
                optional(),
                optional_lookup,
            ),
            Overload::new_global_overload(
                "map_optindex_optional_value",
                vec![map(), key()],
                optional(),
                optional_lookup,
            ),
            Overload::new_global_overload(
                "optional_map_optindex_optional_value",
                vec![Type::optional_type_of(map()), key()],
                optional(),
                optional_lookup,
            ),
        ],
    );
    functions.add_overloads(
        "_[_]",
        vec![
            Overload::new_global_overload(
                "optional_list_index_int",
                vec![Type::optional_type_of(list()), Type::Int],
                optional(),
                optional_lookup,
            ),
            Overload::new_global_overload(
                "optional_map_index_value",
                vec![Type::optional_type_of(map()), key()],
                optional(),
                optional_lookup,
            ),
        ],
    );
}

fn optional_of<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [value] => Ok(Value::optional_some(value.clone())),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn optional_of_non_zero_value<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [value] if is_zero_value(value) => Ok(Value::optional_none()),
        _ => optional_of(arguments),
    }
}

/// Reports whether a value is the zero value of its type. Types, optional values and values of the Kubernetes
/// libraries have no zero value.
fn is_zero_value(value: &Value<'_>) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Int(i) => *i == 0,
        Value::Uint(u) => *u == 0,
        Value::Double(d) => *d == 0.0,
        Value::String(text) => text.as_str().is_empty(),
        Value::Bytes(bytes) => bytes.as_slice().is_empty(),
        Value::List(list) => list.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Duration(nanos) => *nanos == 0,
        Value::Timestamp(time) => is_go_zero_time(time),
        Value::Type(_) | Value::Optional(_) | Value::Opaque(_) => false,
    }
}

/// Reports whether a timestamp is Go's zero time, the beginning of the year 1.
fn is_go_zero_time(time: &Timestamp) -> bool {
    const YEAR_ONE: i64 = -62_135_596_800;
    time.unix_seconds() == YEAR_ONE && time.nanos_of_second() == 0
}

fn optional_none<'a>(_: &[Value<'a>]) -> EvalResult<'a> {
    Ok(Value::optional_none())
}

fn optional_value<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::Optional(Some(value))] => Ok((**value).clone()),
        [Value::Optional(None)] => Err(EvalError::new("optional.none() dereference")),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn optional_has_value<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::Optional(value)] => Ok(Value::Bool(value.is_some())),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn optional_or<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [value @ Value::Optional(Some(_)), _] | [Value::Optional(None), value] => Ok(value.clone()),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn optional_or_value<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::Optional(Some(value)), _] => Ok((**value).clone()),
        [Value::Optional(None), otherwise] => Ok(otherwise.clone()),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Looks up a key in a container and returns the value as an optional value. An optional container is unwrapped
/// first.
fn optional_lookup<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let [container, key] = arguments else { return Err(EvalError::no_such_overload()) };
    let found = match container {
        Value::Optional(None) => None,
        Value::Optional(Some(inner)) => return optional_lookup(&[(**inner).clone(), key.clone()]),
        Value::Map(map) => map.get(key),
        Value::List(list) => match key {
            Value::Int(index) => usize::try_from(*index).ok().and_then(|index| list.get(index)),
            _ => return Err(EvalError::no_such_overload()),
        },
        _ => return Err(EvalError::no_such_overload()),
    };
    Ok(found.map_or_else(Value::optional_none, Value::optional_some))
}

fn first_element_as_optional<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    optional_element_at(arguments, |_| Some(0))
}

fn last_element_as_optional<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    optional_element_at(arguments, |list| list.len().checked_sub(1))
}

fn optional_element_at<'a>(
    arguments: &[Value<'a>],
    index: fn(&List<'_>) -> Option<usize>,
) -> EvalResult<'a> {
    let [Value::List(list)] = arguments else { return Err(EvalError::no_such_overload()) };
    let found = index(list).and_then(|index| list.get(index));
    Ok(found.map_or_else(Value::optional_none, Value::optional_some))
}

/// Returns the values of all optionals of a list that have a value.
fn unwrap_optionals<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let [Value::List(list)] = arguments else { return Err(EvalError::no_such_overload()) };
    let mut values = Vec::new();
    for item in list.iter() {
        match item {
            Value::Optional(Some(value)) => values.push((*value).clone()),
            Value::Optional(None) => {}
            other => {
                let other = super::go_print::print_as_go(&other);
                return Err(EvalError::new(format!("value {other} is not optional")));
            }
        }
    }
    Ok(Value::owned_list_value(values))
}

#[cfg(test)]
mod tests;
