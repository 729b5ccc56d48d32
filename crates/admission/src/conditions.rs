//! Match conditions: expressions that decide whether a hook is called (admission §3.9).

mod authorizer;
mod document;
mod environment;
mod explain;
mod request;

use cel::{
    Authorizer, CHECK_COST, COST_LIMIT, CompileBudget, Environment, EvalError, Map, Program, Type,
    Value,
};

pub use self::authorizer::{Decisions, Question};
use self::document::Document;
use self::environment::{AUTHORIZER, NEW, REQUEST_RESOURCE, STORED};
pub use self::explain::ExplainedCondition;
use self::request::AdmissionRequest;
use crate::attributes::{Attributes, GroupVersionKind, GroupVersionResource};

/// The most conditions that one hook may have.
pub const MATCH_CONDITIONS_MAX: usize = 64;

/// What the conditions of one hook may cost together in one evaluation. Each of them has
/// [`COST_LIMIT`] for itself.
const TOTAL_COST_LIMIT: u64 = 2_500_000;

/// The most checks that one evaluation of the conditions of a hook can afford, so that it asks the
/// authorizer no more often.
pub const CHECKS_MAX: u64 = TOTAL_COST_LIMIT / CHECK_COST;

/// How much text there may be about the faults of one configuration in full. The compiler shows the
/// line for each of a hundred issues, so it can say a hundred times as much as the object does.
const DETAIL_BYTES_MAX: usize = 8 << 20;

/// How much of a text is told when there is too much of it.
const SHORT_DETAIL_BYTES_MAX: usize = 1 << 10;

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
    /// Whether some condition names the authorizer. Most do not, and are not given one.
    names_authorizer: bool,
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
    /// Webhooks are not told the namespace's object. Where there is no authorizer, nothing stands for
    /// it, so that an expression that asks it fails, and the failure policy decides.
    fn variables(&self, decisions: Option<&Decisions>) -> [Value<'_>; 6] {
        let object = self.object.as_ref().map(Document::value);
        let old_object = self.old_object.as_ref().map(Document::value);
        let (authorizer, request_resource) = match decisions {
            None => (Value::Null, Value::Null),
            Some(Decisions(known)) => {
                let authorizer = Authorizer::new(known.clone());
                let target = self.request.resource_target();
                (authorizer.clone().value(), authorizer.resource_check(target))
            }
        };
        [
            object.unwrap_or(Value::Null),
            old_object.unwrap_or(Value::Null),
            Value::Null,
            Value::Map(Map::Record(&self.request)),
            authorizer,
            request_resource,
        ]
    }
}

