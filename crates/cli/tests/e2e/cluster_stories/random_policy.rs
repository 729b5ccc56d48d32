//! Questions to a cluster with its default policy and 2,000 random bindings: every answer is compared with the cluster's own.

use std::fmt::Write;

use serde_json::{Value, json};

use super::cluster::{Cluster, portcullis};
use crate::random::Random;

const N_BINDINGS: u64 = 2000;
/// The number of questions that one `eval` answers.
const N_QUESTIONS: usize = 2000;
/// Users of random bindings: enough that few of them have many bindings.
const N_USERS: u64 = 300;
const GROUP: &str = "rbac.authorization.k8s.io";

const NAMESPACES: [&str; 6] = ["n0", "n1", "n2", "n3", "n4", "n5"];
const VERBS: [&str; 10] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "*",
    "bind",
];
/// API group and resource.
const RESOURCES: [(&str, &str); 12] = [
    ("", "pods"),
    ("", "pods/log"),
    ("", "secrets"),
    ("", "configmaps"),
    ("", "services/proxy"),
    ("", "serviceaccounts/token"),
    ("apps", "deployments"),
    ("apps", "deployments/scale"),
    ("batch", "jobs"),
    (GROUP, "roles"),
    ("", "nodes"),
    ("", "*"),
];
const PATHS: [&str; 6] = ["/healthz", "/healthz/*", "/metrics", "/apis/*", "/logs*", "*"];
const GROUPS: [&str; 5] = ["g0", "g1", "g2", "system:authenticated", "system:serviceaccounts:n0"];
/// Users of the default policy, beside those of random bindings.
const SYSTEM_USERS: [&str; 5] = [
    "system:kube-scheduler",
    "system:kube-controller-manager",
    "system:anonymous",
    "system:serviceaccount:kube-system:job-controller",
    "system:kube-proxy",
];

/// Makes objects and questions.
struct Generator(Random);

impl Generator {
    fn choose<'a, T: ?Sized>(&mut self, values: &[&'a T]) -> &'a T {
        values[usize::try_from(self.0.below(values.len() as u64)).unwrap()]
    }

    fn some(&mut self, values: &[&str], n_max: u64) -> Vec<String> {
        let n = 1 + self.0.below(n_max);
        (0..n).map(|_| self.choose(values).to_owned()).collect()
    }

    fn resource(&mut self) -> (&'static str, &'static str) {
        RESOURCES[usize::try_from(self.0.below(RESOURCES.len() as u64)).unwrap()]
    }

    fn rule(&mut self, may_have_paths: bool) -> Value {
        let verbs = self.some(&VERBS, 3);
        if may_have_paths && self.0.below(5) == 0 {
            return json!({ "nonResourceURLs": self.some(&PATHS, 2), "verbs": verbs });
        }
        let resources: Vec<_> = (0..=self.0.below(2)).map(|_| self.resource()).collect();
        let mut rule = json!({
            "apiGroups": resources.iter().map(|(group, _)| *group).collect::<Vec<_>>(),
            "resources": resources.iter().map(|(_, resource)| *resource).collect::<Vec<_>>(),
            "verbs": verbs,
        });
        if self.0.below(4) == 0 {
            rule["resourceNames"] = self.some(&["a", "b"], 2).into();
        }
        rule
    }

    fn user(&mut self) -> String {
        match self.0.below(8) {
            0 => self.choose(&SYSTEM_USERS).to_owned(),
            1 | 2 => {
                format!("system:serviceaccount:{}:s{}", self.choose(&NAMESPACES), self.0.below(3))
            }
            _ => format!("u{}", self.0.below(N_USERS)),
        }
    }

    fn subject(&mut self) -> Value {
        match self.0.below(40) {
            0 => json!({ "apiGroup": GROUP, "kind": "Group", "name": self.choose(&GROUPS[..3]) }),
            1..10 => {
                let (namespace, name) = (self.choose(&NAMESPACES), format!("s{}", self.0.below(3)));
                json!({ "kind": "ServiceAccount", "namespace": namespace, "name": name })
            }
            _ => {
                let name = format!("u{}", self.0.below(N_USERS));
                json!({ "apiGroup": GROUP, "kind": "User", "name": name })
            }
        }
    }

    /// Namespaces, roles and bindings, each with the path of its collection.
    fn objects(&mut self) -> Vec<(String, Value)> {
        let rbac = format!("/apis/{GROUP}/v1");
        let mut objects = Vec::new();
        for namespace in NAMESPACES {
            let object = json!({ "metadata": { "name": namespace } });
            objects.push(("/api/v1/namespaces".to_owned(), object));
        }
        for n in 0..40 {
            let rules: Vec<_> = (0..=self.0.below(3)).map(|_| self.rule(true)).collect();
            let role = json!({ "metadata": { "name": format!("c{n}") }, "rules": rules });
            objects.push((format!("{rbac}/clusterroles"), role));
        }
        for namespace in NAMESPACES {
            for n in 0..10 {
                let rules: Vec<_> = (0..=self.0.below(3)).map(|_| self.rule(false)).collect();
                let role = json!({ "metadata": { "name": format!("r{n}") }, "rules": rules });
                objects.push((format!("{rbac}/namespaces/{namespace}/roles"), role));
            }
        }
        for n in 0..N_BINDINGS {
            let is_namespaced = self.0.below(5) > 0;
            let (kind, name) = match self.0.below(3) {
                // Some bindings refer to roles that do not exist.
                0 if is_namespaced => ("Role", format!("r{}", self.0.below(11))),
                1 => ("ClusterRole", self.choose(&["view", "system:basic-user", "c41"]).to_owned()),
                _ => ("ClusterRole", format!("c{}", self.0.below(40))),
            };
            let subjects: Vec<_> = (0..=self.0.below(2)).map(|_| self.subject()).collect();
            let binding = json!({
                "metadata": { "name": format!("b{n}") },
                "roleRef": { "apiGroup": GROUP, "kind": kind, "name": name },
                "subjects": subjects,
            });
            let path = match is_namespaced {
                true => format!("{rbac}/namespaces/{}/rolebindings", self.choose(&NAMESPACES)),
                false => format!("{rbac}/clusterrolebindings"),
            };
            objects.push((path, binding));
        }
        objects
    }

    /// The specification of a SubjectAccessReview.
    fn question(&mut self) -> Value {
        let verb = self.choose(&VERBS);
        let mut spec = json!({ "user": self.user(), "groups": self.some(&GROUPS[2..], 2) });
        if self.0.below(6) == 0 {
            let path = self.choose(&PATHS).replace('*', "x");
            spec["nonResourceAttributes"] = json!({ "verb": verb, "path": path });
            return spec;
        }
        let (group, resource) = self.resource();
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        spec["resourceAttributes"] = json!({
            "verb": verb,
            "group": group,
            "resource": resource,
            "subresource": subresource,
            "namespace": self.choose(&["", "n0", "n1", "n2", "n3"]),
            "name": self.choose(&["", "a", "b", "c"]),
        });
        spec
    }
}

