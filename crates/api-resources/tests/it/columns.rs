//! The columns and cells of Table responses.

use api_object::Tree;
use api_resources::{Registry, table_cells, table_columns};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{
    EXTENSIONS, RBAC, established, now, resource, tree, version, widgets, with_widgets,
};

/// The headings of a resource; those for people who want more in parentheses.
fn headings(resource: &api_resources::Resource) -> Vec<String> {
    let heading = |it: &api_resources::Column| match it.column_priority {
        0 => it.name.to_string(),
        _ => format!("({})", it.name),
    };
    table_columns(resource).iter().map(heading).collect()
}

fn shown(group: &str, plural: &str, mut object: Value) -> Value {
    object["metadata"]["name"] = json!("x");
    object["metadata"]["creationTimestamp"] = json!("2026-11-15T18:01:52Z");
    Value::from(table_cells(&resource(group, plural), &tree(object), now()))
}

#[test]
fn each_kind_has_its_headings() {
    let admission = "admissionregistration.k8s.io";
    for (group, plural, want) in [
        ("", "namespaces", "Name Status Age"),
        ("", "configmaps", "Name Data Age"),
        ("", "secrets", "Name Type Data Age"),
        ("", "serviceaccounts", "Name Age"),
        ("", "services", "Name Type Cluster-IP External-IP Port(s) Age (Selector)"),
        ("", "endpoints", "Name Endpoints Age"),
        ("discovery.k8s.io", "endpointslices", "Name AddressType Ports Endpoints Age"),
        (
            "",
            "pods",
            "Name Ready Status Restarts Age (IP) (Node) (Nominated Node) (Readiness Gates)",
        ),
        (
            "",
            "nodes",
            "Name Status Roles Age Version (Internal-IP) (External-IP) (OS-Image) \
             (Kernel-Version) (Container-Runtime)",
        ),
        (
            "",
            "events",
            "Last Seen Type Reason Object (Subobject) (Source) Message (First Seen) (Count) (Name)",
        ),
        (RBAC, "roles", "Name Created At"),
        (RBAC, "clusterrolebindings", "Name Role Age (Users) (Groups) (ServiceAccounts)"),
        (admission, "validatingwebhookconfigurations", "Name Webhooks Age"),
        (admission, "validatingadmissionpolicies", "Name Validations ParamKind Age"),
        (admission, "mutatingadmissionpolicies", "Name Mutations ParamKind Age"),
        (admission, "mutatingadmissionpolicybindings", "Name PolicyName ParamRef Age"),
        (
            EXTENSIONS,
            "customresourcedefinitions",
            "Name Scope Versions Created At (Group) (Kind) (ShortNames) (Established)",
        ),
        ("coordination.k8s.io", "leases", "Name Holder Age"),
        ("", "limitranges", "Name Created At"),
        ("", "resourcequotas", "Name Request Limit Age"),
    ] {
        assert_eq!(headings(&resource(group, plural)).join(" "), want, "{plural}");
    }
    let registry = Registry::with_built_in_resources();
    for (plural, want) in [
        ("initializerconfigurations", "Name Initializers Age"),
        ("externaladmissionhookconfigurations", "Name Hooks Age"),
    ] {
        let resource = registry.resource(admission, "v1alpha1", plural).expect("served");
        assert_eq!(headings(resource).join(" "), want);
    }
}

