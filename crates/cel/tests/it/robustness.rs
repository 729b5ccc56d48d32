//! Properties of every expression: no panic, bounded work, and the laws of the language.

mod any_text;
mod authorizer;
mod budget;
mod depth;
mod differences;
mod explain;
mod expressions;
mod functions;
mod laws;
mod limits;
mod logic;
mod world;

use std::sync::LazyLock;

use cel::{COST_LIMIT, Environment, EvalError, KnownDecisions, Value};

use world::{Request, answer_all};

static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(world::environment);

/// The outcome of an expression. Values are compared by their type and their text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Answer {
    /// The expression does not compile.
    Refused(String),
    Value(String),
    Error(String),
    /// The evaluation exceeds the cost limit.
    CostLimit,
}

impl Answer {
    fn of(result: &Result<Value<'_>, EvalError>) -> Self {
        match result {
            Ok(value) => Self::Value(format!("{}: {value}", value.type_name())),
            Err(EvalError::CostLimit) => Self::CostLimit,
            Err(error) => Self::Error(error.to_string()),
        }
    }

    fn is_bool(&self, expected: bool) -> bool {
        *self == Self::of(&Ok(Value::Bool(expected)))
    }
}

/// Compiles an expression and evaluates it for the sample request. Returns the outcome and the
/// cost.
fn answer(source: &str) -> (Answer, u64) {
    answer_within(source, COST_LIMIT)
}

fn answer_within(source: &str, cost_limit: u64) -> (Answer, u64) {
    let program = match ENVIRONMENT.compile(source) {
        Ok(program) => program,
        Err(error) => return (Answer::Refused(error.to_string()), 0),
    };
    let request = Request::sample();
    let mut decisions = KnownDecisions::default();
    answer_all(&program, &request, &mut decisions, cost_limit);
    let variables = request.variables(&decisions);
    let evaluation = program.evaluate(&variables, cost_limit);
    (Answer::of(&evaluation.result), evaluation.cost)
}
