//! cel-go's string extensions, version 2: `charAt`, `indexOf`, `lastIndexOf`, `substring`,
//! `replace`, `split`, `join`, `trim`, `lowerAscii`, `upperAscii` and `strings.quote`. Positions
//! are in code points. [`string_format`] implements `format`.

use std::ops::Range;

use super::go_print::print_as_go;
use super::string_format;
use crate::function::{CostFormula, EvalError, EvalResult, FunctionRegistry, Overload, StepBudget};
use crate::static_type::Type;
use crate::value::{List, Str, Value};

/// The maximum length in bytes of a text that a function creates. The cost of some functions
/// depends on the size of the arguments only, so the cost does not bound the size of the result.
/// Creating as much text with `join` exceeds the cost limit, so exceeding this size is reported as
/// exceeding the cost limit.
pub(super) const TEXT_BYTES_MAX: usize = 20_000_000;

/// Declares the functions of cel-go's string extension library, such as `split` and `replace`.
pub(crate) fn declare_functions(functions: &mut FunctionRegistry) {
    declare_index_functions(functions);
    declare_substring_functions(functions);
    declare_case_functions(functions);
    string_format::declare_functions(functions);
    functions.add_overloads(
        "strings.quote",
        vec![
            Overload::new_global_overload(
                "strings_quote",
                vec![Type::String],
                Type::String,
                strings_quote,
            )
            .with_cost_formula(CostFormula::Scan(0)),
        ],
    );
    let texts = || Type::list_type_of(Type::String);
    functions.add_overloads(
        "join",
        vec![
            Overload::new_member_overload("list_join", vec![texts()], Type::String, string_join)
                .with_cost_formula(CostFormula::ScanResultTwice),
            Overload::new_member_overload(
                "list_join_string",
                vec![texts(), Type::String],
                Type::String,
                string_join,
            )
            .with_cost_formula(CostFormula::ScanResultTwice),
        ],
    );
}

fn declare_index_functions(functions: &mut FunctionRegistry) {
    let sought = || vec![Type::String, Type::String];
    let sought_from = || vec![Type::String, Type::String, Type::Int];
    functions.add_overloads(
        "charAt",
        vec![Overload::new_member_overload(
            "string_char_at_int",
            vec![Type::String, Type::Int],
            Type::String,
            string_char_at,
        )],
    );
    functions.add_overloads(
        "indexOf",
        vec![
            Overload::new_member_overload(
                "string_index_of_string",
                sought(),
                Type::Int,
                string_index_of,
            )
            .with_cost_formula(CostFormula::Traverse),
            Overload::new_member_overload(
                "string_index_of_string_int",
                sought_from(),
                Type::Int,
                string_index_of,
            )
            .with_cost_formula(CostFormula::Traverse),
        ],
    );
    functions.add_overloads(
        "lastIndexOf",
        vec![
            Overload::new_member_overload(
                "string_last_index_of_string",
                sought(),
                Type::Int,
                string_last_index_of,
            )
            .with_cost_formula(CostFormula::Traverse),
            Overload::new_member_overload(
                "string_last_index_of_string_int",
                sought_from(),
                Type::Int,
                string_last_index_of,
            )
            .with_cost_formula(CostFormula::Traverse),
        ],
    );
}

