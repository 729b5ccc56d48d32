//! The keys of the store that the snapshot is built from.

use admission::ConfigurationKind;

use crate::admission::{CONFIG_REVISION_PATH, configuration_kind_at_path};
use crate::initializers::{UNINITIALIZED_PATH, WAITING_PATH};

/// The part of the snapshot that a key belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SnapshotKeyKind {
    Rbac,
    Node,
    Namespace,
    Definition,
    FlowControl,
    Hooks(ConfigurationKind),
    /// The key that every change of the hooks writes.
    ConfigRevision,
    UninitializedPath,
    /// A record of an object that waits for initializers; `UninitializedObjectCounts` counts these.
    UninitializedRecord,
    /// A Service, an EndpointSlice or an Endpoints object. No decision depends on them, but a write of one returns only after
    /// the service directory contains it.
    ServiceOrEndpoints,
}

/// The storage paths that the snapshot reads at the start. The order does not matter.
pub(crate) const TRACKED_PATHS: [&str; 22] = [
    "roles",
    "rolebindings",
    "clusterroles",
    "clusterrolebindings",
    "namespaces",
    "pods",
    "persistentvolumes",
    "volumeattachments",
    "resourceslices",
    "podcertificaterequests",
    "services/specs",
    "services/endpoints",
    "endpointslices",
    "apiextensions.k8s.io/customresourcedefinitions",
    "flowschemas",
    "prioritylevelconfigurations",
    "admissionregistration.k8s.io/externaladmissionhookconfigurations",
    "admissionregistration.k8s.io/initializerconfigurations",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    UNINITIALIZED_PATH,
    WAITING_PATH,
];

/// The path of a Service, an EndpointSlice or an Endpoints object below the prefix; `None` for other keys.
pub(crate) fn service_directory_path<'k>(prefix: &str, key: &'k str) -> Option<&'k str> {
    let (kind, path) = classify_snapshot_key(prefix, key)?;
    (kind == SnapshotKeyKind::ServiceOrEndpoints).then_some(path)
}

/// Whether the snapshot depends on a key, so that a write of it waits for the snapshot.
pub(crate) fn is_snapshot_key(prefix: &str, key: &str) -> bool {
    classify_snapshot_key(prefix, key).is_some()
}

/// The part of the snapshot that a key belongs to, and the path of the key below the prefix.
pub(super) fn classify_snapshot_key<'k>(
    prefix: &str,
    key: &'k str,
) -> Option<(SnapshotKeyKind, &'k str)> {
    let path = key.strip_prefix(prefix)?.strip_prefix('/')?;
    // Whole path segments are compared, because the name of another resource may begin with the same letters.
    let mut segments = path.split('/');
    let resource = (segments.next()?, segments.next());
    let has_name = segments.next().is_some();
    let kind = match resource {
        (CONFIG_REVISION_PATH, None) => SnapshotKeyKind::ConfigRevision,
        ("roles" | "rolebindings" | "clusterroles" | "clusterrolebindings", Some(_)) => {
            SnapshotKeyKind::Rbac
        }
        (
            "pods"
            | "persistentvolumes"
            | "volumeattachments"
            | "resourceslices"
            | "podcertificaterequests",
            Some(_),
        ) => SnapshotKeyKind::Node,
        ("namespaces", Some(_)) => SnapshotKeyKind::Namespace,
        ("flowschemas" | "prioritylevelconfigurations", Some(_)) => SnapshotKeyKind::FlowControl,
        (UNINITIALIZED_PATH, Some(_)) => SnapshotKeyKind::UninitializedPath,
        (WAITING_PATH, Some(_)) => SnapshotKeyKind::UninitializedRecord,
        ("endpointslices", Some(_)) => SnapshotKeyKind::ServiceOrEndpoints,
        ("services", Some("specs" | "endpoints")) if has_name => {
            SnapshotKeyKind::ServiceOrEndpoints
        }
        ("apiextensions.k8s.io", Some("customresourcedefinitions")) if has_name => {
            SnapshotKeyKind::Definition
        }
        _ => SnapshotKeyKind::Hooks(configuration_kind_at_path(path)?),
    };
    Some((kind, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_only_begins_like_a_tracked_one_is_not_tracked() {
        for path in TRACKED_PATHS {
            assert!(is_snapshot_key("/registry", &format!("/registry/{path}/x")), "{path}");
            for other in [
                format!("/registry/{path}x/x"),
                format!("/registry/x{path}/x"),
                format!("/registryx/{path}/x"),
                format!("/registry/x/{path}/x"),
                format!("/registry/{path}"),
            ] {
                assert!(!is_snapshot_key("/registry", &other), "{other}");
            }
        }
        assert!(is_snapshot_key("/registry", &format!("/registry/{CONFIG_REVISION_PATH}")));
        assert!(!is_snapshot_key("/registry", &format!("/registry/{CONFIG_REVISION_PATH}/x")));
        assert!(!is_snapshot_key("/registry", &format!("/registry/{CONFIG_REVISION_PATH}x")));
    }
}
