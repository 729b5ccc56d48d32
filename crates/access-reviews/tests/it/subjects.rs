//! ResourceAccessReview, LocalResourceAccessReview, and the form of the first proposal.

use access_reviews::{
    PreparedReview, ResolvedResource, ResourceAccessReview, ResourceResolutionError, ReviewKind,
    ReviewRequest, prepare_review,
};
use authz::{Decision, EvaluationErrors, Namespace, User, Verb};
use authz_chain::{Chain, ChainMember};
use serde_json::{Value, json};

use crate::review_client::{Fault, ReviewPost, abac, chain, fixed, rbac, user};

fn legacy<'p>(chain: &'p Chain, namespace: &'p str) -> ReviewPost<'p> {
    let kind = ReviewKind::LegacyResourceAccessReview;
    ReviewPost { chain, kind, version: "v1beta3", namespace, user: None }
}

fn cluster<'p>(chain: &'p Chain, user: &'p User) -> ReviewPost<'p> {
    let kind = ReviewKind::ResourceAccessReview;
    ReviewPost { chain, kind, version: "v1alpha1", namespace: "", user: Some(user) }
}

fn local(chain: &Chain) -> ReviewPost<'_> {
    let kind = ReviewKind::LocalResourceAccessReview;
    ReviewPost { chain, kind, version: "v1alpha1", namespace: "default", user: None }
}

/// The worked example of the documentation: a chain of two authorizers.
fn worked_example() -> Chain {
    let objects = [
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "reader"},
            "rules": [{
                "verbs": ["list"], "apiGroups": [""], "resources": ["replicationcontrollers"],
            }],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "reader"},
            "subjects": [{"kind": "Group", "name": "cluster-admins"}],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "b", "namespace": "default"},
            "roleRef": {"kind": "ClusterRole", "name": "reader"},
            "subjects": [
                {"kind": "User", "name": "Hubert"}, {"kind": "ServiceAccount", "name": "ci"},
            ],
        }),
    ];
    let line = "{\"user\":\"Clark\",\"resource\":\"replicationcontrollers\",\"readonly\":true}\n";
    chain(vec![abac(line), rbac(&objects)])
}

fn body_of_the_proposal() -> Value {
    json!({
        "kind": "ResourceAccessReview", "apiVersion": "v1beta3",
        "metadata": {"name": "list-replicationController-check", "namespace": "default"},
        "spec": {"verb": "list", "resourceKind": "replicationControllers"},
    })
}

#[test]
fn the_example_of_the_proposal() {
    let chain = worked_example();
    let mut body = body_of_the_proposal();
    body["metadata"]["labels"] = json!({"kept": "as sent"});
    body["status"] = json!({"users": ["mallory"]});
    let mut want = body.clone();
    want["status"] = json!({
        "users": ["Clark", "Hubert", "system:serviceaccount:default:ci"],
        "groups": ["cluster-admins", "system:masters"],
    });
    assert_eq!(legacy(&chain, "default").send(&body).unwrap(), want);
    let mut bare = json!({"spec": body["spec"]});
    let answer = legacy(&chain, "default").send(&bare).unwrap();
    assert_eq!((&answer["kind"], &answer["apiVersion"]), (&want["kind"], &want["apiVersion"]));
    assert_eq!(answer["metadata"], json!({"namespace": "default"}));
    assert_eq!(answer["status"], want["status"]);
    bare["metadata"] = json!({"namespace": null});
    assert!(legacy(&chain, "default").send(&bare).is_ok());
}

#[test]
fn lists_are_sorted_and_always_present() {
    let status = |member: ChainMember| {
        let chain = chain(vec![member]);
        legacy(&chain, "default").send(&body_of_the_proposal()).unwrap()["status"].clone()
    };
    assert_eq!(
        status(ChainMember::AlwaysAllow),
        json!({
            "users": [],
            "groups": ["system:authenticated", "system:masters", "system:unauthenticated"],
        })
    );
    assert_eq!(status(ChainMember::AlwaysDeny), json!({"users": [], "groups": ["system:masters"]}));
    assert_eq!(
        status(fixed("authz", Decision::no_opinion(""))),
        json!({
            "users": [], "groups": ["system:masters"],
            "evaluationError": "authz: authorizer cannot enumerate subjects",
        })
    );
}

