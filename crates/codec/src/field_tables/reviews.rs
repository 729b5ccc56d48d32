//! The field tables of reviews, which are answered and not stored.

use super::meta::OBJECT_META;
use crate::field_types::FieldType::{Bool, Int64, List, Map, Object, Text, Time, WrappedTexts};
use crate::field_types::{Message, field};

/// The fields of a SubjectAccessReview and of a LocalSubjectAccessReview.
pub(super) static SUBJECT_ACCESS_REVIEW: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(
        2,
        "spec",
        Object(&Message(&[
            field(1, "resourceAttributes", Object(&RESOURCE_ATTRIBUTES)),
            field(2, "nonResourceAttributes", Object(&NON_RESOURCE_ATTRIBUTES)),
            field(3, "user", Text),
            field(4, "groups", List(&Text)),
            field(5, "extra", Map(&WrappedTexts)),
            field(6, "uid", Text),
        ])),
    ),
    field(3, "status", Object(&SUBJECT_ACCESS_REVIEW_STATUS)),
]);

static RESOURCE_ATTRIBUTES: Message = Message(&[
    field(1, "namespace", Text),
    field(2, "verb", Text),
    field(3, "group", Text),
    field(4, "version", Text),
    field(5, "resource", Text),
    field(6, "subresource", Text),
    field(7, "name", Text),
    field(8, "fieldSelector", Object(&SELECTOR_ATTRIBUTES)),
    field(9, "labelSelector", Object(&SELECTOR_ATTRIBUTES)),
]);

static SELECTOR_ATTRIBUTES: Message = Message(&[
    field(1, "rawSelector", Text),
    field(
        2,
        "requirements",
        List(&Object(&Message(&[
            field(1, "key", Text),
            field(2, "operator", Text),
            field(3, "values", List(&Text)),
        ]))),
    ),
]);

static NON_RESOURCE_ATTRIBUTES: Message =
    Message(&[field(1, "path", Text), field(2, "verb", Text)]);

pub(super) static SELF_SUBJECT_ACCESS_REVIEW: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(
        2,
        "spec",
        Object(&Message(&[
            field(1, "resourceAttributes", Object(&RESOURCE_ATTRIBUTES)),
            field(2, "nonResourceAttributes", Object(&NON_RESOURCE_ATTRIBUTES)),
        ])),
    ),
    field(3, "status", Object(&SUBJECT_ACCESS_REVIEW_STATUS)),
]);

pub(super) static SELF_SUBJECT_RULES_REVIEW: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(2, "spec", Object(&Message(&[field(1, "namespace", Text)]))),
    field(
        3,
        "status",
        Object(&Message(&[
            field(
                1,
                "resourceRules",
                List(&Object(&Message(&[
                    field(1, "verbs", List(&Text)),
                    field(2, "apiGroups", List(&Text)),
                    field(3, "resources", List(&Text)),
                    field(4, "resourceNames", List(&Text)),
                ]))),
            ),
            field(
                2,
                "nonResourceRules",
                List(&Object(&Message(&[
                    field(1, "verbs", List(&Text)),
                    field(2, "nonResourceURLs", List(&Text)),
                ]))),
            ),
            field(3, "incomplete", Bool),
            field(4, "evaluationError", Text),
        ])),
    ),
]);

pub(super) static SELF_SUBJECT_REVIEW: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(2, "status", Object(&Message(&[field(1, "userInfo", Object(&USER_INFO))]))),
]);

pub(super) static USER_INFO: Message = Message(&[
    field(1, "username", Text),
    field(2, "uid", Text),
    field(3, "groups", List(&Text)),
    field(4, "extra", Map(&WrappedTexts)),
]);

pub(super) static TOKEN_REVIEW: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(
        2,
        "spec",
        Object(&Message(&[field(1, "token", Text), field(2, "audiences", List(&Text))])),
    ),
    field(
        3,
        "status",
        Object(&Message(&[
            field(1, "authenticated", Bool),
            field(2, "user", Object(&USER_INFO)),
            field(3, "error", Text),
            field(4, "audiences", List(&Text)),
        ])),
    ),
]);

pub(super) static TOKEN_REQUEST: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(
        2,
        "spec",
        Object(&Message(&[
            field(1, "audiences", List(&Text)),
            field(
                3,
                "boundObjectRef",
                Object(&Message(&[
                    field(1, "kind", Text),
                    field(2, "apiVersion", Text),
                    field(3, "name", Text),
                    field(4, "uid", Text),
                ])),
            ),
            field(4, "expirationSeconds", Int64).keeping_zero(),
            field(5, "attestations", Map(&WrappedTexts)),
        ])),
    ),
    field(
        3,
        "status",
        Object(&Message(&[field(1, "token", Text), field(2, "expirationTimestamp", Time)])),
    ),
]);

static SUBJECT_ACCESS_REVIEW_STATUS: Message = Message(&[
    field(1, "allowed", Bool),
    field(2, "reason", Text),
    field(3, "evaluationError", Text),
    field(4, "denied", Bool),
]);
