//! Writes doubles for `%f` and `%e` like Go's `x/text` in American English.
//!
//! `x/text` has limits for precision and width. Exceeding them changes the result and is not an
//! error. The same limits apply here. They bound the length of a number: 255 zeros after the last
//! digit, and 65,535 characters in all.

use crate::library::type_conversions::format_double_without_exponent;

/// The output of `x/text` for a clause whose precision is too large.
const PRECISION_TOO_LARGE_OUTPUT: &str = "%!(NOVERB)";

/// `x/text` stops parsing a precision if another digit follows a number larger than this.
const PRECISION_PARSED_MAX: u64 = 1_000_000;

/// Writes `%.{precision}f` with digits grouped by thousands.
pub(super) fn format_fixed(number: f64, precision: u64) -> String {
    if precision / 10 > PRECISION_PARSED_MAX {
        return PRECISION_TOO_LARGE_OUTPUT.to_owned();
    }
    if !number.is_finite() {
        return format_non_finite(number).to_owned();
    }
    // `x/text` keeps the upper bound in 16 bits and the lower bound in 8 bits. A negative upper
    // bound stands for no bound; the shortest digits that identify the number are then written.
    let digits_max = precision as u16 as i16;
    let digits_min = usize::from(precision as u8);
    let plain = match usize::try_from(digits_max) {
        Ok(digits_max) => format!("{:.digits_max$}", number.abs()),
        Err(_) => format_double_without_exponent(number.abs()),
    };
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let fraction = fraction.trim_end_matches('0');
    let mut text = String::from(if number < 0.0 { "-" } else { "" });
    for (index, digit) in whole.char_indices() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if !fraction.is_empty() || digits_min > 0 {
        text.push('.');
        text.push_str(fraction);
        text.extend(std::iter::repeat_n('0', digits_min.saturating_sub(fraction.len())));
    }
    text
}

/// Writes `%{width}e`: seven digits and an exponent in superscript, right-aligned.
pub(super) fn format_scientific(number: f64, width: u64) -> String {
    if width / 10 > PRECISION_PARSED_MAX {
        return PRECISION_TOO_LARGE_OUTPUT.to_owned();
    }
    let text = if number.is_finite() {
        format_superscript_exponent(number)
    } else {
        format_non_finite(number).to_owned()
    };
    // `x/text` keeps the width in 16 bits.
    let padding = usize::from(width as u16).saturating_sub(text.chars().count());
    " ".repeat(padding) + &text
}

fn format_superscript_exponent(number: f64) -> String {
    let plain = format!("{:.6e}", number.abs());
    let (mantissa, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
    let (minus, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ("⁻", exponent),
        None => ("", exponent),
    };
    let sign = if number < 0.0 { "-" } else { "" };
    let exponent: String = format!("{exponent:0>2}").chars().map(to_superscript).collect();
    format!("{sign}{mantissa}×10{minus}{exponent}")
}

fn to_superscript(digit: char) -> char {
    match digit {
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        other => other,
    }
}

fn format_non_finite(number: f64) -> &'static str {
    if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "∞"
    } else {
        "-∞"
    }
}