#[test]
fn simple_kinds_show_their_state() {
    for (group, plural, object, want) in [
        (
            "",
            "namespaces",
            json!({ "status": { "phase": "Active" } }),
            json!(["x", "Active", "46s"]),
        ),
        (
            "",
            "configmaps",
            json!({ "data": { "a": "" }, "binaryData": { "b": "" } }),
            json!(["x", 2, "46s"]),
        ),
        ("", "secrets", json!({ "type": "Opaque" }), json!(["x", "Opaque", 0, "46s"])),
        ("", "serviceaccounts", json!({}), json!(["x", "46s"])),
        (RBAC, "roles", json!({}), json!(["x", "2026-11-15T18:01:52Z"])),
        (
            "coordination.k8s.io",
            "leases",
            json!({ "spec": { "holderIdentity": "me" } }),
            json!(["x", "me", "46s"]),
        ),
        (
            RBAC,
            "rolebindings",
            json!({
                "roleRef": { "kind": "Role", "name": "r" },
                "subjects": [
                    { "kind": "User", "name": "a" },
                    { "kind": "ServiceAccount", "namespace": "n", "name": "s" },
                    { "kind": "User", "name": "b" },
                ],
            }),
            json!(["x", "Role/r", "46s", "a, b", "", "n/s"]),
        ),
        (
            "",
            "resourcequotas",
            json!({ "status": {
                "hard": { "pods": "10", "limits.cpu": "2", "cpu": "1" },
                "used": { "pods": "3" },
            } }),
            json!(["x", "cpu: 0/1, pods: 3/10", "limits.cpu: 0/2", "46s"]),
        ),
    ] {
        assert_eq!(shown(group, plural, object), want, "{plural}");
    }
}

#[test]
fn services_show_where_they_are() {
    let ports = json!([{ "port": 443, "protocol": "TCP" }, { "port": 80, "nodePort": 30080, "protocol": "UDP" }]);
    for (spec, status, want) in [
        (
            json!({ "type": "ClusterIP", "clusterIP": "10.0.0.1", "ports": ports }),
            json!({}),
            json!(["ClusterIP", "10.0.0.1", "<none>", "443/TCP,80:30080/UDP", "<none>"]),
        ),
        (
            json!({ "type": "LoadBalancer", "selector": { "b": "2", "a": "1" } }),
            json!({}),
            json!(["LoadBalancer", "<none>", "<pending>", "<none>", "a=1,b=2"]),
        ),
        (
            json!({ "type": "LoadBalancer", "externalIPs": ["1.1.1.1"] }),
            json!({ "loadBalancer": { "ingress": [{ "hostname": "h" }, { "ip": "2.2.2.2" }] } }),
            json!(["LoadBalancer", "<none>", "2.2.2.2,h,1.1.1.1", "<none>", "<none>"]),
        ),
        (
            json!({ "type": "ExternalName", "externalName": "a.b" }),
            json!({}),
            json!(["ExternalName", "<none>", "a.b", "<none>", "<none>"]),
        ),
    ] {
        let mut cells = shown("", "services", json!({ "spec": spec, "status": status }));
        let cells = cells.as_array_mut().expect("a list");
        assert_eq!((cells.remove(5), cells.remove(0)), (json!("46s"), json!("x")));
        assert_eq!(Value::from(cells.clone()), want);
    }
}

#[test]
fn endpoints_show_the_first_three() {
    let subset = |n: usize| {
        let addresses: Value = (0..n).map(|n| json!({ "ip": format!("10.0.0.{n}") })).collect();
        json!({ "subsets": [{ "addresses": addresses, "ports": [{ "port": 80 }] }] })
    };
    let endpoints = |object| shown("", "endpoints", object)[1].clone();
    assert_eq!(endpoints(json!({})), "<none>");
    assert_eq!(endpoints(subset(3)), "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80");
    assert_eq!(endpoints(subset(5)), "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 2 more...");
    let slice = json!({
        "addressType": "IPv6",
        "ports": [{ "port": 80 }, { "name": "web" }, {}],
        "endpoints": [{ "addresses": ["fe80::1"] }],
    });
    assert_eq!(
        shown("discovery.k8s.io", "endpointslices", slice),
        json!(["x", "IPv6", "80,web,*", "fe80::1", "46s"])
    );
}

#[test]
fn nodes_show_whether_they_can_run_pods() {
    let node = json!({
        "metadata": { "labels": { "node-role.kubernetes.io/worker": "", "kubernetes.io/role": "db" } },
        "spec": { "unschedulable": true },
        "status": {
            "conditions": [{ "type": "Ready", "status": "False" }],
            "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }],
            "nodeInfo": { "kubeletVersion": "v1", "kernelVersion": "6.1", "architecture": "arm64" },
        },
    });
    assert_eq!(
        shown("", "nodes", node),
        json!([
            "x",
            "NotReady,SchedulingDisabled",
            "db,worker",
            "46s",
            "v1",
            "10.0.0.1",
            "<none>",
            "<unknown>",
            "6.1 (arm64)",
            "<unknown>",
        ])
    );
    assert_eq!(shown("", "nodes", json!({}))[1], "Unknown");
    assert_eq!(shown("", "nodes", json!({}))[2], "<none>");
}

