//! The rules for PodCertificateRequests: a node creates them for its own pods.

use admission::Operation;
use api_object::{Status, Tree};
use serde_json::Value;

use super::node_pod_rules::{is_mirror_pod, pod_volumes, projected_sources};
use super::node_restriction_lookups::NodeRestrictionLookups;
use super::{
    NodeRuleResult, NodeWrite, NodeWriteRefusal, forbid_node_write, non_null_member, spec,
    spec_node_name, string_member,
};

/// The verb of the permission to request certificates of a signer, whose name takes the place of the resource.
const VERB: &str = "request-serviceaccounts-podcertificate-signer";

/// Checks that the request names the node, one of its pods and the service account of that pod as they are stored
/// now, and that the pod has a reason for the certificate.
///
/// A uid that differs may be that of an object that was deleted and created again. Kubernetes answers 500 then, so
/// that clients try again.
pub(super) async fn check_pod_certificate_request(
    write: &NodeWrite<'_>,
    lookups: &impl NodeRestrictionLookups,
) -> NodeRuleResult {
    let (Operation::Create, Some(request)) = (write.operation, write.object) else {
        return forbid_node_write(format!("unexpected operation {}", write.operation.name()));
    };
    if !write.subresource.is_empty() {
        return forbid_node_write(format!("unexpected subresource {}", write.subresource));
    }
    let wanted = spec(request);
    let node_name = write.node_name;
    let (wanted_node, quoted) = (string_member(wanted, "nodeName"), go_compat::quote(node_name));
    if wanted_node != node_name {
        let wanted = go_compat::quote(wanted_node);
        return forbid_node_write(format!(
            "PodCertificateRequest.Spec.NodeName={wanted}, which is not the requesting node {quoted}"
        ));
    }
    let pod_name = format!("{}/{}", write.namespace, string_member(wanted, "podName"));
    let pod_quoted = go_compat::quote(&pod_name);
    let node = find_object_of_certificate_request(
        lookups,
        "nodes",
        "",
        node_name,
        &format!("node {quoted}"),
    )
    .await?;
    if api_object::uid(&node) != string_member(wanted, "nodeUID") {
        let (own, other) = (quoted_uid(&node), go_compat::quote(string_member(wanted, "nodeUID")));
        return refuse_with_server_error(format!(
            "PodCertificateRequest for pod {pod_quoted} names node UID {other}, inconsistent with \
             the running node ({own})"
        ));
    }
    let what = format!("pod {pod_quoted}");
    let pod = find_object_of_certificate_request(
        lookups,
        "pods",
        write.namespace,
        string_member(wanted, "podName"),
        &what,
    )
    .await?;
    if api_object::uid(&pod) != string_member(wanted, "podUID") {
        let (own, other) = (quoted_uid(&pod), go_compat::quote(string_member(wanted, "podUID")));
        return refuse_with_server_error(format!(
            "PodCertificateRequest for pod {pod_quoted} contains pod UID ({other}) which differs \
             from running pod {own}"
        ));
    }
    if spec_node_name(&pod) != node_name {
        return forbid_node_write(format!(
            "pod {pod_quoted} is not running on node {quoted} named in the PodCertificateRequest"
        ));
    }
    if is_mirror_pod(&pod) {
        return forbid_node_write(format!("pod {pod_quoted} is a mirror pod"));
    }
    check_certificate_service_account(write, wanted, &pod, &pod_quoted, lookups).await?;
    check_certificate_signer(write, wanted, &pod, &pod_quoted, lookups).await
}

async fn check_certificate_service_account(
    write: &NodeWrite<'_>,
    wanted: &Value,
    pod: &Tree,
    pod_quoted: &str,
    lookups: &impl NodeRestrictionLookups,
) -> NodeRuleResult {
    let (name, own) = (
        string_member(wanted, "serviceAccountName"),
        string_member(spec(pod), "serviceAccountName"),
    );
    if name != own {
        let (name, own) = (go_compat::quote(name), go_compat::quote(own));
        return forbid_node_write(format!(
            "PodCertificateRequest for pod {pod_quoted} contains serviceAccountName ({name}) that \
             differs from running pod ({own})"
        ));
    }
    let namespaced = go_compat::quote(&format!("{}/{name}", write.namespace));
    let what = format!("service account {namespaced}");
    let account = find_object_of_certificate_request(
        lookups,
        "serviceaccounts",
        write.namespace,
        name,
        &what,
    )
    .await?;
    if api_object::uid(&account) != string_member(wanted, "serviceAccountUID") {
        let (own, other) =
            (quoted_uid(&account), go_compat::quote(string_member(wanted, "serviceAccountUID")));
        return refuse_with_server_error(format!(
            "PodCertificateRequest for pod {pod_quoted} names service account UID {other}, which \
             differs from the running service account ({own})"
        ));
    }
    Ok(())
}

/// Checks that the pod mounts a certificate of the signer, or that the node has the permission to request one.
async fn check_certificate_signer(
    write: &NodeWrite<'_>,
    wanted: &Value,
    pod: &Tree,
    pod_quoted: &str,
    lookups: &impl NodeRestrictionLookups,
) -> NodeRuleResult {
    let signer = string_member(wanted, "signerName");
    let has_certificate = |source: &Value| {
        non_null_member(source, "podCertificate")
            .is_some_and(|own| string_member(own, "signerName") == signer)
    };
    if pod_volumes(pod).iter().flat_map(projected_sources).any(has_certificate) {
        return Ok(());
    }
    // A resource in a rule cannot contain a slash.
    let resource = signer.replace('/', ":");
    let account = string_member(wanted, "serviceAccountName");
    if lookups.is_node_allowed(write, VERB, &resource, account).await? {
        return Ok(());
    }
    let signer = go_compat::quote(signer);
    forbid_node_write(format!(
        "pod {pod_quoted} does not mount a podCertificate projected volume for signer {signer}"
    ))
}

async fn find_object_of_certificate_request(
    lookups: &impl NodeRestrictionLookups,
    resource: &str,
    namespace: &str,
    name: &str,
    what: &str,
) -> Result<Tree, NodeWriteRefusal> {
    match super::read_required_object(lookups, "", resource, namespace, name).await {
        Err(NodeWriteRefusal::Status(status)) if status.code == 404 => {
            let why = &status.message;
            refuse_with_server_error(format!(
                "while retrieving {what} named in the PodCertificateRequest: {why}"
            ))
        }
        found => found,
    }
}

fn quoted_uid(object: &Tree) -> String {
    go_compat::quote(api_object::uid(object))
}

fn refuse_with_server_error<T>(why: String) -> Result<T, NodeWriteRefusal> {
    Err(NodeWriteRefusal::Status(Status::error_without_reason(why)))
}
