//! The reference Node authorizer: a table of the requests that nodes may make. A request that depends on
//! related objects reads every object.

use authz::{Attributes, Decision, FieldOperator, Namespace, Resource, Target};
use authz_node::{GraphObject, NodeFeatureGates, NodeRules};

use crate::node_object::Objects;
use crate::rule;

/// The objects of a cluster, the rules for every node, and the feature gates.
#[derive(Debug, Clone, Default)]
pub struct ReferenceNode {
    objects: Objects,
    rules: NodeRules,
    feature_gates: NodeFeatureGates,
}

/// The result of a check: `Ok` if the request is allowed.
type NodeAnswer = Result<(), RefusalReason>;

/// The reason why a node is not allowed a request, in Kubernetes' words.
struct RefusalReason(String);

/// A request of a node.
struct NodeRequest<'a> {
    node: &'a str,
    verb: &'a str,
    resource: &'a Resource<'a>,
}

impl ReferenceNode {
    /// Makes the authorizer of a cluster with these objects, rules for every node, and feature gates. No two
    /// objects may have the same kind and name.
    pub fn new(
        objects: Vec<GraphObject>,
        rules: NodeRules,
        feature_gates: NodeFeatureGates,
    ) -> Self {
        Self { objects: Objects::new(objects), rules, feature_gates }
    }

    /// Adds an object, or replaces the one of its kind and name.
    pub fn add(&mut self, object: &GraphObject) {
        self.objects.add(object);
    }

    /// Replaces an object with its new version.
    pub fn update(&mut self, old: &GraphObject, new: &GraphObject) {
        self.objects.update(old, new);
    }

    /// Removes the object of this kind and name.
    pub fn delete(&mut self, object: &GraphObject) {
        self.objects.delete(object);
    }

    /// The objects that may relate to a node.
    pub fn objects(&self) -> &[GraphObject] {
        self.objects.as_slice()
    }

