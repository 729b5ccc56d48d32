//! Parses and decides a SubjectAccessReview.

use access_reviews::{
    AccessReview, PlainSubjectAccessReview, PreparedReview, ReviewError, ReviewKind, ReviewRequest,
};
use api_object::Status;
use authz::{Attributes, Decision, Reason, Trace, TraceRecorder, Verdict};
use authz_chain::ChainDecision;
use authz_webhook::{ReviewVersion, encode_review};
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use crate::decision_id::DecisionId;
use crate::decision_path::{build_explanation, prepare_explanation};
use crate::policy_cache::PolicySnapshot;
use crate::recent_decisions::{ExplanationSource, RecentDecision};
use crate::serve::WebhookState;
use crate::webhook_metrics::ReviewResult;

const KIND: ReviewKind = ReviewKind::SubjectAccessReview;

/// A review that got a decision.
pub(crate) struct DecidedReview {
    pub(crate) decision_id: DecisionId,
    pub(crate) decision: Decision,
    /// The user and the request that the review is about, for the audit event.
    pub(crate) reviewed_user: String,
    pub(crate) reviewed_request: String,
    /// The body of the response.
    pub(crate) response_json: Vec<u8>,
}

/// A review that got no decision.
pub(crate) struct UndecidedReview {
    pub(crate) result: ReviewResult,
    pub(crate) status: Status,
}

impl UndecidedReview {
    fn invalid(status: Status) -> Self {
        Self { result: ReviewResult::Invalid, status }
    }
}

/// A parsed review. The most frequent form is parsed without a tree.
enum ParsedReview<'b> {
    Plain(Box<PlainSubjectAccessReview<'b>>),
    Tree(Box<AccessReview>),
}

/// Decides a review:
///
/// 1. Parse the body: SubjectAccessReview of version v1 or v1beta1.
/// 2. Check that every cache is fresh, and load the snapshot after that. Otherwise the response is 503, and the failure
///    policy of kube-apiserver decides.
/// 3. Ask the chain. If an authorizer could not be consulted, the response is 429 or 503.
/// 4. Keep what explains the decision, under a new id.
/// 5. Build the response: allow, deny or no opinion, with the id at the end of the reason.
pub(crate) async fn decide_review(
    server: &WebhookState,
    caller_name: &str,
    body: &[u8],
    now: Timestamp,
) -> Result<DecidedReview, UndecidedReview> {
    let review = ParsedReview::parse(body, now).map_err(UndecidedReview::invalid)?;
    server.freshness.check(Instant::now()).map_err(|why| UndecidedReview {
        result: ReviewResult::Unavailable,
        status: Status::service_unavailable(why.to_string()),
    })?;
    let snapshot = server.policy_cache.snapshot();
    let attributes = review.attributes();
    let is_recorded = server.recent_decisions.is_enabled() && !snapshot.is_deterministic;
    let mut trace = Trace::default();
    let recorder = match is_recorded {
        true => TraceRecorder::new(&mut trace),
        false => TraceRecorder::disabled_recorder(),
    };
    let begun = Instant::now();
    let outcome = snapshot.chain.authorize_for_caller(caller_name, &attributes, recorder).await;
    server.authorization_metrics.record_chain_decision(&outcome.decision, begun.elapsed());
    if let Verdict::Unavailable(cause) = outcome.decision.verdict {
        let status = Status::authorization_undecided(cause);
        let result = match status.code {
            429 => ReviewResult::TooMany,
            _ => ReviewResult::Unavailable,
        };
        return Err(UndecidedReview { result, status });
    }
    let decision_id = server.decision_ids.next_id();
    if server.recent_decisions.is_enabled() {
        let trace = is_recorded.then_some(&trace);
        if let Some(explanation) = explanation_source(&snapshot, &attributes, &outcome, trace, now)
        {
            let decision = RecentDecision { decided_at: now, explanation };
            server.recent_decisions.add(decision_id, decision);
        }
    }
    let (reviewed_user, reviewed_request) = describe_attributes(&attributes);
    let decision = with_decision_id(outcome.decision, decision_id);
    let response_json = review.into_response(&decision);
    Ok(DecidedReview { decision_id, decision, reviewed_user, reviewed_request, response_json })
}

