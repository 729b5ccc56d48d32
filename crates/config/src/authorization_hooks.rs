//! `ExternalAuthorizationHookConfiguration`: the file of the self-hosting proposal that lists
//! authorization webhooks, which may be services of the same cluster.

mod api_version;
mod hook_url;
mod load_hooks;
mod schema;
#[cfg(test)]
mod tests;
mod unvalidated_config;
mod validate;

pub use load_hooks::{LoadError, LoadedHooks, is_hook_configuration, load_hooks};
pub(crate) use schema::{GROUP, HOOK_CONFIGURATION, KIND};
pub use validate::{AuthorizationHook, ClientCertificate, Endpoint, HOOKS_MAX};
