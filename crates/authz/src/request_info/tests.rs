use proptest::prelude::*;

use super::*;

const REQUESTS: &str = include_str!("../../testdata/requests.txt");

#[test]
fn request_lines_become_the_expected_attributes() {
    let mut n_requests = 0;
    for line in REQUESTS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let columns: Vec<&str> = line.splitn(3, " | ").map(str::trim).collect();
        let [id, request, want] = columns[..] else {
            panic!("not three columns: {line}");
        };
        let (method, target) = request.split_once(' ').unwrap();
        assert_eq!(describe(method, target).trim_end(), want, "{id} {request}");
        n_requests += 1;
    }
    assert!(n_requests > 100, "only {n_requests} requests");
}

/// Describes a request in the words of `testdata/requests.txt`.
fn describe(method: &str, target: &str) -> String {
    let info = match RequestInfo::new(method, target) {
        Ok(info) => info,
        Err(RequestError::Malformed(error)) => return format!("400 {error}"),
        Err(RequestError::Unclassified(error)) => return format!("500 {error}"),
    };
    let attributes = info.to_attributes_for_user(None);
    let Some(r) = attributes.resource() else {
        return format!("NR {} {}", attributes.verb, attributes.path());
    };
    let dash = |text: &str| {
        if text.is_empty() { "-".to_owned() } else { text.to_owned() }
    };
    let mut text = format!(
        "{}; {}/{}; {}; {}",
        dash(attributes.verb.as_str()),
        dash(r.api_group),
        dash(r.api_version),
        dash(r.namespace.as_str()),
        dash(r.resource),
    );
    if !r.subresource.is_empty() {
        text += &format!("/{}", r.subresource);
    }
    text += &format!("; {}", dash(r.name));
    text += &describe_selector("fields", r.field_selector);
    text + &describe_selector("labels", r.label_selector)
}

fn describe_selector<R: ToString>(what: &str, selector: Option<&Selector<R>>) -> String {
    let Some(selector) = selector else {
        return String::new();
    };
    let requirements =
        selector.requirements.iter().map(|requirement| format!(" {}", requirement.to_string()));
    let error = selector.error.iter().map(|error| format!(" !{error}"));
    format!("; {what}{}", requirements.chain(error).collect::<String>())
}

#[test]
fn legacy_paths_are_marked_and_keep_their_text() {
    for (path, is_legacy) in [
        ("/api/v1beta3/ns/default/pods/p", true),
        ("/api/v1/namespaces/x/resourceAccessReviews", true),
        ("/api/v1/namespaces/x/resourceaccessreviews", false),
        ("/api/v1/namespaces/x/pods", false),
        ("/api/v1/ns/x", false),
        ("/healthz", false),
    ] {
        let info = RequestInfo::new("GET", path).unwrap();
        assert_eq!(info.path, path);
        assert_eq!(info.has_rewritten_legacy_segment, is_legacy, "{path}");
    }
}

#[test]
fn raw_selectors_are_kept() {
    let target = "/apis/g/v/r?fieldSelector=b%3D1,a==2&labelSelector=%2A&fieldSelector=x=y";
    let resource = RequestInfo::new("GET", target).unwrap().resource.unwrap();
    assert_eq!(resource.raw_field_selector, "b=1,a==2");
    assert_eq!(resource.raw_label_selector, "*");
}

#[test]
fn an_unclassified_request_has_partial_info() {
    let Err(RequestError::Unclassified(error)) = RequestInfo::new("PATCH", "/apis/g/v1/watch/")
    else {
        panic!("classified");
    };
    assert_eq!(error.partial_request_info.verb, "patch");
    let resource = error.partial_request_info.resource.unwrap();
    assert_eq!((&*resource.api_group, &*resource.api_version), ("g", "v1"));
    assert_eq!(resource.path_segments_from_resource().count(), 0);
}

#[test]
fn path_segments_begin_with_the_resource() {
    for (path, want) in [
        ("/api/v1/pods", vec!["pods"]),
        ("/api/v1//pods", vec!["", "pods"]),
        ("/api/v1/namespaces/x/pods/p/log//y/z/", vec!["pods", "p", "log", "", "y", "z"]),
        ("/api/v1/ns/x/status/y", vec!["namespaces", "x", "status", "y"]),
        ("/apis/g/v/watch/namespaces/n/r/a/b/c/d", vec!["r", "a", "b", "c", "d"]),
    ] {
        let resource = RequestInfo::new("GET", path).unwrap().resource.unwrap();
        assert_eq!(resource.path_segments_from_resource().collect::<Vec<_>>(), want);
    }
}

#[test]
fn the_target_length_is_limited() {
    let longest = "/".repeat(TARGET_BYTES_MAX);
    assert_eq!(describe("GET", &longest), format!("NR get {longest}"));
    let too_long = format!("400 {}", MalformedRequestError::TargetTooLong);
    assert_eq!(describe("GET", &(longest + "/")), too_long);
    assert_eq!(describe("GET", ""), r#"400 parse "": empty url"#);
    assert_eq!(describe("", "/"), r#"400 invalid method """#);
}

const TARGETS: &str = "(/{1,2}(api|apis|v1|ns|namespaces|watch|proxy|status|%2f|%25|\\.\\.|x)){0,8}\
    /?(\\?(watch|fieldSelector|labelSelector|limit)=[a-z=,%0-9]{0,9})?";

proptest! {
    #[test]
    fn no_request_line_panics(method in "[A-Z]{0,7}|\\PC{0,3}", target in "\\PC{0,40}") {
        let _ = RequestInfo::new(&method, &target);
    }

    #[test]
    fn a_request_is_for_a_resource_or_for_its_own_path(target in TARGETS) {
        if let Ok(info) = RequestInfo::new("GET", &target) {
            let attributes = info.to_attributes_for_user(None);
            prop_assert_eq!(attributes.path(), &info.path);
            match &info.resource {
                Some(resource) => {
                    let path_segments: Vec<&str> = resource.path_segments_from_resource().collect();
                    prop_assert_eq!(path_segments[0], &resource.resource);
                    let path_after_resource = path_segments[1..].join("/");
                    prop_assert!(info.path.trim_end_matches('/').ends_with(&path_after_resource));
                }
                None => prop_assert_eq!(attributes.verb, Verb::GET),
            }
        }
    }
}
