//! Objects read the same whether they are written as JSON or as YAML.

use document::Source;
use manifests::{Manifests, read};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Texts that fields may hold, right and wrong.
fn text() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!("a"),
        json!("view"),
        json!("User"),
        json!("Group"),
        json!("ServiceAccount"),
        json!("ClusterRole"),
        json!("system:masters"),
        json!("system:serviceaccount:a:b"),
        json!("rbac.authorization.k8s.io"),
        json!("*"),
        json!("Pods"),
        json!("pods/"),
        json!("a b"),
        json!("\u{e4}\n\t\"\\"),
        json!(""),
        json!(null),
        json!(7),
        json!(true),
        json!([]),
        json!({}),
    ])
}

/// An object with some of these fields.
fn object(
    fields: &'static [&'static str],
    value: BoxedStrategy<Value>,
) -> impl Strategy<Value = Value> {
    let entry = (prop::sample::select(fields), value);
    prop::collection::vec(entry, 0..5).prop_map(|entries| {
        let entries = entries.into_iter().map(|(key, value)| (key.to_owned(), value));
        Value::Object(entries.collect::<Map<_, _>>())
    })
}

fn list(item: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Value> {
    prop::collection::vec(item, 0..3).prop_map(Value::Array).boxed()
}

const KINDS: &[&str] =
    &["ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding", "Pod", "ConfigMap"];

/// An arbitrary object with the kind of a role, a binding or a pod.
fn manifest() -> impl Strategy<Value = Value> {
    let rule = object(
        &["verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs", "verb"],
        list(text()),
    );
    let subject = object(&["kind", "name", "namespace", "apiGroup", "nam"], text().boxed());
    let reference = object(&["kind", "name", "apiGroup"], text().boxed());
    let metadata = object(&["name", "namespace", "labels", "uid", "lables"], text().boxed());
    (prop::sample::select(KINDS), metadata, list(rule), list(subject), reference).prop_map(
        |(kind, metadata, rules, subjects, reference)| {
            let is_core = matches!(kind, "Pod" | "ConfigMap");
            let api_version = if is_core { "v1" } else { "rbac.authorization.k8s.io/v1" };
            let mut object =
                json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata });
            if kind.ends_with("Role") {
                object["rules"] = rules;
            } else {
                object["subjects"] = subjects;
                object["roleRef"] = reference;
            }
            object
        },
    )
}

fn read_text(text: &str) -> Manifests {
    read(&Source { name: "F", file_bytes: text.as_bytes() })
}

/// The parts of the result that do not depend on positions.
fn result_without_positions(manifests: &Manifests) -> impl PartialEq + std::fmt::Debug + use<> {
    let objects: Vec<_> =
        manifests.authorizer_objects.iter().map(|found| found.authorizer_object.clone()).collect();
    let mut errors: Vec<_> =
        manifests.errors.iter().map(|it| (it.fault.to_string(), it.hint.clone())).collect();
    let mut warnings: Vec<_> =
        manifests.warnings.iter().map(|it| (it.code.name(), it.field.clone())).collect();
    errors.sort();
    warnings.sort();
    (objects, errors, warnings, manifests.n_unused_objects)
}

proptest! {
    /// JSON after a line of dashes is read as YAML, since JSON is valid YAML.
    #[test]
    fn yaml_and_json_give_the_same_result(objects in prop::collection::vec(manifest(), 1..4)) {
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
        let in_list = read_text(&list.to_string());
        let in_yaml = read_text(&format!("---\n{list}\n"));
        prop_assert_eq!(result_without_positions(&in_list), result_without_positions(&in_yaml));
        let pretty = serde_json::to_string_pretty(&list).unwrap();
        prop_assert_eq!(result_without_positions(&in_list), result_without_positions(&read_text(&pretty)));

        let stream: String = objects.iter().map(|object| format!("{object}\n")).collect();
        let documents: String = objects.iter().map(|object| format!("---\n{object}\n")).collect();
        let in_stream = read_text(&stream);
        prop_assert_eq!(result_without_positions(&in_stream), result_without_positions(&read_text(&documents)));
        prop_assert_eq!(in_stream.errors.is_empty(), in_list.errors.is_empty());
        prop_assert_eq!(in_stream.authorizer_objects.len(), in_list.authorizer_objects.len());
    }
}
