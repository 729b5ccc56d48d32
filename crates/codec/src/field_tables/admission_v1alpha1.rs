//! The field tables of admission configuration in v1alpha1: external hooks and initializers.
//!
//! The field numbers are those of Kubernetes 1.8. A field that Kubernetes does not have is read from JSON
//! only.

use super::meta::OBJECT_META;
use crate::field_types::FieldType::{Bytes, Inline, List, Object, Text};
use crate::field_types::{Message, field};

pub(super) static EXTERNAL_HOOKS: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(2, "externalAdmissionHooks", List(&Object(&EXTERNAL_HOOK))),
]);

pub(super) static INITIALIZERS: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(2, "initializers", List(&Object(&INITIALIZER))),
]);

static EXTERNAL_HOOK: Message = Message(&[
    field(1, "name", Text),
    field(2, "clientConfig", Object(&CLIENT_CONFIG)),
    field(3, "rules", List(&Object(&RULE_WITH_VERBS))),
    field(4, "failurePolicy", Text).keeping_zero(),
]);

static CLIENT_CONFIG: Message = Message(&[
    field(1, "service", Object(&Message(&[field(1, "namespace", Text), field(2, "name", Text)]))),
    field(2, "caBundle", Bytes),
    field(3, "urlPath", Text),
]);

static RULE_WITH_VERBS: Message = Message(&[
    field(0, "verbs", List(&Text)),
    field(1, "operations", List(&Text)),
    field(2, "inline", Inline(&RULE)),
]);

static RULE: Message = Message(&[
    field(1, "apiGroups", List(&Text)),
    field(2, "apiVersions", List(&Text)),
    field(3, "resources", List(&Text)),
]);

static INITIALIZER: Message = Message(&[
    field(1, "name", Text),
    field(2, "rules", List(&Object(&RULE))),
    field(3, "failurePolicy", Text).keeping_zero(),
    field(0, "orderingMode", Text),
    field(0, "before", List(&Text)),
    field(0, "after", List(&Text)),
]);
