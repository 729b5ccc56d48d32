use authz::{EvaluationErrors, Namespace, Resource, Target, UnavailableCause, Verb};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::stage::StageSet;

const AT: &str = "2026-11-16T03:04:05.000006Z";

fn config(level: Level) -> RequestAuditConfig {
    RequestAuditConfig { level, omit_stages: StageSet::default(), omit_managed_fields: false }
}

fn event(level: Level, verb: &str, resource: Option<Resource<'_>>, user: Option<&User>) -> Event {
    let target = resource.map_or(Target::Path("/version"), Target::Resource);
    let received = ReceivedRequest {
        audit_id: "x",
        request_uri: "/api/v1/namespaces/web/pods?token=hunter",
        attributes: Attributes { user, verb: Verb::new(verb), target },
        source_ips: &["192.0.2.1".parse().unwrap()],
        user_agent: "kubectl/v1.32",
        at: AT.parse().unwrap(),
    };
    Event::new(&received, config(level))
}

fn pods() -> Resource<'static> {
    Resource {
        api_version: "v1",
        namespace: Namespace::new("web"),
        resource: "pods",
        ..Resource::default()
    }
}

fn ana() -> User {
    User {
        name: "ana".to_owned(),
        groups: vec!["dev".to_owned(), "system:authenticated".to_owned()],
        extra: [("k".to_owned(), vec!["v".to_owned()])].into(),
        ..User::default()
    }
}

fn line(event: &Event, stage: Stage) -> Value {
    let line = event.encode_json_line(stage, "2026-11-16T03:04:05.5Z".parse().unwrap());
    assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
    assert_eq!(line.last(), Some(&b'\n'));
    serde_json::from_slice(&line).unwrap()
}

/// The line of stage ResponseComplete for a creation.
#[test]
fn a_creation_at_level_request_response() {
    let user = ana();
    let mut event = event(Level::RequestResponse, "create", Some(pods()), Some(&user));
    event.add_decision_annotations(&Decision::allow("because"));
    event.set_request_object(&json!({"kind": "Pod", "metadata": {"name": "a"}}));
    event.set_response_status(201, None);
    event.set_response_object(&json!({"kind": "Pod", "metadata": {"name": "a", "uid": "u"}}));
    let text = String::from_utf8(
        event.encode_json_line(Stage::ResponseComplete, "2026-11-16T03:04:05.5Z".parse().unwrap()),
    );
    assert_eq!(
        text.unwrap(),
        concat!(
            r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","#,
            r#""auditID":"x","stage":"ResponseComplete","#,
            r#""requestURI":"/api/v1/namespaces/web/pods?token=redacted","verb":"create","#,
            r#""user":{"username":"ana","groups":["dev","system:authenticated"],"#,
            r#""extra":{"k":["v"]}},"sourceIPs":["192.0.2.1"],"userAgent":"kubectl/v1.32","#,
            r#""objectRef":{"resource":"pods","namespace":"web","name":"a","apiVersion":"v1"},"#,
            r#""responseStatus":{"metadata":{},"code":201},"#,
            r#""requestObject":{"kind":"Pod","metadata":{"name":"a"}},"#,
            r#""responseObject":{"kind":"Pod","metadata":{"name":"a","uid":"u"}},"#,
            r#""requestReceivedTimestamp":"2026-11-16T03:04:05.000006Z","#,
            r#""stageTimestamp":"2026-11-16T03:04:05.500000Z","#,
            r#""annotations":{"authorization.k8s.io/decision":"allow","#,
            r#""authorization.k8s.io/reason":"because"}}"#,
            "\n",
        )
    );
}

/// The line for a request that was denied.
#[test]
fn a_denial() {
    let mut event = event(Level::Metadata, "create", Some(pods()), Some(&ana()));
    event.add_decision_annotations(&Decision::deny(""));
    event.set_response_status(
        403,
        Some(&json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "EvaluationErrors",
                     "message": "no", "reason": "Forbidden", "details": {"kind": "pods"},
                     "code": 403})),
    );
    let line = line(&event, Stage::ResponseComplete);
    assert_eq!(
        line["responseStatus"],
        json!({"metadata": {}, "status": "EvaluationErrors", "message": "no", "reason": "Forbidden",
               "details": {"kind": "pods"}, "code": 403})
    );
    assert_eq!(
        line["annotations"],
        json!({"authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": ""})
    );
}

