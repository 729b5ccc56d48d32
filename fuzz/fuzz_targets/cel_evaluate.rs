//! Expressions of any kind are evaluated within the cost limit, and always with the same answer; those
//! that ask the authorizer also if it answers one question after the other.
//!
//! The first byte of an input says whether the rest is source text, which seldom passes the
//! checker, or decisions of a generator whose expressions nearly always do.

#![no_main]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use authz_webhook::{MatchCondition, ResourceAttributes, ReviewSpec, UserExtra};
use cel::{
    AUTHORIZER_CHECK_COST, COST_LIMIT, Environment, EvalError, KnownDecisions, Program, Value,
};
use libfuzzer_sys::fuzz_target;

use expressions::Choices;
use world::{Attributes, Request, answer_all};

#[path = "../../crates/cel/tests/it/robustness/expressions.rs"]
#[expect(dead_code, reason = "the tests of the crate use more of it")]
mod expressions;
#[path = "../../crates/cel/tests/it/robustness/world.rs"]
#[expect(dead_code, reason = "the tests of the crate use more of it")]
mod world;

static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(world::environment);

/// The maximum length in bytes of a printed message or value, with room for the text around it.
const SHOWN_BYTES_MAX: usize = 200_000;

fuzz_target!(|bytes: &[u8]| {
    let Some((&form, rest)) = bytes.split_first() else { return };
    // The last part of the input makes the request.
    let (code, data) = rest.split_at(rest.len() - rest.len() / 4);
    let source = match form % 8 {
        0 => match std::str::from_utf8(code) {
            Ok(source) => source.to_owned(),
            Err(_) => return,
        },
        1 => Choices::new(code).expression('x'),
        2 => Choices::new(code).expression('s'),
        3 => Choices::new(code).expression_with_checks('x'),
        4 => Choices::new(code).expression_with_checks('b'),
        _ => Choices::new(code).expression('b'),
    };
    let request = request(data);
    if let Ok(program) = ENVIRONMENT.compile(&source) {
        check(&source, &program, &request);
    }
    if let Ok(condition) = MatchCondition::compile(&source) {
        check_condition(&condition, &request);
    }
});

/// A request from bytes: texts end at a zero byte.
fn request(data: &[u8]) -> Request {
    let text = String::from_utf8_lossy(data);
    let mut texts = text.split('\0').map(str::to_owned);
    let mut next = || texts.next();
    let user = next().unwrap_or_default();
    let attributes = next().map(|verb| Attributes { verb, name: next().unwrap_or_default() });
    let extra = next().map(|key| (key, vec![user.clone()])).into_iter().collect();
    let groups = std::iter::from_fn(next).take(20).collect();
    Request { user, groups, extra: world::Extra(extra), attributes }
}

fn check(source: &str, program: &Program, request: &Request) {
    let mut decisions = KnownDecisions::default();
    let n_answers = answer_all(program, request, &mut decisions, COST_LIMIT);
    assert!(n_answers as u64 * AUTHORIZER_CHECK_COST <= COST_LIMIT, "{source}");
    assert!(n_answers == 0 || program.reads_variable(1) || program.reads_variable(2), "{source}");
    let variables = request.variables(&decisions);
    let first = program.evaluate(&variables, COST_LIMIT);
    let again = program.evaluate(&variables, COST_LIMIT);
    assert_eq!(comparable(&first.result), comparable(&again.result), "{source}");
    assert_eq!(first.cost, again.cost, "{source}");
    if matches!(first.result, Err(EvalError::CostLimit)) {
        return;
    }
    assert!(first.cost <= COST_LIMIT, "{source}");
    // A limit equal to the cost of the first run is just enough, except that `has` can give cost back.
    if source.contains("has(") {
        return;
    }
    let exact = program.evaluate(&variables, first.cost);
    assert_eq!(comparable(&first.result), comparable(&exact.result), "{source}");
    if let Some(less) = first.cost.checked_sub(1) {
        let short = program.evaluate(&variables, less).result;
        assert!(matches!(short, Err(EvalError::CostLimit)), "{source}: {short:?}");
    }
}

/// Whether the evaluation succeeds, and the text of its value or error.
fn comparable(result: &Result<Value<'_>, EvalError>) -> (bool, String) {
    let text = match result {
        Ok(value) => format!("{}: {value}", value.type_name()),
        Err(error) => error.to_string(),
    };
    assert!(text.len() <= SHOWN_BYTES_MAX);
    (result.is_ok(), text)
}

/// The same as part of a configuration.
fn check_condition(condition: &MatchCondition, request: &Request) {
    let extra: &BTreeMap<_, _> = &request.extra.0;
    let resource = request.attributes.as_ref().map(|attributes| ResourceAttributes {
        verb: &attributes.verb,
        name: &attributes.name,
        ..ResourceAttributes::default()
    });
    let spec = ReviewSpec {
        resource,
        non_resource_attributes: None,
        user: &request.user,
        groups: &request.groups,
        extra: UserExtra(Some(extra)),
        uid: "",
    };
    let first = condition.evaluate(&spec);
    assert_eq!(first, condition.evaluate(&spec), "{}", condition.expression());
}
