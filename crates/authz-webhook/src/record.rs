//! Notes how conditions came out, with the values of their parts.

use authz::{Event, Recorder};
use cel::{COST_LIMIT, Map, Part, PartOutcome, Value};

use crate::compile::ENVIRONMENT;
use crate::conditions::MatchCondition;
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
    if explanation.n_left_out > 0 {
        below.note(|| Event::new("value").with("leftOut", explanation.n_left_out));
    }
}

/// Notes parts, each with those inside of it below.
fn note_parts(mut parts: &[Part], recorder: &mut Recorder<'_>) {
    while let Some((part, rest)) = parts.split_first() {
        let n_inside = rest.iter().take_while(|inner| inner.depth > part.depth).count();
        let (inside, after) = rest.split_at(n_inside);
        let mut below = recorder.enter(|| {
            let event = Event::new("value").with("text", part.text.as_str());
            match &part.outcome {
                PartOutcome::Value(value) => event.with("value", value.as_str()),
                PartOutcome::Error(error) => event.with("error", error.as_str()),
                PartOutcome::Skipped => event.with("skipped", true),
            }
        });
        note_parts(inside, &mut below);
        parts = after;
    }
}
