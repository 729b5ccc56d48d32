//! Query strings of URLs, as Go's `url.ParseQuery` reads them.

use std::borrow::Cow;

use super::percent_escape::{UrlPart, url_unescape};

/// The maximum number of pairs a query may have. A query with more pairs counts as empty, which bounds the memory that
/// a query takes. Go has the same limit.
pub const QUERY_PAIRS_MAX: usize = 10_000;

/// Decodes a query string into its pairs, in the order of the text.
///
/// Decoding never fails. As in Kubernetes, a pair with a malformed escape or a semicolon is left out. A key
/// without `=` has an empty value. Bytes that are not UTF-8 after decoding are replaced by U+FFFD.
///
/// ```
/// let pairs = go_compat::parse_query("a=1&b=%zz&c&a=x+y");
/// assert_eq!(pairs, [("a".into(), "1".into()), ("c".into(), "".into()), ("a".into(), "x y".into())]);
/// ```
pub fn parse_query(raw: &str) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
    if raw.bytes().filter(|&byte| byte == b'&').count() >= QUERY_PAIRS_MAX {
        return Vec::new();
    }
    raw.split('&')
        .filter(|pair| !pair.is_empty() && !pair.contains(';'))
        .filter_map(decode_query_pair)
        .collect()
}

fn decode_query_pair(pair: &str) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    Some((decode_query_component(key)?, decode_query_component(value)?))
}

fn decode_query_component(text: &str) -> Option<Cow<'_, str>> {
    match url_unescape(text, UrlPart::QueryComponent).ok()? {
        Cow::Borrowed(_) => Some(Cow::Borrowed(text)),
        Cow::Owned(bytes) => Some(Cow::Owned(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(broken) => to_utf8_lossy(broken.as_bytes()),
        })),
    }
}

/// Replaces each broken byte by one U+FFFD, as Go does when it writes such a string.
fn to_utf8_lossy(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    out
}
