//! Gives scalars their types, by YAML 1.1's rules as Kubernetes' reader applies them.

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, PAD};

use super::parser::{RawScalar, YAML_TAG_PREFIX};
use crate::node::SpannedText;

/// Base64 as Go reads it: padded, but bits that the padding cuts off may be set.
const LENIENT_BASE64: GeneralPurpose =
    GeneralPurpose::new(&base64::alphabet::STANDARD, PAD.with_decode_allow_trailing_bits(true));

/// A scalar with its type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ResolvedScalar {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer that is too large for a signed 64-bit integer.
    Uint(u64),
    Float(f64),
    Text(SpannedText),
}

/// The tag of a scalar does not agree with its text.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum TagError {
    #[error("cannot decode !!{text_tag} `{text}` as a !!{tag}")]
    WrongType { text_tag: &'static str, text: String, tag: String },
    #[error("!!binary value contains invalid base64 data")]
    InvalidBase64,
}

/// Resolves a scalar.
///
/// 1. Quoted and block scalars without a tag are text.
/// 2. A core tag requires a type: `!!str` accepts any text, `!!binary` is decoded, the others must
///    agree with the type of the plain text, except that an integer is accepted for `!!float`.
/// 3. Any other tag makes the scalar text.
///
/// Kubernetes treats timestamps as text; `!!timestamp` is not checked.
///
/// # Errors
///
/// The tag does not agree with the text.
pub(super) fn resolve_scalar(scalar: &RawScalar) -> Result<ResolvedScalar, TagError> {
    let text = scalar.scalar_text.as_str();
    let tag = match scalar.tag.as_deref() {
        None if scalar.is_type_implicit => return Ok(resolve_plain_scalar(&scalar.scalar_text)),
        None => return Ok(ResolvedScalar::Text(scalar.scalar_text.clone())),
        Some(tag) => tag.strip_prefix(YAML_TAG_PREFIX).unwrap_or(tag),
    };
    let resolved = match tag {
        "bool" | "int" | "float" | "null" => resolve_plain_scalar(&scalar.scalar_text),
        "binary" => return decode_binary(&scalar.scalar_text),
        _ => return Ok(ResolvedScalar::Text(scalar.scalar_text.clone())),
    };
    match (tag, resolved) {
        ("float", ResolvedScalar::Int(int)) => Ok(ResolvedScalar::Float(int as f64)),
        (tag, resolved) if tag == tag_for_type(&resolved) => Ok(resolved),
        (tag, resolved) => Err(TagError::WrongType {
            text_tag: tag_for_type(&resolved),
            text: text.to_owned(),
            tag: tag.to_owned(),
        }),
    }
}

fn tag_for_type(resolved: &ResolvedScalar) -> &'static str {
    match resolved {
        ResolvedScalar::Null => "null",
        ResolvedScalar::Bool(_) => "bool",
        ResolvedScalar::Int(_) | ResolvedScalar::Uint(_) => "int",
        ResolvedScalar::Float(_) => "float",
        ResolvedScalar::Text(_) => "str",
    }
}

fn resolve_plain_scalar(scalar: &SpannedText) -> ResolvedScalar {
    let text = scalar.as_str();
    match text {
        "" | "~" | "null" | "Null" | "NULL" => ResolvedScalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            ResolvedScalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            ResolvedScalar::Bool(false)
        }
        ".nan" | ".NaN" | ".NAN" => ResolvedScalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            ResolvedScalar::Float(f64::INFINITY)
        }
        "-.inf" | "-.Inf" | "-.INF" => ResolvedScalar::Float(f64::NEG_INFINITY),
        _ => resolve_number(text).unwrap_or_else(|| ResolvedScalar::Text(scalar.clone())),
    }
}

fn resolve_number(text: &str) -> Option<ResolvedScalar> {
    match text.as_bytes().first()? {
        b'.' => parse_float(&remove_digit_separators(text)?).map(ResolvedScalar::Float),
        b'+' | b'-' | b'0'..=b'9' => {
            let plain = text.replace('_', "");
            parse_integer(&plain).or_else(|| parse_float(&plain).map(ResolvedScalar::Float))
        }
        _ => None,
    }
}

/// Removes underscores, each of which must be between two digits.
fn remove_digit_separators(text: &str) -> Option<String> {
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let (mut before, mut after) = (None, text.chars());
    while let Some(c) = after.next() {
        if c == '_' && !(is_digit(before) && is_digit(after.clone().next())) {
            return None;
        }
        before = Some(c);
    }
    Some(text.replace('_', ""))
}