#[test]
fn events_show_when_and_to_what() {
    let event = json!({
        "involvedObject": { "kind": "Pod", "name": "p", "fieldPath": "f" },
        "source": { "component": "kubelet", "host": "n" },
        "type": "Warning", "reason": "Failed", "message": " no \n",
        "firstTimestamp": "2026-11-15T17:02:38Z", "lastTimestamp": "2026-11-15T18:02:30Z",
    });
    assert_eq!(
        shown("", "events", event),
        json!(["8s", "Warning", "Failed", "pod/p", "f", "kubelet, n", "no", "60m", 1, "x"])
    );
    let series = json!({
        "eventTime": "2026-11-15T18:02:28.000000Z",
        "series": { "count": 7, "lastObservedTime": "2026-11-15T18:02:33.000000Z" },
    });
    let cells = shown("", "events", series);
    assert_eq!((&cells[0], &cells[7], &cells[8]), (&json!("5s"), &json!("10s"), &json!(7)));
}

#[test]
fn pods_show_what_they_are_doing() {
    let running = json!({ "ready": true, "state": { "running": {} } });
    let waiting = json!({ "state": { "waiting": { "reason": "CrashLoopBackOff" } },
        "restartCount": 3, "lastState": { "terminated": { "finishedAt": "2026-11-15T18:02:08Z" } } });
    let completed = json!({ "state": { "terminated": { "reason": "Completed", "exitCode": 0 } } });
    let failed = json!({ "state": { "terminated": { "exitCode": 2 } } });
    let containers = json!([{ "name": "a" }, { "name": "b" }]);
    for (status, deleted, ready, word, restarts) in [
        (json!({ "phase": "Pending" }), false, "0/2", "Pending", "0"),
        (json!({ "phase": "Failed", "reason": "Evicted" }), false, "0/2", "Evicted", "0"),
        (
            json!({ "phase": "Running", "containerStatuses": [running, running] }),
            false,
            "2/2",
            "Running",
            "0",
        ),
        (
            json!({ "phase": "Running", "containerStatuses": [running, waiting] }),
            false,
            "1/2",
            "CrashLoopBackOff",
            "3 (30s ago)",
        ),
        (
            json!({ "phase": "Succeeded", "containerStatuses": [completed, completed] }),
            false,
            "0/2",
            "Completed",
            "0",
        ),
        (
            json!({ "phase": "Running", "containerStatuses": [completed, running],
                "conditions": [{ "type": "Ready", "status": "True" }] }),
            false,
            "1/2",
            "Running",
            "0",
        ),
        (
            json!({ "phase": "Running", "containerStatuses": [completed, running] }),
            false,
            "1/2",
            "NotReady",
            "0",
        ),
        (
            json!({ "phase": "Failed", "containerStatuses": [completed, failed] }),
            false,
            "0/2",
            "ExitCode:2",
            "0",
        ),
        (
            json!({ "phase": "Pending", "initContainerStatuses": [completed, waiting] }),
            false,
            "0/2",
            "Init:CrashLoopBackOff",
            "3 (30s ago)",
        ),
        (
            json!({ "phase": "Pending", "initContainerStatuses": [{ "state": {} }] }),
            false,
            "0/2",
            "Init:0/1",
            "0",
        ),
        (json!({ "phase": "Running" }), true, "0/2", "Terminating", "0"),
        (json!({ "phase": "Succeeded" }), true, "0/2", "Succeeded", "0"),
    ] {
        let mut pod = json!({
            "spec": { "containers": containers, "initContainers": [{ "name": "i" }] },
            "status": status,
        });
        if deleted {
            pod["metadata"]["deletionTimestamp"] = json!("2026-11-15T18:02:38Z");
        }
        let cells = shown("", "pods", pod);
        assert_eq!(
            (&cells[1], &cells[2], &cells[3]),
            (&json!(ready), &json!(word), &json!(restarts))
        );
        assert_eq!((&cells[5], &cells[8]), (&json!("<none>"), &json!("<none>")));
    }
}

