//! Writes explanations of admission as JSON.

use std::io;

use admission::{
    Exemption, ExplainedCondition, GroupVersionKind, GroupVersionResource, HookEndpoint,
    InitializersOrigin,
};
use api_object::Status;
use cel::{ExplainedSubexpression, SubexpressionResult};
use serde_json::{Map, Value, json};

use super::admission_enum_names::{
    admission_phase_name, failure_policy_name, review_version_name, side_effects_name,
};
use super::expected_initializers::{ExpectedInitializer, ExpectedInitializers};
use super::explained_write::ExplainedWrite;
use super::hook_outcomes::{ExplainedHook, HookOutcome, HookSkipReason};
use crate::exit::Exit;

/// Writes an explanation as one line. It omits fields that are empty or do not apply.
///
/// # Errors
/// Fails if it cannot be written.
pub(super) fn write_json_explanation(
    out: &mut dyn io::Write,
    explained: &ExplainedWrite<'_>,
    all: bool,
) -> io::Result<()> {
    let mut map = Map::new();
    let outcome = match explained.exit_code() {
        Exit::Clean => "admitted",
        Exit::Findings => "refused",
        Exit::Undecided | Exit::Usage | Exit::Unreadable => "unknown",
    };
    map.insert("outcome".to_owned(), outcome.into());
    map.insert("request".to_owned(), explained_request_json(explained));
    if let Some(status) = explained.first_refusal() {
        map.insert("refusal".to_owned(), refusal_json(status));
    }
    if let Some(exemption) = explained.write.to_attributes().exemption() {
        let exemption = match exemption {
            Exemption::Configuration => "configuration",
            Exemption::Review => "review",
        };
        map.insert("exemption".to_owned(), exemption.into());
    }
    if let Some(waiting) = expected_initializers_json(&explained.expected_initializers) {
        map.insert("initializers".to_owned(), waiting);
    }
    let hooks = explained
        .explained_hooks
        .iter()
        .filter(|own| all || own.hook_outcome != HookOutcome::Unmatched);
    let hooks: Vec<Value> = hooks.map(explained_hook_json).collect();
    map.insert("hooks".to_owned(), hooks.into());
    serde_json::to_writer(&mut *out, &Value::Object(map))?;
    writeln!(out)
}

fn explained_request_json(explained: &ExplainedWrite<'_>) -> Value {
    let attributes = explained.write.to_attributes();
    let user = &explained.options.user;
    remove_empty_members(json!({
        "operation": attributes.operation.name(),
        "kind": group_version_kind_json(&attributes.kind),
        "resource": group_version_resource_json(&attributes.resource),
        "subResource": attributes.subresource,
        "name": attributes.name,
        "namespace": attributes.namespace,
        "user": user.name,
        "groups": user.groups,
        "dryRun": attributes.is_dry_run,
    }))
}

fn group_version_kind_json(
    GroupVersionKind { group, version, kind }: &GroupVersionKind<'_>,
) -> Value {
    json!({ "group": group, "version": version, "kind": kind })
}

fn group_version_resource_json(own: &GroupVersionResource<'_>) -> Value {
    let GroupVersionResource { group, version, resource } = own;
    json!({ "group": group, "version": version, "resource": resource })
}

/// Removes empty texts, empty lists and nulls from an object.
fn remove_empty_members(value: Value) -> Value {
    let Value::Object(mut map) = value else { return value };
    map.retain(|_, value| match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Null => false,
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => true,
    });
    Value::Object(map)
}

fn refusal_json(status: &Status) -> Value {
    json!({ "code": status.code, "reason": status.reason, "message": status.message })
}

fn expected_initializers_json(waiting: &ExpectedInitializers<'_>) -> Option<Value> {
    match waiting {
        ExpectedInitializers::None => None,
        ExpectedInitializers::Refused(status) => Some(json!({ "refusal": refusal_json(status) })),
        ExpectedInitializers::Unknown(why) => Some(json!({ "why": why })),
        ExpectedInitializers::For(all, origin) => {
            let origin = match origin {
                InitializersOrigin::Configuration => "configuration",
                InitializersOrigin::Client => "client",
            };
            let pending: Vec<Value> = all.iter().map(expected_initializer_json).collect();
            Some(json!({ "origin": origin, "pending": pending }))
        }
    }
}

fn expected_initializer_json(awaited: &ExpectedInitializer<'_>) -> Value {
    let mut map = Map::new();
    map.insert("name".to_owned(), awaited.entry.name.as_str().into());
    if let Some(after) = &awaited.entry.after_initializers {
        map.insert("after".to_owned(), after.clone().into());
    }
    map.insert("runnable".to_owned(), awaited.may_initializer_act_now.into());
    if let Some(own) = awaited.configured_initializer {
        map.insert("configuration".to_owned(), own.configuration_name.as_str().into());
        map.insert("failurePolicy".to_owned(), failure_policy_name(own.failure_policy).into());
    }
    Value::Object(map)
}

