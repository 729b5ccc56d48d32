//! The fields of an object that no patch of a hook may change.
//!
//! A request is authorized for one object. If the patch of a hook turns it into another one, the request is
//! refused, whatever the failure policy. Reverting the change silently would store an object that the hook
//! never allowed.

use api_object::Tree;

/// A field that a patch changed and may not change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ForbiddenPatchChange {
    field: &'static str,
    from: String,
    to: String,
}

impl ForbiddenPatchChange {
    /// The message for the client.
    pub(crate) fn client_message(&self, hook: &str) -> String {
        let Self { field, from, to } = self;
        let (hook, from, to) =
            (go_compat::quote(hook), go_compat::quote(from), go_compat::quote(to));
        format!(
            "admission webhook {hook} attempted to change {field} of the object from {from} to {to}, \
             which is not supported"
        )
    }
}

/// Compares an object with its patched version. A patch may name an object that has no name yet. A patch
/// may remove the kind or the version, which the decoder then reports.
pub(crate) fn check_identity_unchanged(
    object: &Tree,
    patched: &Tree,
) -> Result<(), ForbiddenPatchChange> {
    let (own, made) = (api_object::metadata(object), api_object::metadata(patched));
    for (field, from, to, is_settable, is_removable) in [
        (
            "apiVersion",
            api_object::string_member(object, "apiVersion"),
            api_object::string_member(patched, "apiVersion"),
            false,
            true,
        ),
        (
            "kind",
            api_object::string_member(object, "kind"),
            api_object::string_member(patched, "kind"),
            false,
            true,
        ),
        (
            "metadata.name",
            api_object::string_member(own, "name"),
            api_object::string_member(made, "name"),
            true,
            false,
        ),
        (
            "metadata.namespace",
            api_object::string_member(own, "namespace"),
            api_object::string_member(made, "namespace"),
            false,
            false,
        ),
        (
            "metadata.uid",
            api_object::string_member(own, "uid"),
            api_object::string_member(made, "uid"),
            false,
            false,
        ),
    ] {
        let is_permitted = (is_settable && from.is_empty()) || (is_removable && to.is_empty());
        if from != to && !is_permitted {
            return Err(ForbiddenPatchChange { field, from: from.to_owned(), to: to.to_owned() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn tree(value: Value) -> Tree {
        let Value::Object(tree) = value else { panic!("no object: {value}") };
        tree
    }

    #[test]
    fn the_nearest_change_on_the_other_side_of_each_rule() {
        let named = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "namespace": "n", "uid": "u"}});
        let unnamed = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"generateName": "a-", "namespace": "n"}});
        let cluster = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}});
        for (object, at, value, want) in [
            (&named, "/metadata/labels", json!({"a": "b"}), None),
            (&named, "/metadata/name", json!("b"), Some("metadata.name")),
            (&named, "/metadata/name", Value::Null, Some("metadata.name")),
            (&unnamed, "/metadata/name", json!("b"), None),
            (&named, "/metadata/namespace", json!("m"), Some("metadata.namespace")),
            (&named, "/metadata/namespace", Value::Null, Some("metadata.namespace")),
            (&cluster, "/metadata/namespace", json!("m"), Some("metadata.namespace")),
            (&named, "/metadata/uid", json!("v"), Some("metadata.uid")),
            (&named, "/metadata/uid", Value::Null, Some("metadata.uid")),
            (&unnamed, "/metadata/uid", json!("v"), Some("metadata.uid")),
            (&named, "/metadata", Value::Null, Some("metadata.name")),
            (&named, "/kind", json!("Secret"), Some("kind")),
            (&named, "/apiVersion", json!("v2"), Some("apiVersion")),
            (&named, "/apiVersion", Value::Null, None),
        ] {
            let object = tree(object.clone());
            let patch = json!([{"op": "add", "path": at, "value": value}]);
            let patched = object_patch::apply_json_patch(object.clone(), patch).unwrap();
            let got = check_identity_unchanged(&object, &patched).err().map(|change| change.field);
            assert_eq!(got, want, "{at} {value}");
        }
    }
}
