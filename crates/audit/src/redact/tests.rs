use serde_json::json;

use super::*;

fn copied(body: &Value, sensitivity: BodySensitivity) -> Value {
    RedactingBodyCopier { omit_managed_fields: false }.copy_redacted_body(body, sensitivity)
}

#[test]
fn what_a_secret_holds_is_masked() {
    let body = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": true,
        "metadata": {
            "name": "db",
            "annotations": {
                "team": "a",
                "kubectl.kubernetes.io/last-applied-configuration": "{\"data\":{\"p\":\"aHVudGVy\"}}",
            },
        },
        "data": {"password": "aHVudGVy"},
        "stringData": {"user": "root", "gone": null},
        "stringdata": {"misspelt": "hunter"},
        "extra": "hunter",
    });
    let want = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": true,
        "metadata": {
            "name": "db",
            "annotations": {
                "team": "a",
                "kubectl.kubernetes.io/last-applied-configuration": "[redacted]",
            },
        },
        "data": {"password": "[redacted]"},
        "stringData": {"user": "[redacted]", "gone": null},
        "stringdata": {"misspelt": "[redacted]"},
        "extra": "[redacted]",
    });
    // What it says, or where it was sent, is enough.
    assert_eq!(copied(&body, BodySensitivity::Plain), want);
    assert_eq!(copied(&body, BodySensitivity::SecretData), want);
}

#[test]
fn secrets_are_found_inside_other_things() {
    let secret = json!({"kind": "Secret", "data": {"a": "x"}});
    let masked = json!({"kind": "Secret", "data": {"a": "[redacted]"}});
    let nested = json!({"kind": "List", "items": [secret, {"kind": "Pod", "data": {"a": "x"}}]});
    let want = json!({"kind": "List", "items": [masked, {"kind": "Pod", "data": {"a": "x"}}]});
    assert_eq!(copied(&nested, BodySensitivity::Plain), want);

    // Items of a list do not say what they are.
    let list = json!({"kind": "SecretList", "metadata": {"resourceVersion": "7"},
                      "items": [{"metadata": {"name": "a"}, "data": {"a": "x"}}]});
    let want = json!({"kind": "SecretList", "metadata": {"resourceVersion": "7"},
                      "items": [{"metadata": {"name": "a"}, "data": {"a": "[redacted]"}}]});
    assert_eq!(copied(&list, BodySensitivity::Plain), want);

    let table = json!({"kind": "Table", "columnDefinitions": [{"name": "Name"}],
                       "rows": [{"cells": ["a", 1], "object": {"data": {"a": "x"}}}]});
    let want = json!({"kind": "Table", "columnDefinitions": [{"name": "Name"}],
                      "rows": [{"cells": ["a", 1], "object": {"data": {"a": "[redacted]"}}}]});
    assert_eq!(copied(&table, BodySensitivity::SecretData), want);
}

#[test]
fn patches_of_secrets() {
    let cases = [
        (
            json!({"data": {"a": "x", "b": null}, "metadata": {"labels": {"l": "v"}}}),
            json!({"data": {"a": "[redacted]", "b": null}, "metadata": {"labels": {"l": "v"}}}),
        ),
        (
            json!([{"op": "add", "path": "/data/a", "value": "x"},
                   {"op": "move", "from": "/data/a", "path": "/data/b"},
                   {"op": "replace", "path": "", "value": {"data": {"a": "x"}}}]),
            json!([{"op": "add", "path": "/data/a", "value": "[redacted]"},
                   {"op": "move", "from": "/data/a", "path": "/data/b"},
                   {"op": "replace", "path": "", "value": {"data": "[redacted]"}}]),
        ),
        (json!("x"), json!("[redacted]")),
        (json!(["x"]), json!(["[redacted]"])),
        (json!({"data": ["x"]}), json!({"data": "[redacted]"})),
        (json!({"metadata": "x"}), json!({"metadata": "[redacted]"})),
    ];
    for (patch, want) in cases {
        assert_eq!(copied(&patch, BodySensitivity::SecretData), want, "{patch}");
        assert_eq!(copied(&patch, BodySensitivity::Plain), patch, "{patch}");
    }
}

#[test]
fn tokens() {
    let review = json!({"kind": "TokenReview", "spec": {"token": "x", "audiences": ["a"]},
                        "status": {"authenticated": true, "user": {"username": "ana"}}});
    let want = json!({"kind": "TokenReview", "spec": {"token": "[redacted]", "audiences": ["a"]},
                      "status": {"authenticated": true, "user": {"username": "ana"}}});
    assert_eq!(copied(&review, BodySensitivity::Plain), want);

    let request = json!({"spec": {"audiences": ["a"], "expirationSeconds": 600},
                         "status": {"token": "x", "expirationTimestamp": "t"}});
    let want = json!({"spec": {"audiences": ["a"], "expirationSeconds": 600},
                      "status": {"token": "[redacted]", "expirationTimestamp": "t"}});
    let sensitivity = BodySensitivity::sensitivity_of_resource("", "serviceaccounts", "token");
    assert_eq!(copied(&request, sensitivity), want);
    assert_eq!(
        BodySensitivity::sensitivity_of_resource("", "serviceaccounts", ""),
        BodySensitivity::Plain
    );
    assert_eq!(
        BodySensitivity::sensitivity_of_resource("authentication.k8s.io", "tokenreviews", ""),
        BodySensitivity::TokenReview
    );
}

