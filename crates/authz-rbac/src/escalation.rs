//! Nobody grants what they do not hold.
//!
//! Whoever writes a role or a binding must hold all that it grants, unless they are superusers or
//! are allowed `escalate` or `bind`. Whether they are allowed that is for the whole chain to say,
//! so these functions only form the question; the caller asks it, and comes here if the answer is
//! not to allow.

use std::collections::BTreeSet;
use std::fmt;

use authz::{Resource, User};

use crate::covers::uncovered;
use crate::policy::{Binding, GROUP, PolicyRule, Role};
use crate::rules_for::HeldRules;
use crate::snapshot::{LookupError, Snapshot};
use crate::who_can::SUPERUSER_GROUP;

/// Why somebody may not write a role or a binding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The object grants more than they hold.
    #[error(transparent)]
    NotHeld(NotHeld),
    /// The rules of an aggregated role are what others make of it, so only who may do everything
    /// writes one.
    #[error("must have cluster-admin privileges to use the aggregationRule")]
    Aggregation,
    /// The role of a binding does not exist, so nobody can tell what the binding grants. The
    /// answer of the API is that the role is not found.
    #[error("{resource}.rbac.authorization.k8s.io {} not found", gotext::quote(.name))]
    RoleNotFound {
        /// `roles` or `clusterroles`.
        resource: &'static str,
        /// The name of the role.
        name: String,
    },
    /// The binding refers to something that is no role.
    #[error(transparent)]
    UnsupportedKind(LookupError),
}

/// What somebody would grant without holding it. Displays as the API's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotHeld {
    /// Who.
    pub user: String,
    /// Their groups.
    pub groups: Vec<String>,
    /// What, in parts of one verb, group, resource and name each.
    pub uncovered: Vec<PolicyRule>,
    /// Roles of theirs that could not be found, and might have helped.
    pub errors: Vec<LookupError>,
}

/// Reports whether no guard stops this user.
pub fn is_superuser(user: &User) -> bool {
    user.is_in_group(SUPERUSER_GROUP)
}

/// What the verb `escalate` must be allowed on to write a role freely. `name` is the one in the
/// path of the request, which is empty for a creation.
pub fn escalate_target<'a>(role: &'a Role, name: &'a str) -> Resource<'a> {
    let namespace = role.metadata.namespace.as_str();
    let resource = if namespace.is_empty() { "clusterroles" } else { "roles" };
    Resource {
        api_group: GROUP,
        api_version: "*",
        namespace,
        resource,
        name,
        ..Resource::default()
    }
}

/// What the verb `bind` must be allowed on to write a binding freely.
pub fn bind_target(binding: &Binding) -> Resource<'_> {
    Resource {
        api_group: &binding.role_ref.api_group,
        api_version: "*",
        namespace: binding.namespace(),
        resource: role_resource(&binding.role_ref.kind).unwrap_or_default(),
        name: &binding.role_ref.name,
        ..Resource::default()
    }
}

fn role_resource(kind: &str) -> Option<&'static str> {
    match kind {
        "Role" => Some("roles"),
        "ClusterRole" => Some("clusterroles"),
        _ => None,
    }
}

impl Snapshot {
    /// Checks that a user who is neither superuser nor allowed `escalate` may write `role`. `old`
    /// is what it replaces. Nothing that matters changes if the two are equal.
    ///
    /// # Errors
    /// Returns why not.
    pub fn confirm_role(
        &self,
        user: &User,
        role: &Role,
        old: Option<&Role>,
    ) -> Result<(), Refusal> {
        if is_superuser(user) || old == Some(role) {
            return Ok(());
        }
        let held = self.held_rules(user, &role.metadata.namespace);
        let holds_everything = uncovered(&held.rules, &everything()).is_empty();
        confirm_held(user, held, &role.rules)?;
        if (role.is_aggregated() || old.is_some_and(Role::is_aggregated)) && !holds_everything {
            return Err(Refusal::Aggregation);
        }
        Ok(())
    }

