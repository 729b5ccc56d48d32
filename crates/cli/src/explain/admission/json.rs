//! Explanations of admission for programs.

use std::io;

use admission::{
    Endpoint, Exemption, ExplainedCondition, GroupVersionKind, GroupVersionResource,
    InitializersOrigin,
};
use api_object::Status;
use cel::{ExplainedPart, PartResult};
use serde_json::{Map, Value, json};

use super::consider::{Considered, Fate, Reason};
use super::verdict::Verdict;
use super::waiting::{Awaited, Waiting};
use super::words::{failure_policy, phase, review_version, side_effects};
use crate::exit::Exit;

/// Writes an explanation as one line. What is empty or does not apply is left out.
///
/// # Errors
/// Fails if it can not be written.
pub(super) fn write(out: &mut dyn io::Write, verdict: &Verdict<'_>, all: bool) -> io::Result<()> {
    let mut map = Map::new();
    let outcome = match verdict.exit() {
        Exit::Clean => "admitted",
        Exit::Findings => "refused",
        Exit::Open | Exit::Usage | Exit::Unreadable => "unknown",
    };
    map.insert("outcome".to_owned(), outcome.into());
    map.insert("request".to_owned(), request(verdict));
    if let Some(status) = verdict.refusal() {
        map.insert("refusal".to_owned(), refusal(status));
    }
    if let Some(exemption) = verdict.write.attributes().exemption() {
        let exemption = match exemption {
            Exemption::Configuration => "configuration",
            Exemption::Review => "review",
        };
        map.insert("exemption".to_owned(), exemption.into());
    }
    if let Some(waiting) = initializers(&verdict.waiting) {
        map.insert("initializers".to_owned(), waiting);
    }
    let hooks = verdict.hooks.iter().filter(|own| all || own.fate != Fate::Unmatched);
    let hooks: Vec<Value> = hooks.map(hook).collect();
    map.insert("hooks".to_owned(), hooks.into());
    serde_json::to_writer(&mut *out, &Value::Object(map))?;
    writeln!(out)
}

fn request(verdict: &Verdict<'_>) -> Value {
    let attributes = verdict.write.attributes();
    let user = &verdict.how.user;
    without_empty(json!({
        "operation": attributes.operation.name(),
        "kind": kind(&attributes.kind),
        "resource": resource(&attributes.resource),
        "subResource": attributes.subresource,
        "name": attributes.name,
        "namespace": attributes.namespace,
        "user": user.name,
        "groups": user.groups,
        "dryRun": attributes.is_dry_run,
    }))
}

fn kind(GroupVersionKind { group, version, kind }: &GroupVersionKind<'_>) -> Value {
    json!({ "group": group, "version": version, "kind": kind })
}

fn resource(own: &GroupVersionResource<'_>) -> Value {
    let GroupVersionResource { group, version, resource } = own;
    json!({ "group": group, "version": version, "resource": resource })
}

/// The object without empty texts and lists.
fn without_empty(value: Value) -> Value {
    let Value::Object(mut map) = value else { return value };
    map.retain(|_, value| match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Null => false,
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => true,
    });
    Value::Object(map)
}

fn refusal(status: &Status) -> Value {
    json!({ "code": status.code, "reason": status.reason, "message": status.message })
}

fn initializers(waiting: &Waiting<'_>) -> Option<Value> {
    match waiting {
        Waiting::Nobody => None,
        Waiting::Refused(status) => Some(json!({ "refusal": refusal(status) })),
        Waiting::Open(why) => Some(json!({ "why": why })),
        Waiting::For(all, origin) => {
            let origin = match origin {
                InitializersOrigin::Configuration => "configuration",
                InitializersOrigin::Client => "client",
            };
            let pending: Vec<Value> = all.iter().map(awaited).collect();
            Some(json!({ "origin": origin, "pending": pending }))
        }
    }
}

