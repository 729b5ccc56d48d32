//! Specs as error messages show them. Kubernetes prints its internal types there, whose members have the names
//! of Go.

use field_errors::BadValue;
use serde_json::{Value, json};

use super::wire;

pub(super) fn flow_schema_spec_bad_value(spec: &wire::FlowSchemaSpec) -> BadValue {
    to_bad_value(&json!({
        "PriorityLevelConfiguration": {"Name": spec.priority_level_configuration.name},
        "MatchingPrecedence": spec.matching_precedence,
        "DistinguisherMethod": spec.distinguisher_method.as_ref().map(distinguisher_go_json),
        "Rules": go_list_json(&spec.rules, |rules| json!({
            "Subjects": go_list_json(&rules.subjects, flow_schema_subject_go_json),
            "ResourceRules": go_list_json(&rules.resource_rules, |rule| json!({
                "Verbs": go_text_list_json(&rule.verbs),
                "APIGroups": go_text_list_json(&rule.api_groups),
                "Resources": go_text_list_json(&rule.resources),
                "ClusterScope": rule.cluster_scope,
                "Namespaces": go_text_list_json(&rule.namespaces),
            })),
            "NonResourceRules": go_list_json(&rules.non_resource_rules, |rule| json!({
                "Verbs": go_text_list_json(&rule.verbs),
                "NonResourceURLs": go_text_list_json(&rule.non_resource_urls),
            })),
        })),
    }))
}

pub(super) fn priority_level_spec_bad_value(spec: &wire::PriorityLevelSpec) -> BadValue {
    to_bad_value(&json!({
        "Type": spec.level_type,
        "Limited": spec.limited.as_ref().map(|limited| json!({
            "NominalConcurrencyShares": limited.nominal_concurrency_shares,
            "LimitResponse": {
                "Type": limited.limit_response.response_type,
                "Queuing": limited.limit_response.queuing.as_ref().map(|queuing| json!({
                    "Queues": queuing.queues,
                    "HandSize": queuing.hand_size,
                    "QueueLengthLimit": queuing.queue_length_limit,
                })),
            },
            "LendablePercent": limited.lendable_percent,
            "BorrowingLimitPercent": limited.borrowing_limit_percent,
        })),
        "Exempt": spec.exempt.as_ref().map(|exempt| json!({
            "NominalConcurrencyShares": exempt.nominal_concurrency_shares,
            "LendablePercent": exempt.lendable_percent,
        })),
    }))
}

pub(super) fn distinguisher_method_bad_value(method: &wire::DistinguisherMethod) -> BadValue {
    to_bad_value(&distinguisher_go_json(method))
}

/// A list of texts, as JSON.
pub(super) fn text_list_bad_value(list: &[String]) -> BadValue {
    to_bad_value(&go_text_list_json(list))
}

/// A number, which messages show without quotes.
pub(super) fn number_bad_value(number: i32) -> BadValue {
    BadValue::Json(number.to_string())
}

fn distinguisher_go_json(method: &wire::DistinguisherMethod) -> Value {
    json!({"Type": method.method_type})
}

fn flow_schema_subject_go_json(subject: &wire::Subject) -> Value {
    let by_name = |reference: &wire::NameReference| json!({"Name": reference.name});
    json!({
        "Kind": subject.kind,
        "User": subject.user.as_ref().map(by_name),
        "Group": subject.group.as_ref().map(by_name),
        "ServiceAccount": subject.service_account.as_ref().map(|account| json!({
            "Namespace": account.namespace,
            "Name": account.name,
        })),
    })
}

/// A list in Go; an absent one is null.
fn go_list_json<T>(items: &[T], value: impl Fn(&T) -> Value) -> Value {
    match items {
        [] => Value::Null,
        [..] => items.iter().map(value).collect(),
    }
}

fn go_text_list_json(items: &[String]) -> Value {
    go_list_json(items, |text| Value::from(text.as_str()))
}

fn to_bad_value(value: &Value) -> BadValue {
    BadValue::Json(value.to_string())
}
