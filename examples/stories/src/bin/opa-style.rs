//! Story 2: a general policy engine that is asked last, and about little.
//!
//! The rules stand for a policy in Rego: who may do what in `kube-system`.

use std::error::Error;

use stories::{Answer, Question, run};

/// Who, which verb, which resource.
const RULES: &[(&str, &str, &str)] = &[
    ("jane", "get", "configmaps"),
    ("jane", "list", "configmaps"),
    ("jane", "create", "configmaps"),
];

fn main() -> Result<(), Box<dyn Error>> {
    run(decide)
}

fn decide(question: &Question) -> Answer {
    let Some(resource) = &question.resource_attributes else { return Answer::NoOpinion };
    let is_allowed = RULES.iter().any(|&(user, verb, name)| {
        (question.user.as_str(), resource.verb.as_str(), resource.resource.as_str())
            == (user, verb, name)
    });
    match is_allowed {
        true => Answer::Allow("policy kube-system/readers".to_owned()),
        false => Answer::NoOpinion,
    }
}
