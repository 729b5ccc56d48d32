//! The labels that a node may set on itself. Workloads are placed by labels, so a node that chooses them
//! chooses its workloads.

use std::collections::BTreeSet;

use serde_json::Value;

/// The labels of Kubernetes that kubelets set.
const KUBELET_LABELS: [&str; 11] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];
/// The domains whose labels kubelets set, with their subdomains.
const KUBELET_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
/// The domains that belong to Kubernetes, with their subdomains.
const KUBERNETES_DOMAINS: [&str; 2] = ["kubernetes.io", "k8s.io"];
/// The domain of labels that only administrators set.
const RESTRICTED_DOMAIN: &str = "node-restriction.kubernetes.io";

/// The labels that differ between two versions of a node and that the node may not change, in order.
pub(super) fn forbidden_node_label_changes(
    new: Option<&Value>,
    old: Option<&Value>,
) -> Vec<String> {
    let keys = |labels: Option<&Value>| -> BTreeSet<String> {
        labels.and_then(Value::as_object).into_iter().flat_map(|own| own.keys().cloned()).collect()
    };
    let changed = |key: &String| {
        let value = |labels: Option<&Value>| labels.and_then(|own| own.get(key)).cloned();
        value(new) != value(old)
    };
    let all: BTreeSet<String> = keys(new).union(&keys(old)).cloned().collect();
    all.into_iter().filter(|key| changed(key) && is_forbidden_node_label(key)).collect()
}

fn is_forbidden_node_label(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else { return false };
    let is_in = |parent: &str| {
        domain.strip_suffix(parent).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let is_kubelet_label = KUBELET_LABELS.contains(&key) || KUBELET_DOMAINS.into_iter().any(is_in);
    is_in(RESTRICTED_DOMAIN) || (KUBERNETES_DOMAINS.into_iter().any(is_in) && !is_kubelet_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_labels_on_both_sides_of_each_rule() {
        for (key, want) in [
            ("plain", false),
            ("example.com/a", false),
            ("notkubernetes.io/a", false),
            ("kubernetes.io.example.com/a", false),
            ("kubernetes.io/a", true),
            ("x.kubernetes.io/a", true),
            ("k8s.io/a", true),
            ("x.k8s.io/a", true),
            ("xk8s.io/a", false),
            ("kubernetes.io/hostname", false),
            ("kubernetes.io/hostname2", true),
            ("topology.kubernetes.io/zone", false),
            ("topology.kubernetes.io/rack", true),
            ("kubelet.kubernetes.io/a", false),
            ("sub.node.kubernetes.io/a", false),
            ("xnode.kubernetes.io/a", true),
            ("node-restriction.kubernetes.io/a", true),
            ("sub.node-restriction.kubernetes.io/a", true),
            // A subdomain of a domain of kubelets may begin with any name.
            ("node-restriction.kubernetes.io.node.kubernetes.io/a", false),
            ("node-role.kubernetes.io/control-plane", true),
        ] {
            assert_eq!(is_forbidden_node_label(key), want, "{key}");
        }
    }
}
