//! Bodies that are small to send and large to read.

use http::Method;
use serde_json::json;

use super::grant_alice;
use crate::cluster::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Each level names the one before it nine times.
fn alias_bomb() -> String {
    let mut bomb =
        "apiVersion: v1\nkind: ConfigMap\nl0: &l0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let items = vec![format!("*l{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("l{level}: &l{level} [{items}]\n"));
    }
    bomb
}

/// One long text that is named very often.
fn repeated_text() -> String {
    let items = vec!["*a"; 100_000].join(", ");
    format!("kind: ConfigMap\na: &a {}\nb: [{items}]\n", "x".repeat(100_000))
}

/// L15, A16: a writer sends bodies that grow or nest when they are read. Each is refused by a limit of the
/// reader, and the server goes on. Somebody without the right to write is refused before anything is
/// read.
#[tokio::test(flavor = "multi_thread")]
async fn bombs_are_refused_before_they_grow() {
    let cluster = Cluster::start().await;
    let rules = json!([{"verbs": ["*"], "apiGroups": [""], "resources": ["configmaps"]}]);
    let alice = grant_alice(&cluster, "default", rules).await;
    let anonymous = cluster.anonymous();
    let deep = 600_000;
    for (why, content_type, body) in [
        ("aliases", "application/yaml", alias_bomb()),
        ("a repeated text", "application/yaml", repeated_text()),
        ("a circle", "application/yaml", "kind: ConfigMap\ndata: &a\n  b: *a\n".to_owned()),
        ("lists in YAML", "application/yaml", format!("a: {}", "[".repeat(deep))),
        ("sequences in YAML", "application/yaml", "- ".repeat(deep)),
        ("keys in YAML", "application/yaml", "? ".repeat(deep)),
        ("lists in JSON", "application/json", format!("{{\"a\":{}", "[".repeat(deep))),
        ("objects in JSON", "application/json", "{\"a\":".repeat(deep)),
        (
            "closed lists in JSON",
            "application/json",
            format!(
                "{{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"data\":{}{}}}",
                "[".repeat(deep),
                "]".repeat(deep)
            ),
        ),
    ] {
        let headers = [("content-type", content_type)];
        let answer = alice.send(Method::POST, MAPS, &headers, body.clone()).await;
        assert!(matches!(answer.code, 400 | 413 | 422), "{why}: {} {}", answer.code, answer.text());
        assert!(answer.bytes.len() < 10_000, "{why}: {} bytes", answer.bytes.len());
        assert_eq!(anonymous.send(Method::POST, MAPS, &headers, body).await.code, 403, "{why}");
    }
    let good = json!({"metadata": {"name": "good"}});
    alice.post(MAPS, &good).await.expect(201);
}
