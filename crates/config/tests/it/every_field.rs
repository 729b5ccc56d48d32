//! Every field that the file accepts has an effect.

use config::authorization_config::{
    LoadError, LoadOptions, assume_regular_file, authorization_configuration_to_json,
    load_authorization_configuration,
};
use document::Source;
use serde_json::{Value, json};

/// A built-in type has one name, which may be left out.
const BUILT_IN_NAME: &str = "/authorizers/2/name";

/// A configuration in which each field has a value that is not its default.
fn sample() -> Value {
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthorizationConfiguration",
        "authorizers": [
            {
                "type": "Webhook",
                "name": "guard.example.com",
                "webhook": {
                    "authorizedTTL": "7m",
                    "unauthorizedTTL": "7s",
                    "timeout": "3s",
                    "subjectAccessReviewVersion": "v1",
                    "matchConditionSubjectAccessReviewVersion": "v1",
                    "failurePolicy": "Deny",
                    "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "/etc/guard.yaml"},
                    "matchConditions": [{"expression": "request.user == 'a'"}],
                },
            },
            {
                "type": "Webhook",
                "name": "uncached.example.com",
                "webhook": {
                    "cacheAuthorizedRequests": false,
                    "cacheUnauthorizedRequests": false,
                    "timeout": "3s",
                    "subjectAccessReviewVersion": "v1",
                    "failurePolicy": "Deny",
                    "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "/etc/other.yaml"},
                },
            },
            {"type": "RBAC", "name": "rbac"},
        ],
    })
}

/// Loads a document. Returns the effective configuration as JSON.
fn load_document(document: &Value) -> Result<Value, LoadError> {
    let text = document.to_string();
    let options = LoadOptions { stat_file: &assume_regular_file, ..LoadOptions::default() };
    let loaded = load_authorization_configuration(
        &Source { name: "file", file_bytes: text.as_bytes() },
        &options,
    );
    loaded.configuration.map(|own| authorization_configuration_to_json(&own))
}

/// Collects the JSON pointers of all members of all objects.
fn members(at: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(own) => {
            for (name, value) in own {
                let at = format!("{at}/{name}");
                members(&at, value, found);
                found.push(at);
            }
        }
        Value::Array(items) => {
            for (idx, item) in items.iter().enumerate() {
                members(&format!("{at}/{idx}"), item, found);
            }
        }
        _ => {}
    }
}

/// L32: every field changes the loaded configuration; one that does not would be ignored silently.
#[test]
fn a_field_that_is_left_out_makes_a_difference() {
    let whole = load_document(&sample());
    assert!(whole.is_ok(), "{whole:?}");
    let mut pointers = Vec::new();
    members("", &sample(), &mut pointers);
    assert_eq!(pointers.len(), 30);
    for pointer in pointers {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let mut less = sample();
        less.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name);
        if pointer != BUILT_IN_NAME {
            assert_ne!(load_document(&less), whole, "{pointer}");
        }
    }
}

/// L32: a field that the server does not know is refused by name.
#[test]
fn a_field_that_is_not_known_is_refused() {
    for parent in ["", "/authorizers/0", "/authorizers/0/webhook", "/authorizers/2"] {
        let mut more = sample();
        more.pointer_mut(parent).unwrap()["mutateDigest"] = true.into();
        let refused = load_document(&more).unwrap_err().to_string();
        assert!(refused.contains("unknown field"), "{refused}");
        assert!(refused.contains("mutateDigest"), "{refused}");
    }
    let mut renamed = sample();
    *renamed.pointer_mut(BUILT_IN_NAME).unwrap() = "other".into();
    assert!(load_document(&renamed).is_err());
}
