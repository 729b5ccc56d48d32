//! Story 1: custom resource definitions of the system may be changed by its own service accounts
//! only, whatever roles others hold.

use std::error::Error;

use stories::{Answer, Question, run};

const PROTECTED: &str = ".system.example.com";
const OWNERS: &str = "system:serviceaccounts:kube-superuser";

fn main() -> Result<(), Box<dyn Error>> {
    run(decide)
}

/// The match conditions let through only writes to definitions, so that is all that is asked.
fn decide(question: &Question) -> Answer {
    let Some(resource) = &question.resource_attributes else { return Answer::NoOpinion };
    let is_protected = resource.name.ends_with(PROTECTED) || resource.name.is_empty();
    match is_protected && !question.is_in(OWNERS) {
        true => Answer::Deny(format!("definitions of *{PROTECTED} belong to {OWNERS}")),
        false => Answer::NoOpinion,
    }
}