fn explained_hook_json(explained_hook: &ExplainedHook<'_>) -> Value {
    let ExplainedHook { hook, hook_outcome: outcome, .. } = explained_hook;
    let (outcome, why) = match outcome {
        HookOutcome::Unmatched => ("unmatched", String::new()),
        HookOutcome::Skipped(reason) => ("skipped", describe_skip_reason(reason)),
        HookOutcome::Called => ("called", String::new()),
        HookOutcome::FailsOpen(why) => ("failed open", why.clone()),
        HookOutcome::Refuses(status, _) => ("refused", status.message.clone()),
        HookOutcome::NotReached => ("not reached", String::new()),
        HookOutcome::Unknown(why) => ("unknown", why.clone()),
    };
    let seconds = hook.call_timeout.as_secs();
    let conditions: Vec<Value> =
        explained_hook.conditions.iter().map(explained_match_condition_json).collect();
    let told = explained_hook.matched_resource.as_ref();
    remove_empty_members(json!({
        "phase": admission_phase_name(explained_hook.admission_phase),
        "index": explained_hook.index,
        "configuration": hook.configuration_name,
        "webhook": hook.name,
        "outcome": outcome,
        "why": why,
        "failurePolicy": failure_policy_name(hook.failure_policy),
        "timeoutSeconds": seconds,
        "reviewVersion": hook.review_versions.first().map(|version| review_version_name(*version)),
        "sideEffects": hook.side_effects.map(side_effects_name),
        "endpoint": hook_endpoint_json(explained_hook),
        "kind": told.and_then(|told| told.kind.as_ref()).map(group_version_kind_json),
        "resource": told.map(|told| group_version_resource_json(&told.resource)),
        "conditions": conditions,
    }))
}

fn hook_endpoint_json(explained_hook: &ExplainedHook<'_>) -> Value {
    let client = &explained_hook.hook.client_config;
    remove_empty_members(match &client.hook_endpoint {
        HookEndpoint::Url { host, port } => {
            json!({ "host": host, "port": port, "path": client.path })
        }
        HookEndpoint::Service { namespace, name, port } => json!({
            "service": { "namespace": namespace, "name": name },
            "port": port,
            "path": client.path,
        }),
        HookEndpoint::Invalid => Value::Null,
    })
}

/// Describes a skip reason with the words of the server's trace.
fn describe_skip_reason(reason: &HookSkipReason) -> String {
    match reason {
        HookSkipReason::NamespaceSelector => "namespaceSelector does not match".to_owned(),
        HookSkipReason::ObjectSelector => "objectSelector does not match".to_owned(),
        HookSkipReason::Condition(name) => format!("match condition {name:?} is false"),
        HookSkipReason::ConditionError(why) => format!("match conditions failed: {why}"),
    }
}

fn explained_match_condition_json(condition: &ExplainedCondition<'_>) -> Value {
    let mut map = Map::new();
    map.insert("name".to_owned(), condition.name.into());
    map.insert("expression".to_owned(), condition.cel_expression.into());
    match &condition.condition_explanation {
        Err(error) => {
            map.insert("error".to_owned(), error.to_string().into());
        }
        Ok(explanation) => {
            let mut parts = explanation.subexpressions.iter();
            if let Some(whole) = parts.next() {
                insert_subexpression_result(whole, &mut map);
            }
            map.insert("parts".to_owned(), parts.map(subexpression_json).collect());
            if explanation.n_omitted_subexpressions > 0 {
                map.insert("partsLeftOut".to_owned(), explanation.n_omitted_subexpressions.into());
            }
        }
    }
    Value::Object(map)
}

fn subexpression_json(part: &ExplainedSubexpression) -> Value {
    let mut map = Map::new();
    map.insert("depth".to_owned(), part.nesting_depth.into());
    map.insert("text".to_owned(), part.source_excerpt.as_str().into());
    insert_subexpression_result(part, &mut map);
    Value::Object(map)
}

fn insert_subexpression_result(part: &ExplainedSubexpression, map: &mut Map<String, Value>) {
    let (name, value) = match &part.result {
        SubexpressionResult::Value(value) => ("value", value.as_str().into()),
        SubexpressionResult::Error(error) => ("error", error.as_str().into()),
        SubexpressionResult::Skipped => ("skipped", true.into()),
    };
    map.insert(name.to_owned(), value);
}
