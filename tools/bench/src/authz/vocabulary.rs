//! The words in generated policies and requests.

use crate::authz::random::Random;

/// The verbs of the API.
pub(crate) const VERBS: [&str; 8] =
    ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/// Forty resources with their API groups.
pub(crate) const RESOURCES: [(&str, &str); 40] = [
    ("", "pods"),
    ("", "services"),
    ("", "secrets"),
    ("", "configmaps"),
    ("", "endpoints"),
    ("", "events"),
    ("", "namespaces"),
    ("", "nodes"),
    ("", "persistentvolumeclaims"),
    ("", "persistentvolumes"),
    ("", "replicationcontrollers"),
    ("", "resourcequotas"),
    ("", "limitranges"),
    ("", "serviceaccounts"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("apps", "daemonsets"),
    ("apps", "controllerrevisions"),
    ("batch", "jobs"),
    ("batch", "cronjobs"),
    ("autoscaling", "horizontalpodautoscalers"),
    ("policy", "poddisruptionbudgets"),
    ("networking.k8s.io", "ingresses"),
    ("networking.k8s.io", "ingressclasses"),
    ("networking.k8s.io", "networkpolicies"),
    ("storage.k8s.io", "storageclasses"),
    ("storage.k8s.io", "volumeattachments"),
    ("storage.k8s.io", "csinodes"),
    ("coordination.k8s.io", "leases"),
    ("discovery.k8s.io", "endpointslices"),
    ("scheduling.k8s.io", "priorityclasses"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("example.com", "widgets"),
    ("example.com", "gadgets"),
    ("metrics.k8s.io", "pods"),
    ("certificates.k8s.io", "certificatesigningrequests"),
];

/// The paths of policies; a `*` is at the end only.
pub(crate) const PATHS: [&str; 8] = [
    "/healthz",
    "/healthz/*",
    "/metrics",
    "/version",
    "/logs/*",
    "/openapi/*",
    "/debug/pprof/*",
    "/livez",
];

/// The number of custom resources.
const CUSTOM_RESOURCES: usize = 120;

/// A random one of the forty resources: its group and its name.
pub(crate) fn resource(random: &mut Random) -> (&'static str, &'static str) {
    random.pick(&RESOURCES).copied().unwrap_or_default()
}

/// A random built-in resource or, twice as often, a custom one: its group and its name.
pub(crate) fn any_resource(random: &mut Random) -> (String, String) {
    if random.below(3) == 0 {
        let (api_group, resource) = resource(random);
        return (api_group.to_owned(), resource.to_owned());
    }
    let number = random.below(CUSTOM_RESOURCES);
    (format!("app-{:02}.example.com", number / 4), format!("kind{number:03}s"))
}

/// The name of an object for verbs that act on one object; empty for the others.
pub(crate) fn object_name(random: &mut Random, verb: &str) -> String {
    match verb {
        "list" | "watch" | "create" | "deletecollection" => String::new(),
        _ => format!("object-{:04}", random.below(10_000)),
    }
}

/// A path that a path of a policy matches.
pub(crate) fn covered_path(random: &mut Random, path: &str) -> String {
    match path.strip_suffix('*') {
        Some(stem) => format!("{stem}part-{:03}", random.below(1000)),
        None => path.to_owned(),
    }
}

/// The name of a user by number.
pub(crate) fn user(number: usize) -> String {
    format!("user-{number:05}@example.com")
}

/// The name of a group by number.
pub(crate) fn group(number: usize) -> String {
    format!("oidc:team-{number:05}")
}

/// The name of a namespace by number.
pub(crate) fn namespace(number: usize) -> String {
    format!("project-{number:04}")
}