impl<'b> ParsedReview<'b> {
    fn parse(body: &'b [u8], now: Timestamp) -> Result<Self, Status> {
        if let Some(review) = PlainSubjectAccessReview::parse(body) {
            return Ok(Self::Plain(Box::new(review)));
        }
        let tree: Value = serde_json::from_slice(body)
            .map_err(|error| Status::bad_request(format!("the body is not JSON: {error}")))?;
        let text = |name: &str| tree.get(name).and_then(Value::as_str).unwrap_or_default();
        let version = text("apiVersion").strip_prefix("authorization.k8s.io/").unwrap_or_default();
        if text("kind") != KIND.name() || !matches!(version, "v1" | "v1beta1") {
            return Err(Status::bad_request(format!(
                "the body is `{}` of `{}`, and must be SubjectAccessReview of authorization.k8s.io/v1 or \
                 authorization.k8s.io/v1beta1",
                text("kind"),
                text("apiVersion")
            )));
        }
        let request = ReviewRequest { version, namespace: "", user: None, now };
        match access_reviews::prepare_review(KIND, &tree, &request) {
            Ok(PreparedReview::Access(review)) => Ok(Self::Tree(Box::new(review))),
            Ok(_) => Err(Status::bad_request("the body is another review")),
            Err(error) => Err(review_error_status(error)),
        }
    }

    fn attributes(&self) -> Attributes<'_> {
        match self {
            Self::Plain(review) => review.attributes(),
            Self::Tree(review) => review.attributes(),
        }
    }

    fn into_response(self, decision: &Decision) -> Vec<u8> {
        match self {
            Self::Plain(review) => {
                let mut json = Vec::with_capacity(1024);
                review.write_response(decision, &mut json);
                json
            }
            Self::Tree(review) => {
                serde_json::to_vec(&review.into_response(decision)).unwrap_or_default()
            }
        }
    }
}

/// Every fault of a review is a bad request: kube-apiserver sends none, and a caller in development reads the message.
fn review_error_status(error: ReviewError) -> Status {
    match error {
        ReviewError::Invalid { kind, name, errors } => {
            let invalid = Status::invalid_object(&kind, &name, &errors);
            Status::bad_request(invalid.message)
        }
        ReviewError::Malformed { .. }
        | ReviewError::NamespaceRequired
        | ReviewError::NamespaceMismatch
        | ReviewError::NoUser
        | ReviewError::NoNamespace => Status::bad_request(error.to_string()),
    }
}

/// Returns what explains a decision; `None` if the review cannot be encoded.
fn explanation_source(
    snapshot: &PolicySnapshot,
    attributes: &Attributes<'_>,
    outcome: &ChainDecision<'_>,
    trace: Option<&Trace>,
    now: Timestamp,
) -> Option<ExplanationSource> {
    let review = encode_review(attributes, ReviewVersion::V1);
    match trace {
        None => Some(ExplanationSource::Chain(std::sync::Arc::clone(&snapshot.chain), review)),
        Some(trace) => {
            let prepared = prepare_explanation(&review, now)?;
            let json = build_explanation(prepared, &snapshot.chain, outcome, trace);
            serde_json::to_vec(&json).ok().map(|json| ExplanationSource::Recorded(json.into()))
        }
    }
}

/// Adds the id to the reason, which kube-apiserver shows to the user of a refused request and writes to its audit log.
fn with_decision_id(decision: Decision, id: DecisionId) -> Decision {
    let reason = match decision.reason.is_empty() {
        true => format!("[decision {id}]"),
        false => format!("{} [decision {id}]", decision.reason),
    };
    Decision { reason: Reason::from(reason), ..decision }
}

/// Describes the user and the request of a review for the audit event.
fn describe_attributes(attributes: &Attributes<'_>) -> (String, String) {
    let user = attributes.user.map(|user| user.name.clone()).unwrap_or_default();
    let verb = attributes.verb;
    let request = match &attributes.target {
        authz::Target::Path(path) => format!("{verb} {path}"),
        authz::Target::Resource(resource) => {
            let mut text = format!("{verb} {}", resource.resource);
            for (separator, part) in [
                (".", resource.api_group),
                ("/", resource.subresource),
                (" ", resource.name),
                (" in ", resource.namespace.name().unwrap_or_default()),
            ] {
                if !part.is_empty() {
                    text.push_str(separator);
                    text.push_str(part);
                }
            }
            text
        }
    };
    (user, request)
}

/// The metric label of a decision.
pub(crate) fn result_of_decision(decision: &Decision) -> ReviewResult {
    match decision.verdict {
        Verdict::Allow => ReviewResult::Allow,
        Verdict::Deny => ReviewResult::Deny,
        Verdict::NoOpinion => ReviewResult::NoOpinion,
        Verdict::Unavailable(_) => ReviewResult::Unavailable,
    }
}
