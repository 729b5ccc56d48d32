//! The authorizers of an extension server, in their order.

use std::sync::Arc;

use authz::{Answer, Attributes, Authorizer, Decision, Event, Failure, Recorder, Verdict};
use authz_chain::Outcome;
use authz_webhook::{
    Caching, FailurePolicy, Health, MatchConditions, ReviewVersion, Timeout, Unobserved, Webhook,
    WebhookSettings,
};

use crate::build_error::BuildError;
use crate::core_server::{self, Found};
use crate::groups;
use crate::options::Options;
use crate::paths::Paths;

/// The name of the authorizer that allows groups.
pub const ALWAYS_ALLOW_GROUPS: &str = "kubernetes.io/always-allow-groups";

/// The name of the authorizer that allows paths.
pub const ALWAYS_ALLOW_PATHS: &str = "kubernetes.io/always-allow-paths";

/// The name of the authorizer that asks the core server.
pub const WEBHOOK: &str = "kubernetes.io/webhook";

/// Decides for an extension server, mostly by asking the core server.
///
/// This is a chain by its own right and answers like one, with the names that Kubernetes has for
/// this role. It is not an [`authz_chain::Chain`]: that one is for the core server, allows
/// `system:masters` before everything else whatever is configured, and has names without slashes.
///
/// Has to be asked within a Tokio runtime with a timer.
#[derive(Debug)]
pub struct Delegated {
    links: Vec<Link>,
    webhook: Arc<Webhook>,
    warnings: Vec<String>,
}

/// One authorizer.
#[derive(Debug)]
enum Link {
    Groups(Vec<String>),
    Paths(Paths),
    Webhook(Arc<Webhook>),
}

impl Delegated {
    /// Makes the authorizers. Reads every file that leads to the core server, so it blocks; connects
    /// to nobody yet.
    ///
    /// Afterwards files with tokens and client certificates are read again when they change. Other
    /// changes need new authorizers.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn new(options: &Options) -> Result<Self, BuildError> {
        let timeout = Timeout::new(options.timeout).ok_or(BuildError::Timeout(options.timeout))?;
        let paths = Paths::new(&options.always_allow_paths)?;
        let Found { target, connection, warnings } = core_server::find(&options.core_server)?;
        let transport = core_server::transport(target, timeout.get(), options)?;
        let settings = WebhookSettings {
            timeout,
            authorized_caching: Caching::new(options.authorized_ttl, true),
            unauthorized_caching: Caching::new(options.unauthorized_ttl, true),
            subject_access_review_version: ReviewVersion::V1,
            failure_policy: FailurePolicy::NoOpinion,
            connection,
            match_conditions: MatchConditions::Unversioned,
        };
        let webhook = Arc::new(Webhook::new(
            WEBHOOK,
            settings,
            Arc::new(transport),
            options.guards,
            Arc::new(Unobserved),
        ));
        let mut links = Vec::with_capacity(3);
        // Without groups nobody minds a request without a user, as in Kubernetes.
        if !options.always_allow_groups.is_empty() {
            links.push(Link::Groups(options.always_allow_groups.clone()));
        }
        links.push(Link::Paths(paths));
        links.push(Link::Webhook(Arc::clone(&webhook)));
        Ok(Self { links, webhook, warnings })
    }

    /// Answers whether the request is allowed.
    ///
    /// 1. Members of the groups that are always allowed are.
    /// 2. So is everybody for the paths that are always allowed.
    /// 3. The core server decides everything else. If it fails there is no opinion, with the error
    ///    beside it.
    ///
    /// The first to allow or deny decides. If all abstain, the reasons that were given are joined, a
    /// line each that begins with the name of the authorizer, and the errors are merged. Nobody is
    /// allowed by that: what is not allowed by anyone has to be refused.
    pub async fn authorize(
        &self,
        attributes: &Attributes<'_>,
        mut recorder: Recorder<'_>,
    ) -> Outcome<'_> {
        let mut reasons = Vec::new();
        let mut error: Option<Failure> = None;
        for link in &self.links {
            let name = link.name();
            let mut inner = recorder.enter(|| Event::new("authorizer").with("name", name));
            let decision = link.authorize(attributes, inner.reborrow()).await;
            inner.note(|| Event::verdict(&decision));
            match decision.verdict {
                Verdict::Allow | Verdict::Deny | Verdict::Unavailable(_) => {
                    return Outcome::new(decision, Some(name));
                }
                Verdict::NoOpinion => {}
            }
            if !decision.reason.is_empty() {
                reasons.push(format!("{name}: {}", decision.reason));
            }
            if let Some(more) = decision.error {
                error.get_or_insert_default().merge(more);
            }
        }
        let decision = Decision { error, ..Decision::no_opinion(reasons.join("\n")) };
        Outcome::new(decision, None)
    }

    /// What was accepted but should be changed in the files that lead to the core server.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// How the core server is doing, as seen from here.
    pub fn health(&self) -> Health {
        self.webhook.health()
    }
}

/// For servers that take any authorizer; they do not learn who has decided.
impl Authorizer for Delegated {
    fn authorize<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        recorder: Recorder<'a>,
    ) -> Answer<'a> {
        Box::pin(async move { Self::authorize(self, attributes, recorder).await.decision })
    }
}

impl Link {
    fn name(&self) -> &'static str {
        match self {
            Self::Groups(_) => ALWAYS_ALLOW_GROUPS,
            Self::Paths(_) => ALWAYS_ALLOW_PATHS,
            Self::Webhook(_) => WEBHOOK,
        }
    }

    async fn authorize(&self, attributes: &Attributes<'_>, recorder: Recorder<'_>) -> Decision {
        match self {
            Self::Groups(groups) => groups::authorize(groups, attributes),
            Self::Paths(paths) => paths.authorize(attributes),
            Self::Webhook(webhook) => webhook.authorize(attributes, recorder).await.decision,
        }
    }
}
