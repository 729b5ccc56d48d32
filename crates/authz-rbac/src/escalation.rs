//! Escalation checks: a user may grant only permissions that the user holds.
//!
//! 1. A superuser may write every role and binding.
//! 2. A user who is allowed `escalate` on a role may write it; a user who is allowed `bind` on a role may
//!    bind it. The caller asks the whole authorizer chain, with the targets that this module names.
//! 3. Every other user must hold all permissions of the role that is written or bound.

use std::collections::HashSet;

use authz::{Resource, User};

use crate::missing_permissions::MissingPermissions;
use crate::permission_count_limits::ROLE_COMBINATIONS_MAX;
use crate::policy::{Binding, GROUP, PolicyRule, Role};
use crate::rule_coverage::{CoverageLimitExceeded, RuleCoverage};
use crate::rules::HeldRules;
use crate::snapshot::{RoleLookupError, Snapshot};
use crate::who_can::SUPERUSER_GROUP;

/// The maximum number of steps of a check, which take a few tenths of a second. A step reads one element of a list or
/// 64 permissions. The check of a role at its limits for a user who holds a thousand rules takes less than a tenth of
/// this.
pub const CHECK_STEPS_MAX: u64 = 20_000_000;

/// The maximum number of steps of a check that runs on the thread of the request.
pub const QUICK_CHECK_STEPS_MAX: u64 = 50_000;

/// The reason why a user may not write a role or a binding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EscalationRefusal {
    /// The object grants permissions that the user does not hold.
    #[error(transparent)]
    NotHeld(MissingPermissions),
    /// Later roles supply the rules of an aggregated role, so the user must hold every permission.
    #[error("must have cluster-admin privileges to use the aggregationRule")]
    Aggregation,
    /// The role of a binding does not exist, so its permissions are unknown. The API answers that the
    /// role is not found.
    #[error("{resource}.rbac.authorization.k8s.io {} not found", go_compat::quote(.name))]
    RoleNotFound {
        /// The resource of the role: `roles` or `clusterroles`.
        resource: &'static str,
        /// The name of the role.
        name: String,
    },
    /// The binding refers to a kind that is neither Role nor ClusterRole.
    #[error(transparent)]
    UnsupportedKind(RoleLookupError),
    /// The role grants more than [`ROLE_COMBINATIONS_MAX`] permissions, so it is not checked. The API
    /// answers that the object is invalid.
    #[error(
        "the role has {0} combinations of API groups, resources, verbs and names, and at most \
         {ROLE_COMBINATIONS_MAX} are checked; split the role into several"
    )]
    TooManyCombinations(u64),
    /// The check takes more steps than the caller allows. The API answers that the object is invalid.
    #[error(
        "to compare the role with all that the user holds takes too many steps; split the role into \
         several, or have it written by a user who may escalate or bind"
    )]
    TooManySteps,
}

impl From<CoverageLimitExceeded> for EscalationRefusal {
    fn from(unbounded: CoverageLimitExceeded) -> Self {
        match unbounded {
            CoverageLimitExceeded::Combinations(n) => Self::TooManyCombinations(n),
            CoverageLimitExceeded::Steps => Self::TooManySteps,
        }
    }
}

/// Reports whether the user may grant every permission without a check.
pub fn is_superuser(user: &User) -> bool {
    user.is_in_group(SUPERUSER_GROUP)
}

/// The resource on which a user must be allowed `escalate` to write a role without holding its rules.
/// `name` is the one in the path of the request, which is empty for a creation.
pub fn escalate_check_target<'a>(role: &'a Role, name: &'a str) -> Resource<'a> {
    let namespace = role.namespace();
    let resource = if namespace.is_cluster_scope() { "clusterroles" } else { "roles" };
    Resource {
        api_group: GROUP,
        api_version: "*",
        namespace,
        resource,
        name,
        ..Resource::default()
    }
}

/// The resource on which a user must be allowed `bind` to write a binding without holding its rules.
pub fn bind_check_target(binding: &Binding) -> Resource<'_> {
    Resource {
        api_group: &binding.role_ref.api_group,
        api_version: "*",
        namespace: binding.namespace(),
        resource: resource_of_role_kind(&binding.role_ref.kind).unwrap_or_default(),
        name: &binding.role_ref.name,
        ..Resource::default()
    }
}

