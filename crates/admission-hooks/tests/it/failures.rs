//! Failed calls, and the effect of the failure policy.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use admission_hooks::{
    HookConnections, HookEnvironment, HookRefusal, HookSession, RESPONSE_BYTES_MAX,
};
use authz::User;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_http::{Answer, Body, Conduct, Leaf, Peer, Script, ServerTls};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fixture::{
    AUTHORITY, Admission, Scene, allow, annotations, answer_to, deny, hook, patch, peer, says,
    until, widget, with,
};

const FAILED: &str = "Internal error occurred: failed calling webhook \"v.x.y\": ";

fn ignored(hook: Value) -> Value {
    with(hook, "failurePolicy", "Ignore")
}

#[tokio::test]
async fn a_failed_call_is_ignored_or_not() {
    let peer = peer(Answer::json("oops").content_type(Some("text/plain")).status(500));
    let scene = Scene::new().validating("c", vec![ignored(hook("v.x.y", &peer))]);
    let (_, notes) = scene.allowed().await;
    let by = "failed-open-by.validating.webhook.portcullis.io/round_0_index_0";
    let key = "failed-open.validating.webhook.admission.k8s.io/round_0_index_0";
    let want = [(by, "v.x.y: http_status"), (key, "v.x.y")];
    assert_eq!(annotations(&notes).into_iter().collect::<Vec<_>>(), want);
    assert_eq!(*scene.seen.failed_open.lock().unwrap(), ["v.x.y validating http_status"]);
    assert_eq!(*scene.seen.calls.lock().unwrap(), [("v.x.y".to_owned(), 500, None)]);

    for policy in [json!("Fail"), json!(null)] {
        let scene =
            Scene::new().validating("c", vec![with(hook("v.x.y", &peer), "failurePolicy", policy)]);
        let (refusal, _) = scene.refused().await;
        assert!(matches!(refusal, HookRefusal::FailedClosed { .. }));
        let want = "failed to call webhook: an error on the server (\"unknown\") has prevented the \
                    request from succeeding";
        assert_eq!(refusal.to_string(), format!("{FAILED}{want}"));
    }
}

#[tokio::test]
async fn every_failure_that_is_ignored_is_told() {
    let peer = peer(Answer::json("{}"));
    let hooks = || ["a.x.y", "b.x.y", "c.x.y"].map(|name| ignored(hook(name, &peer))).to_vec();
    let scene = Scene::new().mutating("m", hooks()).validating("v", hooks());
    let (_, notes) = scene.allowed().await;
    let all = annotations(&notes);
    for (idx, name) in ["a.x.y", "b.x.y", "c.x.y"].into_iter().enumerate() {
        for phase in ["mutation", "validating"] {
            let key = format!("failed-open.{phase}.webhook.admission.k8s.io/round_0_index_{idx}");
            assert_eq!(all.get(key.as_str()), Some(&name));
        }
    }
}

#[tokio::test]
async fn what_is_no_answer_counts_as_unavailable() {
    let refusing = peer(Answer::misbehave(Conduct::Refuse));
    let garbage = peer(Answer::misbehave(Conduct::Raw("nonsense\r\n\r\n".into())));
    let closing = peer(Answer::misbehave(Conduct::Close));
    for (peer, want) in [
        (&refusing, "connect: connection refused"),
        (&garbage, "malformed HTTP response"),
        (&closing, "EOF"),
    ] {
        let scene = Scene::new().validating("c", vec![hook("v.x.y", peer)]);
        let complaint = scene.complaint().await;
        let start = format!("{FAILED}failed to call webhook: Post \"https://");
        assert!(complaint.starts_with(&start) && complaint.ends_with(want), "{complaint}");
        let call = ("v.x.y".to_owned(), 503, Some("calling_webhook_error"));
        assert_eq!(*scene.seen.calls.lock().unwrap(), [call]);
    }
}

#[tokio::test]
async fn certificates_must_be_of_the_authority_and_name_the_host() {
    let start = |leaf| Peer::start_tls(says(allow()), &ServerTls::new(leaf)).unwrap();
    let other = fake_http::Authority::new("other").unwrap();
    let stranger = start(other.issue(&Leaf::loopback()).unwrap());
    let misnamed = start(AUTHORITY.issue(&Leaf::server(&["elsewhere.example.com"])).unwrap());
    let good = peer(says(allow()));
    let mut without_bundle = hook("v.x.y", &good);
    without_bundle["clientConfig"].as_object_mut().unwrap().remove("caBundle");
    for hook in [hook("v.x.y", &stranger), hook("v.x.y", &misnamed), without_bundle] {
        let complaint = Scene::new().validating("c", vec![hook]).complaint().await;
        assert!(complaint.contains("tls: failed to verify certificate: x509: "), "{complaint}");
    }
    let mut broken = hook("v.x.y", &good);
    broken["clientConfig"]["caBundle"] = "AAAA".into();
    let complaint = Scene::new().validating("c", vec![broken]).complaint().await;
    assert_eq!(
        complaint,
        format!("{FAILED}could not get REST client: unable to parse bytes as PEM block")
    );
    assert_eq!(good.n_requests(), 0);
}

