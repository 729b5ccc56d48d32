//! The syntaxes of names, and Kubernetes' sentences about names that break them.
//!
//! Each function returns the reasons why a name is refused; no reasons means that it is valid. A
//! reason is a detail for [`FieldPath::invalid`](crate::FieldPath::invalid) or part of one.

use std::borrow::Cow;

/// The maximum length in bytes of a DNS label, of RFC 1035 or of RFC 1123.
pub const DNS1123_LABEL_BYTES_MAX: usize = 63;
/// The maximum length in bytes of a DNS subdomain.
pub const DNS1123_SUBDOMAIN_BYTES_MAX: usize = 253;
/// The maximum length in bytes of a label key after its prefix.
pub const LABEL_NAME_BYTES_MAX: usize = 63;
/// The maximum length in bytes of the value of a label.
pub const LABEL_VALUE_BYTES_MAX: usize = 63;

const LABEL_KEY_SYNTAX: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must \
    start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
    regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

const LABEL_VALUE_SYNTAX: &str = "a valid label must be an empty string or consist of alphanumeric \
    characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
    'MyValue',  or 'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const DNS1035_LABEL_SYNTAX: &str = "a DNS-1035 label must consist of lower case alphanumeric \
    characters or '-', start with an alphabetic character, and end with an alphanumeric character \
    (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

const DNS1123_LABEL_SYNTAX: &str = "a lowercase RFC 1123 label must consist of lower case \
    alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. \
    'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

const DNS1123_SUBDOMAIN_SYNTAX: &str = "a lowercase RFC 1123 subdomain must consist of lower case \
    alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character \
    (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Reasons why `name` is not a DNS-1035 label: `my-name`. Unlike a DNS-1123 label, it cannot begin
/// with a digit.
pub fn dns1035_label_faults(name: &str) -> Vec<String> {
    let mut faults = dns1123_label_length_faults(name);
    let begins_with_letter = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    if !(begins_with_letter && is_dns1123_label(name)) {
        faults.push(DNS1035_LABEL_SYNTAX.to_owned());
    }
    faults
}

/// Reasons why `name` is not a DNS-1123 label: `my-name`.
pub fn dns1123_label_faults(name: &str) -> Vec<String> {
    let mut faults = dns1123_label_length_faults(name);
    if !is_dns1123_label(name) {
        let is_subdomain = is_dns1123_subdomain(name);
        let fault = if is_subdomain { "must not contain dots" } else { DNS1123_LABEL_SYNTAX };
        faults.push(fault.to_owned());
    }
    faults
}

/// Reasons why `name` is not a DNS-1123 subdomain: `my-name.example.com`.
///
/// The length of a single label is not limited.
pub fn dns1123_subdomain_faults(name: &str) -> Vec<String> {
    dns1123_subdomain_faults_with_unit(name, "characters")
}

/// Reasons why `key` is not a label key: `app`, `example.com/app`.
pub fn label_key_faults(key: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let name = match key.split_once('/') {
        None => key,
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a valid label key {LABEL_KEY_SYNTAX} with an optional DNS subdomain prefix and '/' \
                 (e.g. 'example.com/MyName')"
            )];
        }
        Some(("", name)) => {
            faults.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            let name_prefix_faults = dns1123_subdomain_faults_with_unit(prefix, "bytes");
            faults
                .extend(name_prefix_faults.into_iter().map(|fault| format!("prefix part {fault}")));
            name
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_NAME_BYTES_MAX {
        faults.push(format!("name part must be no more than {LABEL_NAME_BYTES_MAX} bytes"));
    }
    if !has_label_text_syntax(name) {
        faults.push(format!("name part {LABEL_KEY_SYNTAX}"));
    }
    faults
}

/// Reasons why `value` is not the value of a label. The empty value is valid.
pub fn label_value_faults(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > LABEL_VALUE_BYTES_MAX {
        faults.push(format!("must be no more than {LABEL_VALUE_BYTES_MAX} bytes"));
    }
    if !value.is_empty() && !has_label_text_syntax(value) {
        faults.push(LABEL_VALUE_SYNTAX.to_owned());
    }
    faults
}

/// Returns the prefix of a generated name in the form in which name rules check it: a letter
/// replaces a trailing dash, because generated letters follow the dash.
#[must_use]
pub fn mask_trailing_dash(prefix: &str) -> Cow<'_, str> {
    match prefix.strip_suffix('-') {
        Some(start) if !start.is_empty() => Cow::Owned(format!("{start}a")),
        _ => Cow::Borrowed(prefix),
    }
}

/// Reasons why `name` cannot be one segment of a path.
pub fn path_segment_faults(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .into_iter()
        .filter(|illegal| name.contains(illegal))
        .map(|illegal| format!("may not contain '{illegal}'"))
        .collect()
}

fn dns1123_label_length_faults(name: &str) -> Vec<String> {
    if name.len() <= DNS1123_LABEL_BYTES_MAX {
        return Vec::new();
    }
    vec![format!("must be no more than {DNS1123_LABEL_BYTES_MAX} characters")]
}

/// Reasons why `name` is not a DNS-1123 subdomain. Kubernetes writes the unit `characters` for a name and
/// `bytes` for the prefix of a label key; it counts bytes in both cases.
fn dns1123_subdomain_faults_with_unit(name: &str, unit: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if name.len() > DNS1123_SUBDOMAIN_BYTES_MAX {
        faults.push(format!("must be no more than {DNS1123_SUBDOMAIN_BYTES_MAX} {unit}"));
    }
    if !is_dns1123_subdomain(name) {
        faults.push(DNS1123_SUBDOMAIN_SYNTAX.to_owned());
    }
    faults
}

