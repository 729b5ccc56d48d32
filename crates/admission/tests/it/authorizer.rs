//! Match conditions that ask the authorizer.

use admission::ConfigurationKind::Validating;
use admission::{
    AUTHORIZER_CHECKS_MAX, Attributes, AuthorizerDecisions, ConditionVariables, GroupVersionKind,
    GroupVersionResource, MatchConditionsResult, Snapshot,
};
use authz::{Decision, User};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::documents::snapshot;
use crate::matching::pod;

fn hook(expressions: &[&str]) -> Snapshot {
    let conditions = expressions.iter().enumerate();
    let conditions: Vec<Value> = conditions
        .map(|(idx, expression)| json!({"name": format!("c{idx}"), "expression": expression}))
        .collect();
    snapshot(&[(Validating, "a", json!([{"name": "a.b.c", "matchConditions": conditions}]))])
}

/// An authorizer whose decision depends on the verb.
fn decide(asked: &authz::Attributes<'_>) -> Decision {
    match asked.verb.as_str() {
        "no" => Decision::deny("because"),
        "fail" => Decision::no_opinion("").with_error(authz::EvaluationErrors::message("down")),
        _ => Decision::allow("as you like"),
    }
}

/// Formats a check as user, verb and target.
fn shown(asked: &authz::Attributes<'_>) -> String {
    let user = asked.user.map_or("nobody", |user| &user.name);
    let target = match asked.resource() {
        None => asked.path().to_owned(),
        Some(it) => {
            let parts = [
                it.api_group,
                it.api_version,
                it.resource,
                it.subresource,
                it.namespace.as_str(),
                it.name,
            ];
            parts.join(",")
        }
    };
    format!("{user} {} {target}", asked.verb)
}

/// Evaluates conditions, answering each question of the authorizer. Returns the outcome and all questions.
fn evaluate(
    expressions: &[&str],
    attributes: &Attributes<'_>,
    decisions: &mut AuthorizerDecisions,
) -> (String, Vec<String>) {
    let snapshot = hook(expressions);
    let conditions = &snapshot.validating_hooks().hooks()[0].match_conditions;
    let input =
        ConditionVariables::new(attributes, attributes, attributes.kind, attributes.resource);
    let mut asked = Vec::new();
    loop {
        match conditions.evaluate_conditions(&input, Some(decisions)) {
            Ok(MatchConditionsResult::Hold) => return ("hold".to_owned(), asked),
            Ok(MatchConditionsResult::Exclude { condition }) => {
                return (format!("not {condition}"), asked);
            }
            Ok(MatchConditionsResult::Fail(cause)) => return (cause, asked),
            Err(question) => {
                let answer = {
                    let attributes = question.to_authorization_attributes(attributes.user);
                    asked.push(shown(&attributes));
                    decide(&attributes)
                };
                decisions.record_decision(*question, &answer);
            }
        }
        assert!(asked.len() as u64 <= AUTHORIZER_CHECKS_MAX, "{asked:?}");
    }
}

fn outcome(expression: &str) -> String {
    evaluate(&[expression], &pod(), &mut AuthorizerDecisions::default()).0
}

#[test]
fn users_with_the_checked_permission_skip_the_hook() {
    let guard = |verb: &str| {
        format!("!authorizer.group('').resource('pods').namespace('ns').check('{verb}').allowed()")
    };
    assert_eq!(outcome(&guard("breakglass")), "not c0");
    assert_eq!(outcome(&guard("no")), "hold");
    assert_eq!(outcome(&guard("fail")), "hold", "what fails does not allow");
}

#[test]
fn request_resource_is_checked() {
    let ana = User { name: "ana".to_owned(), ..User::default() };
    let scale = Attributes { subresource: "scale", user: Some(&ana), ..pod() };
    let ask =
        |expression: &str| evaluate(&[expression], &scale, &mut AuthorizerDecisions::default()).1;
    for (expression, want) in [
        ("authorizer.requestResource.check('get').allowed()", "ana get ,*,pods,scale,team-a,x"),
        (
            "authorizer.requestResource.subresource('').name('').check('get').allowed()",
            "ana get ,*,pods,,team-a,",
        ),
        ("authorizer.path('/healthz').check('get').allowed()", "ana get /healthz"),
        (
            "authorizer.serviceAccount('a', 'b').group('g').resource('r').check('get').allowed()",
            "system:serviceaccount:a:b get g,*,r,,,",
        ),
    ] {
        assert_eq!(ask(expression), [want], "{expression}");
    }
}

/// `authorizer.requestResource` is the requested resource, even if the hook reviews an equivalent one.
#[test]
fn request_resource_is_the_requested_one_not_the_equivalent() {
    let snapshot = hook(&["authorizer.requestResource.check('get').allowed()"]);
    let requested = pod();
    let kind = GroupVersionKind { group: "other", version: "v9", kind: "Pod" };
    let resource = GroupVersionResource { group: "other", version: "v9", resource: "capsules" };
    let input = ConditionVariables::new(&requested, &requested, kind, resource);
    let conditions = &snapshot.validating_hooks().hooks()[0].match_conditions;
    let question =
        conditions.evaluate_conditions(&input, Some(&AuthorizerDecisions::default())).unwrap_err();
    assert_eq!(shown(&question.to_authorization_attributes(None)), "nobody get ,*,pods,,team-a,x");
}