fn declare_substring_functions(functions: &mut FunctionRegistry) {
    use Type::{Int, String};
    let texts = || Type::list_type_of(String);
    functions.add_overloads(
        "replace",
        vec![
            Overload::new_member_overload(
                "string_replace_string_string",
                vec![String, String, String],
                String,
                string_replace,
            )
            .with_cost_formula(CostFormula::ScanTwice(0)),
            Overload::new_member_overload(
                "string_replace_string_string_int",
                vec![String, String, String, Int],
                String,
                string_replace,
            )
            .with_cost_formula(CostFormula::ScanTwice(0)),
        ],
    );
    functions.add_overloads(
        "split",
        vec![
            Overload::new_member_overload(
                "string_split_string",
                vec![String, String],
                texts(),
                string_split,
            )
            .with_cost_formula(CostFormula::ScanTwice(0))
            .with_metered_implementation(string_split_metered),
            Overload::new_member_overload(
                "string_split_string_int",
                vec![String, String, Int],
                texts(),
                string_split,
            )
            .with_cost_formula(CostFormula::ScanTwice(0))
            .with_metered_implementation(string_split_metered),
        ],
    );
    functions.add_overloads(
        "substring",
        vec![
            Overload::new_member_overload(
                "string_substring_int",
                vec![String, Int],
                String,
                string_substring,
            )
            .with_cost_formula(CostFormula::Scan(0)),
            Overload::new_member_overload(
                "string_substring_int_int",
                vec![String, Int, Int],
                String,
                string_substring,
            )
            .with_cost_formula(CostFormula::Scan(0)),
        ],
    );
    functions.add_overloads(
        "trim",
        vec![
            Overload::new_member_overload("string_trim", vec![String], String, string_trim)
                .with_cost_formula(CostFormula::Scan(0)),
        ],
    );
}

fn declare_case_functions(functions: &mut FunctionRegistry) {
    let text = || vec![Type::String];
    functions.add_overloads(
        "lowerAscii",
        vec![
            Overload::new_member_overload("string_lower_ascii", text(), Type::String, lower_ascii)
                .with_cost_formula(CostFormula::Scan(0)),
        ],
    );
    functions.add_overloads(
        "upperAscii",
        vec![
            Overload::new_member_overload("string_upper_ascii", text(), Type::String, upper_ascii)
                .with_cost_formula(CostFormula::Scan(0)),
        ],
    );
}

/// Returns a part of a text. It borrows if the text does. The range is in bytes.
pub(super) fn slice_text<'a>(text: &Str<'a>, range: Range<usize>) -> Value<'a> {
    match text {
        Str::Borrowed(whole) => Value::borrowed_string(whole.get(range).unwrap_or_default()),
        Str::Owned(whole) if range.len() == whole.len() => Value::String(text.clone()),
        Str::Owned(whole) => match whole.get(range).unwrap_or_default() {
            "" => Value::borrowed_string(""),
            part => Value::owned_string(part),
        },
    }
}

/// The steps for each part of a text that becomes a new value. Its cost may be a tenth of a unit,
/// but it takes as much memory as several other values.
pub(super) const STEPS_PER_SLICE: usize = 4;

/// Returns an error if a text of this length exceeds the limit of a function's result.
pub(super) fn check_text_length(bytes: usize) -> Result<(), EvalError> {
    if bytes > TEXT_BYTES_MAX { Err(EvalError::CostLimit) } else { Ok(()) }
}

fn index_out_of_range_error(index: i64) -> EvalError {
    EvalError::new(format!("index out of range: {index}"))
}

/// The byte offset of the code point at a position. The position after the last code point is valid
/// too. `None` for positions outside the text.
fn byte_offset_of_code_point(text: &str, position: i64) -> Option<usize> {
    let position = usize::try_from(position).ok()?;
    if text.is_ascii() {
        return (position <= text.len()).then_some(position);
    }
    text.char_indices().map(|(offset, _)| offset).chain([text.len()]).nth(position)
}

/// The number of code points before a byte.
fn count_code_points_before(text: &str, byte: usize) -> i64 {
    text.get(..byte).map_or(0, count_code_points)
}

fn count_code_points(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

fn string_char_at<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let [Value::String(text), Value::Int(index)] = arguments else {
        return Err(EvalError::no_such_overload());
    };
    let start = byte_offset_of_code_point(text.as_str(), *index)
        .ok_or_else(|| index_out_of_range_error(*index))?;
    let rest = text.as_str().get(start..).unwrap_or_default();
    let length = rest.chars().next().map_or(0, char::len_utf8);
    Ok(slice_text(text, start..start + length))
}

