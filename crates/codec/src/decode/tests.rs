//! Decoding of request bodies: strictness, limits and messages.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const CONFIG_MAP: ExpectedKind<'_> =
    ExpectedKind { group: "", version: "v1", kind: "ConfigMap", is_custom_resource: false };
const ROLE: ExpectedKind<'_> = ExpectedKind {
    group: "rbac.authorization.k8s.io",
    version: "v1",
    kind: "Role",
    is_custom_resource: false,
};
const WIDGET: ExpectedKind<'_> =
    ExpectedKind { group: "example.com", version: "v1", kind: "Widget", is_custom_resource: true };

fn decode(body: &str, expected: &ExpectedKind<'_>) -> Result<Value, DecodeError> {
    decode_object(body.as_bytes(), RequestBodyFormat::Json, expected)
        .map(|decoded| Value::Object(decoded.object_tree))
}

fn findings(body: &str, expected: &ExpectedKind<'_>) -> Vec<String> {
    let decoded = decode_object(body.as_bytes(), RequestBodyFormat::Json, expected).unwrap();
    decoded.strict_findings.iter().map(StrictFinding::to_string).collect()
}

#[test]
fn built_in_kinds_may_omit_kind_and_version() {
    let want = json!({"metadata": {"name": "nk"}, "apiVersion": "v1", "kind": "ConfigMap"});
    assert_eq!(decode(r#"{"metadata":{"name":"nk"}}"#, &CONFIG_MAP), Ok(want.clone()));
    let nulls = r#"{"kind":null,"apiVersion":"","metadata":{"name":"nk"}}"#;
    assert_eq!(decode(nulls, &CONFIG_MAP), Ok(want));
}

#[test]
fn malformed_json_is_unrecognized() {
    for (body, end) in [
        ("{not json", "({not json)"),
        ("", "(<empty>)"),
        ("[]", "(5b5d)"),
        (r#"{"a":"0123456789012345678901234567"}"#, r#"({"a":"012345678901234567890123 ...)"#),
        (
            "\"0123456789012345678901234567890\"",
            "(223031323334353637383930313233343536373839303132333435363738 ...)",
        ),
    ] {
        let expected = if body.starts_with("{\"a") { &WIDGET } else { &CONFIG_MAP };
        let message = decode(body, expected).unwrap_err().to_string();
        let start =
            format!("the object provided is unrecognized (must be of type {}): ", expected.kind);
        assert!(message.starts_with(&start), "{message}");
        assert!(message.ends_with(end), "{message}");
    }
    let message = decode("{not json", &CONFIG_MAP).unwrap_err().to_string();
    assert!(message.contains("couldn't get version/kind; json parse error: "));
    let message = decode(r#"{"kind":1}"#, &CONFIG_MAP).unwrap_err().to_string();
    assert!(message.contains("couldn't get version/kind; json parse error: "));
}

#[test]
fn kind_and_version_must_be_those_of_the_endpoint() {
    let message =
        decode(r#"{"kind":"Secret","apiVersion":"v1"}"#, &CONFIG_MAP).unwrap_err().to_string();
    let start = "Secret in version \"v1\" cannot be handled as a ConfigMap: ";
    assert!(message.starts_with(start), "{message}");
    let body = r#"{"kind":"Widget","apiVersion":"example.com/v2"}"#;
    let want = "the API version in the data (example.com/v2) does not match the expected API \
                version (example.com/v1)";
    assert_eq!(decode(body, &WIDGET).unwrap_err().to_string(), want);
    let body = r#"{"kind":"Gadget","apiVersion":"example.com/v1","metadata":{"name":"a"}}"#;
    let want =
        "Widget.example.com \"a\" is invalid: kind: Invalid value: \"Gadget\": must be Widget";
    assert_eq!(decode(body, &WIDGET).unwrap_err().to_string(), want);
    let body = r#"{"apiVersion":"x"}"#;
    let want = "the object provided is unrecognized (must be of type Widget): Object 'Kind' is \
                missing in '{\"apiVersion\":\"x\"}' ({\"apiVersion\":\"x\"})";
    assert_eq!(decode(body, &WIDGET).unwrap_err().to_string(), want);
}

#[test]
fn strict_findings_are_duplicates_and_unknown_fields() {
    let body = r#"{"metadata":{"name":"a"},"data":{"a":"1","a":"2"}}"#;
    assert_eq!(findings(body, &CONFIG_MAP), ["duplicate field \"data.a\""]);
    assert_eq!(decode(body, &CONFIG_MAP).unwrap()["data"], json!({"a": "2"}));
    let body = r#"{"foo":1,"rules":[{"foo":1,"foo":2}],"metadata":{"name":"a","name":"a"}}"#;
    assert_eq!(
        findings(body, &ROLE),
        [
            "unknown field \"foo\"",
            "unknown field \"rules[0].foo\"",
            "duplicate field \"rules[0].foo\"",
            "duplicate field \"metadata.name\"",
        ]
    );
    let body = r#"{"kind":"Widget","apiVersion":"example.com/v1","spec":{"x":1,"x":2}}"#;
    assert_eq!(findings(body, &WIDGET), ["duplicate field \"spec.x\""]);
}

const fn configuration(version: &'static str, kind: &'static str) -> ExpectedKind<'static> {
    ExpectedKind { group: "admissionregistration.k8s.io", version, kind, is_custom_resource: false }
}

#[test]
fn configuration_fields_are_known_in_all_versions() {
    let initializers = configuration("v1alpha1", "InitializerConfiguration");
    let hooks = configuration("v1alpha1", "ExternalAdmissionHookConfiguration");
    let webhooks = configuration("v1", "ValidatingWebhookConfiguration");
    for (expected, body, want) in [
        (
            initializers,
            r#"{"initializers":[{"name":"a.b.c","rules":[{"apiGroups":[""],"apiVersions":["v1"],
            "resources":["pods"]}],"failurePolicy":"Ignore","orderingMode":"Graph","before":["x"],
            "after":["y"]}]}"#,
            vec![],
        ),
        (
            initializers,
            r#"{"spec":{},"initializers":[{"rules":[{"verbs":["*"]}],"timeoutSeconds":1}]}"#,
            vec!["spec", "initializers[0].rules[0].verbs", "initializers[0].timeoutSeconds"],
        ),
        (
            hooks,
            r#"{"externalAdmissionHooks":[{"name":"a.b.c","clientConfig":{"service":{"namespace":
            "n","name":"s"},"caBundle":"","urlPath":"/"},"rules":[{"verbs":["*"],"operations":["*"],
            "apiGroups":["*"],"apiVersions":["*"],"resources":["*"]}],"failurePolicy":"Fail"}]}"#,
            vec![],
        ),
        (
            hooks,
            r#"{"externalAdmissionHooks":[{"clientConfig":{"url":"x"},"sideEffects":"None"}]}"#,
            vec![
                "externalAdmissionHooks[0].clientConfig.url",
                "externalAdmissionHooks[0].sideEffects",
            ],
        ),
        (
            webhooks,
            r#"{"webhooks":[{"matchPolcy":"Exact","reinvocationPolicy":"Never"}]}"#,
            vec!["webhooks[0].matchPolcy", "webhooks[0].reinvocationPolicy"],
        ),
    ] {
        let want: Vec<String> = want.iter().map(|at| format!("unknown field \"{at}\"")).collect();
        assert_eq!(findings(body, &expected), want, "{body}");
    }
    for (expected, body, want) in [
        (initializers, r#"{"initializers":{}}"#, "object into field initializers of type array"),
        (
            hooks,
            r#"{"externalAdmissionHooks":[{"clientConfig":{"caBundle":"*"}}]}"#,
            "string into field externalAdmissionHooks[0].clientConfig.caBundle of type base64 string",
        ),
        (
            webhooks,
            r#"{"webhooks":[{"timeoutSeconds":"10"}]}"#,
            "string into field webhooks[0].timeoutSeconds of type int32",
        ),
    ] {
        let ExpectedKind { kind, version, .. } = expected;
        let want = format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: json: cannot unmarshal \
             {want}"
        );
        assert_eq!(decode(body, &expected).unwrap_err().to_string(), want);
    }
}

