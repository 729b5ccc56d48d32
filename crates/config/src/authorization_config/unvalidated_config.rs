//! The decoded fields of the file, before validation.
//!
//! The schema check has verified every type, so reading cannot fail; a value of a wrong type would
//! count as absent.

use document::{FieldValue, Nanoseconds, Node, ObjectReader, Span, SpannedText, Value};

/// The decoded file. As in Kubernetes, an absent text is empty and an absent duration is zero.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct UnvalidatedAuthorizationConfiguration {
    /// Span of the list, or of the document if there is no list.
    pub(super) authorizers_span: Span,
    pub(super) authorizers: Vec<UnvalidatedAuthorizer>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct UnvalidatedAuthorizer {
    pub(super) span: Span,
    pub(super) kind: FieldValue<String>,
    pub(super) name: FieldValue<String>,
    /// Whether the file has a name, which may be empty.
    pub(super) has_name: bool,
    pub(super) webhook: Option<UnvalidatedWebhook>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct UnvalidatedWebhook {
    pub(super) span: Span,
    pub(super) authorized_ttl: FieldValue<Nanoseconds>,
    pub(super) cache_authorized_requests: Option<bool>,
    pub(super) unauthorized_ttl: FieldValue<Nanoseconds>,
    pub(super) cache_unauthorized_requests: Option<bool>,
    pub(super) timeout: FieldValue<Nanoseconds>,
    pub(super) subject_access_review_version: FieldValue<String>,
    pub(super) match_condition_subject_access_review_version: FieldValue<String>,
    pub(super) failure_policy: FieldValue<String>,
    pub(super) connection_info: ConnectionInfo,
    pub(super) match_conditions_span: Span,
    pub(super) match_conditions: Vec<UnvalidatedMatchCondition>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ConnectionInfo {
    pub(super) span: Span,
    pub(super) kind: FieldValue<String>,
    pub(super) kube_config_file: FieldValue<Option<String>>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct UnvalidatedMatchCondition {
    pub(super) span: Span,
    pub(super) expression: FieldValue<SpannedText>,
}

impl UnvalidatedAuthorizationConfiguration {
    pub(super) fn read(root: &Node) -> Self {
        let reader = ObjectReader::new(root, root.span);
        let (authorizers_span, items) = reader.read_list("authorizers");
        let authorizers = items
            .iter()
            .map(|item| UnvalidatedAuthorizer::read(ObjectReader::new(item, item.span)));
        Self { authorizers_span, authorizers: authorizers.collect() }
    }
}

impl UnvalidatedAuthorizer {
    fn read(reader: ObjectReader<'_>) -> Self {
        Self {
            span: reader.span,
            kind: reader.read_text("type"),
            name: reader.read_text("name"),
            has_name: reader.entry("name").is_some_and(|entry| entry.value.value != Value::Null),
            webhook: reader.read_object("webhook").map(UnvalidatedWebhook::read),
        }
    }
}

impl UnvalidatedWebhook {
    fn read(reader: ObjectReader<'_>) -> Self {
        let (match_conditions_span, items) = reader.read_list("matchConditions");
        let conditions = items
            .iter()
            .map(|item| UnvalidatedMatchCondition::read(ObjectReader::new(item, item.span)));
        let no_connection = || ConnectionInfo { span: reader.span, ..ConnectionInfo::default() };
        Self {
            span: reader.span,
            authorized_ttl: reader.read_duration("authorizedTTL"),
            cache_authorized_requests: reader.read_bool("cacheAuthorizedRequests"),
            unauthorized_ttl: reader.read_duration("unauthorizedTTL"),
            cache_unauthorized_requests: reader.read_bool("cacheUnauthorizedRequests"),
            timeout: reader.read_duration("timeout"),
            subject_access_review_version: reader.read_text("subjectAccessReviewVersion"),
            match_condition_subject_access_review_version: reader
                .read_text("matchConditionSubjectAccessReviewVersion"),
            failure_policy: reader.read_text("failurePolicy"),
            connection_info: reader
                .read_object("connectionInfo")
                .map_or_else(no_connection, ConnectionInfo::read),
            match_conditions_span,
            match_conditions: conditions.collect(),
        }
    }
}

impl ConnectionInfo {
    fn read(reader: ObjectReader<'_>) -> Self {
        Self {
            span: reader.span,
            kind: reader.read_text("type"),
            kube_config_file: reader.read_field("kubeConfigFile", |value| match value {
                Value::Text(text) => Some(Some(text.as_str().to_owned())),
                _ => None,
            }),
        }
    }
}

impl UnvalidatedMatchCondition {
    fn read(reader: ObjectReader<'_>) -> Self {
        let expression = reader.read_field("expression", |value| match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        });
        Self { span: reader.span, expression }
    }
}