/// L2, L5, A19: a hook cannot send the server elsewhere.
#[tokio::test]
async fn nothing_is_repeated_and_nobody_followed() {
    let elsewhere = peer(says(allow()));
    let busy = peer(Answer::json("").status(429).header("Retry-After", "1"));
    let moved = peer(Answer::redirect(&format!("https://{}/admit", elsewhere.address())));
    let empty = peer(Answer::json("").status(204));
    for (peer, want) in [
        (&busy, "the server has received too many requests and has asked us to try again later"),
        (
            &moved,
            "the server responded with the status code 302 but did not return more information",
        ),
        (&empty, "0-length response with status code: 204 and content type: application/json"),
    ] {
        let complaint = Scene::new().validating("c", vec![hook("v.x.y", peer)]).complaint().await;
        assert_eq!(complaint, format!("{FAILED}failed to call webhook: {want}"));
        assert_eq!(peer.n_requests(), 1);
    }
    assert_eq!(elsewhere.n_requests(), 0);
}

#[tokio::test]
async fn a_dry_run_calls_only_those_who_promise_to_do_nothing() {
    let peer = peer(says(allow()));
    for effects in ["None", "NoneOnDryRun"] {
        let mut scene =
            Scene::new().validating("c", vec![with(hook("v.x.y", &peer), "sideEffects", effects)]);
        scene.is_dry_run = true;
        scene.allowed().await;
        let asked = crate::fixture::review(&peer.take_requests()[0]);
        assert_eq!(asked["request"]["dryRun"], true);
    }
    for effects in ["Some", "Unknown"] {
        let hook = with(ignored(hook("v.x.y", &peer)), "sideEffects", effects);
        let mut scene = Scene::new().validating("c", vec![hook.clone()]);
        scene.is_dry_run = true;
        let (refusal, _) = scene.refused().await;
        assert!(matches!(refusal, HookRefusal::DryRunUnsupported { .. }));
        assert_eq!(refusal.to_string(), "admission webhook \"v.x.y\" does not support dry run");
        assert_eq!(scene.seen.calls.lock().unwrap()[0].2, Some("apiserver_internal_error"));

        // A hook that does not match is not called.
        let mut scene = Scene::new().validating("c", vec![with(hook, "rules", json!([]))]);
        scene.is_dry_run = true;
        scene.allowed().await;
    }
    assert_eq!(peer.n_requests(), 2);
}

/// Stored objects may predate the rule that makes `sideEffects` required.
#[tokio::test]
async fn a_dry_run_fails_for_those_who_promise_nothing_at_all() {
    let peer = peer(says(allow()));
    let mut silent = hook("v.x.y", &peer);
    silent.as_object_mut().unwrap().remove("sideEffects");
    for (hook, is_allowed) in [(silent.clone(), false), (ignored(silent), true)] {
        let mut scene = Scene::new().validating("c", vec![hook.clone()]);
        scene.is_dry_run = true;
        if is_allowed {
            scene.allowed().await;
            let want = ["v.x.y validating configuration"];
            assert_eq!(*scene.seen.failed_open.lock().unwrap(), want);
        } else {
            let (refusal, _) = scene.refused().await;
            assert!(matches!(refusal, HookRefusal::FailedClosed { .. }));
            assert_eq!(refusal.to_string(), format!("{FAILED}Webhook SideEffects is nil"));
            let call = ("v.x.y".to_owned(), 400, Some("calling_webhook_error"));
            assert_eq!(*scene.seen.calls.lock().unwrap(), [call]);
        }
        assert_eq!(peer.take_requests().len(), 0);
        // It makes no difference to a request that is meant.
        Scene::new().validating("c", vec![hook]).allowed().await;
        assert_eq!(peer.take_requests().len(), 1);
    }
}

#[tokio::test]
async fn a_hook_that_understands_no_review_can_not_be_asked() {
    let peer = peer(says(allow()));
    let unknown = with(hook("v.x.y", &peer), "admissionReviewVersions", json!(["v9"]));
    let scene = Scene::new().validating("c", vec![unknown]);
    assert_eq!(
        scene.complaint().await,
        format!(
            "{FAILED}could not create admission objects: webhook does not accept known \
             AdmissionReview versions (v1, v1beta1)"
        )
    );
    assert_eq!(scene.seen.calls.lock().unwrap()[0].1, 400);
}

#[tokio::test]
async fn a_patch_of_a_validating_hook_is_a_failure() {
    let peer = peer(says(patch(json!([]))));
    let complaint = Scene::new().validating("c", vec![hook("v.x.y", &peer)]).complaint().await;
    let want =
        "received invalid webhook response: validating webhook may not return response.patch";
    assert_eq!(complaint, format!("{FAILED}{want}"));
}

