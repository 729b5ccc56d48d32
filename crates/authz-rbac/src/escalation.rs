//! Nobody grants what they do not hold.
//!
//! Whoever writes a role or a binding must hold all that it grants, unless they are superusers or
//! are allowed `escalate` or `bind`. Whether they are allowed that is for the whole chain to say,
//! so these functions only form the question; the caller asks it, and comes here if the answer is
//! not to allow.

use std::collections::HashSet;

use authz::{Resource, User};

use crate::combinations::ROLE_COMBINATIONS_MAX;
use crate::covers::{Coverage, Unbounded};
use crate::not_held::NotHeld;
use crate::policy::{Binding, GROUP, PolicyRule, Role};
use crate::rules::HeldRules;
use crate::snapshot::{RoleLookupError, Snapshot};
use crate::who_can::SUPERUSER_GROUP;

/// The most steps of a check, where a step is a look at one entry of a list or at 64 permissions: some
/// tenths of a second. A check of rules at their limits, by somebody who holds a thousand rules, takes
/// less than a tenth of that.
pub const CHECK_STEPS_MAX: u64 = 20_000_000;

/// The most steps of a check that is not worth a thread of its own.
pub const QUICK_CHECK_STEPS_MAX: u64 = 50_000;

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
    #[error("{resource}.rbac.authorization.k8s.io {} not found", go_compat::quote(.name))]
    RoleNotFound {
        /// `roles` or `clusterroles`.
        resource: &'static str,
        /// The name of the role.
        name: String,
    },
    /// The binding refers to something that is no role.
    #[error(transparent)]
    UnsupportedKind(RoleLookupError),
    /// The role grants more than [`ROLE_COMBINATIONS_MAX`] permissions, so it is not looked at. The
    /// answer of the API is that the object is invalid.
    #[error(
        "the role has {0} combinations of API groups, resources, verbs and names, and at most \
         {ROLE_COMBINATIONS_MAX} are checked; split the role into several"
    )]
    TooManyCombinations(u64),
    /// The check takes more steps than the caller allows. The answer of the API is that the object is
    /// invalid.
    #[error(
        "to compare the role with all that the user holds takes too many steps; split the role into \
         several, or have it written by a user who may escalate or bind"
    )]
    TooManySteps,
}

impl From<Unbounded> for Refusal {
    fn from(unbounded: Unbounded) -> Self {
        match unbounded {
            Unbounded::Combinations(n) => Self::TooManyCombinations(n),
            Unbounded::Steps => Self::TooManySteps,
        }
    }
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
        steps_max: u64,
    ) -> Result<(), Refusal> {
        if is_superuser(user) || old == Some(role) {
            return Ok(());
        }
        let held = self.held_rules(user, &role.metadata.namespace);
        let is_aggregated = role.is_aggregated() || old.is_some_and(Role::is_aggregated);
        let holds_everything = !is_aggregated || holds(&held, &everything(), steps_max)?;
        confirm_held(user, held, &role.rules, steps_max)?;
        if holds_everything { Ok(()) } else { Err(Refusal::Aggregation) }
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
        steps_max: u64,
    ) -> Result<(), Refusal> {
        if is_superuser(user) || old == Some(binding) {
            return Ok(());
        }
        let role = match self.role_of(binding) {
            Ok(role) => role,
            Err(error) => return Err(refused_lookup(binding, error)),
        };
        confirm_held(user, self.held_rules(user, binding.namespace()), &role.rules, steps_max)
    }
}

/// Checks that a user who holds some rules holds all that is wanted.
///
/// # Errors
/// Returns what is not held, or that the check would go beyond its limits.
pub fn confirm_held(
    user: &User,
    held: HeldRules<'_>,
    wanted: &[PolicyRule],
    steps_max: u64,
) -> Result<(), Refusal> {
    let mut coverage = Coverage::new(wanted, steps_max)?;
    add_held(&mut coverage, &held)?;
    if coverage.n_missing() == 0 {
        return Ok(());
    }
    coverage.spend_on_missing()?;
    Err(Refusal::NotHeld(NotHeld::new(user, &coverage, held.errors)))
}

fn holds(held: &HeldRules<'_>, wanted: &[PolicyRule], steps_max: u64) -> Result<bool, Unbounded> {
    let mut coverage = Coverage::new(wanted, steps_max)?;
    add_held(&mut coverage, held)?;
    Ok(coverage.n_missing() == 0)
}

/// A role that several bindings grant is looked at once.
fn add_held(coverage: &mut Coverage<'_>, held: &HeldRules<'_>) -> Result<(), Unbounded> {
    let mut seen: HashSet<*const PolicyRule> = HashSet::new();
    let distinct = held.roles.iter().filter(|rules| seen.insert(rules.as_ptr()));
    distinct.copied().flatten().try_for_each(|rule| coverage.add(rule))
}

fn refused_lookup(binding: &Binding, error: RoleLookupError) -> Refusal {
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
