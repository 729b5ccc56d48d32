//! The hooks that are called for a request.

use std::sync::Arc;

use admission::ConfigurationKind::{self, ExternalHook, Initializer, Mutating, Validating};
use admission::{
    Attributes, CallDecision, ConditionVariables, EquivalentResource, GroupVersionKind,
    GroupVersionResource, Hook, Operation, SkipCause, Snapshot,
};
use api_object::Tree;
use serde_json::{Value, json};

use crate::documents::{snapshot, tree, with};

const DEPLOYMENTS: [(&str, &str); 3] =
    [("extensions", "v1beta1"), ("apps", "v1beta1"), ("apps", "v1")];

/// A request for a resource. The test sets the other attributes.
pub(crate) fn request<'a>(
    operation: Operation,
    resource: (&'a str, &'a str, &'a str),
    kind: &'a str,
    subresource: &'a str,
    namespace: &'a str,
) -> Attributes<'a> {
    let (group, version, resource) = resource;
    Attributes {
        operation,
        kind: GroupVersionKind { group, version, kind },
        resource: GroupVersionResource { group, version, resource },
        subresource,
        name: "x",
        namespace,
        object: None,
        old_object: None,
        options: None,
        is_dry_run: false,
        user: None,
        equivalent_resources: &[],
    }
}

/// The creation of a pod.
pub(crate) fn pod() -> Attributes<'static> {
    request(Operation::Create, ("", "v1", "pods"), "Pod", "", "team-a")
}

fn connect(
    resource: (&'static str, &'static str, &'static str),
    sub: &'static str,
) -> Attributes<'static> {
    request(Operation::Connect, resource, "X", sub, "team-a")
}

fn namespace_object(operation: Operation) -> Attributes<'static> {
    request(operation, ("", "v1", "namespaces"), "Namespace", "", "x")
}

fn rule(changes: Value) -> Value {
    let rule = json!({
        "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"],
    });
    with(rule, changes)
}

fn webhook(changes: Value) -> Value {
    with(json!({"name": "a.example.com", "rules": [rule(json!({}))]}), changes)
}

fn hook_of(changes: Value) -> Snapshot {
    snapshot(&[(Validating, "a", json!([webhook(changes)]))])
}

/// Reports whether the rules of one webhook match the request.
fn is_called(kind: ConfigurationKind, changes: Value, attributes: &Attributes<'_>) -> bool {
    let snapshot = snapshot(&[(kind, "a", json!([webhook(json!({"rules": [rule(changes)]}))]))]);
    !snapshot.validating_hooks().match_hooks(attributes).is_empty()
}

/// Decides whether the only hook of a snapshot is called. `namespace` is the stored namespace.
fn call_decision(
    snapshot: &Snapshot,
    attributes: &Attributes<'_>,
    namespace: Option<&Tree>,
) -> Option<String> {
    let matches = snapshot.validating_hooks().match_hooks(attributes);
    let found = matches.first()?;
    let hook: &Arc<Hook> = found.hook;
    let mut outcome = hook.evaluate_selectors(attributes, &found.matched_resource, namespace);
    if outcome == CallDecision::Call {
        let input = ConditionVariables::new(
            attributes,
            attributes,
            found.matched_resource.kind.unwrap(),
            found.matched_resource.resource,
        );
        outcome = hook.evaluate_conditions(attributes, &input, None).unwrap();
    }
    Some(match outcome {
        CallDecision::Call => "called".to_owned(),
        CallDecision::Skip(SkipCause::NamespaceSelector) => "namespace".to_owned(),
        CallDecision::Skip(SkipCause::ObjectSelector) => "object".to_owned(),
        CallDecision::Skip(SkipCause::Condition { name }) => format!("condition {name}"),
        CallDecision::Skip(SkipCause::ConditionError(_)) => "condition error".to_owned(),
        CallDecision::Refuse(error) => format!("refused: {error}"),
    })
}

