//! Match conditions: expressions that decide whether a hook is called (admission §3.9).

mod document;
mod environment;
mod request;

use cel::{Budget, COST_LIMIT, Map, Program, Type, Value};

use self::document::Document;
use self::environment::ENVIRONMENT;
use self::request::AdmissionRequest;
use crate::attributes::{Attributes, GroupVersionKind, GroupVersionResource};

/// The most conditions that one hook may have.
pub const MATCH_CONDITIONS_MAX: usize = 64;

/// What the conditions of one hook may cost together in one evaluation. Each of them has
/// [`COST_LIMIT`] for itself.
const TOTAL_COST_LIMIT: u64 = 2_500_000;

/// How much of a compiler's text is kept. It shows the line for each of a hundred issues, so it can
/// say a hundred times as much as the expression does.
const DETAIL_BYTES_MAX: usize = 16 * 1024;

/// Why an expression can not be a condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// The expression does not compile, or its type is not bool. The text is Kubernetes'.
    #[error("{0}")]
    Invalid(String),
    /// It compiles, but a constant part of it fails.
    #[error("{0}")]
    Internal(String),
}

/// The conditions of one hook, in order.
#[derive(Debug, Default)]
pub struct MatchConditions {
    conditions: Vec<MatchCondition>,
}

/// One condition. A stored one that does not compile fails whenever it is evaluated.
#[derive(Debug)]
struct MatchCondition {
    name: String,
    expression: String,
    program: Result<Program, ConditionError>,
}

/// Whether conditions let a hook be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conditions<'a> {
    /// All hold, or there are none.
    Hold,
    /// The condition of this name is the first that is false.
    Exclude {
        /// Its name.
        condition: &'a str,
    },
    /// None is false, and at least one could not be evaluated; or they cost too much together. The
    /// failure policy decides.
    Fail(String),
}

/// What conditions see of a request, in the version that a hook asked for.
///
/// Building it takes time in proportion to the objects, so that it is built once for all hooks that
/// want the same version of the same state.
#[derive(Debug)]
pub struct ConditionInput<'a> {
    request: AdmissionRequest<'a>,
    object: Option<Document<'a>>,
    old_object: Option<Document<'a>>,
}

impl<'a> ConditionInput<'a> {
    /// What conditions see.
    ///
    /// `kind` and `resource` are those that the hook is to be told, and the objects of `converted`
    /// are of that kind. `requested` says what the request itself was for.
    #[must_use]
    pub fn new(
        requested: &Attributes<'a>,
        converted: &Attributes<'a>,
        kind: GroupVersionKind<'a>,
        resource: GroupVersionResource<'a>,
    ) -> Self {
        Self {
            request: AdmissionRequest::new(requested, kind, resource),
            object: converted.object.map(Document::of_tree),
            old_object: converted.old_object.map(Document::of_tree),
        }
    }

    /// The values of the environment's variables, in its order.
    ///
    /// Webhooks are not told the namespace's object. Nothing stands for the authorizer yet, so that
    /// an expression that asks it fails, and the failure policy decides.
    fn variables(&self) -> [Value<'_>; 6] {
        let object = self.object.as_ref().map(Document::value);
        let old_object = self.old_object.as_ref().map(Document::value);
        [
            object.unwrap_or(Value::Null),
            old_object.unwrap_or(Value::Null),
            Value::Null,
            Value::Map(Map::Record(&self.request)),
            Value::Null,
            Value::Null,
        ]
    }
}

impl MatchConditions {
    /// Compiles the conditions of a stored hook, given as pairs of name and expression.
    pub(crate) fn compile<'t>(
        conditions: impl IntoIterator<Item = (&'t str, &'t str)>,
        budget: &mut Budget,
    ) -> Self {
        let conditions = conditions.into_iter().map(|(name, expression)| MatchCondition {
            name: name.to_owned(),
            expression: expression.to_owned(),
            program: compile(expression, budget),
        });
        Self { conditions: conditions.collect() }
    }

    /// Whether there are none, so that no input need be built.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Evaluates the conditions.
    ///
    /// 1. All are evaluated, also after one was false: together they must not cost too much, and
    ///    that they do is an error whatever they say.
    /// 2. If one is false, the hook is not called.
    /// 3. Otherwise errors count.
    #[must_use]
    pub fn evaluate(&self, input: &ConditionInput<'_>) -> Conditions<'_> {
        if self.conditions.is_empty() {
            return Conditions::Hold;
        }
        let variables = input.variables();
        let mut budget = TOTAL_COST_LIMIT;
        let mut first_false = None;
        let mut errors = Vec::new();
        for condition in &self.conditions {
            let program = match &condition.program {
                Ok(program) => program,
                Err(error) => {
                    errors.push(format!("compilation error: {error}"));
                    continue;
                }
            };
            let (outcome, cost) = program.evaluate_bool(&variables, COST_LIMIT);
            match budget.checked_sub(cost) {
                Some(left) => budget = left,
                None => return Conditions::Fail(OUT_OF_BUDGET.to_owned()),
            }
            match outcome {
                Ok(true) => {}
                Ok(false) => {
                    first_false.get_or_insert(condition.name.as_str());
                }
                Err(cause) => errors.push(format!(
                    "expression '{}' resulted in error: {cause}",
                    condition.expression
                )),
            }
        }
        match first_false {
            Some(condition) => Conditions::Exclude { condition },
            None if errors.is_empty() => Conditions::Hold,
            None => Conditions::Fail(field::aggregate(&errors)),
        }
    }
}

const OUT_OF_BUDGET: &str = "validation failed due to running out of cost budget, no further \
     validation rules will be run";

/// Compiles one of the expressions of a configuration, within what is left for all of them.
pub(crate) fn compile(expression: &str, budget: &mut Budget) -> Result<Program, ConditionError> {
    let checked = ENVIRONMENT.check_within(expression, budget).map_err(|issues| {
        ConditionError::Invalid(shortened(format!("compilation failed: {issues}")))
    })?;
    let found = checked.output_type();
    if *found != Type::Bool {
        let detail = format!("must evaluate to bool but got {}", found.runtime_name());
        return Err(ConditionError::Invalid(shortened(detail)));
    }
    checked.program().map_err(|cause| {
        ConditionError::Internal(shortened(format!("program instantiation failed: {cause}")))
    })
}

fn shortened(mut detail: String) -> String {
    if detail.len() > DETAIL_BYTES_MAX {
        detail.truncate(detail.floor_char_boundary(DETAIL_BYTES_MAX));
        detail.push_str("...");
    }
    detail
}
