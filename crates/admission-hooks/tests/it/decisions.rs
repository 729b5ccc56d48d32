//! Denials of hooks, and which of several denials counts.

use std::time::Duration;

use admission_hooks::{CallVerdict, HookOutcome, HookRefusal};
use fake_http::Script;
use serde_json::json;

use crate::fixture::{
    Scene, allow, annotations, answer_to, deny, hook, label, peer, review, says, with,
};

#[tokio::test]
async fn a_denial_is_told_with_its_code_reason_and_name() {
    let status = json!({"message": "no", "reason": "Odd", "code": 403});
    let peer = peer(says(json!({"allowed": false, "status": status})));
    let scene =
        Scene::new().validating("c", vec![with(hook("v.x.y", &peer), "failurePolicy", "Ignore")]);
    let (refusal, _) = scene.refused().await;
    let HookRefusal::Denied(denial) = refusal else { panic!("{refusal}") };
    assert_eq!((denial.code, denial.reason.as_str()), (403, "Odd"));
    assert_eq!(denial.message, "admission webhook \"v.x.y\" denied the request: no");
    assert_eq!(*scene.seen.calls.lock().unwrap(), [("v.x.y".to_owned(), 403, Some("no_error"))]);
}

#[tokio::test]
async fn the_first_of_several_denials_counts_however_slow_it_is() {
    let slow =
        Script::rule(|request| answer_to(request, deny("slow")).delay(Duration::from_millis(200)));
    let (a, b) = (peer(slow), peer(says(deny("fast"))));
    let scene = Scene::new().validating("c", vec![hook("a.x.y", &a), hook("b.x.y", &b)]);
    let (refusal, notes) = scene.refused().await;
    assert!(refusal.to_string().ends_with("denied the request: slow"), "{refusal}");
    let denials = notes.hook_events.iter().filter(|event| {
        matches!(&event.hook_outcome, HookOutcome::Called { verdict: CallVerdict::Deny(_), .. })
    });
    assert_eq!(denials.count(), 2);
}

#[tokio::test]
async fn validating_hooks_are_called_at_once() {
    // Each answers only after all three were asked, so that one after the other never ends.
    let barrier = std::sync::Arc::new(std::sync::Barrier::new(3));
    let peers: Vec<_> = (0..3)
        .map(|_| {
            let barrier = std::sync::Arc::clone(&barrier);
            peer(Script::rule(move |request| {
                barrier.wait();
                answer_to(request, allow())
            }))
        })
        .collect();
    let hooks = peers.iter().enumerate().map(|(n, peer)| hook(&format!("v{n}.x.y"), peer));
    let scene = Scene::new().validating("c", hooks.collect());
    let (_, notes) = scene.allowed().await;
    assert_eq!(notes.hook_events.len(), 3);
}

#[tokio::test]
async fn mutating_hooks_are_called_in_the_order_of_their_configurations() {
    let (a, b) = (peer(says(label("a", "1"))), peer(says(allow())));
    let scene =
        Scene::new().mutating("b", vec![hook("b.x.y", &b)]).mutating("a", vec![hook("a.x.y", &a)]);
    scene.allowed().await;
    assert_eq!(review(&b.requests()[0])["request"]["object"]["metadata"]["labels"]["a"], "1");

    let (a, b) = (peer(says(deny("stop"))), peer(says(allow())));
    let scene =
        Scene::new().mutating("b", vec![hook("b.x.y", &b)]).mutating("a", vec![hook("a.x.y", &a)]);
    assert!(scene.complaint().await.ends_with("denied the request: stop"));
    assert_eq!((a.n_requests(), b.n_requests()), (1, 0));
}

#[tokio::test]
async fn warnings_and_annotations_come_from_every_valid_answer() {
    let told = json!({
        "allowed": false, "warnings": ["w", "w", "a\nb"],
        "auditAnnotations": {"key1": "v", "invalid*key": "x"},
    });
    let peer = peer(says(told));
    let (_, notes) = Scene::new().validating("c", vec![hook("h.x.y", &peer)]).refused().await;
    assert_eq!(notes.warnings, ["w"]);
    assert_eq!(annotations(&notes).into_iter().collect::<Vec<_>>(), [("h.x.y/key1", "v")]);
}

#[tokio::test]
async fn hooks_of_v1alpha1_come_first_and_decide_in_their_own_form() {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    let refusing = json!({"status": {"allowed": false, "status": {"message": "no"}}});
    let first = crate::places::service_peer("hook.ns.svc", refusing.to_string().as_bytes());
    let later = peer(says(deny("later")));
    let external = json!({
        "name": "e.x.y", "rules": [{
            "verbs": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"],
        }],
        "clientConfig": {
            "service": {"namespace": "ns", "name": "hook"}, "urlPath": "/e",
            "caBundle": STANDARD.encode(crate::fixture::AUTHORITY.pem()),
        },
    });
    let mut scene =
        Scene::new().validating("a", vec![hook("v.x.y", &later)]).external("z", vec![external]);
    scene.environment = crate::places::environment(&[("hook", &[8443], first.address())]);
    let (refusal, _) = scene.refused().await;
    let HookRefusal::Denied(denial) = refusal else { panic!("{refusal}") };
    assert_eq!(denial.code, 400);
    assert_eq!(denial.message, "admission webhook \"e.x.y\" denied the request: no");
    let body = review(&first.requests()[0]);
    assert_eq!(body["apiVersion"], "admission.k8s.io/v1alpha1");
    assert_eq!(body["status"], json!({"allowed": false}));
    assert_eq!(body["spec"]["name"], "w");
    assert_eq!(body.get("request"), None);
    assert_eq!(first.requests()[0].target, "/e?timeout=30s");
}