fn outcome(changes: Value, attributes: &Attributes<'_>, namespace: Option<&Tree>) -> String {
    call_decision(&hook_of(changes), attributes, namespace).unwrap_or_else(|| "no rule".to_owned())
}

#[test]
fn rules_match_by_each_part() {
    assert!(hook_of(json!({"rules": []})).validating_hooks().match_hooks(&pod()).is_empty());
    for operation in Operation::ALL {
        let attributes = request(operation, ("", "v1", "pods"), "Pod", "", "team-a");
        assert!(is_called(Validating, json!({}), &attributes));
        let is_middle = matches!(operation, Operation::Update | Operation::Delete);
        let two = json!({"operations": ["UPDATE", "DELETE"]});
        assert_eq!(is_called(Validating, two, &attributes), is_middle);
    }
    let pods = ("", "v1", "pods");
    let exec = connect(pods, "exec");
    let resources = |resources: Value| json!({"resources": resources});
    assert!(!is_called(Validating, resources(json!(["*"])), &exec));
    assert!(is_called(Validating, resources(json!(["pods/*"])), &pod()));
    let v1alpha1 = |names: Value| json!({"operations": null, "verbs": ["*"], "resources": names});
    assert!(!is_called(ExternalHook, v1alpha1(json!(["pods/*"])), &pod()));
    assert!(is_called(ExternalHook, v1alpha1(json!(["*/*"])), &pod()));
    assert!(is_called(Validating, resources(json!(["pods/*"])), &exec));
    assert!(is_called(ExternalHook, v1alpha1(json!(["pods/*"])), &exec));
    for (attributes, want) in [
        (exec, true),
        (connect(("", "v1", "nodes"), "proxy"), true),
        (connect(("apps", "v1", "deployments"), "scale"), false),
        (pod(), false),
    ] {
        let two = resources(json!(["*/proxy", "*/exec"]));
        assert_eq!(is_called(Validating, two, &attributes), want);
    }
    let other = connect(("", "v1", "r2"), "proxy");
    assert!(!is_called(Validating, resources(json!(["r/*", "r2"])), &other));
    let deployment = request(Operation::Create, ("apps", "v1", "deployments"), "D", "", "team-a");
    assert!(!is_called(Validating, json!({"apiGroups": [""]}), &deployment));
    let finalize =
        request(Operation::Update, ("", "v1", "namespaces"), "Namespace", "finalize", "x");
    let node = request(Operation::Create, ("", "v1", "nodes"), "Node", "", "");
    for (scope, attributes, want) in [
        ("Cluster", pod(), false),
        ("Cluster", namespace_object(Operation::Create), true),
        ("Cluster", finalize, true),
        ("Namespaced", namespace_object(Operation::Create), false),
        ("Namespaced", node, false),
        ("Namespaced", pod(), true),
        ("Other", pod(), false),
    ] {
        assert_eq!(is_called(Validating, json!({"scope": scope}), &attributes), want, "{scope}");
    }
}

/// The Deployments of three API groups and versions, with the kind of a subresource of each.
fn equivalents(
    kind: &'static str,
    kind_group: Option<(&'static str, &'static str)>,
) -> Vec<EquivalentResource<'static>> {
    let of = |(group, version)| EquivalentResource {
        resource: GroupVersionResource { group, version, resource: "deployments" },
        kind: Some({
            let (group, version) = kind_group.unwrap_or((group, version));
            GroupVersionKind { group, version, kind }
        }),
    };
    DEPLOYMENTS.into_iter().map(of).collect()
}

