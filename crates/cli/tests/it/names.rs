//! The names of resources, verbs and users, and the forms of input that people have. Each row is a command that
//! answered wrongly before names were resolved.

use std::fs;
use std::path::Path;

use crate::program::{Run, run, run_with_stdin};

const DEPLOYER: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: deployer, namespace: prod}
rules:
- {apiGroups: [apps], resources: [deployments, deployments/scale], verbs: [get, update]}
- {apiGroups: [''], resources: [secrets], verbs: [get]}
- {apiGroups: [cert.example.com], resources: [certificates], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: deployer, namespace: prod}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: deployer}
subjects:
- {kind: User, name: dana}
- {kind: User, name: 'oidc:olga'}
- {kind: ServiceAccount, name: builder, namespace: ci}
";

const DEFINITIONS: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: certificates.cert.example.com}
spec:
  group: cert.example.com
  scope: Namespaced
  names: {plural: certificates, singular: certificate, kind: Certificate, shortNames: [cert]}
  versions: [{name: v1, served: true, storage: true}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: backups.a.example.com}
spec:
  group: a.example.com
  scope: Namespaced
  names: {plural: backups, kind: Backup}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: backups.b.example.com}
spec:
  group: b.example.com
  scope: Namespaced
  names: {plural: backups, kind: Backup}
";

/// Runs a command with the objects on standard input.
fn with_objects(args: &str) -> Run {
    let args: Vec<&str> = args.split(' ').collect();
    let more = ["-f", "-", "--bootstrap-policy=false"];
    let objects = format!("{DEPLOYER}---\n{DEFINITIONS}");
    run_with_stdin(&[&args[..], &more].concat(), objects.as_bytes())
}

#[test]
fn who_can_resolves_names() {
    for (question, is_listed) in [
        ("get deployments", true),
        ("get deployment", true),
        ("get deploy", true),
        ("get Deployment", true),
        ("get deployments.apps", true),
        ("get deployments.v1.apps", true),
        ("update deploy/scale", true),
        ("get secret", true),
        ("get cert", true),
        ("get Certificate", true),
        ("get certificates.cert.example.com", true),
        ("list secrets", false),
        ("get configmap", false),
        ("get backups.a.example.com", false),
    ] {
        let found = with_objects(&format!("who-can {question} -n prod -o name"));
        assert_eq!((found.code, found.stderr.as_str()), (0, ""), "{question}");
        let listed = "user/dana\nuser/oidc:olga\nserviceaccount/ci/builder\n";
        assert_eq!(found.stdout.starts_with(listed), is_listed, "{question}: {}", found.stdout);
    }
}

#[test]
fn unknown_and_ambiguous_names_are_errors_of_every_command() {
    for (name, want) in [
        ("deploymnets", "error: no resource is named `deploymnets`, did you mean `deployments`? ("),
        ("widgets.example.com", "error: no resource is named `widgets.example.com` ("),
        ("pods/logs", "error: pods have no subresource `logs`, did you mean `pods/log`? ("),
        (
            "backup",
            "error: `backup` is ambiguous, write `backups.a.example.com` or `backups.b.example.com`\n",
        ),
    ] {
        for command in [
            format!("who-can get {name}"),
            format!("eval get {name} --as dana"),
            format!("eval --as dana --verb get --resource {name}"),
            format!("explain get {name} --as dana"),
            format!("rules {name} --as dana"),
        ] {
            let found = with_objects(&command);
            assert_eq!((found.code, found.stdout.as_str()), (2, ""), "{command}");
            assert!(found.stderr.starts_with(want), "{command}: {}", found.stderr);
        }
    }
    let found = with_objects("who-can get widgets.example.com -n prod --allow-unknown");
    assert_eq!((found.code, found.stderr.as_str()), (0, ""));
    let found = with_objects("who-can get backup --allow-unknown");
    assert_eq!(found.code, 2, "a name that is known twice is not unknown");
}

