//! The reference RBAC authorizer: it reads every binding, and the role of each binding that names the user.

use authz::{Attributes, Decision, Subjects, Target, User};
use authz_rbac::{Binding, PolicyRule, Role, Subject};

use crate::rule;

/// All roles and bindings.
///
/// INVARIANT: bindings are sorted by namespace and name; ClusterRoleBindings, whose namespace is empty, come first.
#[derive(Debug, Clone, Default)]
pub struct ReferenceRbac {
    roles: Vec<Role>,
    bindings: Vec<Binding>,
}

impl ReferenceRbac {
    /// Makes the authorizer from roles and bindings in any order, at most one of a kind, namespace and name.
    pub fn new(roles: Vec<Role>, mut bindings: Vec<Binding>) -> Self {
        sort(&mut bindings);
        Self { roles, bindings }
    }

    /// Adds a role, or replaces the one of its name.
    pub fn put_role(&mut self, role: Role) {
        self.remove_role(&role.metadata.namespace, &role.metadata.name);
        self.roles.push(role);
    }

    /// Removes a role; an empty namespace means a ClusterRole.
    pub fn remove_role(&mut self, namespace: &str, name: &str) {
        self.roles.retain(|it| (&*it.metadata.namespace, &*it.metadata.name) != (namespace, name));
    }

    /// Adds a binding, or replaces the one of its name.
    pub fn put_binding(&mut self, binding: Binding) {
        self.remove_binding(&binding.metadata.namespace, &binding.metadata.name);
        self.bindings.push(binding);
        sort(&mut self.bindings);
    }

    /// Removes a binding; an empty namespace means a ClusterRoleBinding.
    pub fn remove_binding(&mut self, namespace: &str, name: &str) {
        self.bindings
            .retain(|it| (&*it.metadata.namespace, &*it.metadata.name) != (namespace, name));
    }

    /// Decides a request by the first binding that grants it.
    pub fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        let Some(user) = attributes.user else { return Decision::no_opinion("") };
        let mut errors: Vec<String> = Vec::new();
        for binding in self.bindings_in_scope(namespace_of(attributes)) {
            let Some(subject) = first_subject(binding, user) else { continue };
            match self.rules_of_role(binding) {
                Ok(rules) if rules.iter().any(|rule| allows(rule, attributes)) => {
                    let source = describe(binding, subject);
                    return Decision::allow(format!("RBAC: allowed by {source}"));
                }
                Ok(_) => {}
                Err(MissingRole(error)) if errors.contains(&error) => {}
                Err(MissingRole(error)) => errors.push(error),
            }
        }
        match errors.as_slice() {
            [] => Decision::no_opinion(""),
            [one] => Decision::no_opinion(format!("RBAC: {one}")),
            several => Decision::no_opinion(format!("RBAC: [{}]", several.join(", "))),
        }
    }

    /// The rules that a user holds in a namespace, in the order of their bindings.
    pub fn rules_for(&self, user: &User, namespace: &str) -> Vec<&PolicyRule> {
        self.bindings_in_scope(namespace)
            .filter(|binding| first_subject(binding, user).is_some())
            .flat_map(|binding| self.rules_of_role(binding).unwrap_or_default())
            .collect()
    }

    /// The users and groups that are granted the request. The user of the attributes is ignored.
    pub fn who_can(&self, attributes: &Attributes<'_>) -> Subjects {
        let mut found = Subjects::default();
        found.groups.insert("system:masters".to_owned());
        for binding in self.bindings_in_scope(namespace_of(attributes)) {
            let rules = self.rules_of_role(binding).unwrap_or_default();
            if !rules.iter().any(|rule| allows(rule, attributes)) {
                continue;
            }
            for subject in &binding.subjects {
                let namespace = service_account_namespace(subject, binding);
                match subject.kind.as_str() {
                    "User" => found.users.insert(subject.name.clone()),
                    "Group" => found.groups.insert(subject.name.clone()),
                    "ServiceAccount" if !namespace.is_empty() => found
                        .users
                        .insert(format!("system:serviceaccount:{namespace}:{}", subject.name)),
                    _ => false,
                };
            }
        }
        found
    }

    /// The ClusterRoleBindings, then the RoleBindings of the namespace.
    fn bindings_in_scope(&self, namespace: &str) -> impl Iterator<Item = &Binding> {
        self.bindings.iter().filter(move |it| {
            it.metadata.namespace.is_empty() || it.metadata.namespace == namespace
        })
    }

    fn rules_of_role(&self, binding: &Binding) -> Result<&[PolicyRule], MissingRole> {
        let (kind, name) = (binding.role_ref.kind.as_str(), &binding.role_ref.name);
        let find = |namespace: &str| {
            let is_match =
                |role: &&Role| role.metadata.namespace == namespace && role.metadata.name == *name;
            self.roles.iter().find(is_match).map(|role| role.rules.as_slice())
        };
        let not_found = |kind: &str| {
            let name = go_compat::quote(name);
            MissingRole(format!("{kind}.rbac.authorization.k8s.io {name} not found"))
        };
        match (kind, binding.metadata.namespace.as_str()) {
            ("ClusterRole", _) => find("").ok_or_else(|| not_found("clusterrole")),
            ("Role", "") => Err(not_found("role")),
            ("Role", namespace) => find(namespace).ok_or_else(|| not_found("role")),
            _ => {
                let kind = go_compat::quote(kind);
                Err(MissingRole(format!("unsupported role reference kind: {kind}")))
            }
        }
    }
}

