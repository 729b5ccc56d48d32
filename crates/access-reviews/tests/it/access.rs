//! SubjectAccessReview, LocalSubjectAccessReview and SelfSubjectAccessReview.

use access_reviews::ReviewKind;
use authz::{Decision, EvaluationErrors};
use authz_chain::{Chain, ChainMember};
use serde_json::{Value, json};

use crate::review_client::{Fault, ReviewPost, chain, fixed, rbac, user};

const EXACTLY_ONE: &str =
    "exactly one of nonResourceAttributes or resourceAttributes must be specified";

fn subject(chain: &Chain) -> ReviewPost<'_> {
    let kind = ReviewKind::SubjectAccessReview;
    ReviewPost { chain, kind, version: "v1", namespace: "", user: None }
}

fn local<'c>(chain: &'c Chain, namespace: &'c str) -> ReviewPost<'c> {
    ReviewPost { kind: ReviewKind::LocalSubjectAccessReview, namespace, ..subject(chain) }
}

fn everything() -> Chain {
    chain(vec![ChainMember::AlwaysAllow])
}

fn path_of_bob() -> Value {
    json!({"spec": {"user": "bob", "nonResourceAttributes": {"path": "/mypath", "verb": "get"}}})
}

fn pods(namespace: &str) -> Value {
    json!({"user": "u", "resourceAttributes": {
        "namespace": namespace, "verb": "get", "resource": "pods",
    }})
}

#[test]
fn the_status_contains_the_decision() {
    let error = || EvaluationErrors::message("e");
    for (decision, want) in [
        (
            Decision::no_opinion("r").with_error(error()),
            json!({"allowed": false, "reason": "a: r", "evaluationError": "e"}),
        ),
        (Decision::allow("r"), json!({"allowed": true, "reason": "r"})),
        (Decision::allow("").with_error(error()), json!({"allowed": true, "evaluationError": "e"})),
        (Decision::deny("r"), json!({"allowed": false, "denied": true, "reason": "r"})),
        (Decision::no_opinion(""), json!({"allowed": false})),
    ] {
        let chain = chain(vec![fixed("a", decision)]);
        assert_eq!(subject(&chain).send(&path_of_bob()).unwrap()["status"], want);
    }
}

#[test]
fn the_spec_is_echoed_without_empty_and_unknown_fields() {
    let body = json!({
        "metadata": {"creationTimestamp": null, "namespace": "gone", "managedFields": [{}]},
        "spec": {
            "user": "u", "uid": "", "groups": ["g", null], "extra": {"k": ["v"], "n": []},
            "bogus": 1, "nonResourceAttributes": null,
            "resourceAttributes": {
                "verb": "list", "resource": "pods", "name": "", "bogus": {},
                "labelSelector": {"requirements": [{"key": "a", "operator": "Exists"}]},
            },
        },
        "status": {"allowed": true, "reason": "says the client"},
    });
    let want = json!({
        "kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {},
        "spec": {
            "user": "u", "groups": ["g", ""], "extra": {"k": ["v"], "n": []},
            "resourceAttributes": {
                "verb": "list", "resource": "pods",
                "labelSelector": {"requirements": [{"key": "a", "operator": "Exists"}]},
            },
        },
        "status": {"allowed": false},
    });
    let nothing = chain(vec![]);
    assert_eq!(subject(&nothing).send(&body).unwrap(), want);
}

#[test]
fn all_validation_errors_are_reported_in_kubernetes_words() {
    let chain = everything();
    let refused = |body: Value| subject(&chain).refused(&body);
    let invalid =
        |faults: &str| (Fault::Invalid, format!(".authorization.k8s.io \"\" is invalid: {faults}"));
    let nobody = "spec.user: Invalid value: \"\": at least one of user or group must be specified";
    assert_eq!(
        refused(json!({})),
        invalid(&format!("[spec: Invalid value: null: {EXACTLY_ONE}, {nobody}]"))
    );
    let both = json!({"spec": {
        "user": "u", "nonResourceAttributes": {"path": "/"},
        "resourceAttributes": {"fieldSelector": {}},
    }});
    assert_eq!(
        refused(both),
        invalid(&format!(
            "[spec: Invalid value: {{\"Path\":\"/\",\"Verb\":\"\"}}: {EXACTLY_ONE}, \
             spec.resourceAttributes.fieldSelector.requirements: Required value: when \
             spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is \
             required]"
        ))
    );
    let with_metadata = |metadata: Value| json!({"metadata": metadata, "spec": pods("")});
    for (metadata, shown) in [
        (json!({"name": "x"}), "{\"name\":\"x\"}"),
        (json!({"labels": {"a": "b"}, "uid": "1", "namespace": "n"}), "{\"labels\":{\"a\":\"b\"}}"),
        (json!({"generation": 1}), "{\"generation\":1}"),
        (json!({"finalizers": ["f"]}), "{\"finalizers\":[\"f\"]}"),
    ] {
        assert_eq!(
            refused(with_metadata(metadata)),
            invalid(&format!("metadata: Invalid value: {shown}: must be empty"))
        );
    }
    let empty = json!({
        "name": "", "generation": 0, "labels": {}, "finalizers": [], "ownerReferences": null,
        "selfLink": null, "unknown": 5,
    });
    assert!(subject(&chain).send(&with_metadata(empty)).is_ok());
    let set_by_server = json!({
        "selfLink": "/x", "uid": "1", "creationTimestamp": "2020-01-01T00:00:00Z",
        "deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0,
    });
    assert!(subject(&chain).send(&with_metadata(set_by_server)).is_ok());
}

