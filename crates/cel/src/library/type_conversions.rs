//! Conversions between the standard types: `bool`, `bytes`, `double`, `duration`, `int`, `string`,
//! `timestamp` and `uint`.
//!
//! Numbers are parsed and written like in Go's `strconv`.

mod format_double;
mod number_from_text;

use std::sync::Arc;

pub(crate) use format_double::format_double;
pub(super) use format_double::format_double_without_exponent;
pub(super) use number_from_text::{ParseIntegerError, double_to_int, parse_int};

use super::timestamps_and_durations::{nanos_to_seconds, parse_duration, parse_timestamp};
use crate::function::{
    CostFormula, EvalError, EvalResult, FunctionImpl, FunctionRegistry, Overload,
};
use crate::static_type::Type;
use crate::value::{Bytes, Str, Timestamp, Value};

/// Declares the type conversions of the standard library.
pub(crate) fn declare_functions(functions: &mut FunctionRegistry) {
    let mut add = |name, result: Type, convert: FunctionImpl, from: Vec<(_, Type)>| {
        let overload =
            |(id, source)| Overload::new_global_overload(id, vec![source], result.clone(), convert);
        functions.add_overloads(
            name,
            from.into_iter().map(overload).map(with_conversion_cost).collect(),
        );
    };
    add(
        "bool",
        Type::Bool,
        to_bool,
        vec![("bool_to_bool", Type::Bool), ("string_to_bool", Type::String)],
    );
    add(
        "bytes",
        Type::Bytes,
        to_bytes,
        vec![("bytes_to_bytes", Type::Bytes), ("string_to_bytes", Type::String)],
    );
    add(
        "double",
        Type::Double,
        to_double,
        vec![
            ("double_to_double", Type::Double),
            ("int64_to_double", Type::Int),
            ("string_to_double", Type::String),
            ("uint64_to_double", Type::Uint),
        ],
    );
    add(
        "duration",
        Type::Duration,
        to_duration,
        vec![("duration_to_duration", Type::Duration), ("string_to_duration", Type::String)],
    );
    add(
        "int",
        Type::Int,
        to_int,
        vec![
            ("int64_to_int64", Type::Int),
            ("double_to_int64", Type::Double),
            ("duration_to_int64", Type::Duration),
            ("string_to_int64", Type::String),
            ("timestamp_to_int64", Type::Timestamp),
            ("uint64_to_int64", Type::Uint),
        ],
    );
    add(
        "string",
        Type::String,
        to_string,
        vec![
            ("string_to_string", Type::String),
            ("bool_to_string", Type::Bool),
            ("bytes_to_string", Type::Bytes),
            ("double_to_string", Type::Double),
            ("duration_to_string", Type::Duration),
            ("int64_to_string", Type::Int),
            ("timestamp_to_string", Type::Timestamp),
            ("uint64_to_string", Type::Uint),
        ],
    );
    add(
        "timestamp",
        Type::Timestamp,
        to_timestamp,
        vec![
            ("timestamp_to_timestamp", Type::Timestamp),
            ("int64_to_timestamp", Type::Int),
            ("string_to_timestamp", Type::String),
        ],
    );
    add(
        "uint",
        Type::Uint,
        to_uint,
        vec![
            ("uint64_to_uint64", Type::Uint),
            ("double_to_uint64", Type::Double),
            ("int64_to_uint64", Type::Int),
            ("string_to_uint64", Type::String),
        ],
    );
}

/// Sets the cost of a conversion. Only conversions between strings and bytes cost by their size.
fn with_conversion_cost(overload: Overload) -> Overload {
    match overload.id {
        "string_to_bytes" | "bytes_to_string" => overload.with_cost_formula(CostFormula::Scan(0)),
        _ => overload,
    }
}

fn to_bool<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [value @ Value::Bool(_)] => Ok(value.clone()),
        [Value::String(text)] => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(conversion_error("bool")),
        },
        _ => Err(EvalError::no_such_overload()),
    }
}

