//! The syntaxes of names, and what is said of a text that does not follow one.
//!
//! Texts are bytes here, since a prefix may be cut in the middle of a character.

use std::borrow::Cow;

const LABEL_BYTES_MAX: usize = 63;
const SUBDOMAIN_BYTES_MAX: usize = 253;

const DNS_1035_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
     alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', \
     regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const DNS_1123_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
     validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DNS_1123_SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
     and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
     validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_KEY: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
     alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
     validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
     and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or \
     '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// A name that more is going to be appended to, as the name that is checked in its stead: a dash at
/// the end, and the byte before it, become a letter.
pub(super) fn as_prefix(name: &[u8]) -> Cow<'_, [u8]> {
    match name {
        [head @ .., _, b'-'] => Cow::Owned([head, b"a"].concat()),
        _ => Cow::Borrowed(name),
    }
}

pub(super) fn dns_1035_label(name: &[u8]) -> Vec<String> {
    let mut faults = too_long(name, LABEL_BYTES_MAX, "characters");
    if !(is_dns_label(name) && name.first().is_some_and(u8::is_ascii_lowercase)) {
        faults.push(DNS_1035_LABEL.to_owned());
    }
    faults
}

pub(super) fn dns_1123_label(name: &[u8]) -> Vec<String> {
    let mut faults = too_long(name, LABEL_BYTES_MAX, "characters");
    if !is_dns_label(name) {
        let fault = if is_subdomain(name) { "must not contain dots" } else { DNS_1123_LABEL };
        faults.push(fault.to_owned());
    }
    faults
}

pub(super) fn dns_1123_subdomain(name: &[u8]) -> Vec<String> {
    subdomain(name, "characters")
}

pub(super) fn label_value(value: &[u8]) -> Vec<String> {
    let mut faults = too_long(value, LABEL_BYTES_MAX, "bytes");
    if !(value.is_empty() || is_label_name(value)) {
        faults.push(LABEL_VALUE.to_owned());
    }
    faults
}

/// A name, or a subdomain, a slash and a name.
pub(super) fn qualified_name(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a valid label key {LABEL_KEY} with an optional DNS subdomain prefix and '/' \
                 (e.g. 'example.com/MyName')"
            )];
        }
        Some(("", name)) => {
            faults.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            let of_prefix = subdomain(prefix.as_bytes(), "bytes");
            faults.extend(of_prefix.into_iter().map(|fault| format!("prefix part {fault}")));
            name
        }
    };
    let name = name.as_bytes();
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    }
    let of_length = too_long(name, LABEL_BYTES_MAX, "bytes");
    faults.extend(of_length.into_iter().map(|fault| format!("name part {fault}")));
    if !is_label_name(name) {
        faults.push(format!("name part {LABEL_KEY}"));
    }
    faults
}

/// `unit` is what the message calls bytes: Kubernetes has two versions of it.
fn subdomain(name: &[u8], unit: &str) -> Vec<String> {
    let mut faults = too_long(name, SUBDOMAIN_BYTES_MAX, unit);
    if !is_subdomain(name) {
        faults.push(DNS_1123_SUBDOMAIN.to_owned());
    }
    faults
}

fn too_long(name: &[u8], bytes_max: usize, unit: &str) -> Vec<String> {
    if name.len() <= bytes_max {
        return Vec::new();
    }
    vec![format!("must be no more than {bytes_max} {unit}")]
}

fn is_subdomain(name: &[u8]) -> bool {
    name.split(|byte| *byte == b'.').all(is_dns_label)
}

fn is_dns_label(label: &[u8]) -> bool {
    let is_alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_framed(label, is_alphanumeric, |byte| *byte == b'-')
}

fn is_label_name(name: &[u8]) -> bool {
    is_framed(name, u8::is_ascii_alphanumeric, |byte| matches!(byte, b'-' | b'_' | b'.'))
}

