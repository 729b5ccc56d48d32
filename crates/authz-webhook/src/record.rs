//! Notes how conditions came out, with the values of their parts, and how an answer was got.

use authz::{Event, Recorder};
use cel::{COST_LIMIT, ExplainedPart, Map, PartResult, Value};

use crate::call::CallEnd;
use crate::compile::ENVIRONMENT;
use crate::conditions::MatchCondition;
use crate::observe::Rejection;
use crate::review::ReviewSpec;

/// Notes one event `condition`, and below it one event `value` for each part that was looked at.
///
/// The parts are compiled and evaluated again for this: conditions keep nothing for it, and it
/// happens only when somebody asks.
#[cold]
pub(crate) fn note_condition(
    index: usize,
    condition: &MatchCondition,
    outcome: &Result<bool, String>,
    request: &ReviewSpec<'_>,
    recorder: &mut Recorder<'_>,
) {
    let mut below = recorder.enter(|| {
        let event =
            Event::new("condition").with("index", index).with("expression", condition.expression());
        match outcome {
            Ok(holds) => event.with("outcome", *holds),
            Err(error) => event.with("error", error.as_str()),
        }
    });
    let variables = [Value::Map(Map::Record(request))];
    let Ok(explanation) = ENVIRONMENT.explain(condition.expression(), &variables, COST_LIMIT)
    else {
        return; // Conditions have been compiled before.
    };
    // The first part is the condition itself.
    note_parts(explanation.parts.get(1..).unwrap_or_default(), &mut below);
    if explanation.n_omitted_parts > 0 {
        below.note(|| Event::new("value").with("leftOut", explanation.n_omitted_parts));
    }
}

/// Notes parts, each with those inside of it below.
fn note_parts(mut parts: &[ExplainedPart], recorder: &mut Recorder<'_>) {
    while let Some((part, rest)) = parts.split_first() {
        let n_inside = rest.iter().take_while(|inner| inner.depth > part.depth).count();
        let (inside, after) = rest.split_at(n_inside);
        let mut below = recorder.enter(|| {
            let event = Event::new("value").with("text", part.text.as_str());
            match &part.result {
                PartResult::Value(value) => event.with("value", value.as_str()),
                PartResult::Error(error) => event.with("error", error.as_str()),
                PartResult::Skipped => event.with("skipped", true),
            }
        });
        note_parts(inside, &mut below);
        parts = after;
    }
}

/// Notes that a condition is false, so that the webhook is not asked.
pub(crate) fn note_skipped(recorder: &mut Recorder<'_>) {
    recorder.note(|| Event::new("webhook").with("skipped", true));
}

/// Notes that the answer was known.
pub(crate) fn note_hit(recorder: &mut Recorder<'_>) {
    recorder.note(|| Event::new("webhook").with("cache", "hit"));
}

/// Notes a call, or that of another check which was waited for.
pub(crate) fn note_call(end: &CallEnd, is_joined: bool, recorder: &mut Recorder<'_>) {
    recorder.note(|| {
        let took = i64::try_from(end.took.as_micros()).unwrap_or(i64::MAX);
        let mut event = Event::new("webhook")
            .with("cache", "miss")
            .with("joined", is_joined)
            .with("attempts", i64::from(end.n_attempts))
            .with("tookMicros", took);
        if let Some(status) = end.status {
            event = event.with("status", i64::from(status));
        }
        match &end.outcome {
            Ok(_) => event,
            Err(error) => event.with("error", error.to_string()),
        }
    });
}

/// Notes why the webhook was not called.
pub(crate) fn note_refused(why: Rejection, recorder: &mut Recorder<'_>) {
    recorder.note(|| {
        Event::new("webhook").with("cache", "miss").with("called", false).with("why", why.name())
    });
}
