//! Generates the roles and bindings of a cluster, and requests for them.
//!
//! Half of n bindings are for the cluster and half for one of n/50 namespaces. They name n/4 users, n/4
//! groups and some service accounts, and grant about 120 cluster roles: the default roles, and others with
//! one to six rules for built-in and custom resources. Each namespace has one role.

use std::collections::HashMap;

use ::authz::{Namespace, User};
use authz_rbac::{
    Binding, GROUP, Metadata, PolicyRule, ReconcileExtrasPolicy, Role, RoleRef, Snapshot, Subject,
    reconcile_bootstrap_policy,
};

use crate::authz::random::Random;
use crate::authz::request_pool::RequestTarget;
use crate::authz::vocabulary::{self, PATHS, VERBS};

/// The number of cluster roles, including the default roles.
const CLUSTER_ROLES: usize = 120;
/// The role that allows everything. No binding names it, because otherwise few requests would be denied.
const SUPERUSER_ROLE: &str = "cluster-admin";
/// The default roles that bindings of namespaces name.
const NAMESPACE_ROLES: [&str; 3] = ["admin", "edit", "view"];
/// The number of service accounts of each namespace.
const ACCOUNTS: usize = 5;

/// The roles and bindings of a cluster.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) roles: Vec<Role>,
    pub(crate) bindings: Vec<Binding>,
}

/// The numbers of bindings, namespaces and users of a cluster.
#[derive(Clone, Copy)]
pub(crate) struct Counts {
    n_bindings: usize,
    n_namespaces: usize,
    /// The number of users, and of groups.
    pub(crate) n_users: usize,
}

impl Counts {
    pub(crate) fn new(n_bindings: usize) -> Self {
        Self {
            n_bindings,
            n_namespaces: (n_bindings / 50).max(1),
            n_users: (n_bindings / 4).max(1),
        }
    }

    /// The name of a user or, in one of ten cases, of a service account.
    pub(crate) fn random_user_name(&self, random: &mut Random) -> String {
        if random.percent(90) {
            return vocabulary::user(random.below(self.n_users));
        }
        let namespace = self.namespace(random);
        format!("system:serviceaccount:{namespace}:{}", account(random))
    }

    fn namespace(&self, random: &mut Random) -> String {
        vocabulary::namespace(random.below(self.n_namespaces))
    }

    fn subject(&self, random: &mut Random) -> Subject {
        match random.below(10) {
            0..5 => Subject::group(&vocabulary::group(random.below(self.n_users))),
            5..9 => Subject::user(&vocabulary::user(random.below(self.n_users))),
            _ => Subject::service_account_subject(&self.namespace(random), &account(random)),
        }
    }

    /// Generates a binding; one with an odd number is in a namespace.
    pub(crate) fn binding(&self, random: &mut Random, number: usize) -> Binding {
        let is_namespaced = number % 2 == 1;
        let namespace = if is_namespaced { self.namespace(random) } else { String::new() };
        let (kind, role) = match (is_namespaced, random.below(3)) {
            (true, 0) => ("Role", "own".to_owned()),
            (true, 1) => ("ClusterRole", random.word(&NAMESPACE_ROLES).to_owned()),
            _ => ("ClusterRole", custom_role(random)),
        };
        let mut subjects = vec![self.subject(random)];
        if random.percent(50) {
            subjects.push(self.subject(random));
        }
        Binding {
            metadata: metadata(&namespace, format!("grant-{number:06}")),
            role_ref: RoleRef { api_group: GROUP.to_owned(), kind: kind.to_owned(), name: role },
            subjects,
        }
    }
}

impl Cluster {
    pub(crate) fn generate(counts: Counts, random: &mut Random) -> anyhow::Result<Self> {
        let mut roles = default_roles()?;
        let others: Vec<String> = (roles.iter().map(|role| role.name().to_owned()))
            .filter(|name| name != SUPERUSER_ROLE)
            .collect();
        for number in 0..CLUSTER_ROLES.saturating_sub(roles.len()) {
            roles.push(role(metadata("", custom_role_name(number)), random));
        }
        for number in 0..counts.n_namespaces {
            roles.push(role(metadata(&vocabulary::namespace(number), "own".to_owned()), random));
        }
        let mut bindings: Vec<Binding> =
            (0..counts.n_bindings).map(|number| counts.binding(random, number)).collect();
        // Few bindings name the roles of Kubernetes' components.
        for binding in bindings.iter_mut().filter(|own| own.namespace().is_cluster_scope()) {
            if let (true, Some(name)) = (random.percent(10), random.pick(&others)) {
                binding.role_ref.name.clone_from(name);
            }
        }
        Ok(Self { roles, bindings })
    }

