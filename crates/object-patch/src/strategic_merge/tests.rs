//! Strategic merge patches: directives, merge keys and order.

use proptest::prelude::{Just, ProptestConfig, Strategy, prop_assert, prop_oneof, proptest};
use serde_json::json;

use super::*;
use crate::NESTING_MAX;

fn apply(kind: &str, document: Value, patch: Value) -> Result<Value, PatchError> {
    let group = match kind {
        "Role" => "rbac.authorization.k8s.io",
        "Deployment" => "apps",
        "PodDisruptionBudget" => "policy",
        "ValidatingWebhookConfiguration"
        | "MutatingWebhookConfiguration"
        | "InitializerConfiguration"
        | "ExternalAdmissionHookConfiguration" => "admissionregistration.k8s.io",
        _ => "",
    };
    let schema = StrategicMergeSchema::of(group, kind);
    apply_strategic_merge_patch(document.as_object().unwrap().clone(), patch, &schema)
        .map(Value::Object)
}

#[test]
fn merges_without_directives() {
    for (document, patch, want) in [
        (
            json!({"data": {"a": "1", "b": "2"}}),
            json!({"data": {"a": null, "c": "3"}}),
            json!({"data": {"b": "2", "c": "3"}}),
        ),
        (json!({}), json!({"data": {"a": null, "b": {"c": null}}}), json!({"data": {"b": {}}})),
        (json!({"x": [1, 2]}), json!({"x": [3]}), json!({"x": [3]})),
        (json!({"x": {"a": 1}}), json!({"x": [3]}), json!({"x": [3]})),
        (
            json!({"x": 1}),
            json!({"x": {"a": {"$patch": "delete"}, "b": 1}}),
            json!({"x": {"b": 1}}),
        ),
        (json!({"x": 1}), json!({"x": null, "y": null}), json!({})),
        (
            json!({"x": {"a": 1}}),
            json!({"x": {"$patch": "replace", "b": {"c": null}}}),
            json!({"x": {"b": {}}}),
        ),
        (json!({"x": {"a": 1}}), json!({"x": {"$patch": "delete", "b": 2}}), json!({"x": {}})),
        (
            json!({"x": {"a": 1, "b": 2}}),
            json!({"x": {"$retainKeys": ["b", "c"], "c": 3, "a": null}}),
            json!({"x": {"b": 2, "c": 3}}),
        ),
    ] {
        assert_eq!(apply("ConfigMap", document, patch.clone()), Ok(want), "{patch}");
    }
}

#[test]
fn finalizers_are_a_set() {
    let document = json!({"metadata": {"name": "a", "finalizers": ["x/y"]}});
    let added =
        apply("ConfigMap", document, json!({"metadata": {"finalizers": ["a.b/c"]}})).unwrap();
    assert_eq!(added["metadata"]["finalizers"], json!(["a.b/c", "x/y"]));
    let removal = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.b/c", "none"]}});
    let removed = apply("ConfigMap", added, removal).unwrap();
    assert_eq!(removed["metadata"], json!({"name": "a", "finalizers": ["x/y"]}));
    let ordered = json!({"metadata": {
        "finalizers": ["n/n"],
        "$setElementOrder/finalizers": ["n/n", "x/y"],
    }});
    let ordered = apply("ConfigMap", removed.clone(), ordered).unwrap();
    assert_eq!(ordered["metadata"], json!({"name": "a", "finalizers": ["n/n", "x/y"]}));
    let gone = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": null}});
    assert_eq!(apply("ConfigMap", removed, gone).unwrap()["metadata"], json!({"name": "a"}));
}

#[test]
fn webhooks_are_merged_by_name() {
    let document = json!({"webhooks": [
        {"name": "a", "timeoutSeconds": 1, "rules": [{"verbs": ["x"]}]},
        {"name": "b", "timeoutSeconds": 1, "failurePolicy": "Fail"},
    ]});
    let kind = "ValidatingWebhookConfiguration";
    let patch = json!({"webhooks": [{"name": "b", "timeoutSeconds": 5}]});
    let want = json!({"webhooks": [
        {"name": "a", "timeoutSeconds": 1, "rules": [{"verbs": ["x"]}]},
        {"name": "b", "timeoutSeconds": 5, "failurePolicy": "Fail"},
    ]});
    assert_eq!(apply(kind, document.clone(), patch), Ok(want));
    let patch = json!({"webhooks": [{"name": "a", "$patch": "delete"}]});
    let want = json!({"webhooks": [{"name": "b", "timeoutSeconds": 1, "failurePolicy": "Fail"}]});
    assert_eq!(apply(kind, document.clone(), patch), Ok(want));
    let patch = json!({"webhooks": [{"name": "c"}, {"$patch": "replace"}]});
    assert_eq!(apply(kind, document.clone(), patch), Ok(json!({"webhooks": [{"name": "c"}]})));
    let patch = json!({"webhooks": [{"name": "a", "rules": [{"verbs": ["y"]}]}]});
    let merged = apply(kind, document, patch).unwrap();
    assert_eq!(merged["webhooks"][0]["rules"], json!([{"verbs": ["y"]}]));
}

