//! Implements the arithmetic operators `+ - * / %`, negation, and the comparison for `<`, `<=`,
//! `>`, `>=`.
//!
//! Arithmetic does not convert between numeric types, and an overflow is an error. Comparison
//! accepts operands of different numeric types.

use std::cmp::Ordering;
use std::sync::Arc;

use super::operators::unsupported_operand_error;
use crate::function::{EvalError, EvalResult, StepBudget};
use crate::value::{Bytes, List, OwnedList, Str, Value};

const INT_OVERFLOW: &str = "integer overflow";
const UINT_OVERFLOW: &str = "unsigned integer overflow";
const DIVISION_BY_ZERO: &str = "division by zero";
const MODULUS_BY_ZERO: &str = "modulus by zero";

/// Evaluates `left + right` and spends steps for lists, because their concatenation costs one unit
/// for any length.
pub(super) fn add_metered<'a>(
    arguments: &[Value<'a>],
    step_budget: &mut StepBudget,
) -> EvalResult<'a> {
    if let [Value::List(a), Value::List(b)] = arguments {
        step_budget.spend_steps(a.len().saturating_add(b.len()))?;
    }
    add(arguments)
}

/// Evaluates `left + right`: adds numbers, durations and timestamps, concatenates strings, bytes
/// and lists.
pub(super) fn add<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::Int(a), Value::Int(b)] => int_or_overflow(a.checked_add(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint_or_overflow(a.checked_add(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a + b)),
        [Value::String(a), Value::String(b)] => Ok(Value::String(concat_text(a, b))),
        [Value::Bytes(a), Value::Bytes(b)] => Ok(Value::Bytes(concat_bytes(a, b))),
        [Value::List(a), Value::List(b)] => Ok(Value::List(concat_lists(a, b))),
        [Value::Duration(a), Value::Duration(b)] => duration_or_overflow(a.checked_add(*b)),
        [Value::Timestamp(time), Value::Duration(nanos)]
        | [Value::Duration(nanos), Value::Timestamp(time)] => {
            time.checked_add_nanos(*nanos).map(Value::Timestamp)
        }
        _ => Err(unsupported_operand_error("_+_", arguments, |first| {
            matches!(
                first,
                Value::Int(_)
                    | Value::Uint(_)
                    | Value::Double(_)
                    | Value::Bytes(_)
                    | Value::List(_)
            )
        })),
    }
}

/// Evaluates `left - right` for numbers, durations and timestamps.
pub(super) fn subtract<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::Int(a), Value::Int(b)] => int_or_overflow(a.checked_sub(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint_or_overflow(a.checked_sub(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a - b)),
        [Value::Duration(a), Value::Duration(b)] => duration_or_overflow(a.checked_sub(*b)),
        [Value::Timestamp(time), Value::Duration(nanos)] => {
            let back = nanos.checked_neg().ok_or_else(|| EvalError::new(INT_OVERFLOW))?;
            time.checked_add_nanos(back).map(Value::Timestamp)
        }
        [Value::Timestamp(a), Value::Timestamp(b)] => duration_or_overflow(a.nanos_since(b)),
        _ => Err(unsupported_operand_error("_-_", arguments, is_number)),
    }
}

/// Evaluates `left * right`; an integer overflow is an error.
pub(super) fn multiply<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::Int(a), Value::Int(b)] => int_or_overflow(a.checked_mul(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint_or_overflow(a.checked_mul(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a * b)),
        _ => Err(unsupported_operand_error("_*_", arguments, is_number)),
    }
}

/// Evaluates `left / right`. Integers are rounded towards zero, and doubles may become infinite.
pub(super) fn divide<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(EvalError::new(DIVISION_BY_ZERO))
        }
        [Value::Int(a), Value::Int(b)] => int_or_overflow(a.checked_div(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint_or_overflow(a.checked_div(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a / b)),
        _ => Err(unsupported_operand_error("_/_", arguments, is_number)),
    }
}

/// Evaluates `left % right`. The result has the sign of the left operand.
pub(super) fn modulo<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(EvalError::new(MODULUS_BY_ZERO))
        }
        [Value::Int(a), Value::Int(b)] => int_or_overflow(a.checked_rem(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint_or_overflow(a.checked_rem(*b)),
        _ => Err(unsupported_operand_error("_%_", arguments, |first| {
            matches!(first, Value::Int(_) | Value::Uint(_))
        })),
    }
}

/// Evaluates `-value`. No overload declares durations, but a `dyn` value may be one.
pub(super) fn negate<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::Int(a)] => int_or_overflow(a.checked_neg()),
        [Value::Double(a)] => Ok(Value::Double(-a)),
        [Value::Duration(a)] => duration_or_overflow(a.checked_neg()),
        _ => {
            Err(unsupported_operand_error("-_", arguments, |first| matches!(first, Value::Bool(_))))
        }
    }
}

/// Compares two operands for the comparison operator `function`.
pub(super) fn compare_operands(
    function: &str,
    arguments: &[Value<'_>],
) -> Result<Ordering, EvalError> {
    match arguments {
        [left, right] if left.has_ordering() => left.compare(right),
        [_, _] => Err(unsupported_operand_error(function, arguments, |first| first.has_ordering())),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn is_number(value: &Value<'_>) -> bool {
    matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_))
}

fn int_or_overflow<'a>(result: Option<i64>) -> EvalResult<'a> {
    result.map(Value::Int).ok_or_else(|| EvalError::new(INT_OVERFLOW))
}

fn uint_or_overflow<'a>(result: Option<u64>) -> EvalResult<'a> {
    result.map(Value::Uint).ok_or_else(|| EvalError::new(UINT_OVERFLOW))
}

/// A duration is an integer number of nanoseconds, so its overflow is reported as that of an
/// integer.
fn duration_or_overflow<'a>(result: Option<i64>) -> EvalResult<'a> {
    result.map(Value::Duration).ok_or_else(|| EvalError::new(INT_OVERFLOW))
}

fn concat_text<'a>(a: &Str<'a>, b: &Str<'a>) -> Str<'a> {
    match (a.as_str(), b.as_str()) {
        (_, "") => a.clone(),
        ("", _) => b.clone(),
        (left, right) => {
            let mut text = String::with_capacity(left.len() + right.len());
            text.push_str(left);
            text.push_str(right);
            Str::Owned(text.into())
        }
    }
}

fn concat_bytes<'a>(a: &Bytes<'a>, b: &Bytes<'a>) -> Bytes<'a> {
    match (a.as_slice(), b.as_slice()) {
        (_, []) => a.clone(),
        ([], _) => b.clone(),
        (left, right) => Bytes::Owned([left, right].concat().into()),
    }
}

fn concat_lists<'a>(a: &List<'a>, b: &List<'a>) -> List<'a> {
    if b.is_empty() {
        return a.clone();
    }
    if a.is_empty() {
        return b.clone();
    }
    let mut items = Vec::with_capacity(a.len().saturating_add(b.len()));
    items.extend(a.iter().chain(b.iter()));
    List::Owned(Arc::new(OwnedList::new(items)))
}

#[cfg(test)]
mod tests;
