//! An explanation agrees with the evaluation of the whole expression and of each subexpression.

use cel::{COST_LIMIT, Explanation, KnownDecisions, SHOWN_BYTES_MAX, SubexpressionResult};
use proptest::prelude::*;

use super::expressions::Choices;
use super::world::Request;
use super::{Answer, ENVIRONMENT, answer};

fn explain(source: &str) -> Option<Explanation> {
    let request = Request::sample();
    ENVIRONMENT.explain(source, &request.variables(&KnownDecisions::default()), COST_LIMIT).ok()
}

/// Reports whether an explained result agrees with an evaluation. Only the beginnings of errors and the values of
/// bools are compared, because long texts are truncated and values are written in two ways.
fn is_of(result: &SubexpressionResult, answer: &Answer) -> bool {
    match (result, answer) {
        (SubexpressionResult::Value(value), Answer::Value(full)) => {
            match full.strip_prefix("bool: ") {
                Some(bool) => value == bool,
                None => true,
            }
        }
        (SubexpressionResult::Error(error), Answer::Error(full)) => {
            full.starts_with(error.strip_suffix("...").unwrap_or(error))
        }
        (SubexpressionResult::Error(error), Answer::CostLimit) => {
            error.contains("cost limit exceeded")
        }
        _ => false,
    }
}

proptest! {
    #[test]
    fn explanations_agree_with_evaluations(
        choices in proptest::collection::vec(any::<u8>(), 0..200),
        letter in proptest::sample::select(&['b', 's', 'S', 'M', 'x'][..]),
    ) {
        let source = Choices::new(&choices).expression(letter);
        let (whole, _) = answer(&source);
        let Some(explanation) = explain(&source) else {
            prop_assert!(matches!(whole, Answer::Refused(_)), "{source}");
            return Ok(());
        };
        prop_assert!(is_of(&explanation.subexpressions[0].result, &whole), "{source}: {explanation:?}");
        prop_assert_eq!(explanation.subexpressions[0].nesting_depth, 0);
        for part in &explanation.subexpressions[1..] {
            prop_assert!(part.nesting_depth > 0);
            if part.result == SubexpressionResult::Skipped || part.source_excerpt.len() > SHOWN_BYTES_MAX {
                continue;
            }
            // A subexpression is a part of the source, and has the same value if it compiles alone.
            prop_assert!(source.contains(&part.source_excerpt), "{source}: {}", part.source_excerpt);
            let (alone, _) = answer(&part.source_excerpt);
            let allowed = !matches!(alone, Answer::Refused(_));
            prop_assert!(!allowed || is_of(&part.result, &alone), "{source}: {part:?} {alone:?}");
        }
    }

    /// The results of the operands of `A && B` explain its result.
    #[test]
    fn operand_results_explain_the_result(
        first in proptest::collection::vec(any::<u8>(), 0..100),
        second in proptest::collection::vec(any::<u8>(), 0..100),
        operator in proptest::sample::select(&["&&", "||"][..]),
    ) {
        let [a, b] = [first, second].map(|choices| Choices::new(&choices).expression('b'));
        let source = format!("({a}) {operator} ({b})");
        let Some(explanation) = explain(&source) else { return Ok(()) };
        let outcome = |n: usize| {
            let part = explanation.subexpressions.iter().filter(|part| part.nesting_depth == 1).nth(n);
            part.map(|part| part.result.clone())
        };
        // Constants are not shown. The operands of a run in parentheses belong to the enclosing
        // run.
        let (Some(left), Some(right), None) = (outcome(0), outcome(1), outcome(2)) else {
            return Ok(());
        };
        let decides = SubexpressionResult::Value((operator == "||").to_string());
        let is_error = |result: &SubexpressionResult| matches!(result, SubexpressionResult::Error(_));
        let expected = match (&left, &right) {
            (left, SubexpressionResult::Skipped) => {
                prop_assert_eq!(left, &decides, "{}", source);
                left.clone()
            }
            (_, right) if *right == decides => right.clone(),
            (left, _) if is_error(left) => left.clone(),
            (_, right) => right.clone(),
        };
        prop_assert_eq!(&explanation.subexpressions[0].result, &expected, "{}: {:?}", source, explanation);
    }
}
