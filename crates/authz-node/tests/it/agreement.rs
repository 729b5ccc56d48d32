//! Random histories of a small cluster: the graph and the reference implementation decide alike.

use authz::{Attributes, Namespace, Resource, Target, Trace, TraceRecorder, User, Verb, Verdict};
use authz_node::{
    GraphObject, NodeNamingObject, PersistentVolume, PersistentVolumeClaimReference, Pod, Snapshot,
    VolumeSecretReference,
};
use authz_reference::ReferenceNode;
use proptest::collection::vec;
use proptest::prelude::*;

const NODES: [&str; 3] = ["n1", "n2", "n3"];
const NAMESPACES: [&str; 3] = ["", "ns1", "ns2"];
const NAMES: [&str; 3] = ["a", "b", "c"];
const RESOURCES: [(&str, &str); 10] = [
    ("", "pods"),
    ("", "secrets"),
    ("", "configmaps"),
    ("", "persistentvolumeclaims"),
    ("", "persistentvolumes"),
    ("", "serviceaccounts"),
    ("resource.k8s.io", "resourceclaims"),
    ("storage.k8s.io", "volumeattachments"),
    ("resource.k8s.io", "resourceslices"),
    ("certificates.k8s.io", "podcertificaterequests"),
];

/// A change of the cluster. Putting an object updates it if the cluster has one of that name.
#[derive(Debug, Clone)]
enum Change {
    Put(GraphObject),
    Delete(GraphObject),
    /// Clones the snapshot, which later changes must not affect.
    Clone,
}

fn one_of(texts: &'static [&'static str]) -> impl Strategy<Value = String> + Clone {
    prop::sample::select(texts).prop_map(str::to_owned)
}

fn node() -> impl Strategy<Value = String> {
    one_of(&["", "n1", "n2", "n3"])
}

fn name() -> impl Strategy<Value = String> + Clone {
    one_of(&["", "a", "a", "b", "b", "c", "c"])
}

fn namespace() -> impl Strategy<Value = String> {
    one_of(&["ns1", "ns2"])
}

fn pod() -> impl Strategy<Value = GraphObject> {
    let identity = (namespace(), one_of(&NAMES), node(), 0..8_u8);
    let names = || vec(name(), 0..3);
    let referenced_objects = (name(), names(), names(), names(), names());
    let extended = prop::option::of(name());
    (identity, referenced_objects, extended).prop_map(
        |(identity, referenced_objects, extended_resource_claim)| {
            let (namespace, name, node_name, mirror) = identity;
            let (service_account_name, secrets, config_maps, claims, resource_claims) =
                referenced_objects;
            GraphObject::Pod(Box::new(Pod {
                namespace,
                name,
                node_name,
                is_mirror_pod: mirror == 0,
                service_account_name,
                secret_names: secrets,
                config_map_names: config_maps,
                persistent_volume_claim_names: claims,
                resource_claim_names: resource_claims,
                extended_resource_claim_name: extended_resource_claim,
            }))
        },
    )
}

fn volume() -> impl Strategy<Value = GraphObject> {
    let claim = (namespace(), one_of(&NAMES))
        .prop_map(|(namespace, name)| PersistentVolumeClaimReference { namespace, name });
    let secret = (prop::option::of(one_of(&NAMESPACES)), name())
        .prop_map(|(namespace, name)| VolumeSecretReference { namespace, name });
    (one_of(&NAMES), prop::option::weighted(0.9, claim), vec(secret, 0..3)).prop_map(
        |(name, claim, secrets)| {
            GraphObject::PersistentVolume(PersistentVolume {
                name,
                claim_ref: claim,
                secret_refs: secrets,
            })
        },
    )
}

fn assignment() -> impl Strategy<Value = GraphObject> {
    (0..3_u8, namespace(), one_of(&NAMES), node()).prop_map(|(kind, namespace, name, node_name)| {
        match kind {
            0 => GraphObject::VolumeAttachment(NodeNamingObject {
                name,
                node_name,
                ..NodeNamingObject::default()
            }),
            1 => GraphObject::ResourceSlice(NodeNamingObject {
                name,
                node_name,
                ..NodeNamingObject::default()
            }),
            _ => {
                GraphObject::PodCertificateRequest(NodeNamingObject { namespace, name, node_name })
            }
        }
    })
}

