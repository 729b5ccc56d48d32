//! Configurations of admission as objects like others. What is wrong with them is tested where it is
//! decided; here is that it is asked, and that clients are told the same.

use std::collections::BTreeSet;
use std::sync::Arc;

use admission::ConfigurationKind;
use api_resources::{Registry, Resource};
use serde_json::{Value, json};

use crate::world::tree;

fn resource_of(kind: ConfigurationKind) -> Arc<Resource> {
    let registry = Registry::with_built_in_resources();
    let found = registry.resource(ConfigurationKind::GROUP, kind.version(), kind.resource());
    Arc::clone(found.expect("served"))
}

/// An object that has everything that its kind knows.
fn complete(kind: ConfigurationKind) -> Value {
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]});
    let with = |mut base: Value, more: Value| {
        base.as_object_mut().expect("an object").extend(tree(more));
        base
    };
    let selector = json!({
        "matchLabels": {"a": "b"},
        "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
    });
    let webhook = json!({
        "name": "a.example.com",
        "clientConfig": {
            "url": "https://example.com",
            "service": {"namespace": "n", "name": "s", "path": "/", "port": 443},
            "caBundle": "YQ==",
        },
        "rules": [with(rule.clone(), json!({"operations": ["*"], "scope": "*"}))],
        "failurePolicy": "Fail",
        "matchPolicy": "Exact",
        "namespaceSelector": selector,
        "objectSelector": selector,
        "sideEffects": "None",
        "timeoutSeconds": 1,
        "admissionReviewVersions": ["v1"],
        "matchConditions": [{"name": "a", "expression": "true"}],
    });
    let entry = match kind {
        ConfigurationKind::Initializer => json!({
            "name": "a.example.com",
            "rules": [rule],
            "failurePolicy": "Ignore",
            "orderingMode": "Graph",
            "before": ["b.example.com"],
            "after": ["c.example.com"],
        }),
        ConfigurationKind::ExternalHook => json!({
            "name": "a.example.com",
            "clientConfig": {
                "service": {"namespace": "n", "name": "s"}, "caBundle": "YQ==", "urlPath": "/",
            },
            "rules": [with(rule, json!({"verbs": ["*"], "operations": ["*"]}))],
            "failurePolicy": "Ignore",
        }),
        ConfigurationKind::Mutating => with(webhook, json!({"reinvocationPolicy": "Never"})),
        ConfigurationKind::Validating => webhook,
    };
    json!({"metadata": {"name": "a"}, (kind.entries_member_name()): [entry]})
}

#[test]
fn four_kinds_configure_admission() {
    let kinds: BTreeSet<ConfigurationKind> = Registry::with_built_in_resources()
        .resources()
        .filter_map(|it| api_resources::configuration_kind(it))
        .collect();
    assert_eq!(kinds, BTreeSet::from(ConfigurationKind::ALL));
    for kind in ConfigurationKind::ALL {
        let resource = resource_of(kind);
        assert_eq!(resource.kind, kind.name());
        assert_eq!(api_resources::configuration_kind(&resource), Some(kind));
        assert!(!resource.is_namespaced() && !resource.allows_create_on_update);
        assert!(resource.has_generation && resource.is_resource_version_required);
    }
}

/// Clients trust what is published, so it must be what is decided by, no more and no less.
#[test]
fn what_is_published_is_what_is_known() {
    let registry = Registry::with_built_in_resources();
    for kind in ConfigurationKind::ALL {
        let object = complete(kind);
        let known = tree(object.clone());
        assert_eq!(
            admission::unknown_configuration_fields(kind, &known),
            Vec::<String>::new(),
            "{kind:?}"
        );
        let mut prepared = known.clone();
        api_resources::prepare_create(&resource_of(kind), &mut prepared).expect("the right types");
        assert_eq!(prepared, known, "something is unknown or has another default");

        let path = format!("apis/{}/{}", ConfigurationKind::GROUP, kind.version());
        let document =
            &registry.openapi().openapi_document_of_version(&path).expect("a document").body;
        let document: Value = serde_json::from_slice(document).expect("JSON");
        let schemas = &document["components"]["schemas"];
        let name = format!("io.k8s.api.admissionregistration.{}.{}", kind.version(), kind.name());
        let list = &schemas[&name]["properties"][kind.entries_member_name()];
        compare(schemas, list, &object[kind.entries_member_name()], kind.entries_member_name());
    }
}