#[test]
fn rules_match_equivalent_resources() {
    let others = equivalents("Deployment", None);
    let deployment = Attributes {
        equivalent_resources: &others,
        ..request(Operation::Create, ("apps", "v1", "deployments"), "Deployment", "", "team-a")
    };
    let of = |group: &str, version: &str| {
        rule(json!({"apiGroups": [group], "apiVersions": [version], "resources": ["deployments"]}))
    };
    let exact = json!({"matchPolicy": "Exact", "rules": [of("apps", "v1beta1")]});
    assert_eq!(outcome(exact, &deployment, None), "no rule");
    for (rules, want) in [
        ([of("extensions", "v1beta1"), of("apps", "v1beta1")], ("extensions", "v1beta1")),
        ([of("apps", "v1beta1"), of("extensions", "v1beta1")], ("apps", "v1beta1")),
        ([of("extensions", "v1beta1"), of("apps", "v1")], ("apps", "v1")),
    ] {
        let snapshot = hook_of(json!({"rules": rules}));
        let matches = snapshot.validating_hooks().match_hooks(&deployment);
        let identity = matches[0].matched_resource;
        assert_eq!((identity.resource.group, identity.resource.version), want);
        let kind = identity.kind.unwrap();
        assert_eq!((kind.group, kind.version, kind.kind), (want.0, want.1, "Deployment"));
    }
    let scales = equivalents("Scale", Some(("extensions", "v1beta1")));
    let scale = Attributes {
        equivalent_resources: &scales,
        ..request(Operation::Update, ("apps", "v1", "deployments"), "Scale", "scale", "team-a")
    };
    let one = json!({"rules": [rule(json!({"apiGroups": ["extensions"], "resources": ["deployments/scale"]}))]});
    let snapshot = hook_of(one.clone());
    let matches = snapshot.validating_hooks().match_hooks(&scale);
    assert_eq!(matches[0].matched_resource.kind.unwrap().kind, "Scale");
    let unknown: Vec<_> =
        scales.iter().map(|it| EquivalentResource { kind: None, ..*it }).collect();
    let scale = Attributes { equivalent_resources: &unknown, ..scale };
    assert_eq!(
        outcome(one, &scale, None),
        "refused: unable to convert to extensions/v1beta1, \
         Resource=deployments: unknown kind"
    );
}

fn labelled(labels: Value) -> Tree {
    tree(json!({"metadata": {"labels": labels}}))
}

#[test]
fn namespace_selectors_are_evaluated() {
    let selects = |value: &str| json!({"namespaceSelector": {"matchLabels": {"env": value}}});
    let (prod, test) = (labelled(json!({"env": "prod"})), labelled(json!({"env": "test"})));
    assert_eq!(outcome(selects("prod"), &pod(), Some(&test)), "namespace");
    assert_eq!(outcome(selects("prod"), &pod(), Some(&prod)), "called");
    let node = request(Operation::Create, ("", "v1", "nodes"), "Node", "", "");
    assert_eq!(outcome(selects("prod"), &node, None), "called");
    let creation = Attributes { object: Some(&prod), ..namespace_object(Operation::Create) };
    assert_eq!(outcome(selects("prod"), &creation, None), "called");
    assert_eq!(outcome(selects("test"), &creation, None), "namespace");
    let deletion = Attributes { old_object: Some(&test), ..namespace_object(Operation::Delete) };
    assert_eq!(outcome(selects("prod"), &deletion, Some(&prod)), "called");
    let missing = "refused: namespaces \"team-a\" not found";
    assert_eq!(outcome(selects("prod"), &pod(), None), missing);
    let elsewhere = with(selects("prod"), json!({"rules": [rule(json!({"apiGroups": ["apps"]}))]}));
    assert_eq!(outcome(elsewhere, &pod(), None), "no rule");
    let not_this = with(selects("prod"), json!({"objectSelector": {"matchLabels": {"a": "b"}}}));
    assert_eq!(outcome(not_this.clone(), &pod(), None), "object", "a clean no counts first");
    let needs = |changes: Value, attributes: &Attributes<'_>| {
        hook_of(changes).validating_hooks().hooks()[0].needs_stored_namespace(attributes)
    };
    assert!(needs(selects("prod"), &pod()) && needs(selects("prod"), &deletion));
    assert!(!needs(json!({}), &pod()) && !needs(not_this, &pod()));
    assert!(!needs(selects("prod"), &creation) && !needs(selects("prod"), &node));
}

