//! `chain`: a whole chain decides several requests, and calls webhooks over the network.
//!
//! The chain is assembled from files, as a server does at its start. Each webhook is a separate service
//! that answers over TLS as the vector says. The recorded webhooks answered without TLS, so `https` is
//! replaced by `http` before texts are compared.

mod calls;
mod chain_files;
mod fake_webhooks;

use std::time::Duration;

use authz::{Decision, TraceRecorder};
use serde_json::{Value, json};

use self::chain_files::ChainFiles;
use self::fake_webhooks::FakeWebhooks;
pub(super) use self::fake_webhooks::{parse_response, webhook_authority};
use super::AnswerPair;
use super::recorded_attributes::RecordedAttributes;
use crate::vectors::{UnusableVector, Vector};

/// The number of vectors that run at the same time. A vector mostly waits: for delayed answers, for the next
/// attempt, for a cache entry to expire.
pub(super) const N_CONCURRENT_VECTORS: usize = 24;

/// The longest wait before a step, in milliseconds. Recorded waits are a few seconds.
const WAIT_MS_MAX: u64 = 60_000;

pub(super) fn answer_vector(vector: &Vector) -> Result<AnswerPair, UnusableVector> {
    let webhooks = FakeWebhooks::start(vector)?;
    let files = ChainFiles::new(vector, &webhooks)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(UnusableVector::new)?;
    let (mut want, mut got) = (Vec::new(), Vec::new());
    runtime.block_on(async {
        // Clients need a runtime to open connections, and may need it when they are built.
        let chain = files.build_chain()?;
        for step in vector.list("steps")? {
            let wait_ms = step["waitMillis"].as_u64().unwrap_or_default().min(WAIT_MS_MAX);
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            let recorded = RecordedAttributes::read(&step["attributes"])?;
            let outcome =
                chain.authorize(&recorded.attributes(), TraceRecorder::disabled_recorder()).await;
            let expected = &step["expect"];
            want.push(calls::with_body_texts(expected));
            got.push(step_to_json(&outcome.decision, expected, webhooks.take_calls()));
        }
        Ok::<_, UnusableVector>(())
    })?;
    Ok(AnswerPair { want: Value::from(want), got: Value::from(got), warnings: Vec::new() })
}

/// Kubernetes and Go write every text, so all of it must agree.
pub(super) fn exact_length(text: &str) -> usize {
    text.len()
}

/// The result of a step in the form of the vectors. If the recorded reason is a hash, because the reason was too
/// long to record, ours is hashed too.
fn step_to_json(decision: &Decision, expected: &Value, calls: Vec<Value>) -> Value {
    let reason = decision.reason.to_string();
    let error = decision.error.as_ref().map(ToString::to_string);
    let mut shown = json!({
        "decision": decision.verdict.name(),
        "errorKind": error.as_deref().map(error_kind),
        "error": error.map(|error| error.replace("\"https://", "\"http://")),
        "calls": calls,
    });
    if expected.get("reasonSha256").is_some() {
        let hash = authz_reload::sha256_hash(reason.as_bytes());
        shown["reasonSha256"] = hash.strip_prefix("sha256:").unwrap_or(&hash).into();
        shown["reasonLength"] = reason.len().into();
    } else {
        shown["reason"] = reason.into();
    }
    shown
}

/// The kind of an error. The recording classified errors by their text in the same way: an error of no other kind is
/// about the response of a webhook.
fn error_kind(error: &str) -> &'static str {
    if error.trim_start_matches('[').starts_with("cel evaluation error: ") {
        "matchCondition"
    } else if error.ends_with(" returned both allow and deny response") {
        "bothAllowAndDeny"
    } else if error.starts_with("Post \"") {
        "transport"
    } else {
        "response"
    }
}

#[cfg(test)]
mod tests;