#[test]
fn values_of_wrong_types_are_refused() {
    let chain = everything();
    for (body, field, kind, go_type) in [
        (json!({"spec": 1}), "SubjectAccessReview.spec", "number", "v1.SubjectAccessReviewSpec"),
        (json!({"metadata": []}), "SubjectAccessReview.metadata", "array", "v1.ObjectMeta"),
        (json!({"metadata": {"name": 1}}), "ObjectMeta.metadata.name", "number", "string"),
        (json!({"metadata": {"labels": {"a": 1}}}), "ObjectMeta.metadata.labels", "number", {
            "string"
        }),
        (json!({"metadata": {"generation": 1.5}}), "ObjectMeta.metadata.generation", "number", {
            "int64"
        }),
        (
            json!({"spec": {"groups": {}}}),
            "SubjectAccessReviewSpec.spec.groups",
            "object",
            "[]string",
        ),
        (
            json!({"spec": {"extra": {"k": [true]}}}),
            "SubjectAccessReviewSpec.spec.extra",
            "bool",
            "string",
        ),
        (
            json!({"spec": {"resourceAttributes": {"labelSelector": {"requirements": [1]}}}}),
            "LabelSelectorAttributes.spec.resourceAttributes.labelSelector.requirements",
            "number",
            "v1.LabelSelectorRequirement",
        ),
        (
            json!({"spec": {"resourceAttributes": {"fieldSelector": {"requirements": [
                {"values": "x"},
            ]}}}}),
            "FieldSelectorRequirement.spec.resourceAttributes.fieldSelector.requirements.values",
            "string",
            "[]string",
        ),
    ] {
        let want = format!(
            "SubjectAccessReview in version \"v1\" cannot be handled as a SubjectAccessReview: \
             json: cannot unmarshal {kind} into Go struct field {field} of type {go_type}"
        );
        assert_eq!(subject(&chain).refused(&body), (Fault::Malformed, want), "{body}");
    }
    let (fault, _) =
        subject(&chain).refused(&json!({"metadata": {"creationTimestamp": "yesterday"}}));
    assert_eq!(fault, Fault::Malformed);
}

#[test]
fn local_reviews_are_about_their_namespace() {
    let chain = everything();
    let in_a = local(&chain, "a");
    let want = json!({"namespace": "a"});
    for metadata in [json!(null), json!({"namespace": "a"}), json!({"namespace": ""})] {
        let answer = in_a.send(&json!({"metadata": metadata, "spec": pods("a")})).unwrap();
        assert_eq!((&answer["metadata"], &answer["status"]["allowed"]), (&want, &json!(true)));
        assert_eq!(answer["kind"], "LocalSubjectAccessReview");
    }
    for namespace in ["", "b"] {
        let (fault, message) = in_a.refused(&json!({"spec": pods(namespace)}));
        assert_eq!(fault, Fault::Invalid);
        assert!(message.ends_with(&format!(
            "spec.resourceAttributes.namespace: Invalid value: \"{namespace}\": must match \
             metadata.namespace"
        )));
    }
    let named = json!({"metadata": {"name": "x"}, "spec": pods("a")});
    assert!(in_a.refused(&named).1.ends_with(
        "metadata: Invalid value: {\"name\":\"x\",\"namespace\":\"a\"}: must be empty except for \
         namespace"
    ));
    let (fault, message) = in_a.refused(&path_of_bob());
    assert_eq!(fault, Fault::Invalid);
    assert!(message.ends_with(
        "spec.nonResourceAttributes: Invalid value: {\"Path\":\"/mypath\",\"Verb\":\"get\"}: \
         disallowed on this kind of request"
    ));
    let elsewhere = json!({"metadata": {"namespace": "bar"}, "spec": pods("bar")});
    assert_eq!(
        in_a.refused(&elsewhere),
        (
            Fault::Malformed,
            "the namespace of the provided object does not match the namespace sent on the request"
                .to_owned()
        )
    );
    assert_eq!(local(&chain, "").refused(&json!({"spec": pods("")})).0, Fault::Malformed);
}

