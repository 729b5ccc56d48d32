//! Story 4: contractors hold a powerful role, and may use it in their own namespaces only.

use std::error::Error;

use stories::{Answer, Question, run};

const OWN: &str = "sandbox-";

fn main() -> Result<(), Box<dyn Error>> {
    run(decide)
}

fn decide(question: &Question) -> Answer {
    let namespace = question.resource_attributes.as_ref().map_or("", |own| &own.namespace);
    match namespace.starts_with(OWN) {
        true => Answer::NoOpinion,
        false => Answer::Deny(format!("contractors work in the namespaces {OWN}*")),
    }
}
