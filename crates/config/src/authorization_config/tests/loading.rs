//! Files that decode, files that do not, and the defaults of absent fields.

use document::{WarningCode, read_file};
use serde_json::json;

use super::{HEADER, decode_error, faults, file, generic, load_text, warnings, webhook};
use crate::authorization_config::authorization_configuration_to_json;

/// Asserts that the text is no configuration and that the message contains `part`.
fn refused(case: &str, text: &str, part: &str) {
    let error = decode_error(text);
    assert!(error.starts_with("failed to load AuthorizationConfiguration from file: "), "{case}");
    assert!(error.contains(part), "{case}: {error}");
}

#[test]
fn an_empty_file_has_no_authorizers() {
    let error = "authorizers: Required value: at least one authorization mode must be defined";
    assert_eq!(faults("", &generic()), [error]);
}

#[test]
fn a_missing_file_is_named() {
    for path in ["/nowhere/at/all.yaml", ""] {
        let error = read_file(path.as_ref()).unwrap_err().to_string();
        assert_eq!(error, format!("open {path}: no such file or directory"));
    }
}

#[test]
fn all_versions_decode_from_yaml_and_json() {
    for version in ["v1alpha1", "v1beta1", "v1"] {
        let kind = format!(
            r#""apiVersion":"apiserver.config.k8s.io/{version}","kind":"AuthorizationConfiguration""#
        );
        let json = format!(r#"{{{kind},"authorizers":[{{"type":"Webhook","name":"w"}}]}}"#);
        let yaml = file("- type: Webhook\n  name: w\n").replace("/v1", &format!("/{version}"));
        for text in [json, yaml] {
            let error = "authorizers[0].webhook: Required value: required when type=Webhook";
            assert_eq!(faults(&text, &generic()), [error], "{text}");
        }
    }
}

#[test]
fn absent_and_zero_fields_get_defaults() {
    let effective_webhook = |changes: &[(&str, &str)]| {
        let configuration = load_text(&file(&webhook(changes)), &generic()).configuration.unwrap();
        authorization_configuration_to_json(&configuration)["authorizers"][0]["webhook"].clone()
    };
    let plain = effective_webhook(&[]);
    assert_eq!(plain["authorizedTTL"], "5m0s", "defaults");
    assert_eq!(plain["unauthorizedTTL"], "30s", "defaults");
    assert_eq!(plain["cacheAuthorizedRequests"], true, "defaults");
    assert_eq!(plain["cacheUnauthorizedRequests"], true, "defaults");
    assert_eq!(
        effective_webhook(&[("timeout", "1500ms")])["timeout"],
        "1.5s",
        "timeout in milliseconds"
    );
    let zero = effective_webhook(&[("authorizedTTL", "0s"), ("unauthorizedTTL", "0s")]);
    assert_eq!(zero, plain, "zero TTLs");
    let off = effective_webhook(&[("cacheAuthorizedRequests", "false")]);
    assert_eq!(off["cacheAuthorizedRequests"], false, "cache off");
    let null = effective_webhook(&[("cacheUnauthorizedRequests", "null")]);
    assert_eq!(null["cacheUnauthorizedRequests"], true, "null cache flag");
}

#[test]
fn an_empty_webhook_gets_defaults_and_an_absent_one_does_not() {
    let text = file("- type: Webhook\n  name: w\n  webhook: {}\n");
    let faults = faults(&text, &generic());
    assert!(faults.iter().all(|fault| !fault.contains("TTL")), "{faults:?}");
    assert_eq!(faults[0], "authorizers[0].timeout: Required value");
}

#[test]
fn kind_and_version_are_required() {
    refused(
        "no kind or version",
        r#"{"kind":"AuthorizationConfiguration"}"#,
        "'apiVersion' is missing",
    );
    refused(
        "no kind or version",
        r#"{"apiVersion":"apiserver.config.k8s.io/v1"}"#,
        "'Kind' is missing",
    );
    for version in ["apps/v1alpha1", "apiserver.k8s.io/v1alpha1", "apiserver.config.k8s.io/v99"] {
        let text = format!("apiVersion: {version}\nkind: AuthorizationConfiguration\n");
        refused("unknown version", &text, &format!("{version:?}"));
    }
    refused("unknown kind", &HEADER.replace("Authorization", "Some"), "\"SomeConfiguration\"");
    refused(
        "kind and version",
        &HEADER.replace("Authorization", "Authentication"),
        "expected AuthorizationConfiguration, got *apiserver.AuthenticationConfiguration",
    );
    refused(
        "kind and version",
        "apiVersion: a/b/c\nkind: x\n",
        "unexpected GroupVersion string: a/b/c",
    );
    refused(
        "kind and version",
        "apiVersion: 1\nkind: x\n",
        "cannot unmarshal number into Go struct field",
    );
    refused("kind and version", "- a\n", "cannot unmarshal array into Go value");
    // Detection of kind and version ignores case; strict decoding does not.
    refused("strict fields", &HEADER.replace("kind", "Kind"), "unknown field \"Kind\"");
}

#[test]
fn unknown_and_duplicate_fields_are_refused() {
    refused("unknown field", &format!("{HEADER}authorzers: []\n"), "unknown field \"authorzers\"");
    refused(
        "unknown field",
        &format!("{HEADER}Authorizers: []\n"),
        "unknown field \"Authorizers\"",
    );
    let foo = file(&webhook(&[("foo", "1")]));
    refused("unknown field of a webhook", &foo, "unknown field \"authorizers[0].webhook.foo\"");
    let twice = file("- type: RBAC\n  name: rbac\n  name: rbac\n");
    refused("duplicate key", &twice, "line 6: key \"name\" already set in map");
    let json = r#"{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthorizationConfiguration",
        "authorizers":[{"type":"RBAC","name":"a","name":"b"}]}"#;
    refused("duplicate key", json, "duplicate field \"authorizers[0].name\"");
    let both = file("- type: RBAC\n  name: rbac\n  name: rbac\n  b: 1\n  a: 1\n");
    refused(
        "strict fields",
        &both,
        "strict decoding error: yaml: unmarshal errors:\n  line 6: key \"name\" already set in \
         map, unknown field \"authorizers[0].a\", unknown field \"authorizers[0].b\"",
    );
    for field in ["conditionsEndpointKubeConfigContext", "authorizationConditionsReviewVersion"] {
        let text = file(&webhook(&[(field, "x")]));
        refused(
            "unknown field",
            &text,
            &format!("unknown field \"authorizers[0].webhook.{field}\""),
        );
    }
}

