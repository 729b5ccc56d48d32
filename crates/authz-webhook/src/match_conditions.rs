//! Match conditions: CEL expressions that decide whether a webhook is called.

use std::sync::Arc;

use authz::TraceRecorder;
use cel::{COST_LIMIT, EvalError, Map, Program, Value};

use crate::compile_condition::{ConditionCompiler, ConditionError};
use crate::review_spec::{IncludedSelectors, ReviewSpec};
use crate::settings::MatchConditions;
use crate::trace_events::trace_condition;

/// One compiled match condition.
#[derive(Debug, Clone)]
pub struct MatchCondition {
    expression: Arc<str>,
    compiled_program: Arc<Program>,
}

/// A match condition could not be evaluated. Displays as Kubernetes' message.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("cel evaluation error: expression '{expression}' resulted in error: {cause}")]
pub struct EvaluationError {
    expression: Arc<str>,
    cause: EvalError,
}

/// The result of the match conditions of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchResult {
    /// All conditions are true, so the webhook is called.
    Matched,
    /// A condition is false, so the webhook is not called.
    Excluded {
        /// Whether a condition before the false one could not be evaluated.
        has_errors: bool,
    },
    /// No condition is false, and at least one could not be evaluated. The failure policy decides.
    Failed(String),
}

impl MatchCondition {
    pub(crate) fn new(expression: &str, program: Arc<Program>) -> Self {
        Self { expression: expression.into(), compiled_program: program }
    }

    /// Compiles one expression by itself; it must be of type bool.
    pub fn compile(expression: &str) -> Result<Self, ConditionError> {
        ConditionCompiler::default().compile_condition(expression)
    }

    /// Returns the source text of the condition.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Evaluates the condition alone; returns the outcome and its cost.
    pub fn evaluate(&self, request: &ReviewSpec<'_>) -> (Result<bool, EvaluationError>, u64) {
        let variables = [Value::Map(Map::Record(request))];
        let (outcome, cost) = self.compiled_program.evaluate_bool(&variables, COST_LIMIT);
        (outcome.map_err(|cause| self.evaluation_error(cause)), cost)
    }

    #[inline]
    fn condition_holds(&self, request: &ReviewSpec<'_>) -> Result<bool, EvaluationError> {
        match self.compiled_program.try_evaluate_bool_fast(&[request], COST_LIMIT) {
            Some((outcome, _)) => Ok(outcome),
            None => self.evaluate(request).0,
        }
    }

    #[cold]
    fn evaluation_error(&self, cause: EvalError) -> EvaluationError {
        EvaluationError { expression: Arc::clone(&self.expression), cause }
    }
}

impl MatchConditions {
    /// The selectors that a condition uses; the others are not built.
    pub fn used_selectors(&self) -> IncludedSelectors {
        let selects = |field: &str| {
            self.as_slice().iter().any(|condition| condition.compiled_program.selects_field(field))
        };
        IncludedSelectors {
            has_field_selector: selects("fieldSelector"),
            has_label_selector: selects("labelSelector"),
        }
    }

    /// Evaluates the conditions in order:
    /// 1. The first one that is false ends the evaluation: the webhook is not called.
    /// 2. An error does not end the evaluation, and counts only if no condition is false.
    pub fn evaluate(&self, request: &ReviewSpec<'_>) -> MatchResult {
        self.evaluate_all_conditions(|_, condition| condition.condition_holds(request))
    }

    /// As [`evaluate`](Self::evaluate), and records an event `condition` for each evaluated condition, with events `value`
    /// for its parts below it.
    pub fn evaluate_and_trace(
        &self,
        request: &ReviewSpec<'_>,
        recorder: &mut TraceRecorder<'_>,
    ) -> MatchResult {
        if !recorder.is_recording() {
            return self.evaluate(request);
        }
        self.evaluate_all_conditions(|index, condition| {
            let outcome = condition.condition_holds(request);
            trace_condition(index, condition, &outcome, request, recorder);
            outcome
        })
    }

    #[inline]
    fn evaluate_all_conditions(
        &self,
        mut holds: impl FnMut(usize, &MatchCondition) -> Result<bool, EvaluationError>,
    ) -> MatchResult {
        let mut errors = Vec::new();
        for (index, condition) in self.as_slice().iter().enumerate() {
            match holds(index, condition) {
                Ok(true) => {}
                Ok(false) => return MatchResult::Excluded { has_errors: !errors.is_empty() },
                Err(error) => errors.push(error.to_string()),
            }
        }
        if errors.is_empty() {
            MatchResult::Matched
        } else {
            MatchResult::Failed(field_errors::aggregate_messages(&errors))
        }
    }
}
