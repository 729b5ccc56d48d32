//! The chain of authorizers. This is the only crate that knows all types of authorizers.
//!
//! Owns: the types of authorizers and their names, the rules of a valid chain, and how the decisions of several authorizers
//! become one.
//! Must not know: configuration files, serde, flags, how an authorizer decides.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod authorizer_name;
mod authorizer_slot;
mod authorizer_type;
mod chain;
mod chain_member;
mod configuration;
mod constant_authorizers;
mod plugin_type;
mod system_masters;
mod who_can;

pub use authorizer_name::{AuthorizerName, AuthorizerNameError};
pub use authorizer_slot::{AuthorizerSlot, SlotAuthorizer};
pub use authorizer_type::AuthorizerType;
pub use chain::{Chain, ChainDecision, DecisionObserver};
pub use chain_member::ChainMember;
pub use configuration::{
    AuthorizerConfiguration, Configuration, ConfigurationError, PluginConfiguration,
    WebhookConfiguration,
};
pub use plugin_type::{PluginType, PluginTypeError};
