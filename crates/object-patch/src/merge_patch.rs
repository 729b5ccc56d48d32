//! Merge patch (RFC 7386).

use std::collections::HashSet;

use api_object::Tree;
use serde_json::Value;

use crate::patch_error::PatchError;

/// Merges a patch into a tree: null removes a member, objects merge, anything else replaces.
///
/// INVARIANT: both are nested no deeper than [`NESTING_MAX`](crate::NESTING_MAX), and so is the
/// result.
///
/// # Errors
///
/// The patch is not an object.
pub fn apply_merge_patch(mut tree: Tree, patch: Value) -> Result<Tree, PatchError> {
    let Value::Object(patch) = patch else {
        return Err(PatchError::Shape("a merge patch is an object"));
    };
    merge_patch_into_tree(&mut tree, patch);
    Ok(tree)
}

fn merge_patch_into_tree(tree: &mut Tree, patch: Tree) {
    // Removing members one by one would move all later members for each of them.
    let mut removed = HashSet::new();
    for (name, value) in patch {
        match value {
            Value::Null => {
                removed.insert(name);
            }
            Value::Object(patch) => {
                let member = tree.entry(name).or_insert_with(|| Value::Object(Tree::new()));
                if !member.is_object() {
                    *member = Value::Object(Tree::new());
                }
                if let Value::Object(inner) = member {
                    merge_patch_into_tree(inner, patch);
                }
            }
            value => {
                tree.insert(name, value);
            }
        }
    }
    if !removed.is_empty() {
        tree.retain(|name, _| !removed.contains(name));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn apply(document: Value, patch: Value) -> Result<Value, PatchError> {
        apply_merge_patch(document.as_object().unwrap().clone(), patch).map(Value::Object)
    }

    /// A15: a patch that empties a wide object takes time in proportion to its members.
    #[test]
    fn a15_many_members_are_removed_at_once() {
        let members = |value: &Value| -> Value {
            (0..100_000).map(|n| (format!("k{n}"), value.clone())).collect::<Tree>().into()
        };
        let (wide, nulls) = (members(&json!("v")), members(&Value::Null));
        let begun = std::time::Instant::now();
        assert_eq!(apply(wide, nulls), Ok(json!({})));
        // One by one it takes minutes.
        assert!(begun.elapsed().as_secs() < 15, "{:?}", begun.elapsed());
    }

    #[test]
    fn examples_of_rfc_7386() {
        for (document, patch, want) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
            (
                json!({"data": {"k": "v"}}),
                json!({"data": {"k": null, "n": "1"}}),
                json!({"data": {"n": "1"}}),
            ),
        ] {
            assert_eq!(apply(document, patch.clone()), Ok(want), "{patch}");
        }
    }

    #[test]
    fn patches_that_are_not_objects_are_refused() {
        for patch in [json!([1]), json!("a"), json!(null)] {
            let error = apply(json!({}), patch).unwrap_err();
            assert!(matches!(error, PatchError::Shape(_)), "{error}");
        }
    }

    fn object() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(json!(null)), Just(json!(1)), Just(json!([null]))];
        let value = leaf.prop_recursive(3, 16, 3, |inner| {
            proptest::collection::btree_map("[ab]", inner, 0..3)
                .prop_map(|members| members.into_iter().collect::<Value>())
        });
        proptest::collection::btree_map("[ab]", value, 0..3)
            .prop_map(|members| members.into_iter().collect::<Value>())
    }

    proptest! {
        #[test]
        fn merge_patch_is_idempotent(document in object(), patch in object()) {
            let once = apply(document, patch.clone()).unwrap();
            prop_assert_eq!(apply(once.clone(), patch), Ok(once));
        }
    }
}