/// Attack A4: calls that failed say nothing about the next one.
#[tokio::test]
async fn a_service_that_failed_again_and_again_is_called_again() {
    let n_calls = AtomicUsize::new(0);
    let peer = peer(Script::rule(move |request| match n_calls.fetch_add(1, Relaxed) {
        0..30 => Answer::json("").status(500),
        _ => answer_to(request, deny("no")),
    }));
    let scene = Scene::new().validating("c", vec![ignored(hook("v.x.y", &peer))]);
    let snapshot = scene.snapshot();
    let connections = scene.connections(&snapshot);
    let asking = scene.asking(&snapshot, &connections);
    for _ in 0..30 {
        scene.session().validate(&asking).await.unwrap();
    }
    let refusal = scene.session().validate(&asking).await.unwrap_err();
    assert!(matches!(refusal, HookRefusal::Denied(denial) if denial.code == 400));
    assert_eq!(peer.n_requests(), 31);
}

/// One user has half of the calls of a hook, and the limit is no failure of the hook.
#[tokio::test]
async fn calls_in_flight_are_limited_for_each_hook_and_user() {
    let hanging = peer(Answer::misbehave(Conduct::Hang));
    let mut scene = Scene::new().validating("c", vec![ignored(hook("v.x.y", &hanging))]);
    let limits = HookEnvironment { calls_in_flight_max: 3, ..HookEnvironment::default() };
    scene.environment = Arc::new(limits);
    let snapshot = scene.snapshot();
    let connections = scene.connections(&snapshot);
    let users =
        ["a", "a", "a", "b", "c"].map(|name| User { name: name.to_owned(), ..User::default() });
    let ask = async |idx: usize| {
        // One after the other, so that it is known which of them finds no place.
        until(|| hanging.n_requests() >= [0, 1, 2, 2, 3][idx]).await;
        let mut asking = scene.asking(&snapshot, &connections);
        asking.attributes.user = Some(&users[idx]);
        HookSession::new(Instant::now() + Duration::from_millis(700)).validate(&asking).await
    };
    let (a1, a2, a3, b, c) = tokio::join!(ask(0), ask(1), ask(2), ask(3), ask(4));
    let are_too_many = [a1, a2, a3, b, c].map(|it| match it.unwrap_err() {
        HookRefusal::DeadlineExceeded => false,
        HookRefusal::TooManyCalls { .. } => true,
        other => panic!("{other}"),
    });
    assert_eq!(are_too_many, [false, false, true, false, true]);
    assert_eq!(hanging.n_requests(), 3);
    // All places are free again, also with another configuration of the hook.
    let next = HookConnections::new(&snapshot, &scene.environment, &connections);
    let mut asking = scene.asking(&snapshot, &next);
    asking.attributes.user = Some(&users[0]);
    let refusal =
        HookSession::new(Instant::now() + Duration::from_millis(100)).validate(&asking).await;
    assert_eq!(refusal.unwrap_err(), HookRefusal::DeadlineExceeded);
}

/// A long object makes a long response, and its author must not be able to make the hook fail by that.
#[tokio::test]
async fn an_answer_to_a_long_object_may_be_longer() {
    // The patch repeats the object, as base64 and with and without the escapes of Go.
    let answered = |value: &str, escaped: &str| {
        let patch = format!(r#"[{{"op":"add","path":"/data","value":{{"a":"{escaped}"}}}}]"#);
        let patch = STANDARD.encode(patch);
        let peer = peer(says(json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})));
        let mut scene = Scene::new().mutating("c", vec![ignored(hook("m.x.y", &peer))]);
        let mut object = widget();
        object.insert("data".to_owned(), json!({ "a": value }));
        scene.object = Some(object);
        async move {
            let admission = scene.run().await;
            drop(peer);
            admission
        }
    };
    let long = "x".repeat(3 << 20);
    let Admission::Allowed { notes, .. } = answered(&long, &long).await else { panic!() };
    assert!(!annotations(&notes).keys().any(|key| key.starts_with("failed-open")), "{notes:?}");
    let odd = "<".repeat(600 << 10);
    let escaped = odd.replace('<', "\\u003c");
    let Admission::Refused { refusal, .. } = answered(&odd, &escaped).await else { panic!() };
    assert!(matches!(refusal, HookRefusal::CallUnavailable { .. }), "{refusal}");

    // An answer that is long by itself is the hook's failure.
    let endless = peer(Answer::json("").body(Body::Endless));
    Scene::new().validating("c", vec![ignored(hook("v.x.y", &endless))]).allowed().await;
}

#[tokio::test]
async fn an_answer_may_be_as_long_as_the_limit_and_no_longer() {
    for (n_more, is_allowed) in [(0, true), (1, false)] {
        let script = Script::rule(move |request| {
            let answer = answer_to(request, allow());
            let Body::Bytes(json) = &answer.body else { return answer };
            let mut padded = json.to_vec();
            padded.resize(RESPONSE_BYTES_MAX + n_more, b' ');
            answer.body(Body::Bytes(padded.into()))
        });
        let peer = peer(script);
        let scene = Scene::new().validating("c", vec![hook("v.x.y", &peer)]);
        if is_allowed {
            scene.allowed().await;
        } else {
            let complaint = scene.complaint().await;
            assert!(complaint.starts_with(&format!("{FAILED}failed to call webhook: ")));
            assert!(complaint.ends_with(&format!("exceeds {RESPONSE_BYTES_MAX} bytes")));
        }
    }
}
