//! Dynamic admission: how it is configured, and which hooks and initializers a write concerns.
//!
//! A [`Configuration`] is an object of one of four kinds, prepared and validated as the API server
//! stores it and compiled once. A [`Snapshot`] holds all of them at one moment; a request is matched
//! against it in three steps: [`HookList::matching`] by rules, [`Hook::select`] by labels and
//! [`Hook::check_conditions`] by expressions. What becomes of a new object that has to wait for
//! initializers begins with [`decide_create`].
//!
//! Owns: the configuration kinds with their defaults and rules, hooks, initializers and their order,
//! the matching of requests, match conditions, exemptions, the steps of initialization.
//! Must not know: HTTP, calls, stores, clocks, which resources exist, where snapshots come from.

mod attributes;
mod exemption;

mod configuration;
mod members;

mod client;
mod hook;
mod initializer;

mod conditions;
mod matching;

mod order;
mod snapshot;

mod initialization;

pub use attributes::{Attributes, Equivalent, GroupVersionKind, GroupVersionResource, Operation};
pub use client::{ClientConfig, Endpoint};
pub use conditions::{
    CHECKS_MAX, ConditionError, ConditionInput, Conditions, Decisions, ExplainedCondition,
    MATCH_CONDITIONS_MAX, MatchConditions, Question,
};
pub use configuration::{
    ConfigurationKind, Warning, WarningCause, address_warnings, known_fields, ordering_errors,
    ordering_warnings, prepare, unknown_fields, validate_create, validate_update, warnings,
};
pub use exemption::{Exemption, is_configuration};
pub use hook::{FailurePolicy, Hook, MatchPolicy, ReinvocationPolicy, ReviewVersion, SideEffects};
pub use initialization::{
    Awaited, CreateDecision, Expired, ExpiryAction, InitializerOptions, Initializers, Origin,
    Repair, Steps, TimeoutCause, UpdateDecision, WAITING_MAX, WAITING_PER_USER_MAX, WaitingMax,
    accepted, carry_initializers, create_denied, decide_create, decide_update, deleted, failure,
    initialization_timeout, is_uninitialized, repair, shape_initializers, update_denied, without,
};
pub use initializer::{Initializer, Ordering};
pub use matching::{
    Consideration, Dialect, Identity, LabelSelector, Match, MatchedHooks, Rule, RuleTarget, Skip,
};
pub use order::{PENDING_MAX, Pending, PendingList, pending, runnable};
pub use snapshot::{Configuration, HookList, Snapshot};
