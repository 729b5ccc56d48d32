//! Equality and order of values, across the numeric types.

use std::cmp::Ordering;

use super::{List, Map, Value};
use crate::function::EvalError;

/// The maximum number of values that one comparison visits. Lists can share their elements, so a short expression can
/// create two lists whose full comparison would take practically forever.
const EQUALITY_STEPS_MAX: u64 = 1_000_000;

/// The result of comparing two values for equality.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EqualityResult {
    Equal,
    Unequal,
    /// The value on the left cannot be compared with the other value, so `==` is an error. Inside
    /// lists and maps this counts as equal, as in Kubernetes; everywhere else it counts as unequal.
    Incomparable,
}

impl From<bool> for EqualityResult {
    fn from(equal: bool) -> Self {
        if equal { Self::Equal } else { Self::Unequal }
    }
}

impl<'a> Value<'a> {
    /// `self == other` as the language defines it: numbers compare across their types, all other
    /// types are unequal to each other, and NaN is unequal to itself. Values that cannot be
    /// compared count as unequal, and so do values whose comparison takes more than a million
    /// steps.
    pub fn equals(&self, other: &Value<'a>) -> bool {
        self.equals_within_steps(other, &mut EQUALITY_STEPS_MAX.clone())
            == Some(EqualityResult::Equal)
    }

    /// Compares two values and counts a step for each of their parts. Returns `None` if no steps
    /// are left.
    pub(crate) fn equals_within_steps(
        &self,
        other: &Value<'a>,
        steps: &mut u64,
    ) -> Option<EqualityResult> {
        *steps = steps.checked_sub(1)?;
        let equal = match (self, other) {
            (Self::String(a), Self::String(b)) => a.as_str() == b.as_str(),
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a.as_slice() == b.as_slice(),
            (Self::Duration(a), Self::Duration(b)) => a == b,
            (Self::Timestamp(a), Self::Timestamp(b)) => a == b,
            (Self::Type(a), Self::Type(b)) => a == b,
            (Self::List(a), Self::List(b)) => lists_equal(a, b, steps)?,
            (Self::Map(a), Self::Map(b)) => maps_equal(a, b, steps)?,
            (Self::Optional(a), Self::Optional(b)) => match (a, b) {
                (None, None) => true,
                (Some(a), Some(b)) => return a.equals_within_steps(b, steps),
                (None, Some(_)) | (Some(_), None) => false,
            },
            (Self::Opaque(a), Self::Opaque(b)) => {
                return Some(
                    a.equals(b).map_or(EqualityResult::Incomparable, EqualityResult::from),
                );
            }
            (Self::Opaque(_), Self::Null) => false,
            (Self::Opaque(_), _) => return Some(EqualityResult::Incomparable),
            (Self::Double(a), Self::Double(b)) => a == b,
            _ => match (self.as_number(), other.as_number()) {
                (Some(a), Some(b)) => a.compare_numbers(b) == Some(Ordering::Equal),
                _ => false,
            },
        };
        Some(equal.into())
    }

    /// Reports whether values of this type are ordered.
    pub(crate) fn has_ordering(&self) -> bool {
        match self {
            Self::Bool(_)
            | Self::Int(_)
            | Self::Uint(_)
            | Self::Double(_)
            | Self::String(_)
            | Self::Bytes(_)
            | Self::Duration(_)
            | Self::Timestamp(_) => true,
            Self::Null
            | Self::List(_)
            | Self::Map(_)
            | Self::Type(_)
            | Self::Optional(_)
            | Self::Opaque(_) => false,
        }
    }

    /// The order of two values of comparable types; an error for NaN and for all other types.
    pub(crate) fn compare(&self, other: &Value<'a>) -> Result<Ordering, EvalError> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Ok(a.cmp(b)),
            (Self::String(a), Self::String(b)) => Ok(a.as_str().cmp(b.as_str())),
            (Self::Bytes(a), Self::Bytes(b)) => Ok(a.as_slice().cmp(b.as_slice())),
            (Self::Duration(a), Self::Duration(b)) => Ok(a.cmp(b)),
            (Self::Timestamp(a), Self::Timestamp(b)) => Ok(a.cmp(b)),
            _ => match (self.as_number(), other.as_number()) {
                (Some(a), Some(b)) => a.compare_numbers(b).ok_or_else(nan_ordering_error),
                // A NaN on the left is always an error.
                (Some(Number::Double(a)), None) if a.is_nan() => Err(nan_ordering_error()),
                _ => Err(EvalError::new("no such overload")),
            },
        }
    }

    fn as_number(&self) -> Option<Number> {
        match self {
            Self::Int(i) => Some(Number::Int(*i)),
            Self::Uint(u) => Some(Number::Uint(*u)),
            Self::Double(d) => Some(Number::Double(*d)),
            _ => None,
        }
    }
}

fn nan_ordering_error() -> EvalError {
    EvalError::new("NaN values cannot be ordered")
}

/// A number of any of the three types, for comparison without loss.
#[derive(Clone, Copy)]
enum Number {
    Int(i64),
    Uint(u64),
    Double(f64),
}

impl Number {
    /// The order, or `None` when a NaN takes part.
    fn compare_numbers(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(&b)),
            (Self::Uint(a), Self::Uint(b)) => Some(a.cmp(&b)),
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(&b),
            (Self::Int(a), Self::Uint(b)) => Some(i128::from(a).cmp(&i128::from(b))),
            (Self::Uint(a), Self::Int(b)) => Some(i128::from(a).cmp(&i128::from(b))),
            (Self::Double(a), Self::Int(b)) => compare_double_to_int(a, b),
            (Self::Int(a), Self::Double(b)) => compare_double_to_int(b, a).map(Ordering::reverse),
            (Self::Double(a), Self::Uint(b)) => compare_double_to_uint(a, b),
            (Self::Uint(a), Self::Double(b)) => compare_double_to_uint(b, a).map(Ordering::reverse),
        }
    }
}

/// Compares a double with an integer. As in cel-go, numbers within the range of the integer type are compared as
/// doubles, so a large integer equals the double that it rounds to.
fn compare_double_to_int(d: f64, i: i64) -> Option<Ordering> {
    if d < i64::MIN as f64 {
        return Some(Ordering::Less);
    }
    if d > i64::MAX as f64 {
        return Some(Ordering::Greater);
    }
    d.partial_cmp(&(i as f64))
}

fn compare_double_to_uint(d: f64, u: u64) -> Option<Ordering> {
    if d < 0.0 {
        return Some(Ordering::Less);
    }
    if d > u64::MAX as f64 {
        return Some(Ordering::Greater);
    }
    d.partial_cmp(&(u as f64))
}

fn lists_equal<'a>(a: &List<'a>, b: &List<'a>, steps: &mut u64) -> Option<bool> {
    if a.len() != b.len() {
        return Some(false);
    }
    for (x, y) in a.iter().zip(b.iter()) {
        if x.equals_within_steps(&y, steps)? == EqualityResult::Unequal {
            return Some(false);
        }
    }
    Some(true)
}

fn maps_equal<'a>(a: &Map<'a>, b: &Map<'a>, steps: &mut u64) -> Option<bool> {
    if a.len() != b.len() {
        return Some(false);
    }
    for (key, value) in a.iter() {
        match b.get(&key) {
            Some(other) if value.equals_within_steps(&other, steps)? != EqualityResult::Unequal => {
            }
            _ => return Some(false),
        }
    }
    Some(true)
}
