//! Validates and converts one webhook.
//!
//! Messages leave out the segment `webhook` of the path, as Kubernetes does.

use std::collections::BTreeSet;
use std::time::Duration;

use authz_webhook::{
    AbsolutePath, CacheSettings, ConditionCompiler, ConditionError, ConditionIssue, ConnectionInfo,
    FailurePolicy, MATCH_CONDITIONS_MAX, MatchCondition, MatchConditions, ReviewVersion, Timeout,
    WebhookSettings,
};
use document::hint::{self, did_you_mean};
use document::{
    Fault, FieldValue, Nanoseconds, Span, SpannedExpressionIssue, SpannedFault, SpannedText,
    ValidationReport, span_of_expression_position,
};
use field_errors::{BadValue, FieldPath};

use super::file_state::FileState;
use super::unvalidated_config;
use super::validate_authorizers::ValidationOptions;

/// Converts a webhook, or reports every rule that it breaks.
pub(super) fn convert_webhook(
    at: &FieldPath<'_>,
    webhook: &unvalidated_config::UnvalidatedWebhook,
    rules: &ValidationOptions<'_>,
    compiler: &mut ConditionCompiler,
    report: &mut ValidationReport,
) -> Option<WebhookSettings> {
    let timeout = convert_timeout(&at.child("timeout"), webhook, report);
    let authorized_ttl =
        convert_ttl(&at.child("authorizedTTL"), &webhook.authorized_ttl, webhook.span, report);
    let unauthorized_ttl =
        convert_ttl(&at.child("unauthorizedTTL"), &webhook.unauthorized_ttl, webhook.span, report);
    let review_version = convert_review_version(at, webhook, report);
    let has_condition_version = check_match_condition_version(at, webhook, report);
    let failure_policy = convert_failure_policy(at, webhook, report);
    let connection = convert_connection_info(at, &webhook.connection_info, rules, report);
    let conditions =
        convert_match_conditions(&at.child("matchConditions"), webhook, rules, compiler, report)?;
    Some(WebhookSettings {
        timeout: timeout?,
        authorized_cache_settings: CacheSettings::new(
            authorized_ttl?,
            webhook.cache_authorized_requests.unwrap_or(true),
        ),
        unauthorized_cache_settings: CacheSettings::new(
            unauthorized_ttl?,
            webhook.cache_unauthorized_requests.unwrap_or(true),
        ),
        subject_access_review_version: review_version?,
        failure_policy: failure_policy?,
        connection_info: connection?,
        match_conditions: if has_condition_version? {
            MatchConditions::V1(conditions)
        } else {
            MatchConditions::Unversioned
        },
    })
}

/// The timeout must be present, positive and at most 30 seconds.
fn convert_timeout(
    at: &FieldPath<'_>,
    webhook: &unvalidated_config::UnvalidatedWebhook,
    report: &mut ValidationReport,
) -> Option<Timeout> {
    let nanos = webhook.timeout.value;
    let timeout = non_negative_duration(nanos).and_then(Timeout::new);
    if nanos == 0 {
        report.add_fault(at.required(""), &webhook.timeout, webhook.span);
    } else if timeout.is_none() {
        let error = at.invalid(go_compat::format_duration(nanos), "must be > 0s and <= 30s");
        report.add_fault(error, &webhook.timeout, webhook.span);
    }
    timeout
}

/// A TTL must be present and positive.
fn convert_ttl(
    at: &FieldPath<'_>,
    ttl: &FieldValue<Nanoseconds>,
    parent: Span,
    report: &mut ValidationReport,
) -> Option<Duration> {
    match ttl.value {
        0 => {
            report.add_fault(at.required(""), ttl, parent);
            None
        }
        nanos => {
            let duration = non_negative_duration(nanos);
            if duration.is_none() {
                let error = at.invalid(go_compat::format_duration(nanos), "must be > 0s");
                report.add_fault(error, ttl, parent);
            }
            duration
        }
    }
}

/// Converts nanoseconds; `None` if they are negative.
fn non_negative_duration(nanos: Nanoseconds) -> Option<Duration> {
    u64::try_from(nanos).ok().map(Duration::from_nanos)
}

