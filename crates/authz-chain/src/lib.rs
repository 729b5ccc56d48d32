//! The closed set of authorizers and their order: the one crate that knows them all.
//!
//! Owns: which types of authorizers exist, their names, what a valid configuration of a chain is.
//! Must not know: configuration files, serde, flags, how an authorizer decides.

mod configuration;
mod kind;
mod name;

pub use configuration::{Authorizer, Configuration, ConfigurationError, Webhook};
pub use kind::AuthorizerType;
pub use name::{AuthorizerName, NameError};
