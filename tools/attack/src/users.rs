//! The users of an attack, their tokens, namespaces and permissions.

use serde_json::{Value, json};

use crate::client::Client;

/// The superuser who prepares and repairs.
pub(crate) const ADMIN: &str = "admin-1f0c";
/// A user who may read config maps everywhere.
pub(crate) const READER: &str = "reader-2ab1";
/// A user who may write in the namespace [`WRITER_NAMESPACE`].
pub(crate) const WRITER: &str = "writer-9d34";
/// The administrator of one tenant: of its namespace, and of webhook configurations and definitions.
pub(crate) const TENANT: &str = "tenant-77e0";
/// The credential of the node `worker-1`.
pub(crate) const NODE: &str = "node-5c55";

/// The namespace of the writer.
pub(crate) const WRITER_NAMESPACE: &str = "writer";
/// The namespace of the tenant.
pub(crate) const TENANT_NAMESPACE: &str = "tenant";

/// The number of innocent users.
pub(crate) const N_INNOCENTS: usize = 4;

/// The token of an innocent user.
pub(crate) fn innocent_token(idx: usize) -> String {
    format!("innocent-{idx}-44")
}

/// The namespace of an innocent user.
pub(crate) fn innocent_namespace(idx: usize) -> String {
    format!("innocent-{idx}")
}

/// The content of the token file.
pub(crate) fn token_file() -> String {
    let innocents = (0..N_INNOCENTS)
        .map(|idx| format!("{},innocent-{idx},innocent-{idx}\n", innocent_token(idx)));
    format!(
        "{ADMIN},admin,1,\"system:masters\"\n{READER},reader,2\n{WRITER},writer,3\n\
         {TENANT},tenant,4\n{NODE},system:node:worker-1,5,\"system:nodes\"\n"
    ) + &innocents.collect::<String>()
}

/// Creates the namespaces and the permissions of all users.
///
/// # Errors
/// The server refuses an object.
pub(crate) async fn create_users(client: &Client) -> anyhow::Result<()> {
    let mut admin = client.session(Some(ADMIN)).await?;
    let innocents = (0..N_INNOCENTS).map(innocent_namespace);
    let mut owners: Vec<(String, String, &str)> =
        innocents.map(|name| (name.clone(), name, "edit")).collect();
    owners.push((WRITER_NAMESPACE.to_owned(), "writer".to_owned(), "edit"));
    owners.push((TENANT_NAMESPACE.to_owned(), "tenant".to_owned(), "admin"));
    for (namespace, user, role) in owners {
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": namespace, "labels": { "owner": user } },
        });
        admin.create("/api/v1/namespaces", &object).await?;
        let path =
            format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings");
        admin.create(&path, &binding("RoleBinding", &user, role, &user)).await?;
        let denied = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "denied" },
        });
        admin.create(&format!("/api/v1/namespaces/{namespace}/configmaps"), &denied).await?;
    }
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let rules = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!([{ "apiGroups": groups, "resources": resources, "verbs": verbs }]);
    let registrar = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "registrar" },
        "rules": rules(&["admissionregistration.k8s.io", "apiextensions.k8s.io", "attack.example.com"], &["*"], &["*"]),
    });
    let reader = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "map-reader" },
        "rules": rules(&[""], &["configmaps"], &["get", "list", "watch"]),
    });
    admin.create(roles, &registrar).await?;
    admin.create(roles, &reader).await?;
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    for (name, role, user) in
        [("registrar", "registrar", "tenant"), ("map-reader", "map-reader", "reader")]
    {
        admin.create(bindings, &binding("ClusterRoleBinding", name, role, user)).await?;
    }
    Ok(())
}

/// A binding of a cluster role to one user.
pub(crate) fn binding(kind: &str, name: &str, role: &str, user: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
    })
}

/// A config map whose value has so many bytes.
pub(crate) fn config_map(name: &str, n_bytes: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
        "data": { "value": "x".repeat(n_bytes) },
    })
}
