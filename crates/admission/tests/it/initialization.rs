//! Objects with pending initializers: decisions, validation and read repair.

use admission::ConfigurationKind::Initializer;
use admission::{
    Attributes, InitializerOptions, Initializers, InitializersOnCreate, InitializersOnUpdate,
    Operation, PendingInitializer, ReadRepair, Snapshot, copy_initializers,
    decide_initializers_on_create, decide_initializers_on_update, has_pending_initializers,
    normalize_initializers, repair_on_read, without_initializer,
};
use api_object::Tree;
use authz::User;
use field_errors::FieldErrors;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::documents::{snapshot, tree, with};
use crate::matching::{pod, request};

/// A snapshot of initializers that match everything.
pub(crate) fn configured(entries: &[(&str, &str)]) -> Snapshot {
    let rules = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]);
    let entry = |(name, policy): &(&str, &str)| json!({"name": name, "rules": rules, "failurePolicy": policy});
    snapshot(&[(Initializer, "a", entries.iter().map(entry).collect())])
}

/// A pod with this value of `metadata.initializers`; null leaves the field out.
fn pod_with(initializers: Value) -> Tree {
    let metadata = json!({"name": "x", "namespace": "team-a", "uid": "u"});
    let mut tree = tree(json!({"metadata": with(metadata, json!({"initializers": initializers}))}));
    normalize_initializers(&mut tree).unwrap();
    tree
}

/// A pod that waits for these initializers.
pub(crate) fn pod_pending(names: &[&str]) -> Tree {
    let entries: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    pod_with(json!({"pending": entries}))
}

/// The field `metadata.initializers` of a pod; null if it is absent.
fn initializers_field(tree: &Tree) -> Value {
    api_object::metadata(tree).get("initializers").cloned().unwrap_or_default()
}

fn names(initializers: &Initializers) -> Vec<&str> {
    initializers.pending_initializers.iter().map(|entry| entry.name.as_str()).collect()
}

fn on_create(tree: &Tree, snapshot: &Snapshot) -> InitializersOnCreate {
    let attributes = Attributes { object: Some(tree), ..pod() };
    decide_initializers_on_create(&InitializerOptions::default(), &attributes, snapshot)
}

fn on_update(new: &Tree, old: &Tree) -> Result<InitializersOnUpdate, FieldErrors> {
    let update = request(Operation::Update, ("", "v1", "pods"), "Pod", "", "team-a");
    let attributes = Attributes { object: Some(new), old_object: Some(old), ..update };
    decide_initializers_on_update(&InitializerOptions::default(), &attributes)
}

fn texts(errors: &FieldErrors) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn objects_without_the_field_get_configured_initializers() {
    let none = configured(&[]);
    let two = configured(&[("z.b.c", "Ignore"), ("a.b.c", "Fail")]);
    assert_eq!(on_create(&pod_with(json!(null)), &none), InitializersOnCreate::Initialized);
    let InitializersOnCreate::Assign(list) = on_create(&pod_with(json!(null)), &two) else {
        panic!("two match");
    };
    let mut new = pod_with(json!(null));
    Initializers::from(list).write_to_object(&mut new);
    let want = json!({"pending": [{"name": "z.b.c"}, {"name": "a.b.c"}]});
    assert_eq!(initializers_field(&new), want);
}

#[test]
fn supplied_initializers_need_permission_and_are_kept() {
    let all = configured(&[("a.b.c", "Ignore")]);
    for empty in [json!({}), json!({"pending": []}), json!({"pending": [], "result": null})] {
        let new = pod_with(empty.clone());
        let InitializersOnCreate::NeedsPermission(own) = on_create(&new, &all) else {
            panic!("{empty} is not nothing");
        };
        assert!(own.is_empty());
        let mut new = new;
        own.write_to_object(&mut new);
        assert_eq!(initializers_field(&new), Value::Null, "{empty}");
    }
    let InitializersOnCreate::NeedsPermission(own) =
        on_create(&pod_pending(&["x.y.z", "b.b.c"]), &all)
    else {
        panic!("the list is the client's");
    };
    assert_eq!(names(&own), ["x.y.z", "b.b.c"]);
}

