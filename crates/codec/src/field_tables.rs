//! The field tables of kinds.

mod admission;
mod admission_v1alpha1;
mod core;
mod flow_control;
mod meta;
mod rbac;
mod reviews;

use crate::field_types::Message;

pub(crate) use meta::{DELETE_OPTIONS, OBJECT_META};

const ADMISSION: &str = "admissionregistration.k8s.io";
const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";
const FLOW_CONTROL: &str = "flowcontrol.apiserver.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

/// A kind that has a table: group, kind, table.
type KindRow = (&'static str, &'static str, &'static Message);

/// The kinds of version `v1` that have a table.
static V1: &[KindRow] = &[
    ("", "ConfigMap", &core::CONFIG_MAP),
    ("", "Endpoints", &core::ENDPOINTS),
    ("", "Event", &core::EVENT),
    ("", "Namespace", &core::NAMESPACE),
    ("", "Secret", &core::SECRET),
    ("", "Service", &core::SERVICE),
    ("", "ServiceAccount", &core::SERVICE_ACCOUNT),
    ("coordination.k8s.io", "Lease", &core::LEASE),
    ("discovery.k8s.io", "EndpointSlice", &core::ENDPOINT_SLICE),
    (ADMISSION, "MutatingAdmissionPolicy", &admission::MUTATING_ADMISSION_POLICY),
    (ADMISSION, "MutatingAdmissionPolicyBinding", &admission::MUTATING_ADMISSION_POLICY_BINDING),
    (ADMISSION, "MutatingWebhookConfiguration", &admission::MUTATING_WEBHOOK_CONFIGURATION),
    (ADMISSION, "ValidatingAdmissionPolicy", &admission::VALIDATING_ADMISSION_POLICY),
    (
        ADMISSION,
        "ValidatingAdmissionPolicyBinding",
        &admission::VALIDATING_ADMISSION_POLICY_BINDING,
    ),
    (ADMISSION, "ValidatingWebhookConfiguration", &admission::VALIDATING_WEBHOOK_CONFIGURATION),
    (AUTHENTICATION, "SelfSubjectReview", &reviews::SELF_SUBJECT_REVIEW),
    (AUTHENTICATION, "TokenRequest", &reviews::TOKEN_REQUEST),
    (AUTHENTICATION, "TokenReview", &reviews::TOKEN_REVIEW),
    (AUTHORIZATION, "LocalSubjectAccessReview", &reviews::SUBJECT_ACCESS_REVIEW),
    (AUTHORIZATION, "SelfSubjectAccessReview", &reviews::SELF_SUBJECT_ACCESS_REVIEW),
    (AUTHORIZATION, "SelfSubjectRulesReview", &reviews::SELF_SUBJECT_RULES_REVIEW),
    (AUTHORIZATION, "SubjectAccessReview", &reviews::SUBJECT_ACCESS_REVIEW),
    (FLOW_CONTROL, "FlowSchema", &flow_control::FLOW_SCHEMA),
    (FLOW_CONTROL, "PriorityLevelConfiguration", &flow_control::PRIORITY_LEVEL_CONFIGURATION),
    (RBAC, "ClusterRole", &rbac::CLUSTER_ROLE),
    (RBAC, "ClusterRoleBinding", &rbac::BINDING),
    (RBAC, "Role", &rbac::ROLE),
    (RBAC, "RoleBinding", &rbac::BINDING),
];

/// The kinds of version `v1alpha1` that have a table.
static V1ALPHA1: &[KindRow] = &[
    (ADMISSION, "ExternalAdmissionHookConfiguration", &admission_v1alpha1::EXTERNAL_HOOKS),
    (ADMISSION, "InitializerConfiguration", &admission_v1alpha1::INITIALIZERS),
];

/// The field table of a kind, if it has one.
pub(crate) fn fields_of_kind(group: &str, version: &str, kind: &str) -> Option<&'static Message> {
    let rows = match version {
        "v1" => V1,
        "v1alpha1" => V1ALPHA1,
        _ => &[],
    };
    rows.iter().find(|row| row.0 == group && row.1 == kind).map(|row| row.2)
}

/// Reports whether all fields of a built-in kind are known: then its bodies may be protobuf, and
/// unknown fields are found and dropped.
#[must_use]
pub fn has_field_table(group: &str, version: &str, kind: &str) -> bool {
    fields_of_kind(group, version, kind).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field_types::FieldType;

    fn check(message: &'static Message, kind: &str) {
        let fields = message.0;
        for (idx, field) in fields.iter().enumerate() {
            let others = &fields[idx + 1..];
            assert!(
                others.iter().all(|other| other.number != field.number || field.number == 0),
                "{kind}: number {} stands twice",
                field.number
            );
            assert!(others.iter().all(|other| other.name != field.name), "{kind}: {}", field.name);
            let mut field_type = field.field_type;
            while let FieldType::List(inner) | FieldType::Map(inner) = field_type {
                field_type = *inner;
            }
            if let FieldType::Object(inner) | FieldType::Inline(inner) = field_type {
                check(inner, kind);
            }
        }
    }

    #[test]
    fn numbers_and_names_are_unique() {
        for (_, kind, message) in V1.iter().chain(V1ALPHA1) {
            check(message, kind);
            assert!(message.field_by_name("metadata").is_some(), "{kind}");
        }
        check(&DELETE_OPTIONS, "DeleteOptions");
    }

    #[test]
    fn kinds_are_found_by_group_version_and_kind() {
        assert!(has_field_table("", "v1", "ConfigMap"));
        assert!(!has_field_table("", "v2", "ConfigMap"));
        assert!(!has_field_table("x", "v1", "ConfigMap"));
        assert!(!has_field_table("", "v1", "Pod"));
        assert!(has_field_table(ADMISSION, "v1alpha1", "InitializerConfiguration"));
        assert!(!has_field_table(ADMISSION, "v1", "InitializerConfiguration"));
        assert!(!has_field_table(ADMISSION, "v1alpha1", "ValidatingWebhookConfiguration"));
    }

    #[test]
    fn fields_of_inlined_messages_belong_to_the_parent() {
        let named = admission::NAMED_RULE_WITH_OPERATIONS.field_by_name("apiGroups");
        assert!(named.is_some_and(|field| field.number == 1));
        assert!(admission::NAMED_RULE_WITH_OPERATIONS.field_by_name("inline").is_none());
    }
}
