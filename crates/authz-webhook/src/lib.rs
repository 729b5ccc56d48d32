//! The webhook authorizer: its settings and the conditions under which it is asked.
//!
//! Owns: what a validated webhook entry says, match conditions and why they hold or not, the view of
//! a request that conditions see.
//! Must not know: configuration files, serde, the other authorizers.

mod compile;
mod conditions;
mod hints;
mod record;
mod review;
mod settings;

pub use compile::{ConditionCompiler, ConditionError, Issue};
pub use conditions::{MatchCondition, Matching};
pub use review::{
    Extra, NonResourceAttributes, Requirement, Requirements, ResourceAttributes, ReviewSpec,
    SelectorAttributes, Selectors,
};
pub use settings::{
    AbsolutePath, Caching, Connection, FailurePolicy, MATCH_CONDITIONS_MAX, MatchConditions,
    ReviewVersion, Timeout, WebhookSettings,
};
