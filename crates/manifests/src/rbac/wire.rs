//! The serde types of the four kinds. A null field means the same as an absent one, and a null in a list or a
//! map is an empty item.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectMeta {
    #[serde(
        default,
        deserialize_with = "null_to_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub(super) namespace: String,
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) name: String,
    #[serde(
        default,
        deserialize_with = "null_to_empty_map",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(
        default,
        deserialize_with = "null_to_empty_map",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub(super) annotations: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "null_to_empty_list", skip_serializing)]
    pub(super) owner_references: Vec<OwnerReference>,
    #[serde(default, deserialize_with = "null_to_empty_list", skip_serializing)]
    pub(super) finalizers: Vec<String>,
}

/// A reference to the owner of an object. The object is deleted together with its owner.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OwnerReference {
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) api_version: String,
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) name: String,
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) uid: String,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Role {
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) metadata: ObjectMeta,
    #[serde(default, deserialize_with = "null_to_empty_list")]
    pub(super) rules: Vec<PolicyRule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) aggregation_rule: Option<AggregationRule>,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Binding {
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) metadata: ObjectMeta,
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) role_ref: RoleRef,
    #[serde(
        default,
        deserialize_with = "null_to_empty_list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(super) subjects: Vec<Subject>,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PolicyRule {
    #[serde(default, deserialize_with = "null_to_empty_list")]
    pub(super) verbs: Vec<String>,
    #[serde(
        default,
        deserialize_with = "null_to_empty_list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(super) api_groups: Vec<String>,
    #[serde(
        default,
        deserialize_with = "null_to_empty_list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(super) resources: Vec<String>,
    #[serde(
        default,
        deserialize_with = "null_to_empty_list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(super) resource_names: Vec<String>,
    #[serde(
        default,
        rename = "nonResourceURLs",
        deserialize_with = "null_to_empty_list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(super) non_resource_urls: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Subject {
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) kind: String,
    #[serde(
        default,
        deserialize_with = "null_to_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub(super) api_group: String,
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) name: String,
    #[serde(
        default,
        deserialize_with = "null_to_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub(super) namespace: String,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RoleRef {
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) api_group: String,
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) name: String,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AggregationRule {
    #[serde(
        default,
        deserialize_with = "null_to_empty_list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(super) cluster_role_selectors: Vec<LabelSelector>,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LabelSelector {
    #[serde(
        default,
        deserialize_with = "null_to_empty_map",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub(super) match_labels: BTreeMap<String, String>,
    #[serde(
        default,
        deserialize_with = "null_to_empty_list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(super) match_expressions: Vec<LabelExpression>,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LabelExpression {
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) key: String,
    #[serde(default, deserialize_with = "null_to_default")]
    pub(super) operator: String,
    #[serde(
        default,
        deserialize_with = "null_to_empty_list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(super) values: Vec<String>,
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

fn null_to_empty_map<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let entries: BTreeMap<String, Option<String>> = null_to_default(deserializer)?;
    Ok(entries.into_iter().map(|(key, value)| (key, value.unwrap_or_default())).collect())
}
