//! Any request line is classified or refused, and the spelling of a path does not change what it
//! means.
//!
//! The first line of an input is the method, the second the target.

#![no_main]

use std::fmt::Write;

use authz::{RequestError, RequestInfo, Target, User, parse_field_selector, parse_label_selector};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let (method, target) = input.split_once('\n').unwrap_or(("GET", input));
    match RequestInfo::new(method, target) {
        Ok(info) => {
            check_attributes(method, &info);
            check_spellings(method, target, &info);
        }
        Err(RequestError::Unclassified(unclassified)) => {
            assert!(unclassified.to_string().contains(&unclassified.url));
            let info = &unclassified.partial_request_info;
            assert!(!info.api_prefix.is_empty() && info.verb == method.to_ascii_lowercase());
        }
        Err(RequestError::Malformed(error)) => assert!(!error.to_string().is_empty()),
    }
});

fn check_attributes(method: &str, info: &RequestInfo) {
    let user = User { name: "ana".to_owned(), ..User::default() };
    let attributes = info.to_attributes_for_user(Some(&user));
    assert_eq!(attributes.path(), info.path);
    let resource = match (&attributes.target, &info.resource) {
        (Target::Path(_), None) => {
            assert_eq!(info.verb, method.to_ascii_lowercase());
            return;
        }
        (Target::Resource(_), Some(resource)) => resource,
        other => panic!("{other:?}"),
    };
    // Only methods that read, and the verb in the path, make a verb that reads.
    let is_watch_path = info.path.contains("/watch/") || info.path.contains("/watch");
    assert!(!attributes.is_read_only() || matches!(method, "GET" | "HEAD") || is_watch_path);
    let parts: Vec<&str> = resource.path_segments_from_resource().collect();
    assert_eq!(parts.first().copied(), Some(resource.resource.as_str()));
    let parsed = parse_field_selector(&resource.raw_field_selector);
    let requirements = parsed.unwrap_or_default();
    assert_eq!(attributes.resource().map(|r| r.field_requirements()), Some(&*requirements));
    let parsed = parse_label_selector(&resource.raw_label_selector);
    let requirements = parsed.unwrap_or_default();
    assert_eq!(attributes.resource().map(|r| r.label_requirements()), Some(&*requirements));
}

/// Escaping every byte of a path but the slashes hides nothing.
fn check_spellings(method: &str, target: &str, info: &RequestInfo) {
    if !target.starts_with('/') || method == "CONNECT" {
        return;
    }
    let mut escaped = String::new();
    for byte in info.path.bytes() {
        match byte {
            b'/' => escaped.push('/'),
            byte => write!(escaped, "%{byte:02x}").expect("a string takes all text"),
        }
    }
    if let Some((_, query)) = target.split_once('?') {
        write!(escaped, "?{query}").expect("a string takes all text");
    }
    match RequestInfo::new(method, &escaped) {
        Ok(same) => assert_eq!(&same, info, "{escaped}"),
        Err(error) => panic!("{escaped}: {error}"),
    }
}
