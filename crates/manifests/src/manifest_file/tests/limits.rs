//! The limits of manifest files.

use super::*;

#[test]
fn deep_nesting_and_expanding_aliases_are_refused() {
    refused(&"[".repeat(100_000), &["1:64 yaml: exceeded max depth of 64"]);
    refused(&format!("{{\"a\": {}", "[".repeat(100_000)), &["1:70 exceeded max depth of 64"]);
    refused(&format!("{{\"items\": {}", "[".repeat(100_000)), &["1:74 exceeded max depth of 64"]);
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..9 {
        let before = n - 1;
        bomb.push_str(&format!("a{n}: &a{n} [{}]\n", format!("*a{before}, ").repeat(9)));
    }
    let message = faults(&read_text(&bomb)).concat();
    assert!(message.contains("excessive aliasing"), "{message}");
}

/// A list of a million items, with a fault in each, stops at the limit.
#[test]
fn errors_are_limited() {
    let list = |n: usize| {
        let items = "{},".repeat(n - 1);
        format!("{{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [{items}{{}}]}}")
    };
    assert_eq!(read_text(&list(ERRORS_MAX)).errors.len(), ERRORS_MAX);
    for n in [ERRORS_MAX + 1, 1_000_000] {
        let errors = read_text(&list(n)).errors;
        assert_eq!(errors.len(), ERRORS_MAX + 1);
        let last = errors[ERRORS_MAX].fault.to_string();
        assert_eq!(last, "more than 10000 errors: the rest is not read");
    }
}

#[test]
fn warnings_are_limited_and_the_rest_is_counted() {
    let subjects = |n: usize| {
        binding(&format!("{ROLE_REF}subjects:\n{}", "- {kind: User, name: '*'}\n".repeat(n)))
    };
    for (n, n_dropped) in [(WARNINGS_MAX, 0), (WARNINGS_MAX + 3, 3)] {
        let manifests = read_text(&subjects(n));
        assert_eq!(manifests.warnings.len(), WARNINGS_MAX);
        assert_eq!(manifests.n_warnings_dropped, n_dropped);
    }
}

#[test]
fn too_many_duplicate_keys_are_refused_wherever_they_are() {
    let map =
        |n: usize| format!("apiVersion: v1\nkind: ConfigMap\ndata:\n{}", "  a: b\n".repeat(n));
    accepted(&map(ERRORS_MAX), &[]);
    let message = faults(&read_text(&map(ERRORS_MAX + 1))).concat();
    assert!(message.ends_with("the document has too many duplicate keys"), "{message}");
}

#[test]
fn a_file_has_a_size_limit() {
    let mut bytes = vec![b' '; MANIFEST_BYTES_MAX + 1];
    bytes[0] = b'#';
    let manifests = read(&Source { name: "F", file_bytes: &bytes });
    assert_eq!(faults(&manifests), ["1:1 file is larger than 268435456 bytes"]);
    let manifests = read(&Source { name: "F", file_bytes: &bytes[..1 << 20] });
    assert!(manifests.has_no_objects && manifests.errors.is_empty());
}
