//! Match conditions: CEL expressions that decide whether a webhook is asked at all.

use std::sync::Arc;

use authz::Recorder;
use cel::{COST_LIMIT, EvalError, Map, Program, Value};

use crate::compile::{ConditionCompiler, ConditionError};
use crate::record::note_condition;
use crate::review::{ReviewSpec, Selectors};
use crate::settings::MatchConditions;

/// One compiled condition.
#[derive(Debug, Clone)]
pub struct MatchCondition {
    expression: Arc<str>,
    program: Arc<Program>,
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

impl MatchCondition {
    pub(crate) fn new(expression: &str, program: Arc<Program>) -> Self {
        Self { expression: expression.into(), program }
    }

    /// Compiles one expression by itself; it must be of type bool.
    pub fn compile(expression: &str) -> Result<Self, ConditionError> {
        ConditionCompiler::default().compile(expression)
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
        match self.program.evaluate_bool_fast(&[request], COST_LIMIT) {
            Some((outcome, _)) => Ok(outcome),
            None => self.evaluate(request).0,
        }
    }

    #[cold]
    fn error(&self, cause: &EvalError) -> String {
        let expression = &self.expression;
        format!("cel evaluation error: expression '{expression}' resulted in error: {cause}")
    }
}

impl MatchConditions {
    /// The selectors that some condition looks at: the others need not be built.
    pub fn selectors(&self) -> Selectors {
        let selects = |field: &str| {
            self.as_slice().iter().any(|condition| condition.program.selects_field(field))
        };
        Selectors { field: selects("fieldSelector"), label: selects("labelSelector") }
    }

    /// Evaluates the conditions in order (chain §5.4):
    /// 1. The first one that is false ends the matter: the webhook is not asked.
    /// 2. Errors are remembered, and count only if nothing is false.
    pub fn evaluate(&self, request: &ReviewSpec<'_>) -> Matching {
        self.combine(|_, condition| condition.holds(request))
    }

    /// As [`evaluate`](Self::evaluate), and notes an event `condition` for each condition that is
    /// evaluated, with events `value` for its parts below it.
    pub fn evaluate_recorded(
        &self,
        request: &ReviewSpec<'_>,
        recorder: &mut Recorder<'_>,
    ) -> Matching {
        if !recorder.is_on() {
            return self.evaluate(request);
        }
        self.combine(|index, condition| {
            let outcome = condition.holds(request);
            note_condition(index, condition, &outcome, request, recorder);
            outcome
        })
    }

    #[inline]
    fn combine(
        &self,
        mut holds: impl FnMut(usize, &MatchCondition) -> Result<bool, String>,
    ) -> Matching {
        let mut errors = Vec::new();
        for (index, condition) in self.as_slice().iter().enumerate() {
            match holds(index, condition) {
                Ok(true) => {}
                Ok(false) => return Matching::Excluded { errors: !errors.is_empty() },
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            Matching::Matched
        } else {
            Matching::Failed(field_errors::aggregate(&errors))
        }
    }
}
