//! Token requests: a node gets tokens of the service accounts of its pods, bound to these pods.

use admission::Operation;
use serde_json::Value;

use super::audiences::check_audiences;
use super::node_lookups::NodeLookups;
use super::{NodeWrite, RuleResult, forbid, node_of, require_object, spec, text};

/// Checks a token request:
///
/// 1. It is bound to a pod, by name and uid.
/// 2. The pod is bound to the node.
/// 3. The pod, or a permission of the node, gives a reason for the audience.
///
/// That the service account is the one of the pod is checked when the token is issued.
pub(super) async fn check_token_request(
    write: &NodeWrite<'_>,
    lookups: &impl NodeLookups,
) -> RuleResult {
    let (Operation::Create, "token", Some(request)) =
        (write.operation, write.subresource, write.object)
    else {
        return Ok(());
    };
    let reference = spec(request).get("boundObjectRef").unwrap_or(&Value::Null);
    let name = text(reference, "name");
    if (text(reference, "apiVersion"), text(reference, "kind")) != ("v1", "Pod") || name.is_empty()
    {
        return forbid("node requested token not bound to a pod");
    }
    let uid = text(reference, "uid");
    if uid.is_empty() {
        return forbid("node requested token with a pod binding without a uid");
    }
    let pod = require_object(lookups, "", "pods", write.namespace, name).await?;
    if uid != api_object::uid(&pod) {
        return forbid(format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The \
             object might have been deleted and then recreated"
        ));
    }
    if node_of(&pod) != write.node_name {
        return forbid("node requested token bound to a pod scheduled on a different node");
    }
    check_audiences(write, spec(request), &pod, lookups).await
}