#[test]
fn decisions_become_annotations() {
    let failed = |decision: Decision| decision.with_error(EvaluationErrors::message("e"));
    let both = |decision: &str, reason: &str| json!({"authorization.k8s.io/decision": decision, "authorization.k8s.io/reason": reason});
    let unavailable = || Decision::authorizer_unavailable(UnavailableCause::TooManyCalls);
    for (decision, want) in [
        (Decision::allow("RBAC: allowed"), both("allow", "RBAC: allowed")),
        (failed(Decision::allow("")), both("allow", "")),
        (Decision::deny("no"), both("forbid", "no")),
        (Decision::no_opinion("no"), both("forbid", "no")),
        (
            failed(Decision::no_opinion("no")),
            json!({"authorization.k8s.io/reason": "internal error"}),
        ),
        (unavailable(), json!({"authorization.k8s.io/reason": "unavailable"})),
        (failed(unavailable()), json!({"authorization.k8s.io/reason": "unavailable"})),
    ] {
        let mut event = event(Level::Metadata, "create", Some(pods()), Some(&ana()));
        event.add_decision_annotations(&decision);
        assert_eq!(line(&event, Stage::ResponseComplete)["annotations"], want);
    }
}

#[test]
fn levels_say_which_bodies_are_there() {
    let cases = [
        (Level::Metadata, false, false),
        (Level::Request, true, false),
        (Level::RequestResponse, true, true),
    ];
    for (level, want_request, want_response) in cases {
        for resource in [Some(pods()), None] {
            let mut event = event(level, "update", resource, None);
            event.set_request_object(&json!({"metadata": {"name": "a"}}));
            event.set_response_object(&json!({"metadata": {"name": "a"}}));
            let line = line(&event, Stage::ResponseComplete);
            // Bodies belong to resources.
            let is_resource = resource.is_some();
            assert_eq!(line.get("requestObject").is_some(), want_request && is_resource);
            assert_eq!(line.get("responseObject").is_some(), want_response && is_resource);
            assert_eq!(line.get("objectRef").is_some(), is_resource);
        }
    }
}

#[test]
fn the_body_completes_what_the_url_does_not_say() {
    let mut event = event(Level::Metadata, "create", Some(pods()), None);
    event.set_request_object(&json!({"metadata": {
        "name": "a", "namespace": "other", "uid": "u", "resourceVersion": "7"}}));
    assert_eq!(
        line(&event, Stage::RequestReceived)["objectRef"],
        json!({"resource": "pods", "namespace": "web", "name": "a", "uid": "u",
               "apiVersion": "v1", "resourceVersion": "7"})
    );
}

#[test]
fn users() {
    let mut event = event(Level::Metadata, "get", None, None);
    assert_eq!(line(&event, Stage::ResponseStarted)["user"], json!({}));
    event.set_impersonated_user(&ana(), "impersonate:user-info");
    let line = line(&event, Stage::ResponseStarted);
    assert_eq!(line["impersonatedUser"]["username"], "ana");
    assert_eq!(
        line["authenticationMetadata"],
        json!({"impersonationConstraint": "impersonate:user-info"})
    );
}

#[test]
fn stages_that_are_left_out() {
    let mut event = event(Level::Metadata, "get", None, None);
    event.audit_config.omit_stages = StageSet::default().with_stage(Stage::RequestReceived);
    assert!(!event.records_stage(Stage::RequestReceived));
    assert!(event.records_stage(Stage::ResponseComplete));
}

#[test]
fn the_first_annotation_of_a_key_stays_and_their_number_is_bounded() {
    let mut event = event(Level::Metadata, "get", None, None);
    assert!(event.add_annotation("a", "1"));
    assert!(!event.add_annotation("a", "2"));
    let long = "é".repeat(ANNOTATION_BYTES_MAX);
    assert!(event.add_annotation("long", &long));
    for n in 2..ANNOTATIONS_MAX {
        assert!(event.add_annotation(format!("k{n}"), ""));
    }
    assert!(!event.add_annotation("one-more", ""));
    let annotations = &line(&event, Stage::ResponseComplete)["annotations"];
    assert_eq!(annotations["a"], "1");
    assert_eq!(annotations["long"].as_str().unwrap().len(), ANNOTATION_BYTES_MAX);
}

#[test]
fn a_long_user_agent_is_cut() {
    assert_eq!(truncate_user_agent(&"a".repeat(1024)), "a".repeat(1024));
    assert_eq!(truncate_user_agent(&"a".repeat(1025)), format!("{}...TRUNCATED", "a".repeat(1024)));
    // A character is not cut in two.
    assert_eq!(truncate_user_agent(&"é".repeat(513)), format!("{}...TRUNCATED", "é".repeat(512)));
    assert_eq!(
        truncate_user_agent(&format!("a{}", "é".repeat(512))).len(),
        1023 + "...TRUNCATED".len()
    );
}

