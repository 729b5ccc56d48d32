//! The fast path and the general path give the same answers.

use access_reviews::{
    PlainSubjectAccessReview, PreparedReview, ReviewKind, ReviewRequest, prepare_review,
};
use authz::{Decision, EvaluationErrors};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

/// The answer of the general path, and the question as text that shows each of its parts.
fn answer_by_general_path(body: &Value, decision: &Decision) -> Option<(Value, String)> {
    let request =
        ReviewRequest { version: "v1", namespace: "", user: None, now: Timestamp::UNIX_EPOCH };
    match prepare_review(ReviewKind::SubjectAccessReview, body, &request).ok()? {
        PreparedReview::Access(review) => {
            let asked = format!("{:?}", review.attributes());
            Some((review.into_response(decision), asked))
        }
        other => panic!("{other:?}"),
    }
}

fn answer_by_fast_path(body: &str, decision: &Decision) -> Option<(Value, String)> {
    let review = PlainSubjectAccessReview::parse(body.as_bytes())?;
    let mut answer = Vec::new();
    review.write_response(decision, &mut answer);
    assert_eq!(answer.last(), Some(&b'\n'));
    Some((serde_json::from_slice(&answer).unwrap(), format!("{:?}", review.attributes())))
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z:/.-]{0,8}",
        1 => "[a-zé<&>€\u{1F600}]{0,4}",
        // The fast path does not accept escapes.
        1 => "[\"\\\\\n\u{7f}a]{0,3}",
    ]
}

fn texts() -> impl Strategy<Value = Value> {
    proptest::collection::vec(text(), 0..3).prop_map(Value::from)
}

fn selector() -> impl Strategy<Value = Value> {
    let operator = proptest::sample::select(vec!["In", "NotIn", "Exists", "DoesNotExist", "x", ""]);
    let requirement = (text(), operator, texts()).prop_map(
        |(key, operator, values)| json!({"key": key, "operator": operator, "values": values}),
    );
    prop_oneof![
        text().prop_map(|raw| json!({"rawSelector": raw})),
        "[a-z]=[a-z]".prop_map(|raw| json!({"rawSelector": raw})),
        proptest::collection::vec(requirement, 0..3).prop_map(|list| json!({"requirements": list})),
    ]
}

fn resource() -> impl Strategy<Value = Value> {
    let parts = ["namespace", "verb", "group", "version", "resource", "subresource", "name"];
    let texts = proptest::collection::vec(proptest::option::of(text()), parts.len());
    let selector = || proptest::option::weighted(0.3, selector());
    (texts, selector(), selector()).prop_map(move |(texts, fields, labels)| {
        let mut found = json!({});
        for (name, text) in parts.iter().zip(texts) {
            if let Some(text) = text {
                found[*name] = text.into();
            }
        }
        for (name, selector) in [("fieldSelector", fields), ("labelSelector", labels)] {
            if let Some(selector) = selector {
                found[name] = selector;
            }
        }
        found
    })
}

fn spec() -> impl Strategy<Value = Value> {
    let path = (text(), text()).prop_map(|(path, verb)| json!({"path": path, "verb": verb}));
    let target = prop_oneof![
        6 => resource().prop_map(|resource| json!({"resourceAttributes": resource})),
        2 => path.prop_map(|path| json!({"nonResourceAttributes": path})),
        1 => Just(json!({})),
    ];
    let extra = proptest::collection::btree_map(text(), texts(), 0..3);
    let subject = (text(), text(), texts(), proptest::option::of(extra));
    (target, subject).prop_map(|(mut spec, (user, uid, groups, extra))| {
        spec["user"] = user.into();
        spec["uid"] = uid.into();
        spec["groups"] = groups;
        if let Some(extra) = extra {
            spec["extra"] = json!(extra);
        }
        spec
    })
}

/// A change that makes a body unusual: a JSON pointer, and the value to put there.
fn unusual_change() -> impl Strategy<Value = (String, Value)> {
    let places = vec![
        "/apiVersion",
        "/kind",
        "/metadata",
        "/metadata/name",
        "/metadata/creationTimestamp",
        "/status",
        "/status/allowed",
        "/status/conditions",
        "/other",
        "/spec",
        "/spec/user",
        "/spec/groups",
        "/spec/group",
        "/spec/extra",
        "/spec/bogus",
        "/spec/resourceAttributes",
        "/spec/resourceAttributes/verb",
        "/spec/resourceAttributes/fieldSelector",
        "/spec/nonResourceAttributes",
        "/spec/nonResourceAttributes/path",
    ];
    let values = vec![
        json!(null),
        json!(1),
        json!("x"),
        json!([]),
        json!({}),
        json!(["a", null]),
        json!({"a": "b"}),
        json!(true),
        json!("authorization.k8s.io/v1beta1"),
        json!([["a"]]),
        json!({"requirements": [["k", "In", ["v"]]]}),
    ];
    (proptest::sample::select(places), proptest::sample::select(values))
        .prop_map(|(place, value)| (place.to_owned(), value))
}