/// The caller is the user after impersonation.
#[test]
fn self_reviews_are_about_the_caller() {
    let chain = chain(vec![rbac(&[
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "r"},
            "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "r"},
            "subjects": [{"kind": "User", "name": "alice"}],
        }),
    ])]);
    let (alice, dave) = (user("alice", &[]), user("dave", &[]));
    let post = |user| {
        let kind = ReviewKind::SelfSubjectAccessReview;
        ReviewPost { chain: &chain, kind, version: "v1", namespace: "", user }
    };
    // A self review ignores the user in its spec.
    let body = json!({"spec": {
        "user": "alice", "resourceAttributes": {"verb": "get", "resource": "pods"},
    }});
    let answer = post(Some(&alice)).send(&body).unwrap();
    assert_eq!(answer["status"]["allowed"], true);
    assert_eq!(answer["spec"], json!({"resourceAttributes": {"verb": "get", "resource": "pods"}}));
    assert_eq!(post(Some(&dave)).send(&body).unwrap()["status"]["allowed"], false);
    assert_eq!(
        post(None).refused(&body),
        (Fault::Malformed, "no user present on request".to_owned())
    );
    assert_eq!(post(Some(&dave)).refused(&json!({"spec": {}})).0, Fault::Invalid);
}

/// The groups are in `groups` in v1 and in `group` in v1beta1.
#[test]
fn groups_have_another_field_name_in_v1beta1() {
    let chain = chain(vec![rbac(&[
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "r"},
            "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "r"},
            "subjects": [
                {"kind": "Group", "name": "system:authenticated"}, {"kind": "Group", "name": "g"},
            ],
        }),
    ])]);
    let (v1, v1beta1) = (subject(&chain), ReviewPost { version: "v1beta1", ..subject(&chain) });
    let spec = |name: &str, groups: &[&str]| {
        json!({"spec": {
            "user": "bob", (name): groups,
            "resourceAttributes": {"verb": "get", "resource": "pods"},
        }})
    };
    for (post, body, want) in [
        (&v1, spec("groups", &[]), false),
        (&v1, spec("groups", &["g"]), true),
        (&v1, spec("group", &["g"]), false),
        (&v1beta1, spec("group", &["g"]), true),
        (&v1beta1, spec("groups", &["g"]), false),
    ] {
        let answer = post.send(&body).unwrap();
        assert_eq!(answer["status"]["allowed"], want, "{} {body}", post.version);
    }
    let answer = v1beta1.send(&spec("group", &["g"])).unwrap();
    assert_eq!(answer["apiVersion"], "authorization.k8s.io/v1beta1");
    assert_eq!(answer["spec"]["group"], json!(["g"]));
}

#[test]
fn ignored_requirements_are_reported() {
    let chain = chain(vec![fixed("a", Decision::deny(""))]);
    let body = json!({"spec": {"user": "u", "resourceAttributes": {
        "verb": "list", "resource": "pods", "fieldSelector": {"rawSelector": "key in value"},
        "labelSelector": {"requirements": [
            {"key": "a", "operator": "In", "values": ["b"]}, {"key": "c", "operator": "fake"},
        ]},
    }}});
    assert_eq!(
        subject(&chain).send(&body).unwrap()["status"],
        json!({
            "allowed": false, "denied": true,
            "evaluationError": "spec.resourceAttributes.fieldSelector ignored due to parse error; \
                spec.resourceAttributes.labelSelector partially ignored due to parse error",
        })
    );
}

/// If this server could not consult an authorizer, the review has no answer, even if a later authorizer allows
/// everything.
#[test]
fn an_unavailable_authorizer_is_an_error() {
    let busy = Decision::authorizer_unavailable(authz::UnavailableCause::TooManyCalls);
    let chain = chain(vec![fixed("a", busy), ChainMember::AlwaysAllow]);
    let ana = user("ana", &[]);
    for kind in [
        ReviewKind::SubjectAccessReview,
        ReviewKind::SelfSubjectAccessReview,
        ReviewKind::LocalSubjectAccessReview,
        ReviewKind::SubjectAccessExplanation,
    ] {
        let mut body = json!({"spec": pods("ns")});
        if kind == ReviewKind::SelfSubjectAccessReview {
            body["spec"].as_object_mut().unwrap().remove("user");
        }
        let post =
            ReviewPost { chain: &chain, kind, version: "v1", namespace: "ns", user: Some(&ana) };
        assert_eq!(post.refused(&body).0, Fault::Unavailable, "{kind:?}");
    }
}
