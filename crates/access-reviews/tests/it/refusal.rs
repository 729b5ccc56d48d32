//! What a client and the audit log see of a decision.

use access_reviews::{Refusal, refusal_for_decision as refuse};
use authz::{Attributes, Decision, EvaluationErrors, Resource, Target, UnavailableCause};
use serde_json::json;

use crate::asking::user;

fn resource(resource: Resource<'_>) -> Attributes<'_> {
    Attributes { user: None, verb: "get", target: Target::Resource(resource) }
}

/// The message and details of a 403.
#[track_caller]
fn forbidden_status(
    attributes: Attributes<'_>,
    name: &str,
    reason: &str,
) -> (String, serde_json::Value) {
    let user = user(name, &[]);
    let attributes = Attributes { user: Some(&user), ..attributes };
    let decision = Decision::deny(reason.to_owned());
    match refuse(&attributes, "/uri", &decision) {
        Some(Refusal::Forbidden(status)) => {
            assert_eq!((status.code, status.reason.as_ref()), (403, "Forbidden"));
            (status.message.clone(), serde_json::to_value(&status).unwrap()["details"].clone())
        }
        other => panic!("{other:?}"),
    }
}

/// A denied request gets 403 with the text of Kubernetes.
#[test]
fn refusals_are_those_of_kubernetes() {
    let path = |path| Attributes { user: None, verb: "GET", target: Target::Path(path) };
    let pod = Resource { resource: "pod", ..Resource::default() };
    let scope = "in API group \"\" at the cluster scope";
    for (attributes, name, reason, message, details) in [
        (
            path("/whatever"),
            "NAME",
            "",
            "forbidden: User \"NAME\" cannot GET path \"/whatever\"".to_owned(),
            json!({}),
        ),
        (
            path("/<script>"),
            "a<b",
            "r <b>",
            "forbidden: User \"a&lt;b\" cannot GET path \"/&lt;script&gt;\": r <b>".to_owned(),
            json!({}),
        ),
        (
            resource(pod),
            "NAME",
            "",
            format!("pod is forbidden: User \"NAME\" cannot get resource \"pod\" {scope}"),
            json!({"kind": "pod"}),
        ),
        (
            resource(Resource { name: "mypod", ..pod }),
            "NAME",
            "alwaysdeny: Everything is forbidden.",
            format!(
                "pod \"mypod\" is forbidden: User \"NAME\" cannot get resource \"pod\" {scope}: \
                 alwaysdeny: Everything is forbidden."
            ),
            json!({"name": "mypod", "kind": "pod"}),
        ),
        (
            resource(Resource { api_group: "v2", namespace: "test", subresource: "quota", ..pod }),
            "NAME",
            "",
            "pod.v2 is forbidden: User \"NAME\" cannot get resource \"pod/quota\" in API group \
             \"v2\" in the namespace \"test\""
                .to_owned(),
            json!({"group": "v2", "kind": "pod"}),
        ),
        (
            resource(Resource { name: "n", ..Resource::default() }),
            "",
            "",
            format!("forbidden: User \"\" cannot get resource \"\" {scope}"),
            json!({"name": "n"}),
        ),
    ] {
        assert_eq!(forbidden_status(attributes, name, reason), (message, details));
    }
}

/// An evaluation error makes the response 500 unless the chain allows the request.
#[test]
fn failures_count_only_where_nothing_is_allowed() {
    let attributes = Attributes { user: None, verb: "get", target: Target::Path("/") };
    let failed = |decision: Decision| decision.with_error(EvaluationErrors::message("ARGH & <x>"));
    assert_eq!(refuse(&attributes, "/", &failed(Decision::allow(""))), None);
    for decision in [Decision::deny("r"), Decision::no_opinion("r")] {
        let want = "Internal Server Error: \"/&lt;script&gt;?a=b\": ARGH &amp; &lt;x&gt;\n";
        assert_eq!(
            refuse(&attributes, "/<script>?a=b", &failed(decision.clone())),
            Some(Refusal::InternalError(want.to_owned()))
        );
        assert!(matches!(refuse(&attributes, "/", &decision), Some(Refusal::Forbidden(_))));
    }
}

/// What this server failed to ask is neither allowed nor forbidden.
#[test]
fn failures_of_this_server_have_codes_of_their_own() {
    let attributes = resource(Resource { resource: "pods", ..Resource::default() });
    for (why, code, retry_after) in [
        (UnavailableCause::TooManyCalls, 429, Some(1)),
        (UnavailableCause::OutOfResources, 503, Some(1)),
        (UnavailableCause::DeadlineExceeded, 504, None),
    ] {
        let decision = Decision::unavailable(why).with_error(EvaluationErrors::message("secret"));
        let Some(Refusal::Unavailable(status)) = refuse(&attributes, "/uri", &decision) else {
            panic!("{why:?}");
        };
        assert_eq!((status.code, status.retry_after_seconds()), (code, retry_after));
        assert!(!status.message.contains("secret"), "{}", status.message);
        assert_eq!(access_reviews::check_decided(&decision).unwrap_err().code, code);
    }
}
