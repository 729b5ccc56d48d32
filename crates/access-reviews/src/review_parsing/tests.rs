use authz::{EvaluationErrors, Namespace, Target, Verb};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::review_line::{read_line_with_positions, read_plain_review_line};
use super::*;

fn read(line: &str) -> Result<AccessQuestion<'_>, Vec<String>> {
    let read = read_review_line("f", 1, line);
    let is_quick = read_plain_review_line(line).is_some();
    assert!(!is_quick || read.is_ok(), "{line}");
    read.map_err(|faults| {
        let show = |fault: &document::Diagnostic| {
            let hint = fault.hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("{}: {}{hint}", fault.position.column, fault.fault)
        };
        faults.iter().map(show).collect()
    })
}

#[track_caller]
fn accepted(line: &Value) -> AccessQuestion<'static> {
    read(&line.to_string()).unwrap().into_owned()
}

#[track_caller]
fn refused(line: &str, want: &[&str]) {
    assert_eq!(read(line).unwrap_err(), want, "{line}");
}

/// A spec about pods with a selector under this name.
fn with_selector(name: &str, selector: Value) -> Value {
    let mut spec = json!({"user": "u", "resourceAttributes": {"verb": "list", "resource": "pods"}});
    spec["resourceAttributes"][name] = selector;
    spec
}

/// The requirements of the parsed selectors, and the evaluation error about the others.
fn selectors(spec: &Value) -> (Vec<String>, Option<String>) {
    let question = accepted(spec);
    let attributes = question.attributes();
    let resource = attributes.resource().unwrap();
    let fields = resource.field_requirements().iter().map(ToString::to_string);
    let labels = resource.label_requirements().iter().map(ToString::to_string);
    (fields.chain(labels).collect(), question.evaluation_error(None))
}

#[test]
fn a_spec_becomes_attributes() {
    let question = accepted(&json!({
        "user": "ana", "uid": "7", "groups": ["dev", "dev"], "extra": {"k": ["v", "w"], "n": []},
        "resourceAttributes": {
            "namespace": "prod", "verb": "get", "group": "apps", "version": "v1",
            "resource": "deployments", "subresource": "scale", "name": "web",
        },
    }));
    let attributes = question.attributes();
    let user = attributes.user.unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("ana", "7"));
    assert_eq!(user.groups, ["dev", "dev"]);
    assert_eq!(user.extra["k"], ["v", "w"]);
    assert!(user.extra["n"].is_empty());
    let Target::Resource(of) = attributes.target else { panic!("a resource") };
    assert_eq!(
        (attributes.verb, of.namespace, of.api_group),
        (Verb::GET, Namespace::new("prod"), "apps")
    );
    assert_eq!((of.api_version, of.resource), ("v1", "deployments"));
    assert_eq!((of.subresource, of.name, of.path), ("scale", "web", ""));
}

/// Both readers accept the same specs, with `groups` in v1 and `group` in v1beta1.
#[test]
fn bare_specs_and_whole_reviews_are_read() {
    let spec = json!({"groups": ["g"], "resourceAttributes": {"verb": "get", "resource": "pods"}});
    let question = accepted(&spec);
    assert_eq!(question.user.groups, ["g"], "none is added");
    assert_eq!(question.attributes().resource().unwrap().api_version, "*");
    let whole = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec,
        "metadata": {"creationTimestamp": null}, "status": {"allowed": true},
    });
    assert_eq!(accepted(&whole), question);
    let mut other = whole.clone();
    other["metadata"] = json!({
        "namespace": "n", "managedFields": [{"manager": "m"}], "labels": {}, "name": "",
    });
    assert_eq!(accepted(&other), question);
    let mut old = whole;
    old["apiVersion"] = "authorization.k8s.io/v1beta1".into();
    old["spec"]["group"] = old["spec"]["groups"].take();
    if let Some(spec) = old["spec"].as_object_mut() {
        spec.remove("groups");
    }
    assert_eq!(accepted(&old), question);
    assert_eq!(accepted(&old["spec"]), question);
}

