//! The discovery documents of built-in and custom resources.

use api_resources::{Discovery, EncodedDocument, Registry};
use serde_json::{Value, json};

use crate::world::{RBAC, established, widgets, with_widgets};

fn read(document: &EncodedDocument) -> Value {
    serde_json::from_slice(&document.body).expect("JSON")
}

fn entry(list: &Value, name: &str) -> Value {
    let entries = list["resources"].as_array().expect("a list");
    entries.iter().find(|it| it["name"] == name).cloned().unwrap_or(Value::Null)
}

#[test]
fn the_groups() {
    let core = read(&Discovery::core_versions_document("10.0.0.1:6443"));
    assert_eq!(
        core,
        json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [
                { "clientCIDR": "0.0.0.0/0", "serverAddress": "10.0.0.1:6443" },
            ],
        })
    );
    let registry = Registry::with_built_in_resources();
    let groups = read(&registry.discovery().groups);
    assert_eq!((&groups["kind"], &groups["apiVersion"]), (&json!("APIGroupList"), &json!("v1")));
    let names: Vec<&str> = groups["groups"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    for want in
        [RBAC, "authorization.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io"]
    {
        assert!(names.contains(&want), "{want}");
    }
    assert!(!names.contains(&""));
}

#[test]
fn one_group_and_the_core_list() {
    let registry = Registry::with_built_in_resources();
    let group = read(registry.discovery().group(RBAC).expect("a group"));
    assert_eq!(
        group,
        json!({
            "kind": "APIGroup",
            "apiVersion": "v1",
            "name": RBAC,
            "versions": [{ "groupVersion": format!("{RBAC}/v1"), "version": "v1" }],
            "preferredVersion": { "groupVersion": format!("{RBAC}/v1"), "version": "v1" },
        })
    );
    assert!(registry.discovery().group("").is_none());
    let core = read(registry.discovery().version("", "v1").expect("a version"));
    assert_eq!(core["kind"], "APIResourceList");
    assert!(core.get("apiVersion").is_none());
    assert_eq!(
        entry(&core, "serviceaccounts/token"),
        json!({
            "name": "serviceaccounts/token",
            "singularName": "",
            "namespaced": true,
            "kind": "TokenRequest",
            "verbs": ["create"],
            "group": "authentication.k8s.io",
            "version": "v1",
        })
    );
    assert_eq!(entry(&core, "namespaces/finalize")["verbs"], json!(["update"]));
    let eviction = entry(&core, "pods/eviction");
    assert_eq!((&eviction["group"], &eviction["version"]), (&json!("policy"), &json!("v1")));
    // A kind of the same version stands without it.
    assert_eq!(
        entry(&core, "pods/binding"),
        json!({
            "name": "pods/binding",
            "singularName": "",
            "namespaced": true,
            "kind": "Binding",
            "verbs": ["create"],
        })
    );
    assert_eq!(entry(&core, "bindings")["verbs"], json!(["create"]));
    let (stream, proxy) =
        (json!(["create", "get"]), json!(["create", "delete", "get", "patch", "update"]));
    for (name, is_namespaced, kind, verbs) in [
        ("pods/attach", true, "PodAttachOptions", &stream),
        ("pods/exec", true, "PodExecOptions", &stream),
        ("pods/portforward", true, "PodPortForwardOptions", &stream),
        ("pods/proxy", true, "PodProxyOptions", &proxy),
        ("services/proxy", true, "ServiceProxyOptions", &proxy),
        ("nodes/proxy", false, "NodeProxyOptions", &proxy),
    ] {
        let want = json!({
            "name": name, "singularName": "", "namespaced": is_namespaced, "kind": kind,
            "verbs": verbs,
        });
        assert_eq!(entry(&core, name), want);
    }
    let roles = read(registry.discovery().version(RBAC, "v1").expect("a version"));
    assert_eq!(roles["apiVersion"], "v1");
    assert!(registry.discovery().version(RBAC, "v9").is_none());
}

#[test]
fn everything_at_once() {
    let registry = Registry::with_built_in_resources();
    let core = read(&registry.discovery().aggregated_core_document);
    let items = core["items"].as_array().expect("a list");
    assert_eq!(items.len(), 1);
    assert!(items[0]["metadata"].get("name").is_none());
    let resources = items[0]["versions"][0]["resources"].as_array().expect("a list");
    let maps = resources.iter().find(|it| it["resource"] == "configmaps").expect("config maps");
    assert_eq!(
        *maps,
        json!({
            "resource": "configmaps",
            "responseKind": { "group": "", "version": "", "kind": "ConfigMap" },
            "scope": "Namespaced",
            "singularResource": "configmap",
            "verbs": [
                "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
            ],
            "shortNames": ["cm"],
        })
    );
    let pods = resources.iter().find(|it| it["resource"] == "pods").expect("pods");
    let parts = pods["subresources"].as_array().expect("subresources");
    for (name, kind) in [
        ("binding", json!({ "group": "", "version": "", "kind": "Binding" })),
        ("eviction", json!({ "group": "policy", "version": "v1", "kind": "Eviction" })),
        ("exec", json!({ "group": "", "version": "", "kind": "PodExecOptions" })),
    ] {
        let part = parts.iter().find(|part| part["subresource"] == name).expect("a part");
        assert_eq!(part["responseKind"], kind, "{name}");
    }
    let groups = read(&registry.discovery().aggregated_groups_document);
    assert_eq!(groups["apiVersion"], "apidiscovery.k8s.io/v2");
    let etag = registry.discovery().aggregated_groups_document.etag();
    assert!(etag.starts_with('"') && etag.ends_with('"') && etag.len() == 66, "{etag}");
}

/// The hash follows the definitions, and nothing else.
#[test]
fn definitions_come_and_go() {
    let (before, with, after) =
        (Registry::with_built_in_resources(), with_widgets(), Registry::with_built_in_resources());
    let etag = |registry: &Registry| registry.discovery().aggregated_groups_document.etag();
    assert_eq!(etag(&before), etag(&after));
    assert_ne!(etag(&before), etag(&with));
    assert_eq!(etag(&with), etag(&with_widgets()));
    let list = read(with.discovery().version("example.com", "v1").expect("a version"));
    let names: Vec<&Value> =
        list["resources"].as_array().expect("a list").iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["widgets", "widgets/status"]);
    assert!(after.discovery().version("example.com", "v1").is_none());
}

#[test]
fn a_resource_that_is_going_does_not_invite_changes() {
    let mut definition = established(widgets());
    definition["metadata"]["deletionTimestamp"] = json!("2026-11-15T18:02:38Z");
    let (registry, _) = Registry::with_custom_resource_definitions(&[&definition]);
    let list = read(registry.discovery().version("example.com", "v1").expect("a version"));
    assert_eq!(
        entry(&list, "widgets")["verbs"],
        json!(["delete", "deletecollection", "get", "list", "watch"])
    );
}
