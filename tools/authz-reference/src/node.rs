//! Node: the table of what nodes may do, and every object for what is decided by relation.

use authz::{Attributes, Decision, FieldOperator, Resource, Target};
use authz_node::{FeatureGates, NodeRules, Object};

use crate::node_object::Objects;
use crate::rule;

/// The objects of a cluster, and what holds for every node.
#[derive(Debug, Clone, Default)]
pub struct Node {
    objects: Objects,
    rules: NodeRules,
    gates: FeatureGates,
}

/// Allowed, or the reason why not.
type Answer = Result<(), String>;

/// A request of a node.
struct Asked<'a> {
    node: &'a str,
    verb: &'a str,
    resource: &'a Resource<'a>,
}

impl Node {
    /// A cluster of these objects, of which no two are of one kind and name; the rules that hold for
    /// every node, and which features are on.
    pub fn new(objects: Vec<Object>, rules: NodeRules, gates: FeatureGates) -> Self {
        Self { objects: Objects::new(objects), rules, gates }
    }

    /// Takes in an object that is new.
    pub fn add(&mut self, object: &Object) {
        self.objects.add(object);
    }

    /// Takes in a change of an object.
    pub fn update(&mut self, old: &Object, new: &Object) {
        self.objects.update(old, new);
    }

    /// Forgets an object that is gone.
    pub fn delete(&mut self, object: &Object) {
        self.objects.delete(object);
    }

    /// The objects that count.
    pub fn objects(&self) -> &[Object] {
        self.objects.as_slice()
    }

    /// Answers a request.
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
        let verb = attributes.verb;
        let answer = match &attributes.target {
            Target::Path(path) => {
                let allows = self.rules.non_resource_rules.iter().any(|own| {
                    rule::has(&own.verbs, verb) && rule::has_path(&own.non_resource_urls, path)
                });
                ensure(allows, "")
            }
            Target::Resource(resource) => self.answer(&Asked { node, verb, resource }),
        };
        match answer {
            Ok(()) => Decision::allow(""),
            Err(reason) => Decision::no_opinion(reason),
        }
    }

    fn answer(&self, asked: &Asked<'_>) -> Answer {
        match (asked.resource.api_group, asked.resource.resource) {
            ("", "secrets" | "configmaps") => self.readable(asked),
            ("", "persistentvolumeclaims") if asked.resource.subresource == "status" => {
                ensure(
                    ["update", "patch"].contains(&asked.verb),
                    "can only get/update/patch this type",
                )?;
                self.related(asked)
            }
            ("", "persistentvolumeclaims" | "persistentvolumes")
            | ("resource.k8s.io", "resourceclaims")
            | ("storage.k8s.io", "volumeattachments") => {
                ensure(asked.verb == "get", "can only get individual resources of this type")?;
                ensure(asked.resource.subresource.is_empty(), "cannot get subresource")?;
                self.related(asked)
            }
            ("", "serviceaccounts") => self.service_account(asked),
            ("coordination.k8s.io", "leases") => lease(asked),
            ("storage.k8s.io", "csinodes") => self.csi_node(asked),
            ("resource.k8s.io", "resourceslices") => self.resource_slice(asked),
            ("", "nodes") => node(asked),
            ("", "pods") => self.pod(asked),
            ("certificates.k8s.io", "podcertificaterequests") => self.certificate_request(asked),
            _ => ensure(
                self.rules.resource_rules.iter().any(|own| {
                    rule::has(&own.verbs, asked.verb)
                        && rule::has(&own.api_groups, asked.resource.api_group)
                        && rule::has_resource(&own.resources, asked.resource)
                        && rule::has_name(&own.resource_names, asked.resource.name)
                }),
                "",
            ),
        }
    }

    fn readable(&self, asked: &Asked<'_>) -> Answer {
        let is_read = ["get", "list", "watch"].contains(&asked.verb);
        ensure(is_read, "can only read resources of this type")?;
        ensure(asked.resource.subresource.is_empty(), "cannot read subresource")?;
        let has_namespace = !asked.resource.namespace.is_empty();
        ensure(has_namespace, "can only read namespaced object of this type")?;
        self.related(asked)
    }

    fn related(&self, asked: &Asked<'_>) -> Answer {
        let Resource { resource, namespace, name, .. } = asked.resource;
        ensure(!name.is_empty(), "No Object name found")?;
        let node = asked.node;
        let reason = || format!("no relationship found between node '{node}' and this object");
        if self.objects.lead(resource, namespace, name, node) { Ok(()) } else { Err(reason()) }
    }

    fn service_account(&self, asked: &Asked<'_>) -> Answer {
        if asked.verb == "get" && asked.resource.subresource.is_empty() {
            let FeatureGates { service_account_token_for_credential_providers: a, .. } = self.gates;
            let is_on = a || self.gates.pod_certificate_request;
            ensure(is_on, "not allowed to get service accounts")?;
            return self.readable(asked);
        }
        let is_create = asked.verb == "create" && !asked.resource.name.is_empty();
        ensure(is_create, "can only create tokens for individual service accounts")?;
        let is_token = asked.resource.subresource == "token";
        ensure(is_token, "can only create token subresource of serviceaccount")?;
        self.related(asked)
    }

    fn csi_node(&self, asked: &Asked<'_>) -> Answer {
        match asked.resource.subresource {
            "" => ensure(
                ["get", "create", "update", "patch", "delete"].contains(&asked.verb),
                "can only get, create, update, patch, or delete a CSINode",
            )?,
            "status" => {
                let is_on = self.gates.csi_volume_health;
                ensure(is_on, "CSINode status access requires CSIVolumeHealth feature")?;
                ensure(
                    ["get", "update", "patch"].contains(&asked.verb),
                    "can only get, update, or patch CSINode status",
                )?;
            }
            _ => ensure(false, "cannot authorize CSINode subresources")?,
        }
        ensure(
            asked.verb == "create" || asked.resource.name == asked.node,
            "can only access CSINode with the same name as the requesting node",
        )
    }

    fn resource_slice(&self, asked: &Asked<'_>) -> Answer {
        let has_none = asked.resource.subresource.is_empty();
        ensure(has_none, "cannot authorize ResourceSlice subresources")?;
        match asked.verb {
            "create" => Ok(()),
            "get" | "update" | "patch" | "delete" => self.related(asked),
            "list" | "watch" | "deletecollection" => ensure(
                selects(asked),
                "can only list/watch/deletecollection resourceslices with nodeName field selector",
            ),
            _ => ensure(
                false,
                "only the following verbs are allowed for a ResourceSlice: \
                 get, watch, list, create, update, patch, delete, deletecollection",
            ),
        }
    }

    fn pod(&self, asked: &Asked<'_>) -> Answer {
        match (asked.resource.subresource, asked.verb) {
            ("", "get") => self.related(asked),
            ("", "list" | "watch") if selects(asked) => Ok(()),
            ("", "list" | "watch") if !asked.resource.name.is_empty() => self.related(asked),
            ("", "list" | "watch") => {
                ensure(false, "can only list/watch pods with spec.nodeName field selector")
            }
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
                Ok(())
            }
            _ => ensure(false, ""),
        }
    }

    fn certificate_request(&self, asked: &Asked<'_>) -> Answer {
        ensure(self.gates.pod_certificate_request, "")?;
        ensure(
            asked.resource.subresource.is_empty(),
            "nodes may not access the status subresource of PodCertificateRequests",
        )?;
        match asked.verb {
            "create" => Ok(()),
            "get" => self.related(asked),
            "list" | "watch" => ensure(
                selects(asked),
                "can only list/watch podcertificaterequests with nodeName field selector",
            ),
            verb => Err(format!("nodes may not {verb} podcertificaterequests")),
        }
    }
}

