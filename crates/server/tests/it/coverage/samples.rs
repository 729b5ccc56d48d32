//! An object of each kind.

use serde_json::{Value, json};

use super::rig::NAMESPACE;
use super::served::Target;
use crate::certificate_requests::ANN;

/// A self-signed certificate with the CA bit.
const TRUST_ANCHOR: &str = include_str!("../../../../api-resources/tests/it/trust_anchor.pem");

/// Returns an object that the server accepts.
pub(crate) fn sample(target: &Target) -> Value {
    let kind = target.kind["kind"].as_str().expect("a kind");
    let mut object = content(kind);
    if !kind.ends_with("Review") && kind != "SubjectAccessExplanation" {
        object["metadata"] = json!({"name": target.object_name(), "labels": {"coverage": "yes"}});
    }
    object["kind"] = kind.into();
    object["apiVersion"] = match target.group.as_str() {
        "" => target.version.clone().into(),
        group => format!("{group}/{}", target.version).into(),
    };
    object
}

/// What is sent to a part of an object that is an action, such as `eviction`.
pub(super) fn action(target: &Target) -> Value {
    let group = target.kind["group"].as_str().expect("a group");
    let version = target.kind["version"].as_str().expect("a version");
    let metadata = json!({"name": target.object_name()});
    match target.part.as_str() {
        "token" => json!({"spec": {"audiences": ["a"]}}),
        "binding" => {
            json!({"apiVersion": version, "kind": target.kind["kind"], "metadata": metadata,
                "target": {"kind": "Node", "name": "n"}})
        }
        _ => {
            let version = format!("{group}/{version}");
            json!({"apiVersion": version, "kind": target.kind["kind"], "metadata": metadata})
        }
    }
}

/// The required fields of each kind.
fn content(kind: &str) -> Value {
    let question = json!({"verb": "get", "resource": "pods", "namespace": NAMESPACE});
    match kind {
        "Binding" => json!({"target": {"kind": "Node", "name": "n"}}),
        "Pod" => json!({"spec": {"containers": [{"name": "c", "image": "i"}]}}),
        "Service" => json!({"spec": {"ports": [{"port": 80}]}}),
        "EndpointSlice" => json!({"addressType": "IPv4", "endpoints": []}),
        "Event" => json!({"involvedObject": {"namespace": NAMESPACE}}),
        "RoleBinding" | "ClusterRoleBinding" => json!({"subjects": [], "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}}),
        "CertificateSigningRequest" => json!({"spec": {
            "request": ANN, "signerName": "example.com/signer", "usages": ["client auth"]}}),
        "ClusterTrustBundle" => json!({"spec": {"trustBundle": TRUST_ANCHOR}}),
        "FlowSchema" => json!({"spec": {"priorityLevelConfiguration": {"name": "system"}}}),
        "PriorityLevelConfiguration" => json!({"spec": {
            "type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}}),
        "CustomResourceDefinition" => definition("gadgets", "Gadget", &["v1"]),
        "Widget" => json!({"spec": {"replicas": 1}}),
        "TokenReview" => json!({"spec": {"token": "unknown"}}),
        "SelfSubjectAccessReview" | "ResourceAccessReview" | "LocalResourceAccessReview" => {
            json!({"spec": {"resourceAttributes": question}})
        }
        "SubjectAccessReview" | "LocalSubjectAccessReview" | "SubjectAccessExplanation" => {
            json!({"spec": {"user": "bob", "resourceAttributes": question}})
        }
        "SelfSubjectRulesReview" => json!({"spec": {"namespace": NAMESPACE}}),
        _ => json!({}),
    }
}

/// A definition of a resource in some versions, each with a status.
pub(crate) fn definition(plural: &str, kind: &str, versions: &[&str]) -> Value {
    let version = |(idx, name): (usize, &&str)| {
        json!({
            "name": name, "served": true, "storage": idx == 0, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object",
                "x-kubernetes-preserve-unknown-fields": true}},
        })
    };
    json!({
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": versions.iter().enumerate().map(version).collect::<Value>(),
        },
    })
}