#[test]
fn entries_of_configurations_and_their_conditions_are_merged_by_name() {
    for (kind, list) in [
        ("MutatingWebhookConfiguration", "webhooks"),
        ("ValidatingWebhookConfiguration", "webhooks"),
        ("InitializerConfiguration", "initializers"),
        ("ExternalAdmissionHookConfiguration", "externalAdmissionHooks"),
    ] {
        let document = json!({(list): [{"name": "a", "x": 1}, {"name": "b", "rules": [{"r": 1}]}]});
        let patch = json!({(list): [{"name": "b", "y": 2, "rules": [{"s": 2}]}]});
        let want = json!({
            (list): [{"name": "a", "x": 1}, {"name": "b", "rules": [{"s": 2}], "y": 2}],
        });
        assert_eq!(apply(kind, document, patch), Ok(want), "{kind}");
    }
    let condition = |name: &str, expression: &str| json!({"name": name, "expression": expression});
    let webhooks = |conditions: Value| json!({"webhooks": [{"name": "a", "timeoutSeconds": 1, "matchConditions": conditions}]});
    let document = webhooks(json!([condition("p", "1"), condition("q", "2"), condition("r", "3")]));
    let patch = json!({"webhooks": [{"name": "a", "matchConditions": [
        condition("q", "4"), {"name": "r", "$patch": "delete"},
    ]}]});
    let want = webhooks(json!([condition("p", "1"), condition("q", "4")]));
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        assert_eq!(apply(kind, document.clone(), patch.clone()), Ok(want.clone()), "{kind}");
    }
}

#[test]
fn rules_of_a_role_are_replaced() {
    let document = json!({"rules": [{"verbs": ["get"]}, {"verbs": ["list"]}]});
    let patch = json!({"rules": [{"verbs": ["watch"], "$patch": "delete", "x": null}]});
    assert_eq!(apply("Role", document, patch), Ok(json!({"rules": [{"verbs": ["watch"]}]})));
}

#[test]
fn some_objects_are_replaced_as_a_whole() {
    let document = json!({"spec": {"selector": {"matchLabels": {"a": "1"}}}});
    let patch = json!({"spec": {"selector": {"matchLabels": {"b": "2"}}}});
    assert_eq!(apply("PodDisruptionBudget", document.clone(), patch.clone()), Ok(patch.clone()));
    let merged = json!({"spec": {"selector": {"matchLabels": {"a": "1", "b": "2"}}}});
    assert_eq!(apply("Deployment", document, patch), Ok(merged));
}

#[test]
fn set_element_order_sorts_around_server_items() {
    let list = |names: &[&str]| -> Value {
        json!(names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>())
    };
    for (server, patch, order, want) in [
        (&["a", "b", "c"][..], &["c", "a"][..], None, &["b", "c", "a"][..]),
        (&["a", "b", "c"], &["n"], None, &["n", "a", "b", "c"]),
        (&["a", "b", "c"], &["b", "n"], None, &["a", "b", "n", "c"]),
        (&["a", "b", "c"], &[], Some(&["c", "b", "a"][..]), &["c", "b", "a"]),
        (&["a", "b", "c"], &["n"], Some(&["n", "b"]), &["n", "a", "b", "c"]),
        (&["s", "a", "b"], &["b"], Some(&["b", "a"]), &["s", "b", "a"]),
    ] {
        let document = json!({"spec": {"containers": list(server)}});
        let mut spec = json!({"containers": list(patch)});
        if let Some(order) = order {
            spec["$setElementOrder/containers"] = list(order);
        }
        let merged = apply("Pod", document, json!({"spec": spec})).unwrap();
        assert_eq!(merged["spec"], json!({"containers": list(want)}), "{patch:?} {order:?}");
    }
}

