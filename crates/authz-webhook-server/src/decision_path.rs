//! `GET /portcullis/decisions/ID`: explains a recent decision.

use access_reviews::{ExplanationReview, PreparedReview, ReviewKind, ReviewRequest};
use authz::{Trace, TraceRecorder};
use authz_chain::{Chain, ChainDecision};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::decision_id::DecisionId;
use crate::recent_decisions::{ExplanationSource, RecentDecision};
use crate::serve::WebhookState;

/// The path below which decisions are. The last segment is the id.
pub const DECISIONS_PATH: &str = "/portcullis/decisions/";

/// The version of the SubjectAccessExplanation that the path returns.
pub const EXPLANATION_VERSION: &str = "v1alpha1";

/// Explains a decision that is still kept, as a SubjectAccessExplanation. `None` if this process does not have it.
///
/// The chain that made the decision decides again and records a trace. It is the same immutable chain, so the explanation is
/// that of the decision even if the policy has changed since.
pub(crate) async fn explain_decision(server: &WebhookState, id: DecisionId) -> Option<Value> {
    let RecentDecision { decided_at, explanation } = server.recent_decisions.find(id)?;
    let mut json = match explanation {
        ExplanationSource::Recorded(bytes) => serde_json::from_slice(&bytes).ok()?,
        ExplanationSource::Chain(chain, review) => {
            let prepared = prepare_explanation(&review, decided_at)?;
            let mut trace = Trace::default();
            let recorder = TraceRecorder::new(&mut trace);
            let outcome = chain.authorize(&prepared.attributes(), recorder).await;
            build_explanation(prepared, &chain, &outcome, &trace)
        }
    };
    let metadata = json!({"name": id.to_string(), "creationTimestamp": decided_at.to_string()});
    let members = json.as_object_mut()?;
    members.insert("metadata".to_owned(), metadata);
    add_namespace_hint(server, members);
    Some(json)
}

/// Reads an encoded review as one with a trace.
pub(crate) fn prepare_explanation(review: &[u8], now: Timestamp) -> Option<ExplanationReview> {
    let tree: Value = serde_json::from_slice(review).ok()?;
    let request = ReviewRequest { version: EXPLANATION_VERSION, namespace: "", user: None, now };
    let kind = ReviewKind::SubjectAccessExplanation;
    match access_reviews::prepare_review(kind, &tree, &request) {
        Ok(PreparedReview::Explanation(review)) => Some(review),
        Ok(_) | Err(_) => None,
    }
}

/// Builds the explanation as JSON.
pub(crate) fn build_explanation(
    review: ExplanationReview,
    chain: &Chain,
    outcome: &ChainDecision<'_>,
    trace: &Trace,
) -> Value {
    review.into_response(chain, outcome, trace)
}

/// Adds a hint if the request is about a namespace that the cluster does not have now.
fn add_namespace_hint(server: &WebhookState, explanation: &mut serde_json::Map<String, Value>) {
    let Some(namespaces) = server.policy_cache.snapshot().namespaces.clone() else { return };
    let namespace = explanation
        .get("spec")
        .and_then(|spec| spec.pointer("/resourceAttributes/namespace"))
        .and_then(Value::as_str);
    let Some(namespace) = namespace.filter(|own| !own.is_empty() && !namespaces.contains(*own))
    else {
        return;
    };
    let hint = format!("the cluster has no namespace `{namespace}`");
    if let Some(status) = explanation.get_mut("status").and_then(Value::as_object_mut) {
        status.insert("hints".to_owned(), json!([hint]));
    }
}
