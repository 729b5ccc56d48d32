//! Differences in the classification of request paths.

use serde_json::Value;

use crate::suites::{AnswerPair, answer_for_request_line};
use crate::vectors::Vector;

/// The names of one resource in the first proposal. All of them mean the last one.
const REVIEWS: [&str; 4] = [
    "resourceAccessReviews",
    "resourceAccessReview",
    "resourceaccessreview",
    "resourceaccessreviews",
];

/// `/api/VERSION/ns/NAMESPACE/...` is answered like the same path with `namespaces` for `ns`, and
/// each of [`REVIEWS`] below `/api` is the same resource. The recorded `path` stays as it was sent.
pub(super) fn legacy_ns_path(vector: &Vector, _: &AnswerPair, want: &mut Value) -> bool {
    let (Ok(method), Ok(target)) = (vector.text("method"), vector.text("target")) else {
        return false;
    };
    let Some(modern) = modern_target(target) else {
        return false;
    };
    let path = want["requestInfo"]["path"].clone();
    *want = answer_for_request_line(method, &modern);
    for part in ["requestInfo", "attributes"] {
        if want[part].is_object() {
            want[part]["path"] = path.clone();
        }
    }
    true
}

/// Replaces the legacy names in a target by the current ones. Returns `None` if it has none.
fn modern_target(target: &str) -> Option<String> {
    let (path, query) = target.split_once('?').map_or((target, None), |(p, q)| (p, Some(q)));
    let mut segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let ["api", _version, rest @ ..] = segments.as_mut_slice() else {
        return None;
    };
    let mut has_changed = false;
    if let ["ns", _namespace, _, ..] = rest {
        rest[0] = "namespaces";
        has_changed = true;
    }
    let resource = match rest {
        ["namespaces", _, resource, ..] | [resource, ..] => resource,
        [] => return None,
    };
    if REVIEWS[..3].contains(resource) {
        *resource = REVIEWS[3];
        has_changed = true;
    }
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    has_changed.then(|| format!("/{}{query}", segments.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::LEDGER;
    use crate::suites::Suite;
    use crate::{VectorOutcome, judge};
    use serde_json::json;

    #[test]
    fn only_legacy_forms_are_rewritten() {
        for (target, want) in [
            ("/api/v1/ns/web/pods", Some("/api/v1/namespaces/web/pods")),
            ("//api/v1/ns/web/pods/p/log?x=/a", Some("/api/v1/namespaces/web/pods/p/log?x=/a")),
            ("/api/v1/resourceAccessReview", Some("/api/v1/resourceaccessreviews")),
            (
                "/api/v1/ns/web/resourceAccessReviews",
                Some("/api/v1/namespaces/web/resourceaccessreviews"),
            ),
            ("/api/v1/ns/web", None),
            ("/apis/apps/v1/ns/web/pods", None),
            ("/api/v1/namespaces/web/pods", None),
            ("/api/v1/namespaces/ns/pods", None),
            ("/api/v1/resourceaccessreviews", None),
            ("/api/v1", None),
        ] {
            assert_eq!(modern_target(target).as_deref(), want, "{target}");
        }
    }

    /// Kubernetes' own answers to such paths.
    fn recorded(target: &str, subresource: &str) -> Vector {
        let parts: Vec<&str> = target.split('/').skip(3).collect();
        let body = json!({
            "method": "GET",
            "target": target,
            "expect": {
                "requestInfo": {
                    "isResourceRequest": true, "path": target, "verb": "get", "apiPrefix": "api",
                    "apiVersion": "v1", "resource": "ns", "subresource": subresource,
                    "name": "web", "parts": parts,
                },
                "attributes": {
                    "verb": "get", "readOnly": true, "apiVersion": "v1", "resource": "ns",
                    "subresource": subresource, "name": "web", "resourceRequest": true,
                    "path": target,
                },
            },
        });
        let Value::Object(body) = body else { panic!("the body is an object") };
        Vector { id: "v".to_owned(), feature: "f".to_owned(), body }
    }

    #[test]
    fn the_rule_explains_legacy_paths_and_nothing_else_about_them() {
        let vector = recorded("/api/v1/ns/web/pods", "pods");
        let judgement = judge(Suite::RequestAttributes, &vector, LEDGER).unwrap();
        assert_eq!(judgement.outcome, VectorOutcome::Agreed(vec!["legacy-ns-path"]));
        // The path is too short to be a legacy form, so Portcullis reads it as Kubernetes does.
        let judgement =
            judge(Suite::RequestAttributes, &recorded("/api/v1/ns/web", ""), LEDGER).unwrap();
        assert_eq!(judgement.outcome, VectorOutcome::Passed);
        // Without the rule the answers differ.
        let judgement = judge(Suite::RequestAttributes, &vector, &[]).unwrap();
        assert!(matches!(judgement.outcome, VectorOutcome::Failed(_)));
    }
}
