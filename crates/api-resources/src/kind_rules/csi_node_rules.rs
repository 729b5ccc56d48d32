//! The defaults of CSINodes. As in Kubernetes, `drivers` is null for a node without drivers. The
//! status is empty, because the feature that fills it is off.

use api_object::{Tree, object_member_mut};
use serde_json::{Value, json};

pub(super) fn prepare_csi_node(tree: &mut Tree) {
    if matches!(tree.get("spec"), None | Some(Value::Null | Value::Object(_))) {
        let spec = object_member_mut(tree, "spec");
        if spec.get("drivers").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            spec.insert("drivers".to_owned(), Value::Null);
        }
    }
    tree.insert("status".to_owned(), json!({}));
}