#[test]
fn what_intercepts_requests_shows_its_parts() {
    let group = "admissionregistration.k8s.io";
    for (plural, object, want) in [
        ("mutatingwebhookconfigurations", json!({ "webhooks": [{}, {}] }), json!(["x", 2, "46s"])),
        (
            "validatingadmissionpolicies",
            json!({ "spec": { "validations": [{}], "paramKind": { "apiVersion": "a/v1", "kind": "K" } } }),
            json!(["x", 1, "a/v1/K", "46s"]),
        ),
        ("mutatingadmissionpolicies", json!({}), json!(["x", 0, "<unset>", "46s"])),
        (
            "validatingadmissionpolicybindings",
            json!({ "spec": { "policyName": "p", "paramRef": { "name": "n" } } }),
            json!(["x", "p", "*/n", "46s"]),
        ),
        (
            "validatingadmissionpolicybindings",
            json!({ "spec": { "policyName": "p", "paramRef": { "selector": {
                "matchLabels": { "b": "1" },
                "matchExpressions": [{ "key": "a", "operator": "In", "values": ["z", "y"] }],
            } } } }),
            json!(["x", "p", "a in (y,z),b=1", "46s"]),
        ),
    ] {
        assert_eq!(shown(group, plural, object), want);
    }
}

#[test]
fn workloads_show_how_far_they_are() {
    let spec = json!({
        "replicas": 3,
        "selector": { "matchLabels": { "a": "b" } },
        "template": { "spec": { "containers": [
            { "name": "c", "image": "i" }, { "name": "d", "image": "j" },
        ] } },
    });
    let status = json!({ "replicas": 2, "readyReplicas": 1, "updatedReplicas": 2 });
    let object = json!({ "spec": spec, "status": status });
    assert_eq!(
        shown("apps", "deployments", object.clone()),
        json!(["x", "1/3", 2, 0, "46s", "c,d", "i,j", "a=b"])
    );
    assert_eq!(
        shown("apps", "replicasets", object),
        json!(["x", 3, 2, 1, "46s", "c,d", "i,j", "a=b"])
    );
    let claim = json!({
        "spec": { "volumeName": "v", "storageClassName": "fast" },
        "status": { "phase": "Bound", "capacity": { "storage": "1Gi" },
            "accessModes": ["ReadWriteMany", "ReadWriteOnce"] },
    });
    assert_eq!(
        shown("", "persistentvolumeclaims", claim),
        json!(["x", "Bound", "v", "1Gi", "RWO,RWX", "fast", "<unset>", "46s", "<unset>"])
    );
    let request = json!({
        "spec": { "signerName": "s", "username": "u", "expirationSeconds": 7200 },
        "status": { "conditions": [{ "type": "Approved" }], "certificate": "eA==" },
    });
    assert_eq!(
        shown("certificates.k8s.io", "certificatesigningrequests", request),
        json!(["x", "46s", "s", "u", "120m", "Approved,Issued"])
    );
}