    /// Decides a request of a node.
    pub fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        let Some(user) = attributes.user else { return Decision::no_opinion("") };
        let node = match user.name.strip_prefix("system:node:") {
            Some(node) if user.groups.iter().any(|group| group == "system:nodes") => node,
            _ => return Decision::no_opinion(""),
        };
        if node.is_empty() {
            let name = go_compat::quote(&user.name);
            return Decision::no_opinion(format!("unknown node for user {name}"));
        }
        let verb = attributes.verb.as_str();
        let answer = match &attributes.target {
            Target::Path(path) => {
                let allows = self.rules.non_resource_rules.iter().any(|own| {
                    rule::has(&own.verbs, verb) && rule::has_path(&own.non_resource_urls, path)
                });
                require(allows, "")
            }
            Target::Resource(resource) => {
                self.decide_resource(&NodeRequest { node, verb, resource })
            }
        };
        match answer {
            Ok(()) => Decision::allow(""),
            Err(RefusalReason(reason)) => Decision::no_opinion(reason),
        }
    }

    fn decide_resource(&self, request: &NodeRequest<'_>) -> NodeAnswer {
        match (request.resource.api_group, request.resource.resource) {
            ("", "secrets" | "configmaps") => self.check_namespaced_read(request),
            ("", "persistentvolumeclaims") if request.resource.subresource == "status" => {
                require(
                    ["update", "patch"].contains(&request.verb),
                    "can only get/update/patch this type",
                )?;
                self.check_related(request)
            }
            ("", "persistentvolumeclaims" | "persistentvolumes")
            | ("resource.k8s.io", "resourceclaims")
            | ("storage.k8s.io", "volumeattachments") => {
                require(request.verb == "get", "can only get individual resources of this type")?;
                require(request.resource.subresource.is_empty(), "cannot get subresource")?;
                self.check_related(request)
            }
            ("", "serviceaccounts") => self.check_service_account(request),
            ("coordination.k8s.io", "leases") => check_lease(request),
            ("storage.k8s.io", "csinodes") => self.check_csi_node(request),
            ("resource.k8s.io", "resourceslices") => self.check_resource_slice(request),
            ("", "nodes") => check_node(request),
            ("", "pods") => self.check_pod(request),
            ("certificates.k8s.io", "podcertificaterequests") => {
                self.check_certificate_request(request)
            }
            _ => require(
                self.rules.resource_rules.iter().any(|own| {
                    rule::has(&own.verbs, request.verb)
                        && rule::has(&own.api_groups, request.resource.api_group)
                        && rule::has_resource(&own.resources, request.resource)
                        && rule::has_name(&own.resource_names, request.resource.name)
                }),
                "",
            ),
        }
    }

    fn check_namespaced_read(&self, request: &NodeRequest<'_>) -> NodeAnswer {
        let is_read = ["get", "list", "watch"].contains(&request.verb);
        require(is_read, "can only read resources of this type")?;
        require(request.resource.subresource.is_empty(), "cannot read subresource")?;
        let has_namespace = !request.resource.namespace.is_cluster_scope();
        require(has_namespace, "can only read namespaced object of this type")?;
        self.check_related(request)
    }

    fn check_related(&self, request: &NodeRequest<'_>) -> NodeAnswer {
        let Resource { resource, namespace, name, .. } = request.resource;
        require(!name.is_empty(), "No Object name found")?;
        let node = request.node;
        let reason = || format!("no relationship found between node '{node}' and this object");
        if self.objects.is_related(resource, namespace.as_str(), name, node) {
            Ok(())
        } else {
            Err(RefusalReason(reason()))
        }
    }

    fn check_service_account(&self, request: &NodeRequest<'_>) -> NodeAnswer {
        if request.verb == "get" && request.resource.subresource.is_empty() {
            let NodeFeatureGates { service_account_token_for_credential_providers: a, .. } =
                self.feature_gates;
            let is_on = a || self.feature_gates.is_pod_certificate_request_enabled;
            require(is_on, "not allowed to get service accounts")?;
            return self.check_namespaced_read(request);
        }
        let is_create = request.verb == "create" && !request.resource.name.is_empty();
        require(is_create, "can only create tokens for individual service accounts")?;
        let is_token = request.resource.subresource == "token";
        require(is_token, "can only create token subresource of serviceaccount")?;
        self.check_related(request)
    }

    fn check_csi_node(&self, request: &NodeRequest<'_>) -> NodeAnswer {
        match request.resource.subresource {
            "" => require(
                ["get", "create", "update", "patch", "delete"].contains(&request.verb),
                "can only get, create, update, patch, or delete a CSINode",
            )?,
            "status" => {
                let is_on = self.feature_gates.is_csi_volume_health_enabled;
                require(is_on, "CSINode status access requires CSIVolumeHealth feature")?;
                require(
                    ["get", "update", "patch"].contains(&request.verb),
                    "can only get, update, or patch CSINode status",
                )?;
            }
            _ => require(false, "cannot authorize CSINode subresources")?,
        }
        require(
            request.verb == "create" || request.resource.name == request.node,
            "can only access CSINode with the same name as the requesting node",
        )
    }

    fn check_resource_slice(&self, request: &NodeRequest<'_>) -> NodeAnswer {
        let has_none = request.resource.subresource.is_empty();
        require(has_none, "cannot authorize ResourceSlice subresources")?;
        match request.verb {
            "create" => Ok(()),
            "get" | "update" | "patch" | "delete" => self.check_related(request),
            "list" | "watch" | "deletecollection" => require(
                selects_own_node(request),
                "can only list/watch/deletecollection resourceslices with nodeName field selector",
            ),
            _ => require(
                false,
                "only the following verbs are allowed for a ResourceSlice: \
                 get, watch, list, create, update, patch, delete, deletecollection",
            ),
        }
    }

    fn check_pod(&self, request: &NodeRequest<'_>) -> NodeAnswer {
        match (request.resource.subresource, request.verb) {
            ("", "get") => self.check_related(request),
            ("", "list" | "watch") if selects_own_node(request) => Ok(()),
            ("", "list" | "watch") if !request.resource.name.is_empty() => {
                self.check_related(request)
            }
            ("", "list" | "watch") => {
                require(false, "can only list/watch pods with spec.nodeName field selector")
            }
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
                Ok(())
            }
            _ => require(false, ""),
        }
    }

    fn check_certificate_request(&self, request: &NodeRequest<'_>) -> NodeAnswer {
        require(self.feature_gates.is_pod_certificate_request_enabled, "")?;
        require(
            request.resource.subresource.is_empty(),
            "nodes may not access the status subresource of PodCertificateRequests",
        )?;
        match request.verb {
            "create" => Ok(()),
            "get" => self.check_related(request),
            "list" | "watch" => require(
                selects_own_node(request),
                "can only list/watch podcertificaterequests with nodeName field selector",
            ),
            verb => Err(RefusalReason(format!("nodes may not {verb} podcertificaterequests"))),
        }
    }
}