fn to_bytes<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [value @ Value::Bytes(_)] => Ok(value.clone()),
        [Value::String(Str::Borrowed(text))] => Ok(Value::Bytes(Bytes::Borrowed(text.as_bytes()))),
        [Value::String(Str::Owned(text))] => {
            Ok(Value::Bytes(Bytes::Owned(Arc::<[u8]>::from(Arc::clone(text)))))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

fn to_double<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [value @ Value::Double(_)] => Ok(value.clone()),
        [Value::Int(number)] => Ok(Value::Double(*number as f64)),
        [Value::Uint(number)] => Ok(Value::Double(*number as f64)),
        [Value::String(text)] => number_from_text::parse_double(text.as_str())
            .map(Value::Double)
            .ok_or_else(|| conversion_error("double")),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn to_duration<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [value @ Value::Duration(_)] => Ok(value.clone()),
        [Value::String(text)] => parse_duration(text.as_str()).map(Value::Duration),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Converts to `int`: rounds a double towards zero, and returns the nanoseconds of a duration or
/// the seconds of a timestamp since 1970.
fn to_int<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let overflow = || EvalError::new("integer overflow");
    match arguments {
        [value @ Value::Int(_)] => Ok(value.clone()),
        [Value::Double(number)] => double_to_int(*number).map(Value::Int).ok_or_else(overflow),
        [Value::Duration(nanos)] => Ok(Value::Int(*nanos)),
        [Value::String(text)] => {
            parse_int(text.as_str()).map(Value::Int).map_err(|_| conversion_error("int"))
        }
        [Value::Timestamp(time)] => Ok(Value::Int(time.unix_seconds())),
        [Value::Uint(number)] => i64::try_from(*number).map(Value::Int).map_err(|_| overflow()),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn to_string<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let text = match arguments {
        [value @ Value::String(_)] => return Ok(value.clone()),
        [Value::Bool(true)] => return Ok(Value::borrowed_string("true")),
        [Value::Bool(false)] => return Ok(Value::borrowed_string("false")),
        [Value::Bytes(bytes)] => return bytes_to_string(bytes),
        [Value::Double(number)] => format_double(*number),
        [Value::Duration(nanos)] => format_double_without_exponent(nanos_to_seconds(*nanos)) + "s",
        [Value::Int(number)] => number.to_string(),
        [Value::Timestamp(time)] => time.to_string(),
        [Value::Uint(number)] => number.to_string(),
        _ => return Err(EvalError::no_such_overload()),
    };
    Ok(Value::owned_string(text))
}

fn to_timestamp<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [value @ Value::Timestamp(_)] => Ok(value.clone()),
        [Value::Int(seconds)] => Timestamp::from_unix_seconds(*seconds)
            .map(Value::Timestamp)
            .ok_or_else(|| EvalError::new("timestamp overflow")),
        [Value::String(text)] => parse_timestamp(text.as_str()).map(Value::Timestamp),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn to_uint<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let overflow = || EvalError::new("unsigned integer overflow");
    match arguments {
        [value @ Value::Uint(_)] => Ok(value.clone()),
        [Value::Double(number)] => {
            number_from_text::double_to_uint(*number).map(Value::Uint).ok_or_else(overflow)
        }
        [Value::Int(number)] => u64::try_from(*number).map(Value::Uint).map_err(|_| overflow()),
        [Value::String(text)] => number_from_text::parse_uint(text.as_str())
            .map(Value::Uint)
            .map_err(|_| conversion_error("uint")),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn bytes_to_string<'a>(bytes: &Bytes<'a>) -> EvalResult<'a> {
    let invalid = |_| EvalError::new("invalid UTF-8 in bytes, cannot convert to string");
    match bytes {
        Bytes::Borrowed(bytes) => {
            std::str::from_utf8(bytes).map(Value::borrowed_string).map_err(invalid)
        }
        Bytes::Owned(bytes) => std::str::from_utf8(bytes).map(Value::owned_string).map_err(invalid),
    }
}

/// The error for a text that is not a value of the type `target`.
pub(super) fn conversion_error(target: &str) -> EvalError {
    EvalError::new(format!("type conversion error from 'string' to '{target}'"))
}

#[cfg(test)]
mod tests;
