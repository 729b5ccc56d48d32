//! Differences in the evaluation of match conditions.

use serde_json::Value;

use crate::suites::AnswerPair;
use crate::vectors::Vector;

/// The text by which a recording shows that cel-go panicked. `sort` and `distinct` panic if their operand fails,
/// and a membership test panics for a key that cannot be hashed.
const PANIC: &str = "resulted in error: internal error: ";

/// If cel-go panics, Portcullis evaluates the expression as the language defines it.
///
/// A panic ends the whole evaluation, even where `||` would have absorbed an error. Such a recording does not show
/// the value of the expression, so for this case only, our own answer is accepted.
pub(super) fn peer_panic(_: &Vector, answer: &AnswerPair, want: &mut Value) -> bool {
    let mut has_changed = false;
    let ours = answer.got["cases"].as_array();
    let wanted = want["cases"].as_array_mut();
    for (want, ours) in wanted.into_iter().flatten().zip(ours.into_iter().flatten()) {
        let is_panic = want["error"].as_str().is_some_and(|error| error.contains(PANIC));
        if is_panic && want != ours {
            *want = ours.clone();
            has_changed = true;
        }
    }
    has_changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LEDGER, Suite, VectorOutcome, judge};
    use serde_json::json;

    /// Judges an expression for two requests. Only the second request has the key. The recorded answers are a
    /// panic for the first and `second` for the second.
    fn outcome(expression: &str, second: &str) -> VectorOutcome {
        let error = format!(
            "cel evaluation error: expression '{expression}' resulted in error: internal error: \
             interface conversion: *types.Err is not traits.Lister: missing method Add"
        );
        let body = json!({
            "expressions": [expression],
            "compile": "ok",
            "cases": [
                {"request": {}, "result": "error", "error": error},
                {"request": {"extra": {"k": ["v"]}}, "result": second},
            ],
        });
        let Value::Object(body) = body else { panic!("the body is an object") };
        let vector = Vector { id: "v".to_owned(), feature: "f".to_owned(), body };
        judge(Suite::MatchConditions, &vector, LEDGER).unwrap().outcome
    }

    #[test]
    fn the_rule_explains_the_panic_and_no_other_case() {
        let agreed = VectorOutcome::Agreed(vec!["peer-panic"]);
        for expression in [
            "request.extra['k'].sort() == ['v']",
            "request.extra['k'].sortBy(e, e) == ['v']",
            "request.extra['k'].distinct() == ['v'] || true",
        ] {
            assert_eq!(outcome(expression, "match"), agreed, "{expression}");
            assert!(
                matches!(outcome(expression, "noMatch"), VectorOutcome::Failed(_)),
                "{expression}"
            );
        }
    }
}
