//! The decoded form of the file, before its rules are looked at.
//!
//! Reading follows a walk that found every type right, so nothing can fail here; a value of a
//! wrong type would read as absent.

use document::{Nanos, Node, Scalar, Span, Text, Value, View};

/// The file. Absent texts are empty, absent durations zero, as in Kubernetes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Configuration {
    /// The place of the list, or of the document where there is no list.
    pub(super) authorizers_span: Span,
    pub(super) authorizers: Vec<Authorizer>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Authorizer {
    pub(super) span: Span,
    pub(super) kind: Scalar<String>,
    pub(super) name: Scalar<String>,
    /// The name is there, although it may be empty.
    pub(super) has_name: bool,
    pub(super) webhook: Option<Webhook>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Webhook {
    pub(super) span: Span,
    pub(super) authorized_ttl: Scalar<Nanos>,
    pub(super) cache_authorized_requests: Option<bool>,
    pub(super) unauthorized_ttl: Scalar<Nanos>,
    pub(super) cache_unauthorized_requests: Option<bool>,
    pub(super) timeout: Scalar<Nanos>,
    pub(super) subject_access_review_version: Scalar<String>,
    pub(super) match_condition_subject_access_review_version: Scalar<String>,
    pub(super) failure_policy: Scalar<String>,
    pub(super) connection_info: ConnectionInfo,
    pub(super) match_conditions_span: Span,
    pub(super) match_conditions: Vec<MatchCondition>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ConnectionInfo {
    pub(super) span: Span,
    pub(super) kind: Scalar<String>,
    pub(super) kube_config_file: Scalar<Option<String>>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct MatchCondition {
    pub(super) span: Span,
    pub(super) expression: Scalar<Text>,
}

impl Configuration {
    pub(super) fn read(root: &Node) -> Self {
        let view = View::new(root, root.span);
        let (authorizers_span, items) = view.list("authorizers");
        let authorizers = items.iter().map(|item| Authorizer::read(View::new(item, item.span)));
        Self { authorizers_span, authorizers: authorizers.collect() }
    }
}

impl Authorizer {
    fn read(view: View<'_>) -> Self {
        Self {
            span: view.span,
            kind: view.text("type"),
            name: view.text("name"),
            has_name: view.get("name").is_some_and(|entry| entry.value.value != Value::Null),
            webhook: view.object("webhook").map(Webhook::read),
        }
    }
}

impl Webhook {
    fn read(view: View<'_>) -> Self {
        let (match_conditions_span, items) = view.list("matchConditions");
        let conditions = items.iter().map(|item| MatchCondition::read(View::new(item, item.span)));
        let no_connection = || ConnectionInfo { span: view.span, ..ConnectionInfo::default() };
        Self {
            span: view.span,
            authorized_ttl: view.duration("authorizedTTL"),
            cache_authorized_requests: view.flag("cacheAuthorizedRequests"),
            unauthorized_ttl: view.duration("unauthorizedTTL"),
            cache_unauthorized_requests: view.flag("cacheUnauthorizedRequests"),
            timeout: view.duration("timeout"),
            subject_access_review_version: view.text("subjectAccessReviewVersion"),
            match_condition_subject_access_review_version: view
                .text("matchConditionSubjectAccessReviewVersion"),
            failure_policy: view.text("failurePolicy"),
            connection_info: view
                .object("connectionInfo")
                .map_or_else(no_connection, ConnectionInfo::read),
            match_conditions_span,
            match_conditions: conditions.collect(),
        }
    }
}

impl ConnectionInfo {
    fn read(view: View<'_>) -> Self {
        Self {
            span: view.span,
            kind: view.text("type"),
            kube_config_file: view.scalar("kubeConfigFile", |value| match value {
                Value::Text(text) => Some(Some(text.as_str().to_owned())),
                _ => None,
            }),
        }
    }
}

impl MatchCondition {
    fn read(view: View<'_>) -> Self {
        let expression = view.scalar("expression", |value| match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        });
        Self { span: view.span, expression }
    }
}
