//! Rows CFG-01 to CFG-20.

use document::{WarningCode, read_file};
use serde_json::json;

use super::{HEADER, decode_error, faults, file, generic, load_text, warnings, webhook};
use crate::authorization_config::configuration_to_json;

/// Asserts that the text is no configuration and that the message contains `part`.
fn refused(row: &str, text: &str, part: &str) {
    let error = decode_error(text);
    assert!(error.starts_with("failed to load AuthorizationConfiguration from file: "), "{row}");
    assert!(error.contains(part), "{row}: {error}");
}

#[test]
fn cfg_01_an_empty_file_has_no_authorizers() {
    let error = "authorizers: Required value: at least one authorization mode must be defined";
    assert_eq!(faults("", &generic()), [error]);
}

#[test]
fn cfg_02_a_missing_file_is_named() {
    for path in ["/nowhere/at/all.yaml", ""] {
        let error = read_file(path.as_ref()).unwrap_err().to_string();
        assert_eq!(error, format!("open {path}: no such file or directory"));
    }
}

#[test]
fn cfg_03_04_all_versions_and_both_formats_are_one() {
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
fn cfg_05_16_17_18_19_defaults() {
    let effective_webhook = |changes: &[(&str, &str)]| {
        let configuration = load_text(&file(&webhook(changes)), &generic()).outcome.unwrap();
        configuration_to_json(&configuration)["authorizers"][0]["webhook"].clone()
    };
    let plain = effective_webhook(&[]);
    assert_eq!(plain["authorizedTTL"], "5m0s", "CFG-05");
    assert_eq!(plain["unauthorizedTTL"], "30s", "CFG-05");
    assert_eq!(plain["cacheAuthorizedRequests"], true, "CFG-05");
    assert_eq!(plain["cacheUnauthorizedRequests"], true, "CFG-05");
    assert_eq!(effective_webhook(&[("timeout", "1500ms")])["timeout"], "1.5s", "CFG-16");
    let zero = effective_webhook(&[("authorizedTTL", "0s"), ("unauthorizedTTL", "0s")]);
    assert_eq!(zero, plain, "CFG-17");
    let off = effective_webhook(&[("cacheAuthorizedRequests", "false")]);
    assert_eq!(off["cacheAuthorizedRequests"], false, "CFG-18");
    let null = effective_webhook(&[("cacheUnauthorizedRequests", "null")]);
    assert_eq!(null["cacheUnauthorizedRequests"], true, "CFG-19");
}

#[test]
fn cfg_05_an_empty_webhook_gets_defaults_and_an_absent_one_does_not() {
    let text = file("- type: Webhook\n  name: w\n  webhook: {}\n");
    let faults = faults(&text, &generic());
    assert!(faults.iter().all(|fault| !fault.contains("TTL")), "{faults:?}");
    assert_eq!(faults[0], "authorizers[0].timeout: Required value");
}

#[test]
fn cfg_06_to_08_kind_and_version() {
    refused("CFG-06", r#"{"kind":"AuthorizationConfiguration"}"#, "'apiVersion' is missing");
    refused("CFG-06", r#"{"apiVersion":"apiserver.config.k8s.io/v1"}"#, "'Kind' is missing");
    for version in ["apps/v1alpha1", "apiserver.k8s.io/v1alpha1", "apiserver.config.k8s.io/v99"] {
        let text = format!("apiVersion: {version}\nkind: AuthorizationConfiguration\n");
        refused("CFG-07", &text, &format!("{version:?}"));
    }
    refused("CFG-08", &HEADER.replace("Authorization", "Some"), "\"SomeConfiguration\"");
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
    // The first look at kind and version ignores case; the strict one does not.
    refused("strict fields", &HEADER.replace("kind", "Kind"), "unknown field \"Kind\"");
}

#[test]
fn cfg_09_to_11_strictness() {
    refused("CFG-09", &format!("{HEADER}authorzers: []\n"), "unknown field \"authorzers\"");
    refused("CFG-09", &format!("{HEADER}Authorizers: []\n"), "unknown field \"Authorizers\"");
    let foo = file(&webhook(&[("foo", "1")]));
    refused("CFG-10", &foo, "unknown field \"authorizers[0].webhook.foo\"");
    let twice = file("- type: RBAC\n  name: rbac\n  name: rbac\n");
    refused("CFG-11", &twice, "line 6: key \"name\" already set in map");
    let json = r#"{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthorizationConfiguration",
        "authorizers":[{"type":"RBAC","name":"a","name":"b"}]}"#;
    refused("CFG-11", json, "duplicate field \"authorizers[0].name\"");
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
fn cfg_12_to_14_documents() {
    let json = r#"{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthorizationConfiguration"}"#;
    refused("CFG-12", &format!("{json}x"), "invalid character 'x' after top-level value");
    let rbac = file("- type: RBAC\n  name: rbac\n");
    for rest in ["---\nkind: Other\n", "...\n---\nx: [\n", "---\n\tx\n"] {
        let text = format!("{rbac}{rest}");
        assert_eq!(faults(&text, &generic()), [""; 0], "CFG-13");
        assert_eq!(warnings(&text, &generic()), [WarningCode::SeveralDocuments], "CFG-13");
    }
    for rest in ["", "...\n", "---\n", "# end\n"] {
        assert_eq!(warnings(&format!("---\n{rbac}{rest}"), &generic()), [], "CFG-13");
    }
    refused("CFG-14", "# nothing\n", "'Kind' is missing");
    refused("CFG-14", "apiVersion: apiserver.config.k8s.io\n", "'Kind' is missing");
    refused("second document", &format!("---\n---\n{rbac}"), "'Kind' is missing");
}

#[test]
fn cfg_15_20_types() {
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
        refused("CFG-15", &text, part);
    }
    refused(
        "CFG-20",
        &format!("{HEADER}authorizers: {{type: Webhook}}\n"),
        "cannot unmarshal object into Go struct field AuthorizationConfiguration.authorizers of \
         type []v1.AuthorizerConfiguration",
    );
    // No coercion, in either direction.
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
    let configuration = load_text(sample, &super::server()).outcome.unwrap();
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
    assert_eq!(configuration_to_json(&configuration), want);
}
