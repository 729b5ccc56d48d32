//! The taint of a new node, as in the admission plugin TaintNodesByCondition of Kubernetes: no workload is placed
//! on a node before a controller finds it ready.

use api_object::{Tree, object_member_mut};
use serde_json::{Value, json};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const NO_SCHEDULE: &str = "NoSchedule";

/// Adds the taint to a new node that does not have it. A spec or taints of another type stay as they are.
pub(super) fn add_not_ready_taint(node: &mut Tree) {
    if !matches!(node.get("spec"), None | Some(Value::Null | Value::Object(_))) {
        return;
    }
    let spec = object_member_mut(node, "spec");
    let taints = spec.entry("taints".to_owned()).or_insert(Value::Null);
    if taints.is_null() {
        *taints = Value::Array(Vec::new());
    }
    let Value::Array(taints) = taints else { return };
    let is_not_ready = |taint: &Value| {
        let text = |member: &str| taint.get(member).and_then(Value::as_str).unwrap_or_default();
        (text("key"), text("effect")) == (NOT_READY, NO_SCHEDULE)
    };
    if !taints.iter().any(is_not_ready) {
        taints.push(json!({"key": NOT_READY, "effect": NO_SCHEDULE}));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_node_has_the_taint_once() {
        let taint = json!({"key": NOT_READY, "effect": NO_SCHEDULE});
        let other = json!({"key": NOT_READY, "effect": "NoExecute"});
        for (spec, want) in [
            (Value::Null, json!({"taints": [taint]})),
            (json!({"taints": null}), json!({"taints": [taint]})),
            (json!({"taints": [other]}), json!({"taints": [other, taint]})),
            (json!({"taints": [taint, other]}), json!({"taints": [taint, other]})),
            (json!({"taints": "x"}), json!({"taints": "x"})),
            (json!("x"), json!("x")),
        ] {
            let mut node = Tree::from_iter([("spec".to_owned(), spec)]);
            add_not_ready_taint(&mut node);
            assert_eq!(node.get("spec"), Some(&want));
        }
    }
}
