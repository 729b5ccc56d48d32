//! How conditions come out one by one, for whoever wonders why a hook is called or not.

use cel::{COST_LIMIT, Explanation};

use super::authorizer::Decisions;
use super::environment::STORED;
use super::{ConditionError, ConditionInput, MatchConditions};

/// One condition and how it comes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedCondition<'c> {
    /// Its name.
    pub name: &'c str,
    /// What it says.
    pub expression: &'c str,
    /// What it gives as a whole, then what its parts give; or why it can not be evaluated.
    pub explanation: Result<Explanation, ConditionError>,
}

impl MatchConditions {
    /// What each condition and its parts give, in order, with what the authorizer has answered when
    /// they were [evaluated](Self::evaluate), which says what follows from it.
    ///
    /// Conditions keep nothing for this: each is compiled and evaluated again.
    #[must_use]
    pub fn explain(
        &self,
        input: &ConditionInput<'_>,
        decisions: Option<&Decisions>,
    ) -> Vec<ExplainedCondition<'_>> {
        let variables = input.variables(decisions);
        let explained = self.conditions.iter().map(|condition| ExplainedCondition {
            name: &condition.name,
            expression: &condition.expression,
            explanation: match &condition.program {
                Err(error) => Err(error.clone()),
                Ok(_) => STORED
                    .explain(&condition.expression, &variables, COST_LIMIT)
                    .map_err(|error| ConditionError::Internal(error.to_string())),
            },
        });
        explained.collect()
    }
}
