//! The runtime cost of evaluation, in cel-go's units and with Kubernetes' rates.

use crate::function::CostFormula;
use crate::value::Value;

/// The cost of creating a list.
pub(crate) const LIST_CREATION: u64 = 10;
/// The cost of creating a map.
pub(crate) const MAP_CREATION: u64 = 30;
/// The cost of creating a message.
pub(crate) const MESSAGE_CREATION: u64 = 40;

/// The cost of each code point when a text is traversed.
const PER_CODE_POINT: f64 = 0.1;
/// The cost of each code point of a regex pattern.
const PER_PATTERN_CODE_POINT: f64 = 0.25;

/// Functions whose cost Kubernetes defines by name. The cost applies even if the type checker could
/// not choose an overload.
const FUNCTIONS_COSTED_BY_NAME: &[&str] = &[
    "check",
    "cidr",
    "containsCIDR",
    "containsIP",
    "fieldSelector",
    "find",
    "findAll",
    "includes",
    "indexOf",
    "ip",
    "ip.isCanonical",
    "isCIDR",
    "isIP",
    "isQuantity",
    "isSemver",
    "isSorted",
    "join",
    "labelSelector",
    "lastIndexOf",
    "lowerAscii",
    "max",
    "min",
    "quantity",
    "replace",
    "semver",
    "split",
    "substring",
    "sum",
    "trim",
    "upperAscii",
    "url",
    "validate",
];

/// Reports whether the cost of a call depends only on the name of its function, so that it also applies if the
/// overload is chosen at run time.
pub(crate) fn has_cost_by_function_name(function: &str) -> bool {
    FUNCTIONS_COSTED_BY_NAME.binary_search(&function).is_ok()
}

/// The cost of traversing a text, rounded up in floating point exactly as cel-go computes it.
#[inline]
pub(crate) fn traversal_cost(code_points: u64) -> u64 {
    match code_points {
        0 => 0,
        1..=10 => 1,
        n => round_up_to_u64(n as f64 * PER_CODE_POINT),
    }
}

/// The ceiling of a positive number. `f64::ceil` compiles to a library call, which is slower.
#[inline]
fn round_up_to_u64(number: f64) -> u64 {
    let whole = number as u64;
    whole + u64::from((whole as f64) < number)
}

fn two_traversals_cost(code_points: u64) -> u64 {
    round_up_to_u64(code_points as f64 * 2.0 * PER_CODE_POINT)
}

/// The cost of a regex search. Both sizes are in code points.
pub(crate) fn regex_cost(text: u64, pattern: u64) -> u64 {
    let text = round_up_to_u64((1.0 + text as f64) * PER_CODE_POINT);
    let pattern = round_up_to_u64(pattern as f64 * PER_PATTERN_CODE_POINT);
    text.saturating_mul(pattern)
}

/// The size of an argument. Values without a size and errors count as 1.
#[inline]
pub(crate) fn argument_size(value: Option<&Value<'_>>) -> u64 {
    match value {
        Some(Value::Optional(Some(inner))) => argument_size(Some(inner)),
        Some(value) => value.size().unwrap_or(1),
        None => 1,
    }
}

/// The cost of `a == b`, or of `a != b` when `negated`; errors are `None`.
#[inline]
pub(crate) fn equality_cost(a: Option<&Value<'_>>, b: Option<&Value<'_>>, negated: bool) -> u64 {
    if let (Some(Value::String(a)), Some(Value::String(b))) = (a, b) {
        return string_comparison_cost(a.as_str(), b.as_str());
    }
    if let (Some(Value::Opaque(_)), false) = (a, negated) {
        return 1;
    }
    traversal_cost(argument_size(a).min(argument_size(b)))
}

/// The cost of comparing two texts, which depends on the shorter one.
#[inline]
pub(crate) fn string_comparison_cost(a: &str, b: &str) -> u64 {
    let shorter = a.len().min(b.len());
    if shorter <= 10 {
        return u64::from(shorter > 0);
    }
    if a.is_ascii() && b.is_ascii() {
        return traversal_cost(shorter as u64);
    }
    traversal_cost(count_code_points(a).min(count_code_points(b)))
}

/// The cost of traversing a text once.
#[inline]
pub(crate) fn text_traversal_cost(text: &str) -> u64 {
    if text.len() <= 10 {
        u64::from(!text.is_empty())
    } else {
        traversal_cost(count_code_points(text))
    }
}

#[inline]
fn count_code_points(text: &str) -> u64 {
    if text.is_ascii() { text.len() as u64 } else { text.chars().count() as u64 }
}

impl CostFormula {
    /// The cost of a call. An argument that is an error is passed as null, which has no size
    /// either.
    #[inline]
    pub(crate) fn cost_of_call<'a>(&self, args: &[Value<'a>], result: Option<&Value<'a>>) -> u64 {
        let arg = |n: usize| argument_size(args.get(n));
        match self {
            Self::Unit => 1,
            Self::Scan(n) => traversal_cost(arg(*n)),
            Self::ScanTwice(n) => two_traversals_cost(arg(*n)),
            Self::ScanResultTwice => two_traversals_cost(argument_size(result)),
            Self::NewList => argument_size(result).saturating_add(1 + LIST_CREATION),
            Self::ScanShorter => traversal_cost(arg(0).min(arg(1))),
            Self::ScanBoth => traversal_cost(arg(0).saturating_add(arg(1))),
            Self::ScanProduct => traversal_cost(arg(0)).saturating_mul(traversal_cost(arg(1))),
            Self::SizeOfSecond => arg(1),
            Self::Regex => regex_cost(arg(0), arg(1)),
            Self::Traverse => args.first().map_or(0, deep_traversal_cost),
            Self::Custom(cost) => cost(args),
        }
    }

    /// Reports whether the cost depends on the result, so that it is charged after the call.
    #[inline]
    pub(crate) fn is_charged_after_call(&self) -> bool {
        matches!(self, Self::ScanResultTwice | Self::NewList)
    }
}

/// The maximum number of values that one deep traversal visits; their cost exceeds every cost limit.
const TRAVERSAL_STEPS_MAX: u64 = 2_000_000;

/// The cost of traversing a value with all its parts. Unlike in the other formulas, the cost of a
/// text is rounded down.
fn deep_traversal_cost(value: &Value<'_>) -> u64 {
    let mut steps = TRAVERSAL_STEPS_MAX;
    deep_traversal_cost_within_steps(value, &mut steps)
}

fn deep_traversal_cost_within_steps(value: &Value<'_>, steps: &mut u64) -> u64 {
    // A value can contain the same element many times over. The cost of such a value exceeds the
    // limit.
    let Some(left) = steps.checked_sub(1) else { return u64::MAX };
    *steps = left;
    let sum = |total: u64, part: u64| total.saturating_add(part);
    match value {
        Value::String(text) => (text.as_str().len() as f64 * PER_CODE_POINT) as u64,
        Value::Bytes(bytes) => (bytes.as_slice().len() as f64 * PER_CODE_POINT) as u64,
        Value::List(list) => list.iter().fold(0, |total, item| {
            if *steps == 0 {
                u64::MAX
            } else {
                sum(total, deep_traversal_cost_within_steps(&item, steps))
            }
        }),
        Value::Map(map) => map.iter().fold(0, |total, (key, value)| {
            sum(
                sum(total, deep_traversal_cost_within_steps(&key, steps)),
                deep_traversal_cost_within_steps(&value, steps),
            )
        }),
        _ => 1,
    }
}
