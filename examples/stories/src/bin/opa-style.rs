//! Story 2: a general policy engine that is the last of the chain and gets few requests.
//!
//! The rules stand for a policy in Rego about `kube-system`.

use std::error::Error;

use stories::{Decision, ReviewSpec, run};

/// The allowed user, verb and resource of each rule.
const RULES: &[(&str, &str, &str)] = &[
    ("jane", "get", "configmaps"),
    ("jane", "list", "configmaps"),
    ("jane", "create", "configmaps"),
];

fn main() -> Result<(), Box<dyn Error>> {
    run(decide)
}

fn decide(spec: &ReviewSpec) -> Decision {
    let Some(resource) = &spec.resource_attributes else { return Decision::NoOpinion };
    let is_allowed = RULES.iter().any(|&(user, verb, name)| {
        (spec.user.as_str(), resource.verb.as_str(), resource.resource.as_str())
            == (user, verb, name)
    });
    match is_allowed {
        true => Decision::Allow("policy kube-system/readers".to_owned()),
        false => Decision::NoOpinion,
    }
}