/// Whether a text begins and ends with outer bytes and has only outer and inner ones between.
fn is_framed(text: &[u8], is_outer: impl Fn(&u8) -> bool, is_inner: impl Fn(&u8) -> bool) -> bool {
    text.first().is_some_and(&is_outer)
        && text.last().is_some_and(&is_outer)
        && text.iter().all(|byte| is_outer(byte) || is_inner(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHARACTERS_63: &str = "must be no more than 63 characters";
    const BYTES_63: &str = "must be no more than 63 bytes";
    const CHARACTERS_253: &str = "must be no more than 253 characters";

    fn check(faults: fn(&[u8]) -> Vec<String>, cases: &[(&str, &[&str])]) {
        for (name, want) in cases {
            assert_eq!(faults(name.as_bytes()), *want, "{name}");
        }
    }

    #[test]
    fn labels() {
        let (a63, a64) = ("a".repeat(63), "a".repeat(64));
        check(
            dns_1123_label,
            &[
                ("a", &[]),
                ("0-9", &[]),
                (&a63, &[]),
                (&a64, &[CHARACTERS_63]),
                ("a.b", &["must not contain dots"]),
                (&format!("{a63}.b"), &[CHARACTERS_63, "must not contain dots"]),
                ("", &[DNS_1123_LABEL]),
                ("-a", &[DNS_1123_LABEL]),
                ("a-", &[DNS_1123_LABEL]),
                ("A", &[DNS_1123_LABEL]),
                ("a\n", &[DNS_1123_LABEL]),
                (&format!("{a64}_"), &[CHARACTERS_63, DNS_1123_LABEL]),
            ],
        );
        check(
            dns_1035_label,
            &[
                ("a", &[]),
                ("a-9", &[]),
                (&a64, &[CHARACTERS_63]),
                ("9", &[DNS_1035_LABEL]),
                ("a.b", &[DNS_1035_LABEL]),
                ("a-", &[DNS_1035_LABEL]),
                ("", &[DNS_1035_LABEL]),
            ],
        );
        check(
            label_value,
            &[
                ("", &[]),
                ("A-_.z", &[]),
                (&a64, &[BYTES_63]),
                ("-", &[LABEL_VALUE]),
                ("a b", &[LABEL_VALUE]),
            ],
        );
    }

    #[test]
    fn subdomains() {
        let long = ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(61)].join(".");
        check(
            dns_1123_subdomain,
            &[
                ("example.com", &[]),
                // Kubernetes does not limit the length of each label.
                (&"a".repeat(253), &[]),
                (&long, &[]),
                (&format!("{long}d"), &[CHARACTERS_253]),
                ("", &[DNS_1123_SUBDOMAIN]),
                ("a..b", &[DNS_1123_SUBDOMAIN]),
                ("a.-b", &[DNS_1123_SUBDOMAIN]),
                (".", &[DNS_1123_SUBDOMAIN]),
            ],
        );
    }

    #[test]
    fn prefixes() {
        for (name, want) in [
            ("", ""),
            ("-", "-"),
            ("a", "a"),
            ("a-", "a"),
            ("ab-", "aa"),
            ("a.-", "aa"),
            ("a--", "aa"),
            ("-a", "-a"),
        ] {
            assert_eq!(*as_prefix(name.as_bytes()), *want.as_bytes(), "{name}");
        }
        assert_eq!(dns_1123_label(&as_prefix("\u{e9}-".as_bytes())), [DNS_1123_LABEL]);
    }

    #[test]
    fn qualified_names() {
        let a64 = "a".repeat(64);
        let name_syntax = format!("name part {LABEL_KEY}");
        let prefix_syntax = format!("prefix part {DNS_1123_SUBDOMAIN}");
        let whole = format!(
            "a valid label key {LABEL_KEY} with an optional DNS subdomain prefix and '/' (e.g. \
             'example.com/MyName')"
        );
        for (text, want) in [
            ("MyName", vec![]),
            ("example.com/My_Name", vec![]),
            ("/b", vec!["prefix part must be non-empty"]),
            ("A/", vec![&prefix_syntax, "name part must be non-empty", &name_syntax]),
            ("", vec!["name part must be non-empty", &name_syntax]),
            ("a b", vec![name_syntax.as_str()]),
            (&a64, vec!["name part must be no more than 63 bytes"]),
            (&format!("{}/a", "a".repeat(254)), vec!["prefix part must be no more than 253 bytes"]),
            ("a/b/c", vec![whole.as_str()]),
            ("//", vec![whole.as_str()]),
        ] {
            assert_eq!(qualified_name(text), want, "{text}");
        }
    }
}