#[test]
fn legacy_bodies_are_validated() {
    let chain = chain(vec![]);
    let with = |path: &[&str], value: Value| {
        let mut body = body_of_the_proposal();
        let mut place = &mut body;
        for step in path {
            place = &mut place[*step];
        }
        *place = value;
        body
    };
    let invalid = |faults: &str| {
        let name = "list-replicationController-check";
        (Fault::Invalid, format!("ResourceAccessReview \"{name}\" is invalid: {faults}"))
    };
    for (path, value, want) in [
        (&["spec", "verb"][..], json!(""), invalid("spec.verb: Required value")),
        (&["spec", "resourceKind"], json!(null), invalid("spec.resourceKind: Required value")),
        (
            &["spec"],
            json!(null),
            invalid("[spec.verb: Required value, spec.resourceKind: Required value]"),
        ),
        (
            &["spec", "content"],
            json!({"any": null}),
            invalid(
                "spec.content: Forbidden: authorizers decide before the object is read, so its \
                 content cannot change the answer; name the object in resourceName",
            ),
        ),
        (
            &["spec"],
            json!({"verb": "create", "resourceKind": "pods", "resourceName": "p"}),
            invalid(
                "spec.resourceName: Forbidden: requests with the verb create are authorized \
                 without a name",
            ),
        ),
        (
            &["spec"],
            json!({"verb": "deletecollection", "resourceKind": "pods", "resourceName": "p"}),
            invalid(
                "spec.resourceName: Forbidden: requests with the verb deletecollection are \
                 authorized without a name",
            ),
        ),
        (
            &["spec", "resourceKind"],
            json!(".apps"),
            invalid(
                "spec.resourceKind: Invalid value: \".apps\": must begin with the name of a \
                 resource",
            ),
        ),
    ] {
        assert_eq!(legacy(&chain, "default").refused(&with(path, value)), want);
    }
    for (path, value) in [
        (&["kind"][..], json!("Secret")),
        (&["apiVersion"], json!("v1")),
        (&["apiVersion"], json!(1)),
        (&["metadata"], json!("x")),
        (&["metadata", "namespace"], json!("other")),
        (&["metadata", "namespace"], json!(1)),
        (&["spec"], json!([])),
        (&["spec", "verb"], json!({})),
    ] {
        let body = with(path, value);
        assert_eq!(legacy(&chain, "default").refused(&body).0, Fault::Malformed, "{body}");
    }
    assert_eq!(legacy(&chain, "").refused(&body_of_the_proposal()).0, Fault::Malformed);
}

#[test]
fn legacy_kinds_map_to_resources() {
    let now = jiff::Timestamp::UNIX_EPOCH;
    let request = ReviewRequest { version: "v1", namespace: "n", user: None, now };
    for (resource_kind, want) in [
        ("replicationControllers", ("", "replicationcontrollers", "")),
        ("deployments.apps", ("apps", "deployments", "")),
        ("pods/log", ("", "pods", "log")),
        ("Roles.rbac.authorization.k8s.io/x", ("rbac.authorization.k8s.io", "roles", "x")),
    ] {
        let body = json!({"spec": {
            "verb": "GET", "resourceKind": resource_kind, "resourceName": "N",
        }});
        let review =
            prepare_review(ReviewKind::LegacyResourceAccessReview, &body, &request).unwrap();
        let PreparedReview::Subjects(review) = review else { panic!("subjects are asked for") };
        let asked = review.attributes();
        let of = asked.resource().unwrap();
        assert_eq!((of.api_group, of.resource, of.subresource), want);
        assert_eq!(
            (asked.verb, of.name, of.namespace, of.api_version),
            (Verb::new("GET"), "N", Namespace::new("n"), "*")
        );
        assert!(asked.user.is_none());
        assert!(review.required_permission(None).is_none());
    }
}

