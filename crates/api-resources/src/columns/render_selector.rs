//! Labels and selectors in the notation of kubectl.

use serde_json::Value;

use crate::json_members::{list_member, member_entries, string_list_member, string_member};

/// Renders labels as `a=b,c=d`, sorted by key; `<none>` if there are none.
pub(super) fn render_labels(tree: &Value, key: &str) -> String {
    text_or_none_placeholder(labels_text(tree, key))
}

/// Renders a selector as `a=b,c in (d,e),!f`, sorted by key; `<none>` if it selects everything.
pub(super) fn render_selector(tree: &Value) -> String {
    text_or_none_placeholder(selector_text(tree))
}

/// Labels as `a=b,c=d`, sorted by key; empty if there are none.
pub(crate) fn labels_text(tree: &Value, key: &str) -> String {
    join_sorted_parts(render_label_parts(tree, key))
}

/// A selector as `a=b,c in (d,e),!f`, sorted by key; empty if it selects everything.
pub(crate) fn selector_text(tree: &Value) -> String {
    let mut parts = render_label_parts(tree, "matchLabels");
    for expression in list_member(tree, "matchExpressions") {
        let (key, mut values) =
            (string_member(expression, "key"), string_list_member(expression, "values"));
        values.sort_unstable();
        let part = match string_member(expression, "operator") {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => continue,
        };
        parts.push((key.to_owned(), part));
    }
    join_sorted_parts(parts)
}

/// Renders each label as `key=value`, together with the key for sorting.
fn render_label_parts(tree: &Value, key: &str) -> Vec<(String, String)> {
    let part = |(key, value): (&String, &Value)| {
        (key.clone(), format!("{key}={}", value.as_str().unwrap_or_default()))
    };
    member_entries(tree, key).map(part).collect()
}

fn join_sorted_parts(mut parts: Vec<(String, String)>) -> String {
    parts.sort_by(|(left, _), (right, _)| left.cmp(right));
    parts.iter().map(|(_, part)| part.as_str()).collect::<Vec<_>>().join(",")
}

fn text_or_none_placeholder(text: String) -> String {
    if text.is_empty() { "<none>".to_owned() } else { text }
}
