//! A configuration as JSON, with its defaults filled in.

use authz_chain::{AuthorizerConfiguration, Configuration};
use authz_webhook::{CacheSettings, ConnectionInfo, MatchConditions, WebhookSettings};
use serde_json::{Value, json};

/// Converts a configuration to the form of version `v1`, without `kind` and `apiVersion`.
pub fn authorization_configuration_to_json(configuration: &Configuration) -> Value {
    let authorizers: Vec<Value> =
        configuration.authorizers().iter().map(authorizer_to_json).collect();
    json!({ "authorizers": authorizers })
}

fn authorizer_to_json(authorizer: &AuthorizerConfiguration) -> Value {
    let kind = authorizer.authorizer_type().name();
    match authorizer {
        AuthorizerConfiguration::Webhook(webhook) => json!({
            "type": kind,
            "name": authorizer.name(),
            "webhook": webhook_to_json(&webhook.webhook_settings),
        }),
        AuthorizerConfiguration::Abac
        | AuthorizerConfiguration::AlwaysAllow
        | AuthorizerConfiguration::AlwaysDeny
        | AuthorizerConfiguration::Node
        | AuthorizerConfiguration::Rbac
        | AuthorizerConfiguration::Plugin(_) => json!({ "type": kind, "name": authorizer.name() }),
    }
}

fn webhook_to_json(settings: &WebhookSettings) -> Value {
    let (condition_version, conditions) = match &settings.match_conditions {
        MatchConditions::Unversioned => ("", [].as_slice()),
        MatchConditions::V1(conditions) => ("v1", conditions.as_slice()),
    };
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|condition| json!({ "expression": condition.expression() }))
        .collect();
    let path = match &settings.connection_info {
        ConnectionInfo::KubeConfigFile(path) => Some(path.as_str()),
        ConnectionInfo::InClusterConfig => None,
    };
    json!({
        "authorizedTTL": format_ttl(settings.authorized_cache_settings),
        "cacheAuthorizedRequests": settings.authorized_cache_settings.is_cache_enabled(),
        "unauthorizedTTL": format_ttl(settings.unauthorized_cache_settings),
        "cacheUnauthorizedRequests": settings.unauthorized_cache_settings.is_cache_enabled(),
        "timeout": format_duration(settings.timeout.get()),
        "subjectAccessReviewVersion": settings.subject_access_review_version.name(),
        "matchConditionSubjectAccessReviewVersion": condition_version,
        "failurePolicy": settings.failure_policy.name(),
        "connectionInfo": { "type": settings.connection_info.connection_type_name(), "kubeConfigFile": path },
        "matchConditions": conditions,
    })
}

fn format_ttl(caching: CacheSettings) -> String {
    format_duration(caching.ttl())
}

/// Formats a duration as Go does. Go can express every configured duration.
fn format_duration(duration: std::time::Duration) -> String {
    go_compat::format_duration(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
}
