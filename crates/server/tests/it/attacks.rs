//! Attacks that published vulnerabilities of similar servers describe, tried over HTTP by ordinary
//! users. The ids are those of `docs/attacks.md`.

mod audit_pressure;
mod bodies;
mod debug_and_metrics;
mod identity_headers;
mod large_objects;
mod lists_and_watches;
mod many_definitions;
mod node_credentials;
mod old_objects;
mod outgoing_headers;
mod overload;
mod scopes;
mod stored_objects;
mod upgrades;
mod webhook_addresses;
mod webhook_answers;
mod webhook_conditions;
mod webhook_sizes;

use serde_json::{Value, json};

use crate::client::Client;
use crate::cluster::Cluster;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Grants alice verbs on resources in one namespace.
async fn grant_alice(cluster: &Cluster, namespace: &str, rules: Value) -> Client {
    let admin = cluster.admin();
    let at = format!("{RBAC}/namespaces/{namespace}");
    let role = json!({"metadata": {"name": "own"}, "rules": rules});
    admin.post(&format!("{at}/roles"), &role).await.expect(201);
    let binding = json!({"metadata": {"name": "alice"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "own"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
    admin.post(&format!("{at}/rolebindings"), &binding).await.expect(201);
    cluster.alice()
}

/// Defines a resource of `example.com` and waits until it is served.
async fn define(admin: &Client, plural: &str, kind: &str, scope: &str) {
    let definition = json!({
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": scope, "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object",
                    "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    });
    admin.post(DEFINITIONS, &definition).await.expect(201);
    while admin.get(&format!("/apis/example.com/v1/{plural}")).await.code != 200 {
        tokio::task::yield_now().await;
    }
}
