//! `ExternalAuthorizationHookConfiguration`: the file of the self-hosting proposal that says where
//! authorization webhooks are, perhaps as services of the very cluster.

mod api_version;
mod hook_url;
mod load;
mod schema;
#[cfg(test)]
mod tests;
mod unvalidated;
mod validate;

pub use load::{LoadError, Loaded, is_hook_configuration, load};
pub(crate) use schema::{GROUP, KIND};
pub use validate::{ClientCertificate, Endpoint, HOOKS_MAX, Hook};
