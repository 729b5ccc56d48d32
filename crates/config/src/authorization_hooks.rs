//! `ExternalAuthorizationHookConfiguration`: the file of the self-hosting proposal that lists
//! authorization webhooks, which may be services of the same cluster.

mod api_version;
mod authorization_hook_url;
mod load_authorization_hooks;
mod schema;
#[cfg(test)]
mod tests;
mod unvalidated_config;
mod validate_authorization_hooks;

pub use load_authorization_hooks::{
    LoadError, LoadedAuthorizationHooks, is_authorization_hook_configuration,
    load_authorization_hooks,
};
pub(crate) use schema::{GROUP, HOOK_CONFIGURATION, KIND};
pub use validate_authorization_hooks::{
    AuthorizationHook, AuthorizationHookEndpoint, ClientCertificateFiles, HOOKS_MAX,
};