/// The version of reviews must be present and supported.
fn convert_review_version(
    at: &FieldPath<'_>,
    webhook: &unvalidated_config::UnvalidatedWebhook,
    report: &mut ValidationReport,
) -> Option<ReviewVersion> {
    let at = at.child("subjectAccessReviewVersion");
    let version = &webhook.subject_access_review_version;
    let found = ReviewVersion::from_version_name(&version.value);
    if found.is_none() {
        report_unsupported_value(&at, version, &ReviewVersion::NAMES, webhook.span, report);
    }
    found
}

/// The version of conditions is required if there are conditions, and must be supported. Returns
/// whether it is present, or `None` after a fault.
fn check_match_condition_version(
    at: &FieldPath<'_>,
    webhook: &unvalidated_config::UnvalidatedWebhook,
    report: &mut ValidationReport,
) -> Option<bool> {
    let at = at.child("matchConditionSubjectAccessReviewVersion");
    let version = &webhook.match_condition_subject_access_review_version;
    match version.value.as_str() {
        "" if webhook.match_conditions.is_empty() => Some(false),
        "" => {
            let error = at.required("required if match conditions are specified");
            report.add_fault(error, version, webhook.span);
            None
        }
        name if MatchConditions::VERSION_NAMES.contains(&name) => Some(true),
        _ => {
            report_unsupported_value(
                &at,
                version,
                &MatchConditions::VERSION_NAMES,
                webhook.span,
                report,
            );
            None
        }
    }
}

/// The failure policy must be present and supported.
fn convert_failure_policy(
    at: &FieldPath<'_>,
    webhook: &unvalidated_config::UnvalidatedWebhook,
    report: &mut ValidationReport,
) -> Option<FailurePolicy> {
    let policy = &webhook.failure_policy;
    let found = FailurePolicy::from_policy_name(&policy.value);
    if found.is_none() {
        let at = at.child("failurePolicy");
        report_unsupported_value(&at, policy, &FailurePolicy::NAMES, webhook.span, report);
    }
    found
}

/// Reports a missing text, or one that is none of `allowed_values`.
fn report_unsupported_value(
    at: &FieldPath<'_>,
    scalar: &FieldValue<String>,
    allowed_values: &[&str],
    parent: Span,
    report: &mut ValidationReport,
) {
    let value = scalar.value.as_str();
    if value.is_empty() {
        report.add_fault(at.required(""), scalar, parent);
    } else {
        let hint = did_you_mean(value, allowed_values);
        report.add_fault_with_hint(at.not_supported(value, allowed_values), scalar, parent, hint);
    }
}

/// The connection type must be present and supported, and `kubeConfigFile` must be set for the type
/// `KubeConfigFile` alone.
fn convert_connection_info(
    at: &FieldPath<'_>,
    info: &unvalidated_config::ConnectionInfo,
    rules: &ValidationOptions<'_>,
    report: &mut ValidationReport,
) -> Option<ConnectionInfo> {
    let at = at.child("connectionInfo");
    match info.kind.value.as_str() {
        "" => {
            report.add_fault(at.child("type").required(""), &info.kind, info.span);
            None
        }
        "InClusterConfig" => match &info.kube_config_file.value {
            None => Some(ConnectionInfo::InClusterConfig),
            Some(path) => {
                let error = at
                    .child("kubeConfigFile")
                    .invalid(path.as_str(), "can only be set when type=KubeConfigFile");
                report.add_fault(error, &info.kube_config_file, info.span);
                None
            }
        },
        "KubeConfigFile" => convert_kube_config_file(&at, info, rules, report),
        other => {
            let shown = render_connection_info_json(other, info.kube_config_file.value.as_deref());
            let type_names = &ConnectionInfo::TYPE_NAMES;
            let error = at.child("type").not_supported(BadValue::Json(shown), type_names);
            report.add_fault_with_hint(
                error,
                &info.kind,
                info.span,
                did_you_mean(other, type_names),
            );
            None
        }
    }
}