/// Reads an integer in base 10, or in base 2, 8 or 16 after `0b`, `0o` or a bare `0`, and `0x`.
fn parse_integer(text: &str) -> Option<ResolvedScalar> {
    let (is_negative, magnitude) = match text.strip_prefix('-') {
        Some(magnitude) => (true, magnitude),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let after_prefix = |prefixes: [&str; 2]| {
        let rest = prefixes.iter().find_map(|prefix| magnitude.strip_prefix(prefix));
        rest.filter(|rest| !rest.is_empty())
    };
    let (base, digits) = if let Some(digits) = after_prefix(["0x", "0X"]) {
        (16, digits)
    } else if let Some(digits) = after_prefix(["0o", "0O"]) {
        (8, digits)
    } else if let Some(digits) = after_prefix(["0b", "0B"]) {
        (2, digits)
    } else if let Some(digits) = magnitude.strip_prefix('0').filter(|rest| !rest.is_empty()) {
        (8, digits)
    } else {
        (10, magnitude)
    };
    if digits.bytes().all(|digit| char::from(digit).is_digit(base)) {
        let magnitude = u64::from_str_radix(digits, base).ok()?;
        return match (i64::try_from(magnitude), is_negative) {
            (Ok(int), false) => Some(ResolvedScalar::Int(int)),
            (_, true) => 0i64.checked_sub_unsigned(magnitude).map(ResolvedScalar::Int),
            // Only a number without a sign may use all 64 bits.
            (Err(_), false) if !text.starts_with('+') => Some(ResolvedScalar::Uint(magnitude)),
            (Err(_), false) => None,
        };
    }
    // Kubernetes' reader by accident also accepts a sign after a lower-case `0b`.
    let binary = text.strip_prefix("0b")?;
    i64::from_str_radix(binary, 2).ok().map(ResolvedScalar::Int)
}

/// Parses a decimal float, such as `1`, `.5`, `1.` or `1e3`. A number that overflows is text.
fn parse_float(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_float_char = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    if !digits.chars().all(is_float_char) || digits.starts_with(['e', 'E', '+', '-']) {
        return None;
    }
    text.parse().ok().filter(|float: &f64| float.is_finite())
}

fn decode_binary(text: &SpannedText) -> Result<ResolvedScalar, TagError> {
    let encoded: String = text.as_str().chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let bytes = LENIENT_BASE64.decode(encoded).map_err(|_| TagError::InvalidBase64)?;
    let at = text.to_file_offset(0).unwrap_or_default();
    let mut decoded = SpannedText::default();
    for c in String::from_utf8_lossy(&bytes).chars() {
        decoded.push(c, at);
    }
    Ok(ResolvedScalar::Text(decoded))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> SpannedText {
        let mut text = SpannedText::default();
        for (at, c) in value.char_indices() {
            text.push(c, at);
        }
        text
    }

    fn plain(value: &str) -> ResolvedScalar {
        resolve_plain_scalar(&text(value))
    }

    #[test]
    fn types_of_plain_scalars() {
        for value in ["yes", "Yes", "ON", "y", "True"] {
            assert_eq!(plain(value), ResolvedScalar::Bool(true), "{value}");
        }
        for value in ["no", "Off", "N", "FALSE"] {
            assert_eq!(plain(value), ResolvedScalar::Bool(false), "{value}");
        }
        for value in
            ["yES", "tRUE", "nuLL", "oN", "+", "-", "0x", "0o", "1e", "1e999", ".", "._5", ".5_"]
        {
            assert_eq!(plain(value), ResolvedScalar::Text(text(value)), "{value}");
        }
        for (value, int) in [
            ("0777", 511),
            ("0o17", 15),
            ("0x_1F", 31),
            ("-0b11", -3),
            ("0b-11", -3),
            ("1_000", 1000),
            ("+7", 7),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(plain(value), ResolvedScalar::Int(int), "{value}");
        }
        assert_eq!(plain("18446744073709551615"), ResolvedScalar::Uint(u64::MAX));
        for (value, float) in
            [("08", 8.0), ("1.", 1.0), (".5", 0.5), (".2_5", 0.25), ("-1_0e2", -1000.0)]
        {
            assert_eq!(plain(value), ResolvedScalar::Float(float), "{value}");
        }
        assert_eq!(plain("18446744073709551616"), ResolvedScalar::Float(18446744073709551616.0));
        // Durations and dates start like numbers and are text.
        for value in ["5s", "1h0m", "2001-01-01", "1.2.3", "0xZZ", "1e5s"] {
            assert_eq!(plain(value), ResolvedScalar::Text(text(value)), "{value}");
        }
    }

    #[test]
    fn types_of_tagged_scalars() {
        let tagged = |tag: &str, value: &str| {
            let tag = Some(format!("{YAML_TAG_PREFIX}{tag}"));
            resolve_scalar(&RawScalar { scalar_text: text(value), tag, is_type_implicit: false })
        };
        assert_eq!(tagged("str", "5"), Ok(ResolvedScalar::Text(text("5"))));
        assert_eq!(tagged("float", "5"), Ok(ResolvedScalar::Float(5.0)));
        let error = tagged("int", "x").unwrap_err();
        assert_eq!(error.to_string(), "cannot decode !!str `x` as a !!int");
        assert_eq!(tagged("bool", "no"), Ok(ResolvedScalar::Bool(false)));
        assert!(
            matches!(tagged("binary", "cmJh\nYw=="), Ok(ResolvedScalar::Text(text)) if text.as_str() == "rbac")
        );
        assert!(tagged("binary", "?").is_err());
    }
}