#[test]
fn decisions_expose_reason_and_error() {
    for expression in [
        "authorizer.path('/x').check('no').reason() == 'because'",
        "authorizer.path('/x').check('fail').errored()",
        "authorizer.path('/x').check('fail').error() == 'down'",
        "!authorizer.path('/x').check('fail').allowed()",
        "!authorizer.path('/x').check('get').errored()",
        "authorizer.path('/x').check('get').error() == ''",
    ] {
        assert_eq!(outcome(expression), "hold", "{expression}");
    }
}

#[test]
fn invalid_checks_fail() {
    for (expression, want) in [
        ("authorizer.path(' ').check('get').allowed()", "path must not be empty"),
        ("authorizer.group('').resource('').check('get').allowed()", "resource must not be empty"),
        (
            "authorizer.serviceAccount('A', 'b').path('/x').check('get').allowed()",
            "Invalid service account namespace",
        ),
    ] {
        let want = format!("expression '{expression}' resulted in error: {want}");
        assert_eq!(
            evaluate(&[expression], &pod(), &mut AuthorizerDecisions::default()),
            (want, vec![])
        );
    }
}

#[test]
fn equal_checks_are_authorized_once() {
    let mut decisions = AuthorizerDecisions::default();
    let same = "authorizer.path('/x').check('get').allowed()";
    let (outcome, asked) = evaluate(&[same, same], &pod(), &mut decisions);
    assert_eq!((outcome.as_str(), asked.len()), ("hold", 1));
    assert!(evaluate(&[same], &pod(), &mut decisions).1.is_empty());
    let other = "authorizer.path('/y').check('get').allowed()";
    assert_eq!(evaluate(&[same, other], &pod(), &mut decisions).1, ["nobody get /y"]);
}

/// The cost of a check bounds the number of questions to the authorizer, for each condition and for all of them
/// together.
#[test]
fn the_number_of_checks_is_limited() {
    let checks = |n: usize| -> Vec<String> {
        (0..n).map(|n| format!("authorizer.path('/{n}').check('get').allowed()")).collect()
    };
    let evaluate = |expressions: &[String]| {
        let expressions: Vec<&str> = expressions.iter().map(String::as_str).collect();
        let (outcome, asked) = evaluate(&expressions, &pod(), &mut AuthorizerDecisions::default());
        (outcome, asked.len())
    };
    assert_eq!(evaluate(&[checks(2).join(" && ")]), ("hold".to_owned(), 2));
    let (outcome, n_asked) = evaluate(&[checks(3).join(" && ")]);
    assert!(outcome.ends_with("operation cancelled: actual cost limit exceeded"), "{outcome}");
    assert_eq!(n_asked, 2);

    let max = usize::try_from(AUTHORIZER_CHECKS_MAX).unwrap();
    assert_eq!(max, 7);
    assert_eq!(evaluate(&checks(max)), ("hold".to_owned(), max));
    let (outcome, n_asked) = evaluate(&checks(max + 1));
    assert!(outcome.contains("running out of cost budget"), "{outcome}");
    assert_eq!(n_asked, max);
}

#[test]
fn without_an_authorizer_a_check_is_an_error() {
    let snapshot = hook(&["authorizer.path('/x').check('get').allowed() || true"]);
    let attributes = pod();
    let input =
        ConditionVariables::new(&attributes, &attributes, attributes.kind, attributes.resource);
    let conditions = &snapshot.validating_hooks().hooks()[0].match_conditions;
    assert_eq!(conditions.evaluate_conditions(&input, None).unwrap(), MatchConditionsResult::Hold);
    let snapshot = hook(&["authorizer.path('/x').check('get').allowed()"]);
    let conditions = &snapshot.validating_hooks().hooks()[0].match_conditions;
    let Ok(MatchConditionsResult::Fail(cause)) = conditions.evaluate_conditions(&input, None)
    else {
        panic!()
    };
    assert!(cause.ends_with("no such overload"), "{cause}");
}

const POOL: [&str; 10] = [
    "true",
    "object.absent",
    "authorizer.path('/a').check('get').allowed()",
    "authorizer.path('/a').check('no').allowed()",
    "!authorizer.path('/b').check('fail').allowed()",
    "authorizer.path('/b').check('get').allowed() && authorizer.path('/a').check('no').allowed()",
    "authorizer.path('/b').check('no').allowed() ? true : authorizer.path('/c').check('get').allowed()",
    "['/a', '/b', '/c'].all(p, authorizer.path(p).check('get').allowed())",
    "['/a', '/b', '/c'].exists(p, authorizer.path(p).check('fail').errored())",
    "authorizer.requestResource.check('get').reason() == 'as you like'",
];

proptest! {
    /// The outcome does not depend on the decisions that are known before, or on the number of rounds.
    #[test]
    fn outcomes_do_not_depend_on_known_decisions(
        conditions in prop::collection::vec(prop::sample::select(&POOL[..]), 1..12),
        known in prop::collection::vec(prop::sample::select(&POOL[..]), 0..12),
    ) {
        let (want, asked) = evaluate(&conditions, &pod(), &mut AuthorizerDecisions::default());
        let mut decisions = AuthorizerDecisions::default();
        for condition in known {
            evaluate(&[condition], &pod(), &mut decisions);
        }
        let (found, asked_less) = evaluate(&conditions, &pod(), &mut decisions);
        prop_assert_eq!(found, want);
        prop_assert!(asked_less.iter().all(|question| asked.contains(question)));
        prop_assert!(evaluate(&conditions, &pod(), &mut decisions).1.is_empty());
    }
}
