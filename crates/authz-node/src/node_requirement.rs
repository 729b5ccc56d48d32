//! The requirement that a request puts on the node that makes it.
//!
//! The table is separate from the decision because two callers use it: the decision for one node, and the list of
//! all nodes that are allowed the request.

use authz::{Attributes, FieldOperator, Namespace, Reason, Resource, Verb};

use crate::object_name::ObjectKind;
use crate::policy::NodeFeatureGates;

/// The namespace of the leases by which nodes show that they are alive.
const LEASE_NAMESPACE: Namespace<'_> = Namespace::new("kube-node-lease");

/// A condition under which a node is allowed a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeRequirement {
    /// Every node is allowed the request. Admission, which sees the object, restricts nodes to their own.
    AlwaysMet,
    /// No node is allowed the request, for this reason.
    NeverMet(Reason),
    /// Some rule that holds for every node allows the request.
    NodeRule,
    /// The object has the name of the node. The text is the reason if it does not.
    SameName(&'static str),
    /// The object is the Node object of the node.
    OwnNode,
    /// The object, which is of this kind, is related to the node.
    Related(ObjectKind),
    /// The field selector of the request selects the node. The text is the reason if it does not.
    Selector(&'static str),
    /// The field selector of the request selects the node, or the object is related to the node.
    SelectorOrRelated(&'static str, ObjectKind),
}

/// Determines what a request requires of the node. If there are several reasons to refuse a request, the
/// first one in Kubernetes' order is given.
pub(crate) fn requirement_for_request(
    attributes: &Attributes<'_>,
    feature_gates: NodeFeatureGates,
) -> NodeRequirement {
    let Some(resource) = attributes.resource() else { return NodeRequirement::NodeRule };
    let verb = attributes.verb;
    match (resource.api_group, resource.resource) {
        ("", "secrets") => namespaced_read_requirement(verb, resource, ObjectKind::Secret),
        ("", "configmaps") => namespaced_read_requirement(verb, resource, ObjectKind::ConfigMap),
        ("", "persistentvolumeclaims") if resource.subresource == "status" => {
            volume_claim_status_requirement(verb)
        }
        ("", "persistentvolumeclaims") => {
            get_only_requirement(verb, resource, ObjectKind::PersistentVolumeClaim)
        }
        ("", "persistentvolumes") => {
            get_only_requirement(verb, resource, ObjectKind::PersistentVolume)
        }
        ("resource.k8s.io", "resourceclaims") => {
            get_only_requirement(verb, resource, ObjectKind::ResourceClaim)
        }
        ("storage.k8s.io", "volumeattachments") => {
            get_only_requirement(verb, resource, ObjectKind::VolumeAttachment)
        }
        ("", "serviceaccounts") => service_account_requirement(verb, resource, feature_gates),
        ("coordination.k8s.io", "leases") => lease_requirement(verb, resource),
        ("storage.k8s.io", "csinodes") => csi_node_requirement(verb, resource, feature_gates),
        ("resource.k8s.io", "resourceslices") => resource_slice_requirement(verb, resource),
        ("", "nodes") => node_object_requirement(verb, resource),
        ("", "pods") => requirement_for_pod_request(verb, resource),
        ("certificates.k8s.io", "podcertificaterequests") => {
            pod_certificate_request_requirement(verb, resource, feature_gates)
        }
        _ => NodeRequirement::NodeRule,
    }
}

/// The nodes whose objects the field selector of a request selects.
pub(crate) fn nodes_in_field_selector<'a>(
    resource: &Resource<'a>,
) -> impl Iterator<Item = &'a str> {
    let requirements = resource.field_requirements().iter();
    requirements
        .filter(|requirement| {
            requirement.field == "spec.nodeName" && requirement.operator == FieldOperator::Equals
        })
        .map(|requirement| requirement.value.as_str())
}

fn namespaced_read_requirement(
    verb: Verb<'_>,
    resource: &Resource<'_>,
    kind: ObjectKind,
) -> NodeRequirement {
    if !verb.is_read_only() {
        return never_met_requirement("can only read resources of this type");
    }
    if !resource.subresource.is_empty() {
        return never_met_requirement("cannot read subresource");
    }
    if resource.namespace.is_cluster_scope() {
        return never_met_requirement("can only read namespaced object of this type");
    }
    NodeRequirement::Related(kind)
}

fn get_only_requirement(
    verb: Verb<'_>,
    resource: &Resource<'_>,
    kind: ObjectKind,
) -> NodeRequirement {
    if verb != Verb::GET {
        return never_met_requirement("can only get individual resources of this type");
    }
    if !resource.subresource.is_empty() {
        return never_met_requirement("cannot get subresource");
    }
    NodeRequirement::Related(kind)
}

fn volume_claim_status_requirement(verb: Verb<'_>) -> NodeRequirement {
    match verb {
        Verb::UPDATE | Verb::PATCH => NodeRequirement::Related(ObjectKind::PersistentVolumeClaim),
        _ => never_met_requirement("can only get/update/patch this type"),
    }
}

fn service_account_requirement(
    verb: Verb<'_>,
    resource: &Resource<'_>,
    feature_gates: NodeFeatureGates,
) -> NodeRequirement {
    if verb == Verb::GET && resource.subresource.is_empty() {
        let is_enabled = feature_gates.service_account_token_for_credential_providers
            || feature_gates.is_pod_certificate_request_enabled;
        return if is_enabled {
            namespaced_read_requirement(verb, resource, ObjectKind::ServiceAccount)
        } else {
            never_met_requirement("not allowed to get service accounts")
        };
    }
    if verb != Verb::CREATE || resource.name.is_empty() {
        return never_met_requirement("can only create tokens for individual service accounts");
    }
    if resource.subresource != "token" {
        return never_met_requirement("can only create token subresource of serviceaccount");
    }
    NodeRequirement::Related(ObjectKind::ServiceAccount)
}

