//! Definitions that claim the names of built-in resources.

use serde_json::{Value, json};

use crate::client::Client;
use crate::cluster::Cluster;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(group: &str, plural: &str, kind: &str, version: &str) -> Value {
    json!({
        "metadata": {"name": format!("{plural}.{group}"),
            "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "singular": plural, "listKind": format!("{kind}List")},
            "versions": [{"name": version, "served": true, "storage": true, "schema":
                {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    })
}

fn condition<'d>(definition: &'d Value, kind: &str) -> Option<&'d Value> {
    definition["status"]["conditions"].as_array()?.iter().find(|own| own["type"] == kind)
}

/// Waits until the server has decided about the names of a definition.
async fn settled(admin: &Client, name: &str) -> Value {
    loop {
        let found = admin.get(&format!("{DEFINITIONS}/{name}")).await.expect(200);
        let is_open = condition(&found, "NamesAccepted").is_none_or(|names| {
            names["status"] == "True"
                && condition(&found, "Established").is_none_or(|own| own["reason"] == "Installing")
        });
        if !is_open {
            return found;
        }
        crate::polling::pause().await;
    }
}

/// A18: a definition that takes the name or the kind of a built-in resource, the version of a built-in group,
/// or the place where built-in objects are stored, is never served and never says that it is. The built-in
/// resource stays as it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_definition_never_shadows_a_built_in_resource() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    admin.post(roles, &json!({"metadata": {"name": "own"}, "rules": []})).await.expect(201);
    let rbac = "rbac.authorization.k8s.io";
    for (group, plural, kind, version) in [
        (rbac, "roles", "Role", "v1"),
        (rbac, "roles", "Role", "v2"),
        (rbac, "roles", "Rolle", "v2"),
        (rbac, "rollen", "Role", "v2"),
        (rbac, "rollen", "Rolle", "v1"),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations", "X", "v2"),
        ("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", "v1"),
        ("certificates.k8s.io", "signers", "Signer", "v1"),
    ] {
        let name = format!("{plural}.{group}");
        let body = definition(group, plural, kind, version);
        let before = admin.get(&format!("/apis/{group}/v1")).await.text();
        admin.post(DEFINITIONS, &body).await.expect(201);
        let found = settled(&admin, &name).await;
        let established = condition(&found, "Established").expect("a condition");
        assert_eq!(established["status"], "False", "{name} {kind} {version}: {found}");
        let names = condition(&found, "NamesAccepted").expect("a condition");
        assert_eq!(names["status"], "False", "{name} {kind} {version}: {found}");
        assert_eq!(admin.get(&format!("/apis/{group}/v1")).await.text(), before, "{name}");
        if version != "v1" {
            let path = format!("/apis/{group}/{version}/namespaces/default/{plural}");
            assert_eq!(admin.get(&path).await.code, 404, "{path}");
        }
        let list = admin.get(roles).await.expect(200);
        assert_eq!(
            (&list["kind"], &list["items"][0]["metadata"]["name"]),
            (&json!("RoleList"), &json!("own"))
        );
        admin.delete(&format!("{DEFINITIONS}/{name}")).await.expect(200);
        while admin.get(&format!("{DEFINITIONS}/{name}")).await.code != 404 {
            crate::polling::pause().await;
        }
    }
    // A status that the user writes does not change that.
    let mut body = definition(rbac, "roles", "Role", "v2");
    let name = format!("roles.{rbac}");
    admin.post(DEFINITIONS, &body).await.expect(201);
    settled(&admin, &name).await;
    let yes = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": "x", "message": "y",
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    body["status"] = json!({"acceptedNames": body["spec"]["names"], "storedVersions": ["v2"],
        "conditions": [yes("NamesAccepted"), yes("Established")]});
    let patch = json!({"status": body["status"]});
    let path = format!("{DEFINITIONS}/{name}");
    admin.patch(&format!("{path}/status"), "merge-patch", &patch).await.expect(200);
    while condition(&admin.get(&path).await.expect(200), "Established").unwrap()["status"]
        != "False"
    {
        assert_eq!(admin.get(&format!("/apis/{rbac}/v2/namespaces/default/roles")).await.code, 404);
        crate::polling::pause().await;
    }
    // The group of a built-in resource needs approval, and another version of it is served beside it.
    let mut body = definition(rbac, "rollen", "Rolle", "v2");
    body["metadata"]["annotations"] = json!({});
    let refused = admin.post(DEFINITIONS, &body).await.expect(422);
    assert!(refused["message"].as_str().unwrap().contains("protected groups must have approval"));
    admin.post(DEFINITIONS, &definition(rbac, "rollen", "Rolle", "v2")).await.expect(201);
    let found = settled(&admin, &format!("rollen.{rbac}")).await;
    assert_eq!(condition(&found, "Established").unwrap()["status"], "True", "{found}");
    admin.get(&format!("/apis/{rbac}/v2/namespaces/default/rollen")).await.expect(200);
}
