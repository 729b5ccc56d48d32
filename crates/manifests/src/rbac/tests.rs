//! Each validation rule of the four kinds, with an accepted and a refused object.

use authz::Namespace;
use authz_rbac::{
    BOOTSTRAP_POLICY_JSON, BootstrapPolicy, ReconcileExtrasPolicy, Snapshot,
    reconcile_bootstrap_policy, resource_access_reviewer_role,
};
use serde_json::{Value, json};

use super::*;

fn cluster_role(body: Value) -> Value {
    with(json!({"apiVersion": API_VERSION, "kind": "ClusterRole", "metadata": {"name": "r"}}), body)
}

fn role(body: Value) -> Value {
    let metadata = json!({"name": "r", "namespace": "ns1"});
    with(json!({"apiVersion": API_VERSION, "kind": "Role", "metadata": metadata}), body)
}

fn cluster_binding(body: Value) -> Value {
    let base = json!({
        "apiVersion": API_VERSION, "kind": "ClusterRoleBinding", "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
    });
    with(base, body)
}

fn binding(body: Value) -> Value {
    let base = json!({
        "kind": "RoleBinding", "metadata": {"name": "b", "namespace": "ns1"},
    });
    with(with(cluster_binding(json!({})), base), body)
}

fn with(mut base: Value, body: Value) -> Value {
    for (key, value) in body.as_object().unwrap() {
        base[key] = value.clone();
    }
    base
}

#[track_caller]
fn check(value: Value, want: &[&str]) {
    let faults: Vec<String> =
        match decode_unvalidated_rbac_object(&value).unwrap().into_validated_object() {
            Ok(_) => Vec::new(),
            Err(faults) => faults.iter().map(ToString::to_string).collect(),
        };
    assert_eq!(faults, want, "{value}");
}

#[test]
fn names_are_path_segments() {
    check(cluster_role(json!({"metadata": {"name": "system::a:B"}})), &[]);
    check(
        cluster_role(json!({"metadata": {}})),
        &["metadata.name: Required value: name or generateName is required"],
    );
    check(
        cluster_role(json!({"metadata": {"name": "a/b"}})),
        &["metadata.name: Invalid value: \"a/b\": may not contain '/'"],
    );
}

#[test]
fn owner_references_and_finalizers_are_validated() {
    let with = |metadata: Value| {
        let mut role = cluster_role(json!({}));
        role["metadata"] = metadata;
        role["metadata"]["name"] = "r".into();
        role
    };
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"});
    check(with(json!({"ownerReferences": [owner], "finalizers": ["a/b", "orphan"]})), &[]);
    check(
        with(json!({"ownerReferences": [owner, {"kind": "Pod", "controller": true}]})),
        &[
            "metadata.ownerReferences[1].apiVersion: Required value: must not be empty",
            "metadata.ownerReferences[1].name: Required value: must not be empty",
            "metadata.ownerReferences[1].uid: Required value: must not be empty",
        ],
    );
    check(
        with(json!({"finalizers": ["orphan", "foregroundDeletion"]})),
        &["metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer \
           orphan and foregroundDeletion cannot be both set"],
    );
    let faults = decode_unvalidated_rbac_object(&with(json!({"finalizers": ["a/"]})))
        .unwrap()
        .into_validated_object()
        .unwrap_err();
    let paths: Vec<_> = faults.iter().map(|fault| fault.path.as_str()).collect();
    assert!(!paths.is_empty() && paths.iter().all(|path| *path == "metadata.finalizers"));
}

#[test]
fn namespaces_belong_to_namespaced_kinds() {
    check(
        cluster_role(json!({"metadata": {"name": "r", "namespace": "n"}})),
        &["metadata.namespace: Forbidden: not allowed on this type"],
    );
    check(role(json!({"metadata": {"name": "r"}})), &["metadata.namespace: Required value"]);
    check(role(json!({})), &[]);
}

#[test]
fn rules_require_verbs_and_a_target() {
    let rules = |rule: Value| json!({ "rules": [rule] });
    check(
        role(rules(json!({}))),
        &[
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
            "rules[0].resources: Required value: resource rules must supply at least one resource",
            "rules[0].verbs: Required value",
        ],
    );
    let mixed = json!({
        "verbs": ["get"], "nonResourceURLs": ["/a", "/b"], "resourceNames": ["x"],
    });
    let both = "rules[0].nonResourceURLs: Invalid value: [\"/a\",\"/b\"]: rules cannot apply to \
                both regular resources and non-resource URLs";
    check(cluster_role(rules(mixed.clone())), &[both]);
    check(
        role(rules(mixed)),
        &[
            "rules[0].nonResourceURLs: Invalid value: [\"/a\",\"/b\"]: namespaced rules cannot \
             apply to non-resource URLs",
            both,
        ],
    );
    let sound = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["whatever/*"]});
    check(role(rules(sound)), &[]);
    check(cluster_role(rules(json!({"verbs": ["get"], "nonResourceURLs": ["*"]}))), &[]);
    check(role(json!({"rules": null})), &[]);
}

