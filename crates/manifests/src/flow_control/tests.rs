//! Each validation rule of the two kinds with Kubernetes' message, defaults, and round trips.

use std::sync::Arc;

use flow_control::bootstrap_objects::{
    BootstrapPriorityLevel, mandatory_flow_schemas, mandatory_priority_levels,
    suggested_flow_schemas, suggested_priority_levels,
};
use flow_control::{
    FlowDistinguisher, FlowSchema, LimitResponse, NonResourceRule, PolicyRulesWithSubjects,
    PriorityLevel, PriorityLevelKind, QueuingOptions, ResourceRule, Subject,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn tree(kind: Kind, name: &str, spec: Value) -> Map<String, Value> {
    let value = json!({
        "apiVersion": API_VERSION, "kind": kind.name(), "metadata": {"name": name}, "spec": spec,
    });
    let Value::Object(mut tree) = value else { panic!("not an object") };
    set_flow_control_defaults(kind, &mut tree);
    tree
}

fn faults(kind: Kind, tree: &Map<String, Value>) -> Vec<String> {
    let errors = match kind {
        Kind::FlowSchema => validate_flow_schema(tree),
        Kind::PriorityLevelConfiguration => validate_priority_level(tree),
    };
    errors.iter().map(ToString::to_string).collect()
}

fn schema_spec(rules: Value) -> Value {
    json!({
        "priorityLevelConfiguration": {"name": "low"},
        "matchingPrecedence": 50,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": rules,
    })
}

/// A spec with one valid rule, of which a subject or another part is replaced.
fn rule_spec(member: &str, value: Value) -> Value {
    let mut rules = json!({
        "subjects": [{"kind": "User", "user": {"name": "ana"}}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    });
    rules[member] = value;
    schema_spec(json!([rules]))
}

fn resource_rule(member: &str, value: Value) -> Value {
    let mut rule = json!({
        "verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["a"],
    });
    rule[member] = value;
    rule_spec("resourceRules", json!([rule]))
}

fn path_rule(member: &str, value: Value) -> Value {
    let mut rule = json!({"verbs": ["get"], "nonResourceURLs": ["/a"]});
    rule[member] = value;
    rule_spec("nonResourceRules", json!([rule]))
}

const DNS_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DNS_SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
     and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const VERBS: &str = "supported values: \"create\", \"delete\", \"deletecollection\", \"get\", \"list\", \"patch\", \
     \"proxy\", \"update\", \"watch\"";

#[test]
fn flow_schemas_are_validated_as_kubernetes_does() {
    let with = |member: &str, value: Value| {
        let mut spec = rule_spec("subjects", json!([{"kind": "User", "user": {"name": "ana"}}]));
        spec[member] = value;
        spec
    };
    let subject = |subject: Value| rule_spec("subjects", json!([subject]));
    #[rustfmt::skip]
    let cases: Vec<(Value, Vec<String>)> = vec![
        (with("matchingPrecedence", json!(10_000)), vec![]),
        (with("matchingPrecedence", json!(10_001)), vec!["spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000".into()]),
        (with("matchingPrecedence", json!(-1)), vec!["spec.matchingPrecedence: Invalid value: -1: must be a positive value".into()]),
        (with("matchingPrecedence", json!(1)), vec!["spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1".into()]),
        (with("matchingPrecedence", json!(2)), vec![]),
        (with("distinguisherMethod", json!(null)), vec![]),
        (with("distinguisherMethod", json!({"type": "ByNamespace"})), vec![]),
        (with("distinguisherMethod", json!({"type": "ByVerb"})), vec!["spec.distinguisherMethod.type: Unsupported value: {\"Type\":\"ByVerb\"}: supported values: \"ByNamespace\", \"ByUser\"".into()]),
        (with("priorityLevelConfiguration", json!({})), vec!["spec.priorityLevelConfiguration.name: Required value: must reference a priority level".into()]),
        (with("priorityLevelConfiguration", json!({"name": "A"})), vec![format!("spec.priorityLevelConfiguration.name: Invalid value: \"A\": {DNS_SUBDOMAIN}")]),
        (with("rules", json!(null)), vec![]),
        (with("rules", json!([{}])), vec!["spec.rules[0].subjects: Required value: subjects must contain at least one value".into(), "spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty".into()]),
        (subject(json!({"kind": "User", "user": {"name": "*"}})), vec![]),
        (subject(json!({"kind": "User"})), vec!["spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'".into()]),
        (subject(json!({"kind": "User", "user": {}})), vec!["spec.rules[0].subjects[0].user.name: Required value".into()]),
        (subject(json!({"kind": "User", "user": {"name": "a"}, "group": {"name": "b"}, "serviceAccount": {}})), vec!["spec.rules[0].subjects[0].serviceAccount: Forbidden: serviceAccount is forbidden when subject kind is not 'ServiceAccount'".into(), "spec.rules[0].subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'".into()]),
        (subject(json!({"kind": "Group", "group": {"name": "b"}})), vec![]),
        (subject(json!({"kind": "Group", "user": {"name": "b"}})), vec!["spec.rules[0].subjects[0].group: Required value: group is required when subject kind is 'Group'".into(), "spec.rules[0].subjects[0].user: Forbidden: user is forbidden when subject kind is not 'User'".into()]),
        (subject(json!({"kind": "Robot"})), vec!["spec.rules[0].subjects[0].kind: Unsupported value: \"Robot\": supported values: \"Group\", \"ServiceAccount\", \"User\"".into()]),
        (subject(json!({"kind": "ServiceAccount"})), vec!["spec.rules[0].subjects[0].serviceAccount: Required value: serviceAccount is required when subject kind is 'ServiceAccount'".into()]),
        (subject(json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": "a", "name": "*"}})), vec![]),
        (subject(json!({"kind": "ServiceAccount", "serviceAccount": {}})), vec!["spec.rules[0].subjects[0].serviceAccount.name: Required value".into(), "spec.rules[0].subjects[0].serviceAccount.namespace: Required value: must specify namespace for service account".into()]),
        (subject(json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": "*", "name": "A"}})), vec![format!("spec.rules[0].subjects[0].serviceAccount.name: Invalid value: \"A\": {DNS_SUBDOMAIN}"), format!("spec.rules[0].subjects[0].serviceAccount.namespace: Invalid value: \"*\": {DNS_LABEL}")]),
        (resource_rule("verbs", json!([])), vec!["spec.rules[0].resourceRules[0].verbs: Required value: verbs must contain at least one value".into()]),
        (resource_rule("verbs", json!(["*"])), vec![]),
        (resource_rule("verbs", json!(["*", "get"])), vec!["spec.rules[0].resourceRules[0].verbs: Invalid value: [\"*\",\"get\"]: if '*' is present, must not specify other verbs".into()]),
        (resource_rule("verbs", json!(["get", "GET"])), vec![format!("spec.rules[0].resourceRules[0].verbs: Unsupported value: [\"get\",\"GET\"]: {VERBS}")]),
        (resource_rule("apiGroups", json!([])), vec!["spec.rules[0].resourceRules[0].apiGroups: Required value: resource rules must supply at least one api group".into()]),
        (resource_rule("apiGroups", json!(["*", ""])), vec!["spec.rules[0].resourceRules[0].apiGroups: Invalid value: [\"*\",\"\"]: if '*' is present, must not specify other api groups".into()]),
        (resource_rule("resources", json!(null)), vec!["spec.rules[0].resourceRules[0].resources: Required value: resource rules must supply at least one resource".into()]),
        (resource_rule("resources", json!(["pods", "*"])), vec!["spec.rules[0].resourceRules[0].resources: Invalid value: [\"pods\",\"*\"]: if '*' is present, must not specify other resources".into()]),
        (resource_rule("namespaces", json!([])), vec!["spec.rules[0].resourceRules[0].namespaces: Required value: resource rules that are not cluster scoped must supply at least one namespace".into()]),
        (resource_rule("namespaces", json!(["*", "a"])), vec!["spec.rules[0].resourceRules[0].namespaces: Invalid value: [\"*\",\"a\"]: if '*' is present, must not specify other namespaces".into()]),
        (resource_rule("namespaces", json!(["a", "B"])), vec![format!("spec.rules[0].resourceRules[0].namespaces[1]: Invalid value: \"B\": each member of this list must be '*' or a DNS-1123 label; {DNS_LABEL}")]),
        (path_rule("verbs", json!([])), vec!["spec.rules[0].nonResourceRules[0].verbs: Required value: verbs must contain at least one value".into()]),
        (path_rule("verbs", json!(["head"])), vec![format!("spec.rules[0].nonResourceRules[0].verbs: Unsupported value: [\"head\"]: {VERBS}")]),
        (path_rule("nonResourceURLs", json!([])), vec!["spec.rules[0].nonResourceRules[0].nonResourceURLs: Required value: nonResourceURLs must contain at least one value".into()]),
        (path_rule("nonResourceURLs", json!(["*", "/a"])), vec!["spec.rules[0].nonResourceRules[0].nonResourceURLs: Invalid value: [\"*\",\"/a\"]: if '*' is present, must not specify other non-resource URLs".into()]),
        (path_rule("nonResourceURLs", json!(["/", "/a/*", "/a/b"])), vec![]),
        (path_rule("nonResourceURLs", json!(["", "a", "/a b", "/a//b", "/a*", "/*/*"])), vec![
            "spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: \"\": must not be empty".into(),
            "spec.rules[0].nonResourceRules[0].nonResourceURLs[1]: Invalid value: \"a\": must start with slash".into(),
            "spec.rules[0].nonResourceRules[0].nonResourceURLs[2]: Invalid value: \"/a b\": must not contain white-space".into(),
            "spec.rules[0].nonResourceRules[0].nonResourceURLs[3]: Invalid value: \"/a//b\": must not contain double slash".into(),
            "spec.rules[0].nonResourceRules[0].nonResourceURLs[4]: Invalid value: \"/a*\": wildcard can only do suffix matching".into(),
            "spec.rules[0].nonResourceRules[0].nonResourceURLs[5]: Invalid value: \"/*/*\": wildcard can only do suffix matching".into(),
        ]),
    ];
    for (spec, want) in cases {
        let object = tree(Kind::FlowSchema, "own", spec);
        assert_eq!(faults(Kind::FlowSchema, &object), want, "{object:?}");
        assert_eq!(decode_flow_schema(&object).is_ok(), want.is_empty(), "{object:?}");
    }
    let mut cluster_scoped = resource_rule("namespaces", json!([]));
    cluster_scoped["rules"][0]["resourceRules"][0]["clusterScope"] = true.into();
    let object = tree(Kind::FlowSchema, "own", cluster_scoped);
    assert_eq!(faults(Kind::FlowSchema, &object), Vec::<String>::new());
}

fn limited(member: &str, value: Value) -> Value {
    let mut limited = json!({"limitResponse": {"type": "Reject"}});
    limited[member] = value;
    json!({"type": "Limited", "limited": limited})
}

fn queuing(queues: i32, hand_size: i32, queue_length_limit: i32) -> Value {
    let queuing = json!({
        "queues": queues, "handSize": hand_size, "queueLengthLimit": queue_length_limit,
    });
    limited("limitResponse", json!({"type": "Queue", "queuing": queuing}))
}

#[test]
fn priority_levels_are_validated_as_kubernetes_does() {
    let response = |response: Value| limited("limitResponse", response);
    #[rustfmt::skip]
    let cases: Vec<(Value, &[&str])> = vec![
        (limited("nominalConcurrencyShares", json!(0)), &[]),
        (limited("nominalConcurrencyShares", json!(-1)), &["spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer"]),
        (limited("lendablePercent", json!(100)), &[]),
        (limited("lendablePercent", json!(101)), &["spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive"]),
        (limited("lendablePercent", json!(-1)), &["spec.limited.lendablePercent: Invalid value: -1: must be between 0 and 100, inclusive"]),
        (limited("borrowingLimitPercent", json!(200)), &[]),
        (limited("borrowingLimitPercent", json!(-1)), &["spec.limited.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative integer"]),
        (json!({}), &["spec.type: Required value"]),
        (json!({"type": "Limited"}), &["spec.limited: Required value"]),
        (json!({"type": "Limited", "limited": {}}), &["spec.limited.limitResponse.type: Required value"]),
        (json!({"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}, "exempt": {}}), &["spec.exempt: Forbidden"]),
        (json!({"type": "Exempt"}), &["spec.type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'"]),
        (json!({"type": "Other", "exempt": {}}), &["spec.type: Unsupported value: \"Other\": supported values: \"Exempt\", \"Limited\"", "spec.exempt: Forbidden"]),
        (response(json!({"type": "Queue"})), &["spec.limited.limitResponse.queuing: Required value"]),
        (response(json!({"type": "Reject", "queuing": {}})), &["spec.limited.limitResponse.queuing: Forbidden"]),
        (response(json!({"type": "Drop"})), &["spec.limited.limitResponse.type: Unsupported value: \"Drop\": supported values: \"Queue\", \"Reject\""]),
        (response(json!({"type": "Queue", "queuing": {}})), &[]),
        (queuing(64, 8, 1), &[]),
        (queuing(-1, -1, -1), &["spec.limited.limitResponse.queuing.queueLengthLimit: Invalid value: -1: must be positive", "spec.limited.limitResponse.queuing.queues: Invalid value: -1: must be positive", "spec.limited.limitResponse.queuing.handSize: Invalid value: -1: must be positive"]),
        (queuing(10_000_001, 1, 1), &["spec.limited.limitResponse.queuing.queues: Invalid value: 10000001: must not be greater than 10000000"]),
        (queuing(7, 8, 1), &["spec.limited.limitResponse.queuing.handSize: Invalid value: 8: should not be greater than queues (7)"]),
        (queuing(512, 8, 1), &["spec.limited.limitResponse.queuing.handSize: Invalid value: 8: required entropy bits of deckSize 512 and handSize 8 should not be greater than 60"]),
    ];
    let kind = Kind::PriorityLevelConfiguration;
    for (spec, want) in cases {
        let object = tree(kind, "own", spec);
        assert_eq!(faults(kind, &object), want, "{object:?}");
        assert_eq!(decode_priority_level(&object).is_ok(), want.is_empty(), "{object:?}");
    }
    let mut annotated = tree(kind, "own", limited("lendablePercent", json!(0)));
    annotated["metadata"]["annotations"] =
        json!({"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares": ""});
    let want = "metadata.annotations: Forbidden: annotation \
                'flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares' is forbidden";
    assert_eq!(faults(kind, &annotated), [want]);
}

#[test]
fn mandatory_objects_keep_their_specs() {
    let levels = mandatory_priority_levels().into_iter().chain(suggested_priority_levels());
    for level in levels {
        let object = encode_priority_level(&level).unwrap();
        let kind = Kind::PriorityLevelConfiguration;
        assert_eq!(faults(kind, &object), Vec::<String>::new(), "{}", level.priority_level.name);
    }
    for schema in mandatory_flow_schemas().into_iter().chain(suggested_flow_schemas()) {
        let object = encode_flow_schema(&schema).unwrap();
        assert_eq!(faults(Kind::FlowSchema, &object), Vec::<String>::new(), "{}", schema.name);
    }
    let kind = Kind::PriorityLevelConfiguration;
    let exempt =
        |shares: i32| json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": shares}});
    assert_eq!(faults(kind, &tree(kind, "exempt", exempt(7))), Vec::<String>::new());
    assert_eq!(
        faults(kind, &tree(kind, "exempt", exempt(-7))),
        ["spec.exempt.nominalConcurrencyShares: Invalid value: -7: must be a non-negative integer"],
    );
    assert_eq!(
        faults(kind, &tree(kind, "exempt", limited("nominalConcurrencyShares", json!(1)))),
        [
            "spec.type: Invalid value: \"Limited\": must be 'Exempt' if and only if `name` is 'exempt'",
            "spec: Invalid value: {\"Type\":\"Limited\",\"Limited\":{\"NominalConcurrencyShares\":1,\
             \"LimitResponse\":{\"Type\":\"Reject\",\"Queuing\":null},\"LendablePercent\":0,\
             \"BorrowingLimitPercent\":null},\"Exempt\":null}: spec of 'exempt' except the \
             'spec.exempt' field must equal the fixed value",
        ],
    );
    assert_eq!(
        faults(kind, &tree(kind, "catch-all", limited("nominalConcurrencyShares", json!(6)))),
        ["spec: Invalid value: {\"Type\":\"Limited\",\"Limited\":{\"NominalConcurrencyShares\":6,\
          \"LimitResponse\":{\"Type\":\"Reject\",\"Queuing\":null},\"LendablePercent\":0,\
          \"BorrowingLimitPercent\":null},\"Exempt\":null}: spec of 'catch-all' must equal the \
          fixed value"],
    );
    let other = tree(Kind::FlowSchema, "catch-all", schema_spec(json!([])));
    assert_eq!(
        faults(Kind::FlowSchema, &other),
        ["spec: Invalid value: {\"PriorityLevelConfiguration\":{\"Name\":\"low\"},\
          \"MatchingPrecedence\":50,\"DistinguisherMethod\":{\"Type\":\"ByUser\"},\"Rules\":null}: \
          spec of 'catch-all' must equal the fixed value"],
    );
    // What is stored is in force until the server restores it.
    assert!(decode_flow_schema(&other).is_ok());
}

#[test]
fn conditions_are_unique_and_named() {
    for kind in [Kind::FlowSchema, Kind::PriorityLevelConfiguration] {
        let mut object = Map::new();
        let conditions = json!([{"type": "A"}, {"type": "B"}, {"type": "A"}, {"status": "True"}]);
        object.insert("status".to_owned(), json!({"conditions": conditions}));
        let errors = match kind {
            Kind::FlowSchema => validate_flow_schema_status(&object),
            Kind::PriorityLevelConfiguration => validate_priority_level_status(&object),
        };
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                "status.conditions[2].type: Duplicate value: \"A\"",
                "status.conditions[3].type: Required value",
            ],
        );
    }
}

#[test]
fn absent_fields_get_the_defaults_of_kubernetes() {
    let level = |spec: Value| tree(Kind::PriorityLevelConfiguration, "own", spec)["spec"].clone();
    assert_eq!(
        level(json!({"type": "Limited", "limited": {"limitResponse": {"queuing": {"queues": 0}}}})),
        json!({"type": "Limited", "limited": {
            "limitResponse": {"queuing": {"queues": 64, "handSize": 8, "queueLengthLimit": 50}},
            "nominalConcurrencyShares": 30, "lendablePercent": 0,
        }}),
    );
    assert_eq!(
        level(json!({"limited": {"nominalConcurrencyShares": 0, "lendablePercent": null}})),
        json!({"limited": {"nominalConcurrencyShares": 0, "lendablePercent": 0}}),
    );
    assert_eq!(
        level(json!({"exempt": {}})),
        json!({"exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}}),
    );
    let schema = |spec: Value| tree(Kind::FlowSchema, "own", spec)["spec"].clone();
    assert_eq!(schema(json!({})), json!({"matchingPrecedence": 1000}));
    assert_eq!(schema(json!(null)), json!({"matchingPrecedence": 1000}));
    assert_eq!(schema(json!({"matchingPrecedence": 0})), json!({"matchingPrecedence": 1000}));
    assert_eq!(schema(json!({"matchingPrecedence": 7})), json!({"matchingPrecedence": 7}));
}

#[test]
fn other_kinds_and_types_are_refused() {
    let good = encode_flow_schema(&mandatory_flow_schemas()[0]).unwrap();
    assert!(decode_flow_schema(&good).is_ok());
    assert!(matches!(decode_priority_level(&good), Err(FlowControlDecodeError::OtherKind { .. })));
    let mut other = good.clone();
    other.insert("apiVersion".to_owned(), "flowcontrol.apiserver.k8s.io/v1beta3".into());
    assert!(matches!(decode_flow_schema(&other), Err(FlowControlDecodeError::OtherKind { .. })));
    let mut malformed = good;
    malformed.insert("spec".to_owned(), json!({"rules": "none"}));
    assert!(matches!(decode_flow_schema(&malformed), Err(FlowControlDecodeError::Malformed(_))));
}

fn texts(item: &'static str) -> impl Strategy<Value = Vec<String>> {
    prop_oneof![Just(vec!["*".to_owned()]), prop::collection::vec(item, 1..4)]
}

fn verbs() -> impl Strategy<Value = Vec<String>> {
    let verb = prop::sample::select(vec!["get", "list", "watch", "proxy", "deletecollection"]);
    let verbs = prop::collection::vec(verb.prop_map(str::to_owned), 1..4);
    prop_oneof![Just(vec!["*".to_owned()]), verbs]
}

fn any_subject() -> impl Strategy<Value = Subject> {
    prop_oneof![
        ".{1,8}".prop_map(Subject::User),
        ".{1,8}".prop_map(Subject::Group),
        ("[a-z]{1,4}", "[a-z.*]{1}|[a-z]{2,6}").prop_filter_map(
            "a valid name",
            |(namespace, name)| {
                (name != ".").then_some(Subject::ServiceAccount { namespace, name })
            }
        ),
    ]
}

fn any_rules() -> impl Strategy<Value = PolicyRulesWithSubjects> {
    let resource_rule = (verbs(), texts("[a-z.]{0,6}"), texts("[a-z/]{1,6}"), texts("[a-z]{1,6}"));
    let resource_rule =
        (resource_rule, any::<bool>()).prop_map(|((verbs, groups, resources, ns), scope)| {
            ResourceRule {
                verbs,
                api_groups: groups,
                resources,
                namespaces: ns,
                matches_cluster_scope: scope,
            }
        });
    let path_rule = (verbs(), texts("(/[a-z]{1,3}){1,3}(/\\*)?"))
        .prop_map(|(verbs, urls)| NonResourceRule { verbs, non_resource_urls: urls });
    (
        prop::collection::vec(any_subject(), 1..4),
        prop::collection::vec(resource_rule, 1..3),
        prop::collection::vec(path_rule, 0..3),
    )
        .prop_map(|(subjects, resource_rules, non_resource_rules)| PolicyRulesWithSubjects {
            subjects,
            resource_rules,
            non_resource_rules,
        })
}

fn any_schema() -> impl Strategy<Value = FlowSchema> {
    let distinguisher = prop_oneof![
        Just(None),
        Just(Some(FlowDistinguisher::ByUser)),
        Just(Some(FlowDistinguisher::ByNamespace)),
    ];
    let rules = prop::collection::vec(any_rules(), 0..3);
    ("[a-z]{1,8}", 2..=10_000_i32, "[a-z]{1,8}", distinguisher, rules).prop_map(
        |(name, matching_precedence, priority_level, distinguisher, rules)| FlowSchema {
            name: format!("x{name}"),
            uid: String::new(),
            matching_precedence,
            priority_level_name: priority_level,
            flow_distinguisher: distinguisher,
            rules,
        },
    )
}

fn any_level() -> impl Strategy<Value = BootstrapPriorityLevel> {
    let queue = (8..=128_u32, 1..=6_u32, 1..=1000_u32).prop_map(|(queues, hand_size, length)| {
        LimitResponse::Queue(QueuingOptions {
            n_queues: queues,
            hand_size,
            queue_length_limit: length,
        })
    });
    let response = prop_oneof![Just(LimitResponse::Reject), queue];
    ("[a-z]{1,8}", 0..=1_000_000_u32, response, 0..=100_u32).prop_map(
        |(name, nominal_concurrency_shares, limit_response, lendable_percent)| {
            let kind = PriorityLevelKind::Limited { nominal_concurrency_shares, limit_response };
            let level = PriorityLevel { name: format!("x{name}"), uid: String::new(), kind };
            BootstrapPriorityLevel { priority_level: level, lendable_percent }
        },
    )
}

/// Any JSON whose members have the names of the two kinds.
fn any_json() -> impl Strategy<Value = Value> {
    let names = vec![
        "spec",
        "status",
        "metadata",
        "name",
        "type",
        "kind",
        "rules",
        "limited",
        "exempt",
        "limitResponse",
        "queuing",
        "queues",
        "handSize",
        "queueLengthLimit",
        "subjects",
        "user",
        "group",
        "serviceAccount",
        "resourceRules",
        "nonResourceRules",
        "verbs",
        "apiGroups",
        "resources",
        "namespaces",
        "nonResourceURLs",
        "matchingPrecedence",
        "conditions",
        "distinguisherMethod",
        "priorityLevelConfiguration",
        "annotations",
    ];
    let words = vec!["", "*", "exempt", "catch-all", "Limited", "Exempt", "Queue", "User", "/a*"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-2..100_i64).prop_map(Value::from),
        prop::sample::select(words).prop_map(Value::from),
        ".{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, move |inner| {
        let member = prop::sample::select(names.clone());
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((member, inner), 0..8).prop_map(|members| Value::Object(
                members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn schemas_survive_encoding(schema in any_schema()) {
        let object = encode_flow_schema(&schema).unwrap();
        prop_assert_eq!(faults(Kind::FlowSchema, &object), Vec::<String>::new());
        prop_assert_eq!(decode_flow_schema(&object).unwrap(), Arc::new(schema));
    }

    #[test]
    fn levels_survive_encoding(level in any_level()) {
        let object = encode_priority_level(&level).unwrap();
        prop_assert_eq!(
            faults(Kind::PriorityLevelConfiguration, &object),
            Vec::<String>::new()
        );
        prop_assert_eq!(decode_priority_level(&object).unwrap(), level.priority_level);
    }

    /// Setting defaults twice changes nothing more, and an object that validation accepts can be decoded.
    #[test]
    fn no_json_breaks_the_decoder(value in any_json()) {
        let Value::Object(mut object) = value else { return Ok(()) };
        for kind in [Kind::FlowSchema, Kind::PriorityLevelConfiguration] {
            object.insert("apiVersion".to_owned(), API_VERSION.into());
            object.insert("kind".to_owned(), kind.name().into());
            set_flow_control_defaults(kind, &mut object);
            let mut again = object.clone();
            set_flow_control_defaults(kind, &mut again);
            prop_assert_eq!(&again, &object);
            let is_valid = faults(kind, &object).is_empty();
            let is_decoded = match kind {
                Kind::FlowSchema => decode_flow_schema(&object).is_ok(),
                Kind::PriorityLevelConfiguration => decode_priority_level(&object).is_ok(),
            };
            prop_assert!(is_decoded || !is_valid);
        }
    }
}

/// An annotation, a generation and whether the spec was changed, and what the server then writes: whether the
/// spec comes back, and the annotation.
#[test]
fn default_objects_are_updated_as_their_annotation_says() {
    use MandatoryOrSuggested::{Mandatory, Suggested};
    let default = encode_priority_level(&suggested_priority_levels()[0]).unwrap();
    #[rustfmt::skip]
    let cases = [
        (Suggested, Some("true"), 1, false, None),
        (Suggested, Some("true"), 2, true, Some((true, "true"))),
        (Suggested, Some("T"), 2, true, Some((true, "T"))),
        (Suggested, Some("false"), 2, true, None),
        (Suggested, Some("0"), 1, true, None),
        (Suggested, None, 1, false, Some((false, "true"))),
        (Suggested, None, 1, true, Some((true, "true"))),
        (Suggested, None, 2, false, Some((false, "false"))),
        (Suggested, None, 2, true, Some((false, "false"))),
        (Suggested, Some("maybe"), 2, true, Some((false, "false"))),
        (Mandatory, Some("true"), 1, false, None),
        (Mandatory, Some("false"), 2, true, Some((true, "true"))),
        (Mandatory, Some("false"), 2, false, Some((false, "true"))),
        (Mandatory, None, 2, true, Some((true, "true"))),
    ];
    for (class, annotation, generation, is_changed, want) in cases {
        let mut stored = Value::Object(default.clone());
        stored["metadata"]["generation"] = generation.into();
        if let Some(annotation) = annotation {
            stored["metadata"]["annotations"] = json!({AUTO_UPDATE_ANNOTATION: annotation});
        }
        if is_changed {
            stored["spec"]["limited"]["nominalConcurrencyShares"] = 7.into();
        }
        let Value::Object(stored) = stored else { panic!("not an object") };
        let kind = Kind::PriorityLevelConfiguration;
        let updated = update_default_flow_control_object(kind, class, &default, &stored);
        let case = (class, annotation, generation, is_changed);
        let Some((restores, annotation)) = want else {
            assert_eq!(updated, None, "{case:?}");
            continue;
        };
        let updated = updated.unwrap_or_else(|| panic!("{case:?}"));
        assert_eq!(updated["spec"] == default["spec"], restores || !is_changed, "{case:?}");
        let written = &updated["metadata"]["annotations"][AUTO_UPDATE_ANNOTATION];
        assert_eq!(written, annotation, "{case:?}");
        assert_eq!(
            update_default_flow_control_object(kind, class, &default, &updated),
            None,
            "{case:?}"
        );
    }
}

#[test]
fn administrators_choose_the_shares_of_the_exempt_level() {
    let kind = Kind::PriorityLevelConfiguration;
    let mut default = encode_priority_level(&mandatory_priority_levels()[0]).unwrap();
    set_auto_update_annotation(&mut default, true);
    let mut stored = Value::Object(default.clone());
    stored["spec"]["exempt"]["nominalConcurrencyShares"] = 9.into();
    let update = |stored: &Value| {
        let stored = stored.as_object().unwrap();
        update_default_flow_control_object(kind, MandatoryOrSuggested::Mandatory, &default, stored)
    };
    assert_eq!(update(&stored), None);
    stored["spec"]["exempt"] = Value::Null;
    assert_eq!(update(&stored), Some(default.clone()));
}
