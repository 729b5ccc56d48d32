//! Parses numbers like Go's `strconv`, and converts doubles to integers.

use std::num::IntErrorKind;

/// The reason why a text is not an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParseIntegerError {
    /// The text is not a number.
    Syntax,
    /// The number does not fit into the type.
    Range,
}

/// Parses decimal digits after an optional sign.
pub(crate) fn parse_int(text: &str) -> Result<i64, ParseIntegerError> {
    let (negative, digits) = split_sign(text);
    let magnitude = parse_uint(digits)?;
    let number = if negative { -i128::from(magnitude) } else { i128::from(magnitude) };
    i64::try_from(number).map_err(|_| ParseIntegerError::Range)
}

/// Splits off the sign. Returns whether it is a minus sign, and the number without the sign.
fn split_sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Parses decimal digits without a sign.
pub(super) fn parse_uint(text: &str) -> Result<u64, ParseIntegerError> {
    if text.starts_with('+') {
        return Err(ParseIntegerError::Syntax);
    }
    text.parse::<u64>().map_err(|error| match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => ParseIntegerError::Range,
        _ => ParseIntegerError::Syntax,
    })
}

/// Rounds a double towards zero. Returns `None` for numbers that are not strictly between the limits of `int`, so
/// the smallest integer cannot be converted from a double.
pub(crate) fn double_to_int(number: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (-LIMIT < number && number < LIMIT).then_some(number as i64)
}

/// Rounds a double towards zero. Returns `None` for negative numbers, even if they would round to 0.
pub(super) fn double_to_uint(number: f64) -> Option<u64> {
    const LIMIT: f64 = 18_446_744_073_709_551_616.0;
    (0.0..LIMIT).contains(&number).then_some(number as u64)
}

/// Parses a decimal or hexadecimal floating point number, an infinity or `NaN`; `None` for any
/// other text and for numbers that are too large.
///
/// Hexadecimal numbers must have a binary exponent, as in `0x1.8p3`. Underscores may separate
/// digits.
pub(super) fn parse_double(text: &str) -> Option<f64> {
    let (negative, unsigned) = split_sign(text);
    let magnitude =
        if unsigned.eq_ignore_ascii_case("inf") || unsigned.eq_ignore_ascii_case("infinity") {
            f64::INFINITY
        } else if text.eq_ignore_ascii_case("nan") {
            f64::NAN
        } else {
            parse_finite_double(unsigned)?
        };
    Some(if negative { -magnitude } else { magnitude })
}

/// The parts of a number without a sign.
struct FloatParts<'t> {
    whole_digits: &'t str,
    fraction_digits: &'t str,
    exponent: Option<&'t str>,
}

fn parse_finite_double(text: &str) -> Option<f64> {
    let hex_digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let hex_digits = hex_digits.filter(|digits| !digits.is_empty());
    let is_hexadecimal = hex_digits.is_some();
    let digits = hex_digits.unwrap_or(text);
    if digits.contains('_') && !underscores_separate_digits(digits, is_hexadecimal) {
        return None;
    }
    let plain = digits.replace('_', "");
    if is_hexadecimal {
        let parts = split_float_parts(&plain, ['p', 'P'], |digit| digit.is_ascii_hexdigit())?;
        parse_hex_float(&parts)
    } else {
        split_float_parts(&plain, ['e', 'E'], |digit| digit.is_ascii_digit())?;
        plain.parse().ok().filter(|number: &f64| number.is_finite())
    }
}

/// Splits a number into its parts, each of which is checked to be well-formed.
fn split_float_parts(
    text: &str,
    marks: [char; 2],
    is_digit: fn(&u8) -> bool,
) -> Option<FloatParts<'_>> {
    let (mantissa, exponent) = match text.split_once(marks) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digits = whole.len() + fraction.len() > 0;
    let all_digits = whole.bytes().chain(fraction.bytes()).all(|byte| is_digit(&byte));
    let exponent_is_sound = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    (has_digits && all_digits && exponent_is_sound).then_some(FloatParts {
        whole_digits: whole,
        fraction_digits: fraction,
        exponent,
    })
}

/// Reports whether each underscore stands between two digits, or between the prefix `0x` and a digit. The text
/// does not include the prefix.
fn underscores_separate_digits(text: &str, hexadecimal: bool) -> bool {
    let mut after_digit = hexadecimal;
    let mut after_underscore = false;
    for byte in text.bytes() {
        let is_digit = byte.is_ascii_digit() || (hexadecimal && byte.is_ascii_hexdigit());
        if (byte == b'_' && !after_digit) || (!is_digit && after_underscore) {
            return false;
        }
        after_digit = is_digit;
        after_underscore = byte == b'_';
    }
    !after_underscore
}

/// Returns the nearest double. If two doubles are equally near, it is the even one.
fn parse_hex_float(literal: &FloatParts<'_>) -> Option<f64> {
    // A number with an exponent beyond this bound is infinite or zero. A text cannot have enough
    // digits to compensate for such an exponent.
    const EXPONENT_BOUND: i64 = 1 << 48;
    let sign_and_digits = literal.exponent?;
    let mut exponent = match parse_int(sign_and_digits) {
        Ok(exponent) => exponent.clamp(-EXPONENT_BOUND, EXPONENT_BOUND),
        Err(_) if sign_and_digits.starts_with('-') => -EXPONENT_BOUND,
        Err(_) => EXPONENT_BOUND,
    };
    let mut mantissa: u64 = 0;
    let mut inexact = false;
    for (digits, in_fraction) in [(literal.whole_digits, false), (literal.fraction_digits, true)] {
        for digit in digits.chars().filter_map(|digit| digit.to_digit(16)) {
            if mantissa >> 60 == 0 {
                mantissa = (mantissa << 4) | u64::from(digit);
                exponent -= if in_fraction { 4 } else { 0 };
            } else {
                inexact |= digit != 0;
                exponent += if in_fraction { 0 } else { 4 };
            }
        }
    }
    scale_by_power_of_two(mantissa, inexact, exponent)
}

/// Returns `mantissa` × 2^`exponent`, rounded. `inexact` says that the exact number is slightly
/// larger than the mantissa. `None` if the result is too large.
fn scale_by_power_of_two(mantissa: u64, inexact: bool, exponent: i64) -> Option<f64> {
    const EXPONENT_MAX: i64 = 1_023;
    const LAST_BIT_MIN: i64 = -1_074;
    if mantissa == 0 {
        return Some(0.0);
    }
    let leading_bit = exponent + i64::from(mantissa.ilog2());
    if leading_bit > EXPONENT_MAX {
        return None;
    }
    let last_bit = (leading_bit - 52).max(LAST_BIT_MIN);
    let dropped_bits = last_bit - exponent;
    let wide = u128::from(mantissa);
    let rounded = match dropped_bits {
        ..=0 => wide << dropped_bits.unsigned_abs(),
        1..=64 => {
            let kept = wide >> dropped_bits;
            let half = 1 << (dropped_bits - 1);
            let rest = wide - (kept << dropped_bits);
            let up = rest > half || (rest == half && (inexact || kept % 2 == 1));
            kept + u128::from(up)
        }
        _ => 0,
    };
    let number = rounded as f64 * power_of_two(last_bit);
    number.is_finite().then_some(number)
}

/// Returns 2^`exponent` for the exponents of doubles, including subnormal ones.
fn power_of_two(exponent: i64) -> f64 {
    if exponent >= -1_022 {
        f64::from_bits(((exponent + 1_023) as u64) << 52)
    } else {
        f64::from_bits(1 << (exponent + 1_074))
    }
}