fn lease_requirement(verb: Verb<'_>, resource: &Resource<'_>) -> NodeRequirement {
    if !matches!(verb, Verb::GET | Verb::CREATE | Verb::UPDATE | Verb::PATCH | Verb::DELETE) {
        return never_met_requirement(
            "can only get, create, update, patch, or delete a node lease",
        );
    }
    if resource.namespace != LEASE_NAMESPACE {
        return never_met_requirement(
            "can only access leases in the \"kube-node-lease\" system namespace",
        );
    }
    same_name_requirement_unless_create(
        verb,
        "can only access node lease with the same name as the requesting node",
    )
}

fn csi_node_requirement(
    verb: Verb<'_>,
    resource: &Resource<'_>,
    feature_gates: NodeFeatureGates,
) -> NodeRequirement {
    const OTHER_NAME: &str = "can only access CSINode with the same name as the requesting node";
    match resource.subresource {
        "" if !matches!(
            verb,
            Verb::GET | Verb::CREATE | Verb::UPDATE | Verb::PATCH | Verb::DELETE
        ) =>
        {
            never_met_requirement("can only get, create, update, patch, or delete a CSINode")
        }
        "" => same_name_requirement_unless_create(verb, OTHER_NAME),
        "status" if !feature_gates.is_csi_volume_health_enabled => {
            never_met_requirement("CSINode status access requires CSIVolumeHealth feature")
        }
        "status" if !matches!(verb, Verb::GET | Verb::UPDATE | Verb::PATCH) => {
            never_met_requirement("can only get, update, or patch CSINode status")
        }
        "status" => NodeRequirement::SameName(OTHER_NAME),
        _ => never_met_requirement("cannot authorize CSINode subresources"),
    }
}

/// A create request need not have the name of the object, so admission checks it.
fn same_name_requirement_unless_create(verb: Verb<'_>, reason: &'static str) -> NodeRequirement {
    if verb == Verb::CREATE {
        NodeRequirement::AlwaysMet
    } else {
        NodeRequirement::SameName(reason)
    }
}

fn resource_slice_requirement(verb: Verb<'_>, resource: &Resource<'_>) -> NodeRequirement {
    if !resource.subresource.is_empty() {
        return never_met_requirement("cannot authorize ResourceSlice subresources");
    }
    match verb {
        Verb::CREATE => NodeRequirement::AlwaysMet,
        Verb::GET | Verb::UPDATE | Verb::PATCH | Verb::DELETE => {
            NodeRequirement::Related(ObjectKind::ResourceSlice)
        }
        Verb::LIST | Verb::WATCH | Verb::DELETE_COLLECTION => NodeRequirement::Selector(
            "can only list/watch/deletecollection resourceslices with nodeName field selector",
        ),
        _ => never_met_requirement(
            "only the following verbs are allowed for a ResourceSlice: \
             get, watch, list, create, update, patch, delete, deletecollection",
        ),
    }
}

fn node_object_requirement(verb: Verb<'_>, resource: &Resource<'_>) -> NodeRequirement {
    match (resource.subresource, verb) {
        ("", Verb::CREATE | Verb::UPDATE | Verb::PATCH)
        | ("status", Verb::UPDATE | Verb::PATCH) => NodeRequirement::AlwaysMet,
        // The requirement is not [`NodeRequirement::Related`], because a kubelet reads its Node object before it
        // exists.
        ("", Verb::GET | Verb::LIST | Verb::WATCH) => NodeRequirement::OwnNode,
        _ => never_met_requirement(""),
    }
}

fn requirement_for_pod_request(verb: Verb<'_>, resource: &Resource<'_>) -> NodeRequirement {
    match (resource.subresource, verb) {
        ("", Verb::GET) => NodeRequirement::Related(ObjectKind::Pod),
        ("", Verb::LIST | Verb::WATCH) => {
            let reason = "can only list/watch pods with spec.nodeName field selector";
            NodeRequirement::SelectorOrRelated(reason, ObjectKind::Pod)
        }
        ("", Verb::CREATE | Verb::DELETE)
        | ("status", Verb::UPDATE | Verb::PATCH)
        | ("eviction", Verb::CREATE) => NodeRequirement::AlwaysMet,
        _ => never_met_requirement(""),
    }
}

fn pod_certificate_request_requirement(
    verb: Verb<'_>,
    resource: &Resource<'_>,
    feature_gates: NodeFeatureGates,
) -> NodeRequirement {
    if !feature_gates.is_pod_certificate_request_enabled {
        return never_met_requirement("");
    }
    if !resource.subresource.is_empty() {
        return never_met_requirement(
            "nodes may not access the status subresource of PodCertificateRequests",
        );
    }
    match verb {
        Verb::CREATE => NodeRequirement::AlwaysMet,
        Verb::GET => NodeRequirement::Related(ObjectKind::PodCertificateRequest),
        Verb::LIST | Verb::WATCH => NodeRequirement::Selector(
            "can only list/watch podcertificaterequests with nodeName field selector",
        ),
        _ => {
            NodeRequirement::NeverMet(format!("nodes may not {verb} podcertificaterequests").into())
        }
    }
}

const fn never_met_requirement(reason: &'static str) -> NodeRequirement {
    NodeRequirement::NeverMet(Reason::from_static_text(reason))
}
