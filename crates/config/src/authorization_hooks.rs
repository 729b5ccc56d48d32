//! `ExternalAuthorizationHookConfiguration`: the file of the self-hosting proposal that says where
//! authorization webhooks are, perhaps as services of the very cluster.

mod identity;
mod load;
mod shapes;
#[cfg(test)]
mod tests;
mod url;
mod validate;
mod wire;

pub use load::{LoadError, Loaded, is_hook_configuration, load};
pub(crate) use shapes::{GROUP, KIND};
pub use validate::{ClientCertificate, Endpoint, HOOKS_MAX, Hook};
