//! Requests for certificates of pods: a node makes them for its pods.

use admission::Operation;
use api_object::{Status, Tree};
use serde_json::Value;

use super::node_lookups::NodeLookups;
use super::pods::{is_mirror_pod, projected_sources, volumes};
use super::{NodeRefusal, NodeWrite, RuleResult, forbid, node_of, set_member, spec, text};

/// The verb of the permission to request certificates of a signer, whose name takes the place of the resource.
const VERB: &str = "request-serviceaccounts-podcertificate-signer";

/// Checks that the request names the node, one of its pods and the service account of that pod as they are stored
/// now, and that the pod has a reason for the certificate.
///
/// A uid that differs may be that of an object that was deleted and created again. Kubernetes answers 500 then, so
/// that clients try again.
pub(super) async fn check_request(write: &NodeWrite<'_>, lookups: &impl NodeLookups) -> RuleResult {
    let (Operation::Create, Some(request)) = (write.operation, write.object) else {
        return forbid(format!("unexpected operation {}", write.operation.name()));
    };
    if !write.subresource.is_empty() {
        return forbid(format!("unexpected subresource {}", write.subresource));
    }
    let wanted = spec(request);
    let node_name = write.node_name;
    let (wanted_node, quoted) = (text(wanted, "nodeName"), go_compat::quote(node_name));
    if wanted_node != node_name {
        let wanted = go_compat::quote(wanted_node);
        return forbid(format!(
            "PodCertificateRequest.Spec.NodeName={wanted}, which is not the requesting node {quoted}"
        ));
    }
    let pod_name = format!("{}/{}", write.namespace, text(wanted, "podName"));
    let pod_quoted = go_compat::quote(&pod_name);
    let node = find(lookups, "nodes", "", node_name, &format!("node {quoted}")).await?;
    if api_object::uid(&node) != text(wanted, "nodeUID") {
        let (own, other) = (uid_of(&node), go_compat::quote(text(wanted, "nodeUID")));
        return fail(format!(
            "PodCertificateRequest for pod {pod_quoted} names node UID {other}, inconsistent with \
             the running node ({own})"
        ));
    }
    let what = format!("pod {pod_quoted}");
    let pod = find(lookups, "pods", write.namespace, text(wanted, "podName"), &what).await?;
    if api_object::uid(&pod) != text(wanted, "podUID") {
        let (own, other) = (uid_of(&pod), go_compat::quote(text(wanted, "podUID")));
        return fail(format!(
            "PodCertificateRequest for pod {pod_quoted} contains pod UID ({other}) which differs \
             from running pod {own}"
        ));
    }
    if node_of(&pod) != node_name {
        return forbid(format!(
            "pod {pod_quoted} is not running on node {quoted} named in the PodCertificateRequest"
        ));
    }
    if is_mirror_pod(&pod) {
        return forbid(format!("pod {pod_quoted} is a mirror pod"));
    }
    check_service_account(write, wanted, &pod, &pod_quoted, lookups).await?;
    check_signer(write, wanted, &pod, &pod_quoted, lookups).await
}

async fn check_service_account(
    write: &NodeWrite<'_>,
    wanted: &Value,
    pod: &Tree,
    pod_quoted: &str,
    lookups: &impl NodeLookups,
) -> RuleResult {
    let (name, own) = (text(wanted, "serviceAccountName"), text(spec(pod), "serviceAccountName"));
    if name != own {
        let (name, own) = (go_compat::quote(name), go_compat::quote(own));
        return forbid(format!(
            "PodCertificateRequest for pod {pod_quoted} contains serviceAccountName ({name}) that \
             differs from running pod ({own})"
        ));
    }
    let namespaced = go_compat::quote(&format!("{}/{name}", write.namespace));
    let what = format!("service account {namespaced}");
    let account = find(lookups, "serviceaccounts", write.namespace, name, &what).await?;
    if api_object::uid(&account) != text(wanted, "serviceAccountUID") {
        let (own, other) = (uid_of(&account), go_compat::quote(text(wanted, "serviceAccountUID")));
        return fail(format!(
            "PodCertificateRequest for pod {pod_quoted} names service account UID {other}, which \
             differs from the running service account ({own})"
        ));
    }
    Ok(())
}

/// The pod mounts a certificate of the signer, or the node is allowed to request it.
async fn check_signer(
    write: &NodeWrite<'_>,
    wanted: &Value,
    pod: &Tree,
    pod_quoted: &str,
    lookups: &impl NodeLookups,
) -> RuleResult {
    let signer = text(wanted, "signerName");
    let has_certificate = |source: &Value| {
        set_member(source, "podCertificate").is_some_and(|own| text(own, "signerName") == signer)
    };
    if volumes(pod).iter().flat_map(projected_sources).any(has_certificate) {
        return Ok(());
    }
    // A resource in a rule can not contain a slash.
    let resource = signer.replace('/', ":");
    let account = text(wanted, "serviceAccountName");
    if lookups.is_allowed(write, VERB, &resource, account).await? {
        return Ok(());
    }
    let signer = go_compat::quote(signer);
    forbid(format!(
        "pod {pod_quoted} does not mount a podCertificate projected volume for signer {signer}"
    ))
}

async fn find(
    lookups: &impl NodeLookups,
    resource: &str,
    namespace: &str,
    name: &str,
    what: &str,
) -> Result<Tree, NodeRefusal> {
    match super::require_object(lookups, "", resource, namespace, name).await {
        Err(NodeRefusal::Status(status)) if status.code == 404 => {
            let why = &status.message;
            fail(format!("while retrieving {what} named in the PodCertificateRequest: {why}"))
        }
        found => found,
    }
}

fn uid_of(object: &Tree) -> String {
    go_compat::quote(api_object::uid(object))
}

fn fail<T>(why: String) -> Result<T, NodeRefusal> {
    Err(NodeRefusal::Status(Status::error_without_reason(why)))
}