#[test]
fn new_lists_are_validated() {
    let errors_of = |initializers: Value| {
        texts(&Initializers::from_object(&pod_with(initializers)).validate_on_create(64))
    };
    let many =
        |n: usize| (0..n).map(|idx| json!({"name": format!("n{idx}.b.c")})).collect::<Value>();
    assert_eq!(
        errors_of(json!({"pending": [{"name": "a.b.c"}], "result": {"status": "Failure"}})),
        ["metadata.initializers.result: Forbidden: may not be set on create"]
    );
    let odd = errors_of(json!({"pending": [{"name": "Test"}, {"name": "a.b"}, {}]}));
    assert_eq!(odd.len(), 3, "{odd:?}");
    assert!(odd[0].starts_with(r#"metadata.initializers.pending[0].name: Invalid value: "Test""#));
    assert!(odd[1].ends_with("should be a domain with at least three segments separated by dots"));
    assert_eq!(odd[2], "metadata.initializers.pending[2].name: Required value");
    assert_eq!(
        errors_of(json!({"pending": many(65)})),
        ["metadata.initializers.pending: Too many: 65: must have at most 64 items"]
    );
    assert!(errors_of(json!({"pending": many(64)})).is_empty());
}

#[test]
fn exempt_objects_have_no_initializers() {
    let all = configured(&[("a.b.c", "Ignore")]);
    let mirror = tree(json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": ""}},
        "spec": {"nodeName": "n1"}}));
    let node = |name: &str, group: &str| User {
        name: name.to_owned(),
        groups: vec![group.to_owned()],
        ..User::default()
    };
    let own_node = node("system:node:n1", "system:nodes");
    let attributes = Attributes { object: Some(&mirror), user: Some(&own_node), ..pod() };
    let on = InitializerOptions::default();
    assert_eq!(
        decide_initializers_on_create(&on, &attributes, &all),
        InitializersOnCreate::Initialized
    );
    let other = request(Operation::Create, ("apps", "v1", "pods"), "Pod", "", "team-a");
    let attributes = Attributes { object: Some(&mirror), ..other };
    let decision = decide_initializers_on_create(&on, &attributes, &all);
    assert!(matches!(decision, InitializersOnCreate::Assign(_)), "only pods of the core group");
    for other in [
        node("system:node:n2", "system:nodes"),
        node("system:node:n1", "system:authenticated"),
        node("n1", "system:nodes"),
        node("jane", "developers"),
    ] {
        let attributes = Attributes { object: Some(&mirror), user: Some(&other), ..pod() };
        let decision = decide_initializers_on_create(&on, &attributes, &all);
        assert!(
            matches!(decision, InitializersOnCreate::AssignUnlessPermitted(_)),
            "A21: {other:?}"
        );
    }
    // A21: the annotation alone does not make a mirror pod.
    for spec in [json!({}), json!({"nodeName": ""}), json!({"nodeName": 1})] {
        let annotations = json!({"kubernetes.io/config.mirror": "x"});
        let unbound = tree(json!({"metadata": {"annotations": annotations}, "spec": spec}));
        let attributes = Attributes { object: Some(&unbound), user: Some(&own_node), ..pod() };
        let decision = decide_initializers_on_create(&on, &attributes, &all);
        assert!(matches!(decision, InitializersOnCreate::Assign(_)), "A21: {unbound:?}");
    }

    let off =
        InitializerOptions { are_initializers_enabled: false, ..InitializerOptions::default() };
    let own = pod_pending(&["x.y.z"]);
    let attributes = Attributes { object: Some(&own), ..pod() };
    assert_eq!(
        decide_initializers_on_create(&off, &attributes, &all),
        InitializersOnCreate::Initialized
    );
    let update = Attributes {
        old_object: Some(&own),
        ..Attributes { operation: Operation::Update, ..attributes }
    };
    assert_eq!(
        decide_initializers_on_update(&off, &update),
        Ok(InitializersOnUpdate::NoInitializers)
    );

    let group = ("admissionregistration.k8s.io", "v1alpha1", "initializerconfigurations");
    let exempt = request(Operation::Create, group, "InitializerConfiguration", "", "");
    let attributes = Attributes { object: Some(&own), ..exempt };
    assert_eq!(
        decide_initializers_on_create(&on, &attributes, &all),
        InitializersOnCreate::Initialized,
        "exempt"
    );
    let binding = request(Operation::Create, ("", "v1", "pods"), "Binding", "binding", "team-a");
    let attributes = Attributes { object: Some(&own), ..binding };
    assert_eq!(
        decide_initializers_on_create(&on, &attributes, &all),
        InitializersOnCreate::Initialized,
        "subresource"
    );
}

