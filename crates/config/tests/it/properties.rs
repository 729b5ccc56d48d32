//! Properties of every input: the loader does not panic, every position is inside the file, and YAML and JSON give
//! the same result.

use config::authorization_config::{
    LoadOptions, LoadedAuthorizationConfiguration, ServerRole, assume_regular_file,
    authorization_configuration_to_json, load_authorization_configuration,
};
use document::{Source, SourcePosition};
use proptest::prelude::*;
use serde_json::{Value, json};

const SAMPLE: &str = r#"apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- &hook
  type: Webhook
  name: guard.example.com
  webhook: &settings
    timeout: 3s
    failurePolicy: Deny
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: /etc/guard.yaml}
    matchConditions:
    - expression: has(request.resourceAttributes)
    - expression: "!('a' in request.groups)"
    - expression: >-
        request.user == 'a' ||
        request.user == 'b'
- {type: Webhook, name: second, webhook: *settings}
- {type: Node, name: node}
- type: RBAC
  name: 'rbac'
"#;

/// Pieces of text that are special in YAML or JSON.
const PIECES: [&str; 40] = [
    "\n",
    "\n  ",
    "\n- ",
    " ",
    "\t",
    ":",
    ": ",
    "- ",
    "? ",
    "{",
    "}",
    "[",
    "]",
    ",",
    "&a ",
    "*a",
    "*hook",
    "<<: *hook\n",
    "!",
    "!!str ",
    "!!binary ",
    "'",
    "\"",
    "|\n",
    ">-\n",
    "#",
    "---\n",
    "...\n",
    "%YAML 1.1\n",
    "\\",
    "\\u00e4",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "ä",
    "\u{1}",
    "~",
    "1e3",
    "yes",
    "name: ",
];

fn load_bytes(bytes: &[u8]) -> LoadedAuthorizationConfiguration {
    let options = LoadOptions {
        role: ServerRole::Delegated,
        stat_file: &assume_regular_file,
        ..LoadOptions::default()
    };
    load_authorization_configuration(&Source { name: "file", file_bytes: bytes }, &options)
}

/// Loads a text and checks every reported position.
fn check_places(bytes: &[u8]) -> LoadedAuthorizationConfiguration {
    let source = Source { name: "file", file_bytes: bytes };
    let text = source.text();
    let is_inside = |position: &SourcePosition| {
        position.line >= 1
            && position.column >= 1
            && position.start <= position.end_offset
            && text.get(position.start..position.end_offset).is_some()
    };
    let loaded = load_bytes(bytes);
    for diagnostic in loaded.configuration.as_ref().err().into_iter().flat_map(|e| e.diagnostics())
    {
        assert!(is_inside(&diagnostic.position), "{diagnostic:?}");
        assert!(
            diagnostic.expression_issues.iter().all(|note| is_inside(&note.position)),
            "{diagnostic:?}"
        );
    }
    assert!(loaded.warnings.iter().all(|warning| is_inside(&warning.position)));
    loaded
}

/// Returns the effective configuration of a text, or all its faults in sorted order: their order in the file
/// differs between the two formats.
fn effective_configuration_or_faults(text: &str) -> Result<Value, Vec<String>> {
    match load_bytes(text.as_bytes()).configuration {
        Ok(configuration) => Ok(authorization_configuration_to_json(&configuration)),
        Err(error) => {
            let mut faults: Vec<_> =
                error.diagnostics().iter().map(|d| d.fault.to_string()).collect();
            faults.sort();
            Err(faults)
        }
    }
}

fn changed_sample(changes: &[(usize, usize, usize)]) -> String {
    let mut chars: Vec<char> = SAMPLE.chars().collect();
    for &(at, n_removed, piece) in changes {
        let at = at % (chars.len() + 1);
        let end = (at + n_removed).min(chars.len());
        chars.splice(at..end, PIECES[piece].chars());
    }
    chars.into_iter().collect()
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,3}", "[a-z][a-z0-9.-]{0,8}", "yes|null|0x1F|1e3|~|- a|a: b|#|'|\"|!x|ä\n|"]
}

fn duration() -> impl Strategy<Value = String> {
    prop_oneof!["[0-9]{1,2}(s|ms|m|h)", "-1s|0|0s|1\\.5s|1d|5|"]
}