fn change() -> impl Strategy<Value = Change> {
    let object = prop_oneof![4 => pod(), 2 => volume(), 1 => assignment()].boxed();
    prop_oneof![
        6 => object.clone().prop_map(Change::Put),
        2 => object.prop_map(Change::Delete),
        1 => Just(Change::Clone),
    ]
}

fn same_name(a: &GraphObject, b: &GraphObject) -> bool {
    match (a, b) {
        (GraphObject::Pod(a), GraphObject::Pod(b)) => {
            (&a.namespace, &a.name) == (&b.namespace, &b.name)
        }
        (GraphObject::PersistentVolume(a), GraphObject::PersistentVolume(b)) => a.name == b.name,
        (GraphObject::VolumeAttachment(a), GraphObject::VolumeAttachment(b))
        | (GraphObject::ResourceSlice(a), GraphObject::ResourceSlice(b))
        | (GraphObject::PodCertificateRequest(a), GraphObject::PodCertificateRequest(b)) => {
            (&a.namespace, &a.name) == (&b.namespace, &b.name)
        }
        _ => false,
    }
}

/// Compares verdict, reason, explanation and listed nodes of every request that depends on the graph.
fn check(snapshot: &Snapshot, cluster: &ReferenceNode) -> Result<(), TestCaseError> {
    let users = NODES.map(|node| User {
        name: format!("system:node:{node}"),
        groups: vec!["system:nodes".to_owned()],
        ..User::default()
    });
    for (api_group, resource) in RESOURCES {
        for (namespace, name) in NAMESPACES.into_iter().flat_map(|ns| NAMES.map(|name| (ns, name)))
        {
            let target = Resource {
                api_group,
                resource,
                namespace: Namespace::new(namespace),
                name,
                ..Resource::default()
            };
            let target = Target::Resource(target);
            let attributes = Attributes { user: None, verb: Verb::GET, target };
            let subjects = snapshot.allowed_subjects(&attributes);
            for user in &users {
                let attributes = Attributes { user: Some(user), ..attributes };
                let got = snapshot.authorize(&attributes, TraceRecorder::disabled_recorder());
                let want = cluster.authorize(&attributes);
                prop_assert_eq!(
                    (got.verdict, &got.reason),
                    (want.verdict, &want.reason),
                    "{:?}",
                    attributes
                );
                let is_listed = subjects.users.contains(&user.name);
                prop_assert_eq!(is_listed, got.verdict == Verdict::Allow);
                let mut trace = Trace::default();
                let explained = snapshot.authorize(&attributes, TraceRecorder::new(&mut trace));
                prop_assert_eq!((explained.verdict, explained.reason), (got.verdict, got.reason));
                let has_path =
                    trace.trace_entries().iter().any(|entry| entry.trace_event.kind == "path");
                prop_assert_eq!(has_path, got.verdict == Verdict::Allow);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 128 } else { 4096 }))]

    #[test]
    fn the_graph_agrees_with_the_reference(changes in vec(change(), 1..40)) {
        let (mut snapshot, mut cluster) = (Snapshot::default(), ReferenceNode::default());
        let mut seen: Vec<GraphObject> = Vec::new();
        let mut earlier = (snapshot.clone(), cluster.clone());
        for change in &changes {
            match change {
                Change::Put(object) => {
                    match seen.iter_mut().find(|own| same_name(own, object)) {
                        Some(old) => {
                            snapshot.graph.update_object(old, object);
                            cluster.update(old, object);
                            *old = object.clone();
                        }
                        None => {
                            snapshot.graph.add_object(object);
                            cluster.add(object);
                            seen.push(object.clone());
                        }
                    }
                }
                Change::Delete(object) => {
                    snapshot.graph.delete_object(object);
                    cluster.delete(object);
                    seen.retain(|own| !same_name(own, object));
                }
                Change::Clone => earlier = (snapshot.clone(), cluster.clone()),
            }
        }
        check(&snapshot, &cluster)?;
        check(&earlier.0, &earlier.1)?;

        // A graph that is built from the remaining objects in another order decides alike and has as
        // many relations, and an empty cluster has none.
        let mut anew = Snapshot::default();
        seen.iter().rev().for_each(|object| anew.graph.add_object(object));
        check(&anew, &cluster)?;
        prop_assert_eq!(snapshot.graph.n_relations(), anew.graph.n_relations());
        cluster.objects().iter().for_each(|object| snapshot.graph.delete_object(object));
        prop_assert_eq!(snapshot.graph.n_relations(), 0);
    }
}
