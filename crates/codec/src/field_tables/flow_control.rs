//! The field tables of flow schemas and priority levels.

use super::meta::OBJECT_META;
use crate::field_types::FieldType::{Bool, Int32, List, Object, Text, Time};
use crate::field_types::{Message, field};

pub(super) static FLOW_SCHEMA: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(2, "spec", Object(&FLOW_SCHEMA_SPEC)),
    field(3, "status", Object(&STATUS)),
]);

pub(super) static PRIORITY_LEVEL_CONFIGURATION: Message = Message(&[
    field(1, "metadata", Object(&OBJECT_META)),
    field(2, "spec", Object(&PRIORITY_LEVEL_SPEC)),
    field(3, "status", Object(&STATUS)),
]);

/// The conditions of both kinds have the same fields.
static STATUS: Message = Message(&[field(
    1,
    "conditions",
    List(&Object(&Message(&[
        field(1, "type", Text),
        field(2, "status", Text),
        field(3, "lastTransitionTime", Time),
        field(4, "reason", Text),
        field(5, "message", Text),
    ]))),
)]);

static NAME: Message = Message(&[field(1, "name", Text)]);

static TYPE: Message = Message(&[field(1, "type", Text)]);

static FLOW_SCHEMA_SPEC: Message = Message(&[
    field(1, "priorityLevelConfiguration", Object(&NAME)),
    field(2, "matchingPrecedence", Int32),
    field(3, "distinguisherMethod", Object(&TYPE)),
    field(
        4,
        "rules",
        List(&Object(&Message(&[
            field(1, "subjects", List(&Object(&SUBJECT))),
            field(2, "resourceRules", List(&Object(&RESOURCE_RULE))),
            field(3, "nonResourceRules", List(&Object(&NON_RESOURCE_RULE))),
        ]))),
    ),
]);

static SUBJECT: Message = Message(&[
    field(1, "kind", Text),
    field(2, "user", Object(&NAME)),
    field(3, "group", Object(&NAME)),
    field(
        4,
        "serviceAccount",
        Object(&Message(&[field(1, "namespace", Text), field(2, "name", Text)])),
    ),
]);

static RESOURCE_RULE: Message = Message(&[
    field(1, "verbs", List(&Text)),
    field(2, "apiGroups", List(&Text)),
    field(3, "resources", List(&Text)),
    field(4, "clusterScope", Bool),
    field(5, "namespaces", List(&Text)),
]);

static NON_RESOURCE_RULE: Message =
    Message(&[field(1, "verbs", List(&Text)), field(6, "nonResourceURLs", List(&Text))]);

static PRIORITY_LEVEL_SPEC: Message = Message(&[
    field(1, "type", Text),
    field(2, "limited", Object(&LIMITED)),
    field(
        3,
        "exempt",
        Object(&Message(&[
            field(1, "nominalConcurrencyShares", Int32).keeping_zero(),
            field(2, "lendablePercent", Int32).keeping_zero(),
        ])),
    ),
]);

static LIMITED: Message = Message(&[
    field(1, "nominalConcurrencyShares", Int32).keeping_zero(),
    field(
        2,
        "limitResponse",
        Object(&Message(&[
            field(1, "type", Text),
            field(
                2,
                "queuing",
                Object(&Message(&[
                    field(1, "queues", Int32),
                    field(2, "handSize", Int32),
                    field(3, "queueLengthLimit", Int32),
                ])),
            ),
        ])),
    ),
    field(3, "lendablePercent", Int32).keeping_zero(),
    field(4, "borrowingLimitPercent", Int32).keeping_zero(),
]);