/// A selector keeps the requirements that parse and reports the others.
#[test]
fn valid_requirements_of_a_selector_are_kept() {
    let field = |selector| selectors(&with_selector("fieldSelector", selector));
    let label = |selector| selectors(&with_selector("labelSelector", selector));
    let raw = |text: &str| json!({"rawSelector": text});
    let list = |requirements: Value| json!({"requirements": requirements});
    let one = |key: &str, operator: &str, values: &[&str]| {
        list(json!([{"key": key, "operator": operator, "values": values}]))
    };
    let ignored =
        |name: &str| Some(format!("spec.resourceAttributes.{name} ignored due to parse error"));
    let none = Vec::<String>::new;
    assert_eq!(field(raw("foo=bar")), (vec!["foo=bar".to_owned()], None));
    assert_eq!(label(raw("key=value")), (vec!["key=value".to_owned()], None));
    assert_eq!(field(raw("key in value")), (none(), ignored("fieldSelector")));
    assert_eq!(label(raw("&")), (none(), ignored("labelSelector")));
    assert_eq!(field(one("one", "In", &["apple"])), (vec!["one=apple".to_owned()], None));
    assert_eq!(field(one("two", "NotIn", &["fig"])), (vec!["two!=fig".to_owned()], None));
    for bad in [
        one("a", "In", &["a", "b"]),
        one("a", "Exists", &[]),
        one("a", "DoesNotExist", &[]),
        one("a", "bad", &["x"]),
    ] {
        assert_eq!(field(bad.clone()), (none(), ignored("fieldSelector")), "{bad}");
    }
    let mixed = list(json!([
        {"key": "a", "operator": "In", "values": ["b"]}, {"key": "b", "operator": "fake"},
    ]));
    let partially = "spec.resourceAttributes.labelSelector partially ignored due to parse error";
    assert_eq!(label(mixed), (vec!["a in (b)".to_owned()], Some(partially.to_owned())));
    for (operator, values, want) in [
        ("In", &["z", "a"][..], "k in (z,a)"),
        ("NotIn", &["a"], "k notin (a)"),
        ("Exists", &[], "k"),
        ("DoesNotExist", &[], "!k"),
    ] {
        assert_eq!(label(one("k", operator, values)), (vec![want.to_owned()], None));
    }
}

/// The error of the authorizer comes first, then field selectors, then label selectors.
#[test]
fn parts_of_evaluation_errors_are_joined() {
    let mut spec = with_selector("fieldSelector", json!({"rawSelector": "key in value"}));
    spec["resourceAttributes"]["labelSelector"] = json!({"rawSelector": "&"});
    let failure = EvaluationErrors::message("boom");
    assert_eq!(
        accepted(&spec).evaluation_error(Some(&failure)).unwrap(),
        "boom; spec.resourceAttributes.fieldSelector ignored due to parse error; \
         spec.resourceAttributes.labelSelector ignored due to parse error"
    );
    let path = json!({"user": "u", "nonResourceAttributes": {"path": "/", "verb": "get"}});
    assert_eq!(accepted(&path).evaluation_error(None), None);
}