#[test]
fn every_write_to_an_uninitialized_object_needs_permission() {
    let old = pod_pending(&["a.b.c"]);
    for (new, want) in [
        (pod_pending(&["a.b.c"]), vec!["a.b.c"]),
        (pod_pending(&["a.b.c", "x.y.z"]), vec!["a.b.c", "x.y.z"]),
        (pod_with(json!({})), vec![]),
        (pod_with(json!({"pending": []})), vec![]),
        (pod_with(json!(null)), vec![]),
    ] {
        let Ok(InitializersOnUpdate::NeedsPermission(next)) = on_update(&new, &old) else {
            panic!("{new:?} needs permission");
        };
        assert_eq!(names(&next), want);
        let mut new = new;
        next.write_to_object(&mut new);
        assert_eq!(has_pending_initializers(&new), !want.is_empty());
        assert_eq!(initializers_field(&new).is_null(), want.is_empty());
    }
}

#[test]
fn initialized_objects_can_not_get_initializers() {
    let old = pod_with(json!(null));
    let want = "metadata.initializers: Invalid value: null: field is immutable once initialization \
                has completed";
    for new in [
        pod_pending(&["a.b.c"]),
        pod_with(json!({"pending": [], "result": {"status": "Failure"}})),
        pod_pending(&["Test"]),
    ] {
        assert_eq!(on_update(&new, &old).unwrap_err().to_string(), want);
        let errors = Initializers::from_object(&new)
            .validate_on_update(&Initializers::from_object(&old), 64);
        assert_eq!(texts(&errors), [want], "a hook cannot do it either");
    }
    for new in [pod_with(json!({"pending": []})), pod_with(json!({})), pod_with(json!(null))] {
        assert_eq!(on_update(&new, &old), Ok(InitializersOnUpdate::NoInitializers));
    }
}

#[test]
fn a_failure_result_is_final() {
    let old = pod_pending(&["a.b.c"]);
    let failed = pod_with(json!({"pending": [{"name": "a.b.c"}],
        "result": {"status": "Failure", "code": 403, "reason": "Odd", "message": "no"}}));
    assert!(matches!(on_update(&failed, &old), Ok(InitializersOnUpdate::NeedsPermission(_))));
    let success = pod_with(json!({"result": {"status": "Success"}}));
    let want =
        r#"metadata.initializers.result.status: Invalid value: "Success": must be 'Failure'"#;
    assert_eq!(on_update(&success, &old).unwrap_err().to_string(), want);
    let want = r#"metadata.initializers.result.status: Invalid value: "": must be 'Failure'"#;
    assert_eq!(on_update(&pod_with(json!({"result": {}})), &old).unwrap_err().to_string(), want);

    let other = pod_with(json!({"result": {"status": "Failure"}}));
    let want =
        r#"metadata.initializers.result: Invalid value: {"status":"Failure"}: field is immutable"#;
    assert_eq!(on_update(&other, &failed).unwrap_err().to_string(), want);
    let want = "metadata.initializers.result: Invalid value: null: field is immutable";
    assert_eq!(on_update(&old, &failed).unwrap_err().to_string(), want);
    assert_eq!(on_update(&pod_with(json!(null)), &failed).unwrap_err().to_string(), want);
    assert!(on_update(&failed, &failed).is_ok());
}

#[test]
fn subresource_writes_keep_the_list() {
    let old = pod_pending(&["a.b.c"]);
    let mut new = pod_with(json!({"result": {"status": "Success"}}));
    let status = request(Operation::Update, ("", "v1", "pods"), "Pod", "status", "team-a");
    let attributes = Attributes { object: Some(&new), old_object: Some(&old), ..status };
    let decision = decide_initializers_on_update(&InitializerOptions::default(), &attributes);
    assert_eq!(decision, Ok(InitializersOnUpdate::KeepStored));
    copy_initializers(&mut new, &old);
    assert_eq!(initializers_field(&new), initializers_field(&old));
    copy_initializers(&mut new, &pod_with(json!(null)));
    assert_eq!(initializers_field(&new), Value::Null);
}

