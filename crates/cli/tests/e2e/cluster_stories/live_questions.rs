//! Questions to a running cluster, with kubectl and the command line as its clients.

use std::process::{Command, Output};

use super::cluster::{Cluster, portcullis, program};

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
rules: [{apiGroups: [apps], resources: [deployments, deployments/scale], verbs: [get, list, update]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: deployers, namespace: prod}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: deployer}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ana}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: policy-reader, namespace: prod}
rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [roles, rolebindings], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: policy-readers, namespace: prod}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: policy-reader}
subjects: [{kind: ServiceAccount, name: viewer, namespace: prod}]
";

fn start_with_objects() -> Cluster {
    let cluster = Cluster::start();
    cluster.create(OBJECTS);
    cluster
}

const ASSUMED: &str = "note: the API of a cluster does not tell its authorizers; Node,RBAC is assumed, and \
                       --authorization-config names others\n";

#[test]
fn answers_are_those_of_the_cluster() {
    let cluster = start_with_objects();
    let kubeconfig = cluster.kubeconfig();
    let kubeconfig = kubeconfig.to_str().unwrap();
    let ask =
        |args: &[&str]| portcullis(&[args, &["--kubeconfig", kubeconfig, "--verify"]].concat());
    let (code, out, err) = ask(&["who-can", "update", "deploy/scale", "-n", "prod", "-o", "name"]);
    assert_eq!((code, err.as_str()), (0, ASSUMED));
    assert!(out.contains("user/ana\n") && out.contains("group/system:masters\n"), "{out}");
    let (code, out, err) = ask(&["explain", "get", "deploy", "-n", "prod", "--as", "ana"]);
    assert_eq!((code, err.as_str()), (0, ASSUMED));
    assert!(out.starts_with("ALLOWED") && out.contains("RoleBinding prod/deployers"), "{out}");
    let (code, out, _) =
        ask(&["eval", "delete", "deploy", "-n", "prod", "--as", "ana", "-o", "human"]);
    assert_eq!((code, out.as_str()), (1, "no\n"));
    // Without -n the namespace of the context counts, which is `default`.
    let (code, _, _) = ask(&["eval", "get", "deploy", "--as", "ana"]);
    assert_eq!(code, 1);
    let (code, out, _) = ask(&["rules", "--as", "ana", "-n", "prod", "-o", "name"]);
    assert_eq!(code, 0);
    assert!(out.contains("deployments.apps"), "{out}");
    let (code, out, err) = ask(&["matrix", "--as", "ana", "-n", "prod"]);
    assert_eq!((code, err.as_str()), (0, ASSUMED));
    let row = out.lines().find(|line| line.starts_with("deployments.apps ")).unwrap();
    let marks: Vec<&str> = row.split_whitespace().skip(1).collect();
    assert_eq!(marks, ["✓", "✓", "✗", "✗", "✓", "✗", "✗"]);
    let (code, out, err) = ask(&["matrix", "deploy", "-n", "prod", "-o", "json"]);
    assert_eq!((code, err.as_str()), (0, ASSUMED));
    assert!(out.contains("\"User ana\""), "{out}");
    let (code, _, err) = ask(&["who-can", "get", "deploymnets"]);
    assert_eq!(code, 2);
    assert!(err.contains("did you mean `deployments`?"), "{err}");
}

#[test]
fn files_are_applied_to_the_cluster() {
    let cluster = start_with_objects();
    let kubeconfig = cluster.kubeconfig();
    let kubeconfig = kubeconfig.to_str().unwrap();
    // The new binding replaces the stored one, so ana loses the role and bob gets it.
    let new = OBJECTS.split("---").nth(3).unwrap().replace("name: ana", "name: bob");
    let file = cluster.write("new.yaml", &new);
    let ask = |user: &str| {
        let file = file.to_str().unwrap();
        let args =
            ["eval", "get", "deploy", "-n", "prod", "--as", user, "--kubeconfig", kubeconfig];
        portcullis(&[&args[..], &["-f", file]].concat()).0
    };
    assert_eq!((ask("ana"), ask("bob")), (1, 0));
}

#[test]
fn missing_permissions_make_a_partial_answer() {
    let cluster = start_with_objects();
    let kubeconfig = cluster.service_account_kubeconfig("prod", "viewer");
    let kubeconfig = kubeconfig.to_str().unwrap();
    let ask = |args: &[&str]| {
        let more = ["--kubeconfig", kubeconfig, "--context", "viewer"];
        portcullis(&[args, &more].concat())
    };
    // A role that can be read is enough to allow; a refusal is not certain.
    let (code, out, err) = ask(&["eval", "get", "deploy", "--as", "ana", "-o", "human"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("yes"), "{out}");
    assert!(err.contains("only roles of the namespace prod can be read"), "{err}");
    let rule = "{apiGroups: [\"rbac.authorization.k8s.io\"], resources: [\"clusterroles\"], verbs: [\"list\"]}";
    assert!(err.contains(rule), "{err}");
    let (code, _, _) = ask(&["eval", "delete", "deploy", "--as", "ana"]);
    assert_eq!(code, 4);
    let (code, _, _) = ask(&["who-can", "get", "deploy"]);
    assert_eq!(code, 4);
    // The user may not ask reviews about others either.
    let (code, _, err) = ask(&["eval", "get", "deploy", "--as", "ana", "--verify"]);
    assert_eq!(code, 4);
    assert!(
        err.contains("the cluster does not decide about `get deployments.apps in prod` by ana"),
        "{err}"
    );
}

#[test]
fn kubectl_runs_it_as_a_plugin() {
    let cluster = start_with_objects();
    let plugin = cluster.folder().join("kubectl-portcullis");
    std::os::unix::fs::symlink(program(), &plugin).unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut command = Command::new("kubectl");
    command
        .env("PATH", format!("{}:{path}", cluster.folder().display()))
        .env("KUBECONFIG", cluster.kubeconfig())
        .args(["portcullis", "who-can", "get", "deploy", "-n", "prod", "-o", "name"]);
    let Output { status, stdout, .. } = command.output().unwrap();
    assert!(status.success());
    assert!(String::from_utf8(stdout).unwrap().contains("user/ana\n"));
}

#[test]
fn clusters_that_can_not_be_read_are_named_with_the_cause() {
    let cluster = start_with_objects();
    let kubeconfig = std::fs::read_to_string(cluster.kubeconfig()).unwrap();
    let unreachable = {
        let server = kubeconfig.lines().find(|line| line.contains("server: ")).unwrap();
        let other =
            server.split_once("server: ").unwrap().0.to_owned() + "server: https://127.0.0.1:1";
        cluster.write("unreachable", &kubeconfig.replace(server, &other))
    };
    let broken = "current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n\
                  clusters: [{name: c, cluster: {server: '', certificate-authority: none.pem}}]\n\
                  users: [{name: u, user: {token: t, username: u, client-certificate: none.crt}}]\n";
    let broken = cluster.write("broken", broken);
    for (file, want) in [
        (unreachable.to_str().unwrap(), "connect: connection refused"),
        (broken.to_str().unwrap(), "unable to read client-cert"),
        ("/nonexistent/config", "open /nonexistent/config: no such file or directory"),
    ] {
        let (code, out, err) = portcullis(&["who-can", "get", "pods", "--kubeconfig", file]);
        assert_eq!((code, out.as_str()), (3, ""), "{err}");
        assert!(err.contains(want), "{err}");
    }
    let (code, _, err) = portcullis(&["who-can", "get", "pods", "--context", "x"]);
    assert_eq!(code, 3);
    assert!(err.contains("there is no cluster to ask"), "{err}");
}
