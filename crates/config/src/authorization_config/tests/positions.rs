//! Positions, hints and limits, which Kubernetes does not have.

use document::hint::LEADING_BANG_HINT;
use document::{DOCUMENT_BYTES_MAX, Diagnostic};

use super::{HEADER, file, generic, load_text, server, webhook};

fn diagnostics(text: &str) -> Vec<Diagnostic> {
    load_text(text, &generic()).configuration.unwrap_err().diagnostics().to_vec()
}

/// Asserts the position of each fault as `line:column`.
fn at(text: &str, want: &[&str]) {
    let positions: Vec<_> = diagnostics(text)
        .iter()
        .map(|d| {
            assert_eq!(d.file_name, "test.yaml");
            format!("{}:{} {}", d.position.line, d.position.column, d.fault.field())
        })
        .collect();
    assert_eq!(positions, want, "{text}");
}

/// Asserts the hint of the first fault.
fn hint(text: &str, want: &str) {
    let found = diagnostics(text);
    assert_eq!(found[0].hint.as_deref(), Some(want), "{found:?}");
}

#[test]
fn faults_have_positions() {
    at("", &["1:1 authorizers"]);
    at(&format!("{HEADER}authorizers: []\n"), &["3:1 authorizers"]);
    // A wrong value has its own position, a missing value has the position of its parent.
    let text = file(
        "- type: Webhook\n  name: W\n  webhook:\n    timeout: 60s\n    failurePolicy: deny\n    \
         subjectAccessReviewVersion: v1\n    connectionInfo:\n      type: KubeConfigFile\n",
    );
    at(
        &text,
        &[
            "5:9 authorizers[0].name",
            "7:14 authorizers[0].timeout",
            "8:20 authorizers[0].failurePolicy",
            "10:5 authorizers[0].connectionInfo.kubeConfigFile",
        ],
    );
    at(&file("- name: a\n- {name: b}\n"), &["4:3 authorizers[0].type", "5:3 authorizers[1].type"]);
    at(&file(&webhook(&[("timeout", "")])), &["6:3 authorizers[0].timeout"]);
}

#[test]
fn decoding_reports_everything_in_the_order_of_the_file() {
    let text = file(
        "- type: 1\n  nmae: rbac\n  type: RBAC\n- type: Webhook\n  webhook:\n    timeout: 5\n    \
         unauthorizedTTL: x\n",
    );
    at(
        &text,
        &[
            "5:3 authorizers[0].nmae",
            "6:3 authorizers[0].type",
            "9:14 authorizers[1].webhook.timeout",
            "10:22 authorizers[1].webhook.unauthorizedTTL",
        ],
    );
    at("a: [\n", &["2:1 "]);
    at("{\"a\": tru}", &["1:10 "]);
}

#[test]
fn near_misses_get_hints() {
    hint(&format!("{HEADER}authorzers: []\n"), "did you mean `authorizers`?");
    hint(&format!("{HEADER}Authorizers: []\n"), "did you mean `authorizers`?");
    hint(&file("- {type: RBAC, name: rbac, webhok: {}}\n"), "did you mean `webhook`?");
    hint(&file("- {type: RBAC, name: rbac, timeout: 3s}\n"), "`timeout` belongs inside `webhook`");
    hint(&file("- {type: rbac, name: rbac}\n"), "did you mean `RBAC`?");
    hint(&file("- {type: Webhook, name: My_Hook}\n"), "did you mean `my-hook`?");
    hint(&HEADER.replace("kind: Auth", "kind: auth"), "did you mean `AuthorizationConfiguration`?");
    hint(&HEADER.replace("/v1", "/v1beta2"), "did you mean `apiserver.config.k8s.io/v1beta1`?");
    hint(&file(&webhook(&[("failurePolicy", "deny")])), "did you mean `Deny`?");
    hint(&file(&webhook(&[("timeout", "5")])), "a duration is a text with a unit: `5s`");
    hint(&file(&webhook(&[("timeout", "\"5\"")])), "a duration needs a unit: `5s`");
    hint(
        &file("- {type: RBAC, name: yes}\n"),
        "`yes` is a boolean: put it in quotes to make it text",
    );
    hint(
        &file(&webhook(&[("connectionInfo", "{type: KubeConfigfile}")])),
        "did you mean `KubeConfigFile`?",
    );
}

#[test]
fn a_yaml_tag_gets_a_hint() {
    // The YAML tag includes the expression up to the first blank.
    let conditions = |expression: &str| {
        file(&webhook(&[("matchConditions", &format!("\n    - expression: {expression}"))]))
    };
    hint(&conditions("!has(request.resourceAttributes)"), LEADING_BANG_HINT);
    hint(&conditions("!has(request.user) && true"), LEADING_BANG_HINT);
    let ternary = conditions("request.user == 'a' ? true : false");
    hint(&ternary, "a value that contains `: ` needs quotes");
}

#[test]
fn issues_of_expressions_have_positions_in_the_file() {
    for (expression, position) in [
        // The expression is written as a plain scalar, as a quoted scalar with an escape before the fault, as a
        // literal block, and as a folded block.
        ("request.usr == 'a'", "13:26"),
        ("\"\\u0072equest.usr == 'a'\"", "13:32"),
        ("|\n        request.usr == 'a'", "14:16"),
        (">-\n        true &&\n        request.usr == 'a'", "15:16"),
    ] {
        let text =
            file(&webhook(&[("matchConditions", &format!("\n    - expression: {expression}"))]));
        let found = diagnostics(&text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            format!("{}:{}", found[0].position.line, found[0].position.column),
            position,
            "{text}"
        );
        assert_eq!(found[0].expression_issues.len(), 1);
        assert_eq!(found[0].expression_issues[0].position, found[0].position);
        assert!(
            found[0].expression_issues[0].message.contains("undefined field 'usr'"),
            "{found:?}"
        );
    }
}

#[test]
fn issues_of_expressions_have_hints() {
    let conditions = "[{expression: \"'admins' in request.user.groups\"}]";
    let found = diagnostics(&file(&webhook(&[("matchConditions", conditions)])));
    let hint = found[0].hint.as_deref().unwrap_or_default();
    assert!(hint.contains("did you mean `request.groups`"), "{found:?}");
    assert_eq!(found[0].expression_issues[0].hint.as_deref(), Some(hint));
    assert_eq!(
        (
            found[0].expression_issues[0].line_in_expression,
            found[0].expression_issues[0].column_in_expression
        ),
        (1, 25)
    );
}

#[test]
fn warnings_have_positions() {
    let text = file("- type: Node\n- {type: RBAC, name: rbac}\n---\nx\n");
    let loaded = load_text(&text, &server());
    let positions: Vec<_> = loaded
        .warnings
        .iter()
        .map(|w| (w.code.name(), w.position.line, w.position.column))
        .collect();
    assert_eq!(positions, [("several-documents", 7, 1), ("missing-built-in-name", 4, 3)]);
}

#[test]
fn a_file_has_a_size_limit() {
    let rbac = file("- {type: RBAC, name: rbac}\n");
    let padded = |n: usize| format!("{rbac}#{}", "x".repeat(n - rbac.len() - 1));
    assert!(load_text(&padded(DOCUMENT_BYTES_MAX), &server()).configuration.is_ok());
    let error = load_text(&padded(DOCUMENT_BYTES_MAX + 1), &server()).configuration.unwrap_err();
    assert!(error.to_string().ends_with("file is larger than 1048576 bytes"), "{error}");
}
