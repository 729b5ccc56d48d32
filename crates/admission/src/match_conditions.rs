//! Match conditions: CEL expressions that decide whether a hook is called.

mod authorizer_checks;
mod cel_document;
mod cel_environment;
mod condition_explanation;
mod request_variable;

use cel::{
    AUTHORIZER_CHECK_COST, Authorizer, COST_LIMIT, CompileBudget, Environment, EvalError, Map,
    Program, Type, Value,
};

pub use self::authorizer_checks::{AuthorizerDecisions, PendingAuthorizerCheck};
use self::cel_document::CelDocument;
use self::cel_environment::{
    AUTHORIZER_INDEX, NEW_CONDITION_ENVIRONMENT, REQUEST_RESOURCE_INDEX,
    STORED_CONDITION_ENVIRONMENT,
};
pub use self::condition_explanation::ExplainedCondition;
use self::request_variable::AdmissionRequest;
use crate::attributes::{Attributes, GroupVersionKind, GroupVersionResource};

/// The maximum number of conditions that one hook may have.
pub const MATCH_CONDITIONS_MAX: usize = 64;

/// The CEL cost that all conditions of one hook may have together in one evaluation. Each of them is also limited to
/// [`COST_LIMIT`].
const TOTAL_COST_LIMIT: u64 = 2_500_000;

/// The maximum number of authorizer checks that one evaluation of the conditions of a hook can afford. It bounds the
/// questions to the authorizer.
pub const AUTHORIZER_CHECKS_MAX: u64 = TOTAL_COST_LIMIT / AUTHORIZER_CHECK_COST;

/// The total length of compiler messages for one configuration that are reported in full. The compiler repeats the source
/// line for each of up to a hundred issues, so messages can be a hundred times as long as the object.
const DETAIL_BYTES_MAX: usize = 8 << 20;

/// The length to which a message is cut after [`DETAIL_BYTES_MAX`] is used up.
const SHORT_DETAIL_BYTES_MAX: usize = 1 << 10;

/// The reason why an expression is not a valid match condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// The expression does not compile, or its type is not bool. The text is Kubernetes'.
    #[error("{0}")]
    Invalid(String),
    /// The expression compiles, but the evaluation of a constant part fails.
    #[error("{0}")]
    Internal(String),
}

/// The compiled match conditions of one hook, in order.
#[derive(Debug, Default)]
pub struct MatchConditions {
    conditions: Vec<MatchCondition>,
    /// Whether a condition uses the authorizer. Most do not, so the variable is set only if this is true.
    uses_authorizer: bool,
}

/// One match condition. A stored condition that does not compile fails whenever it is evaluated.
#[derive(Debug)]
struct MatchCondition {
    name: String,
    cel_expression: String,
    compiled_program: Result<Program, ConditionError>,
}

/// The result of evaluating all match conditions of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchConditionsResult<'a> {
    /// All conditions are true, or there are none.
    Hold,
    /// The condition of this name is the first that is false.
    Exclude {
        /// The name of the condition.
        condition: &'a str,
    },
    /// No condition is false and the evaluation of at least one failed, or all together exceed the cost limit. The failure
    /// policy of the hook decides.
    Fail(String),
}

/// The CEL variables of match conditions, in the version that a rule of the hook matched.
///
/// Building them takes time in proportion to the size of the objects.
#[derive(Debug)]
pub struct ConditionVariables<'a> {
    request: AdmissionRequest<'a>,
    object: Option<CelDocument<'a>>,
    old_object: Option<CelDocument<'a>>,
}

impl<'a> ConditionVariables<'a> {
    /// Builds the variables.
    ///
    /// `kind` and `resource` are those of the review, and the objects of `converted` have that kind. `requested` has the
    /// attributes of the request itself.
    #[must_use]
    pub fn new(
        requested: &Attributes<'a>,
        converted: &Attributes<'a>,
        kind: GroupVersionKind<'a>,
        resource: GroupVersionResource<'a>,
    ) -> Self {
        Self {
            request: AdmissionRequest::new(requested, kind, resource),
            object: converted.object.map(CelDocument::from_json_object),
            old_object: converted.old_object.map(CelDocument::from_json_object),
        }
    }

