//! The function `'...'.format([...])` of cel-go's string extensions, version 2.
//!
//! That version writes numbers in the American English locale: `%f` groups digits by thousands, and
//! `%e` writes the exponent in superscript. [`number_format`] writes numbers, [`format_clause`]
//! reads the format, and [`format_call_check`] checks calls whose format and list are literals.

mod format_call_check;
mod format_clause;
mod number_format;

use self::format_clause::{FormatClause, FormatPart, FormatScanner};
use super::format_double;
use super::strings::check_text_length;
use super::timestamps_and_durations::nanos_to_seconds;
use super::type_conversions::format_double_without_exponent;
use crate::function::{CostFormula, EvalError, EvalResult, FunctionRegistry, Overload, StepBudget};
use crate::static_type::Type;
use crate::value::{List, Map, Value};

pub(crate) use self::format_call_check::{LiteralNodeAccess, validate_format_literal};

/// The error for bytes that are not UTF-8.
const INVALID_UTF8_MESSAGE: &str = "could not convert argument \
    \"invalid UTF-8 in bytes, cannot convert to string\" to string";

/// The steps for writing a double with all its digits. A double can have a thousand digits.
const STEPS_PER_DOUBLE: usize = 100;

/// Declares the function `format` of strings.
pub(crate) fn declare_functions(functions: &mut FunctionRegistry) {
    functions.add_overloads(
        "format",
        vec![
            Overload::new_member_overload(
                "string_format",
                vec![Type::String, Type::list_type_of(Type::Dyn)],
                Type::String,
                string_format,
            )
            .with_cost_formula(CostFormula::Scan(0))
            .with_metered_implementation(string_format_metered),
        ],
    );
}

fn string_format<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    string_format_metered(arguments, &mut StepBudget::default())
}

fn string_format_metered<'a>(
    arguments: &[Value<'a>],
    step_budget: &mut StepBudget,
) -> EvalResult<'a> {
    let [Value::String(format), Value::List(values)] = arguments else {
        return Err(EvalError::no_such_overload());
    };
    let mut text = String::new();
    let mut scanner = FormatScanner::new(format.as_str());
    let mut index = 0;
    while let Some(part) = scanner.next_format_part() {
        match part {
            FormatPart::Text(plain) => text.push_str(plain),
            FormatPart::Clause => {
                let value = values
                    .get(index)
                    .ok_or_else(|| EvalError::new(index_out_of_range_message(index)))?;
                let clause =
                    scanner.read_clause().map_err(|error| EvalError::new(error.to_string()))?;
                if matches!(clause, FormatClause::Fixed(_) | FormatClause::Scientific(_)) {
                    step_budget.spend_steps(STEPS_PER_DOUBLE)?;
                }
                let written =
                    format_with_clause(clause, &value).map_err(|error| error.into_eval_error())?;
                text.push_str(&written);
                index += 1;
            }
        }
        check_text_length(text.len())?;
    }
    Ok(Value::owned_string(text))
}

fn index_out_of_range_message(index: usize) -> String {
    format!("index {index} out of range")
}

/// The reason why a value cannot be formatted.
enum FormatError {
    /// The clause does not accept the type of the value.
    Value(String),
    /// The text exceeds its limit.
    Length(EvalError),
}

impl FormatError {
    fn into_eval_error(self) -> EvalError {
        match self {
            Self::Value(message) => EvalError::new(format!("error during formatting: {message}")),
            Self::Length(failure) => failure,
        }
    }
}

/// Writes one value in the form of a clause.
fn format_with_clause(clause: FormatClause, value: &Value<'_>) -> Result<String, FormatError> {
    let refused = || FormatError::Value(clause.type_error_message(value.type_name()));
    Ok(match (clause, value) {
        (FormatClause::Text, value) => format_as_text(value)?,
        (FormatClause::Decimal, Value::Int(number)) => number.to_string(),
        (FormatClause::Decimal, Value::Uint(number)) => number.to_string(),
        (FormatClause::Fixed(precision), value) => {
            number_format::format_fixed(to_double_argument(value).ok_or_else(refused)?, precision)
        }
        (FormatClause::Scientific(width), value) => {
            number_format::format_scientific(to_double_argument(value).ok_or_else(refused)?, width)
        }
        (FormatClause::Binary, Value::Bool(bit)) => u8::from(*bit).to_string(),
        (FormatClause::Binary, Value::Int(number)) => {
            prepend_minus_if_negative(*number, format!("{:b}", number.unsigned_abs()))
        }
        (FormatClause::Binary, Value::Uint(number)) => format!("{number:b}"),
        (FormatClause::Octal, Value::Int(number)) => {
            prepend_minus_if_negative(*number, format!("{:o}", number.unsigned_abs()))
        }
        (FormatClause::Octal, Value::Uint(number)) => format!("{number:o}"),
        (FormatClause::Hex, Value::Int(number)) => {
            prepend_minus_if_negative(*number, format!("{:x}", number.unsigned_abs()))
        }
        (FormatClause::UpperHex, Value::Int(number)) => {
            prepend_minus_if_negative(*number, format!("{:X}", number.unsigned_abs()))
        }
        (FormatClause::Hex, Value::Uint(number)) => format!("{number:x}"),
        (FormatClause::UpperHex, Value::Uint(number)) => format!("{number:X}"),
        (FormatClause::Hex, Value::String(text)) => to_hex(text.as_str().as_bytes()),
        (FormatClause::UpperHex, Value::String(text)) => {
            to_hex(text.as_str().as_bytes()).to_uppercase()
        }
        (FormatClause::Hex, Value::Bytes(bytes)) => to_hex(bytes.as_slice()),
        (FormatClause::UpperHex, Value::Bytes(bytes)) => to_hex(bytes.as_slice()).to_uppercase(),
        _ => return Err(refused()),
    })
}

