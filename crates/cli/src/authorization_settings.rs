//! The authorization flags that the server and the offline commands share.

mod authorization_flags;
mod feature_gates;
mod hook_names;
mod node_rules;

pub(crate) use authorization_flags::AuthorizationFlags;
pub(crate) use hook_names::{AuthorizationHookNames, read_authorization_hook_names};
pub(crate) use node_rules::node_rules;