#[test]
fn an_event_that_is_too_long_loses_its_bodies() {
    let mut event = event(Level::RequestResponse, "list", Some(pods()), None);
    event.set_response_object(&json!({"items": "a".repeat(EVENT_BYTES_MAX)}));
    event.set_response_status(200, None);
    let line = line(&event, Stage::ResponseComplete);
    assert_eq!(line.get("responseObject"), None);
    assert_eq!(line["responseStatus"]["code"], 200);
    assert_eq!(line["annotations"], json!({"audit.k8s.io/truncated": "true"}));
}

/// A hook's patch of a Secret is masked like the Secret; its operations and paths are shown.
#[test]
fn patches_of_hooks_hold_no_secret() {
    let patch = json!([{"op": "add", "path": "/data", "value": {"k": "aHVudGVyMg=="}}]);
    let value = json!({"webhook": "w", "patch": patch, "patchType": "JSONPatch"}).to_string();
    for (resource, is_shown) in [("secrets", false), ("configmaps", true)] {
        let resource = Resource { resource, ..pods() };
        let mut event = event(Level::Request, "create", Some(resource), None);
        assert!(event.add_patch_annotation("patch", &value));
        assert!(event.add_patch_annotation("odd", "aHVudGVyMg=="));
        let text = line(&event, Stage::ResponseComplete).to_string();
        assert_eq!(text.contains("aHVudGVyMg=="), is_shown, "{text}");
        assert!(text.contains("/data"), "{text}");
    }
}

/// How a secret can be part of a request for a resource.
fn bodies(secret: &str, key: &str) -> Vec<(&'static str, &'static str, &'static str, Value)> {
    let applied = json!({"data": {key: secret}}).to_string();
    let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": applied});
    let object = json!({
        "kind": "Secret", "apiVersion": "v1",
        "metadata": {"name": "a", "annotations": annotations},
        "data": {key: secret}, "stringData": {key: secret}, key: {"deep": [secret]},
    });
    let mut nameless = object.clone();
    nameless.as_object_mut().unwrap().remove("kind");
    vec![
        ("", "secrets", "", object.clone()),
        ("", "secrets", "", nameless.clone()),
        ("", "secrets", "", json!({"kind": "SecretList", "items": [nameless]})),
        ("", "secrets", "", json!({"kind": "Table", "rows": [{"object": nameless}]})),
        ("", "secrets", "", json!({"data": {key: secret}})),
        ("", "secrets", "", json!({"data": secret, "stringData": [secret]})),
        ("", "secrets", "", json!([{"op": "add", "path": "/data/a", "value": secret}])),
        ("", "secrets", "", json!([{"op": "add", "path": "", "value": object}])),
        ("", "secrets", "", json!(secret)),
        ("", "secrets", "", json!([[secret]])),
        ("", "pods", "", json!({"kind": "List", "items": [object]})),
        ("", "serviceaccounts", "token", json!({"status": {"token": secret, key: secret}})),
        ("authentication.k8s.io", "tokenreviews", "", json!({"spec": {"token": secret}})),
        (
            "authentication.k8s.io",
            "tokenreviews",
            "",
            json!({"kind": "TokenReview", "spec": {"token": secret, key: secret}}),
        ),
    ]
}

proptest! {
    #[test]
    fn no_secret_is_in_any_line(
        secret in "[A-Za-z0-9+/_.-]{12,60}",
        // Short enough never to be a member that is shown.
        key in "x[a-z]{0,3}",
        level in prop::sample::select(&Level::ALL[1..]),
        parameter in "(access_)?[Tt]oken|password|client_secret",
        omit_managed_fields: bool,
    ) {
        for (api_group, resource, subresource, body) in bodies(&secret, &key) {
            let resource = Resource { api_group, resource, subresource, ..Resource::default() };
            let received = ReceivedRequest {
                audit_id: "x",
                request_uri: &format!("/api?{parameter}={secret}"),
                attributes: Attributes {
                    user: None,
                    verb: Verb::CREATE,
                    target: Target::Resource(resource),
                },
                source_ips: &[],
                user_agent: "",
                at: AT.parse().unwrap(),
            };
            let mut event = Event::new(&received, RequestAuditConfig { omit_managed_fields, ..config(level) });
            event.set_request_object(&body);
            event.set_response_status(201, None);
            event.set_response_object(&body);
            for as_patch in [false, true] {
                if as_patch {
                    event.set_request_patch(&body);
                }
                for stage in Stage::ALL {
                    let line = String::from_utf8(event.encode_json_line(stage, received.at)).unwrap();
                    prop_assert!(!line.contains(&secret), "{body} gives {line}");
                }
            }
        }
    }
}