#[test]
fn wrong_types_are_refused() {
    let message = decode(r#"{"data":{"a":1}}"#, &CONFIG_MAP).unwrap_err().to_string();
    let start =
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal";
    assert!(message.starts_with(start), "{message}");
}

#[test]
fn patched_objects_are_conformed_to_their_kind() {
    let conform = |body: Value, expected: &ExpectedKind<'_>| {
        let mut tree = body.as_object().unwrap().clone();
        let findings = conform_object(&mut tree, expected).map_err(|error| error.to_string())?;
        let findings: Vec<String> = findings.iter().map(StrictFinding::to_string).collect();
        Ok::<_, String>((Value::Object(tree), findings))
    };
    let patched = json!({"kind": "Role", "metadata": {"name": "r"}, "foo": 1});
    let want = json!({"kind": "Role", "metadata": {"name": "r"}});
    assert_eq!(conform(patched, &ROLE), Ok((want, vec!["unknown field \"foo\"".to_owned()])));
    let patched = json!({"kind": "Widget", "metadata": {"name": "w"}, "foo": 1});
    assert_eq!(conform(patched.clone(), &WIDGET), Ok((patched, Vec::new())));
    for (patched, expected) in [
        (json!({"metadata": "x"}), &WIDGET),
        (json!({"metadata": {"labels": 5}}), &CONFIG_MAP),
        (json!({"data": {"k": 5}}), &CONFIG_MAP),
    ] {
        let error = conform(patched, expected).unwrap_err();
        assert!(error.starts_with("json: cannot unmarshal"), "{error}");
    }
}