#[test]
fn updated_names_are_validated_like_new_ones() {
    let old = Initializers::from_object(&pod_pending(&["a.b.c"]));
    let errors = |names: &[&str], max| {
        texts(&Initializers::from_object(&pod_pending(names)).validate_on_update(&old, max))
    };
    assert!(errors(&["a.b.c", "b.b.c"], 2)[..].is_empty());
    assert_eq!(
        errors(&["a.b.c", "b.b.c"], 1),
        ["metadata.initializers.pending: Too many: 2: must have at most 1 item"]
    );
    assert_eq!(errors(&["a.b"], 2).len(), 1);
    assert!(errors(&[], 2).is_empty());
}

#[test]
fn constraints_on_absent_entries_are_dropped() {
    let pending = json!([{"name": "a.b.c", "after": []},
        {"name": "b.b.c", "after": ["a.b.c", "gone.b.c", "a.b.c"]}, {"name": "c.b.c"}]);
    let old = pod_with(json!({"pending": pending}));
    let mut new = old.clone();
    Initializers::from_object(&old).write_to_object(&mut new);
    let want = json!([{"name": "a.b.c", "after": []}, {"name": "b.b.c", "after": ["a.b.c"]},
        {"name": "c.b.c"}]);
    assert_eq!(initializers_field(&new)["pending"], want);
    let next = without_initializer(&new, "a.b.c").unwrap();
    let want = json!([{"name": "b.b.c", "after": []}, {"name": "c.b.c"}]);
    assert_eq!(initializers_field(&next)["pending"], want);
    let next = without_initializer(&without_initializer(&next, "c.b.c").unwrap(), "b.b.c").unwrap();
    assert_eq!(initializers_field(&next), Value::Null);
    assert_eq!(without_initializer(&next, "b.b.c"), None);
}

