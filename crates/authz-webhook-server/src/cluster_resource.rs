//! The resources of a cluster that the webhook watches.

use cluster_client::WatchedResource;
use manifests::rbac::Kind;

/// A resource that the webhook watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClusterResource {
    /// ClusterRoles as they are stored: the cluster itself aggregates roles.
    ClusterRoles,
    /// The ClusterRoleBindings of the cluster.
    ClusterRoleBindings,
    /// The Roles of all namespaces.
    Roles,
    /// The RoleBindings of all namespaces.
    RoleBindings,
    /// The namespaces, which explanations mention.
    Namespaces,
}

impl ClusterResource {
    /// All resources, in the order in which the status shows them.
    pub const ALL: [Self; 5] = [
        Self::ClusterRoles,
        Self::ClusterRoleBindings,
        Self::Roles,
        Self::RoleBindings,
        Self::Namespaces,
    ];

    /// The plural name, for metrics and log lines.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::ClusterRoles => "clusterroles",
            Self::ClusterRoleBindings => "clusterrolebindings",
            Self::Roles => "roles",
            Self::RoleBindings => "rolebindings",
            Self::Namespaces => "namespaces",
        }
    }

    /// The kind of its RBAC objects; `None` for namespaces.
    pub(crate) const fn rbac_kind(self) -> Option<Kind> {
        match self {
            Self::ClusterRoles => Some(Kind::ClusterRole),
            Self::ClusterRoleBindings => Some(Kind::ClusterRoleBinding),
            Self::Roles => Some(Kind::Role),
            Self::RoleBindings => Some(Kind::RoleBinding),
            Self::Namespaces => None,
        }
    }

    /// The collection that is listed and watched.
    pub(crate) fn watched_resource(self) -> WatchedResource {
        let plural = self.plural();
        match self.rbac_kind() {
            Some(kind) => WatchedResource {
                path: format!("/apis/rbac.authorization.k8s.io/v1/{plural}"),
                kind: kind.name(),
                api_version: "rbac.authorization.k8s.io/v1",
            },
            None => WatchedResource {
                path: format!("/api/v1/{plural}"),
                kind: "Namespace",
                api_version: "v1",
            },
        }
    }
}
