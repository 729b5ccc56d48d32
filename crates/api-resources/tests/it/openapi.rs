//! The OpenAPI documents of built-in and custom resources.

use api_resources::Registry;
use serde_json::{Value, json};

use crate::world::with_widgets;

fn document(registry: &Registry, path: &str) -> Value {
    let document = registry.openapi().openapi_document_of_version(path).expect("a document");
    serde_json::from_slice(&document.body).expect("JSON")
}

/// The kinds that have a patch operation which takes `fieldValidation`.
fn patchable(document: &Value) -> Vec<&str> {
    let paths = document["paths"].as_object().expect("paths").values();
    let operations = paths.filter_map(|it| it.get("patch"));
    let validates = |operation: &&Value| {
        let parameters = operation["parameters"].as_array().expect("a list");
        parameters.iter().any(|it| it["name"] == "fieldValidation" && it["in"] == "query")
    };
    let kind = |it: &'_ Value| it["x-kubernetes-group-version-kind"]["kind"].as_str().map(str::len);
    assert!(operations.clone().all(|it| kind(it).is_some()));
    let kinds = operations.filter(validates);
    kinds.filter_map(|it| it["x-kubernetes-group-version-kind"]["kind"].as_str()).collect()
}

#[test]
fn the_index_names_every_version() {
    let registry = with_widgets();
    let index: Value = serde_json::from_slice(&registry.openapi().index().body).expect("JSON");
    let paths = index["paths"].as_object().expect("paths");
    for (path, entry) in paths {
        let document = registry.openapi().openapi_document_of_version(path).expect("a document");
        let want = format!("/openapi/v3/{path}?hash={}", document.hash);
        assert_eq!(entry["serverRelativeURL"], want.as_str());
    }
    for path in ["api/v1", "apis/apps/v1", "apis/example.com/v1"] {
        assert!(paths.contains_key(path), "{path}");
    }
    assert!(registry.openapi().openapi_document_of_version("apis/nosuch/v1").is_none());
}

/// A kind without such an operation cannot be created by kubectl. Kubernetes has none for a Binding, which schedulers create.
#[test]
fn every_kind_can_be_asked_about_patches() {
    let registry = with_widgets();
    for group in registry.groups() {
        for version in &group.versions {
            let path = match group.name.as_str() {
                "" => format!("api/{}", version.version),
                name => format!("apis/{name}/{}", version.version),
            };
            let document = document(&registry, &path);
            let patchable = patchable(&document);
            for resource in version.resources() {
                let is_patchable = patchable.contains(&resource.kind.as_str());
                assert_eq!(is_patchable, resource.kind != "Binding", "{path} {}", resource.kind);
            }
        }
    }
}

#[test]
fn only_built_in_kinds_take_strategic_patches() {
    let registry = with_widgets();
    let strategic = "application/strategic-merge-patch+json";
    for (path, item, want) in [
        ("api/v1", "/api/v1/namespaces/{namespace}/configmaps/{name}", true),
        ("api/v1", "/api/v1/namespaces/{name}", true),
        (
            "apis/example.com/v1",
            "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}",
            false,
        ),
    ] {
        let document = document(&registry, path);
        let content = &document["paths"][item]["patch"]["requestBody"]["content"];
        assert!(content.get("application/merge-patch+json").is_some(), "{item}");
        assert_eq!(content.get(strategic).is_some(), want, "{item}");
    }
}

