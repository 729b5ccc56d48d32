//! The nesting depth of values.

use serde_json::Value;

/// Upper bound on the nesting of a patched object, which is that of request bodies.
pub const NESTING_MAX: usize = 512;

/// Depth and number of values of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreeSize {
    /// 0 for a scalar, 1 for a flat list or object.
    pub(crate) nesting_depth: usize,
    /// The number of values in the tree, including the root.
    pub(crate) n_values: usize,
}

/// Measures a tree without recursion, so that any depth is safe.
pub(crate) fn measure_tree(value: &Value) -> TreeSize {
    let mut extent = TreeSize { nesting_depth: 0, n_values: 0 };
    let mut pending = vec![(value, 0_usize)];
    while let Some((value, outer)) = pending.pop() {
        extent.n_values += 1;
        match value {
            Value::Array(items) => {
                extent.nesting_depth = extent.nesting_depth.max(outer + 1);
                pending.extend(items.iter().map(|item| (item, outer + 1)));
            }
            Value::Object(members) => {
                extent.nesting_depth = extent.nesting_depth.max(outer + 1);
                pending.extend(members.values().map(|member| (member, outer + 1)));
            }
            _ => {}
        }
    }
    extent
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scalars_are_flat() {
        for (value, depth, n_values) in
            [(json!(1), 0, 1), (json!([]), 1, 1), (json!({"a": [1, {"b": 2}], "c": 3}), 3, 6)]
        {
            assert_eq!(
                measure_tree(&value),
                TreeSize { nesting_depth: depth, n_values },
                "{value}"
            );
        }
    }
}