#[test]
fn yaml_is_read_like_json() {
    let body = b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: m}\ndata:\n  a: v\n  a: w\n";
    let decoded = decode_object(body, RequestBodyFormat::Yaml, &CONFIG_MAP).unwrap();
    assert_eq!(decoded.strict_findings, [StrictFinding::DuplicateField("data.a".to_owned())]);
    assert_eq!(decoded.object_tree["data"], json!({"a": "w"}));
    for body in [&b"a: b: c"[..], b"", b"- a"] {
        let error = decode_object(body, RequestBodyFormat::Yaml, &CONFIG_MAP).unwrap_err();
        assert!(error.to_string().starts_with("the object provided is unrecognized"), "{error}");
    }
}

#[test]
fn protobuf_is_read_for_kinds_with_a_table() {
    let body = b"k8s\0\x0a\x08\x0a\x02v1\x12\x02Xx\x12\x00";
    let error = decode_object(body, RequestBodyFormat::Protobuf, &CONFIG_MAP).unwrap_err();
    assert!(error.to_string().starts_with("Xx in version \"v1\" cannot be handled as a ConfigMap"));
    let error = decode_object(body, RequestBodyFormat::Protobuf, &WIDGET).unwrap_err();
    assert!(error.to_string().ends_with("include: application/json, application/yaml"));
    let error =
        decode_object(b"k8s\0garbage", RequestBodyFormat::Protobuf, &CONFIG_MAP).unwrap_err();
    let start = "the object provided is unrecognized (must be of type ConfigMap): ";
    assert!(error.to_string().starts_with(start), "{error}");
    assert!(error.to_string().ends_with("(6b38730067617262616765)"), "{error}");
}

#[test]
fn delete_options_have_any_version() {
    let body = b"k8s\0\x0a\x2f\x0a\x1crbac.authorization.k8s.io/v1\x12\x0dDeleteOptions\
                 \x12\x07\x08\x00\x12\x03\x0a\x01u";
    let mut body = body.to_vec();
    body[5] = 2 + 28 + 2 + 13;
    let want = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "DeleteOptions",
        "gracePeriodSeconds": 0, "preconditions": {"uid": "u"},
    });
    let options = decode_delete_options(&body, RequestBodyFormat::Protobuf);
    assert_eq!(options.map(Value::Object), Ok(want));
    let json = br#"{"kind":"DeleteOptions","apiVersion":"apps/v1","odd":1,"dryRun":["All"]}"#;
    let options = decode_delete_options(json, RequestBodyFormat::Json).unwrap();
    assert_eq!(options.get("dryRun"), Some(&json!(["All"])));
    assert_eq!(options.get("odd"), None);
    assert_eq!(decode_delete_options(b"{}", RequestBodyFormat::Json).unwrap().len(), 0);
    for wrong in [&br#"{"kind":"Pod"}"#[..], br#"{"gracePeriodSeconds":"x"}"#] {
        let error = decode_delete_options(wrong, RequestBodyFormat::Json).unwrap_err();
        assert!(matches!(error, DecodeError::CannotBeHandled { .. }), "{error}");
    }
}

proptest! {
    #[test]
    fn no_body_panics(
        bytes in proptest::collection::vec(any::<u8>(), 0..64),
        text in r#"[\[\]{}:,"a-c0-2. \n&*!-]{0,32}"#,
    ) {
        for format in [RequestBodyFormat::Json, RequestBodyFormat::Yaml, RequestBodyFormat::Protobuf] {
            for expected in [&CONFIG_MAP, &ROLE, &WIDGET] {
                let _ = decode_object(&bytes, format, expected);
                let _ = decode_object(text.as_bytes(), format, expected);
            }
        }
    }
}