/// The name of an object counts: a role for one object is not a role for another one.
#[test]
fn the_name_changes_the_answer() {
    let objects = [
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "reader"},
            "rules": [{
                "verbs": ["get"], "apiGroups": [""], "resources": ["secrets"],
                "resourceNames": ["one"],
            }],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "b", "namespace": "default"},
            "roleRef": {"kind": "ClusterRole", "name": "reader"},
            "subjects": [{"kind": "User", "name": "ana"}],
        }),
    ];
    let chain = chain(vec![rbac(&objects)]);
    for (name, users) in [("one", json!(["ana"])), ("two", json!([])), ("", json!([]))] {
        let spec = json!({"verb": "get", "resourceKind": "secrets", "resourceName": name});
        let answer = legacy(&chain, "default").send(&json!({"spec": spec})).unwrap();
        assert_eq!(answer["status"]["users"], users, "{name}");
    }
}

fn prepared(kind: ReviewKind, body: &Value) -> ResourceAccessReview {
    let now = jiff::Timestamp::UNIX_EPOCH;
    let (version, namespace) = match kind {
        ReviewKind::LegacyResourceAccessReview => ("v1", "n"),
        _ => ("v1alpha1", ""),
    };
    let request = ReviewRequest { version, namespace, user: None, now };
    match prepare_review(kind, body, &request).unwrap() {
        PreparedReview::Subjects(review) => review,
        other => panic!("{other:?}"),
    }
}

#[test]
fn names_are_resolved_or_an_error() {
    let legacy_body = |kind: &str, name: &str| json!({"spec": {"verb": "get", "resourceKind": kind, "resourceName": name}});
    let resolved = |group: &str, resource: &str, is_namespaced| {
        Ok(Some(ResolvedResource {
            api_group: group.to_owned(),
            resource: resource.to_owned(),
            is_namespaced,
        }))
    };
    let legacy = ReviewKind::LegacyResourceAccessReview;
    for (written, name, answer, asked, want) in [
        (
            "Deployment",
            "",
            resolved("apps", "deployments", true),
            (None, "deployment", ""),
            ("apps", "deployments", "n"),
        ),
        ("po/log", "", resolved("", "pods", true), (None, "po", "log"), ("", "pods", "n")),
        (
            "Deploy.apps",
            "",
            resolved("apps", "deployments", true),
            (Some("apps"), "deploy", ""),
            ("apps", "deployments", "n"),
        ),
        ("node", "a", resolved("", "nodes", false), (None, "node", ""), ("", "nodes", "")),
        ("ns", "a", resolved("", "namespaces", false), (None, "ns", ""), ("", "namespaces", "a")),
        ("x.y.z", "", Ok(None), (Some("y.z"), "x", ""), ("y.z", "x", "n")),
    ] {
        let mut review = prepared(legacy, &legacy_body(written, name));
        review
            .resolve_resource(|named| {
                assert_eq!((named.api_group, named.resource, named.subresource), asked);
                answer
            })
            .unwrap();
        let attributes = review.attributes();
        let of = attributes.resource().unwrap();
        assert_eq!(
            (of.api_group, of.resource, of.namespace),
            (want.0, want.1, Namespace::new(want.2))
        );
    }
    let unknown =
        || Err(ResourceResolutionError { error_detail: "did you mean `pods`?".to_owned() });
    let error = prepared(legacy, &legacy_body("Podz", "")).resolve_resource(|_| unknown());
    assert_eq!(
        error.unwrap_err().to_string(),
        "ResourceAccessReview \"\" is invalid: spec.resourceKind: Invalid value: \"Podz\": did you \
         mean `pods`?"
    );
    let body = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "podz"}}});
    let error = prepared(ReviewKind::ResourceAccessReview, &body).resolve_resource(|_| unknown());
    assert_eq!(
        error.unwrap_err().to_string(),
        "ResourceAccessReview.authorization.portcullis.io \"\" is invalid: \
         spec.resourceAttributes.resource: Invalid value: \"podz\": did you mean `pods`?"
    );
}

fn modern(namespace: &str) -> Value {
    json!({"spec": {"resourceAttributes": {
        "verb": "list", "resource": "replicationcontrollers", "namespace": namespace,
    }}})
}

