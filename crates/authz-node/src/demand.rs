//! What a request demands of the node that makes it.
//!
//! The table is separate from the answers, because two questions are asked of it: may this node,
//! and which nodes may.

use authz::{Attributes, FieldOperator, Reason, Resource};

use crate::name::Kind;
use crate::policy::Gates;

/// The namespace of the leases by which nodes show that they are alive.
const LEASE_NAMESPACE: &str = "kube-node-lease";

/// What must hold for a request of a node to be allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Demand {
    /// Nothing: admission confines the node to its own objects, whose content it can see.
    Nothing,
    /// No node may, for this reason.
    Refuse(Reason),
    /// A rule that holds for every node.
    Rule,
    /// The object bears the name of the node; else this is the reason.
    OwnName(&'static str),
    /// The object is the node itself.
    OwnNode,
    /// The object, which is of this kind, leads to the node.
    Related(Kind),
    /// The request selects objects by the name of the node; else this is the reason.
    Selected(&'static str),
    /// The request selects pods by the name of the node, or names one that leads to it.
    SelectedOrRelated(&'static str, Kind),
}

/// The demand of a request. Where a row has several reasons to refuse, the order is Kubernetes'.
pub(crate) fn demand(attributes: &Attributes<'_>, gates: Gates) -> Demand {
    let Some(resource) = attributes.resource() else { return Demand::Rule };
    let verb = attributes.verb;
    match (resource.api_group, resource.resource) {
        ("", "secrets") => read_namespaced(verb, resource, Kind::Secret),
        ("", "configmaps") => read_namespaced(verb, resource, Kind::ConfigMap),
        ("", "persistentvolumeclaims") if resource.subresource == "status" => claim_status(verb),
        ("", "persistentvolumeclaims") => get(verb, resource, Kind::PersistentVolumeClaim),
        ("", "persistentvolumes") => get(verb, resource, Kind::PersistentVolume),
        ("resource.k8s.io", "resourceclaims") => get(verb, resource, Kind::ResourceClaim),
        ("storage.k8s.io", "volumeattachments") => get(verb, resource, Kind::VolumeAttachment),
        ("", "serviceaccounts") => service_account(verb, resource, gates),
        ("coordination.k8s.io", "leases") => lease(verb, resource),
        ("storage.k8s.io", "csinodes") => csi_node(verb, resource, gates),
        ("resource.k8s.io", "resourceslices") => resource_slice(verb, resource),
        ("", "nodes") => node(verb, resource),
        ("", "pods") => pod(verb, resource),
        ("certificates.k8s.io", "podcertificaterequests") => {
            pod_certificate_request(verb, resource, gates)
        }
        _ => Demand::Rule,
    }
}

/// The nodes that a request selects objects of, of which any may be the one that asks.
pub(crate) fn selected_nodes<'a>(resource: &Resource<'a>) -> impl Iterator<Item = &'a str> {
    let requirements = resource.field_requirements().iter();
    requirements
        .filter(|own| own.field == "spec.nodeName" && own.operator == FieldOperator::Equals)
        .map(|own| own.value.as_str())
}

fn read_namespaced(verb: &str, resource: &Resource<'_>, kind: Kind) -> Demand {
    if !matches!(verb, "get" | "list" | "watch") {
        return refuse("can only read resources of this type");
    }
    if !resource.subresource.is_empty() {
        return refuse("cannot read subresource");
    }
    if resource.namespace.is_empty() {
        return refuse("can only read namespaced object of this type");
    }
    Demand::Related(kind)
}

fn get(verb: &str, resource: &Resource<'_>, kind: Kind) -> Demand {
    if verb != "get" {
        return refuse("can only get individual resources of this type");
    }
    if !resource.subresource.is_empty() {
        return refuse("cannot get subresource");
    }
    Demand::Related(kind)
}

fn claim_status(verb: &str) -> Demand {
    match verb {
        "update" | "patch" => Demand::Related(Kind::PersistentVolumeClaim),
        _ => refuse("can only get/update/patch this type"),
    }
}

