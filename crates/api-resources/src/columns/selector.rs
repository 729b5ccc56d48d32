//! Labels and selectors as people write them.

use serde_json::Value;

use crate::tree::{entries, items, text, texts};

/// Labels as `a=b,c=d`, by key; `<none>` if there are none.
pub(super) fn labels(tree: &Value, key: &str) -> String {
    joined(equalities(tree, key))
}

/// A selector as `a=b,c in (d,e),!f`, by key; `<none>` if it selects everything.
pub(super) fn selector(tree: &Value) -> String {
    let mut parts = equalities(tree, "matchLabels");
    for expression in items(tree, "matchExpressions") {
        let (key, mut values) = (text(expression, "key"), texts(expression, "values"));
        values.sort_unstable();
        let part = match text(expression, "operator") {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => continue,
        };
        parts.push((key.to_owned(), part));
    }
    joined(parts)
}

/// Each part with the key that it is sorted by.
fn equalities(tree: &Value, key: &str) -> Vec<(String, String)> {
    let part = |(key, value): (&String, &Value)| {
        (key.clone(), format!("{key}={}", value.as_str().unwrap_or_default()))
    };
    entries(tree, key).map(part).collect()
}

fn joined(mut parts: Vec<(String, String)>) -> String {
    parts.sort_by(|(left, _), (right, _)| left.cmp(right));
    match parts.as_slice() {
        [] => "<none>".to_owned(),
        parts => parts.iter().map(|(_, part)| part.as_str()).collect::<Vec<_>>().join(","),
    }
}
