//! Field tables that all kinds share: metadata, options, selectors, conditions.

use crate::field_types::FieldType::{Bool, Int32, Int64, Json, List, Map, Object, Text, Time};
use crate::field_types::{Message, field};

pub(crate) static DELETE_OPTIONS: Message = Message(&[
    field(1, "gracePeriodSeconds", Int64).keeping_zero(),
    field(
        2,
        "preconditions",
        Object(&Message(&[field(1, "uid", Text), field(2, "resourceVersion", Text)])),
    ),
    field(3, "orphanDependents", Bool).keeping_zero(),
    field(4, "propagationPolicy", Text),
    field(5, "dryRun", List(&Text)),
    field(6, "ignoreStoreReadErrorWithClusterBreakingPotential", Bool).keeping_zero(),
]);

pub(crate) static OBJECT_META: Message = Message(&[
    field(1, "name", Text),
    field(2, "generateName", Text),
    field(3, "namespace", Text),
    field(4, "selfLink", Text),
    field(5, "uid", Text),
    field(6, "resourceVersion", Text),
    field(7, "generation", Int64),
    field(8, "creationTimestamp", Time),
    field(9, "deletionTimestamp", Time),
    field(10, "deletionGracePeriodSeconds", Int64).keeping_zero(),
    field(11, "labels", Map(&Text)),
    field(12, "annotations", Map(&Text)),
    field(13, "ownerReferences", List(&Object(&OWNER_REFERENCE))),
    field(14, "finalizers", List(&Text)),
    field(16, "initializers", Object(&INITIALIZERS)),
    field(17, "managedFields", List(&Object(&MANAGED_FIELDS_ENTRY))),
]);

pub(super) static OWNER_REFERENCE: Message = Message(&[
    field(1, "kind", Text),
    field(3, "name", Text),
    field(4, "uid", Text),
    field(5, "apiVersion", Text),
    field(6, "controller", Bool).keeping_zero(),
    field(7, "blockOwnerDeletion", Bool).keeping_zero(),
]);

pub(super) static MANAGED_FIELDS_ENTRY: Message = Message(&[
    field(1, "manager", Text),
    field(2, "operation", Text),
    field(3, "apiVersion", Text),
    field(4, "time", Time),
    field(6, "fieldsType", Text),
    field(7, "fieldsV1", Json),
    field(8, "subresource", Text),
]);

pub(super) static INITIALIZERS: Message = Message(&[
    field(
        1,
        "pending",
        // `after` is read from JSON only. Protobuf clients have no such field, so their initializers act in the
        // order of the list.
        List(&Object(&Message(&[field(1, "name", Text), field(0, "after", List(&Text))]))),
    ),
    field(2, "result", Object(&STATUS)),
]);

pub(super) static STATUS: Message = Message(&[
    // A Status inside an object has `kind` and `apiVersion` in JSON but not in protobuf.
    field(0, "kind", Text),
    field(0, "apiVersion", Text),
    field(
        1,
        "metadata",
        Object(&Message(&[
            field(1, "selfLink", Text),
            field(2, "resourceVersion", Text),
            field(3, "continue", Text),
            field(4, "remainingItemCount", Int64).keeping_zero(),
        ])),
    ),
    field(2, "status", Text),
    field(3, "message", Text),
    field(4, "reason", Text),
    field(
        5,
        "details",
        Object(&Message(&[
            field(1, "name", Text),
            field(2, "group", Text),
            field(3, "kind", Text),
            field(
                4,
                "causes",
                List(&Object(&Message(&[
                    field(1, "reason", Text),
                    field(2, "message", Text),
                    field(3, "field", Text),
                ]))),
            ),
            field(5, "retryAfterSeconds", Int32),
            field(6, "uid", Text),
        ])),
    ),
    field(6, "code", Int32),
]);

pub(super) static LABEL_SELECTOR: Message = Message(&[
    field(1, "matchLabels", Map(&Text)),
    field(
        2,
        "matchExpressions",
        List(&Object(&Message(&[
            field(1, "key", Text),
            field(2, "operator", Text),
            field(3, "values", List(&Text)),
        ]))),
    ),
]);

pub(super) static CONDITION: Message = Message(&[
    field(1, "type", Text),
    field(2, "status", Text),
    field(3, "observedGeneration", Int64),
    field(4, "lastTransitionTime", Time),
    field(5, "reason", Text),
    field(6, "message", Text),
]);