fn service_account(verb: &str, resource: &Resource<'_>, gates: Gates) -> Demand {
    if verb == "get" && resource.subresource.is_empty() {
        let is_on =
            gates.service_account_token_for_credential_providers || gates.pod_certificate_request;
        return if is_on {
            read_namespaced(verb, resource, Kind::ServiceAccount)
        } else {
            refuse("not allowed to get service accounts")
        };
    }
    if verb != "create" || resource.name.is_empty() {
        return refuse("can only create tokens for individual service accounts");
    }
    if resource.subresource != "token" {
        return refuse("can only create token subresource of serviceaccount");
    }
    Demand::Related(Kind::ServiceAccount)
}

fn lease(verb: &str, resource: &Resource<'_>) -> Demand {
    if !matches!(verb, "get" | "create" | "update" | "patch" | "delete") {
        return refuse("can only get, create, update, patch, or delete a node lease");
    }
    if resource.namespace != LEASE_NAMESPACE {
        return refuse("can only access leases in the \"kube-node-lease\" system namespace");
    }
    own_name_unless_created(
        verb,
        "can only access node lease with the same name as the requesting node",
    )
}

fn csi_node(verb: &str, resource: &Resource<'_>, gates: Gates) -> Demand {
    const OTHER_NAME: &str = "can only access CSINode with the same name as the requesting node";
    match resource.subresource {
        "" if !matches!(verb, "get" | "create" | "update" | "patch" | "delete") => {
            refuse("can only get, create, update, patch, or delete a CSINode")
        }
        "" => own_name_unless_created(verb, OTHER_NAME),
        "status" if !gates.csi_volume_health => {
            refuse("CSINode status access requires CSIVolumeHealth feature")
        }
        "status" if !matches!(verb, "get" | "update" | "patch") => {
            refuse("can only get, update, or patch CSINode status")
        }
        "status" => Demand::OwnName(OTHER_NAME),
        _ => refuse("cannot authorize CSINode subresources"),
    }
}

/// The name of an object to be created is not known before its content is read.
fn own_name_unless_created(verb: &str, reason: &'static str) -> Demand {
    if verb == "create" { Demand::Nothing } else { Demand::OwnName(reason) }
}

fn resource_slice(verb: &str, resource: &Resource<'_>) -> Demand {
    if !resource.subresource.is_empty() {
        return refuse("cannot authorize ResourceSlice subresources");
    }
    match verb {
        "create" => Demand::Nothing,
        "get" | "update" | "patch" | "delete" => Demand::Related(Kind::ResourceSlice),
        "list" | "watch" | "deletecollection" => Demand::Selected(
            "can only list/watch/deletecollection resourceslices with nodeName field selector",
        ),
        _ => refuse(
            "only the following verbs are allowed for a ResourceSlice: \
             get, watch, list, create, update, patch, delete, deletecollection",
        ),
    }
}

fn node(verb: &str, resource: &Resource<'_>) -> Demand {
    match (resource.subresource, verb) {
        ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Demand::Nothing,
        // Not by relation, so that a kubelet can look for its Node before it is there.
        ("", "get" | "list" | "watch") => Demand::OwnNode,
        _ => refuse(""),
    }
}

fn pod(verb: &str, resource: &Resource<'_>) -> Demand {
    match (resource.subresource, verb) {
        ("", "get") => Demand::Related(Kind::Pod),
        ("", "list" | "watch") => {
            let reason = "can only list/watch pods with spec.nodeName field selector";
            Demand::SelectedOrRelated(reason, Kind::Pod)
        }
        ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
            Demand::Nothing
        }
        _ => refuse(""),
    }
}

fn pod_certificate_request(verb: &str, resource: &Resource<'_>, gates: Gates) -> Demand {
    if !gates.pod_certificate_request {
        return refuse("");
    }
    if !resource.subresource.is_empty() {
        return refuse("nodes may not access the status subresource of PodCertificateRequests");
    }
    match verb {
        "create" => Demand::Nothing,
        "get" => Demand::Related(Kind::PodCertificateRequest),
        "list" | "watch" => Demand::Selected(
            "can only list/watch podcertificaterequests with nodeName field selector",
        ),
        _ => Demand::Refuse(format!("nodes may not {verb} podcertificaterequests").into()),
    }
}

const fn refuse(reason: &'static str) -> Demand {
    Demand::Refuse(Reason::fixed(reason))
}
