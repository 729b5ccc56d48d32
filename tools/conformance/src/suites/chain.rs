//! `chain`: a whole chain is asked one question after the other, and its webhooks are real.
//!
//! The chain is assembled from files as a server does it at its start. Each webhook is a service of
//! its own that answers over TLS as the vector says; the recorded ones answered without, so `http`
//! stands for `https` in what is compared.

mod calls;
mod peers;
mod place;

use std::time::Duration;

use authz::{Decision, Recorder};
use serde_json::{Value, json};

use self::peers::Peers;
pub(super) use self::peers::{answer as stub_answer, authority};
use self::place::Place;
use super::Answer;
use super::question::Question;
use crate::vectors::Vector;

/// How many vectors are run at once. Most of the time of a vector is spent waiting: for answers
/// that come late, for another attempt, for an entry of a cache to expire.
pub(super) const VECTORS_AT_ONCE: usize = 24;

/// The longest that a step may wait before it asks, in milliseconds. Recorded are a few seconds.
const WAIT_MS_MAX: u64 = 60_000;

pub(super) fn answer(vector: &Vector) -> Result<Answer, String> {
    let peers = Peers::start(vector)?;
    let place = Place::new(vector, &peers)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let (mut want, mut got) = (Vec::new(), Vec::new());
    runtime.block_on(async {
        // Making connections needs a runtime, and so may the making of a client.
        let chain = place.chain()?;
        for step in vector.list("steps")? {
            let wait_ms = step["waitMillis"].as_u64().unwrap_or_default().min(WAIT_MS_MAX);
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            let question = Question::read(&step["attributes"])?;
            let outcome = chain.authorize(&question.attributes(), Recorder::disabled()).await;
            let expected = &step["expect"];
            want.push(calls::with_exact_bodies(expected));
            got.push(shown(&outcome.decision, expected, peers.take_calls()));
        }
        Ok::<_, String>(())
    })?;
    Ok(Answer { want: Value::from(want), got: Value::from(got), warnings: Vec::new() })
}

/// Every text is Kubernetes' own or Go's, and all of it counts.
pub(super) fn exact_length(text: &str) -> usize {
    text.len()
}

/// What a step came to, in the form of the recorded one. A reason that was too long to be recorded
/// is compared by its hash.
fn shown(decision: &Decision, expected: &Value, calls: Vec<Value>) -> Value {
    let reason = decision.reason.to_string();
    let error = decision.error.as_ref().map(ToString::to_string);
    let mut shown = json!({
        "decision": decision.verdict.name(),
        "errorKind": error.as_deref().map(kind_of_error),
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

/// What an error is about. The recording sorts them by their words, too: whatever is none of the
/// others is about an answer.
fn kind_of_error(error: &str) -> &'static str {
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