fn check_lease(request: &NodeRequest<'_>) -> NodeAnswer {
    require(
        ["get", "create", "update", "patch", "delete"].contains(&request.verb),
        "can only get, create, update, patch, or delete a node lease",
    )?;
    require(
        request.resource.namespace == Namespace::new("kube-node-lease"),
        "can only access leases in the \"kube-node-lease\" system namespace",
    )?;
    require(
        request.verb == "create" || request.resource.name == request.node,
        "can only access node lease with the same name as the requesting node",
    )
}

fn check_node(request: &NodeRequest<'_>) -> NodeAnswer {
    let (node, name) = (request.node, request.resource.name);
    match (request.resource.subresource, request.verb) {
        ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Ok(()),
        ("", "get" | "list" | "watch") if name == node => Ok(()),
        ("", "get" | "list" | "watch") if name.is_empty() => {
            let reason = format!("node '{node}' cannot read all nodes, only its own Node object");
            Err(RefusalReason(reason))
        }
        ("", "get" | "list" | "watch") => {
            let reason = format!("node '{node}' cannot read '{name}', only its own Node object");
            Err(RefusalReason(reason))
        }
        _ => require(false, ""),
    }
}

/// Reports whether the field selector of the request selects the objects of the node.
fn selects_own_node(request: &NodeRequest<'_>) -> bool {
    request.resource.field_requirements().iter().any(|requirement| {
        requirement.field == "spec.nodeName"
            && requirement.operator == FieldOperator::Equals
            && requirement.value == request.node
    })
}

fn require(holds: bool, reason: &str) -> NodeAnswer {
    if holds { Ok(()) } else { Err(RefusalReason(reason.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use authz::{User, Verb, Verdict};
    use authz_node::{
        PersistentVolume, PersistentVolumeClaimReference, Pod, VolumeSecretReference,
    };

    #[test]
    fn a_secret_is_related_to_a_node_through_a_pod_or_a_volume_of_a_pod() {
        let pod = Pod {
            namespace: "web".into(),
            name: "p".into(),
            node_name: "n".into(),
            secret_names: vec!["own".into()],
            persistent_volume_claim_names: vec!["data".into()],
            ..Pod::default()
        };
        let unbound = Pod { name: "q".into(), node_name: String::new(), ..pod.clone() };
        let volume = PersistentVolume {
            name: "v".into(),
            claim_ref: Some(PersistentVolumeClaimReference {
                namespace: "web".into(),
                name: "data".into(),
            }),
            secret_refs: vec![VolumeSecretReference { namespace: None, name: "mount".into() }],
        };
        let objects = vec![
            GraphObject::Pod(Box::new(pod)),
            GraphObject::Pod(Box::new(unbound)),
            GraphObject::PersistentVolume(volume),
        ];
        let reference =
            ReferenceNode::new(objects, NodeRules::default(), NodeFeatureGates::default());
        assert_eq!(reference.objects().len(), 2);
        let verdict = |node: &str, resource: &str, namespace: &str, name: &str| {
            let groups = vec!["system:nodes".to_owned()];
            let user = User { name: format!("system:node:{node}"), groups, ..User::default() };
            let resource = Resource {
                resource,
                namespace: Namespace::new(namespace),
                name,
                ..Resource::default()
            };
            let target = Target::Resource(resource);
            reference.authorize(&Attributes { user: Some(&user), verb: Verb::GET, target }).verdict
        };
        for (resource, namespace, name, want) in [
            ("secrets", "web", "own", Verdict::Allow),
            ("secrets", "web", "mount", Verdict::Allow),
            ("secrets", "other", "own", Verdict::NoOpinion),
            ("secrets", "web", "p", Verdict::NoOpinion),
            ("persistentvolumes", "", "v", Verdict::Allow),
            ("pods", "web", "p", Verdict::Allow),
            ("pods", "web", "q", Verdict::NoOpinion),
            ("nodes", "", "n", Verdict::Allow),
            ("nodes", "", "m", Verdict::NoOpinion),
        ] {
            assert_eq!(verdict("n", resource, namespace, name), want, "{resource} {name}");
        }
        assert_eq!(verdict("m", "secrets", "web", "own"), Verdict::NoOpinion);
    }
}