#[test]
fn aggregation_requires_valid_selectors() {
    let aggregated = |selectors: Value| {
        cluster_role(json!({"aggregationRule": {"clusterRoleSelectors": selectors}}))
    };
    check(
        aggregated(json!([])),
        &["aggregationRule.clusterRoleSelectors: Required value: at least one \
           clusterRoleSelector required if aggregationRule is non-nil"],
    );
    check(aggregated(json!([{"matchLabels": {"a/b": "true"}}])), &[]);
    let whole = "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label \
                 selector.";
    for (expression, first) in [
        (
            json!({"key": "a", "operator": "In"}),
            "values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            json!({"key": "a", "operator": "Exists", "values": ["x"]}),
            "values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
        (
            json!({"key": "a", "operator": "Gt"}),
            "operator: Invalid value: \"Gt\": not a valid selector operator",
        ),
    ] {
        let at = "aggregationRule.clusterRoleSelectors[0].matchExpressions[0]";
        check(
            aggregated(json!([{"matchExpressions": [expression]}])),
            &[&format!("{at}.{first}"), whole],
        );
    }
}

#[test]
fn a_role_is_referred_to_by_group_kind_and_name() {
    let refer = |role_ref: Value| json!({ "roleRef": role_ref });
    check(
        cluster_binding(refer(json!({"apiGroup": "x", "kind": "Role", "name": ""}))),
        &[
            "roleRef.apiGroup: Unsupported value: \"x\": supported values: \
             \"rbac.authorization.k8s.io\"",
            "roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\"",
            "roleRef.name: Required value",
        ],
    );
    check(binding(refer(json!({"kind": "Role", "name": "a:b"}))), &[]);
    check(
        binding(refer(json!({"kind": "Role", "name": ".."}))),
        &["roleRef.name: Invalid value: \"..\": may not be '..'"],
    );
}

#[test]
fn subjects_are_users_groups_and_service_accounts() {
    let to = |subject: Value| json!({ "subjects": [subject] });
    check(cluster_binding(to(json!({"kind": "User", "name": "valid@username"}))), &[]);
    check(
        cluster_binding(to(json!({"name": "x"}))),
        &["subjects[0].kind: Unsupported value: \"\": supported values: \
           \"ServiceAccount\", \"User\", \"Group\""],
    );
    check(
        cluster_binding(to(json!({"kind": "ServiceAccount", "name": "x"}))),
        &["subjects[0].namespace: Required value"],
    );
    check(binding(to(json!({"kind": "ServiceAccount", "name": "x"}))), &[]);
    check(
        binding(to(json!({"kind": "ServiceAccount", "name": "", "apiGroup": "g"}))),
        &[
            "subjects[0].apiGroup: Unsupported value: \"g\": supported values: \"\"",
            "subjects[0].name: Required value",
        ],
    );
    let faults = decode_unvalidated_rbac_object(&binding(to(
        json!({"kind": "ServiceAccount", "name": "subject:bad"}),
    )));
    let faults = faults.unwrap().into_validated_object().unwrap_err();
    assert_eq!(faults.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(), ["subjects[0].name"]);
    check(
        binding(to(json!({"kind": "Group", "name": "x", "apiGroup": "g"}))),
        &["subjects[0].apiGroup: Unsupported value: \"g\": supported values: \
           \"rbac.authorization.k8s.io\""],
    );
}

#[test]
fn the_role_of_a_binding_can_not_change() {
    let old = decode_unvalidated_rbac_object(&binding(json!({})))
        .unwrap()
        .into_validated_object()
        .unwrap();
    let same = decode_unvalidated_rbac_object(&binding(
        json!({"subjects": [{"kind": "User", "name": "u"}]}),
    ))
    .unwrap();
    assert!(validate_rbac_object_update(same, &old).is_ok());
    let other = binding(json!({"roleRef": {"kind": "Role", "name": "x"}}));
    let faults = validate_rbac_object_update(decode_unvalidated_rbac_object(&other).unwrap(), &old)
        .unwrap_err();
    assert_eq!(
        faults.to_string(),
        "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\
         \"Name\":\"x\"}: field is immutable"
    );
}

#[test]
fn stored_invalid_values_may_stay() {
    let with_value = |value: &str| {
        let expression = json!({"key": "a", "operator": "In", "values": [value]});
        let selectors = json!([{"matchExpressions": [expression]}]);
        cluster_role(json!({"aggregationRule": {"clusterRoleSelectors": selectors}}))
    };
    let bad = || decode_unvalidated_rbac_object(&with_value("no good")).unwrap();
    let good = decode_unvalidated_rbac_object(&with_value("good"))
        .unwrap()
        .into_validated_object()
        .unwrap();
    assert!(bad().into_validated_object().is_err());
    assert!(validate_rbac_object_update(bad(), &good).is_err());
    assert!(validate_rbac_object_update(bad(), &bad().into_object_unvalidated().unwrap()).is_ok());
}

/// As in Go, a null item of a list is an empty item.
#[test]
fn null_is_an_empty_item() {
    check(
        cluster_role(json!({"rules": [null, {"verbs": [null], "nonResourceURLs": ["/"]}]})),
        &[
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
            "rules[0].resources: Required value: resource rules must supply at least one resource",
            "rules[0].verbs: Required value",
        ],
    );
    check(
        cluster_binding(json!({"subjects": [null]})),
        &[
            "subjects[0].kind: Unsupported value: \"\": supported values: \
             \"ServiceAccount\", \"User\", \"Group\"",
            "subjects[0].name: Required value",
        ],
    );
    check(cluster_role(json!({"metadata": {"name": "r", "labels": {"a": null}}})), &[]);
}

#[test]
fn other_kinds_are_refused() {
    for value in [
        json!(null),
        json!([]),
        json!({"kind": "Role"}),
        json!({"apiVersion": "v1", "kind": "Role"}),
        json!({"apiVersion": API_VERSION, "kind": "RoleList"}),
        cluster_role(json!({"rules": {}})),
        cluster_role(json!({"rules": [{"verbs": "get"}]})),
        cluster_binding(json!({"subjects": [7]})),
    ] {
        assert!(decode_unvalidated_rbac_object(&value).is_err(), "{value}");
    }
}

#[test]
fn an_unchecked_role_without_a_namespace_is_not_a_cluster_role() {
    assert!(
        decode_unvalidated_rbac_object(&role(json!({"metadata": {"name": "r"}})))
            .unwrap()
            .into_object_unvalidated()
            .is_err()
    );
    let stray = cluster_role(json!({"metadata": {"name": "r", "namespace": "n"}}));
    let Ok(RbacObject::Role(stray)) =
        decode_unvalidated_rbac_object(&stray).unwrap().into_object_unvalidated()
    else {
        panic!("refused");
    };
    assert_eq!(stray.metadata.namespace, "");
}

/// The lists of the default policy as JSON.
fn data() -> Value {
    serde_json::from_str(BOOTSTRAP_POLICY_JSON).unwrap()
}

#[test]
fn the_default_objects_are_valid_and_survive_a_round_trip() {
    let data = data();
    let mut n_objects = 0;
    for list in ["clusterRoles", "clusterRoleBindings", "roles", "roleBindings"] {
        for value in data[list].as_array().unwrap() {
            let object =
                decode_unvalidated_rbac_object(value).unwrap().into_validated_object().unwrap();
            let mut want = value.clone();
            if want["rules"].is_null() && matches!(object, RbacObject::Role(_)) {
                want["rules"] = json!([]);
            }
            assert_eq!(encode_rbac_object(&object).unwrap(), want);
            n_objects += 1;
        }
    }
    assert_eq!(n_objects, 73 + 54 + 7 + 7);
    let policy = bootstrap_policy().unwrap();
    assert_eq!(policy.roles.len() + policy.bindings.len(), n_objects + 1);
    let added = encode_rbac_object(&RbacObject::Role(resource_access_reviewer_role())).unwrap();
    assert!(decode_unvalidated_rbac_object(&added).unwrap().into_validated_object().is_ok());
}

#[test]
fn aggregated_default_roles_match_kubernetes() {
    let mut policy = bootstrap_policy().unwrap();
    policy.roles.retain(|role| *role != resource_access_reviewer_role());
    let mut snapshot = Snapshot::default();
    let changes = reconcile_bootstrap_policy(&mut snapshot, &policy, ReconcileExtrasPolicy::Keep);
    assert!(changes.len() >= policy.roles.len() + policy.bindings.len());
    for value in data()["aggregatedClusterRoles"].as_array().unwrap() {
        let name = value["metadata"]["name"].as_str().unwrap();
        let role = snapshot.role(Namespace::CLUSTER_SCOPE, name).unwrap();
        assert_eq!(
            encode_rbac_object(&RbacObject::Role(role.as_ref().clone())).unwrap(),
            *value,
            "{name}"
        );
    }
    assert!(
        reconcile_bootstrap_policy(&mut snapshot, &policy, ReconcileExtrasPolicy::Keep).is_empty()
    );
    assert!(
        reconcile_bootstrap_policy(
            &mut snapshot,
            &BootstrapPolicy::default(),
            ReconcileExtrasPolicy::Keep
        )
        .is_empty()
    );
}

#[test]
fn default_rules_with_list_also_have_watch() {
    for role in bootstrap_policy().unwrap().roles {
        let lists_only = |rule: &authz_rbac::PolicyRule| {
            let has = |verb: &str| rule.verbs.iter().any(|it| it == verb);
            has("list") && !has("watch")
        };
        let is_exempt = role.name() == "system:controller:storage-version-migrator-controller";
        assert!(is_exempt || !role.rules.iter().any(lists_only), "{}", role.name());
    }
}
