//! Encodes flow schemas and priority levels as JSON.

use flow_control::bootstrap_objects::BootstrapPriorityLevel;
use flow_control::{
    FlowDistinguisher, FlowSchema, LimitResponse, PolicyRulesWithSubjects, PriorityLevelKind,
    Subject,
};
use serde_json::{Map, Value, json};

use super::{API_VERSION, Kind, wire};

/// Encodes a flow schema as the API shows it, without the fields that only a store sets.
///
/// # Errors
/// Never in practice: JSON can express every field of the wire form.
pub fn encode_flow_schema(schema: &FlowSchema) -> Result<Map<String, Value>, serde_json::Error> {
    let spec = serde_json::to_value(wire::FlowSchemaSpec::from(schema))?;
    Ok(encode_flow_control_object(Kind::FlowSchema, &schema.name, spec))
}

/// Encodes a priority level as the API shows it, without the fields that only a store sets.
///
/// # Errors
/// Never in practice: JSON can express every field of the wire form.
pub fn encode_priority_level(
    level: &BootstrapPriorityLevel,
) -> Result<Map<String, Value>, serde_json::Error> {
    let spec = serde_json::to_value(wire::PriorityLevelSpec::from(level))?;
    Ok(encode_flow_control_object(
        Kind::PriorityLevelConfiguration,
        &level.priority_level.name,
        spec,
    ))
}

fn encode_flow_control_object(kind: Kind, name: &str, spec: Value) -> Map<String, Value> {
    let mut tree = Map::new();
    tree.insert("apiVersion".to_owned(), API_VERSION.into());
    tree.insert("kind".to_owned(), kind.name().into());
    tree.insert("metadata".to_owned(), json!({ "name": name }));
    tree.insert("spec".to_owned(), spec);
    tree
}

impl From<&FlowSchema> for wire::FlowSchemaSpec {
    fn from(schema: &FlowSchema) -> Self {
        let method = |flow_distinguisher: FlowDistinguisher| wire::DistinguisherMethod {
            method_type: match flow_distinguisher {
                FlowDistinguisher::ByUser => "ByUser".to_owned(),
                FlowDistinguisher::ByNamespace => "ByNamespace".to_owned(),
            },
        };
        Self {
            priority_level_configuration: wire::NameReference {
                name: schema.priority_level_name.clone(),
            },
            matching_precedence: schema.matching_precedence,
            distinguisher_method: schema.flow_distinguisher.map(method),
            rules: schema.rules.iter().map(Into::into).collect(),
        }
    }
}

impl From<&PolicyRulesWithSubjects> for wire::PolicyRulesWithSubjects {
    fn from(rules: &PolicyRulesWithSubjects) -> Self {
        let resource_rules = rules.resource_rules.iter().cloned();
        let non_resource_rules = rules.non_resource_rules.iter().cloned();
        Self {
            subjects: rules.subjects.iter().map(Into::into).collect(),
            resource_rules: resource_rules
                .map(|rule| wire::ResourcePolicyRule {
                    verbs: rule.verbs,
                    api_groups: rule.api_groups,
                    resources: rule.resources,
                    cluster_scope: rule.matches_cluster_scope,
                    namespaces: rule.namespaces,
                })
                .collect(),
            non_resource_rules: non_resource_rules
                .map(|rule| wire::NonResourcePolicyRule {
                    verbs: rule.verbs,
                    non_resource_urls: rule.non_resource_urls,
                })
                .collect(),
        }
    }
}

impl From<&Subject> for wire::Subject {
    fn from(subject: &Subject) -> Self {
        match subject.clone() {
            Subject::User(name) => Self {
                kind: "User".to_owned(),
                user: Some(wire::NameReference { name }),
                ..Self::default()
            },
            Subject::Group(name) => Self {
                kind: "Group".to_owned(),
                group: Some(wire::NameReference { name }),
                ..Self::default()
            },
            Subject::ServiceAccount { namespace, name } => Self {
                kind: "ServiceAccount".to_owned(),
                service_account: Some(wire::ServiceAccountSubject { namespace, name }),
                ..Self::default()
            },
        }
    }
}

impl From<&BootstrapPriorityLevel> for wire::PriorityLevelSpec {
    fn from(level: &BootstrapPriorityLevel) -> Self {
        let lendable_percent = Some(to_i32(level.lendable_percent));
        match level.priority_level.kind {
            PriorityLevelKind::Exempt => Self {
                level_type: "Exempt".to_owned(),
                limited: None,
                exempt: Some(wire::ExemptPriorityLevel {
                    nominal_concurrency_shares: Some(0),
                    lendable_percent,
                }),
            },
            PriorityLevelKind::Limited { nominal_concurrency_shares, limit_response } => Self {
                level_type: "Limited".to_owned(),
                limited: Some(wire::LimitedPriorityLevel {
                    nominal_concurrency_shares: to_i32(nominal_concurrency_shares),
                    limit_response: limit_response.into(),
                    lendable_percent,
                    borrowing_limit_percent: None,
                }),
                exempt: None,
            },
        }
    }
}

impl From<LimitResponse> for wire::LimitResponse {
    fn from(response: LimitResponse) -> Self {
        match response {
            LimitResponse::Reject => Self { response_type: "Reject".to_owned(), queuing: None },
            LimitResponse::Queue(options) => Self {
                response_type: "Queue".to_owned(),
                queuing: Some(wire::QueuingConfiguration {
                    queues: to_i32(options.n_queues),
                    hand_size: to_i32(options.hand_size),
                    queue_length_limit: to_i32(options.queue_length_limit),
                }),
            },
        }
    }
}

/// Converts a number to the integer type of the wire form. A larger number becomes the largest one;
/// no valid level has one.
fn to_i32(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