fn webhook() -> impl Strategy<Value = Value> {
    let conditions = prop::collection::vec(
        prop_oneof![
            "true|request\\.user == 'a'|has\\(request\\.resourceAttributes\\)|!true|\"|  |a\nb"
        ],
        0..3,
    );
    (duration(), duration(), any::<Option<bool>>(), conditions, "v1|v1beta1|v2|", "Deny|deny|")
        .prop_map(|(timeout, ttl, cache, conditions, version, policy)| {
            let conditions: Vec<_> =
                conditions.iter().map(|text| json!({ "expression": text })).collect();
            json!({
                "timeout": timeout,
                "authorizedTTL": ttl,
                "cacheAuthorizedRequests": cache,
                "subjectAccessReviewVersion": version,
                "matchConditionSubjectAccessReviewVersion": "v1",
                "failurePolicy": policy,
                "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "/a"},
                "matchConditions": conditions,
            })
        })
}

fn configuration() -> impl Strategy<Value = Value> {
    let kinds = prop_oneof!["Webhook|RBAC|Node|ABAC|rbac|"];
    let authorizer = (kinds, name(), prop::option::of(webhook()))
        .prop_map(|(kind, name, webhook)| json!({"type": kind, "name": name, "webhook": webhook}));
    prop::collection::vec(authorizer, 0..4).prop_map(|authorizers| {
        json!({
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AuthorizationConfiguration",
            "authorizers": authorizers,
        })
    })
}

/// Formats a value as YAML in block style.
fn to_yaml(value: &Value, indent: usize) -> String {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(members) if !members.is_empty() => members
            .iter()
            .map(|(key, value)| format!("\n{pad}{key}: {}", to_yaml(value, indent + 2)))
            .collect(),
        Value::Array(items) if !items.is_empty() => {
            items.iter().map(|item| format!("\n{pad}- {}", to_yaml(item, indent + 2))).collect()
        }
        Value::String(text) if text.contains('\'') => value.to_string(),
        Value::String(text) if !text.contains('\n') => format!("'{text}'"),
        other => other.to_string(),
    }
}

proptest! {
    #[test]
    fn any_bytes_load_or_fail_with_positions(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check_places(&bytes);
    }

    #[test]
    fn any_syntax_pieces_load_or_fail_with_positions(
        pieces in prop::collection::vec(0..PIECES.len(), 0..60),
    ) {
        let text: String = pieces.iter().map(|&piece| PIECES[piece]).collect();
        check_places(text.as_bytes());
        check_places(format!("{{{text}").as_bytes());
    }

    #[test]
    fn any_change_to_a_valid_file_loads_or_fails_with_positions(
        changes in prop::collection::vec((any::<usize>(), 0usize..12, 0..PIECES.len()), 1..6),
    ) {
        check_places(changed_sample(&changes).as_bytes());
    }

    #[test]
    fn yaml_and_json_give_the_same_result(configuration in configuration()) {
        let json = configuration.to_string();
        let want = effective_configuration_or_faults(&json);
        // JSON is valid YAML; a document marker makes the reader treat it as YAML.
        prop_assert_eq!(&effective_configuration_or_faults(&format!("---\n{json}")), &want);
        prop_assert_eq!(&effective_configuration_or_faults(&to_yaml(&configuration, 0)), &want);
    }

    #[test]
    fn nesting_and_aliases_are_bounded(depth in 0usize..5000, width in 1usize..20, open in "[\\[{?-]") {
        let nested = format!("{open} ").repeat(depth);
        check_places(nested.as_bytes());
        check_places(format!("a: {nested}").as_bytes());
        let mut bomb = "l0: &l0 x\n".to_owned();
        for level in 1..30 {
            let items = vec![format!("*l{}", level - 1); width].join(", ");
            bomb.push_str(&format!("l{level}: &l{level} [{items}]\n"));
        }
        check_places(bomb.as_bytes());
    }
}

#[test]
fn the_sample_is_valid() {
    let loaded = check_places(SAMPLE.as_bytes());
    assert!(loaded.configuration.is_ok(), "{:?}", loaded.configuration);
    assert!(loaded.warnings.is_empty());
}
