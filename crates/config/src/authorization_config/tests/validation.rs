//! Rules that a decoded configuration breaks, in the order in which Kubernetes checks them, and the
//! rules of the server.

use authz_chain::{AuthorizerType, PluginType};
use document::{FieldValue, ValidationReport, WarningCode};

use super::{HEADER, WEBHOOK, faults, file, generic, load_text, server, warnings, webhook};
use crate::authorization_config::validate_authorizers::{ValidationOptions, convert_authorizers};
use crate::authorization_config::{LoadError, LoadOptions, unvalidated_config};

/// Loads with types that the chain does not implement.
fn knowing<'a>(known_authorizer_types: &'a [&'a str]) -> LoadOptions<'a> {
    LoadOptions { known_authorizer_types, ..generic() }
}

/// Asserts the faults of a webhook with some fields changed.
fn check_webhook(case: &str, changes: &[(&str, &str)], want: &[&str]) {
    let found = faults(&file(&webhook(changes)), &generic());
    let want: Vec<_> = want.iter().map(|fault| format!("authorizers[0].{fault}")).collect();
    assert_eq!(found, want, "{case}");
}

#[test]
fn authorizers_and_types_are_required() {
    assert_eq!(
        faults(HEADER, &generic()),
        ["authorizers: Required value: at least one authorization mode must be defined"],
        "no authorizers"
    );
    assert_eq!(
        faults(&file("- {}\n"), &generic()),
        ["authorizers[0].type: Required value"],
        "no type"
    );
}

#[test]
fn types_and_names_are_checked() {
    let check = |case: &str, known: &[&str], authorizers: &str, want: &[&str]| {
        assert_eq!(faults(&file(authorizers), &knowing(known)), want, "{case}");
    };
    check("no name", &["Foo"], "- {type: Foo}\n", &["authorizers[0].name: Required value"]);
    check(
        "duplicate name",
        &["Foo", "Bar"],
        "- {type: Foo, name: foo}\n- {type: Bar, name: foo}\n",
        &["authorizers[1].name: Duplicate value: \"foo\""],
    );
    for name in ["myauthorizer", "foo.example.domain"] {
        let text = file(&webhook(&[]).replace("name: w", &format!("name: {name}")));
        assert_eq!(faults(&text, &generic()), [""; 0], "valid names");
    }
    let prefix =
        "authorizers[0].name: Invalid value: \"FOO.example.domain\": authorizer name is invalid: ";
    let text = file(&webhook(&[]).replace("name: w", "name: FOO.example.domain"));
    let found = faults(&text, &generic());
    assert!(found.len() == 1 && found[0].starts_with(prefix), "upper case in a name: {found:?}");
    let long = file(&webhook(&[]).replace("name: w", &format!("name: {}", "a".repeat(254))));
    let found = faults(&long, &generic());
    assert!(found.len() == 1 && found[0].contains("no more than 253 characters"), "long name");
    check(
        "unknown type",
        &["Webhook"],
        "- {type: Foo, name: \"!\"}\n",
        &["authorizers[0].type: Unsupported value: \"Foo\": supported values: \"Webhook\""],
    );
    check(
        "duplicate type",
        &["Foo"],
        "- {type: Foo, name: a}\n- {type: Foo, name: b}\n",
        &["authorizers[1].type: Duplicate value: \"Foo\""],
    );
    // An authorizer that is refused for its type does not count as a use of its type or name. An empty name is
    // reported before a duplicate.
    check(
        "type and name in one entry",
        &["Foo", "Bar"],
        "- {type: Foo, name: \"\"}\n- {type: Foo, name: b}\n- {type: Bar, name: b}\n",
        &["authorizers[0].name: Required value", "authorizers[1].type: Duplicate value: \"Foo\""],
    );
}

#[test]
fn a_webhook_needs_its_type_and_settings() {
    let second = webhook(&[]).replace("name: w", "name: v");
    assert_eq!(faults(&file(&(webhook(&[]) + &second)), &generic()), [""; 0], "two webhooks");
    for absent in ["", ", webhook: null", ", webhook: ~"] {
        let text = file(&format!("- {{type: Webhook, name: w{absent}}}\n"));
        let want = ["authorizers[0].webhook: Required value: required when type=Webhook"];
        assert_eq!(faults(&text, &generic()), want, "no webhook");
    }
    assert_eq!(
        faults(&file("- {type: Foo, name: foo, webhook: {}}\n"), &knowing(&["Foo"])),
        [
            "authorizers[0].webhook: Invalid value: \"non-null\": may only be specified when type=Webhook"
        ],
        "webhook of another type"
    );
}

#[test]
fn durations_have_ranges() {
    let range = "must be > 0s and <= 30s";
    check_webhook("no timeout", &[("timeout", "")], &["timeout: Required value"]);
    check_webhook("no timeout", &[("timeout", "0s")], &["timeout: Required value"]);
    check_webhook(
        "timeout out of range",
        &[("timeout", "-30s")],
        &[&format!("timeout: Invalid value: \"-30s\": {range}")],
    );
    check_webhook(
        "timeout out of range",
        &[("timeout", "60s")],
        &[&format!("timeout: Invalid value: \"1m0s\": {range}")],
    );
    check_webhook("largest timeout", &[("timeout", "30s")], &[]);
    for field in ["authorizedTTL", "unauthorizedTTL"] {
        let fault = format!("{field}: Invalid value: \"-30s\": must be > 0s");
        check_webhook("negative TTL", &[(field, "-30s")], &[&fault]);
    }
}

#[test]
fn zero_ttls_without_defaults_are_missing() {
    let mut hook = unvalidated_config::UnvalidatedWebhook::default();
    hook.timeout.value = 1;
    let entry = unvalidated_config::UnvalidatedAuthorizer {
        kind: FieldValue { value: "Webhook".to_owned(), ..FieldValue::default() },
        name: FieldValue { value: "w".to_owned(), ..FieldValue::default() },
        webhook: Some(hook),
        ..unvalidated_config::UnvalidatedAuthorizer::default()
    };
    let configuration = unvalidated_config::UnvalidatedAuthorizationConfiguration {
        authorizers: vec![entry],
        ..unvalidated_config::UnvalidatedAuthorizationConfiguration::default()
    };
    let rules = ValidationOptions {
        known_authorizer_types: ["Webhook"].into(),
        plugin_authorizer_types: &[],
        repeatable_authorizer_types: ["Webhook"].into(),
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
fn versions_and_failure_policies_are_closed_lists() {
    let review = "subjectAccessReviewVersion";
    let conditions = "matchConditionSubjectAccessReviewVersion";
    check_webhook(
        "no review version",
        &[(review, "")],
        &["subjectAccessReviewVersion: Required value"],
    );
    check_webhook(
        "unknown review version",
        &[(review, "v2beta1")],
        &[
            "subjectAccessReviewVersion: Unsupported value: \"v2beta1\": supported values: \"v1\", \"v1beta1\"",
        ],
    );
    check_webhook("v1beta1 reviews", &[(review, "v1beta1")], &[]);
    check_webhook(
        "conditions without a version",
        &[(conditions, ""), ("matchConditions", "[{expression: \"true\"}]")],
        &[
            "matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are specified",
        ],
    );
    check_webhook("neither conditions nor version", &[(conditions, "")], &[]);
    check_webhook(
        "unknown condition version",
        &[(conditions, "v1beta1")],
        &[
            "matchConditionSubjectAccessReviewVersion: Unsupported value: \"v1beta1\": supported values: \"v1\"",
        ],
    );
    check_webhook(
        "no failure policy",
        &[("failurePolicy", "")],
        &["failurePolicy: Required value"],
    );
    check_webhook(
        "unknown failure policy",
        &[("failurePolicy", "AlwaysAllow")],
        &[
            "failurePolicy: Unsupported value: \"AlwaysAllow\": supported values: \"NoOpinion\", \"Deny\"",
        ],
    );
}

#[test]
fn connections_are_checked() {
    let check = |case: &str, info: &str, want: &[&str]| {
        check_webhook(case, &[("connectionInfo", info)], want)
    };
    let file_fault = |rest: &str| format!("connectionInfo.kubeConfigFile: {rest}");
    check("no connection type", "", &["connectionInfo.type: Required value"]);
    check(
        "unknown connection type",
        "{type: ExternalClusterConfig}",
        &["connectionInfo.type: Unsupported value: \
           {\"Type\":\"ExternalClusterConfig\",\"KubeConfigFile\":null}: \
           supported values: \"InClusterConfig\", \"KubeConfigFile\""],
    );
    check("in-cluster connection", "{type: InClusterConfig}", &[]);
    assert_eq!(
        faults(&file(&webhook(&[("connectionInfo", "{type: InClusterConfig}")])), &server()),
        [
            "authorizers[0].connectionInfo.type: Invalid value: \"InClusterConfig\": not allowed in this server"
        ],
        "in-cluster connection in a server"
    );
    let extra = "Invalid value: \"\": can only be set when type=KubeConfigFile";
    check(
        "in-cluster connection with a file",
        "{type: InClusterConfig, kubeConfigFile: \"\"}",
        &[&file_fault(extra)],
    );
    for info in ["{type: KubeConfigFile}", "{type: KubeConfigFile, kubeConfigFile: \"\"}"] {
        check("no kubeconfig file", info, &[&file_fault("Required value")]);
    }
    let relative = "Invalid value: \"../x/kubeconfig\": must be an absolute path";
    check(
        "relative path",
        "{type: KubeConfigFile, kubeConfigFile: ../x/kubeconfig}",
        &[&file_fault(relative)],
    );
    let missing = "Invalid value: \"/missing\": error loading file: no such file";
    check(
        "missing file",
        "{type: KubeConfigFile, kubeConfigFile: /missing}",
        &[&file_fault(missing)],
    );
    let folder = "Invalid value: \"/dir\": must be a regular file";
    check(
        "folder or symbolic link",
        "{type: KubeConfigFile, kubeConfigFile: /dir}",
        &[&file_fault(folder)],
    );
    check("folder or symbolic link", "{type: KubeConfigFile, kubeConfigFile: /link}", &[]);
    check("empty file", "{type: KubeConfigFile, kubeConfigFile: /empty}", &[]);
    check("old name of KubeConfigFile", "{type: KubeConfig, kubeConfigFile: /good}", &[]);
    let alias = file(&webhook(&[("connectionInfo", "{type: KubeConfig, kubeConfigFile: /good}")]));
    assert_eq!(
        warnings(&alias, &generic()),
        [WarningCode::KubeConfigAlias],
        "old name of KubeConfigFile"
    );
}

/// A webhook with these conditions.
fn conditions(expressions: &[String]) -> String {
    let items: Vec<_> =
        expressions.iter().map(|e| format!("{{expression: {}}}", go_compat::quote(e))).collect();
    file(&webhook(&[("matchConditions", &format!("[{}]", items.join(", ")))]))
}

#[test]
fn match_conditions_are_checked() {
    let check = |case: &str, expressions: &[String], want: &[&str]| {
        let want: Vec<_> =
            want.iter().map(|fault| format!("authorizers[0].matchConditions{fault}")).collect();
        assert_eq!(faults(&conditions(expressions), &generic()), want, "{case}");
    };
    let distinct = |n: usize| -> Vec<String> {
        (0..n).map(|idx| format!("request.user == 'user-{idx}'")).collect()
    };
    check("64 conditions", &distinct(64), &[]);
    let mut many = distinct(64);
    many.push("(".to_owned());
    check("65 conditions", &many, &[": Too many: 65: must have at most 64 items"]);
    check("blank expression", &["  ".to_owned()], &["[0].expression: Required value"]);
    let admin = "request.user == 'admin'".to_owned();
    check(
        "duplicate expression",
        &[admin.clone(), admin.clone()],
        &["[1].expression: Duplicate value: \"request.user == 'admin'\""],
    );
    check(
        "expressions that differ in spaces",
        &[admin, "request.user  ==  'admin'".to_owned()],
        &[],
    );
}

#[test]
fn faults_are_listed_in_the_order_of_kubernetes() {
    let changes = WEBHOOK.map(|(name, _)| (name, ""));
    let text = file(&webhook(&[changes.as_slice(), &[("authorizedTTL", "-1s")]].concat()));
    let error = load_text(&text, &generic()).configuration.unwrap_err();
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
fn server_rules_are_checked_after_the_format() {
    let check = |case: &str, authorizers: &str, want: &[&str]| {
        assert_eq!(faults(&file(authorizers), &server()), want, "{case}");
    };
    check(
        "names of built-in authorizers",
        "- {type: RBAC, name: foo}\n- {type: Node, name: nodes}\n",
        &[
            "expected name rbac for authorizer RBAC instead of foo",
            "expected name node for authorizer Node instead of nodes",
        ],
    );
    check(
        "type in lower case",
        "- {type: rbac, name: rbac}\n",
        &["authorizers[0].type: Unsupported value: \"rbac\": supported values: \"ABAC\", \
           \"AlwaysAllow\", \"AlwaysDeny\", \"Node\", \"RBAC\", \"Webhook\""],
    );
    check(
        "built-in authorizer twice",
        "- {type: RBAC, name: rbac}\n- {type: RBAC, name: rbac}\n",
        &["authorizers[1].type: Duplicate value: \"RBAC\""],
    );
    let hook = webhook(&[]).replace("name: w", "name: rbac");
    check(
        "built-in authorizer twice",
        &format!("{hook}- {{type: RBAC, name: rbac}}\n"),
        &["authorizers[1].name: Duplicate value: \"rbac\""],
    );
}

#[test]
fn an_expression_that_does_not_compile_is_refused() {
    let found = faults(&conditions(&["'admins' in request.user.groups".to_owned()]), &generic());
    let prefix = "authorizers[0].matchConditions[0].expression: Invalid value: \
        \"'admins' in request.user.groups\": compilation failed: ERROR: <input>:1:";
    assert!(found.len() == 1 && found[0].starts_with(prefix), "{found:?}");
}

#[test]
fn s2_a_reload_keeps_the_types_of_the_start() {
    let required = [AuthorizerType::Rbac, AuthorizerType::Abac, AuthorizerType::Node];
    let options = LoadOptions { required_authorizer_types: &required, ..server() };
    let text = file("- {type: RBAC, name: x}\n");
    let error = load_text(&text, &options).configuration.unwrap_err();
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
fn a_feature_gate_disables_match_conditions() {
    let options = LoadOptions { allows_match_conditions: false, ..generic() };
    assert_eq!(
        faults(&conditions(&["true".to_owned()]), &options),
        ["authorizers[0].matchConditions: Invalid value: \"\": matchConditions are not supported \
          when StructuredAuthorizationConfiguration feature gate is disabled"]
    );
    assert_eq!(faults(&file(&webhook(&[])), &options), [""; 0]);
}

/// Kubernetes takes zero as absent, so the cache that its author turned off is on.
#[test]
fn a_ttl_of_zero_warns_with_the_field_that_turns_the_cache_off() {
    let text = file(&webhook(&[("authorizedTTL", "0s"), ("unauthorizedTTL", "\"0\"")]));
    let loaded = load_text(&text, &server());
    assert!(loaded.configuration.is_ok(), "{loaded:?}");
    let shown: Vec<String> = loaded
        .warnings
        .iter()
        .map(|it| {
            format!("{}: {} {}", it.field, it.message, it.hint.as_deref().unwrap_or_default())
        })
        .collect();
    assert_eq!(
        shown,
        [
            "authorizers[0].authorizedTTL: 0s does not turn the cache off: it means the default, 5m0s \
             write `cacheAuthorizedRequests: false` to turn the cache off",
            "authorizers[0].unauthorizedTTL: 0s does not turn the cache off: it means the default, 30s \
             write `cacheUnauthorizedRequests: false` to turn the cache off",
        ]
    );
    for quiet in [
        webhook(&[("authorizedTTL", "0s"), ("cacheAuthorizedRequests", "false")]),
        webhook(&[("authorizedTTL", "null")]),
        webhook(&[("authorizedTTL", "1ns")]),
        webhook(&[]),
    ] {
        assert_eq!(warnings(&file(&quiet), &server()), [], "{quiet}");
    }
}

#[test]
fn always_allow_in_a_file_warns_of_anonymous_access() {
    let text = file("- {type: RBAC, name: rbac}\n- {type: AlwaysAllow, name: alwaysallow}\n");
    let loaded = load_text(&text, &server());
    let [warning] = &loaded.warnings[..] else { panic!("{loaded:?}") };
    assert_eq!(
        (warning.code, &*warning.field),
        (WarningCode::AnonymousAllowed, "authorizers[1].type")
    );
    assert_eq!(warnings(&text, &generic()), [], "another server authenticates for itself");
    let quiet = file("- {type: RBAC, name: rbac}\n- {type: AlwaysDeny, name: alwaysdeny}\n");
    assert_eq!(warnings(&quiet, &server()), []);
}

#[test]
fn the_type_abac_needs_a_policy_file() {
    let text = file("- {type: RBAC, name: rbac}\n- {type: ABAC, name: abac}\n");
    assert_eq!(faults(&text, &server()), [""; 0]);
    let options = LoadOptions { has_abac_policy_file: false, ..server() };
    let error = load_text(&text, &options).configuration.unwrap_err();
    let [fault] = error.diagnostics() else { panic!("{error:?}") };
    assert_eq!(
        fault.fault.to_string(),
        "type ABAC needs a policy file: set --authorization-policy-file"
    );
    assert_eq!((fault.position.line, fault.position.column), (5, 10));
    assert_eq!(faults(&file("- {type: RBAC, name: rbac}\n"), &options), [""; 0]);
}

/// A program may add types. They have a name of their own, and occur once.
#[test]
fn plugin_types_are_known_to_the_programs_that_have_them() {
    let plugin_authorizer_types = [PluginType::new("Freeze").unwrap()];
    let options = LoadOptions { plugin_authorizer_types: &plugin_authorizer_types, ..server() };
    let text = file("- {type: Freeze, name: change-freeze}\n- {type: RBAC, name: rbac}\n");
    let configuration = load_text(&text, &options).configuration.unwrap();
    let [plugin, _] = configuration.authorizers() else { panic!("{configuration:?}") };
    assert_eq!((plugin.authorizer_type().name(), plugin.name()), ("Freeze", "change-freeze"));
    let known = "\"ABAC\", \"AlwaysAllow\", \"AlwaysDeny\"";
    for (entries, options, want) in [
        (
            "- {type: Freeze, name: a}\n",
            server(),
            format!(
                "authorizers[0].type: Unsupported value: \"Freeze\": supported values: {known}, \
                 \"Node\", \"RBAC\", \"Webhook\""
            ),
        ),
        (
            "- {type: Frieze, name: a}\n",
            options,
            format!(
                "authorizers[0].type: Unsupported value: \"Frieze\": supported values: {known}, \
                 \"Freeze\", \"Node\", \"RBAC\", \"Webhook\""
            ),
        ),
        (
            "- {type: Freeze, name: a}\n- {type: Freeze, name: b}\n",
            options,
            "authorizers[1].type: Duplicate value: \"Freeze\"".to_owned(),
        ),
        ("- {type: Freeze}\n", options, "authorizers[0].name: Required value".to_owned()),
        (
            "- {type: Freeze, name: a, webhook: {}}\n",
            options,
            "authorizers[0].webhook: Invalid value: \"non-null\": may only be specified when \
             type=Webhook"
                .to_owned(),
        ),
    ] {
        assert_eq!(faults(&file(entries), &options), [want], "{entries}");
    }
}

#[test]
fn a_built_in_authorizer_without_a_name_gets_its_type_as_name() {
    for absent in ["", ", name: null"] {
        let text = file(&format!("- {{type: Node{absent}}}\n- {{type: RBAC, name: rbac}}\n"));
        let loaded = load_text(&text, &server());
        let configuration = loaded.configuration.unwrap();
        assert_eq!(configuration.authorizers()[0].name(), "node");
        assert_eq!(loaded.warnings.len(), 1);
        assert_eq!(loaded.warnings[0].code, WarningCode::MissingBuiltInName);
        assert_eq!(loaded.warnings[0].field, "authorizers[0].name");
    }
    // An empty name counts as present, and a webhook has no default name.
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