fn put(body: &mut Value, place: &str, value: Value) {
    let mut at = body;
    for step in place.split('/').skip(1) {
        if !at.is_object() {
            return;
        }
        at = &mut at[step];
    }
    *at = value;
}

fn body() -> impl Strategy<Value = Value> {
    let oddities = prop_oneof![
        2 => Just(Vec::new()),
        1 => proptest::collection::vec(unusual_change(), 1..3),
    ];
    (spec(), oddities).prop_map(|(spec, oddities)| {
        let mut body = json!({
            "kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
            "metadata": {}, "spec": spec, "status": {"allowed": false},
        });
        for (place, value) in oddities {
            put(&mut body, &place, value);
        }
        body
    })
}

fn decision() -> impl Strategy<Value = Decision> {
    let error = proptest::option::of("[a-z\"]{1,5}");
    (0..3, "[a-z\"\n]{0,5}", error).prop_map(|(verdict, reason, error)| {
        let decision = match verdict {
            0 => Decision::allow(reason),
            1 => Decision::deny(reason),
            _ => Decision::no_opinion(reason),
        };
        match error {
            Some(error) => decision.with_error(EvaluationErrors::message(error)),
            None => decision,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn fast_and_general_path_agree(body in body(), decision in decision()) {
        let text = body.to_string();
        if let Some(answer_by_fast_path) = answer_by_fast_path(&text, &decision) {
            prop_assert_eq!(Some(answer_by_fast_path), answer_by_general_path(&body, &decision), "{}", text);
        }
    }

    /// The fast path accepts ordinary bodies. Otherwise the comparison above would compare nothing.
    #[test]
    fn ordinary_bodies_take_the_fast_path(spec in spec(), decision in decision()) {
        let body = json!({
            "kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
            "metadata": {"creationTimestamp": null}, "spec": spec, "status": {"allowed": false},
        });
        let text = body.to_string();
        let is_plain = !text.contains('\\');
        let want = answer_by_general_path(&body, &decision).filter(|_| is_plain);
        prop_assert_eq!(answer_by_fast_path(&text, &decision), want, "{}", text);
    }

    /// The general path handles repeated fields, because the decoder warns about them.
    #[test]
    fn repeated_fields_take_the_general_path(spec in spec(), at in 0_usize..4) {
        let body = json!({
            "kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec,
        });
        let (from, to) = [
            ("\"kind\":", "\"kind\":\"\",\"kind\":"),
            ("\"spec\":", "\"spec\":{},\"spec\":"),
            ("\"user\":", "\"user\":\"x\",\"user\":"),
            ("\"spec\":{", "\"spec\":{\"extra\":{\"k\":[],\"k\":[]},"),
        ][at];
        let text = body.to_string().replacen(from, to, 1);
        prop_assert!(text.len() > body.to_string().len());
        prop_assert!(PlainSubjectAccessReview::parse(text.as_bytes()).is_none(), "{}", text);
    }

    #[test]
    fn no_body_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = PlainSubjectAccessReview::parse(&bytes);
    }

    #[test]
    fn no_tree_panics(spec in spec(), oddities in proptest::collection::vec(unusual_change(), 0..4)) {
        let mut body = json!({"spec": spec});
        for (place, value) in oddities {
            put(&mut body, &place, value);
        }
        let now = Timestamp::UNIX_EPOCH;
        for kind in ReviewKind::ALL {
            let request = ReviewRequest { version: kind.served_versions()[0], namespace: "n", user: None, now };
            let _ = prepare_review(kind, &body, &request);
        }
    }
}

#[test]
fn other_kinds_and_versions_take_the_general_path() {
    let body = |kind: &str, version: &str| {
        json!({
            "kind": kind, "apiVersion": version,
            "spec": {"user": "u", "nonResourceAttributes": {"path": "/", "verb": "get"}},
        })
        .to_string()
    };
    let is_quick =
        |kind, version| PlainSubjectAccessReview::parse(body(kind, version).as_bytes()).is_some();
    assert!(is_quick("SubjectAccessReview", "authorization.k8s.io/v1"));
    assert!(!is_quick("SubjectAccessReview", "authorization.k8s.io/v1beta1"));
    assert!(!is_quick("LocalSubjectAccessReview", "authorization.k8s.io/v1"));
    assert!(!is_quick("", ""));
}
