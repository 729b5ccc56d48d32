//! Protobuf fields of the kinds that configure admission: webhook configurations, policies and
//! bindings.

use super::meta::{CONDITION, LABEL_SELECTOR, OBJECT_META};
use crate::field_types::FieldType::{Bytes, Inline, Int32, Int64, List, Object, Text};
use crate::field_types::{Message, field};

pub(super) static VALIDATING_WEBHOOK_CONFIGURATION: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(2, "webhooks", List(&Object(&VALIDATING_WEBHOOK))),
]);

pub(super) static MUTATING_WEBHOOK_CONFIGURATION: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(2, "webhooks", List(&Object(&MUTATING_WEBHOOK))),
]);

pub(super) static VALIDATING_WEBHOOK: Message = Message(&[
    field(1, "name", Text),
    field(2, "clientConfig", Object(&WEBHOOK_CLIENT_CONFIG)),
    field(3, "rules", List(&Object(&RULE_WITH_OPERATIONS))),
    field(4, "failurePolicy", Text).keeping_zero(),
    field(5, "namespaceSelector", Object(&LABEL_SELECTOR)),
    field(6, "sideEffects", Text).keeping_zero(),
    field(7, "timeoutSeconds", Int32).keeping_zero(),
    field(8, "admissionReviewVersions", List(&Text)),
    field(9, "matchPolicy", Text).keeping_zero(),
    field(10, "objectSelector", Object(&LABEL_SELECTOR)),
    field(11, "matchConditions", List(&Object(&MATCH_CONDITION))),
]);

pub(super) static MUTATING_WEBHOOK: Message = Message(&[
    field(1, "name", Text),
    field(2, "clientConfig", Object(&WEBHOOK_CLIENT_CONFIG)),
    field(3, "rules", List(&Object(&RULE_WITH_OPERATIONS))),
    field(4, "failurePolicy", Text).keeping_zero(),
    field(5, "namespaceSelector", Object(&LABEL_SELECTOR)),
    field(6, "sideEffects", Text).keeping_zero(),
    field(7, "timeoutSeconds", Int32).keeping_zero(),
    field(8, "admissionReviewVersions", List(&Text)),
    field(9, "matchPolicy", Text).keeping_zero(),
    field(10, "reinvocationPolicy", Text).keeping_zero(),
    field(11, "objectSelector", Object(&LABEL_SELECTOR)),
    field(12, "matchConditions", List(&Object(&MATCH_CONDITION))),
]);

pub(super) static WEBHOOK_CLIENT_CONFIG: Message = Message(&[
    field(
        1,
        "service",
        Object(&Message(&[
            field(1, "namespace", Text),
            field(2, "name", Text),
            field(3, "path", Text),
            field(4, "port", Int32).keeping_zero(),
        ])),
    ),
    field(2, "caBundle", Bytes),
    field(3, "url", Text).keeping_zero(),
]);

pub(super) static RULE_WITH_OPERATIONS: Message = Message(&[
    field(1, "operations", List(&Text)),
    field(
        2,
        "inline",
        Inline(&Message(&[
            field(1, "apiGroups", List(&Text)),
            field(2, "apiVersions", List(&Text)),
            field(3, "resources", List(&Text)),
            field(4, "scope", Text).keeping_zero(),
        ])),
    ),
]);

pub(super) static MATCH_CONDITION: Message =
    Message(&[field(1, "name", Text), field(2, "expression", Text)]);