/// L25: an error while matching does not skip a hook.
#[test]
fn stored_selectors_that_mean_nothing_fail_the_requests_they_are_about() {
    let odd = json!({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}});
    assert_eq!(
        outcome(odd.clone(), &pod(), None),
        "refused: \"Near\" is not a valid label selector operator"
    );
    let elsewhere = with(odd, json!({"rules": [rule(json!({"apiGroups": ["apps"]}))]}));
    assert_eq!(outcome(elsewhere, &pod(), None), "no rule");
}

#[test]
fn object_selectors_are_evaluated() {
    let selects = json!({"objectSelector": {"matchLabels": {"x": "y"}}});
    let (with_label, without) = (labelled(json!({"x": "y"})), labelled(json!({})));
    let update = Attributes {
        object: Some(&without),
        old_object: Some(&with_label),
        ..request(Operation::Update, ("", "v1", "pods"), "Pod", "", "team-a")
    };
    assert_eq!(outcome(selects.clone(), &update, None), "called");
    let deletion = Attributes { object: None, operation: Operation::Delete, ..update };
    assert_eq!(outcome(selects.clone(), &deletion, None), "called");
    let options = tree(json!({"command": ["sh"]}));
    let exec = Attributes { object: Some(&options), ..connect(("", "v1", "pods"), "exec") };
    assert_eq!(outcome(selects.clone(), &exec, None), "object");
    assert_eq!(outcome(json!({}), &exec, None), "called");
    let negative =
        json!({"objectSelector": {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}});
    assert_eq!(outcome(negative, &exec, None), "object", "options have no labels to lack");
    let patched = Attributes { object: Some(&without), ..pod() };
    assert_eq!(outcome(selects, &patched, None), "object");
}

fn conditions(policy: &str, expressions: &[&str]) -> Value {
    let conditions: Vec<Value> = expressions
        .iter()
        .enumerate()
        .map(|(idx, expression)| json!({"name": format!("c{idx}"), "expression": expression}))
        .collect();
    json!({"failurePolicy": policy, "matchConditions": conditions})
}

#[test]
fn match_conditions_are_evaluated_last() {
    let object = tree(json!({"metadata": {"namespace": "team-a", "labels": {"n": 1}}}));
    let creation = Attributes { object: Some(&object), ..pod() };
    let update = Attributes { operation: Operation::Update, old_object: Some(&object), ..creation };
    let error = "object.absent == 1";
    for (policy, expressions, want) in [
        ("Fail", vec!["true", "true"], "called"),
        ("Fail", vec![error, "true", "false"], "condition c2"),
        (
            "Fail",
            vec!["true", error],
            "refused: expression 'object.absent == 1' resulted in error: no such \
             key: absent",
        ),
        ("Ignore", vec!["true", error], "condition error"),
        ("Fail", vec!["object.metadata.namespace != 'kube-system'"], "called"),
        ("Fail", vec!["oldObject == null"], "called"),
        ("Fail", vec!["request.operation == 'CREATE' && !request.dryRun"], "called"),
        ("Fail", vec!["request.kind.kind == 'Pod' && request.name == 'x'"], "called"),
        ("Fail", vec!["has(request.subResource) || has(request.options)"], "condition c0"),
        ("Fail", vec!["object.metadata.labels.n == 1"], "called"),
        ("Fail", vec!["namespaceObject == null"], "called"),
    ] {
        assert_eq!(outcome(conditions(policy, &expressions), &creation, None), want);
    }
    let old = conditions("Fail", &["oldObject == null"]);
    assert_eq!(outcome(old, &update, None), "condition c0");
    let system = tree(json!({"metadata": {"namespace": "kube-system"}}));
    let system = Attributes { object: Some(&system), ..pod() };
    let outside = conditions("Fail", &["object.metadata.namespace != 'kube-system'"]);
    assert_eq!(outcome(outside, &system, None), "condition c0");
}

