//! A cluster of two nodes, and the requests that a node is allowed and not allowed.

use authz::{
    Namespace, ResourceRule, Selector, Target, Trace, TraceEvent, Value, Verb, Verdict,
    parse_field_selector,
};

use super::*;
use crate::graph::Graph;
use crate::graph_object::{
    GraphObject, NodeNamingObject, PersistentVolume, PersistentVolumeClaimReference, Pod,
    VolumeSecretReference,
};
use crate::policy::{NodeFeatureGates, NodeRules};

const ALLOW: Result<(), &str> = Ok(());
const UNRELATED: Result<(), &str> =
    Err("no relationship found between node 'node0' and this object");

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn assignment(namespace: &str, name: String, node: &str) -> NodeNamingObject {
    NodeNamingObject { namespace: namespace.to_owned(), name, node_name: node.to_owned() }
}

fn pod(n: usize) -> Pod {
    Pod {
        namespace: "ns0".to_owned(),
        name: format!("p{n}"),
        node_name: format!("node{n}"),
        service_account_name: format!("sa{n}"),
        secret_names: vec![format!("s{n}"), "sh".to_owned(), String::new()],
        config_map_names: vec![format!("c{n}")],
        persistent_volume_claim_names: vec![format!("v{n}")],
        resource_claim_names: vec![format!("rc{n}"), format!("gen{n}")],
        ..Pod::default()
    }
}

fn volume(n: usize) -> PersistentVolume {
    PersistentVolume {
        name: format!("pv{n}"),
        claim_ref: Some(PersistentVolumeClaimReference {
            namespace: "ns0".to_owned(),
            name: format!("v{n}"),
        }),
        secret_refs: vec![VolumeSecretReference { namespace: None, name: format!("ps{n}") }],
    }
}

/// Two nodes, each with one of everything, and a secret that both share.
fn cluster() -> Snapshot {
    let mut snapshot = Snapshot {
        node_rules: NodeRules {
            resource_rules: vec![ResourceRule {
                verbs: texts(&["get", "list", "watch"]),
                api_groups: texts(&[""]),
                resources: texts(&["services"]),
                ..ResourceRule::default()
            }],
            ..NodeRules::default()
        }
        .into(),
        ..Snapshot::default()
    };
    for n in 0..2 {
        let node = format!("node{n}");
        for object in [
            GraphObject::Pod(Box::new(pod(n))),
            GraphObject::PersistentVolume(volume(n)),
            GraphObject::VolumeAttachment(assignment("", format!("va{n}"), &node)),
            GraphObject::ResourceSlice(assignment("", format!("sl{n}"), &node)),
            GraphObject::PodCertificateRequest(assignment("ns0", format!("pcr{n}"), &node)),
        ] {
            snapshot.graph.add_object(&object);
        }
    }
    snapshot
}

/// Decides a request of a node, which is written `VERB RESOURCE[.GROUP][/SUBRESOURCE] [NAMESPACE/NAME] [FIELD=VALUE]`, with `-`
/// for parts that are left out.
fn decide(snapshot: &Snapshot, node: &str, request: &str) -> Decision {
    let user = User {
        name: format!("system:node:{node}"),
        groups: texts(&["system:nodes"]),
        ..User::default()
    };
    let mut words = request.split(' ').chain(std::iter::repeat(""));
    let mut word = || words.next().filter(|word| *word != "-").unwrap_or_default();
    let (verb, resource, place, selector) = (word(), word(), word(), word());
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let (resource, api_group) = resource.split_once('.').unwrap_or((resource, ""));
    let (namespace, name) = place.split_once('/').unwrap_or(("", place));
    let selector = Selector::from_selector_parse_result(parse_field_selector(selector));
    let target = Target::Resource(Resource {
        api_group,
        namespace: Namespace::new(namespace),
        resource,
        subresource,
        name,
        field_selector: selector.as_ref(),
        ..Resource::default()
    });
    let attributes = Attributes { user: Some(&user), verb: Verb::new(verb), target };
    snapshot.authorize(&attributes, TraceRecorder::disabled_recorder())
}

