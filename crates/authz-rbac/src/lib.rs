//! Role-based authorization: answers whether some binding grants a request.
//!
//! A [`Snapshot`] holds all roles and bindings, found by who asks, so that a decision costs what
//! the asker holds and not what others do. It is immutable for those who read it; see there for how
//! it changes.
//!
//! Owns: rule matching, the index of bindings, role aggregation, guards against escalation, the
//! default policy and its reconciliation, who can do something.
//! Must not know: HTTP, serde, the other authorizers, where roles are stored.

mod policy;
mod rule;

mod compiled;
mod mask;
mod question;
mod spoken;
mod texts;

mod askers;
mod bound;
mod bucket;
mod few;
mod filter;
mod grants;
mod holders;
mod journal;
mod local_speakers;
mod names;
mod namespaces;
mod roles;
mod sequence;
mod sieve;
mod slab;
mod snapshot;
mod speakers;
mod trie;
mod wild_holders;

mod by_holders;
mod by_roles;
mod decide;
mod near_miss;
mod rules_for;
mod search;
mod visit;
mod who_can;

mod aggregation;
mod bootstrap;
mod reconcile;

mod combinations;
mod covers;
mod escalation;
mod grid;
mod not_held;
mod owned;

pub use aggregation::AGGREGATION_PASSES_MAX;
pub use bootstrap::{
    BOOTSTRAP_POLICY_JSON, BootstrapPolicy, Change, bootstrap, resource_access_reviewer,
};
pub use combinations::{ROLE_COMBINATIONS_MAX, RULE_COMBINATIONS_MAX, n_combinations};
pub use covers::uncovered;
pub use decide::{Grant, Search};
pub use escalation::{
    CHECK_STEPS_MAX, QUICK_CHECK_STEPS_MAX, Refusal, bind_target, confirm_held, escalate_target,
    is_superuser,
};
pub use not_held::NotHeld;
pub use policy::{
    AggregationRule, Binding, GROUP, LabelExpression, LabelSelector, Metadata, PolicyRule, Role,
    RoleRef, Subject,
};
pub use reconcile::{AUTOUPDATE_ANNOTATION, Extras, Reconciled, reconcile_binding, reconcile_role};
pub use rules_for::HeldRules;
pub use snapshot::{LookupError, Snapshot};
pub use who_can::{SUPERUSER_GROUP, WhoCan};
