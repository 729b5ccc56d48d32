//! Match conditions: CEL expressions that decide whether a webhook is asked at all.

use std::sync::{Arc, LazyLock};

use cel::{COST_LIMIT, Environment, Failure, Map, Program, Type, Value};

use crate::hints;
use crate::review::{ReviewSpec, Selectors, request_type};
use crate::settings::MatchConditions;

/// One compiled condition.
#[derive(Debug, Clone)]
pub struct MatchCondition {
    expression: Arc<str>,
    program: Arc<Program>,
}

/// Why an expression can not be a match condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConditionError {
    /// The expression does not compile, or its type is not bool. `detail` is Kubernetes' text.
    Invalid {
        /// The whole text, such as `compilation failed: ERROR: <input>:1:1: ...`.
        detail: String,
        /// Each issue with its place inside the expression.
        issues: Vec<Issue>,
    },
    /// The expression compiles but no program can be made of it (a constant part fails).
    Internal {
        /// The whole text, such as `program instantiation failed: ...`.
        detail: String,
    },
}

/// One compiler issue inside an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// 1-based line of the expression.
    pub line: u32,
    /// 1-based column in code points.
    pub column: u32,
    /// The compiler's message without position.
    pub message: String,
    /// What the author probably meant.
    pub hint: Option<String>,
}

/// Whether a webhook is to be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matching {
    /// All conditions hold.
    Matched,
    /// A condition is false; `errors` says whether one before it could not be evaluated.
    Excluded {
        /// Whether some condition failed before the false one was found.
        errors: bool,
    },
    /// No condition is false, and at least one could not be evaluated. The failure policy decides.
    Failed(String),
}

/// The environment of all match conditions: one variable, `request`.
static ENVIRONMENT: LazyLock<Environment> =
    LazyLock::new(|| Environment::kubernetes(vec![("request", request_type())]));

impl MatchCondition {
    /// Compiles one expression; it must be of type bool.
    pub fn compile(expression: &str) -> Result<Self, ConditionError> {
        let checked = ENVIRONMENT.check(expression).map_err(|issues| ConditionError::Invalid {
            detail: format!("compilation failed: {issues}"),
            issues: issues
                .iter()
                .map(|issue| Issue {
                    line: issue.line.unwrap_or(1),
                    column: issue.column.max(1),
                    message: issue.message.clone(),
                    hint: hints::hint(expression, issue),
                })
                .collect(),
        })?;
        if *checked.output_type() != Type::Bool {
            let found = checked.output_type().runtime_name();
            let detail = format!("must evaluate to bool but got {found}");
            let hint = hints::not_bool(expression, checked.output_type());
            let issue = Issue { line: 1, column: 1, message: detail.clone(), hint };
            return Err(ConditionError::Invalid { detail, issues: vec![issue] });
        }
        let program = checked.program().map_err(|cause| ConditionError::Internal {
            detail: format!("program instantiation failed: {cause}"),
        })?;
        Ok(Self { expression: expression.into(), program: Arc::new(program) })
    }

    /// The source text.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Evaluates the condition alone; returns the outcome and its cost.
    pub fn evaluate(&self, request: &ReviewSpec<'_>) -> (Result<bool, String>, u64) {
        let variables = [Value::Map(Map::Record(request))];
        let (outcome, cost) = self.program.evaluate_bool(&variables, COST_LIMIT);
        (outcome.map_err(|cause| self.error(&cause)), cost)
    }

    #[inline]
    fn holds(&self, request: &ReviewSpec<'_>) -> Result<bool, String> {
        match self.program.test(&[request], COST_LIMIT) {
            Some((outcome, _)) => Ok(outcome),
            None => self.evaluate(request).0,
        }
    }

    #[cold]
    fn error(&self, cause: &Failure) -> String {
        let expression = &self.expression;
        format!("cel evaluation error: expression '{expression}' resulted in error: {cause}")
    }
}

impl MatchConditions {
    /// The selectors that some condition looks at: the others need not be built.
    pub fn selectors(&self) -> Selectors {
        let selects =
            |field: &str| self.as_slice().iter().any(|condition| condition.program.selects(field));
        Selectors { field: selects("fieldSelector"), label: selects("labelSelector") }
    }

    /// Evaluates the conditions in order (chain §5.4):
    /// 1. The first one that is false ends the matter: the webhook is not asked.
    /// 2. Errors are remembered, and count only if nothing is false.
    pub fn evaluate(&self, request: &ReviewSpec<'_>) -> Matching {
        let mut errors = Vec::new();
        for condition in self.as_slice() {
            match condition.holds(request) {
                Ok(true) => {}
                Ok(false) => return Matching::Excluded { errors: !errors.is_empty() },
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            Matching::Matched
        } else {
            Matching::Failed(field::aggregate(&errors))
        }
    }
}