/// Every member has a description and every description a member, all the way down.
fn compare(schemas: &Value, schema: &Value, value: &Value, at: &str) {
    let reference = [&schema["$ref"], &schema["allOf"][0]["$ref"]];
    let schema = match reference.iter().find_map(|it| it.as_str()) {
        Some(path) => &schemas[path.rsplit('/').next().expect("a name")],
        None => schema,
    };
    match (value, &schema["properties"]) {
        (Value::Object(members), Value::Object(properties)) => {
            let (known, told): (BTreeSet<&String>, BTreeSet<&String>) =
                (members.keys().collect(), properties.keys().collect());
            assert_eq!(known, told, "{at}");
            for (name, value) in members {
                let described = &properties[name]["description"];
                assert!(described.as_str().is_some_and(|it| it.ends_with('.')), "{at}.{name}");
                compare(schemas, &properties[name], value, &format!("{at}.{name}"));
            }
        }
        (Value::Object(_), _) => assert_eq!(schema["additionalProperties"]["type"], "string"),
        (Value::Array(items), _) => {
            assert_eq!((&schema["type"], items.len()), (&json!("array"), 1), "{at}");
            compare(schemas, &schema["items"], &items[0], &format!("{at}[]"));
        }
        (Value::Number(_), _) => assert_eq!(schema["type"], "integer", "{at}"),
        (_, _) => assert_eq!(schema["type"], "string", "{at}"),
    }
}

#[test]
fn configurations_get_their_defaults_when_they_are_made_and_when_they_change() {
    for (kind, entry, member, want) in [
        (ConfigurationKind::Initializer, json!({}), "failurePolicy", json!("Ignore")),
        (ConfigurationKind::ExternalHook, json!({}), "failurePolicy", json!("Ignore")),
        (ConfigurationKind::Validating, json!({}), "failurePolicy", json!("Fail")),
        (ConfigurationKind::Mutating, json!({}), "reinvocationPolicy", json!("Never")),
        (ConfigurationKind::Mutating, json!({"rules": [{}]}), "rules", json!([{"scope": "*"}])),
    ] {
        let resource = resource_of(kind);
        let given = tree(
            json!({"metadata": {"name": "a"}, (kind.entries_member_name()): [entry], "spec": {}}),
        );
        let (mut made, mut changed) = (given.clone(), given.clone());
        api_resources::prepare_create(&resource, &mut made).expect("the right types");
        api_resources::prepare_update(&resource, &mut changed, &given, None)
            .expect("the right types");
        for tree in [made, changed] {
            assert_eq!(tree[kind.entries_member_name()][0][member], want, "{kind:?}");
            assert_eq!(tree["metadata"], json!({"name": "a"}));
            assert!(tree.get("spec").is_none(), "the kind has no such member");
        }
    }
}

#[test]
fn configurations_are_validated_when_they_are_made_and_when_they_change() {
    let (kind, list) = (ConfigurationKind::Initializer, "initializers");
    let resource = resource_of(kind);
    let object = |policy: &str| {
        tree(
            json!({"metadata": {"name": "a"}, (list): [{"name": "a.b.c", "failurePolicy": policy}]}),
        )
    };
    let faults = api_resources::validate_create(&resource, &object("Fail")).to_string();
    assert!(faults.starts_with("initializers[0].failurePolicy: Forbidden: "), "{faults}");
    // Who is registered already may do that.
    let faults =
        api_resources::validate_update(&resource, &object("Fail"), &object("Ignore"), None);
    assert!(faults.is_empty(), "{faults}");
    let faults = api_resources::validate_update(&resource, &object("x"), &object("Ignore"), None);
    let faults = faults.to_string();
    assert!(faults.starts_with("initializers[0].failurePolicy: Unsupported value: "), "{faults}");
}

#[test]
fn values_of_the_wrong_type_make_no_configuration() {
    let resource = resource_of(ConfigurationKind::Validating);
    let mut given = tree(json!({"webhooks": [{"timeoutSeconds": "1"}]}));
    let error = api_resources::prepare_create(&resource, &mut given).expect_err("a wrong type");
    assert_eq!(
        error.to_string(),
        "ValidatingWebhookConfiguration in version \"v1\" cannot be handled as a \
         ValidatingWebhookConfiguration: json: cannot unmarshal string into field \
         webhooks[0].timeoutSeconds of type int32"
    );
}

#[test]
fn the_generation_of_a_configuration_counts_changes_of_its_list() {
    for kind in ConfigurationKind::ALL {
        let resource = resource_of(kind);
        let changed = |new: Value, old: Value| {
            api_resources::is_spec_changed(&resource, &tree(new), &tree(old))
        };
        let list = kind.entries_member_name();
        let one = json!({"metadata": {"name": "a"}, (list): [{"name": "a.b.c"}]});
        let labelled = json!({"metadata": {"labels": {"x": "y"}}, (list): [{"name": "a.b.c"}]});
        assert!(!changed(labelled, one.clone()));
        assert!(changed(json!({(list): [{"name": "b.b.c"}]}), one.clone()));
        assert!(changed(json!({}), one.clone()));
        // No entries are no entries.
        for nothing in [json!([]), Value::Null] {
            assert!(!changed(json!({(list): nothing}), json!({})));
            assert!(!changed(json!({}), json!({(list): nothing})));
            assert!(changed(json!({(list): nothing}), one.clone()));
        }
    }
}
