//! Role-based authorization: decides whether some binding grants a request.
//!
//! A [`Snapshot`] holds all roles and bindings, indexed by user and group, so a decision reads the
//! bindings of the user who makes the request and no others.
//!
//! Owns: rule matching, the index of bindings, role aggregation, escalation checks, the default policy
//! and its reconciliation, listing who is granted a request.
//! Must not know: HTTP, serde, the other authorizers, where roles are stored.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod policy;
mod rules;

mod compiled_role;
mod index;
mod snapshot;

mod decide;
mod explain;
mod who_can;

mod escalation;
mod held_rule;
mod missing_permissions;
mod permission_count_limits;
mod permission_grid;
mod rule_coverage;

mod bootstrap;
mod reconcile;
mod role_aggregation;

pub use bootstrap::{
    BOOTSTRAP_POLICY_JSON, BootstrapPolicy, BootstrapPolicyWrite, reconcile_bootstrap_policy,
    resource_access_reviewer_role,
};
pub use escalation::{
    CHECK_STEPS_MAX, EscalationRefusal, QUICK_CHECK_STEPS_MAX, bind_check_target, check_rules_held,
    escalate_check_target, is_superuser,
};
pub use missing_permissions::MissingPermissions;
pub use permission_count_limits::{
    ROLE_COMBINATIONS_MAX, RULE_COMBINATIONS_MAX, n_permissions_of_rules,
};
pub use policy::{
    AggregationRule, Binding, GROUP, LabelExpression, LabelSelector, Metadata, PolicyRule, Role,
    RoleRef, Subject,
};
pub use reconcile::{
    AUTOUPDATE_ANNOTATION, ReconcileExtrasPolicy, ReconcileOperation, reconcile_binding,
    reconcile_role,
};
pub use role_aggregation::AGGREGATION_PASSES_MAX;
pub use rule_coverage::uncovered_rules;
pub use rules::HeldRules;
pub use snapshot::{RoleLookupError, Snapshot};
pub use who_can::{SUPERUSER_GROUP, WhoCanResult};