fn check(snapshot: &Snapshot, request: &str, want: Result<(), &str>) {
    let decision = decide(snapshot, "node0", request);
    let reason = decision.reason.to_string();
    let got = match decision.verdict {
        Verdict::Allow => Ok(()),
        Verdict::NoOpinion => Err(reason.as_str()),
        Verdict::Deny | Verdict::Unavailable(_) => panic!("denied: {request}"),
    };
    assert_eq!(got, want, "{request}");
    assert!(decision.error.is_none());
}

#[test]
fn related_objects_are_allowed_and_unrelated_ones_are_not() {
    let snapshot = cluster();
    for (request, want) in [
        ("get configmaps ns0/c0", ALLOW),
        ("get secrets ns0/s0", ALLOW),
        ("get secrets ns0/sh", ALLOW),
        ("get secrets ns0/ps0", ALLOW),
        ("list secrets ns0/s0", ALLOW),
        ("watch secrets ns0/s0", ALLOW),
        ("list secrets ns0/", Err("No Object name found")),
        ("watch configmaps ns0/", Err("No Object name found")),
        ("list secrets s0", Err("can only read namespaced object of this type")),
        ("update secrets ns0/s0", Err("can only read resources of this type")),
        ("get secrets/x ns0/s0", Err("cannot read subresource")),
        ("get secrets ns1/s0", UNRELATED),
        ("get configmaps ns0/s0", UNRELATED),
        ("get configmaps ns0/c1", UNRELATED),
        ("get secrets ns0/s1", UNRELATED),
        ("get secrets ns0/ps1", UNRELATED),
        ("get persistentvolumeclaims ns0/v1", UNRELATED),
        ("get resourceclaims.resource.k8s.io ns0/rc1", UNRELATED),
        ("get persistentvolumes pv1", UNRELATED),
        ("get persistentvolumeclaims ns0/v0", ALLOW),
        ("get persistentvolumes pv0", ALLOW),
        ("get persistentvolumes ns0/pv0", UNRELATED),
        ("get resourceclaims.resource.k8s.io ns0/rc0", ALLOW),
        ("get resourceclaims.resource.k8s.io ns0/gen0", ALLOW),
        ("get volumeattachments.storage.k8s.io va0", ALLOW),
        ("get volumeattachments.storage.k8s.io va1", UNRELATED),
        ("list persistentvolumes pv0", Err("can only get individual resources of this type")),
        ("get persistentvolumes/status pv0", Err("cannot get subresource")),
        ("update persistentvolumeclaims/status ns0/v0", ALLOW),
        ("patch persistentvolumeclaims/status ns0/v1", UNRELATED),
        ("get persistentvolumeclaims/status ns0/v0", Err("can only get/update/patch this type")),
        ("get persistentvolumeclaims/x ns0/v0", Err("cannot get subresource")),
    ] {
        check(&snapshot, request, want);
    }
}

#[test]
fn nodes_read_service_accounts_and_create_tokens() {
    let only_tokens = Err("can only create tokens for individual service accounts");
    let only_token = Err("can only create token subresource of serviceaccount");
    let mut snapshot = cluster();
    for (request, want) in [
        ("create serviceaccounts/token ns0/sa0", ALLOW),
        ("create serviceaccounts/token ns0/sa1", UNRELATED),
        ("create serviceaccounts/token ns0/", only_tokens),
        ("create serviceaccounts ns0/sa0", only_token),
        ("update serviceaccounts/token ns0/sa0", only_tokens),
        ("get serviceaccounts/token ns0/sa0", only_tokens),
        ("get serviceaccounts ns0/sa0", ALLOW),
        ("get serviceaccounts ns0/sa1", UNRELATED),
        ("get serviceaccounts sa0", Err("can only read namespaced object of this type")),
        ("list serviceaccounts ns0/", only_tokens),
    ] {
        check(&snapshot, request, want);
    }
    snapshot.feature_gates.is_pod_certificate_request_enabled = false;
    check(&snapshot, "get serviceaccounts ns0/sa0", ALLOW);
    snapshot.feature_gates.service_account_token_for_credential_providers = false;
    let refused = Err("not allowed to get service accounts");
    check(&snapshot, "get serviceaccounts ns0/sa0", refused);
    check(&snapshot, "create serviceaccounts/token ns0/sa0", ALLOW);
}

