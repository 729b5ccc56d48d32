//! Questions to a running cluster: the server in the role of somebody's cluster, kubectl and the command line as its clients.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::server::{Place, Server, directory};

/// A server with some roles, and a folder for kubeconfigs.
struct Cluster {
    server: Server,
    folder: TempDir,
    _data: TempDir,
}

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

impl Cluster {
    fn start() -> Self {
        let (data, folder) = (directory(), directory());
        let server = Server::start(data.path(), &Place::Embedded);
        let cluster = Self { server, folder, _data: data };
        let objects = cluster.write("objects.yaml", OBJECTS);
        let applied = cluster.kubectl(&["create", "-f", objects.to_str().unwrap()]);
        assert!(applied.status.success(), "{applied:?}");
        cluster
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn kubectl(&self, args: &[&str]) -> Output {
        let mut command = Command::new("kubectl");
        command.arg("--kubeconfig").arg(self.server.kubeconfig()).args(args).output().unwrap()
    }

    /// A kubeconfig with the token of the service account `viewer` and the namespace `prod`.
    fn viewer_kubeconfig(&self) -> PathBuf {
        let token = self.kubectl(&["create", "token", "viewer", "-n", "prod"]);
        let token = String::from_utf8(token.stdout).unwrap();
        let admin = std::fs::read_to_string(self.server.kubeconfig()).unwrap();
        let path = self.write("viewer.kubeconfig", &admin);
        for args in [
            vec!["config", "set-credentials", "viewer", "--token", token.trim()],
            vec!["config", "set-context", "viewer", "--user=viewer", "--namespace=prod"],
        ] {
            let mut command = Command::new("kubectl");
            let done = command.arg("--kubeconfig").arg(&path).args(args).output().unwrap();
            assert!(done.status.success(), "{done:?}");
        }
        let cluster = admin.lines().find_map(|line| line.trim().strip_prefix("cluster: "));
        let mut command = Command::new("kubectl");
        let cluster = format!("--cluster={}", cluster.unwrap_or("portcullis").trim());
        let args = ["config", "set-context", "viewer", &cluster];
        let done = command.arg("--kubeconfig").arg(&path).args(args).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        path
    }
}

/// Runs the program without the environment of the test. Returns exit code, output and errors.
fn portcullis(program: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(program);
    command.env_remove("KUBECONFIG").env("HOME", "/nonexistent").args(args);
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_portcullis"))
}

const ASSUMED: &str = "note: the API of a cluster does not tell its authorizers; Node,RBAC is assumed, and \
                       --authorization-config names others\n";

#[test]
fn answers_are_those_of_the_cluster() {
    let cluster = Cluster::start();
    let kubeconfig = cluster.server.kubeconfig();
    let kubeconfig = kubeconfig.to_str().unwrap();
    let ask = |args: &[&str]| {
        portcullis(program(), &[args, &["--kubeconfig", kubeconfig, "--verify"]].concat())
    };
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
    let cluster = Cluster::start();
    let kubeconfig = cluster.server.kubeconfig();
    let kubeconfig = kubeconfig.to_str().unwrap();
    // The new binding replaces the stored one, so ana loses the role and bob gets it.
    let new = OBJECTS.split("---").nth(3).unwrap().replace("name: ana", "name: bob");
    let file = cluster.write("new.yaml", &new);
    let ask = |user: &str| {
        let file = file.to_str().unwrap();
        let args =
            ["eval", "get", "deploy", "-n", "prod", "--as", user, "--kubeconfig", kubeconfig];
        portcullis(program(), &[&args[..], &["-f", file]].concat()).0
    };
    assert_eq!((ask("ana"), ask("bob")), (1, 0));
}

#[test]
fn missing_permissions_make_a_partial_answer() {
    let cluster = Cluster::start();
    let kubeconfig = cluster.viewer_kubeconfig();
    let kubeconfig = kubeconfig.to_str().unwrap();
    let ask = |args: &[&str]| {
        let more = ["--kubeconfig", kubeconfig, "--context", "viewer"];
        portcullis(program(), &[args, &more].concat())
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
    let cluster = Cluster::start();
    let plugin = cluster.folder.path().join("kubectl-portcullis");
    std::os::unix::fs::symlink(program(), &plugin).unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut command = Command::new("kubectl");
    command
        .env("PATH", format!("{}:{path}", cluster.folder.path().display()))
        .env("KUBECONFIG", cluster.server.kubeconfig())
        .args(["portcullis", "who-can", "get", "deploy", "-n", "prod", "-o", "name"]);
    let Output { status, stdout, .. } = command.output().unwrap();
    assert!(status.success());
    assert!(String::from_utf8(stdout).unwrap().contains("user/ana\n"));
}

#[test]
fn clusters_that_can_not_be_read_are_named_with_the_cause() {
    let cluster = Cluster::start();
    let kubeconfig = std::fs::read_to_string(cluster.server.kubeconfig()).unwrap();
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
        let (code, out, err) =
            portcullis(program(), &["who-can", "get", "pods", "--kubeconfig", file]);
        assert_eq!((code, out.as_str()), (3, ""), "{err}");
        assert!(err.contains(want), "{err}");
    }
    let (code, _, err) = portcullis(program(), &["who-can", "get", "pods", "--context", "x"]);
    assert_eq!(code, 3);
    assert!(err.contains("there is no cluster to ask"), "{err}");
}
