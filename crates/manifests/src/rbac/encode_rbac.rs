//! Encodes roles and bindings as JSON.

use authz_rbac as domain;
use serde_json::Value;

use super::decode_rbac::{API_VERSION, RbacObject};
use super::wire;

/// Encodes an object as the API shows it, without the fields that only a store sets.
///
/// # Errors
/// Never in practice: JSON can express every field of the wire form.
pub fn encode_rbac_object(object: &RbacObject) -> Result<Value, serde_json::Error> {
    let body = match object {
        RbacObject::Role(role) => serde_json::to_value(wire::Role::from(role))?,
        RbacObject::Binding(binding) => serde_json::to_value(wire::Binding::from(binding))?,
    };
    let mut value = serde_json::json!({ "apiVersion": API_VERSION, "kind": object.kind().name() });
    if let (Value::Object(members), Value::Object(body)) = (&mut value, body) {
        members.extend(body);
    }
    Ok(value)
}

/// Encodes a single rule.
///
/// # Errors
/// The same as for [`encode`]: never in practice.
pub fn encode_rbac_rule(rule: &domain::PolicyRule) -> Result<Value, serde_json::Error> {
    serde_json::to_value(wire::PolicyRule::from(rule))
}

/// Encodes a single subject.
///
/// # Errors
/// The same as for [`encode`]: never in practice.
pub fn encode_rbac_subject(subject: &domain::Subject) -> Result<Value, serde_json::Error> {
    serde_json::to_value(wire::Subject::from(subject))
}

impl From<&domain::Metadata> for wire::ObjectMeta {
    fn from(metadata: &domain::Metadata) -> Self {
        let domain::Metadata { namespace, name, labels, annotations } = metadata.clone();
        Self { namespace, name, labels, annotations, ..Self::default() }
    }
}

impl From<&domain::Role> for wire::Role {
    fn from(role: &domain::Role) -> Self {
        Self {
            metadata: (&role.metadata).into(),
            rules: role.rules.iter().map(Into::into).collect(),
            aggregation_rule: role.aggregation_rule.as_ref().map(Into::into),
        }
    }
}

impl From<&domain::Binding> for wire::Binding {
    fn from(binding: &domain::Binding) -> Self {
        let domain::RoleRef { api_group, kind, name } = binding.role_ref.clone();
        Self {
            metadata: (&binding.metadata).into(),
            role_ref: wire::RoleRef { api_group, kind, name },
            subjects: binding.subjects.iter().map(Into::into).collect(),
        }
    }
}

impl From<&domain::PolicyRule> for wire::PolicyRule {
    fn from(rule: &domain::PolicyRule) -> Self {
        let domain::PolicyRule { verbs, api_groups, resources, resource_names, non_resource_urls } =
            rule.clone();
        Self { verbs, api_groups, resources, resource_names, non_resource_urls }
    }
}

impl From<&domain::Subject> for wire::Subject {
    fn from(subject: &domain::Subject) -> Self {
        let domain::Subject { kind, api_group, name, namespace } = subject.clone();
        Self { kind, api_group, name, namespace }
    }
}

impl From<&domain::AggregationRule> for wire::AggregationRule {
    fn from(rule: &domain::AggregationRule) -> Self {
        let expression = |expression: &domain::LabelExpression| {
            let domain::LabelExpression { key, operator, values } = expression.clone();
            wire::LabelExpression { key, operator, values }
        };
        let selector = |selector: &domain::LabelSelector| wire::LabelSelector {
            match_labels: selector.match_labels.clone(),
            match_expressions: selector.match_expressions.iter().map(expression).collect(),
        };
        Self { cluster_role_selectors: rule.cluster_role_selectors.iter().map(selector).collect() }
    }
}
