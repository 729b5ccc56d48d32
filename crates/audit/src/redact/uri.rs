//! The target of a request without credentials.

use std::borrow::Cow;

/// Parts of the names of query parameters that carry credentials. A name that has one by chance is masked,
/// too: nothing that this server reads from a query has one.
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

/// Parameters whose values are written as names and values themselves, none of which is a credential.
const SELECTORS: [&str; 2] = ["labelSelector", "fieldSelector"];

/// How often a parameter is decoded. Something on the way here may have encoded it again.
const DECODINGS_MAX: usize = 3;

/// The target of a request without credentials: those of a query, and those before a host name.
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
            Some((name, _)) if !decode_repeatedly(name).contains('=') => {
                shown.push_str(name);
                shown.push_str("=redacted");
            }
            // The name has a value in it.
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
        Some(name) if has_word(&decode_repeatedly(name)) => true,
        Some(_) | None => has_sensitive_name(&decode_repeatedly(parameter)),
    }
}

/// Whether something in a decoded text is a name and a value, and the name is that of a credential.
fn has_sensitive_name(text: &str) -> bool {
    let mut names = text.split('=');
    // The text behind the last sign is no name.
    names.next_back();
    names.any(|before| {
        let name = before.rsplit(['&', ';', '?', '#']).next().unwrap_or_default();
        has_word(name)
    })
}

fn has_word(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SENSITIVE_PARAMETERS.iter().any(|word| name.contains(word))
}

/// A text as its reader would see it, if something encoded it more than once.
fn decode_repeatedly(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..DECODINGS_MAX {
        let next = percent_decoded(&text);
        if next == text {
            break;
        }
        text = next;
    }
    text
}

fn percent_decoded(text: &str) -> String {
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