#[test]
fn leases_and_csi_nodes_have_the_name_of_the_node() {
    let mut snapshot = cluster();
    let (leases, csi) = ("leases.coordination.k8s.io", "csinodes.storage.k8s.io");
    let other_lease = "can only access node lease with the same name as the requesting node";
    let other_csi = "can only access CSINode with the same name as the requesting node";
    for verb in ["get", "create", "update", "patch", "delete"] {
        let unless_create = |reason| if verb == "create" { ALLOW } else { Err(reason) };
        check(&snapshot, &format!("{verb} {leases} kube-node-lease/node0"), ALLOW);
        let reason = "can only access leases in the \"kube-node-lease\" system namespace";
        check(&snapshot, &format!("{verb} {leases} foo/node0"), Err(reason));
        let request = format!("{verb} {leases} kube-node-lease/node1");
        check(&snapshot, &request, unless_create(other_lease));
        check(&snapshot, &format!("{verb} {csi} node0"), ALLOW);
        check(&snapshot, &format!("{verb} {csi} node1"), unless_create(other_csi));
        let reason = "CSINode status access requires CSIVolumeHealth feature";
        check(&snapshot, &format!("{verb} {csi}/status node0"), Err(reason));
        let reason = "cannot authorize CSINode subresources";
        check(&snapshot, &format!("{verb} {csi}/csiDrivers node0"), Err(reason));
    }
    for verb in ["list", "watch", "deletecollection"] {
        let reason = "can only get, create, update, patch, or delete a node lease";
        check(&snapshot, &format!("{verb} {leases} kube-node-lease/node0"), Err(reason));
        let reason = "can only get, create, update, patch, or delete a CSINode";
        check(&snapshot, &format!("{verb} {csi} node0"), Err(reason));
        // The subresource is checked before the verb.
        let reason = "cannot authorize CSINode subresources";
        check(&snapshot, &format!("{verb} {csi}/x node0"), Err(reason));
        let reason = "CSINode status access requires CSIVolumeHealth feature";
        check(&snapshot, &format!("{verb} {csi}/status node0"), Err(reason));
    }
    snapshot.feature_gates.is_csi_volume_health_enabled = true;
    for (verb, want) in [
        ("get", ALLOW),
        ("update", ALLOW),
        ("patch", ALLOW),
        ("delete", Err("can only get, update, or patch CSINode status")),
        ("create", Err("can only get, update, or patch CSINode status")),
    ] {
        check(&snapshot, &format!("{verb} {csi}/status node0"), want);
    }
    check(&snapshot, &format!("get {csi}/status node1"), Err(other_csi));
}

