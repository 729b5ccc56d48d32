//! Match conditions: CEL expressions that decide whether a webhook is called.

use std::sync::Arc;

use authz::Recorder;
use cel::{COST_LIMIT, EvalError, Map, Program, Value};

use crate::compile_condition::{ConditionCompiler, ConditionError};
use crate::review_spec::{IncludedSelectors, ReviewSpec};
use crate::settings::MatchConditions;
use crate::trace_events::record_condition;

/// One compiled match condition.
#[derive(Debug, Clone)]
pub struct MatchCondition {
    expression: Arc<str>,
    program: Arc<Program>,
}

/// The result of the match conditions of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchResult {
    /// All conditions are true, so the webhook is called.
    Matched,
    /// A condition is false; `errors` says whether one before it could not be evaluated.
    Excluded {
        /// Whether some condition failed before the false one was found.
        errors: bool,
    },
    /// No condition is false, and at least one could not be evaluated. The failure policy decides.
    Failed(String),
}

impl MatchCondition {
    pub(crate) fn new(expression: &str, program: Arc<Program>) -> Self {
        Self { expression: expression.into(), program }
    }

    /// Compiles one expression by itself; it must be of type bool.
    pub fn compile(expression: &str) -> Result<Self, ConditionError> {
        ConditionCompiler::default().compile(expression)
    }

    /// Returns the source text of the condition.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Evaluates the condition alone; returns the outcome and its cost.
    pub fn evaluate(&self, request: &ReviewSpec<'_>) -> (Result<bool, String>, u64) {
        let variables = [Value::Map(Map::Record(request))];
        let (outcome, cost) = self.program.evaluate_bool(&variables, COST_LIMIT);
        (outcome.map_err(|cause| self.error_message(&cause)), cost)
    }

    #[inline]
    fn holds(&self, request: &ReviewSpec<'_>) -> Result<bool, String> {
        match self.program.evaluate_bool_fast(&[request], COST_LIMIT) {
            Some((outcome, _)) => Ok(outcome),
            None => self.evaluate(request).0,
        }
    }

    #[cold]
    fn error_message(&self, cause: &EvalError) -> String {
        let expression = &self.expression;
        format!("cel evaluation error: expression '{expression}' resulted in error: {cause}")
    }
}

impl MatchConditions {
    /// The selectors that a condition uses; the others are not built.
    pub fn selectors(&self) -> IncludedSelectors {
        let selects = |field: &str| {
            self.as_slice().iter().any(|condition| condition.program.selects_field(field))
        };
        IncludedSelectors { field: selects("fieldSelector"), label: selects("labelSelector") }
    }

    /// Evaluates the conditions in order:
    /// 1. The first one that is false ends the evaluation: the webhook is not called.
    /// 2. An error does not end the evaluation, and counts only if no condition is false.
    pub fn evaluate(&self, request: &ReviewSpec<'_>) -> MatchResult {
        self.evaluate_each(|_, condition| condition.holds(request))
    }

    /// As [`evaluate`](Self::evaluate), and records an event `condition` for each evaluated condition, with events `value`
    /// for its parts below it.
    pub fn evaluate_recorded(
        &self,
        request: &ReviewSpec<'_>,
        recorder: &mut Recorder<'_>,
    ) -> MatchResult {
        if !recorder.is_on() {
            return self.evaluate(request);
        }
        self.evaluate_each(|index, condition| {
            let outcome = condition.holds(request);
            record_condition(index, condition, &outcome, request, recorder);
            outcome
        })
    }

    #[inline]
    fn evaluate_each(
        &self,
        mut holds: impl FnMut(usize, &MatchCondition) -> Result<bool, String>,
    ) -> MatchResult {
        let mut errors = Vec::new();
        for (index, condition) in self.as_slice().iter().enumerate() {
            match holds(index, condition) {
                Ok(true) => {}
                Ok(false) => return MatchResult::Excluded { errors: !errors.is_empty() },
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            MatchResult::Matched
        } else {
            MatchResult::Failed(field_errors::aggregate(&errors))
        }
    }
}