fn string_index_of<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let (text, sought, from) = match arguments {
        [Value::String(text), Value::String(sought)] => (text.as_str(), sought.as_str(), 0),
        [Value::String(text), Value::String(sought), Value::Int(from)] => {
            (text.as_str(), sought.as_str(), *from)
        }
        _ => return Err(EvalError::no_such_overload()),
    };
    if from < 0 {
        return Err(index_out_of_range_error(from));
    }
    if sought.is_empty() {
        return Ok(Value::Int(from.min(count_code_points(text))));
    }
    // A start after the end finds nothing. Only a negative start is an error.
    let found = byte_offset_of_code_point(text, from).and_then(|start| {
        let found = text.get(start..)?.find(sought)?;
        Some(start + found)
    });
    Ok(Value::Int(found.map_or(-1, |byte| count_code_points_before(text, byte))))
}

/// Finds the last match that begins at or before the start position. As in cel-go, a start at or
/// after the end of the text finds nothing, although earlier matches exist.
fn string_last_index_of<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let (text, sought, from) = match arguments {
        [Value::String(text), Value::String(sought)] => (text.as_str(), sought.as_str(), None),
        [Value::String(text), Value::String(sought), Value::Int(from)] => {
            (text.as_str(), sought.as_str(), Some(*from))
        }
        _ => return Err(EvalError::no_such_overload()),
    };
    if let Some(from) = from.filter(|from| *from < 0) {
        return Err(index_out_of_range_error(from));
    }
    let length = count_code_points(text);
    if sought.is_empty() {
        return Ok(Value::Int(from.map_or(length, |from| from.min(length))));
    }
    let searched = match from {
        None => text,
        Some(from) if from >= length => "",
        Some(from) => {
            let end =
                byte_offset_of_code_point(text, from.saturating_add(count_code_points(sought)));
            text.get(..end.unwrap_or(text.len())).unwrap_or_default()
        }
    };
    Ok(Value::Int(searched.rfind(sought).map_or(-1, |byte| count_code_points_before(text, byte))))
}

fn string_substring<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let (text, start, end) = match arguments {
        [Value::String(text), Value::Int(start)] => (text, *start, None),
        [Value::String(text), Value::Int(start), Value::Int(end)] => (text, *start, Some(*end)),
        _ => return Err(EvalError::no_such_overload()),
    };
    if let Some(end) = end.filter(|end| start > *end) {
        let message = format!("invalid substring range. start: {start}, end: {end}");
        return Err(EvalError::new(message));
    }
    let offset = |position| {
        byte_offset_of_code_point(text.as_str(), position)
            .ok_or_else(|| index_out_of_range_error(position))
    };
    let first = offset(start)?;
    let last = match end {
        Some(end) => offset(end)?,
        None => text.as_str().len(),
    };
    Ok(slice_text(text, first..last))
}

fn string_trim<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let [Value::String(text)] = arguments else { return Err(EvalError::no_such_overload()) };
    let whole = text.as_str();
    let start = whole.len() - whole.trim_start().len();
    Ok(slice_text(text, start..start + whole.trim().len()))
}

/// Replaces all occurrences, or the first `limit` of them if the limit is not negative. The empty
/// text occurs before each code point and at the end.
fn string_replace<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let (text, old, new, limit) = match arguments {
        [Value::String(text), Value::String(old), Value::String(new)] => (text, old, new, -1),
        [Value::String(text), Value::String(old), Value::String(new), Value::Int(limit)] => {
            (text, old, new, *limit)
        }
        _ => return Err(EvalError::no_such_overload()),
    };
    let (whole, old, new) = (text.as_str(), old.as_str(), new.as_str());
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let count = if old == new { 0 } else { whole.matches(old).take(limit).count() };
    if count == 0 {
        return Ok(Value::String(text.clone()));
    }
    check_text_length(whole.len().saturating_add(new.len().saturating_mul(count)))?;
    Ok(Value::owned_string(whole.replacen(old, new, count)))
}