#[test]
fn resource_slices_and_pod_certificate_requests() {
    let mut snapshot = cluster();
    let unselected =
        "can only list/watch/deletecollection resourceslices with nodeName field selector";
    let slices = "resourceslices.resource.k8s.io";
    for verb in ["get", "update", "patch", "delete"] {
        check(&snapshot, &format!("{verb} {slices} sl0"), ALLOW);
        check(&snapshot, &format!("{verb} {slices} sl1"), UNRELATED);
        check(&snapshot, &format!("{verb} {slices}"), Err("No Object name found"));
    }
    for verb in ["list", "watch", "deletecollection"] {
        for (selector, want) in [
            ("spec.nodeName=node0", ALLOW),
            ("spec.nodeName==node0", ALLOW),
            ("a=b,spec.nodeName=node0,c!=d", ALLOW),
            ("spec.nodeName=node1", Err(unselected)),
            ("spec.nodeName!=node0", Err(unselected)),
            ("metadata.name=node0", Err(unselected)),
            ("spec.nodeName", Err(unselected)),
            ("-", Err(unselected)),
        ] {
            check(&snapshot, &format!("{verb} {slices} sl0 {selector}"), want);
        }
    }
    check(&snapshot, &format!("create {slices} sl1"), ALLOW);
    let reason = "cannot authorize ResourceSlice subresources";
    check(&snapshot, &format!("get {slices}/status sl0"), Err(reason));
    let reason = "only the following verbs are allowed for a ResourceSlice: \
                  get, watch, list, create, update, patch, delete, deletecollection";
    check(&snapshot, &format!("educate {slices} sl0"), Err(reason));

    let requests = "podcertificaterequests.certificates.k8s.io";
    let unselected = "can only list/watch podcertificaterequests with nodeName field selector";
    let cases = [
        (format!("create {requests} ns0/"), ALLOW),
        (format!("get {requests} ns0/pcr0"), ALLOW),
        (format!("get {requests} ns0/pcr1"), UNRELATED),
        (format!("get {requests} pcr0/ns0"), UNRELATED),
        (format!("list {requests} ns0/"), Err(unselected)),
        (format!("list {requests} - spec.nodeName=node0"), ALLOW),
        (format!("watch {requests} - spec.nodeName=othernode"), Err(unselected)),
        (format!("delete {requests} ns0/pcr0"), Err("nodes may not delete podcertificaterequests")),
        (
            format!("update {requests}/status ns0/pcr0"),
            Err("nodes may not access the status subresource of PodCertificateRequests"),
        ),
    ];
    for (request, want) in &cases {
        check(&snapshot, request, *want);
    }
    snapshot.feature_gates.is_pod_certificate_request_enabled = false;
    for (request, _) in &cases {
        check(&snapshot, request, Err(""));
    }
}

#[test]
fn pods_and_nodes_have_their_own_requirements() {
    let snapshot = cluster();
    let unselected = Err("can only list/watch pods with spec.nodeName field selector");
    for (request, want) in [
        ("get pods ns0/p0", ALLOW),
        ("get pods ns0/p1", UNRELATED),
        ("get pods ns0/", Err("No Object name found")),
        ("list pods - spec.nodeName=node0", ALLOW),
        ("watch pods ns0/p1 spec.nodeName=node0", ALLOW),
        ("list pods ns0/p0", ALLOW),
        ("list pods ns0/p1", UNRELATED),
        ("list pods", unselected),
        ("watch pods - spec.nodeName=node1", unselected),
        ("create pods ns0/", ALLOW),
        ("delete pods ns0/p0", ALLOW),
        ("delete pods ns0/p1", ALLOW),
        ("update pods ns0/p0", Err("")),
        ("deletecollection pods ns0/", Err("")),
        ("create pods/proxy ns0/p0", Err("")),
        ("delete pods/proxy ns0/p0", Err("")),
        ("update pods/status ns0/p1", ALLOW),
        ("patch pods/status ns0/p0", ALLOW),
        ("get pods/status ns0/p0", Err("")),
        ("create pods/eviction ns0/p1", ALLOW),
        ("get pods/eviction ns0/p0", Err("")),
        ("get nodes node0", ALLOW),
        ("list nodes node0", ALLOW),
        ("get nodes node1", Err("node 'node0' cannot read 'node1', only its own Node object")),
        ("list nodes", Err("node 'node0' cannot read all nodes, only its own Node object")),
        ("watch nodes", Err("node 'node0' cannot read all nodes, only its own Node object")),
        ("create nodes", ALLOW),
        ("update nodes node1", ALLOW),
        ("patch nodes node0", ALLOW),
        ("delete nodes node0", Err("")),
        ("update nodes/status node1", ALLOW),
        ("get nodes/status node0", Err("")),
        ("get nodes/proxy node0", Err("")),
    ] {
        check(&snapshot, request, want);
    }
    assert_eq!(decide(&snapshot, "unregistered", "get nodes unregistered").verdict, Verdict::Allow);
}