#[test]
fn a_failure_stays_readable() {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                        "message": "m", "reason": "Forbidden", "details": {"name": "a"},
                        "code": 403});
    for sensitivity in [
        BodySensitivity::Plain,
        BodySensitivity::SecretData,
        BodySensitivity::TokenRequest,
        BodySensitivity::TokenReview,
    ] {
        assert_eq!(copied(&status, sensitivity), status, "{sensitivity:?}");
    }
    let options = json!({"kind": "DeleteOptions", "propagationPolicy": "Background",
                         "preconditions": {"uid": "u"}});
    assert_eq!(copied(&options, BodySensitivity::SecretData), options);
}

#[test]
fn managed_fields_are_left_out_if_asked() {
    let body = json!({"metadata": {"name": "a", "managedFields": [{"manager": "m"}]},
                      "items": [{"metadata": {"managedFields": []}}]});
    let copied = RedactingBodyCopier { omit_managed_fields: true }
        .copy_redacted_body(&body, BodySensitivity::Plain);
    assert_eq!(copied, json!({"metadata": {"name": "a"}, "items": [{"metadata": {}}]}));
}

#[test]
fn depth_is_bounded() {
    let deep = (0..NESTING_MAX + 10).fold(json!("x"), |inner, _| json!([inner]));
    let mut copied = &copied(&deep, BodySensitivity::Plain);
    let mut depth = 0;
    while let Some(inner) = copied.get(0) {
        copied = inner;
        depth += 1;
    }
    assert_eq!((depth, copied), (NESTING_MAX, &json!("[redacted]")));
}

#[test]
fn uris() {
    let cases = [
        ("/api/v1/pods", "/api/v1/pods"),
        ("/api?limit=5&continue=abc", "/api?limit=5&continue=abc"),
        ("/api?token=x", "/api?token=redacted"),
        ("/api?a=1&access_token=x&b=2", "/api?a=1&access_token=redacted&b=2"),
        ("/api?Token=x;PASSWORD=y", "/api?Token=redacted;PASSWORD=redacted"),
        ("/api?acc%65ss%5Ftok%65n=x", "/api?acc%65ss%5Ftok%65n=redacted"),
        ("/api?token", "/api?token"),
        ("/api?", "/api?"),
        ("/api?q=a?token=b", "/api?q=redacted"),
        ("/api?auth=x&jwt=x&sig=x", "/api?auth=redacted&jwt=redacted&sig=redacted"),
        ("/api?key=x&code=x&session=x", "/api?key=redacted&code=redacted&session=redacted"),
        ("/api?KEY=x&Code=x&sessionID=x", "/api?KEY=redacted&Code=redacted&sessionID=redacted"),
        ("/api?%6bey=x&co%64E=x", "/api?%6bey=redacted&co%64E=redacted"),
        ("/api?token%3Dx", "/api?redacted"),
        ("/api?token%3Dx=y&limit=1", "/api?redacted&limit=1"),
        ("/api?%74oken%3dx", "/api?redacted"),
        ("/api?%2574oken=x", "/api?%2574oken=redacted"),
        ("/api?token%253Dx", "/api?redacted"),
        ("/api?next=https%3A%2F%2Fa%2Fb%3Fcode%3Dx", "/api?next=redacted"),
        ("/api?labelSelector=key%3Dx&limit=1", "/api?labelSelector=key%3Dx&limit=1"),
        ("/api?fieldSelector=metadata.name%3Da", "/api?fieldSelector=metadata.name%3Da"),
        ("/api?resourceVersion=1&watch=1", "/api?resourceVersion=1&watch=1"),
        ("/api?q=%zz&token=%", "/api?q=%zz&token=redacted"),
        ("https://user:pass@host/api?x=1", "/api?x=1"),
        ("https://user:pass@host", "/"),
        ("/proxy/http://a/b", "/proxy/http://a/b"),
        ("*", "*"),
    ];
    for (uri, want) in cases {
        assert_eq!(redact_uri(uri), want);
    }
}

#[test]
fn credentials_in_the_urls_of_webhooks_are_masked() {
    let body = |url: &str, applied: &str| {
        json!({"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "a", "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": applied}}, "webhooks": [
            {"name": "a.b.c", "timeoutSeconds": 3, "clientConfig": {"url": url}}]})
    };
    let url = "https://u:p@h.io/x?token=t";
    let group = "admissionregistration.k8s.io";
    for (group, resource) in [
        (group, "validatingwebhookconfigurations"),
        (group, "mutatingwebhookconfigurations"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
    ] {
        let sensitivity = BodySensitivity::sensitivity_of_resource(group, resource, "");
        let want = body("https://redacted@h.io/x?redacted", "[redacted]");
        assert_eq!(copied(&body(url, url), sensitivity), want, "{resource}");
        let patch = json!([{"op": "add", "path": "/webhooks/0/clientConfig/url", "value": url}]);
        assert_eq!(copied(&patch, sensitivity)[0]["value"], "https://redacted@h.io/x?redacted");
    }
    let status = json!({"status": "Failure", "reason": "Invalid", "message": format!("bad \"{url}\""),
        "details": {"causes": [{"message": format!("bad \"{url}\"")}]}});
    let shown = redact_quoted_body(&status, BodySensitivity::WebhookUrls).to_string();
    assert!(!shown.contains("u:p") && !shown.contains("token"), "{shown}");
    assert!(shown.contains("h.io/x"), "{shown}");
}