/// Invalid specs have the messages of Kubernetes.
#[test]
fn validation_messages_match_kubernetes() {
    let exactly_one = "spec: Invalid value: null: exactly one of nonResourceAttributes or \
                       resourceAttributes must be specified";
    let somebody =
        "spec.user: Invalid value: \"\": at least one of user or group must be specified";
    refused("{}", &[&format!("1: {exactly_one}"), &format!("1: {somebody}")]);
    refused(
        r#"{"user":"u","resourceAttributes":{},"nonResourceAttributes":{"path":"/"}}"#,
        &[&format!("1: {}", exactly_one.replace("null", r#"{"Path":"/","Verb":""}"#))],
    );
    refused(r#"{"user":"","resourceAttributes":{"verb":"get"}}"#, &[&format!("9: {somebody}")]);
    let whole = |metadata: &str, spec: &str| {
        format!(
            r#"{{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview",{metadata}"spec":{spec}}}"#
        )
    };
    refused(&whole("", r#"{"user":"u"}"#), &[&format!("77: {exactly_one}")]);
    refused(
        &whole(r#""metadata":{"name":"x"},"#, "{}"),
        &[r#"82: metadata: Invalid value: {"name":"x"}: must be empty"#],
    );
    let at = "spec.resourceAttributes.fieldSelector";
    for (selector, column, want) in [
        (
            r#"{"rawSelector":"a=b","requirements":[{"key":"a","operator":"Exists"}]}"#,
            66,
            format!(
                "{at}.rawSelector: Invalid value: \"a=b\": may not specified at the same time as \
                 requirements"
            ),
        ),
        (
            "{}",
            51,
            format!(
                "{at}.requirements: Required value: when {at} is specified, requirements or \
                 rawSelector is required"
            ),
        ),
        (
            r#"{"requirements":[{"operator":"In","values":["b"]}]}"#,
            68,
            format!("{at}.requirements[0].key: Required value: must be specified"),
        ),
        (
            r#"{"requirements":[{"key":"a","operator":"In"}]}"#,
            68,
            format!(
                "{at}.requirements[0].values: Required value: must be specified when `operator` \
                 is 'In' or 'NotIn'"
            ),
        ),
        (
            r#"{"requirements":[{"key":"a","operator":"Exists","values":["x"]}]}"#,
            108,
            format!(
                "{at}.requirements[0].values: Forbidden: may not be specified when `operator` is \
                 'Exists' or 'DoesNotExist'"
            ),
        ),
    ] {
        let line = format!(r#"{{"user":"u","resourceAttributes":{{"fieldSelector":{selector}}}}}"#);
        refused(&line, &[&format!("{column}: {want}")]);
    }
    let key = json!({"requirements": [{"key": "bad key!", "operator": "In", "values": ["b c"]}]});
    let faults = read(&with_selector("labelSelector", key).to_string()).unwrap_err();
    assert!(faults[0].contains("requirements[0].key: Invalid value: \"bad key!\": name part"));
    assert!(faults[1].contains("requirements[0].values[0]: Invalid value: \"b c\": a valid label"));
}

#[test]
fn malformed_reviews_are_reported_with_positions() {
    refused("", &["1: unexpected end of JSON input"]);
    refused("[1]", &["1: a review is a JSON object, this is of type array"]);
    refused(r#"{"user":"u","#, &["13: unexpected end of JSON input"]);
    refused(
        r#"{"user":"u","resourceAttributes":{"namespce":"x"}}"#,
        &["35: unknown field \"resourceAttributes.namespce\" (did you mean `namespace`?)"],
    );
    refused(
        r#"{"user":"u","resourceAttributes":["n","get","","","pods","","",null,null]}"#,
        &["34: json: cannot unmarshal array into Go struct field \
           SubjectAccessReviewSpec.resourceAttributes of type v1.ResourceAttributes"],
    );
    refused(
        r#"{"user":5,"groups":"g","extra":{"k":"v"},"uid":null}"#,
        &[
            "9: json: cannot unmarshal number into Go struct field SubjectAccessReviewSpec.user \
             of type string",
            "20: json: cannot unmarshal string into Go struct field \
             SubjectAccessReviewSpec.groups of type []string",
            "37: json: cannot unmarshal string into Go struct field \
             SubjectAccessReviewSpec.extra of type v1.ExtraValue",
        ],
    );
    refused(r#"{"user":"a","user":"b"}"#, &["13: duplicate field \"user\""]);
    refused(
        r#"{"groups":[],"group":[]}"#,
        &["14: `groups` and `group` are two names of one list (`groups` is its name in v1, \
           `group` in v1beta1)"],
    );
    refused(
        r#"{"spec":{}}"#,
        &[
            "1: `kind` is missing, it must be `SubjectAccessReview` (a line is a review with \
             apiVersion and kind, or a spec alone)",
            "1: `apiVersion` is missing, it must be `authorization.k8s.io/v1` (a line is a review \
             with apiVersion and kind, or a spec alone)",
        ],
    );
    refused(
        r#"{"apiVersion":"v2","kind":"Pod","spec":[]}"#,
        &[
            "27: unknown kind `Pod`, it must be `SubjectAccessReview`",
            "15: unknown apiVersion `v2` (known are `authorization.k8s.io/v1` and \
             `authorization.k8s.io/v1beta1`)",
            "40: json: cannot unmarshal array into Go struct field SubjectAccessReview.spec of \
             type v1.SubjectAccessReviewSpec",
        ],
    );
    let old = r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"group":[]}}"#;
    refused(old, &["78: unknown field \"spec.group\" (did you mean `groups`?)"]);
}

#[test]
fn lines_that_the_fast_reader_refuses_are_still_read() {
    for line in [
        r#"{"user":"\u0061na","nonResourceAttributes":{"path":"/","verb":"get"}}"#,
        r#"{"user":"ana","groups":null,"extra":null,"resourceAttributes":null,"nonResourceAttributes":{"path":"/","verb":"get"}}"#,
    ] {
        assert!(read_plain_review_line(line).is_none(), "{line}");
        assert_eq!(read(line).unwrap().user.name, "ana");
    }
}

#[test]
fn long_lines_are_refused() {
    let line = |n: usize| {
        let spec = r#"{"nonResourceAttributes":{"path":"/","verb":"get"},"user":""#;
        format!("{spec}{}\"}}", "a".repeat(n - spec.len() - 2))
    };
    assert!(read(&line(LINE_BYTES_MAX)).is_ok());
    refused(&line(LINE_BYTES_MAX + 1), &["1: the line is longer than 1048576 bytes"]);
}

proptest! {
    /// The fast reader and the reader with positions agree on every line that the fast one accepts.
    #[test]
    fn both_readers_agree(line in lines()) {
        if let Some(question) = read_plain_review_line(&line) {
            let other = read_line_with_positions(&line).map_err(|_| "refused");
            prop_assert_eq!(Ok(question), other);
        }
    }

    #[test]
    fn no_line_panics(line in ".{0,60}") {
        let _ = read_review_line("f", 1, &line);
    }
}

/// The JSON pointers of the parts of a review that the strategy replaces.
const PARTS: &[&str] = &[
    "",
    "/apiVersion",
    "/kind",
    "/metadata",
    "/spec",
    "/spec/user",
    "/spec/uid",
    "/spec/groups",
    "/spec/groups/0",
    "/spec/extra",
    "/spec/extra/k",
    "/spec/resourceAttributes",
    "/spec/resourceAttributes/verb",
    "/spec/resourceAttributes/fieldSelector",
    "/spec/resourceAttributes/labelSelector",
    "/spec/resourceAttributes/labelSelector/requirements",
    "/spec/resourceAttributes/labelSelector/requirements/0",
    "/spec/resourceAttributes/labelSelector/requirements/0/values",
];

/// Reviews and specs in which one or two parts have an unexpected value.
fn lines() -> impl Strategy<Value = String> {
    let other = prop_oneof![
        Just(Value::Null),
        Just(json!(5)),
        Just(json!([])),
        Just(json!({})),
        Just(json!(["a", "b"])),
        Just(json!([{"key": "a"}])),
        Just(json!({"user": "u"})),
        Just(json!({"path": "/", "verb": "get"})),
        Just(json!(["n", "get", "g", "v", "r", "s", "x", null, null])),
        "[a-z\\\\\"*&= ]{0,4}".prop_map(Value::from),
    ];
    let change = (proptest::sample::select(PARTS), other);
    (proptest::collection::vec(change, 0..3), any::<bool>()).prop_map(|(changes, is_bare)| {
        let mut review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "metadata": {},
            "spec": {
                "user": "u", "uid": "1", "groups": ["g"], "extra": {"k": ["v"]},
                "resourceAttributes": {
                    "verb": "get",
                    "fieldSelector": {"rawSelector": "a=b"},
                    "labelSelector": {
                        "requirements": [{"key": "a", "operator": "In", "values": ["b"]}],
                    },
                },
            },
        });
        for (part, other) in changes {
            if let Some(part) = review.pointer_mut(part) {
                *part = other;
            }
        }
        if is_bare { review["spec"].to_string() } else { review.to_string() }
    })
}