/// A17: if all conditions together exceed the budget, the evaluation fails even if one of them is false.
#[test]
fn conditions_that_cost_too_much_together_fail() {
    let many: Vec<i64> = (0..700).collect();
    let object = tree(json!({"list": many}));
    let creation = Attributes { object: Some(&object), ..pod() };
    let costly = "object.list.all(a, object.list.all(b, a + b >= 0))";
    let expressions = ["false", costly, costly, costly, costly];
    let outcome =
        |policy: &str, n: usize| outcome(conditions(policy, &expressions[..n]), &creation, None);
    assert_eq!(outcome("Fail", 1), "condition c0");
    assert_eq!(
        outcome("Fail", 5),
        "refused: validation failed due to running out of cost budget, no \
         further validation rules will be run"
    );
    assert_eq!(outcome("Ignore", 5), "condition error");
}

/// Without an authorizer, the failure policy decides.
#[test]
fn checks_without_an_authorizer_fail() {
    let asks = "!authorizer.group('').resource('pods').check('breakglass').allowed()";
    assert_eq!(outcome(conditions("Ignore", &[asks]), &pod(), None), "condition error");
    assert!(outcome(conditions("Fail", &[asks]), &pod(), None).starts_with("refused: "));
}

#[test]
fn stored_conditions_that_do_not_compile_fail() {
    let broken = conditions("Fail", &["6"]);
    assert_eq!(
        outcome(broken, &pod(), None),
        "refused: compilation error: must evaluate to bool but got int"
    );
}

#[test]
fn exempt_requests_match_no_hook() {
    let group = ConfigurationKind::GROUP;
    let all = snapshot(&[
        (Validating, "a", json!([webhook(json!({}))])),
        (Mutating, "a", json!([webhook(json!({}))])),
        (
            Initializer,
            "a",
            json!([{"name": "a.b.c", "rules": [
                {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]},
            ]}]),
        ),
    ]);
    let is_free = |attributes: &Attributes<'_>| {
        all.validating_hooks().match_hooks(attributes).is_empty()
            && all.mutating_hooks().match_hooks(attributes).is_empty()
            && all.match_initializers(attributes).is_empty()
    };
    for kind in ConfigurationKind::ALL {
        let resource = (group, kind.version(), kind.resource());
        for operation in Operation::ALL {
            let attributes = request(operation, resource, kind.name(), "", "");
            assert!(is_free(&attributes), "{}", kind.name());
        }
    }
    let other =
        request(Operation::Create, ("example.com", "v1", "x"), "InitializerConfiguration", "", "");
    assert!(!is_free(&other), "the group counts");
    let review = request(
        Operation::Create,
        ("authorization.k8s.io", "v1", "selfsubjectaccessreviews"),
        "SelfSubjectAccessReview",
        "",
        "",
    );
    assert!(is_free(&review));
    let deployment =
        request(Operation::Create, ("apps", "v1", "deployments"), "Deployment", "", "a");
    assert!(!is_free(&deployment));
    let update = request(Operation::Update, ("", "v1", "pods"), "Pod", "", "a");
    assert!(all.match_initializers(&update).is_empty(), "only creations are initialized");
    let binding = request(Operation::Create, ("", "v1", "pods"), "Binding", "binding", "a");
    assert!(all.match_initializers(&binding).is_empty(), "only objects themselves are initialized");
}

#[test]
fn any_rule_of_an_initializer_suffices() {
    let of = |group: &str, resource: &str| json!({"apiGroups": [group], "apiVersions": ["v1"], "resources": [resource]});
    let rules = json!([of("", "pods"), of("apps", "deployments")]);
    let all = snapshot(&[(Initializer, "a", json!([{"name": "a.b.c", "rules": rules}]))]);
    assert_eq!(all.match_initializers(&pod()).len(), 1);
    let secret = request(Operation::Create, ("", "v1", "secrets"), "Secret", "", "a");
    assert!(all.match_initializers(&secret).is_empty());
}

