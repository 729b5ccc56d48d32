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

#[cfg(test)]
mod tests {
    use authz::Decision;
    use cel::PartResult;

    use super::*;
    use crate::attributes::{Attributes, GroupVersionKind, GroupVersionResource, Operation};
    use crate::conditions::{ConditionCompiler, Conditions};

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
        equivalents: &[],
    };

    #[test]
    fn each_condition_is_told_with_its_parts() {
        let conditions = [
            ("named", "request.name == 'web' && request.namespace != 'prod'"),
            ("broken", "request.name +"),
            ("asks", "authorizer.path('/x').check('get').allowed()"),
        ];
        let conditions = MatchConditions::compile(conditions, &mut ConditionCompiler::default());
        let Attributes { kind, resource, .. } = ATTRIBUTES;
        let input = ConditionInput::new(&ATTRIBUTES, &ATTRIBUTES, kind, resource);
        let mut decisions = Decisions::default();
        let question = conditions.evaluate(&input, Some(&decisions)).unwrap_err();
        decisions.remember(*question, &Decision::allow(""));
        let outcome = conditions.evaluate(&input, Some(&decisions)).unwrap();
        assert_eq!(outcome, Conditions::Exclude { condition: "named" });

        let explained = conditions.explain(&input, Some(&decisions));
        let [named, broken, asks] = explained.as_slice() else { panic!("{explained:?}") };
        assert_eq!((named.name, broken.name, asks.name), ("named", "broken", "asks"));
        let parts = &named.explanation.as_ref().unwrap().parts;
        let told = |text: &str| {
            let part = parts.iter().find(|part| part.text == text);
            part.map(|part| part.result.clone())
        };
        let value = |text: &str| Some(PartResult::Value(text.to_owned()));
        assert_eq!(parts[0].result, PartResult::Value("false".to_owned()));
        assert_eq!(told("request.name == 'web'"), value("true"));
        assert_eq!(told("request.namespace"), value("\"prod\""));
        assert!(matches!(broken.explanation, Err(ConditionError::Invalid(_))));
        let asked = &asks.explanation.as_ref().unwrap().parts;
        assert_eq!(asked[0].result, PartResult::Value("true".to_owned()));
    }
}
