//! Percent escapes of the parts of a URL, as Go's `net/url` reads and writes them.

use std::borrow::Cow;
use std::fmt;

use crate::quote::{quote, quote_bytes};

/// The part of a URL that a text belongs to. Each part has its own set of bytes that need an
/// escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlPart {
    /// A whole path; slashes stay.
    Path,
    /// One segment of a path; slashes are escaped.
    PathSegment,
    /// The host and the port.
    Host,
    /// The zone of an IPv6 host.
    Zone,
    /// A user name or a password.
    UserInfo,
    /// A key or a value of a query, where a plus sign is a space.
    QueryComponent,
    /// The fragment after the `#`.
    Fragment,
}

/// The reason why a text could not be unescaped. Displays as Go's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EscapeError {
    /// A percent sign without two hexadecimal digits, or an escape that a host may not contain.
    Escape(Vec<u8>),
    /// A character that a host may not contain.
    HostCharacter(char),
}

impl fmt::Display for EscapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Escape(escape) => write!(f, "invalid URL escape {}", quote_bytes(escape)),
            Self::HostCharacter(c) => {
                write!(f, "invalid character {} in host name", quote(c.encode_utf8(&mut [0; 4])))
            }
        }
    }
}

impl std::error::Error for EscapeError {}

/// Replaces the bytes that may not stand in `part` by percent escapes.
///
/// ```
/// use go_compat::{UrlPart, url_escape};
/// assert_eq!(url_escape(b"a/b c", UrlPart::Path), "a/b%20c");
/// assert_eq!(url_escape(b"a/b c", UrlPart::QueryComponent), "a%2Fb+c");
/// ```
pub fn url_escape(bytes: &[u8], part: UrlPart) -> String {
    let digit = |value: u8| char::from(if value < 10 { b'0' + value } else { b'A' - 10 + value });
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        if is_written_unescaped(byte, part) {
            out.push(char::from(byte));
        } else if byte == b' ' && part == UrlPart::QueryComponent {
            out.push('+');
        } else {
            out.extend(['%', digit(byte >> 4), digit(byte & 0xf)]);
        }
    }
    out
}

/// Replaces percent escapes by the bytes they stand for.
///
/// # Errors
/// A percent sign without two hexadecimal digits; in hosts and zones also characters and escapes
/// that may not stand there.
///
/// ```
/// use go_compat::{UrlPart, url_unescape};
/// assert_eq!(url_unescape("a%2Fb+c", UrlPart::Path).unwrap(), &b"a/b+c"[..]);
/// assert_eq!(
///     url_unescape("100%", UrlPart::Path).unwrap_err().to_string(),
///     r#"invalid URL escape "%""#,
/// );
/// ```
pub fn url_unescape(text: &str, part: UrlPart) -> Result<Cow<'_, [u8]>, EscapeError> {
    let bytes = text.as_bytes();
    if decodes_to_itself(bytes, part) {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [byte, after @ ..] = rest {
        rest = after;
        match *byte {
            b'%' => {
                let (escaped, after) = decode_percent_escape(after, part)?;
                out.push(escaped);
                rest = after;
            }
            b'+' if part == UrlPart::QueryComponent => out.push(b' '),
            byte => {
                if is_host_part(part) && byte.is_ascii() && !is_written_unescaped(byte, part) {
                    return Err(EscapeError::HostCharacter(char::from(byte)));
                }
                out.push(byte);
            }
        }
    }
    Ok(Cow::Owned(out))
}

/// Returns the original escaped text if it is an acceptable escaping of `decoded`, else the default escaping.
///
/// INVARIANT: `original` is empty or decodes to `decoded`.
pub(super) fn original_or_default_escaping<'a>(
    original: &'a str,
    decoded: &[u8],
    part: UrlPart,
) -> Cow<'a, str> {
    if !original.is_empty() && original.bytes().all(|byte| is_acceptable_as_written(byte, part)) {
        Cow::Borrowed(original)
    } else {
        Cow::Owned(url_escape(decoded, part))
    }
}

/// Decodes a percent escape. `text` begins after the percent sign. Also returns the text after the escape.
fn decode_percent_escape(text: &[u8], part: UrlPart) -> Result<(u8, &[u8]), EscapeError> {
    let refused = || EscapeError::Escape(b"%".iter().chain(text.iter().take(2)).copied().collect());
    let &[high, low, ref rest @ ..] = text else {
        return Err(refused());
    };
    let is_percent = (high, low) == (b'2', b'5');
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let (Some(high), Some(low)) = (digit(high), digit(low)) else {
        return Err(refused());
    };
    let byte = high << 4 | low;
    let is_allowed = match part {
        // Hosts escape only non-ASCII bytes, and the percent sign that introduces a zone.
        UrlPart::Host => !byte.is_ascii() || is_percent,
        // A zone must not use escapes for bytes that a host may not contain, except the space, which
        // some systems use.
        UrlPart::Zone => is_percent || byte == b' ' || is_written_unescaped(byte, UrlPart::Host),
        UrlPart::Path
        | UrlPart::PathSegment
        | UrlPart::UserInfo
        | UrlPart::QueryComponent
        | UrlPart::Fragment => true,
    };
    if is_allowed { Ok((byte, rest)) } else { Err(refused()) }
}

fn is_host_part(part: UrlPart) -> bool {
    matches!(part, UrlPart::Host | UrlPart::Zone)
}

/// Reports whether a text decodes to itself, which most texts do.
fn decodes_to_itself(bytes: &[u8], part: UrlPart) -> bool {
    if is_host_part(part) {
        return bytes.iter().all(|&byte| !byte.is_ascii() || is_written_unescaped(byte, part));
    }
    let is_query = part == UrlPart::QueryComponent;
    bytes.iter().all(|&byte| byte != b'%' && !(is_query && byte == b'+'))
}

/// Reports whether `byte` is written as itself in `part`.
pub(super) fn is_written_unescaped(byte: u8, part: UrlPart) -> bool {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => true,
        b'!' | b'(' | b')' | b'*' => is_host_part(part) || part == UrlPart::Fragment,
        b'\'' | b'[' | b']' | b'<' | b'>' | b'"' => is_host_part(part),
        b'$' | b'&' | b'+' | b'=' => part != UrlPart::QueryComponent,
        b':' => !matches!(part, UrlPart::UserInfo | UrlPart::QueryComponent),
        b',' | b';' => !matches!(part, UrlPart::PathSegment | UrlPart::QueryComponent),
        b'/' => matches!(part, UrlPart::Path | UrlPart::Fragment),
        b'@' => matches!(part, UrlPart::Path | UrlPart::PathSegment | UrlPart::Fragment),
        b'?' => part == UrlPart::Fragment,
        _ => false,
    }
}

/// Reports whether `byte` may occur in an escaped text that is kept as written. The set is larger than that of
/// the bytes that the default escaping does not escape.
fn is_acceptable_as_written(byte: u8, part: UrlPart) -> bool {
    matches!(
        byte,
        b'!' | b'$'
            | b'&'
            | b'\''
            | b'('
            | b')'
            | b'*'
            | b'+'
            | b','
            | b';'
            | b'='
            | b':'
            | b'@'
            | b'['
            | b']'
            | b'%'
    ) || is_written_unescaped(byte, part)
}