/// Hooks are ordered by kind, then by the name of the configuration, then as listed.
#[test]
fn hooks_are_ordered_by_kind_configuration_and_position() {
    let named = |name: &str| webhook(json!({"name": name}));
    let external = |name: &str| {
        let rule = rule(json!({"operations": null, "verbs": ["*"]}));
        json!({"name": name, "rules": [rule]})
    };
    let all = snapshot(&[
        (Validating, "b", json!([named("1.b.c"), named("0.b.c")])),
        (Validating, "a", json!([named("2.b.c")])),
        (ExternalHook, "z", json!([external("3.b.c")])),
        (Mutating, "a", json!([named("4.b.c")])),
    ]);
    let matches = all.validating_hooks().match_hooks(&pod());
    let names: Vec<_> =
        matches.iter().map(|it| (it.hook_list_position, it.hook.name.as_str())).collect();
    assert_eq!(names, [(0, "3.b.c"), (1, "2.b.c"), (2, "1.b.c"), (3, "0.b.c")]);
    assert_eq!(all.mutating_hooks().hooks().len(), 1);
}

/// Reports whether a rule names the resource or uses a wildcard makes no difference for the order. A mutating hook
/// may patch the object between two uses of the same match. Attributes without the equivalent that matched are
/// those of another request, which is refused.
#[test]
fn matched_hooks_do_not_depend_on_the_object() {
    let apps = json!({"apiGroups": ["apps"], "apiVersions": ["v1beta1"], "resources": ["*"]});
    let entry = webhook(json!({"rules": [rule(apps)]}));
    let all = snapshot(&[(Mutating, "a", json!([entry]))]);
    let others = equivalents("Deployment", None);
    let deployment = Attributes {
        equivalent_resources: &others,
        ..request(Operation::Create, ("apps", "v1", "deployments"), "Deployment", "", "team-a")
    };
    let matched = all.match_hooks(&deployment);
    assert!(matched.has_mutating_hooks() && !matched.has_validating_hooks());
    let object = tree(json!({"metadata": {"labels": {"a": "b"}}}));
    let patched = Attributes { object: Some(&object), ..deployment };
    let found: Vec<_> = matched.mutating_hooks(&patched).collect();
    assert_eq!((found.len(), found[0].hook_list_position), (1, 0));
    assert_eq!(found[0].matched_resource.resource.version, "v1beta1");
    let other = Attributes { equivalent_resources: &[], ..deployment };
    let found = matched.mutating_hooks(&other).next().unwrap();
    let selected = found.hook.evaluate_selectors(&other, &found.matched_resource, None);
    assert!(matches!(selected, CallDecision::Refuse(_)), "{selected:?}");
}

#[test]
fn wildcard_rules_do_not_change_the_order() {
    let exact = rule(json!({"apiGroups": [""], "resources": ["pods"]}));
    let all = snapshot(&[
        (Validating, "a", json!([webhook(json!({"name": "0.b.c", "rules": [exact]}))])),
        (Validating, "b", json!([webhook(json!({"name": "1.b.c"}))])),
        (Validating, "c", json!([webhook(json!({"name": "2.b.c", "rules": [exact, exact]}))])),
    ]);
    let matches = all.validating_hooks().match_hooks(&pod());
    assert_eq!(matches.iter().map(|it| it.hook_list_position).collect::<Vec<_>>(), [0, 1, 2]);
}

/// A rule with very many names is still found by the index.
#[test]
fn a_rule_of_many_names_matches() {
    let names = |prefix: &str| (0..100).map(|n| format!("{prefix}{n}")).collect::<Vec<_>>();
    let many = rule(json!({"apiGroups": names("g"), "resources": names("r")}));
    let all = hook_of(json!({"rules": [many]}));
    let known = request(Operation::Create, ("g99", "v1", "r99"), "X", "", "a");
    assert_eq!(all.validating_hooks().match_hooks(&known).len(), 1);
    let unknown = request(Operation::Create, ("g100", "v1", "r99"), "X", "", "a");
    assert!(all.validating_hooks().match_hooks(&unknown).is_empty());
}
