//! The health check of a webhook: one SubjectAccessReview whose answer decides no request.

use authz::{Attributes, Target, User, Verb};

use crate::call_error::CallError;
use crate::webhook::Webhook;

/// The user of the review. No authenticator returns this name.
pub const PROBE_USER: &str = "system:portcullis-probe";

/// The path that the user asks for, with the verb `get`.
const PROBE_PATH: &str = "/healthz";

impl Webhook {
    /// Asks the webhook whether [`PROBE_USER`] may `get` the path `/healthz`.
    ///
    /// Every well-formed review of the configured version is healthy, also one that denies. The call ignores the match
    /// conditions and the cache, is not retried, and no observer counts it.
    ///
    /// # Errors
    /// The webhook cannot be called, or its answer is not a review.
    pub async fn probe(&self) -> Result<(), CallError> {
        let user = User { name: PROBE_USER.to_owned(), ..User::default() };
        let attributes = Attributes {
            user: Some(&user),
            verb: Verb::new("get"),
            target: Target::Path(PROBE_PATH),
        };
        self.webhook_answers().probe(&attributes).await
    }
}