    /// Builds the index of all roles and bindings.
    pub(crate) fn snapshot(self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        self.roles.into_iter().for_each(|role| snapshot.put_role(role));
        self.bindings.into_iter().for_each(|binding| snapshot.put_binding(binding));
        snapshot
    }
}

/// Generates requests. A request that should be allowed is derived from a rule that the user has.
pub(crate) struct RequestGenerator<'a> {
    counts: Counts,
    cluster: &'a Cluster,
    roles: HashMap<(&'a str, &'a str), &'a Role>,
    /// The bindings of each user and of each group. No user has the name of a group.
    held: HashMap<String, Vec<&'a Binding>>,
}

impl<'a> RequestGenerator<'a> {
    pub(crate) fn new(counts: Counts, cluster: &'a Cluster) -> Self {
        let mut held: HashMap<String, Vec<&Binding>> = HashMap::new();
        for binding in &cluster.bindings {
            for subject in &binding.subjects {
                let holder = match subject.kind.as_str() {
                    "ServiceAccount" => {
                        format!("system:serviceaccount:{}:{}", subject.namespace, subject.name)
                    }
                    _ => subject.name.clone(),
                };
                held.entry(holder).or_default().push(binding);
            }
        }
        let roles = cluster.roles.iter();
        let roles = roles.map(|role| ((role.metadata.namespace.as_str(), role.name()), role));
        Self { counts, cluster, roles: roles.collect(), held }
    }

    pub(crate) fn propose(
        &self,
        random: &mut Random,
        user: &User,
        is_allowed: bool,
    ) -> Option<(String, RequestTarget)> {
        if is_allowed { self.held(random, user) } else { Some(self.any(random)) }
    }

    fn held(&self, random: &mut Random, user: &User) -> Option<(String, RequestTarget)> {
        let names: Vec<&String> = std::iter::once(&user.name).chain(&user.groups).collect();
        let holder = random.pick(&names)?;
        let binding = random.pick(self.held.get(*holder)?)?;
        let namespace = match binding.role_ref.kind.as_str() {
            "Role" => binding.namespace(),
            _ => Namespace::CLUSTER_SCOPE,
        };
        let role = self.roles.get(&(namespace.as_str(), binding.role_ref.name.as_str()))?;
        let rule = random.pick(&role.rules)?;
        let verb = concrete(random, &rule.verbs, &VERBS)?;
        if !rule.non_resource_urls.is_empty() {
            let url = random.pick(&rule.non_resource_urls)?;
            let path = vocabulary::covered_path(random, url);
            return binding
                .namespace()
                .is_cluster_scope()
                .then_some((verb, RequestTarget::Path(path)));
        }
        let (any_group, any_resource) = vocabulary::any_resource(random);
        let api_group = concrete(random, &rule.api_groups, &[&any_group])?;
        let resource = random.pick(&rule.resources)?;
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let resource = if resource == "*" { any_resource.as_str() } else { resource };
        let name = match random.pick(&rule.resource_names) {
            Some(name) => name.clone(),
            None => vocabulary::object_name(random, &verb),
        };
        let namespace = match binding.namespace().name() {
            None => self.counts.namespace(random),
            Some(own) => own.to_owned(),
        };
        let (resource, subresource) = (resource.to_owned(), subresource.to_owned());
        Some((verb, RequestTarget::Resource { namespace, api_group, resource, subresource, name }))
    }

    fn any(&self, random: &mut Random) -> (String, RequestTarget) {
        let verb = random.word(&VERBS);
        if random.percent(5) {
            let path = random.word(&PATHS);
            return (verb.to_owned(), RequestTarget::Path(vocabulary::covered_path(random, path)));
        }
        let (api_group, resource) = vocabulary::any_resource(random);
        let is_cluster_wide = random.percent(10);
        let namespace = if is_cluster_wide { String::new() } else { self.counts.namespace(random) };
        let name = vocabulary::object_name(random, verb);
        let subresource = if random.percent(10) { "status" } else { "" };
        let subresource = subresource.to_owned();
        let asked = RequestTarget::Resource { namespace, api_group, resource, subresource, name };
        (verb.to_owned(), asked)
    }