#[test]
fn only_the_first_document_is_read() {
    let json = r#"{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthorizationConfiguration"}"#;
    refused("text after JSON", &format!("{json}x"), "invalid character 'x' after top-level value");
    let rbac = file("- type: RBAC\n  name: rbac\n");
    for rest in ["---\nkind: Other\n", "...\n---\nx: [\n", "---\n\tx\n"] {
        let text = format!("{rbac}{rest}");
        assert_eq!(faults(&text, &generic()), [""; 0], "several documents");
        assert_eq!(
            warnings(&text, &generic()),
            [WarningCode::SeveralDocuments],
            "several documents"
        );
    }
    for rest in ["", "...\n", "---\n", "# end\n"] {
        assert_eq!(warnings(&format!("---\n{rbac}{rest}"), &generic()), [], "several documents");
    }
    refused("no content", "# nothing\n", "'Kind' is missing");
    refused("no content", "apiVersion: apiserver.config.k8s.io\n", "'Kind' is missing");
    refused("second document", &format!("---\n---\n{rbac}"), "'Kind' is missing");
}

#[test]
fn values_have_the_types_of_their_fields() {
    for (value, part) in [
        (
            "5",
            "cannot unmarshal number into Go struct field WebhookConfiguration.authorizers.webhook.timeout of type string",
        ),
        ("\"30\"", "time: missing unit in duration \"30\""),
        ("null", "time: invalid duration \"\""),
        ("\"\"", "time: invalid duration \"\""),
        ("1d", "time: unknown unit \"d\" in duration \"1d\""),
    ] {
        let text = file(&webhook(&[("timeout", value)]));
        refused("bad duration", &text, part);
    }
    refused(
        "object in place of a list",
        &format!("{HEADER}authorizers: {{type: Webhook}}\n"),
        "cannot unmarshal object into Go struct field AuthorizationConfiguration.authorizers of \
         type []v1.AuthorizerConfiguration",
    );
    // Values of other types are not converted, in either direction.
    for (field, value) in [
        ("failurePolicy", "yes"),
        ("cacheAuthorizedRequests", "\"true\""),
        ("matchConditions", "{}"),
    ] {
        refused("wrong type", &file(&webhook(&[(field, value)])), "cannot unmarshal");
    }
    let on = file(&webhook(&[("cacheAuthorizedRequests", "on")]));
    assert_eq!(faults(&on, &generic()), [""; 0], "`on` is a boolean");
}

#[test]
fn the_reference_sample_is_valid() {
    let sample = r#"
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- name: guard.example.com
  type: Webhook
  webhook:
    timeout: 3s
    failurePolicy: Deny
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: /good}
    matchConditions:
    - expression: has(request.resourceAttributes)
    - expression: request.resourceAttributes.namespace == 'kube-system'
    - expression: "!('system:serviceaccounts:kube-system' in request.groups)"
- {type: Node, name: node}
- {type: RBAC, name: rbac}
"#;
    let configuration = load_text(sample, &super::server()).configuration.unwrap();
    let want = json!({
        "authorizers": [
            {
                "type": "Webhook",
                "name": "guard.example.com",
                "webhook": {
                    "authorizedTTL": "5m0s",
                    "cacheAuthorizedRequests": true,
                    "unauthorizedTTL": "30s",
                    "cacheUnauthorizedRequests": true,
                    "timeout": "3s",
                    "subjectAccessReviewVersion": "v1",
                    "matchConditionSubjectAccessReviewVersion": "v1",
                    "failurePolicy": "Deny",
                    "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "/good"},
                    "matchConditions": [
                        {"expression": "has(request.resourceAttributes)"},
                        {"expression": "request.resourceAttributes.namespace == 'kube-system'"},
                        {"expression": "!('system:serviceaccounts:kube-system' in request.groups)"},
                    ],
                },
            },
            {"type": "Node", "name": "node"},
            {"type": "RBAC", "name": "rbac"},
        ],
    });
    assert_eq!(authorization_configuration_to_json(&configuration), want);
}
