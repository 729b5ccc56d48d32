//! The fields of lists.

use document::{Field, Object, Shape, TextRule};

/// A list of any kind. Its items are objects of their own and are looked at one by one.
pub(super) static LIST: Object = Object {
    type_name: "List",
    description: "A list of objects.",
    fields: &[
        field("apiVersion", "Version of the list.", Shape::Text(TextRule::Any)),
        field("kind", "Kind of the list.", Shape::Text(TextRule::Any)),
        field("metadata", "What a server says about the list.", Shape::Object(&LIST_META)),
        field("items", "The objects.", Shape::Any),
    ],
};

static LIST_META: Object = Object {
    type_name: "ListMeta",
    description: "What a server says about a list.",
    fields: &[
        field("selfLink", "The path of the list, in old dumps.", Shape::Text(TextRule::Any)),
        field("resourceVersion", "When the list was true.", Shape::Text(TextRule::Any)),
        field("continue", "Where the list goes on.", Shape::Text(TextRule::Any)),
        field("remainingItemCount", "How many items follow.", Shape::Number),
        field("shardInfo", "Which part of the objects the list has.", Shape::Any),
    ],
};

const fn field(name: &'static str, description: &'static str, shape: Shape) -> Field {
    Field { name, description, is_required: false, shape }
}
