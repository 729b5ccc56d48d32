//! The field tables of roles and bindings.

use super::meta::{LABEL_SELECTOR, OBJECT_META};
use crate::field_types::FieldType::{List, Object, Text};
use crate::field_types::{Message, field};

pub(super) static ROLE: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(2, "rules", List(&Object(&POLICY_RULE))),
]);

pub(super) static CLUSTER_ROLE: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(2, "rules", List(&Object(&POLICY_RULE))),
    field(3, "aggregationRule", Object(&AGGREGATION_RULE)),
]);

/// The fields of a RoleBinding and of a ClusterRoleBinding.
pub(super) static BINDING: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(2, "subjects", List(&Object(&SUBJECT))),
    field(3, "roleRef", Object(&ROLE_REF)),
]);

static POLICY_RULE: Message = Message(&[
    field(1, "verbs", List(&Text)),
    field(2, "apiGroups", List(&Text)),
    field(3, "resources", List(&Text)),
    field(4, "resourceNames", List(&Text)),
    field(5, "nonResourceURLs", List(&Text)),
]);

static AGGREGATION_RULE: Message =
    Message(&[field(1, "clusterRoleSelectors", List(&Object(&LABEL_SELECTOR)))]);

static SUBJECT: Message = Message(&[
    field(1, "kind", Text),
    field(2, "apiGroup", Text),
    field(3, "name", Text),
    field(4, "namespace", Text),
]);

static ROLE_REF: Message =
    Message(&[field(1, "apiGroup", Text), field(2, "kind", Text), field(3, "name", Text)]);
