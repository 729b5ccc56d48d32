//! The configuration of the authorizers of a running server: from flags or a file to a chain, and
//! its replacement while requests go on.
//!
//! Owns: the authorization flags and their translation, the assembly of a chain with all files that
//! it refers to, reload, status, and what is told about all of it to metrics.
//! Must not know: HTTP, how metrics are exposed, how an authorizer decides, the store.
//!
//! ```text
//! AuthorizationOptions -- plan --> Plan -- Assembler::start --> Generation (slots of a chain)
//!                                   |                               |
//!                                convert                     Reloader::start -- publishes more
//! ```

mod assemble;
mod build_error;
mod convert;
mod files;
mod flags;
mod generation;
mod hash;
mod instruments;
mod notice;
mod reload;
mod status;
mod translate;
mod transport;

pub use assemble::{Assembler, Origin};
pub use build_error::{BuildCause, BuildError, StartError};
pub use convert::{ConvertContext, Converted, convert};
pub use flags::{
    ANONYMOUS_SWITCHED_OFF, AuthorizationOptions, DEFAULT_AUTHORIZED_TTL_NS, DEFAULT_MODES,
    DEFAULT_RETRY_STEPS, DEFAULT_UNAUTHORIZED_TTL_NS, DEFAULT_WEBHOOK_VERSION, FilePlan, Modes,
    Plan, UPSTREAM_DEFAULT_MODES, WebhookFlags, plan,
};
pub use generation::{Generation, Hook, Source};
pub use hash::hash_of;
pub use instruments::{Applied, Instruments, ReloadStatus, Uninstrumented};
pub use notice::Notice;
pub use reload::{Checked, Log, Publish, ReloadOptions, Reloader};
pub use status::{AuthorizerStatus, FailureStatus, LastAttempt, Status, WebhookStatus};
pub use translate::{TranslateError, WEBHOOK_OF_FLAGS};
pub use transport::{HookTransport, endpoint};