fn string_split<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    string_split_metered(arguments, &mut StepBudget::default())
}

/// Splits at all occurrences, or into at most `limit` parts if the limit is not negative. An empty
/// separator splits between code points.
fn string_split_metered<'a>(
    arguments: &[Value<'a>],
    step_budget: &mut StepBudget,
) -> EvalResult<'a> {
    let (text, separator, limit) = match arguments {
        [Value::String(text), Value::String(separator)] => (text, separator.as_str(), -1),
        [Value::String(text), Value::String(separator), Value::Int(limit)] => {
            (text, separator.as_str(), *limit)
        }
        _ => return Err(EvalError::no_such_overload()),
    };
    let whole = text.as_str();
    if limit == 0 || (separator.is_empty() && whole.is_empty()) {
        return Ok(Value::owned_list_value(Vec::new()));
    }
    let cuts = usize::try_from(limit).map_or(usize::MAX, |limit| limit - 1);
    let mut parts = Vec::new();
    let mut start = 0;
    // The match of an empty separator before the first code point does not split.
    let skip = usize::from(separator.is_empty());
    let found = whole.match_indices(separator).skip(skip).filter(|(at, _)| *at < whole.len());
    for (at, separator) in found.take(cuts) {
        step_budget.spend_steps(STEPS_PER_SLICE)?;
        parts.push(slice_text(text, start..at));
        start = at + separator.len();
    }
    parts.push(slice_text(text, start..whole.len()));
    Ok(Value::owned_list_value(parts))
}

fn lower_ascii<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    change_case(arguments, |byte| byte.is_ascii_uppercase(), str::to_ascii_lowercase)
}

fn upper_ascii<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    change_case(arguments, |byte| byte.is_ascii_lowercase(), str::to_ascii_uppercase)
}

fn change_case<'a>(
    arguments: &[Value<'a>],
    changes: fn(&u8) -> bool,
    change: fn(&str) -> String,
) -> EvalResult<'a> {
    let [Value::String(text)] = arguments else { return Err(EvalError::no_such_overload()) };
    if text.as_str().as_bytes().iter().any(changes) {
        Ok(Value::owned_string(change(text.as_str())))
    } else {
        Ok(Value::String(text.clone()))
    }
}

fn string_join<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::List(list)] => join_string_list(list, ""),
        [Value::List(list), Value::String(separator)] => join_string_list(list, separator.as_str()),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn join_string_list<'a>(list: &List<'a>, separator: &str) -> EvalResult<'a> {
    let mut text = String::new();
    for (index, item) in list.iter().enumerate() {
        if index > 0 {
            text.push_str(separator);
        }
        match &item {
            Value::String(item) => text.push_str(item.as_str()),
            other => {
                return Err(EvalError::new(format!("join: invalid input: {}", print_as_go(other))));
            }
        }
        check_text_length(text.len())?;
    }
    Ok(Value::owned_string(text))
}

/// Writes a text as a CEL string literal in double quotes.
fn strings_quote<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let [Value::String(text)] = arguments else { return Err(EvalError::no_such_overload()) };
    let mut quoted = String::with_capacity(text.as_str().len() + 2);
    quoted.push('"');
    for c in text.as_str().chars() {
        match c {
            '\u{07}' => quoted.push_str(r"\a"),
            '\u{08}' => quoted.push_str(r"\b"),
            '\u{0C}' => quoted.push_str(r"\f"),
            '\n' => quoted.push_str(r"\n"),
            '\r' => quoted.push_str(r"\r"),
            '\t' => quoted.push_str(r"\t"),
            '\u{0B}' => quoted.push_str(r"\v"),
            '\\' => quoted.push_str(r"\\"),
            '"' => quoted.push_str(r#"\""#),
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    Ok(Value::owned_string(quoted))
}

#[cfg(test)]
mod tests;