/// A description with gaps is worse than none.
#[test]
fn what_is_described_is_described_in_full() {
    let registry = with_widgets();
    for (path, kinds) in [
        ("api/v1", ["ConfigMap", "Namespace", "Secret", "ServiceAccount"].as_slice()),
        (
            "apis/rbac.authorization.k8s.io/v1",
            &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
        ),
        (
            "apis/admissionregistration.k8s.io/v1",
            &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"],
        ),
        (
            "apis/admissionregistration.k8s.io/v1alpha1",
            &["ExternalAdmissionHookConfiguration", "InitializerConfiguration"],
        ),
        ("apis/apiextensions.k8s.io/v1", &[]),
        ("apis/example.com/v1", &["Widget"]),
    ] {
        let document = document(&registry, path);
        let schemas = document["components"]["schemas"].as_object().expect("schemas");
        let mut described: Vec<&str> = schemas
            .values()
            .filter_map(|it| it["x-kubernetes-group-version-kind"][0]["kind"].as_str())
            .collect();
        described.sort_unstable();
        assert_eq!(described, kinds, "{path}");
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().expect("a name");
            assert!(schemas.contains_key(name), "{name}");
        }
        for schema in schemas.values() {
            assert_eq!(schema["type"], "object");
        }
    }
}

#[test]
fn a_definition_passes_its_schema_on() {
    let document = document(&with_widgets(), "apis/example.com/v1");
    let widget = &document["components"]["schemas"]["com.example.v1.Widget"];
    let properties = &widget["properties"];
    assert_eq!(properties["spec"]["properties"]["size"]["type"], "integer");
    assert_eq!(properties["kind"]["type"], "string");
    let metadata = &properties["metadata"]["allOf"][0]["$ref"];
    assert_eq!(*metadata, "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
}

/// Patches of kubectl are made with these keys, so they must be those that the server uses.
#[test]
fn lists_that_are_merged_say_by_what() {
    let document = document(&Registry::with_built_in_resources(), "api/v1");
    let schemas = &document["components"]["schemas"];
    let meta = &schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"];
    assert_eq!(meta["ownerReferences"]["x-kubernetes-patch-merge-key"], "uid");
    assert_eq!(meta["finalizers"]["x-kubernetes-patch-strategy"], "merge");
    let account = &schemas["io.k8s.api.core.v1.ServiceAccount"]["properties"];
    assert_eq!(account["secrets"]["x-kubernetes-patch-merge-key"], "name");
    assert!(account["imagePullSecrets"].get("x-kubernetes-patch-strategy").is_none());
}

/// Kubectl makes patches by name, and everything below a name but conditions is
/// replaced.
#[test]
fn entries_of_configurations_are_merged_by_name() {
    let registry = Registry::with_built_in_resources();
    for (version, name, list, entry) in [
        ("v1", "MutatingWebhookConfiguration", "webhooks", "MutatingWebhook"),
        ("v1", "ValidatingWebhookConfiguration", "webhooks", "ValidatingWebhook"),
        ("v1alpha1", "InitializerConfiguration", "initializers", "Initializer"),
        (
            "v1alpha1",
            "ExternalAdmissionHookConfiguration",
            "externalAdmissionHooks",
            "ExternalAdmissionHook",
        ),
    ] {
        let document = document(&registry, &format!("apis/admissionregistration.k8s.io/{version}"));
        let schemas = &document["components"]["schemas"];
        let named = |name: &str| format!("io.k8s.api.admissionregistration.{version}.{name}");
        let field = &schemas[named(name)]["properties"][list];
        assert_eq!(field["x-kubernetes-patch-merge-key"], "name", "{name}");
        assert_eq!(field["x-kubernetes-list-map-keys"], json!(["name"]), "{name}");
        let reference = format!("#/components/schemas/{}", named(entry));
        assert_eq!(field["items"]["$ref"], reference, "{name}");
        let merged = |(member, field): (&String, &Value)| {
            let is_merged = field.get("x-kubernetes-patch-merge-key").is_some();
            is_merged.then(|| member.clone())
        };
        let properties = schemas[named(entry)]["properties"].as_object().expect("properties");
        let merged: Vec<String> = properties.iter().filter_map(merged).collect();
        let want: &[&str] = if version == "v1" { &["matchConditions"] } else { &[] };
        assert_eq!(merged, want, "{entry}");
    }
}