#[test]
fn other_requests_follow_the_system_node_role() {
    let snapshot = cluster();
    for (request, want) in [
        ("get services ns0/web", ALLOW),
        ("list services", ALLOW),
        ("delete services ns0/web", Err("")),
        ("get services/status ns0/web", Err("")),
        ("get services.apps ns0/web", Err("")),
        ("educate dolphins", Err("")),
        // The API group of this request is not that of core secrets, so the request is not for the related secret.
        ("get secrets.example.com ns0/s0", Err("")),
    ] {
        check(&snapshot, request, want);
    }
}

#[test]
fn a_user_who_is_not_a_node_gets_no_opinion() {
    let snapshot = cluster();
    let target = Target::Path("/healthz");
    for (name, groups, want) in [
        ("system:node:node0", &[][..], ""),
        ("node0", &["system:nodes"], ""),
        ("system:node:", &["system:nodes"], "unknown node for user \"system:node:\""),
    ] {
        let user = User { name: name.to_owned(), groups: texts(groups), ..User::default() };
        let attributes = Attributes { user: Some(&user), verb: Verb::GET, target };
        let decision = snapshot.authorize(&attributes, TraceRecorder::disabled_recorder());
        assert_eq!((decision.verdict, decision.reason), (Verdict::NoOpinion, want.into()));
    }
    let attributes = Attributes { user: None, verb: Verb::GET, target };
    assert_eq!(snapshot.authorize(&attributes, TraceRecorder::disabled_recorder()).reason, "");
}

#[test]
fn rules_of_nodes_can_not_be_listed() {
    let snapshot = cluster();
    let mut user = User { name: "system:node:x".to_owned(), ..User::default() };
    let rules = snapshot.rules_for(&user);
    assert!(!rules.is_incomplete && rules.error.is_none());
    user.groups = texts(&["system:nodes"]);
    let rules = snapshot.rules_for(&user);
    assert!(rules.is_incomplete && rules.resource_rules.is_empty());
    let error = rules.error.unwrap().to_string();
    assert_eq!(error, "node authorizer does not support user rule resolution");
}

/// After an update the graph is the same as if only the new pod had been added.
#[test]
fn an_update_removes_the_references_that_the_new_object_lacks() {
    let old = pod(0);
    for (change, late, former) in [
        ((|_| {}) as fn(&mut Pod), UNRELATED, ALLOW),
        (|new| new.secret_names = texts(&["late"]), ALLOW, UNRELATED),
        (|new| new.secret_names.clear(), UNRELATED, UNRELATED),
        (|new| new.secret_names.push("late".to_owned()), ALLOW, ALLOW),
        (|new| new.is_mirror_pod = true, UNRELATED, UNRELATED),
        (|new| new.node_name = "elsewhere".to_owned(), UNRELATED, UNRELATED),
        (|new| new.node_name = String::new(), UNRELATED, UNRELATED),
    ] {
        let mut new = old.clone();
        change(&mut new);
        let mut snapshot = cluster();
        let n_relations = snapshot.graph.n_relations();
        let (old, new) = (GraphObject::Pod(Box::new(old.clone())), GraphObject::Pod(Box::new(new)));
        snapshot.graph.update_object(&old, &new);
        check(&snapshot, "get secrets ns0/late", late);
        check(&snapshot, "get secrets ns0/s0", former);
        snapshot.graph.delete_object(&new);
        check(&snapshot, "get secrets ns0/late", UNRELATED);
        check(&snapshot, "get secrets ns0/s0", UNRELATED);
        snapshot.graph.add_object(&old);
        assert_eq!(snapshot.graph.n_relations(), n_relations);
    }
    for object in [
        GraphObject::VolumeAttachment as fn(NodeNamingObject) -> GraphObject,
        GraphObject::ResourceSlice,
        GraphObject::PodCertificateRequest,
    ] {
        let mut graph = Graph::default();
        let bound = object(assignment("", "x".to_owned(), "node7"));
        graph.add_object(&bound);
        graph.update_object(&bound, &object(assignment("", "x".to_owned(), "")));
        assert_eq!(graph.n_relations(), 0);
    }
}