#[test]
fn questionable_names_are_told() {
    for (command, want) in [
        (
            "who-can gte pods -n prod",
            "warning: no request of Kubernetes has the verb `gte`, did you mean `get`?\n",
        ),
        ("eval list /healthz --as dana", "warning: no request of Kubernetes has the verb `list`\n"),
        (
            "who-can get nodes -n prod",
            "warning: nodes belong to no namespace, so no request for them has one; leave out -n\n",
        ),
        (
            "who-can get events -n prod",
            "note: `events` stands for events and not for events.events.k8s.io\n",
        ),
        (
            "eval get pods -n prod --as team:robot",
            "note: `team:robot` stands for the service account \
             system:serviceaccount:team:robot; no binding names it\n",
        ),
    ] {
        let found = with_objects(command);
        assert_eq!(found.stderr, want, "{command}");
        assert!(found.code < 2, "{command}");
    }
}

#[test]
fn questions_are_asked_as_of_who_can() {
    for (question, code) in [
        ("get secrets db -n prod --as dana", 0),
        ("get secrets db -n prod --as eve", 1),
        ("get secrets db --as dana", 1),
        ("get deploy -n prod --as ci/builder", 0),
        ("get deploy -n prod --as ci:builder", 0),
        ("get deploy -n prod --as system:serviceaccount:ci:builder", 0),
        ("get deploy -n prod --as oidc:olga", 0),
        ("get deploy -n prod --as other/builder", 1),
        ("get /healthz --as dana", 1),
        ("get secrets db more -n prod --as dana", 2),
        ("get --as dana", 2),
        ("get /healthz -n prod --as dana", 2),
        ("get pods", 2),
        ("get secrets --as dana --resource pods", 2),
    ] {
        for command in ["explain", "eval"] {
            let found = with_objects(&format!("{command} {question}"));
            assert_eq!(found.code, code, "{command} {question}: {}", found.stderr);
        }
    }
    let found = with_objects("explain get pods");
    assert_eq!(found.stderr, "error: a question needs --as or --as-group\n");
}

#[test]
fn a_command_without_a_question_fails() {
    for command in ["eval", "explain"] {
        for stdin in ["", "\n\n"] {
            let found = run_with_stdin(&[command], stdin.as_bytes());
            assert_eq!((found.code, found.stdout.as_str()), (3, ""), "{command}");
            assert!(found.stderr.starts_with("error: there is no question: "), "{}", found.stderr);
        }
    }
}

#[test]
fn formats_have_one_meaning() {
    let of = |command: &str| with_objects(command).stdout;
    assert_eq!(of("eval get secrets -n prod --as eve -o human"), "no\n");
    assert_eq!(
        of("eval get secrets -n prod --as dana -o human"),
        "yes: RBAC: allowed by RoleBinding \"deployer/prod\" of Role \"deployer\" to User \"dana\"\n"
    );
    let wide = of("who-can get secrets -n prod -o wide");
    assert!(wide.starts_with("KIND            NAME            AUTHORIZER "), "{wide}");
    assert!(wide.contains("rbac  "), "{wide}");
    assert_eq!(
        of("rules deploy --as dana -n prod -o wide"),
        "VERBS       API GROUPS  RESOURCES    NAMES  KIND        NAMESPACED\n\
         get,update  apps        deployments         Deployment  true\n"
    );
    assert_eq!(
        of("rules --as ci/builder -n prod -o name"),
        "secrets\ndeployments.apps\ndeployments.apps/scale\ncertificates.cert.example.com\n"
    );
    for (command, formats) in [
        ("who-can get pods", &["human", "json", "wide", "name"][..]),
        ("rules --as dana", &["human", "json", "wide", "name", "yaml"]),
        ("explain get pods --as dana", &["human", "json"]),
        ("eval get pods --as dana", &["human", "json"]),
    ] {
        for format in formats {
            let found = with_objects(&format!("{command} -o {format}"));
            assert!(found.code < 2, "{command} -o {format}: {}", found.stderr);
        }
        assert_eq!(with_objects(&format!("{command} -o table")).code, 2, "{command}");
    }
}

