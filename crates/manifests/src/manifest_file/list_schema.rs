//! The fields of lists.

use document::{FieldSchema, FieldType, ObjectSchema, SchemaTextRule};

/// A list of any kind. The reader checks its items one by one.
pub(super) static LIST: ObjectSchema = ObjectSchema {
    type_name: "List",
    description: "A list of objects.",
    field_schemas: &[
        FieldSchema::optional_field(
            "apiVersion",
            "Version of the list.",
            FieldType::Text(SchemaTextRule::Any),
        ),
        FieldSchema::optional_field(
            "kind",
            "Kind of the list.",
            FieldType::Text(SchemaTextRule::Any),
        ),
        FieldSchema::optional_field(
            "metadata",
            "Metadata that a server adds to the list.",
            FieldType::Object(&LIST_META),
        ),
        FieldSchema::optional_field("items", "The objects.", FieldType::Any),
    ],
};

static LIST_META: ObjectSchema = ObjectSchema {
    type_name: "ListMeta",
    description: "Metadata that a server adds to a list.",
    field_schemas: &[
        FieldSchema::optional_field(
            "selfLink",
            "The path of the list, in old dumps.",
            FieldType::Text(SchemaTextRule::Any),
        ),
        FieldSchema::optional_field(
            "resourceVersion",
            "Revision of the state that the list shows.",
            FieldType::Text(SchemaTextRule::Any),
        ),
        FieldSchema::optional_field(
            "continue",
            "Token of the next page of the list.",
            FieldType::Text(SchemaTextRule::Any),
        ),
        FieldSchema::optional_field(
            "remainingItemCount",
            "Number of items after this page.",
            FieldType::Integer,
        ),
        FieldSchema::optional_field(
            "shardInfo",
            "Shard of the objects that the list shows.",
            FieldType::Any,
        ),
    ],
};
