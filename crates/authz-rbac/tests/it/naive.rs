//! RBAC with lists and loops: slow, short, and read off the specification.

use std::collections::BTreeSet;

use authz::{Attributes, Target, User};
use authz_rbac::{Binding, PolicyRule, Role, Subject};

/// All objects, in no order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Naive {
    pub(crate) roles: Vec<Role>,
    pub(crate) bindings: Vec<Binding>,
}

impl Naive {
    pub(crate) fn put_role(&mut self, role: Role) {
        self.remove_role(&role.metadata.namespace, &role.metadata.name);
        self.roles.push(role);
    }

    pub(crate) fn remove_role(&mut self, namespace: &str, name: &str) {
        self.roles
            .retain(|role| (&*role.metadata.namespace, &*role.metadata.name) != (namespace, name));
    }

    pub(crate) fn put_binding(&mut self, binding: Binding) {
        self.remove_binding(&binding.metadata.namespace, &binding.metadata.name);
        self.bindings.push(binding);
        self.bindings.sort_by_key(|binding| {
            (binding.metadata.namespace.clone(), binding.metadata.name.clone())
        });
    }

    pub(crate) fn remove_binding(&mut self, namespace: &str, name: &str) {
        self.bindings
            .retain(|it| (&*it.metadata.namespace, &*it.metadata.name) != (namespace, name));
    }

    /// The verdict's name and the reason.
    pub(crate) fn authorize(&self, asked: &Attributes<'_>) -> (&'static str, String) {
        let mut errors: Vec<String> = Vec::new();
        for binding in self.visited(asked) {
            let matching = |subject: &&Subject| {
                asked.user.is_some_and(|user| is(subject, user, &binding.metadata.namespace))
            };
            let Some(subject) = binding.subjects.iter().find(matching) else { continue };
            match self.rules(binding) {
                Ok(rules) if rules.iter().any(|rule| allows(rule, asked)) => {
                    return ("allow", format!("RBAC: allowed by {}", source(binding, subject)));
                }
                Ok(_) => {}
                Err(error) if errors.contains(&error) => {}
                Err(error) => errors.push(error),
            }
        }
        let reason = match errors.as_slice() {
            [] => String::new(),
            [one] => format!("RBAC: {one}"),
            several => format!("RBAC: [{}]", several.join(", ")),
        };
        ("noOpinion", reason)
    }

    /// The rules of a user, visited in order, as text.
    pub(crate) fn rules_for(&self, user: &User, namespace: &str) -> Vec<String> {
        let applies = |binding: &&Binding| {
            let own = &binding.metadata.namespace;
            (own.is_empty() || own == namespace)
                && binding.subjects.iter().any(|subject| is(subject, user, own))
        };
        let held = self.bindings.iter().filter(applies);
        held.flat_map(|binding| self.rules(binding).unwrap_or_default())
            .map(|rule| format!("{rule:?}"))
            .collect()
    }

    /// The users and groups who are granted the request, as text.
    pub(crate) fn who_can(&self, asked: &Attributes<'_>) -> BTreeSet<String> {
        let mut found = BTreeSet::from(["group system:masters".to_owned()]);
        for binding in self.visited(asked) {
            if self.rules(binding).is_ok_and(|rules| rules.iter().any(|rule| allows(rule, asked))) {
                for subject in &binding.subjects {
                    let namespace = account_namespace(subject, &binding.metadata.namespace);
                    match &*subject.kind {
                        "User" => found.insert(format!("user {}", subject.name)),
                        "Group" => found.insert(format!("group {}", subject.name)),
                        "ServiceAccount" if !namespace.is_empty() => found.insert(format!(
                            "user system:serviceaccount:{namespace}:{}",
                            subject.name
                        )),
                        _ => false,
                    };
                }
            }
        }
        found
    }

    fn visited(&self, asked: &Attributes<'_>) -> impl Iterator<Item = &Binding> {
        let namespace = match &asked.target {
            Target::Resource(resource) => resource.namespace,
            Target::Path(_) => "",
        };
        self.bindings.iter().filter(move |binding| {
            binding.metadata.namespace.is_empty() || binding.metadata.namespace == namespace
        })
    }

    fn rules(&self, binding: &Binding) -> Result<Vec<PolicyRule>, String> {
        let (kind, name) = (&*binding.role_ref.kind, &binding.role_ref.name);
        let find = |namespace: &str| {
            let is_it =
                |role: &&Role| role.metadata.namespace == namespace && role.metadata.name == *name;
            self.roles.iter().find(is_it).map(|role| role.rules.clone())
        };
        let not_found =
            |kind: &str| format!("{kind}.rbac.authorization.k8s.io \"{name}\" not found");
        let namespace = &binding.metadata.namespace;
        match kind {
            "ClusterRole" => find("").ok_or_else(|| not_found("clusterrole")),
            "Role" if namespace.is_empty() => Err(not_found("role")),
            "Role" => find(namespace).ok_or_else(|| not_found("role")),
            kind => Err(format!("unsupported role reference kind: \"{kind}\"")),
        }
    }
}

fn account_namespace<'a>(subject: &'a Subject, binding: &'a str) -> &'a str {
    if subject.namespace.is_empty() { binding } else { &subject.namespace }
}

fn is(subject: &Subject, user: &User, binding: &str) -> bool {
    match &*subject.kind {
        "User" => subject.name == user.name,
        "Group" => user.groups.contains(&subject.name),
        "ServiceAccount" => {
            let namespace = account_namespace(subject, binding);
            !namespace.is_empty()
                && user.name == format!("system:serviceaccount:{namespace}:{}", subject.name)
        }
        _ => false,
    }
}

fn allows(rule: &PolicyRule, asked: &Attributes<'_>) -> bool {
    let has = |list: &[String], wanted: &str| list.iter().any(|it| it == "*" || it == wanted);
    if !has(&rule.verbs, asked.verb) {
        return false;
    }
    match &asked.target {
        Target::Path(path) => rule.non_resource_urls.iter().any(|url| {
            url == path || (url.ends_with('*') && path.starts_with(url.trim_end_matches('*')))
        }),
        Target::Resource(wanted) => {
            let full = match wanted.subresource {
                "" => wanted.resource.to_owned(),
                subresource => format!("{}/{subresource}", wanted.resource),
            };
            let any = format!("*/{}", wanted.subresource);
            has(&rule.api_groups, wanted.api_group)
                && (has(&rule.resources, &full)
                    || (!wanted.subresource.is_empty() && rule.resources.contains(&any)))
                && (rule.resource_names.is_empty()
                    || rule.resource_names.iter().any(|name| name == wanted.name))
        }
    }
}

fn source(binding: &Binding, subject: &Subject) -> String {
    let (name, namespace) = (&binding.metadata.name, &binding.metadata.namespace);
    let binding_text = match &**namespace {
        "" => format!("ClusterRoleBinding \"{name}\""),
        namespace => format!("RoleBinding \"{name}/{namespace}\""),
    };
    let subject_name = match &*subject.kind {
        "ServiceAccount" => {
            format!("{}/{}", subject.name, account_namespace(subject, namespace))
        }
        _ => subject.name.clone(),
    };
    let (kind, role) = (&binding.role_ref.kind, &binding.role_ref.name);
    format!("{binding_text} of {kind} \"{role}\" to {} \"{subject_name}\"", subject.kind)
}
