//! The keys and the size of the data of ConfigMaps and Secrets.

use field_errors::{FieldErrors, FieldPath};

/// The maximum total size of all values of one object, in bytes.
pub(super) const VALUES_BYTES_MAX: usize = 1024 * 1024;
/// The maximum length of a key in bytes.
const KEY_BYTES_MAX: usize = 253;

const KEY_SYNTAX: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or \
    '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
    '[-._a-zA-Z0-9]+')";

/// Validates the key of a value. Keys become file names when the object is mounted.
pub(super) fn validate(at: &FieldPath<'_>, key: &str, errors: &mut FieldErrors) {
    let at = at.key(key);
    let mut invalid = |detail: &str| errors.push(at.invalid(key, detail));
    if key.len() > KEY_BYTES_MAX {
        invalid(&format!("must be no more than {KEY_BYTES_MAX} characters"));
    }
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if key.is_empty() || !key.bytes().all(is_allowed) {
        invalid(KEY_SYNTAX);
    }
    match key {
        "." => invalid("must not be '.'"),
        ".." => invalid("must not be '..'"),
        _ if key.starts_with("..") => invalid("must not start with '..'"),
        _ => {}
    }
}

/// The number of bytes that a base64 text decodes to.
pub(super) fn base64_decoded_length(base64: &str) -> usize {
    let padding = base64.bytes().rev().take_while(|&byte| byte == b'=').count();
    (base64.len() / 4 * 3).saturating_sub(padding)
}
