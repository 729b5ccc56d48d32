//! The index finds the same hooks as a comparison with every hook.

use admission::ConfigurationKind::{ExternalHook, Validating};
use admission::{
    Attributes, EquivalentResource, GroupVersionKind, GroupVersionResource, Operation,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::documents::snapshot;

const GROUPS: [&str; 4] = ["", "apps", "extensions", "example.com"];
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v2"];
const RESOURCES: [&str; 4] = ["pods", "deployments", "namespaces", "nodes"];
const SUBRESOURCES: [&str; 4] = ["", "status", "scale", "exec"];

fn some_of(values: &[&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    let values: Vec<&'static str> = values.iter().copied().chain(["*"]).collect();
    prop::collection::vec(prop::sample::select(values), 1..4)
}

fn rule() -> impl Strategy<Value = Value> {
    let resources = RESOURCES.iter().chain(["*", "other"].iter());
    let resources: Vec<String> = resources
        .flat_map(|resource| {
            let subresources = SUBRESOURCES.iter().skip(1).chain(["*"].iter());
            subresources
                .map(move |subresource| format!("{resource}/{subresource}"))
                .chain([(*resource).to_owned()])
        })
        .collect();
    let operations = some_of(&["CREATE", "UPDATE", "DELETE", "CONNECT", "PATCH"]);
    let scope = prop::sample::select(vec!["*", "*", "*", "Namespaced", "Cluster", "Other"]);
    let resources = prop::collection::vec(prop::sample::select(resources), 0..5);
    (operations, some_of(&GROUPS), some_of(&VERSIONS), resources, scope).prop_map(
        |(operations, groups, versions, resources, scope)| {
            json!({
                "operations": operations, "apiGroups": groups, "apiVersions": versions,
                "resources": resources, "scope": scope,
            })
        },
    )
}

fn hooks() -> impl Strategy<Value = Vec<Value>> {
    let policy = prop::sample::select(vec!["Exact", "Equivalent"]);
    let hook = (prop::collection::vec(rule(), 0..4), policy).prop_map(
        |(rules, policy)| json!({"name": "a.b.c", "rules": rules, "matchPolicy": policy}),
    );
    prop::collection::vec(hook, 0..12)
}

fn resource() -> impl Strategy<Value = GroupVersionResource<'static>> {
    let pick = |values: &[&'static str]| prop::sample::select(values.to_vec());
    (pick(&GROUPS), pick(&VERSIONS), pick(&RESOURCES))
        .prop_map(|(group, version, resource)| GroupVersionResource { group, version, resource })
}

proptest! {
    #[test]
    fn the_rule_index_agrees_with_matching_every_hook(
        external in hooks(),
        validating in hooks(),
        own in resource(),
        others in prop::collection::vec(resource(), 0..4),
        operation in prop::sample::select(Operation::ALL.to_vec()),
        subresource in prop::sample::select(SUBRESOURCES.to_vec()),
        namespace in prop::sample::select(vec!["", "a"]),
    ) {
        let all = snapshot(&[
            (ExternalHook, "a", json!(external)),
            (Validating, "a", json!(validating)),
        ]);
        let kind = GroupVersionKind { group: own.group, version: own.version, kind: "X" };
        let others: Vec<_> =
            others.into_iter().map(|resource| EquivalentResource { resource, kind: Some(kind) }).collect();
        let attributes = Attributes {
            operation, kind, resource: own, subresource, name: "x", namespace,
            object: None, old_object: None, options: None, is_dry_run: false, user: None,
            equivalent_resources: &others,
        };
        let naive: Vec<_> = all
            .validating_hooks()
            .hooks()
            .iter()
            .enumerate()
            .filter_map(|(position, hook)| Some((position, hook.match_resource(&attributes)?)))
            .collect();
        let indexed: Vec<_> = all
            .validating_hooks()
            .match_hooks(&attributes)
            .into_iter()
            .map(|found| (found.hook_list_position, found.matched_resource))
            .collect();
        prop_assert_eq!(&indexed, &naive);
        let matched = all.match_hooks(&attributes);
        let kept: Vec<_> =
            matched.validating_hooks(&attributes).map(|found| (found.hook_list_position, found.matched_resource)).collect();
        prop_assert_eq!(kept, naive);
        prop_assert_eq!(matched.is_empty(), indexed.is_empty());
        prop_assert!(!matched.has_mutating_hooks());
    }

    /// Every stored document can be compiled, and every received document is either refused or validated.
    #[test]
    fn any_document_is_refused_or_compiled(entries in odd_value()) {
        for kind in admission::ConfigurationKind::ALL {
            let raw = crate::documents::tree(json!({"metadata": {"name": "a"}, (kind.entries_member_name()): entries}));
            let compiled = admission::Configuration::compile_configuration(kind, &raw);
            prop_assert_eq!(compiled.name(), "a");
            let mut tree = raw.clone();
            if admission::prepare_configuration(kind, &mut tree).is_ok() {
                let _ = admission::validate_configuration_create(kind, &tree);
                let _ = admission::validate_configuration_update(kind, &tree, &raw);
                let _ = admission::configuration_warnings(kind, &tree, Some(&raw));
                let mut again = tree.clone();
                prop_assert!(admission::prepare_configuration(kind, &mut again).is_ok());
                prop_assert_eq!(again, tree);
            }
        }
    }
}

/// JSON in which the members of entries have values of any type.
fn odd_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        prop::sample::select(vec![
            "",
            "*",
            "*/*",
            "a.b.c",
            "pods/*",
            "Fail",
            "Graph",
            "In",
            "é/x",
            "https://h",
            "true",
            "Zm9v",
        ])
        .prop_map(Value::from),
    ];
    let names = prop::sample::select(vec![
        "name",
        "rules",
        "clientConfig",
        "service",
        "url",
        "path",
        "port",
        "caBundle",
        "urlPath",
        "verbs",
        "operations",
        "apiGroups",
        "apiVersions",
        "resources",
        "scope",
        "failurePolicy",
        "matchConditions",
        "expression",
        "namespaceSelector",
        "matchExpressions",
        "matchLabels",
        "key",
        "operator",
        "values",
        "after",
        "before",
        "orderingMode",
        "timeoutSeconds",
        "admissionReviewVersions",
        "sideEffects",
    ]);
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..6).prop_map(|members| {
                members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            }),
        ]
    })
}
