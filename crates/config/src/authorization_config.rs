//! `AuthorizationConfiguration`: the file that says which authorizers are asked, in which order.

mod defaults;
mod effective;
mod identity;
mod load;
mod normalize;
mod probe;
mod server_rules;
mod shapes;
#[cfg(test)]
mod tests;
mod validate;
mod webhook;
mod wire;

pub use effective::effective;
pub use load::{CONFIG_FILE_NEEDS_GATE, LoadError, LoadOptions, Loaded, Role, load};
pub use probe::{FileState, assume_regular, stat};
pub(crate) use shapes::{AUTHORIZATION_CONFIGURATION, GROUP, KIND};
