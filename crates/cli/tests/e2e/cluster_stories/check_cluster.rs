//! `check` of a cluster, and of files that will be applied to it.

use super::cluster::{Cluster, portcullis};

const OBJECTS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: prod}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: viewer, namespace: prod}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: deployer, namespace: prod}
rules:
- {apiGroups: [apps], resources: [deployments], verbs: [get]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [roles, rolebindings], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: deployers, namespace: prod}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: deployer}
subjects: [{kind: ServiceAccount, name: viewer, namespace: prod}]
";

const FAULTY: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: gone, namespace: prod}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: deploier}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ana}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: account}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: 'system:serviceaccount:prod:viewer'}]
";

/// Replaces the faulty binding and adds one to a role of the cluster.
const NEW: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: gone, namespace: prod}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: deployer}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ana}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: editors}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: editors}]
";

#[test]
fn the_roles_of_a_cluster_are_checked() {
    let cluster = Cluster::start();
    cluster.create(OBJECTS);
    let kubeconfig = cluster.kubeconfig();
    let kubeconfig = kubeconfig.to_str().unwrap();
    let check =
        |args: &[&str]| portcullis(&[&["check"], args, &["--kubeconfig", kubeconfig]].concat());
    // The default policy has no mistake.
    let (code, out, err) = check(&["--strict"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.starts_with("<cluster>: valid: "), "{out}");
    assert_eq!(out.lines().count(), 1, "{out}");

    cluster.create(FAULTY);
    let (code, out, err) = check(&[]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for want in [
        "<cluster>/RoleBinding/prod/gone:",
        "deploier",
        "<cluster>/ClusterRoleBinding/account:",
        "<cluster>/RoleBinding/prod/gone: valid, 1 warning",
        "<cluster>/ClusterRoleBinding/account: valid, 1 warning",
        "\n<cluster>: valid: ",
    ] {
        assert!(out.contains(want), "{want}: {out}");
    }
    assert_eq!(check(&["--strict"]).0, 1);
    let (_, out, _) = check(&["-o", "json"]);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["warnings"].as_array().unwrap().len(), 2, "{report}");
    // The fields that name the owners of other fields are no part of an excerpt.
    assert!(!out.contains("managedFields"), "{out}");
}

#[test]
fn files_are_checked_as_applied_to_the_cluster() {
    let cluster = Cluster::start();
    cluster.create(OBJECTS);
    cluster.create(FAULTY);
    let kubeconfig = cluster.kubeconfig();
    let kubeconfig = kubeconfig.to_str().unwrap();
    let file = cluster.write("new.yaml", NEW);
    let file = file.to_str().unwrap();
    let (_, alone, _) = portcullis(&["check", file]);
    assert!(alone.contains("valid, 1 warning"), "{alone}");
    let (code, out, err) = portcullis(&["check", "-f", file, "--kubeconfig", kubeconfig]);
    let want = format!("{file}: valid: 1 ClusterRoleBinding, 1 RoleBinding\n");
    assert_eq!((code, out.as_str(), err.as_str()), (0, want.as_str(), ""));
    // A role that neither the cluster nor a file has is missing.
    let missing = cluster.write("missing.yaml", &NEW.replace("name: edit}", "name: edt}"));
    let missing = missing.to_str().unwrap();
    let (code, out, _) = portcullis(&["check", "--strict", missing, "--kubeconfig", kubeconfig]);
    assert_eq!(code, 1);
    assert!(out.contains("edt") && !out.contains("<cluster>"), "{out}");
}

#[test]
fn a_cluster_that_is_read_in_part_is_said_to_be() {
    let cluster = Cluster::start();
    cluster.create(OBJECTS);
    let kubeconfig = cluster.service_account_kubeconfig("prod", "viewer");
    let args = ["check", "--kubeconfig", kubeconfig.to_str().unwrap(), "--context", "viewer"];
    let (code, out, err) = portcullis(&args);
    assert_eq!(code, 4, "{err}");
    assert_eq!(out, "<cluster>: valid: 1 Role, 1 RoleBinding\n");
    assert!(err.contains("may not list clusterroles"), "{err}");
    let (code, out, err) = portcullis(&["check", "--kubeconfig", "/nonexistent/config"]);
    assert_eq!((code, out.as_str()), (3, ""));
    assert!(err.contains("/nonexistent/config"), "{err}");
    let (code, _, err) = portcullis(&["check"]);
    assert_eq!(code, 2);
    assert!(err.contains("name files, or a cluster with --kubeconfig"), "{err}");
}
