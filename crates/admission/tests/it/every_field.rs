//! Every field of an entry has an effect.

use admission::Configuration;
use admission::ConfigurationKind::{self, Mutating, Validating};
use serde_json::{Value, json};

use crate::documents::{created, object};

const CA_BUNDLE: &str = include_str!("ca_bundle.b64");

/// An entry in which each field has a value that is not its default.
fn entry(kind: ConfigurationKind, client: Value) -> Value {
    let mut entry = json!({
        "name": "a.b.c",
        "clientConfig": client,
        "rules": [{
            "operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"],
            "resources": ["deployments"], "scope": "Namespaced",
        }],
        "failurePolicy": "Ignore",
        "matchPolicy": "Exact",
        "namespaceSelector": {"matchLabels": {"a": "b"}},
        "objectSelector": {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]},
        "sideEffects": "None",
        "timeoutSeconds": 7,
        "admissionReviewVersions": ["v1"],
        "matchConditions": [{"name": "n", "expression": "request.userInfo.username == 'a'"}],
    });
    if kind == Mutating {
        entry["reinvocationPolicy"] = "IfNeeded".into();
    }
    entry
}

/// The compiled entry, and its validation errors.
fn meaning(kind: ConfigurationKind, entry: &Value) -> (Vec<String>, String) {
    let entries = json!([entry]);
    let compiled = Configuration::compile_configuration(kind, &object(kind, "a", entries.clone()));
    (created(kind, entries), format!("{compiled:?}"))
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

/// L32: removing any field makes a difference, so no field is silently ignored.
#[test]
fn a_field_that_is_left_out_makes_a_difference() {
    let bundle = CA_BUNDLE.trim();
    let by_url = json!({"url": "https://a.example.com/x", "caBundle": bundle});
    let service = json!({"namespace": "n", "name": "s", "path": "/x", "port": 8443});
    let by_service = json!({"service": service, "caBundle": bundle});
    for (kind, client, n_members) in [
        (Mutating, &by_url, 27),
        (Validating, &by_url, 26),
        (Mutating, &by_service, 31),
        (Validating, &by_service, 30),
    ] {
        let whole = entry(kind, client.clone());
        let want = meaning(kind, &whole);
        assert_eq!(want.0, [""; 0], "{whole}");
        assert_eq!(meaning(kind, &whole), want, "the same twice");
        let mut pointers = Vec::new();
        members("", &whole, &mut pointers);
        assert_eq!(pointers.len(), n_members, "{pointers:?}");
        for pointer in pointers {
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            let mut less = whole.clone();
            less.pointer_mut(parent).unwrap().as_object_mut().unwrap().shift_remove(name);
            assert_ne!(meaning(kind, &less), want, "{kind:?} {pointer}");
        }
    }
}
