//! The rules for TokenRequests: a node requests tokens of the service accounts of its pods, bound to these pods.

use admission::Operation;
use serde_json::Value;

use super::node_restriction_lookups::NodeRestrictionLookups;
use super::node_token_audiences::check_token_audiences;
use super::{
    NodeRuleResult, NodeWrite, forbid_node_write, read_required_object, spec, spec_node_name,
    string_member,
};

/// Checks a token request:
///
/// 1. It is bound to a pod, by name and uid.
/// 2. The pod is bound to the node.
/// 3. The pod uses the audience, or the node has the permission to request tokens for it.
///
/// The token issuer checks that the service account is that of the pod.
pub(super) async fn check_token_request_by_node(
    write: &NodeWrite<'_>,
    lookups: &impl NodeRestrictionLookups,
) -> NodeRuleResult {
    let (Operation::Create, "token", Some(request)) =
        (write.operation, write.subresource, write.object)
    else {
        return Ok(());
    };
    let reference = spec(request).get("boundObjectRef").unwrap_or(&Value::Null);
    let name = string_member(reference, "name");
    if (string_member(reference, "apiVersion"), string_member(reference, "kind")) != ("v1", "Pod")
        || name.is_empty()
    {
        return forbid_node_write("node requested token not bound to a pod");
    }
    let uid = string_member(reference, "uid");
    if uid.is_empty() {
        return forbid_node_write("node requested token with a pod binding without a uid");
    }
    let pod = read_required_object(lookups, "", "pods", write.namespace, name).await?;
    if uid != api_object::uid(&pod) {
        return forbid_node_write(format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The \
             object might have been deleted and then recreated"
        ));
    }
    if spec_node_name(&pod) != write.node_name {
        return forbid_node_write(
            "node requested token bound to a pod scheduled on a different node",
        );
    }
    check_token_audiences(write, spec(request), &pod, lookups).await
}
