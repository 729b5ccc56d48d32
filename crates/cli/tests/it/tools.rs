//! Twenty folders of manifests in the manner of common tools, with their quirks. The reference authorizer, which
//! reads every binding for every question, has the expected answers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use authz::{Attributes, Namespace, Resource, Target, User, Verb, Verdict};
use authz_rbac::{
    Binding, PolicyRule, ReconcileExtrasPolicy, Role, Snapshot, reconcile_bootstrap_policy,
};
use authz_reference::{ReferenceRbac, uncovered_rules};
use document::Source;
use manifests::rbac;
use manifests::{AuthorizerObject, ManifestReadOptions};
use serde_json::Value;

use crate::program::{Run, TESTDATA, run};

/// The warnings that `check` gives about a folder.
const WARNINGS: &[(&str, &[&str])] =
    &[("backup", &["duplicate-object"]), ("database-operator", &["missing-role"])];

/// A question with the names that policies have.
struct Question {
    verb: String,
    written: String,
    group: String,
    resource: String,
    subresource: String,
    namespace: String,
}

struct Folder {
    name: String,
    path: String,
    namespace: Option<String>,
    questions: Vec<Question>,
}

impl Folder {
    fn read(path: &Path) -> Self {
        let mut namespace = None;
        let mut questions = Vec::new();
        for line in fs::read_to_string(path.join("questions.txt")).unwrap().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let optional = |word: &str| if word == "-" { String::new() } else { word.to_owned() };
            match words.as_slice() {
                ["#", ..] => {}
                ["flags", "-n", own] => namespace = Some((*own).to_owned()),
                [verb, written, group, resource, own] => {
                    let (resource, subresource) =
                        resource.split_once('/').unwrap_or((resource, ""));
                    questions.push(Question {
                        verb: (*verb).to_owned(),
                        written: (*written).to_owned(),
                        group: optional(group),
                        resource: resource.to_owned(),
                        subresource: subresource.to_owned(),
                        namespace: optional(own),
                    });
                }
                _ => panic!("{path:?}: {line}"),
            }
        }
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        Self { name, path: path.to_str().unwrap().to_owned(), namespace, questions }
    }

    /// Runs a command on the folder, with RBAC only.
    fn run(&self, args: &[&str]) -> Run {
        run(&[args, &["-f", &self.path, "-R", "--authorization-mode=RBAC"]].concat())
    }

    /// The roles and bindings of the folder and of Kubernetes, with aggregated roles filled in.
    fn reference(&self) -> (ReferenceRbac, Vec<Binding>) {
        let (mut roles, mut bindings): (Vec<Role>, Vec<Binding>) = (Vec::new(), Vec::new());
        for file in files_below(Path::new(&self.path)) {
            let bytes = fs::read(&file).unwrap();
            let options = ManifestReadOptions {
                default_namespace: self.namespace.as_deref(),
                ..ManifestReadOptions::default()
            };
            let source = Source { name: file.to_str().unwrap(), file_bytes: &bytes };
            for found in manifests::read_manifests_with_options(&source, options).authorizer_objects
            {
                match found.authorizer_object {
                    AuthorizerObject::Rbac(rbac::RbacObject::Role(role)) => roles.push(role),
                    AuthorizerObject::Rbac(rbac::RbacObject::Binding(binding)) => {
                        bindings.push(binding)
                    }
                    AuthorizerObject::Node(_) => {}
                }
            }
        }
        assert!(!roles.is_empty() && !bindings.is_empty(), "{}", self.name);
        let defaults = rbac::bootstrap_policy().unwrap();
        let mut snapshot = Snapshot::default();
        roles.iter().for_each(|role| snapshot.put_role(role.clone()));
        reconcile_bootstrap_policy(&mut snapshot, &defaults, ReconcileExtrasPolicy::Keep);
        let mut reference = ReferenceRbac::default();
        for role in
            roles.iter().chain(&defaults.roles).filter(|role| !role.metadata.namespace.is_empty())
        {
            reference.put_role(role.clone());
        }
        for role in snapshot.cluster_roles() {
            reference.put_role(Role::clone(role));
        }
        for binding in defaults.bindings.iter().chain(&bindings) {
            reference.put_binding(binding.clone());
        }
        (reference, bindings)
    }
}

fn files_below(path: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(files_below(&path)),
            false if path.extension().is_some_and(|own| own != "txt") => files.push(path),
            false => {}
        }
    }
    files
}