fn resource_of_role_kind(kind: &str) -> Option<&'static str> {
    match kind {
        "Role" => Some("roles"),
        "ClusterRole" => Some("clusterroles"),
        _ => None,
    }
}

impl Snapshot {
    /// Checks that a user who is neither superuser nor allowed `escalate` may write `role`. `old`
    /// is the object that it replaces. An update that changes nothing is not checked.
    ///
    /// # Errors
    /// Returns the reason why the user may not write the object.
    pub fn check_role_write(
        &self,
        user: &User,
        role: &Role,
        old: Option<&Role>,
        steps_max: u64,
    ) -> Result<(), EscalationRefusal> {
        if is_superuser(user) || old == Some(role) {
            return Ok(());
        }
        let held_rules = self.held_rules(user, role.namespace());
        let is_aggregated = role.is_aggregated() || old.is_some_and(Role::is_aggregated);
        let holds_everything =
            !is_aggregated || holds_all_rules(&held_rules, &cluster_admin_rules(), steps_max)?;
        check_rules_held(user, held_rules, &role.rules, steps_max)?;
        if holds_everything { Ok(()) } else { Err(EscalationRefusal::Aggregation) }
    }

    /// Checks that a user who is neither superuser nor allowed `bind` may write `binding`. `old`
    /// is the object that it replaces. An update that changes nothing is not checked.
    ///
    /// # Errors
    /// Returns the reason why the user may not write the object.
    pub fn check_binding_write(
        &self,
        user: &User,
        binding: &Binding,
        old: Option<&Binding>,
        steps_max: u64,
    ) -> Result<(), EscalationRefusal> {
        if is_superuser(user) || old == Some(binding) {
            return Ok(());
        }
        let role = match self.role_of_binding(binding) {
            Ok(role) => role,
            Err(error) => return Err(refusal_for_missing_role(binding, error)),
        };
        check_rules_held(user, self.held_rules(user, binding.namespace()), &role.rules, steps_max)
    }
}

/// Checks that held rules grant all permissions of the requested rules.
///
/// # Errors
/// Returns the permissions that the user does not hold, or the limit that the check exceeds.
pub fn check_rules_held(
    user: &User,
    held_rules: HeldRules<'_>,
    requested: &[PolicyRule],
    steps_max: u64,
) -> Result<(), EscalationRefusal> {
    let mut coverage = RuleCoverage::new(requested, steps_max)?;
    add_held_rules(&mut coverage, &held_rules)?;
    if coverage.n_missing_permissions() == 0 {
        return Ok(());
    }
    coverage.spend_steps_to_list_missing()?;
    Err(EscalationRefusal::NotHeld(MissingPermissions::new(
        user,
        &coverage,
        held_rules.role_lookup_errors,
    )))
}

fn holds_all_rules(
    held_rules: &HeldRules<'_>,
    requested: &[PolicyRule],
    steps_max: u64,
) -> Result<bool, CoverageLimitExceeded> {
    let mut coverage = RuleCoverage::new(requested, steps_max)?;
    add_held_rules(&mut coverage, held_rules)?;
    Ok(coverage.n_missing_permissions() == 0)
}

/// Adds held rules to a coverage. A role that several bindings grant is added once.
fn add_held_rules(
    coverage: &mut RuleCoverage<'_>,
    held_rules: &HeldRules<'_>,
) -> Result<(), CoverageLimitExceeded> {
    let mut added_roles: HashSet<*const PolicyRule> = HashSet::new();
    let distinct = held_rules.roles.iter().filter(|rules| added_roles.insert(rules.as_ptr()));
    distinct.copied().flatten().try_for_each(|rule| coverage.add_held_rule(rule))
}

fn refusal_for_missing_role(binding: &Binding, error: RoleLookupError) -> EscalationRefusal {
    match resource_of_role_kind(&binding.role_ref.kind) {
        Some(resource) => {
            EscalationRefusal::RoleNotFound { resource, name: binding.role_ref.name.clone() }
        }
        None => EscalationRefusal::UnsupportedKind(error),
    }
}

fn cluster_admin_rules() -> [PolicyRule; 2] {
    let any = || vec!["*".to_owned()];
    let resources =
        PolicyRule { verbs: any(), api_groups: any(), resources: any(), ..PolicyRule::default() };
    let urls = PolicyRule { verbs: any(), non_resource_urls: any(), ..PolicyRule::default() };
    [resources, urls]
}
