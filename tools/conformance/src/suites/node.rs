//! `node`: objects are added and deleted, then the node authorizer decides.

use std::sync::{Arc, LazyLock};

use authz::{NonResourceRule, ResourceRule, TraceRecorder};
use authz_node::{GraphObject, NodeRules, Snapshot};
use serde_json::{Value, json};

use super::AnswerPair;
use super::recorded_attributes::RecordedAttributes;
use crate::vectors::{UnusableVector, Vector};

/// The cluster role with the rules of every node.
const NODE_ROLE: &str = "system:node";

/// The policy that an API server creates when it starts, as recorded with the vectors.
const BOOTSTRAP_POLICY: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/bootstrap-policy.json"));

static NODE_RULES: LazyLock<Result<Arc<NodeRules>, UnusableVector>> =
    LazyLock::new(|| read_node_rules(BOOTSTRAP_POLICY).map(Arc::new));

/// The rules of every node.
pub(super) fn node_rules() -> Result<Arc<NodeRules>, UnusableVector> {
    NODE_RULES.clone()
}

pub(super) fn answer_vector(vector: &Vector) -> Result<AnswerPair, UnusableVector> {
    let mut policy = Snapshot { node_rules: node_rules()?, ..Snapshot::default() };
    let mut objects = Vec::new();
    for event in vector.list("events")? {
        apply_event(&mut policy, &mut objects, event)?;
    }
    let (mut want, mut got) = (Vec::new(), Vec::new());
    for check in vector.list("checks")? {
        let recorded = RecordedAttributes::read(&check["attributes"])?;
        let decision = policy.authorize(&recorded.attributes(), TraceRecorder::disabled_recorder());
        want.push(json!({ "decision": check["decision"], "reason": check["reason"] }));
        got.push(
            json!({ "decision": decision.verdict.name(), "reason": decision.reason.to_string() }),
        );
    }
    Ok(AnswerPair { want: Value::from(want), got: Value::from(got), warnings: Vec::new() })
}

/// Kubernetes writes every reason, so all of it must agree.
pub(super) fn exact_length(text: &str) -> usize {
    text.len()
}

/// The existing objects, each with its kind, namespace and name.
type KnownObjects = Vec<((Value, Value, Value), GraphObject)>;

fn apply_event(
    policy: &mut Snapshot,
    objects: &mut KnownObjects,
    event: &Value,
) -> Result<(), UnusableVector> {
    let raw = &event["object"];
    let object = manifests::parse_node_authorizer_object(raw)
        .ok_or_else(|| UnusableVector::new("an event is about an object of another kind"))?;
    let metadata = &raw["metadata"];
    let identity = (raw["kind"].clone(), metadata["namespace"].clone(), metadata["name"].clone());
    let known = objects.iter().position(|(own, _)| *own == identity);
    match (event["op"].as_str(), known) {
        (Some("update"), Some(idx)) => policy.graph.update_object(&objects[idx].1, &object),
        (Some("add" | "update"), _) => policy.graph.add_object(&object),
        (Some("delete"), _) => policy.graph.delete_object(&object),
        (op, _) => {
            return Err(UnusableVector::new(format!("an event has the unknown `op` {op:?}")));
        }
    }
    if let Some(idx) = known {
        objects.swap_remove(idx);
    }
    if event["op"] != "delete" {
        objects.push((identity, object));
    }
    Ok(())
}

fn read_node_rules(policy: &str) -> Result<NodeRules, UnusableVector> {
    let policy: Value = serde_json::from_str(policy).map_err(UnusableVector::new)?;
    let role = items(&policy["clusterRoles"])
        .find(|role| role["metadata"]["name"] == NODE_ROLE)
        .ok_or_else(|| UnusableVector::new("the bootstrap policy has no role for nodes"))?;
    let mut rules = NodeRules::default();
    for rule in items(&role["rules"]) {
        let texts = |key: &str| items(&rule[key]).filter_map(Value::as_str).map(str::to_owned);
        if rule.get("nonResourceURLs").is_some() {
            rules.non_resource_rules.push(NonResourceRule {
                verbs: texts("verbs").collect(),
                non_resource_urls: texts("nonResourceURLs").collect(),
            });
        } else {
            rules.resource_rules.push(ResourceRule {
                verbs: texts("verbs").collect(),
                api_groups: texts("apiGroups").collect(),
                resources: texts("resources").collect(),
                resource_names: texts("resourceNames").collect(),
            });
        }
    }
    Ok(rules)
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_of_nodes_is_in_the_bootstrap_policy() {
        let rules = NODE_RULES.clone().unwrap();
        assert!(rules.resource_rules.len() > 20);
        assert!(read_node_rules("{}").is_err());
    }
}
