//! Rows VAL-01 to VAL-45, and the rules of the server.

use authz_chain::AuthorizerType;
use document::{FieldValue, ValidationReport, WarningCode};

use super::{HEADER, WEBHOOK, faults, file, generic, load_text, server, warnings, webhook};
use crate::authorization_config::validate::{ValidationRules, convert_authorizers};
use crate::authorization_config::{LoadError, LoadOptions, unvalidated};

/// The validator with other types than the chain has.
fn knowing<'a>(known_types: &'a [&'a str]) -> LoadOptions<'a> {
    LoadOptions { known_types, ..generic() }
}

/// Asserts the faults of a webhook with some fields changed.
fn w(row: &str, changes: &[(&str, &str)], want: &[&str]) {
    let found = faults(&file(&webhook(changes)), &generic());
    let want: Vec<_> = want.iter().map(|fault| format!("authorizers[0].{fault}")).collect();
    assert_eq!(found, want, "{row}");
}

#[test]
fn val_01_02_nothing_there() {
    assert_eq!(
        faults(HEADER, &generic()),
        ["authorizers: Required value: at least one authorization mode must be defined"],
        "VAL-01"
    );
    assert_eq!(
        faults(&file("- {}\n"), &generic()),
        ["authorizers[0].type: Required value"],
        "VAL-02"
    );
}

#[test]
fn val_03_to_09_types_and_names() {
    let check = |row: &str, known: &[&str], authorizers: &str, want: &[&str]| {
        assert_eq!(faults(&file(authorizers), &knowing(known)), want, "{row}");
    };
    check("VAL-03", &["Foo"], "- {type: Foo}\n", &["authorizers[0].name: Required value"]);
    check(
        "VAL-04",
        &["Foo", "Bar"],
        "- {type: Foo, name: foo}\n- {type: Bar, name: foo}\n",
        &["authorizers[1].name: Duplicate value: \"foo\""],
    );
    for name in ["myauthorizer", "foo.example.domain"] {
        let text = file(&webhook(&[]).replace("name: w", &format!("name: {name}")));
        assert_eq!(faults(&text, &generic()), [""; 0], "VAL-05");
    }
    let prefix =
        "authorizers[0].name: Invalid value: \"FOO.example.domain\": authorizer name is invalid: ";
    let text = file(&webhook(&[]).replace("name: w", "name: FOO.example.domain"));
    let found = faults(&text, &generic());
    assert!(found.len() == 1 && found[0].starts_with(prefix), "VAL-06: {found:?}");
    let long = file(&webhook(&[]).replace("name: w", &format!("name: {}", "a".repeat(254))));
    let found = faults(&long, &generic());
    assert!(found.len() == 1 && found[0].contains("no more than 253 characters"), "VAL-07");
    check(
        "VAL-08",
        &["Webhook"],
        "- {type: Foo, name: \"!\"}\n",
        &["authorizers[0].type: Unsupported value: \"Foo\": supported values: \"Webhook\""],
    );
    check(
        "VAL-09",
        &["Foo"],
        "- {type: Foo, name: a}\n- {type: Foo, name: b}\n",
        &["authorizers[1].type: Duplicate value: \"Foo\""],
    );
    // Entries that stop at their type leave neither type nor name behind, and an empty name wins.
    check(
        "type and name in one entry",
        &["Foo", "Bar"],
        "- {type: Foo, name: \"\"}\n- {type: Foo, name: b}\n- {type: Bar, name: b}\n",
        &["authorizers[0].name: Required value", "authorizers[1].type: Duplicate value: \"Foo\""],
    );
}

#[test]
fn val_10_to_12_webhooks() {
    let second = webhook(&[]).replace("name: w", "name: v");
    assert_eq!(faults(&file(&(webhook(&[]) + &second)), &generic()), [""; 0], "VAL-10");
    for absent in ["", ", webhook: null", ", webhook: ~"] {
        let text = file(&format!("- {{type: Webhook, name: w{absent}}}\n"));
        let want = ["authorizers[0].webhook: Required value: required when type=Webhook"];
        assert_eq!(faults(&text, &generic()), want, "VAL-11");
    }
    assert_eq!(
        faults(&file("- {type: Foo, name: foo, webhook: {}}\n"), &knowing(&["Foo"])),
        [
            "authorizers[0].webhook: Invalid value: \"non-null\": may only be specified when type=Webhook"
        ],
        "VAL-12"
    );
}

#[test]
fn val_13_to_17_durations() {
    let range = "must be > 0s and <= 30s";
    w("VAL-13", &[("timeout", "")], &["timeout: Required value"]);
    w("VAL-13", &[("timeout", "0s")], &["timeout: Required value"]);
    w("VAL-14", &[("timeout", "-30s")], &[&format!("timeout: Invalid value: \"-30s\": {range}")]);
    w("VAL-14", &[("timeout", "60s")], &[&format!("timeout: Invalid value: \"1m0s\": {range}")]);
    w("VAL-15", &[("timeout", "30s")], &[]);
    for field in ["authorizedTTL", "unauthorizedTTL"] {
        let fault = format!("{field}: Invalid value: \"-30s\": must be > 0s");
        w("VAL-17", &[(field, "-30s")], &[&fault]);
    }
}

#[test]
fn val_16_zero_times_without_defaults() {
    let mut hook = unvalidated::Webhook::default();
    hook.timeout.value = 1;
    let entry = unvalidated::Authorizer {
        kind: FieldValue { value: "Webhook".to_owned(), ..FieldValue::default() },
        name: FieldValue { value: "w".to_owned(), ..FieldValue::default() },
        webhook: Some(hook),
        ..unvalidated::Authorizer::default()
    };
    let configuration = unvalidated::Configuration {
        authorizers: vec![entry],
        ..unvalidated::Configuration::default()
    };
    let rules = ValidationRules {
        known_types: ["Webhook"].into(),
        repeatable_types: ["Webhook"].into(),
        stat_file: &super::probe,
        allows_match_conditions: true,
    };
    let mut report = ValidationReport::default();
    convert_authorizers(&configuration, &rules, &mut report);
    let found: Vec<_> = report.faults.iter().map(|f| f.fault.to_string()).collect();
    assert_eq!(
        found[..2],
        [
            "authorizers[0].authorizedTTL: Required value",
            "authorizers[0].unauthorizedTTL: Required value"
        ]
    );
}

#[test]
fn val_18_to_25_choices() {
    let review = "subjectAccessReviewVersion";
    let conditions = "matchConditionSubjectAccessReviewVersion";
    w("VAL-18", &[(review, "")], &["subjectAccessReviewVersion: Required value"]);
    w(
        "VAL-19",
        &[(review, "v2beta1")],
        &[
            "subjectAccessReviewVersion: Unsupported value: \"v2beta1\": supported values: \"v1\", \"v1beta1\"",
        ],
    );
    w("VAL-20", &[(review, "v1beta1")], &[]);
    w(
        "VAL-21",
        &[(conditions, ""), ("matchConditions", "[{expression: \"true\"}]")],
        &[
            "matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are specified",
        ],
    );
    w("VAL-22", &[(conditions, "")], &[]);
    w(
        "VAL-23",
        &[(conditions, "v1beta1")],
        &[
            "matchConditionSubjectAccessReviewVersion: Unsupported value: \"v1beta1\": supported values: \"v1\"",
        ],
    );
    w("VAL-24", &[("failurePolicy", "")], &["failurePolicy: Required value"]);
    w(
        "VAL-25",
        &[("failurePolicy", "AlwaysAllow")],
        &[
            "failurePolicy: Unsupported value: \"AlwaysAllow\": supported values: \"NoOpinion\", \"Deny\"",
        ],
    );
}

#[test]
fn val_26_to_35_connections() {
    let check = |row: &str, info: &str, want: &[&str]| w(row, &[("connectionInfo", info)], want);
    let file_fault = |rest: &str| format!("connectionInfo.kubeConfigFile: {rest}");
    check("VAL-26", "", &["connectionInfo.type: Required value"]);
    check(
        "VAL-27",
        "{type: ExternalClusterConfig}",
        &["connectionInfo.type: Unsupported value: \
           {\"Type\":\"ExternalClusterConfig\",\"KubeConfigFile\":null}: \
           supported values: \"InClusterConfig\", \"KubeConfigFile\""],
    );
    check("VAL-28", "{type: InClusterConfig}", &[]);
    assert_eq!(
        faults(&file(&webhook(&[("connectionInfo", "{type: InClusterConfig}")])), &server()),
        [
            "authorizers[0].connectionInfo.type: Invalid value: \"InClusterConfig\": not allowed in this server"
        ],
        "VAL-28, S3"
    );
    let extra = "Invalid value: \"\": can only be set when type=KubeConfigFile";
    check("VAL-29", "{type: InClusterConfig, kubeConfigFile: \"\"}", &[&file_fault(extra)]);
    for info in ["{type: KubeConfigFile}", "{type: KubeConfigFile, kubeConfigFile: \"\"}"] {
        check("VAL-30", info, &[&file_fault("Required value")]);
    }
    let relative = "Invalid value: \"../x/kubeconfig\": must be an absolute path";
    check(
        "VAL-31",
        "{type: KubeConfigFile, kubeConfigFile: ../x/kubeconfig}",
        &[&file_fault(relative)],
    );
    let missing = "Invalid value: \"/missing\": error loading file: no such file";
    check("VAL-32", "{type: KubeConfigFile, kubeConfigFile: /missing}", &[&file_fault(missing)]);
    let folder = "Invalid value: \"/dir\": must be a regular file";
    check("VAL-33", "{type: KubeConfigFile, kubeConfigFile: /dir}", &[&file_fault(folder)]);
    check("VAL-33", "{type: KubeConfigFile, kubeConfigFile: /link}", &[]);
    check("VAL-34", "{type: KubeConfigFile, kubeConfigFile: /empty}", &[]);
    check("VAL-35", "{type: KubeConfig, kubeConfigFile: /good}", &[]);
    let alias = file(&webhook(&[("connectionInfo", "{type: KubeConfig, kubeConfigFile: /good}")]));
    assert_eq!(warnings(&alias, &generic()), [WarningCode::KubeConfigAlias], "VAL-35");
}

/// A webhook with these conditions.
fn conditions(expressions: &[String]) -> String {
    let items: Vec<_> =
        expressions.iter().map(|e| format!("{{expression: {}}}", go_compat::quote(e))).collect();
    file(&webhook(&[("matchConditions", &format!("[{}]", items.join(", ")))]))
}

#[test]
fn val_36_to_40_conditions() {
    let check = |row: &str, expressions: &[String], want: &[&str]| {
        let want: Vec<_> =
            want.iter().map(|fault| format!("authorizers[0].matchConditions{fault}")).collect();
        assert_eq!(faults(&conditions(expressions), &generic()), want, "{row}");
    };
    let distinct = |n: usize| -> Vec<String> {
        (0..n).map(|idx| format!("request.user == 'user-{idx}'")).collect()
    };
    check("VAL-36", &distinct(64), &[]);
    let mut many = distinct(64);
    many.push("(".to_owned());
    check("VAL-37", &many, &[": Too many: 65: must have at most 64 items"]);
    check("VAL-38", &["  ".to_owned()], &["[0].expression: Required value"]);
    let admin = "request.user == 'admin'".to_owned();
    check(
        "VAL-39",
        &[admin.clone(), admin.clone()],
        &["[1].expression: Duplicate value: \"request.user == 'admin'\""],
    );
    check("VAL-40", &[admin, "request.user  ==  'admin'".to_owned()], &[]);
}

#[test]
fn val_41_faults_are_listed_in_the_order_of_the_table() {
    let changes = WEBHOOK.map(|(name, _)| (name, ""));
    let text = file(&webhook(&[changes.as_slice(), &[("authorizedTTL", "-1s")]].concat()));
    let error = load_text(&text, &generic()).outcome.unwrap_err();
    assert_eq!(
        error.to_string(),
        "[authorizers[0].timeout: Required value, \
         authorizers[0].authorizedTTL: Invalid value: \"-1s\": must be > 0s, \
         authorizers[0].subjectAccessReviewVersion: Required value, \
         authorizers[0].failurePolicy: Required value, \
         authorizers[0].connectionInfo.type: Required value]"
    );
}

#[test]
fn val_42_to_44_server_rules() {
    let check = |row: &str, authorizers: &str, want: &[&str]| {
        assert_eq!(faults(&file(authorizers), &server()), want, "{row}");
    };
    check(
        "VAL-42",
        "- {type: RBAC, name: foo}\n- {type: Node, name: nodes}\n",
        &[
            "expected name rbac for authorizer RBAC instead of foo",
            "expected name node for authorizer Node instead of nodes",
        ],
    );
    check(
        "VAL-43",
        "- {type: rbac, name: rbac}\n",
        &["authorizers[0].type: Unsupported value: \"rbac\": supported values: \"ABAC\", \
           \"AlwaysAllow\", \"AlwaysDeny\", \"Node\", \"RBAC\", \"Webhook\""],
    );
    check(
        "VAL-44",
        "- {type: RBAC, name: rbac}\n- {type: RBAC, name: rbac}\n",
        &["authorizers[1].type: Duplicate value: \"RBAC\""],
    );
    let hook = webhook(&[]).replace("name: w", "name: rbac");
    check(
        "VAL-44",
        &format!("{hook}- {{type: RBAC, name: rbac}}\n"),
        &["authorizers[1].name: Duplicate value: \"rbac\""],
    );
}

#[test]
fn val_45_an_expression_that_does_not_compile() {
    let found = faults(&conditions(&["'admins' in request.user.groups".to_owned()]), &generic());
    let prefix = "authorizers[0].matchConditions[0].expression: Invalid value: \
        \"'admins' in request.user.groups\": compilation failed: ERROR: <input>:1:";
    assert!(found.len() == 1 && found[0].starts_with(prefix), "{found:?}");
}

#[test]
fn s2_a_reload_keeps_the_types_of_the_start() {
    let required = [AuthorizerType::Rbac, AuthorizerType::Abac, AuthorizerType::Node];
    let options = LoadOptions { required_types: &required, ..server() };
    let text = file("- {type: RBAC, name: x}\n");
    let error = load_text(&text, &options).outcome.unwrap_err();
    assert!(matches!(error, LoadError::Server(_)));
    assert_eq!(
        error.to_string(),
        "[expected name rbac for authorizer RBAC instead of x, missing required types: [ABAC Node]]"
    );
    let text = file(
        "- {type: RBAC, name: rbac}\n- {type: Node, name: node}\n- {type: ABAC, name: abac}\n",
    );
    assert_eq!(faults(&text, &options), [""; 0]);
}

#[test]
fn conditions_can_be_gated() {
    let options = LoadOptions { allows_match_conditions: false, ..generic() };
    assert_eq!(
        faults(&conditions(&["true".to_owned()]), &options),
        ["authorizers[0].matchConditions: Invalid value: \"\": matchConditions are not supported \
          when StructuredAuthorizationConfiguration feature gate is disabled"]
    );
    assert_eq!(faults(&file(&webhook(&[])), &options), [""; 0]);
}

#[test]
fn a_built_in_authorizer_without_a_name_gets_its_own() {
    for absent in ["", ", name: null"] {
        let text = file(&format!("- {{type: Node{absent}}}\n- {{type: RBAC, name: rbac}}\n"));
        let loaded = load_text(&text, &server());
        let configuration = loaded.outcome.unwrap();
        assert_eq!(configuration.authorizers()[0].name(), "node");
        assert_eq!(loaded.warnings.len(), 1);
        assert_eq!(loaded.warnings[0].code, WarningCode::MissingBuiltInName);
        assert_eq!(loaded.warnings[0].field, "authorizers[0].name");
    }
    // An empty name is there, and a webhook has no name of its own.
    let text = file("- {type: Node, name: \"\"}\n- {type: Webhook}\n");
    assert_eq!(
        faults(&text, &server()),
        [
            "authorizers[0].name: Required value",
            "authorizers[1].name: Required value",
            "authorizers[1].webhook: Required value: required when type=Webhook",
        ]
    );
    assert_eq!(warnings(&text, &server()), []);
}
