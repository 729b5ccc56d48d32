//! Resources of Kubernetes that this program does not serve, and those that only policies name.

use super::ResourceNameTable;
use super::named_resource::{KnownSubresources, NamedResource, ResourceNameOrigin};
use crate::resource::Scope::{self, Cluster, Namespaced};

/// A resource that the table of served resources lacks.
struct UnservedResource {
    group: &'static str,
    plural: &'static str,
    /// Empty for a resource that only policies name.
    kind: &'static str,
    short_names: &'static [&'static str],
    scope: Scope,
}

const fn unserved_resource(
    group: &'static str,
    plural: &'static str,
    kind: &'static str,
    short_names: &'static [&'static str],
    scope: Scope,
) -> UnservedResource {
    UnservedResource { group, plural, kind, short_names, scope }
}

/// The resources of kube-apiserver. The order of their groups is that of its discovery.
const UNSERVED: &[UnservedResource] = &[
    unserved_resource("", "componentstatuses", "ComponentStatus", &["cs"], Cluster),
    unserved_resource("apiregistration.k8s.io", "apiservices", "APIService", &[], Cluster),
    unserved_resource("events.k8s.io", "events", "Event", &["ev"], Namespaced),
    unserved_resource(
        "autoscaling",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        &["hpa"],
        Namespaced,
    ),
    unserved_resource("networking.k8s.io", "ipaddresses", "IPAddress", &["ip"], Cluster),
    unserved_resource("networking.k8s.io", "servicecidrs", "ServiceCIDR", &[], Cluster),
    unserved_resource(
        "storage.k8s.io",
        "csistoragecapacities",
        "CSIStorageCapacity",
        &[],
        Namespaced,
    ),
    unserved_resource(
        "storage.k8s.io",
        "volumeattributesclasses",
        "VolumeAttributesClass",
        &["vac"],
        Cluster,
    ),
    unserved_resource("coordination.k8s.io", "leasecandidates", "LeaseCandidate", &[], Namespaced),
    unserved_resource("resource.k8s.io", "devicetaintrules", "DeviceTaintRule", &[], Cluster),
    unserved_resource(
        "internal.apiserver.k8s.io",
        "storageversions",
        "StorageVersion",
        &[],
        Cluster,
    ),
    unserved_resource(
        "storagemigration.k8s.io",
        "storageversionmigrations",
        "StorageVersionMigration",
        &[],
        Cluster,
    ),
    // Impersonation and signing are authorized with resources that no server serves.
    unserved_resource("", "users", "", &[], Cluster),
    unserved_resource("", "groups", "", &[], Cluster),
    unserved_resource("authentication.k8s.io", "uids", "", &[], Cluster),
    unserved_resource("authentication.k8s.io", "userextras", "", &[], Cluster),
    unserved_resource("certificates.k8s.io", "signers", "", &[], Cluster),
];

/// Resources of metrics servers. Resources of the core group have the same names, and a name
/// without a group means those.
const METRICS: &[UnservedResource] = &[
    unserved_resource("metrics.k8s.io", "nodes", "NodeMetrics", &[], Cluster),
    unserved_resource("metrics.k8s.io", "pods", "PodMetrics", &[], Namespaced),
];

/// Groups of metrics servers whose resources depend on the installed adapter.
const OPEN_GROUPS: [&str; 2] = ["custom.metrics.k8s.io", "external.metrics.k8s.io"];

/// Subresources that the table of served resources lacks. The last of a node are those that a kubelet authorizes.
const SUBRESOURCES: &[(&str, &str, &[&str])] = &[
    (
        "",
        "pods",
        &[
            "attach",
            "binding",
            "ephemeralcontainers",
            "eviction",
            "exec",
            "log",
            "portforward",
            "proxy",
            "resize",
        ],
    ),
    ("", "services", &["proxy"]),
    ("", "serviceaccounts", &["token"]),
    ("", "namespaces", &["finalize"]),
    (
        "",
        "nodes",
        &["proxy", "metrics", "stats", "log", "spec", "checkpoint", "configz", "healthz", "pods"],
    ),
    ("", "replicationcontrollers", &["scale"]),
    ("apps", "deployments", &["scale"]),
    ("apps", "replicasets", &["scale"]),
    ("apps", "statefulsets", &["scale"]),
    ("certificates.k8s.io", "certificatesigningrequests", &["approval"]),
    ("resource.k8s.io", "resourceclaims", &["binding", "driver"]),
];

/// Resources whose subresources are an open set.
const OPEN_SUBRESOURCES: [(&str, &str); 1] = [("authentication.k8s.io", "userextras")];

/// Adds the resources that only policies name, and the subresources that a kubelet authorizes.
pub(super) fn add_unserved_rows_of_policies(table: &mut ResourceNameTable) {
    for resource in UNSERVED.iter().filter(|resource| resource.kind.is_empty()) {
        table.add_named_resource(to_named_resource(resource, ResourceNameOrigin::BuiltIn));
    }
    add_subresources(table);
}

/// Adds the rows to the table of the served resources.
pub(super) fn add_unserved_resources(table: &mut ResourceNameTable) {
    for resource in UNSERVED {
        table.add_named_resource(to_named_resource(resource, ResourceNameOrigin::BuiltIn));
    }
    for resource in METRICS {
        table.add_named_resource(to_named_resource(resource, ResourceNameOrigin::OnlyWithGroup));
    }
    add_subresources(table);
    for group in OPEN_GROUPS {
        table.add_external_group(group);
    }
}

fn add_subresources(table: &mut ResourceNameTable) {
    for (group, plural, names) in SUBRESOURCES {
        let is_row = |row: &&mut NamedResource| row.group == *group && row.plural == *plural;
        if let Some(row) = table.named_resources.iter_mut().find(is_row) {
            let names = names.iter().map(|&name| name.to_owned()).collect();
            row.subresources.extend(KnownSubresources::Known(names));
        }
    }
}

fn to_named_resource(resource: &UnservedResource, origin: ResourceNameOrigin) -> NamedResource {
    let UnservedResource { group, plural, kind, short_names, scope } = *resource;
    let is_open = OPEN_SUBRESOURCES.contains(&(group, plural));
    NamedResource {
        group: group.to_owned(),
        plural: plural.to_owned(),
        singular: kind.to_ascii_lowercase(),
        kind: kind.to_owned(),
        short_names: short_names.iter().map(|&name| name.to_owned()).collect(),
        scope,
        subresources: if is_open {
            KnownSubresources::Any
        } else {
            KnownSubresources::Known(Vec::new())
        },
        resource_origin: origin,
    }
}