#[test]
fn default_bindings_that_grant_nothing_are_hidden() {
    let question = ["explain", "get", "secrets", "-n", "prod", "--as", "ana"];
    let found = run(&question);
    assert_eq!(found.code, 1);
    assert!(!found.stdout.contains("system:discovery"), "{}", found.stdout);
    let found = run(&[&question[..], &["-v"]].concat());
    assert!(found.stdout.contains("system:discovery"), "{}", found.stdout);
    // A default binding that decides is shown.
    let found = run(&["explain", "get", "/healthz", "--as", "ana"]);
    assert!(found.stdout.contains("✓ ClusterRoleBinding system:"), "{}", found.stdout);
}

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn input_is_as_people_have_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "rbac.yaml", &format!("# comment\n---\n---\n{DEPLOYER}---\n# end\n"));
    write(root, "values.yaml", "rbac: {create: true}\n");
    write(root, "chart/templates/role.yaml", "{{- if .Values.rbac }}\nkind: Role\n{{- end }}\n");
    write(root, "chart/crds.yaml", DEFINITIONS);
    let path = root.to_str().unwrap();
    let ask = |more: &[&str]| {
        run(&[&["eval", "get", "deploy", "-n", "prod", "--as", "dana"], more].concat())
    };
    let found = ask(&["-f", path]);
    assert_eq!(found.code, 0, "{}", found.stderr);
    let note = format!("note: {path}/values.yaml: no Kubernetes object, skipped\n");
    assert_eq!(found.stderr, note);
    let found = ask(&["-f", path, "-R"]);
    assert_eq!(found.code, 3);
    assert!(found.stderr.contains("this is a Helm template and no manifest"), "{}", found.stderr);
    let found = ask(&["-f", path, "-R", "--exclude", "templates", "--exclude=values*.yaml"]);
    assert_eq!((found.code, found.stderr.as_str()), (0, ""));
    let found = ask(&["--objects", path, "--exclude", "chart/**/*.yaml"]);
    assert_eq!(found.code, 0, "{}", found.stderr);
    let check = |more: &[&str]| run(&[&["check"], more].concat());
    assert_eq!(check(&["-f", path]).code, 0);
    let found = check(&["-f", path, "-R"]);
    assert_eq!(found.code, 1);
    assert!(found.stdout.contains("this is a Helm template and no manifest"), "{}", found.stdout);
    assert_eq!(check(&["-f", path, "-R", "--exclude", "templates"]).code, 0);
    assert_eq!(check(&["-R"]).code, 2, "there must be a file");
}

#[test]
fn a_namespace_is_supplied_by_the_flag() {
    let objects = DEPLOYER.replace(", namespace: prod}", "}");
    let ask = |more: &[&str]| {
        let args = ["who-can", "get", "deploy", "-o", "name", "-f", "-"];
        run_with_stdin(&[&args[..], more].concat(), objects.as_bytes())
    };
    let found = ask(&[]);
    assert_eq!(found.code, 3);
    assert!(found.stderr.contains("or give the namespace with `-n`"), "{}", found.stderr);
    let found = ask(&["-n", "prod"]);
    assert_eq!(found.code, 0);
    assert!(found.stdout.contains("user/dana\n"), "{}", found.stdout);
    assert_eq!(run_with_stdin(&["check", "-"], objects.as_bytes()).code, 1);
    assert_eq!(run_with_stdin(&["check", "-n", "prod", "-"], objects.as_bytes()).code, 0);
}

#[test]
fn an_identical_duplicate_is_a_warning() {
    let twice = format!("{DEPLOYER}---\n{DEPLOYER}");
    let ask = ["eval", "get", "deploy", "-n", "prod", "--as", "dana", "-f", "-"];
    let found = run_with_stdin(&ask, twice.as_bytes());
    assert_eq!(found.code, 0);
    assert!(
        found.stderr.contains(
            ": the Role in namespace `prod` `deployer` is already defined at <stdin>:1:1"
        ),
        "{}",
        found.stderr
    );
    let found = run_with_stdin(&["check", "-"], twice.as_bytes());
    assert_eq!(found.code, 0);
    assert!(found.stdout.contains("warning[duplicate-object]"), "{}", found.stdout);
    assert_eq!(run_with_stdin(&["check", "--strict", "-"], twice.as_bytes()).code, 1);
}

/// Groups of aggregated servers are not known, so nothing is advised about them.
#[test]
fn aggregated_groups_are_not_advised_against() {
    for groups in
        ["metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io, metrics.k8s.io"]
    {
        let role = format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: r}}\n\
             rules:\n- {{apiGroups: [{groups}], resources: [nodes, pods, deployments], verbs: [get]}}\n"
        );
        let found = run_with_stdin(&["check", "--strict", "-"], role.as_bytes());
        assert_eq!(found.code, 0, "{groups}: {}", found.stdout);
    }
}
