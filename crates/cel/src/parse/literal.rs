//! Reads the values of literal tokens.

use std::sync::Arc;

use crate::ast::Literal;

use super::token::TokenKind;

/// The reason why a literal has no value, with cel-go's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum LiteralError {
    /// The number does not fit into `int`.
    #[error("invalid int literal")]
    Int,
    /// The number does not fit into `uint`.
    #[error("invalid uint literal")]
    Uint,
    /// The number is too large for `double`.
    #[error("invalid double literal")]
    Double,
    /// A bytes literal has an escape sequence of a code point.
    #[error("unable to unescape string")]
    CodePointEscapeInBytes,
    /// An escape sequence names a number that is not a code point.
    #[error("invalid unicode code point")]
    CodePoint,
}

/// Reads the value of a literal token. `negative` says whether a minus sign stands before it.
pub(super) fn parse_literal(
    kind: TokenKind,
    negative: bool,
    text: &str,
) -> Result<Literal, LiteralError> {
    match kind {
        TokenKind::Int => parse_int_literal(negative, text).ok_or(LiteralError::Int),
        TokenKind::Uint => parse_uint_literal(text).ok_or(LiteralError::Uint),
        TokenKind::Float => parse_double_literal(negative, text).ok_or(LiteralError::Double),
        TokenKind::String => {
            parse_string_literal(text).map(|value| Literal::String(Arc::from(value)))
        }
        TokenKind::Bytes => parse_bytes_literal(text).map(|value| Literal::Bytes(Arc::from(value))),
        TokenKind::True => Ok(Literal::Bool(true)),
        TokenKind::False => Ok(Literal::Bool(false)),
        _ => Ok(Literal::Null),
    }
}

fn parse_int_literal(negative: bool, text: &str) -> Option<Literal> {
    let (digits, radix) = split_radix_prefix(text);
    let magnitude = i128::from_str_radix(digits, radix).ok()?;
    let value = if negative { -magnitude } else { magnitude };
    i64::try_from(value).ok().map(Literal::Int)
}

fn parse_uint_literal(text: &str) -> Option<Literal> {
    let (digits, radix) = split_radix_prefix(text.trim_end_matches(['u', 'U']));
    u64::from_str_radix(digits, radix).ok().map(Literal::Uint)
}

fn split_radix_prefix(text: &str) -> (&str, u32) {
    match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    }
}

/// Reads a double. A number that is too large is invalid; a number that is too small becomes zero.
fn parse_double_literal(negative: bool, text: &str) -> Option<Literal> {
    let magnitude: f64 = text.parse().ok()?;
    if magnitude.is_infinite() {
        return None;
    }
    Some(Literal::Double(if negative { -magnitude } else { magnitude }))
}

/// A character or byte of a string literal, after unescaping.
enum LiteralChar {
    /// A plain character, or an escape of a code point such as `\u0041`.
    Char(char),
    /// `\x41` and `\101`: a code point in a string, a byte in bytes.
    Byte(u8),
}

fn parse_string_literal(text: &str) -> Result<String, LiteralError> {
    let (body, raw) = strip_literal_quotes(text);
    let body = normalize_line_ends(body);
    if raw || !body.contains('\\') {
        return Ok(body);
    }
    let mut value = String::with_capacity(body.len());
    let mut rest = body.chars();
    while let Some(piece) = next_literal_char(&mut rest)? {
        match piece {
            LiteralChar::Char(c) => value.push(c),
            LiteralChar::Byte(byte) => value.push(char::from(byte)),
        }
    }
    Ok(value)
}

fn parse_bytes_literal(text: &str) -> Result<Vec<u8>, LiteralError> {
    let (body, raw) = strip_literal_quotes(text.trim_start_matches(['b', 'B']));
    let body = normalize_line_ends(body);
    if raw || !body.contains('\\') {
        return Ok(body.into_bytes());
    }
    // Escapes of code points are invalid in bytes. This check comes first, because the number of
    // such an escape may not be a code point either.
    let mut value = Vec::with_capacity(body.len());
    let mut rest = body.chars();
    loop {
        if rest.as_str().starts_with("\\u") || rest.as_str().starts_with("\\U") {
            return Err(LiteralError::CodePointEscapeInBytes);
        }
        match next_literal_char(&mut rest)? {
            Some(LiteralChar::Char(c)) => {
                value.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Some(LiteralChar::Byte(byte)) => value.push(byte),
            None => return Ok(value),
        }
    }
}

/// The text between the quotes, and whether the literal is raw (without escape sequences).
fn strip_literal_quotes(text: &str) -> (&str, bool) {
    let quoted = text.trim_start_matches(['r', 'R']);
    let raw = quoted.len() < text.len();
    for quote in ["\"\"\"", "'''", "\"", "'"] {
        let inside = quoted.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        if let Some(inside) = inside {
            return (inside, raw);
        }
    }
    (quoted, raw)
}

fn normalize_line_ends(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Reads the next character or escape sequence. The lexer accepts only complete sequences.
fn next_literal_char(rest: &mut std::str::Chars<'_>) -> Result<Option<LiteralChar>, LiteralError> {
    let c = match rest.next() {
        None => return Ok(None),
        Some('\\') => rest.next().unwrap_or('\\'),
        Some(c) => return Ok(Some(LiteralChar::Char(c))),
    };
    let piece = match c {
        'a' => LiteralChar::Char('\x07'),
        'b' => LiteralChar::Char('\x08'),
        'f' => LiteralChar::Char('\x0c'),
        'n' => LiteralChar::Char('\n'),
        'r' => LiteralChar::Char('\r'),
        't' => LiteralChar::Char('\t'),
        'v' => LiteralChar::Char('\x0b'),
        'x' | 'X' => LiteralChar::Byte(read_digits(rest, 2, 16, 0) as u8),
        '0'..='3' => LiteralChar::Byte(read_digits(rest, 2, 8, c.to_digit(8).unwrap_or(0)) as u8),
        'u' => literal_char_from_code_point(read_digits(rest, 4, 16, 0))?,
        'U' => literal_char_from_code_point(read_digits(rest, 8, 16, 0))?,
        other => LiteralChar::Char(other),
    };
    Ok(Some(piece))
}

fn read_digits(rest: &mut std::str::Chars<'_>, n_digits: usize, radix: u32, first: u32) -> u32 {
    let digits = rest.take(n_digits).filter_map(|c| c.to_digit(radix));
    digits.fold(first, |value, digit| value.wrapping_mul(radix) + digit)
}

fn literal_char_from_code_point(value: u32) -> Result<LiteralChar, LiteralError> {
    char::from_u32(value).map(LiteralChar::Char).ok_or(LiteralError::CodePoint)
}
