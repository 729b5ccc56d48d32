//! The cost limit, and the determinism of evaluation.

use cel::COST_LIMIT;
use proptest::prelude::*;

use super::expressions::Choices;
use super::{Answer, answer, answer_within};

proptest! {
    /// A cost limit that equals the cost of a program is sufficient, and a limit of one less is
    /// not.
    #[test]
    fn the_cost_is_the_minimal_sufficient_limit(
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

/// A17: work that has a low cost in Kubernetes: concatenating lists, comparing nested values, reading
/// long texts, compiling patterns. The step budget bounds it. Without it, each of these expressions
/// runs for minutes or until the memory is full.
#[test]
fn work_that_cost_does_not_show_ends_too() {
    let doubled = |start: &str, n: usize, end: &str| {
        let levels: String = (1..=n).map(|i| format!("[x{0} + x{0}].map(x{i}, ", i - 1)).collect();
        format!(
            "[{start}].map(x0, {levels}{}{})",
            end.replace('X', &format!("x{n}")),
            ")".repeat(n)
        )
    };
    let nested = "[lists.range(9000)].all(y, [[y, y, y, y, y, y, y, y, y]].all(z, \
                  lists.range(60000).all(q, END)))";
    for source in [
        doubled("[1, 2, 3, 4, 5, 6, 7, 8]", 30, "X.size()"),
        doubled("'0123456789'", 17, "lists.range(30000).all(q, X.size() > 0)"),
        doubled("'0123456789'", 15, "lists.range(9000).all(q, {X: 1}.size() > 0)"),
        nested.replace("END", "z == z"),
        nested.replace("END", "z.flatten().size() > 0"),
        nested.replace("END", "(z + z).size() < 0 || (y + y).size() > 0"),
        "lists.range(60000).distinct().size() > 0".to_owned(),
        "lists.range(10000).exists(q, 'x'.matches('\\\\pL{40}' + (q < 0 ? 'y' : '')))".to_owned(),
        format!("'{}'.findAll('a.*b|a').size() > 0", "a".repeat(60_000)),
        doubled("'0123456789'", 15, "lists.range(12).map(q, X.split('')).size() > 0"),
        doubled("'0123456789'", 12, "lists.range(99).map(q, X.findAll('.')).size() > 0"),
    ] {
        assert_eq!(answer(&source).0, Answer::CostLimit, "{source}");
    }
}

/// Each constant pattern of an expression is compiled once, and all of them share a limit.
#[test]
fn many_large_patterns_are_refused() {
    let matches = |n: usize| format!("request.user.matches('\\\\pL{{{n}}}')");
    let same = vec![matches(150); 100].join(" || ");
    assert!(answer(&same).0.is_bool(false), "one pattern, used often");
    let different: Vec<String> = (100..200).map(matches).collect();
    let Answer::Refused(message) = answer(&different.join(" || ")).0 else {
        panic!("a hundred patterns of megabytes each");
    };
    let complaint = "this pattern and those before it take too much memory together";
    assert_eq!(message.matches(complaint).count(), 1, "told once");
}

/// Appending to a list in a loop does not copy the list for each element.
#[test]
fn long_lists_of_constants_are_made_in_linear_time() {
    assert!(answer("lists.range(60000).map(q, 1).size() == 60000").0.is_bool(true));
    assert_eq!(answer("[1, 2].map(q, 1)").1, answer("[1, 2].map(q, q)").1 - 2 * 11);
}

/// The cost of each iteration counts, so the cost limit ends a long loop.
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

/// A17: a loop that reads no variable has one result, which is computed once. Its cost counts each time.
#[test]
fn a17_loops_without_variables_are_evaluated_once() {
    let numbers: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    let numbers = numbers.join(",");
    let nested = |n_loops: usize| {
        let loops: String = (0..n_loops).map(|n| format!("[{numbers}].all(x{n}, ")).collect();
        let sum: Vec<String> = (0..n_loops).map(|n| format!("x{n}")).collect();
        format!("{loops}{} >= 0{}", sum.join(" + "), ")".repeat(n_loops))
    };
    let environment = cel::Environment::for_stored_expressions(Vec::new());
    let program = environment.compile(&nested(2)).expect("the source compiles");
    let (first, cost) = program.evaluate_bool(&[], cel::COST_LIMIT);
    assert_eq!(first, Ok(true));
    assert_eq!(program.evaluate_bool(&[], cel::COST_LIMIT), (Ok(true), cost));
    assert_eq!(program.evaluate_bool(&[], cost), (Ok(true), cost));
    let (over, spent) = program.evaluate_bool(&[], cost - 1);
    assert_eq!(over, Err(cel::EvalError::CostLimit));
    assert!(spent > cost - 1);
    // Without the memory of results, a thousand of these would take a minute.
    let costly = environment.compile(&nested(4)).expect("the source compiles");
    for _ in 0..1_000 {
        let (outcome, _) = costly.evaluate_bool(&[], cel::COST_LIMIT);
        assert_eq!(outcome, Err(cel::EvalError::CostLimit));
    }
}