#[test]
fn wrong_types_are_reported_with_their_path() {
    for (given, want) in [
        (json!(5), "cannot unmarshal number into field metadata.initializers of type object"),
        (json!({"pending": {}}), "object into field metadata.initializers.pending of type array"),
        (json!({"pending": ["a"]}), "string into field metadata.initializers.pending[0]"),
        (
            json!({"pending": [{"name": 1}]}),
            "number into field metadata.initializers.pending[0].name",
        ),
        (
            json!({"pending": [{"after": "a"}]}),
            "field metadata.initializers.pending[0].after of type",
        ),
        (json!({"result": "no"}), "string into field metadata.initializers.result of type object"),
        (json!({"result": {"code": "x"}}), "field metadata.initializers.result.code of type int32"),
    ] {
        let mut new = tree(json!({"metadata": {"initializers": given}}));
        let error = normalize_initializers(&mut new).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
    let mut new = tree(json!({"metadata": {"initializers": {
        "pending": [null, {"name": "a.b.c", "x": 1}], "result": null, "y": 2}}}));
    normalize_initializers(&mut new).unwrap();
    assert_eq!(initializers_field(&new), json!({"pending": [{}, {"name": "a.b.c"}]}));
    for odd in [json!({}), json!({"metadata": null}), json!({"metadata": {"initializers": null}})] {
        let mut odd = tree(odd);
        normalize_initializers(&mut odd).unwrap();
        assert!(initializers_field(&odd).is_null());
    }
}

/// A pod that was created at ten o'clock.
fn old_pod(names: &[&str]) -> Tree {
    let mut old = pod_pending(names);
    api_object::metadata_mut(&mut old)
        .insert("creationTimestamp".to_owned(), json!("2026-11-16T10:00:00Z"));
    old
}

fn repaired(tree: &Tree, now: &str, configured: Option<&Snapshot>) -> Option<ReadRepair> {
    let now = format!("2026-11-16T{now}Z").parse().unwrap();
    repair_on_read(&InitializerOptions::default(), tree, now, configured)
}

#[test]
fn reads_repair_expired_objects() {
    let dead = configured(&[("a.b.c", "Ignore"), ("b.b.c", "Ignore")]);
    let two = old_pod(&["a.b.c", "b.b.c"]);
    for now in ["10:09:00", "10:10:10", "10:10:29.999"] {
        assert_eq!(repaired(&two, now, Some(&dead)), None, "{now}");
    }
    let first = repaired(&two, "10:10:30", Some(&dead)).unwrap();
    assert_eq!(
        (first.initializer_name.as_str(), &first.repaired_object),
        ("a.b.c", &old_pod(&["b.b.c"]))
    );
    let second = repaired(&first.repaired_object, "10:10:31", Some(&dead)).unwrap();
    assert!(!has_pending_initializers(&second.repaired_object));
    assert_eq!(repaired(&second.repaired_object, "10:10:31", Some(&dead)), None);

    let fail = configured(&[("a.b.c", "Fail"), ("b.b.c", "Ignore")]);
    assert_eq!(repaired(&two, "10:11:00", Some(&fail)), None);
    assert_eq!(repaired(&two, "09:55:00", Some(&dead)), None);
    assert_eq!(repaired(&two, "10:11:00", None), None, "the configuration is stale");
    assert!(repaired(&two, "10:11:00", Some(&configured(&[]))).is_some(), "nobody knows it");
}

#[test]
fn other_objects_are_not_repaired() {
    let dead = configured(&[("a.b.c", "Ignore")]);
    let failed = with(
        Value::Object(old_pod(&["a.b.c"])),
        json!({"metadata": {"creationTimestamp": "2026-11-16T10:00:00Z", "initializers":
            {"pending": [{"name": "a.b.c"}], "result": {"status": "Failure"}}}}),
    );
    assert_eq!(repaired(&tree(failed), "12:00:00", Some(&dead)), None, "it failed");
    assert_eq!(repaired(&pod_pending(&["a.b.c"]), "12:00:00", Some(&dead)), None, "it has no age");
    let off =
        InitializerOptions { are_initializers_enabled: false, ..InitializerOptions::default() };
    let now = "2026-11-16T12:00:00Z".parse().unwrap();
    assert_eq!(
        repair_on_read(&off, &old_pod(&["a.b.c"]), now, Some(&dead)),
        None,
        "the feature is off"
    );
    let alone = InitializerOptions {
        clock_drift_max: std::time::Duration::ZERO,
        ..InitializerOptions::default()
    };
    let now = "2026-11-16T10:10:00Z".parse().unwrap();
    assert!(
        repair_on_read(&alone, &old_pod(&["a.b.c"]), now, Some(&dead)).is_some(),
        "only one clock"
    );
}

fn odd_field() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec!["", "a.b.c", "b.b.c", "Failure", "Success"])
            .prop_map(Value::from),
    ];
    let names = vec!["pending", "result", "name", "after", "status", "code", "details", "causes"];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        let names = prop::sample::select(names.clone());
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names, inner), 0..4).prop_map(|members| {
                members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            }),
        ]
    })
}

proptest! {
    /// For any value of the field, reading, writing and validating agree, and writing the value that was read
    /// changes nothing else.
    #[test]
    fn any_field_value_is_handled_consistently(field in odd_field(), other in odd_field()) {
        let with_field = |field: &Value| tree(json!({"metadata": {"initializers": field}}));
        let (new, old) = (with_field(&field), with_field(&other));
        let own = Initializers::from_object(&new);
        prop_assert_eq!(has_pending_initializers(&new), !own.is_empty());
        let mut written = new.clone();
        own.clone().write_to_object(&mut written);
        prop_assert_eq!(Initializers::from_object(&written), own.clone());
        let mut shaped = written.clone();
        prop_assert!(normalize_initializers(&mut shaped).is_ok() || own.failure_written_by_initializer.is_some());
        let mut received = new.clone();
        if normalize_initializers(&mut received).is_ok() {
            let received = Initializers::from_object(&received);
            prop_assert_eq!(names(&received), names(&own));
        }
        let _ = (own.validate_on_create(64), own.validate_on_update(&Initializers::from_object(&old), 64));
        let _ = (on_create(&new, &configured(&[])), on_update(&new, &old));
        if let Some(PendingInitializer { name, .. }) = own.pending_initializers.first() {
            let next = without_initializer(&new, name).unwrap();
            prop_assert_eq!(Initializers::from_object(&next).pending_initializers.len(), own.pending_initializers.len() - 1);
        }
    }
}