/// The cluster with its policy, and the commands that found it to disagree.
struct Comparison {
    cluster: Cluster,
    /// Commands whose answer differs from that of the cluster, with what they printed.
    differences: String,
}

impl Comparison {
    /// Runs a command with --verify and notes what differs. Returns its output.
    fn ask(&mut self, args: &[&str]) -> String {
        let kubeconfig = self.cluster.kubeconfig();
        let more = ["--verify", "--kubeconfig", kubeconfig.to_str().unwrap()];
        let (code, out, err) = portcullis(&[args, &more].concat());
        // A list that cannot be complete, and questions that are not allowed, are no difference.
        let is_expected = matches!(code, 0 | 1) || code == 4 && err.contains("note: ");
        let differs = err.contains("disagreement: ") || err.contains("does not decide");
        if differs || !is_expected {
            writeln!(self.differences, "{args:?} ends with {code}:\n{err}").unwrap();
        }
        out
    }
}

#[test]
fn two_thousand_random_bindings_give_the_answers_of_the_cluster() {
    let mut generator = Generator(Random::new(37));
    let cluster = Cluster::start();
    cluster.create_all(&generator.objects());
    let questions: Vec<String> =
        (0..N_QUESTIONS).map(|_| generator.question().to_string()).collect();
    let file = cluster.write("questions.jsonl", &questions.join("\n"));
    let file = file.to_str().unwrap();
    let mut comparison = Comparison { cluster, differences: String::new() };

    let answers = comparison.ask(&["eval", file]);
    assert_eq!(answers.lines().count(), N_QUESTIONS);
    let n_allowed = answers.lines().filter(|line| line.contains("\"allowed\":true")).count();
    assert!((N_QUESTIONS / 20..N_QUESTIONS / 2).contains(&n_allowed), "{n_allowed} are allowed");
    let explained = questions[..50].join("\n");
    let explained = comparison.cluster.write("explained.jsonl", &explained);
    comparison.ask(&["explain", explained.to_str().unwrap()]);
    for _ in 0..12 {
        let verb = generator.choose(&VERBS[..8]);
        let (group, resource) = generator.resource();
        let resource = match (group, resource.split_once('/')) {
            ("", _) => resource.to_owned(),
            (group, None) => format!("{resource}.{group}"),
            (group, Some((resource, subresource))) => format!("{resource}.{group}/{subresource}"),
        };
        let namespace = generator.choose(&NAMESPACES);
        comparison.ask(&["who-can", verb, &resource, "-n", namespace, "--allow-unknown"]);
    }
    comparison.ask(&["who-can", "get", "/healthz"]);
    for _ in 0..8 {
        let user = generator.user();
        comparison.ask(&["rules", "--as", &user, "-n", generator.choose(&NAMESPACES)]);
    }
    for _ in 0..3 {
        let user = generator.user();
        comparison.ask(&["matrix", "--as", &user, "-n", generator.choose(&NAMESPACES)]);
    }
    for resource in ["secrets", "deployments"] {
        comparison.ask(&["matrix", resource, "-n", "n0"]);
    }
    assert!(comparison.differences.is_empty(), "{}", comparison.differences);

    // A chain that the cluster does not have is found out.
    comparison.ask(&["eval", file, "--authorization-mode", "AlwaysAllow"]);
    let n_found = comparison.differences.matches("disagreement: ").count();
    assert_eq!(n_found, N_QUESTIONS - n_allowed);
}
