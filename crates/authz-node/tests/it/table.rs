//! Every verb on every resource with requirements of its own, and on some others.

use std::sync::Arc;

use authz::{
    Attributes, FieldOperator, FieldRequirement, Namespace, NonResourceRule, Resource,
    ResourceRule, Selector, Target, TraceRecorder, User, Verb,
};
use authz_node::{GraphObject, NodeFeatureGates, NodeNamingObject, NodeRules, Pod, Snapshot};
use authz_reference::ReferenceNode;
use proptest::prelude::*;
use proptest::sample::select;

const RESOURCES: &[(&str, &str)] = &[
    ("", "secrets"),
    ("", "configmaps"),
    ("", "persistentvolumeclaims"),
    ("", "persistentvolumes"),
    ("resource.k8s.io", "resourceclaims"),
    ("storage.k8s.io", "volumeattachments"),
    ("", "serviceaccounts"),
    ("coordination.k8s.io", "leases"),
    ("storage.k8s.io", "csinodes"),
    ("resource.k8s.io", "resourceslices"),
    ("", "nodes"),
    ("", "pods"),
    ("certificates.k8s.io", "podcertificaterequests"),
    ("", "services"),
    ("apps", "secrets"),
    ("", ""),
];
const VERBS: &[&str] = &[
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "proxy",
    "",
];
const SUBRESOURCES: &[&str] = &["", "", "", "status", "token", "eviction", "log"];
const NAMESPACES: &[&str] = &["", "ns", "kube-node-lease", "other"];
const NAMES: &[&str] = &["", "n", "m", "a", "b"];
const USERS: &[&str] = &["system:node:n", "system:node:n", "system:node:m", "system:node:", "n"];
const PATHS: &[&str] = &["/healthz", "/api/v1", "/"];

fn text(from: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    select(from)
}

fn gates() -> impl Strategy<Value = NodeFeatureGates> {
    any::<[bool; 3]>().prop_map(|[accounts, certificates, health]| NodeFeatureGates {
        service_account_token_for_credential_providers: accounts,
        is_pod_certificate_request_enabled: certificates,
        is_csi_volume_health_enabled: health,
    })
}

/// A field selector of a request: for the field of the node or another, by equality or inequality.
fn selector() -> impl Strategy<Value = Option<Selector<FieldRequirement>>> {
    let operator = select(&[FieldOperator::Equals, FieldOperator::NotEquals][..]);
    let requirement = (select(&["spec.nodeName", "metadata.name"][..]), operator, text(NAMES))
        .prop_map(|(field, operator, value)| FieldRequirement {
            field: field.to_owned(),
            operator,
            value: value.to_owned(),
        });
    prop::option::of(prop::collection::vec(requirement, 0..3))
        .prop_map(|own| own.map(|requirements| Selector { requirements, error: None }))
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// The objects of node `n`: a pod that refers to one object of every kind, and one object of each kind that
/// names its node. All have the name `a`.
fn objects() -> Vec<GraphObject> {
    let assignment = |namespace: &str| NodeNamingObject {
        namespace: namespace.to_owned(),
        name: "a".to_owned(),
        node_name: "n".to_owned(),
    };
    vec![
        GraphObject::Pod(Box::new(Pod {
            namespace: "ns".to_owned(),
            name: "a".to_owned(),
            node_name: "n".to_owned(),
            service_account_name: "a".to_owned(),
            secret_names: owned(&["a"]),
            config_map_names: owned(&["a"]),
            persistent_volume_claim_names: owned(&["a"]),
            resource_claim_names: owned(&["a"]),
            ..Pod::default()
        })),
        GraphObject::VolumeAttachment(assignment("")),
        GraphObject::ResourceSlice(assignment("")),
        GraphObject::PodCertificateRequest(assignment("ns")),
    ]
}

fn rules() -> NodeRules {
    NodeRules {
        resource_rules: vec![
            ResourceRule {
                verbs: owned(&["get", "list"]),
                api_groups: owned(&[""]),
                resources: owned(&["services", "*/log"]),
                resource_names: Vec::new(),
            },
            ResourceRule {
                verbs: owned(&["*"]),
                api_groups: owned(&["apps"]),
                resources: owned(&["*"]),
                resource_names: owned(&["a"]),
            },
        ],
        non_resource_rules: vec![NonResourceRule {
            verbs: owned(&["get"]),
            non_resource_urls: owned(&["/api/*", "/healthz"]),
        }],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// Attack L13: each verb has its own requirement, so create cannot bypass a rule for update.
    #[test]
    fn the_table_agrees_with_the_specification(
        gates in gates(),
        (api_group, resource) in select(RESOURCES),
        verb in text(VERBS),
        subresource in text(SUBRESOURCES),
        (namespace, name) in (text(NAMESPACES), text(NAMES)),
        selector in selector(),
        (user, is_in_group) in (text(USERS), prop::bool::weighted(0.9)),
        path in prop::option::weighted(0.05, text(PATHS)),
    ) {
        let mut snapshot = Snapshot { feature_gates: gates, node_rules: Arc::new(rules()), ..Snapshot::default() };
        objects().iter().for_each(|object| snapshot.graph.add_object(object));
        let reference = ReferenceNode::new(objects(), rules(), gates);
        let groups = owned(if is_in_group { &["x", "system:nodes"] } else { &["x"] });
        let user = User { name: user.to_owned(), groups, ..User::default() };
        let target = match path {
            Some(path) => Target::Path(path),
            None => Target::Resource(Resource {
                api_group,
                resource,
                subresource,
                namespace: Namespace::new(namespace),
                name,
                field_selector: selector.as_ref(),
                ..Resource::default()
            }),
        };
        let attributes = Attributes { user: Some(&user), verb: Verb::new(verb), target };
        let got = snapshot.authorize(&attributes, TraceRecorder::disabled_recorder());
        let want = reference.authorize(&attributes);
        prop_assert_eq!((got.verdict, got.reason), (want.verdict, want.reason), "{:?}", attributes);
        prop_assert!(got.error.is_none());
    }
}
