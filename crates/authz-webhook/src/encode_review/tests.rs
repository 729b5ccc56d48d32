use authz::{Namespace, Verb};

use super::*;

fn encoded(attributes: &Attributes<'_>) -> String {
    String::from_utf8(encode_review(attributes, ReviewVersion::V1).to_vec()).unwrap()
}

/// The example request of the conformance rows.
#[test]
fn the_example() {
    let user = User {
        name: "jane".to_owned(),
        uid: "1".to_owned(),
        groups: vec!["g1".to_owned(), "g2".to_owned()],
        ..User::default()
    };
    let resource = Resource {
        api_version: "v1",
        namespace: Namespace::new("ns1"),
        resource: "pods",
        name: "p",
        ..Resource::default()
    };
    let attributes =
        Attributes { user: Some(&user), verb: Verb::GET, target: Target::Resource(resource) };
    let want = concat!(
        r#"{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"#,
        r#""spec":{"resourceAttributes":{"namespace":"ns1","verb":"get","version":"v1","#,
        r#""resource":"pods","name":"p"},"user":"jane","groups":["g1","g2"],"uid":"1"},"#,
        r#""status":{"allowed":false}}"#
    );
    assert_eq!(encoded(&attributes), want);
    let beta = want.replace("/v1\"", "/v1beta1\"").replace("\"groups\"", "\"group\"");
    assert_eq!(encode_review(&attributes, ReviewVersion::V1beta1), beta);
}

#[test]
fn everything_in_its_order() {
    let user = User {
        name: "n".to_owned(),
        uid: "u".to_owned(),
        groups: vec!["g".to_owned()],
        extra: [("b".to_owned(), vec![]), ("a".to_owned(), vec!["2".to_owned(), "1".to_owned()])]
            .into(),
    };
    let fields = authz::Selector::from_selector_parse_result(authz::parse_field_selector("f=1"));
    let labels =
        authz::Selector::from_selector_parse_result(authz::parse_label_selector("!l,m in (y,x)"));
    let resource = Resource {
        path: "/not/sent",
        api_group: "G",
        api_version: "V",
        namespace: Namespace::new("N"),
        resource: "R",
        subresource: "S",
        name: "M",
        field_selector: fields.as_ref(),
        label_selector: labels.as_ref(),
    };
    let attributes =
        Attributes { user: Some(&user), verb: Verb::LIST, target: Target::Resource(resource) };
    let want = concat!(
        r#"{"resourceAttributes":{"namespace":"N","verb":"list","group":"G","version":"V","#,
        r#""resource":"R","subresource":"S","name":"M","#,
        r#""fieldSelector":{"requirements":[{"key":"f","operator":"In","values":["1"]}]},"#,
        r#""labelSelector":{"requirements":[{"key":"l","operator":"DoesNotExist"},"#,
        r#"{"key":"m","operator":"In","values":["x","y"]}]}},"#,
        r#""user":"n","groups":["g"],"extra":{"a":["2","1"],"b":[]},"uid":"u"}"#
    );
    let body = encoded(&attributes);
    let spec = body.split_once("\"spec\":").unwrap().1;
    assert_eq!(spec, format!("{want},\"status\":{{\"allowed\":false}}}}"));
}

#[test]
fn texts_are_escaped_as_go_does() {
    for (text, want) in [
        ("plain é \u{1f600} {[:", "plain é \u{1f600} {[:"),
        ("\"\\/", r#"\"\\/"#),
        ("<a>&", r"\u003ca\u003e\u0026"),
        ("\u{2028}\u{2029}", r"\u2028\u2029"),
        ("\u{8}\u{c}\n\r\t", r"\b\f\n\r\t"),
        ("\0\u{1f}\u{7f}", "\\u0000\\u001f\u{7f}"),
    ] {
        let mut json = JsonWriter(String::new());
        json.write_string(text);
        assert_eq!(json.0, format!("\"{want}\""));
        let back: String = serde_json::from_str(&json.0).unwrap();
        assert_eq!(back, text);
    }
}

/// A text that looks like a part of the document does not move a comma.
#[test]
fn commas_do_not_depend_on_texts() {
    let user = User {
        name: "{".to_owned(),
        groups: vec!["[".to_owned(), ":".to_owned(), String::new()],
        ..User::default()
    };
    let attributes =
        Attributes { user: Some(&user), verb: Verb::new("get{"), target: Target::Path("/[") };
    let body: serde_json::Value = serde_json::from_str(&encoded(&attributes)).unwrap();
    assert_eq!(body["spec"]["groups"], serde_json::json!(["[", ":", ""]));
    assert_eq!(body["spec"]["user"], "{");
}