#[test]
fn the_local_review_is_about_its_namespace() {
    let chain = worked_example();
    for namespace in ["", "default"] {
        let answer = local(&chain).send(&modern(namespace)).unwrap();
        assert_eq!(answer["apiVersion"], "authorization.portcullis.io/v1alpha1");
        assert_eq!(answer["metadata"], json!({"namespace": "default"}));
        assert_eq!(answer["status"]["users"][1], "Hubert");
    }
    let invalid = "LocalResourceAccessReview.authorization.portcullis.io \"\" is invalid: ";
    for (body, want) in [
        (
            modern("other"),
            "spec.resourceAttributes.namespace: Invalid value: \"other\": must match \
             metadata.namespace",
        ),
        (
            json!({"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}),
            "spec.nonResourceAttributes: Invalid value: {\"Path\":\"/\",\"Verb\":\"get\"}: \
             disallowed on this kind of request",
        ),
        (
            json!({"spec": {"resourceAttributes": {}}}),
            "[spec.resourceAttributes.verb: Required value, \
             spec.resourceAttributes.resource: Required value]",
        ),
    ] {
        assert_eq!(local(&chain).refused(&body), (Fault::Invalid, format!("{invalid}{want}")));
    }
}

/// A client that asks about a namespace through the cluster-scoped review needs permission to create the review in
/// that namespace.
#[test]
fn the_cluster_review_of_a_namespace_needs_permission_there() {
    let line = "{\"user\":\"ana\",\"namespace\":\"default\",\"resource\":\"*\",\
                \"apiGroup\":\"authorization.portcullis.io\"}";
    let policy = format!(
        "{{\"apiVersion\":\"abac.authorization.kubernetes.io/v1beta1\",\"kind\":\"Policy\",\
         \"spec\":{line}}}\n"
    );
    let chain = chain(vec![abac(&policy)]);
    let (ana, bob) = (user("ana", &[]), user("bob", &[]));
    assert!(cluster(&chain, &ana).send(&modern("default")).is_ok());
    assert_eq!(
        cluster(&chain, &ana).refused(&modern("other")),
        (
            Fault::Forbidden,
            "User \"ana\" \
             cannot create resource \"localresourceaccessreviews\" in API group \
             \"authorization.portcullis.io\" in the namespace \"other\": abac: No policy matched."
                .to_owned()
        )
    );
    assert_eq!(cluster(&chain, &bob).refused(&modern("default")).0, Fault::Forbidden);
    let all = cluster(&chain, &bob).send(&modern("")).unwrap();
    assert_eq!(all["status"], json!({"users": [], "groups": ["system:masters"]}));
}

/// If an authorizer fails to decide about the permission, the review is refused.
#[test]
fn a_permission_that_can_not_be_decided_is_an_error() {
    let failing = Decision::no_opinion("").with_error(EvaluationErrors::message("broke"));
    let (chain, ana) = (chain(vec![fixed("a", failing)]), user("ana", &[]));
    assert_eq!(cluster(&chain, &ana).refused(&modern("x")).0, Fault::PermissionCheck);
}

#[test]
fn the_cluster_review_accepts_paths() {
    let chain = chain(vec![]);
    let ana = user("ana", &[]);
    let spec = |spec: Value| json!({"spec": spec});
    let path = spec(json!({"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}));
    assert!(cluster(&chain, &ana).send(&path).is_ok());
    for body in [
        spec(json!({})),
        spec(json!({"nonResourceAttributes": {"path": "/"}})),
        spec(json!({"nonResourceAttributes": {"verb": "get"}})),
        spec(json!({
            "nonResourceAttributes": {"path": "/", "verb": "get"},
            "resourceAttributes": {"resource": "pods", "verb": "get"},
        })),
        json!({"metadata": {"name": "x"}, "spec": path["spec"]}),
    ] {
        assert_eq!(cluster(&chain, &ana).refused(&body).0, Fault::Invalid, "{body}");
    }
    let mut narrowed = modern("");
    narrowed["spec"]["resourceAttributes"]["fieldSelector"] = json!({"rawSelector": "a in b"});
    assert_eq!(
        cluster(&chain, &ana).send(&narrowed).unwrap()["status"]["evaluationError"],
        "spec.resourceAttributes.fieldSelector ignored due to parse error"
    );
}