#[test]
fn mirror_pods_and_unbound_volumes_relate_nothing() {
    let mut snapshot = Snapshot::default();
    snapshot.graph.add_object(&GraphObject::Pod(Box::new(Pod { is_mirror_pod: true, ..pod(0) })));
    check(&snapshot, "get pods ns0/p0", ALLOW);
    check(&snapshot, "get secrets ns0/s0", UNRELATED);
    snapshot.graph.add_object(&GraphObject::PersistentVolume(PersistentVolume {
        claim_ref: None,
        ..volume(0)
    }));
    let Pod { namespace, name, node_name, .. } = pod(0);
    let without_references = Pod { namespace, name, node_name, ..Pod::default() };
    let mut graph = Graph::default();
    graph.add_object(&GraphObject::Pod(Box::new(without_references)));
    assert_eq!(snapshot.graph.n_relations(), graph.n_relations());
}

#[test]
fn a_deleted_object_leaves_no_relations() {
    let node = "node7";
    for (object, other_kind) in [
        (
            GraphObject::VolumeAttachment(assignment("", "x".to_owned(), node)),
            GraphObject::ResourceSlice(assignment("", "x".to_owned(), node)),
        ),
        (
            GraphObject::PodCertificateRequest(assignment("ns", "x".to_owned(), node)),
            GraphObject::PodCertificateRequest(assignment("x", "ns".to_owned(), node)),
        ),
        (GraphObject::Pod(Box::new(pod(0))), GraphObject::PersistentVolume(volume(0))),
    ] {
        let mut graph = Graph::default();
        graph.add_object(&object);
        let n_relations = graph.n_relations();
        graph.delete_object(&other_kind);
        assert_eq!(graph.n_relations(), n_relations);
        graph.delete_object(&object);
        assert_eq!(graph.n_relations(), 0);
    }
    let mut graph = Graph::default();
    graph.add_object(&GraphObject::Pod(Box::new(Pod { node_name: String::new(), ..pod(0) })));
    assert_eq!(graph.n_relations(), 0);
}

#[test]
fn explanations_show_the_path_or_why_there_is_none() {
    let snapshot = cluster();
    let user = User {
        name: "system:node:node0".to_owned(),
        groups: texts(&["system:nodes"]),
        ..User::default()
    };
    let explain = |name: &str| {
        let resource = Resource {
            resource: "secrets",
            namespace: Namespace::new("ns0"),
            name,
            ..Resource::default()
        };
        let target = Target::Resource(resource);
        let mut trace = Trace::default();
        let attributes = Attributes { user: Some(&user), verb: Verb::GET, target };
        let _ = snapshot.authorize(&attributes, TraceRecorder::new(&mut trace));
        trace.trace_entries().last().map(|entry| entry.trace_event.clone())
    };
    let vertices = texts(&[
        "secret ns0/ps0",
        "persistentvolume pv0",
        "persistentvolumeclaim ns0/v0",
        "pod ns0/p0",
        "node node0",
    ]);
    assert_eq!(
        explain("ps0"),
        Some(TraceEvent::new("path").with_trace_event_value("vertices", vertices))
    );
    let missing = |object: &str, is_known: bool, nodes: &[&str]| {
        TraceEvent::new("noPath")
            .with_trace_event_value("object", format!("secret ns0/{object}"))
            .with_trace_event_value("isObjectKnown", is_known)
            .with_trace_event_value("isNodeKnown", true)
            .with_trace_event_value("nNodes", nodes.len())
            .with_trace_event_value("nodes", Value::List(texts(nodes)))
    };
    assert_eq!(explain("s1"), Some(missing("s1", true, &["node1"])));
    assert_eq!(explain("nope"), Some(missing("nope", false, &[])));
}

#[test]
fn feature_gate_defaults_match_kubernetes() {
    let gates = NodeFeatureGates::default();
    assert!(gates.is_pod_certificate_request_enabled);
    assert!(gates.service_account_token_for_credential_providers);
    assert!(!gates.is_csi_volume_health_enabled);
}
