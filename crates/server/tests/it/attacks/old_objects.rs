//! The old object in requests to hooks.

use http::Method;
use serde_json::{Value, json};

use crate::admission_hooks::{
    HookAuthority, MUTATING, VALIDATING, allow, asked, patching, register, rule,
};
use crate::cluster::Cluster;

/// L10: hooks compare the new object with the old one, so the old one must be what is stored, whatever
/// the request, an earlier hook or the server does to the new one.
#[tokio::test(flavor = "multi_thread")]
async fn every_hook_is_shown_what_is_stored() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let authority = HookAuthority::new();
    let change = json!([
        {"op": "add", "path": "/metadata/labels", "value": {"zone": "changed", "hook": "was-here"}}
    ]);
    let first = authority.hook(patching(&change));
    let (second, last) = (authority.hook(allow()), authority.hook(allow()));
    let of_nodes =
        json!({"rules": [rule(&["UPDATE"], "", "nodes"), rule(&["UPDATE"], "", "nodes/status")]});
    let webhook = |name: &str, peer| authority.webhook(name, peer, of_nodes.clone());
    register(&cluster, MUTATING, "m", &[webhook("a.x.y", &first), webhook("b.x.y", &second)]).await;
    register(&cluster, VALIDATING, "v", &[webhook("c.x.y", &last)]).await;

    let made = json!({"metadata": {"name": "n", "labels": {"zone": "a"}}, "spec": {"podCIDR": "10.0.0.0/24"}});
    admin.post("/api/v1/nodes", &made).await.expect(201);
    let label = json!({"metadata": {"labels": {"zone": "b"}}});
    let label_by_pointer =
        json!([{"op": "add", "path": "/metadata/labels", "value": {"zone": "b"}}]);
    for (method, path, kind, body) in [
        (Method::PUT, "/api/v1/nodes/n", "json", None),
        (Method::PUT, "/api/v1/nodes/n/status", "json", None),
        (Method::PATCH, "/api/v1/nodes/n", "merge-patch+json", Some(&label)),
        (Method::PATCH, "/api/v1/nodes/n", "strategic-merge-patch+json", Some(&label)),
        (Method::PATCH, "/api/v1/nodes/n", "json-patch+json", Some(&label_by_pointer)),
        (Method::PATCH, "/api/v1/nodes/n/status", "merge-patch+json", Some(&label)),
    ] {
        let stored = admin.get("/api/v1/nodes/n").await.expect(200);
        let mut replaced = stored.clone();
        replaced["metadata"]["labels"] = json!({"zone": "b"});
        let body = body.unwrap_or(&replaced).to_string();
        let content_type = format!("application/{kind}");
        let headers = [("content-type", content_type.as_str())];
        admin.send(method.clone(), path, &headers, body).await.expect(200);
        for (which, peer) in [("first", &first), ("second", &second), ("last", &last)] {
            let told: Vec<Value> = peer.take_requests().iter().map(asked).collect();
            assert_eq!(told.len(), 1, "{which}: {method} {path}");
            assert_eq!(told[0]["oldObject"], stored, "{which}: {method} {path}");
            let zone = if which == "first" { json!("b") } else { json!("changed") };
            assert_eq!(told[0]["object"]["metadata"]["labels"]["zone"], zone, "{which}: {path}");
        }
    }
}
