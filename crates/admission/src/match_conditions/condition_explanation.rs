//! Explains the result of each match condition, for `portcullis explain`.

use cel::{COST_LIMIT, Explanation};

use super::authorizer_checks::AuthorizerDecisions;
use super::cel_environment::STORED_CONDITION_ENVIRONMENT;
use super::{ConditionError, ConditionVariables, MatchConditions};

/// One match condition and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedCondition<'c> {
    /// The name of the condition.
    pub name: &'c str,
    /// The CEL expression of the condition.
    pub cel_expression: &'c str,
    /// The value of the whole expression and of its parts, or the reason why it cannot be evaluated.
    pub condition_explanation: Result<Explanation, ConditionError>,
}

impl MatchConditions {
    /// Explains each condition in order. `decisions` are those of the [evaluation](Self::evaluate) before.
    ///
    /// Each condition is compiled and evaluated again, since compiled programs keep no source positions.
    #[must_use]
    pub fn explain_conditions(
        &self,
        input: &ConditionVariables<'_>,
        decisions: Option<&AuthorizerDecisions>,
    ) -> Vec<ExplainedCondition<'_>> {
        let variables = input.variable_values(decisions);
        let explained = self.conditions.iter().map(|condition| ExplainedCondition {
            name: &condition.name,
            cel_expression: &condition.cel_expression,
            condition_explanation: match &condition.compiled_program {
                Err(error) => Err(error.clone()),
                Ok(_) => STORED_CONDITION_ENVIRONMENT
                    .explain(&condition.cel_expression, &variables, COST_LIMIT)
                    .map_err(|error| ConditionError::Internal(error.to_string())),
            },
        });
        explained.collect()
    }
}

#[cfg(test)]
mod tests {
    use authz::Decision;
    use cel::SubexpressionResult;

    use super::*;
    use crate::attributes::{Attributes, GroupVersionKind, GroupVersionResource, Operation};
    use crate::match_conditions::{ConditionCompiler, MatchConditionsResult};

    const ATTRIBUTES: Attributes<'static> = Attributes {
        operation: Operation::Create,
        kind: GroupVersionKind { group: "", version: "v1", kind: "Pod" },
        resource: GroupVersionResource { group: "", version: "v1", resource: "pods" },
        subresource: "",
        name: "web",
        namespace: "prod",
        object: None,
        old_object: None,
        options: None,
        is_dry_run: false,
        user: None,
        equivalent_resources: &[],
    };

    #[test]
    fn each_condition_is_explained_with_its_parts() {
        let conditions = [
            ("named", "request.name == 'web' && request.namespace != 'prod'"),
            ("broken", "request.name +"),
            ("asks", "authorizer.path('/x').check('get').allowed()"),
        ];
        let conditions =
            MatchConditions::compile_conditions(conditions, &mut ConditionCompiler::default());
        let Attributes { kind, resource, .. } = ATTRIBUTES;
        let input = ConditionVariables::new(&ATTRIBUTES, &ATTRIBUTES, kind, resource);
        let mut decisions = AuthorizerDecisions::default();
        let question = conditions.evaluate_conditions(&input, Some(&decisions)).unwrap_err();
        decisions.record_decision(*question, &Decision::allow(""));
        let outcome = conditions.evaluate_conditions(&input, Some(&decisions)).unwrap();
        assert_eq!(outcome, MatchConditionsResult::Exclude { condition: "named" });

        let explained = conditions.explain_conditions(&input, Some(&decisions));
        let [named, broken, asks] = explained.as_slice() else { panic!("{explained:?}") };
        assert_eq!((named.name, broken.name, asks.name), ("named", "broken", "asks"));
        let parts = &named.condition_explanation.as_ref().unwrap().subexpressions;
        let told = |text: &str| {
            let part = parts.iter().find(|part| part.source_excerpt == text);
            part.map(|part| part.result.clone())
        };
        let value = |text: &str| Some(SubexpressionResult::Value(text.to_owned()));
        assert_eq!(parts[0].result, SubexpressionResult::Value("false".to_owned()));
        assert_eq!(told("request.name == 'web'"), value("true"));
        assert_eq!(told("request.namespace"), value("\"prod\""));
        assert!(matches!(broken.condition_explanation, Err(ConditionError::Invalid(_))));
        let asked = &asks.condition_explanation.as_ref().unwrap().subexpressions;
        assert_eq!(asked[0].result, SubexpressionResult::Value("true".to_owned()));
    }
}