    /// The values of the variables, in the order of their declaration.
    ///
    /// `namespaceObject` is always null for webhooks. Without an authorizer, `authorizer` is null: an expression that uses
    /// it fails, and the failure policy decides.
    fn variable_values(&self, decisions: Option<&AuthorizerDecisions>) -> [Value<'_>; 6] {
        let object = self.object.as_ref().map(CelDocument::value);
        let old_object = self.old_object.as_ref().map(CelDocument::value);
        let (authorizer, request_resource) = match decisions {
            None => (Value::Null, Value::Null),
            Some(AuthorizerDecisions(known)) => {
                let authorizer = Authorizer::new(known.clone());
                let target = self.request.resource_target();
                (authorizer.clone().value(), authorizer.resource_check_value(target))
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
    pub(crate) fn compile_conditions<'t>(
        conditions: impl IntoIterator<Item = (&'t str, &'t str)>,
        compiler: &mut ConditionCompiler,
    ) -> Self {
        let conditions = conditions.into_iter().map(|(name, expression)| MatchCondition {
            name: name.to_owned(),
            cel_expression: expression.to_owned(),
            compiled_program: compiler.compile_stored_expression(expression),
        });
        let conditions: Vec<_> = conditions.collect();
        let programs =
            conditions.iter().filter_map(|condition| condition.compiled_program.as_ref().ok());
        let uses_authorizer = programs.into_iter().any(|program| {
            program.reads_variable(AUTHORIZER_INDEX)
                || program.reads_variable(REQUEST_RESOURCE_INDEX)
        });
        Self { conditions, uses_authorizer }
    }

    /// Reports whether there are no conditions, so that the caller need not build the variables.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Evaluates the conditions. `decisions` are the decisions of the authorizer so far; `None` if there is no authorizer.
    ///
    /// 1. All conditions are evaluated, even after one is false, because all together must stay below the cost limit.
    /// 2. If one is false, the hook is not called.
    /// 3. Otherwise, if the evaluation of a condition failed, the result is a failure.
    ///
    /// # Errors
    /// A question for the authorizer. The caller asks it, [records](AuthorizerDecisions::record_decision) the decision and evaluates again.
    /// Each recorded decision lets the evaluation proceed, and an evaluation can afford at most [`AUTHORIZER_CHECKS_MAX`] checks, so
    /// the loop ends.
    pub fn evaluate_conditions(
        &self,
        input: &ConditionVariables<'_>,
        decisions: Option<&AuthorizerDecisions>,
    ) -> Result<MatchConditionsResult<'_>, Box<PendingAuthorizerCheck>> {
        if self.conditions.is_empty() {
            return Ok(MatchConditionsResult::Hold);
        }
        let variables = input.variable_values(decisions.filter(|_| self.uses_authorizer));
        let mut budget = TOTAL_COST_LIMIT;
        let mut first_false = None;
        let mut errors = Vec::new();
        for condition in &self.conditions {
            let program = match &condition.compiled_program {
                Ok(program) => program,
                Err(error) => {
                    errors.push(format!("compilation error: {error}"));
                    continue;
                }
            };
            // An evaluation that exceeds the budget is not finished.
            let (outcome, cost) = program.evaluate_bool(&variables, COST_LIMIT.min(budget));
            match budget.checked_sub(cost) {
                Some(left) => budget = left,
                None => return Ok(MatchConditionsResult::Fail(OUT_OF_BUDGET.to_owned())),
            }
            match outcome {
                Ok(true) => {}
                Ok(false) => {
                    first_false.get_or_insert(condition.name.as_str());
                }
                Err(EvalError::NeedsDecision(question)) => {
                    return Err(Box::new(PendingAuthorizerCheck::new(*question)));
                }
                Err(cause) => errors.push(format!(
                    "expression '{}' resulted in error: {cause}",
                    condition.cel_expression
                )),
            }
        }
        Ok(match first_false {
            Some(condition) => MatchConditionsResult::Exclude { condition },
            None if errors.is_empty() => MatchConditionsResult::Hold,
            None => MatchConditionsResult::Fail(field_errors::aggregate_messages(&errors)),
        })
    }
}

const OUT_OF_BUDGET: &str = "validation failed due to running out of cost budget, no further \
     validation rules will be run";

/// Compiles the conditions of one configuration with a common budget: thousands of them fit into an object, and each can
/// be large.
#[derive(Debug)]
pub(crate) struct ConditionCompiler {
    compile_budget: CompileBudget,
    error_detail_bytes_left: usize,
}

impl Default for ConditionCompiler {
    fn default() -> Self {
        Self { compile_budget: CompileBudget::default(), error_detail_bytes_left: DETAIL_BYTES_MAX }
    }
}

impl ConditionCompiler {
    /// The bytes of memory that the compiled regular expressions take.
    pub(crate) fn compiled_regex_bytes(&self) -> usize {
        self.compile_budget.compiled_pattern_bytes()
    }

    /// Compiles a stored expression, which must be of type bool.
    pub(crate) fn compile_stored_expression(
        &mut self,
        expression: &str,
    ) -> Result<Program, ConditionError> {
        self.compile_in_environment(&STORED_CONDITION_ENVIRONMENT, expression)
    }

    /// Checks a new expression. It may use only functions that the previous version also has.
    pub(crate) fn check_new_expression(&mut self, expression: &str) -> Result<(), ConditionError> {
        self.compile_in_environment(&NEW_CONDITION_ENVIRONMENT, expression).map(|_| ())
    }

    fn compile_in_environment(
        &mut self,
        environment: &Environment,
        expression: &str,
    ) -> Result<Program, ConditionError> {
        let error =
            match environment.parse_and_check_within_budget(expression, &mut self.compile_budget) {
                Err(issues) => ConditionError::Invalid(format!("compilation failed: {issues}")),
                Ok(checked) if *checked.output_type() != Type::Bool => {
                    let found = checked.output_type().runtime_type_name();
                    ConditionError::Invalid(format!("must evaluate to bool but got {found}"))
                }
                Ok(checked) => match checked.into_program() {
                    Ok(program) => return Ok(program),
                    Err(cause) => {
                        ConditionError::Internal(format!("program instantiation failed: {cause}"))
                    }
                },
            };
        Err(self.truncate_error_detail(error))
    }

    /// Returns the error in full, or cut if the messages so far are too long.
    fn truncate_error_detail(&mut self, mut error: ConditionError) -> ConditionError {
        let (ConditionError::Invalid(detail) | ConditionError::Internal(detail)) = &mut error;
        match self.error_detail_bytes_left.checked_sub(detail.len()) {
            Some(left) => self.error_detail_bytes_left = left,
            None if detail.len() > SHORT_DETAIL_BYTES_MAX => {
                detail.truncate(detail.floor_char_boundary(SHORT_DETAIL_BYTES_MAX));
                detail.push_str("...");
            }
            None => {}
        }
        error
    }
}
