//! Dynamic admission without I/O: the kinds that configure it, and the hooks and initializers that a write matches.
//!
//! A [`Configuration`] is an object of one of four kinds. It is prepared and validated before the API server stores it,
//! and compiled once. A [`Snapshot`] holds all of them at one moment. A request is matched against a snapshot in three
//! steps: by rules ([`Snapshot::match_hooks`]), by label selectors ([`Hook::evaluate_selectors`]) and by match
//! conditions ([`Hook::evaluate_conditions`]). [`decide_initializers_on_create`] decides which initializers a new object waits for.
//!
//! Owns: the configuration kinds with their defaults and validation, hooks, initializers and their order, the matching
//! of requests, match conditions, exemptions, the timers of initialization.
//! Must not know: HTTP and its status codes, calls, stores, clocks, which resources exist, where snapshots come from.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod attributes;
mod exemption;

mod configuration;
mod json_members;

mod client_config;
mod hook;
mod initializer;

mod match_conditions;
mod request_matching;

mod initializer_order;
mod snapshot;

mod initialization;

pub use attributes::{
    Attributes, EquivalentResource, GroupVersionKind, GroupVersionResource, Operation,
};
pub use client_config::{ClientConfig, HookEndpoint};
pub use configuration::{
    ConfigurationKind, ConfigurationWarning, WarningKind, configuration_warnings,
    initializer_ordering_errors, initializer_ordering_warnings, known_configuration_fields,
    prepare_configuration, refused_address_warnings, unknown_configuration_fields,
    validate_configuration_create, validate_configuration_update,
};
pub use exemption::{Exemption, is_admission_configuration};
pub use hook::{FailurePolicy, Hook, MatchPolicy, ReinvocationPolicy, ReviewVersion, SideEffects};
pub use initialization::{
    ExpiredInitializer, ExpiryAction, InitializeDenied, InitializerOptions, InitializerTimers,
    Initializers, InitializersOnCreate, InitializersOnUpdate, InitializersOrigin, ReadRepair,
    WAITING_OBJECTS_MAX, WAITING_OBJECTS_PER_USER_MAX, WaitingObjectLimits, copy_initializers,
    decide_initializers_on_create, decide_initializers_on_update, has_pending_initializers,
    normalize_initializers, repair_on_read, without_initializer,
};
pub use initializer::{Initializer, InitializerOrdering};
pub use initializer_order::{
    PENDING_INITIALIZERS_MAX, PendingInitializer, PendingInitializers, order_pending_initializers,
    runnable_initializers,
};
pub use match_conditions::{
    AUTHORIZER_CHECKS_MAX, AuthorizerDecisions, ConditionError, ConditionVariables,
    ExplainedCondition, MATCH_CONDITIONS_MAX, MatchConditions, MatchConditionsResult,
    PendingAuthorizerCheck,
};
pub use request_matching::{
    CallDecision, HookMatch, HookSelectionError, LabelSelector, LabelSelectorError, MatchedHooks,
    MatchedResource, Rule, RuleDialect, RuleTarget, SkipCause,
};
pub use snapshot::{Configuration, HookList, Snapshot};
