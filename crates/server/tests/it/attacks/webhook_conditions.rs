//! A17: match conditions of admission webhooks that cost much.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use super::grant_alice;
use crate::cluster::Cluster;

const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A configuration of one webhook for config maps with these conditions. Nobody answers its calls.
fn configuration(name: &str, expressions: &[String]) -> Value {
    let conditions: Vec<Value> = expressions
        .iter()
        .enumerate()
        .map(|(n, expression)| json!({"name": format!("c{n}"), "expression": expression}))
        .collect();
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": format!("{name}.example.com"), "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore", "timeoutSeconds": 1,
            "clientConfig": {"url": "https://192.0.2.1/"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                "operations": ["*"]}],
            "matchConditions": conditions,
        }],
    })
}

/// A17: the regular expressions of all configurations take a limited amount of memory together.
#[tokio::test(flavor = "multi_thread")]
async fn a17_regular_expressions_of_all_webhooks_are_bounded() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    // Each takes about 8 MB.
    let large = |numbers: std::ops::Range<usize>| -> Vec<String> {
        numbers.map(|n| format!("request.name.matches('\\\\pL{{{n}}}')")).collect()
    };
    admin.post(WEBHOOKS, &configuration("first", &large(183..190))).await.expect(201);
    let refused =
        admin.post(WEBHOOKS, &configuration("second", &large(176..183))).await.expect(422);
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains("webhooks: Forbidden: the regular expressions of its match"),
        "{message}"
    );
    // Usual expressions fit, and the first configuration may be changed.
    let usual = ["request.name.matches('^system:')".to_owned()];
    admin.post(WEBHOOKS, &configuration("usual", &usual)).await.expect(201);
    let changed = configuration("first", &large(184..190));
    let path = format!("{WEBHOOKS}/first");
    let body = changed.to_string();
    let headers = [("content-type", "application/merge-patch+json")];
    assert_eq!(admin.send(Method::PATCH, &path, &headers, body).await.code, 200);
}

/// A17: so they do if the configurations are written at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn a17_configurations_of_the_same_time_share_the_limit() {
    let cluster = Cluster::start().await;
    let writes: Vec<_> = (0..4)
        .map(|n| {
            // Each takes about 8 MB, so that one configuration fits.
            let numbers = 176..182;
            let large = numbers.map(|n| format!("request.name.matches('\\\\pL{{{n}}}')"));
            let object = configuration(&format!("c{n}"), &large.collect::<Vec<_>>());
            let admin = cluster.admin();
            tokio::spawn(async move { admin.post(WEBHOOKS, &object).await.code })
        })
        .collect();
    let mut codes = Vec::new();
    for write in writes {
        codes.push(write.await.unwrap());
    }
    codes.sort_unstable();
    assert_eq!(codes, [201, 422, 422, 422]);
    // Those without large expressions are written at the same time.
    let usual = ["request.name.matches('^system:')".to_owned()];
    let (one, other) = (configuration("u", &usual), configuration("v", &usual));
    let admin = cluster.admin();
    let (one, other) = tokio::join!(admin.post(WEBHOOKS, &one), admin.post(WEBHOOKS, &other));
    assert_eq!((one.code, other.code), (201, 201));
}

/// A17: while alice writes through conditions at the cost limit, others read as before and their writes are answered.
#[tokio::test(flavor = "multi_thread")]
async fn a17_conditions_at_the_cost_limit_delay_no_reads() {
    const TIME_MAX: Duration = Duration::from_secs(20);
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let numbers: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    let numbers = numbers.join(",");
    let costly = format!(
        "![{numbers}].all(a, [{numbers}].all(b, [{numbers}].all(c, a + b + c >= 0 - size(request.name))))"
    );
    admin.post(WEBHOOKS, &configuration("costly", &[costly])).await.expect(201);
    let maps = json!([{"verbs": ["*"], "apiGroups": [""], "resources": ["configmaps"]}]);
    let alice = grant_alice(&cluster, "default", maps).await;
    let map = |name: &str| json!({"metadata": {"name": name}});
    admin.post(MAPS, &map("read")).await.expect(201);
    let storm: Vec<_> = (0..8)
        .map(|n| {
            let (alice, object) = (alice.clone(), map(&format!("m{n}")));
            tokio::spawn(async move { alice.post(MAPS, &object).await.code })
        })
        .collect();
    for n in 0..10 {
        let asked = Instant::now();
        admin.get(&format!("{MAPS}/read")).await.expect(200);
        assert!(asked.elapsed() < TIME_MAX, "read {n}: {:?}", asked.elapsed());
    }
    admin.post(MAPS, &map("own")).await.expect(201);
    for write in storm {
        assert_eq!(write.await.unwrap(), 201);
    }
}
