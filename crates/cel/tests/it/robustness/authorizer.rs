//! Expressions with authorization checks: the order in which decisions become known does not
//! matter.

use cel::{
    AUTHORIZER_CHECK_COST, AuthorizerCheck, AuthorizerCheckTarget, COST_LIMIT, EvalError,
    Evaluation, KnownDecisions, Program, ResourceCheckTarget, ServiceAccount,
};
use proptest::prelude::*;

use super::expressions::Choices;
use super::world::{Request, answer_all, decide};
use super::{Answer, ENVIRONMENT, answer, answer_within};

/// All checks that random expressions perform.
fn questions() -> [AuthorizerCheck; 4] {
    let path = || AuthorizerCheckTarget::Path("/a".into());
    let pods = |name: &str| {
        let (resource, name) = ("pods".into(), name.into());
        AuthorizerCheckTarget::Resource(Box::new(ResourceCheckTarget {
            resource,
            name,
            ..ResourceCheckTarget::default()
        }))
    };
    let account = ServiceAccount { namespace: "c".into(), name: "d".into() };
    let get = |target| AuthorizerCheck {
        service_account: None,
        verb: "get".into(),
        check_target: target,
    };
    [
        get(path()),
        AuthorizerCheck { verb: "list".into(), ..get(pods("")) },
        get(pods("b")),
        AuthorizerCheck { service_account: Some(account), ..get(path()) },
    ]
}

/// The decisions whose bits are set.
fn decisions(known: u8) -> KnownDecisions {
    let mut decisions = KnownDecisions::default();
    for (bit, question) in questions().into_iter().enumerate() {
        if known >> bit & 1 == 1 {
            let decision = decide(&question);
            decisions.insert(question, decision);
        }
    }
    decisions
}

/// The outcome and its cost.
fn shown(evaluation: &Evaluation<'_>) -> (Answer, u64) {
    (Answer::of(&evaluation.result), evaluation.cost)
}

fn answers_agree(program: &Program, known: u8, cost_limit: u64) -> Result<usize, TestCaseError> {
    let request = Request::sample();
    let all = request.variables(&decisions(u8::MAX));
    let want = shown(&program.evaluate(&all, cost_limit));
    let mut known = decisions(known);
    let n_answers = answer_all(program, &request, &mut known, cost_limit);
    let by_rounds = request.variables(&known);
    prop_assert_eq!(shown(&program.evaluate(&by_rounds, cost_limit)), want);
    Ok(n_answers)
}

proptest! {
    /// The outcome is the same if all decisions are known before, if some of them are known, and if
    /// each one is added when the evaluation needs it.
    #[test]
    fn results_do_not_depend_on_when_decisions_become_known(
        choices in proptest::collection::vec(any::<u8>(), 0..200),
        letter in proptest::sample::select(&['b', 's', 'S', 'x'][..]),
        known in any::<u8>(),
        cost_limit in prop_oneof![Just(COST_LIMIT), 0..COST_LIMIT],
    ) {
        let source = Choices::new(&choices).expression_with_checks(letter);
        if let Ok(program) = ENVIRONMENT.compile(&source) {
            let n_answers = answers_agree(&program, known, cost_limit)?;
            prop_assert!(n_answers == 0 || program.reads_variable(1) || program.reads_variable(2), "{}", source);
            prop_assert!(n_answers as u64 * AUTHORIZER_CHECK_COST <= cost_limit, "{}", source);
        }
    }

    /// The cost limit also applies to checks.
    #[test]
    fn the_cost_of_checks_is_the_minimal_sufficient_limit(
        choices in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let source = Choices::new(&choices).expression_with_checks('b');
        let (found, cost) = answer(&source);
        if !matches!(found, Answer::Refused(_) | Answer::CostLimit) {
            prop_assert_eq!(answer_within(&source, cost), (found, cost), "{}", source);
            if let Some(less) = cost.checked_sub(1) {
                prop_assert_eq!(answer_within(&source, less).0, Answer::CostLimit, "{}", source);
            }
        }
    }
}

/// The generator is useful only if many of its expressions perform checks.
#[test]
fn many_random_expressions_perform_checks() {
    let request = Request::sample();
    let n_asking = (0..1_000_u32).filter(|seed| {
        let bytes: Vec<u8> = (0..100).map(|n| (seed.wrapping_mul(n * n + 7) >> 3) as u8).collect();
        let source = Choices::new(&bytes).expression_with_checks('b');
        ENVIRONMENT.compile(&source).is_ok_and(|program| {
            answer_all(&program, &request, &mut KnownDecisions::default(), COST_LIMIT) > 0
        })
    });
    let n_asking = n_asking.count();
    assert!(n_asking > 100, "only {n_asking}");
}

/// No operator absorbs a missing decision, because the result may depend on it.
#[test]
fn a_missing_decision_ends_the_evaluation() {
    const CHECK: &str = "authorizer.path('/a').check('get').allowed()";
    for around in [
        "$ || true",
        "true && $",
        "1 / 0 == 1 || $",
        "!$",
        "$ == true",
        "$ != (1 / 0 == 1)",
        "[$] == [true]",
        "{$: 1 / 0}.size() == 1",
        "$ ? true : true",
        "['a'].exists(x, $)",
        "['a'].all(x, $ || true)",
        "['a'].exists_one(x, $)",
        "['a'].map(x, $)[0]",
        "['a'].transformMap(i, x, $).size() > 0",
        "optional.of($).hasValue()",
        "optional.none().orValue($)",
        "has({'a': $}.a)",
        "{'a': 1}[$ ? 'a' : 'b'] == 1",
        "{'a': 1}[?$ ? 'a' : 'b'].hasValue()",
        "has({'a': {'b': 1}}[$ ? 'a' : 'b'].b)",
        "string($).matches('t.*')",
        "'%s'.format([$]) == ''",
        "string($).replace('t', string(1 / 0)) == ''",
        "[1 / 0 == 1, $].size() > 0 || [$, 1 / 0 == 1].size() > 0",
    ] {
        let source = around.replace('$', CHECK);
        let program = ENVIRONMENT.compile(&source).unwrap();
        let request = Request::sample();
        let variables = request.variables(&KnownDecisions::default());
        let outcome = program.evaluate(&variables, COST_LIMIT).result;
        let Err(EvalError::NeedsDecision(question)) = outcome else { panic!("{source}") };
        assert_eq!(*question, questions()[0], "{source}");
    }
}
