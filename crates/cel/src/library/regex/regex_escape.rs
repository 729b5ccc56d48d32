//! Escape sequences that stand for one character.

use super::regex_translator::RegexSyntaxError;

/// Reads an escape sequence that stands for one character, which may be a surrogate.
pub(super) fn read_regex_escape(rest: &str) -> Result<(u32, &str), RegexSyntaxError> {
    let mut chars = rest.chars();
    chars.next();
    let Some(c) = chars.next() else {
        return Err(RegexSyntaxError::new("trailing backslash at end of expression", ""));
    };
    let next_is_octal = chars.as_str().starts_with(|c: char| c.is_digit(8));
    let code = match c {
        '0' => Some(read_octal(0, &mut chars)),
        '1'..='7' if next_is_octal => Some(read_octal(u32::from(c) - u32::from('0'), &mut chars)),
        'x' => read_hexadecimal(&mut chars),
        'a' => Some(0x07),
        'f' => Some(0x0C),
        'n' => Some(0x0A),
        'r' => Some(0x0D),
        't' => Some(0x09),
        'v' => Some(0x0B),
        _ if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(u32::from(c)),
        _ => None,
    };
    match code {
        Some(code) => Ok((code, chars.as_str())),
        None => Err(RegexSyntaxError::new(
            "invalid escape sequence",
            text_before_suffix(rest, chars.as_str()),
        )),
    }
}

/// Reads up to two more octal digits.
fn read_octal(first: u32, chars: &mut std::str::Chars<'_>) -> u32 {
    let mut code = first;
    for _ in 0..2 {
        let Some(digit) = chars.clone().next().and_then(|c| c.to_digit(8)) else { break };
        chars.next();
        code = code * 8 + digit;
    }
    code
}

/// Reads two hexadecimal digits, or any number of them in braces. Consumes invalid characters too,
/// because the error message quotes them.
fn read_hexadecimal(chars: &mut std::str::Chars<'_>) -> Option<u32> {
    let first = chars.next()?;
    if first != '{' {
        let second = chars.next()?;
        return Some(first.to_digit(16)? * 16 + second.to_digit(16)?);
    }
    let mut code = None;
    loop {
        let c = chars.next()?;
        if c == '}' {
            return code;
        }
        let value = code.unwrap_or(0) * 16 + c.to_digit(16)?;
        if value > u32::from(char::MAX) {
            return None;
        }
        code = Some(value);
    }
}

/// The text of `start` before its suffix `end`.
pub(super) fn text_before_suffix<'p>(start: &'p str, end: &str) -> &'p str {
    start.get(..start.len().saturating_sub(end.len())).unwrap_or(start)
}
