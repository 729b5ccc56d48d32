//! The table columns of flow schemas and priority levels.

use serde_json::Value;

use super::{AGE, BuiltInTable, NAME, age_cell, name_cell, text_column};
use crate::json_members::{integer_member, list_member, string_member, value_at_path};

pub(super) static FLOW_SCHEMA: BuiltInTable = BuiltInTable {
    columns: &[
        NAME,
        text_column("PriorityLevel", "The priority level of the requests that match."),
        text_column("MatchingPrecedence", "Schemas with a lower number are tried first."),
        text_column("DistinguisherMethod", "How the requests are divided into flows."),
        AGE,
        text_column("MissingPL", "Whether the priority level does not exist."),
    ],
    make_cells: |tree, now| {
        let spec = value_at_path(tree, &["spec"]);
        let level = string_member(value_at_path(spec, &["priorityLevelConfiguration"]), "name");
        let method = match value_at_path(spec, &["distinguisherMethod"]) {
            Value::Null => "<none>",
            method => string_member(method, "type"),
        };
        let conditions = list_member(value_at_path(tree, &["status"]), "conditions");
        let is_dangling = |condition: &&Value| {
            string_member(*condition, "type") == manifests::flow_control::DANGLING
        };
        let missing = conditions.iter().find(is_dangling);
        vec![
            name_cell(tree),
            level.into(),
            integer_member(spec, "matchingPrecedence").into(),
            method.into(),
            age_cell(tree, now),
            missing.map_or("?", |condition| string_member(condition, "status")).into(),
        ]
    },
};

pub(super) static PRIORITY_LEVEL_CONFIGURATION: BuiltInTable = BuiltInTable {
    columns: &[
        NAME,
        text_column("Type", "Whether the requests of the level are limited."),
        text_column("NominalConcurrencyShares", "The part of all seats that the level has."),
        text_column("Queues", "How many queues there are."),
        text_column("HandSize", "How many queues one flow may use."),
        text_column("QueueLengthLimit", "How many requests may wait in one queue."),
        AGE,
    ],
    make_cells: |tree, now| {
        let spec = value_at_path(tree, &["spec"]);
        let limited = value_at_path(spec, &["limited"]);
        let queuing = value_at_path(limited, &["limitResponse", "queuing"]);
        vec![
            name_cell(tree),
            string_member(spec, "type").into(),
            number_cell(limited, "nominalConcurrencyShares"),
            number_cell(queuing, "queues"),
            number_cell(queuing, "handSize"),
            number_cell(queuing, "queueLengthLimit"),
            age_cell(tree, now),
        ]
    },
};

fn number_cell(tree: &Value, member: &str) -> Value {
    if tree.is_null() { "<none>".into() } else { integer_member(tree, member).into() }
}
