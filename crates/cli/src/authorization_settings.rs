//! The authorization flags that the server and the offline commands share.

mod authorization_flags;
mod authorization_hook_names;
mod feature_gates;
mod node_rules;

pub(crate) use authorization_flags::AuthorizationFlags;
pub(crate) use authorization_hook_names::{AuthorizationHookNames, read_authorization_hook_names};
pub(crate) use node_rules::node_rules;
