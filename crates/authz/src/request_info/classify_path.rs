//! Classifies the path of a request: the verb, the resource and its parts.

use std::borrow::Cow;

use super::list_options::ListOptions;
use super::{RequestInfo, ResourceInfo};

/// The maximum number of segments that have a meaning of their own:
/// `apis/{group}/{version}/watch/namespaces/{namespace}/{resource}/{name}/{subresource}`. One more holds the rest of
/// the path, so that a long path costs no more than a short one.
const SEGMENTS_MAX: usize = 9 + 1;

/// Classifies a request.
///
/// 1. A path with fewer than three segments, or outside of `/api` and `/apis`, or below `/apis`
///    with fewer than four, is not for a resource. Its verb is the method in lower case.
/// 2. The version, and below `/apis` the group before it, are taken off.
/// 3. A leading `proxy` or `watch` is the verb, and something must follow it. Otherwise the verb
///    comes from the method.
/// 4. `namespaces/{name}` is taken off as the namespace if something other than a subresource of
///    the namespace itself follows.
/// 5. The remaining segments are the resource, the name and the subresource. A request with the verb
///    `proxy` has no subresource.
/// 6. The query refines requests without a name: see [`refine_verb_by_query`].
///
/// Step 0, legacy paths: `/api/{version}/ns/{namespace}/{x}` reads `ns` as `namespaces`, and the
/// old spellings of `resourceaccessreviews` below `/api` are that resource.
///
/// # Errors
/// Returns the classification so far if nothing follows the verb in step 3.
pub(super) fn classify_request(
    method: &str,
    path: String,
    raw_query: &str,
) -> Result<RequestInfo, Box<RequestInfo>> {
    let mut info = RequestInfo {
        path: String::new(),
        verb: Cow::Borrowed(""),
        api_prefix: "",
        resource: None,
        has_rewritten_legacy_segment: false,
    };
    let outcome = classify_segments(method, &path, raw_query, &mut info);
    info.path = path;
    if outcome.is_err() || info.resource.is_none() {
        info.verb = Cow::Owned(method.to_ascii_lowercase());
    }
    match outcome {
        Ok(()) => Ok(info),
        Err(IncompletePathError) => Err(Box::new(info)),
    }
}

/// The path ends after `proxy` or `watch`.
struct IncompletePathError;

fn classify_segments(
    method: &str,
    path: &str,
    raw_query: &str,
    info: &mut RequestInfo,
) -> Result<(), IncompletePathError> {
    let path = path.trim_matches('/');
    let mut all_segments = [""; SEGMENTS_MAX];
    let mut n_segments = 0;
    for (slot, segment) in all_segments.iter_mut().zip(split_path_segments(path)) {
        *slot = segment;
        n_segments += 1;
    }
    let segments = all_segments.get_mut(..n_segments).unwrap_or_default();
    info.api_prefix = match &*segments {
        ["api", _, _, ..] => "api",
        ["apis", _, _, ..] => "apis",
        _ => return Ok(()),
    };
    let is_core = info.api_prefix == "api";
    if is_core
        && let [_, _, segment, _, _, ..] = &mut *segments
        && *segment == "ns"
    {
        *segment = "namespaces";
        info.has_rewritten_legacy_segment = true;
    }
    let (group, version, rest) = match &*segments {
        [_, version, rest @ ..] if is_core => ("", *version, rest),
        [_, group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
        _ => return Ok(()),
    };
    let resource = info.resource.insert(ResourceInfo {
        api_group: group.to_owned(),
        api_version: version.to_owned(),
        ..ResourceInfo::default()
    });

    let (path_verb, rest) = match rest {
        ["proxy", rest @ ..] => (Some("proxy"), rest),
        ["watch", rest @ ..] => (Some("watch"), rest),
        _ => (None, rest),
    };
    let [resource_name, path_after_resource @ ..] = split_off_namespace(rest, resource) else {
        return Err(IncompletePathError);
    };
    info.verb = Cow::Borrowed(path_verb.unwrap_or_else(|| verb_for_method(method)));
    resource.resource = if is_core && is_old_spelling_of_access_review(resource_name) {
        info.has_rewritten_legacy_segment = true;
        "resourceaccessreviews".to_owned()
    } else {
        (*resource_name).to_owned()
    };
    set_name_and_subresource(resource, path_after_resource, path_verb == Some("proxy"));
    if path_verb.is_none() {
        refine_verb_by_query(&mut info.verb, resource, raw_query);
    }
    Ok(())
}

/// `splitn` at slashes. The one of the standard library takes several times as long for segments of a few bytes.
fn split_path_segments(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(path);
    let mut n_segments = 0;
    std::iter::from_fn(move || {
        let text = rest?;
        n_segments += 1;
        let slash =
            text.bytes().position(|byte| byte == b'/').filter(|_| n_segments < SEGMENTS_MAX);
        let (segment, after) = match slash {
            Some(at) => (text.get(..at)?, text.get(at + 1..)),
            None => (text, None),
        };
        rest = after;
        Some(segment)
    })
}

fn verb_for_method(method: &str) -> &'static str {
    match method {
        "POST" => "create",
        "GET" | "HEAD" => "get",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    }
}

/// Sets the namespace and removes its segments, unless the request is for the namespace itself.
fn split_off_namespace<'a, 'b>(rest: &'a [&'b str], resource: &mut ResourceInfo) -> &'a [&'b str] {
    match rest {
        ["namespaces", namespace, inner @ ..] => {
            resource.namespace = (*namespace).to_owned();
            match inner {
                [] | ["status" | "finalize", ..] => rest,
                [..] => inner,
            }
        }
        _ => rest,
    }
}

fn is_old_spelling_of_access_review(segment: &str) -> bool {
    matches!(segment, "resourceAccessReviews" | "resourceAccessReview" | "resourceaccessreview")
}

fn set_name_and_subresource(
    resource: &mut ResourceInfo,
    path_after_resource: &[&str],
    is_proxy: bool,
) {
    let [name, after_name @ ..] = path_after_resource else { return };
    resource.name = (*name).to_owned();
    if !is_proxy {
        resource.subresource = after_name.first().copied().unwrap_or_default().to_owned();
    }
    resource.path_after_resource = Some(path_after_resource.join("/"));
}

/// Refines the verb of a request without a name, and reads its selectors.
///
/// - `get` is `watch` or `list` by the list options in the query. If those ask for exactly one
///   name by field selector, and an object could have that name, it is the name of the request.
///   Options that do not decode give neither a name nor an error: the request is authorized as a plain
///   list or watch, and the handler refuses the options later.
/// - `delete` is `deletecollection`.
/// - `list`, `watch` and `deletecollection` keep each selector that parses.
fn refine_verb_by_query(
    verb: &mut Cow<'static, str>,
    resource: &mut ResourceInfo,
    raw_query: &str,
) {
    let is_list = match verb.as_ref() {
        _ if !resource.name.is_empty() => return,
        "get" => true,
        "delete" => false,
        _ => return,
    };
    let query = go_compat::parse_query(raw_query);
    let options = ListOptions::from_query(&query);
    if is_list {
        *verb = Cow::Borrowed(if options.is_watch() { "watch" } else { "list" });
        resource.name = options.name_from_field_selector().unwrap_or_default().to_owned();
    } else {
        *verb = Cow::Borrowed("deletecollection");
    }
    options.move_selectors_to_resource(resource);
}