fn is_dns1123_subdomain(name: &str) -> bool {
    name.split('.').all(is_dns1123_label)
}

fn is_dns1123_label(name: &str) -> bool {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    begins_and_ends_with_allowed_byte(name, is_alphanumeric)
        && name.bytes().all(|byte| is_alphanumeric(byte) || byte == b'-')
}

fn has_label_text_syntax(name: &str) -> bool {
    begins_and_ends_with_allowed_byte(name, |byte| byte.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Reports whether the first and the last byte are allowed. False for the empty name.
fn begins_and_ends_with_allowed_byte(name: &str, is_allowed: impl Fn(u8) -> bool) -> bool {
    match name.as_bytes() {
        [] => false,
        [only] => is_allowed(*only),
        [first, .., last] => is_allowed(*first) && is_allowed(*last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(n_bytes: usize) -> String {
        "a".repeat(n_bytes)
    }

    #[test]
    fn dns_labels() {
        for name in ["a", "0", "my-name", "a--b", &long(63)] {
            assert!(dns1123_label_faults(name).is_empty(), "{name}");
        }
        assert_eq!(dns1123_label_faults("a.b"), ["must not contain dots"]);
        assert_eq!(dns1123_label_faults(&long(64)), ["must be no more than 63 characters"]);
        for name in ["", "-a", "a-", "A", "a_b", "a.", "é", "a\n"] {
            assert_eq!(dns1123_label_faults(name), [DNS1123_LABEL_SYNTAX], "{name}");
        }
    }

    #[test]
    fn dns_1035_labels() {
        for name in ["a", "a-9", "my-name", &long(63)] {
            assert!(dns1035_label_faults(name).is_empty(), "{name}");
        }
        assert_eq!(dns1035_label_faults(&long(64)), ["must be no more than 63 characters"]);
        for name in ["", "9", "-a", "a-", "a.b", "A", "é", "a\n"] {
            assert_eq!(dns1035_label_faults(name), [DNS1035_LABEL_SYNTAX], "{name}");
        }
        let long_label = format!("{}_", long(64));
        let want = ["must be no more than 63 characters", DNS1035_LABEL_SYNTAX];
        assert_eq!(dns1035_label_faults(&long_label), want);
    }

    #[test]
    fn dns_subdomains() {
        for name in ["a", "a.b", "my-name.example.com", &long(253)] {
            assert!(dns1123_subdomain_faults(name).is_empty(), "{name}");
        }
        assert_eq!(dns1123_subdomain_faults(&long(254)), ["must be no more than 253 characters"]);
        for name in ["", ".", "a.", ".a", "a..b", "A", "a.-b", "a_b"] {
            assert_eq!(dns1123_subdomain_faults(name), [DNS1123_SUBDOMAIN_SYNTAX], "{name}");
        }
        assert_eq!(
            dns1123_subdomain_faults(&"A".repeat(254)),
            ["must be no more than 253 characters", DNS1123_SUBDOMAIN_SYNTAX],
        );
    }

    #[test]
    fn label_keys() {
        for key in ["a", "A.b_c-d", "example.com/App", "0/0", &long(63)] {
            assert!(label_key_faults(key).is_empty(), "{key}");
        }
        let name_syntax = format!("name part {LABEL_KEY_SYNTAX}");
        for (key, want) in [
            ("", vec!["name part must be non-empty".to_owned(), name_syntax.clone()]),
            ("-a", vec![name_syntax.clone()]),
            ("/a", vec!["prefix part must be non-empty".to_owned()]),
            ("a/", vec!["name part must be non-empty".to_owned(), name_syntax.clone()]),
            ("A/a", vec![format!("prefix part {DNS1123_SUBDOMAIN_SYNTAX}")]),
            (&long(64), vec!["name part must be no more than 63 bytes".to_owned()]),
            (
                &format!("{}/a", long(254)),
                vec!["prefix part must be no more than 253 bytes".to_owned()],
            ),
        ] {
            assert_eq!(label_key_faults(key), want, "{key}");
        }
        assert_eq!(
            label_key_faults("a/b/c"),
            [
                "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must \
              start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
              '123-abc', regex used for validation is \
              '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and \
              '/' (e.g. 'example.com/MyName')"
            ],
        );
    }

    #[test]
    fn label_values() {
        for value in ["", "a", "12345", "my_Value.x-y", &long(63)] {
            assert!(label_value_faults(value).is_empty(), "{value}");
        }
        assert_eq!(label_value_faults(&long(64)), ["must be no more than 63 bytes"]);
        for value in ["-", "a-", "a b", "日本", "a/b"] {
            assert_eq!(label_value_faults(value), [LABEL_VALUE_SYNTAX], "{value}");
        }
    }

    #[test]
    fn path_segments() {
        for name in ["", "a", "...", "a b", "日本"] {
            assert!(path_segment_faults(name).is_empty(), "{name}");
        }
        assert_eq!(path_segment_faults("."), ["may not be '.'"]);
        assert_eq!(path_segment_faults(".."), ["may not be '..'"]);
        assert_eq!(path_segment_faults("a%/"), ["may not contain '/'", "may not contain '%'"]);
    }
}
