//! Calls of hooks that fail.

use std::time::Duration;

use fake_http::{Answer, Body, Conduct, Leaf, Peer, Script};
use serde_json::{Value, json};

use super::{Scene, message};
use crate::admission_hooks::{
    HookAuthority, MUTATING, VALIDATING, allow, answer, answering, asked, patch_of, plant,
    webhook_configuration,
};

/// A hook that cannot be called, or whose response is no review.
struct Bad {
    row: &'static str,
    peer: Peer,
    /// The fields of the entry that are replaced.
    changes: Value,
    /// How the cause begins.
    cause: &'static str,
}

/// A review that is right but for some members.
fn almost(changes: Value) -> Script {
    Script::rule(move |request| {
        let response = json!({"uid": asked(request)["uid"], "allowed": true});
        let mut review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": response});
        for (member, value) in changes.as_object().expect("an object") {
            match value {
                Value::Null => {
                    drop(review.as_object_mut().expect("an object").shift_remove(member))
                }
                value => review[member] = value.clone(),
            }
        }
        Answer::json(review.to_string())
    })
}

fn bad_hooks(scene: &Scene) -> Vec<Bad> {
    let bad = |row, script: Script, cause| Bad {
        row,
        peer: scene.hook(script),
        changes: json!({}),
        cause,
    };
    let called = "failed to call webhook: ";
    let invalid = "received invalid webhook response: ";
    let other = HookAuthority::new();
    let mut all = vec![
        bad("wrong uid", almost(json!({"response": {"uid": "x", "allowed": true}})), invalid),
        bad("no apiVersion and kind", almost(json!({"apiVersion": null, "kind": null})), invalid),
        bad("wrong kind", almost(json!({"kind": "Other"})), called),
        bad("no response", almost(json!({"response": null})), invalid),
        bad("status 500", Answer::json("{}").status(500).into(), called),
        bad("connection refused", Answer::misbehave(Conduct::Refuse).into(), called),
        bad("no HTTP", Answer::misbehave(Conduct::Raw("garbage\n".into())).into(), called),
        bad("closed", Answer::misbehave(Conduct::Close).into(), called),
        bad("status 429", Answer::json("{}").status(429).header("Retry-After", "1").into(), called),
        bad("redirect", Answer::redirect("/elsewhere").into(), called),
        bad("status 204", Answer::json("").status(204).into(), called),
        bad("empty", Answer::json("").into(), called),
        bad("no JSON", Answer::json("no JSON").into(), called),
        bad("too long", Answer::json("").body(Body::Filler(5 << 20)).into(), called),
        bad(
            "bad review",
            Answer::json(r#"{"kind":"Status","apiVersion":"v1","code":403}"#).into(),
            called,
        ),
        Bad {
            peer: scene.authority.service(&Leaf::server(&["other"]), allow()),
            ..bad("certificate for another name", allow(), called)
        },
        Bad {
            peer: other.hook(allow()),
            ..bad("certificate of another authority", allow(), called)
        },
    ];
    let peer = scene.hook(allow());
    let url = json!({"url": format!("https://{}/", peer.address())});
    all.push(Bad {
        row: "no caBundle",
        peer,
        changes: json!({"clientConfig": url}),
        cause: called,
    });
    let peer = scene.hook(allow());
    let broken = json!({"url": format!("https://{}/", peer.address()), "caBundle": "bm8="});
    let cause = "could not get REST client: ";
    all.push(Bad { row: "broken client", peer, changes: json!({"clientConfig": broken}), cause });
    all
}

/// Each failure in both phases: with failure policy Fail, and with Ignore and its annotations.
#[tokio::test(flavor = "multi_thread")]
async fn calls_that_fail() {
    for (phase, kind) in [(MUTATING, "admit"), (VALIDATING, "validating")] {
        let scene = Scene::start().await;
        for (idx, Bad { row, peer, changes, cause }) in bad_hooks(&scene).into_iter().enumerate() {
            let name = format!("h{idx}.x.y");
            // The default failure policy is Fail.
            scene.configure(phase, &[scene.webhook(&name, &peer, changes.clone())]).await;
            let answer = scene.create("dryRun=All").await;
            let status = answer.json();
            let text = message(answer, 500);
            let want =
                format!("Internal error occurred: failed calling webhook \"{name}\": {cause}");
            assert!(text.starts_with(&want), "{row} {phase}: {text}");
            assert_eq!(status["reason"], "InternalError", "{row}");
            assert!(peer.n_requests() <= 1, "{row}: called {} times", peer.n_requests());

            let mut changes = changes;
            changes["failurePolicy"] = "Ignore".into();
            scene.configure(phase, &[scene.webhook(&name, &peer, changes)]).await;
            scene.create("dryRun=All").await.expect(201);
            let labels = format!("{{name=\"{name}\",type=\"{kind}\"}}");
            let series = format!("apiserver_admission_webhook_fail_open_count{labels}");
            assert_eq!(scene.metric(&series).await, 1.0, "{row}");
            assert!(peer.n_requests() <= 2, "{row}: called {} times", peer.n_requests());
        }
    }
}

/// Failed calls are counted.
#[tokio::test(flavor = "multi_thread")]
async fn calls_that_fail_are_counted() {
    let scene = Scene::start().await;
    let hook = scene.hook(Answer::misbehave(Conduct::Refuse));
    scene.ask(VALIDATING, &hook, json!({})).await;
    scene.create("").await.expect(500);
    let labels = "error_type=\"calling_webhook_error\",name=\"h.x.y\",operation=\"CREATE\",\
                  rejection_code=\"503\",type=\"validating\"";
    let series = format!("apiserver_admission_webhook_rejection_count{{{labels}}}");
    assert_eq!(scene.metric(&series).await, 1.0);
    let labels =
        "code=\"503\",name=\"h.x.y\",operation=\"CREATE\",rejected=\"true\",type=\"validating\"";
    let series = format!("apiserver_admission_webhook_request_total{{{labels}}}");
    assert_eq!(scene.metric(&series).await, 1.0);
}

/// Configurations that older servers have stored.
#[tokio::test(flavor = "multi_thread")]
async fn stored_hooks_that_no_server_would_accept_today() {
    let scene = Scene::start().await;
    let hook = scene.hook(allow());
    let stored = |changes: Value| {
        let mut webhook = scene.webhook("h.x.y", &hook, changes);
        webhook["rules"] = json!([crate::admission_hooks::rule(&["CREATE"], "", "configmaps")]);
        let mut object = webhook_configuration(VALIDATING, "c", &[webhook]);
        object["metadata"]["uid"] = "u".into();
        object
    };
    let unknown = stored(json!({"admissionReviewVersions": ["v2", "v3"]}));
    let mut silent = stored(json!({}));
    silent["webhooks"][0].as_object_mut().unwrap().shift_remove("sideEffects");
    let selector = json!({"matchExpressions": [{"key": "a", "operator": "Foo"}]});
    let by_object = stored(json!({"objectSelector": selector, "failurePolicy": "Ignore"}));
    let by_namespace = stored(json!({"namespaceSelector": selector, "failurePolicy": "Ignore"}));
    let failed = "failed calling webhook \"h.x.y\": ";
    for (row, object, want) in [
        (
            "unknown review versions",
            unknown,
            format!(
                "{failed}could not create admission objects: webhook does not accept known \
                 AdmissionReview versions (v1, v1beta1)"
            ),
        ),
        ("no side effects", silent, format!("{failed}Webhook SideEffects is nil")),
        (
            "the failure policy does not apply",
            by_object,
            "\"Foo\" is not a valid label selector operator".to_owned(),
        ),
        ("selector", by_namespace, "\"Foo\" is not a valid label selector operator".to_owned()),
    ] {
        let revision =
            plant(&scene.cluster, "validatingwebhookconfigurations/c", object.to_string()).await;
        // The server does not know an object at once that was written to the store directly.
        let answer = loop {
            let answer = scene.create("dryRun=All").await;
            let known =
                answer.headers["portcullis-admission-revision"].to_str().unwrap().to_owned();
            if known.parse::<u64>().unwrap() >= revision {
                break answer;
            }
        };
        let text = message(answer, 500);
        assert_eq!(text, format!("Internal error occurred: {want}"), "{row}");
        scene.admin.delete(&format!("{VALIDATING}/c")).await.expect(200);
    }
    assert_eq!(hook.n_requests(), 0);
}

/// The older review version is sent when it comes first in the list, and its response needs fewer fields. An
/// answer of another kind cannot be decoded, though.
#[tokio::test(flavor = "multi_thread")]
async fn the_older_form_of_reviews() {
    let scene = Scene::start().await;
    let loose = r#"{"response":{"uid":"other","allowed":true}}"#;
    for phase in [MUTATING, VALIDATING] {
        let hook = scene.hook(Answer::json(loose));
        scene.ask(phase, &hook, json!({"admissionReviewVersions": ["v1beta1", "v1"]})).await;
        scene.create("dryRun=All").await.expect(201);
        let request = hook.take_requests().remove(0);
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(body["apiVersion"], "admission.k8s.io/v1beta1");
        scene.ask(phase, &hook, json!({"admissionReviewVersions": ["v2", "v1", "v1beta1"]})).await;
        scene.create("dryRun=All").await.expect(500);
        let request = hook.take_requests().remove(0);
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(body["apiVersion"], "admission.k8s.io/v1");
        scene.admin.delete(&format!("{phase}/c")).await.expect(200);
    }
}

/// The request that a hook receives.
#[tokio::test(flavor = "multi_thread")]
async fn calls_are_posts_of_json_over_http_1() {
    let scene = Scene::start().await;
    let hook = scene.hook(allow());
    scene.ask(VALIDATING, &hook, json!({})).await;
    scene.create("dryRun=All").await.expect(201);
    let request = hook.take_requests().remove(0);
    assert_eq!((&*request.method, &*request.target), ("POST", "/admit?timeout=5s"));
    for (header, want) in [
        ("content-type", "application/json"),
        ("accept", "application/json, */*"),
        ("user-agent", "portcullis-admission"),
    ] {
        assert_eq!(request.header(header), Some(want));
    }
}

/// A validating hook must not return a patch.
#[tokio::test(flavor = "multi_thread")]
async fn a_validating_hook_with_a_patch() {
    let scene = Scene::start().await;
    let patch = patch_of(&json!([{"op": "add", "path": "/data/x", "value": "y"}]));
    let hook = scene.hook(answering(patch.clone()));
    scene.ask(VALIDATING, &hook, json!({})).await;
    let text = message(scene.create("").await, 500);
    let want = "Internal error occurred: failed calling webhook \"h.x.y\": received invalid webhook \
                response: ";
    assert!(text.starts_with(want), "{text}");
    hook.replace(Answer::json(json!({"response": patch}).to_string())).unwrap();
    scene.ask(VALIDATING, &hook, json!({"admissionReviewVersions": ["v1beta1"]})).await;
    let made = scene.create("").await.expect(201);
    assert_eq!(made["data"], json!({"a": "b"}));
}

/// Each call in progress has a connection, and connections are reused.
#[tokio::test(flavor = "multi_thread")]
async fn connections_are_kept() {
    let scene = Scene::start().await;
    let slow = |request: &fake_http::Request| {
        answer(request, &json!({"allowed": true})).delay(Duration::from_millis(500))
    };
    let hook = scene.hook(Script::rule(slow));
    scene.ask(VALIDATING, &hook, json!({"timeoutSeconds": 20})).await;
    for round in 0..2 {
        let mut requests = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let admin = scene.admin.clone();
            requests.spawn(async move {
                let path = format!("{}?dryRun=All", super::MAPS);
                admin.post(&path, &super::map("m")).await.expect(201);
            });
        }
        requests.join_all().await;
        assert_eq!(hook.n_requests(), 10 * (round + 1));
    }
    assert!(hook.n_accepted() < 20, "{} connections for 20 calls", hook.n_accepted());
}