impl MatchConditions {
    /// Compiles the conditions of a stored hook, given as pairs of name and expression.
    pub(crate) fn compile<'t>(
        conditions: impl IntoIterator<Item = (&'t str, &'t str)>,
        compiler: &mut ConditionCompiler,
    ) -> Self {
        let conditions = conditions.into_iter().map(|(name, expression)| MatchCondition {
            name: name.to_owned(),
            expression: expression.to_owned(),
            program: compiler.compile(expression),
        });
        let conditions: Vec<_> = conditions.collect();
        let programs = conditions.iter().filter_map(|condition| condition.program.as_ref().ok());
        let names_authorizer = programs.into_iter().any(|program| {
            program.reads_variable(AUTHORIZER) || program.reads_variable(REQUEST_RESOURCE)
        });
        Self { conditions, names_authorizer }
    }

    /// Whether there are none, so that no input need be built.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Evaluates the conditions with what the authorizer has answered so far; `None` if there is
    /// nobody to ask.
    ///
    /// 1. All are evaluated, also after one was false: together they must not cost too much, and
    ///    that they do is an error whatever they say.
    /// 2. If one is false, the hook is not called.
    /// 3. Otherwise errors count.
    ///
    /// # Errors
    /// A question whose answer is not known. Whoever calls asks it, [remembers](Decisions::remember)
    /// the answer and evaluates again: with each answer that is added an evaluation gets further, and
    /// it can not afford more than [`CHECKS_MAX`] checks, so that it ends after as many answers.
    pub fn evaluate(
        &self,
        input: &ConditionInput<'_>,
        decisions: Option<&Decisions>,
    ) -> Result<Conditions<'_>, Box<Question>> {
        if self.conditions.is_empty() {
            return Ok(Conditions::Hold);
        }
        let variables = input.variables(decisions.filter(|_| self.names_authorizer));
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
            // What does not fit into the budget need not be finished.
            let (outcome, cost) = program.evaluate_bool(&variables, COST_LIMIT.min(budget));
            match budget.checked_sub(cost) {
                Some(left) => budget = left,
                None => return Ok(Conditions::Fail(OUT_OF_BUDGET.to_owned())),
            }
            match outcome {
                Ok(true) => {}
                Ok(false) => {
                    first_false.get_or_insert(condition.name.as_str());
                }
                Err(EvalError::NeedsDecision(question)) => {
                    return Err(Box::new(Question::new(*question)));
                }
                Err(cause) => errors.push(format!(
                    "expression '{}' resulted in error: {cause}",
                    condition.expression
                )),
            }
        }
        Ok(match first_false {
            Some(condition) => Conditions::Exclude { condition },
            None if errors.is_empty() => Conditions::Hold,
            None => Conditions::Fail(field_errors::aggregate(&errors)),
        })
    }
}

const OUT_OF_BUDGET: &str = "validation failed due to running out of cost budget, no further \
     validation rules will be run";

/// Compiles the conditions of one configuration. What they take together is bounded: thousands of
/// them fit into an object, and each may be large.
#[derive(Debug)]
pub(crate) struct ConditionCompiler {
    budget: CompileBudget,
    detail_bytes_left: usize,
}

impl Default for ConditionCompiler {
    fn default() -> Self {
        Self { budget: CompileBudget::default(), detail_bytes_left: DETAIL_BYTES_MAX }
    }
}

impl ConditionCompiler {
    /// Compiles one expression that is stored; it must be of type bool.
    pub(crate) fn compile(&mut self, expression: &str) -> Result<Program, ConditionError> {
        self.compile_in(&STORED, expression)
    }

    /// Checks one expression that is not stored yet. It may use less.
    pub(crate) fn check_new(&mut self, expression: &str) -> Result<(), ConditionError> {
        self.compile_in(&NEW, expression).map(|_| ())
    }

    fn compile_in(
        &mut self,
        environment: &Environment,
        expression: &str,
    ) -> Result<Program, ConditionError> {
        let error = match environment.check_within_budget(expression, &mut self.budget) {
            Err(issues) => ConditionError::Invalid(format!("compilation failed: {issues}")),
            Ok(checked) if *checked.output_type() != Type::Bool => {
                let found = checked.output_type().runtime_name();
                ConditionError::Invalid(format!("must evaluate to bool but got {found}"))
            }
            Ok(checked) => match checked.into_program() {
                Ok(program) => return Ok(program),
                Err(cause) => {
                    ConditionError::Internal(format!("program instantiation failed: {cause}"))
                }
            },
        };
        Err(self.bounded(error))
    }

    /// The error in full, or the beginning of it when that would be too much.
    fn bounded(&mut self, mut error: ConditionError) -> ConditionError {
        let (ConditionError::Invalid(detail) | ConditionError::Internal(detail)) = &mut error;
        match self.detail_bytes_left.checked_sub(detail.len()) {
            Some(left) => self.detail_bytes_left = left,
            None if detail.len() > SHORT_DETAIL_BYTES_MAX => {
                detail.truncate(detail.floor_char_boundary(SHORT_DETAIL_BYTES_MAX));
                detail.push_str("...");
            }
            None => {}
        }
        error
    }
}
