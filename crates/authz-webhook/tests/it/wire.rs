//! The review that is sent, byte for byte.

use std::collections::BTreeMap;

use authz::{
    Attributes, FieldRequirement, LabelRequirement, Namespace, Resource, Selector, SelectorError,
    Target, User, Verb, parse_field_selector, parse_label_selector,
};
use authz_webhook::{ReviewVersion, WebhookLimits, WebhookSettings};
use serde_json::{Value, json};

use crate::peer::{ALLOW, Scene, named, says, settings};

async fn sent(version: ReviewVersion, attributes: &Attributes<'_>) -> Value {
    let settings = WebhookSettings { subject_access_review_version: version, ..settings() };
    let scene = Scene::with(settings, WebhookLimits::default(), [says(ALLOW)]);
    let _ = scene.ask(attributes).await;
    let [body] = &scene.peer.bodies()[..] else { panic!("not one call") };
    body.clone()
}

async fn spec(attributes: &Attributes<'_>) -> Value {
    let body = sent(ReviewVersion::V1, attributes).await;
    assert_eq!(body["kind"], "SubjectAccessReview");
    assert_eq!(body["apiVersion"], "authorization.k8s.io/v1");
    assert_eq!((&body["metadata"], &body["status"]), (&json!({}), &json!({"allowed": false})));
    body["spec"].clone()
}

fn jane() -> User {
    User {
        name: "jane".to_owned(),
        uid: "1".to_owned(),
        groups: vec!["g2".to_owned(), "g1".to_owned()],
        extra: BTreeMap::from([("k".to_owned(), vec!["b".to_owned(), "a".to_owned()])]),
    }
}

fn full<'a>(user: &'a User) -> Attributes<'a> {
    let resource = Resource {
        path: "/foo",
        api_group: "group3",
        api_version: "v7beta3",
        namespace: Namespace::new("kittensandponies"),
        resource: "pods",
        subresource: "proxy",
        name: "my-pod",
        ..Resource::default()
    };
    Attributes { user: Some(user), verb: Verb::new("GET"), target: Target::Resource(resource) }
}

#[tokio::test]
async fn paths() {
    let nobody = User::default();
    let bare = Attributes { user: Some(&nobody), verb: Verb::new(""), target: Target::Path("") };
    let empty = json!({"nonResourceAttributes": {}});
    assert_eq!(spec(&bare).await, empty);
    assert_eq!(spec(&Attributes { user: None, ..bare }).await, empty);
    let jane = named("jane");
    let with_user = json!({"nonResourceAttributes": {}, "user": "jane"});
    assert_eq!(spec(&Attributes { user: Some(&jane), ..bare }).await, with_user);
}

#[tokio::test]
async fn resources_in_both_versions() {
    let jane = jane();
    let resource = json!({
        "namespace": "kittensandponies", "verb": "GET", "group": "group3", "version": "v7beta3",
        "resource": "pods", "subresource": "proxy", "name": "my-pod",
    });
    let v1 = json!({
        "resourceAttributes": resource, "user": "jane", "uid": "1", "groups": ["g2", "g1"],
        "extra": {"k": ["b", "a"]},
    });
    assert_eq!(spec(&full(&jane)).await, v1);
    let beta = sent(ReviewVersion::V1beta1, &full(&jane)).await;
    let v1beta1 = json!({
        "resourceAttributes": resource, "user": "jane", "uid": "1", "group": ["g2", "g1"],
        "extra": {"k": ["b", "a"]},
    });
    assert_eq!(beta["spec"], v1beta1);
    assert_eq!(beta["apiVersion"], "authorization.k8s.io/v1beta1");
}

async fn selectors(
    field: Option<Selector<FieldRequirement>>,
    label: Option<Selector<LabelRequirement>>,
) -> Value {
    let resource = Resource {
        field_selector: field.as_ref(),
        label_selector: label.as_ref(),
        ..Resource::default()
    };
    let attributes =
        Attributes { user: None, verb: Verb::LIST, target: Target::Resource(resource) };
    let mut resource = spec(&attributes).await["resourceAttributes"].clone();
    assert_eq!(resource.as_object_mut().unwrap().remove("verb"), Some(json!("list")));
    resource
}

fn fields(text: &str) -> Option<Selector<FieldRequirement>> {
    Selector::from_selector_parse_result(parse_field_selector(text))
}

fn labels(text: &str) -> Option<Selector<LabelRequirement>> {
    Selector::from_selector_parse_result(parse_label_selector(text))
}

fn requirement(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({"key": key, "operator": operator, "values": values})
}

#[tokio::test]
async fn field_selectors() {
    let want = json!({"fieldSelector": {"requirements": [
        requirement("foo", "In", &["bar"]), requirement("one", "In", &["two"]),
    ]}});
    assert_eq!(selectors(fields("foo=bar,one==two"), None).await, want);
    let want = json!({"fieldSelector": {"requirements": [requirement("foo", "NotIn", &["bar"])]}});
    assert_eq!(selectors(fields("foo!=bar"), None).await, want);
    assert_eq!(selectors(fields("no operator"), None).await, json!({}));
}

#[tokio::test]
async fn label_selectors() {
    let want = json!({"labelSelector": {"requirements": [requirement("foo", "In", &["bar"])]}});
    assert_eq!(selectors(None, labels("foo=bar,apple>1")).await, want);
    assert_eq!(selectors(None, labels("apple>1")).await, json!({}));
    let want = json!({"labelSelector": {"requirements": [
        requirement("apple", "In", &["banana"]),
        requirement("foo", "In", &["bar", "baz"]),
        requirement("one", "In", &["two"]),
    ]}});
    let selector = labels("foo in (bar,baz), one=two, apple==banana");
    assert_eq!(selectors(None, selector).await, want);
    let want = json!({"labelSelector": {"requirements": [
        {"key": "foo", "operator": "Exists"}, {"key": "one", "operator": "DoesNotExist"},
    ]}});
    assert_eq!(selectors(None, labels("foo, !one")).await, want);
}

#[tokio::test]
async fn requirements_beside_an_error_are_sent_in_the_order_given() {
    let mut known = labels("z=1").unwrap();
    known.requirements.extend(labels("a=2").unwrap().requirements);
    known.error = Some(SelectorError::new("not all of it is understood"));
    let want = json!({"labelSelector": {"requirements": [
        requirement("z", "In", &["1"]), requirement("a", "In", &["2"]),
    ]}});
    assert_eq!(selectors(None, Some(known)).await, want);
}

#[tokio::test]
async fn parsed_selectors_are_sorted() {
    let fields = fields("spec.nodeName=mynode,metadata.name!=b,metadata.name!=a");
    let labels = labels("testselector in (b,a),allow=true");
    let want = json!({
        "fieldSelector": {"requirements": [
            requirement("metadata.name", "NotIn", &["a"]),
            requirement("metadata.name", "NotIn", &["b"]),
            requirement("spec.nodeName", "In", &["mynode"]),
        ]},
        "labelSelector": {"requirements": [
            requirement("allow", "In", &["true"]),
            requirement("testselector", "In", &["a", "b"]),
        ]},
    });
    assert_eq!(selectors(fields, labels).await, want);
}