/// The path of the kubeconfig must be present, absolute, and that of a regular file.
fn convert_kube_config_file(
    at: &FieldPath<'_>,
    info: &unvalidated_config::ConnectionInfo,
    rules: &ValidationOptions<'_>,
    report: &mut ValidationReport,
) -> Option<ConnectionInfo> {
    let at = at.child("kubeConfigFile");
    let file = &info.kube_config_file;
    let path = file.value.as_deref().unwrap_or_default();
    let error = match AbsolutePath::new(path) {
        _ if path.is_empty() => at.required(""),
        None => at.invalid(path, "must be an absolute path"),
        Some(absolute) => match (rules.stat_file)(absolute.as_path()) {
            FileState::Regular => return Some(ConnectionInfo::KubeConfigFile(absolute)),
            FileState::Irregular => at.invalid(path, "must be a regular file"),
            FileState::Unreadable { error } => {
                at.invalid(path, &format!("error loading file: {error}"))
            }
        },
    };
    report.add_fault(error, file, info.span);
    None
}

/// Writes the connection as Go writes it, with the characters escaped that are special in HTML and
/// JavaScript.
fn render_connection_info_json(kind: &str, path: Option<&str>) -> String {
    let value = |text: Option<&str>| {
        let json = text.map_or(serde_json::Value::Null, serde_json::Value::from).to_string();
        let escaped = [
            ('<', r"\u003c"),
            ('>', r"\u003e"),
            ('&', r"\u0026"),
            ('\u{2028}', r"\u2028"),
            ('\u{2029}', r"\u2029"),
        ];
        escaped.iter().fold(json, |json, &(c, escape)| json.replace(c, escape))
    };
    format!(r#"{{"Type":{},"KubeConfigFile":{}}}"#, value(Some(kind)), value(path))
}

/// The feature gate must allow conditions, there must not be too many, and each must be present,
/// unique and compile. Returns `None` if any condition is at fault.
fn convert_match_conditions(
    at: &FieldPath<'_>,
    webhook: &unvalidated_config::UnvalidatedWebhook,
    rules: &ValidationOptions<'_>,
    compiler: &mut ConditionCompiler,
    report: &mut ValidationReport,
) -> Option<Vec<MatchCondition>> {
    let n_conditions = webhook.match_conditions.len();
    let is_gated = n_conditions > 0 && !rules.allows_match_conditions;
    if is_gated {
        let detail = "matchConditions are not supported when StructuredAuthorizationConfiguration \
            feature gate is disabled";
        report.add_fault_at_span(at.invalid("", detail), webhook.match_conditions_span);
    }
    if n_conditions > MATCH_CONDITIONS_MAX {
        let error = at.too_many(n_conditions, MATCH_CONDITIONS_MAX);
        report.add_fault_at_span(error, webhook.match_conditions_span);
        return None;
    }
    let mut seen = BTreeSet::new();
    let mut compiled = Vec::with_capacity(n_conditions);
    for (idx, condition) in webhook.match_conditions.iter().enumerate() {
        let at = at.index(idx);
        let at = at.child("expression");
        let text = &condition.expression.value;
        let expression = text.as_str();
        if expression.trim().is_empty() {
            report.add_fault(at.required(""), &condition.expression, condition.span);
        } else if !seen.insert(expression) {
            report.add_fault(at.duplicate(expression), &condition.expression, condition.span);
        } else {
            match compiler.compile_condition(expression) {
                Ok(condition) => compiled.push(condition),
                Err(error) => report.faults.push(match_condition_fault(&at, condition, error)),
            }
        }
    }
    (compiled.len() == n_conditions && !is_gated).then_some(compiled)
}

/// The fault of an expression that does not compile, with the position of each issue.
fn match_condition_fault(
    at: &FieldPath<'_>,
    condition: &unvalidated_config::UnvalidatedMatchCondition,
    error: ConditionError,
) -> SpannedFault {
    let text = &condition.expression.value;
    let span = condition.expression.span.unwrap_or(condition.span);
    let (error, issues) = match error {
        ConditionError::Invalid { detail, issues } => (at.invalid(text.as_str(), &detail), issues),
        ConditionError::Internal { detail } => (at.internal(&detail), Vec::new()),
    };
    let notes: Vec<_> =
        issues.into_iter().map(|issue| convert_match_condition_issue(issue, text, span)).collect();
    let tag_hint = condition.expression.has_yaml_tag.then(|| hint::LEADING_BANG_HINT.to_owned());
    SpannedFault {
        fault: Fault::Field(error),
        span: notes.first().map_or(span, |note| note.span),
        hint: tag_hint.or_else(|| notes.iter().find_map(|note| note.hint.clone())),
        expression_issues: notes,
    }
}

fn convert_match_condition_issue(
    issue: ConditionIssue,
    text: &SpannedText,
    value_span: Span,
) -> SpannedExpressionIssue {
    let line = usize::try_from(issue.line).unwrap_or(usize::MAX);
    let column = usize::try_from(issue.column).unwrap_or(usize::MAX);
    SpannedExpressionIssue {
        message: issue.message,
        line_in_expression: line,
        column_in_expression: column,
        span: span_of_expression_position(text, 0, (line, column), value_span),
        hint: issue.hint,
    }
}

#[cfg(test)]
mod tests {
    use authz_chain::Configuration;

    use super::super::{
        LoadError, LoadOptions, assume_regular_file, load_authorization_configuration,
    };
    use super::*;
    use document::Source;

    /// Two webhooks with these conditions each.
    fn file(condition: impl Fn(usize) -> String) -> String {
        let mut text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n\
            authorizers:\n"
            .to_owned();
        for webhook in 0..2 {
            text.push_str(&format!(
                "- type: Webhook\n  name: w{webhook}\n  webhook:\n    timeout: 3s\n    \
                 failurePolicy: Deny\n    subjectAccessReviewVersion: v1\n    \
                 matchConditionSubjectAccessReviewVersion: v1\n    connectionInfo: {{type: \
                 KubeConfigFile, kubeConfigFile: /x}}\n    matchConditions:\n"
            ));
            for n in 0..4 {
                text.push_str(&format!("    - expression: {}\n", condition(4 * webhook + n)));
            }
        }
        text
    }

    fn load_text(text: &str) -> Result<Configuration, LoadError> {
        let source = Source { name: "test.yaml", file_bytes: text.as_bytes() };
        let options = LoadOptions { stat_file: &assume_regular_file, ..LoadOptions::default() };
        load_authorization_configuration(&source, &options).configuration
    }

    /// A pattern of a few characters can take megabytes. The limit is for the patterns of all webhooks together, and
    /// the error names the condition that exceeds it.
    #[test]
    fn patterns_of_a_file_are_bounded_together() {
        let ordinary =
            file(|n| format!("request.user.matches('^system:node:[a-z0-9-]{{0,{n}}}$')"));
        load_text(&ordinary).unwrap();

        let large = |n: usize| format!(r"request.user.matches('\\pL{{{}}}')", 180 + n);
        let text = file(|n| (0..4).map(|m| large(4 * n + m)).collect::<Vec<_>>().join(" || "));
        let error = load_text(&text).unwrap_err();
        let last = error.diagnostics().last().unwrap();
        let message = "this pattern and those before it take too much memory together";
        assert!(last.fault.to_string().contains(message), "{}", last.fault);
        assert_eq!(last.expression_issues[0].message, message);
        assert!(last.hint.as_ref().is_some_and(|hint| hint.contains("repeat counts")));
        // The pattern is the argument of the first call of the last condition.
        let line = text.lines().nth(last.position.line - 1).unwrap();
        assert!(
            line[last.position.column - 1..].starts_with(r"'\\pL{208}'"),
            "{:?}",
            last.position
        );
    }

    #[test]
    fn structures_are_written_as_go_writes_them() {
        assert_eq!(
            render_connection_info_json("<a\"&b>", Some("/x")),
            r#"{"Type":"\u003ca\"\u0026b\u003e","KubeConfigFile":"/x"}"#
        );
        assert_eq!(render_connection_info_json("X", None), r#"{"Type":"X","KubeConfigFile":null}"#);
    }
}