/// The error of a binding whose role does not exist, in Kubernetes' words.
#[derive(Debug)]
struct MissingRole(String);

fn sort(bindings: &mut [Binding]) {
    bindings.sort_by(|a, b| {
        let key = |it: &Binding| (it.metadata.namespace.clone(), it.metadata.name.clone());
        key(a).cmp(&key(b))
    });
}

fn namespace_of<'a>(attributes: &Attributes<'a>) -> &'a str {
    match &attributes.target {
        Target::Resource(resource) => resource.namespace.as_str(),
        Target::Path(_) => "",
    }
}

fn first_subject<'a>(binding: &'a Binding, user: &User) -> Option<&'a Subject> {
    binding.subjects.iter().find(|subject| match subject.kind.as_str() {
        "User" => subject.name == user.name,
        "Group" => user.groups.contains(&subject.name),
        "ServiceAccount" => {
            let namespace = service_account_namespace(subject, binding);
            let rest = user.name.strip_prefix("system:serviceaccount:");
            let rest = rest.and_then(|rest| rest.strip_prefix(namespace)?.strip_prefix(':'));
            !namespace.is_empty() && rest == Some(&subject.name)
        }
        _ => false,
    })
}

fn service_account_namespace<'a>(subject: &'a Subject, binding: &'a Binding) -> &'a str {
    if subject.namespace.is_empty() { &binding.metadata.namespace } else { &subject.namespace }
}

fn allows(rule: &PolicyRule, attributes: &Attributes<'_>) -> bool {
    rule::has(&rule.verbs, attributes.verb.as_str())
        && match &attributes.target {
            Target::Path(path) => rule::has_path(&rule.non_resource_urls, path),
            Target::Resource(requested) => {
                rule::has(&rule.api_groups, requested.api_group)
                    && rule::has_resource(&rule.resources, requested)
                    && rule::has_name(&rule.resource_names, requested.name)
            }
        }
}

fn describe(binding: &Binding, subject: &Subject) -> String {
    let (name, namespace) = (&binding.metadata.name, &binding.metadata.namespace);
    let binding_text = match namespace.as_str() {
        "" => format!("ClusterRoleBinding {}", go_compat::quote(name)),
        namespace => format!("RoleBinding {}", go_compat::quote(&format!("{name}/{namespace}"))),
    };
    let subject_name = match subject.kind.as_str() {
        "ServiceAccount" => {
            format!("{}/{}", subject.name, service_account_namespace(subject, binding))
        }
        _ => subject.name.clone(),
    };
    let (kind, role) = (&binding.role_ref.kind, go_compat::quote(&binding.role_ref.name));
    let (subject_kind, subject_name) = (&subject.kind, go_compat::quote(&subject_name));
    format!("{binding_text} of {kind} {role} to {subject_kind} {subject_name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use authz::{Namespace, Resource, Verb, Verdict};
    use authz_rbac::{Metadata, RoleRef};

    fn metadata(namespace: &str, name: &str) -> Metadata {
        Metadata { namespace: namespace.into(), name: name.into(), ..Metadata::default() }
    }

    #[test]
    fn a_binding_grants_its_role_to_its_subjects_in_its_namespace() {
        let rule = PolicyRule {
            verbs: vec!["get".into()],
            api_groups: vec!["".into()],
            resources: vec!["pods".into(), "*/scale".into()],
            ..PolicyRule::default()
        };
        let role = Role { metadata: metadata("", "reader"), rules: vec![rule], ..Role::default() };
        let binding = Binding {
            metadata: metadata("web", "b"),
            role_ref: RoleRef {
                kind: "ClusterRole".into(),
                name: "reader".into(),
                ..RoleRef::default()
            },
            subjects: vec![Subject::group("dev"), Subject::service_account_subject("", "ci")],
        };
        let rbac = ReferenceRbac::new(vec![role], vec![binding]);
        let dev = User { name: "ana".into(), groups: vec!["dev".into()], ..User::default() };
        let account = User { name: "system:serviceaccount:web:ci".into(), ..User::default() };
        let other = User { name: "system:serviceaccount:webci:".into(), ..User::default() };
        for (user, namespace, resource, subresource, want) in [
            (&dev, "web", "pods", "", true),
            (&dev, "web", "pods", "log", false),
            (&dev, "web", "jobs", "scale", true),
            (&dev, "other", "pods", "", false),
            (&dev, "", "pods", "", false),
            (&account, "web", "pods", "", true),
            (&other, "web", "pods", "", false),
        ] {
            let resource = Resource {
                namespace: Namespace::new(namespace),
                resource,
                subresource,
                ..Resource::default()
            };
            let target = Target::Resource(resource);
            let request = Attributes { user: Some(user), verb: Verb::GET, target };
            assert_eq!(rbac.authorize(&request).verdict == Verdict::Allow, want, "{request:?}");
        }
    }
}