fn lease(asked: &Asked<'_>) -> Answer {
    ensure(
        ["get", "create", "update", "patch", "delete"].contains(&asked.verb),
        "can only get, create, update, patch, or delete a node lease",
    )?;
    ensure(
        asked.resource.namespace == "kube-node-lease",
        "can only access leases in the \"kube-node-lease\" system namespace",
    )?;
    ensure(
        asked.verb == "create" || asked.resource.name == asked.node,
        "can only access node lease with the same name as the requesting node",
    )
}

fn node(asked: &Asked<'_>) -> Answer {
    let (node, name) = (asked.node, asked.resource.name);
    match (asked.resource.subresource, asked.verb) {
        ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Ok(()),
        ("", "get" | "list" | "watch") if name == node => Ok(()),
        ("", "get" | "list" | "watch") if name.is_empty() => {
            Err(format!("node '{node}' cannot read all nodes, only its own Node object"))
        }
        ("", "get" | "list" | "watch") => {
            Err(format!("node '{node}' cannot read '{name}', only its own Node object"))
        }
        _ => ensure(false, ""),
    }
}

/// Reports whether the request selects the objects of the node.
fn selects(asked: &Asked<'_>) -> bool {
    asked.resource.field_requirements().iter().any(|requirement| {
        requirement.field == "spec.nodeName"
            && requirement.operator == FieldOperator::Equals
            && requirement.value == asked.node
    })
}

fn ensure(holds: bool, reason: &str) -> Answer {
    if holds { Ok(()) } else { Err(reason.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use authz::{User, Verdict};
    use authz_node::{PersistentVolume, Pod, SecretReference, VolumeClaim};

    #[test]
    fn a_secret_leads_to_a_node_by_a_pod_or_by_a_volume_of_a_pod() {
        let pod = Pod {
            namespace: "web".into(),
            name: "p".into(),
            node_name: "n".into(),
            secrets: vec!["own".into()],
            persistent_volume_claims: vec!["data".into()],
            ..Pod::default()
        };
        let unbound = Pod { name: "q".into(), node_name: String::new(), ..pod.clone() };
        let volume = PersistentVolume {
            name: "v".into(),
            claim: Some(VolumeClaim { namespace: "web".into(), name: "data".into() }),
            secrets: vec![SecretReference { namespace: None, name: "mount".into() }],
        };
        let objects = vec![
            Object::Pod(Box::new(pod)),
            Object::Pod(Box::new(unbound)),
            Object::PersistentVolume(volume),
        ];
        let oracle = Node::new(objects, NodeRules::default(), FeatureGates::default());
        assert_eq!(oracle.objects().len(), 2);
        let verdict = |node: &str, resource: &str, namespace: &str, name: &str| {
            let groups = vec!["system:nodes".to_owned()];
            let user = User { name: format!("system:node:{node}"), groups, ..User::default() };
            let resource = Resource { resource, namespace, name, ..Resource::default() };
            let target = Target::Resource(resource);
            oracle.authorize(&Attributes { user: Some(&user), verb: "get", target }).verdict
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