pub(super) static VALIDATING_ADMISSION_POLICY: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(
        2,
        "spec",
        Object(&Message(&[
            field(1, "paramKind", Object(&PARAM_KIND)),
            field(2, "matchConstraints", Object(&MATCH_RESOURCES)),
            field(
                3,
                "validations",
                List(&Object(&Message(&[
                    field(1, "expression", Text),
                    field(2, "message", Text),
                    field(3, "reason", Text),
                    field(4, "messageExpression", Text),
                ]))),
            ),
            field(4, "failurePolicy", Text),
            field(
                5,
                "auditAnnotations",
                List(&Object(&Message(&[
                    field(1, "key", Text),
                    field(2, "valueExpression", Text),
                ]))),
            ),
            field(6, "matchConditions", List(&Object(&MATCH_CONDITION))),
            field(7, "variables", List(&Object(&VARIABLE))),
        ])),
    ),
    field(
        3,
        "status",
        Object(&Message(&[
            field(1, "observedGeneration", Int64),
            field(
                2,
                "typeChecking",
                Object(&Message(&[field(
                    1,
                    "expressionWarnings",
                    List(&Object(&Message(&[
                        field(2, "fieldRef", Text),
                        field(3, "warning", Text),
                    ]))),
                )])),
            ),
            field(3, "conditions", List(&Object(&CONDITION))),
        ])),
    ),
]);

pub(super) static MUTATING_ADMISSION_POLICY: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(
        2,
        "spec",
        Object(&Message(&[
            field(1, "paramKind", Object(&PARAM_KIND)),
            field(2, "matchConstraints", Object(&MATCH_RESOURCES)),
            field(3, "variables", List(&Object(&VARIABLE))),
            field(
                4,
                "mutations",
                List(&Object(&Message(&[
                    field(2, "patchType", Text),
                    field(
                        3,
                        "applyConfiguration",
                        Object(&Message(&[field(1, "expression", Text)])),
                    ),
                    field(4, "jsonPatch", Object(&Message(&[field(1, "expression", Text)]))),
                ]))),
            ),
            field(5, "failurePolicy", Text),
            field(6, "matchConditions", List(&Object(&MATCH_CONDITION))),
            field(7, "reinvocationPolicy", Text),
        ])),
    ),
]);

pub(super) static VALIDATING_ADMISSION_POLICY_BINDING: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(
        2,
        "spec",
        Object(&Message(&[
            field(1, "policyName", Text),
            field(
                2,
                "paramRef",
                Object(&Message(&[
                    field(1, "name", Text),
                    field(2, "namespace", Text),
                    field(3, "selector", Object(&LABEL_SELECTOR)),
                    field(4, "parameterNotFoundAction", Text),
                ])),
            ),
            field(3, "matchResources", Object(&MATCH_RESOURCES)),
            field(4, "validationActions", List(&Text)),
        ])),
    ),
]);

pub(super) static MUTATING_ADMISSION_POLICY_BINDING: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(
        2,
        "spec",
        Object(&Message(&[
            field(1, "policyName", Text),
            field(
                2,
                "paramRef",
                Object(&Message(&[
                    field(1, "name", Text),
                    field(2, "namespace", Text),
                    field(3, "selector", Object(&LABEL_SELECTOR)),
                    field(4, "parameterNotFoundAction", Text),
                ])),
            ),
            field(3, "matchResources", Object(&MATCH_RESOURCES)),
        ])),
    ),
]);

pub(super) static PARAM_KIND: Message =
    Message(&[field(1, "apiVersion", Text), field(2, "kind", Text)]);

pub(super) static VARIABLE: Message =
    Message(&[field(1, "name", Text), field(2, "expression", Text)]);

pub(super) static MATCH_RESOURCES: Message = Message(&[
    field(1, "namespaceSelector", Object(&LABEL_SELECTOR)),
    field(2, "objectSelector", Object(&LABEL_SELECTOR)),
    field(3, "resourceRules", List(&Object(&NAMED_RULE_WITH_OPERATIONS))),
    field(4, "excludeResourceRules", List(&Object(&NAMED_RULE_WITH_OPERATIONS))),
    field(7, "matchPolicy", Text),
]);

pub(super) static NAMED_RULE_WITH_OPERATIONS: Message = Message(&[
    field(1, "resourceNames", List(&Text)),
    field(2, "inline", Inline(&RULE_WITH_OPERATIONS)),
]);