/// The number for a floating point clause. Three strings stand for NaN and the infinities.
fn to_double_argument(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn prepend_minus_if_negative(number: i64, magnitude: String) -> String {
    if number < 0 { format!("-{magnitude}") } else { magnitude }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a value for `%s`. Strings are unchanged; lists and maps become CEL literals.
fn format_as_text(value: &Value<'_>) -> Result<String, FormatError> {
    let mut text = String::new();
    match value {
        Value::Null => text.push_str("null"),
        Value::Double(number) => text.push_str(&format_double(*number)),
        Value::Type(name) => text.push_str(name.0),
        Value::List(list) => append_cel_list_literal(list, &mut text)?,
        Value::Map(map) => append_cel_map_literal(map, &mut text)?,
        scalar => return format_scalar(scalar),
    }
    Ok(text)
}

/// Writes a scalar like `string(value)`.
fn format_scalar(value: &Value<'_>) -> Result<String, FormatError> {
    Ok(match value {
        Value::Bool(b) => b.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::String(text) => text.as_str().to_owned(),
        Value::Duration(nanos) => format_double_without_exponent(nanos_to_seconds(*nanos)) + "s",
        Value::Timestamp(time) => time.to_string(),
        Value::Bytes(bytes) => std::str::from_utf8(bytes.as_slice())
            .map_err(|_| FormatError::Value(INVALID_UTF8_MESSAGE.to_owned()))?
            .to_owned(),
        other => {
            return Err(FormatError::Value(
                FormatClause::Text.type_error_message(other.type_name()),
            ));
        }
    })
}

/// Appends an element of a list or a map as a CEL literal.
fn append_cel_literal(value: &Value<'_>, text: &mut String) -> Result<(), FormatError> {
    match value {
        Value::String(inner) => text.push_str(&go_compat::quote(inner.as_str())),
        Value::Bytes(_) => {
            text.push('b');
            text.push_str(&go_compat::quote(&format_scalar(value)?));
        }
        Value::Double(number) if number.is_nan() => text.push_str("\"NaN\""),
        Value::Double(f64::INFINITY) => text.push_str("\"+Inf\""),
        Value::Double(f64::NEG_INFINITY) => text.push_str("\"-Inf\""),
        Value::Double(number) => text.push_str(&format!("{number:.6}")),
        Value::Duration(_) => {
            text.push_str(&format!("duration({})", go_compat::quote(&format_scalar(value)?)))
        }
        Value::Timestamp(_) => {
            text.push_str(&format!("timestamp({})", go_compat::quote(&format_scalar(value)?)));
        }
        Value::List(list) => append_cel_list_literal(list, text)?,
        Value::Map(map) => append_cel_map_literal(map, text)?,
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Type(_) => {
            text.push_str(&format_as_text(value)?);
        }
        Value::Optional(_) | Value::Opaque(_) => {
            let message = format!("no formatting function for {}", value.type_name());
            return Err(FormatError::Value(message));
        }
    }
    check_text_length(text.len()).map_err(FormatError::Length)
}

fn append_cel_list_literal(list: &List<'_>, text: &mut String) -> Result<(), FormatError> {
    text.push('[');
    for (index, item) in list.iter().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        append_cel_literal(&item, text)?;
    }
    text.push(']');
    Ok(())
}

/// Appends a map. The entries are sorted by the text of their keys.
fn append_cel_map_literal(map: &Map<'_>, text: &mut String) -> Result<(), FormatError> {
    let mut entries = Vec::new();
    let mut length = text.len();
    for (key, value) in map.iter() {
        if !matches!(key, Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_)) {
            let name = key.type_name();
            let message = format!("no formatting function for map key of type {name}");
            return Err(FormatError::Value(message));
        }
        let mut entry = (String::new(), String::new());
        append_cel_literal(&key, &mut entry.0)?;
        append_cel_literal(&value, &mut entry.1)?;
        length = length.saturating_add(entry.0.len() + entry.1.len());
        check_text_length(length).map_err(FormatError::Length)?;
        entries.push(entry);
    }
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    text.push('{');
    for (index, (key, value)) in entries.iter().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        text.push_str(key);
        text.push(':');
        text.push_str(value);
    }
    text.push('}');
    Ok(())
}

#[cfg(test)]
mod tests;