    /// Changes of one binding each: some bindings are replaced, and some are new.
    pub(crate) fn changes(&self, random: &mut Random, n_changes: usize) -> Vec<Binding> {
        let change = |number: usize| {
            let own = self.counts.binding(random, self.counts.n_bindings + number);
            match random.pick(&self.cluster.bindings) {
                Some(old) if number.is_multiple_of(2) => {
                    Binding { metadata: old.metadata.clone(), ..own }
                }
                _ => own,
            }
        };
        (0..n_changes).map(change).collect()
    }
}

/// The default cluster roles, with the rules of aggregated roles.
fn default_roles() -> anyhow::Result<Vec<Role>> {
    let mut snapshot = Snapshot::default();
    reconcile_bootstrap_policy(
        &mut snapshot,
        &manifests::rbac::bootstrap_policy()?,
        ReconcileExtrasPolicy::Keep,
    );
    Ok(snapshot.cluster_roles().into_iter().map(|role| role.as_ref().clone()).collect())
}

fn metadata(namespace: &str, name: String) -> Metadata {
    Metadata { namespace: namespace.to_owned(), name, ..Metadata::default() }
}

fn account(random: &mut Random) -> String {
    format!("robot-{}", random.below(ACCOUNTS))
}

fn custom_role_name(number: usize) -> String {
    format!("custom-{number:02}")
}

/// The smallest number of custom roles, in addition to the default roles.
const CUSTOM_ROLES: usize = 40;

fn custom_role(random: &mut Random) -> String {
    custom_role_name(random.below(CUSTOM_ROLES))
}

fn role(metadata: Metadata, random: &mut Random) -> Role {
    let n_rules = 1 + random.below(6);
    Role { metadata, rules: (0..n_rules).map(|_| rule(random)).collect(), aggregation_rule: None }
}

fn rule(random: &mut Random) -> PolicyRule {
    let n_verbs = 1 + random.below(4);
    let verbs = random.distinct(n_verbs, VERBS.len());
    let verbs: Vec<String> =
        verbs.iter().filter_map(|at| VERBS.get(*at)).map(|verb| (*verb).to_owned()).collect();
    if random.percent(10) {
        let non_resource_urls = vec![random.word(&PATHS).to_owned()];
        return PolicyRule { verbs, non_resource_urls, ..PolicyRule::default() };
    }
    let (mut api_groups, mut resources) = (Vec::new(), Vec::new());
    for _ in 0..=random.below(3) {
        let (api_group, resource) = vocabulary::any_resource(random);
        let subresource = if random.percent(10) { "/status" } else { "" };
        api_groups.push(api_group);
        resources.push(format!("{resource}{subresource}"));
    }
    api_groups.sort_unstable();
    api_groups.dedup();
    let n_names = if random.percent(10) { 1 + random.below(3) } else { 0 };
    let resource_names = (0..n_names).map(|_| vocabulary::object_name(random, "get")).collect();
    PolicyRule { verbs, api_groups, resources, resource_names, ..PolicyRule::default() }
}

/// A random item of the list, or a random word if the item is `*`.
fn concrete(random: &mut Random, list: &[String], words: &[&str]) -> Option<String> {
    match random.pick(list)?.as_str() {
        "*" => Some(random.word(words).to_owned()),
        text => Some(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_has_the_shape_that_is_promised() {
        let counts = Counts::new(1000);
        let cluster = Cluster::generate(counts, &mut Random::new(1)).unwrap();
        let is_cluster = |role: &&Role| role.metadata.namespace.is_empty();
        assert_eq!(cluster.roles.iter().filter(is_cluster).count(), CLUSTER_ROLES);
        assert_eq!(cluster.roles.len(), CLUSTER_ROLES + 20);
        let local = cluster.bindings.iter().filter(|own| !own.namespace().is_cluster_scope());
        assert_eq!((cluster.bindings.len(), local.count()), (1000, 500));
        let snapshot = cluster.clone().snapshot();
        for binding in &cluster.bindings {
            assert!(snapshot.role_of_binding(binding).is_ok(), "{binding:?}");
            assert_ne!(binding.role_ref.name, SUPERUSER_ROLE);
        }
        let again = Cluster::generate(counts, &mut Random::new(1)).unwrap();
        assert_eq!(again.bindings, cluster.bindings);
    }
}