fn folders() -> Vec<Folder> {
    let mut paths: Vec<PathBuf> = fs::read_dir(Path::new(TESTDATA).join("tools"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert_eq!(paths.len(), 20);
    paths.iter().map(|path| Folder::read(path)).collect()
}

impl Question {
    fn attributes<'a>(&'a self, user: Option<&'a User>) -> Attributes<'a> {
        let target = Target::Resource(Resource {
            api_group: &self.group,
            api_version: "*",
            namespace: Namespace::new(&self.namespace),
            resource: &self.resource,
            subresource: &self.subresource,
            ..Resource::default()
        });
        Attributes { user, verb: Verb::new(&self.verb), target }
    }

    /// The command with the names as they are written.
    fn args(&self, command: &'static str) -> Vec<&str> {
        let mut args = vec![command, &self.verb, &self.written];
        if !self.namespace.is_empty() {
            args.extend(["-n", &self.namespace]);
        }
        args
    }
}

/// The flags and the user of each subject of a binding. Service accounts have their short form.
fn subjects(bindings: &[Binding]) -> Vec<(Vec<String>, User)> {
    let flag = |name: &str, value: &str| vec![name.to_owned(), value.to_owned()];
    let authenticated = "system:authenticated".to_owned();
    let mut found = Vec::new();
    for binding in bindings {
        for subject in &binding.subjects {
            let namespace = match subject.namespace.as_str() {
                "" => &binding.metadata.namespace,
                own => own,
            };
            found.push(match subject.kind.as_str() {
                "Group" => {
                    let groups = vec![subject.name.clone(), authenticated.clone()];
                    (flag("--as-group", &subject.name), User { groups, ..User::default() })
                }
                "ServiceAccount" => {
                    let name = format!("system:serviceaccount:{namespace}:{}", subject.name);
                    let groups = vec![
                        "system:serviceaccounts".to_owned(),
                        format!("system:serviceaccounts:{namespace}"),
                        authenticated.clone(),
                    ];
                    let short = format!("{namespace}/{}", subject.name);
                    (flag("--as", &short), User { name, groups, ..User::default() })
                }
                _ => {
                    let group = match subject.name.as_str() {
                        "system:anonymous" => "system:unauthenticated".to_owned(),
                        _ => authenticated.clone(),
                    };
                    let name = subject.name.clone();
                    (
                        flag("--as", &subject.name),
                        User { name, groups: vec![group], ..User::default() },
                    )
                }
            });
        }
    }
    found
}

#[test]
fn who_can_and_explain_agree_with_the_reference() {
    let mut n_allowed = 0;
    for folder in folders() {
        let (reference, bindings) = folder.reference();
        let subjects = subjects(&bindings);
        for (idx, question) in folder.questions.iter().enumerate() {
            let context = format!("{}: {} {}", folder.name, question.verb, question.written);
            let found = folder.run(&[question.args("who-can"), vec!["-o", "json"]].concat());
            assert_eq!(found.code, 0, "{context}: {}", found.stderr);
            let listed: Value = serde_json::from_str(&found.stdout).unwrap();
            let list = |what: &str| -> BTreeSet<String> {
                let texts = listed[what].as_array().unwrap().iter();
                texts.map(|text| text.as_str().unwrap().to_owned()).collect()
            };
            let want = reference.who_can(&question.attributes(None));
            assert_eq!(list("users"), want.users, "{context}");
            assert_eq!(list("groups"), want.groups, "{context}");
            let (flags, user) = &subjects[idx % subjects.len()];
            let want = reference.authorize(&question.attributes(Some(user))).verdict;
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            let found = folder.run(&[question.args("explain"), flags].concat());
            let (code, heading) = match want {
                Verdict::Allow => (0, "ALLOWED"),
                Verdict::NoOpinion | Verdict::Deny | Verdict::Unavailable(_) => (1, "DENIED"),
            };
            n_allowed += usize::from(want == Verdict::Allow);
            assert_eq!(found.code, code, "{context} {user:?}: {}", found.stderr);
            assert!(found.stdout.starts_with(heading), "{context}: {}", found.stdout);
        }
    }
    assert!(n_allowed >= 20, "{n_allowed} questions are answered with yes");
}

#[test]
fn rules_agree_with_the_reference() {
    for folder in folders() {
        let (reference, bindings) = folder.reference();
        let (flags, user) = &subjects(&bindings)[0];
        let namespace = match (&folder.namespace, bindings[0].metadata.namespace.as_str()) {
            (Some(own), _) => own,
            (None, "") => "shop",
            (None, own) => own,
        };
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let found = folder.run(&[&["rules", "-n", namespace, "-o", "json"], &flags[..]].concat());
        assert_eq!(found.code, 0, "{}: {}", folder.name, found.stderr);
        let status: Value = serde_json::from_str(&found.stdout).unwrap();
        let list = |rule: &Value, name: &str| -> Vec<String> {
            let texts = rule[name].as_array().cloned().unwrap_or_default();
            texts.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        let rule = |rule: &Value| PolicyRule {
            verbs: list(rule, "verbs"),
            api_groups: list(rule, "apiGroups"),
            resources: list(rule, "resources"),
            resource_names: list(rule, "resourceNames"),
            non_resource_urls: list(rule, "nonResourceURLs"),
        };
        let all = ["resourceRules", "nonResourceRules"];
        let listed: Vec<PolicyRule> =
            all.iter().flat_map(|name| status[*name].as_array().unwrap()).map(rule).collect();
        let want: Vec<PolicyRule> =
            reference.rules_for(user, namespace).into_iter().cloned().collect();
        assert!(!want.is_empty(), "{}", folder.name);
        assert_eq!(uncovered_rules(&listed, &want), [], "{}: not listed", folder.name);
        assert_eq!(uncovered_rules(&want, &listed), [], "{}: listed only", folder.name);
    }
}

#[test]
fn check_accepts_them() {
    for folder in folders() {
        let mut args = vec!["check", "-o", "json", "-f", &folder.path, "-R"];
        if let Some(namespace) = &folder.namespace {
            args.extend(["-n", namespace]);
        }
        let found = run(&args);
        assert_eq!(found.code, 0, "{}: {}", folder.name, found.stdout);
        let report: Value = serde_json::from_str(&found.stdout).unwrap();
        let types: BTreeSet<&str> = report["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|warning| warning["type"].as_str().unwrap())
            .collect();
        let want = WARNINGS.iter().find(|(name, _)| *name == folder.name);
        let want: BTreeSet<&str> =
            want.map_or(&[][..], |(_, types)| types).iter().copied().collect();
        assert_eq!(types, want, "{}: {}", folder.name, found.stdout);
    }
}
