//! Objects and resources that several tests share.

use std::sync::Arc;

use api_object::Tree;
use api_resources::{Registry, Resource};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) const EXTENSIONS: &str = "apiextensions.k8s.io";
pub(crate) const RBAC: &str = "rbac.authorization.k8s.io";

pub(crate) fn tree(value: Value) -> Tree {
    match value {
        Value::Object(tree) => tree,
        other => panic!("{other} is no object"),
    }
}

/// A built-in resource of version `v1`.
pub(crate) fn resource(group: &str, plural: &str) -> Arc<Resource> {
    Arc::clone(
        Registry::with_built_in_resources()
            .resource(group, "v1", plural)
            .expect("a built-in resource"),
    )
}

pub(crate) fn now() -> Timestamp {
    "2026-11-15T18:02:38Z".parse().expect("a time")
}

/// A definition with a status, and a column for the size.
pub(crate) fn widgets() -> Tree {
    tree(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "plural": "widgets", "kind": "Widget", "shortNames": ["wd"] },
            "versions": [version("v1", true)],
        },
    }))
}

pub(crate) fn version(name: &str, is_storage: bool) -> Value {
    json!({
        "name": name,
        "served": true,
        "storage": is_storage,
        "subresources": { "status": {} },
        "additionalPrinterColumns": [
            { "name": "Size", "type": "integer", "jsonPath": ".spec.size" },
        ],
        "schema": { "openAPIV3Schema": {
            "type": "object",
            "properties": { "spec": {
                "type": "object",
                "properties": { "size": { "type": "integer" } },
            } },
        } },
    })
}

/// The definition as it is stored when its resource is served.
pub(crate) fn established(mut definition: Tree) -> Tree {
    let definitions = resource(EXTENSIONS, "customresourcedefinitions");
    api_resources::prepare_create(&definitions, &mut definition).expect("the right types");
    assert!(api_resources::accept_definition_names(&mut definition, &[], now()));
    assert!(api_resources::mark_established(&mut definition, now()));
    definition
}

/// A registry that serves widgets.
pub(crate) fn with_widgets() -> Registry {
    let (registry, faults) = Registry::with_custom_resource_definitions(&[&established(widgets())]);
    assert!(faults.is_empty(), "{faults:?}");
    registry
}
