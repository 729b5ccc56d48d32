//! Redacts credentials in the target of a request.

use std::borrow::Cow;

/// Parts of the names of query parameters that carry credentials. A name that contains one by chance is masked,
/// too; no parameter of this server does.
const SENSITIVE_PARAMETERS: [&str; 13] = [
    "token",
    "secret",
    "passw",
    "pwd",
    "bearer",
    "auth",
    "jwt",
    "sig",
    "key",
    "code",
    "session",
    "credential",
    "cookie",
];

/// Parameters whose values contain `=` and never credentials.
const SELECTORS: [&str; 2] = ["labelSelector", "fieldSelector"];

/// Upper bound on how often a parameter is decoded. A proxy may have encoded it again.
const DECODINGS_MAX: usize = 3;

/// Redacts credentials in the query of a request target, and removes scheme, credentials and host before the path.
pub fn redact_uri(uri: &str) -> Cow<'_, str> {
    let target = match uri.split_once("://") {
        Some((scheme, rest)) if !scheme.contains(['/', '?']) => {
            rest.find(['/', '?']).map_or("/", |at| &rest[at..])
        }
        Some(_) | None => uri,
    };
    let Some((path, query)) = target.split_once('?') else {
        return Cow::Borrowed(target);
    };
    if !query.split(['&', ';']).any(is_sensitive_parameter) {
        return Cow::Borrowed(target);
    }
    let mut shown = format!("{path}?");
    for part in query.split_inclusive(['&', ';']) {
        let (parameter, separator) = match part.char_indices().next_back() {
            Some((at, '&' | ';')) => part.split_at(at),
            Some(_) | None => (part, ""),
        };
        match parameter.split_once('=') {
            _ if !is_sensitive_parameter(parameter) => shown.push_str(parameter),
            Some((name, _)) if !percent_decode_repeatedly(name).contains('=') => {
                shown.push_str(name);
                shown.push_str("=redacted");
            }
            // The encoded name contains a value.
            Some(_) | None => shown.push_str("redacted"),
        }
        shown.push_str(separator);
    }
    Cow::Owned(shown)
}

fn is_sensitive_parameter(parameter: &str) -> bool {
    let name = parameter.split_once('=').map(|(name, _)| name);
    match name {
        Some(name) if SELECTORS.contains(&name) => false,
        Some(name) if contains_sensitive_word(&percent_decode_repeatedly(name)) => true,
        Some(_) | None => assigns_sensitive_name(&percent_decode_repeatedly(parameter)),
    }
}

/// Reports whether a decoded text contains `name=value` with the name of a credential.
fn assigns_sensitive_name(text: &str) -> bool {
    let mut names = text.split('=');
    // The text after the last `=` is not a name.
    names.next_back();
    names.any(|before| {
        let name = before.rsplit(['&', ';', '?', '#']).next().unwrap_or_default();
        contains_sensitive_word(name)
    })
}

fn contains_sensitive_word(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SENSITIVE_PARAMETERS.iter().any(|word| name.contains(word))
}

/// Decodes a text that may have been percent-encoded more than once.
fn percent_decode_repeatedly(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..DECODINGS_MAX {
        let next = percent_decode(&text);
        if next == text {
            break;
        }
        text = next;
    }
    text
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |byte: &u8| char::from(*byte).to_digit(16);
        match rest {
            [b'%', high, low, tail @ ..] if hex(high).is_some() && hex(low).is_some() => {
                bytes.push((hex(high).unwrap_or(0) * 16 + hex(low).unwrap_or(0)) as u8);
                rest = tail;
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
