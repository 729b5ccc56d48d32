//! The serde types of the two kinds. A null field means the same as an absent one, and a null in a list is an
//! empty item.

use serde::{Deserialize, Deserializer, Serialize};

/// The fields that both kinds have, with the spec of one of them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FlowControlObject<Spec: Default> {
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) metadata: ObjectMeta,
    #[serde(
        default,
        deserialize_with = "null_to_default",
        bound(deserialize = "Spec: Deserialize<'de> + Default")
    )]
    pub(super) spec: Spec,
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) status: Status,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct ObjectMeta {
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) name: String,
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) uid: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Status {
    #[serde(default, deserialize_with = "null_to_empty_list")]
    pub(super) conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Condition {
    #[serde(default, rename = "type", deserialize_with = "null_to_default")]
    pub(super) condition_type: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FlowSchemaSpec {
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) priority_level_configuration: NameReference,
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) matching_precedence: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) distinguisher_method: Option<DistinguisherMethod>,
    #[serde(
        default,
        deserialize_with = "null_to_empty_list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(super) rules: Vec<PolicyRulesWithSubjects>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct NameReference {
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct DistinguisherMethod {
    #[serde(default, rename = "type", deserialize_with = "null_to_default")]
    pub(super) method_type: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PolicyRulesWithSubjects {
    #[serde(default, deserialize_with = "null_to_empty_list")]
    pub(super) subjects: Vec<Subject>,
    #[serde(
        default,
        deserialize_with = "null_to_empty_list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(super) resource_rules: Vec<ResourcePolicyRule>,
    #[serde(
        default,
        deserialize_with = "null_to_empty_list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(super) non_resource_rules: Vec<NonResourcePolicyRule>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Subject {
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) user: Option<NameReference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) group: Option<NameReference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) service_account: Option<ServiceAccountSubject>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct ServiceAccountSubject {
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) namespace: String,
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourcePolicyRule {
    #[serde(default, deserialize_with = "null_to_empty_list")]
    pub(super) verbs: Vec<String>,
    #[serde(default, deserialize_with = "null_to_empty_list")]
    pub(super) api_groups: Vec<String>,
    #[serde(default, deserialize_with = "null_to_empty_list")]
    pub(super) resources: Vec<String>,
    #[serde(
        default,
        deserialize_with = "null_to_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub(super) cluster_scope: bool,
    #[serde(
        default,
        deserialize_with = "null_to_empty_list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(super) namespaces: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct NonResourcePolicyRule {
    #[serde(default, deserialize_with = "null_to_empty_list")]
    pub(super) verbs: Vec<String>,
    #[serde(default, rename = "nonResourceURLs", deserialize_with = "null_to_empty_list")]
    pub(super) non_resource_urls: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct PriorityLevelSpec {
    #[serde(default, rename = "type", deserialize_with = "null_to_default")]
    pub(super) level_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) limited: Option<LimitedPriorityLevel>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) exempt: Option<ExemptPriorityLevel>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LimitedPriorityLevel {
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) nominal_concurrency_shares: i32,
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) limit_response: LimitResponse,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lendable_percent: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) borrowing_limit_percent: Option<i32>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExemptPriorityLevel {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) nominal_concurrency_shares: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lendable_percent: Option<i32>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct LimitResponse {
    #[serde(default, rename = "type", deserialize_with = "null_to_default")]
    pub(super) response_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) queuing: Option<QueuingConfiguration>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct QueuingConfiguration {
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) queues: i32,
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) hand_size: i32,
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) queue_length_limit: i32,
}

fn null_to_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn null_to_empty_list<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let items: Vec<Option<T>> = null_to_default(deserializer)?;
    Ok(items.into_iter().map(Option::unwrap_or_default).collect())
}
