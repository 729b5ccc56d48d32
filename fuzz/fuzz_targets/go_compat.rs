//! Text forms of Go: a written value can be read again, and reading never panics.

#![no_main]

use go_compat::{
    QUERY_PAIRS_MAX, Url, UrlError, UrlPart, format_duration, parse_duration, parse_ip,
    parse_query, quote, quote_bytes, url_escape, url_unescape,
};
use libfuzzer_sys::fuzz_target;

const PARTS: [UrlPart; 7] = [
    UrlPart::Path,
    UrlPart::PathSegment,
    UrlPart::Host,
    UrlPart::Zone,
    UrlPart::UserInfo,
    UrlPart::QueryComponent,
    UrlPart::Fragment,
];

fuzz_target!(|bytes: &[u8]| {
    check_quotes(bytes);
    check_escapes(bytes);
    let _ = parse_ip(bytes);
    if let Some(nanos) = bytes.first_chunk() {
        let nanos = i64::from_le_bytes(*nanos);
        assert_eq!(parse_duration(&format_duration(nanos)), Ok(nanos));
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(nanos) = parse_duration(text) {
        assert_eq!(parse_duration(&format_duration(nanos)), Ok(nanos));
    }
    assert!(parse_query(text).len() <= QUERY_PAIRS_MAX);
    for parse in [Url::parse, Url::parse_request_uri] {
        match parse(text) {
            Ok(url) => check_url(&url, parse),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});

fn check_quotes(bytes: &[u8]) {
    let quoted = quote_bytes(bytes);
    assert_eq!(unquoted(&quoted).as_deref(), Some(bytes));
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert_eq!(quote(text), quoted);
    }
}

/// The bytes that a Go literal stands for.
fn unquoted(literal: &str) -> Option<Vec<u8>> {
    let mut chars = literal.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut bytes = Vec::new();
    let number = |chars: &mut std::str::Chars<'_>, n_digits: usize| {
        (0..n_digits).try_fold(0, |value, _| Some(value * 16 + chars.next()?.to_digit(16)?))
    };
    while let Some(c) = chars.next() {
        assert!(!c.is_control(), "{literal}");
        let c = match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('a')) => '\x07',
            ('\\', Some('b')) => '\x08',
            ('\\', Some('f')) => '\x0c',
            ('\\', Some('n')) => '\n',
            ('\\', Some('r')) => '\r',
            ('\\', Some('t')) => '\t',
            ('\\', Some('v')) => '\x0b',
            ('\\', Some('x')) => {
                bytes.push(u8::try_from(number(&mut chars, 2)?).ok()?);
                continue;
            }
            ('\\', Some('u')) => char::from_u32(number(&mut chars, 4)?)?,
            ('\\', Some('U')) => char::from_u32(number(&mut chars, 8)?)?,
            ('\\', escaped) => escaped.filter(|c| matches!(c, '"' | '\\'))?,
            (c, _) => c,
        };
        bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Some(bytes)
}

fn check_escapes(bytes: &[u8]) {
    for part in PARTS {
        let escaped = url_escape(bytes, part);
        assert!(escaped.is_ascii());
        // Hosts may not contain everything that can be escaped.
        match url_unescape(&escaped, part) {
            Ok(unescaped) => assert_eq!(unescaped, bytes, "{part:?}"),
            Err(error) => assert!(matches!(part, UrlPart::Host | UrlPart::Zone), "{error}"),
        }
    }
}

/// The text of a URL reads as a URL of the same text and the same parts. Go cannot read all that
/// it writes.
fn check_url(url: &Url, parse: fn(&str) -> Result<Url, UrlError>) {
    let text = url.to_string();
    let _ = (url.hostname(), url.port(), url.query());
    let Ok(again) = parse(&text) else { return };
    assert_eq!(again.to_string(), text);
    assert_eq!(again.raw_query(), url.raw_query(), "{text}");
    assert_eq!(again.fragment(), url.fragment(), "{text}");
}
