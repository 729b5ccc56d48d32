//! The reviews that hooks receive.

use admission::{Attributes, Operation};
use admission_hooks::HookRequest;
use api_object::Tree;
use serde_json::{Value, json};

use crate::fixture::{Scene, allow, answer_to, hook, peer, review, says, widget, with};

fn tree(value: Value) -> Tree {
    value.as_object().unwrap().clone()
}

/// The review that the one validating hook of a scene receives.
async fn asked(
    scene: &Scene,
    change: impl for<'a> Fn(&mut Attributes<'a>),
    options: Option<&Tree>,
) -> Value {
    let peer = peer(says(allow()));
    let mut of_peer = Scene::new().validating("c", vec![hook("v.x.y", &peer)]);
    of_peer.operation = scene.operation;
    of_peer.object = scene.object.clone();
    of_peer.old_object = scene.old_object.clone();
    let snapshot = of_peer.snapshot();
    let connections = of_peer.connections(&snapshot);
    let asking = of_peer.asking(&snapshot, &connections);
    let mut attributes = Attributes { options, ..asking.attributes };
    change(&mut attributes);
    let asking = HookRequest { attributes, ..asking };
    of_peer.session().validate(&asking).await.unwrap();
    let body = review(&peer.requests()[0]);
    assert_eq!(body["apiVersion"], "admission.k8s.io/v1");
    body["request"].clone()
}

#[tokio::test]
async fn updates_have_both_objects_and_deletions_the_old_one() {
    let mut scene = Scene::new();
    scene.operation = Operation::Update;
    scene.old_object = Some(widget());
    let options = tree(json!({"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"}));
    let request = asked(&scene, |_| {}, Some(&options)).await;
    assert_eq!(request["uid"].as_str().unwrap().len(), 36);
    assert_eq!(request["operation"], "UPDATE");
    assert_eq!((&request["object"], &request["oldObject"]), (&json!(widget()), &json!(widget())));
    assert_eq!((&request["dryRun"], &request["options"]), (&json!(false), &json!(options)));

    scene.operation = Operation::Delete;
    scene.object = None;
    let options = tree(json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}));
    let request = asked(&scene, |_| {}, Some(&options)).await;
    assert_eq!((&request["object"], &request["oldObject"]), (&json!(null), &json!(widget())));
    assert_eq!(request["options"]["kind"], "DeleteOptions");
    assert!(request.as_object().unwrap().contains_key("object"));
}

#[tokio::test]
async fn what_is_empty_is_left_out_but_for_objects_and_options() {
    // An item of a deleted collection, and an object whose name is not yet made, have no
    // name.
    let request = asked(&Scene::new(), |it| it.name = "", None).await;
    let members: Vec<_> = request.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        members,
        [
            "uid",
            "kind",
            "resource",
            "requestKind",
            "requestResource",
            "namespace",
            "operation",
            "userInfo",
            "object",
            "oldObject",
            "dryRun",
            "options"
        ]
    );
    let connect = |it: &mut Attributes<'_>| {
        it.operation = Operation::Connect;
        it.subresource = "exec";
    };
    let request = asked(&Scene::new(), connect, None).await;
    assert_eq!((&request["operation"], &request["options"]), (&json!("CONNECT"), &json!(null)));
    assert_eq!(
        (&request["subResource"], &request["requestSubResource"]),
        (&json!("exec"), &json!("exec"))
    );
}

#[tokio::test]
async fn the_first_version_that_is_known_here_is_sent() {
    let peer = peer(fake_http::Script::rule(|request| {
        let version = review(request)["apiVersion"].clone();
        let answer = json!({"apiVersion": version, "kind": "AdmissionReview", "response": allow()});
        fake_http::Answer::json(answer.to_string())
    }));
    let versions = json!(["v9", "v1beta1", "v1"]);
    let scene = Scene::new()
        .validating("c", vec![with(hook("v.x.y", &peer), "admissionReviewVersions", versions)]);
    scene.allowed().await;
    let asked = peer.requests().remove(0);
    assert_eq!(review(&asked)["apiVersion"], "admission.k8s.io/v1beta1");
    assert_eq!((asked.method.as_str(), asked.target.as_str()), ("POST", "/admit?timeout=10s"));
    assert_eq!(asked.header("content-type"), Some("application/json"));
    assert_eq!(asked.header("accept"), Some("application/json, */*"));
}

#[tokio::test]
async fn hooks_are_not_asked_about_their_own_configuration() {
    let peer = peer(fake_http::Script::rule(|request| answer_to(request, allow())));
    let scene = Scene::new()
        .mutating("a", vec![hook("m.x.y", &peer)])
        .validating("b", vec![hook("v.x.y", &peer)]);
    let snapshot = scene.snapshot();
    let connections = scene.connections(&snapshot);
    let asking = scene.asking(&snapshot, &connections);
    let mut attributes = asking.attributes;
    attributes.kind.group = "admissionregistration.k8s.io";
    attributes.kind.kind = "ValidatingWebhookConfiguration";
    let matched_hooks = &snapshot.match_hooks(&attributes);
    let asking = HookRequest { attributes, matched_hooks, ..asking };
    let mut session = scene.session();
    session.call_mutating_hooks(&asking, scene.object.clone()).await.unwrap();
    session.validate(&asking).await.unwrap();
    assert_eq!(peer.n_requests(), 0);
    assert!(session.into_report().hook_events.is_empty());
}
