//! The response to a client whose request a hook denies.

use serde_json::{Value, json};

use super::{MAPS, Scene};
use crate::admission_hooks::{MUTATING, VALIDATING, answering};

const DENIED: &str = "admission webhook \"h.x.y\" denied the request";

/// Each form of a denial, in both phases.
#[tokio::test(flavor = "multi_thread")]
async fn denials() {
    let scene = Scene::start().await;
    let failure = json!("Failure");
    let rows = [
        ("no status", Value::Null, 400, format!("{DENIED} without explanation"), &failure),
        (
            "a reason without a message",
            json!({"reason": "Forbidden"}),
            400,
            format!("{DENIED}: Forbidden"),
            &failure,
        ),
        ("code 403", json!({"code": 403, "message": "no"}), 403, format!("{DENIED}: no"), &failure),
        (
            "code 200 becomes 400",
            json!({"code": 200, "message": "no"}),
            400,
            format!("{DENIED}: no"),
            &failure,
        ),
        (
            "code 399 becomes 400",
            json!({"code": 399, "message": "no"}),
            400,
            format!("{DENIED}: no"),
            &failure,
        ),
        (
            "code 401 is kept",
            json!({"code": 401, "message": "no"}),
            401,
            format!("{DENIED}: no"),
            &failure,
        ),
        (
            "code 500 is kept",
            json!({"code": 500, "message": "no"}),
            500,
            format!("{DENIED}: no"),
            &failure,
        ),
        (
            "status Success becomes Failure",
            json!({"status": "Success", "message": "no"}),
            400,
            format!("{DENIED}: no"),
            &failure,
        ),
        (
            "a custom status is kept",
            json!({"status": "custom", "message": "no"}),
            400,
            format!("{DENIED}: no"),
            &json!("custom"),
        ),
    ];
    for phase in [MUTATING, VALIDATING] {
        for (row, status, code, want, state) in &rows {
            let mut response = json!({"allowed": false});
            if !status.is_null() {
                response["status"] = status.clone();
            }
            let hook = scene.hook(answering(response));
            // A denial is no failure, so that it is never ignored.
            scene.ask(phase, &hook, json!({"failurePolicy": "Ignore"})).await;
            let answer = scene.create("").await;
            assert_eq!(answer.code, *code, "{row}: {}", answer.text());
            let told = answer.json();
            assert_eq!((&told["message"], &told["status"]), (&json!(want), *state), "{row}");
            assert_eq!(told["code"], *code, "{row}");
            let reason = status.get("reason").cloned().unwrap_or_default();
            assert_eq!(told.get("reason").cloned().unwrap_or_default(), reason, "{row}");
            scene.admin.get(&format!("{MAPS}/m")).await.expect(404);
        }
        scene.admin.delete(&format!("{phase}/c")).await.expect(200);
    }
}

/// A denied service releases its address.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_denied_has_no_address() {
    let scene = Scene::start_with(|options| {
        options.api_settings.service_ip_range = "10.0.0.0/29".parse().ok();
    })
    .await;
    let hook = scene.hook(answering(json!({"allowed": false})));
    let rules = json!([crate::admission_hooks::rule(&["*"], "", "services")]);
    scene.ask(VALIDATING, &hook, json!({"rules": rules})).await;
    let services = "/api/v1/namespaces/default/services";
    let body = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    // The loop runs more often than there are addresses.
    for _ in 0..10 {
        scene.admin.post(services, &body).await.expect(400);
    }
    hook.replace(crate::admission_hooks::allow()).unwrap();
    let made = scene.admin.post(services, &body).await.expect(201);
    assert!(made["spec"]["clusterIP"].as_str().unwrap().starts_with("10.0.0."), "{made}");
}

/// The other fields of the status that the hook returns are passed on.
#[tokio::test(flavor = "multi_thread")]
async fn details_of_a_denial() {
    let scene = Scene::start().await;
    let details = json!({"name": "m", "kind": "configmaps", "retryAfterSeconds": 7,
        "causes": [{"reason": "FieldValueInvalid", "message": "bad", "field": "data.a"}]});
    let status = json!({"code": 422, "reason": "Invalid", "message": "no", "details": details});
    let hook = scene.hook(answering(json!({"allowed": false, "status": status})));
    scene.ask(VALIDATING, &hook, json!({})).await;
    let told = scene.create("").await.expect(422);
    assert_eq!(told["reason"], "Invalid");
    assert_eq!(told["details"], details);
}
