//! The cost limit, and that evaluation always gives the same.

use cel::COST_LIMIT;
use proptest::prelude::*;

use super::expressions::Choices;
use super::{Answer, answer, answer_within};

proptest! {
    /// What a program costs is just enough for it, and one less is not.
    #[test]
    fn the_cost_is_the_least_limit_that_suffices(
        choices in proptest::collection::vec(any::<u8>(), 0..200),
        letter in proptest::sample::select(&['b', 's', 'S', 'M', 'x'][..]),
    ) {
        let source = Choices::new(&choices).expression(letter);
        let (found, cost) = answer(&source);
        prop_assert_eq!(&answer(&source), &(found.clone(), cost), "again: {}", source);
        match found {
            Answer::Refused(_) => {}
            Answer::CostLimit => prop_assert!(cost > 0),
            found => {
                prop_assert!(cost <= COST_LIMIT, "{source}");
                prop_assert_eq!(answer_within(&source, cost), (found, cost), "{}", source);
                if let Some(less) = cost.checked_sub(1) {
                    prop_assert_eq!(answer_within(&source, less).0, Answer::CostLimit, "{}", source);
                }
            }
        }
    }
}

/// Each step of a loop is counted, so the limit ends it in time.
#[test]
fn loops_end_at_the_limit() {
    for source in [
        "lists.range(100000).all(a, lists.range(100000).all(b, true))",
        "lists.range(100000).map(a, lists.range(100000).map(b, a)).size() > 0",
        "lists.range(1000).exists(a, lists.range(1000).exists(b, a + b < 0))",
        "lists.range(100000).filter(a, a % 2 == 0).map(a, string(a)).sort().size() > 0",
    ] {
        let (found, cost) = answer(source);
        assert_eq!(found, Answer::CostLimit, "{source}");
        assert!(cost > COST_LIMIT, "{source}");
    }
}
