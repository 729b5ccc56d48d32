//! The errors of requests that a decision does not allow.

use access_reviews::{AccessError, ForbiddenTarget, check_allowed};
use authz::{
    Attributes, Decision, EvaluationErrors, Namespace, Resource, Target, UnavailableCause, Verb,
};

use crate::review_client::user;

fn resource(resource: Resource<'_>) -> Attributes<'_> {
    Attributes { user: None, verb: Verb::GET, target: Target::Resource(resource) }
}

/// The message and the target of a forbidden request.
#[track_caller]
fn forbidden(attributes: Attributes<'_>, name: &str, reason: &str) -> (String, ForbiddenTarget) {
    let user = user(name, &[]);
    let attributes = Attributes { user: Some(&user), ..attributes };
    let decision = Decision::deny(reason.to_owned());
    match check_allowed(&attributes, "/uri", &decision) {
        Err(AccessError::Forbidden(request)) => (request.message, request.target),
        other => panic!("{other:?}"),
    }
}

/// A target of the core group, or of another one.
fn target(api_group: &str, name: &str) -> ForbiddenTarget {
    let [api_group, resource, name] = [api_group, "pod", name].map(str::to_owned);
    ForbiddenTarget::Resource { api_group, resource, name }
}

#[test]
fn messages_match_kubernetes() {
    let path = |path| Attributes { user: None, verb: Verb::new("GET"), target: Target::Path(path) };
    let pod = Resource { resource: "pod", ..Resource::default() };
    let scope = "in API group \"\" at the cluster scope";
    for (attributes, name, reason, message, target) in [
        (
            path("/whatever"),
            "NAME",
            "",
            "User \"NAME\" cannot GET path \"/whatever\"".to_owned(),
            ForbiddenTarget::Path,
        ),
        (
            path("/<script>"),
            "a<b",
            "r <b>",
            "User \"a&lt;b\" cannot GET path \"/&lt;script&gt;\": r <b>".to_owned(),
            ForbiddenTarget::Path,
        ),
        (
            resource(pod),
            "NAME",
            "",
            format!("User \"NAME\" cannot get resource \"pod\" {scope}"),
            target("", ""),
        ),
        (
            resource(Resource { name: "mypod", ..pod }),
            "NAME",
            "alwaysdeny: Everything is forbidden.",
            format!(
                "User \"NAME\" cannot get resource \"pod\" {scope}: \
                 alwaysdeny: Everything is forbidden."
            ),
            target("", "mypod"),
        ),
        (
            resource(Resource {
                api_group: "v2",
                namespace: Namespace::new("test"),
                subresource: "quota",
                ..pod
            }),
            "NAME",
            "",
            "User \"NAME\" cannot get resource \"pod/quota\" in API group \
             \"v2\" in the namespace \"test\""
                .to_owned(),
            target("v2", ""),
        ),
        (
            resource(Resource { name: "n", ..Resource::default() }),
            "",
            "",
            format!("User \"\" cannot get resource \"\" {scope}"),
            ForbiddenTarget::NameOnly { name: "n".to_owned() },
        ),
    ] {
        assert_eq!(forbidden(attributes, name, reason), (message, target));
    }
}

/// An evaluation error counts unless the chain allows the request.
#[test]
fn evaluation_errors_are_ignored_if_allowed() {
    let attributes = Attributes { user: None, verb: Verb::GET, target: Target::Path("/") };
    let failed = |decision: Decision| decision.with_error(EvaluationErrors::message("ARGH & <x>"));
    assert_eq!(check_allowed(&attributes, "/", &failed(Decision::allow(""))), Ok(()));
    for decision in [Decision::deny("r"), Decision::no_opinion("r")] {
        let want = "Internal Server Error: \"/&lt;script&gt;?a=b\": ARGH &amp; &lt;x&gt;\n";
        assert_eq!(
            check_allowed(&attributes, "/<script>?a=b", &failed(decision.clone())),
            Err(AccessError::EvaluationFailed(want.to_owned()))
        );
        let checked = check_allowed(&attributes, "/", &decision);
        assert!(matches!(checked, Err(AccessError::Forbidden(_))));
    }
}

/// A request is neither allowed nor forbidden if this server could not consult an authorizer.
#[test]
fn unavailable_authorizers_have_their_own_error() {
    let attributes = resource(Resource { resource: "pods", ..Resource::default() });
    for why in [
        UnavailableCause::TooManyCalls,
        UnavailableCause::OutOfResources,
        UnavailableCause::DeadlineExceeded,
    ] {
        let decision =
            Decision::authorizer_unavailable(why).with_error(EvaluationErrors::message("secret"));
        let error = check_allowed(&attributes, "/uri", &decision).unwrap_err();
        assert_eq!(error, AccessError::Unavailable(why));
        assert!(!error.to_string().contains("secret"), "{error}");
        assert_eq!(access_reviews::check_authorizers_consulted(&decision), Err(why));
    }
}