    /// Checks that a user who is neither superuser nor allowed `bind` may write `binding`. `old`
    /// is what it replaces. Nothing that matters changes if the two are equal.
    ///
    /// # Errors
    /// Returns why not.
    pub fn confirm_binding(
        &self,
        user: &User,
        binding: &Binding,
        old: Option<&Binding>,
    ) -> Result<(), Refusal> {
        if is_superuser(user) || old == Some(binding) {
            return Ok(());
        }
        let role = match self.role_of(binding) {
            Ok(role) => role,
            Err(error) => return Err(refused_lookup(binding, error)),
        };
        confirm_held(user, self.held_rules(user, binding.namespace()), &role.rules)
    }
}

/// Checks that a user who holds some rules holds all that is wanted.
///
/// # Errors
/// Returns what is not held.
pub fn confirm_held(
    user: &User,
    held: HeldRules<'_>,
    wanted: &[PolicyRule],
) -> Result<(), Refusal> {
    let uncovered = uncovered(&held.rules, wanted);
    if uncovered.is_empty() {
        return Ok(());
    }
    let (user, groups) = (user.name.clone(), user.groups.clone());
    Err(Refusal::NotHeld(NotHeld { user, groups, uncovered, errors: held.errors }))
}

fn refused_lookup(binding: &Binding, error: LookupError) -> Refusal {
    match role_resource(&binding.role_ref.kind) {
        Some(resource) => Refusal::RoleNotFound { resource, name: binding.role_ref.name.clone() },
        None => Refusal::UnsupportedKind(error),
    }
}

fn everything() -> [PolicyRule; 2] {
    let any = || vec!["*".to_owned()];
    let resources =
        PolicyRule { verbs: any(), api_groups: any(), resources: any(), ..PolicyRule::default() };
    let urls = PolicyRule { verbs: any(), non_resource_urls: any(), ..PolicyRule::default() };
    [resources, urls]
}

impl std::error::Error for NotHeld {}

impl fmt::Display for NotHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (user, groups) = (gotext::quote(&self.user), quoted_list(&self.groups));
        let lines: BTreeSet<String> =
            compact(&self.uncovered).iter().map(PolicyRule::to_string).collect();
        write!(
            f,
            "user {user} (groups={groups}) is attempting to grant RBAC permissions not currently \
             held:\n{}",
            lines.into_iter().collect::<Vec<_>>().join("\n"),
        )?;
        if !self.errors.is_empty() {
            let messages: Vec<String> = self.errors.iter().map(LookupError::to_string).collect();
            write!(f, "; resolution errors: [{}]", field::aggregate(&messages))?;
        }
        Ok(())
    }
}

/// Merges parts that differ only in their verbs.
fn compact(rules: &[PolicyRule]) -> Vec<PolicyRule> {
    let is_simple = |rule: &PolicyRule| {
        let PolicyRule { api_groups, resources, resource_names, non_resource_urls, .. } = rule;
        let is_one_resource = api_groups.len() == 1 && resources.len() == 1;
        is_one_resource && resource_names.len() <= 1 && non_resource_urls.is_empty()
    };
    let key = |rule: &PolicyRule| PolicyRule { verbs: Vec::new(), ..rule.clone() };
    let mut places = std::collections::HashMap::new();
    let mut compacted: Vec<PolicyRule> = Vec::new();
    for rule in rules {
        if is_simple(rule) {
            let at = *places.entry(key(rule)).or_insert(compacted.len());
            if let Some(same) = compacted.get_mut(at) {
                same.verbs.extend_from_slice(&rule.verbs);
                continue;
            }
        }
        compacted.push(rule.clone());
    }
    compacted
}

/// In Kubernetes' compact form; empty parts are left out.
impl fmt::Display for PolicyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ]
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(name, list)| format!("{name}:{}", quoted_list(list)))
        .collect();
        write!(f, "{{{}}}", parts.join(", "))
    }
}

fn quoted_list(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|text| gotext::quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}