fn awaited(awaited: &Awaited<'_>) -> Value {
    let mut map = Map::new();
    map.insert("name".to_owned(), awaited.entry.name.as_str().into());
    if let Some(after) = &awaited.entry.after {
        map.insert("after".to_owned(), after.clone().into());
    }
    map.insert("runnable".to_owned(), awaited.may_act.into());
    if let Some(own) = awaited.initializer {
        map.insert("configuration".to_owned(), own.configuration_name.as_str().into());
        map.insert("failurePolicy".to_owned(), failure_policy(own.failure_policy).into());
    }
    Value::Object(map)
}

fn hook(considered: &Considered<'_>) -> Value {
    let Considered { hook, fate, .. } = considered;
    let (outcome, why) = match fate {
        Fate::Unmatched => ("unmatched", String::new()),
        Fate::Skipped(reason) => ("skipped", skip_reason(reason)),
        Fate::Called => ("called", String::new()),
        Fate::FailsOpen(why) => ("failed open", why.clone()),
        Fate::Refuses(status, _) => ("refused", status.message.clone()),
        Fate::NotReached => ("not reached", String::new()),
        Fate::Open(why) => ("unknown", why.clone()),
    };
    let seconds = hook.timeout.as_secs();
    let conditions: Vec<Value> = considered.conditions.iter().map(condition).collect();
    let told = considered.identity.as_ref();
    without_empty(json!({
        "phase": phase(considered.phase),
        "index": considered.index,
        "configuration": hook.configuration_name,
        "webhook": hook.name,
        "outcome": outcome,
        "why": why,
        "failurePolicy": failure_policy(hook.failure_policy),
        "timeoutSeconds": seconds,
        "reviewVersion": hook.review_versions.first().map(|version| review_version(*version)),
        "sideEffects": hook.side_effects.map(side_effects),
        "endpoint": endpoint(considered),
        "kind": told.and_then(|told| told.kind.as_ref()).map(kind),
        "resource": told.map(|told| resource(&told.resource)),
        "conditions": conditions,
    }))
}

fn endpoint(considered: &Considered<'_>) -> Value {
    let client = &considered.hook.client_config;
    without_empty(match &client.endpoint {
        Endpoint::Url { host, port } => json!({ "host": host, "port": port, "path": client.path }),
        Endpoint::Service { namespace, name, port } => json!({
            "service": { "namespace": namespace, "name": name },
            "port": port,
            "path": client.path,
        }),
        Endpoint::Invalid => Value::Null,
    })
}

/// As the trace of a server has it.
fn skip_reason(reason: &Reason) -> String {
    match reason {
        Reason::NamespaceSelector => "namespaceSelector does not match".to_owned(),
        Reason::ObjectSelector => "objectSelector does not match".to_owned(),
        Reason::Condition(name) => format!("match condition {name:?} is false"),
        Reason::ConditionError(why) => format!("match conditions failed: {why}"),
    }
}

fn condition(condition: &ExplainedCondition<'_>) -> Value {
    let mut map = Map::new();
    map.insert("name".to_owned(), condition.name.into());
    map.insert("expression".to_owned(), condition.expression.into());
    match &condition.explanation {
        Err(error) => {
            map.insert("error".to_owned(), error.to_string().into());
        }
        Ok(explanation) => {
            let mut parts = explanation.parts.iter();
            if let Some(whole) = parts.next() {
                outcome(whole, &mut map);
            }
            map.insert("parts".to_owned(), parts.map(part).collect());
            if explanation.n_omitted_parts > 0 {
                map.insert("partsLeftOut".to_owned(), explanation.n_omitted_parts.into());
            }
        }
    }
    Value::Object(map)
}

fn part(part: &ExplainedPart) -> Value {
    let mut map = Map::new();
    map.insert("depth".to_owned(), part.depth.into());
    map.insert("text".to_owned(), part.text.as_str().into());
    outcome(part, &mut map);
    Value::Object(map)
}

fn outcome(part: &ExplainedPart, map: &mut Map<String, Value>) {
    let (name, value) = match &part.result {
        PartResult::Value(value) => ("value", value.as_str().into()),
        PartResult::Error(error) => ("error", error.as_str().into()),
        PartResult::Skipped => ("skipped", true.into()),
    };
    map.insert(name.to_owned(), value);
}