#[test]
fn malformed_patches_are_refused() {
    use PatchError::{Directive, ListOfLists, MixedList, Order};
    let document = json!({
        "metadata": {"finalizers": ["a"]},
        "spec": {"containers": [{"name": "a"}], "x": {}},
    });
    let deep = |patch: Value| apply("Pod", document.clone(), json!({"spec": patch})).unwrap_err();
    let no_key = deep(json!({"containers": [{"image": "i"}]}));
    assert_eq!(
        no_key.to_string(),
        "map: {\"image\":\"i\"} does not contain declared merge key: name"
    );
    for (patch, want) in [
        (json!({"$retainKeys": 1}), Directive("retainKeys")),
        (json!({"$retainKeys": ["a"], "b": 1}), Directive("retainKeys")),
        (json!({"$setElementOrder/containers": 1}), Directive("setElementOrder list")),
        (json!({"$setElementOrder": []}), Directive("setElementOrder list")),
        (json!({"$deleteFromPrimitiveList": []}), Directive("primitive list")),
        (
            json!({"$deleteFromPrimitiveList/containers": [{"name": "a"}]}),
            Directive("primitive list"),
        ),
        (json!({"containers": [["a"]]}), MixedList),
        (json!({"containers": ["a"]}), MixedList),
        (
            json!({"containers": [{"name": "b"}], "$setElementOrder/containers": [{"name": "a"}]}),
            Order,
        ),
    ] {
        assert_eq!(deep(patch.clone()), want, "{patch}");
    }
    let unknown = deep(json!({"x": {"$patch": "merge"}}));
    assert_eq!(unknown, PatchError::UnknownDirective("merge".to_owned()));
    let unknown = deep(json!({"containers": [{"$patch": "merge", "name": "a"}]}));
    assert_eq!(unknown, PatchError::UnknownDirective("merge".to_owned()));
    let lists = json!({"metadata": {"finalizers": [[1]]}});
    let empty = json!({"metadata": {"finalizers": []}});
    assert_eq!(apply("Pod", empty, lists), Err(ListOfLists));
    let error = apply("Pod", json!({}), json!([])).unwrap_err();
    assert!(matches!(error, PatchError::Shape(_)), "{error}");
}

#[test]
fn deep_trees_fit_a_small_stack() {
    let nested = |leaf: &str| {
        let innermost = Tree::from_iter([(leaf.to_owned(), Value::Null)]);
        let wrap = |inner: Tree, _| Tree::from_iter([("a".to_owned(), Value::Object(inner))]);
        (1..NESTING_MAX).fold(innermost, wrap)
    };
    let check = move || {
        let schema = StrategicMergeSchema::of("", "Pod");
        let (tree, patch) = (nested("b"), Value::Object(nested("c")));
        let merged = apply_strategic_merge_patch(tree.clone(), patch.clone(), &schema).unwrap();
        assert_eq!(merged, tree);
        assert_eq!(crate::apply_merge_patch(tree.clone(), patch).unwrap(), tree);
    };
    // This stack is a quarter of the usual size. Without optimization, stack frames are many times as large.
    let stack_bytes = if cfg!(debug_assertions) { 8 << 20 } else { 1 << 19 };
    let thread = std::thread::Builder::new().stack_size(stack_bytes).spawn(check);
    thread.unwrap().join().unwrap();
}

/// Trees that use the names of the pod schema and of the directives.
fn odd_tree() -> impl Strategy<Value = Value> {
    let name = "(name|metadata|spec|containers|env|finalizers|\\$patch|\\$retainKeys|\
                \\$setElementOrder/containers|\\$setElementOrder|\
                \\$deleteFromPrimitiveList/finalizers|\\$setElementOrder/finalizers)";
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(1)),
        "(a|b|replace|delete|merge|name)".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map(name, inner, 0..5)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

fn has_directive(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            members.iter().any(|(name, value)| name.starts_with('$') || has_directive(value))
        }
        Value::Array(items) => items.iter().any(has_directive),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn directives_are_removed_from_the_result(document in odd_tree(), patch in odd_tree()) {
        let document = json!({"metadata": document.clone(), "spec": document});
        let patch = json!({"metadata": patch.clone(), "spec": patch});
        let clean = strip_object_nulls_and_directives(document.as_object().unwrap().clone());
        if let Ok(merged) = apply("Pod", Value::Object(clean), patch) {
            prop_assert!(!has_directive(&merged), "{}", merged);
        }
    }
}
