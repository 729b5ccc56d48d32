//! The fields of lists.

use document::{FieldSchema, FieldType, ObjectSchema, TextRule};

/// A list of any kind. The reader checks its items one by one.
pub(super) static LIST: ObjectSchema = ObjectSchema {
    type_name: "List",
    description: "A list of objects.",
    fields: &[
        field("apiVersion", "Version of the list.", FieldType::Text(TextRule::Any)),
        field("kind", "Kind of the list.", FieldType::Text(TextRule::Any)),
        field("metadata", "What a server says about the list.", FieldType::Object(&LIST_META)),
        field("items", "The objects.", FieldType::Any),
    ],
};

static LIST_META: ObjectSchema = ObjectSchema {
    type_name: "ListMeta",
    description: "What a server says about a list.",
    fields: &[
        field("selfLink", "The path of the list, in old dumps.", FieldType::Text(TextRule::Any)),
        field("resourceVersion", "When the list was true.", FieldType::Text(TextRule::Any)),
        field("continue", "Where the list goes on.", FieldType::Text(TextRule::Any)),
        field("remainingItemCount", "How many items follow.", FieldType::Integer),
        field("shardInfo", "Which part of the objects the list has.", FieldType::Any),
    ],
};

const fn field(
    name: &'static str,
    description: &'static str,
    field_type: FieldType,
) -> FieldSchema {
    FieldSchema { name, description, is_required: false, field_type }
}
