//! The closed set of authorizers and their order: the one crate that knows them all.
//!
//! Owns: which types of authorizers exist, their names, what a valid configuration of a chain is, and
//! how the answers of several become one.
//! Must not know: configuration files, serde, flags, how an authorizer decides.

mod always;
mod authorizer_slot;
mod chain;
mod configuration;
mod kind;
mod member;
mod name;
mod superuser;
mod who_can;

pub use authorizer_slot::{ActiveAuthorizer, AuthorizerSlot};
pub use chain::{Chain, DecisionObserver, Outcome};
pub use configuration::{Authorizer, Configuration, ConfigurationError, Webhook};
pub use kind::AuthorizerType;
pub use member::Member;
pub use name::{AuthorizerName, NameError};