#[test]
fn definitions_choose_the_columns_of_their_objects() {
    let registry = with_widgets();
    let widgets_served = registry.resource("example.com", "v1", "widgets").expect("served");
    assert_eq!(headings(widgets_served), ["Name", "Size"]);
    let shown = |spec: Value| {
        table_cells(
            widgets_served,
            &tree(json!({ "metadata": { "name": "a" }, "spec": spec })),
            now(),
        )
    };
    assert_eq!(shown(json!({ "size": 3 })), [json!("a"), json!(3)]);
    assert_eq!(shown(json!({})), [json!("a"), Value::Null]);
    assert_eq!(shown(json!({ "size": "large" })), [json!("a"), Value::Null]);

    let mut plain = widgets();
    plain["spec"]["versions"] = json!([version("v1", true)]);
    plain["spec"]["versions"][0]["additionalPrinterColumns"] = Value::Null;
    let (registry, _) = Registry::with_custom_resource_definitions(&[&established(plain)]);
    let plain = registry.resource("example.com", "v1", "widgets").expect("served");
    assert_eq!(headings(plain), ["Name", "Age"]);
    assert_eq!(table_columns(plain)[1].r#type, "date");
    let object =
        json!({ "metadata": { "name": "a", "creationTimestamp": "2026-11-15T18:01:52Z" } });
    assert_eq!(table_cells(plain, &tree(object), now()), [json!("a"), json!("46s")]);
}

#[test]
fn columns_of_definitions_have_types() {
    let column = |kind: &str, path: &str| json!({ "name": kind, "type": kind, "jsonPath": path });
    let mut definition = widgets();
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
        column("string", ".a"),
        column("integer", ".a"),
        column("number", ".a"),
        column("boolean", ".a"),
        column("date", ".a"),
        column("string", ".a[0:1]"),
    ]);
    let (registry, _) = Registry::with_custom_resource_definitions(&[&established(definition)]);
    let widgets = registry.resource("example.com", "v1", "widgets").expect("served");
    for (value, want) in [
        (json!("t"), json!(["t", null, null, null, "<invalid>", null])),
        (json!(1.5), json!(["1.5", 1, 1.5, null, null, null])),
        (json!(true), json!(["true", null, null, true, null, null])),
        (json!({ "b": [1] }), json!(["{\"b\":[1]}", null, null, null, null, null])),
        (
            json!("2026-11-15T18:01:52Z"),
            json!(["2026-11-15T18:01:52Z", null, null, null, "46s", null]),
        ),
        (Value::Null, json!([null, null, null, null, null, null])),
    ] {
        let cells = table_cells(widgets, &tree(json!({ "a": value })), now());
        assert_eq!(Value::from(cells[1..].to_vec()), want);
    }
    assert_eq!(
        table_columns(widgets)[1].description,
        "Custom resource definition column (in JSONPath format): .a"
    );
}

/// Objects with values of every type, under the names that columns and rules look for.
pub(crate) fn any_object() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~é]{0,6}".prop_map(Value::from),
        Just(json!("2026-11-15T18:01:52Z")),
    ];
    let value = leaf.prop_recursive(5, 60, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            object_of(inner).prop_map(Value::Object),
        ]
    });
    object_of(value)
}

fn object_of(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Tree> {
    let entry = (prop::sample::select(MEMBERS), value);
    prop::collection::vec(entry, 0..8)
        .prop_map(|entries| entries.into_iter().map(|(key, it)| (key.to_owned(), it)).collect())
}

const MEMBERS: &[&str] = &[
    "metadata",
    "spec",
    "status",
    "data",
    "name",
    "type",
    "conditions",
    "containers",
    "containerStatuses",
    "initContainers",
    "initContainerStatuses",
    "state",
    "terminated",
    "waiting",
    "reason",
    "ports",
    "port",
    "subsets",
    "addresses",
    "subjects",
    "roleRef",
    "series",
    "names",
    "versions",
    "storage",
    "finalizers",
    "labels",
    "creationTimestamp",
    "stringData",
    "secrets",
    "template",
    "selector",
    "matchLabels",
    "kind",
    "schema",
    "openAPIV3Schema",
    "selectableFields",
    "jsonPath",
    "shortNames",
    "restartCount",
];

proptest! {
    /// Nobody promises what a stored object looks like.
    #[test]
    fn any_object_has_as_many_cells_as_there_are_columns(object in any_object()) {
        for resource in with_widgets().resources() {
            prop_assert_eq!(table_cells(resource, &object, now()).len(), table_columns(resource).len());
            let mut prepared = object.clone();
            if api_resources::prepare_create(resource, &mut prepared).is_ok() {
                let _ = api_resources::validate_create(resource, &prepared);
                let mut next = object.clone();
                let _ = api_resources::prepare_update(resource, &mut next, &prepared, None);
                let _ = api_resources::validate_update(resource, &next, &prepared, None);
            }
            let mut finalizers = Vec::new();
            api_resources::prepare_delete(resource, &mut prepared, &mut finalizers, now());
        }
        let mut definition = object;
        api_resources::accept_definition_names(&mut definition, &[], now());
        api_resources::mark_established(&mut definition, now());
        let _ = Registry::with_custom_resource_definitions(&[&definition]);
    }
}
