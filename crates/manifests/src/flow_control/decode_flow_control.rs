//! Decodes flow schemas and priority levels from JSON.

use std::sync::Arc;

use field_errors::FieldErrors;
use flow_control::{
    FlowDistinguisher, FlowSchema, LimitResponse, NonResourceRule, PolicyRulesWithSubjects,
    PriorityLevel, PriorityLevelKind, QueuingOptions, ResourceRule, Subject,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::validate_flow_schema::flow_schema_spec_faults;
use super::validate_priority_level::priority_level_spec_faults;
use super::{API_VERSION, Kind, set_flow_control_defaults, wire};

/// The error of a JSON value that is no object of the kind, or not a valid one.
#[derive(Debug, thiserror::Error)]
pub enum FlowControlDecodeError {
    /// The value declares another kind, or none.
    #[error("no {expected} of {API_VERSION}: kind `{kind}` of `{api_version}`", expected = expected.name())]
    OtherKind {
        /// The kind that was expected.
        expected: Kind,
        /// The value of `apiVersion`.
        api_version: String,
        /// The value of `kind`.
        kind: String,
    },
    /// A field has a value of the wrong type.
    #[error("malformed object: {0}")]
    Malformed(serde_json::Error),
    /// The API would refuse the object.
    #[error("{0}")]
    Invalid(FieldErrors),
}

/// Decodes a flow schema, after its defaults are set. A mandatory schema may differ from its fixed
/// spec: the stored spec takes effect until the server restores the fixed one.
///
/// # Errors
/// The object is of another kind, malformed or invalid.
pub fn decode_flow_schema(
    tree: &Map<String, Value>,
) -> Result<Arc<FlowSchema>, FlowControlDecodeError> {
    let object: wire::FlowControlObject<wire::FlowSchemaSpec> =
        decode_valid_flow_control_object(Kind::FlowSchema, tree)?;
    let wire::FlowControlObject { metadata, spec, .. } = object;
    let faults = flow_schema_spec_faults(&metadata.name, &spec);
    if !faults.is_empty() {
        return Err(FlowControlDecodeError::Invalid(faults));
    }
    Ok(Arc::new(FlowSchema {
        name: metadata.name,
        uid: metadata.uid,
        matching_precedence: spec.matching_precedence,
        priority_level_name: spec.priority_level_configuration.name,
        flow_distinguisher: spec.distinguisher_method.and_then(|method| {
            match method.method_type.as_str() {
                "ByUser" => Some(FlowDistinguisher::ByUser),
                "ByNamespace" => Some(FlowDistinguisher::ByNamespace),
                // INVARIANT: validation refuses every other method.
                _ => None,
            }
        }),
        rules: spec.rules.into_iter().map(into_flow_schema_rules).collect(),
    }))
}

/// Decodes a priority level, after its defaults are set. As for schemas, a mandatory level may differ.
///
/// # Errors
/// The object is of another kind, malformed or invalid.
pub fn decode_priority_level(
    tree: &Map<String, Value>,
) -> Result<PriorityLevel, FlowControlDecodeError> {
    let object: wire::FlowControlObject<wire::PriorityLevelSpec> =
        decode_valid_flow_control_object(Kind::PriorityLevelConfiguration, tree)?;
    let wire::FlowControlObject { metadata, spec, .. } = object;
    let faults = priority_level_spec_faults(&metadata.name, &spec);
    if !faults.is_empty() {
        return Err(FlowControlDecodeError::Invalid(faults));
    }
    let kind = match spec.limited {
        // INVARIANT: validation requires `limited` exactly for the type Limited.
        None => PriorityLevelKind::Exempt,
        Some(limited) => PriorityLevelKind::Limited {
            nominal_concurrency_shares: to_non_negative(limited.nominal_concurrency_shares),
            limit_response: match limited.limit_response.queuing {
                // INVARIANT: validation requires `queuing` exactly for the type Queue.
                None => LimitResponse::Reject,
                Some(queuing) => LimitResponse::Queue(QueuingOptions {
                    n_queues: to_non_negative(queuing.queues),
                    hand_size: to_non_negative(queuing.hand_size),
                    queue_length_limit: to_non_negative(queuing.queue_length_limit),
                }),
            },
        },
    };
    Ok(PriorityLevel { name: metadata.name, uid: metadata.uid, kind })
}

fn decode_valid_flow_control_object<Spec: Default + DeserializeOwned>(
    expected: Kind,
    tree: &Map<String, Value>,
) -> Result<wire::FlowControlObject<Spec>, FlowControlDecodeError> {
    let text = |key: &str| tree.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version != API_VERSION || kind != expected.name() {
        return Err(FlowControlDecodeError::OtherKind { expected, api_version, kind });
    }
    let mut tree = tree.clone();
    set_flow_control_defaults(expected, &mut tree);
    wire::FlowControlObject::deserialize(&tree).map_err(FlowControlDecodeError::Malformed)
}

fn into_flow_schema_rules(rules: wire::PolicyRulesWithSubjects) -> PolicyRulesWithSubjects {
    let resource_rule = |rule: wire::ResourcePolicyRule| ResourceRule {
        verbs: rule.verbs,
        api_groups: rule.api_groups,
        resources: rule.resources,
        namespaces: rule.namespaces,
        matches_cluster_scope: rule.cluster_scope,
    };
    let non_resource_rule = |rule: wire::NonResourcePolicyRule| NonResourceRule {
        verbs: rule.verbs,
        non_resource_urls: rule.non_resource_urls,
    };
    PolicyRulesWithSubjects {
        subjects: rules.subjects.into_iter().filter_map(into_flow_schema_subject).collect(),
        resource_rules: rules.resource_rules.into_iter().map(resource_rule).collect(),
        non_resource_rules: rules.non_resource_rules.into_iter().map(non_resource_rule).collect(),
    }
}

/// The subject, which validation has found to have exactly the member of its kind.
fn into_flow_schema_subject(subject: wire::Subject) -> Option<Subject> {
    let wire::Subject { kind: _, user, group, service_account } = subject;
    match (user, group, service_account) {
        (Some(user), _, _) => Some(Subject::User(user.name)),
        (None, Some(group), _) => Some(Subject::Group(group.name)),
        (None, None, Some(account)) => {
            Some(Subject::ServiceAccount { namespace: account.namespace, name: account.name })
        }
        (None, None, None) => None,
    }
}

/// A number that validation has found not to be negative.
fn to_non_negative(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}
